/* scan.c — a walk over the wire format of an ONNX model, without recursion and without memory of its own.
 *
 * protobuf-c unpacks recursively and without bounds, so depth and counts are checked here first. Only the
 * fields that convert/onnx.proto knows as messages are entered; protobuf-c takes all others as bytes. */
#include "convert/scan.h"

bool lnt_wire_varint(lnt_wire *w, uint64_t *value)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        const uint8_t byte = *w->at++;
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = v;
            return true;
        }
    }
    return false;
}

bool lnt_wire_next(lnt_wire *w, lnt_wire_field *field)
{
    lnt_wire rest = *w;
    uint64_t key, length = 0;
    if (!lnt_wire_varint(&rest, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX)
        return false;
    *field = (lnt_wire_field){.number = (uint32_t)(key >> 3), .type = key & 7};
    switch (field->type) {
    case 0:
        if (!lnt_wire_varint(&rest, &field->value))
            return false;
        break;
    case 1: length = 8; break;
    case 2:
        if (!lnt_wire_varint(&rest, &length))
            return false;
        break;
    case 5: length = 4; break;
    default: return false;
    }
    if (length > (uint64_t)(rest.end - rest.at))
        return false;
    field->body = lnt_wire_of(rest.at, (size_t)length);
    w->at = rest.at + length;
    return true;
}

typedef enum message {
    MODEL,
    GRAPH,
    NODE,
    ATTRIBUTE,
    VALUE_INFO,
    TYPE,
    TENSOR_TYPE,
    SHAPE,
    DIMENSION,
    STRING_ENTRY,
    OPERATOR_SET,
    FUNCTION,
    NO_MESSAGE
} message;

static const struct {
    uint8_t parent, child;
    uint8_t number;
} nesting[] = {
    {MODEL, GRAPH, 7},     {MODEL, OPERATOR_SET, 8}, {MODEL, STRING_ENTRY, 14},   {MODEL, FUNCTION, 25},
    {GRAPH, NODE, 1},      {GRAPH, VALUE_INFO, 11},  {GRAPH, VALUE_INFO, 12},     {NODE, ATTRIBUTE, 5},
    {ATTRIBUTE, GRAPH, 6}, {VALUE_INFO, TYPE, 2},    {TYPE, TENSOR_TYPE, 1},      {TENSOR_TYPE, SHAPE, 2},
    {SHAPE, DIMENSION, 1}, {FUNCTION, NODE, 7},      {FUNCTION, OPERATOR_SET, 9}, {FUNCTION, ATTRIBUTE, 11}};

static message child_of(message parent, uint32_t number)
{
    for (unsigned i = 0; i < sizeof nesting / sizeof nesting[0]; i++)
        if (nesting[i].parent == parent && nesting[i].number == number)
            return (message)nesting[i].child;
    return NO_MESSAGE;
}

lnt_status lnt_onnx_scan(const void *bytes, size_t size, lnt_error *err)
{
    struct {
        lnt_wire rest;
        message kind;
    } open[LNT_ONNX_MAX_DEPTH] = {{lnt_wire_of(bytes, size), MODEL}};
    unsigned depth = 1;
    uint64_t messages = 0;
    while (depth > 0) {
        lnt_wire_field field;
        lnt_wire *w = &open[depth - 1].rest;
        if (!lnt_wire_next(w, &field)) {
            LNT_REQUIRE(w->at == w->end, err, LNT_E_MODEL,
                        "not an ONNX model, or a damaged one: malformed protobuf at byte %zu",
                        (size_t)(w->at - (const uint8_t *)bytes));
            depth--;
            continue;
        }
        const message child = field.type == 2 ? child_of(open[depth - 1].kind, field.number) : NO_MESSAGE;
        if (child == NO_MESSAGE)
            continue;
        LNT_REQUIRE(++messages <= LNT_ONNX_MAX_MESSAGES, err, LNT_E_LIMIT,
                    "the ONNX model has more than %d messages", LNT_ONNX_MAX_MESSAGES);
        LNT_REQUIRE(depth < LNT_ONNX_MAX_DEPTH, err, LNT_E_LIMIT,
                    "the ONNX model is nested deeper than %d messages", LNT_ONNX_MAX_DEPTH);
        open[depth].rest = field.body;
        open[depth].kind = child;
        depth++;
    }
    return LNT_OK;
}
