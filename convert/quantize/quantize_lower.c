/* quantize_lower.c — writes the main graph's nodes as the plan has them.
 *
 * A quantized value has a uint8 twin. Where the value is read as float, DequantizeLinear computes it from the twin,
 * so that float nodes stay as they are; where a float value is read as uint8, QuantizeLinear computes the twin
 * before its first reader.
 *
 * Biases are corrected by the mean error that quantized weights and inputs add to a channel (bias correction: Nagel,
 * van Baalen, Blankevoort and Welling, "Data-Free Quantization Through Weight Equalization and Bias Correction",
 * 2019), with means that were recorded. */
#include "base/lnt_assert.h"
#include "convert/quantize/quantize_rounding.h"
#include "convert/quantize/quantize_static.h"

#include "convert/graph/edit.h"
#include "ops/quant/qparams.h"

#include <math.h>
#include <string.h>

static lnt_status append(lnt_graph *g, lnt_gnode *n)
{
    lnt_gsubgraph *s = &g->sub[0];
    LNT_TRY(LNT_GROW(g->memory.allocator, s->node, s->node_capacity, s->n_nodes, g->err));
    s->node[s->n_nodes++] = n;
    for (unsigned i = 0; i < n->n_out; i++)
        if (n->out[i] != LNT_NONE)
            g->value[n->out[i]].producer = n;
    return LNT_OK;
}

static lnt_gnode *add(lnt_static *st, const lnt_gnode *for_node, unsigned op, const uint32_t *in,
                      unsigned n_in, uint32_t out)
{
    return lnt_graph_add_node(st->g, 0, NULL, lnt_op_by_id(op), for_node->name, in, n_in, &out, 1);
}

/* ---- constants and twins ---- */

static lnt_status scalar(lnt_static *st, const char *name, lnt_dtype type, const void *data, uint32_t *out)
{
    *out = lnt_graph_add_constant(st->g, name, type, 0, NULL, data, lnt_dtype_size(type));
    return *out == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
}

/* The quantization parameters of a value, scale and zero point, as constants. */
static lnt_status qparams(lnt_static *st, uint32_t value, uint32_t *scale, uint32_t *zero)
{
    uint32_t root = value;
    while (st->value[root].group != root)
        root = st->value[root].group;
    lnt_qvalue *v = &st->value[root];
    const uint8_t origin = (uint8_t)v->zero;
    if (v->scale_value == LNT_NONE) {
        LNT_TRY(scalar(st, "scale", LNT_FLOAT, &v->scale, &v->scale_value));
        LNT_TRY(scalar(st, "zero", LNT_UINT8, &origin, &v->zero_value));
    }
    *scale = v->scale_value;
    *zero = v->zero_value;
    return LNT_OK;
}

/* Scales and zero points of the channels of a equalized value. */
static lnt_status channel_qparams(lnt_static *st, uint32_t value, uint32_t *scale, uint32_t *zero)
{
    const lnt_qvalue *v = &st->value[value];
    const size_t n = (size_t)v->channels;
    float *scales = lnt_bump_alloc(&st->g->memory, n * sizeof *scales, st->g->err);
    uint8_t *zeros = lnt_bump_alloc(&st->g->memory, n, st->g->err);
    if (!scales || !zeros)
        return LNT_E_MEMORY;
    for (size_t c = 0; c < n; c++)
        scales[c] = v->scale * v->divisor[c];
    memset(zeros, v->zero, n);
    *scale = lnt_add_floats(st->g, "scale", 1, &v->channels, scales);
    *zero = lnt_graph_add_constant(st->g, "zero", LNT_UINT8, 1, &v->channels, zeros, n);
    return *scale == LNT_NONE || *zero == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
}

static lnt_status twin(lnt_static *st, uint32_t value, uint32_t *out)
{
    LNT_ASSERT(value < st->g->n_values);
    lnt_qvalue *v = &st->value[value];
    if (v->twin == LNT_NONE) {
        v->twin = lnt_graph_add_value(st->g, st->g->value[value].name);
        if (v->twin == LNT_NONE)
            return LNT_E_MEMORY;
        st->twinned[st->n_twinned++] = value;
    }
    *out = v->twin;
    return LNT_OK;
}

/* The twin of what node n reads, made here where nothing has made it yet; and its quantization parameters. */
static lnt_status quantized_input(lnt_static *st, const lnt_gnode *n, uint32_t value, uint32_t in[3])
{
    lnt_qvalue *v = &st->value[value];
    LNT_TRY(qparams(st, value, &in[1], &in[2]));
    LNT_TRY(twin(st, value, &in[0]));
    if (v->twin_written)
        return LNT_OK;
    v->twin_written = true;
    const uint32_t operands[] = {value, in[1], in[2]};
    return add(st, n, LNT_ID_QuantizeLinear, operands, 3, in[0]) ? LNT_OK : LNT_E_MEMORY;
}

/* Is the value read as floats? */
static bool read_as_floats(const lnt_static *st, uint32_t value)
{
    bool floats = st->value[value].outside;
    for (uint32_t r = st->value[value].first_reader; r != LNT_NONE && !floats; r = st->reader[r].next) {
        const lnt_qsite *s = &st->site[st->reader[r].site];
        floats = !s->folded && (!s->on || !lnt_q_reads_quantized(s, st->reader[r].operand));
    }
    return floats;
}

/* ---- what each kind becomes ---- */

/* Puts operator op, whose output is the site's quantized output. */
static lnt_status put_quantized(lnt_static *st, lnt_qsite *s, unsigned op, const uint32_t *in, unsigned n_in)
{
    const uint32_t y = st->site[s->last].node->out[0];
    uint32_t quantized, operands[3];
    LNT_TRY(twin(st, y, &quantized));
    s->lowered = add(st, s->node, op, in, n_in, quantized);
    if (!s->lowered)
        return LNT_E_MEMORY;
    st->value[y].twin_written = true;
    if (!read_as_floats(st, y))
        return LNT_OK;
    operands[0] = quantized;
    if (st->value[y].equalized)
        LNT_TRY(channel_qparams(st, y, &operands[1], &operands[2]));
    else
        LNT_TRY(qparams(st, y, &operands[1], &operands[2]));
    lnt_gnode *floats = add(st, s->node, LNT_ID_DequantizeLinear, operands, 3, y);
    return floats ? lnt_gnode_set_int(st->g, floats, "axis", 1) : LNT_E_MEMORY;
}

static void take_attributes(lnt_qsite *s)
{
    s->lowered->attr = s->node->attr;
    s->lowered->n_attr = s->node->n_attr;
}

/* The weights, with what their input's channels were divided by: in the caller's block. */
static lnt_status scaled_weights(const lnt_static *st, const lnt_qsite *s, lnt_operand *w, float **block)
{
    const lnt_qvalue *x = &st->value[s->node->in[0]];
    *w = *lnt_ginfo(st->g, s->product.weights);
    *block = NULL;
    if (!x->equalized)
        return LNT_OK;
    const int64_t n = lnt_operand_count(w);
    const float *from = w->data;
    float *to = *block = lnt_alloc_zero(st->g->memory.allocator, (size_t)n, sizeof *to, st->g->err);
    if (!to)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i] * x->divisor[lnt_q_weight_channel(s->node, w, i)];
    w->data = to;
    return LNT_OK;
}

/* What rounding adds to the sums of column n on average: of the weights w, because the input's channels are
 * not 0 on average, and of the input, where what is common lies between two levels (a bound below 0, say). */
static double mean_error(const lnt_static *st, const lnt_qsite *s, const lnt_operand *w, const double *offset,
                         int64_t n)
{
    const lnt_qvalue *x = &st->value[s->node->in[0]];
    const int8_t *weight = st->g->value[s->product.quantized].info.data;
    const float scale = ((const float *)st->g->value[s->product.scale].info.data)[n];
    const int64_t run = lnt_operand_count(w) / w->dims[0];
    double error = 0;
    for (int64_t i = n * run; i < (n + 1) * run && x->channels && x->channel_count > 0; i++) {
        const int64_t c = lnt_q_weight_channel(s->node, w, i);
        const double divided = x->equalized ? (double)x->divisor[c] : 1, real = (double)weight[i] * scale;
        const double off = real - (double)((const float *)w->data)[i];
        error += (off * x->channel_sum[c] / x->channel_count + real * offset[c]) / divided;
    }
    return error;
}

/* The mean quantization error of the channels of a convolution's input: in the caller's block. */
static double *channel_offsets(const lnt_static *st, const lnt_qsite *s)
{
    const lnt_qvalue *x = &st->value[s->node->in[0]];
    double *offset =
        lnt_alloc_zero(st->g->memory.allocator, (size_t)x->channels + 1, sizeof *offset, st->g->err);
    for (int64_t c = 0; offset && c < x->channels; c++)
        offset[c] = lnt_static_channel_offset(st, s->node->in[0], c);
    return offset;
}

/* Biases in units of both scales, and their negatives, less what rounding adds. */
static lnt_status make_bias(lnt_static *st, lnt_qsite *s, const lnt_operand *w)
{
    lnt_qweights *p = &s->product;
    const float *bias = p->bias == LNT_NONE ? NULL : st->g->value[p->bias].info.data;
    const float *scale = st->g->value[p->scale].info.data;
    const size_t bytes = (size_t)p->columns * sizeof(int32_t);
    int32_t *sum = lnt_bump_alloc(&st->g->memory, bytes, st->g->err);
    int32_t *negative = lnt_bump_alloc(&st->g->memory, bytes, st->g->err);
    double *offset = sum && negative ? channel_offsets(st, s) : NULL;
    if (!offset)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < p->columns; i++) {
        const double unit = (double)p->x_scale * scale[i];
        const double real =
            (bias ? (double)bias[i] : 0) - (lnt_is(s->node, Conv) ? mean_error(st, s, w, offset, i) : 0);
        sum[i] = (int32_t)lrint(fmax(-INT32_MAX, fmin(INT32_MAX, real / unit)));
        negative[i] = -sum[i];
    }
    lnt_free(st->g->memory.allocator, offset);
    const char *name = st->g->value[p->weights].name;
    p->bias_ints = lnt_graph_add_constant(st->g, name, LNT_INT32, 1, &p->columns, sum, bytes);
    p->bias_zero = lnt_graph_add_constant(st->g, name, LNT_INT32, 1, &p->columns, negative, bytes);
    return p->bias_ints == LNT_NONE || p->bias_zero == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
}

/* What the terms of a equalized input are divided by, [groups][terms] as quantize_rounding.h wants it; NULL
 * where memory is short. */
static float *divisors(const lnt_static *st, const lnt_qsite *s, const lnt_operand *w)
{
    const lnt_rounding *r = s->product.rounding;
    const int64_t in_group = w->dims[0] / r->groups;
    float *to =
        lnt_alloc_zero(st->g->memory.allocator, (size_t)(r->groups * r->terms), sizeof *to, st->g->err);
    for (int64_t i = 0; to && i < r->groups * r->terms; i++) {
        const int64_t element = i / r->terms * in_group * r->terms + i % r->terms;
        to[i] = st->value[s->node->in[0]].divisor[lnt_q_weight_channel(s->node, w, element)];
    }
    return to;
}

static lnt_status round_weights(lnt_static *st, const lnt_qsite *s, const lnt_operand *w)
{
    const lnt_qweights *p = &s->product;
    float *divided = NULL;
    if (!p->rounding)
        return LNT_OK;
    if (p->x_equalized && !(divided = divisors(st, s, w)))
        return LNT_E_MEMORY;
    const lnt_status status = lnt_round_weights(st->g, p->rounding, w, !lnt_is(s->node, Conv), p->scale,
                                                p->factor, divided, p->quantized);
    lnt_free(st->g->memory.allocator, divided);
    return status;
}

/* Least scales of the columns: biases in units of both scales must not overflow. */
static float *least_scales(const lnt_static *st, const lnt_qweights *p, float x_scale)
{
    enum { LARGEST_BIAS = 1 << 30 };
    const float *bias = p->bias == LNT_NONE ? NULL : st->g->value[p->bias].info.data;
    float *least = lnt_bump_alloc(&st->g->memory, (size_t)p->columns * sizeof *least, st->g->err);
    for (int64_t i = 0; least && bias && i < p->columns; i++)
        least[i] = fabsf(bias[i]) / x_scale / LARGEST_BIAS;
    return least;
}

/* Takes what was made before, for inputs of another scale, if its scales are large enough. */
static bool use_made(const lnt_static *st, lnt_qweights *p, const float *least)
{
    if (!p->made[p->x_equalized].quantized)
        return false;
    const float *scale = st->g->value[p->made[p->x_equalized].scale].info.data;
    for (int64_t i = 0; i < p->columns; i++)
        if (least[i] > fabsf(scale[i] / p->factor))
            return false;
    p->quantized = p->made[p->x_equalized].quantized;
    p->scale = p->made[p->x_equalized].scale;
    return true;
}

/* Of weights w, as the site's inputs need them. */
static lnt_status make_int8(lnt_static *st, lnt_qsite *s, const lnt_operand *w, const float *least)
{
    lnt_qweights *p = &s->product;
    if (!use_made(st, p, least)) {
        LNT_TRY(lnt_quantize_weights(st->g, st->g->value[p->weights].name, w, lnt_is(s->node, Conv) ? 0 : 1,
                                     1, p->factor, least, &p->quantized, &p->scale));
        LNT_TRY(round_weights(st, s, w));
        p->made[p->x_equalized].quantized = p->quantized;
        p->made[p->x_equalized].scale = p->scale;
    }
    return make_bias(st, s, w);
}

static lnt_status make_weights(lnt_static *st, lnt_qsite *s)
{
    lnt_qweights *p = &s->product;
    lnt_operand w;
    float *block;
    const bool equalized = st->value[s->node->in[0]].equalized;
    const float x_scale = lnt_static_qparams(st, s->node->in[0])->scale;
    if (p->x_scale == x_scale && p->x_equalized == equalized)
        return LNT_OK;
    const float *least = least_scales(st, p, x_scale);
    if (!least)
        return LNT_E_MEMORY;
    p->x_scale = x_scale;
    p->x_equalized = equalized;
    LNT_TRY(scaled_weights(st, s, &w, &block));
    const lnt_status status = make_int8(st, s, &w, least);
    lnt_free(st->g->memory.allocator, block);
    return status;
}

/* Scales of the columns, as they are, or divided as the channels of a equalized output y are. */
static lnt_status column_scales(lnt_static *st, const lnt_qweights *p, uint32_t y, uint32_t *scale)
{
    const lnt_qvalue *v = &st->value[y];
    *scale = p->scale;
    if (!v->equalized)
        return LNT_OK;
    const float *from = st->g->value[p->scale].info.data;
    float *to = lnt_bump_alloc(&st->g->memory, (size_t)p->columns * sizeof *to, st->g->err);
    if (!to)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < p->columns; i++)
        to[i] = from[i] / v->divisor[i];
    *scale = lnt_add_floats(st->g, st->g->value[p->scale].name, 1, &p->columns, to);
    return *scale == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
}

/* ConvInteger, and what dequantizes its int32 sums. */
static lnt_status put_conv_to_float(lnt_static *st, lnt_qsite *s, const uint32_t x[3], uint32_t zero)
{
    const lnt_qweights *p = &s->product;
    const uint32_t y = s->node->out[0], in[] = {x[0], p->quantized, x[2], zero};
    const float *scale = st->g->value[p->scale].info.data;
    float *both = lnt_bump_alloc(&st->g->memory, (size_t)p->columns * sizeof *both, st->g->err);
    const uint32_t sums = lnt_graph_add_value(st->g, st->g->value[y].name);
    if (!both || sums == LNT_NONE)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < p->columns; i++)
        both[i] = p->x_scale * scale[i];
    const uint32_t scales = lnt_add_floats(st->g, st->g->value[p->scale].name, 1, &p->columns, both);
    const uint32_t real[] = {sums, scales, p->bias_zero};
    s->lowered = scales == LNT_NONE ? NULL : add(st, s->node, LNT_ID_ConvInteger, in, 4, sums);
    if (!s->lowered)
        return LNT_E_MEMORY;
    take_attributes(s);
    s->behind = add(st, s->node, LNT_ID_DequantizeLinear, real, 3, y);
    return s->behind ? lnt_gnode_set_int(st->g, s->behind, "axis", 1) : LNT_E_MEMORY;
}

/* What is done to outputs below 0: slopes, and floors where channels that were divided each end elsewhere.
 * *n is the number of inputs that it adds. */
static lnt_status put_bend(lnt_static *st, const lnt_qsite *s, uint32_t y, uint32_t *in, unsigned *n)
{
    const lnt_qvalue *v = &st->value[y];
    const int64_t columns = s->product.columns;
    *n = 0;
    if (!s->bend && !(v->equalized && v->clamp_low < 0 && v->clamp_low > -INFINITY))
        return LNT_OK;
    float *slope = lnt_bump_alloc(&st->g->memory, (size_t)columns * 2 * sizeof *slope, st->g->err);
    if (!slope)
        return LNT_E_MEMORY;
    float *floor = slope + columns;
    for (int64_t i = 0; i < columns; i++) {
        slope[i] = s->bend ? lnt_q_slope(st->g, s->bend, i) : 1;
        floor[i] = v->equalized ? v->clamp_low / v->divisor[i] : v->clamp_low;
    }
    in[0] = lnt_add_floats(st->g, "slope", 1, &columns, slope);
    in[1] = lnt_add_floats(st->g, "floor", 1, &columns, floor);
    *n = 2;
    return in[0] == LNT_NONE || in[1] == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
}

static lnt_status put_product(lnt_static *st, lnt_qsite *s)
{
    const bool conv = lnt_is(s->node, Conv);
    const lnt_qweights *p = &s->product;
    const uint32_t y = st->site[s->last].node->out[0];
    uint32_t x[3], zero, scale, ys, yz;
    unsigned more;
    LNT_TRY(quantized_input(st, s->node, s->node->in[0], x));
    LNT_TRY(make_weights(st, s));
    LNT_TRY(scalar(st, "zero", LNT_INT8, &(int8_t){0}, &zero));
    if (s->to_float && conv)
        return put_conv_to_float(st, s, x, zero);
    if (s->to_float) {
        const uint32_t in[] = {x[0], p->quantized, x[1], p->scale, x[2], zero, p->bias};
        s->lowered = add(st, s->node, LNT_ID_MatMulIntegerToFloat, in, p->bias == LNT_NONE ? 6 : 7, y);
        return s->lowered ? LNT_OK : LNT_E_MEMORY;
    }
    LNT_TRY(qparams(st, y, &ys, &yz));
    LNT_TRY(column_scales(st, p, y, &scale));
    uint32_t in[11] = {x[0], x[1], x[2], p->quantized, scale, zero, ys, yz, p->bias_ints};
    LNT_TRY(put_bend(st, s, y, in + 9, &more));
    const unsigned op = conv                  ? LNT_ID_QLinearConv
                        : p->bias == LNT_NONE ? LNT_ID_QLinearMatMul
                                              : LNT_ID_QLinearGemm;
    LNT_TRY(put_quantized(st, s, op, in, conv || p->bias != LNT_NONE ? 9 + more : 8));
    if (conv)
        take_attributes(s);
    return LNT_OK;
}

static lnt_status put_binary(lnt_static *st, lnt_qsite *s)
{
    uint32_t in[8];
    LNT_TRY(quantized_input(st, s->node, s->node->in[0], in));
    LNT_TRY(quantized_input(st, s->node, s->node->in[1], in + 3));
    LNT_TRY(qparams(st, st->site[s->last].node->out[0], &in[6], &in[7]));
    return put_quantized(st, s, lnt_is(s->node, Mul) ? LNT_ID_QLinearMul : LNT_ID_QLinearAdd, in, 8);
}

static lnt_status put_pool(lnt_static *st, lnt_qsite *s)
{
    uint32_t in[5];
    LNT_TRY(quantized_input(st, s->node, s->node->in[0], in));
    LNT_TRY(qparams(st, st->site[s->last].node->out[0], &in[3], &in[4]));
    LNT_TRY(put_quantized(
        st, s, lnt_is(s->node, AveragePool) ? LNT_ID_QLinearAveragePool : LNT_ID_QLinearGlobalAveragePool, in,
        5));
    take_attributes(s);
    return LNT_OK;
}

/* Concat on uint8, or QLinearConcat where the inputs' quantization parameters differ from the output's. */
static lnt_status put_concat(lnt_static *st, lnt_qsite *s)
{
    uint32_t in[2 + 3 * LNT_Q_CONCAT_MOST], same[LNT_Q_CONCAT_MOST];
    const lnt_qvalue *y = lnt_static_qparams(st, s->node->out[0]);
    const unsigned n = s->node->n_in;
    bool alike = true;
    LNT_TRY(qparams(st, s->node->out[0], &in[0], &in[1]));
    for (unsigned i = 0; i < n; i++) {
        LNT_TRY(quantized_input(st, s->node, s->node->in[i], in + 2 + 3 * i));
        same[i] = in[2 + 3 * i];
        alike &= lnt_static_qparams(st, s->node->in[i]) == y;
    }
    if (alike)
        LNT_TRY(put_quantized(st, s, LNT_ID_Concat, same, n));
    else
        LNT_TRY(put_quantized(st, s, LNT_ID_QLinearConcat, in, 2 + 3 * n));
    take_attributes(s);
    return LNT_OK;
}

static lnt_status put_move(lnt_static *st, lnt_qsite *s)
{
    uint32_t x[3], in[8];
    LNT_TRY(quantized_input(st, s->node, s->node->in[0], x));
    for (unsigned i = 0; i < s->node->n_in; i++)
        in[i] = i ? s->node->in[i] : x[0];
    LNT_TRY(put_quantized(st, s, s->node->op->id, in, s->node->n_in));
    take_attributes(s);
    return LNT_OK;
}

/* ---- functions of one number ---- */

enum { UINT8_LEVELS = 256 };

/* Applies node n to x[tables][UINT8_LEVELS], as the channels of a tensor of that rank. */
static lnt_status apply(const lnt_graph *g, const lnt_gnode *n, unsigned rank, int64_t tables, float *x,
                        float *result)
{
    lnt_operand variable = {
        .dtype = LNT_FLOAT, .rank = (uint8_t)rank, .dims = {1, tables, UINT8_LEVELS}, .data = x};
    lnt_operand constants[4], *in[4], y = {0}, *out = &y;
    void *data = result;
    lnt_node view;
    lnt_gnode_view(n, &view);
    for (unsigned d = 3; d < rank; d++)
        variable.dims[d] = 1;
    for (unsigned i = 0; i < n->n_in; i++) {
        const bool is_constant = n->in[i] != LNT_NONE && g->value[n->in[i]].constant;
        if (is_constant)
            constants[i] = g->value[n->in[i]].info;
        in[i] = n->in[i] == LNT_NONE ? NULL : is_constant ? &constants[i] : &variable;
    }
    lnt_site site = {.node = &view, .in = in, .out = &out, .n_in = n->n_in, .n_out = 1, .err = g->err};
    LNT_TRY(lnt_site_shape(&site));
    LNT_REQUIRE(y.dtype == LNT_FLOAT && lnt_operand_count(&y) == tables * UINT8_LEVELS, g->err,
                LNT_E_INTERNAL, "%s is no function of one number", n->name);
    LNT_TRY(lnt_evaluate(g->memory.allocator, &view, in, &out, &data, LNT_LEVEL_SCALAR, 0, g->err));
    memcpy(x, result, (size_t)(tables * UINT8_LEVELS) * sizeof *x);
    return LNT_OK;
}

/* The lookup table of the chain of functions from s on, as a constant: its output for each uint8 input. */
static lnt_status make_table(lnt_static *st, const lnt_qsite *s, uint32_t value, uint32_t *table)
{
    lnt_graph *g = st->g;
    const lnt_qvalue *from = lnt_static_qparams(st, value);
    const lnt_qvalue *to = lnt_static_qparams(st, st->site[s->last].node->out[0]);
    const unsigned rank = g->value[value].info.rank < 3 ? 3 : g->value[value].info.rank;
    const lnt_qsite *last = &st->site[s->last], *f;
    int64_t tables = s->tables;
    for (f = s; f != last; f = &st->site[f->next])
        tables = st->site[f->next].tables > tables ? st->site[f->next].tables : tables;
    const size_t n = (size_t)tables * UINT8_LEVELS;
    float *x = lnt_bump_alloc(&g->memory, 2 * n * sizeof *x, g->err);
    uint8_t *quantized = lnt_bump_alloc(&g->memory, n, g->err);
    if (!x || !quantized)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((int32_t)(i % UINT8_LEVELS) - from->zero) * from->scale;
    LNT_TRY(apply(g, s->node, rank, tables, x, x + n));
    for (f = s; f != last; f = &st->site[f->next])
        LNT_TRY(apply(g, st->site[f->next].node, rank, tables, x, x + n));
    for (size_t i = 0; i < n; i++)
        quantized[i] = (uint8_t)lnt_requantize(x[i] / to->scale, to->zero, lnt_qrange_of(LNT_UINT8));
    const int64_t dims[] = {tables, UINT8_LEVELS};
    *table = lnt_graph_add_constant(g, s->node->name, LNT_UINT8, 2, dims, quantized, n);
    return *table == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
}

/* The function that alone reads value v, the same for all channels; or NULL. */
static const lnt_qsite *only_function(const lnt_static *st, uint32_t v)
{
    const uint32_t r = st->value[v].first_reader;
    if (st->value[v].outside || r == LNT_NONE || st->reader[r].next != LNT_NONE)
        return NULL;
    const lnt_qsite *s = &st->site[st->reader[r].site];
    return s->kind == LNT_Q_TABLE && s->tables == 1 ? s : NULL;
}

/* Leaves out the ends of v's range where the functions behind it no longer change: levels are better spent
 * elsewhere. */
static lnt_status trim_range(lnt_static *st, uint32_t v)
{
    const lnt_graph *g = st->g;
    lnt_qvalue *value = &st->value[v];
    const lnt_qsite *s = only_function(st, v);
    float x[UINT8_LEVELS], result[UINT8_LEVELS], least = INFINITY, most = -INFINITY;
    int from = 0, to = UINT8_LEVELS - 1;
    if (!s || !value->usable || value->producer == LNT_NONE || st->site[value->producer].kind == LNT_Q_TABLE)
        return LNT_OK;
    const float step = (value->high - value->low) / (UINT8_LEVELS - 1);
    for (int i = 0; i < UINT8_LEVELS; i++)
        x[i] = value->low + (float)i * step;
    for (; s; s = only_function(st, s->node->out[0]))
        LNT_TRY(apply(g, s->node, 3, 1, x, result));
    for (int i = 0; i < UINT8_LEVELS; i++) {
        least = fminf(least, x[i]);
        most = fmaxf(most, x[i]);
    }
    const float same = (most - least) / (2 * UINT8_LEVELS);
    while (from < UINT8_LEVELS - 1 && fabsf(x[from + 1] - x[0]) <= same)
        from++;
    while (to > from && fabsf(x[to - 1] - x[UINT8_LEVELS - 1]) <= same)
        to--;
    if (most - least > 0 && from < to)
        lnt_static_set_range(st, v, fminf(value->low + (float)from * step, 0),
                             fmaxf(value->low + (float)to * step, 0));
    return LNT_OK;
}

lnt_status lnt_static_trim_ranges(lnt_static *st)
{
    for (uint32_t v = 0; v < st->n_values; v++)
        LNT_TRY(trim_range(st, v));
    return LNT_OK;
}

/* One table for the whole chain. */
static lnt_status put_table(lnt_static *st, lnt_qsite *s)
{
    uint32_t value = LNT_NONE, x[3], table;
    for (unsigned i = 0; i < s->node->n_in; i++)
        if (s->node->in[i] != LNT_NONE && !st->g->value[s->node->in[i]].constant)
            value = s->node->in[i];
    LNT_TRY(make_table(st, s, value, &table));
    LNT_TRY(quantized_input(st, s->node, value, x));
    const uint32_t in[] = {x[0], table};
    return put_quantized(st, s, LNT_ID_LookupTable, in, 2);
}

static lnt_status put(lnt_static *st, lnt_qsite *s)
{
    s->lowered = s->behind = NULL;
    if (s->folded)
        return LNT_OK;
    if (!s->on)
        return append(st->g, s->node);
    switch (s->kind) {
    case LNT_Q_PRODUCT: return put_product(st, s);
    case LNT_Q_BINARY: return put_binary(st, s);
    case LNT_Q_TABLE: return put_table(st, s);
    case LNT_Q_POOL: return put_pool(st, s);
    case LNT_Q_CONCAT: return put_concat(st, s);
    default: return put_move(st, s);
    }
}

lnt_status lnt_static_lower(lnt_static *st)
{
    st->g->sub[0].n_nodes = 0;
    for (uint32_t v = 0; v < st->n_values; v++)
        if (st->value[v].twin != LNT_NONE)
            st->g->value[st->value[v].twin].producer = NULL;
    for (uint32_t i = 0; i < st->n_sites; i++)
        LNT_TRY(put(st, &st->site[i]));
    return LNT_OK;
}
