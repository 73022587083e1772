/* expand_microsoft.c — com.microsoft operators, as onnxruntime's optimizer and quantizer write them, made of
 * ONNX's own. Attention and its kind are in expand_attention.c. */
#include "convert/import/expand.h"

#include <math.h>

/* The node with its attributes, its operator and operands others. */
static void finish_like(maker *m, const lnt_inode *n, const char *op, operands in)
{
    if (m->status == LNT_OK)
        m->status = lnt_make_into(m->im, n, op, in.value, in.n, n->attr, n->n_attr, n->out[0]);
}

static uint32_t make_like(maker *m, const lnt_inode *n, const char *op, operands in)
{
    uint32_t out = LNT_NONE;
    if (m->status == LNT_OK)
        m->status = lnt_make(m->im, n, op, in.value, in.n, n->attr, n->n_attr, &out);
    return out;
}

static operands inputs_of(const lnt_inode *n)
{
    operands in = {.n = n->n_in};
    for (unsigned i = 0; i < n->n_in; i++)
        in.value[i] = n->in[i];
    return in;
}

/* ---- products ---- */

/* transBatchA, transBatchB: axis 0 of the operand stands behind the axes of the batch. */
static uint32_t batch_first(maker *m, lnt_inode *n, const char *attr, uint32_t value)
{
    const lnt_operand *o = lnt_ginfo(m->im->g, value);
    int64_t perm[LNT_MAX_RANK];
    const bool wanted = lnt_inode_i(n, attr, 0) != 0;
    lnt_inode_drop(n, attr);
    if (!wanted || m->status != LNT_OK)
        return value;
    if (o->rank == LNT_RANK_UNKNOWN) {
        m->status = lnt_import_unsupported(m->im, n, "%s needs an operand of known rank", attr);
        return LNT_NONE;
    }
    if (o->rank < 3)
        return value;
    for (unsigned i = 0; i < o->rank; i++)
        perm[i] = i + 2u == o->rank ? 0 : i + 1u == o->rank ? i : i + 1;
    return transpose(m, value, perm, o->rank);
}

static void expand_transpose_matmul(maker *m)
{
    lnt_inode *n = m->n;
    finish_like(m, n, "com.microsoft.FusedMatMul", IN(n->in[0], n->in[1]));
}

static void expand_matmul(maker *m)
{
    lnt_inode *n = m->n;
    const uint32_t a = batch_first(m, n, "transBatchA", n->in[0]);
    const uint32_t b = batch_first(m, n, "transBatchB", n->in[1]);
    if (a != LNT_NONE && b != LNT_NONE)
        finish_like(m, n, "com.microsoft.FusedMatMul", IN(a, b));
}

/* ---- normalization ---- */

/* A sum, which goes into the product before it, and a plain normalization. Narrower types keep the operator
 * that does both: it rounds once. */
static void skip_norm(maker *m, lnt_inode *n, const char *op, unsigned bias, unsigned affine)
{
    const float epsilon = lnt_inode_f(n, "epsilon", 1e-12f);
    const lnt_attr at = {.name = "epsilon", .type = LNT_ATTR_FLOAT, .count = 1, .f = &epsilon};
    const uint32_t mean = n->n_out > 1 ? n->out[1] : LNT_NONE, factor = n->n_out > 2 ? n->out[2] : LNT_NONE;
    n->replaced = type_of(m, n->in[0]) == LNT_FLOAT && mean == LNT_NONE && factor == LNT_NONE;
    if (!n->replaced)
        return;
    uint32_t x = n->in[0];
    if (lnt_inode_in(n, bias) != LNT_NONE)
        x = make(m, "Add", IN(x, n->in[bias]), NULL);
    const uint32_t sum = make(m, "Add", IN(x, n->in[1]), NULL);
    operands in = {{sum, n->in[2], lnt_inode_in(n, 3)}, affine};
    finish(m, 0, op, in, &at);
    finish(m, 3, "Identity", IN(sum), NULL);
}

static void expand_skip_norm(maker *m)
{
    lnt_inode *n = m->n;
    skip_norm(m, n, "LayerNormalization", 4, 3);
}

static void expand_skip_rms_norm(maker *m)
{
    lnt_inode *n = m->n;
    skip_norm(m, n, "RMSNormalization", 3, 2);
}

/* ---- an activation behind a product or a convolution ---- */

enum { ACTIVATION_PARAMS = 3 };

/* Takes the attributes that are about the activation away from n. */
static unsigned take_activation(lnt_inode *n, lnt_attr taken[ACTIVATION_PARAMS], const char **op)
{
    static const char *const names[] = {"alpha", "beta", "gamma"};
    const lnt_attr *params = lnt_inode_attr(n, "activation_params");
    unsigned count = 0;
    *op = lnt_inode_s(n, "activation", "");
    for (unsigned i = 0; params && params->type == LNT_ATTR_FLOATS && i < params->count && i < 2; i++)
        taken[count++] = (lnt_attr){names[i], LNT_ATTR_FLOAT, 1, {.f = params->f + i}};
    for (unsigned i = 0; i < 3; i++) {
        static const char *const long_names[] = {"activation_alpha", "activation_beta", "activation_gamma"};
        const lnt_attr *a = lnt_inode_attr(n, long_names[i]);
        if (a && a->type == LNT_ATTR_FLOAT && count < ACTIVATION_PARAMS)
            taken[count++] = (lnt_attr){names[i], LNT_ATTR_FLOAT, 1, {.f = a->f}};
        lnt_inode_drop(n, long_names[i]);
    }
    lnt_inode_drop(n, "activation_params");
    lnt_inode_drop(n, "activation");
    return count;
}

static uint32_t activate(maker *m, const char *op, const lnt_attr *attr, unsigned n_attr, uint32_t x)
{
    uint32_t out = x;
    if (m->status != LNT_OK || !op[0])
        return x;
    if (strcmp(op, "Clip") == 0)
        return make(m, "Clip",
                    IN(x, scalar(m, "low", LNT_FLOAT, n_attr > 0 ? (double)*attr[0].f : -INFINITY),
                       scalar(m, "high", LNT_FLOAT, n_attr > 1 ? (double)*attr[1].f : INFINITY)),
                    NULL);
    m->status = lnt_make(m->im, m->n, op, &x, 1, attr, n_attr, &out);
    return out;
}

static void expand_gemm(maker *m)
{
    lnt_inode *n = m->n;
    lnt_attr attr[ACTIVATION_PARAMS];
    const char *op;
    const unsigned count = take_activation(n, attr, &op);
    const uint32_t y = make_like(m, n, "Gemm", inputs_of(n));
    finish(m, 0, "Identity", IN(activate(m, op, attr, count, y)), NULL);
}

/* Axis 1 to the end, or back. Rank 3 to 5. */
static uint32_t move_channels(maker *m, uint32_t value, bool last)
{
    const lnt_operand *o = lnt_ginfo(m->im->g, value);
    int64_t perm[LNT_MAX_RANK];
    if (m->status != LNT_OK || value == LNT_NONE)
        return value;
    if (o->rank == LNT_RANK_UNKNOWN || o->rank < 3) {
        m->status = lnt_import_unsupported(m->im, m->n, "channels that come last need a known rank");
        return LNT_NONE;
    }
    for (unsigned i = 0; i < o->rank; i++)
        perm[i] = i == 0 ? 0 : last ? i % (o->rank - 1u) + 1 : (i + o->rank - 3u) % (o->rank - 1u) + 1;
    return transpose(m, value, perm, o->rank);
}

static void fused_conv(maker *m, lnt_inode *n, bool channels_last)
{
    lnt_attr attr[ACTIVATION_PARAMS];
    const char *op;
    const unsigned count = take_activation(n, attr, &op);
    operands in = inputs_of(n);
    uint32_t residual = lnt_inode_in(n, 3);
    in.n = in.n > 3 ? 3 : in.n;
    if (channels_last) {
        in.value[0] = move_channels(m, in.value[0], false);
        residual = move_channels(m, residual, false);
    }
    uint32_t y = make_like(m, n, "Conv", in);
    if (residual != LNT_NONE)
        y = make(m, "Add", IN(y, residual), NULL);
    y = activate(m, op, attr, count, y);
    finish(m, 0, "Identity", IN(channels_last ? move_channels(m, y, true) : y), NULL);
}

static void expand_conv(maker *m)
{
    lnt_inode *n = m->n;
    fused_conv(m, n, false);
}

static void expand_nhwc_conv(maker *m)
{
    lnt_inode *n = m->n;
    fused_conv(m, n, true);
}

/* Operators that work on channels where they come first, between two transposes. */
static void around(maker *m, lnt_inode *n, const char *op)
{
    operands in = inputs_of(n);
    lnt_inode_drop(n, "channels_last");
    in.value[0] = move_channels(m, in.value[0], false);
    const uint32_t y = make_like(m, n, op, in);
    finish(m, 0, "Identity", IN(move_channels(m, y, true)), NULL);
}

static void expand_max_pool(maker *m)
{
    lnt_inode *n = m->n;
    around(m, n, "MaxPool");
}

static void expand_average_pool(maker *m)
{
    lnt_inode *n = m->n;
    around(m, n, "com.microsoft.QLinearAveragePool");
}

static void expand_global_pool(maker *m)
{
    lnt_inode *n = m->n;
    around(m, n, "com.microsoft.QLinearGlobalAveragePool");
}

static void expand_qconv(maker *m)
{
    lnt_inode *n = m->n;
    if (lnt_inode_i(n, "channels_last", 0)) {
        around(m, n, "QLinearConv");
        return;
    }
    lnt_inode_drop(n, "channels_last");
    finish_like(m, n, "QLinearConv", inputs_of(n));
}

/* ---- quantized ---- */

/* The same operator of ONNX. */
static void expand_quantize(maker *m)
{
    lnt_inode *n = m->n;
    finish_like(m, n, n->op, inputs_of(n));
}

/* Is the node QLinearGemm in another form? A bias for each column, int8 or uint8 output, neither scaled nor turned. */
static bool is_qlinear_gemm(maker *m, const lnt_inode *n)
{
    const uint32_t bias = lnt_inode_in(n, 6);
    const lnt_operand *b = lnt_ginfo(m->im->g, n->in[3]),
                      *c = bias == LNT_NONE ? NULL : lnt_ginfo(m->im->g, bias);
    return lnt_inode_in(n, 7) != LNT_NONE && lnt_inode_in(n, 8) != LNT_NONE &&
           lnt_inode_in(n, 2) != LNT_NONE && lnt_inode_in(n, 5) != LNT_NONE &&
           lnt_inode_f(n, "alpha", 1) == 1 && !lnt_inode_i(n, "transA", 0) && c && b->rank == 2 &&
           c->rank == 1 && c->dims[0] >= 0 && c->dims[0] == b->dims[lnt_inode_i(n, "transB", 0) ? 0 : 1];
}

/* Y = alpha * a_scale * b_scale * ((A - a_zero) (B - b_zero) + C), quantized where y_scale is given. */
static void expand_qgemm(maker *m)
{
    lnt_inode *n = m->n;
    static const int64_t swapped[] = {1, 0};
    if (is_qlinear_gemm(m, n)) {
        const int64_t turned = lnt_inode_i(n, "transB", 0);
        const uint32_t *in = n->in;
        finish(m, 0, "linnet.QLinearGemm",
               (operands){{in[0], in[1], in[2], in[3], in[4], in[5], in[7], in[8], in[6]}, 9},
               INT_ATTR("transB", &turned));
        return;
    }
    const uint32_t y_scale = lnt_inode_in(n, 7);
    uint32_t a = n->in[0], b = n->in[3];
    if (lnt_inode_i(n, "transA", 0))
        a = transpose(m, a, swapped, 2);
    if (lnt_inode_i(n, "transB", 0))
        b = transpose(m, b, swapped, 2);
    uint32_t sum = make(m, "MatMulInteger", IN(a, b, n->in[2], n->in[5]), NULL);
    if (lnt_inode_in(n, 6) != LNT_NONE)
        sum = make(m, "Add", IN(sum, n->in[6]), NULL);
    const uint32_t alpha = scalar(m, "alpha", LNT_FLOAT, (double)lnt_inode_f(n, "alpha", 1));
    uint32_t factor = make(m, "Mul", IN(make(m, "Mul", IN(alpha, n->in[1]), NULL), n->in[4]), NULL);
    if (y_scale != LNT_NONE)
        factor = make(m, "Div", IN(factor, y_scale), NULL);
    const operands product = IN(cast(m, sum, LNT_FLOAT), factor);
    if (y_scale == LNT_NONE) {
        finish(m, 0, "Mul", product, NULL);
        return;
    }
    const uint32_t y = make(m, "Mul", product, NULL), one = scalar(m, "one", LNT_FLOAT, 1);
    finish(m, 0, "QuantizeLinear", IN(y, one, lnt_inode_in(n, 8)), NULL);
}

/* Weights [directions][K][gates], with one scale per direction or per column, as LSTM wants them. */
static uint32_t lstm_weights(maker *m, uint32_t value, uint32_t scale, uint32_t zero)
{
    static const int64_t columns_first[] = {0, 2, 1};
    const lnt_operand *o = lnt_ginfo(m->im->g, scale);
    const uint32_t axes = o->rank == 2 ? INTS(m, "axes", 1) : INTS(m, "axes", 1, 2);
    uint32_t w = cast(m, value, LNT_FLOAT);
    if (zero != LNT_NONE)
        w = make(m, "Sub", IN(w, make(m, "Unsqueeze", IN(cast(m, zero, LNT_FLOAT), axes), NULL)), NULL);
    w = make(m, "Mul", IN(w, make(m, "Unsqueeze", IN(scale, axes), NULL)), NULL);
    return transpose(m, w, columns_first, 3);
}

/* Constant weights [directions][K][gates], zero in the middle of their range, as int8 [directions][gates][K];
 * LNT_NONE where they are others. */
static uint32_t lstm_int8(maker *m, uint32_t value, uint32_t zero)
{
    lnt_graph *g = m->im->g;
    const lnt_operand *w = lnt_ginfo(g, value), *z = zero == LNT_NONE ? NULL : lnt_ginfo(g, zero);
    const uint8_t flip = w->dtype == LNT_UINT8 ? 0x80 : 0;
    bool fits = (w->dtype == LNT_INT8 || w->dtype == LNT_UINT8) && w->rank == 3 && w->constant && w->data &&
                (z ? z->constant && z->data && z->dtype == w->dtype : !flip);
    for (int64_t i = 0; fits && z && i < lnt_operand_count(z); i++)
        fits = ((const uint8_t *)z->data)[i] == flip;
    if (!fits || m->status != LNT_OK)
        return LNT_NONE;
    const int64_t dims[] = {w->dims[0], w->dims[2], w->dims[1]}, n = lnt_operand_count(w);
    uint8_t *turned = lnt_bump_alloc(&g->memory, (size_t)n + 1, g->err);
    for (int64_t i = 0; turned && i < n; i++) {
        const int64_t k = i % dims[2], column = i / dims[2] % dims[1], d = i / dims[2] / dims[1];
        turned[i] = ((const uint8_t *)w->data)[(d * dims[2] + k) * dims[1] + column] ^ flip;
    }
    const uint32_t made =
        turned ? lnt_graph_add_constant(g, g->value[value].name, LNT_INT8, 3, dims, turned, (size_t)n)
               : LNT_NONE;
    m->status = made == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
    return made;
}

/* A scale per direction, or per column of it, for the columns as they are packed: 16 units of each gate side
 * by side; LNT_NONE where it is no constant of that size. */
static uint32_t lstm_scales(maker *m, uint32_t value, int64_t directions, int64_t columns)
{
    enum { GATES = 4 };
    lnt_graph *g = m->im->g;
    const lnt_operand *o = lnt_ginfo(g, value);
    const int64_t hidden = columns / GATES, row = GATES * ((hidden + LNT_PANEL - 1) / LNT_PANEL * LNT_PANEL);
    const int64_t count = lnt_operand_count(o), n = directions * row;
    if (!o->constant || !o->data || o->dtype != LNT_FLOAT ||
        (count != directions && count != directions * columns) || m->status != LNT_OK)
        return LNT_NONE;
    float *to = lnt_bump_alloc(&g->memory, (size_t)n * sizeof *to, g->err);
    for (int64_t i = 0; to && i < n; i++) {
        const int64_t d = i / row, unit = i % row / (GATES * LNT_PANEL) * LNT_PANEL + i % LNT_PANEL,
                      gate = i % row / LNT_PANEL % GATES;
        const int64_t from = count == directions ? d : d * columns + gate * hidden + unit;
        to[i] = unit < hidden ? ((const float *)o->data)[from] : 0;
    }
    const uint32_t made =
        to ? lnt_graph_add_constant(g, g->value[value].name, LNT_FLOAT, 1, &n, to, (size_t)n * sizeof *to)
           : LNT_NONE;
    m->status = made == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
    return made;
}

/* Weights whose zero point is in the middle stay int8: DynamicLSTM rounds inputs and state in every step as
 * onnxruntime does, but each row over its own range. Others are brought back to float. */
static void expand_lstm(maker *m)
{
    lnt_inode *n = m->n;
    operands in = inputs_of(n);
    for (unsigned i = 8; i <= 10 && m->status == LNT_OK; i += 2)
        if (lnt_inode_in(n, i) == LNT_NONE)
            m->status = lnt_import_unsupported(m->im, n, "input %u, a scale, is required", i);
    if (m->status != LNT_OK)
        return;
    for (unsigned i = in.n; i < 10; i++)
        in.value[i] = LNT_NONE;
    in.n = 10;
    const uint32_t w = lstm_int8(m, n->in[1], lnt_inode_in(n, 9)),
                   r = lstm_int8(m, n->in[2], lnt_inode_in(n, 11));
    if (w != LNT_NONE && r != LNT_NONE) {
        const lnt_operand o = *lnt_ginfo(m->im->g, r); /* scales are values, too: they may move it */
        in.value[1] = w;
        in.value[2] = r;
        in.value[8] = lstm_scales(m, n->in[8], o.dims[0], o.dims[1]);
        in.value[9] = lstm_scales(m, n->in[10], o.dims[0], o.dims[1]);
        if (m->status == LNT_OK && in.value[8] != LNT_NONE && in.value[9] != LNT_NONE) {
            m->status = lnt_make_node(m->im, n, "linnet.DynamicLSTM", in.value, in.n, n->attr, n->n_attr,
                                      n->out, n->n_out);
            return;
        }
    }
    in.n = 8;
    in.value[1] = lstm_weights(m, n->in[1], n->in[8], lnt_inode_in(n, 9));
    in.value[2] = lstm_weights(m, n->in[2], n->in[10], lnt_inode_in(n, 11));
    if (m->status == LNT_OK)
        m->status = lnt_make_node(m->im, n, "LSTM", in.value, in.n, n->attr, n->n_attr, n->out, n->n_out);
}

static uint32_t dequantize(maker *m, uint32_t value, uint32_t scale, uint32_t zero)
{
    return make(m, "DequantizeLinear", zero == LNT_NONE ? IN(value, scale) : IN(value, scale, zero), NULL);
}

static void expand_qwhere(maker *m)
{
    lnt_inode *n = m->n;
    const uint32_t x = dequantize(m, n->in[1], n->in[2], n->in[3]);
    const uint32_t y = dequantize(m, n->in[4], n->in[5], n->in[6]);
    finish(m, 0, "QuantizeLinear", IN(make(m, "Where", IN(n->in[0], x, y), NULL), n->in[7], n->in[8]), NULL);
}

enum { Q_IDS, Q_SEGMENT_IDS, Q_TABLES, Q_GAMMA = 5, Q_BETA, Q_MASK, Q_SCALES, Q_ZEROS = 13 };

/* Rows of table 0 (words), 1 (positions) or 2 (segments). */
static uint32_t embed(maker *m, unsigned table, uint32_t ids)
{
    const lnt_inode *n = m->n;
    const uint32_t rows = make(m, "Gather", IN(lnt_inode_in(n, Q_TABLES + table), ids), NULL);
    return dequantize(m, rows, lnt_inode_in(n, Q_SCALES + table), lnt_inode_in(n, Q_ZEROS + table));
}

static void expand_embedding(maker *m)
{
    lnt_inode *n = m->n;
    const float epsilon = lnt_inode_f(n, "epsilon", 1e-12f);
    const lnt_attr at = {.name = "epsilon", .type = LNT_ATTR_FLOAT, .count = 1, .f = &epsilon};
    const uint32_t zero = scalar(m, "zero", LNT_INT64, 0), one = scalar(m, "one", LNT_INT64, 1);
    const uint32_t length = make(m, "Squeeze", IN(extent(m, n->in[Q_IDS], 1)), NULL);
    const uint32_t positions = make(m, "Range", IN(zero, length, one), NULL);
    uint32_t sum = make(m, "Add", IN(embed(m, 0, n->in[Q_IDS]), embed(m, 1, positions)), NULL);
    if (lnt_inode_in(n, Q_SEGMENT_IDS) != LNT_NONE)
        sum = make(m, "Add", IN(sum, embed(m, 2, n->in[Q_SEGMENT_IDS])), NULL);
    const uint32_t gamma =
        dequantize(m, lnt_inode_in(n, Q_GAMMA), lnt_inode_in(n, Q_SCALES + 3), lnt_inode_in(n, Q_ZEROS + 3));
    const uint32_t beta =
        dequantize(m, lnt_inode_in(n, Q_BETA), lnt_inode_in(n, Q_SCALES + 4), lnt_inode_in(n, Q_ZEROS + 4));
    finish(m, 0, "LayerNormalization", IN(sum, gamma, beta), &at);
    if (n->n_out < 2 || n->out[1] == LNT_NONE)
        return;
    const int64_t no = 0;
    const uint32_t mask = lnt_inode_in(n, Q_MASK), nothing = scalar(m, "nothing", LNT_INT32, 0);
    const uint32_t counted = mask != LNT_NONE ? mask : make(m, "Mul", IN(n->in[Q_IDS], nothing), NULL);
    finish(m, 1, "ReduceSum", IN(counted, INTS(m, "axis", 1)), INT_ATTR("keepdims", &no));
}

/* ---- */

#define NCHWC "com.microsoft.nchwc"

/* `when`: applies only where this integer attribute is not 0. */
static const lnt_expansion expansions[] = {
    {"Attention", NULL, 2, 7, 2, lnt_expand_attention},
    {"DequantizeLinear", NULL, 2, 3, 1, expand_quantize},
    {"DynamicQuantizeLSTM", NULL, 3, 12, 3, expand_lstm},
    {"FusedConv", NULL, 2, 4, 1, expand_conv},
    {"FusedGemm", NULL, 2, 3, 1, expand_gemm},
    {"FusedMatMul", "transBatchA", 2, 2, 1, expand_matmul},
    {"FusedMatMul", "transBatchB", 2, 2, 1, expand_matmul},
    {"GroupQueryAttention", NULL, 1, 16, 4, lnt_expand_grouped_attention},
    {"MultiHeadAttention", NULL, 1, 10, 4, lnt_expand_multi_head_attention},
    {"NhwcFusedConv", NULL, 2, 4, 1, expand_nhwc_conv},
    {"NhwcMaxPool", NULL, 1, 1, 1, expand_max_pool},
    {"QAttention", NULL, 5, 9, 2, lnt_expand_quantized_attention},
    {"QEmbedLayerNormalization", NULL, 1, 18, 2, expand_embedding},
    {"QGemm", NULL, 6, 9, 1, expand_qgemm},
    {"QLinearAveragePool", "channels_last", 4, 5, 1, expand_average_pool},
    {"QLinearConv", NULL, 8, 9, 1, expand_qconv},
    {"QLinearGlobalAveragePool", "channels_last", 4, 5, 1, expand_global_pool},
    {"QLinearWhere", NULL, 9, 9, 1, expand_qwhere},
    {"QuantizeLinear", NULL, 2, 3, 1, expand_quantize},
    {"RotaryEmbedding", NULL, 4, 4, 1, lnt_expand_rotary},
    {"SkipLayerNormalization", NULL, 3, 5, 4, expand_skip_norm},
    {"SkipSimplifiedLayerNormalization", NULL, 3, 4, 4, expand_skip_rms_norm},
    {"TransposeMatMul", NULL, 2, 2, 1, expand_transpose_matmul},
};

lnt_status lnt_expand_microsoft(lnt_importer *im, lnt_inode *n)
{
    if (strcmp(n->domain, NCHWC) == 0) {
        n->replaced = true;
        return lnt_import_unsupported(im, n,
                                      "its weights lie as the machine that wrote the model wants them: have "
                                      "onnxruntime write it with ORT_ENABLE_EXTENDED instead");
    }
    return strcmp(n->domain, "com.microsoft") == 0
               ? lnt_expand_by(expansions, sizeof expansions / sizeof expansions[0], im, n)
               : LNT_OK;
}
