/* trilu.c — Trilu and ReverseSequence: rows kept, cleared or reversed in part. */
#include "ops/data/data.h"

#include <string.h>

/* ---- Trilu ---- */

lnt_status lnt_shape_trilu(lnt_site *site)
{
    if (site->in[0]->rank < 2)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the input must have rank 2 or more, has %u",
                             site->in[0]->rank);
    return lnt_shape_same(site);
}

typedef struct trilu_job {
    const char *src;
    char *dst;
    int64_t rows, columns, size, diagonal;
    bool upper;
} trilu_job;

static lnt_status trilu_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const trilu_job *job = arg;
    for (int64_t r = begin, n; r < end; r += n) {
        /* The upper part begins at column cut, the lower one ends there: rows before the diagonal and those behind it
         * are alike. */
        const int64_t at = r % job->rows;
        int64_t cut = at + job->diagonal + !job->upper;
        n = cut <= 0 ? 1 - cut : cut < job->columns ? 1 : job->rows;
        n = lnt_least(n, lnt_least(job->rows - at, end - r));
        cut = (cut < 0 ? 0 : lnt_least(cut, job->columns)) * job->size * n;
        const int64_t row = job->columns * job->size, all = row * n;
        const int64_t from = job->upper ? cut : 0, to = job->upper ? all : cut;
        const char *src = job->src + r * row;
        char *dst = job->dst + r * row;
        if (dst != src)
            memcpy(dst + from, src + from, (size_t)(to - from));
        memset(job->upper ? dst : dst + to, 0, (size_t)(all - to + from));
    }
    return LNT_OK;
}

static void mask_bytes(char *dst, const char *src, const char *mask, int64_t n)
{
    typedef uint8_t vector __attribute__((vector_size(16), aligned(1), may_alias));
    enum { VECTORS = 2, BYTES = VECTORS * sizeof(vector) };
    int64_t i = 0;
    for (; i + BYTES <= n; i += BYTES)
        _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)((vector *)(dst + i))[j] =
            ((const vector *)(src + i))[j] & ((const vector *)(mask + i))[j];
    for (; i < n; i++)
        dst[i] = src[i] & mask[i];
}

/* Masks of up to NEAR bytes leave room in the first-level cache for what passes it. */
enum { MASK = 10240, NEAR = 4096, FEW = 4 };

/* Small matrices: what is kept of the first is a mask for all, several at a time. */
static lnt_status trilu_matrices(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const trilu_job *job = arg;
    const int64_t matrix = job->rows * job->columns * job->size, last = end * matrix;
    char mask[MASK];
    trilu_job first = *job;
    first.src = first.dst = mask;
    memset(mask, UINT8_MAX, (size_t)matrix);
    trilu_rows(k, &first, 0, job->rows, thread);
    const int64_t n = lnt_least(NEAR / matrix + 1, end - begin), bytes = n * matrix;
    lnt_repeat_bytes(mask, mask, matrix, n);
    for (int64_t at = begin * matrix; at < last; at += bytes)
        mask_bytes(job->dst + at, job->src + at, mask, lnt_least(bytes, last - at));
    return LNT_OK;
}

static lnt_status run_trilu(lnt_kernel *k, const lnt_step *s)
{
    const lnt_operand *in = s->in[0];
    const int64_t *diagonal = lnt_in(k, s, 1);
    trilu_job job = {.src = lnt_in(k, s, 0), .dst = lnt_out(k, s, 0)};
    job.rows = in->dims[in->rank - 2];
    job.columns = in->dims[in->rank - 1];
    job.size = (int64_t)lnt_element_size(in);
    job.upper = *(const bool *)s->params;
    if (diagonal) { /* beyond these bounds nothing changes, and nothing overflows */
        const int64_t least = -job.rows - 1, most = job.columns + 1;
        job.diagonal = *diagonal < least ? least : *diagonal > most ? most : *diagonal;
    }
    const int64_t row = job.columns * job.size, matrix = row * job.rows,
                  matrices = lnt_extent(in, 0, in->rank - 2u);
    if (matrix > 0 && matrix <= MASK && matrices >= FEW)
        return lnt_parallel(k, matrices, lnt_grain(matrix), trilu_matrices, &job);
    return lnt_parallel(k, matrices * job.rows, lnt_grain(row), trilu_rows, &job);
}

lnt_status lnt_bind_trilu(lnt_site *site)
{
    const lnt_operand *diagonal = lnt_input(site, 1);
    bool *upper = lnt_bind_params(site, sizeof *upper);
    if (!upper)
        return LNT_E_MEMORY;
    if (diagonal && (diagonal->dtype != LNT_INT64 || lnt_operand_count(diagonal) != 1))
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "k must be one int64");
    *upper = lnt_attr_i(site->node, "upper", 1) != 0;
    lnt_bind_in_place(site, 0, 0);
    site->step->run = run_trilu;
    return LNT_OK;
}

/* ---- ReverseSequence ---- */

lnt_status lnt_shape_reverse_sequence(lnt_site *site)
{
    const int64_t batch = lnt_attr_i(site->node, "batch_axis", 1),
                  time = lnt_attr_i(site->node, "time_axis", 0);
    if (site->in[0]->rank < 2 || batch < 0 || batch > 1 || time != 1 - batch)
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "batch and time must be axes 0 and 1, are %lld and %lld",
                             (long long)batch, (long long)time);
    return lnt_shape_same(site);
}

typedef struct reverse_job {
    const char *src;
    char *dst;
    const int64_t *lengths;
    int64_t columns, slice; /* extent of axis 1; bytes behind it */
    bool batch_first;
} reverse_job;

static lnt_status reverse_slices(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const reverse_job *job = arg;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item / job->columns, column = item % job->columns;
        const int64_t time = job->batch_first ? column : row;
        const int64_t length = job->lengths[job->batch_first ? row : column];
        const int64_t shift = time < length ? length - 1 - 2 * time : 0;
        const int64_t from = item + shift * (job->batch_first ? 1 : job->columns);
        memcpy(job->dst + item * job->slice, job->src + from * job->slice, (size_t)job->slice);
    }
    return LNT_OK;
}

static lnt_status run_reverse_sequence(lnt_kernel *k, const lnt_step *s)
{
    const lnt_operand *in = s->in[0];
    reverse_job job = {lnt_in(k, s, 0),         lnt_out(k, s, 0), lnt_in(k, s, 1), in->dims[1], 0,
                       *(const bool *)s->params};
    job.slice = lnt_extent(in, 2, in->rank) * (int64_t)lnt_element_size(in);
    const int64_t longest = in->dims[job.batch_first];
    for (int64_t i = 0; i < s->in[1]->dims[0]; i++)
        if (job.lengths[i] < 0 || job.lengths[i] > longest)
            return lnt_fail(k->err, LNT_E_VALUE, "element %lld of sequence_lens is %lld, of at most %lld",
                            (long long)i, (long long)job.lengths[i], (long long)longest);
    if (job.slice == 0)
        return LNT_OK;
    return lnt_parallel(k, in->dims[0] * in->dims[1], lnt_grain(job.slice), reverse_slices, &job);
}

lnt_status lnt_bind_reverse_sequence(lnt_site *site)
{
    const lnt_operand *lengths = site->in[1];
    bool *batch_first = lnt_bind_params(site, sizeof *batch_first);
    if (!batch_first)
        return LNT_E_MEMORY;
    *batch_first = lnt_attr_i(site->node, "batch_axis", 1) == 0;
    if (lengths->dtype != LNT_INT64 || lengths->rank != 1 ||
        lengths->dims[0] != site->in[0]->dims[!*batch_first])
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "sequence_lens must be one int64 per batch");
    site->step->run = run_reverse_sequence;
    return LNT_OK;
}
