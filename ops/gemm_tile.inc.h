/* gemm_tile.inc.h — the tile kernels, written once over ops/simd.h and compiled per level.
 *
 * The including file says which level (see ops/simd.h) and the shape that fits its registers:
 *     TILE_ROWS      rows of the largest tile
 *     TILE_VECTORS   vectors across: a panel of 16 columns is walked in 16 / (TILE_VECTORS * LNT_VL) parts
 *     DEPTH_BLOCK    rows of a panel that stay in the first-level cache
 * Accumulators are TILE_ROWS * TILE_VECTORS registers. Low tiles have too few of them to hide the latency of
 * a multiply-add: they split K into chains which are summed at the end. */
#include "ops/gemm.h"
#include "ops/simd.h"

#define UNROLL(n) _Pragma(UNROLL_TEXT(n))
#define UNROLL_TEXT(n) UNROLL_STRING(GCC unroll n)
#define UNROLL_STRING(text) #text

enum {
    PART = TILE_VECTORS * LNT_VL, /* columns of a part */
    PREFETCH_FLOATS = 768         /* a one-row product is bound by memory: fetch 3 KB ahead */
};

_Static_assert(LNT_PANEL % PART == 0, "parts make up a panel");
_Static_assert(TILE_ROWS <= LNT_TILE_ROWS_MAX, "fits the table");

typedef struct tile_acc {
    vf v[LNT_TILE_ROWS_MAX][TILE_VECTORS];
} tile_acc;

/* ---- inner loops ---- */

LNT_INLINE void acc_zero(tile_acc *acc, const unsigned rows)
{
    UNROLL(6)
    for (unsigned i = 0; i < rows; i++)
        UNROLL(4)
    for (unsigned j = 0; j < TILE_VECTORS; j++)
        acc->v[i][j] = v_splat(0);
}

/* One row of B times element k of each row of A. */
LNT_INLINE void acc_step(tile_acc *acc, const unsigned rows, const float *const *a, size_t k, const float *b)
{
    vf bv[TILE_VECTORS];
    UNROLL(4)
    for (unsigned j = 0; j < TILE_VECTORS; j++)
        bv[j] = v_load(b + j * LNT_VL);
    UNROLL(6)
    for (unsigned i = 0; i < rows; i++) {
        const vf x = v_splat(a[i][k]);
        UNROLL(4)
        for (unsigned j = 0; j < TILE_VECTORS; j++)
            acc->v[i][j] = v_fma(x, bv[j], acc->v[i][j]);
    }
}

LNT_INLINE void acc_add(tile_acc *acc, const unsigned rows, const tile_acc *other)
{
    UNROLL(6)
    for (unsigned i = 0; i < rows; i++)
        UNROLL(4)
    for (unsigned j = 0; j < TILE_VECTORS; j++)
        acc->v[i][j] += other->v[i][j];
}

/* The sum over all taps for one part of a panel; chains is 1, 2 or 4. */
LNT_INLINE void accumulate(tile_acc *acc, const unsigned rows, const unsigned chains, const lnt_tile *t,
                           const float *b)
{
    const size_t depth = t->depth, b_row = t->b_row;
    tile_acc chain[4];
    UNROLL(4)
    for (unsigned c = 0; c < chains; c++)
        acc_zero(&chain[c], rows);
    for (size_t tap = 0; tap < t->taps; tap++) {
        const ptrdiff_t offset = t->tap_offset[tap];
        const float *a[LNT_TILE_ROWS_MAX];
        UNROLL(6)
        for (unsigned i = 0; i < rows; i++)
            a[i] = t->a[i] + offset;
        size_t k = 0;
        for (; k + chains <= depth; k += chains) {
            if (rows == 1)
                v_prefetch(b + PREFETCH_FLOATS);
            UNROLL(4)
            for (unsigned c = 0; c < chains; c++) {
                acc_step(&chain[c], rows, a, k + c, b);
                b += b_row;
            }
        }
        if (chains > 1)
            for (; k < depth; k++, b += b_row)
                acc_step(&chain[0], rows, a, k, b);
    }
    if (chains == 4) {
        acc_add(&chain[0], rows, &chain[2]);
        acc_add(&chain[1], rows, &chain[3]);
    }
    if (chains >= 2)
        acc_add(&chain[0], rows, &chain[1]);
    UNROLL(6)
    for (unsigned i = 0; i < rows; i++)
        UNROLL(4)
    for (unsigned j = 0; j < TILE_VECTORS; j++)
        acc->v[i][j] = chain[0].v[i][j];
}

/* ---- storing ---- */

/* What becomes of the sum x of row i at column n: the formula of ops/gemm.h. lanes < LNT_VL in the last
 * vector of a row only. */
LNT_INLINE vf finish(const lnt_tile *t, unsigned i, size_t n, vf x, const bool whole, unsigned lanes)
{
#define LOAD(p) (whole ? v_load((p) + n) : v_load_n((p) + n, lanes))
    if (t->accumulate)
        x += LOAD(t->c[i]);
    if (t->scale != 1.0f)
        x *= v_splat(t->scale);
    if (t->bias)
        x += LOAD(t->bias);
    if (t->residual)
        x += LOAD(t->residual[i]);
#undef LOAD
    return v_min(v_splat(t->high), v_max(v_splat(t->low), x));
}

/* Stores the columns from n on, fewer than PART, of sums laid down in memory. Apart from the tiles, so that
 * nothing in here has a say in which registers their accumulators get. */
static __attribute__((noinline)) void store_tail(const lnt_tile *t, unsigned rows, const float *sums,
                                                 size_t n)
{
    for (unsigned i = 0; i < rows; i++)
        for (size_t at = n; at < t->columns; at += LNT_VL) {
            const unsigned lanes = t->columns - at < LNT_VL ? (unsigned)(t->columns - at) : LNT_VL;
            const vf x = v_load(sums + i * PART + (at - n));
            v_store_n(t->c[i] + at, finish(t, i, at, x, false, lanes), lanes);
        }
}

LNT_INLINE void store(const lnt_tile *t, const unsigned rows, const tile_acc *acc, size_t n)
{
    if (n + PART > t->columns) {
        float sums[LNT_TILE_ROWS_MAX * PART];
        UNROLL(6)
        for (unsigned i = 0; i < rows; i++)
            UNROLL(4)
        for (unsigned j = 0; j < TILE_VECTORS; j++)
            v_store(sums + i * PART + j * LNT_VL, acc->v[i][j]);
        store_tail(t, rows, sums, n);
        return;
    }
    UNROLL(6)
    for (unsigned i = 0; i < rows; i++)
        UNROLL(4)
    for (unsigned j = 0; j < TILE_VECTORS; j++)
        v_store(t->c[i] + n + j * LNT_VL, finish(t, i, n + j * LNT_VL, acc->v[i][j], true, LNT_VL));
}

LNT_INLINE void tile(const lnt_tile *t, const unsigned rows, const unsigned chains)
{
    const float *panel = t->b;
    for (size_t n = 0; n < t->columns; n += LNT_PANEL, panel += t->b_panel)
        for (size_t part = 0; part < LNT_PANEL && n + part < t->columns; part += PART) {
            tile_acc acc;
            accumulate(&acc, rows, chains, t, panel + part);
            store(t, rows, &acc, n + part);
        }
}

/* Accumulators in use: 4, 4, 6, 4, 5, 6 times TILE_VECTORS. */
static void tile_1(const lnt_tile *t)
{
    tile(t, 1, 4);
}

static void tile_2(const lnt_tile *t)
{
    tile(t, 2, 2);
}

static void tile_3(const lnt_tile *t)
{
    tile(t, 3, TILE_ROWS >= 6 ? 2 : 1);
}

static void tile_4(const lnt_tile *t)
{
    tile(t, 4, 1);
}

#if TILE_ROWS >= 6
static void tile_5(const lnt_tile *t)
{
    tile(t, 5, 1);
}

static void tile_6(const lnt_tile *t)
{
    tile(t, 6, 1);
}
#endif

/* ---- depthwise ---- */

/* One vector of channels, from channel n, of all pixels. */
LNT_INLINE void depthwise_channels(const lnt_depthwise *d, const unsigned pixels, size_t n, const bool whole,
                                   unsigned lanes)
{
#define LOAD(p) (whole ? v_load((p) + n) : v_load_n((p) + n, lanes))
    vf acc[LNT_TILE_ROWS_MAX];
    const vf start = d->bias ? LOAD(d->bias) : v_splat(0);
    UNROLL(6)
    for (unsigned i = 0; i < pixels; i++)
        acc[i] = start;
    for (size_t t = 0; t < d->taps; t++) {
        const vf w = v_load(d->w + d->tap[t] * d->w_tap + n);
        UNROLL(6)
        for (unsigned i = 0; i < pixels; i++)
            acc[i] = v_fma(LOAD(d->a[i] + d->tap_offset[t]), w, acc[i]);
    }
    UNROLL(6)
    for (unsigned i = 0; i < pixels; i++) {
        vf x = acc[i];
        if (d->residual)
            x += LOAD(d->residual[i]);
        x = v_min(v_splat(d->high), v_max(v_splat(d->low), x));
        if (whole)
            v_store(d->c[i] + n, x);
        else
            v_store_n(d->c[i] + n, x, lanes);
    }
#undef LOAD
}

LNT_INLINE void depthwise(const lnt_depthwise *d, const unsigned pixels)
{
    size_t n = 0;
    for (; n + LNT_VL <= d->channels; n += LNT_VL)
        depthwise_channels(d, pixels, n, true, LNT_VL);
    if (n < d->channels)
        depthwise_channels(d, pixels, n, false, (unsigned)(d->channels - n));
}

static void depthwise_1(const lnt_depthwise *d)
{
    depthwise(d, 1);
}

static void depthwise_4(const lnt_depthwise *d)
{
    depthwise(d, 4);
}

/* As many chains as the largest tile has accumulators: nothing but multiply-adds. */
static void fma_chains(size_t rounds, float *sink)
{
    tile_acc acc; /* starts that differ, or the compiler would keep one chain for all */
    UNROLL(6)
    for (unsigned i = 0; i < TILE_ROWS; i++)
        UNROLL(4)
    for (unsigned j = 0; j < TILE_VECTORS; j++)
        acc.v[i][j] = v_splat((float)(i * TILE_VECTORS + j));
    const vf x = v_load(sink), y = v_splat(0.5f);
    for (size_t r = 0; r < rounds; r++)
        UNROLL(6)
    for (unsigned i = 0; i < TILE_ROWS; i++)
        UNROLL(4)
    for (unsigned j = 0; j < TILE_VECTORS; j++)
        acc.v[i][j] = v_fma(acc.v[i][j], y, x);
    vf sum = v_splat(0);
    UNROLL(6)
    for (unsigned i = 0; i < TILE_ROWS; i++)
        UNROLL(4)
    for (unsigned j = 0; j < TILE_VECTORS; j++)
        sum += acc.v[i][j];
    v_store(sink, sum);
}

#include "ops/rnn_cell.inc.h"

const lnt_gemm_kernels LNT_SIMD_NAME(lnt_gemm) = {
    .tile_rows = TILE_ROWS,
    .depth_block = DEPTH_BLOCK,
    .depthwise_pixels = 4,
#if TILE_ROWS >= 6
    .tile = {NULL, tile_1, tile_2, tile_3, tile_4, tile_5, tile_6},
#else
    .tile = {NULL, tile_1, tile_2, tile_3, tile_4},
#endif
    .depthwise = {NULL, depthwise_1, NULL, NULL, depthwise_4},
    .fma = fma_chains,
    .fma_lanes = TILE_ROWS * TILE_VECTORS * LNT_VL,
    .rnn = rnn_cell,
    .lstm = lstm_cell,
    .gru_gates = gru_gates,
    .gru_state = gru_state,
};
