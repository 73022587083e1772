/* stem.inc.h — convolutions of few channels, part of ops/conv/conv_kernels.inc.h.
 *
 * K is short and no two of its elements need be adjacent, so each has an offset of its own; pixels have
 * a constant step, so that one pointer serves them all. */

/* STEM_LIST(X): tiles of pixels by vectors of columns, the widest first. The narrowest, of STEM_VECTORS, take what
 * columns are left. */
#if LNT_VL == 16
#define STEM_LIST(X) X(6, 4) X(12, 2) X(14, 1)
enum { STEM_VECTORS = 1, STEM_STEP = 2 };
#elif LNT_VL == 8
#define STEM_LIST(X) X(6, 2)
enum { STEM_VECTORS = 2, STEM_STEP = 0 };
#elif defined(__aarch64__) && defined(LNT_SIMD_NEON)
#define STEM_LIST(X) X(6, 4) X(12, 2)
enum { STEM_VECTORS = 2, STEM_STEP = 0 };
#elif defined(LNT_SIMD_NEON) /* 16 registers */
#define STEM_LIST(X) X(6, 2)
enum { STEM_VECTORS = 2, STEM_STEP = 0 };
#else
#define STEM_LIST(X) X(6, 4)
enum { STEM_VECTORS = 4, STEM_STEP = 0 };
#endif
_Static_assert(LNT_PANEL % (STEM_VECTORS * LNT_VL) == 0, "panels are whole tiles");

enum { STEM_TILE_PIXELS = 14, STEM_TILE_VECTORS = 4 }; /* of any tile at most */
enum { STEM_CLAMPS = sizeof(vf) > 16 };

typedef struct stem_acc {
    vf v[STEM_TILE_PIXELS][STEM_TILE_VECTORS];
} stem_acc;

/* Of `left` columns those in vector j. */
LNT_INLINE unsigned stem_lanes(size_t left, unsigned j)
{
    return left <= j * LNT_VL ? 0 : lanes_left(left - j * LNT_VL);
}

/* Bounds that are infinite change nothing; vectors of x86 are so few that a look costs more. */
LNT_INLINE void stem_clamp(stem_acc *acc, const lnt_stem *s, const unsigned pixels, const unsigned vectors)
{
    const vf low = v_splat_float(s->low), high = v_splat_float(s->high);
    if (STEM_CLAMPS || s->low > -INFINITY)
        UNROLL_FOR(14, unsigned p = 0; p < pixels; p++)
            UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
                acc->v[p][j] = v_max(low, acc->v[p][j]);
    if (STEM_CLAMPS || s->high < INFINITY)
        UNROLL_FOR(14, unsigned p = 0; p < pixels; p++)
            UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
                acc->v[p][j] = v_min(high, acc->v[p][j]);
}

/* The first `left` columns. */
LNT_INLINE void stem_store(const stem_acc *acc, elem *c, size_t c_step, size_t left, const unsigned pixels,
                           const unsigned vectors)
{
    elem rows[STEM_TILE_PIXELS][STEM_TILE_VECTORS * LNT_VL];
    const bool masks = MASKS && vectors == STEM_VECTORS, whole = left >= vectors * LNT_VL;
    if (masks || whole) {
        UNROLL_FOR(14, unsigned p = 0; p < pixels; p++, c += c_step)
            UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
                store_lanes(c + j * LNT_VL, acc->v[p][j], masks, stem_lanes(left, j));
        return;
    }
    UNROLL_FOR(14, unsigned p = 0; p < pixels; p++)
        UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
            v_store(rows[p] + j * LNT_VL, acc->v[p][j]);
    for (unsigned p = 0; p < pixels; p++, c += c_step)
        for (unsigned j = 0; j < vectors && left > j * LNT_VL; j++)
            store(c + j * LNT_VL, v_load(rows[p] + j * LNT_VL), stem_lanes(left, j));
}

/* The initial sums of `left` columns from n on. */
LNT_INLINE void stem_start(stem_acc *acc, const lnt_stem *s, size_t n, size_t left, const unsigned pixels,
                           const unsigned vectors)
{
    vf start[STEM_TILE_VECTORS];
    UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
        start[j] = v_splat(0);
    if (s->bias)
        UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
            start[j] = v_load_floats(s->bias + n + j * LNT_VL,
                                     !MASKS && left >= vectors * LNT_VL ? LNT_VL : stem_lanes(left, j));
    UNROLL_FOR(14, unsigned p = 0; p < pixels; p++)
        UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
            acc->v[p][j] = start[j];
}

/* *at, which moves on: one addition where a load takes no index and the compiler would make two of it. */
LNT_INLINE const elem *next_pixel(const elem **at, size_t step)
{
    const elem *pixel = *at;
    *at += step;
    __asm__("" : "+r"(*at));
    return pixel;
}

/* Columns from n on, `left` of them at most, of pixels [i, i + pixels). */
LNT_INLINE void stem_tile(const lnt_stem *s, size_t i, size_t n, size_t left, const unsigned pixels,
                          const unsigned vectors, const size_t step)
{
    const elem *x = ELEMS(s->x) + i * step, *b = ELEMS(s->b) + n / LNT_PANEL * s->b_panel + n % LNT_PANEL;
    const size_t panel = s->b_panel;
    stem_acc acc;
    stem_start(&acc, s, n, left, pixels, vectors);
    for (size_t k = 0; k < s->depth; k++, b += LNT_PANEL) {
        const elem *at = x + s->offset[k];
        vf bv[STEM_TILE_VECTORS];
#if LNT_VL == 1
        (void)panel;
        v_load_each(bv, b, vectors);
#else
        UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
            bv[j] = v_load(b + j * LNT_VL / LNT_PANEL * panel + j * LNT_VL % LNT_PANEL);
#endif
        UNROLL_FOR(14, unsigned p = 0; p < pixels; p++) {
            if (LNT_VL == 16 && vectors == 1) {
                v_fma_from(&acc.v[p][0], at + p * step, bv[0], false);
                continue;
            }
            const vf a = v_splat(LNT_VL == 1 ? *next_pixel(&at, step) : at[p * step]);
            UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
                acc.v[p][j] = v_fma(a, bv[j], acc.v[p][j]);
        }
    }
    stem_clamp(&acc, s, pixels, vectors);
    stem_store(&acc, ELEMS_OUT(s->c) + i * s->c_step + n, s->c_step, left, pixels, vectors);
}

/* All pixels of some columns; the last tile goes back over pixels that are done, rather than be a short one. */
LNT_INLINE void stem_columns(const lnt_stem *s, size_t n, const unsigned pixels, const unsigned vectors)
{
    const size_t step = s->step, all = s->pixels, left = s->columns - n;
    size_t i = 0;
    for (; STEM_STEP > 0 && pixels > 6 && step == STEM_STEP && i < all; i += pixels)
        stem_tile(s, i + pixels <= all ? i : all - pixels, n, left, pixels, vectors, STEM_STEP);
    for (; i < all; i += pixels)
        stem_tile(s, i + pixels <= all ? i : all - pixels, n, left, pixels, vectors, step);
}

#define STEM(P, V)                                                                                           \
    static void stem_##P(const lnt_stem *s, size_t n)                                                        \
    {                                                                                                        \
        _Static_assert(P <= LNT_STEM_PIXELS, "as many pixels as a call has at least");                       \
        stem_columns(s, n, P, V);                                                                            \
    }
STEM_LIST(STEM)
#undef STEM

/* Is a tile of so many vectors wanted for column n? One of more than the narrowest must be full. Where it spans
 * panels these must fit into the first-level cache, for all pixels go by them. */
static bool stem_fits(const lnt_stem *s, size_t n, unsigned vectors)
{
    enum { FLOATS = 4096 };
    return vectors == STEM_VECTORS ||
           (n + vectors * LNT_VL <= s->columns &&
            (vectors * LNT_VL <= 2 * LNT_PANEL || vectors * LNT_VL * s->depth <= FLOATS));
}

static void stem(const lnt_stem *s)
{
    LNT_ASSERT(s->pixels >= LNT_STEM_PIXELS);
    size_t n = 0;
#define STEM(P, V)                                                                                           \
    for (; n < s->columns && stem_fits(s, n, V); n += V * LNT_VL)                                            \
        stem_##P(s, n);
    STEM_LIST(STEM)
#undef STEM
}

/* ---- features as planes: vectors of contiguous pixels ---- */

#if LNT_VL == 16
enum { PLANES = 8, PLANE_VECTORS = 3 };
#elif defined(LNT_SIMD_AVX2)
enum { PLANES = 4, PLANE_VECTORS = 2 }; /* more would leave fewer loads, but more pixels to go back over */
#elif defined(LNT_SIMD_NEON) || defined(LNT_SIMD_FP16)
enum { PLANES = 4, PLANE_VECTORS = 3 }; /* fewer loads for cores that run in order */
#elif LNT_VL == 1
enum { PLANES = 8, PLANE_VECTORS = 3 };
#else
enum { PLANES = 4, PLANE_VECTORS = 1 };
#endif

_Static_assert(LNT_PANEL % PLANES == 0 && LNT_VL <= LNT_PLANE_PIXELS,
               "planes of one panel, pixels of a vector");

/* Sums are stored from registers, or in few bytes, from memory. */
#if LNT_TRIMMED
#define PLANE_FOR(n, ...) for (__VA_ARGS__)
#else
#define PLANE_FOR UNROLL_FOR
#endif

/* Features [n, n + PLANES), as many as there are, of some vectors of pixels from i on. start[PLANES]: the
 * initial accumulators. */
LNT_INLINE void plane_tile(const lnt_stem *s, const elem *start, size_t i, size_t n, const unsigned vectors)
{
    const elem *x = ELEMS(s->x) + i, *b = ELEMS(s->b) + n / LNT_PANEL * s->b_panel + n % LNT_PANEL;
    vf acc[PLANES][PLANE_VECTORS], sum[PLANES][PLANE_VECTORS];
    UNROLL_FOR(16, unsigned p = 0; p < PLANES; p++)
        UNROLL_FOR(3, unsigned j = 0; j < vectors; j++)
            acc[p][j] = v_splat(start[p]);
    for (size_t k = 0; k < s->depth; k++, b += LNT_PANEL) {
        vf xv[PLANE_VECTORS];
        UNROLL_FOR(3, unsigned j = 0; j < vectors; j++)
            xv[j] = v_keep(v_load(x + s->offset[k] + j * LNT_VL));
        UNROLL_FOR(16, unsigned p = 0; p < PLANES; p++) {
            const vf weight = v_splat(b[p]);
            UNROLL_FOR(3, unsigned j = 0; j < vectors; j++)
                acc[p][j] = v_fma(weight, xv[j], acc[p][j]);
        }
    }
    UNROLL_FOR(16, unsigned p = 0; p < PLANES; p++)
        UNROLL_FOR(3, unsigned j = 0; j < vectors; j++)
            sum[p][j] = acc[p][j];
    const vf low = v_splat_float(s->low), high = v_splat_float(s->high);
    const size_t step = s->c_step;
    elem *c = ELEMS_OUT(s->c) + n * step + i;
    PLANE_FOR(16, unsigned p = 0; p < PLANES; p++)
    {
        if (n + p >= s->columns)
            return;
        PLANE_FOR(3, unsigned j = 0; j < vectors; j++)
        v_store(c + j * LNT_VL, v_min(high, v_max(low, sum[p][j])));
        PLANE_FOR(3, unsigned j = 0; j < vectors; j++)
        v_prefetch(c + (j + vectors) * LNT_VL); /* which the next tile writes */
        c += step;
        __asm__("" : "+r"(c)); /* or each row has a pointer of its own, and few have a register */
    }
}

/* The last vector goes back over pixels that are done, or the last tile, of as few pixels as there are at least. */
static void stem_planes(const lnt_stem *s)
{
    LNT_ASSERT(s->step == 1 && s->pixels >= LNT_PLANE_PIXELS);
    enum { MANY = PLANE_VECTORS * LNT_VL, BACK = LNT_VL > 4 && MANY <= (int)LNT_PLANE_PIXELS };
    const lnt_stem own = *s; /* out of reach of the stores, which may alias anything */
    for (size_t n = 0, i; n < own.columns; n += PLANES) {
        elem start[PLANES] = {0};
        for (size_t p = 0; own.bias && p < PLANES && n + p < own.columns; p++)
            start[p] = (elem)own.bias[n + p];
        i = 0;
        for (; BACK && i < own.pixels; i += MANY)
            plane_tile(&own, start, i + MANY <= own.pixels ? i : own.pixels - MANY, n, PLANE_VECTORS);
        for (; !BACK && PLANE_VECTORS > 1 && i + MANY <= own.pixels; i += MANY)
            plane_tile(&own, start, i, n, PLANE_VECTORS);
        for (; !BACK && i < own.pixels; i += LNT_VL)
            plane_tile(&own, start, i + LNT_VL <= own.pixels ? i : own.pixels - LNT_VL, n, 1);
    }
}
