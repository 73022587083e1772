/* gemm_in_order.inc.h — the inner loop of tiles on 64-bit ARM cores that run in order (Cortex-A53, A55), part of
 * ops/gemm/gemm_tile.inc.h.
 *
 * Vectors of B come by halves, as ops/simd/simd_ordered.h says why: the first by a load, the second through a general
 * register, while the load of the next vector issues. Of each row of A two elements of K come through one, two rows to
 * a vector, and are multiplied by element.
 *
 * The order of instructions is that of the source: each is a volatile asm. Sums are those of acc_step, to the bit. */
#include "ops/simd/simd_ordered.h"

enum {
    IN_ORDER_DEEP = 4,  /* rows of B in registers at most */
    LEAST_DEPTH = 8,    /* of which a tap's first fills, which are waited for, are not most */
    IN_ORDER_FILLS = 16 /* vectors of B that a pass of the loop reads, at most */
};

/* A pass of the loop takes PASS_STEPS rows of B and fills as many again, DEEP rows ahead; the second half of a vector
 * goes in LATE fills after the first. There are PAIRS of factors of each two rows of A. So no result is waited for, and
 * no register spilled: by rows and vectors of the tile, of which there are 1, 2 or 4. */
#define FULL(rows, vectors) ((vectors) == 4 && (rows) > 4)
#define DEEP(rows, vectors) ((vectors) == 1 ? 4u : (vectors) == 4 && (rows) > 2 ? 1u : 2u)
#define PASS_STEPS(rows, vectors) (FULL(rows, vectors) ? 2u : (vectors) == 1 ? 8u : 4u)
#define PAIRS(rows, vectors) (FULL(rows, vectors) ? 1u : 2u)
#define LATE(rows) ((rows) > 2 ? 1u : 2u)

/* What of A and B waits in registers, and from where they are filled. Vector j of row s of a pass is fill
 * s * vectors + j. */
typedef struct waiting {
    vf b[IN_ORDER_DEEP][TILE_VECTORS], x[2][LNT_TILE_ROWS_MAX / 2];
    uint64_t second[IN_ORDER_FILLS], of_a[LNT_TILE_ROWS_MAX];
    const float *row; /* of B */
    size_t k;         /* bytes of A from a[i] on */
    ptrdiff_t turn;   /* floats from the last row of B of a pass to the first of the next, */
    size_t k_turn;    /* and so with A */
    size_t passes;    /* left, as long as turn and k_turn are these */
} waiting;

/* Fill number `at`. */
LNT_INLINE void fill_b(waiting *w, const unsigned rows, const unsigned vectors, const unsigned at)
{
    const unsigned deep = DEEP(rows, vectors), fills = PASS_STEPS(rows, vectors) * vectors;
    const unsigned old = (at + fills - LATE(rows)) % fills;
    ordered_first(&w->b[at / vectors % deep][at % vectors], w->row + at % vectors * LNT_VL);
    ordered_insert(&w->b[old / vectors % deep][old % vectors], true, w->second[old]);
}

/* The elements of all even rows of A, or of all odd ones, become factors. */
LNT_INLINE void fill_x(waiting *w, const unsigned rows, const unsigned pair, const bool odd)
{
    UNROLL_FOR(5, unsigned i = odd; i < rows; i += 2)
        ordered_insert(&w->x[pair][i / 2], odd, w->of_a[i]);
}

/* The same behind the last use of row i, where there is one pair of factors only: an insertion waits for the one before
 * it into the same register, so the odd row's is made when the next register's turn has come. */
LNT_INLINE void fill_x_late(waiting *w, const unsigned rows, const unsigned i)
{
    if (i % 2 == 0 && i + 1 < rows)
        return;
    ordered_insert(&w->x[0][i / 2], false, w->of_a[i / 2 * 2]);
    if (i > 1)
        ordered_insert(&w->x[0][i / 2 - 1], true, w->of_a[i / 2 * 2 - 1]);
}

/* All that is in registers before the first pass. */
LNT_INLINE void fill_all(waiting *w, const unsigned rows, const unsigned vectors, const float *const *a,
                         const float *b, size_t b_row)
{
    const unsigned filled = DEEP(rows, vectors) * vectors, whole = filled - LATE(rows);
    const unsigned first = PASS_STEPS(rows, vectors) * vectors - filled;
    UNROLL_FOR(10, unsigned i = 0; i < rows; i++)
        ordered_pair(&w->of_a[i], a[i]);
    w->row = b;
    w->k = 0;
    UNROLL_FOR(8, unsigned f = 0; f < filled; f++) {
        ordered_first(&w->b[f / vectors][f % vectors], w->row + f % vectors * LNT_VL);
        ordered_pair(&w->second[first + f], w->row + f % vectors * LNT_VL + 2);
        if (f % vectors + 1 == vectors)
            w->row += b_row;
    }
    UNROLL_FOR(5, unsigned p = 0; 2 * p < rows; p++)
        w->x[0][p] = w->x[1][p] = v_splat(0);
    fill_x(w, rows, 0, false);
    fill_x(w, rows, 0, true);
    UNROLL_FOR(8, unsigned f = 0; f < whole; f++)
        ordered_insert(&w->b[f / vectors][f % vectors], true, w->second[first + f]);
}

LNT_INLINE const float *bytes_on(const float *p, size_t bytes)
{
    return (const float *)(const void *)((const char *)p + bytes);
}

/* Loads what follows of row i of A for the next two steps, beside a multiply-add that has no other load beside it. */
LNT_INLINE void load_a(waiting *w, const unsigned rows, const unsigned vectors, const unsigned s,
                       const unsigned j, const unsigned i, const float *const *a)
{
    const unsigned first = PAIRS(rows, vectors) == 1; /* of the vectors beside whose products it is done */
    const bool apart = rows > 1 && vectors > 1;
    if (j == 0 && i == (first ? 2 : 0)) {
        w->k += s + 2 < PASS_STEPS(rows, vectors) ? 2 * sizeof(float) : w->k_turn;
        __asm__ volatile("" : "+r"(w->k));
    }
    if (!apart && j == 0)
        ordered_pair(&w->of_a[i], bytes_on(a[i], w->k));
    if (apart && j == first && i > 0)
        ordered_pair(&w->of_a[i - 1], bytes_on(a[i - 1], w->k));
    if (apart && j == first + 1 && i == 1)
        ordered_pair(&w->of_a[rows - 1], bytes_on(a[rows - 1], w->k));
}

/* Row s of a pass. */
LNT_INLINE void in_order_step(waiting *w, tile_acc *acc, const unsigned rows, const unsigned vectors,
                              const unsigned s, const float *const *a, size_t b_row)
{
    const unsigned steps = PASS_STEPS(rows, vectors), pairs = PAIRS(rows, vectors);
    UNROLL_FOR(4, unsigned j = 0; j < vectors; j++) {
        UNROLL_FOR(10, unsigned i = 0; i < rows; i++) {
            ordered_fma_lane(&acc->v[i][j], w->b[s % DEEP(rows, vectors)][j], w->x[s / 2 % pairs][i / 2],
                     2 * (i % 2) + s % 2);
            if (i == 0)
                ordered_pair(&w->second[s * vectors + j], w->row + j * LNT_VL + 2);
            if (pairs == 1 && rows % 2 == 0 && s == 0 && j == 0 && i == 0)
                ordered_insert(&w->x[0][rows / 2 - 1], true, w->of_a[rows - 1]);
            if (s == 0 && j + 1 == vectors && i + 1 == rows) {
                w->passes--;
                __asm__ volatile("" : "+r"(w->passes));
            }
            if (s % 2 == 0)
                load_a(w, rows, vectors, s, j, i, a);
            if (pairs == 1 && s == 1 && j + 1 == vectors)
                fill_x_late(w, rows, i);
        }
        fill_b(w, rows, vectors, s * vectors + j);
        if (pairs == 2 && s % 2 == 0 && j + 1 == vectors)
            fill_x(w, rows, (s / 2 + 1) % 2, false);
        if (pairs == 2 && s % 2 == 1 && j == 0)
            fill_x(w, rows, (s / 2 + 1) % 2, true);
    }
    w->row += s + 1 == steps - DEEP(rows, vectors) ? w->turn : (ptrdiff_t)b_row;
    __asm__ volatile("" : "+r"(w->row));
}

/* Adds the products of all elements of K but less than a pass of the loop; returns how many. Of a single row every
 * second element goes to chain[1]. The last pass is followed by itself: nothing else is sure to be there. */
LNT_INLINE size_t accumulate_in_order(tile_acc *chain, const unsigned rows, const unsigned vectors,
                                      const float *const *a, size_t depth, const float *b, size_t b_row,
                                      const bool b_is_far)
{
    const unsigned steps = PASS_STEPS(rows, vectors);
    const size_t passes = depth < LEAST_DEPTH ? 0 : depth / steps;
    waiting w;
    if (passes == 0)
        return 0;
    fill_all(&w, rows, vectors, a, b, b_row);
    w.turn = (ptrdiff_t)b_row;
    w.k_turn = 2 * sizeof(float);
    w.passes = passes - 1;
    for (unsigned last = passes == 1; last < 2; last++) {
        if (last) {
            w.turn = -(ptrdiff_t)(b_row * (steps - 1));
            w.k_turn = 0;
            w.passes = 1;
        }
        __asm__ volatile("" : "+r"(w.turn), "+r"(w.k_turn));
        do {
            if (rows == 1 && b_is_far)
                v_prefetch(w.row + PREFETCH_FLOATS);
            UNROLL_FOR(8, unsigned s = 0; s < steps; s++)
                in_order_step(&w, &chain[rows == 1 ? s % 2 : 0], rows, vectors, s, a, b_row);
        } while (w.passes);
    }
    return passes * steps;
}
