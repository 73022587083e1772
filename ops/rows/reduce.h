/* reduce.h — what the files of reductions share. */
#ifndef LNT_OPS_ROWS_REDUCE_H
#define LNT_OPS_ROWS_REDUCE_H

#include "ops/axes.h"
#include "ops/cells.h"
#include "ops/elementwise/typed_kernels.h"
#include "ops/rows/row.h"

/* What is done to a row. SUM_EXP is the second pass of LogSumExp, after MAX. */
typedef enum lnt_reduce_kind { SUM, SUM_SQUARES, SUM_ABS, PRODUCT, MAX, MIN, SUM_EXP, KINDS } lnt_reduce_kind;
/* What is done to a result. FLIP: uint64 is compared as int64 with the sign bit flipped. */
typedef enum lnt_reduce_finish { FINISH_NONE, FINISH_MEAN, FINISH_SQRT, FINISH_LOG, FINISH_FLIP } lnt_reduce_finish;

typedef struct lnt_reduce {
    const lnt_row_kernels *row;
    const lnt_cells *cells;
    lnt_dtype dtype, out_dtype;
    unsigned kind, finish;
    bool flip;
    lnt_axes kept,
        reduced;        /* without the innermost axis (and, where that is kept, the reduced one before it) */
    bool along;         /* the innermost axis is reduced */
    int64_t inner;      /* its extent */
    int64_t rows, fold; /* where it is kept: extent of the reduced axis before it, rows taken together */
    int64_t n_outer_reduced; /* items of reduced */
    int64_t n_kept;          /* items of kept */
    int64_t count;           /* elements reduced to one */
    int64_t least, largest;  /* of an integer type: maximum and minimum over nothing */
    lnt_typed_fn loop; /* of the element type itself, two rows to one; NULL: elements are converted */
    lnt_task_fn task;
} lnt_reduce;

typedef struct lnt_reduce_job {
    const lnt_reduce *p;
    const void *x;
    void *y;
} lnt_reduce_job;

/* Chooses p->loop and a task for reductions that can be done in the element type; false if this one cannot. */
bool lnt_reduce_typed(lnt_reduce *p, const lnt_typed_kernels *kernels);

#endif
