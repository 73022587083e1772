/* winograd.inc.h — Winograd's transforms of inputs and outputs, part of ops/conv/conv_kernels.inc.h.
 *
 * Vectors hold channels; the last one of a pixel ends where that does, and may meet channels of the one before
 * again. A patch (the inputs of a tile) is transformed along one axis for all its lines, then along the other;
 * adjacent patches overlap and share the first transform of their common columns. The matrices are those of
 * ops/conv/winograd.h. */
#include "ops/conv/winograd.h"

enum {
    WINOGRAD_TILE = LNT_WINOGRAD_TILE,
    WINOGRAD_PATCH = LNT_WINOGRAD_PATCH,
    WINOGRAD_COLUMNS = WINOGRAD_TILE * LNT_WINOGRAD_RUN + WINOGRAD_PATCH - WINOGRAD_TILE
};

static const float winograd_p = (float)LNT_WINOGRAD_P, winograd_q = (float)LNT_WINOGRAD_Q;

/* y = B' x */
LNT_INLINE void winograd_forward(const vf *x, vf *y)
{
    const vf p = v_splat(winograd_p), q = v_splat(winograd_q);
    const vf even_p = v_fma(v_splat(-2), x[2], x[4]), odd_p = v_fma(v_splat(-2), x[1], x[3]);
    const vf even_q = v_fma(v_splat(-0.5f), x[2], x[4]), odd_q = v_fma(v_splat(-0.5f), x[1], x[3]);
    y[0] = v_fma(v_splat(-2.5f), x[2], x[0] + x[4]);
    y[1] = v_fma(p, odd_p, even_p);
    y[2] = v_fnma(p, odd_p, even_p);
    y[3] = v_fma(q, odd_q, even_q);
    y[4] = v_fnma(q, odd_q, even_q);
    y[5] = v_fma(v_splat(-2.5f), x[3], x[1] + x[5]);
}

/* y = A' x */
LNT_INLINE void winograd_backward(const vf *x, vf *y)
{
    const vf sum_p = x[1] + x[2], sum_q = x[3] + x[4];
    const vf odd_p = v_splat(winograd_p) * (x[1] - x[2]), odd_q = v_splat(winograd_q) * (x[3] - x[4]);
    y[0] = x[0] + sum_p + sum_q;
    y[1] = odd_p + odd_q;
    y[2] = v_fma(v_splat(0.5f), sum_p, v_splat(2) * sum_q);
    y[3] = v_fma(v_splat(0.5f), odd_p, v_fma(v_splat(2), odd_q, x[5]));
}

/* Channels [n, n + LNT_VL). */
LNT_INLINE void winograd_in_lanes(const lnt_winograd_in *w, size_t n)
{
    const size_t columns = w->tiles * WINOGRAD_TILE + WINOGRAD_PATCH - WINOGRAD_TILE;
    vf column[WINOGRAD_COLUMNS][WINOGRAD_PATCH];
    for (size_t x = 0; x < columns; x++) {
        const ptrdiff_t at = w->first + (ptrdiff_t)x;
        const bool inside = at >= 0 && at < w->width;
        vf line[WINOGRAD_PATCH];
        UNROLL_FOR(6, unsigned i = 0; i < WINOGRAD_PATCH; i++)
            line[i] = inside ? v_load(w->line[i] + (size_t)at * w->pixel[i] + n) : v_splat(0);
        winograd_forward(line, column[x]);
    }
    for (size_t t = 0; t < w->tiles; t++) {
        float *to = w->v + t * w->v_tile + n;
        for (unsigned i = 0; i < WINOGRAD_PATCH; i++) {
            vf row[WINOGRAD_PATCH], points[WINOGRAD_PATCH];
            UNROLL_FOR(6, unsigned j = 0; j < WINOGRAD_PATCH; j++)
                row[j] = column[t * WINOGRAD_TILE + j][i];
            winograd_forward(row, points);
            UNROLL_FOR(6, unsigned j = 0; j < WINOGRAD_PATCH; j++, to += w->v_point)
                v_store(to, points[j]);
        }
    }
}

void LARGE(in)(const lnt_winograd_in *w)
{
    LNT_ASSERT(w->tiles <= LNT_WINOGRAD_RUN && w->channels >= LNT_WINOGRAD_FEWEST);
    const lnt_winograd_in own = *w; /* out of reach of the stores, which may alias anything */
    for (size_t n = 0; n < own.channels; n += LNT_VL)
        winograd_in_lanes(&own, n + LNT_VL <= own.channels ? n : own.channels - LNT_VL);
}

/* So many lanes of columns. Only levels of longer vectors than there may be columns have some without. */
LNT_INLINE vf winograd_load(const float *p, unsigned lanes)
{
#if LNT_VL > 8 /* LNT_WINOGRAD_FEWEST_OUT */
    return v_load_n(p, lanes);
#else
    (void)lanes;
    return v_load(p);
#endif
}

LNT_INLINE void winograd_keep(float *p, vf x, unsigned lanes)
{
#if LNT_VL > 8 /* LNT_WINOGRAD_FEWEST_OUT */
    v_store_n(p, x, lanes);
#else
    (void)lanes;
    v_store(p, x);
#endif
}

/* Pixels [0, width) of a line of a tile, from place `at` of the result on. */
LNT_INLINE void winograd_store(const lnt_winograd_out *w, const vf *pixels, size_t at, size_t width, vf bias,
                               unsigned lanes)
{
    const vf low = v_splat(w->low), high = v_splat(w->high);
    for (size_t x = 0; x < width; x++, at += w->pixel) {
        vf y = pixels[x] + bias;
        if (w->residual)
            y += winograd_load(w->residual + at, lanes);
        winograd_keep(w->c + at, v_min(high, v_max(low, y)), lanes);
    }
}

/* Columns [n, n + lanes) of tile t. */
LNT_INLINE void winograd_out_lanes(const lnt_winograd_out *w, size_t t, size_t n, unsigned lanes)
{
    const size_t left = w->width - t * WINOGRAD_TILE, width = left < WINOGRAD_TILE ? left : WINOGRAD_TILE;
    const vf bias = w->bias ? winograd_load(w->bias + n, lanes) : v_splat(0);
    const float *from = w->m + t * w->m_tile + n;
    vf half[WINOGRAD_TILE][WINOGRAD_PATCH], pixels[WINOGRAD_TILE];
    for (unsigned j = 0; j < WINOGRAD_PATCH; j++, from += w->m_point) {
        vf points[WINOGRAD_PATCH], lines[WINOGRAD_TILE];
        UNROLL_FOR(6, unsigned i = 0; i < WINOGRAD_PATCH; i++)
            points[i] = v_load(from + i * WINOGRAD_PATCH * w->m_point);
        winograd_backward(points, lines);
        UNROLL_FOR(4, unsigned i = 0; i < WINOGRAD_TILE; i++)
            half[i][j] = lines[i];
    }
    for (size_t i = 0; i < w->lines; i++) {
        winograd_backward(half[i], pixels);
        winograd_store(w, pixels, i * w->line + t * WINOGRAD_TILE * w->pixel + n, width, bias, lanes);
    }
}

void LARGE(out)(const lnt_winograd_out *w)
{
    LNT_ASSERT(w->tiles <= LNT_WINOGRAD_RUN && w->lines <= WINOGRAD_TILE &&
               w->columns >= LNT_WINOGRAD_FEWEST_OUT);
    LNT_ASSERT(w->width <= w->tiles * WINOGRAD_TILE);
    const lnt_winograd_out own = *w;
    const size_t lanes = own.columns < LNT_VL ? own.columns : LNT_VL;
    for (size_t t = 0; t < own.tiles; t++)
        for (size_t n = 0; n < own.columns; n += lanes)
            winograd_out_lanes(&own, t, n + lanes <= own.columns ? n : own.columns - lanes, (unsigned)lanes);
}
