/* reduce_typed.c — sums, products, maxima and minima of integers, double and bool in their own type, with the loops of
 * elementwise operators: two rows become one, and a row is folded until one element is left. */
#include "ops/rows/reduce.h"

#include "base/checked.h"
#include "ops/element.h"
#include "ops/rows/fold.h"

#include <string.h>

enum {
    BLOCK = 512,   /* columns held at a time */
    SHORT_ROW = 32 /* rows that are not worth calls */
};

/* acc = acc (+) x */
static void join(const lnt_reduce *p, void *acc, const void *x, int64_t n)
{
    p->loop(&(lnt_typed_args){.out = acc, .in = {acc, x}, .n = n});
}

static void mean_of(const lnt_reduce *p, double *acc, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        acc[i] /= (double)p->count;
}

static lnt_status typed_along(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_reduce_job *j = arg;
    const lnt_reduce *p = j->p;
    (void)k, (void)thread;
    const size_t size = lnt_dtype_size(p->dtype);
    for (int64_t o = begin; o < end; o++) {
        const int64_t base = lnt_axes_offset(&p->kept, o);
        lnt_folded all = {.width = 0};
        for (int64_t r = 0; r < p->n_outer_reduced; r++) {
            const int64_t at = base + lnt_axes_offset(&p->reduced, r);
            lnt_fold_row(p->loop, size, lnt_element_at(j->x, p->dtype, at), p->inner, &all);
        }
        lnt_fold_to_one(p->loop, size, &all);
        if (p->finish == FINISH_MEAN)
            mean_of(p, (double *)(void *)all.bytes, 1);
        memcpy(lnt_element_at(j->y, p->dtype, o), all.bytes, size);
    }
    return LNT_OK;
}

/* Columns [base, base + n) of all rows into y. */
static void typed_columns(const lnt_reduce *p, const void *x, int64_t base, int64_t n, void *y)
{
    for (int64_t r = 0; r < p->n_outer_reduced; r++) {
        const int64_t first = base + lnt_axes_offset(&p->reduced, r);
        for (int64_t i = 0; i < p->rows; i++) {
            const void *row = lnt_element_at(x, p->dtype, first + i * p->inner);
            if (r == 0 && i == 0)
                memcpy(y, row, (size_t)n * lnt_dtype_size(p->dtype));
            else
                join(p, y, row, n);
        }
    }
    if (p->finish == FINISH_MEAN)
        mean_of(p, y, n);
}

static lnt_status typed_across(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_reduce_job *j = arg;
    const lnt_reduce *p = j->p;
    const int64_t blocks = (p->inner + BLOCK - 1) / BLOCK;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t o = item / blocks, column = item % blocks * BLOCK;
        typed_columns(p, j->x, lnt_axes_offset(&p->kept, o) + column, lnt_least(BLOCK, p->inner - column),
                      lnt_element_at(j->y, p->dtype, o * p->inner + column));
    }
    return LNT_OK;
}

bool lnt_reduce_typed(lnt_reduce *p, const lnt_typed_kernels *kernels)
{
    const bool is_bool = p->dtype == LNT_BOOL;
    const lnt_typed_row row[KINDS] = {[SUM] = LNT_TYPED_Add,
                                      [PRODUCT] = LNT_TYPED_Mul,
                                      [MAX] = is_bool ? LNT_TYPED_Or : LNT_TYPED_Max,
                                      [MIN] = is_bool ? LNT_TYPED_And : LNT_TYPED_Min};
    const bool exact = p->finish == FINISH_NONE || p->finish == FINISH_FLIP;
    /* One element that is reduced to itself is not copied but for its value: any byte may stand for true. */
    if (p->dtype == LNT_FLOAT || p->count < 2 || p->inner < SHORT_ROW ||
        !(exact || (p->finish == FINISH_MEAN && p->dtype == LNT_DOUBLE)))
        return false;
    p->loop = kernels->loop[row[p->kind]][p->dtype];
    p->task = p->along ? typed_along : typed_across;
    return p->loop != NULL;
}
