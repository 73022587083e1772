/* quantize_rounding.h — weights rounded so that the layer's output error is small on the recorded inputs: GPTQ.
 *
 * Rounding each weight to nearest is best only where inputs are uncorrelated. With H = sum of x x' over recorded
 * inputs x, the errors e of a column's weights add e' H e to the squared error of its outputs; that is minimized. The
 * weights of a column are rounded one after another, each to the value that best compensates the errors of those
 * already rounded (Frantar, Ashkboos, Hoefler and Alistarh, "GPTQ: Accurate Post-Training Quantization for Generative
 * Pre-trained Transformers", 2022), in the form with linear feedback through a Cholesky factor of H (LDLQ: Chee, Cai,
 * Kuleshov and De Sa, "QuIP: 2-Bit Quantization of Large Language Models With Guarantees", 2023), from the last weight
 * to the first. As in GPTQ a hundredth of the mean of H's diagonal is added to it. */
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

/* Rounds the float weights w to int8 anew: of each column n, [n][term] or where `across` [term][n], whose
 * int8 values stand for multiples of scale[n] / factor. divided (may be NULL): what the inputs of a filter are
 * divided by, [groups][terms]; w is multiplied with it. Without solved r they stay. */
lnt_status lnt_round_weights(lnt_graph *g, const lnt_rounding *r, const lnt_operand *w, bool across,
                             uint32_t scale, float factor, const float *divided, uint32_t rounded);

#endif
