/* program_run.h — an elementwise program made ready for one level, and for the operands of one step.
 *
 *     lnt_program --lnt_code_make--> lnt_code --lnt_map_make--> lnt_map --lnt_map_run--> results
 *
 * A code is the program with its constants spread over vectors, neighbors joined and registers packed into
 * few L1-resident slots. A map adds the extents of the result, as rows of columns, and every operand's
 * strides against them. */
#ifndef LNT_OPS_ELEMENTWISE_PROGRAM_RUN_H
#define LNT_OPS_ELEMENTWISE_PROGRAM_RUN_H

#include "ops/elementwise/program.h"
#include "ops/elementwise/program_kernels.h"

typedef struct lnt_code lnt_code;

/* Where an operand or result of a block of rows x columns starts; strides in elements. */
typedef struct lnt_view {
    char *data;
    int64_t row_stride, col_stride;
    lnt_cell cell;
} lnt_view;

enum { LNT_VIEW_MAX = 1 + LNT_PROGRAM_MAX_IN + LNT_PROGRAM_MAX_OUT };

/* A checked program for the site's level, in the site's memory; NULL with the error set. An epilogue's tile
 * is operand 0 of the code. out: what the results are stored as, but an epilogue's. halves: what it reads and
 * gives is good for half arithmetic, which it is computed in if that can be done to all of it (lnt_code_is_half). */
const lnt_code *lnt_code_make(lnt_site *site, const lnt_program *p, const lnt_operand *const *out,
                              bool halves);
bool lnt_code_is_half(const lnt_code *c);

/* Runs over rows x cols; view[] holds the operands, then the results. A result may be exactly an operand's memory. */
void lnt_code_run(const lnt_code *c, const lnt_view *view, int64_t rows, int64_t cols);

typedef struct lnt_map_operand {
    int64_t stride[LNT_MAX_RANK]; /* elements, along the map's axes */
    lnt_cell cell;
    uint8_t size; /* bytes of an element */
} lnt_map_operand;

typedef struct lnt_map {
    const lnt_code *code;
    unsigned rank; /* at least 2; the last axis gives the columns, all before it the rows */
    int64_t dims[LNT_MAX_RANK];
    int64_t rows, cols;
    unsigned n_in, n_out;
    bool tile;                             /* of an epilogue: operand 0 and the result are tiles */
    lnt_map_operand operand[LNT_VIEW_MAX]; /* operands, then results */
} lnt_map;

/* Does o broadcast to out? Other results must have out's very extents. */
bool lnt_map_fits(const lnt_operand *o, const lnt_operand *out, bool result);
/* Extents and strides alone: for loops without a program. n_in + n_out is at most LNT_VIEW_MAX; the operands
 * fit out[0]. */
void lnt_map_extents(lnt_map *m, const lnt_operand *const *in, unsigned n_in, const lnt_operand *const *out,
                     unsigned n_out, bool tile);
/* Position of a row along the axes before the last one. */
void lnt_map_split_row(const lnt_map *m, int64_t row, int64_t *index);

/* Fills the map of a program over operands in[] (none skipped) that broadcast to the results out[]. As an
 * epilogue operand 0 of the map and its result are tiles handed to lnt_map_run, and out[0] only tells the
 * extents. Fails on operand types that registers cannot take. */
lnt_status lnt_map_make(lnt_site *site, const lnt_program *p, const lnt_operand *const *in,
                        const lnt_operand *const *out, lnt_map *m);

/* Rows [row, row + rows) and columns [col, col + cols). base: first byte of each operand and result; of a
 * tile, of its part. ld: elements from row to row of a tile, else ignored. */
void lnt_map_run(const lnt_map *m, char *const *base, int64_t ld, int64_t row, int64_t rows, int64_t col,
                 int64_t cols);

#endif
