/* qflip.c — rows of bytes brought from int8 to uint8, and to whole quads. */
#include "base/checked.h"
#include "ops/quant/qgemm_driver.h"

#include <string.h>

/* The whole eights of n bytes; returns how many bytes they are. */
static inline int64_t flip_eights(const uint8_t *from, int64_t n, uint64_t flips, uint8_t *to)
{
    int64_t i = 0;
    for (uint64_t eight; i + (int64_t)sizeof eight <= n; i += (int64_t)sizeof eight) {
        memcpy(&eight, from + i, sizeof eight);
        eight ^= flips;
        memcpy(to + i, &eight, sizeof eight);
    }
    return i;
}

static uint64_t eight_of(uint8_t byte)
{
    return byte * 0x0101010101010101u;
}

void lnt_qflip_bytes(const uint8_t *from, int64_t n, uint8_t flip, uint8_t *to)
{
    if (!flip) {
        memcpy(to, from, (size_t)n);
        return;
    }
    for (int64_t i = flip_eights(from, n, eight_of(flip), to); i < n; i++)
        to[i] = from[i] ^ flip;
}

void lnt_qflip_rows(const uint8_t *from, int64_t rows, int64_t n, uint8_t flip, uint8_t *to)
{
    enum { QUAD = 4, EIGHT = 2 * QUAD, LONG = 8 * EIGHT };
    const int64_t some = n % EIGHT, whole = n - some, to_row = (int64_t)lnt_round_up((size_t)n, QUAD);
    const uint64_t flips = eight_of(flip);
    uint64_t wanted = 0, last;
    memset(&wanted, 0xff, (size_t)some);
    for (int64_t left = rows * n; left > 0; left -= n, from += n, to += to_row) {
        if (whole >= LONG)
            lnt_qflip_bytes(from, whole, flip, to);
        else
            flip_eights(from, whole, flips, to);
        if (!some)
            continue;
        last = 0;
        if (left >= whole + EIGHT) /* the next row begins within it */
            memcpy(&last, from + whole, EIGHT);
        else
            memcpy(&last, from + whole, (size_t)some);
        last = (last ^ flips) & wanted;
        if (some > QUAD)
            memcpy(to + whole, &last, EIGHT);
        else
            memcpy(to + whole, &last, QUAD);
    }
}
