/* fold_qdq.c — operators between DequantizeLinear and QuantizeLinear become quantized operators.
 *
 *     Q(Conv(DQ(x), DQ(w), DQ(b)))      QLinearConv          w constant, scale of b = those of x and w
 *     Q(MatMul(DQ(a), DQ(b)))           QLinearMatMul
 *     Q(Gemm(DQ(a), DQ(b), DQ(c)))      QLinearGemm, c as b of Conv
 *     Q(Add | Mul | Concat | ...(DQ))   com.microsoft.QLinear*
 *     Q(Reshape | MaxPool | ...(DQ(x))) the same on int8, if Q is the inverse of DQ
 *
 * The sums are exact where they were rounded to float before: a result may be the neighboring level where
 * it falls between two. A Relu before Q goes where Q stores nothing below 0. Runs before constants are folded,
 * so that weights stay int8. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

#include <math.h>
#include <string.h>

/* A quantized value and its quantization parameters; scale LNT_NONE: it is none. */
typedef struct quantized {
    uint32_t value, scale, zero;
    lnt_dtype type;
    float factor; /* the scale, and the zero point, where there is one for the whole tensor */
    double origin;
} quantized;

static bool is_8_bit(lnt_dtype t)
{
    return t == LNT_INT8 || t == LNT_UINT8;
}

/* The constant 0 that stands for a zero point left out. */
static uint32_t no_zero(lnt_graph *g, const lnt_gnode *n, lnt_dtype type)
{
    return lnt_graph_add_constant(g, n->name, type, 0, NULL, &(int32_t){0}, lnt_dtype_size(type));
}

static bool one_float(const lnt_graph *g, uint32_t v)
{
    return lnt_is_constant(g, v) && g->value[v].info.dtype == LNT_FLOAT &&
           lnt_operand_count(&g->value[v].info) == 1;
}

/* Reads scale and zero point of Q or DQ node n, one for the whole tensor. False if it is of another kind. */
static bool read_qparams(lnt_graph *g, const lnt_gnode *n, lnt_dtype type, quantized *q)
{
    double scale, origin = 0;
    q->scale = lnt_in_value(n, 1);
    q->zero = lnt_in_value(n, 2);
    q->type = type;
    if (!one_float(g, q->scale) || !lnt_constant_scalar(g, q->scale, &scale) || !(scale > 0) ||
        lnt_gnode_int(n, "block_size", 0))
        return false;
    if (q->zero == LNT_NONE) {
        q->zero = no_zero(g, n, type);
    } else {
        const lnt_operand *zero = lnt_ginfo(g, q->zero);
        if (!lnt_is_constant(g, q->zero) || lnt_operand_count(zero) != 1)
            return false;
        origin = zero->dtype == LNT_INT8 ? *(const int8_t *)zero->data : *(const uint8_t *)zero->data;
    }
    q->factor = (float)scale;
    q->origin = origin;
    return q->zero != LNT_NONE;
}

/* Input i of n is a dequantized int8 or uint8 tensor. */
static bool dequantized(lnt_graph *g, const lnt_gnode *n, unsigned i, quantized *q)
{
    const lnt_gnode *dq = lnt_producer(g, n, i);
    if (!lnt_is(dq, DequantizeLinear) || !is_8_bit((lnt_dtype)lnt_ginfo(g, dq->in[0])->dtype) ||
        lnt_ginfo(g, dq->out[0])->dtype != LNT_FLOAT)
        return false;
    q->value = dq->in[0];
    return read_qparams(g, dq, (lnt_dtype)lnt_ginfo(g, dq->in[0])->dtype, q);
}

/* Constant weights with a scale and a zero point for the tensor, or one for each index of `axis`. */
static bool dequantized_weights(lnt_graph *g, const lnt_gnode *n, unsigned i, unsigned axis, quantized *q)
{
    const lnt_gnode *dq = lnt_producer(g, n, i);
    if (dequantized(g, n, i, q))
        return lnt_is_constant(g, q->value);
    if (!lnt_is(dq, DequantizeLinear) || !lnt_is_constant(g, dq->in[0]) ||
        lnt_gnode_int(dq, "block_size", 0) || lnt_ginfo(g, dq->out[0])->dtype != LNT_FLOAT)
        return false;
    const lnt_operand *w = lnt_ginfo(g, dq->in[0]);
    const int64_t given = lnt_gnode_int(dq, "axis", 1), counted = given < 0 ? given + w->rank : given;
    *q = (quantized){dq->in[0], lnt_in_value(dq, 1), lnt_in_value(dq, 2), (lnt_dtype)w->dtype, 0, 0};
    if (!is_8_bit(q->type) || counted != axis || axis >= w->rank || !lnt_is_constant(g, q->scale) ||
        lnt_ginfo(g, q->scale)->dtype != LNT_FLOAT ||
        lnt_operand_count(lnt_ginfo(g, q->scale)) != w->dims[axis])
        return false;
    if (q->zero == LNT_NONE)
        q->zero = no_zero(g, dq, q->type);
    return lnt_is_constant(g, q->zero);
}

/* The QuantizeLinear that alone reads n's output, perhaps behind a Relu that it makes needless. */
static lnt_gnode *quantizer(lnt_edit *e, const lnt_gnode *n, quantized *q)
{
    lnt_graph *g = e->g;
    lnt_gnode *next = lnt_edit_follower(e, n), *relu = NULL;
    if (lnt_is(next, Relu)) {
        relu = next;
        next = lnt_edit_follower(e, relu);
    }
    if (!lnt_is(next, QuantizeLinear) || next->in[0] == LNT_NONE)
        return NULL;
    const lnt_dtype type = (lnt_dtype)lnt_ginfo(g, next->out[0])->dtype;
    q->value = next->out[0];
    if (!is_8_bit(type) || lnt_in_value(next, 0) != (relu ? relu : n)->out[0] ||
        !read_qparams(g, next, type, q) || (relu && q->origin != (type == LNT_INT8 ? INT8_MIN : 0)))
        return NULL;
    return next;
}

/* An int32 constant b whose scale is that of x times those of w, as QLinearConv takes it for granted. */
static bool fitting_bias(lnt_graph *g, const lnt_gnode *n, unsigned i, const quantized *x, const quantized *w,
                         uint32_t *bias)
{
    const float tolerance = 1e-4f;
    const lnt_gnode *dq = lnt_producer(g, n, i);
    int64_t scales, of_w;
    *bias = lnt_in_value(n, i);
    if (*bias == LNT_NONE)
        return true;
    if (!lnt_is(dq, DequantizeLinear) || !lnt_is_constant(g, dq->in[0]) ||
        lnt_ginfo(g, dq->in[0])->dtype != LNT_INT32 || lnt_ginfo(g, dq->in[0])->rank != 1)
        return false;
    *bias = dq->in[0];
    const lnt_operand *points = lnt_ginfo(g, lnt_in_value(dq, 2));
    for (int64_t k = 0; points && k < lnt_operand_count(points); k++)
        if (!points->data || points->dtype != LNT_INT32 || ((const int32_t *)points->data)[k] != 0)
            return false;
    const float *s = lnt_constant_floats(g, lnt_in_value(dq, 1), &scales),
                *sw = lnt_constant_floats(g, w->scale, &of_w);
    if (!s || !sw)
        return false;
    for (int64_t k = 0; k < scales || k < of_w; k++) {
        const float want = x->factor * sw[of_w == 1 ? 0 : k], is = s[scales == 1 ? 0 : k];
        if ((scales != 1 && k >= scales) || (of_w != 1 && k >= of_w) || fabsf(is - want) > tolerance * want)
            return false;
    }
    return true;
}

/* Puts op, with n's attributes and name, in the place of q, which n feeds. */
static lnt_status replace(lnt_edit *e, lnt_gnode *n, lnt_gnode *q, unsigned op, const uint32_t *in,
                          unsigned n_in)
{
    lnt_gnode *made = lnt_edit_substitute(e, q, lnt_op_by_id(op), in, n_in);
    if (!made)
        return LNT_E_MEMORY;
    made->name = n->name;
    made->attr = n->attr;
    made->n_attr = n->n_attr;
    return lnt_edit_count(e, lnt_report_text(e->report, "%s on int8", lnt_op_name(n->op)));
}

static lnt_status fold_conv(lnt_edit *e, lnt_gnode *n)
{
    quantized x, w, y;
    uint32_t bias;
    lnt_gnode *q;
    if (!dequantized(e->g, n, 0, &x) || !dequantized_weights(e->g, n, 1, 0, &w) ||
        !fitting_bias(e->g, n, 2, &x, &w, &bias) || !(q = quantizer(e, n, &y)))
        return LNT_OK;
    const uint32_t in[] = {x.value, x.scale, x.zero, w.value, w.scale, w.zero, y.scale, y.zero, bias};
    return replace(e, n, q, LNT_ID_QLinearConv, in, bias == LNT_NONE ? 8 : 9);
}

static lnt_status fold_matmul(lnt_edit *e, lnt_gnode *n)
{
    quantized a, b, y;
    lnt_gnode *q;
    const lnt_operand *right = lnt_ginfo(e->g, n->in[1]);
    const bool constant = right->rank == 2 && dequantized_weights(e->g, n, 1, 1, &b);
    if (!dequantized(e->g, n, 0, &a) || (!constant && !dequantized(e->g, n, 1, &b)) ||
        !(q = quantizer(e, n, &y)))
        return LNT_OK;
    const uint32_t in[] = {a.value, a.scale, a.zero, b.value, b.scale, b.zero, y.scale, y.zero};
    return replace(e, n, q, LNT_ID_QLinearMatMul, in, 8);
}

/* Only with a bias; without one a Gemm is a MatMul. */
static lnt_status fold_gemm(lnt_edit *e, lnt_gnode *n)
{
    quantized a, b, y;
    uint32_t bias;
    lnt_gnode *q;
    const unsigned columns = lnt_gnode_int(n, "transB", 0) ? 0 : 1;
    if (lnt_gnode_int(n, "transA", 0) || lnt_gnode_float(n, "alpha", 1) != 1 ||
        lnt_gnode_float(n, "beta", 1) != 1 || lnt_in_value(n, 2) == LNT_NONE ||
        !dequantized(e->g, n, 0, &a) || !dequantized_weights(e->g, n, 1, columns, &b) ||
        !fitting_bias(e->g, n, 2, &a, &b, &bias) ||
        lnt_operand_count(lnt_ginfo(e->g, bias)) != lnt_ginfo(e->g, b.value)->dims[columns] ||
        !(q = quantizer(e, n, &y)))
        return LNT_OK;
    const uint32_t in[] = {a.value, a.scale, a.zero, b.value, b.scale, b.zero, y.scale, y.zero, bias};
    return replace(e, n, q, LNT_ID_QLinearGemm, in, 9);
}

static lnt_status fold_binary(lnt_edit *e, lnt_gnode *n)
{
    quantized a, b, y;
    lnt_gnode *q;
    if (!dequantized(e->g, n, 0, &a) || !dequantized(e->g, n, 1, &b) || !(q = quantizer(e, n, &y)) ||
        a.type != y.type || b.type != y.type)
        return LNT_OK;
    const uint32_t in[] = {a.value, a.scale, a.zero, b.value, b.scale, b.zero, y.scale, y.zero};
    return replace(e, n, q, lnt_is(n, Add) ? LNT_ID_QLinearAdd : LNT_ID_QLinearMul, in, 8);
}

static lnt_status fold_concat(lnt_edit *e, lnt_gnode *n)
{
    quantized x, y;
    lnt_gnode *q = quantizer(e, n, &y);
    uint32_t in[2 + 3 * 32] = {y.scale, y.zero};
    if (!q || n->n_in > 32)
        return LNT_OK;
    for (unsigned i = 0; i < n->n_in; i++) {
        if (!dequantized(e->g, n, i, &x) || x.type != y.type)
            return LNT_OK;
        in[2 + 3 * i] = x.value;
        in[3 + 3 * i] = x.scale;
        in[4 + 3 * i] = x.zero;
    }
    return replace(e, n, q, LNT_ID_QLinearConcat, in, 2 + 3 * n->n_in);
}

/* Operators with one tensor whose counterparts take (x, its scale and zero point, those of y). */
static lnt_status fold_unary(lnt_edit *e, lnt_gnode *n, unsigned op)
{
    quantized x, y;
    lnt_gnode *q;
    if (!dequantized(e->g, n, 0, &x) || !(q = quantizer(e, n, &y)) || x.type != y.type)
        return LNT_OK;
    const uint32_t in[] = {x.value, x.scale, x.zero, y.scale, y.zero};
    return replace(e, n, q, op, in, 5);
}

/* Moves elements, or picks among them: what Q would store again is what DQ has read. */
static lnt_status fold_moving(lnt_edit *e, lnt_gnode *n)
{
    quantized x, y;
    lnt_gnode *q;
    if (n->n_out != 1 || !dequantized(e->g, n, 0, &x) || !(q = quantizer(e, n, &y)) || x.type != y.type ||
        x.factor != y.factor || x.origin != y.origin)
        return LNT_OK;
    uint32_t *in = lnt_bump_alloc(&e->g->memory, n->n_in * sizeof *in, e->g->err);
    if (!in)
        return LNT_E_MEMORY;
    memcpy(in, n->in, n->n_in * sizeof *in);
    in[0] = x.value;
    return replace(e, n, q, n->op->id, in, n->n_in);
}

static lnt_status fold(lnt_edit *e, lnt_gnode *n)
{
    switch (n->op->id) {
    case LNT_ID_Conv: return fold_conv(e, n);
    case LNT_ID_MatMul: return fold_matmul(e, n);
    case LNT_ID_Gemm: return fold_gemm(e, n);
    case LNT_ID_Add:
    case LNT_ID_Mul: return fold_binary(e, n);
    case LNT_ID_Concat: return fold_concat(e, n);
    case LNT_ID_Sigmoid: return fold_unary(e, n, LNT_ID_QLinearSigmoid);
    case LNT_ID_LeakyRelu: return fold_unary(e, n, LNT_ID_QLinearLeakyRelu);
    case LNT_ID_AveragePool: return fold_unary(e, n, LNT_ID_QLinearAveragePool);
    case LNT_ID_GlobalAveragePool: return fold_unary(e, n, LNT_ID_QLinearGlobalAveragePool);
    default: return lnt_moves_elements(n) ? fold_moving(e, n) : LNT_OK;
    }
}

lnt_status lnt_pass_fold_qdq(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "fold_qdq"));
    return lnt_edit_each(&e, fold);
}
