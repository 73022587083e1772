/* fuse_batchnorm.c — folds what scales and shifts each channel of a convolution or matrix product into its
 * weights and bias: BatchNormalization, and Mul, Div, Add, Sub with a constant per channel.
 *
 * All of these are y = a[c] * x + b[c]; a chain of them is gathered in double precision and rounded once. A
 * BatchNormalization with nothing to fold it into becomes Mul and Add, which fuse elementwise. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

#include <math.h>

/* The product whose output channels are scaled. */
typedef struct product {
    lnt_gnode *node;
    lnt_operand weight;  /* constant input 1 */
    unsigned rank, axis; /* of the output; channels are along axis */
    int64_t channels;
    double *scale, *shift; /* [channels] */
    bool scaled;
} product;

static const lnt_operand *info(const lnt_graph *g, uint32_t value)
{
    return &g->value[value].info;
}

/* ---- reading the followers ---- */

/* One value per channel from a float constant that broadcasts along the channel axis alone. */
static bool per_channel(const lnt_graph *g, uint32_t value, const product *p, double *out)
{
    int64_t count;
    const float *data = value == LNT_NONE ? NULL : lnt_constant_floats(g, value, &count);
    if (!data || (count != 1 && count != p->channels) || info(g, value)->rank > p->rank)
        return false;
    const lnt_operand *o = info(g, value);
    const unsigned first = p->rank - o->rank; /* axis of the output that axis 0 of the constant meets */
    if (count > 1 && (p->axis < first || o->dims[p->axis - first] != count))
        return false;
    for (int64_t c = 0; c < p->channels; c++)
        out[c] = data[count == 1 ? 0 : c];
    return true;
}

/* One value per channel from a constant of rank 1. */
static bool parameter(const lnt_graph *g, const lnt_gnode *n, unsigned i, int64_t channels, const float **out)
{
    int64_t count;
    *out = lnt_constant_floats(g, n->in[i], &count);
    return *out && count == channels;
}

typedef struct norm {
    const float *scale, *bias, *mean, *variance;
    float epsilon;
} norm;

static bool norm_of(const lnt_graph *g, const lnt_gnode *n, int64_t channels, norm *bn)
{
    for (unsigned i = 1; i < n->n_out; i++)
        if (n->out[i] != LNT_NONE)
            return false;
    bn->epsilon = lnt_gnode_float(n, "epsilon", 1e-5f);
    return lnt_gnode_int(n, "training_mode", 0) == 0 && parameter(g, n, 1, channels, &bn->scale) &&
           parameter(g, n, 2, channels, &bn->bias) && parameter(g, n, 3, channels, &bn->mean) &&
           parameter(g, n, 4, channels, &bn->variance);
}

static void norm_channel(const norm *bn, int64_t c, double *scale, double *shift)
{
    *scale = bn->scale[c] / sqrt((double)bn->variance[c] + bn->epsilon);
    *shift = bn->bias[c] - bn->mean[c] * *scale;
}

static bool absorb_norm(const lnt_graph *g, product *p, const lnt_gnode *n)
{
    norm bn;
    if (p->axis != 1 || !norm_of(g, n, p->channels, &bn))
        return false;
    for (int64_t c = 0; c < p->channels; c++) {
        double scale, shift;
        norm_channel(&bn, c, &scale, &shift);
        p->scale[c] *= scale;
        p->shift[c] = p->shift[c] * scale + shift;
    }
    p->scaled = true;
    return true;
}

/* Mul, Div, Add, Sub of the running value with a constant; k holds [channels] doubles. */
static bool absorb_arithmetic(const lnt_graph *g, product *p, const lnt_gnode *n, uint32_t running, double *k)
{
    const bool mul = lnt_is(n, Mul), div = lnt_is(n, Div), add = lnt_is(n, Add), sub = lnt_is(n, Sub);
    if (!(mul || div || add || sub) || n->n_in != 2)
        return false;
    const unsigned at = n->in[0] == running ? 1 : 0;
    if ((at == 0 && (div || sub)) || n->in[at] == running || !per_channel(g, n->in[at], p, k))
        return false;
    for (int64_t c = 0; c < p->channels; c++) {
        const double factor = mul ? k[c] : div ? 1 / k[c] : 1;
        p->scale[c] *= factor;
        p->shift[c] = p->shift[c] * factor + (add ? k[c] : sub ? -k[c] : 0);
    }
    p->scaled |= mul || div;
    return true;
}

/* ---- writing the product ---- */

/* Output channel that element i of the weights belongs to. */
static int64_t channel_of(const product *p, int64_t i)
{
    const lnt_operand *w = &p->weight;
    int64_t inner = 1;
    for (unsigned d = 2; d < w->rank; d++)
        inner *= w->dims[d];
    if (lnt_is(p->node, Conv))
        return i / (inner * w->dims[1]);
    if (lnt_is(p->node, ConvTranspose)) {
        const int64_t in_group = w->dims[0] / lnt_gnode_int(p->node, "group", 1);
        return i / (inner * w->dims[1]) / in_group * w->dims[1] + i / inner % w->dims[1];
    }
    const bool rows = lnt_is(p->node, Gemm) && lnt_gnode_int(p->node, "transB", 0);
    return rows ? i / w->dims[1] : i % w->dims[1];
}

static lnt_status scale_weights(lnt_edit *e, product *p)
{
    lnt_graph *g = e->g;
    const uint32_t old = p->node->in[1];
    const int64_t count = lnt_operand_count(&p->weight);
    const float *from = p->weight.data;
    float *w = lnt_bump_alloc(&g->memory, (size_t)count * sizeof *w, g->err);
    if (!w)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < count; i++)
        w[i] = (float)(from[i] * p->scale[channel_of(p, i)]);
    const uint32_t scaled = lnt_add_floats(g, g->value[old].name, p->weight.rank, p->weight.dims, w);
    return scaled == LNT_NONE ? LNT_E_MEMORY : lnt_edit_set_input(e, p->node, 1, scaled);
}

/* Bias of channel c before the followers. */
static double old_bias(const float *bias, int64_t count, double beta, int64_t c)
{
    return bias ? beta * bias[count == 1 ? 0 : c] : 0;
}

/* Input 2 of Conv, ConvTranspose and Gemm: its values, NULL if there is none; false if it cannot be folded. */
static bool bias_of(const lnt_graph *g, const lnt_gnode *n, int64_t channels, const float **bias,
                    int64_t *count)
{
    const uint32_t value = lnt_in_value(n, 2);
    *bias = NULL;
    if (value == LNT_NONE)
        return true;
    *bias = lnt_constant_floats(g, value, count);
    const unsigned rank = info(g, value)->rank;
    return *bias && (*count == 1 || (*count == channels && info(g, value)->dims[rank - 1] == channels));
}

static lnt_status write_bias(lnt_edit *e, product *p)
{
    lnt_graph *g = e->g;
    const float *old;
    int64_t count = 0;
    const bool gemm = lnt_is(p->node, Gemm);
    const double beta = gemm ? lnt_gnode_float(p->node, "beta", 1.0f) : 1;
    if (!bias_of(g, p->node, p->channels, &old, &count))
        return LNT_OK;
    float *bias = lnt_bump_alloc(&g->memory, (size_t)p->channels * sizeof *bias, g->err);
    if (!bias)
        return LNT_E_MEMORY;
    for (int64_t c = 0; c < p->channels; c++)
        bias[c] = (float)(old_bias(old, count, beta, c) * p->scale[c] + p->shift[c]);
    const uint32_t value = lnt_add_floats(g, p->node->name, 1, &p->channels, bias);
    if (value == LNT_NONE)
        return LNT_E_MEMORY;
    if (gemm)
        LNT_TRY(lnt_gnode_set_float(g, p->node, "beta", 1.0f));
    return lnt_edit_set_input(e, p->node, 2, value);
}

/* A MatMul has no bias: the shifts become an Add behind it, which the epilogue takes. */
static lnt_status write_add(lnt_edit *e, product *p, lnt_gnode *last)
{
    lnt_graph *g = e->g;
    float *shift = lnt_bump_alloc(&g->memory, (size_t)p->channels * sizeof *shift, g->err);
    if (!shift)
        return LNT_E_MEMORY;
    for (int64_t c = 0; c < p->channels; c++)
        shift[c] = (float)p->shift[c];
    const uint32_t in[2] = {p->node->out[0], lnt_add_floats(g, last->name, 1, &p->channels, shift)};
    if (in[1] == LNT_NONE || !lnt_edit_substitute(e, last, lnt_op_by_id(LNT_ID_Add), in, 2))
        return LNT_E_MEMORY;
    return LNT_OK;
}

/* ---- the pass ---- */

/* Fills *p if n is a product with constant weights whose output channels are known. */
static bool product_of(const lnt_graph *g, lnt_gnode *n, product *p)
{
    int64_t count;
    if (n->dead || n->program ||
        !(lnt_is(n, Conv) || lnt_is(n, ConvTranspose) || lnt_is(n, Gemm) || lnt_is(n, MatMul)) ||
        !lnt_constant_floats(g, n->in[1], &count) || count == 0)
        return false;
    *p = (product){.node = n, .weight = *info(g, n->in[1]), .rank = info(g, n->out[0])->rank, .axis = 1};
    const lnt_operand *w = &p->weight;
    if (p->rank > LNT_MAX_RANK || p->rank < 2)
        return false;
    if (lnt_is(n, Conv))
        p->channels = w->dims[0];
    else if (lnt_is(n, ConvTranspose))
        p->channels = w->dims[1] * lnt_gnode_int(n, "group", 1);
    else if (w->rank != 2)
        return false;
    else if (lnt_is(n, Gemm))
        p->channels = w->dims[lnt_gnode_int(n, "transB", 0) ? 0 : 1];
    else {
        p->channels = w->dims[1];
        p->axis = p->rank - 1;
    }
    const float *bias;
    return lnt_is(n, MatMul) || bias_of(g, n, p->channels, &bias, &count);
}

static lnt_status count_folded(lnt_edit *e, const lnt_gnode *n)
{
    return lnt_edit_count(e, lnt_is(n, BatchNormalization) ? "BatchNormalization folded"
                                                           : "scale or shift folded");
}

static lnt_status fold_followers(lnt_edit *e, product *p)
{
    lnt_graph *g = e->g;
    const size_t channels = (size_t)p->channels;
    double *memory = lnt_bump_alloc(&g->memory, 3 * channels * sizeof *memory, g->err);
    if (!memory)
        return LNT_E_MEMORY;
    p->scale = memory;
    p->shift = memory + channels;
    for (size_t c = 0; c < channels; c++)
        p->scale[c] = 1;
    lnt_gnode *last = p->node, *first = NULL;
    for (lnt_gnode *n; (n = lnt_edit_follower(e, last)) != NULL; last = n) {
        if (lnt_is(n, BatchNormalization) ? n->in[0] != last->out[0] || !absorb_norm(g, p, n)
                                          : !absorb_arithmetic(g, p, n, last->out[0], memory + 2 * channels))
            break;
        first = first ? first : n;
    }
    if (!first || (lnt_is(p->node, MatMul) && !p->scaled))
        return LNT_OK;
    for (lnt_gnode *n = first, *behind; n != last; n = behind) {
        behind = lnt_edit_follower(e, n);
        LNT_TRY(count_folded(e, n));
        lnt_edit_drop(e, n);
    }
    LNT_TRY(count_folded(e, last));
    if (p->scaled)
        LNT_TRY(scale_weights(e, p));
    if (lnt_is(p->node, MatMul))
        return write_add(e, p, last);
    LNT_TRY(write_bias(e, p));
    p->node->out[0] = last->out[0];
    g->value[last->out[0]].producer = p->node;
    lnt_edit_drop(e, last);
    return LNT_OK;
}

/* A BatchNormalization on its own: Mul and Add with constants [C, 1, ...]. */
static lnt_status split_norm(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    const lnt_operand *x = info(g, n->in[0]);
    norm bn;
    if (x->rank > LNT_MAX_RANK || x->rank < 2 || x->dtype != LNT_FLOAT)
        return LNT_OK;
    int64_t dims[LNT_MAX_RANK] = {info(g, n->in[1])->dims[0], 1, 1, 1, 1, 1, 1, 1};
    const size_t channels = (size_t)dims[0];
    if (!norm_of(g, n, dims[0], &bn))
        return LNT_OK;
    float *k = lnt_bump_alloc(&g->memory, 2 * channels * sizeof *k, g->err);
    if (!k)
        return LNT_E_MEMORY;
    for (size_t c = 0; c < channels; c++) {
        double scale, shift;
        norm_channel(&bn, (int64_t)c, &scale, &shift);
        k[c] = (float)scale;
        k[channels + c] = (float)shift;
    }
    const unsigned rank = x->rank - 1u;
    const uint32_t scale = lnt_add_floats(g, n->name, rank, dims, k);
    const uint32_t shift = lnt_add_floats(g, n->name, rank, dims, k + channels);
    uint32_t scaled;
    if (scale == LNT_NONE || shift == LNT_NONE ||
        !lnt_edit_insert(e, n, lnt_op_by_id(LNT_ID_Mul), (uint32_t[]){n->in[0], scale}, 2, LNT_NONE,
                         &scaled) ||
        !lnt_edit_substitute(e, n, lnt_op_by_id(LNT_ID_Add), (uint32_t[]){scaled, shift}, 2))
        return LNT_E_MEMORY;
    return lnt_edit_count(e, "BatchNormalization as Mul and Add");
}

lnt_status lnt_pass_fuse_batchnorm(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    product p;
    LNT_TRY(lnt_edit_begin(&e, g, report, "fuse_batchnorm"));
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++)
            if (product_of(g, g->sub[s].node[i], &p))
                LNT_TRY(fold_followers(&e, &p));
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++)
            if (lnt_is(g->sub[s].node[i], BatchNormalization))
                LNT_TRY(split_norm(&e, g->sub[s].node[i]));
    return LNT_OK;
}
