/* reduce_typed.c — reductions of integers, double and bool in their own type, with the loops of elementwise operators,
 * that make one row of two, and those along rows. Means of integers are of exact sums where int64 holds them; what
 * else is no integer is computed in double. */
#include "ops/rows/reduce.h"

#include "base/checked.h"
#include "formats/packed.h"
#include "ops/copy.h"
#include "ops/element.h"
#include "ops/elementwise/typed.h"

#include <math.h>
#include <string.h>

enum { BLOCK = LNT_REDUCE_BLOCK, WIDEST = sizeof(int64_t) };

/* acc = acc (+) x */
static void join(const lnt_reduce *p, void *acc, const void *x, int64_t n)
{
    p->loop(&(lnt_typed_args){.out = acc, .in = {acc, x}, .n = n});
}

/* n elements as they meet: in place, or in buffer. Of SUM_EXP e ** (x - minus), with `period` numbers in turn. */
static const void *prepare(const lnt_reduce *p, const void *x, int64_t n, const double *minus, int64_t period,
                           void *buffer)
{
    if (p->wide != p->dtype) {
        lnt_cast(p->kernels, x, p->dtype, buffer, p->wide, n);
        x = buffer;
    }
    if (p->before) {
        p->before(&(lnt_typed_args){.out = buffer, .in = {x, x}, .n = n});
        x = buffer;
    }
    if (p->kind != SUM_EXP)
        return x;
    for (int64_t i = 0; i < n; i++)
        ((double *)buffer)[i] = exp(((const double *)x)[i] - minus[i % period]);
    return buffer;
}

/* A row of p->inner elements into acc, joined with what is there where `more`. */
static void reduce_row(const lnt_reduce *p, const void *x, const double *minus, bool more, void *acc)
{
    _Alignas(16) char buffer[BLOCK * WIDEST], part[WIDEST];
    const int64_t step = lnt_reduce_is_prepared(p) ? BLOCK : p->inner;
    for (int64_t i = 0; i < p->inner; i += step) {
        const int64_t n = lnt_least(step, p->inner - i);
        const void *from = prepare(p, lnt_element_at(x, p->dtype, i), n, minus, 1, buffer);
        p->bring_down(more || i > 0 ? part : acc, from, 1, n, 1);
        if (more || i > 0)
            join(p, acc, part, 1);
    }
}

/* n columns of p->rows rows, which are `step` elements apart, into acc, joined with what is there where `more`.
 * Short rows are taken several (fold) as one: acc has room for n * fold. There are `period` numbers to subtract. */
static void reduce_columns(const lnt_reduce *p, const void *x, int64_t step, int64_t n, int64_t fold,
                           const double *minus, int64_t period, bool more, void *acc)
{
    _Alignas(16) char buffer[BLOCK * WIDEST];
    for (int64_t i = 0; i < p->rows; i += fold) {
        const int64_t width = n * lnt_least(fold, p->rows - i);
        const bool first = i == 0 && !more;
        const void *row =
            prepare(p, lnt_element_at(x, p->dtype, i * step), width, minus, period, first ? acc : buffer);
        if (!first)
            join(p, acc, row, width);
        else if (row != acc)
            memcpy(acc, row, (size_t)width * lnt_dtype_size(p->wide));
    }
}

static void reduce_block(const lnt_reduce *p, const void *x, int64_t base, int64_t n, const double *minus,
                         void *acc);

/* The same of rows that many others are joined with: before they are turned, or reduced to a number each. */
static __attribute__((noinline)) void reduce_repeated(const lnt_reduce *p, const void *x, int64_t base,
                                                      int64_t n, void *acc)
{
    _Alignas(16) char flat[LNT_REDUCE_ROOM * WIDEST];
    const int64_t size = n * p->fold / p->behind * p->inner;
    lnt_reduce q = *p;
    q.way = ACROSS;
    q.rows = q.fold = 1;
    for (int64_t i = 0; i < size; i += BLOCK)
        reduce_block(&q, x, base + i, lnt_least(BLOCK, size - i), NULL, lnt_element_at(flat, p->wide, i));
    if (p->way == ALONG) {
        p->bring_down(acc, flat, n, p->inner, 1);
        return;
    }
    q = *p;
    q.dtype = p->wide;
    q.before = NULL;
    q.n_outer_reduced = 1;
    reduce_block(&q, flat, 0, n, NULL, acc);
}

/* n results from element base on into acc, of type p->wide. */
static void reduce_block(const lnt_reduce *p, const void *x, int64_t base, int64_t n, const double *minus,
                         void *acc)
{
    _Alignas(16) char turned[LNT_REDUCE_ROOM * WIDEST];
    if (p->count == 0)
        lnt_fill(acc, n * p->fold, p->of_nothing, lnt_dtype_size(p->wide));
    const bool turns = p->way == TURNED;
    const int64_t width = turns ? n * p->fold : n, lines = width / p->behind;
    if (!LNT_TRIMMED && p->rows > 1 && p->way != ACROSS && p->kind != SUM_EXP &&
        (p->way == ALONG || p->n_outer_reduced > 1)) {
        reduce_repeated(p, x, base, n, acc);
        return;
    }
    for (int64_t r = 0; r < p->n_outer_reduced; r++) {
        const void *from = lnt_element_at(x, p->dtype, base + lnt_axes_offset(&p->reduced, r));
        if (p->way == ALONG) {
            reduce_row(p, from, minus, r > 0, acc);
        } else {
            if (turns) {
                lnt_turn_by(p->kernels->turn, turned, lines, from, p->inner, lines, p->inner,
                            lnt_dtype_size(p->dtype));
                from = turned;
            }
            reduce_columns(p, from, turns ? width : p->inner, width, turns ? 1 : p->fold, minus, n, r > 0,
                           acc);
        }
    }
    for (int64_t left = p->fold, half; left > 1; left -= half) {
        half = left / 2;
        join(p, acc, lnt_element_at(acc, p->wide, (left - half) * n), half * n);
    }
    if (p->dtype == LNT_BOOL) /* any byte may have stood for true */
        join(p, acc, acc, n);
}

static void divide(double *x, double by, int64_t n)
{
    typedef double pair __attribute__((vector_size(16), aligned(8)));
    int64_t i = 0;
    for (; i + 2 <= n; i += 2)
        *(pair *)(x + i) /= by;
    if (i < n)
        x[i] /= by;
}

/* n results from what has been reduced to acc, which they are computed in. */
static void store(const lnt_reduce *p, void *acc, void *y, int64_t n)
{
    if (p->finish == FINISH_NONE) {
        if (y != acc)
            memcpy(y, acc, (size_t)n * lnt_dtype_size(p->dtype));
        return;
    }
    double *result = acc;
    if (p->wide == LNT_INT64)
        lnt_cast(p->kernels, acc, LNT_INT64, acc, LNT_DOUBLE, n);
    if (p->finish == FINISH_MEAN)
        divide(result, (double)p->count, n);
    for (int64_t i = 0; i < n && p->finish != FINISH_MEAN; i++)
        result[i] = p->finish == FINISH_SQRT ? sqrt(result[i]) : log(result[i]);
    if (p->wide == LNT_INT64 && p->count > 0) /* means, which fit */
        lnt_cast(p->kernels, acc, LNT_DOUBLE, y, p->dtype, n);
    else
        lnt_elements_from_double(p->dtype, acc, y, n);
}

/* By which loops p->kind is computed. */
static void set_loops(lnt_reduce *p)
{
    static const struct {
        uint8_t loop, of_bool, along, before;
    } rows[KINDS] = {[SUM] = {LNT_TYPED_Add, 0, LNT_ALONG_Add, 0},
                     [SUM_EXP] = {LNT_TYPED_Add, 0, LNT_ALONG_Add, 0},
                     [SUM_SQUARES] = {LNT_TYPED_Add, 0, LNT_ALONG_Add, LNT_TYPED_Mul},
                     [SUM_ABS] = {LNT_TYPED_Add, 0, LNT_ALONG_Add, LNT_TYPED_Abs},
                     [PRODUCT] = {LNT_TYPED_Mul, 0, LNT_ALONG_Mul, 0},
                     [MAX] = {LNT_TYPED_Max, LNT_TYPED_Or, LNT_ALONG_Max, 0},
                     [MIN] = {LNT_TYPED_Min, LNT_TYPED_And, LNT_ALONG_Min, 0}};
    const uint8_t loop = p->dtype == LNT_BOOL ? rows[p->kind].of_bool : rows[p->kind].loop;
    p->loop = p->kernels->typed->loop[loop][p->wide];
    p->before = p->kernels->typed->loop[rows[p->kind].before][p->wide];
    p->bring_down = p->kernels->typed->along[rows[p->kind].along][p->wide];
}

/* LogSumExp: its elements are taken twice, and where the largest is not finite it is the result. */
static void log_sum_exp(const lnt_reduce *p, const void *x, int64_t base, int64_t n, void *y)
{
    double largest[BLOCK], minus[BLOCK], acc[BLOCK];
    lnt_reduce extreme = *p;
    extreme.kind = MAX;
    set_loops(&extreme);
    lnt_elements_from_double(LNT_DOUBLE, &(double){-INFINITY}, extreme.of_nothing, 1);
    reduce_block(&extreme, x, base, n, NULL, largest);
    for (int64_t i = 0; i < n; i++)
        minus[i] = largest[i] - largest[i] == 0 ? largest[i] : 0;
    reduce_block(p, x, base, n, minus, acc);
    for (int64_t i = 0; i < n; i++)
        acc[i] = largest[i] == minus[i] ? log(acc[i]) + minus[i] : largest[i];
    lnt_elements_from_double(p->dtype, acc, y, n);
}

static lnt_status reduce_items(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_reduce_job *j = arg;
    const lnt_reduce *p = j->p;
    const int64_t blocks = lnt_reduce_blocks(p);
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        _Alignas(16) char acc[BLOCK * WIDEST];
        const int64_t o = item / blocks, column = item % blocks * p->block;
        const int64_t n = lnt_least(p->block, p->columns - column);
        const int64_t base = lnt_reduce_base(p, o, column);
        void *y = lnt_element_at(j->y, p->dtype, o * p->columns + column);
        if (p->kind == SUM_EXP) {
            log_sum_exp(p, j->x, base, n, y);
        } else {
            reduce_block(p, j->x, base, n, NULL, acc);
            store(p, acc, y, n);
        }
        lnt_reduce_order(p, y, n);
    }
    return LNT_OK;
}

/* The usual case: one row for each output, as it is, or for a pair of them. */
static lnt_status reduce_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_reduce_job *j = arg;
    const lnt_reduce *p = j->p;
    const int64_t n = p->inner * p->rows;
    void *y = lnt_element_at(j->y, p->dtype, begin * p->columns);
    (void)k, (void)thread;
    p->bring_down(y, lnt_element_at(j->x, p->dtype, begin * n), end - begin, n, p->columns);
    store(p, y, y, (end - begin) * p->columns);
    return LNT_OK;
}

/* The result of reducing nothing. */
static void set_of_nothing(lnt_reduce *p)
{
    const unsigned bits = 8 * (unsigned)lnt_dtype_size(p->dtype);
    const bool is_signed =
        p->dtype == LNT_INT8 || p->dtype == LNT_INT16 || p->dtype == LNT_INT32 || p->dtype == LNT_INT64;
    const uint64_t all = UINT64_MAX >> (64 - bits), largest = p->dtype == LNT_BOOL ? 1 : all >> is_signed;
    const bool extreme = p->kind == MAX || p->kind == MIN;
    const int64_t value = p->kind == PRODUCT ? 1
                          : !extreme         ? 0
                                             : (int64_t)(p->kind == MIN ? largest
                                                         : is_signed    ? all - largest
                                                                        : 0);
    const double real = !extreme ? (double)value : p->kind == MIN ? INFINITY : -INFINITY;
    if (p->wide == LNT_DOUBLE)
        lnt_elements_from_double(LNT_DOUBLE, &real, p->of_nothing, 1);
    else
        lnt_elements_from_int64(p->wide, &value, p->of_nothing, 1);
}

void lnt_reduce_set_typed(lnt_reduce *p)
{
    const bool narrow = lnt_dtype_size(p->dtype) < sizeof(int64_t);
    p->wide = p->finish == FINISH_NONE             ? p->dtype
              : p->finish == FINISH_MEAN && narrow ? LNT_INT64
                                                   : LNT_DOUBLE;
    set_loops(p);
    set_of_nothing(p);
}

/* Are there two columns, which vectors hold next to each other? */
static bool takes_pairs(const lnt_reduce *p)
{
    const bool extreme = p->kind == MAX || p->kind == MIN;
    return !LNT_TRIMMED && p->columns == 2 &&
           (p->dtype == LNT_DOUBLE || (extreme && lnt_dtype_size(p->dtype) == sizeof(int64_t)));
}

lnt_task_fn lnt_reduce_typed(const lnt_reduce *p)
{
    const bool whole =
        p->way == ALONG ? p->count == p->inner : p->way == ACROSS && p->count == p->rows && takes_pairs(p);
    return p->count > 0 && whole && p->dtype != LNT_BOOL && !lnt_reduce_is_prepared(p) ? reduce_rows
                                                                                       : reduce_items;
}
