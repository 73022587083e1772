/* gemm_fp16.c — tile kernels of half arithmetic: 8 x 16, multiply-adds by element (FMLA, FEAT_FP16).
 *
 * A, B, C and the residual are halves, the bias floats. Sums are halves for LNT_HALF_RUN elements of K at most, then
 * they go on from 0 and are added up in float; what they come to is rounded to half once, before scale, bias behind a
 * scale, residual and clamp, which are half arithmetic. */
#define LNT_SIMD_FP16
#include "ops/gemm/gemm.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"

/* GCC 12 otherwise lifts all loads of an inner step to its top and then has to spill accumulators. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif

enum {
    ROWS = 8,
    VECTORS = LNT_PANEL / LNT_VL, /* of a panel */
    CHAINS_MAX = 4,
    SUMS_MIN = 8,     /* that hide the latency of a multiply-add */
    FAR_HALVES = 1536 /* a one-row product of a large B is bound by memory: fetch 3 KB ahead */
};

typedef struct tile_acc {
    vf v[ROWS][VECTORS];
} tile_acc;

/* Where a tile is in its panel, and in its rows of A. */
typedef struct tile_at {
    const elem *a[ROWS], *b;
    size_t b_row;
} tile_at;

LNT_INLINE void acc_fill(tile_acc *acc, const unsigned rows, const unsigned vectors, vf x)
{
    UNROLL_FOR(8, unsigned i = 0; i < rows; i++)
        UNROLL_FOR(2, unsigned j = 0; j < vectors; j++)
            acc->v[i][j] = x;
}

/* The next LNT_VL elements of K, whose sums go to one chain after the other. */
LNT_INLINE void step_vector(tile_acc *acc, tile_at *at, const unsigned rows, const unsigned vectors,
                            const unsigned chains)
{
    vf a[ROWS];
    UNROLL_FOR(8, unsigned i = 0; i < rows; i++, at->a[i - 1] += LNT_VL)
        a[i] = v_load(at->a[i]);
#define STEP(k)                                                                                              \
    UNROLL_FOR(2, unsigned j = 0; j < vectors; j++) {                                                        \
        const vf b = v_load(at->b + j * LNT_VL);                                                             \
        UNROLL_FOR(8, unsigned i = 0; i < rows; i++)                                                         \
            v_fma_lane(&acc[k % chains].v[i][j], a[i], k, b);                                                \
    }                                                                                                        \
    at->b += at->b_row;                                                                                      \
    __asm__("" : "+r"(at->b)); /* or there would be a pointer for each */
    STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
#undef STEP
}

/* The same for one row, which waits for loads: their places are known from the first. */
LNT_INLINE void step_row(tile_acc *acc, tile_at *at, const unsigned chains)
{
    const vf a = v_load(at->a[0]);
    at->a[0] += LNT_VL;
#define STEP(k)                                                                                              \
    UNROLL_FOR(2, unsigned j = 0; j < VECTORS; j++)                                                          \
        v_fma_lane(&acc[k % chains].v[0][j], a, k, v_load(at->b + k * LNT_PANEL + j * LNT_VL));
    STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
#undef STEP
    at->b += LNT_VL * LNT_PANEL;
}

/* The next n < LNT_VL. */
LNT_INLINE void step_rest(tile_acc *acc, tile_at *at, const unsigned rows, const unsigned vectors, size_t n)
{
    for (; n > 0; n--, at->b += at->b_row) {
        vf b[VECTORS];
        UNROLL_FOR(2, unsigned j = 0; j < vectors; j++)
            b[j] = v_load(at->b + j * LNT_VL);
        UNROLL_FOR(8, unsigned i = 0; i < rows; i++) {
            const elem a = *at->a[i]++;
            UNROLL_FOR(2, unsigned j = 0; j < vectors; j++)
                v_fma_lane(&acc->v[i][j], v_as_lane(a), 0, b[j]);
        }
    }
}

LNT_INLINE void add_to(tile_acc *acc, const tile_acc *other, const unsigned rows, const unsigned vectors)
{
    UNROLL_FOR(8, unsigned i = 0; i < rows; i++)
        UNROLL_FOR(2, unsigned j = 0; j < vectors; j++)
            acc->v[i][j] += other->v[i][j];
}

/* The sums of all chains, in the first. */
LNT_INLINE void add_chains(tile_acc *acc, const unsigned rows, const unsigned vectors, const unsigned chains)
{
    if (chains == 4) {
        add_to(&acc[0], &acc[2], rows, vectors);
        add_to(&acc[1], &acc[3], rows, vectors);
    }
    if (chains > 1)
        add_to(&acc[0], &acc[1], rows, vectors);
}

/* The sums in float that begin with x, or go on with it. */
LNT_INLINE vf_wide added(vf x, const float *sums, const bool begins)
{
    vf_wide wide = v_widen(x);
    if (!begins) {
        wide.low += vld1q_f32(sums);
        wide.high += vld1q_f32(sums + 4);
    }
    return wide;
}

/* Adds the first n vectors of sums in half to those in float, or begins these with them. Apart from the tiles, so that
 * nothing in here has a say in which registers they get. */
static __attribute__((noinline)) void carry(const vf *from, float *to, unsigned n, bool begins)
{
    for (unsigned i = 0; i < n; i++, to += LNT_VL) {
        const vf_wide x = added(from[i], to, begins);
        vst1q_f32(to, x.low);
        vst1q_f32(to + 4, x.high);
    }
}

/* Carries what the chains hold; they go on from 0. */
LNT_INLINE void carry_acc(tile_acc *acc, float *sums, const unsigned rows, const unsigned vectors,
                          const unsigned chains, bool begins)
{
    vf from[ROWS * VECTORS];
    add_chains(acc, rows, vectors, chains);
    UNROLL_FOR(8, unsigned i = 0; i < rows; i++)
        UNROLL_FOR(2, unsigned j = 0; j < vectors; j++)
            from[i * vectors + j] = acc->v[i][j];
    carry(from, sums, rows * vectors, begins);
    UNROLL_FOR(4, unsigned c = 0; c < chains; c++)
        acc_fill(&acc[c], rows, vectors, v_splat(0));
}

/* The whole sums, rounded once: in *result what the chains hold, and what has been carried. */
LNT_INLINE void round_sums(tile_acc *result, tile_acc *acc, const float *sums, const unsigned rows,
                           const unsigned vectors, const unsigned chains, bool begins)
{
    add_chains(acc, rows, vectors, chains);
    *result = acc[0];
    if (begins)
        return;
    UNROLL_FOR(8, unsigned i = 0; i < rows; i++)
        UNROLL_FOR(2, unsigned j = 0; j < vectors; j++)
            result->v[i][j] = v_narrow(added(acc->v[i][j], sums + (i * vectors + j) * LNT_VL, false));
}

/* The sum over all taps of the panel at b is *result, and true is returned; or, where it is not `whole`, it is given to
 * sums, row by row. Where it is carried on the way follows from the place in K, so that taps that are left
 * out, or gathered with others, change nothing. */
LNT_INLINE bool accumulate(tile_acc *result, bool whole, float *sums, const lnt_tile *t, const elem *b,
                           const unsigned rows, const unsigned vectors)
{
    /* By rows alone: all columns are summed in one order. */
    const unsigned chains = rows * VECTORS >= SUMS_MIN ? 1 : 2 * rows * VECTORS >= SUMS_MIN ? 2 : 4;
    tile_at at = {.b = b, .b_row = t->b_row};
    tile_acc acc[CHAINS_MAX];
    bool begins = true;
    /* Elements of K until the sums are carried, and until the end. */
    size_t room = LNT_HALF_RUN - t->before % LNT_HALF_RUN, left = t->taps * t->depth;
    UNROLL_FOR(4, unsigned c = 0; c < chains; c++)
        acc_fill(&acc[c], rows, vectors, v_splat(0));
    for (size_t tap = 0; tap < t->taps; tap++) {
        UNROLL_FOR(8, unsigned i = 0; i < rows; i++)
            at.a[i] = (const elem *)(const void *)t->a[i] + t->tap_offset[tap];
        for (size_t depth = t->depth; depth > 0;) {
            const size_t n = depth < room ? depth : room;
            depth -= n, room -= n, left -= n;
            for (size_t steps = n / LNT_VL; steps > 0; steps--) {
                if (rows == 1 && t->b_is_far)
                    v_prefetch(at.b + FAR_HALVES);
                if (rows == 1)
                    step_row(acc, &at, chains);
                else
                    step_vector(acc, &at, rows, vectors, chains);
            }
            step_rest(acc, &at, rows, vectors, n % LNT_VL);
            if (left == 0 && whole) {
                round_sums(result, acc, sums, rows, vectors, chains, begins);
                return true;
            }
            if (left == 0 || room == 0) {
                carry_acc(acc, sums, rows, vectors, chains, begins);
                begins = false;
                room = LNT_HALF_RUN;
            }
        }
    }
    return false;
}

/* Vector j of a row of halves, `left` of which are columns. */
LNT_INLINE vf load_columns(const float *row, size_t n, size_t left)
{
    const elem *p = (const elem *)(const void *)row + n;
    return left >= LNT_VL ? v_load(p) : v_load_n(p, (unsigned)left);
}

/* Columns from n on of the bias. */
static __attribute__((noinline)) vf bias_of(const lnt_tile *t, size_t n)
{
    return t->bias && n < t->columns ? v_load_floats(t->bias + n, lanes_left(t->columns - n)) : v_splat(0);
}

/* What is left of the formula of ops/gemm/gemm.h for the sum x of row i at column n. */
static vf finish(const lnt_tile *t, unsigned i, size_t n, vf x)
{
    if (t->scale != 1.0f)
        x *= v_splat_float(t->scale);
    x += bias_of(t, n);
    if (t->residual)
        x += load_columns(t->residual[i], n, t->columns - n);
    return v_min(v_splat_float(t->high), v_max(v_splat_float(t->low), x));
}

/* Rounds the sums of a part's rows from column n on, and stores what becomes of them. */
static __attribute__((noinline)) void store_sums(const lnt_tile *t, unsigned rows, unsigned vectors, size_t n,
                                                 const float *sums)
{
    for (unsigned i = 0; i < rows; i++)
        for (unsigned j = 0; j < vectors; j++, sums += LNT_VL) {
            const size_t at = n + j * LNT_VL;
            const vf x = v_narrow((vf_wide){vld1q_f32(sums), vld1q_f32(sums + 4)});
            if (at < t->columns)
                store((elem *)(void *)t->c[i] + at, finish(t, i, at, x), lanes_left(t->columns - at));
        }
}

/* Whole vectors, as they lie in registers: no scale. */
LNT_INLINE void store_whole(const lnt_tile *t, size_t n, const unsigned rows, const unsigned vectors,
                            tile_acc *acc)
{
    const vf low = v_splat_float(t->low), high = v_splat_float(t->high);
    if (t->bias)
        UNROLL_FOR(2, unsigned j = 0; j < vectors; j++) {
            const vf bias = v_load_floats(t->bias + n + j * LNT_VL, LNT_VL);
            UNROLL_FOR(8, unsigned i = 0; i < rows; i++)
                acc->v[i][j] += bias;
        }
    if (t->residual)
        UNROLL_FOR(8, unsigned i = 0; i < rows; i++)
            UNROLL_FOR(2, unsigned j = 0; j < vectors; j++)
                acc->v[i][j] += load_columns(t->residual[i], n + j * LNT_VL, LNT_VL);
    elem *c[ROWS]; /* before the stores, which may alias anything */
    UNROLL_FOR(8, unsigned i = 0; i < rows; i++)
        c[i] = ELEMS_OUT(t->c[i]) + n;
    /* Stores beside the arithmetic, not behind it. */
    if (t->low != -INFINITY || t->high != INFINITY)
        UNROLL_FOR(8, unsigned i = 0; i < rows; i++)
            UNROLL_FOR(2, unsigned j = 0; j < vectors; j++)
                v_store(c[i] + j * LNT_VL, v_min(high, v_max(low, acc->v[i][j])));
    else
        UNROLL_FOR(8, unsigned i = 0; i < rows; i++)
            UNROLL_FOR(2, unsigned j = 0; j < vectors; j++)
                v_store(c[i] + j * LNT_VL, acc->v[i][j]);
}

/* The columns from n on, a panel or its first half. */
LNT_INLINE void part(const lnt_tile *t, size_t n, const unsigned rows, const unsigned vectors)
{
    const elem *b = (const elem *)(const void *)t->b_half + (n - t->b_column) / LNT_PANEL * t->b_panel;
    float sums[ROWS * LNT_PANEL];
    tile_acc acc;
    if (t->taps * t->depth == 0)
        memset(sums, 0, sizeof sums);
    const bool whole = n + vectors * LNT_VL <= t->columns && t->scale == 1.0f;
    if (accumulate(&acc, whole, sums, t, b, rows, vectors))
        store_whole(t, n, rows, vectors, &acc);
    else
        store_sums(t, rows, vectors, n, sums);
}

LNT_INLINE void tile(const lnt_tile *t, const unsigned rows)
{
    LNT_ASSERT(t->first % LNT_PANEL == 0 && !t->accumulate && t->b_row == LNT_PANEL);
    const bool halves = rows == ROWS; /* of panels by themselves: what fewer rows waste is not worth the code */
    size_t n = t->first;
    for (; n + (halves ? LNT_VL : 0) < t->columns; n += LNT_PANEL)
        part(t, n, rows, VECTORS);
    if (halves && n < t->columns)
        part(t, n, rows, 1);
}

#define TILE(rows)                                                                                           \
    static void tile_##rows(const lnt_tile *t)                                                               \
    {                                                                                                        \
        tile(t, rows);                                                                                       \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
TILE(7)
TILE(8)
#undef TILE

const lnt_gemm_kernels lnt_gemm_fp16 = {
    .element = sizeof(elem),
    .tile_rows = ROWS,
    .tall_rows = ROWS,
    .tile_panels = 1,
    .depth_block = LNT_HALF_DEPTH_BLOCK,
    .tile = {NULL, tile_1, tile_2, tile_3, tile_4, tile_5, tile_6, tile_7, tile_8},
    .lanes = LNT_VL,
};
