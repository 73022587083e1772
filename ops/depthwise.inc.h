/* depthwise.inc.h — the depthwise kernel, part of ops/gemm_tile.inc.h.
 *
 * A few pixels of a few vectors of channels at a time: as many sums as hide the latency of a multiply-add.
 * Where a line's taps and its stride are constants, what pixels share is loaded once. Pixels some of whose
 * taps lie outside the image go alone, or by code that looks where their taps lie. */

enum {
    DEPTHWISE_PIXELS = LNT_VL == 16 ? 8 : 4,
    DEPTHWISE_FEW = 4,     /* pixels, where fewer are left */
    DEPTHWISE_VECTORS = 2, /* of them, or of one alone */
    DEPTHWISE_ALONE = 3,   /* taps of a line up to which pixels at the border go alone; more cost too much */
    DEPTHWISE_TAPS = 7     /* of the longest line with code of its own */
};

typedef struct depthwise_acc {
    vf v[DEPTHWISE_PIXELS][DEPTHWISE_VECTORS];
} depthwise_acc;

/* What a body of code is made for; taps 0 stands for any number, and any stride and spacing. */
typedef struct depthwise_kind {
    unsigned pixels, vectors, taps, stride;
    bool whole;  /* all lanes of the vectors are channels */
    bool border; /* taps may lie outside the image; with taps 0 they never do */
} depthwise_kind;

/* A group of pixels at a vector of channels. */
typedef struct depthwise_place {
    size_t i, n;            /* first pixel, first channel */
    ptrdiff_t at;           /* pixel of the line where the first tap stands */
    size_t first_tap, taps; /* those to be taken where kind.taps is 0 */
    uint32_t met;           /* bit i: does pixel `at` + i of the line lie in the image? */
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
        UNROLL(7)
        for (unsigned t = 0; t < k.taps; t++, weights += d->w_tap)
            weight[t] = v_load(weights);
        UNROLL(19)
        for (unsigned at = 0; at < (k.pixels - 1) * k.stride + k.taps; at++, pixel_at += d->in_pixel) {
            if (k.border && !(p->met & 1u << at))
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
    if (k.taps == 3 && k.pixels == 8 && k.whole && d->lines == 3) {
        UNROLL(3)
        for (size_t l = 0; l < 3; l++)
            depthwise_line(&acc, d, p, d->line[l] + from, d->w[l] + p->n, k);
    } else {
        for (size_t l = 0; l < d->lines; l++)
            if (k.taps)
                depthwise_line(&acc, d, p, d->line[l] + from, d->w[l] + p->n, k);
            else
                depthwise_any(&acc, d, p, d->line[l] + from, d->w[l] + p->n, k);
    }
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

/* Channels from p.n on, a vector at a time. */
LNT_INLINE void depthwise_rest(const lnt_depthwise *d, depthwise_place p, depthwise_kind k)
{
    const bool masks = LNT_VL == 16; /* loads and stores of a few lanes cost nothing */
    k.vectors = 1;
    k.whole = !masks;
    for (; masks ? p.n < d->channels : p.n + LNT_VL <= d->channels; p.n += LNT_VL) {
        p.lanes = d->channels - p.n < LNT_VL ? (unsigned)(d->channels - p.n) : LNT_VL;
        depthwise_group(d, &p, k);
    }
    if (p.n < d->channels)
        depthwise_tail(d, p.i, k.pixels, p.n);
}

/* k.vectors vectors at a time as long as there are. Returns the channel behind. */
LNT_INLINE size_t depthwise_whole(const lnt_depthwise *d, depthwise_place p, depthwise_kind k)
{
    k.whole = true;
    for (; p.n + k.vectors * LNT_VL <= d->channels; p.n += k.vectors * LNT_VL)
        depthwise_group(d, &p, k);
    return p.n;
}

/* Pixels [i, end), with the taps that lie inside. */
static __attribute__((noinline)) void depthwise_alone(const lnt_depthwise *d, size_t i, size_t end)
{
    const depthwise_kind k = {.pixels = 1, .vectors = DEPTHWISE_VECTORS};
    for (; i < end; i++) {
        depthwise_place p = place_alone(d, i);
        p.n = depthwise_whole(d, p, k);
        depthwise_rest(d, p, k);
    }
}

/* Bits [0, n), all of them from n = 32 on and none below 1. */
LNT_INLINE uint32_t low_bits(ptrdiff_t n)
{
    return n >= 32 ? UINT32_MAX : n < 1 ? 0 : (UINT32_C(1) << n) - 1;
}

LNT_INLINE depthwise_place place_inside(const lnt_depthwise *d, size_t i)
{
    const ptrdiff_t at = d->first + (ptrdiff_t)i * d->stride;
    return (depthwise_place){
        .i = i, .at = at, .taps = d->taps, .met = low_bits(d->width - at) & ~low_bits(-at)};
}

/* Pixels [*begin, *end) have all their taps inside the image. */
LNT_INLINE void find_inside(const lnt_depthwise *d, const ptrdiff_t stride, size_t *begin, size_t *end)
{
    const ptrdiff_t pixels = (ptrdiff_t)d->pixels;
    const ptrdiff_t last = d->width - 1 - (ptrdiff_t)(d->taps - 1) * d->spacing - d->first;
    const ptrdiff_t outside = d->first < 0 ? (-d->first + stride - 1) / stride : 0;
    const ptrdiff_t inside = last < 0 ? 0 : last / stride + 1;
    *begin = (size_t)(outside < pixels ? outside : pixels);
    *end = inside < (ptrdiff_t)*begin ? *begin : (size_t)(inside < pixels ? inside : pixels);
}

/* Channels from n on of pixels from i on, groups of DEPTHWISE_FEW before `stop`. */
typedef void (*depthwise_rest_fn)(const lnt_depthwise *d, size_t i, size_t stop, size_t n);

/* The last group goes back over pixels that are done, rather than leave some to be done one by one; but not
 * where the residual may lie in the same place as the results. */
LNT_INLINE void depthwise_run(const lnt_depthwise *d, const unsigned taps, const unsigned stride,
                              const depthwise_rest_fn rest)
{
    enum { MANY = DEPTHWISE_PIXELS, FEW = DEPTHWISE_FEW, ALONE = DEPTHWISE_ALONE };
    const lnt_depthwise own = *d; /* out of reach of the stores, which may alias anything */
    const depthwise_kind many = {.pixels = MANY, .vectors = 1, .taps = taps, .stride = stride};
    const depthwise_kind few = {.pixels = FEW, .vectors = DEPTHWISE_VECTORS, .taps = taps, .stride = stride};
    size_t begin, end, i, stop = own.pixels;
    find_inside(&own, stride ? (ptrdiff_t)stride : own.stride, &begin, &end);
    if (taps > ALONE && !own.residual && stop >= FEW && begin <= FEW && stop - end <= FEW) {
        i = begin > 0 ? FEW : 0;
        stop -= end < stop ? FEW : 0;
        if (i > 0)
            rest(&own, 0, FEW, 0);
        if (stop < own.pixels)
            rest(&own, stop, own.pixels, 0);
    } else {
        depthwise_alone(&own, 0, begin);
        depthwise_alone(&own, end, stop);
        i = begin;
        stop = end;
    }
    size_t n = own.channels;
    const size_t first = i;
    for (; MANY > FEW && i + FEW < stop && i + MANY <= end; i += MANY)
        n = depthwise_whole(&own, place_inside(&own, i), many);
    if (n < own.channels)
        rest(&own, first, i, n);
    const bool back = !own.residual && begin + FEW <= end;
    for (; i < stop && (back || i + FEW <= end); i += FEW) {
        const size_t at = i + FEW <= end ? i : end - FEW;
        n = depthwise_whole(&own, place_inside(&own, at), few);
        if (n < own.channels)
            rest(&own, at, at + FEW, n);
    }
    depthwise_alone(&own, i, stop);
}

#define DEPTHWISE(t, s)                                                                                      \
    static __attribute__((noinline)) void rest_##t##_##s(const lnt_depthwise *d, size_t i, size_t stop,      \
                                                         size_t n)                                           \
    {                                                                                                        \
        const lnt_depthwise own = *d;                                                                        \
        const depthwise_kind k = {                                                                           \
            .pixels = DEPTHWISE_FEW, .taps = t, .stride = s, .border = t > DEPTHWISE_ALONE};                 \
        for (; i < stop; i += DEPTHWISE_FEW) {                                                               \
            depthwise_place p = place_inside(&own, i);                                                       \
            p.n = n;                                                                                         \
            depthwise_rest(&own, p, k);                                                                      \
        }                                                                                                    \
    }                                                                                                        \
    static void depthwise_##t##_##s(const lnt_depthwise *d)                                                  \
    {                                                                                                        \
        depthwise_run(d, t, s, rest_##t##_##s);                                                              \
    }
DEPTHWISE(0, 0)
#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2) || defined(LNT_SIMD_NEON)
DEPTHWISE(3, 1)
DEPTHWISE(3, 2)
DEPTHWISE(5, 1)
#endif
#undef DEPTHWISE

#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2) || defined(LNT_SIMD_NEON)
/* For lines of seven taps and no residual. Their multiply-adds hide the look where taps lie, so that one body
 * serves all pixels; the last group goes back over some that are done. */
static void depthwise_7_1(const lnt_depthwise *d)
{
    enum { MANY = DEPTHWISE_PIXELS };
    const depthwise_kind kind = {.pixels = MANY, .vectors = 1, .taps = 7, .stride = 1, .border = true};
    lnt_depthwise own = *d;
    own.residual = NULL;
    for (size_t i = 0; i < own.pixels; i += MANY) {
        depthwise_place p = place_inside(&own, i + MANY <= own.pixels ? i : own.pixels - MANY);
        if (LNT_VL == 16) /* masks go by a port that multiply-adds need */
            p.n = depthwise_whole(&own, p, kind);
        depthwise_rest(&own, p, kind);
    }
}
#endif

static void depthwise(const lnt_depthwise *d)
{
    if (d->features) {
        grouped_run(d);
        return;
    }
#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2) || defined(LNT_SIMD_NEON)
    if (d->taps == 3 && d->spacing == 1 && d->stride == 1) {
        depthwise_3_1(d);
        return;
    }
    if (d->taps == 3 && d->spacing == 1 && d->stride == 2) {
        depthwise_3_2(d);
        return;
    }
    if (d->taps == 5 && d->spacing == 1 && d->stride == 1) {
        depthwise_5_1(d);
        return;
    }
    if (d->taps == 7 && d->spacing == 1 && d->stride == 1 && d->pixels >= DEPTHWISE_PIXELS && !d->residual) {
        depthwise_7_1(d);
        return;
    }
#endif
    depthwise_0_0(d);
}
