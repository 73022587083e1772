/* shape.c — Shape, Size, ConstantOfShape, Range, EyeLike: tensors made of extents and few numbers. */
#include "ops/data/data.h"
#include "ops/number.h"

#include <math.h>
#include <string.h>

/* ---- Shape, Size ---- */

/* A bound of Shape: counted from the end if negative, clamped to [0, rank]. */
static unsigned clamp_axis(int64_t axis, unsigned rank)
{
    if (axis < 0)
        axis += rank;
    return axis < 0 ? 0 : axis > rank ? rank : (unsigned)axis;
}

static void shape_range(const lnt_site *site, unsigned *begin, unsigned *end)
{
    const unsigned rank = site->in[0]->rank;
    *begin = clamp_axis(lnt_attr_i(site->node, "start", 0), rank);
    *end = clamp_axis(lnt_attr_i(site->node, "end", rank), rank);
    if (*end < *begin)
        *end = *begin;
}

lnt_status lnt_shape_shape(lnt_site *site)
{
    unsigned begin, end;
    shape_range(site, &begin, &end);
    lnt_set_dims(site, 0, 1, &(int64_t){end - begin});
    return LNT_OK;
}

static lnt_status run_shape(lnt_kernel *k, const lnt_step *s)
{
    const unsigned *begin = s->params;
    memcpy(lnt_out(k, s, 0), s->in[0]->dims + *begin, (size_t)s->out[0]->dims[0] * sizeof(int64_t));
    return LNT_OK;
}

lnt_status lnt_bind_shape(lnt_site *site)
{
    unsigned end, *begin = lnt_bind_params(site, sizeof *begin);
    if (!begin)
        return LNT_E_MEMORY;
    shape_range(site, begin, &end);
    site->step->run = run_shape;
    return LNT_OK;
}

lnt_status lnt_shape_size(lnt_site *site)
{
    lnt_set_dims(site, 0, 0, NULL);
    return LNT_OK;
}

static lnt_status run_size(lnt_kernel *k, const lnt_step *s)
{
    *(int64_t *)lnt_out(k, s, 0) = lnt_operand_count(s->in[0]);
    return LNT_OK;
}

lnt_status lnt_bind_size(lnt_site *site)
{
    site->step->run = run_size;
    return LNT_OK;
}

/* ---- ConstantOfShape ---- */

lnt_status lnt_shape_constant_of_shape(lnt_site *site)
{
    const lnt_attr *value = lnt_attr_of(site->node, "value", LNT_ATTR_TENSOR);
    int64_t dims[LNT_MAX_RANK];
    unsigned rank = LNT_MAX_RANK;
    lnt_set_type(site, 0, value ? (lnt_dtype)value->tensor->dtype : LNT_FLOAT);
    if (lnt_output(site, 0))
        site->out[0]->rank = LNT_RANK_UNKNOWN;
    const lnt_status status = lnt_value_ints(site, 0, dims, &rank, NULL);
    if (status == LNT_UNKNOWN) {
        LNT_TRY(lnt_value_length(site, 0, &rank));
        return lnt_shape_of_rank(site, rank);
    }
    LNT_TRY(status);
    for (unsigned i = 0; i < rank; i++)
        if (dims[i] < 0)
            return LNT_SITE_FAIL(site, LNT_E_VALUE, "extent %lld of axis %u", (long long)dims[i], i);
    lnt_set_dims(site, 0, rank, dims);
    return LNT_OK;
}

typedef struct fill_params {
    const void *value;
    size_t size;
} fill_params;

typedef struct fill_job {
    const fill_params *p;
    char *dst;
} fill_job;

static lnt_status fill_elements(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const fill_job *job = arg;
    lnt_fill(job->dst + begin * (int64_t)job->p->size, end - begin, job->p->value, job->p->size);
    return LNT_OK;
}

static lnt_status run_constant_of_shape(lnt_kernel *k, const lnt_step *s)
{
    const fill_params *p = s->params;
    fill_job job = {p, lnt_out(k, s, 0)};
    return lnt_parallel(k, lnt_operand_count(s->out[0]), lnt_grain((int64_t)p->size), fill_elements, &job);
}

lnt_status lnt_bind_constant_of_shape(lnt_site *site)
{
    static const double zero = 0;
    const lnt_attr *value = lnt_attr_of(site->node, "value", LNT_ATTR_TENSOR);
    fill_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->size = lnt_element_size(site->out[0]);
    p->value = value ? value->tensor->data : &zero;
    if (p->size == 0 || !p->value || (value && lnt_operand_count(value->tensor) != 1))
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "value must be one number");
    site->step->run = run_constant_of_shape;
    return LNT_OK;
}

/* ---- Range ---- */

/* Elements of start, start + delta, ... before limit. */
static lnt_status count_ints(const lnt_site *site, int64_t start, int64_t limit, int64_t delta, int64_t *n)
{
    if (delta == 0)
        return LNT_SITE_FAIL(site, LNT_E_VALUE, "delta is 0");
    const bool up = delta > 0;
    const uint64_t step = up ? (uint64_t)delta : 0 - (uint64_t)delta;
    const uint64_t way = up ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    const uint64_t steps = (up ? limit > start : limit < start) ? (way - 1) / step + 1 : 0;
    if (steps > INT64_MAX)
        return LNT_SITE_FAIL(site, LNT_E_VALUE, "a range of %llu elements", (unsigned long long)steps);
    *n = (int64_t)steps;
    return LNT_OK;
}

static lnt_status count_floats(const lnt_site *site, double start, double limit, double delta, int64_t *n)
{
    const double steps = ceil((limit - start) / delta);
    if (!(steps < 0x1p62))
        return LNT_SITE_FAIL(site, LNT_E_VALUE, "from %g to %g by %g", start, limit, delta);
    *n = steps > 0 ? (int64_t)steps : 0;
    return LNT_OK;
}

lnt_status lnt_shape_range(lnt_site *site)
{
    const bool floating = lnt_is_floating(site->in[0]->dtype);
    int64_t i[3], n;
    double f[3];
    lnt_set_dims(site, 0, 1, &(int64_t){LNT_DIM_UNKNOWN});
    for (unsigned v = 0; v < 3; v++) {
        unsigned count = 1;
        LNT_TRY(floating ? lnt_value_floats(site, v, &f[v], &count, NULL)
                         : lnt_value_ints(site, v, &i[v], &count, NULL));
        if (count != 1)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "input %u must hold one value", v);
    }
    LNT_TRY(floating ? count_floats(site, f[0], f[1], f[2], &n) : count_ints(site, i[0], i[1], i[2], &n));
    lnt_set_dims(site, 0, 1, &n);
    return LNT_OK;
}

typedef struct range_params {
    lnt_dtype dtype;
    int64_t start, delta;
    double first, step;
} range_params;

/* n integers from start on, delta apart: 16 bytes of them at a time. */
#define COUNT_UP(T)                                                                                          \
    static void count_up_##T(T *to, int64_t n, T start, T delta)                                             \
    {                                                                                                        \
        typedef T strip __attribute__((vector_size(16)));                                                    \
        const int64_t lanes = sizeof(strip) / sizeof(T);                                                     \
        T few[sizeof(strip) / sizeof(T)];                                                                    \
        strip x;                                                                                             \
        for (int64_t i = 0; i < lanes; i++)                                                                  \
            few[i] = (T)(start + (T)i * delta);                                                              \
        memcpy(&x, few, sizeof x);                                                                           \
        for (; n >= lanes; n -= lanes, to += lanes, x += (T)(delta * lanes))                                 \
            memcpy(to, &x, sizeof x);                                                                        \
        memcpy(few, &x, sizeof few);                                                                         \
        memcpy(to, few, (size_t)n * sizeof *to);                                                             \
    }
COUNT_UP(uint64_t)
COUNT_UP(uint32_t)
COUNT_UP(uint16_t)

static lnt_status run_range(lnt_kernel *k, const lnt_step *s)
{
    const range_params *p = s->params;
    void *out = lnt_out(k, s, 0);
    const int64_t n = s->out[0]->dims[0];
    float *to = out;
    double *wide = out;
    switch (p->dtype) {
    case LNT_INT64: count_up_uint64_t(out, n, (uint64_t)p->start, (uint64_t)p->delta); break;
    case LNT_INT32: count_up_uint32_t(out, n, (uint32_t)p->start, (uint32_t)p->delta); break;
    case LNT_INT16: count_up_uint16_t(out, n, (uint16_t)p->start, (uint16_t)p->delta); break;
    case LNT_FLOAT: /* counted by a double: no conversions wait for one another */
        for (double i = 0; i < (double)n; i++)
            *to++ = (float)(p->first + i * p->step);
        break;
    case LNT_DOUBLE:
        for (double i = 0; i < (double)n; i++)
            *wide++ = p->first + i * p->step;
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            lnt_store_number(p->dtype, out, i, p->first + (double)i * p->step);
    }
    return LNT_OK;
}

lnt_status lnt_bind_range(lnt_site *site)
{
    unsigned one = 1;
    range_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->dtype = (lnt_dtype)site->in[0]->dtype;
    if (lnt_is_floating(p->dtype)) {
        LNT_TRY(lnt_value_floats(site, 0, &p->first, &one, NULL));
        LNT_TRY(lnt_value_floats(site, 2, &p->step, &one, NULL));
    } else if (p->dtype == LNT_INT64 || p->dtype == LNT_INT32 || p->dtype == LNT_INT16) {
        LNT_TRY(lnt_value_ints(site, 0, &p->start, &one, NULL));
        LNT_TRY(lnt_value_ints(site, 2, &p->delta, &one, NULL));
    } else {
        return lnt_bind_unsupported_type(site, p->dtype);
    }
    site->step->run = run_range;
    return LNT_OK;
}

/* ---- EyeLike ---- */

lnt_status lnt_shape_eye_like(lnt_site *site)
{
    lnt_set_type(site, 0, (lnt_dtype)lnt_attr_i(site->node, "dtype", site->in[0]->dtype));
    if (lnt_output(site, 0))
        site->out[0]->rank = LNT_RANK_UNKNOWN;
    if (!lnt_rank_known(site->in[0]))
        return LNT_UNKNOWN;
    if (site->in[0]->rank != 2)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the input must be a matrix, has rank %u", site->in[0]->rank);
    lnt_set_dims_like(site, 0, site->in[0]);
    return LNT_OK;
}

static lnt_status run_eye_like(lnt_kernel *k, const lnt_step *s)
{
    const int64_t diagonal = *(const int64_t *)s->params;
    const lnt_operand *o = s->out[0];
    const int64_t rows = o->dims[0], columns = o->dims[1];
    void *out = lnt_out(k, s, 0);
    memset(out, 0, (size_t)(rows * columns) * lnt_element_size(o));
    for (int64_t r = 0; r < rows; r++) {
        int64_t c;
        if (!__builtin_add_overflow(r, diagonal, &c) && c >= 0 && c < columns)
            lnt_store_number((lnt_dtype)o->dtype, out, r * columns + c, 1);
    }
    return LNT_OK;
}

lnt_status lnt_bind_eye_like(lnt_site *site)
{
    int64_t *diagonal = lnt_bind_params(site, sizeof *diagonal);
    if (!diagonal)
        return LNT_E_MEMORY;
    *diagonal = lnt_attr_i(site->node, "k", 0);
    if (lnt_element_size(site->out[0]) == 0)
        return lnt_bind_unsupported_type(site, (lnt_dtype)site->out[0]->dtype);
    site->step->run = run_eye_like;
    return LNT_OK;
}
