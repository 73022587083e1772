/* cumulative.c — CumSum and CumProd: running sums and products along an axis. */
#include "base/checked.h"
#include "ops/data/data.h"
#include "ops/elementwise/typed_kernels.h"
#include "ops/number.h"
#include "ops/rows/row.h"

#include <string.h>

/* Neighboring columns run along the axis together: up to COLUMNS, and where threads share them at least
 * FEW, so that memory is still read in long pieces. */
enum { COLUMNS = 2048, FEW = 256, FEW_COLUMNS = 16 /* no vectors' worth */ };

/* Rows along the axis are turned into columns, so many elements of so many rows at a time. */
enum { TURNED_ROWS = 16, TURNED_STEPS = 64 };

typedef struct walk {
    int64_t n, step; /* elements along the axis; distance between them, negative for reverse */
    int64_t columns; /* neighbors, at most COLUMNS */
    bool exclusive;
} walk;

typedef void (*cumulate_fn)(const walk *w, const void *src, void *dst);

#define CUMULATE(NAME, DT, T, C, load, store, start, OP)                                                     \
    static void NAME##_##DT(const walk *w, const void *src, void *dst)                                       \
    {                                                                                                        \
        C sum[COLUMNS];                                                                                      \
        const T *x = src;                                                                                    \
        T *y = dst;                                                                                          \
        for (int64_t c = 0; c < w->columns; c++)                                                             \
            sum[c] = start;                                                                                  \
        for (int64_t i = w->n; i > 0; i--, x += w->step, y += w->step)                                       \
            for (int64_t c = 0; c < w->columns; c++) {                                                       \
                const C next = sum[c] OP load(x[c]);                                                         \
                y[c] = store((w->exclusive ? sum[c] : next));                                                \
                sum[c] = next;                                                                               \
            }                                                                                                \
    }
#define X(DT, T, C, load, store, comparable)                                                                 \
    CUMULATE(sum, DT, T, C, load, store, 0, +)                                                               \
    CUMULATE(product, DT, T, C, load, store, 1, *)
LNT_NUMBER_LIST(X)
#undef X

typedef struct cumulative_params {
    cumulate_fn run;
    lnt_typed_fn
        loop; /* a row of results and one of the input to the next row, where that needs no more; or */
    const lnt_row_kernels *row; /* the same for sums of floats */
    bool exclusive, reverse;
} cumulative_params;

typedef struct cumulative_job {
    const cumulative_params *p;
    const char *src;
    char *dst;
    int64_t n, inner, size; /* extent, elements behind the axis, bytes of one */
    int64_t rows;           /* elements before the axis */
    int64_t width, blocks;  /* columns at once, and how often that is */
} cumulative_job;

/* Row by row at the level's speed. False: w is not of that kind. */
static bool cumulate_rows(const cumulative_params *p, const walk *w, int64_t size, const char *src, char *dst)
{
    if (w->exclusive || w->columns < FEW_COLUMNS || (!p->loop && !p->row))
        return false;
    const int64_t step = w->step * size;
    if (dst != src)
        memcpy(dst, src, (size_t)(w->columns * size));
    for (int64_t i = 1; i < w->n; i++) {
        const char *before = dst;
        src += step;
        dst += step;
        if (p->loop)
            p->loop(&(lnt_typed_args){.out = dst, .in = {before, src}, .n = w->columns});
        else
            p->row->blend((const float *)(const void *)before, 1, (const float *)(const void *)src, 1,
                          (float *)(void *)dst, w->columns);
    }
    return true;
}

/* TURNED_ROWS rows of job->n elements, side by side. */
static void cumulate_turned(const cumulative_job *job, const char *src, char *dst)
{
    _Alignas(16) char room[(1 + TURNED_STEPS) * TURNED_ROWS * sizeof(int64_t)],
        last[TURNED_ROWS * sizeof(int64_t)];
    const int64_t size = job->size, row = TURNED_ROWS * size;
    const bool reverse = job->p->reverse;
    for (int64_t done = 0; done < job->n; done += TURNED_STEPS) {
        const int64_t n = lnt_least(TURNED_STEPS, job->n - done), at = reverse ? job->n - done - n : done;
        char *turned = reverse ? room : room + row, *first = reverse ? turned + (n - 1) * row : turned;
        const walk w = {n + (done > 0), reverse ? -TURNED_ROWS : TURNED_ROWS, TURNED_ROWS, false};
        lnt_turn(turned, TURNED_ROWS, src + at * size, job->n, TURNED_ROWS, n, (size_t)size);
        if (done > 0) { /* what the piece before ended with stands before this one */
            first -= w.step * size;
            memcpy(first, last, (size_t)row);
        }
        cumulate_rows(job->p, &w, size, first, first);
        memcpy(last, reverse ? turned : turned + (n - 1) * row, (size_t)row);
        lnt_turn(dst + at * size, job->n, turned, TURNED_ROWS, n, TURNED_ROWS, (size_t)size);
    }
}

static lnt_status cumulate_row_blocks(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const cumulative_job *job = arg;
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item * TURNED_ROWS, rows = lnt_least(TURNED_ROWS, job->rows - first);
        const char *src = job->src + first * job->n * job->size;
        char *dst = job->dst + first * job->n * job->size;
        if (rows == TURNED_ROWS) {
            cumulate_turned(job, src, dst);
            continue;
        }
        for (int64_t r = 0; r < rows; r++) {
            const int64_t at = (r * job->n + (job->p->reverse ? job->n - 1 : 0)) * job->size;
            job->p->run(&(walk){job->n, job->p->reverse ? -1 : 1, 1, false}, src + at, dst + at);
        }
    }
    return LNT_OK;
}

static lnt_status cumulate_blocks(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const cumulative_job *job = arg;
    for (int64_t item = begin; item < end; item++) {
        const int64_t column = item % job->blocks * job->width, left = job->inner - column;
        int64_t first = item / job->blocks * job->n * job->inner + column;
        walk w = {job->n, job->inner, left < job->width ? left : job->width, job->p->exclusive};
        if (job->p->reverse) {
            first += (job->n - 1) * job->inner;
            w.step = -w.step;
        }
        const char *src = job->src + first * job->size;
        char *dst = job->dst + first * job->size;
        if (!cumulate_rows(job->p, &w, job->size, src, dst))
            job->p->run(&w, src, dst);
    }
    return LNT_OK;
}

static lnt_status run_cumulative(lnt_kernel *k, const lnt_step *s)
{
    const lnt_operand *in = s->in[0];
    int64_t axis = lnt_index_at(lnt_in(k, s, 1), s->in[1]->dtype == LNT_INT64, 0);
    if (!lnt_wrap_index(&axis, in->rank))
        return lnt_fail(k->err, LNT_E_VALUE, "axis %lld is outside a tensor of rank %u", (long long)axis,
                        in->rank);
    if (lnt_operand_count(in) == 0)
        return LNT_OK;
    cumulative_job job = {.p = s->params, .src = lnt_in(k, s, 0), .dst = lnt_out(k, s, 0)};
    job.n = in->dims[axis];
    job.inner = lnt_extent(in, (unsigned)axis + 1, in->rank);
    job.size = (int64_t)lnt_element_size(in);
    job.rows = lnt_extent(in, 0, (unsigned)axis);
    if (job.inner == 1 && !job.p->exclusive && (job.p->loop || job.p->row))
        return lnt_parallel(k, (job.rows + TURNED_ROWS - 1) / TURNED_ROWS,
                            lnt_grain(job.n * TURNED_ROWS * job.size), cumulate_row_blocks, &job);
    const int64_t share = (job.inner + k->threads - 1) / k->threads;
    job.width = share < FEW ? FEW : share < COLUMNS ? share : COLUMNS;
    job.width = job.width < job.inner ? job.width : job.inner;
    job.blocks = (job.inner + job.width - 1) / job.width;
    return lnt_parallel(k, job.rows * job.blocks, lnt_grain(job.n * job.width * job.size), cumulate_blocks,
                        &job);
}

static lnt_status bind_cumulative(lnt_site *site, cumulate_fn run, lnt_typed_row row)
{
    const lnt_dtype dtype = (lnt_dtype)site->in[0]->dtype;
    const lnt_operand *axis = site->in[1];
    if (!run)
        return lnt_bind_unsupported_type(site, dtype);
    if (!lnt_is_index_type(axis) || lnt_operand_count(axis) != 1)
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "axis must be one int32 or int64");
    cumulative_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->run = run;
    p->loop = dtype == LNT_FLOAT ? NULL : site->kernels->typed->loop[row][dtype];
    p->row = dtype == LNT_FLOAT && row == LNT_TYPED_Add ? site->kernels->row : NULL;
    p->exclusive = lnt_attr_i(site->node, "exclusive", 0) != 0;
    p->reverse = lnt_attr_i(site->node, "reverse", 0) != 0;
    lnt_bind_in_place(site, 0, 0);
    site->step->run = run_cumulative;
    return LNT_OK;
}

lnt_status lnt_bind_cum_sum(lnt_site *site)
{
    switch (site->in[0]->dtype) {
#define X(DT, T, C, load, store, comparable)                                                                 \
    case LNT_##DT: return bind_cumulative(site, sum_##DT, LNT_TYPED_Add);
        LNT_NUMBER_LIST(X)
#undef X
    default: return bind_cumulative(site, NULL, LNT_TYPED_NONE);
    }
}

lnt_status lnt_bind_cum_prod(lnt_site *site)
{
    switch (site->in[0]->dtype) {
#define X(DT, T, C, load, store, comparable)                                                                 \
    case LNT_##DT: return bind_cumulative(site, product_##DT, LNT_TYPED_Mul);
        LNT_NUMBER_LIST(X)
#undef X
    default: return bind_cumulative(site, NULL, LNT_TYPED_NONE);
    }
}
