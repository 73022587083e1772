/* qreal.c — com.microsoft's operators on quantized tensors that are done in float: QLinearAveragePool,
 * QLinearGlobalAveragePool, QLinearSoftmax. The input is dequantized into scratch memory, the float operator
 * runs there, its result is quantized; means of planes are taken of the bytes' sums instead. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/quant/qparams.h"

#include <string.h>

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO }; /* inputs */

typedef struct real {
    const lnt_int8_kernels *int8;
    lnt_step inner;    /* of the float operator */
    lnt_operand x, y;  /* its operands */
    int64_t plane;     /* elements of each mean, which lie side by side; 0: the float operator runs */
    size_t x_at, y_at; /* where they are in the scratch memory, behind that of the float operator */
} real;

typedef struct real_job {
    const lnt_int8_kernels *int8;
    lnt_dtype x_type, y_type;
    const void *x;
    float *x_real, *y_real;
    void *y;
    float x_scale, y_scale;
    int32_t x_zero, y_zero;
    int64_t plane;
} real_job;

static lnt_status dequantize(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const real_job *j = arg;
    (void)k, (void)thread;
    j->int8->dequantize((const uint8_t *)j->x + begin, j->x_real + begin, end - begin, j->x_scale, j->x_zero,
                       j->x_type == LNT_INT8);
    return LNT_OK;
}

static lnt_status quantize(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const real_job *j = arg;
    (void)k, (void)thread;
    j->int8->quantize(j->y_real + begin, (uint8_t *)j->y + begin, end - begin, j->y_scale, j->y_zero,
                     j->y_type == LNT_INT8);
    return LNT_OK;
}

static lnt_status average_planes(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const real_job *j = arg;
    const double scale = (double)j->x_scale / (double)j->plane;
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int32_t sum =
            j->int8->sum((const uint8_t *)j->x + i * j->plane, j->plane, j->x_type == LNT_INT8);
        j->y_real[i] = (float)((double)(sum - j->plane * j->x_zero) * scale);
    }
    return LNT_OK;
}

static lnt_status run_real(lnt_kernel *k, const lnt_step *s)
{
    const real *p = s->params;
    LNT_ASSERT(p->x_at < s->scratch_bytes && p->y_at < s->scratch_bytes);
    char *scratch = lnt_scratch(k, s);
    lnt_operand x = p->x, y = p->y, *in = &x, *out = &y;
    x.storage = y.storage = s->scratch_slot;
    x.offset = p->x_at;
    y.offset = p->y_at;
    lnt_step inner = p->inner;
    inner.in = &in;
    inner.out = &out;
    inner.scratch_slot = s->scratch_slot;
    real_job job = {p->int8,
                    s->in[X]->dtype,
                    s->out[0]->dtype,
                    lnt_in(k, s, X),
                    (float *)(scratch + p->x_at),
                    (float *)(scratch + p->y_at),
                    lnt_out(k, s, 0),
                    lnt_qstep_float(k, s, X_SCALE),
                    lnt_qstep_float(k, s, Y_SCALE),
                    lnt_qstep_int(k, s, X_ZERO),
                    lnt_qstep_int(k, s, Y_ZERO),
                    p->plane};
    const int64_t means = lnt_operand_count(&y);
    if (p->plane) {
        LNT_TRY(lnt_parallel(k, means, 1 + 65536 / p->plane, average_planes, &job));
    } else {
        LNT_TRY(lnt_parallel(k, lnt_operand_count(&x), 16384, dequantize, &job));
        LNT_TRY(inner.run(k, &inner));
    }
    return lnt_parallel(k, means, 16384, quantize, &job);
}

/* The float operator's site: one input, one output, the same attributes. */
typedef struct inner_site {
    lnt_node node;
    lnt_operand x, y, *in, *out;
    lnt_site site;
} inner_site;

/* Moves the channels of an operand that the node declares to be [N, ..., C] to axis 1. */
static void channels_to_front(lnt_operand *o)
{
    const int64_t channels = o->dims[o->rank - 1];
    memmove(o->dims + 2, o->dims + 1, (o->rank - 2u) * sizeof *o->dims);
    o->dims[1] = channels;
    o->order = LNT_ORDER_CHANNELS_LAST;
}

/* Softmax before opset 13: all axes from the given one on are one. */
static lnt_status flatten(const lnt_site *site, lnt_operand *o)
{
    unsigned axis;
    int64_t dims[2] = {1, 1};
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", -1), o->rank, &axis));
    for (unsigned d = 0; d < o->rank; d++)
        dims[d >= axis] = lnt_dim_mul(dims[d >= axis], o->dims[d]);
    o->rank = 2;
    memcpy(o->dims, dims, sizeof dims);
    return LNT_OK;
}

/* The extents themselves have the channels behind, whatever the storage order. */
static bool declared_last(const lnt_site *site)
{
    return lnt_attr_i(site->node, "channels_last", 0) && site->in[X]->rank > 2;
}

static lnt_status make_inner(const lnt_site *site, inner_site *s)
{
    const unsigned id = site->node->op->id;
    const lnt_op *op = lnt_op_by_id(id == LNT_ID_QLinearSoftmax       ? LNT_ID_Softmax
                                    : id == LNT_ID_QLinearAveragePool ? LNT_ID_AveragePool
                                                                      : LNT_ID_GlobalAveragePool);
    s->node = *site->node;
    s->node.op = op;
    s->x = *site->in[X];
    s->y = *site->out[0];
    s->x.dtype = s->y.dtype = LNT_FLOAT;
    if (declared_last(site))
        channels_to_front(&s->x);
    if (op->id == LNT_ID_Softmax && lnt_attr_i(site->node, "opset", 13) < 13) {
        LNT_TRY(flatten(site, &s->x));
        s->node.n_attr = 0; /* the axis is the last one now */
    }
    s->in = &s->x;
    s->out = &s->y;
    s->site = *site;
    s->site.node = &s->node;
    s->site.in = &s->in;
    s->site.out = &s->out;
    s->site.n_in = s->site.n_out = 1;
    return lnt_row_shape(&s->site);
}

lnt_status lnt_shape_qreal(lnt_site *site)
{
    inner_site inner;
    LNT_TRY(make_inner(site, &inner));
    if (inner.x.rank == 2 && site->in[X]->rank != 2) {
        lnt_set_dims_like(site, 0, site->in[X]);
        return LNT_OK;
    }
    if (declared_last(site)) {
        const int64_t channels = inner.y.dims[1];
        memmove(inner.y.dims + 1, inner.y.dims + 2, (inner.y.rank - 2u) * sizeof *inner.y.dims);
        inner.y.dims[inner.y.rank - 1] = channels;
    }
    lnt_set_dims(site, 0, inner.y.rank, inner.y.dims);
    return LNT_OK;
}

/* Elements of a channel's mean where they lie side by side, and a sum of bytes is no more than an int32; else 0. */
static int64_t plane_of(const inner_site *s)
{
    const int64_t count = lnt_operand_count(&s->x), means = lnt_operand_count(&s->y);
    if (!LNT_HAS_QLinearGlobalAveragePool || s->node.op->id != LNT_ID_GlobalAveragePool ||
        s->x.order == LNT_ORDER_CHANNELS_LAST || means == 0 || count / means > INT32_MAX / 256)
        return 0;
    return count / means;
}

lnt_status lnt_bind_qreal(lnt_site *site)
{
    inner_site inner;
    real *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (!lnt_is_byte(site->in[X]->dtype))
        return lnt_bind_unsupported_type(site, site->in[X]->dtype);
    p->int8 = site->kernels->int8;
    LNT_TRY(make_inner(site, &inner));
    inner.y.order = inner.x.order;
    inner.site.step = &p->inner;
    LNT_TRY(lnt_site_bind(&inner.site));
    p->x = inner.x;
    p->y = inner.y;
    p->inner.n_in = p->inner.n_out = 1;
    p->plane = plane_of(&inner);
    size_t total = lnt_round_up(p->inner.scratch_bytes, LNT_ALIGN);
    LNT_REQUIRE(lnt_reserve(&total, lnt_operand_count(&p->x), sizeof(float), &p->x_at) &&
                    lnt_reserve(&total, lnt_operand_count(&p->y), sizeof(float), &p->y_at),
                site->err, LNT_E_LIMIT, "an operand is too large");
    site->step->params = p;
    site->step->run = run_real;
    lnt_bind_scratch(site, total);
    return LNT_OK;
}
