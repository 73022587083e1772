/* qconv.c — int8 convolutions: ConvInteger and QLinearConv, over 1 to 3 spatial axes, with groups.
 *
 * int32 accumulators of products of stored values are exact. Zero points are applied afterwards, together with the
 * bias, as one int32 for each filter (lnt_requant). Padding holds the input's zero point, the real number 0. */
#include "ops/quant/qconv.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/gemm/gemm_driver.h"
#include "ops/product.h"

#include <string.h>

/* Inputs of QLinearConv. Two that ONNX does not have fuse a following LeakyRelu or PRelu: for each filter the slope
 * of values below 0, in 0 to 1, and the lower bound of the result. */
enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS, SLOPE, FLOOR };

/* ---- requantization parameters ---- */

/* Contents of the operands: known at bind, or those of a run. */
typedef struct contents {
    const lnt_operand *const *o;
    const void *data[FLOOR + 1];
    const int32_t *sums; /* of the packed columns */
} contents;

/* Element f of operand i, which is per-tensor (one element) or per-filter. */
static int32_t int_of(const contents *c, unsigned i, int64_t f)
{
    return lnt_qint(c->o[i], c->data[i], c->data[i] && lnt_operand_count(c->o[i]) > 1 ? f : 0, 0);
}

static float float_of(const contents *c, unsigned i, int64_t f)
{
    return lnt_qfloat(c->o[i], c->data[i], c->data[i] && lnt_operand_count(c->o[i]) > 1 ? f : 0);
}

/* Of all parameters. */
static size_t requant_bytes(const lnt_qconv *p)
{
    return (size_t)p->columns * (p->has_slope ? 5 : 3) * sizeof(float);
}

/* Scales, zero points and accumulator biases of all filters. Columns of padding get 0. */
static void fill_requant(const lnt_qconv *p, const contents *c, lnt_requant *n)
{
    const int64_t in_group = p->filters / p->groups;
    const int64_t padded = lnt_qconv_is_depthwise(&p->record) ? 1 : p->columns / p->groups;
    const uint32_t terms = (uint32_t)(p->taps * (p->channels / p->groups));
    n->x_zero = int_of(c, p->x_zero, 0) + (p->x_signed ? 128 : 0);
    n->y_zero = p->linear ? int_of(c, Y_ZERO, 0) : 0;
    n->zeros = false;
    memset(n->scale, 0, requant_bytes(p));
    for (int64_t f = 0; f < p->filters; f++) {
        const int64_t at = f / in_group * padded + f % in_group;
        const int32_t zero = int_of(c, p->w_zero, f) - (p->w_signed ? 0 : 128);
        const uint32_t bias = p->linear ? (uint32_t)int_of(c, BIAS, f) : 0, x_zero = (uint32_t)n->x_zero;
        n->zero[at] = zero;
        n->zeros |= zero != 0;
        n->acc_bias[at] = (int32_t)(bias - x_zero * (uint32_t)c->sums[at] + terms * x_zero * (uint32_t)zero);
        if (p->has_slope) {
            n->slope[at] = float_of(c, SLOPE, f);
            n->floor[at] = float_of(c, FLOOR, f) / float_of(c, Y_SCALE, 0);
        }
        if (p->linear)
            n->scale[at] = float_of(c, X_SCALE, 0) * float_of(c, W_SCALE, f) / float_of(c, Y_SCALE, 0);
    }
}

static void place_requant(const lnt_qconv *p, void *memory, lnt_requant *n)
{
    n->scale = memory;
    n->acc_bias = (int32_t *)(n->scale + p->columns);
    n->zero = n->acc_bias + p->columns;
    n->slope = (float *)(n->zero + p->columns);
    n->floor = n->slope + (p->has_slope ? p->columns : 0);
}

static const int32_t *sums_of(const lnt_qconv *p, const int8_t *packed)
{
    return (const int32_t *)(const void *)(packed + lnt_packed_sums_at(&p->record));
}

/* Computes the parameters at bind if all operands that they depend on are constant. */
static lnt_status bind_requant(lnt_site *site, lnt_qconv *p)
{
    contents c = {.o = (const lnt_operand *const *)site->in};
    p->known = !p->pack;
    for (unsigned i = 1; i < site->n_in; i++) {
        const lnt_operand *o = site->in[i];
        p->known &= !o || (o->constant && o->data);
        c.data[i] = o ? o->data : NULL;
    }
    if (!p->known)
        return LNT_OK;
    void *memory = lnt_bump_alloc(site->memory, requant_bytes(p), site->err);
    if (!memory)
        return LNT_E_MEMORY;
    c.sums = sums_of(p, site->in[p->w_in]->data);
    place_requant(p, memory, &p->requant);
    fill_requant(p, &c, &p->requant);
    return LNT_OK;
}

/* ---- run ---- */

static lnt_status make_images(lnt_kernel *k, const lnt_qconv *p, lnt_qconv_job *j)
{
    uint8_t *scratch = lnt_scratch(k, j->s);
    const uint8_t *x = lnt_in(k, j->s, X);
    j->images = p->images.direct ? x : scratch + p->images_at;
    if (p->images.direct)
        return LNT_OK;
    uint8_t *zeros = scratch + p->zeros_at;
    memset(zeros, (uint8_t)j->requant.x_zero, (size_t)p->batch);
    return lnt_qimage_fill(k, &p->images, x, zeros, scratch + p->images_at);
}

static lnt_status run_qconv(lnt_kernel *k, const lnt_step *s)
{
    const lnt_qconv *p = s->params;
    LNT_ASSERT(!p->pack || p->packed_at < s->scratch_bytes);
    LNT_ASSERT(p->known || p->requant_at < s->scratch_bytes);
    char *scratch = lnt_scratch(k, s);
    lnt_qconv_job job = {.p = p, .s = s, .requant = p->requant, .y = lnt_out(k, s, 0)};
    job.packed = p->pack ? (const int8_t *)scratch + p->packed_at : lnt_in(k, s, p->w_in);
    if (p->pack)
        LNT_TRY(lnt_gemm_pack(k, &p->record, p->w_signed ? LNT_INT8 : LNT_UINT8, lnt_in(k, s, p->w_in),
                              scratch + p->packed_at));
    if (!p->known) {
        contents c = {.o = (const lnt_operand *const *)s->in, .sums = sums_of(p, job.packed)};
        for (unsigned i = 1; i < s->n_in; i++)
            c.data[i] = lnt_in(k, s, i);
        place_requant(p, scratch + p->requant_at, &job.requant);
        fill_requant(p, &c, &job.requant);
    }
    if (lnt_qconv_is_depthwise(&p->record))
        return lnt_qconv_run_depthwise(k, &job);
    LNT_TRY(make_images(k, p, &job));
    return lnt_qconv_run_panels(k, &job);
}

/* ---- shapes and bind ---- */

static unsigned weights_in(const lnt_site *site)
{
    return site->node->op->id == LNT_ID_QLinearConv ? W : 1;
}

lnt_status lnt_shape_qconv(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *weights = site->in[weights_in(site)];
    int64_t dims[LNT_MAX_RANK] = {x->dims[0], weights->dims[0]};
    lnt_window w;
    lnt_set_type(site, 0, weights_in(site) == W ? (lnt_dtype)site->in[Y_ZERO]->dtype : LNT_INT32);
    if (x->rank == LNT_RANK_UNKNOWN || weights->rank == LNT_RANK_UNKNOWN)
        return LNT_UNKNOWN;
    LNT_REQUIRE(weights->rank == x->rank, site->err, LNT_E_SHAPE, "input has rank %u, weights %u", x->rank,
                weights->rank);
    LNT_TRY(lnt_window_with(site, weights->dims + 2, &w));
    LNT_TRY(lnt_window_check_groups(site, weights, false));
    for (unsigned d = 2; d < x->rank; d++)
        dims[d] = w.out[LNT_WINDOW_AXES + d - x->rank];
    lnt_set_dims(site, 0, x->rank, dims);
    return LNT_OK;
}

/* Types of the operands and whether their extents fit together. */
static lnt_status check_operands(lnt_site *site, const lnt_qconv *p)
{
    const lnt_operand *x = site->in[0], *weights = site->in[p->w_in];
    if (!lnt_is_byte(x->dtype))
        return lnt_bind_unsupported_type(site, x->dtype);
    if (!lnt_is_byte(weights->dtype))
        return lnt_bind_unsupported_type(site, weights->dtype);
    if (p->linear && !lnt_is_byte(site->out[0]->dtype))
        return lnt_bind_unsupported_type(site, site->out[0]->dtype);
    LNT_TRY(lnt_window_check_groups(site, weights, false));
    for (unsigned i = p->linear ? W_SCALE : p->w_zero; i < site->n_in; i += i == W_ZERO ? BIAS - W_ZERO : 1) {
        const int64_t n = lnt_input(site, i) ? lnt_operand_count(site->in[i]) : 1;
        LNT_REQUIRE((n == 1 && i != BIAS) || n == p->filters || !site->in[i], site->err, LNT_E_SHAPE,
                    "input %u must hold one number per filter, %lld", i, (long long)p->filters);
    }
    return LNT_OK;
}

static lnt_status read_geometry(lnt_site *site, lnt_qconv *p)
{
    p->w_in = weights_in(site);
    p->linear = p->w_in == W;
    p->has_slope = lnt_input(site, SLOPE) && lnt_input(site, FLOOR);
    p->x_zero = 2;
    p->w_zero = p->linear ? W_ZERO : 3;
    const lnt_operand *x = site->in[0], *weights = site->in[p->w_in], *y = site->out[0];
    LNT_TRY(lnt_window_with(site, weights->dims + 2, &p->w));
    p->int8 = site->kernels->int8;
    p->batch = x->dims[0];
    p->channels = x->dims[1];
    p->filters = weights->dims[0];
    p->groups = lnt_attr_i(site->node, "group", 1);
    p->taps = lnt_volume(p->w.kernel);
    p->x_signed = x->dtype == LNT_INT8;
    p->w_signed = weights->dtype == LNT_INT8;
    p->y_signed = y->dtype == LNT_INT8;
    p->y_plain = y->order == LNT_ORDER_PLAIN && p->filters > 1 && lnt_volume(p->w.out) > 1;
    p->pack = !weights->packed;
    return check_operands(site, p);
}

lnt_status lnt_bind_qconv(lnt_site *site)
{
    size_t scratch = 0, packed = 0;
    lnt_qconv *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(read_geometry(site, p));
    LNT_REQUIRE(lnt_qlinear_record(site->node, site->in[p->w_in], &p->record) &&
                    lnt_packed_bytes(&p->record, &packed),
                site->err, LNT_E_LIMIT, "weights of these extents are not possible");
    p->columns = (int64_t)lnt_packed_panel_count(&p->record) * LNT_QPANEL;
    LNT_TRY(bind_requant(site, p));
    p->requant_at = lnt_qconv_reserve(&scratch, p->known ? 0 : requant_bytes(p));
    p->packed_at = lnt_qconv_reserve(&scratch, p->pack ? packed : 0);
    LNT_REQUIRE(!lnt_input(site, SLOPE) || (p->has_slope && !lnt_qconv_is_depthwise(&p->record)), site->err,
                LNT_E_ARGUMENT, "slopes want floors, and no depthwise convolution");
    if (lnt_qconv_is_depthwise(&p->record)) {
        lnt_qconv_bind_depthwise(site, p, &scratch);
    } else {
        /* Sums of rows, for zero points of weights, are those of uint8. */
        const bool takes_signed = site->kernels->qgemm->takes_moved && p->known && !p->requant.zeros;
        LNT_TRY(lnt_qimage_bind(site, &p->w, p->groups, site->in[0]->order, p->x_signed, &p->record,
                                takes_signed, &p->images));
        lnt_qconv_bind_panels(site, p);
        p->zeros_at = lnt_qconv_reserve(&scratch, (size_t)p->batch);
        p->images_at = lnt_qconv_reserve(&scratch, p->images.bytes);
    }
    lnt_bind_scratch(site, scratch);
    site->step->run = run_qconv;
    return LNT_OK;
}

/* ---- the rows' hooks ---- */

const lnt_product lnt_product_conv_integer = {1u << 1, NULL, lnt_qlinear_record, lnt_conv_multiply_adds};
const lnt_product lnt_product_qlinear_conv = {1u << W, NULL, lnt_qlinear_record, lnt_conv_multiply_adds};
