/* select.c — NonZero, Compress, OneHot: positions become data, data becomes positions. */
#include "base/lnt_assert.h"
#include "ops/data/data.h"
#include "ops/number.h"

#include <string.h>

/* ---- NonZero ---- */

/* All bits of a number but the sign of a float's zero. */
static uint64_t value_bits(const lnt_operand *o)
{
    switch (o->dtype) {
    case LNT_FLOAT: return INT32_MAX;
    case LNT_DOUBLE: return INT64_MAX;
    case LNT_FLOAT16:
    case LNT_BFLOAT16: return INT16_MAX;
    default: return UINT64_MAX;
    }
}

static inline uint64_t load_bits(const void *data, size_t size, int64_t i)
{
    switch (size) {
    case 1: return ((const uint8_t *)data)[i];
    case 2: return ((const uint16_t *)data)[i];
    case 4: return ((const uint32_t *)data)[i];
    default: return ((const uint64_t *)data)[i];
    }
}

lnt_status lnt_shape_non_zero(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    int64_t dims[2] = {in->rank, LNT_DIM_UNKNOWN};
    lnt_set_dims(site, 0, 2, dims);
    const int64_t n = lnt_operand_count(in);
    if (!in->data || n < 0)
        return LNT_UNKNOWN;
    const size_t size = lnt_element_size(in);
    const uint64_t mask = value_bits(in);
    dims[1] = 0;
    for (int64_t i = 0; i < n; i++)
        dims[1] += (load_bits(in->data, size, i) & mask) != 0;
    lnt_set_dims(site, 0, 2, dims);
    return LNT_OK;
}

/* The coordinates of the next row of the last axis. */
static void next_row(const lnt_operand *in, int64_t *at)
{
    for (unsigned axis = in->rank - 1u; axis-- > 0;) {
        if (++at[axis] < in->dims[axis])
            return;
        at[axis] = 0;
    }
}

static lnt_status run_non_zero(lnt_kernel *k, const lnt_step *s)
{
    const lnt_operand *in = s->in[0];
    const void *data = lnt_in(k, s, 0);
    const size_t size = lnt_element_size(in);
    const uint64_t mask = value_bits(in);
    const int64_t n = lnt_operand_count(in), row = in->rank > 0 ? in->dims[in->rank - 1] : 1,
                  found = s->out[0]->dims[1];
    int64_t *out = lnt_out(k, s, 0), *last = in->rank > 0 ? out + (in->rank - 1) * found : NULL;
    int64_t coordinate[LNT_MAX_RANK] = {0}, at = 0;
    for (int64_t i = 0; last && i < n && at < found; next_row(in, coordinate)) {
        const int64_t first = at;
        for (int64_t j = 0; j < row && at < found; j++, i++) {
            last[at] = j;
            at += (load_bits(data, size, i) & mask) != 0;
        }
        for (unsigned axis = 0; at > first && axis + 1 < in->rank; axis++)
            lnt_fill(out + axis * found + first, at - first, &coordinate[axis], sizeof *coordinate);
    }
    return LNT_OK;
}

lnt_status lnt_bind_non_zero(lnt_site *site)
{
    if (lnt_element_size(site->in[0]) == 0)
        return lnt_bind_unsupported_type(site, (lnt_dtype)site->in[0]->dtype);
    site->step->run = run_non_zero;
    return LNT_OK;
}

/* ---- Compress ---- */

/* Without an axis the input is taken as one row. */
typedef struct compress_params {
    int64_t outer, n, slice; /* slices before, extent of the axis, bytes behind it */
} compress_params;

static lnt_status compress_geometry(const lnt_site *site, compress_params *p, bool *flat, unsigned *axis)
{
    const lnt_operand *in = site->in[0];
    const lnt_attr *a = lnt_attr_of(site->node, "axis", LNT_ATTR_INT);
    *flat = !a;
    *axis = 0;
    if (a)
        LNT_TRY(lnt_axis(site, *a->i, in->rank, axis));
    p->outer = a ? lnt_extent(in, 0, *axis) : 1;
    p->n = a ? in->dims[*axis] : lnt_operand_count(in);
    p->slice = lnt_dim_mul(a ? lnt_extent(in, *axis + 1, in->rank) : 1, (int64_t)lnt_element_size(in));
    return LNT_OK;
}

/* How many slices the condition keeps of n. */
static int64_t count_kept(const uint8_t *keep, int64_t n_keep, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n_keep && i < n; i++)
        kept += keep[i] != 0;
    return kept;
}

lnt_status lnt_shape_compress(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *condition = site->in[1];
    compress_params p;
    unsigned axis;
    bool flat;
    int64_t dims[LNT_MAX_RANK], kept = LNT_DIM_UNKNOWN;
    LNT_TRY(compress_geometry(site, &p, &flat, &axis));
    if (condition->dtype != LNT_BOOL || condition->rank != 1)
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "condition must be a list of bool");
    const int64_t n_keep = lnt_operand_count(condition);
    const bool known = condition->data && n_keep >= 0 && p.n >= 0;
    if (known) {
        if (n_keep > p.n)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "a condition of %lld for an extent of %lld",
                                 (long long)n_keep, (long long)p.n);
        kept = count_kept(condition->data, n_keep, p.n);
    }
    for (unsigned i = 0; i < in->rank; i++)
        dims[i] = i == axis ? kept : in->dims[i];
    if (flat)
        lnt_set_dims(site, 0, 1, &kept);
    else
        lnt_set_dims(site, 0, in->rank, dims);
    return known ? LNT_OK : LNT_UNKNOWN;
}

static lnt_status run_compress(lnt_kernel *k, const lnt_step *s)
{
    const compress_params *p = s->params;
    const uint8_t *keep = lnt_in(k, s, 1);
    const char *src = lnt_in(k, s, 0);
    char *dst = lnt_out(k, s, 0);
    const int64_t n_keep = s->in[1]->dims[0];
    for (int64_t outer = 0; outer < p->outer; outer++, src += p->n * p->slice)
        for (int64_t i = 0; i < n_keep; i++)
            if (keep[i]) {
                if (p->slice == sizeof(float))
                    memcpy(dst, src + i * p->slice, sizeof(float));
                else
                    memcpy(dst, src + i * p->slice, (size_t)p->slice);
                dst += p->slice;
            }
    return LNT_OK;
}

lnt_status lnt_bind_compress(lnt_site *site)
{
    unsigned axis;
    bool flat;
    compress_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(compress_geometry(site, p, &flat, &axis));
    site->step->run = run_compress;
    return LNT_OK;
}

/* ---- OneHot ---- */

static lnt_status one_hot_axis(const lnt_site *site, unsigned *axis)
{
    return lnt_axis(site, lnt_attr_i(site->node, "axis", -1), site->in[0]->rank + 1u, axis);
}

/* Depth, which may be any number; LNT_UNKNOWN with *depth unknown. */
static lnt_status read_depth(const lnt_site *site, int64_t *depth)
{
    *depth = LNT_DIM_UNKNOWN;
    if (!lnt_is_floating(site->in[1]->dtype))
        return lnt_value_int(site, 1, LNT_DIM_UNKNOWN, depth);
    double value;
    unsigned n = 1;
    LNT_TRY(lnt_value_floats(site, 1, &value, &n, NULL));
    if (n != 1 || !(value >= 0 && value < 0x1p62))
        return LNT_SITE_FAIL(site, LNT_E_VALUE, "depth must be one number, not negative");
    *depth = (int64_t)value;
    return LNT_OK;
}

lnt_status lnt_shape_one_hot(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    int64_t dims[LNT_MAX_RANK], depth;
    unsigned axis, from = 0;
    LNT_TRY(one_hot_axis(site, &axis));
    if (in->rank == LNT_MAX_RANK)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "rank 9: at most %d is supported", LNT_MAX_RANK);
    const lnt_status status = read_depth(site, &depth);
    if (status == LNT_OK && depth < 0)
        return LNT_SITE_FAIL(site, LNT_E_VALUE, "depth is %lld", (long long)depth);
    for (unsigned i = 0; i <= in->rank; i++)
        dims[i] = i == axis ? depth : in->dims[from++];
    lnt_set_dims(site, 0, in->rank + 1u, dims);
    return status;
}

/* Index of element i; -1 for what lies outside [-depth, depth) or is no whole number. */
static int64_t hot_index(lnt_dtype dtype, const void *indices, int64_t i, int64_t depth)
{
    const double x = lnt_load_number(dtype, indices, i);
    if (!(x >= -(double)depth && x < (double)depth))
        return -1;
    const int64_t index = (int64_t)x;
    if ((double)index != x)
        return -1;
    return index < 0 ? index + depth : index;
}

typedef struct one_hot_params {
    lnt_dtype dtype;
    int64_t outer, depth, inner, size;
} one_hot_params;

typedef struct one_hot_job {
    const one_hot_params *p;
    char *dst;
    const char *values; /* off, on */
    const void *indices;
} one_hot_job;

static lnt_status one_hot_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const one_hot_job *job = arg;
    const one_hot_params *p = job->p;
    LNT_ASSERT(p->depth > 0 && p->inner > 0);
    const int64_t row = p->depth * p->inner;
    for (int64_t outer = begin; outer < end; outer++) {
        char *dst = job->dst + outer * row * p->size;
        lnt_fill(dst, row, job->values, (size_t)p->size);
        for (int64_t i = 0; i < p->inner; i++) {
            const int64_t index = hot_index(p->dtype, job->indices, outer * p->inner + i, p->depth);
            if (index >= 0)
                memcpy(dst + (index * p->inner + i) * p->size, job->values + p->size, (size_t)p->size);
        }
    }
    return LNT_OK;
}

static lnt_status run_one_hot(lnt_kernel *k, const lnt_step *s)
{
    const one_hot_params *p = s->params;
    one_hot_job job = {p, lnt_out(k, s, 0), lnt_in(k, s, 2), lnt_in(k, s, 0)};
    if (p->depth * p->inner == 0)
        return LNT_OK;
    return lnt_parallel(k, p->outer, lnt_grain(p->depth * p->inner * p->size), one_hot_rows, &job);
}

lnt_status lnt_bind_one_hot(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    unsigned axis;
    LNT_TRY(one_hot_axis(site, &axis));
    if (lnt_operand_count(site->in[2]) != 2 || lnt_element_size(site->in[2]) == 0)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "values must be two numbers, off and on");
    if (lnt_element_size(in) == 0 || in->dtype == LNT_BOOL)
        return lnt_bind_unsupported_type(site, (lnt_dtype)in->dtype);
    one_hot_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->dtype = (lnt_dtype)in->dtype;
    p->outer = lnt_extent(in, 0, axis);
    p->depth = site->out[0]->dims[axis];
    p->inner = lnt_extent(in, axis, in->rank);
    p->size = (int64_t)lnt_element_size(site->in[2]);
    site->step->run = run_one_hot;
    return LNT_OK;
}
