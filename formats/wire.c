/* wire.c — reading protobuf's wire format. */
#include "formats/wire.h"

#include "formats/byte_order.h"

static bool read_varint(lnt_wire *w, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        const uint8_t byte = *w->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool read_fixed(lnt_wire *w, unsigned n, uint64_t *out)
{
    if (lnt_wire_bytes(*w) < n)
        return false;
    *out = lnt_load_le(w->at, n);
    w->at += n;
    return true;
}

bool lnt_wire_number(lnt_wire *w, lnt_wire_type type, uint64_t *out)
{
    switch (type) {
    case LNT_WIRE_VARINT: return read_varint(w, out);
    case LNT_WIRE_FIXED64: return read_fixed(w, 8, out);
    case LNT_WIRE_FIXED32: return read_fixed(w, 4, out);
    case LNT_WIRE_BYTES: break;
    }
    return false;
}

bool lnt_wire_next(lnt_wire *w, lnt_wire_field *field)
{
    lnt_wire rest = *w;
    uint64_t tag, size;
    if (!read_varint(&rest, &tag) || tag >> 3 == 0)
        return false;
    *field = (lnt_wire_field){.number = tag >> 3, .type = (lnt_wire_type)(tag & 7)};
    if (field->type != LNT_WIRE_BYTES) {
        if (!lnt_wire_number(&rest, field->type, &field->value))
            return false;
        *w = rest;
        return true;
    }
    if (!read_varint(&rest, &size) || size > lnt_wire_bytes(rest))
        return false;
    field->bytes = lnt_wire_of(rest.at, (size_t)size);
    w->at = field->bytes.end;
    return true;
}
