/* topk.c — TopK: the k first elements along an axis, ties by lowest index. */
#include "base/checked.h"
#include "ops/data.h"
#include "ops/order.h"

#include <string.h>

lnt_status lnt_shape_top_k(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    int64_t dims[LNT_MAX_RANK], k = LNT_DIM_UNKNOWN;
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", -1), in->rank, &axis));
    const lnt_status status = lnt_value_int(site, 1, LNT_DIM_UNKNOWN, &k);
    if (status != LNT_OK && status != LNT_UNKNOWN)
        return status;
    if (status == LNT_OK && (k < 0 || (in->dims[axis] >= 0 && k > in->dims[axis])))
        return LNT_SITE_FAIL(site, LNT_E_VALUE, "K is %lld for an axis of extent %lld", (long long)k,
                             (long long)in->dims[axis]);
    for (unsigned i = 0; i < in->rank; i++)
        dims[i] = i == axis ? k : in->dims[i];
    lnt_set_dims(site, 0, in->rank, dims);
    lnt_set_dims(site, 1, in->rank, dims);
    return status;
}

/* The smaller entry comes first in the output. */
typedef struct entry {
    uint64_t key;
    int64_t index;
} entry;

static inline bool before(entry a, entry b)
{
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

/* Restores the heap (largest entry at the root) below i. */
static void sift_down(entry *heap, int64_t n, int64_t i)
{
    const entry moved = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(heap[child], heap[child + 1]))
            child++;
        if (!before(moved, heap[child]))
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

static void sort_heap(entry *heap, int64_t n)
{
    for (int64_t end = n - 1; end > 0; end--) {
        const entry last = heap[0];
        heap[0] = heap[end];
        heap[end] = last;
        sift_down(heap, end, 0);
    }
}

/* The first of elements [i, n), step apart, that may come before element root: none that is skipped does. */
typedef int64_t (*find_fn)(const void *data, int64_t step, int64_t i, int64_t n, int64_t root, bool largest);

#define X(DT, T, C, load, store, comparable)                                                                 \
    static int64_t find_##DT(const void *data, int64_t step, int64_t i, int64_t n, int64_t root,             \
                             bool largest)                                                                   \
    {                                                                                                        \
        const T *x = data;                                                                                   \
        const T limit = x[root * step];                                                                      \
        if (largest)                                                                                         \
            while (i < n && comparable(x[i * step]) <= comparable(limit))                                    \
                i++;                                                                                         \
        else                                                                                                 \
            while (i < n && comparable(x[i * step]) >= comparable(limit))                                    \
                i++;                                                                                         \
        return i;                                                                                            \
    }
LNT_NUMBER_LIST(X)
#undef X

static find_fn find_of(lnt_dtype dtype)
{
    switch (dtype) {
#define X(DT, T, C, load, store, comparable)                                                                 \
    case LNT_##DT: return find_##DT;
        LNT_NUMBER_LIST(X)
#undef X
    default: return NULL;
    }
}

typedef struct topk_params {
    lnt_dtype dtype;
    find_fn find;
    int64_t n, k, inner, size, scratch; /* bytes of one thread's heap */
    uint64_t flip;                      /* all ones for the largest */
} topk_params;

typedef struct topk_job {
    const topk_params *p;
    const char *src;
    char *values;
    int64_t *indices;
    char *scratch;
} topk_job;

/* The first k entries of n elements `step` apart, in order. */
static void select_first(const topk_params *p, const char *src, int64_t first, entry *heap)
{
    int64_t i = 0;
    for (; i < p->k; i++)
        heap[i] = (entry){lnt_order_key(p->dtype, src, first + i * p->inner) ^ p->flip, i};
    for (int64_t root = p->k / 2; root-- > 0;)
        sift_down(heap, p->k, root);
    const void *data = src + first * p->size;
    for (; (i = p->find(data, p->inner, i, p->n, heap[0].index, p->flip != 0)) < p->n; i++) {
        const uint64_t key = lnt_order_key(p->dtype, data, i * p->inner) ^ p->flip;
        if (key < heap[0].key) {
            heap[0] = (entry){key, i};
            sift_down(heap, p->k, 0);
        }
    }
    sort_heap(heap, p->k);
}

static lnt_status topk_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    const topk_job *job = arg;
    const topk_params *p = job->p;
    entry *heap = (entry *)(void *)(job->scratch + thread * p->scratch);
    for (int64_t r = begin; r < end; r++) {
        const int64_t outer = r / p->inner, column = r % p->inner;
        const int64_t from = outer * p->n * p->inner + column, to = outer * p->k * p->inner + column;
        select_first(p, job->src, from, heap);
        for (int64_t i = 0; i < p->k; i++) {
            const int64_t at = to + i * p->inner;
            if (job->values)
                memcpy(job->values + at * p->size, job->src + (from + heap[i].index * p->inner) * p->size,
                       (size_t)p->size);
            if (job->indices)
                job->indices[at] = heap[i].index;
        }
    }
    return LNT_OK;
}

static lnt_status run_top_k(lnt_kernel *k, const lnt_step *s)
{
    const topk_params *p = s->params;
    topk_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0), lnt_out(k, s, 1), lnt_scratch(k, s)};
    const int64_t count = lnt_operand_count(s->in[0]);
    if (count == 0 || p->k == 0)
        return LNT_OK;
    return lnt_parallel(k, count / p->n, lnt_grain(p->n * 8), topk_rows, &job);
}

lnt_status lnt_bind_top_k(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", -1), in->rank, &axis));
    topk_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->dtype = (lnt_dtype)in->dtype;
    p->size = (int64_t)lnt_element_size(in);
    p->find = find_of(p->dtype);
    if (!p->find)
        return lnt_bind_unsupported_type(site, p->dtype);
    LNT_TRY(lnt_value_int(site, 1, 0, &p->k));
    p->n = in->dims[axis];
    p->inner = lnt_extent(in, axis + 1, in->rank);
    p->flip = lnt_attr_i(site->node, "largest", 1) ? UINT64_MAX : 0;
    p->scratch = (int64_t)lnt_round_up((size_t)p->k * sizeof(entry), LNT_ALIGN);
    lnt_bind_scratch(site, (size_t)p->scratch * site->threads);
    site->step->run = run_top_k;
    return LNT_OK;
}
