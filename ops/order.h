/* order.h — numbers of every type brought into one order: a key that compares as the number does.
 *
 * -0 and 0 have one key, all NaNs have one, above every number. */
#ifndef LNT_OPS_ORDER_H
#define LNT_OPS_ORDER_H

#include "base/half.h"
#include "base/linnet_types.h"

static inline uint64_t lnt_float_key(float x)
{
    const uint32_t bits = lnt_float_bits(x + 0.0f); /* -0 becomes 0 */
    if (x != x)
        return UINT32_MAX;
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static inline uint64_t lnt_double_key(double x)
{
    uint64_t bits;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return UINT64_MAX;
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static inline uint64_t lnt_signed_key(int64_t x)
{
    return (uint64_t)x ^ (uint64_t)1 << 63;
}

/* Key of element i; numbers and bool only. */
static inline uint64_t lnt_order_key(lnt_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case LNT_FLOAT: return lnt_float_key(((const float *)data)[i]);
    case LNT_DOUBLE: return lnt_double_key(((const double *)data)[i]);
    case LNT_FLOAT16: return lnt_float_key(lnt_f16_to_float(((const uint16_t *)data)[i]));
    case LNT_BFLOAT16: return lnt_float_key(lnt_bf16_to_float(((const uint16_t *)data)[i]));
    case LNT_INT8: return lnt_signed_key(((const int8_t *)data)[i]);
    case LNT_INT16: return lnt_signed_key(((const int16_t *)data)[i]);
    case LNT_INT32: return lnt_signed_key(((const int32_t *)data)[i]);
    case LNT_INT64: return lnt_signed_key(((const int64_t *)data)[i]);
    case LNT_UINT16: return ((const uint16_t *)data)[i];
    case LNT_UINT32: return ((const uint32_t *)data)[i];
    case LNT_UINT64: return ((const uint64_t *)data)[i];
    default: return ((const uint8_t *)data)[i];
    }
}

#endif
