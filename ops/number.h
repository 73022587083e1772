/* number.h — the numeric element types, for loops that are written once and made for each of them.
 *
 * X(dtype, type in memory, type to compute with, load, store, comparable)
 *   Integers add and multiply as uint64_t, so that they wrap; float16 and bfloat16 compute in float and round
 *   once. comparable gives the number itself, for <. */
#ifndef LNT_OPS_NUMBER_H
#define LNT_OPS_NUMBER_H

#include "base/half.h"
#include "base/linnet_types.h"

#include <stdbool.h>

/* Those whose sums and products have the bits of all others': integers wrap around, signed or not. */
#define LNT_WRAPPING_LIST(X)                                                                                 \
    X(FLOAT, float, float, lnt_as_float, lnt_as_float, lnt_as_float)                                         \
    X(DOUBLE, double, double, lnt_as_double, lnt_as_double, lnt_as_double)                                   \
    X(UINT8, uint8_t, uint64_t, (uint64_t), (uint8_t), (uint64_t))                                           \
    X(UINT16, uint16_t, uint64_t, (uint64_t), (uint16_t), (uint64_t))                                        \
    X(UINT32, uint32_t, uint64_t, (uint64_t), (uint32_t), (uint64_t))                                        \
    X(UINT64, uint64_t, uint64_t, (uint64_t), (uint64_t), (uint64_t))
#define LNT_PLAIN_NUMBER_LIST(X)                                                                             \
    LNT_WRAPPING_LIST(X)                                                                                     \
    X(INT8, int8_t, uint64_t, (uint64_t)(int64_t), (int8_t), (int64_t))                                      \
    X(INT16, int16_t, uint64_t, (uint64_t)(int64_t), (int16_t), (int64_t))                                   \
    X(INT32, int32_t, uint64_t, (uint64_t)(int64_t), (int32_t), (int64_t))                                   \
    X(INT64, int64_t, uint64_t, (uint64_t), (int64_t), (int64_t))
#define LNT_HALF_LIST(X)                                                                                     \
    X(FLOAT16, uint16_t, float, lnt_f16_to_float, lnt_float_to_f16, lnt_f16_to_float)                        \
    X(BFLOAT16, uint16_t, float, lnt_bf16_to_float, lnt_float_to_bf16, lnt_bf16_to_float)
/* Besides those that are computed with as float. */
#define LNT_NUMBER_LIST(X)                                                                                   \
    LNT_PLAIN_NUMBER_LIST(X)                                                                                 \
    LNT_HALF_LIST(X)

/* The type of LNT_WRAPPING_LIST that sums and products are computed in; others are themselves. */
static inline lnt_dtype lnt_wrapping_type(lnt_dtype dtype)
{
    switch (dtype) {
    case LNT_INT8: return LNT_UINT8;
    case LNT_INT16: return LNT_UINT16;
    case LNT_INT32: return LNT_UINT32;
    case LNT_INT64: return LNT_UINT64;
    default: return dtype;
    }
}

static inline float lnt_as_float(float x)
{
    return x;
}

static inline double lnt_as_double(double x)
{
    return x;
}

/* Element i as a double; 0 for other types. */
double lnt_load_number(lnt_dtype dtype, const void *data, int64_t i);

/* Writes value to element i of a tensor of any numeric type or bool; integers truncate. False for others. */
bool lnt_store_number(lnt_dtype dtype, void *data, int64_t i, double value);

#endif
