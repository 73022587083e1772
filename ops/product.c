/* product.c — packing and work of operators that multiply matrices, by their rows' hooks. */
#include "ops/product.h"

#include "base/checked.h"

/* By operator number. */
static const struct {
    uint16_t id;
    const lnt_product *product;
} products[] = {
#define OP(...)
#define PRODUCT(id, version, ident, domain, name, imin, imax, omin, omax, types, shape, bind, values, flags, \
                hook)                                                                                        \
    {id, &lnt_product_##hook},
#include "ops/list.h"
#undef PRODUCT
#undef OP
    {0, NULL}, /* a trimmed library may have none */
};

const lnt_product *lnt_product_of(const lnt_op *op)
{
    for (unsigned i = 0; products[i].product; i++)
        if (products[i].id == op->id)
            return products[i].product;
    return NULL;
}

static bool fits_u32(const lnt_operand *o)
{
    for (unsigned i = 0; i < o->rank; i++)
        if (o->dims[i] < 1 || o->dims[i] > INT32_MAX)
            return false;
    return true;
}

bool lnt_pack_wanted(const lnt_node *node, unsigned input, const lnt_operand *o, lnt_packed *record)
{
    const lnt_product *product = lnt_product_of(node->op);
    const unsigned own = node->n_in - node->n_program_in;
    const bool int8 = (node->op->flags & LNT_OP_INT8) != 0;
    const bool fits = int8 ? o->dtype == LNT_INT8 || o->dtype == LNT_UINT8 : o->dtype == LNT_FLOAT;
    size_t bytes;
    if (!product || !product->pack || input >= own || input >= 32 || !(product->packed_inputs & 1u << input) || !fits ||
        o->rank > LNT_MAX_RANK || !fits_u32(o))
        return false;
    return product->pack(node, o, record) && lnt_packed_bytes(record, &bytes);
}

bool lnt_multiplies_halves(const lnt_op *op, const lnt_operand *weights)
{
    const lnt_product *product = lnt_product_of(op);
    return product && op->flags & LNT_OP_HALVES && weights->packed && weights->dtype == LNT_FLOAT &&
           lnt_packed_element(weights->packed) == LNT_FLOAT16 &&
           (!product->are_for_halves || product->are_for_halves(weights));
}

int64_t lnt_multiply_adds(const lnt_node *node, const lnt_step *step)
{
    const lnt_product *product = lnt_product_of(node->op);
    return product ? product->multiply_adds(node, step) : 0;
}

bool lnt_pack_matrix(const lnt_node *node, const lnt_operand *b, lnt_packed *record)
{
    int64_t groups;
    if (b->rank < 2 || !lnt_count(b->dims, b->rank - 2u, &groups) || groups > INT32_MAX)
        return false;
    const uint32_t rows = (uint32_t)b->dims[b->rank - 2], columns = (uint32_t)b->dims[b->rank - 1];
    const bool transposed = lnt_attr_i(node, "transB", 0) != 0;
    *record = transposed ? lnt_packed_panels(LNT_SOURCE_NK, (uint32_t)groups, columns, rows)
                         : lnt_packed_panels(LNT_SOURCE_KN, (uint32_t)groups, rows, columns);
    if (node->op->flags & LNT_OP_INT8)
        record->layout = LNT_LAYOUT_PANEL_I8;
    return true;
}

int64_t lnt_matrix_multiply_adds(const lnt_node *node, const lnt_step *step)
{
    const lnt_operand *a = step->in[0];
    const bool transposed = lnt_attr_i(node, "transA", 0) && a->rank > 1;
    return lnt_operand_count(step->out[0]) * a->dims[a->rank - (transposed ? 2 : 1)];
}

int64_t lnt_window_multiply_adds(const lnt_operand *each, const lnt_operand *weights)
{
    return weights->dims[0] ? lnt_operand_count(each) * (lnt_operand_count(weights) / weights->dims[0]) : 0;
}

int64_t lnt_conv_multiply_adds(const lnt_node *node, const lnt_step *step)
{
    return lnt_window_multiply_adds(step->out[0],
                                    step->in[__builtin_ctz(lnt_product_of(node->op)->packed_inputs)]);
}
