/* pattern_operand.c — work on an operand that the operator behind can do itself: Pad before Conv, Transpose
 * before MatMul. */
#include "convert/passes/patterns.h"

#include <string.h>

/* ---- Pad into Conv ---- */

enum { MAX_SPATIAL = LNT_MAX_RANK - 2 };

/* Pads of n spatial axes, begins then ends: constant zeros around the spatial axes and nowhere else. */
static bool zero_pads(const lnt_graph *g, const lnt_gnode *pad, unsigned rank, int64_t *spatial)
{
    int64_t all[2 * LNT_MAX_RANK];
    unsigned count = 2 * LNT_MAX_RANK;
    double value = 0;
    const uint32_t fill = lnt_in_value(pad, 2);
    if (strcmp(lnt_gnode_string(pad, "mode", "constant"), "constant") != 0 ||
        lnt_in_value(pad, 3) != LNT_NONE ||
        (fill != LNT_NONE && (!lnt_constant_scalar(g, fill, &value) || value != 0)) ||
        !lnt_constant_ints(g, pad->in[1], all, &count) || count != 2 * rank)
        return false;
    for (unsigned i = 0; i < 2 * rank; i++) {
        const unsigned axis = i % rank;
        if (all[i] < 0 || (axis < 2 && all[i] != 0))
            return false;
        if (axis >= 2)
            spatial[axis - 2 + (i / rank) * (rank - 2)] = all[i];
    }
    return true;
}

lnt_status lnt_fuse_pad(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    const lnt_gnode *pad = lnt_is(n, Conv) ? lnt_producer(g, n, 0) : NULL;
    if (!lnt_is(pad, Pad) || lnt_edit_follower(e, pad) != n)
        return LNT_OK;
    const unsigned rank = lnt_ginfo(g, n->in[1])->rank;
    const char *automatic = lnt_gnode_string(n, "auto_pad", "NOTSET");
    const lnt_attr *own = lnt_gnode_attr(n, "pads");
    int64_t pads[2 * MAX_SPATIAL];
    if (rank < 3 || rank > LNT_MAX_RANK || !zero_pads(g, pad, rank, pads))
        return LNT_OK;
    if (strcmp(automatic, "NOTSET") == 0) {
        for (unsigned i = 0; own && own->type == LNT_ATTR_INTS && i < own->count && i < 2 * (rank - 2); i++)
            pads[i] += own->i[i];
    } else if (strcmp(automatic, "VALID") != 0) {
        return LNT_OK;
    }
    const lnt_attr sum = {.name = "pads", .type = LNT_ATTR_INTS, .count = 2 * (rank - 2), .i = pads};
    const lnt_attr notset = {.name = "auto_pad", .type = LNT_ATTR_STRING, .count = 6, .s = "NOTSET"};
    LNT_TRY(lnt_gnode_set_attr(g, n, &sum));
    LNT_TRY(lnt_gnode_set_attr(g, n, &notset));
    LNT_TRY(lnt_edit_set_input(e, n, 0, pad->in[0]));
    return lnt_edit_count(e, "Pad into Conv");
}

/* ---- Transpose into MatMul ---- */

/* MatMul(a, Transpose(b)) where the transpose brings b's last axis one place forward: what remains is a
 * transpose that leaves the last axis where it is, or none. */
lnt_status lnt_fuse_transpose(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    lnt_gnode *t = lnt_is(n, MatMul) && !n->program ? lnt_producer(g, n, 1) : NULL;
    const lnt_attr *perm = lnt_gnode_perm(t);
    int64_t rest[LNT_MAX_RANK];
    if (!perm || perm->count < 2 || lnt_edit_follower(e, t) != n ||
        perm->i[perm->count - 2] != perm->count - 1)
        return LNT_OK;
    memcpy(rest, perm->i, perm->count * sizeof *rest);
    rest[perm->count - 2] = perm->i[perm->count - 1];
    rest[perm->count - 1] = perm->count - 1;
    const lnt_attr left = {.name = "perm", .type = LNT_ATTR_INTS, .count = perm->count, .i = rest};
    bool nothing_left = true;
    for (unsigned i = 0; i < perm->count; i++)
        nothing_left &= rest[i] == i;
    LNT_TRY(lnt_gnode_set_attr(g, t, &left));
    const uint32_t in[] = {n->in[0], nothing_left ? t->in[0] : n->in[1]};
    lnt_gnode *fused = lnt_edit_substitute(e, n, lnt_op_by_id(LNT_ID_FusedMatMul), in, 2);
    if (!fused)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_gnode_set_int(g, fused, "transB", 1));
    return lnt_edit_count(e, "Transpose into MatMul");
}
