/* plane.inc.h — a plane made of another one, or of some, by its own kernel, part of ops/conv/conv_kernels.inc.h.
 *
 * Vectors hold pixels of a row. Two rows go together, what they share of a line is loaded once: four vectors of each,
 * or, where a row has no more left, one or two, and as many of the rows behind. Of longer strides rows share little. */

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

/* The same of all lines of a channel. */
LNT_INLINE void plane_channel(plane_acc *acc, const lnt_plane *p, const float *x, const float *w,
                              const size_t *at, const bool both)
{
    plane_line(acc, p, x, w, at, true, false);
    for (size_t l = 1; l < p->lines; l++)
        plane_line(acc, p, x += p->x_line, w += p->taps, at, true, both);
    if (both)
        plane_line(acc, p, x + p->x_line, w + p->taps, at, false, true);
}

/* The same of taps that stand anywhere, for the first rows. */
LNT_INLINE void plane_taps(plane_acc *acc, const lnt_plane *p, const float *x, const float *w,
                           const size_t *at)
{
    for (size_t t = 0, n = p->lines * p->taps; t < n; t++)
        UNROLL_FOR(4, unsigned j = 0; j < PAIR_VECTORS; j++)
            acc->v[0][j] = v_fma(v_load(x + p->tap[t] + at[j]), v_splat(w[t]), acc->v[0][j]);
}

/* Where lanes cannot be masked for nothing: AMD's processors take tens of cycles for a vector of 8. */
static __attribute__((noinline)) void store_few(float *c, vf x, unsigned lanes)
{
    float all[LNT_VL];
    v_store(all, x);
    for (unsigned i = 0; i < lanes; i++)
        c[i] = all[i];
}

LNT_INLINE void store_pixels(float *c, vf x, const lnt_plane *p, unsigned lanes)
{
    x = v_min(v_splat(p->high), v_max(v_splat(p->low), x));
    if (MASKS || lanes == LNT_VL)
        store(c, x, lanes);
    else
        store_few(c, x, lanes);
}

/* 1 << across vectors of pixels from i on of as many rows from r on as there is room for, or pairs of them. */
LNT_INLINE void plane_part(const lnt_plane *p, size_t r, size_t i, unsigned across, const bool both,
                           const bool apart)
{
    const size_t together = both ? PAIR : 1, row_step = apart ? p->x_row : p->x_line;
    const float *x = p->x + r * row_step + i, *w = p->w;
    const size_t down = together * row_step, next = across ? LNT_VL : down,
                 second = across == 2 ? 2 * LNT_VL
                          : across    ? down
                                      : 2 * down;
    const size_t at[PAIR_VECTORS] = {0, next, second, next + second};
    plane_acc acc;
    UNROLL_FOR(2, unsigned y = 0; y < PAIR; y++)
        UNROLL_FOR(4, unsigned j = 0; j < PAIR_VECTORS; j++)
            acc.v[y][j] = v_splat(p->bias);
    for (size_t k = 0; k < p->channels; k++, x += p->x_channel, w += p->lines * p->taps)
        if (apart)
            plane_taps(&acc, p, x, w, at);
        else
            plane_channel(&acc, p, x, w, at, both);
    UNROLL_FOR(4, unsigned j = 0; j < PAIR_VECTORS; j++) {
        const size_t n = i + (j & ((1u << across) - 1)) * LNT_VL, row = r + (j >> across) * together;
        if (row >= p->rows || n >= p->pixels)
            break;
        float *c = p->c + row * p->c_row + n;
        const unsigned lanes = lanes_left(p->pixels - n);
        store_pixels(c, acc.v[0][j], p, lanes);
        if (both && row + 1 < p->rows)
            store_pixels(c + p->c_row, acc.v[1][j], p, lanes);
    }
}

static void plane(const lnt_plane *p)
{
    const lnt_plane own = *p; /* out of reach of the stores, which may alias anything */
    for (size_t i = 0; i < own.pixels; i += PAIR_VECTORS * LNT_VL) {
        const size_t left = own.pixels - i;
        const unsigned across = left <= LNT_VL ? 0 : left <= 2 * LNT_VL ? 1 : 2;
        size_t r = 0;
        for (; own.tap && r < own.rows; r += (size_t)PAIR_VECTORS >> across)
            plane_part(&own, r, i, across, false, true);
        for (; r + 1 < own.rows; r += (size_t)(PAIR * PAIR_VECTORS) >> across)
            plane_part(&own, r, i, across, true, false);
        if (r < own.rows)
            plane_part(&own, r, i, 2, false, false);
    }
}

static void plane_halves(const float *x, size_t n, size_t lines, float *even, float *odd, size_t line)
{
    const size_t pairs = n / 2;
    for (; lines > 0; lines--, x += n, even += line, odd += line) {
        for (size_t i = 0; pairs < LNT_VL && i < pairs; i++)
            even[i] = x[2 * i], odd[i] = x[2 * i + 1];
        for (size_t i = 0; pairs >= LNT_VL && i < pairs; i += LNT_VL) {
            const size_t at = i + LNT_VL <= pairs ? i : pairs - LNT_VL; /* the last vectors overlap */
            vf halves[2];
            v_halves(v_load(x + 2 * at), v_load(x + 2 * at + LNT_VL), halves);
            v_store(even + at, halves[0]);
            v_store(odd + at, halves[1]);
        }
        if (n % 2)
            even[pairs] = x[n - 1];
    }
}
