/* wire.h — protobuf's wire format: a message is a row of fields, each a tag (number << 3 | type) and a value. */
#ifndef LNT_FORMATS_WIRE_H
#define LNT_FORMATS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum lnt_wire_type {
    LNT_WIRE_VARINT = 0,
    LNT_WIRE_FIXED64 = 1,
    LNT_WIRE_BYTES = 2,
    LNT_WIRE_FIXED32 = 5
} lnt_wire_type;

typedef struct lnt_wire { /* the rest of a message, or the bytes of a field; zero-copy */
    const uint8_t *at, *end;
} lnt_wire;

typedef struct lnt_wire_field {
    uint64_t number;
    lnt_wire_type type;
    uint64_t value; /* of a varint or a fixed number */
    lnt_wire bytes;
} lnt_wire_field;

static inline lnt_wire lnt_wire_of(const void *bytes, size_t size)
{
    return (lnt_wire){bytes, size ? (const uint8_t *)bytes + size : bytes};
}

static inline size_t lnt_wire_bytes(lnt_wire w)
{
    return (size_t)(w.end - w.at);
}

/* Takes the next number, sent as type, out of w: a packed field's element. False at the end or where it is
 * malformed. */
bool lnt_wire_number(lnt_wire *w, lnt_wire_type type, uint64_t *out);
/* Takes the next field. False at the end of the message, and where it is malformed: then w->at != w->end. */
bool lnt_wire_next(lnt_wire *w, lnt_wire_field *field);

#endif
