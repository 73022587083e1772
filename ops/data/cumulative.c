/* cumulative.c — CumSum and CumProd: running sums and products along an axis. */
#include "base/lnt_assert.h"
#include "ops/copy.h"
#include "ops/data/data.h"
#include "ops/elementwise/program_kernels.h"
#include "ops/elementwise/typed_kernels.h"
#include "ops/number.h"
#include "ops/rows/row.h"
#include "ops/widen.h"

#include <string.h>

/* Neighboring columns run along the axis together: up to COLUMNS, and where threads share them at least
 * FEW, so that memory is still read in long pieces; from caches, which x86 fills ahead within a page, pieces are
 * pages, or one thread would ask for what another is writing. Along the innermost axis so many sequences are an item of
 * work. Columns that are done one by one are so many at once, as a sum waits for the one before. */
enum {
    COLUMNS = 2048,
    FEW = 256,
    FEW_COLUMNS = 16,
    FEW_BYTES = 64 /* no vectors' worth */,
    FEW_STRIPS = 256, /* bytes of a row beyond which it is read in one piece */
    SEQUENCES = 16,
    ABREAST = 4
};
#if defined(__x86_64__)
enum { PAGE = 4096, NEAR = 1024 * 1024 /* bytes */ };
#else
enum { PAGE = 0, NEAR = 0 };
#endif

typedef struct walk {
    int64_t n, step; /* elements along the axis; distance between them, negative for reverse */
    int64_t columns; /* at most COLUMNS */
    int64_t apart;   /* distance between them */
    bool exclusive;
} walk;

typedef void (*cumulate_fn)(const walk *w, const void *src, void *dst);

/* Sums of columns that fill vectors; how many columns those are, or more. As many as the registers hold go together,
 * or one; the last ones begin early enough, but where sums take the place of elements. */
#define CUMULATE_STRIPS(T)                                                                                   \
    static inline                                                                                            \
        __attribute__((always_inline)) void some_strips_##T(const walk *w, const T *x, T *y, int some)       \
    {                                                                                                        \
        typedef T strip __attribute__((vector_size(16)));                                                    \
        const int64_t lanes = sizeof(strip) / sizeof(T), first = w->exclusive;                               \
        strip sum[ABREAST], next;                                                                            \
        _Pragma("GCC unroll 4") for (int j = 0; j < some; j++)                                               \
        {                                                                                                    \
            sum[j] = first ? (strip){0} : -(strip){0};                                                       \
            if (first)                                                                                       \
                memcpy(y + j * lanes, &sum[j], sizeof next);                                                 \
        }                                                                                                    \
        y += first * w->step;                                                                                \
        for (int64_t i = w->n - first; i > 0; i--, x += w->step, y += w->step) {                             \
            _Pragma("GCC unroll 4") for (int j = 0; j < some; j++)                                           \
            {                                                                                                \
                memcpy(&next, x + j * lanes, sizeof next);                                                   \
                sum[j] += next;                                                                              \
                memcpy(y + j * lanes, &sum[j], sizeof next);                                                 \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static int64_t sum_strips_##T(const walk *w, const void *src, void *dst)                                 \
    {                                                                                                        \
        const int64_t lanes = 16 / sizeof(T), many = ABREAST * lanes, n = w->columns;                        \
        const bool early = dst != src;                                                                       \
        int64_t c = 0;                                                                                       \
        for (; n >= many && c < (early ? n : n - many + 1); c += many) {                                     \
            const int64_t at = lnt_least(c, n - many);                                                       \
            some_strips_##T(w, (const T *)src + at, (T *)dst + at, ABREAST);                                 \
        }                                                                                                    \
        for (; n >= lanes && c < (early ? n : n - lanes + 1); c += lanes) {                                  \
            const int64_t at = lnt_least(c, n - lanes);                                                      \
            some_strips_##T(w, (const T *)src + at, (T *)dst + at, 1);                                       \
        }                                                                                                    \
        return c;                                                                                            \
    }
CUMULATE_STRIPS(float)
CUMULATE_STRIPS(double)
CUMULATE_STRIPS(uint32_t)
CUMULATE_STRIPS(uint64_t)

/* start: an exclusive result of nothing; none: what leaves any element as it is, -0 too; strips: columns that are done
 * in vectors; abreast: others that are so at once. */
#define CUMULATE(NAME, DT, T, C, load, store, start, none, OP, strips, abreast)                              \
    static inline                                                                                            \
        __attribute__((always_inline)) void NAME##_some_##DT(const walk *w, const T *x, T *y, int64_t some)  \
    {                                                                                                        \
        const int64_t step = w->step, apart = w->apart, first = w->exclusive;                                \
        C sum[ABREAST];                                                                                      \
        _Pragma("GCC unroll 4") for (int64_t c = 0; c < some; c++)                                           \
        {                                                                                                    \
            sum[c] = first ? (C)start : (C)none;                                                             \
            if (first)                                                                                       \
                y[c * apart] = store(sum[c]);                                                                \
        }                                                                                                    \
        y += first * step;                                                                                   \
        for (int64_t i = w->n - first; i > 0; i--, x += step, y += step) {                                   \
            _Pragma("GCC unroll 4") for (int64_t c = 0; c < some; c++)                                       \
            {                                                                                                \
                sum[c] = sum[c] OP load(x[c * apart]);                                                       \
                y[c * apart] = store(sum[c]);                                                                \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void NAME##_##DT(const walk *w, const void *src, void *dst)                                       \
    {                                                                                                        \
        int64_t c = w->apart == 1 ? strips : 0;                                                              \
        for (; abreast > 1 && c + abreast <= w->columns; c += abreast)                                       \
            NAME##_some_##DT(w, (const T *)src + c * w->apart, (T *)dst + c * w->apart, abreast);            \
        for (; c < w->columns; c++)                                                                          \
            NAME##_some_##DT(w, (const T *)src + c * w->apart, (T *)dst + c * w->apart, 1);                  \
    }
#define STRIPS_FLOAT sum_strips_float(w, src, dst)
#define STRIPS_DOUBLE sum_strips_double(w, src, dst)
#define STRIPS_UINT8 0
#define STRIPS_UINT16 0
#define STRIPS_UINT32 sum_strips_uint32_t(w, src, dst)
#define STRIPS_UINT64 sum_strips_uint64_t(w, src, dst)
#define X(DT, T, C, load, store, comparable)                                                                 \
    CUMULATE(sum, DT, T, C, load, store, 0, -0.0, +, STRIPS_##DT, (sizeof(T) < 4 ? 1 : ABREAST))             \
    CUMULATE(product, DT, T, C, load, store, 1, 1, *, 0, 1)
LNT_WRAPPING_LIST(X)
#undef X

typedef struct cumulative_params {
    cumulate_fn run;
    lnt_typed_fn loop;          /* a row of results and one of the input to the next row; or */
    const lnt_row_kernels *row; /* the same of floats */
    bool product, exclusive, reverse;
    bool strips;   /* columns are run in vectors */
    int64_t start; /* an exclusive result of nothing, of the type */
} cumulative_params;

typedef struct cumulative_job {
    const cumulative_params *p;
    const char *src;
    char *dst;
    int64_t n, inner, size;       /* extent, elements behind the axis, bytes of one */
    int64_t width, blocks, outer; /* columns at once, and how often that is; positions before the axis */
} cumulative_job;

/* out = in[0] OP in[1] at the level's speed; out may be in[1]. */
static void combine(const cumulative_params *p, const lnt_typed_args *a)
{
    if (p->loop) {
        p->loop(a);
    } else if (p->product) {
        if (a->out != a->in[1])
            memcpy(a->out, a->in[1], (size_t)a->n * sizeof(float));
        p->row->multiply(a->out, a->in[0], a->n);
    } else {
        /* What a mask has stored is not read back before it is in the cache. */
        const int64_t whole = LNT_LONG_VECTORS ? a->n & -16 : a->n;
        const float *x = a->in[0], *y = a->in[1];
        float *out = a->out;
        if (whole > 0)
            p->row->blend(x, 1, y, 1, out, whole);
        for (int64_t i = whole; i < a->n; i++)
            out[i] = x[i] + y[i];
    }
}

/* Row by row; where it is exclusive dst is not src. */
static __attribute__((noinline)) void cumulate_rows(const cumulative_params *p, const walk *w, int64_t size,
                                                    const char *src, char *dst)
{
    const int64_t step = w->step * size;
    lnt_typed_args row = {.n = w->columns};
    if (w->exclusive)
        lnt_fill(dst, w->columns, &p->start, (size_t)size);
    else if (dst != src)
        memcpy(dst, src, (size_t)(w->columns * size));
    for (int64_t i = 1; i < w->n; i++) {
        const char *next = src + step;
        row.in[0] = dst;
        row.in[1] = w->exclusive ? src : next;
        row.out = dst += step;
        combine(p, &row);
        src = next;
    }
}

/* Columns side by side, or sequences along the innermost axis. */
static void cumulate_block(const cumulative_job *job, int64_t item)
{
    const cumulative_params *p = job->p;
    const int64_t column = item % job->blocks * job->width;
    int64_t first = item / job->blocks * job->n * job->inner + column;
    walk w = {job->n, job->inner, lnt_least(job->inner - column, job->width), 1, p->exclusive};
    if (job->inner == 1) {
        first = item * SEQUENCES * job->n;
        w.columns = lnt_least(job->outer - item * SEQUENCES, SEQUENCES);
        w.apart = job->n;
    }
    if (p->reverse) {
        first += (job->n - 1) * job->inner;
        w.step = -w.step;
    }
    const char *src = job->src + first * job->size;
    char *dst = job->dst + first * job->size;
    const int64_t few = p->strips ? FEW_STRIPS : FEW_BYTES;
    if (job->inner > 1 && ((!p->strips && w.columns >= FEW_COLUMNS) || w.columns * job->size >= few))
        cumulate_rows(p, &w, job->size, src, dst);
    else
        p->run(&w, src, dst);
}

static lnt_status cumulate_blocks(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    for (int64_t item = begin; item < end; item++)
        cumulate_block(arg, item);
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
    job.outer = lnt_extent(in, 0, (unsigned)axis);
    if (job.n == 1) { /* all are columns */
        job.inner *= job.outer;
        job.outer = 1;
    }
    job.size = (int64_t)lnt_element_size(in);
    const int64_t share = (job.inner + k->threads - 1) / k->threads;
    const bool whole = share * job.size < PAGE && job.n * job.inner * job.size <= NEAR;
    job.width = share < FEW ? FEW : share < COLUMNS && !whole ? share : COLUMNS;
    job.width = job.width < job.inner ? job.width : job.inner;
    job.blocks = (job.inner + job.width - 1) / job.width;
    const int64_t together = job.inner == 1 ? SEQUENCES : 1;
    return lnt_parallel(k, (job.outer * job.blocks + together - 1) / together,
                        lnt_grain(job.n * job.width * job.size * together), cumulate_blocks, &job);
}

/* Halves are widened. */
static lnt_dtype computed_type(unsigned dtype)
{
    return dtype == LNT_FLOAT16 || dtype == LNT_BFLOAT16 ? LNT_FLOAT : (lnt_dtype)dtype;
}

/* NULL: there is none. */
static cumulate_fn cumulate_of(lnt_dtype dtype, bool product)
{
    switch (lnt_wrapping_type(dtype)) {
#define X(DT, T, C, load, store, comparable)                                                                 \
    case LNT_##DT: return LNT_HAS_CumProd && product ? product_##DT : sum_##DT;
        LNT_WRAPPING_LIST(X)
#undef X
    default: return NULL;
    }
}

static lnt_status bind_cumulative(lnt_site *site, lnt_typed_row row)
{
    const lnt_dtype dtype = computed_type(site->in[0]->dtype);
    const cumulate_fn run = cumulate_of(dtype, row == LNT_TYPED_Mul);
    const lnt_operand *axis = site->in[1];
    if (!run)
        return lnt_bind_unsupported_type(site, site->in[0]->dtype);
    if (!lnt_is_index_type(axis) || lnt_operand_count(axis) != 1)
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "axis must be one int32 or int64");
    cumulative_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->run = run;
    p->loop = dtype == LNT_FLOAT ? NULL : site->kernels->typed->loop[row][dtype];
    p->row = site->kernels->row;
    p->product = row == LNT_TYPED_Mul;
    p->strips = !p->product && lnt_dtype_size(dtype) >= 4;
    p->exclusive = lnt_attr_i(site->node, "exclusive", 0) != 0;
    p->reverse = lnt_attr_i(site->node, "reverse", 0) != 0;
    run(&(walk){1, 0, 1, 1, true}, &p->start, &p->start);
    if (!p->exclusive)
        lnt_bind_in_place(site, 0, 0);
    site->step->run = run_cumulative;
    return dtype == LNT_FLOAT ? lnt_bind_widened(site, 1, 1) : LNT_OK;
}

lnt_status lnt_bind_cum_sum(lnt_site *site)
{
    return bind_cumulative(site, LNT_TYPED_Add);
}

lnt_status lnt_bind_cum_prod(lnt_site *site)
{
    return bind_cumulative(site, LNT_TYPED_Mul);
}
