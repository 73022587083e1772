/* passes.h — the passes over the graph between import and the file. */
#ifndef LNT_CONVERT_PASSES_PASSES_H
#define LNT_CONVERT_PASSES_PASSES_H

#include "convert/graph/options.h"
#include "convert/graph/report.h"
#include "ops/conv/conv.h"

/* X(name, opt): lnt_pass_NAME(g, report), for --opt of at least that. In order. */
#define LNT_PASS_LIST(X)                                                                                     \
    X(fold_qdq, BASIC)                                                                                       \
    X(fold_nibbles, BASIC)                                                                                   \
    X(fold_constants, BASIC)                                                                                 \
    X(identities, BASIC)                                                                                     \
    X(common_subexpressions, BASIC)                                                                          \
    X(dead_nodes, BASIC)                                                                                     \
    X(stream_cut, NONE)                                                                                      \
    X(widen_halves, ALL)                                                                                     \
    X(fold_dynamic, ALL)                                                                                     \
    X(lookup_tables, ALL)                                                                                    \
    X(fuse_batchnorm, ALL)                                                                                   \
    X(fuse_patterns, ALL)                                                                                    \
    X(subpixel, NONE)                                                                                        \
    X(subpixel_floats, ALL)                                                                                  \
    X(quantize, NONE)                                                                                        \
    X(merge_groups, ALL)                                                                                     \
    X(undo_leaky, ALL)                                                                                       \
    X(fuse_epilogue, ALL)                                                                                    \
    X(fuse_elementwise, ALL)                                                                                 \
    X(storage_order, ALL)                                                                                    \
    X(winograd, ALL)                                                                                         \
    X(pack_weights, ALL)                                                                                     \
    X(mark_shapes, NONE)                                                                                     \
    X(precision, NONE)                                                                                       \
    X(stream_marks, NONE)

#define X(name, level) lnt_status lnt_pass_##name(lnt_graph *g, lnt_report *report);
LNT_PASS_LIST(X)
#undef X

/* Is n a convolution that makes planes of planes as well (storage_order.c)? How then. */
bool lnt_makes_planes(const lnt_graph *g, const lnt_gnode *n, lnt_conv_kind *kind);
/* Weights that become float16 are panels, which half arithmetic multiplies. */
bool lnt_is_for_halves(const lnt_graph *g);

/* Runs those that opt wants. */
lnt_status lnt_run_passes(lnt_graph *g, lnt_opt opt, lnt_report *report);

#endif
