/* winograd_small.inc.h — Winograd's transforms of tiles of 2x2 outputs, part of ops/conv/conv_kernels.inc.h: sums of
 * floats, or of halves. Vectors hold channels; the last one of a pixel ends where that does, and may meet channels of
 * the one before again. The matrices are those of ops/conv/winograd.h. */

enum { SMALL_TILE = LNT_WINOGRAD_SMALL_TILE, SMALL_PATCH = LNT_WINOGRAD_SMALL_PATCH };

/* y = B' x */
LNT_INLINE void winograd_small_forward(const vf *x, vf *y)
{
    y[0] = x[0] - x[2];
    y[1] = x[1] + x[2];
    y[2] = x[2] - x[1];
    y[3] = x[3] - x[1];
}

/* y = A' x */
LNT_INLINE void winograd_small_backward(const vf *x, vf *y)
{
    y[0] = x[0] + x[1] + x[2];
    y[1] = x[1] - x[2] + x[3];
}

/* The points of a patch from `to` on; returns where the next patch's go. */
LNT_INLINE elem *winograd_small_points(vf column[SMALL_PATCH][SMALL_PATCH], const lnt_winograd_in *w,
                                       elem *to)
{
    elem *point = to;
    UNROLL_FOR(4, unsigned i = 0; i < SMALL_PATCH; i++) {
        vf row[SMALL_PATCH], points[SMALL_PATCH];
        UNROLL_FOR(4, unsigned j = 0; j < SMALL_PATCH; j++)
            row[j] = column[j][i];
        winograd_small_forward(row, points);
        UNROLL_FOR(4, unsigned j = 0; j < SMALL_PATCH; j++, point += w->v_point)
            v_store(point, points[j]);
    }
    return to + w->v_tile;
}

/* Channels [n, n + LNT_VL). Two columns of a patch are the first two of the next. */
LNT_INLINE void winograd_small_in_lanes(const lnt_winograd_in *w, size_t n)
{
    vf column[SMALL_PATCH][SMALL_PATCH] = {{v_splat(0)}};
    elem *to = ELEMS_OUT(w->v) + n;
    ptrdiff_t at = w->first;
    for (size_t pair = 0; pair <= w->tiles; pair++) {
        UNROLL_FOR(2, unsigned j = SMALL_TILE; j < SMALL_PATCH; j++, at++) {
            const bool inside = at >= 0 && at < w->width;
            vf line[SMALL_PATCH];
            UNROLL_FOR(4, unsigned i = 0; i < SMALL_PATCH; i++)
                line[i] = inside ? v_load(ELEMS(w->line[i]) + (size_t)at * w->pixel[i] + n) : v_splat(0);
            winograd_small_forward(line, column[j]);
        }
        if (pair > 0)
            to = winograd_small_points(column, w, to);
        UNROLL_FOR(2, unsigned j = 0; j < SMALL_TILE; j++)
            UNROLL_FOR(4, unsigned i = 0; i < SMALL_PATCH; i++)
                column[j][i] = column[SMALL_TILE + j][i];
    }
}

void COMMON(small_in)(const lnt_winograd_in *w)
{
    LNT_ASSERT(w->tiles <= LNT_WINOGRAD_RUN && w->channels >= LNT_WINOGRAD_FEWEST);
    const lnt_winograd_in own = *w; /* out of reach of the stores, which may alias anything */
    for (size_t n = 0; n < own.channels; n += LNT_VL)
        winograd_small_in_lanes(&own, n + LNT_VL <= own.channels ? n : own.channels - LNT_VL);
}

/* Columns [n, n + LNT_VL) of tile t. */
LNT_INLINE void winograd_small_out_lanes(const lnt_winograd_out *w, size_t t, size_t n)
{
    const size_t left = w->width - t * SMALL_TILE, width = left < SMALL_TILE ? left : SMALL_TILE;
    const vf bias = w->bias ? v_load_floats(w->bias + n, LNT_VL) : v_splat(0);
    const vf low = v_splat_float(w->low), high = v_splat_float(w->high);
    const elem *from = ELEMS(w->m) + t * w->m_tile + n;
    vf half[SMALL_TILE][SMALL_PATCH];
    UNROLL_FOR(4, unsigned j = 0; j < SMALL_PATCH; j++) {
        vf points[SMALL_PATCH], lines[SMALL_TILE];
        UNROLL_FOR(4, unsigned i = 0; i < SMALL_PATCH; i++)
            points[i] = v_load(from + (i * SMALL_PATCH + j) * w->m_point);
        winograd_small_backward(points, lines);
        UNROLL_FOR(2, unsigned i = 0; i < SMALL_TILE; i++)
            half[i][j] = lines[i];
    }
    UNROLL_FOR(2, unsigned i = 0; i < SMALL_TILE; i++) {
        vf pixels[SMALL_TILE];
        size_t at = i * w->line + t * SMALL_TILE * w->pixel + n;
        winograd_small_backward(half[i], pixels);
        UNROLL_FOR(2, unsigned x = 0; x < SMALL_TILE; x++, at += w->pixel) {
            vf y = pixels[x] + bias;
            if (i >= w->lines || x >= width)
                continue;
            if (w->residual)
                y += v_load(ELEMS(w->residual) + at);
            v_store(ELEMS_OUT(w->c) + at, v_min(high, v_max(low, y)));
        }
    }
}

void COMMON(small_out)(const lnt_winograd_out *w)
{
    LNT_ASSERT(w->tiles <= LNT_WINOGRAD_RUN && w->lines <= SMALL_TILE &&
               w->columns >= LNT_WINOGRAD_FEWEST_OUT);
    LNT_ASSERT(w->width <= w->tiles * SMALL_TILE && w->width + SMALL_TILE > w->tiles * SMALL_TILE);
    const lnt_winograd_out own = *w;
    for (size_t t = 0; t < own.tiles; t++)
        for (size_t n = 0; n < own.columns; n += LNT_VL)
            winograd_small_out_lanes(&own, t, n + LNT_VL <= own.columns ? n : own.columns - LNT_VL);
}
