/* small.h — element types of 8 bits and fewer that arithmetic knows nothing of: integers of 4 and 2 bits, floats of 8
 * and 4. In memory each has a byte: an integer its value, a float its code.
 *
 * Formats: onnx.ai/onnx/technical/float8.html and int4.html; OCP Microscaling Formats (MX) 1.0 for float4e2m1 and
 * float8e8m0. */
#ifndef LNT_BASE_SMALL_H
#define LNT_BASE_SMALL_H

#include "base/linnet_types.h"

#include <stdbool.h>

/* How a float8e8m0, a power of two, is chosen: away from 0, towards it, or the nearest. */
typedef enum lnt_small_round { LNT_ROUND_UP, LNT_ROUND_DOWN, LNT_ROUND_NEAREST } lnt_small_round;

typedef struct lnt_small_rounding {
    bool saturate; /* what is too large becomes the largest, as infinity does; otherwise infinity or NaN */
    lnt_small_round e8m0;
} lnt_small_rounding;

static inline bool lnt_is_small(lnt_dtype t)
{
    return t >= LNT_FLOAT8E4M3FN && t <= LNT_INT2;
}

static inline bool lnt_is_small_integer(lnt_dtype t)
{
    return t == LNT_UINT4 || t == LNT_INT4 || t == LNT_UINT2 || t == LNT_INT2;
}

/* int8 or uint8 for a small integer, whose elements are the same bytes; t for all others. */
static inline lnt_dtype lnt_small_as_byte(lnt_dtype t)
{
    return t == LNT_INT4 || t == LNT_INT2 ? LNT_INT8 : t == LNT_UINT4 || t == LNT_UINT2 ? LNT_UINT8 : t;
}

/* Bits of an element of a small type where ONNX packs them, the first in the lowest: 2, 4 or 8. */
unsigned lnt_small_bits(lnt_dtype t);

/* n elements of a small float. */
void lnt_small_to_float(lnt_dtype t, const uint8_t *code, float *out, int64_t n);
void lnt_small_from_float(lnt_dtype t, const float *x, uint8_t *code, int64_t n, lnt_small_rounding how);
/* One, saturated; a power of two nearest. */
uint8_t lnt_small_nearest(lnt_dtype t, float x);
/* n elements of a small integer, each of the low bits of an int32. */
void lnt_small_from_int32(lnt_dtype t, const int32_t *x, uint8_t *out, int64_t n);

/* Bytes that n elements take packed. */
size_t lnt_small_packed_bytes(lnt_dtype t, size_t n);
/* packed [lnt_small_packed_bytes(n)] as n bytes; out may be where packed is. */
void lnt_small_unpack(lnt_dtype t, const uint8_t *packed, size_t n, uint8_t *out);
/* And back; out may be where bytes are. */
void lnt_small_pack(lnt_dtype t, const uint8_t *bytes, size_t n, uint8_t *out);

#endif
