/* depthwise_groups.inc.h — depthwise convolutions whose groups have several features, part of
 * ops/conv/depthwise.inc.h.
 *
 * A vector of features is a few groups: the channels of each are picked into its features' lanes. */

/* Where the lanes of a vector of features find their channels. */
typedef struct group_lanes {
    size_t n;       /* first feature */
    unsigned lanes; /* features */
    size_t channel; /* first channel of the first lane's group */
    vi at;          /* from there to that of each lane's group */
    unsigned room;  /* channels from there to the end of the pixel */
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
    return g;
}

/* Pixels from p->i on, with the taps of p. */
LNT_INLINE void grouped_pixels(const lnt_depthwise *d, const depthwise_place *p, const group_lanes *g,
                               const unsigned pixels)
{
    const size_t tap_step = (size_t)d->spacing * d->in_pixel, pixel_step = (size_t)d->stride * d->in_pixel;
    const ptrdiff_t from = (p->at + (ptrdiff_t)p->first_tap * d->spacing) * (ptrdiff_t)d->in_pixel;
    const vf start = d->bias ? v_load_floats(d->bias + g->n, g->lanes) : v_splat(0);
    const vi at = g->at;
    vf acc[DEPTHWISE_PIXELS];
    UNROLL_FOR(8, unsigned i = 0; i < pixels; i++)
        acc[i] = start;
    for (size_t l = 0; l < d->lines; l++) {
        const elem *x = ELEMS(d->line[l]) + from + g->channel,
                   *w = ELEMS(d->w[l]) + (ptrdiff_t)p->first_tap * d->w_tap + g->n;
        for (size_t t = 0; t < p->taps; t++, x += tap_step, w += d->w_tap)
            for (unsigned c = 0; c < d->group_channels; c++) {
                const vf weight = v_load(w + c * d->w_channel);
                UNROLL_FOR(8, unsigned i = 0; i < pixels; i++)
                    acc[i] = v_fma(v_pick(x + i * pixel_step + c, g->room - c, at), weight, acc[i]);
            }
    }
    const vf low = v_splat_float(d->low), high = v_splat_float(d->high);
    size_t to = p->i * d->pixel + g->n;
    UNROLL_FOR(8, unsigned i = 0; i < pixels; i++, to += d->pixel) {
        if (d->residual)
            acc[i] += v_load_n(ELEMS(d->residual) + to, g->lanes);
        v_store_n(ELEMS_OUT(d->c) + to, v_min(high, v_max(low, acc[i])), g->lanes);
    }
}

static void grouped_run(const lnt_depthwise *d)
{
    const lnt_depthwise own = *d; /* out of reach of the stores, which may alias anything */
    const ptrdiff_t span = (DEPTHWISE_PIXELS - 1) * own.stride + (ptrdiff_t)(own.taps - 1) * own.spacing;
    for (size_t n = 0; n < own.channels; n += LNT_VL) {
        const group_lanes g = lanes_of(&own, n);
        for (size_t i = 0; i < own.pixels;) {
            depthwise_place p = place_alone(&own, i);
            if (i + DEPTHWISE_PIXELS <= own.pixels && p.at >= 0 && p.at + span < own.width) {
                grouped_pixels(&own, &p, &g, DEPTHWISE_PIXELS);
                i += DEPTHWISE_PIXELS;
            } else {
                grouped_pixels(&own, &p, &g, 1);
                i++;
            }
        }
    }
}
