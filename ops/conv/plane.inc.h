/* plane.inc.h — a plane made of another one, or of some, by its own kernel, part of ops/conv/conv_kernels.inc.h.
 *
 * Vectors hold pixels of a row. Rows go together, what they share of a line is loaded once: by a few vectors of each,
 * or, where a row has no more left, by fewer and as many of the rows behind. Loads of wide vectors, next to none of
 * which are aligned, take longer than products of two rows. Of longer strides rows share little. */

enum { TOGETHER = LNT_VL == 16 ? 4 : 2, BESIDE = 8 / TOGETHER, TAP_VECTORS = 4 };
enum { HALF = LNT_VL == 16 ? 8 : 0, HALF_TAPS = 25 /* which take longer than to store a few lanes of it */ };
_Static_assert(TAP_VECTORS *LNT_VL <= LNT_PLANE_SLACK && TOGETHER * BESIDE <= LNT_PLANE_ROWS,
               "what is read beyond");

typedef struct plane_acc {
    vf v[TOGETHER][BESIDE];
} plane_acc;

/* Adds the products of a line of x with the kernel's line at w to row 0, with that before to row 1, and so on: to rows
 * [first, end). at: floats to each vector. */
LNT_INLINE void plane_line(plane_acc *acc, const lnt_plane *p, const float *x, const float *w,
                           const size_t *at, const unsigned first, const unsigned end)
{
    const size_t taps = p->taps;
    for (size_t t = 0; t < taps; t++, x += p->spacing, w++) {
        vf pixel[BESIDE];
        UNROLL_FOR(4, unsigned j = 0; j < BESIDE; j++)
            pixel[j] = v_keep(v_load(x + at[j]));
        UNROLL_FOR(4, unsigned r = first; r < end; r++) {
            const vf weight = v_splat(*(w - r * taps));
            UNROLL_FOR(4, unsigned j = 0; j < BESIDE; j++)
                acc->v[r][j] = v_fma(pixel[j], weight, acc->v[r][j]);
        }
    }
}

/* The same of all lines of a channel, TOGETHER - 1 or more. */
LNT_INLINE void plane_channel(plane_acc *acc, const lnt_plane *p, const float *x, const float *w,
                              const size_t *at)
{
    UNROLL_FOR(3, unsigned l = 1; l < TOGETHER; l++, x += p->x_line, w += p->taps)
        plane_line(acc, p, x, w, at, 0, l);
    for (size_t l = TOGETHER - 1; l < p->lines; l++, x += p->x_line, w += p->taps)
        plane_line(acc, p, x, w, at, 0, TOGETHER);
    UNROLL_FOR(3, unsigned l = 1; l < TOGETHER; l++, x += p->x_line, w += p->taps)
        plane_line(acc, p, x, w, at, l, TOGETHER);
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

/* 1 << across vectors of pixels from i on, BESIDE at most, of as many times TOGETHER rows from r on as there is room
 * for. */
LNT_INLINE void plane_rows(const lnt_plane *p, size_t r, size_t i, unsigned across)
{
    const float *x = p->x + r * p->x_line + i, *w = p->w;
    size_t at[BESIDE];
    plane_acc acc;
    UNROLL_FOR(4, unsigned j = 0; j < BESIDE; j++)
        at[j] = (j & ((1u << across) - 1)) * LNT_VL + (j >> across) * TOGETHER * p->x_line;
    UNROLL_FOR(4, unsigned y = 0; y < TOGETHER; y++)
        UNROLL_FOR(4, unsigned j = 0; j < BESIDE; j++)
            acc.v[y][j] = v_splat(p->bias);
    for (size_t k = 0; k < p->channels; k++, x += p->x_channel, w += p->lines * p->taps)
        plane_channel(&acc, p, x, w, at);
    UNROLL_FOR(4, unsigned j = 0; j < BESIDE; j++) {
        const size_t n = i + (j & ((1u << across) - 1)) * LNT_VL, row = r + (j >> across) * TOGETHER;
        if (n >= p->pixels)
            break;
        UNROLL_FOR(4, unsigned y = 0; y < TOGETHER; y++)
            if (row + y < p->rows)
                store_pixels(p->c + (row + y) * p->c_row + n, acc.v[y][j], p, lanes_left(p->pixels - n));
    }
}

/* 1 << across vectors of pixels from i on of as many rows from r on as there is room for, by taps that stand
 * anywhere. */
LNT_INLINE void plane_taps(const lnt_plane *p, size_t r, size_t i, unsigned across)
{
    const float *x = p->x + r * p->x_row + i, *w = p->w;
    const size_t down = p->x_row, next = across ? LNT_VL : down,
                 second = across == 2 ? 2 * LNT_VL
                          : across    ? down
                                      : 2 * down;
    const size_t at[TAP_VECTORS] = {0, next, second, next + second}, *end = p->tap + p->lines * p->taps;
    vf acc[TAP_VECTORS];
    UNROLL_FOR(4, unsigned j = 0; j < TAP_VECTORS; j++)
        acc[j] = v_splat(p->bias);
    for (size_t k = 0; k < p->channels; k++, x += p->x_channel)
        for (const size_t *tap = p->tap; tap < end; tap++, w++) {
            const float *from = x + *tap;
            const vf weight = v_splat(*w);
            UNROLL_FOR(4, unsigned j = 0; j < TAP_VECTORS; j++)
                acc[j] = v_fma(v_keep(v_load(from + at[j])), weight, acc[j]);
        }
    UNROLL_FOR(4, unsigned j = 0; j < TAP_VECTORS; j++) {
        const size_t n = i + (j & ((1u << across) - 1)) * LNT_VL, row = r + (j >> across);
        if (row >= p->rows || n >= p->pixels)
            break;
        store_pixels(p->c + row * p->c_row + n, acc[j], p, lanes_left(p->pixels - n));
    }
}

/* Pixels from i on, half a vector: others take half as long. */
static __attribute__((noinline)) void plane_half(const lnt_plane *p, size_t i)
{
    lnt_plane half = *p;
    half.x += i;
    half.c += i;
    half.pixels -= i;
    lnt_conv_avx2.plane(&half);
}

static void plane(const lnt_plane *p)
{
    const lnt_plane own = *p; /* out of reach of the stores, which may alias anything */
    const bool shares = own.x_line && own.lines >= TOGETHER - 1;
    const size_t few = own.pixels % LNT_VL,
                 half = few <= HALF && (few == HALF || own.lines * own.taps >= HALF_TAPS) ? HALF : 0;
    unsigned across;
    for (size_t i = 0; i < own.pixels; i += LNT_VL << across) {
        const size_t left = own.pixels - i;
        if (left <= half) {
            plane_half(p, i);
            return;
        }
        across = left <= LNT_VL + half ? 0 : left <= 2 * LNT_VL || (BESIDE == 2 && own.rows > 1) ? 1 : 2;
        const size_t rows = (TOGETHER * BESIDE) >> across;
        size_t r = 0;
        for (; shares && r + rows / 2 < own.rows; r += rows)
            plane_rows(&own, r, i, across);
        for (; r < own.rows; r += TAP_VECTORS >> across)
            plane_taps(&own, r, i, across);
    }
}

void lnt_conv_plane_copy(const float *x, size_t n, size_t lines, float *even, float *odd, size_t line);

#if LNT_VL == 8 /* for wider vectors, too: memory is what takes time */
static void copy_lines(const float *x, size_t n, size_t lines, float *to, size_t line)
{
    for (; lines > 0; lines--, x += n, to += line) {
        for (size_t i = 0; n < LNT_VL && i < n; i++)
            to[i] = x[i];
        for (size_t i = 0; n >= LNT_VL && i < n; i += LNT_VL) {
            const size_t at = i + LNT_VL <= n ? i : n - LNT_VL; /* the last vectors overlap */
            v_store(to + at, v_load(x + at));
        }
    }
}

void lnt_conv_plane_copy(const float *x, size_t n, size_t lines, float *even, float *odd, size_t line)
{
    if (!odd) {
        copy_lines(x, n, lines, even, line);
        return;
    }
    const size_t pairs = n / 2;
    for (; lines > 0; lines--, x += n, even += line, odd += line) {
        for (size_t i = 0; pairs < LNT_VL && i < pairs; i++)
            even[i] = x[2 * i], odd[i] = x[2 * i + 1];
        for (size_t i = 0; pairs >= LNT_VL && i < pairs; i += LNT_VL) {
            const size_t at = i + LNT_VL <= pairs ? i : pairs - LNT_VL;
            vf halves[2];
            v_halves(v_load(x + 2 * at), v_load(x + 2 * at + LNT_VL), halves);
            v_store(even + at, halves[0]);
            v_store(odd + at, halves[1]);
        }
        if (n % 2)
            even[pairs] = x[n - 1];
    }
}
#endif
