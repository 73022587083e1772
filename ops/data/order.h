/* order.h — numbers of every type brought into one order: a key that compares as the number does.
 *
 * -0 and 0 have one key, all NaNs have one, above every number. */
#ifndef LNT_OPS_DATA_ORDER_H
#define LNT_OPS_DATA_ORDER_H

#include "ops/number.h"

#include <string.h>

static inline uint64_t lnt_float_key(float x)
{
    const uint32_t bits = lnt_float_bits(x + 0.0f), sign = 0x80000000u; /* -0 becomes 0 */
    const uint32_t key = bits ^ ((uint32_t)((int32_t)bits >> 31) | sign);
    return (bits & ~sign) > 0x7f800000u ? UINT32_MAX : key;
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

static inline uint64_t lnt_unsigned_key(uint64_t x)
{
    return x;
}

/* Key of what `comparable` of number.h gives. */
#define LNT_KEY(x)                                                                                           \
    _Generic((x), float                                                                                      \
             : lnt_float_key, double                                                                         \
             : lnt_double_key, int64_t                                                                       \
             : lnt_signed_key, uint64_t                                                                      \
             : lnt_unsigned_key)(x)

/* Key of element i; numbers and bool only. */
static inline uint64_t lnt_order_key(lnt_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
#define X(DT, T, C, load, store, comparable)                                                                 \
    case LNT_##DT: return LNT_KEY(comparable(((const T *)data)[i]));
        LNT_NUMBER_LIST(X)
#undef X
    default: return ((const uint8_t *)data)[i];
    }
}

#endif
