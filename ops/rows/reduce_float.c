/* reduce_float.c — reductions of float, and of halves, which are computed in float: by the row kernels. */
#include "ops/rows/reduce.h"

#include "base/checked.h"
#include "formats/packed.h"
#include "ops/copy.h"
#include "ops/element.h"
#include "ops/vectorize.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = LNT_REDUCE_BLOCK,
    ROWS_AT_ONCE = 8 /* added to an accumulator in one pass */
};

/* The result of reducing nothing. */
static float of_nothing(unsigned kind)
{
    switch (kind) {
    case PRODUCT: return 1;
    case MAX: return -INFINITY;
    case MIN: return INFINITY;
    default: return 0;
    }
}

static float along(const lnt_reduce *p, unsigned kind, const float *x, int64_t n, float minus)
{
    switch (kind) {
    case SUM_SQUARES: return p->row->sum_squares(x, n);
    case SUM_ABS: return p->row->sum_abs(x, n);
    case PRODUCT: return p->row->product(x, n);
    case MAX: return p->row->max(x, n);
    case MIN: return p->row->min(x, n);
    case SUM_EXP: return p->row->sum_exp(x, n, minus);
    default: return p->row->sum(x, n);
    }
}

/* acc[j] = acc[j] (+) f(x[j]) */
static void across(const lnt_reduce *p, unsigned kind, float *acc, const float *x, const float *minus,
                   int64_t n)
{
    switch (kind) {
    case SUM_SQUARES: p->row->add_squares(acc, x, n); return;
    case SUM_ABS: p->row->add_abs(acc, x, n); return;
    case PRODUCT: p->row->multiply(acc, x, n); return;
    case MAX: p->row->max_to(acc, x, n); return;
    case MIN: p->row->min_to(acc, x, n); return;
    case SUM_EXP: p->row->exp_minus(acc, x, minus, NULL, n); return;
    default: p->row->add(acc, x, n); return;
    }
}

/* What is done to partial results. */
static unsigned joined(unsigned kind)
{
    return kind == PRODUCT || kind == MAX || kind == MIN ? kind : SUM;
}

/* acc[j] = acc[j] (+) part[j] */
static void join(const lnt_reduce *p, unsigned kind, float *acc, const float *part, int64_t n)
{
    across(p, joined(kind), acc, part, NULL, n);
}

/* n elements from element `at` on: in place, or converted into buffer. */
static const float *fetch(const lnt_reduce *p, const void *x, int64_t at, int64_t n, float *buffer)
{
    if (p->dtype == LNT_FLOAT)
        return (const float *)x + at;
    lnt_cells_to_float(p->cells, p->dtype, lnt_element_at(x, p->dtype, at), buffer, n);
    return buffer;
}

static void finish(const lnt_reduce *p, float *acc, int64_t n)
{
    const float count = (float)p->count;
    switch (p->finish) {
    case FINISH_MEAN:
        for (int64_t i = 0; i < n; i++)
            acc[i] /= count;
        return;
    case FINISH_SQRT:
        for (int64_t i = 0; i < n; i++)
            acc[i] = (float)sqrt((double)acc[i]);
        return;
    case FINISH_LOG:
        for (int64_t i = 0; i < n; i++)
            acc[i] = (float)log((double)acc[i]);
        return;
    default: return;
    }
}

/* LogSumExp subtracts the largest element first, 0 if that is infinite. */
static float shift(float largest)
{
    return largest - largest == 0 ? largest : 0;
}

/* Everything that falls into the output whose first element is `base`; the innermost axis is reduced. */
static float reduce_rows(const lnt_reduce *p, const void *x, int64_t base, unsigned kind, float minus)
{
    float buffer[BLOCK], acc = of_nothing(kind);
    const int64_t step = p->dtype == LNT_FLOAT ? p->inner : BLOCK;
    for (int64_t r = 0; r < p->n_outer_reduced; r++) {
        const int64_t row = base + lnt_axes_offset(&p->reduced, r);
        for (int64_t i = 0; i < p->inner; i += step) {
            const int64_t n = p->inner - i < step ? p->inner - i : step;
            const float part = along(p, kind, fetch(p, x, row + i, n, buffer), n, minus);
            join(p, kind, &acc, &part, 1);
        }
    }
    return acc;
}

/* One output: LogSumExp takes its rows twice, and is its largest element where that is not finite. */
static float reduce_one(const lnt_reduce *p, const void *x, int64_t base)
{
    float largest = 0, minus = 0;
    if (p->kind == SUM_EXP) {
        largest = reduce_rows(p, x, base, MAX, 0);
        minus = shift(largest);
        if (largest != minus)
            return largest;
    }
    float acc = reduce_rows(p, x, base, p->kind, minus);
    finish(p, &acc, 1);
    return acc + minus;
}

static lnt_status task_along(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_reduce_job *j = arg;
    const lnt_reduce *p = j->p;
    (void)k, (void)thread;
    /* The usual case: one row of the native type for each output. */
    if (p->dtype == LNT_FLOAT && p->count == p->inner && p->kind != SUM_EXP) {
        float *y = j->y;
        for (int64_t o = begin; o < end; o++)
            y[o] = along(p, p->kind, (const float *)j->x + lnt_axes_offset(&p->kept, o), p->inner, 0);
        finish(p, y + begin, end - begin);
        return LNT_OK;
    }
    for (int64_t o = begin; o < end; o++) {
        const float acc = reduce_one(p, j->x, lnt_axes_offset(&p->kept, o));
        lnt_cells_from_float(p->cells, p->dtype, &acc, lnt_element_at(j->y, p->dtype, o), 1);
    }
    return LNT_OK;
}

/* Rows on their way into an accumulator, which is the first of them as soon as there is something in it: taken together
 * it is loaded and stored once. */
typedef struct bundle {
    const float *row[ROWS_AT_ONCE + 1];
    int64_t n;
} bundle;

static void flush(const lnt_reduce *p, unsigned kind, bundle *b, float *acc, int64_t width)
{
    if (b->n > 1 || (b->n == 1 && b->row[0] != acc))
        (kind == MAX ? p->row->max_rows : p->row->sum_rows)(b->row, b->n, acc, width);
    b->row[0] = acc;
    b->n = 1;
}

/* acc of `fold` times n columns to n: at once where that many are a bundle, else halves at a time. */
static void fold_up(const lnt_reduce *p, unsigned kind, float *acc, int64_t fold, int64_t n)
{
    if (fold > 1 && fold <= ROWS_AT_ONCE && (joined(kind) == SUM || kind == MAX)) {
        const float *parts[ROWS_AT_ONCE];
        for (int64_t i = 0; i < fold; i++)
            parts[i] = acc + i * n;
        (kind == MAX ? p->row->max_rows : p->row->sum_rows)(parts, fold, acc, n);
        return;
    }
    for (int64_t left = fold, half; left > 1; left -= half) {
        half = left / 2;
        join(p, kind, acc, acc + (left - half) * n, half * n);
    }
}

/* Columns [base, base + n) of all rows into acc[0..n); the innermost axis is kept. Where rows are short,
 * several (p->fold) are taken as one and joined at the end: acc has room for n * fold. */
static void reduce_columns(const lnt_reduce *p, const void *x, int64_t base, int64_t n, unsigned kind,
                           float *acc, const float *minus)
{
    float buffer[BLOCK];
    const int64_t fold = p->fold, rows = p->rows;
    const bool together = p->dtype == LNT_FLOAT && (kind == SUM || kind == MAX);
    bool empty = p->count > 0 && joined(kind) == kind; /* the first row is as well what it is joined with */
    bundle rows_in = {.n = 0};
    if (!empty)
        lnt_fill(acc, n * fold, &(float){of_nothing(kind)}, sizeof *acc);
    for (int64_t r = 0; r < p->n_outer_reduced; r++) {
        const int64_t first = base + lnt_axes_offset(&p->reduced, r);
        for (int64_t i = 0; i < rows; i += fold) {
            const int64_t width = n * (rows - i < fold ? rows - i : fold);
            const float *row = fetch(p, x, first + i * p->inner, width, empty ? acc : buffer);
            const bool whole = together && width == n * fold;
            if (rows_in.n > (whole || rows_in.row[0] == acc ? ROWS_AT_ONCE : 0))
                flush(p, kind, &rows_in, acc, n * fold);
            if (whole)
                rows_in.row[rows_in.n++] = row;
            else if (!empty)
                across(p, kind, acc, row, minus, width);
            else if (row != acc)
                memcpy(acc, row, (size_t)width * sizeof *acc);
            empty = false;
        }
    }
    if (together && p->count > 0)
        flush(p, kind, &rows_in, acc, n * fold);
    fold_up(p, kind, acc, fold, n);
}

/* n results of short rows from element base on, side by side: turned they are columns, in acc behind one another those
 * of the same position in their rows. All that meets the same row is joined with it before. */
static void reduce_turned(const lnt_reduce *p, const void *x, int64_t base, int64_t n, unsigned kind,
                          float *acc, const float *minus)
{
    float buffer[LNT_REDUCE_ROOM], turned[LNT_REDUCE_ROOM];
    lnt_reduce columns = *p;
    columns.inner = n * p->fold;
    const int64_t lines = columns.inner / p->behind, size = lines * p->inner;
    const float *rows = buffer;
    columns.fold = 1;
    if (LNT_TRIMMED || p->n_outer_reduced == 1) {
        rows = fetch(p, x, base, size, buffer);
    } else {
        columns.rows = 1;
        for (int64_t i = 0; kind == SUM_EXP && i < size; i++)
            turned[i] = minus[i % p->inner % p->behind * lines + i / p->inner];
        for (int64_t i = 0; i < size; i += BLOCK)
            reduce_columns(&columns, x, base + i, lnt_least(BLOCK, size - i), kind, buffer + i, turned + i);
        columns.rows = p->rows;
        kind = joined(kind);
    }
    for (int64_t i = 0; p->way == ALONG && i < n; i++)
        acc[i] = along(p, kind, buffer + i * p->inner, p->inner, 0);
    if (p->way == ALONG)
        return;
    columns.dtype = LNT_FLOAT;
    columns.n_outer_reduced = 1;
    lnt_turn_by(p->kernels->turn, turned, lines, rows, p->inner, lines, p->inner, sizeof *turned);
    reduce_columns(&columns, turned, 0, columns.inner, kind, acc, minus);
    fold_up(p, kind, acc, p->fold, n);
}

/* n results from element base on into acc, which has room for a block. */
static void reduce_block(const lnt_reduce *p, const void *x, int64_t base, int64_t n, float *acc)
{
    void (*const reduce)(const lnt_reduce *, const void *, int64_t, int64_t, unsigned, float *,
                         const float *) = p->way == ACROSS ? reduce_columns : reduce_turned;
    float largest[BLOCK], minus[BLOCK];
    if (p->kind == SUM_EXP) {
        reduce(p, x, base, n, MAX, largest, NULL);
        for (int64_t i = 0; i < n * p->fold; i++)
            minus[i] = shift(largest[i % n]);
    }
    reduce(p, x, base, n, p->kind, acc, minus);
    finish(p, acc, n);
    for (int64_t i = 0; p->kind == SUM_EXP && i < n; i++)
        acc[i] = largest[i] == minus[i] ? acc[i] + minus[i] : largest[i];
}

static lnt_status task_across(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_reduce_job *j = arg;
    const lnt_reduce *p = j->p;
    const int64_t blocks = lnt_reduce_blocks(p);
    const bool in_place = p->dtype == LNT_FLOAT && p->fold == 1;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        float buffer[BLOCK];
        const int64_t o = item / blocks, column = item % blocks * p->block;
        const int64_t n = lnt_least(p->block, p->columns - column);
        const int64_t base = lnt_reduce_base(p, o, column);
        void *y = lnt_element_at(j->y, p->dtype, o * p->columns + column);
        reduce_block(p, j->x, base, n, in_place ? y : buffer);
        if (p->dtype != LNT_FLOAT)
            lnt_cells_from_float(p->cells, p->dtype, buffer, y, n);
        else if (!in_place)
            memcpy(y, buffer, (size_t)n * sizeof *buffer);
        lnt_reduce_order(p, y, n);
    }
    return LNT_OK;
}

lnt_task_fn lnt_reduce_float(const lnt_reduce *p)
{
    return p->way == ALONG && p->rows == 1 ? task_along : task_across;
}
