/* quantize_rounding.h — weights rounded so that their errors cancel on what a layer reads.
 *
 * Rounding each weight to its nearest byte is best only where inputs have nothing to do with each other.
 * Neighboring pixels and channels have: what one weight is off, another can make good. With the sums H of
 * products of inputs as recorded, e' H e is what errors e of a column do to its outputs; bytes are found that
 * make it small. */
#ifndef LNT_CONVERT_QUANTIZE_QUANTIZE_ROUNDING_H
#define LNT_CONVERT_QUANTIZE_QUANTIZE_ROUNDING_H

#include "convert/graph/graph.h"
#include "runtime/linnet.h"

/* What was seen of the inputs of a Conv, MatMul or Gemm with constant weights: terms inputs meet each weight
 * of a column, in the order of a filter's weights. */
typedef struct lnt_rounding {
    int64_t terms, groups;
    float *sums;  /* [groups][terms][terms]; once it is solved R with R' R = H, in its upper half */
    float *input; /* [terms] */
    bool any, solved;
} lnt_rounding;

/* For such a node; NULL in *r, unless memory is short, where there are too many terms. */
lnt_status lnt_rounding_make(const lnt_graph *g, const lnt_gnode *n, size_t samples, lnt_rounding **r);
void lnt_rounding_free(const lnt_graph *g, lnt_rounding *r);
/* Looks at x, the node's input 0 in one of `samples` runs. */
lnt_status lnt_rounding_look(const lnt_graph *g, const lnt_gnode *n, lnt_rounding *r, const lnt_tensor *x,
                             size_t samples);
/* All has been seen. */
void lnt_rounding_solve(lnt_rounding *r);

/* Makes bytes of the float weights w anew: of each column n, [n][term] or where `across` [term][n], whose
 * bytes stand for multiples of scale[n] / factor. divided (may be NULL): what the inputs of a filter are
 * divided by, [groups][terms]; w is multiplied with it. Without solved r they stay. */
lnt_status lnt_round_weights(lnt_graph *g, const lnt_rounding *r, const lnt_operand *w, bool across,
                             uint32_t scale, float factor, const float *divided, uint32_t bytes);

#endif
