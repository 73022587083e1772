/* plane.inc.h — a plane made of another one, or of some, by its own kernel, part of ops/conv/conv_kernels.inc.h.
 *
 * Vectors hold pixels of a row. Two rows go together, what they share of a line is loaded once: four vectors of each,
 * or, where a row has no more left, one or two, and as many of the rows behind. */

enum { PAIR = 2, PAIR_VECTORS = 4 };
_Static_assert(PAIR_VECTORS *LNT_VL <= LNT_PLANE_SLACK && PAIR * PAIR_VECTORS <= LNT_PLANE_ROWS,
               "what is read beyond");

typedef struct plane_acc {
    vf v[PAIR][PAIR_VECTORS];
} plane_acc;

/* Adds the products of a line of x with the kernel's line at w to the first rows, if that is wanted, and with the line
 * before to the second ones. at: floats to each vector. */
LNT_INLINE void plane_line(plane_acc *acc, const lnt_plane *p, const float *x, const float *w,
                           const size_t *at, const bool first, const bool second)
{
    const size_t taps = p->taps;
    for (size_t t = 0; t < taps; t++, x += p->spacing, w++) {
        vf pixel[PAIR_VECTORS];
        UNROLL_FOR(4, unsigned j = 0; j < PAIR_VECTORS; j++)
            pixel[j] = v_keep(v_load(x + at[j]));
        UNROLL_FOR(4, unsigned j = 0; first && j < PAIR_VECTORS; j++)
            acc->v[0][j] = v_fma(pixel[j], v_splat(w[0]), acc->v[0][j]);
        UNROLL_FOR(4, unsigned j = 0; second && j < PAIR_VECTORS; j++)
            acc->v[1][j] = v_fma(pixel[j], v_splat(*(w - taps)), acc->v[1][j]);
    }
}

/* 1 << across vectors of pixels from i on of as many pairs of rows from r on as there is room for; without `both` of
 * row r alone. */
LNT_INLINE void plane_part(const lnt_plane *p, size_t r, size_t i, unsigned across, const bool both)
{
    const float *x = p->x + r * p->x_line + i, *w = p->w;
    size_t at[PAIR_VECTORS];
    for (unsigned j = 0; j < PAIR_VECTORS; j++)
        at[j] = (j & ((1u << across) - 1)) * LNT_VL + (j >> across) * PAIR * p->x_line;
    plane_acc acc;
    UNROLL_FOR(2, unsigned y = 0; y < PAIR; y++)
        UNROLL_FOR(4, unsigned j = 0; j < PAIR_VECTORS; j++)
            acc.v[y][j] = v_splat(p->bias);
    for (size_t left = p->channels;; x += p->x_next, w += p->taps) {
        plane_line(&acc, p, x, w, at, true, false);
        for (size_t l = 1; l < p->lines; l++)
            plane_line(&acc, p, x += p->x_line, w += p->taps, at, true, both);
        if (both)
            plane_line(&acc, p, x + p->x_line, w + p->taps, at, false, true);
        if (--left == 0)
            break;
    }
    const vf low = v_splat(p->low), high = v_splat(p->high);
    UNROLL_FOR(4, unsigned j = 0; j < PAIR_VECTORS; j++) {
        const size_t n = i + (j & ((1u << across) - 1)) * LNT_VL, row = r + (j >> across) * PAIR;
        float *c = p->c + row * p->c_row + n;
        UNROLL_FOR(2, unsigned y = 0; y < PAIR; y++)
            if ((y == 0 || both) && row + y < p->rows && n < p->pixels)
                store(c + y * p->c_row, v_min(high, v_max(low, acc.v[y][j])), lanes_left(p->pixels - n));
    }
}

static void plane(const lnt_plane *p)
{
    const lnt_plane own = *p; /* out of reach of the stores, which may alias anything */
    for (size_t i = 0; i < own.pixels; i += PAIR_VECTORS * LNT_VL) {
        const size_t left = own.pixels - i;
        const unsigned across = left <= LNT_VL ? 0 : left <= 2 * LNT_VL ? 1 : 2;
        size_t r = 0;
        for (; r + 1 < own.rows; r += (size_t)(PAIR * PAIR_VECTORS) >> across)
            plane_part(&own, r, i, across, true);
        if (r < own.rows)
            plane_part(&own, r, i, 2, false);
    }
}
