/* checked.h — arithmetic on sizes that come from outside. Each returns false on overflow. */
#ifndef LNT_BASE_CHECKED_H
#define LNT_BASE_CHECKED_H

#include "base/lnt_assert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool lnt_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool lnt_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool lnt_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool lnt_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Rounds n up to a multiple of step, a power of two. The caller knows that n + step does not overflow. */
static inline size_t lnt_round_up(size_t n, size_t step)
{
    LNT_ASSERT(step && (step & (step - 1)) == 0);
    return (n + step - 1) & ~(step - 1);
}

static inline int64_t lnt_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Where part i of n begins when total is cut as evenly as can be: i in [0, n], total >= 0. */
static inline int64_t lnt_cut(int64_t total, int64_t n, int64_t i)
{
    LNT_ASSERT(total >= 0 && n > 0 && i >= 0 && i <= n);
    if (n == 1) /* as often as not, and a division takes as long as a small tile's row */
        return i * total;
    const int64_t left = total % n;
    return total / n * i + (i < left ? i : left);
}

/* Product of dims[0..rank), each >= 0; false on overflow or a negative extent. */
static inline bool lnt_count(const int64_t *dims, unsigned rank, int64_t *out)
{
    int64_t n = 1;
    for (unsigned i = 0; i < rank; i++)
        if (dims[i] < 0 || !lnt_mul_i64(n, dims[i], &n))
            return false;
    *out = n;
    return true;
}

/* Do elements of this many bytes fit the address space, with extents of 0 and unknown ones taken as 1? Then
 * strides, too, can be computed without overflow. */
static inline bool lnt_extents_fit(const int64_t *dims, unsigned rank, size_t element)
{
    int64_t bytes = element ? (int64_t)element : 1;
    for (unsigned i = 0; i < rank; i++)
        if (dims[i] > 0 && !lnt_mul_i64(bytes, dims[i], &bytes))
            return false;
    return bytes <= PTRDIFF_MAX / 2;
}

/* Bytes of a tensor: the one way from extents to a size. False if an extent is unknown, or if anything about
 * the tensor overflows, its strides beside an extent of 0 included. */
bool lnt_shape_bytes(const int64_t *dims, unsigned rank, size_t element, size_t *bytes);

#endif
