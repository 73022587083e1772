/* fold_dynamic.c — integer products of what DynamicQuantizeLinear made, as onnxruntime's quantize_dynamic writes
 * them, become operators that give floats.
 *
 *     (q, s, z) = DynamicQuantizeLinear(x)
 *     Cast(MatMulInteger(q, W, z, zw)) * (s * sw)    MatMulIntegerToFloat(q, W, s, sw, z, zw)
 *     Cast(ConvInteger(q, W, z, zw)) * (s * sw)      DynamicConv(x, W, sw) for one image, W symmetric
 *
 * The numbers are the same: the sum is converted and multiplied with the product of both scales. What is done
 * with the result goes into the operator's epilogue later. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

#include "ops/quant/qconv.h"

#include <string.h>

/* The parts of such a product. */
typedef struct product {
    const lnt_gnode *integer, *quantize; /* quantize: DynamicQuantizeLinear, NULL if it is something else */
    uint32_t scale, weight_scale;
} product;

static bool is_scale(const lnt_graph *g, uint32_t value)
{
    const lnt_operand *o = value == LNT_NONE ? NULL : lnt_ginfo(g, value);
    return o && o->dtype == LNT_FLOAT && lnt_operand_count(o) == 1;
}

/* Is n Mul(Cast(integer product), Mul(scale, weights' scale)), operands in either order? */
static bool find_product(lnt_edit *e, const lnt_gnode *n, product *p)
{
    lnt_graph *g = e->g;
    for (unsigned i = 0; i < 2 && n->n_in == 2; i++) {
        const lnt_gnode *cast = lnt_producer(g, n, i), *scales = lnt_producer(g, n, 1 - i);
        if (!lnt_is(cast, Cast) || !lnt_is(scales, Mul) || lnt_edit_follower(e, cast) != n ||
            lnt_ginfo(g, cast->out[0])->dtype != LNT_FLOAT)
            continue;
        p->integer = lnt_producer(g, cast, 0);
        if (!p->integer || lnt_edit_follower(e, p->integer) != cast ||
            (!lnt_is(p->integer, MatMulInteger) && !lnt_is(p->integer, ConvInteger)))
            continue;
        const lnt_gnode *made = lnt_producer(g, p->integer, 0);
        p->quantize = lnt_is(made, DynamicQuantizeLinear) ? made : NULL;
        for (unsigned k = 0; k < 2; k++) {
            p->scale = scales->in[k];
            p->weight_scale = scales->in[1 - k];
            if (p->quantize && p->scale == p->quantize->out[1] && lnt_is_constant(g, p->weight_scale) &&
                lnt_ginfo(g, p->weight_scale)->dtype == LNT_FLOAT)
                return is_scale(g, p->scale);
        }
    }
    return false;
}

static lnt_status fold_matmul(lnt_edit *e, lnt_gnode *n, const product *p)
{
    const lnt_operand *w = lnt_ginfo(e->g, p->integer->in[1]), *scale = lnt_ginfo(e->g, p->weight_scale);
    const int64_t count = lnt_operand_count(scale);
    if (!lnt_is_constant(e->g, p->integer->in[1]) || w->rank < 2 ||
        (count != 1 && (scale->rank != 1 || count != w->dims[w->rank - 1])) ||
        lnt_ginfo(e->g, n->out[0])->rank != lnt_ginfo(e->g, p->integer->out[0])->rank)
        return LNT_OK;
    const uint32_t in[] = {p->integer->in[0], p->integer->in[1],           p->scale,
                           p->weight_scale,   lnt_in_value(p->integer, 2), lnt_in_value(p->integer, 3)};
    if (!lnt_edit_substitute(e, n, lnt_op_by_id(LNT_ID_MatMulIntegerToFloat), in, 6))
        return LNT_E_MEMORY;
    return lnt_edit_count(e, "MatMulInteger to float");
}

/* Are all zero points of the weights the middle of their range? */
static bool is_symmetric(const lnt_graph *g, uint32_t zero, lnt_dtype type)
{
    if (zero == LNT_NONE)
        return type == LNT_INT8;
    const lnt_operand *o = lnt_ginfo(g, zero);
    const uint8_t middle = type == LNT_INT8 ? 0 : 128;
    bool all = lnt_is_constant(g, zero);
    for (int64_t i = 0; all && i < lnt_operand_count(o); i++)
        all = ((const uint8_t *)o->data)[i] == middle;
    return all;
}

/* The weights as int8. */
static uint32_t as_int8(lnt_graph *g, uint32_t weights)
{
    const lnt_operand w = *lnt_ginfo(g, weights);
    const int64_t n = lnt_operand_count(&w);
    if (w.dtype == LNT_INT8)
        return weights;
    uint8_t *bytes = lnt_bump_alloc(&g->memory, (size_t)n + 1, g->err);
    for (int64_t i = 0; bytes && i < n; i++)
        bytes[i] = ((const uint8_t *)w.data)[i] ^ 0x80;
    return bytes ? lnt_graph_add_constant(g, g->value[weights].name, LNT_INT8, w.rank, w.dims, bytes, (size_t)n)
                 : LNT_NONE;
}

/* One scale for each filter out of one for all, or of as many with extents such as [1, F, 1, 1]. */
static uint32_t filter_scales(lnt_graph *g, uint32_t value, int64_t filters)
{
    int64_t count;
    const float *from = lnt_constant_floats(g, value, &count);
    float *to = lnt_bump_alloc(&g->memory, (size_t)filters * sizeof *to, g->err);
    for (int64_t i = 0; to && i < filters; i++)
        to[i] = from[count == 1 ? 0 : i];
    return to ? lnt_add_floats(g, g->value[value].name, 1, &filters, to) : LNT_NONE;
}

static bool fits_filters(const lnt_operand *scale, const lnt_operand *w)
{
    if (lnt_operand_count(scale) == 1)
        return true;
    return lnt_operand_count(scale) == w->dims[0] && scale->rank + 1u >= w->rank && scale->rank <= w->rank &&
           scale->dims[scale->rank + 1u - w->rank] == w->dims[0];
}

static lnt_status fold_conv(lnt_edit *e, lnt_gnode *n, const product *p)
{
    lnt_graph *g = e->g;
    const uint32_t weights = p->integer->in[1];
    const lnt_operand *x = lnt_ginfo(g, p->quantize->in[0]), *w = lnt_ginfo(g, weights);
    lnt_node view;
    lnt_packed record;
    lnt_gnode_view(p->integer, &view);
    if (x->rank < 3 || x->rank > LNT_MAX_RANK || x->dims[0] != 1 || !lnt_is_constant(g, weights) ||
        !is_symmetric(g, lnt_in_value(p->integer, 3), (lnt_dtype)w->dtype) ||
        lnt_in_value(p->integer, 2) != p->quantize->out[2] || !lnt_qconv_record(&view, w, &record) ||
        !fits_filters(lnt_ginfo(g, p->weight_scale), w))
        return LNT_OK;
    const int64_t filters = w->dims[0];
    const uint32_t in[] = {p->quantize->in[0], as_int8(g, weights), filter_scales(g, p->weight_scale, filters)};
    if (in[1] == LNT_NONE || in[2] == LNT_NONE)
        return LNT_E_MEMORY;
    const lnt_gnode from = *p->integer;
    lnt_gnode *made = lnt_edit_substitute(e, n, lnt_op_by_id(LNT_ID_DynamicConv), in, 3);
    if (!made)
        return LNT_E_MEMORY;
    made->name = from.name;
    made->attr = from.attr;
    made->n_attr = from.n_attr;
    return lnt_edit_count(e, "ConvInteger to float");
}

lnt_status lnt_pass_fold_dynamic(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "fold_dynamic"));
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++) {
            lnt_gnode *n = g->sub[s].node[i];
            product p;
            if (n->dead || !lnt_is(n, Mul) || !find_product(&e, n, &p))
                continue;
            LNT_TRY(lnt_is(p.integer, MatMulInteger) ? fold_matmul(&e, n, &p) : fold_conv(&e, n, &p));
        }
    return LNT_OK;
}
