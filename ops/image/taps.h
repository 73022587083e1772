/* taps.h — outputs that are sums over a few elements of every channel: what lies between elements. */
#ifndef LNT_OPS_IMAGE_TAPS_H
#define LNT_OPS_IMAGE_TAPS_H

#include <stdbool.h>
#include <stdint.h>

enum { LNT_TAPS_POINTS = 512, LNT_TAPS = 2048 };

#define LNT_TAPS_OF(R)                                                                                       \
    /* An element of a plane that counts. */                                                                 \
    typedef struct lnt_tap_##R {                                                                             \
        int64_t at;                                                                                          \
        R weight;                                                                                            \
    } lnt_tap_##R;                                                                                           \
    /* The taps of a run of outputs, one output's behind the other's. */                                     \
    typedef struct lnt_taps_##R {                                                                            \
        int64_t points, used;                                                                                \
        bool onto; /* the first output comes on top of what y holds */                                       \
        unsigned count[LNT_TAPS_POINTS];                                                                     \
        lnt_tap_##R tap[LNT_TAPS];                                                                           \
    } lnt_taps_##R;                                                                                          \
    /* y[c * y_plane + i] = output i of channel c of x [channels][plane]. */                                 \
    void lnt_sum_taps_##R(const lnt_taps_##R *taps, const R *x, int64_t plane, R *y, int64_t y_plane,        \
                          int64_t channels);

LNT_TAPS_OF(float)
LNT_TAPS_OF(double)

#endif
