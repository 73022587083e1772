/* scan.c — a walk over the wire format of an ONNX model, without recursion and without memory of its own.
 *
 * protobuf-c unpacks recursively and without bounds, so depth and counts are checked here first. Only the
 * fields that convert/import/onnx.proto knows as messages are entered; protobuf-c takes all others as bytes. */
#include "convert/import/scan.h"

#include "convert/import/foreign.h"
#include "formats/wire.h"

#include <inttypes.h>

enum { LAST_FIELD = 26 }; /* of ModelProto */

typedef enum message {
    MODEL,
    GRAPH,
    NODE,
    ATTRIBUTE,
    VALUE_INFO,
    TYPE,
    TENSOR_TYPE,
    SEQUENCE_TYPE,
    OPTIONAL_TYPE,
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
} nesting[] = {{MODEL, GRAPH, 7},         {MODEL, OPERATOR_SET, 8}, {MODEL, STRING_ENTRY, 14},
               {MODEL, FUNCTION, 25},     {GRAPH, NODE, 1},         {GRAPH, VALUE_INFO, 11},
               {GRAPH, VALUE_INFO, 12},   {NODE, ATTRIBUTE, 5},     {ATTRIBUTE, GRAPH, 6},
               {VALUE_INFO, TYPE, 2},     {TYPE, TENSOR_TYPE, 1},   {TENSOR_TYPE, SHAPE, 2},
               {SHAPE, DIMENSION, 1},     {FUNCTION, NODE, 7},      {FUNCTION, OPERATOR_SET, 9},
               {FUNCTION, ATTRIBUTE, 11}, {TYPE, OPTIONAL_TYPE, 9}, {OPTIONAL_TYPE, TYPE, 1},
               {TYPE, SEQUENCE_TYPE, 4},  {SEQUENCE_TYPE, TYPE, 1}};

static message child_of(message parent, uint64_t number)
{
    for (unsigned i = 0; i < sizeof nesting / sizeof nesting[0]; i++)
        if (nesting[i].parent == parent && nesting[i].number == number)
            return (message)nesting[i].child;
    return NO_MESSAGE;
}

/* Says why the field at the rest of a message cannot be read. */
static lnt_status malformed(const void *bytes, size_t size, lnt_wire rest, unsigned depth, lnt_error *err)
{
    const size_t at = (size_t)(rest.at - (const uint8_t *)bytes);
    const char *foreign = lnt_foreign_file(bytes, size);
    uint64_t tag, length;
    if (foreign)
        return lnt_fail(err, LNT_E_FILE, "%s", foreign);
    if (depth == 1 && lnt_wire_number(&rest, LNT_WIRE_VARINT, &tag) && (tag & 7) == LNT_WIRE_BYTES &&
        tag >> 3 && tag >> 3 <= LAST_FIELD && lnt_wire_number(&rest, LNT_WIRE_VARINT, &length) &&
        length > lnt_wire_bytes(rest))
        return lnt_fail(err, LNT_E_MODEL,
                        "not an ONNX model, or a truncated one: byte %zu announces %" PRIu64
                        " bytes, the file has %zu more",
                        at, length, lnt_wire_bytes(rest));
    return lnt_fail(err, LNT_E_MODEL, "not an ONNX model, or a damaged one: malformed protobuf at byte %zu",
                    at);
}

lnt_status lnt_onnx_scan(const void *bytes, size_t size, lnt_error *err)
{
    struct {
        lnt_wire rest;
        message kind;
    } open[LNT_ONNX_MAX_DEPTH] = {{lnt_wire_of(bytes, size), MODEL}};
    unsigned depth = 1;
    uint64_t messages = 0, nodes = 0;
    while (depth > 0) {
        lnt_wire_field field;
        lnt_wire *w = &open[depth - 1].rest;
        if (!lnt_wire_next(w, &field)) {
            if (w->at != w->end)
                return malformed(bytes, size, *w, depth, err);
            depth--;
            continue;
        }
        const message child =
            field.type == LNT_WIRE_BYTES ? child_of(open[depth - 1].kind, field.number) : NO_MESSAGE;
        if (child == NO_MESSAGE)
            continue;
        LNT_REQUIRE(++messages <= LNT_ONNX_MAX_MESSAGES, err, LNT_E_LIMIT,
                    "the ONNX model has more than %d messages", LNT_ONNX_MAX_MESSAGES);
        nodes += child == NODE;
        LNT_REQUIRE(nodes <= LNT_ONNX_MAX_NODES, err, LNT_E_LIMIT, "the ONNX model has more than %d nodes",
                    LNT_ONNX_MAX_NODES);
        LNT_REQUIRE(depth < LNT_ONNX_MAX_DEPTH, err, LNT_E_LIMIT,
                    "the ONNX model is nested deeper than %d messages", LNT_ONNX_MAX_DEPTH);
        open[depth].rest = field.bytes;
        open[depth].kind = child;
        depth++;
    }
    return LNT_OK;
}
