/* scatter.c — ScatterElements, ScatterND, TensorScatter: updates written into a copy of the data, in order,
 * so that of several updates of one element the last wins. */
#include "base/checked.h"
#include "base/half.h"
#include "base/lnt_assert.h"
#include "ops/data/data.h"
#include "ops/elementwise/typed_kernels.h"
#include "ops/rows/row.h"

#include <string.h>

/* ---- reductions ---- */

typedef enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MIN, REDUCE_MAX } reduction;

/* Updates of n elements of dst, at these places, in order: of some there may be several. */
typedef void (*each_fn)(reduction how, char *dst, const int64_t *at, const char *src, int64_t n);

/* dst = dst (+) src: a row kernel for float, for halves a loop in float, else a typed loop; none for REDUCE_NONE. */
typedef struct combination {
    lnt_typed_fn loop;
    void (*floats)(float *dst, const float *src, int64_t n);
    void (*halves)(reduction how, uint16_t *dst, const uint16_t *src, int64_t n);
    each_fn each; /* NULL: by one of those, element after element */
    reduction how;
} combination;

/* A NaN on either side stays; which of two numbers is larger is no guess of a branch. Sums and products are those of
 * type U, in which they do not overflow. */
#define COMBINE(T, U)                                                                                        \
    static inline T combine_##T(reduction how, T x, T y)                                                     \
    {                                                                                                        \
        const T least = y < x ? y : x, most = y > x ? y : x;                                                 \
        switch (how) {                                                                                       \
        case REDUCE_ADD: return (T)((U)x + (U)y);                                                            \
        case REDUCE_MUL: return (T)((U)x * (U)y);                                                            \
        case REDUCE_MIN: return y != y ? y : least;                                                          \
        default: return y != y ? y : most;                                                                   \
        }                                                                                                    \
    }                                                                                                        \
    static void each_##T(reduction how, char *dst, const int64_t *at, const char *src, int64_t n)            \
    {                                                                                                        \
        T *to = (T *)(void *)dst;                                                                            \
        const T *from = (const T *)(const void *)src;                                                        \
        for (int64_t i = 0; i < n; i++)                                                                      \
            to[at[i]] = combine_##T(how, to[at[i]], from[i]);                                                \
    }
COMBINE(float, float)
COMBINE(double, double)
COMBINE(int64_t, uint64_t)

#define HALVES(name, load, store)                                                                            \
    static void name(reduction how, uint16_t *dst, const uint16_t *src, int64_t n)                           \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++)                                                                      \
            dst[i] = store(combine_float(how, load(dst[i]), load(src[i])));                                  \
    }
HALVES(float16, lnt_f16_to_float, lnt_float_to_f16)
HALVES(bfloat16, lnt_bf16_to_float, lnt_float_to_bf16)

static lnt_status read_reduction(lnt_site *site, combination *c)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    static const lnt_typed_row rows[] = {LNT_TYPED_NONE, LNT_TYPED_Add, LNT_TYPED_Mul, LNT_TYPED_Min,
                                         LNT_TYPED_Max};
    /* On bool, + is or and * is and. */
    static const lnt_typed_row of_bool[] = {LNT_TYPED_NONE, LNT_TYPED_Or, LNT_TYPED_And, LNT_TYPED_And,
                                            LNT_TYPED_Or};
    const lnt_dtype dtype = (lnt_dtype)site->in[0]->dtype;
    const int how = lnt_attr_choice(site->node, "reduction", names, 5);
    LNT_REQUIRE(how >= 0, site->err, LNT_E_UNSUPPORTED, "reduction %s",
                lnt_attr_s(site->node, "reduction", ""));
    *c = (combination){.how = (reduction)how};
    if (how == REDUCE_NONE)
        return LNT_OK;
    const lnt_row_kernels *row = site->kernels->row;
    if (dtype == LNT_FLOAT)
        c->floats = how == REDUCE_ADD   ? row->add
                    : how == REDUCE_MUL ? row->multiply
                    : how == REDUCE_MIN ? row->min_to
                                        : row->max_to;
    else if (dtype < LNT_TYPED_DTYPES)
        c->loop = site->kernels->typed->loop[(dtype == LNT_BOOL ? of_bool : rows)[how]][dtype];
    c->each = dtype == LNT_FLOAT    ? each_float
              : dtype == LNT_DOUBLE ? each_double
              : dtype == LNT_INT64  ? each_int64_t
                                    : NULL;
    c->halves = dtype == LNT_FLOAT16 ? float16 : dtype == LNT_BFLOAT16 ? bfloat16 : NULL;
    return c->loop || c->floats || c->halves ? LNT_OK : lnt_bind_unsupported_type(site, dtype);
}

static void put(const combination *c, char *dst, const char *src, int64_t elements, int64_t size)
{
    if (c->floats)
        c->floats((float *)(void *)dst, (const float *)(const void *)src, elements);
    else if (c->loop)
        c->loop(&(lnt_typed_args){.out = dst, .in = {dst, src}, .n = elements});
    else if (c->halves)
        c->halves(c->how, (uint16_t *)(void *)dst, (const uint16_t *)(const void *)src, elements);
    else
        memcpy(dst, src, (size_t)(elements * size));
}

/* ---- ScatterElements ---- */

lnt_status lnt_shape_scatter_elements(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *indices = site->in[1], *updates = site->in[2];
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), in->rank, &axis));
    if (indices->rank != in->rank || updates->rank != in->rank)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "indices and updates must have the rank of the data, %u",
                             in->rank);
    for (unsigned i = 0; i < in->rank; i++) {
        const int64_t n = indices->dims[i], u = updates->dims[i];
        if (n >= 0 && u >= 0 && n != u)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "axis %u: %lld indices for %lld updates", i, (long long)n,
                                 (long long)u);
        if (i != axis && n >= 0 && in->dims[i] >= 0 && n > in->dims[i])
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "axis %u: %lld indices for an extent of %lld", i,
                                 (long long)n, (long long)in->dims[i]);
    }
    lnt_set_dims_like(site, 0, in);
    return LNT_OK;
}

typedef struct elements_params {
    combination combine;
    unsigned rank;
    int64_t n[LNT_MAX_RANK];    /* of the indices */
    int64_t step[LNT_MAX_RANK]; /* elements of the data, 0 along the axis */
    int64_t axis_step, extent, count, size, bytes;
    bool wide;
} elements_params;

enum { BLOCK = 256 };

/* Elements at these offsets, in elements, to and from a row. */
#define MOVES(T)                                                                                             \
    static void gather_##T(const char *data, const int64_t *at, int64_t n, char *row)                        \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++)                                                                      \
            ((T *)(void *)row)[i] = ((const T *)(const void *)data)[at[i]];                                  \
    }                                                                                                        \
    static void scatter_##T(char *data, const int64_t *at, int64_t n, const char *row)                       \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++)                                                                      \
            ((T *)(void *)data)[at[i]] = ((const T *)(const void *)row)[i];                                  \
    }
MOVES(uint8_t)
MOVES(uint16_t)
MOVES(uint32_t)
MOVES(uint64_t)

static void gather(const char *data, const int64_t *at, int64_t n, char *row, int64_t size)
{
    switch (size) {
    case 1: gather_uint8_t(data, at, n, row); return;
    case 2: gather_uint16_t(data, at, n, row); return;
    case 4: gather_uint32_t(data, at, n, row); return;
    default: gather_uint64_t(data, at, n, row); return;
    }
}

static void scatter(char *data, const int64_t *at, int64_t n, const char *row, int64_t size)
{
    switch (size) {
    case 1: scatter_uint8_t(data, at, n, row); return;
    case 2: scatter_uint16_t(data, at, n, row); return;
    case 4: scatter_uint32_t(data, at, n, row); return;
    default: scatter_uint64_t(data, at, n, row); return;
    }
}

/* n updates of elements at these offsets, one after the other where they may be the same. */
static void put_elements(const elements_params *p, char *dst, const int64_t *at, const char *updates,
                         int64_t n)
{
    _Alignas(16) char row[BLOCK * sizeof(int64_t)];
    if (p->combine.how == REDUCE_NONE && p->size <= (int64_t)sizeof(int64_t)) {
        scatter(dst, at, n, updates, p->size);
    } else if (p->combine.how != REDUCE_NONE && p->step[p->rank - 1] > 0) {
        gather(dst, at, n, row, p->size);
        put(&p->combine, row, updates, n, p->size);
        scatter(dst, at, n, row, p->size);
    } else if (p->combine.each) {
        p->combine.each(p->combine.how, dst, at, updates, n);
    } else {
        for (int64_t i = 0; i < n; i++)
            put(&p->combine, dst + at[i] * p->size, updates + i * p->size, 1, p->size);
    }
}

static void scatter_row(const elements_params *p, char *dst, const char *updates, const void *indices,
                        int64_t r)
{
    LNT_ASSERT(p->rank > 0 && p->rank <= LNT_MAX_RANK);
    const int64_t row = p->n[p->rank - 1], inner = p->step[p->rank - 1];
    int64_t rest = r, base = 0;
    for (unsigned i = p->rank - 1; i-- > 0; rest /= p->n[i])
        base += rest % p->n[i] * p->step[i];
    for (int64_t begin = 0; begin < row; begin += BLOCK) {
        int64_t at[BLOCK];
        const int64_t n = lnt_least(BLOCK, row - begin);
        for (int64_t j = 0; j < n; j++) {
            int64_t index = lnt_index_at(indices, p->wide, r * row + begin + j);
            lnt_wrap_index(&index, p->extent);
            at[j] = base + (begin + j) * inner + index * p->axis_step;
        }
        put_elements(p, dst, at, updates + (r * row + begin) * p->size, n);
    }
}

static lnt_status run_scatter_elements(lnt_kernel *k, const lnt_step *s)
{
    const elements_params *p = s->params;
    const void *indices = lnt_in(k, s, 1);
    char *dst = lnt_out(k, s, 0);
    /* Nothing is written before all indices are known to be good. */
    LNT_TRY(lnt_check_indices(k, indices, p->wide, p->count, p->extent));
    LNT_TRY(lnt_copy_bytes(k, dst, lnt_in(k, s, 0), p->bytes));
    if (p->count == 0)
        return LNT_OK;
    const int64_t rows = p->count / p->n[p->rank - 1];
    for (int64_t r = 0; r < rows; r++)
        scatter_row(p, dst, lnt_in(k, s, 2), indices, r);
    return LNT_OK;
}

lnt_status lnt_bind_scatter_elements(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), in->rank, &axis));
    if (!lnt_is_index_type(site->in[1]) || site->in[2]->dtype != in->dtype)
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "indices must be int32 or int64, updates of the data's type");
    elements_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(read_reduction(site, &p->combine));
    p->rank = in->rank;
    memcpy(p->n, site->in[1]->dims, sizeof p->n);
    lnt_operand_strides(in, p->step);
    p->axis_step = p->step[axis];
    p->step[axis] = 0;
    p->extent = in->dims[axis];
    p->count = lnt_operand_count(site->in[1]);
    p->size = (int64_t)lnt_element_size(in);
    p->bytes = (int64_t)lnt_known_bytes(in);
    p->wide = site->in[1]->dtype == LNT_INT64;
    lnt_bind_in_place(site, 0, 0);
    site->step->run = run_scatter_elements;
    return LNT_OK;
}

/* ---- ScatterND ---- */

lnt_status lnt_shape_scatter_nd(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *indices = site->in[1], *updates = site->in[2];
    lnt_set_dims_like(site, 0, in);
    if (indices->rank == 0)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "indices must have an axis of index tuples");
    const int64_t depth = indices->dims[indices->rank - 1];
    if (depth < 0)
        return LNT_OK;
    if (depth > in->rank || updates->rank != indices->rank - 1 + in->rank - (unsigned)depth)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE,
                             "index tuples of %lld and updates of rank %u for data of rank %u",
                             (long long)depth, updates->rank, in->rank);
    for (unsigned i = 0; i < updates->rank; i++) {
        const int64_t want =
            i + 1 < indices->rank ? indices->dims[i] : in->dims[(unsigned)depth + i - (indices->rank - 1u)];
        if (want >= 0 && updates->dims[i] >= 0 && want != updates->dims[i])
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "axis %u of updates has extent %lld, not %lld", i,
                                 (long long)updates->dims[i], (long long)want);
    }
    return LNT_OK;
}

typedef struct nd_params {
    combination combine;
    unsigned depth;
    int64_t extent[LNT_MAX_RANK], step[LNT_MAX_RANK]; /* of the indexed axes, steps in bytes */
    int64_t tuples, elements, size, bytes;            /* elements in a slice; bytes of the data */
} nd_params;

static lnt_status check_tuples(lnt_kernel *k, const nd_params *p, const int64_t *indices)
{
    const int64_t n = p->tuples * p->depth;
    for (int64_t i = 0; i < n;)
        for (unsigned axis = 0; axis < p->depth; axis++, i++) {
            int64_t index = indices[i];
            if (!lnt_wrap_index(&index, p->extent[axis]))
                return lnt_index_error(k, i, indices[i], p->extent[axis]);
        }
    return LNT_OK;
}

static lnt_status run_scatter_nd(lnt_kernel *k, const lnt_step *s)
{
    const nd_params *p = s->params;
    const int64_t *indices = lnt_in(k, s, 1);
    const char *updates = lnt_in(k, s, 2);
    char *dst = lnt_out(k, s, 0);
    LNT_TRY(check_tuples(k, p, indices));
    LNT_TRY(lnt_copy_bytes(k, dst, lnt_in(k, s, 0), p->bytes));
    for (int64_t t = 0; t < p->tuples; t++) {
        int64_t offset = 0;
        for (unsigned i = 0; i < p->depth; i++) {
            int64_t index = indices[t * p->depth + i];
            lnt_wrap_index(&index, p->extent[i]);
            offset += index * p->step[i];
        }
        put(&p->combine, dst + offset, updates + t * p->elements * p->size, p->elements, p->size);
    }
    return LNT_OK;
}

lnt_status lnt_bind_scatter_nd(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *indices = site->in[1];
    if (indices->dtype != LNT_INT64 || site->in[2]->dtype != in->dtype)
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "indices must be int64, updates of the data's type");
    nd_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(read_reduction(site, &p->combine));
    int64_t strides[LNT_MAX_RANK];
    lnt_operand_strides(in, strides);
    p->depth = (unsigned)indices->dims[indices->rank - 1];
    p->size = (int64_t)lnt_element_size(in);
    for (unsigned i = 0; i < p->depth; i++) {
        p->extent[i] = in->dims[i];
        p->step[i] = strides[i] * p->size;
    }
    p->tuples = lnt_extent(indices, 0, indices->rank - 1);
    p->elements = lnt_extent(in, p->depth, in->rank);
    p->bytes = (int64_t)lnt_known_bytes(in);
    lnt_bind_in_place(site, 0, 0);
    site->step->run = run_scatter_nd;
    return LNT_OK;
}

/* ---- TensorScatter ---- */

lnt_status lnt_shape_tensor_scatter(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *update = site->in[1];
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", -2), in->rank, &axis));
    if (axis == 0 || update->rank != in->rank)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE,
                             "update and cache must have one rank, and the axis not be the batch");
    for (unsigned i = 0; i < in->rank; i++) {
        const int64_t n = in->dims[i], u = update->dims[i];
        if (n >= 0 && u >= 0 && (i == axis ? u > n : u != n))
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "axis %u: update of %lld for a cache of %lld", i,
                                 (long long)u, (long long)n);
    }
    lnt_set_dims_like(site, 0, in);
    return LNT_OK;
}

typedef struct cache_params {
    int64_t batches, per_batch; /* rows of the cache: batch times what lies before the axis */
    int64_t capacity, n, slice; /* extents of the axis in cache and update; bytes behind it */
    bool circular;
} cache_params;

static lnt_status check_write_indices(lnt_kernel *k, const cache_params *p, const int64_t *at)
{
    for (int64_t b = 0; at && !p->circular && b < p->batches; b++)
        if (at[b] < 0 || at[b] > p->capacity - p->n)
            return lnt_fail(k->err, LNT_E_VALUE,
                            "element %lld of write_indices is %lld: %lld do not fit into %lld", (long long)b,
                            (long long)at[b], (long long)p->n, (long long)p->capacity);
    return LNT_OK;
}

static lnt_status run_tensor_scatter(lnt_kernel *k, const lnt_step *s)
{
    const cache_params *p = s->params;
    const int64_t *write_indices = lnt_in(k, s, 2);
    const char *update = lnt_in(k, s, 1);
    char *cache = lnt_out(k, s, 0);
    const int64_t row = p->capacity * p->slice, bytes = p->n * p->slice;
    LNT_TRY(check_write_indices(k, p, write_indices));
    LNT_TRY(lnt_copy_bytes(k, cache, lnt_in(k, s, 0), p->batches * p->per_batch * row));
    for (int64_t r = 0; bytes > 0 && r < p->batches * p->per_batch; r++) {
        int64_t at = write_indices ? write_indices[r / p->per_batch] % p->capacity : 0;
        if (at < 0)
            at += p->capacity;
        const int64_t fits = p->n < p->capacity - at ? bytes : (p->capacity - at) * p->slice;
        memcpy(cache + r * row + at * p->slice, update + r * bytes, (size_t)fits);
        memcpy(cache + r * row, update + r * bytes + fits, (size_t)(bytes - fits));
    }
    return LNT_OK;
}

lnt_status lnt_bind_tensor_scatter(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *at = lnt_input(site, 2);
    const char *mode = lnt_attr_s(site->node, "mode", "linear");
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", -2), in->rank, &axis));
    if (at && (at->dtype != LNT_INT64 || lnt_operand_count(at) != in->dims[0]))
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "write_indices must be one int64 per batch");
    if (site->in[1]->dtype != in->dtype)
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "update must have the cache's type");
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "mode %s", mode);
    cache_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->batches = in->dims[0];
    p->per_batch = lnt_extent(in, 1, axis);
    p->capacity = in->dims[axis];
    p->n = site->in[1]->dims[axis];
    p->slice = lnt_extent(in, axis + 1, in->rank) * (int64_t)lnt_element_size(in);
    p->circular = mode[0] == 'c';
    lnt_bind_in_place(site, 0, 0);
    site->step->run = run_tensor_scatter;
    return LNT_OK;
}
