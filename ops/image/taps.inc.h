/* taps.inc.h — sums over taps in one type, R; included by taps.c with R and NAME. */

/* The first channels, width <= 4 of them: `most` side by side, since finding an element costs more than its part of
 * a sum. Those that are not there are the last one again. */
static inline void NAME(sum_of_channels)(const NAME(lnt_taps) * taps, const R *x, int64_t plane, R *y,
                                         int64_t y_plane, int64_t width, const int most)
{
    const NAME(lnt_tap) *tap = taps->tap;
    const R *v[4];
    R *to[4];
    for (int64_t c = 0; c < most; c++) {
        v[c] = x + (c < width ? c : width - 1) * plane;
        to[c] = y + (c < width ? c : width - 1) * y_plane;
    }
    for (int64_t i = 0; i < taps->points; i++) {
        const NAME(lnt_tap) *const end = tap + taps->count[i];
        R total[4] = {0};
        for (; tap < end; tap++)
#pragma GCC unroll 4
            for (int c = 0; c < most; c++)
                total[c] += tap->weight * v[c][tap->at];
        if (most > 1 && i == 0 && taps->onto)
#pragma GCC unroll 4
            for (int c = 0; c < most; c++)
                total[c] += to[c][i];
#pragma GCC unroll 4
        for (int c = 0; c < most; c++)
            to[c][i] = total[c];
    }
}

/* Channel after channel, so that each is read and written where its elements are contiguous. */
void NAME(lnt_sum_taps)(const NAME(lnt_taps) * taps, const R *x, int64_t plane, R *y, int64_t y_plane,
                        int64_t channels)
{
    if (channels == 1 && !taps->onto && sizeof(R) == sizeof(float))
        NAME(sum_of_channels)(taps, x, plane, y, y_plane, 1, 1);
    else
        for (int64_t c = 0; c < channels; c += 4)
            NAME(sum_of_channels)
    (taps, x + c * plane, plane, y + c * y_plane, y_plane, channels - c < 4 ? channels - c : 4, 4);
}
