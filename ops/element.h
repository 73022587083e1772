/* element.h — blocks of elements of any numeric type, read and written as float, double or int64.
 *
 * Integers become int64 by wrapping (uint64 keeps its bits), floats by truncation, saturated, NaN as 0. Going
 * back, float16 and bfloat16 round to nearest even; float and double become integers as they become int64; int64
 * wraps. bool reads as 0 or 1 and is written as "not zero". */
#ifndef LNT_OPS_ELEMENT_H
#define LNT_OPS_ELEMENT_H

#include "base/linnet_types.h"

#include <stdbool.h>

void lnt_elements_to_float(lnt_dtype from, const void *src, float *dst, int64_t n);
void lnt_elements_to_double(lnt_dtype from, const void *src, double *dst, int64_t n);
void lnt_elements_to_int64(lnt_dtype from, const void *src, int64_t *dst, int64_t n);
void lnt_elements_from_float(lnt_dtype to, const float *src, void *dst, int64_t n);
void lnt_elements_from_double(lnt_dtype to, const double *src, void *dst, int64_t n);
void lnt_elements_from_int64(lnt_dtype to, const int64_t *src, void *dst, int64_t n);

/* x as an integer of low to high: truncated, NaN as 0. */
static inline int64_t lnt_saturate(double x, int64_t low, int64_t high)
{
    if (x != x)
        return 0;
    return x <= (double)low ? low : x >= (double)high ? high : (int64_t)x;
}

static inline bool lnt_is_floating(lnt_dtype t)
{
    return t == LNT_FLOAT || t == LNT_DOUBLE || t == LNT_FLOAT16 || t == LNT_BFLOAT16;
}

/* Integers without bool. */
static inline bool lnt_is_integer(lnt_dtype t)
{
    return (t >= LNT_UINT8 && t <= LNT_INT64) || t == LNT_UINT32 || t == LNT_UINT64;
}

/* float, or double where float cannot hold every value of t. */
static inline lnt_dtype lnt_real_type(lnt_dtype t)
{
    return t == LNT_DOUBLE || t == LNT_INT32 || t == LNT_UINT32 || t == LNT_INT64 || t == LNT_UINT64
               ? LNT_DOUBLE
               : LNT_FLOAT;
}

/* Where element i of data is. */
static inline void *lnt_element_at(const void *data, lnt_dtype t, int64_t i)
{
    return (char *)(uintptr_t)data + i * (int64_t)lnt_dtype_size(t);
}

#endif
