/* reduce_typed.c — sums, products, maxima and minima of integers, double and bool in their own type, with the loops of
 * elementwise operators: two rows become one, and a row is folded until one element is left. */
#include "ops/rows/reduce.h"

#include "base/checked.h"
#include "ops/copy.h"
#include "ops/element.h"
#include "ops/rows/fold.h"

#include <string.h>

enum { SHORT_ROW = 32 /* rows that are not worth calls */ };

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

/* n columns of `rows` rows, which are `step` elements apart, into acc, joined with what is there where `more`.
 * Short rows are taken several (fold) as one: acc has room for n * fold. */
static void typed_columns(const lnt_reduce *p, const char *x, int64_t rows, int64_t step, int64_t n,
                          bool more, char *acc)
{
    const int64_t size = (int64_t)lnt_dtype_size(p->dtype), fold = p->fold;
    for (int64_t i = 0; i < rows; i += fold, x += fold * step * size) {
        const int64_t width = n * lnt_least(fold, rows - i);
        if (i == 0 && !more)
            memcpy(acc, x, (size_t)(width * size));
        else
            join(p, acc, x, width);
    }
}

/* n results from element base on. */
static void typed_block(const lnt_reduce *p, const void *x, int64_t base, int64_t n, char *acc)
{
    _Alignas(16) char turned[LNT_REDUCE_ROOM * sizeof(int64_t)];
    const size_t size = lnt_dtype_size(p->dtype);
    for (int64_t r = 0; r < p->n_outer_reduced; r++) {
        const char *from = lnt_element_at(x, p->dtype, base + lnt_axes_offset(&p->reduced, r));
        if (p->way == TURNED) {
            lnt_turn(turned, from, n, p->inner, size);
            typed_columns(p, turned, p->inner, n, n, r > 0, acc);
        } else {
            typed_columns(p, from, p->rows, p->inner, n, r > 0, acc);
        }
    }
    for (int64_t i = 1; i < p->fold; i++)
        join(p, acc, acc + i * n * (int64_t)size, n);
    if (p->finish == FINISH_MEAN)
        mean_of(p, (double *)(void *)acc, n);
}

static lnt_status typed_across(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_reduce_job *j = arg;
    const lnt_reduce *p = j->p;
    const int64_t blocks = lnt_reduce_blocks(p), size = (int64_t)lnt_dtype_size(p->dtype);
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        _Alignas(16) char acc[LNT_REDUCE_BLOCK * sizeof(int64_t)];
        const int64_t o = item / blocks, column = item % blocks * p->block;
        const int64_t n = lnt_least(p->block, p->columns - column);
        typed_block(p, j->x, lnt_axes_offset(&p->kept, o) + column * (p->way == TURNED ? p->inner : 1), n,
                    acc);
        memcpy(lnt_element_at(j->y, p->dtype, o * p->columns + column), acc, (size_t)(n * size));
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
    if (p->dtype == LNT_FLOAT || p->count < 2 || (p->way == ALONG && p->inner < SHORT_ROW) ||
        !(exact || (p->finish == FINISH_MEAN && p->dtype == LNT_DOUBLE)))
        return false;
    p->loop = kernels->loop[row[p->kind]][p->dtype];
    p->task = p->way == ALONG ? typed_along : typed_across;
    return p->loop != NULL;
}
