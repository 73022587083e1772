/* depthwise_groups.inc.h — depthwise convolutions whose groups have several features, part of
 * ops/conv/depthwise.inc.h.
 *
 * A vector of features is a few groups: the channels of each are picked into its features' lanes. Where those are more
 * than features, they are a few vectors, each of which some of the lanes have channels in. Taps outside the
 * image multiply zeros, and so many pixels are always computed, not all of them stored: borders and ends of lines,
 * most of a small image, cost no code and no chain of sums by itself. */

enum { GROUPED_PIXELS = DEPTHWISE_PIXELS };

/* May groups have more channels than features? Then lanes past the end of a vector are those from its start. */
#define LNT_WIDE_LANES (LNT_HAS_WIDE_GROUPS && LNT_VL >= LNT_WIDE_GROUP_LANES)

/* Where the lanes of a vector of features find their channels. */
typedef struct group_lanes {
    size_t n;       /* first feature */
    unsigned lanes; /* features */
    size_t channel; /* first channel of the first lane's group */
    vi at;          /* from there to that of each lane's group */
    unsigned room;  /* channels from there to the end of the pixel */
    unsigned span;  /* channels from there to the end of the last lane's group, or to that of a vector */
} group_lanes;

static group_lanes lanes_of(const lnt_depthwise *d, size_t n)
{
    const size_t group = n / d->features, left = d->channels - n;
    group_lanes g = {.n = n, .lanes = left < LNT_VL ? (unsigned)left : LNT_VL};
    g.channel = group * d->group_channels;
    g.room = (unsigned)(d->in_pixel - g.channel);
    vi_lane at[LNT_VL] = {0};
    for (unsigned i = 0; i < g.lanes; i++)
        at[i] = (vi_lane)(((n + i) / d->features - group) * d->group_channels);
    g.at = vi_load(at);
    g.span = (unsigned)d->group_channels;
    if (LNT_WIDE_LANES && d->features < LNT_VL)
        g.span *= LNT_VL / (unsigned)d->features;
    if (LNT_WIDE_LANES && g.span > g.room)
        g.span = g.room;
    return g;
}

/* Channels of a tap of one line, LNT_VL at most, and where they begin. */
typedef struct grouped_part {
    const elem *x[GROUPED_PIXELS], *w;
    unsigned channels, room; /* room: elements that may be read */
    vi own;                  /* all bits of the lanes that have channels here, where some have none */
} grouped_part;

/* Adds them to the sums where the lanes of a vector have channels of their own, or some of the lanes. */
LNT_INLINE void grouped_channels(vf acc[GROUPED_PIXELS], const lnt_depthwise *d, const grouped_part *g, vi at,
                                 const bool some)
{
    const elem *w = g->w;
    vf pixel[GROUPED_PIXELS];
    if (LNT_VL == 8 && g->room >= LNT_VL) /* its masks are read from memory */
        UNROLL_FOR(8, unsigned p = 0; p < GROUPED_PIXELS; p++)
            pixel[p] = v_load(g->x[p]);
    else
        UNROLL_FOR(8, unsigned p = 0; p < GROUPED_PIXELS; p++)
            pixel[p] = v_load_n(g->x[p], g->room < LNT_VL ? g->room : LNT_VL);
    if (LNT_WIDE_LANES && some)
        for (unsigned c = 0; c < g->channels; c++, w += d->w_channel, at += 1) {
            const vf weight = v_load(w);
            UNROLL_FOR(8, unsigned p = 0; p < GROUPED_PIXELS; p++)
                acc[p] = v_fma((vf)((vi)v_lanes(pixel[p], at) & g->own), weight, acc[p]);
        }
    else
        for (unsigned c = 0; c < g->channels; c++, w += d->w_channel, at += 1) {
            const vf weight = v_load(w);
            UNROLL_FOR(8, unsigned p = 0; p < GROUPED_PIXELS; p++)
                acc[p] = v_fma(v_lanes(pixel[p], at), weight, acc[p]);
        }
}

#if LNT_VL == 4
/* Adds them where all lanes are features of one group, which has as many channels as a vector has lanes, or twice
 * that. */
LNT_INLINE void shared_channels(vf acc[GROUPED_PIXELS], const lnt_depthwise *d, const grouped_part *g)
{
    const elem *w = g->w;
    vf pixel[GROUPED_PIXELS];
    UNROLL_FOR(8, unsigned p = 0; p < GROUPED_PIXELS; p++)
        pixel[p] = v_load(g->x[p]);
    UNROLL_FOR(4, unsigned c = 0; c < LNT_VL; c++, w += d->w_channel) {
        const vf weight = v_load(w);
        UNROLL_FOR(8, unsigned p = 0; p < GROUPED_PIXELS; p++)
            acc[p] = v_fma(weight, v_splat(pixel[p][c]), acc[p]);
    }
}
#endif

/* Adds tap t of all lines to the sums of the pixels from i on. */
LNT_INLINE void grouped_tap(vf acc[GROUPED_PIXELS], const lnt_depthwise *d, const group_lanes *g, size_t i,
                            size_t t)
{
    static const elem zeros[LNT_VL];
    const ptrdiff_t first = d->first + (ptrdiff_t)i * d->stride + (ptrdiff_t)t * d->spacing,
                    step = d->stride * (ptrdiff_t)d->in_pixel;
    const bool inside = first >= 0 && first + (GROUPED_PIXELS - 1) * d->stride < d->width;
    for (size_t l = 0; l < d->lines; l++)
        for (unsigned c = 0; c < g->span; c += LNT_VL) {
            const elem *x = ELEMS(d->line[l]) + first * (ptrdiff_t)d->in_pixel + g->channel + c;
            const unsigned channels = (unsigned)d->group_channels;
            const ptrdiff_t before = LNT_WIDE_LANES && channels <= LNT_VL ? 0 : (ptrdiff_t)(c * d->w_channel);
            grouped_part part = {.w = ELEMS(d->w[l]) + (ptrdiff_t)t * d->w_tap + before + g->n,
                                 .channels = channels < LNT_VL ? channels : LNT_VL,
                                 .room = g->room - c};
            UNROLL_FOR(8, unsigned p = 0; p < GROUPED_PIXELS; p++)
                part.x[p] = x + (ptrdiff_t)p * step;
            if (!inside)
                UNROLL_FOR(8, unsigned p = 0; p < GROUPED_PIXELS; p++)
                    if ((size_t)(first + (ptrdiff_t)p * d->stride) >= (size_t)d->width)
                        part.x[p] = zeros;
#if LNT_VL == 4
            if (d->group_channels >= LNT_VL) {
                shared_channels(acc, d, &part);
                continue;
            }
#endif
            vi at = g->at;
            const bool some = LNT_WIDE_LANES && channels > d->features;
            if (some) {
                const vi begin = vi_splat((vi_lane)c);
                part.own = (begin + LNT_VL > at) & (at + (vi_lane)channels > begin);
            }
            grouped_channels(acc, d, &part, at, some);
        }
}

static void grouped_run(const lnt_depthwise *d)
{
    const lnt_depthwise own = *d; /* out of reach of the stores, which may alias anything */
    const vf low = v_splat_float(own.low), high = v_splat_float(own.high);
    for (size_t n = 0; n < own.channels; n += LNT_VL) {
        const group_lanes g = lanes_of(&own, n);
        const vf start = own.bias ? v_load_floats(own.bias + n, g.lanes) : v_splat(0);
        for (size_t i = 0, to = n; i < own.pixels;) {
            vf acc[GROUPED_PIXELS];
            UNROLL_FOR(8, unsigned p = 0; p < GROUPED_PIXELS; p++)
                acc[p] = start;
            for (size_t t = 0; t < own.taps; t++)
                grouped_tap(acc, &own, &g, i, t);
            UNROLL_FOR(8, unsigned p = 0; p < GROUPED_PIXELS; p++) {
                if (i++ >= own.pixels)
                    break;
                if (own.residual)
                    acc[p] += v_load_n(ELEMS(own.residual) + to, g.lanes);
                v_store_n(ELEMS_OUT(own.c) + to, v_min(high, v_max(low, acc[p])), g.lanes);
                to += own.pixel;
            }
        }
    }
}
