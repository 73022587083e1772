/* reduce.h — what the files of reductions share. */
#ifndef LNT_OPS_ROWS_REDUCE_H
#define LNT_OPS_ROWS_REDUCE_H

#include "ops/axes.h"
#include "ops/cells.h"
#include "ops/elementwise/typed_kernels.h"
#include "ops/rows/row.h"

enum {
    LNT_REDUCE_BLOCK = 512, /* columns held, or elements converted, at a time */
    LNT_REDUCE_ROOM = 2048  /* elements of the short rows that are turned at once */
};

/* What is done to a row. SUM_EXP is the second pass of LogSumExp, after MAX. */
typedef enum lnt_reduce_kind { SUM, SUM_SQUARES, SUM_ABS, PRODUCT, MAX, MIN, SUM_EXP, KINDS } lnt_reduce_kind;
/* What is done to a result. */
typedef enum lnt_reduce_finish { FINISH_NONE, FINISH_MEAN, FINISH_SQRT, FINISH_LOG } lnt_reduce_finish;

typedef struct lnt_reduce {
    const lnt_row_kernels *row;
    const lnt_kernels *kernels;
    const lnt_cells *cells;
    lnt_dtype dtype;
    unsigned kind, finish;
    lnt_axes kept,
        reduced; /* without the innermost axis and, unless whole rows are reduced, the one before it */
    enum {
        ALONG, /* the innermost axis is reduced, a row at a time, those that are joined before side by side, */
        TURNED, /* or many short rows at once: they become columns, and so do what few kept elements follow them */
        ACROSS /* the innermost axis is kept */
    } way;
    int64_t inner;      /* extent of the innermost axis; TURNED: elements of a row, */
    int64_t behind;     /* of which so many neighbors are kept, each with its own result (else 1) */
    int64_t rows,
        fold; /* reduced elements one behind the other, rows taken together; ALONG 1 but where rows are joined */
    int64_t columns, block;  /* results side by side, and how many are computed at once */
    int64_t n_outer_reduced; /* items of reduced */
    int64_t n_kept;          /* items of kept */
    int64_t count;           /* elements reduced to one */
    /* Of reduce_typed.c: */
    lnt_dtype wide;      /* that elements are converted to, as a rule their own */
    lnt_typed_fn before; /* done to each of them before they meet, with itself as second operand; or NULL */
    lnt_typed_fn loop;   /* two rows to one */
    lnt_along_fn bring_down; /* rows to an element each */
    char of_nothing[8];      /* the result of reducing nothing, in `wide` */
    lnt_task_fn task;
} lnt_reduce;

typedef struct lnt_reduce_job {
    const lnt_reduce *p;
    const void *x;
    void *y;
} lnt_reduce_job;

/* Where the first element is that falls into results from `column` on of item o of `kept`. */
static inline int64_t lnt_reduce_base(const lnt_reduce *p, int64_t o, int64_t column)
{
    return lnt_axes_offset(&p->kept, o) + column * (p->way == ACROSS ? 1 : p->rows);
}

/* Results of rows that were turned, n elements of p->dtype, in the order of the output. */
void lnt_reduce_order(const lnt_reduce *p, void *y, int64_t n);

/* Items that the results of one item of `kept` make. */
static inline int64_t lnt_reduce_blocks(const lnt_reduce *p)
{
    return (p->columns + p->block - 1) / p->block;
}

/* Are elements converted, or otherwise changed, before they meet? */
static inline bool lnt_reduce_is_prepared(const lnt_reduce *p)
{
    return p->wide != p->dtype || p->before || p->kind == SUM_EXP;
}

/* Fills in what is of reduce_typed.c, before it is known how the axes are reduced. */
__attribute__((cold)) void lnt_reduce_set_typed(lnt_reduce *p);
/* Tasks over p->n_kept * lnt_reduce_blocks(p) items, of float and halves and of all other types. */
__attribute__((cold)) lnt_task_fn lnt_reduce_float(const lnt_reduce *p);
__attribute__((cold)) lnt_task_fn lnt_reduce_typed(const lnt_reduce *p);

/* The whole work of a bind function: output 0 is input 0 summed over the axes of the bit mask. */
lnt_status lnt_bind_reduce_sum(lnt_site *site, uint32_t mask);

#endif
