/* unpool.c — MaxUnpool: pooled maxima put back where they came from, zeros elsewhere. */
#include "ops/data/data.h"

#include "base/lnt_assert.h"

#include <string.h>

/* Extents that the pooling undone here started from, by its attributes. */
static lnt_status original_dims(const lnt_site *site, int64_t dims[LNT_MAX_RANK])
{
    const lnt_operand *in = site->in[0];
    int64_t kernel[LNT_MAX_RANK], stride[LNT_MAX_RANK], pads[2 * LNT_MAX_RANK];
    if (in->rank < 3)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the input must have rank 3 or more, has %u", in->rank);
    const unsigned axes = in->rank - 2u;
    LNT_TRY(lnt_attr_ints(site, "kernel_shape", kernel, axes, 1));
    LNT_TRY(lnt_attr_ints(site, "strides", stride, axes, 1));
    LNT_TRY(lnt_attr_ints(site, "pads", pads, 2 * axes, 0));
    dims[0] = in->dims[0];
    dims[1] = in->dims[1];
    for (unsigned i = 0; i < axes; i++) {
        const int64_t n = in->dims[i + 2], after = pads[i + axes];
        dims[i + 2] = LNT_DIM_UNKNOWN;
        if (n < 0)
            continue;
        int64_t *out = &dims[i + 2];
        if (__builtin_mul_overflow(n - 1, stride[i], out) || __builtin_sub_overflow(*out, pads[i], out) ||
            __builtin_sub_overflow(*out, after, out) || __builtin_add_overflow(*out, kernel[i], out) ||
            *out < 0)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "axis %u would have extent %lld", i + 2,
                                 (long long)dims[i + 2]);
    }
    return LNT_OK;
}

lnt_status lnt_shape_max_unpool(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    int64_t dims[LNT_MAX_RANK], wanted[LNT_MAX_RANK];
    unsigned n = LNT_MAX_RANK;
    bool given;
    LNT_TRY(original_dims(site, dims));
    const lnt_status status = lnt_value_ints(site, 2, wanted, &n, &given);
    if (status == LNT_UNKNOWN)
        return lnt_shape_of_rank(site, in->rank);
    LNT_TRY(status);
    for (unsigned i = 0; given && i < n; i++)
        if (n != in->rank || wanted[i] < dims[i])
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "output_shape does not hold what was pooled");
    lnt_set_dims(site, 0, in->rank, given ? wanted : dims);
    return LNT_OK;
}

typedef struct unpool_params {
    unsigned axes;                 /* those that lie in the output as the indices count them are one */
    int64_t dims[LNT_MAX_RANK];    /* that the indices count in */
    int64_t step[LNT_MAX_RANK];    /* of the output, in elements */
    int64_t total, n, size, bytes; /* elements that the indices count, and that are put back */
} unpool_params;

static int64_t place_of(const unpool_params *p, int64_t index)
{
    int64_t at = 0;
    unsigned axis = p->axes;
    for (; axis-- > 1; index /= p->dims[axis])
        at += index % p->dims[axis] * p->step[axis];
    return at + index * p->step[0];
}

static lnt_status outside(lnt_kernel *k, const unpool_params *p, int64_t i, int64_t index)
{
    return lnt_fail(k->err, LNT_E_VALUE, "element %lld of indices is %lld, outside %lld elements",
                    (long long)i, (long long)index, (long long)p->total);
}

/* src[n] to where indices[n] says, in the output dst; the size of an element is a constant for floats. */
static inline __attribute__((always_inline)) lnt_status put_back(lnt_kernel *k, const unpool_params *p,
                                                                 const char *src, const int64_t *indices,
                                                                 char *dst, const size_t size)
{
    for (int64_t i = 0; i < p->n; i++) {
        if (indices[i] < 0 || indices[i] >= p->total)
            return outside(k, p, i, indices[i]);
        const int64_t at = p->axes == 1 ? indices[i] : place_of(p, indices[i]);
        memcpy(dst + (size_t)at * size, src + (size_t)i * size, size);
    }
    return LNT_OK;
}

static lnt_status run_max_unpool(lnt_kernel *k, const lnt_step *s)
{
    const unpool_params *p = s->params;
    LNT_ASSERT(p->axes >= 1 && p->axes <= LNT_MAX_RANK && p->size > 0);
    const char *src = lnt_in(k, s, 0);
    const int64_t *indices = lnt_in(k, s, 1);
    char *dst = lnt_out(k, s, 0);
    memset(dst, 0, (size_t)p->bytes);
    return p->size == 4 ? put_back(k, p, src, indices, dst, 4)
                        : put_back(k, p, src, indices, dst, (size_t)p->size);
}

lnt_status lnt_bind_max_unpool(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *out = site->out[0];
    unpool_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (site->in[1]->dtype != LNT_INT64 || lnt_operand_count(site->in[1]) != lnt_operand_count(in))
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "indices must be one int64 per element");
    int64_t dims[LNT_MAX_RANK], step[LNT_MAX_RANK];
    LNT_TRY(original_dims(site, dims));
    lnt_operand_strides(out, step);
    p->total = 1;
    for (unsigned i = 0; i < in->rank; i++) {
        const bool joins = i > 0 && step[i - 1] == dims[i] * step[i];
        p->axes += !joins;
        p->dims[p->axes - 1] = joins ? p->dims[p->axes - 1] * dims[i] : dims[i];
        p->step[p->axes - 1] = step[i];
        p->total *= dims[i];
    }
    p->n = lnt_operand_count(in);
    p->size = (int64_t)lnt_element_size(in);
    p->bytes = lnt_operand_count(out) * p->size;
    site->step->run = run_max_unpool;
    return LNT_OK;
}
