/* depthwise.inc.h — the depthwise kernel, part of ops/gemm_tile.inc.h.
 *
 * A few pixels of a few vectors of channels at a time: as many sums as hide the latency of a multiply-add.
 * Where a line's taps and its stride are constants, what pixels share is loaded once. Pixels whose taps may
 * lie outside the image go by the same code, which then looks where it is. */

enum {
    DEPTHWISE_PIXELS = LNT_VL == 16 ? 8 : 4,
    DEPTHWISE_FEW = 4,     /* pixels, where fewer are left */
    DEPTHWISE_VECTORS = 2, /* of few pixels */
    DEPTHWISE_MORE = 4,    /* of one pixel */
    DEPTHWISE_TAPS = 5     /* of the longest line with code of its own */
};

typedef struct depthwise_acc {
    vf v[DEPTHWISE_PIXELS][DEPTHWISE_MORE];
} depthwise_acc;

/* What a body of code is made for; taps 0 stands for any number, and any stride and spacing. */
typedef struct depthwise_kind {
    unsigned pixels, vectors, taps, stride;
    bool inside; /* all taps of all pixels lie inside the image; with taps 0 they always do */
    bool whole;  /* all lanes of the vectors are channels */
} depthwise_kind;

/* A group of pixels at a vector of channels. */
typedef struct depthwise_place {
    size_t i, n;            /* first pixel, first channel */
    ptrdiff_t at;           /* pixel of the line where the first tap stands */
    size_t first_tap, taps; /* those to be taken where kind.taps is 0 */
    unsigned lanes;
} depthwise_place;

/* Pixel i by itself, with the taps that lie inside. */
LNT_INLINE depthwise_place place_alone(const lnt_depthwise *d, size_t i)
{
    const ptrdiff_t at = d->first + (ptrdiff_t)i * d->stride, room = d->width - at;
    ptrdiff_t first = at < 0 ? (-at + d->spacing - 1) / d->spacing : 0;
    ptrdiff_t end = room <= 0 ? 0 : (room + d->spacing - 1) / d->spacing;
    end = end > (ptrdiff_t)d->taps ? (ptrdiff_t)d->taps : end;
    first = first > end ? end : first;
    return (depthwise_place){.i = i, .at = at, .first_tap = (size_t)first, .taps = (size_t)(end - first)};
}

#include "ops/depthwise_groups.inc.h"

/* Vector j of p; the last one of a row has fewer lanes. */
LNT_INLINE vf load_channels(const float *p, unsigned j, const depthwise_kind k, unsigned lanes)
{
    return k.whole ? v_load(p + j * LNT_VL) : v_load_n(p + j * LNT_VL, lanes);
}

/* Adds a line of the kernel, any number of taps. */
LNT_INLINE void depthwise_any(depthwise_acc *acc, const lnt_depthwise *d, const depthwise_place *p,
                              const float *x, const float *w, const depthwise_kind k)
{
    const size_t tap_step = (size_t)d->spacing * d->in_pixel, pixel_step = (size_t)d->stride * d->in_pixel;
    x += p->first_tap * tap_step;
    w += p->first_tap * d->w_tap;
    for (size_t t = 0; t < p->taps; t++, x += tap_step, w += d->w_tap)
        UNROLL(4)
    for (unsigned j = 0; j < k.vectors; j++) {
        const vf weight = v_load(w + j * LNT_VL);
        UNROLL(8)
        for (unsigned i = 0; i < k.pixels; i++)
            acc->v[i][j] = v_fma(load_channels(x + i * pixel_step, j, k, p->lanes), weight, acc->v[i][j]);
    }
}

/* The same for constant taps and stride, spacing 1. */
LNT_INLINE void depthwise_line(depthwise_acc *acc, const lnt_depthwise *d, const depthwise_place *p,
                               const float *x, const float *w, const depthwise_kind k)
{
    UNROLL(4)
    for (unsigned j = 0; j < k.vectors; j++) {
        const float *weights = w + j * LNT_VL, *pixel_at = x;
        vf weight[DEPTHWISE_TAPS];
        UNROLL(5)
        for (unsigned t = 0; t < k.taps; t++, weights += d->w_tap)
            weight[t] = v_load(weights);
        UNROLL(19)
        for (unsigned at = 0; at < (k.pixels - 1) * k.stride + k.taps; at++, pixel_at += d->in_pixel) {
            if (!k.inside && (p->at + (ptrdiff_t)at < 0 || p->at + (ptrdiff_t)at >= d->width))
                continue;
            const vf pixel = v_keep(load_channels(pixel_at, j, k, p->lanes));
            UNROLL(8)
            for (unsigned i = 0; i < k.pixels; i++)
                if (at >= i * k.stride && at - i * k.stride < k.taps)
                    acc->v[i][j] = v_fma(pixel, weight[at - i * k.stride], acc->v[i][j]);
        }
    }
}

LNT_INLINE void depthwise_group(const lnt_depthwise *d, const depthwise_place *p, const depthwise_kind k)
{
    depthwise_acc acc;
    UNROLL(4)
    for (unsigned j = 0; j < k.vectors; j++) {
        const vf start = d->bias ? load_channels(d->bias + p->n, j, k, p->lanes) : v_splat(0);
        UNROLL(8)
        for (unsigned i = 0; i < k.pixels; i++)
            acc.v[i][j] = start;
    }
    const ptrdiff_t from = p->at * (ptrdiff_t)d->in_pixel + (ptrdiff_t)p->n;
    for (size_t l = 0; l < d->lines; l++)
        if (k.taps)
            depthwise_line(&acc, d, p, d->line[l] + from, d->w[l] + p->n, k);
        else
            depthwise_any(&acc, d, p, d->line[l] + from, d->w[l] + p->n, k);
    const vf low = v_splat(d->low), high = v_splat(d->high);
    size_t to = p->i * d->pixel + p->n;
    UNROLL(8)
    for (unsigned i = 0; i < k.pixels; i++, to += d->pixel)
        UNROLL(4)
    for (unsigned j = 0; j < k.vectors; j++) {
        vf x = acc.v[i][j];
        if (d->residual)
            x += load_channels(d->residual + to, j, k, p->lanes);
        x = v_min(high, v_max(low, x));
        if (k.whole)
            v_store(d->c + to + j * LNT_VL, x);
        else
            v_store_n(d->c + to, x, p->lanes);
    }
}

/* Channels from n on, fewer than a vector has lanes, of pixels [i, i + pixels). */
static __attribute__((noinline)) void depthwise_tail(const lnt_depthwise *d, size_t i, unsigned pixels,
                                                     size_t n)
{
    for (const size_t stop = i + pixels; i < stop; i++) {
        depthwise_place p = place_alone(d, i);
        p.n = n;
        p.lanes = (unsigned)(d->channels - n);
        depthwise_group(d, &p, (depthwise_kind){.pixels = 1, .vectors = 1});
    }
}

/* Channels of a group of pixels that lie inside, as many as k.vectors vectors at a time do. */
LNT_INLINE void depthwise_inside(const lnt_depthwise *d, depthwise_place *p, depthwise_kind k)
{
    k.whole = k.inside = true;
    for (; p->n + k.vectors * LNT_VL <= d->channels; p->n += k.vectors * LNT_VL)
        depthwise_group(d, p, k);
}

/* The channels from p.n on, looking where the taps lie: so borders and odd channels share their code. */
LNT_INLINE void depthwise_rest(const lnt_depthwise *d, depthwise_place p, depthwise_kind k)
{
    const bool masks = LNT_VL == 16; /* loads and stores of a few lanes cost nothing */
    k.vectors = 1;
    k.whole = true;
    for (; !masks && p.n + LNT_VL <= d->channels; p.n += LNT_VL)
        depthwise_group(d, &p, k);
    k.whole = false;
    for (; masks && p.n < d->channels; p.n += LNT_VL) {
        p.lanes = d->channels - p.n < LNT_VL ? (unsigned)(d->channels - p.n) : LNT_VL;
        depthwise_group(d, &p, k);
    }
    if (p.n < d->channels)
        depthwise_tail(d, p.i, k.pixels, p.n);
}

static __attribute__((noinline)) void depthwise_alone(const lnt_depthwise *d, size_t i)
{
    const depthwise_kind one = {.pixels = 1, .vectors = DEPTHWISE_MORE};
    depthwise_place p = place_alone(d, i);
    depthwise_inside(d, &p, one);
    depthwise_rest(d, p, one);
}

static bool all_inside(const lnt_depthwise *d, size_t i, size_t pixels)
{
    const ptrdiff_t span = (ptrdiff_t)(pixels - 1) * d->stride + (ptrdiff_t)(d->taps - 1) * d->spacing;
    const ptrdiff_t at = d->first + (ptrdiff_t)i * d->stride;
    return at >= 0 && at + span < d->width;
}

/* Pixels that lie inside are taken in groups of many, those at the borders and the last ones of a few. The
 * last group goes back over pixels that are done, rather than leave some to be done one by one; but not where
 * the residual may lie in the same place as the results. */
LNT_INLINE void depthwise_run(const lnt_depthwise *d, const unsigned taps, const unsigned stride)
{
    const lnt_depthwise own = *d; /* out of reach of the stores, which may alias anything */
    const depthwise_kind many = {.pixels = DEPTHWISE_PIXELS, .vectors = 1, .taps = taps, .stride = stride};
    const depthwise_kind few = {
        .pixels = DEPTHWISE_FEW, .vectors = DEPTHWISE_VECTORS, .taps = taps, .stride = stride};
    const bool back = !own.residual && own.pixels >= few.pixels;
    for (size_t i = 0, left = own.pixels; left > 0; i = own.pixels - left) {
        const bool more =
            DEPTHWISE_PIXELS > DEPTHWISE_FEW && left >= many.pixels && all_inside(&own, i, many.pixels);
        const size_t pixels = more ? many.pixels : left >= few.pixels || back ? few.pixels : 1;
        const size_t stop = left >= pixels ? i + pixels : own.pixels;
        depthwise_place p = {.i = stop - pixels, .taps = own.taps};
        p.at = own.first + (ptrdiff_t)p.i * own.stride;
        const bool inside = more || all_inside(&own, p.i, pixels);
        if (more)
            depthwise_inside(&own, &p, many);
        else if (inside && pixels > 1)
            depthwise_inside(&own, &p, few);
        const bool alone = pixels == 1 || (!inside && !taps);
        for (; alone && p.i < stop; p.i++)
            depthwise_alone(&own, p.i);
        for (; p.n < own.channels && p.i < stop;
             p.i += few.pixels, p.at += (ptrdiff_t)few.pixels * own.stride)
            depthwise_rest(&own, p, few);
        left = own.pixels - stop;
    }
}

static void depthwise(const lnt_depthwise *d)
{
    if (d->features) {
        grouped_run(d);
        return;
    }
#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2) || defined(LNT_SIMD_NEON)
    if (d->taps == 3 && d->spacing == 1 && d->stride == 1) {
        depthwise_run(d, 3, 1);
        return;
    }
    if (d->taps == 3 && d->spacing == 1 && d->stride == 2) {
        depthwise_run(d, 3, 2);
        return;
    }
    if (d->taps == 5 && d->spacing == 1 && d->stride == 1) {
        depthwise_run(d, 5, 1);
        return;
    }
#endif
    depthwise_run(d, 0, 0);
}
