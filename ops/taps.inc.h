/* taps.inc.h — outputs that are sums over a few elements of every channel, in one type, R; included with R,
 * NAME and the constants POINTS and TAPS. */

/* An element of a plane that counts. */
typedef struct NAME(tap) {
    int64_t at;
    R weight;
} NAME(tap);

/* The taps of a run of outputs, one output's behind the other's. */
typedef struct NAME(taps) {
    int64_t points, used;
    bool onto; /* the first output goes on from what y holds */
    unsigned count[POINTS];
    NAME(tap) tap[TAPS];
} NAME(taps);

/* y[c * y_plane + i] = output i of channel c, for c < width <= 4: side by side, since finding an element
 * costs more than its part of a sum. */
LNT_INLINE void NAME(sum_taps_of)(const NAME(taps) * taps, const R *x, int64_t plane, R *y, int64_t y_plane,
                                  unsigned width)
{
    const NAME(tap) *tap = taps->tap;
    const R *const v[4] = {x, x + (width > 1) * plane, x + (width > 2) * 2 * plane,
                           x + (width > 3) * 3 * plane};
    for (int64_t i = 0; i < taps->points; i++, y++) {
        const NAME(tap) *const end = tap + taps->count[i];
        R total[4] = {0};
        if (i == 0 && taps->onto)
            for (unsigned c = 0; c < width; c++)
                total[c] = y[c * y_plane];
        for (; tap < end; tap++)
#pragma GCC unroll 4
            for (unsigned c = 0; c < width; c++)
                total[c] += tap->weight * v[c][tap->at];
#pragma GCC unroll 4
        for (unsigned c = 0; c < width; c++)
            y[c * y_plane] = total[c];
    }
}

/* Channel after channel of x [channels][plane] and y [channels][y_plane], so that each is read and written
 * where its elements lie together. */
static void NAME(sum_taps)(const NAME(taps) * taps, const R *x, int64_t plane, R *y, int64_t y_plane,
                           int64_t channels)
{
    int64_t c = 0;
    for (; c + 4 <= channels; c += 4)
        NAME(sum_taps_of)(taps, x + c * plane, plane, y + c * y_plane, y_plane, 4);
    for (; c < channels; c++)
        NAME(sum_taps_of)(taps, x + c * plane, plane, y + c * y_plane, y_plane, 1);
}
