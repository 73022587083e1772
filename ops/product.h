/* product.h — what is true of operators that multiply matrices, by a hook of their row: how their constants are packed
 * and how many multiplications they are worth.
 *
 * A row PRODUCT(..., name) of ops/list.h has lnt_product_name, which stands in the operator's file. */
#ifndef LNT_OPS_PRODUCT_H
#define LNT_OPS_PRODUCT_H

#include "formats/packed.h"
#include "ops/op.h"

typedef struct lnt_product {
    /* Inputs that are packed where they are constants, as bits: floats, or int8 and uint8 where the row says INT8. */
    uint32_t packed_inputs;
    /* Do halves have digits enough for products with these weights? NULL: for all. */
    bool (*are_for_halves)(const lnt_operand *weights);
    /* Fills the record of such an input with extents from 1 to INT32_MAX; false: it stays as it is. NULL: none is. */
    bool (*pack)(const lnt_node *node, const lnt_operand *o, lnt_packed *record);
    /* Pairs of a multiplication and an addition of a step with known extents. */
    int64_t (*multiply_adds)(const lnt_node *node, const lnt_step *step);
} lnt_product;

/* The products of this library's rows. */
#define OP(...)
#define PRODUCT(id, version, ident, domain, name, imin, imax, omin, omax, types, shape, bind, values, flags, hook) \
    extern const lnt_product lnt_product_##hook;
#include "ops/list.h"
#undef PRODUCT
#undef OP

/* Of an operator that multiplies matrices; NULL: it does not. */
const lnt_product *lnt_product_of(const lnt_op *op);

/* True if o, a constant with known extents and input `input` of node, should be stored packed: fills *record for
 * lnt_packed_bytes and lnt_pack. The converter asks for constants only. A constant packed in any other way is none of
 * the operator's. */
bool lnt_pack_wanted(const lnt_node *node, unsigned input, const lnt_operand *o, lnt_packed *record);

/* Does a level of half arithmetic multiply by these weights, packed as float16, with halves? */
bool lnt_multiplies_halves(const lnt_op *op, const lnt_operand *weights);

/* Pairs of a multiplication and an addition that a step of the node is worth; 0 for all but products of matrices,
 * convolutions, recurrent networks and attention. */
int64_t lnt_multiply_adds(const lnt_node *node, const lnt_step *step);

/* ---- for the hooks ---- */

/* B of a product: [..., K, N], or [..., N, K] where attribute transB says so; int8 panels where the row says INT8. */
bool lnt_pack_matrix(const lnt_node *node, const lnt_operand *b, lnt_packed *record);

/* Y [..., N] of A [..., M, K] (input 0; [..., K, M] where transA says so): each element is a sum over K. */
int64_t lnt_matrix_multiply_adds(const lnt_node *node, const lnt_step *step);

/* Each element of `each` meets the weights [first extent, ...] but for their first axis; groups are in it. */
int64_t lnt_window_multiply_adds(const lnt_operand *each, const lnt_operand *weights);
/* The same of a convolution: its outputs, and the weights that the hook packs. */
int64_t lnt_conv_multiply_adds(const lnt_node *node, const lnt_step *step);

#endif
