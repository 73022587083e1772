/* cast_small.c — conversion to and from element types of 8 bits and fewer (base/small.h), by way of float and int32. */
#include "ops/elementwise/typed.h"

#include "base/lnt_assert.h"
#include "ops/element.h"

enum { CHUNK = 256 };

/* At most CHUNK elements of from, which is not small, as floats that still round once: doubles to odd. */
static void to_float(const lnt_kernels *k, const void *src, lnt_dtype from, float *out, int64_t n)
{
    if (from == LNT_DOUBLE)
        k->typed->cast.step[LNT_CAST_f64_odd](out, src, n);
    else
        lnt_cast(k, src, from, out, LNT_FLOAT, n);
}

/* n elements of a small type into one that is not. */
static void widen(const lnt_kernels *k, const void *src, lnt_dtype from, void *dst, lnt_dtype to, int64_t n)
{
    float number[CHUNK];
    if (lnt_is_small_integer(from)) {
        lnt_cast(k, src, lnt_small_as_byte(from), dst, to, n);
        return;
    }
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t some = lnt_least(CHUNK, n - i);
        lnt_small_to_float(from, (const uint8_t *)src + i, number, some);
        lnt_cast(k, number, LNT_FLOAT, lnt_element_at(dst, to, i), to, some);
    }
}

/* And back. */
static void narrow(const lnt_kernels *k, const void *src, lnt_dtype from, uint8_t *dst, lnt_dtype to,
                   int64_t n, lnt_small_rounding how)
{
    union {
        float real[CHUNK];
        int32_t integer[CHUNK];
    } number;
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t some = lnt_least(CHUNK, n - i);
        const void *x = lnt_element_at(src, from, i);
        if (lnt_is_small_integer(to)) {
            lnt_cast(k, x, from, number.integer, LNT_INT32, some);
            lnt_small_from_int32(to, number.integer, dst + i, some);
        } else {
            to_float(k, x, from, number.real, some);
            lnt_small_from_float(to, number.real, dst + i, some, how);
        }
    }
}

void lnt_cast_small(const lnt_kernels *k, const void *src, lnt_dtype from, void *dst, lnt_dtype to, int64_t n,
                    lnt_small_rounding how)
{
    float number[CHUNK];
    LNT_ASSERT(lnt_is_small(from) || lnt_is_small(to));
    const lnt_dtype between = lnt_is_small_integer(from) ? lnt_small_as_byte(from) : LNT_FLOAT;
    if (!lnt_is_small(from))
        narrow(k, src, from, dst, to, n, how);
    else if (!lnt_is_small(to))
        widen(k, src, from, dst, to, n);
    else
        for (int64_t i = 0; i < n; i += CHUNK) {
            const int64_t some = lnt_least(CHUNK, n - i);
            widen(k, (const uint8_t *)src + i, from, number, between, some);
            narrow(k, number, between, (uint8_t *)dst + i, to, some, how);
        }
}
