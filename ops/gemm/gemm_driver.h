/* gemm_driver.h — blocking and threads around the tile kernels: how a whole product is computed.
 *
 * A product C = A * B may be one of several of the same extents (a batch, the groups of a convolution). Where
 * the rows of A and C start is said by a callback, so that convolutions need no matrix of their neighborhoods.
 * Blocking follows from the extents and the level alone; threads decide only which rows and columns a block
 * takes, which changes no sum.
 *
 * Where the plan's kernels are those of half arithmetic, floats here are halves, but for the bias: what is counted in
 * floats is counted in elements. */
#ifndef LNT_OPS_GEMM_GEMM_DRIVER_H
#define LNT_OPS_GEMM_GEMM_DRIVER_H

#include "base/kernel.h"
#include "ops/elementwise/epilogue.h"
#include "ops/gemm/gemm.h"

typedef struct lnt_gemm_plan lnt_gemm_plan;
typedef struct lnt_gemm_call lnt_gemm_call;

/* Rows of one tile. */
typedef struct lnt_row_set {
    const float *a[LNT_TILE_ROWS_MAX];
    int64_t out[LNT_TILE_ROWS_MAX]; /* floats from the start of output and residual to the row */
    /* Taps [tap, tap_end) alone meet something that is not 0: no others are read. Without a callback's say it
     * is all of them. */
    size_t tap, tap_end;
    bool gathered; /* a[] are the elements of those taps within [k_begin, k_end) themselves, side by side */

    /* The driver's own. */
    float *c[LNT_TILE_ROWS_MAX];
    const float *residual[LNT_TILE_ROWS_MAX];
} lnt_row_set;

/* Describes rows [row, row + n) of a product for elements [k_begin, k_end) of K; gather has room for n times
 * as many floats. k_begin and k_end fall between taps or lie within one. */
typedef void (*lnt_rows_fn)(const lnt_gemm_call *call, int64_t product, int64_t row, unsigned n,
                            size_t k_begin, size_t k_end, float *gather, lnt_row_set *set);

struct lnt_gemm_plan {
    const lnt_gemm_kernels *kernels;
    lnt_rows_fn rows_of;
    const void *rows_arg;
    /* NULL, or [products] elements from A to a product's: its rows are row_step apart, and rows_of is for those that
     * are gathered. Those of C are side by side, or c_row apart and from product to product c_product; 0: side by
     * side. */
    const size_t *a_offset;
    size_t c_row, c_product;
    int64_t products, rows;
    size_t columns, taps, depth;
    const ptrdiff_t *tap_offset; /* [taps] */
    lnt_b_form b_form;
    size_t b_row, b_panel; /* as in lnt_tile */
    /* B, of floats, is a matrix in ONNX order, its rows b_row apart, its columns b_column. Its panels are made as they
     * are needed, or only that of the columns behind the last whole panel. */
    bool packs, packs_rest;
    size_t b_column;
    float scale, low, high;
    const lnt_epilogue *epilogue; /* NULL, or a program for every block after it is computed */
    int64_t epilogue_rows;        /* row of output 0 where product p starts: p * this */
    int64_t epilogue_columns;     /* column where product p starts: p * this; 0: each has rows of its own */
    int64_t row_step;             /* floats between neighboring rows of A */
    size_t a_column; /* 0, or A is turned: so many floats from column to column, rows side by side. Those
                                     of a block become row_step apart in scratch memory: depth or a little more */
    bool gathers;                 /* rows_of may gather: room is kept for it */
    bool row_bias;                /* a call's bias is one of rows */

    /* Set by lnt_gemm_plan_blocks. */
    bool narrow;      /* so few columns that they are laid out one by one */
    bool thin;        /* rows are so short that a block's are one tile */
    bool widens;      /* B is not of floats, or in panels: a few panels at a time become that in scratch memory */
    bool gathers_all; /* rows_of must gather: in place, rows would push each other out of the cache */
    unsigned tile_rows;
    int64_t row_blocks, column_blocks;
    bool columns_outside; /* B is larger than A: each of its blocks meets all rows before the next one */
    size_t depth_parts;   /* blocks of K within one tap, or 1 */
    size_t tap_blocks;    /* blocks of whole taps; of one each where depth_parts is not 1 */
    size_t panels_at_once;
    bool fetches_rows;   /* A comes from far: tiles fetch the rows of the next one */
    size_t in_place;     /* columns [0, in_place) of B are read where they are */
    size_t widened;      /* floats of B that are widened or packed at a time */
    double work;         /* multiply-adds, more where they wait for A or B */
    size_t gather_bytes; /* scratch of one thread, to be given to every call */
};

/* What differs from run to run. */
struct lnt_gemm_call {
    const lnt_gemm_plan *plan;
    const lnt_step *step;
    const float *a;
    const void *b;          /* elements of the plan's b_form */
    const size_t *b_offset; /* [products] elements from b to the product's panels */
    float *c;
    int64_t ld;            /* floats from row to row of c; needed with an epilogue */
    int64_t c_first;       /* floats of the output before c */
    const float *residual; /* the output's first, with its strides; or NULL */
    const float *bias;     /* [columns] of each product one after the other, or NULL. One of rows: those of
                              products, from the first again behind bias_product floats; no residual then */
    size_t bias_product;   /* floats from product to product of bias */
    char *gather;          /* threads * gather_bytes */
};

/* Do rows that begin row_step elements apart push each other out of the first-level cache, as many as a tile of so
 * many columns has? */
bool lnt_rows_collide(const lnt_gemm_kernels *k, int64_t row_step, int64_t rows, int64_t columns);

/* Completes a plan whose other fields are filled in. */
void lnt_gemm_plan_blocks(lnt_gemm_plan *p);

lnt_status lnt_gemm_run(lnt_kernel *k, const lnt_gemm_call *call);

/* Tall and narrow tiles are not cut evenly: a rest costs twice as much, so there is one at most. Blocks of
 * rows are then a multiple of a tile, or sums would depend on how many blocks there are. */
static inline bool lnt_gemm_has_whole_tiles(const lnt_gemm_plan *p)
{
    return p->narrow || p->tile_rows != p->kernels->tile_rows;
}

/* Can rows be computed a few at a time, no sum of which changes? */
static inline bool lnt_gemm_has_parts(const lnt_gemm_plan *p)
{
    return p->products == 1 && !lnt_gemm_has_whole_tiles(p);
}

/* Rows [begin, end) of each product alone, on this thread: LNT_GEMM_PART of them at least, if sums are not to
 * depend on how the rows were parted. */
void lnt_gemm_part(lnt_kernel *k, const lnt_gemm_call *call, int64_t begin, int64_t end, unsigned thread);
enum { LNT_GEMM_PART = 24 };

/* May C be computed in the residual's memory? Not if partial sums wait there. */
static inline bool lnt_gemm_in_place(const lnt_gemm_plan *p)
{
    return p->depth_parts == 1 && p->tap_blocks == 1;
}

/* Packs p->groups products of B, elements of a type, from ONNX order on all threads. */
lnt_status lnt_gemm_pack(lnt_kernel *k, const lnt_packed *p, lnt_dtype type, const void *src, void *dst);

#endif
