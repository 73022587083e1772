/* fuse_patterns.c — finds groups of nodes that are one operator (patterns.h) and puts that in their place. */
#include "convert/passes/patterns.h"
#include "convert/passes/passes.h"

lnt_status lnt_pass_fuse_patterns(lnt_graph *g, lnt_report *report)
{
    static lnt_status (*const patterns[])(lnt_edit *, lnt_gnode *) = {
        lnt_lower_einsum, lnt_fuse_normalization, lnt_fuse_softmax,    lnt_fuse_attention,
        lnt_fuse_cache,   lnt_scatter_box,        lnt_fuse_sum_square, lnt_fuse_activation,
        lnt_fuse_one_hot, lnt_fold_into_table,    lnt_sink_squeeze,    lnt_lift_transpose,
        lnt_lift_merged,  lnt_sink_split,         lnt_fuse_pad,        lnt_fuse_transpose,
        lnt_split_product};
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "fuse_patterns"));
    for (unsigned p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
        LNT_TRY(lnt_edit_each(&e, patterns[p]));
        /* What a pattern left behind must not count as a reader for the next. */
        lnt_graph_sweep(g);
        LNT_TRY(lnt_graph_infer(g));
        LNT_TRY(lnt_pass_identities(g, report));
        LNT_TRY(lnt_pass_dead_nodes(g, report));
        lnt_graph_sweep(g);
        LNT_TRY(lnt_edit_renew(&e));
        LNT_TRY(lnt_graph_infer(g));
    }
    return lnt_pass_common_subexpressions(g, report); /* the layers of a network share their masks */
}
