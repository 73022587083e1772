/* byte_order.h — numbers in files of other byte orders than the host's. */
#ifndef LNT_FORMATS_BYTE_ORDER_H
#define LNT_FORMATS_BYTE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const bool lnt_host_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

/* The n-byte little-endian number at p. */
static inline uint64_t lnt_load_le(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

/* Copies count elements of size bytes each, their bytes reversed if swap. The two do not overlap. */
static inline void lnt_copy_elements(void *dst, const void *src, size_t count, size_t size, bool swap)
{
    uint8_t *to = dst;
    const uint8_t *from = src;
    if (!swap || size == 1) {
        if (count > 0)
            memcpy(dst, src, count * size);
        return;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < size; b++)
            to[i * size + b] = from[i * size + size - 1 - b];
}

#endif
