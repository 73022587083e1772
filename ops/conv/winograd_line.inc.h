/* winograd_line.inc.h — Winograd's transforms along a line, part of ops/conv/conv_kernels.inc.h. Vectors hold
 * channels; the last one of a pixel ends where that does, and may meet channels of the one before again. The
 * matrices are those of ops/conv/winograd.h; points of opposite sign share their even and odd parts. */

enum { WINOGRAD_LINE_POINTS = LNT_WINOGRAD_LINE_POINTS_MAX, WINOGRAD_LINE_FINITE = WINOGRAD_LINE_POINTS - 1 };

/* y = B' x */
LNT_INLINE void winograd_line_forward(const vf *x, vf *y)
{
    const vf half = v_splat(0.5f), two = v_splat(2), four = v_splat(4), quarter = v_splat(0.25f);
    const vf even_half = v_fma(four, x[2], v_fnma(v_splat(5), x[4], x[6]));
    const vf odd_half = v_fma(four, x[1], v_fnma(v_splat(5), x[3], x[5]));
    const vf even_one = v_fnma(v_splat(4.25f), x[4], x[2] + x[6]);
    const vf odd_one = v_fnma(v_splat(4.25f), x[3], x[1] + x[5]);
    const vf even_two = v_fma(quarter, x[2], v_fnma(v_splat(1.25f), x[4], x[6]));
    const vf odd_two = v_fma(quarter, x[1], v_fnma(v_splat(1.25f), x[3], x[5]));
    y[0] = v_fma(v_splat(5.25f), x[2] - x[4], x[6] - x[0]);
    y[1] = v_fma(half, odd_half, even_half);
    y[2] = v_fnma(half, odd_half, even_half);
    y[3] = even_one + odd_one;
    y[4] = even_one - odd_one;
    y[5] = v_fma(two, odd_two, even_two);
    y[6] = v_fnma(two, odd_two, even_two);
    y[7] = v_fma(v_splat(5.25f), x[3] - x[5], x[7] - x[1]);
}

/* y = A' x, of 6 rows but for infinity. */
LNT_INLINE void winograd_line_backward(const vf *x, vf *y)
{
    const vf sum_half = x[1] + x[2], sum_one = x[3] + x[4], sum_two = x[5] + x[6];
    const vf odd_half = x[1] - x[2], odd_one = x[3] - x[4], odd_two = x[5] - x[6];
    y[0] = x[0] + sum_half + (sum_one + sum_two);
    y[1] = v_fma(v_splat(0.5f), odd_half, v_fma(v_splat(2), odd_two, odd_one));
    y[2] = v_fma(v_splat(0.25f), sum_half, v_fma(v_splat(4), sum_two, sum_one));
    y[3] = v_fma(v_splat(0.125f), odd_half, v_fma(v_splat(8), odd_two, odd_one));
    y[4] = v_fma(v_splat(0x1p-4f), sum_half, v_fma(v_splat(16), sum_two, sum_one));
    y[5] = v_fma(v_splat(0x1p-5f), odd_half, v_fma(v_splat(32), odd_two, odd_one));
}

/* Channels [n, n + LNT_VL) of a row whose inputs are x[]. */
LNT_INLINE void winograd_line_in_lanes(const lnt_winograd_line_in *w, const float *const *x, float *to,
                                       size_t n)
{
    const size_t ahead = 2 * (size_t)(w->tile * w->apart) * w->channels; /* of inputs that rows share */
    vf inputs[WINOGRAD_LINE_POINTS], points[WINOGRAD_LINE_POINTS];
    UNROLL_FOR(8, unsigned i = 0; i < WINOGRAD_LINE_POINTS; i++)
        inputs[i] = v_load(x[i] + n);
    if (n % LNT_PANEL == 0)
        UNROLL_FOR(8, unsigned i = WINOGRAD_LINE_POINTS / 2; i < WINOGRAD_LINE_POINTS; i++)
            v_prefetch(x[i] + ahead + n);
    winograd_line_forward(inputs, points);
    UNROLL_FOR(8, unsigned i = 0; i < WINOGRAD_LINE_FINITE; i++)
        v_store(to + i * w->v_point + n, points[i]);
    if (w->points > WINOGRAD_LINE_FINITE)
        v_store(to + WINOGRAD_LINE_FINITE * w->v_point + n, points[WINOGRAD_LINE_FINITE]);
}

void LARGE(line_in)(const lnt_winograd_line_in *w)
{
    LNT_ASSERT(w->apart > 0 && (w->tile == 4 || w->tile == 6) && w->channels >= LNT_WINOGRAD_FEWEST);
    const lnt_winograd_line_in own = *w; /* out of reach of the stores, which may alias anything */
    float *to = own.v;
    for (ptrdiff_t row = 0; row < own.rows; row++, to += own.v_row) {
        const float *x[WINOGRAD_LINE_POINTS];
        ptrdiff_t at = own.first + row / own.apart * own.tile * own.apart + row % own.apart;
        for (unsigned i = 0; i < WINOGRAD_LINE_POINTS; i++, at += own.apart)
            x[i] = at >= 0 && at < own.width ? own.x + (size_t)at * own.channels : own.zeros;
        for (size_t n = 0; n < own.channels; n += LNT_VL)
            winograd_line_in_lanes(&own, x, to, n + LNT_VL <= own.channels ? n : own.channels - LNT_VL);
    }
}

/* Outputs `at`, at + apart, ... of a row whose products are m: columns [n, n + LNT_VL). */
LNT_INLINE void winograd_line_out_lanes(const lnt_winograd_line_out *w, const float *m, ptrdiff_t at,
                                        size_t n)
{
    const vf bias = w->bias ? v_load(w->bias + n) : v_splat(0);
    const vf low = v_splat(w->low), high = v_splat(w->high);
    vf points[WINOGRAD_LINE_FINITE], y[LNT_WINOGRAD_LINE_TILE_MAX];
    UNROLL_FOR(8, unsigned i = 0; i < WINOGRAD_LINE_FINITE; i++)
        points[i] = v_load(m + i * w->m_point + n);
    winograd_line_backward(points, y);
    for (ptrdiff_t i = 0; i < w->tile && at < w->width; i++, at += w->apart) {
        const size_t to = (size_t)at * w->pixel + n;
        vf sum = y[i] + bias;
        if (i + 1 == w->tile && w->points > WINOGRAD_LINE_FINITE)
            sum += v_load(m + WINOGRAD_LINE_FINITE * w->m_point + n);
        if (w->residual)
            sum += v_load(w->residual + to);
        v_store(w->c + to, v_min(high, v_max(low, sum)));
    }
}

void LARGE(line_out)(const lnt_winograd_line_out *w)
{
    LNT_ASSERT(w->apart > 0 && w->tile <= LNT_WINOGRAD_LINE_TILE_MAX && w->columns >= LNT_WINOGRAD_FEWEST);
    LNT_ASSERT(w->points == WINOGRAD_LINE_FINITE || w->points == WINOGRAD_LINE_POINTS);
    const lnt_winograd_line_out own = *w;
    const float *m = own.m;
    for (ptrdiff_t row = 0; row < own.rows; row++, m += own.m_row) {
        const ptrdiff_t at = row / own.apart * own.tile * own.apart + row % own.apart;
        for (size_t n = 0; n < own.columns; n += LNT_VL)
            winograd_line_out_lanes(&own, m, at, n + LNT_VL <= own.columns ? n : own.columns - LNT_VL);
    }
}
