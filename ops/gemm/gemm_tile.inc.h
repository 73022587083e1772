/* gemm_tile.inc.h — the tile kernels, written once over ops/simd/simd.h and compiled per level.
 *
 * The including file says which level (see ops/simd/simd.h), and
 *
 *     SHAPE           a row of the table in ops/gemm/gemm_blocks.h: what fits the level's registers
 *     ROWS_AHEAD(n)   if given, of how many rows of n a step begins with the loads from A
 *
 * A tile has rows * vectors sums. Small ones split K into chains, which are summed at the end. */
#include "ops/gemm/gemm.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"
#include "ops/simd/simd_narrow.h"

#define COLUMN_1(a, b, c, d, e) a
#define COLUMN_2(a, b, c, d, e) b
#define COLUMN_3(a, b, c, d, e) c
#define COLUMN_4(a, b, c, d, e) d
#define COLUMN_5(a, b, c, d, e) e
#define COLUMN(n, shape) COLUMN_##n(shape)
#define TILE_ROWS COLUMN(1, SHAPE)
#define TALL_ROWS COLUMN(2, SHAPE)
#define TILE_VECTORS COLUMN(3, SHAPE)
#define SUMS_MIN COLUMN(4, SHAPE)
#define DEPTH_BLOCK COLUMN(5, SHAPE)

enum {
    PART = TILE_VECTORS * LNT_VL, /* columns of a part: what a tile does at a time */
    PREFETCH_FLOATS = 768,        /* a one-row product of a large B is bound by memory: fetch 3 KB ahead */
    STEPS = LNT_FETCH_STEP, /* of K at once in the largest tiles: more multiply-adds among the instructions */
    STEPS_SUMS = 5 * TILE_VECTORS,
    LOADS_IN_FMA = LNT_VL == 16 ? 3 : 0 /* see acc_step */
};

_Static_assert(LNT_PANEL % PART == 0 || PART % LNT_PANEL == 0, "parts make up panels, or panels parts");
#if defined(__aarch64__) && defined(LNT_SIMD_NEON)
#define IN_ORDER_TILES 1
#else
#define IN_ORDER_TILES 0
#endif
/* Does a multiply-add take one of its factors from any lane? */
#define LANES_OF_A IN_ORDER_TILES
#ifndef ROWS_AHEAD
#define ROWS_AHEAD(rows) 0
#endif

_Static_assert(TALL_ROWS <= LNT_TILE_ROWS_MAX, "fits the table");

typedef struct tile_acc {
    vf v[LNT_TILE_ROWS_MAX][TILE_VECTORS];
} tile_acc;

/* ---- inner loops ---- */

LNT_INLINE void acc_fill(tile_acc *acc, const unsigned rows, const unsigned vectors, vf x)
{
    UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
        UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
            acc->v[i][j] = x;
}

/* A load that stays where it is written, before the multiply-adds: cores that run in order wait for it
 * otherwise. */
LNT_INLINE void load_early(float *x, const float *from)
{
    *x = *from;
#if defined(__aarch64__)
    __asm__ volatile("" : "+w"(*x));
#endif
}

/* A vector of B, `at` elements behind b, which is a pointer to elements of that form. */
LNT_INLINE vf load_b(const lnt_b_form form, const float *b, size_t at)
{
    const uint16_t *half = (const uint16_t *)(const void *)b + at;
    return form == LNT_B_F16 ? v_load_f16(half) : form == LNT_B_BF16 ? v_load_bf16(half) : v_load(b + at);
}

/* Row `row` of B, whose panels are at b[], times element k of each row of A; with half, the last vector of B
 * is half a one. An element of A that few halves are multiplied by is loaded with each multiply-add: by
 * itself its way to all lanes takes a third longer than they do. */
LNT_INLINE void acc_step(tile_acc *acc, const unsigned rows, const unsigned vectors, const bool half,
                         const lnt_b_form form, const float *const *a, size_t k, const float *const *b,
                         size_t row)
{
    vf bv[TILE_VECTORS];
    if (LNT_VL == 1 && form == LNT_B_F32)
        v_load_each(bv, b[0] + row, vectors);
    const unsigned others = LNT_VL == 1 && form == LNT_B_F32 ? 0 : vectors;
    UNROLL_FOR(4, unsigned j = 0; j < others; j++) {
        bv[j] = load_b(form, b[j * LNT_VL / LNT_PANEL], row + j * LNT_VL % LNT_PANEL);
        if (rows > 1)
            v_hold(&bv[j]);
    }
    if (2 * vectors - half <= LOADS_IN_FMA) {
        UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
            UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
                v_fma_from(&acc->v[i][j], a[i] + k, bv[j], half && j + 1 == vectors);
        return;
    }
    const unsigned ahead = ROWS_AHEAD(rows) < rows ? ROWS_AHEAD(rows) : rows;
    float from_a[LNT_TILE_ROWS_MAX];
    UNROLL_FOR(10, unsigned i = 0; i < ahead; i++)
        load_early(&from_a[i], a[i] + k);
    UNROLL_FOR(10, unsigned i = 0; i < rows; i++) {
        if (ahead == 0)
            from_a[i] = a[i][k];
        const vf x = v_splat(from_a[i]);
        UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
            v_fma_to(&acc->v[i][j], x, bv[j], half && j + 1 == vectors);
        if (ahead && i + ahead < rows)
            load_early(&from_a[i + ahead], a[i + ahead] + k);
    }
}

#if LANES_OF_A
/* Rows of a panel of B times the elements of x, which are one row of A: alternately to both chains. */
LNT_INLINE void acc_lanes(tile_acc *chain, const unsigned vectors, const lnt_b_form form, vf x,
                          const float *b)
{
    UNROLL_FOR(4, unsigned c = 0; c < LNT_VL; c++)
        UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
            v_fma_to(&chain[c % 2].v[0][j], load_b(form, b, c * LNT_PANEL + j * LNT_VL), v_splat(x[c]),
                     false);
}
#endif

/* Moves on in B. The pointers stay what they are, one for each panel: left alone, compilers turn them into
 * sums that need more registers than there are. */
LNT_INLINE void next_rows(const lnt_b_form form, const float **b, const unsigned panels, size_t elements)
{
    UNROLL_FOR(4, unsigned j = 0; j < panels; j++) {
        b[j] = lnt_b_at(form, b[j], elements);
        __asm__("" : "+r"(b[j]));
    }
}

LNT_INLINE void acc_add(tile_acc *acc, const unsigned rows, const unsigned vectors, const tile_acc *other)
{
    UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
        UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
            acc->v[i][j] += other->v[i][j];
}

#if IN_ORDER_TILES
#include "ops/gemm/gemm_in_order.inc.h"
#endif

/* Adds the sum over all taps of one part; chains is 1, 2 or 4. */
LNT_INLINE void accumulate(tile_acc *acc, const unsigned rows, const unsigned vectors, const bool half,
                           const lnt_b_form form, const unsigned chains, const bool in_order,
                           const lnt_tile *t, const float *b, const float **fetch)
{
    const size_t depth = t->depth, b_row = t->b_row, ahead_step = t->ahead_step;
    /* Where there are no vectors there is seldom a second-level cache. */
    const unsigned ahead_lines = LNT_VL > 1 ? t->ahead_lines : 0;
    const unsigned panels = (vectors * LNT_VL + LNT_PANEL - 1) / LNT_PANEL;
    const float *ahead = *fetch, *bp[TILE_VECTORS];
    (void)in_order;
    tile_acc chain[4];
    chain[0] = *acc;
    UNROLL_FOR(4, unsigned c = 1; c < chains; c++)
        acc_fill(&chain[c], rows, vectors, v_splat(0));
    UNROLL_FOR(4, unsigned j = 0; j < panels; j++)
        bp[j] = lnt_b_at(form, b, j * t->b_panel);
    for (size_t tap = 0; tap < t->taps; tap++) {
        const ptrdiff_t offset = t->tap_offset[tap];
        const float *a[LNT_TILE_ROWS_MAX];
        UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
            a[i] = t->a[i] + offset;
        size_t k = 0;
#if IN_ORDER_TILES
        if (in_order && (rows > 1 || b_row == LNT_PANEL)) {
            k = accumulate_in_order(chain, rows, vectors, a, depth, bp[0], rows > 1 ? b_row : LNT_PANEL,
                                    t->b_is_far);
            bp[0] += k * b_row;
        }
#endif
        if (LNT_VL != 4 && rows * vectors >= STEPS_SUMS && b_row == LNT_PANEL)
            for (; k + STEPS <= depth; k += STEPS) {
                for (unsigned line = 0; line < ahead_lines; line++, ahead += ahead_step)
                    v_prefetch_far(ahead);
                UNROLL_FOR(4, unsigned c = 0; c < STEPS; c++)
                    acc_step(&chain[0], rows, vectors, half, form, a, k + c, bp, c * LNT_PANEL);
                next_rows(form, bp, panels, STEPS * LNT_PANEL);
            }
        if (LNT_VL != 4 && form == LNT_B_F32 && rows == 1 && chains == STEPS && b_row == LNT_PANEL &&
            !t->b_is_far)
            for (; k + STEPS <= depth; k += STEPS) {
                UNROLL_FOR(4, unsigned c = 0; c < STEPS; c++)
                    acc_step(&chain[c], rows, vectors, half, form, a, k + c, bp, c * LNT_PANEL);
                next_rows(form, bp, panels, STEPS * LNT_PANEL);
            }
#if LANES_OF_A
        if (rows == 1 && b_row == LNT_PANEL)
            for (; k + LNT_VL <= depth; k += LNT_VL) {
                if (t->b_is_far) {
                    v_prefetch(lnt_b_at(form, bp[0], PREFETCH_FLOATS));
                    v_prefetch(lnt_b_at(form, bp[0], PREFETCH_FLOATS + 2 * LNT_PANEL));
                }
                acc_lanes(chain, vectors, form, v_load(a[0] + k), bp[0]);
                next_rows(form, bp, panels, LNT_VL * LNT_PANEL);
            }
#endif
        for (; k + chains <= depth; k += chains)
            UNROLL_FOR(4, unsigned c = 0; c < chains; c++) {
                if (rows == 1 && c == 0 && t->b_is_far)
                    v_prefetch(bp[0] + PREFETCH_FLOATS);
                acc_step(&chain[c], rows, vectors, half, form, a, k + c, bp, 0);
                next_rows(form, bp, panels, b_row);
            }
        if (chains > 1)
            for (; k < depth; k++) {
                acc_step(&chain[0], rows, vectors, half, form, a, k, bp, 0);
                next_rows(form, bp, panels, b_row);
            }
    }
    if (chains == 4) {
        acc_add(&chain[0], rows, vectors, &chain[2]);
        acc_add(&chain[1], rows, vectors, &chain[3]);
    }
    if (chains >= 2)
        acc_add(&chain[0], rows, vectors, &chain[1]);
    *acc = chain[0];
    *fetch = ahead;
}

/* ---- storing ---- */

/* Where the sums of row i begin: with C, and with the bias if it is not to be scaled. All columns of a row
 * are summed in one order, so that equal columns of B give equal results. */
LNT_INLINE vf begin(const lnt_tile *t, unsigned i, size_t n, unsigned lanes)
{
    vf x = t->bias && t->scale == 1.0f ? v_load_n(t->bias + n, lanes) : v_splat(0);
    if (t->accumulate)
        x += v_load_n(t->c[i] + n, lanes);
    return x;
}

/* What becomes of the sum x of row i at column n: the rest of the formula of ops/gemm/gemm.h. */
LNT_INLINE vf finish(const lnt_tile *t, unsigned i, size_t n, vf x, unsigned lanes)
{
    if (t->scale != 1.0f) {
        x *= v_splat(t->scale);
        if (t->bias)
            x += v_load_n(t->bias + n, lanes);
    }
    if (t->residual)
        x += v_load_n(t->residual[i] + n, lanes);
    return v_min(v_splat(t->high), v_max(v_splat(t->low), x));
}

/* Up to `vectors` vectors from column n on of sums laid down in memory, PART in a row: their beginning, and
 * what becomes of them. Apart from the tiles, so that nothing in here has a say in which registers their
 * accumulators get. */
static __attribute__((noinline)) void begin_sums(const lnt_tile *t, unsigned rows, unsigned vectors,
                                                 float *sums, size_t n)
{
    for (unsigned i = 0; i < rows; i++, sums += PART)
        for (size_t j = 0; j < vectors * LNT_VL; j += LNT_VL) {
            const size_t left = t->columns - n - j;
            v_store(sums + j, begin(t, i, n + j, left < LNT_VL ? (unsigned)left : LNT_VL));
        }
}

static __attribute__((noinline)) void store_sums(const lnt_tile *t, unsigned rows, unsigned vectors,
                                                 const float *sums, size_t n)
{
    for (unsigned i = 0; i < rows; i++, sums += PART)
        for (size_t j = 0; j < vectors * LNT_VL; j += LNT_VL) {
            const size_t left = t->columns - n - j;
            const unsigned lanes = left < LNT_VL ? (unsigned)left : LNT_VL;
            v_store_n(t->c[i] + n + j, finish(t, i, n + j, v_load(sums + j), lanes), lanes);
        }
}

/* Tall tiles of less than a vector of columns, which thin products are made of, mask it where that takes one
 * instruction. */
#if defined(LNT_SIMD_AVX2) && !defined(LNT_SIMD_AVX512)
#define MASKS_THIN(rows, vectors) ((rows) == TILE_ROWS && (vectors) == 1)
#else
#define MASKS_THIN(rows, vectors) false
#endif

/* Are sums scaled in the registers? Few products have a scale: a trimmed library does without, and where registers are
 * narrow the tile needs all there are. */
#if defined(LNT_SIMD_AVX2)
enum { SCALES = !LNT_TRIMMED };
#else
enum { SCALES = MASKS };
#endif

/* The same where sums never leave the registers. The last vector has `lanes` lanes, all unless it is masked. */
LNT_INLINE void acc_begin(tile_acc *acc, const lnt_tile *t, const unsigned rows, const unsigned vectors,
                          size_t n, unsigned lanes, const bool masked)
{
    UNROLL_FOR(4, unsigned j = 0; j < vectors; j++) {
        const bool some = masked && j + 1 == vectors;
        const vf bias =
            t->bias && t->scale == 1.0f ? load_lanes(t->bias + n + j * LNT_VL, some, lanes) : v_splat(0);
        UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
            acc->v[i][j] = bias;
    }
    if (t->accumulate)
        UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
            UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
                acc->v[i][j] += load_lanes(t->c[i] + n + j * LNT_VL, masked && j + 1 == vectors, lanes);
}

LNT_INLINE void acc_scale(tile_acc *acc, const lnt_tile *t, const unsigned rows, const unsigned vectors,
                          size_t n, unsigned lanes, const bool masked)
{
    UNROLL_FOR(4, unsigned j = 0; j < vectors; j++) {
        const vf bias = t->bias ? load_lanes(t->bias + n + j * LNT_VL, masked && j + 1 == vectors, lanes)
                                : v_splat(-0.0f);
        UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
            acc->v[i][j] = acc->v[i][j] * v_splat(t->scale) + bias;
    }
}

LNT_INLINE void acc_end(tile_acc *acc, const lnt_tile *t, const unsigned rows, const unsigned vectors,
                        size_t n, unsigned lanes, const bool masked)
{
    if (SCALES && t->scale != 1.0f)
        acc_scale(acc, t, rows, vectors, n, lanes, masked);
    if (t->residual)
        UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
            UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
                acc->v[i][j] +=
                    load_lanes(t->residual[i] + n + j * LNT_VL, masked && j + 1 == vectors, lanes);
    const vf low = v_splat(t->low), high = v_splat(t->high);
    if (t->low != -INFINITY)
        UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
            UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
                acc->v[i][j] = v_max(low, acc->v[i][j]);
    if (t->high != INFINITY)
        UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
            UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
                acc->v[i][j] = v_min(high, acc->v[i][j]);
    float *const *const to = t->c; /* a store might change it, for all the compiler knows */
    UNROLL_FOR(10, unsigned i = 0; i < rows; i++) {
        float *const c = to[i] + n;
        UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
            if (masked && j + 1 == vectors)
                v_store_n(c + j * LNT_VL, acc->v[i][j], lanes);
            else
                v_store(c + j * LNT_VL, acc->v[i][j]);
    }
}

/* The part that begins with column *at, which moves past it. */
LNT_INLINE void part(const lnt_tile *t, size_t *at, const unsigned rows, const unsigned vectors,
                     const lnt_b_form form, const bool in_order, const float **fetch)
{
    const size_t n = *at;
    const unsigned chains = LNT_VL == 1 && rows == 1              ? 1 /* as in panel_of_row */
                            : rows * TILE_VECTORS >= SUMS_MIN     ? 1
                            : 2 * rows * TILE_VECTORS >= SUMS_MIN ? 2
                                                                  : 4;
    const size_t in_b = (n - t->b_column) / LNT_PANEL * t->b_panel + n % LNT_PANEL;
    const float *b = lnt_b_at(form, form == LNT_B_F32 ? (const void *)t->b : t->b_half, in_b);
    const size_t left = t->columns - n - (vectors - 1) * LNT_VL;
    const unsigned lanes = left < LNT_VL ? (unsigned)left : LNT_VL;
    const bool scales = SCALES || t->scale == 1.0f, stays = scales && (MASKS || lanes == LNT_VL);
    const bool masked = MASKS_THIN(rows, vectors) && scales && !stays;
    float sums[LNT_TILE_ROWS_MAX * PART];
    tile_acc acc;
    *at += vectors * LNT_VL;
    if (stays)
        acc_begin(&acc, t, rows, vectors, n, lanes, MASKS);
    else if (masked)
        acc_begin(&acc, t, rows, vectors, n, lanes, true);
    else
        begin_sums(t, rows, vectors, sums, n);
    if (!stays && !masked)
        UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
            UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
                acc.v[i][j] = v_load(sums + i * PART + j * LNT_VL);
    if (HALVES(rows, vectors) && left <= LNT_VL / 2)
        accumulate(&acc, rows, vectors, true, form, chains, in_order, t, b, fetch);
    else
        accumulate(&acc, rows, vectors, false, form, chains, in_order, t, b, fetch);
    if (stays) {
        acc_end(&acc, t, rows, vectors, n, lanes, MASKS);
        return;
    }
    if (masked) {
        acc_end(&acc, t, rows, vectors, n, lanes, true);
        return;
    }
    UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
        UNROLL_FOR(4, unsigned j = 0; j < vectors; j++)
            v_store(sums + i * PART + j * LNT_VL, acc.v[i][j]);
    store_sums(t, rows, vectors, sums, n);
}

#if LNT_VL == 1

/* One row times a panel, whose 16 columns are as many sums: B is read once, and a line of a cache by one step. */
LNT_INLINE void panel_of_row(const lnt_tile *t, size_t n, const lnt_b_form form)
{
    enum { PARTS = LNT_PANEL / PART };
    const size_t in_b = (n - t->b_column) / LNT_PANEL * t->b_panel;
    const float *b = lnt_b_at(form, form == LNT_B_F32 ? (const void *)t->b : t->b_half, in_b);
    tile_acc acc[PARTS];
    UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++)
        acc_begin(&acc[i], t, 1, PART, n + i * PART, 1, MASKS);
    for (size_t tap = 0; tap < t->taps; tap++) {
        const float *a = t->a[0] + t->tap_offset[tap], *const end = a + t->depth;
        for (; a < end; a++) {
            const float *row = b;
            v_prefetch(lnt_b_at(form, b, PREFETCH_FLOATS));
            UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++) {
                vf bv[PART];
                if (form == LNT_B_F32)
                    v_load_next(bv, &row);
                else
                    UNROLL_FOR(4, unsigned j = 0; j < PART; j++)
                        bv[j] = load_b(form, b, i * PART + j);
                UNROLL_FOR(4, unsigned j = 0; j < PART; j++)
                    v_fma_to(&acc[i].v[0][j], *a, bv[j], false);
            }
            b = lnt_b_at(form, b, t->b_row);
        }
    }
    UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++)
        acc_end(&acc[i], t, 1, PART, n + i * PART, 1, MASKS);
}

#endif

LNT_INLINE void tile(const lnt_tile *t, const unsigned rows, const lnt_b_form form, const bool in_order)
{
    const float *fetch = t->ahead;
    for (size_t n = t->first; n < t->columns;) {
        const size_t left = (t->columns - n + LNT_VL - 1) / LNT_VL;
#if LNT_VL == 1
        if (rows == 1 && left >= LNT_PANEL && n % LNT_PANEL == 0 && t->scale == 1.0f) {
            panel_of_row(t, n, form);
            n += LNT_PANEL;
            continue;
        }
#endif
        if (rows <= TILE_ROWS && left >= TILE_VECTORS &&
            !(LNT_VL == LNT_PANEL && TILE_VECTORS == 4 && left > 4 && left < 7))
            part(t, &n, rows, TILE_VECTORS, form, in_order, &fetch);
        else if (form == LNT_B_F32 && !in_order && rows <= TILE_ROWS && TILE_VECTORS > 3 && left >= 3)
            /* 5, 6: 3 + 2, 3 + 3 */
            part(t, &n, rows, 3, form, in_order, &fetch);
        else if (TILE_VECTORS > 2 && left >= 2)
            part(t, &n, rows, 2, form, in_order, &fetch);
        else
            part(t, &n, rows, 1, form, in_order, &fetch);
    }
}

#define TILE(rows)                                                                                           \
    static void tile_##rows(const lnt_tile *t)                                                               \
    {                                                                                                        \
        tile(t, rows, LNT_B_F32, false);                                                                     \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
#if TILE_ROWS >= 6
TILE(5)
TILE(6)
#endif
#if TALL_ROWS >= 10
TILE(10)

/* What is left at the end of tall tiles goes in two halves. */
#define TILE_HALVES(rows, first, second)                                                                     \
    static void tile_##rows(const lnt_tile *t)                                                               \
    {                                                                                                        \
        lnt_tile half = *t;                                                                                  \
        tile_##first(&half);                                                                                 \
        half.a += first;                                                                                     \
        half.c += first;                                                                                     \
        half.residual = half.residual ? half.residual + first : NULL;                                        \
        tile_##second(&half);                                                                                \
    }
TILE_HALVES(7, 4, 3)
TILE_HALVES(8, 4, 4)
TILE_HALVES(9, 4, 5)
#undef TILE_HALVES
#endif
#undef TILE
#if IN_ORDER_TILES
/* A trimmed library has the tiles of one row and of the most rows: others are computed as elsewhere. */
#if LNT_TRIMMED
#define IN_ORDER(rows) tile_##rows
#else
#define IN_ORDER(rows) tile_##rows##_in_order
#endif
#define TILE(rows)                                                                                           \
    static void tile_##rows##_in_order(const lnt_tile *t)                                                    \
    {                                                                                                        \
        tile(t, rows, LNT_B_F32, true);                                                                      \
    }
TILE(1)
#if !LNT_TRIMMED
TILE(2)
TILE(3)
TILE(4)
TILE(5)
#endif
TILE(6)
#undef TILE
#endif

/* ---- B in elements of 16 bits ---- */

LNT_INLINE void store_two(float *p, two_vf x)
{
    v_store(p, x.first);
    v_store(p + LNT_VL, x.second);
}

#if LNT_HAS_HALVES
#define HALVES_OF(name, form, load)                                                                          \
    static void row_##name(const lnt_tile *t)                                                                \
    {                                                                                                        \
        tile(t, 1, form, false);                                                                             \
    }                                                                                                        \
                                                                                                             \
    static void widen_##name(const uint16_t *from, float *to, size_t n)                                      \
    {                                                                                                        \
        LNT_ASSERT(n % LNT_PANEL == 0);                                                                      \
        for (; n >= 2 * LNT_PANEL; n -= 2 * LNT_PANEL, from += 2 * LNT_PANEL, to += 2 * LNT_PANEL)           \
            UNROLL_FOR(4, unsigned i = 0; i < 2 * LNT_PANEL; i += 2 * LNT_VL)                                \
                store_two(to + i, load##_two(from + i));                                                     \
        for (unsigned i = 0; i < n; i += LNT_VL)                                                             \
            v_store(to + i, load(from + i));                                                                 \
    }
HALVES_OF(f16, LNT_B_F16, v_load_f16)
HALVES_OF(bf16, LNT_B_BF16, v_load_bf16)
#undef HALVES_OF
#define OF_HALVES(kernel) kernel

#if (defined(LNT_SIMD_AVX2) || defined(LNT_SIMD_AVX512)) && !LNT_TRIMMED

/* Adds rows of A times a part of B, float16 in panels, to sums laid down in memory. The last row, and panel, stand in
 * for those that are missing. */
LNT_INLINE void widening_sums(const unsigned most_rows, const lnt_tile *t, unsigned rows,
                              const uint16_t *b_half, size_t panels, float *sums)
{
    enum { PANELS = (PART + LNT_PANEL - 1) / LNT_PANEL };
    const float *a[LNT_TILE_ROWS_MAX], *b[PANELS];
    tile_acc acc;
    UNROLL_FOR(4, unsigned j = 0; j < PANELS; j++)
        b[j] = lnt_b_at(LNT_B_F16, b_half, (j < panels ? j : panels - 1) * t->b_panel);
    UNROLL_FOR(10, unsigned i = 0; i < most_rows; i++)
        UNROLL_FOR(4, unsigned j = 0; j < TILE_VECTORS; j++)
            acc.v[i][j] = v_load(sums + i * PART + j * LNT_VL);
    for (size_t tap = 0; tap < t->taps; tap++) {
        UNROLL_FOR(10, unsigned i = 0; i < most_rows; i++)
            a[i] = t->a[i < rows ? i : rows - 1] + t->tap_offset[tap];
        for (size_t k = 0; k < t->depth; k++) {
            UNROLL_FOR(4, unsigned j = 0; j < PANELS; j++)
                v_prefetch(b[j] + PREFETCH_FLOATS);
            acc_step(&acc, most_rows, TILE_VECTORS, false, LNT_B_F16, a, k, b, 0);
            next_rows(LNT_B_F16, b, PANELS, LNT_PANEL);
        }
    }
    UNROLL_FOR(10, unsigned i = 0; i < most_rows; i++)
        UNROLL_FOR(4, unsigned j = 0; j < TILE_VECTORS; j++)
            v_store(sums + i * PART + j * LNT_VL, acc.v[i][j]);
}

static void widening(const lnt_tile *t, unsigned rows)
{
    float sums[TILE_ROWS * PART] = {0};
    LNT_ASSERT(rows <= TILE_ROWS);
    for (size_t n = t->first; n < t->columns; n += PART) {
        const size_t left = t->columns - n < PART ? t->columns - n : PART;
        const unsigned vectors = (unsigned)((left + LNT_VL - 1) / LNT_VL);
        const size_t panels = (left + LNT_PANEL - 1) / LNT_PANEL;
        const uint16_t *b = t->b_half + (n - t->b_column) / LNT_PANEL * t->b_panel;
        begin_sums(t, rows, vectors, sums, n);
        if (rows <= LNT_HALF_ROWS)
            widening_sums(LNT_HALF_ROWS, t, rows, b, panels, sums);
        else
            widening_sums(TILE_ROWS, t, rows, b, panels, sums);
        store_sums(t, rows, vectors, sums, n);
    }
}

#define WIDENING widening
#endif
#else
#define OF_HALVES(kernel) NULL
#endif
#ifndef WIDENING
#define WIDENING NULL
#endif

/* ---- few columns: sums along K ---- */

enum { NARROW = 4 /* rows and columns of a block */ };

LNT_INLINE vf load_along(const float *p, unsigned lanes)
{
    return lanes == LNT_VL ? v_load(p) : v_load_n(p, lanes);
}

/* Adds element k of rows of A times that of columns of B, lane by lane: as many as a vector has, or fewer. */
LNT_INLINE void narrow_step(vf sum[NARROW][NARROW], const float *const *a, const float *b, size_t b_column,
                            unsigned lanes)
{
    vf x[NARROW];
    UNROLL_FOR(4, unsigned i = 0; i < NARROW; i++)
        x[i] = load_along(a[i], lanes);
    UNROLL_FOR(4, unsigned n = 0; n < NARROW; n++) {
        const vf y = load_along(b + n * b_column, lanes);
        UNROLL_FOR(4, unsigned i = 0; i < NARROW; i++)
            sum[i][n] = v_fma(x[i], y, sum[i][n]);
    }
}

/* Adds what is in each of the first n vectors, of four, to elements so far apart. */
LNT_INLINE void add_each(float *to, size_t step, const vf *x, unsigned n)
{
#if LNT_VL > 1
    const vf sums = v_sum4(x[0], x[1], x[2], x[3]);
    if (step == 1) {
        v_store_n(to, v_load_n(to, n) + sums, n);
        return;
    }
#else
    const vf *sums = x;
#endif
    UNROLL_FOR(4, unsigned i = 0; i < n; i++)
        to[i * step] += sums[i];
}

/* Adds the sums of a block from row `first` and a column on to those at `to`, PART in a row. */
LNT_INLINE void narrow_block(const lnt_tile *t, unsigned first, size_t column, float *to)
{
    const float *b = t->b + column * t->b_panel;
    vf sum[NARROW][NARROW];
    UNROLL_FOR(4, unsigned i = 0; i < NARROW; i++)
        UNROLL_FOR(4, unsigned n = 0; n < NARROW; n++)
            sum[i][n] = v_splat(0);
    for (size_t tap = 0; tap < t->taps; tap++) {
        const float *a[NARROW];
        UNROLL_FOR(4, unsigned i = 0; i < NARROW; i++)
            a[i] = t->a[first + i] + t->tap_offset[tap];
        size_t left = t->depth;
        for (; left >= LNT_VL; left -= LNT_VL, b += LNT_VL) {
            narrow_step(sum, a, b, t->b_panel, LNT_VL);
            UNROLL_FOR(4, unsigned i = 0; i < NARROW; i++)
                a[i] += LNT_VL;
        }
        if (left)
            narrow_step(sum, a, b, t->b_panel, (unsigned)left);
        b += left;
    }
    UNROLL_FOR(4, unsigned i = 0; i < NARROW; i++)
        add_each(to + i * PART, 1, sum[i], NARROW);
}

/* The same of four rows times one column, or of one row times n columns, the first for those that four are short of. */
static __attribute__((noinline)) void narrow_line(const lnt_tile *t, unsigned first, size_t column,
                                                  const bool rows, unsigned n, float *to)
{
    const float *b = t->b + column * t->b_panel;
    const float *lines[NARROW];
    vf sum[NARROW];
    UNROLL_FOR(4, unsigned i = 0; i < NARROW; i++) {
        const unsigned at = i < n ? i : 0;
        lines[i] = rows ? t->a[first + at] : b + at * t->b_panel;
        sum[i] = v_splat(0);
    }
    for (size_t tap = 0, at = 0; tap < t->taps; tap++, at += t->depth) {
        const ptrdiff_t in_a = t->tap_offset[tap], in_b = (ptrdiff_t)at;
        const float *x = rows ? b + in_b : t->a[first] + in_a;
        const ptrdiff_t in_line = rows ? in_a : in_b;
        for (size_t k = 0; k < t->depth; k += LNT_VL) {
            const unsigned lanes = t->depth - k < LNT_VL ? (unsigned)(t->depth - k) : LNT_VL;
            const vf y = load_along(x + k, lanes);
            UNROLL_FOR(4, unsigned i = 0; i < NARROW; i++)
                sum[i] = v_fma(load_along(lines[i] + in_line + k, lanes), y, sum[i]);
        }
    }
    if (rows)
        add_each(to, PART, sum, NARROW);
    else
        add_each(to, 1, sum, n);
}

static void narrow(const lnt_tile *t, unsigned rows)
{
    LNT_ASSERT(rows <= LNT_TILE_ROWS_MAX);
    LNT_ASSERT(t->first % LNT_PANEL == 0);
    float sums[LNT_TILE_ROWS_MAX * PART];
    for (size_t n = t->first; n < t->columns; n += PART) {
        const size_t columns = t->columns - n < PART ? t->columns - n : PART;
        const unsigned vectors = (unsigned)((columns + LNT_VL - 1) / LNT_VL);
        begin_sums(t, rows, vectors, sums, n);
        for (unsigned i = 0; i < rows;) {
            const bool many = rows - i >= NARROW;
            float *to = sums + i * PART;
            for (size_t at = 0; at < columns;)
                if (LNT_VL != 4 && many && columns - at >= NARROW) { /* else it is never worth it */
                    narrow_block(t, i, n + at, to + at);
                    at += NARROW;
                } else if (many) {
                    narrow_line(t, i, n + at, true, NARROW, to + at);
                    at++;
                } else {
                    const unsigned some = (unsigned)lnt_least((int64_t)(columns - at), NARROW);
                    narrow_line(t, i, n + at, false, some, to + at);
                    at += some;
                }
            i += many ? NARROW : 1;
        }
        store_sums(t, rows, vectors, sums, n);
    }
}

/* ---- short rows: more is lost between tiles than in them ---- */

#if LNT_VL == 16

/* LNT_THIN_ROWS rows, one of A and one of C and of residuals so far apart. */
typedef struct thin_rows {
    const float *a, *residual;
    float *c;
    size_t a_step, c_step;
} thin_rows;

/* A vector of columns from n on, or fewer; with half, half a one at most, whose stores meet a
 * second line half as often. Sums that are not scaled begin with the bias. */
LNT_INLINE void thin_part(const lnt_tile *t, const thin_rows *r, size_t n, const bool half)
{
    const float *a = r->a, *b = t->b + (n - t->b_column) / LNT_PANEL * t->b_panel;
    const unsigned lanes = (unsigned)lnt_least((int64_t)(t->columns - n), LNT_VL);
    const size_t a_step = r->a_step, b_row = t->b_row, c_step = r->c_step;
    const vf bias = t->bias ? v_load_n(t->bias + n, lanes) : v_splat(0), scale = v_splat(t->scale),
             start = t->scale == 1.0f ? bias : v_splat(0);
    vf acc[LNT_THIN_ROWS];
    UNROLL_FOR(10, unsigned i = 0; i < LNT_THIN_ROWS; i++)
        acc[i] = start;
    for (const float *const end = a + t->depth; a < end; a++, b += b_row) {
        const vf row = v_load(b);
        UNROLL_FOR(10, unsigned i = 0; i < LNT_THIN_ROWS; i++)
            v_fma_from(&acc[i], a + i * a_step, row, half);
    }
    if (t->scale != 1.0f)
        UNROLL_FOR(10, unsigned i = 0; i < LNT_THIN_ROWS; i++)
            acc[i] = v_fma(acc[i], scale, bias);
    if (r->residual)
        UNROLL_FOR(10, unsigned i = 0; i < LNT_THIN_ROWS; i++)
            acc[i] += v_load_n(r->residual + i * c_step + n, lanes);
    if (t->low != -INFINITY || t->high != INFINITY)
        UNROLL_FOR(10, unsigned i = 0; i < LNT_THIN_ROWS; i++)
            acc[i] = v_min(v_splat(t->high), v_max(v_splat(t->low), acc[i]));
    float *c = r->c + n;
    UNROLL_FOR(10, unsigned i = 0; i < LNT_THIN_ROWS; i++, c += c_step)
        if (half)
            _mm256_mask_storeu_ps(c, (__mmask8)((1u << lanes) - 1), _mm512_castps512_ps256((__m512)acc[i]));
        else
            v_store_n(c, acc[i], lanes);
}

LNT_INLINE void thin_block(const lnt_tile *t, const thin_rows *r)
{
    size_t n = t->first;
    for (; n + LNT_VL / 2 < t->columns; n += LNT_VL)
        thin_part(t, r, n, false);
    if (n < t->columns)
        thin_part(t, r, n, true);
}

/* The last rows begin early enough to be as many as others. */
static void thin(const lnt_tile *t, size_t rows, size_t a_step, size_t c_step)
{
    LNT_ASSERT(rows >= LNT_THIN_ROWS && t->taps <= 1);
    for (size_t row = 0; row < rows; row += LNT_THIN_ROWS) {
        const size_t first = row + LNT_THIN_ROWS <= rows ? row : rows - LNT_THIN_ROWS;
        const thin_rows r = {.a = t->a[0] + first * a_step,
                             .residual = t->residual ? t->residual[0] + first * c_step : NULL,
                             .c = t->c[0] + first * c_step,
                             .a_step = a_step,
                             .c_step = c_step};
        thin_block(t, &r);
    }
}

#define THIN thin
#else
#define THIN NULL
#endif

/* ---- the machine itself ---- */

/* As many chains as the largest tile has accumulators: nothing but multiply-adds. */
static void fma_chains(size_t rounds, float *sink)
{
    tile_acc acc; /* starts that differ, or the compiler would keep one chain for all */
    UNROLL_FOR(10, unsigned i = 0; i < TILE_ROWS; i++)
        UNROLL_FOR(4, unsigned j = 0; j < TILE_VECTORS; j++)
            acc.v[i][j] = v_splat((float)(i * TILE_VECTORS + j));
    const vf x = v_load(sink), y = v_splat(0.5f);
    for (size_t r = 0; r < rounds; r++)
        UNROLL_FOR(10, unsigned i = 0; i < TILE_ROWS; i++)
            UNROLL_FOR(4, unsigned j = 0; j < TILE_VECTORS; j++)
                acc.v[i][j] = v_fma(acc.v[i][j], y, x);
    vf sum = v_splat(0);
    UNROLL_FOR(10, unsigned i = 0; i < TILE_ROWS; i++)
        UNROLL_FOR(4, unsigned j = 0; j < TILE_VECTORS; j++)
            sum += acc.v[i][j];
    v_store(sink, sum);
}

/* What the tables of a level have in common: all but the tiles. */
#define GEMM_KERNELS                                                                                         \
    .element = sizeof(float), .tile_rows = TILE_ROWS, .tall_rows = TALL_ROWS,                                \
    .tile_panels = (PART + LNT_PANEL - 1) / LNT_PANEL, .depth_block = DEPTH_BLOCK, .narrow = narrow,         \
    .thin = THIN, .row = {NULL, OF_HALVES(row_f16), OF_HALVES(row_bf16)}, .widening = WIDENING,              \
    .widen = {NULL, OF_HALVES(widen_f16), OF_HALVES(widen_bf16)}, .lanes = LNT_VL, .fetches = LNT_VL > 4,    \
    .fma = fma_chains, .fma_lanes = TILE_ROWS * TILE_VECTORS * LNT_VL

#if IN_ORDER_TILES
const lnt_gemm_kernels lnt_gemm_neon_in_order = {
    GEMM_KERNELS,
    .tile = {NULL, tile_1_in_order, IN_ORDER(2), IN_ORDER(3), IN_ORDER(4), IN_ORDER(5), tile_6_in_order},
};
#endif

const lnt_gemm_kernels LNT_SIMD_NAME(lnt_gemm) = {
    GEMM_KERNELS,
    .tile =
        {
            NULL,
            tile_1,
            tile_2,
            tile_3,
            tile_4,
#if TILE_ROWS >= 6
            tile_5,
            tile_6,
#endif
#if TALL_ROWS >= 10
            tile_7,
            tile_8,
            tile_9,
            tile_10,
#endif
        },
};
