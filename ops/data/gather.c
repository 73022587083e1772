/* gather.c — Gather, GatherElements, GatherND: elements picked by index. */
#include "ops/data/data.h"

#include "base/lnt_assert.h"
#include "base/half.h"
#include "formats/packed.h"
#include "ops/rows/int8_rows.h"

#include <string.h>

/* Kernels note that an index is out of range and go on; afterwards the lowest offender is looked for, so that
 * the message does not depend on which thread was first. */
typedef _Atomic(uint32_t) bad_flag;

static void note_bad(bad_flag *bad)
{
    atomic_store_explicit(bad, 1, memory_order_relaxed);
}

static lnt_status check_index_type(lnt_site *site)
{
    if (!lnt_is_index_type(site->in[1]))
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "indices must be int32 or int64, not %s",
                             lnt_dtype_text((lnt_dtype)site->in[1]->dtype));
    return LNT_OK;
}

/* Where a row's elements lie: element j of it is at j * inner + index[j] * axis, in elements; extent is the axis'. */
typedef struct picked_row {
    int64_t inner, axis, extent;
} picked_row;

/* n elements of a row. False if an index is out of range. */
typedef bool (*pick_fn)(const picked_row *row, int64_t n, char *dst, const char *src, const void *indices);
static pick_fn pick_of(size_t size, bool wide);

/* ---- Gather ---- */

lnt_status lnt_shape_gather(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *indices = site->in[1];
    int64_t dims[2 * LNT_MAX_RANK];
    unsigned axis, rank = 0;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), in->rank, &axis));
    for (unsigned i = 0; i < in->rank; i++) {
        if (i != axis)
            dims[rank++] = in->dims[i];
        for (unsigned j = 0; i == axis && j < indices->rank; j++)
            dims[rank++] = indices->dims[j];
    }
    if (rank > LNT_MAX_RANK)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "rank %u: at most %d is supported", rank, LNT_MAX_RANK);
    lnt_set_dims(site, 0, rank, dims);
    return LNT_OK;
}

typedef struct gather_params {
    int64_t outer, extent, n; /* slices before the axis, extent of the axis, indices */
    int64_t slice;            /* bytes behind the axis */
    bool wide;
    pick_fn pick;                 /* of slices of an element; NULL: slices are moved one by one */
    const lnt_packed *packed;     /* panels that the rows are read out of, or NULL */
    const lnt_int8_kernels *int8; /* of a DynamicGather */
} gather_params;

typedef struct gather_job {
    const gather_params *p;
    char *dst;
    const char *src;
    const void *indices;
    const float *scale; /* of each row of a DynamicGather */
    bad_flag bad;
} gather_job;

/* n elements of a type as floats, `step` apart. */
static void read_elements(lnt_dtype type, const void *elements, int64_t at, int64_t step, int64_t n,
                          float *dst)
{
    const float *floats = (const float *)elements + (type == LNT_FLOAT ? at : 0);
    const uint16_t *halves = (const uint16_t *)elements + (type == LNT_FLOAT ? 0 : at);
    if (!LNT_HAS_HALVES || type == LNT_FLOAT)
        for (int64_t j = 0; j < n; j++)
            dst[j] = floats[j * step];
    else if (type == LNT_FLOAT16)
        for (int64_t j = 0; j < n; j++)
            dst[j] = lnt_f16_to_float(halves[j * step]);
    else
        for (int64_t j = 0; j < n; j++)
            dst[j] = lnt_bf16_to_float(halves[j * step]);
}

/* Row i of the matrix that was packed into panels of 16 columns: [N/16][K][16]. */
static void read_packed_row(const lnt_packed *packed, const void *panels, int64_t i, float *dst)
{
    const lnt_dtype type = lnt_packed_element(packed);
    const int64_t K = packed->K, N = packed->N;
    if (packed->source == LNT_SOURCE_NK) {
        read_elements(type, panels, i / LNT_PANEL * K * LNT_PANEL + i % LNT_PANEL, LNT_PANEL, K, dst);
        return;
    }
    for (int64_t j = 0; j < N; j += LNT_PANEL)
        read_elements(type, panels, (j / LNT_PANEL * K + i) * LNT_PANEL, 1,
                      N - j < LNT_PANEL ? N - j : LNT_PANEL, dst + j);
}

/* Row i of bytes in panels [N/16][K/4][16][4], of a matrix [N][K]; up to n at a time, from element `from` on. */
static void read_packed_bytes(const lnt_packed *packed, const int8_t *panels, int64_t i, int64_t from,
                              int64_t n, int8_t *dst)
{
    const int8_t *panel =
        panels + i / LNT_QPANEL * (int64_t)lnt_packed_panel_bytes(packed) + i % LNT_QPANEL * 4;
    for (int64_t j = 0; j < n; j++)
        dst[j] = panel[(from + j) / 4 * 4 * LNT_QPANEL + (from + j) % 4];
}

/* Row `index` of a table of bytes as floats. */
static void read_scaled_row(const gather_job *job, int64_t index, float *dst)
{
    enum { BLOCK = 256 };
    const gather_params *p = job->p;
    const int8_t *table = (const int8_t *)job->src;
    const int64_t width = p->slice / (int64_t)sizeof(float);
    int8_t bytes[BLOCK];
    for (int64_t from = 0; from < width; from += BLOCK) {
        const int64_t n = width - from < BLOCK ? width - from : BLOCK;
        const int8_t *row = table + index * width + from;
        if (p->packed) {
            read_packed_bytes(p->packed, table, index, from, n, bytes);
            row = bytes;
        }
        p->int8->dequantize(row, dst + from, n, job->scale[index], 0, true);
    }
}

static lnt_status gather_slices(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    gather_job *job = arg;
    const gather_params *p = job->p;
    int64_t outer = begin / p->n, i = begin % p->n;
    for (int64_t item = begin; item < end; item++) {
        int64_t index = lnt_index_at(job->indices, p->wide, i);
        char *dst = job->dst + item * p->slice;
        if (!lnt_wrap_index(&index, p->extent))
            note_bad(&job->bad);
        else if (p->int8)
            read_scaled_row(job, index, (float *)(void *)dst);
        else if (p->packed)
            read_packed_row(p->packed, job->src, index, (float *)(void *)dst);
        else
            lnt_move_slice(dst, job->src + (outer * p->extent + index) * p->slice, p->slice);
        if (++i == p->n) {
            i = 0;
            outer++;
        }
    }
    return LNT_OK;
}

/* Slices of an element, as rows of n. */
static lnt_status gather_elements(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    gather_job *job = arg;
    const gather_params *p = job->p;
    const picked_row row = {0, 1, p->extent};
    for (int64_t item = begin, n; item < end; item += n) {
        const int64_t outer = item / p->n, i = item % p->n;
        n = lnt_least(p->n - i, end - item);
        if (!p->pick(&row, n, job->dst + item * p->slice, job->src + outer * p->extent * p->slice,
                     (const char *)job->indices + i * (p->wide ? 8 : 4)))
            note_bad(&job->bad);
    }
    return LNT_OK;
}

static lnt_status run_gather(lnt_kernel *k, const lnt_step *s)
{
    const gather_params *p = s->params;
    LNT_ASSERT(p->slice >= 0 && p->n >= 0 && p->outer >= 0);
    gather_job job = {p, lnt_out(k, s, 0), lnt_in(k, s, 0), lnt_in(k, s, 1), lnt_in(k, s, 2), 0};
    if (p->slice == 0 || p->n == 0 || p->outer == 0)
        return LNT_OK;
    const bool elements = !LNT_TRIMMED && p->pick;
    LNT_TRY(lnt_parallel(k, p->outer * p->n, lnt_grain(p->slice), elements ? gather_elements : gather_slices,
                         &job));
    return job.bad ? lnt_check_indices(k, job.indices, p->wide, p->n, p->extent) : LNT_OK;
}

lnt_status lnt_bind_gather(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), in->rank, &axis));
    LNT_TRY(check_index_type(site));
    gather_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->outer = lnt_extent(in, 0, axis);
    p->extent = in->dims[axis];
    p->slice = lnt_extent(in, axis + 1, in->rank) * (int64_t)lnt_element_size(in);
    p->n = lnt_operand_count(site->in[1]);
    p->wide = site->in[1]->dtype == LNT_INT64;
    p->packed = in->packed;
    if (!LNT_TRIMMED && !p->packed && p->extent > 0)
        p->pick = pick_of((size_t)p->slice, p->wide);
    if (p->packed && (!lnt_packed_is_floats(p->packed) || axis != 0 || in->rank != 2 ||
                      (p->packed->source != LNT_SOURCE_NK && p->packed->source != LNT_SOURCE_KN)))
        return LNT_SITE_FAIL(site, LNT_E_FILE, "rows cannot be read out of this packed constant");
    site->step->run = run_gather;
    return LNT_OK;
}

/* ---- DynamicGather: rows of an int8 table [rows][width] as floats; input 2 has a scale for each row ---- */

lnt_status lnt_shape_dynamic_gather(lnt_site *site)
{
    LNT_REQUIRE(site->in[0]->rank == 2, site->err, LNT_E_SHAPE, "the table has rank %u", site->in[0]->rank);
    return lnt_shape_gather(site);
}

lnt_status lnt_bind_dynamic_gather(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *scale = site->in[2];
    LNT_TRY(check_index_type(site));
    gather_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (in->dtype != LNT_INT8)
        return lnt_bind_unsupported_type(site, (lnt_dtype)in->dtype);
    LNT_REQUIRE(lnt_attr_i(site->node, "axis", 0) == 0 && scale->dtype == LNT_FLOAT &&
                    lnt_operand_count(scale) == in->dims[0],
                site->err, LNT_E_SHAPE, "scales must be %lld floats, one for each row",
                (long long)in->dims[0]);
    p->outer = 1;
    p->extent = in->dims[0];
    p->slice = in->dims[1] * (int64_t)sizeof(float);
    p->n = lnt_operand_count(site->in[1]);
    p->wide = site->in[1]->dtype == LNT_INT64;
    p->packed = in->packed;
    p->int8 = site->kernels->int8;
    LNT_REQUIRE(!p->packed || (lnt_packed_is_int8(p->packed) && p->packed->source == LNT_SOURCE_NK),
                site->err, LNT_E_FILE, "rows cannot be read out of this packed constant");
    site->step->run = run_gather;
    return LNT_OK;
}

/* ---- GatherElements ---- */

lnt_status lnt_shape_gather_elements(lnt_site *site)
{
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), site->in[0]->rank, &axis));
    if (site->in[1]->rank != site->in[0]->rank)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "indices have rank %u, the data %u", site->in[1]->rank,
                             site->in[0]->rank);
    for (unsigned i = 0; i < site->in[0]->rank; i++)
        if (i != axis && site->in[0]->dims[i] >= 0 && site->in[1]->dims[i] > site->in[0]->dims[i])
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "indices have extent %lld along axis %u, the data %lld",
                                 (long long)site->in[1]->dims[i], i, (long long)site->in[0]->dims[i]);
    lnt_set_dims_like(site, 0, site->in[1]);
    return LNT_OK;
}

typedef struct elements_params {
    unsigned rank;
    int64_t n[LNT_MAX_RANK];    /* of the indices */
    int64_t step[LNT_MAX_RANK]; /* elements of the data, 0 along the axis */
    picked_row row;
    int64_t size; /* of an element */
    bool wide;
    pick_fn pick;
} elements_params;

typedef struct elements_job {
    const elements_params *p;
    char *dst;
    const char *src;
    const void *indices;
    bad_flag bad;
} elements_job;

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("tree-loop-vectorize", "vect-cost-model=dynamic")
#endif

/* type: elements of that size. Indices are looked at a block at a time: where all lie in [0, extent), as they
 * nearly always do, they are used as they are; else one out of range reads element 0. */
#define ELEMENTS(type, index_type)                                                                           \
    static inline __attribute__((always_inline)) void take_##type##_##index_type(                            \
        type *y, const type *x, const index_type *at, int64_t n, int64_t axis, int64_t inner)                \
    {                                                                                                        \
        _Pragma("GCC unroll 4") for (int64_t j = 0; j < n; j++)                                              \
        {                                                                                                    \
            y[j] = x[at[j] * axis];                                                                          \
            x += inner;                                                                                      \
        }                                                                                                    \
    }                                                                                                        \
    static bool pick_##type##_##index_type(const picked_row *row, int64_t left, char *dst, const char *src,  \
                                           const void *indices)                                              \
    {                                                                                                        \
        const int64_t inner = row->inner, axis = row->axis, extent = row->extent;                            \
        const index_type *at = indices;                                                                      \
        const type *x = (const type *)(const void *)src;                                                     \
        type *y = (type *)(void *)dst;                                                                       \
        bool good = true;                                                                                    \
        for (; left > 0; left -= INDICES, at += INDICES, y += INDICES) {                                     \
            const int64_t n = left < INDICES ? left : INDICES;                                               \
            uint64_t outside = 0; /* the sign is set by any below 0 or above extent - 1 */                   \
            for (int64_t j = 0; j < n; j++)                                                                  \
                outside |= (uint64_t)at[j] | ((uint64_t)extent - 1 - (uint64_t)at[j]);                       \
            for (int64_t j = 0; outside >> 63 && j < n; j++) {                                               \
                int64_t i = at[j];                                                                           \
                const bool inside = lnt_wrap_index(&i, extent);                                              \
                good &= inside;                                                                              \
                y[j] = x[inside ? i * axis + j * inner : 0];                                                 \
            }                                                                                                \
            if (outside >> 63 == 0 && inner == 0 && axis == 1)                                               \
                take_##type##_##index_type(y, x, at, n, 1, 0);                                               \
            else if (outside >> 63 == 0)                                                                     \
                take_##type##_##index_type(y, x, at, n, axis, inner);                                        \
            x += n * inner;                                                                                  \
        }                                                                                                    \
        return good;                                                                                         \
    }
enum { INDICES = 64 };
ELEMENTS(uint8_t, int32_t)
ELEMENTS(uint8_t, int64_t)
ELEMENTS(uint16_t, int32_t)
ELEMENTS(uint16_t, int64_t)
ELEMENTS(uint32_t, int32_t)
ELEMENTS(uint32_t, int64_t)
ELEMENTS(uint64_t, int32_t)
ELEMENTS(uint64_t, int64_t)

static pick_fn pick_of(size_t size, bool wide)
{
    switch (size) {
    case 1: return wide ? pick_uint8_t_int64_t : pick_uint8_t_int32_t;
    case 2: return wide ? pick_uint16_t_int64_t : pick_uint16_t_int32_t;
    case 4: return wide ? pick_uint32_t_int64_t : pick_uint32_t_int32_t;
    case 8: return wide ? pick_uint64_t_int64_t : pick_uint64_t_int32_t;
    default: return NULL;
    }
}

static lnt_status gather_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    elements_job *job = arg;
    const elements_params *p = job->p;
    const int64_t n = p->n[p->rank - 1];
    for (int64_t r = begin; r < end; r++) {
        int64_t rest = r, base = 0;
        for (unsigned i = p->rank - 1; i-- > 0; rest /= p->n[i])
            base += rest % p->n[i] * p->step[i];
        if (!p->pick(&p->row, n, job->dst + r * n * p->size, job->src + base * p->size,
                     (const char *)job->indices + r * n * (p->wide ? 8 : 4)))
            note_bad(&job->bad);
    }
    return LNT_OK;
}

static lnt_status run_gather_elements(lnt_kernel *k, const lnt_step *s)
{
    const elements_params *p = s->params;
    elements_job job = {p, lnt_out(k, s, 0), lnt_in(k, s, 0), lnt_in(k, s, 1), 0};
    const int64_t n = lnt_operand_count(s->in[1]);
    if (n == 0)
        return LNT_OK;
    if (p->row.extent == 0)
        return lnt_check_indices(k, job.indices, p->wide, n, 0);
    const int64_t row = p->n[p->rank - 1];
    LNT_TRY(lnt_parallel(k, n / row, lnt_grain(row * p->size), gather_rows, &job));
    return job.bad ? lnt_check_indices(k, job.indices, p->wide, n, p->row.extent) : LNT_OK;
}

lnt_status lnt_bind_gather_elements(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), in->rank, &axis));
    LNT_TRY(check_index_type(site));
    elements_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->rank = in->rank;
    memcpy(p->n, site->in[1]->dims, sizeof p->n);
    lnt_operand_strides(in, p->step);
    p->row.axis = p->step[axis];
    p->step[axis] = 0;
    p->row.inner = p->step[in->rank - 1];
    p->row.extent = in->dims[axis];
    p->size = (int64_t)lnt_element_size(in);
    p->wide = site->in[1]->dtype == LNT_INT64;
    p->pick = pick_of((size_t)p->size, p->wide);
    if (!p->pick)
        return lnt_bind_unsupported_type(site, (lnt_dtype)in->dtype);
    site->step->run = run_gather_elements;
    return LNT_OK;
}

/* ---- GatherND ---- */

static lnt_status nd_depth(const lnt_site *site, unsigned *batch, unsigned *depth)
{
    const lnt_operand *in = site->in[0], *indices = site->in[1];
    const int64_t b = lnt_attr_i(site->node, "batch_dims", 0);
    if (b < 0 || indices->rank == 0 || b >= indices->rank || b >= in->rank)
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "batch_dims %lld for indices of rank %u", (long long)b,
                             indices->rank);
    *batch = (unsigned)b;
    const int64_t last = indices->dims[indices->rank - 1];
    if (last < 0)
        return LNT_UNKNOWN;
    if (last < 1 || last > in->rank - b)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "index tuples of %lld for a tensor of rank %u",
                             (long long)last, in->rank);
    *depth = (unsigned)last;
    return LNT_OK;
}

lnt_status lnt_shape_gather_nd(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *indices = site->in[1];
    int64_t dims[2 * LNT_MAX_RANK];
    unsigned batch, depth, rank = 0;
    LNT_TRY(nd_depth(site, &batch, &depth));
    for (unsigned i = 0; i < batch; i++)
        if (in->dims[i] >= 0 && indices->dims[i] >= 0 && in->dims[i] != indices->dims[i])
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "batch axis %u has extents %lld and %lld", i,
                                 (long long)in->dims[i], (long long)indices->dims[i]);
    for (unsigned i = 0; i + 1 < indices->rank; i++)
        dims[rank++] = indices->dims[i];
    for (unsigned i = batch + depth; i < in->rank; i++)
        dims[rank++] = in->dims[i];
    if (rank > LNT_MAX_RANK)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "rank %u: at most %d is supported", rank, LNT_MAX_RANK);
    lnt_set_dims(site, 0, rank, dims);
    return LNT_OK;
}

typedef struct nd_params {
    unsigned depth;
    int64_t extent[LNT_MAX_RANK], step[LNT_MAX_RANK]; /* of the indexed axes, steps in bytes */
    int64_t tuples, per_batch, batch_step, slice;
} nd_params;

typedef struct nd_job {
    const nd_params *p;
    char *dst;
    const char *src;
    const int64_t *indices;
    bad_flag bad;
} nd_job;

static lnt_status gather_tuples(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    nd_job *job = arg;
    const nd_params *p = job->p;
    for (int64_t t = begin; t < end; t++) {
        int64_t offset = t / p->per_batch * p->batch_step;
        bool inside = true;
        for (unsigned i = 0; i < p->depth; i++) {
            int64_t index = job->indices[t * p->depth + i];
            inside = lnt_wrap_index(&index, p->extent[i]) && inside;
            offset += inside ? index * p->step[i] : 0;
        }
        if (inside)
            lnt_move_slice(job->dst + t * p->slice, job->src + offset, p->slice);
        else
            note_bad(&job->bad);
    }
    return LNT_OK;
}

static lnt_status run_gather_nd(lnt_kernel *k, const lnt_step *s)
{
    const nd_params *p = s->params;
    nd_job job = {p, lnt_out(k, s, 0), lnt_in(k, s, 0), lnt_in(k, s, 1), 0};
    if (p->tuples == 0 || p->slice == 0)
        return LNT_OK;
    LNT_TRY(lnt_parallel(k, p->tuples, lnt_grain(p->slice), gather_tuples, &job));
    for (int64_t i = 0; job.bad && i < p->tuples * p->depth; i++) {
        int64_t index = job.indices[i];
        if (!lnt_wrap_index(&index, p->extent[i % p->depth]))
            return lnt_index_error(k, i, job.indices[i], p->extent[i % p->depth]);
    }
    return LNT_OK;
}

lnt_status lnt_bind_gather_nd(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *indices = site->in[1];
    const int64_t size = (int64_t)lnt_element_size(in);
    unsigned batch;
    if (indices->dtype != LNT_INT64)
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "indices must be int64");
    nd_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(nd_depth(site, &batch, &p->depth));
    int64_t strides[LNT_MAX_RANK];
    lnt_operand_strides(in, strides);
    for (unsigned i = 0; i < p->depth; i++) {
        p->extent[i] = in->dims[batch + i];
        p->step[i] = strides[batch + i] * size;
    }
    p->tuples = lnt_extent(indices, 0, indices->rank - 1);
    p->per_batch = lnt_extent(indices, batch, indices->rank - 1);
    p->batch_step = lnt_extent(in, batch, in->rank) * size;
    p->slice = lnt_extent(in, batch + p->depth, in->rank) * size;
    site->step->run = run_gather_nd;
    return LNT_OK;
}
