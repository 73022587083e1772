/* depthwise.inc.h — the depthwise kernel, part of ops/conv/conv_kernels.inc.h.
 *
 * A few pixels of a few vectors of channels at a time: as many accumulators as hide the latency of a multiply-add.
 * Where a line's taps and its stride are constants, what pixels share is loaded once. Groups with
 * taps outside the image (in the padding) use code that tests each tap; the last group of a run computes pixels that
 * it does not store, as far as the image reaches. Where taps are not constants such pixels are computed singly. */

enum {
    DEPTHWISE_PIXELS = LNT_VL == 16 ? 8 : 4,
    DEPTHWISE_FEW = 4,                        /* pixels of a group where taps are not constants */
    DEPTHWISE_VECTORS = LNT_VL == 1 ? 4 : 2,  /* of groups of few pixels, or of one alone */
    DEPTHWISE_TOGETHER = LNT_VL == 1 ? 4 : 1, /* vectors that share a look at which taps are inside */
    /* taps of a line whose multiply-adds hide the look which are inside */
    DEPTHWISE_LOOK = LNT_VL == 16 ? 5 : 7,
    DEPTHWISE_TAPS = 7, /* of the longest line with code of its own */
#if defined(LNT_SIMD_FP16)
    DEPTHWISE_ZEROS = 1 /* taps outside multiply zeros: no branches */
#else
    DEPTHWISE_ZEROS = 0
#endif
};

typedef struct depthwise_acc {
    vf v[DEPTHWISE_PIXELS][DEPTHWISE_VECTORS];
} depthwise_acc;

/* What a body of code is specialized for; taps 0 stands for any number, and any stride and spacing. */
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
    unsigned lanes, pixels; /* pixels: those to be stored, if fewer than the kind's */
} depthwise_place;

/* Pixel i by itself, with the taps that lie inside. */
LNT_INLINE depthwise_place place_alone(const lnt_depthwise *d, size_t i)
{
    const ptrdiff_t at = d->first + (ptrdiff_t)i * d->stride, room = d->width - at;
    ptrdiff_t first = at < 0 ? (-at + d->spacing - 1) / d->spacing : 0;
    ptrdiff_t end = room <= 0 ? 0 : (room + d->spacing - 1) / d->spacing;
    end = end > (ptrdiff_t)d->taps ? (ptrdiff_t)d->taps : end;
    first = first > end ? end : first;
    return (depthwise_place){
        .i = i, .at = at, .first_tap = (size_t)first, .taps = (size_t)(end - first), .pixels = 1};
}

#if defined(LNT_SIMD_FP16) /* groups of several features are left to floats */
static void grouped_run(const lnt_depthwise *d)
{
    (void)d;
    LNT_ASSERT(!d->features);
}
#else
#include "ops/conv/depthwise_groups.inc.h"
#endif

/* Vector j of p; the last one of a row has fewer lanes. */
LNT_INLINE vf load_channels(const elem *p, unsigned j, const depthwise_kind k, unsigned lanes)
{
    return k.whole ? v_load(p + j * LNT_VL) : v_load_n(p + j * LNT_VL, lanes);
}

/* Adds a line of the kernel, any number of taps. */
LNT_INLINE void depthwise_any(depthwise_acc *acc, const lnt_depthwise *d, const depthwise_place *p,
                              const elem *x, const elem *w, const depthwise_kind k)
{
    const size_t tap_step = (size_t)d->spacing * d->in_pixel, pixel_step = (size_t)d->stride * d->in_pixel;
    x += p->first_tap * tap_step;
    w += (ptrdiff_t)p->first_tap * d->w_tap;
    for (size_t t = 0; t < p->taps; t++, x += tap_step, w += d->w_tap)
        UNROLL_FOR(4, unsigned j = 0; j < k.vectors; j++) {
            const vf weight = v_load(w + j * LNT_VL);
            UNROLL_FOR(8, unsigned i = 0; i < k.pixels; i++)
                acc->v[i][j] = v_fma(load_channels(x + i * pixel_step, j, k, p->lanes), weight, acc->v[i][j]);
        }
}

/* The same for constant taps and stride, spacing 1. */
LNT_INLINE void depthwise_line(depthwise_acc *acc, const lnt_depthwise *d, const depthwise_place *p,
                               const elem *x, const elem *w, const depthwise_kind k)
{
    static const elem zeros[DEPTHWISE_VECTORS * LNT_VL];
    const unsigned together = k.vectors < DEPTHWISE_TOGETHER ? k.vectors : DEPTHWISE_TOGETHER;
    UNROLL_FOR(4, unsigned j = 0; j < k.vectors; j += together) {
        const elem *weights = w + j * LNT_VL, *pixel_at = x;
        vf weight[DEPTHWISE_TAPS][DEPTHWISE_TOGETHER], pixel[DEPTHWISE_TOGETHER];
        UNROLL_FOR(7, unsigned t = 0; t < k.taps; t++, weights += d->w_tap)
            UNROLL_FOR(4, unsigned s = 0; s < together; s++)
                weight[t][s] = v_load(weights + s * LNT_VL);
        UNROLL_FOR(19, unsigned at = 0; at < (k.pixels - 1) * k.stride + k.taps;
                   at++, pixel_at += d->in_pixel) {
            const bool met = !k.border || p->met & 1u << at;
            if (!met && !DEPTHWISE_ZEROS)
                continue;
            const elem *from = met ? pixel_at : zeros;
            if (k.border && DEPTHWISE_ZEROS)
                __asm__("" : "+r"(from)); /* or there would be code for each */
            if (LNT_VL == 1)
                v_load_each(pixel, from + j, together);
            else
                pixel[0] = v_keep(load_channels(from, j, k, p->lanes));
            UNROLL_FOR(8, unsigned i = 0; i < k.pixels; i++)
                if (at >= i * k.stride && at - i * k.stride < k.taps)
                    UNROLL_FOR(4, unsigned s = 0; s < together; s++)
                        acc->v[i][j + s] = v_fma(pixel[s], weight[at - i * k.stride][s], acc->v[i][j + s]);
        }
    }
}

/* Residual and clamping of sums of one lane, whose limits cost more than a look at whether there are any. */
LNT_INLINE void depthwise_finish(depthwise_acc *acc, const lnt_depthwise *d, const depthwise_place *p,
                                 size_t to, const depthwise_kind k)
{
    if (d->residual)
        UNROLL_FOR(8, unsigned i = 0; i < k.pixels; i++, to += d->pixel) {
            if (k.border && i >= p->pixels)
                break;
            UNROLL_FOR(4, unsigned j = 0; j < k.vectors; j++)
                acc->v[i][j] += v_load(ELEMS(d->residual) + to + j * LNT_VL);
        }
    if (d->low != -INFINITY)
        UNROLL_FOR(8, unsigned i = 0; i < k.pixels; i++)
            UNROLL_FOR(4, unsigned j = 0; j < k.vectors; j++)
                acc->v[i][j] = v_max(v_splat_float(d->low), acc->v[i][j]);
    if (d->high != INFINITY)
        UNROLL_FOR(8, unsigned i = 0; i < k.pixels; i++)
            UNROLL_FOR(4, unsigned j = 0; j < k.vectors; j++)
                acc->v[i][j] = v_min(v_splat_float(d->high), acc->v[i][j]);
}

LNT_INLINE void depthwise_group(const lnt_depthwise *d, const depthwise_place *p, const depthwise_kind k)
{
    depthwise_acc acc;
    UNROLL_FOR(4, unsigned j = 0; j < k.vectors; j++) {
        const vf start =
            d->bias ? v_load_floats(d->bias + p->n + j * LNT_VL, k.whole ? LNT_VL : p->lanes) : v_splat(0);
        UNROLL_FOR(8, unsigned i = 0; i < k.pixels; i++)
            acc.v[i][j] = start;
    }
    const ptrdiff_t from = p->at * (ptrdiff_t)d->in_pixel + (ptrdiff_t)p->n;
    for (size_t l = 0; l < d->lines; l++)
        if (k.taps)
            depthwise_line(&acc, d, p, ELEMS(d->line[l]) + from, ELEMS(d->w[l]) + p->n, k);
        else
            depthwise_any(&acc, d, p, ELEMS(d->line[l]) + from, ELEMS(d->w[l]) + p->n, k);
    const vf low = v_splat_float(d->low), high = v_splat_float(d->high);
    size_t to = p->i * d->pixel + p->n;
    if (LNT_VL == 1)
        depthwise_finish(&acc, d, p, to, k);
    UNROLL_FOR(8, unsigned i = 0; i < k.pixels; i++, to += d->pixel) {
        if (k.border && i >= p->pixels)
            break;
        UNROLL_FOR(4, unsigned j = 0; j < k.vectors; j++) {
            vf x = acc.v[i][j];
            if (LNT_VL > 1 && d->residual)
                x += load_channels(ELEMS(d->residual) + to, j, k, p->lanes);
            if (LNT_VL > 1)
                x = v_min(high, v_max(low, x));
            if (k.whole)
                v_store(ELEMS_OUT(d->c) + to + j * LNT_VL, x);
            else
                v_store_n(ELEMS_OUT(d->c) + to, x, p->lanes);
        }
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
        depthwise_tail(d, p.i, p.pixels, p.n);
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

/* The group of up to so many pixels that starts with pixel i. */
LNT_INLINE depthwise_place place_group(const lnt_depthwise *d, size_t i, unsigned pixels)
{
    const ptrdiff_t at = d->first + (ptrdiff_t)i * d->stride;
    const size_t left = d->pixels - i;
    return (depthwise_place){.i = i,
                             .at = at,
                             .taps = d->taps,
                             .met = low_bits(d->width - at) & ~low_bits(-at),
                             .pixels = left < pixels ? (unsigned)left : pixels};
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

/* Constant taps and stride, spacing 1. */
LNT_INLINE void depthwise_run(const lnt_depthwise *d, const unsigned taps, const unsigned stride)
{
    enum { MANY = DEPTHWISE_PIXELS };
    const lnt_depthwise own = *d; /* out of reach of the stores, which may alias anything */
    const depthwise_kind border = {.pixels = MANY,
                                   .vectors = MANY == 8 ? 1 : DEPTHWISE_VECTORS,
                                   .taps = taps,
                                   .stride = stride,
                                   .border = true};
    depthwise_kind inside = border;
    inside.border = false;
    size_t begin, end;
    find_inside(&own, (ptrdiff_t)stride, &begin, &end);
    for (size_t i = 0; i < own.pixels; i += MANY) {
        depthwise_place p = place_group(&own, i, MANY);
        if (taps < DEPTHWISE_LOOK && i >= begin && i + MANY <= end)
            p.n = depthwise_whole(&own, p, inside);
        else if (taps < DEPTHWISE_LOOK || LNT_VL == 16) /* its masks go by a port that multiply-adds need */
            p.n = depthwise_whole(&own, p, border);
        if (p.n < own.channels)
            depthwise_rest(&own, p, border);
    }
}

/* Groups of pixels [i, end). Returns the first pixel that fills none. */
LNT_INLINE size_t depthwise_groups(const lnt_depthwise *d, size_t i, size_t end, const depthwise_kind k)
{
    for (; i + k.pixels <= end; i += k.pixels) {
        depthwise_place p = place_group(d, i, k.pixels);
        p.n = depthwise_whole(d, p, k);
        depthwise_rest(d, p, k);
    }
    return i;
}

/* Any taps, stride and spacing. */
static void depthwise_any_run(const lnt_depthwise *d)
{
    const lnt_depthwise own = *d;
    size_t begin, end;
    find_inside(&own, own.stride, &begin, &end);
    depthwise_alone(&own, 0, begin);
    if (DEPTHWISE_PIXELS == 8)
        begin = depthwise_groups(&own, begin, end, (depthwise_kind){.pixels = 8, .vectors = 1});
    begin = depthwise_groups(&own, begin, end,
                             (depthwise_kind){.pixels = DEPTHWISE_FEW, .vectors = DEPTHWISE_VECTORS});
    depthwise_alone(&own, begin, own.pixels);
}

#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2) || defined(LNT_SIMD_NEON) || \
    defined(LNT_SIMD_FP16) || LNT_VL == 1
#define DEPTHWISE(taps, stride)                                                                              \
    static void depthwise_##taps##_##stride(const lnt_depthwise *d)                                          \
    {                                                                                                        \
        depthwise_run(d, taps, stride);                                                                      \
    }
DEPTHWISE(3, 1)
DEPTHWISE(3, 2)
DEPTHWISE(5, 1)
#if defined(LNT_SIMD_FP16)
#define depthwise_7_1 NULL
#else
DEPTHWISE(7, 1)
#endif
#if LNT_VL == 16 /* where so many pixels go together that they share some */
DEPTHWISE(5, 2)
#else
#define depthwise_5_2 NULL
#endif
#undef DEPTHWISE

/* That for d's lines, or NULL. */
static lnt_depthwise_fn depthwise_of(const lnt_depthwise *d)
{
    const bool two = d->stride == 2;
    if (d->spacing != 1 || d->stride > 2)
        return NULL;
    switch (d->taps) {
    case 3: return two ? depthwise_3_2 : depthwise_3_1;
    case 5: return two ? depthwise_5_2 : depthwise_5_1;
    case 7: return two ? NULL : depthwise_7_1;
    default: return NULL;
    }
}
#else
LNT_INLINE lnt_depthwise_fn depthwise_of(const lnt_depthwise *d)
{
    (void)d;
    return NULL;
}
#endif

static void depthwise(const lnt_depthwise *d)
{
    LNT_ASSERT(d->taps > 0 && d->stride > 0 && d->spacing > 0 && d->width >= 0);
    LNT_ASSERT(d->features == 0 || lnt_depthwise_takes((int64_t)d->group_channels, (int64_t)d->features) ||
               lnt_depthwise_widens((int64_t)d->group_channels, (int64_t)d->features));
    const lnt_depthwise_fn own = depthwise_of(d);
    if (d->features)
        grouped_run(d);
    else if (own)
        own(d);
    else
        depthwise_any_run(d);
}
