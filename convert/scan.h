/* scan.h — walking protobuf's wire format, and the bounds that hold before protobuf-c sees a model. */
#ifndef LNT_CONVERT_SCAN_H
#define LNT_CONVERT_SCAN_H

#include "base/error.h"

#include <stdbool.h>

typedef struct lnt_wire { /* the rest of a message; zero-copy */
    const uint8_t *at, *end;
} lnt_wire;

typedef struct lnt_wire_field {
    uint32_t number;
    uint32_t type;  /* 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes */
    uint64_t value; /* of type 0 */
    lnt_wire body;  /* of type 2 */
} lnt_wire_field;

static inline lnt_wire lnt_wire_of(const void *bytes, size_t size)
{
    return (lnt_wire){bytes, (const uint8_t *)bytes + size};
}

/* Reads the next field; false at the end of the message or where it is malformed: then w->at != w->end. */
bool lnt_wire_next(lnt_wire *w, lnt_wire_field *field);

/* Reads one varint, as of a packed field; false at the end or where it is malformed. */
bool lnt_wire_varint(lnt_wire *w, uint64_t *value);

enum {
    LNT_ONNX_MAX_DEPTH = 200,        /* messages inside messages: about 60 nested subgraphs */
    LNT_ONNX_MAX_MESSAGES = 20000000 /* of all kinds */
};

/* Refuses what is no ONNX model, or is nested deeper or has more messages than the limits. */
lnt_status lnt_onnx_scan(const void *bytes, size_t size, lnt_error *err);

#endif
