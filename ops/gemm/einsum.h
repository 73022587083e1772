/* einsum.h — the equation of an Einsum node, and the products among such nodes. */
#ifndef LNT_OPS_GEMM_EINSUM_H
#define LNT_OPS_GEMM_EINSUM_H

#include "ops/op.h"

enum { LNT_EINSUM_LABELS = 32, LNT_EINSUM_OPERANDS = 32 };

/* Labels of one operand or of the output, one per axis: a letter, or for an ellipsis' axes numbers above
 * them. */
typedef struct lnt_term {
    uint8_t label[LNT_MAX_RANK];
    unsigned rank;
} lnt_term;

typedef struct lnt_equation {
    uint8_t label[LNT_EINSUM_LABELS]; /* those of the output in its order, then the summed ones */
    int64_t extent[LNT_EINSUM_LABELS];
    unsigned n_out, n;
    unsigned n_operands;
    lnt_term operand[LNT_EINSUM_OPERANDS];
} lnt_equation;

/* Steps of operand i along every label, in elements: 0 where it has none or extent 1, the sum of its steps
 * where a label occurs twice (a diagonal). */
void lnt_einsum_steps(const lnt_equation *e, const lnt_operand *in, unsigned i,
                      int64_t steps[LNT_EINSUM_LABELS]);

/* Binds the node as a product of matrices on the tile kernels (einsum_product.c) if it is one: two operands
 * of float, each summed label in both. *done tells. */
lnt_status lnt_einsum_bind_product(lnt_site *site, const lnt_equation *e, bool *done);

#endif
