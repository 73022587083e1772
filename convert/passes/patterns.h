/* patterns.h — groups of nodes that are one operator. Each function is given every node as a candidate for
 * the node a pattern is known by, and does nothing where it does not apply. Nodes left without readers are
 * dropped by the caller. */
#ifndef LNT_CONVERT_PASSES_PATTERNS_H
#define LNT_CONVERT_PASSES_PATTERNS_H

#include "convert/graph/edit.h"

lnt_status lnt_fuse_normalization(lnt_edit *e, lnt_gnode *n); /* LayerNormalization, RMSNormalization */
lnt_status lnt_fuse_softmax(lnt_edit *e, lnt_gnode *n);
lnt_status lnt_fuse_attention(lnt_edit *e, lnt_gnode *n);
lnt_status lnt_fuse_cache(lnt_edit *e, lnt_gnode *n); /* Concat of keys and values into Attention */
lnt_status lnt_fuse_activation(lnt_edit *e, lnt_gnode *n); /* Gelu, Swish, HardSwish, Mish, HardSigmoid */
lnt_status lnt_fuse_pad(lnt_edit *e, lnt_gnode *n);        /* Pad into Conv */
lnt_status lnt_fuse_transpose(lnt_edit *e, lnt_gnode *n);  /* Transpose into MatMul */
lnt_status lnt_lower_einsum(lnt_edit *e, lnt_gnode *n);    /* Einsum that is a MatMul */
lnt_status lnt_split_product(lnt_edit *e, lnt_gnode *n);   /* Conv or MatMul that is read in slices */
lnt_status lnt_fuse_one_hot(lnt_edit *e, lnt_gnode *n);    /* a product with one-hot rows */
lnt_status lnt_fold_into_table(lnt_edit *e, lnt_gnode *n); /* elementwise work behind a lookup */
lnt_status lnt_lift_merged(lnt_edit *e,
                           lnt_gnode *n); /* Transpose before a Reshape that merges spatial axes */
lnt_status lnt_sink_split(lnt_edit *e, lnt_gnode *n);      /* and behind one that splits them */
lnt_status lnt_scatter_box(lnt_edit *e, lnt_gnode *n);     /* ScatterND of a box */
lnt_status lnt_fuse_sum_square(lnt_edit *e, lnt_gnode *n); /* ReduceSum(x * x) */
lnt_status lnt_sink_squeeze(lnt_edit *e, lnt_gnode *n); /* elementwise work before Squeeze, behind a Conv */
lnt_status lnt_lift_transpose(lnt_edit *e,
                              lnt_gnode *n); /* Transpose before Squeeze or Unsqueeze, behind a Conv */

#endif
