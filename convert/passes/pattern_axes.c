/* pattern_axes.c — brings what a convolution can absorb right behind it: exporters wrap one-dimensional
 * convolutions in Unsqueeze and Squeeze, which stand between them and their bias, activation and Transpose. */
#include "convert/passes/patterns.h"

#include <string.h>

/* A Squeeze or Unsqueeze and the axes it adds or removes, of the wider tensor. */
typedef struct wrap {
    bool adds;
    unsigned rank;            /* of the wider tensor */
    bool extra[LNT_MAX_RANK]; /* is axis i one of those? */
    int64_t axis[LNT_MAX_RANK];
    unsigned count;
} wrap;

static bool wrap_of(const lnt_graph *g, const lnt_gnode *n, wrap *w)
{
    if (!(lnt_is(n, Squeeze) || lnt_is(n, Unsqueeze)) || lnt_in_value(n, 1) == LNT_NONE)
        return false;
    *w = (wrap){.adds = lnt_is(n, Unsqueeze), .count = LNT_MAX_RANK};
    w->rank = lnt_ginfo(g, w->adds ? n->out[0] : n->in[0])->rank;
    if (w->rank > LNT_MAX_RANK || !lnt_constant_ints(g, n->in[1], w->axis, &w->count))
        return false;
    for (unsigned i = 0; i < w->count; i++) {
        w->axis[i] += w->axis[i] < 0 ? w->rank : 0;
        w->extra[w->axis[i]] = true;
    }
    return true;
}

static bool behind_conv(const lnt_graph *g, const lnt_gnode *n)
{
    const lnt_gnode *p = lnt_producer(g, n, 0);
    return lnt_is(p, Conv) || lnt_is(p, ConvTranspose);
}

/* A node like `like`, with other inputs, before `at`; writes out, or a new value where that is LNT_NONE. */
static lnt_gnode *insert_like(lnt_edit *e, lnt_gnode *at, const lnt_gnode *like, const uint32_t *in,
                              uint32_t out)
{
    lnt_gnode *n = lnt_edit_insert(e, at, like->op, in, like->n_in, out, NULL);
    for (unsigned i = 0; n && i < like->n_attr; i++)
        if (lnt_gnode_set_attr(e->g, n, &like->attr[i]) != LNT_OK)
            return NULL;
    return n;
}

/* ---- elementwise work before the Squeeze ---- */

/* The constant with axes of extent 1 put where the Squeeze took them; LNT_NONE if it is no constant. */
static uint32_t widened(lnt_graph *g, const wrap *w, uint32_t value)
{
    if (value == LNT_NONE || !lnt_is_constant(g, value))
        return LNT_NONE;
    const lnt_gvalue c = g->value[value];
    const unsigned narrow = w->rank - w->count, missing = narrow - c.info.rank;
    if (lnt_operand_count(&c.info) == 1 && c.info.rank <= narrow)
        return value;
    if (c.info.rank > narrow)
        return LNT_NONE;
    int64_t dims[LNT_MAX_RANK];
    for (unsigned i = 0, from = 0; i < w->rank; i++) {
        dims[i] = w->extra[i] || from < missing ? 1 : c.info.dims[from - missing];
        from += !w->extra[i];
    }
    return lnt_graph_add_constant(g, c.name, (lnt_dtype)c.info.dtype, w->rank, dims, c.info.data, c.bytes);
}

lnt_status lnt_sink_squeeze(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    wrap w;
    uint32_t in[4];
    if (!lnt_is(n, Squeeze))
        return LNT_OK;
    lnt_gnode *work = lnt_edit_follower(e, n);
    if (!behind_conv(g, n) &&
        !(lnt_producer(g, n, 0) && (lnt_producer(g, n, 0)->op->flags & LNT_OP_ELEMENTWISE)))
        return LNT_OK;
    if (!work || !(work->op->flags & LNT_OP_ELEMENTWISE) || work->n_in > 4 || work->n_out != 1 ||
        !wrap_of(g, n, &w))
        return LNT_OK;
    for (unsigned i = 0; i < work->n_in; i++) {
        in[i] = work->in[i] == n->out[0] ? n->in[0] : work->in[i];
        if (work->in[i] != LNT_NONE && work->in[i] != n->out[0] &&
            (in[i] = widened(g, &w, work->in[i])) == LNT_NONE)
            return g->err->code;
    }
    const lnt_gnode *wide = insert_like(e, work, work, in, LNT_NONE);
    const uint32_t narrow[] = {wide ? wide->out[0] : LNT_NONE, n->in[1]};
    if (!wide || !insert_like(e, work, n, narrow, work->out[0]))
        return LNT_E_MEMORY;
    lnt_edit_drop(e, n);
    lnt_edit_drop(e, work);
    LNT_TRY(lnt_graph_infer_node(g, wide));
    return lnt_edit_count(e, "Squeeze behind elementwise work");
}

/* ---- Transpose before Squeeze and Unsqueeze ---- */

/* Transpose(Unsqueeze(x)): the axes that stay, in their new order; the added ones where they end up. */
static void permute_narrow(const wrap *w, const int64_t *perm, int64_t *inner, int64_t *axes)
{
    unsigned n = 0, a = 0, index[LNT_MAX_RANK];
    for (unsigned i = 0, kept = 0; i < w->rank; i++)
        index[i] = w->extra[i] ? 0 : kept++;
    for (unsigned i = 0; i < w->rank; i++)
        if (w->extra[perm[i]])
            axes[a++] = i;
        else
            inner[n++] = index[perm[i]];
}

/* Transpose(Squeeze(x)): the axes that go are sent to the end. */
static void permute_wide(const wrap *w, const int64_t *perm, int64_t *inner, int64_t *axes)
{
    unsigned kept = 0, at[LNT_MAX_RANK];
    for (unsigned i = 0; i < w->rank; i++)
        if (!w->extra[i])
            at[kept++] = i;
    for (unsigned i = 0; i < kept; i++)
        inner[i] = at[perm[i]];
    for (unsigned i = 0; i < w->count; i++) {
        inner[kept + i] = w->axis[i];
        axes[i] = kept + i;
    }
}

lnt_status lnt_lift_transpose(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    wrap w;
    const lnt_attr *perm = lnt_gnode_perm(n);
    lnt_gnode *p = perm ? lnt_producer(g, n, 0) : NULL;
    if (!p || !wrap_of(g, p, &w) || !behind_conv(g, p) || lnt_edit_follower(e, p) != n ||
        perm->count != (w.adds ? w.rank : w.rank - w.count))
        return LNT_OK;
    int64_t inner[LNT_MAX_RANK], axes[LNT_MAX_RANK];
    (w.adds ? permute_narrow : permute_wide)(&w, perm->i, inner, axes);
    lnt_gnode *first = insert_like(e, n, n, p->in, LNT_NONE);
    const uint32_t in[] = {first ? first->out[0] : LNT_NONE, lnt_add_ints(g, n->name, w.count, axes)};
    if (!first || in[1] == LNT_NONE || !insert_like(e, n, p, in, n->out[0]))
        return LNT_E_MEMORY;
    const lnt_attr order = {
        .name = "perm", .type = LNT_ATTR_INTS, .count = w.adds ? w.rank - w.count : w.rank, .i = inner};
    LNT_TRY(lnt_gnode_set_attr(g, first, &order));
    lnt_edit_drop(e, n);
    lnt_edit_drop(e, p);
    return lnt_edit_count(e, "Transpose behind Conv");
}

/* ---- Transpose and Reshape of images as sequences ---- */

static bool swaps_last(const lnt_attr *perm)
{
    return perm && perm->count == 3 && perm->i[0] == 0 && perm->i[1] == 2 && perm->i[2] == 1;
}

/* A Transpose and a Reshape in the place of n, in one order or the other. */
static lnt_status rewrite(lnt_edit *e, lnt_gnode *n, uint32_t x, const int64_t *perm, unsigned rank,
                          const int64_t *shape, unsigned n_shape, bool transpose_first)
{
    lnt_graph *g = e->g;
    const uint32_t to = lnt_add_ints(g, n->name, n_shape, shape);
    const lnt_op *transpose = lnt_op_by_id(LNT_ID_Transpose), *reshape = lnt_op_by_id(LNT_ID_Reshape);
    uint32_t between;
    if (to == LNT_NONE)
        return LNT_E_MEMORY;
    lnt_gnode *first = lnt_edit_insert(e, n, transpose_first ? transpose : reshape, (uint32_t[]){x, to},
                                       transpose_first ? 1 : 2, LNT_NONE, &between);
    lnt_gnode *second = first ? lnt_edit_substitute(e, n, transpose_first ? reshape : transpose,
                                                    (uint32_t[]){between, to}, transpose_first ? 2 : 1)
                              : NULL;
    if (!second)
        return LNT_E_MEMORY;
    const lnt_attr order = {.name = "perm", .type = LNT_ATTR_INTS, .count = rank, .i = perm};
    LNT_TRY(lnt_gnode_set_attr(g, transpose_first ? first : second, &order));
    return lnt_edit_count(e, "images as sequences");
}

/* N C H W to N C HW to N HW C: by way of N H W C, which is how a convolution's result is stored. */
lnt_status lnt_lift_merged(lnt_edit *e, lnt_gnode *n)
{
    const lnt_graph *g = e->g;
    const lnt_gnode *r =
        swaps_last(lnt_gnode_perm(n)) ? lnt_producer(g, n, 0) : NULL;
    if (!lnt_is(r, Reshape) || lnt_edit_follower(e, r) != n)
        return LNT_OK;
    const lnt_operand *x = lnt_ginfo(g, r->in[0]), *flat = lnt_ginfo(g, r->out[0]);
    if (x->rank < 4 || x->rank > LNT_MAX_RANK || flat->rank != 3 || !lnt_dims_equal(x, x->rank, x->dims) ||
        x->dims[0] != flat->dims[0] || x->dims[1] != flat->dims[1] || x->dims[1] <= 0)
        return LNT_OK;
    int64_t perm[LNT_MAX_RANK] = {0};
    for (unsigned i = 1; i < x->rank; i++)
        perm[i] = i + 1u < x->rank ? i + 1 : 1;
    return rewrite(e, n, r->in[0], perm, x->rank, (int64_t[]){0, -1, x->dims[1]}, 3, true);
}

/* N HW C to N C HW to N C H W: by way of N H W C. */
lnt_status lnt_sink_split(lnt_edit *e, lnt_gnode *n)
{
    const lnt_graph *g = e->g;
    const lnt_gnode *t = lnt_is(n, Reshape) ? lnt_producer(g, n, 0) : NULL;
    int64_t to[LNT_MAX_RANK];
    unsigned count = LNT_MAX_RANK;
    if (!swaps_last(lnt_gnode_perm(t)) || lnt_edit_follower(e, t) != n ||
        !lnt_constant_ints(g, n->in[1], to, &count) || count != 4 || to[2] == 0 || to[3] == 0)
        return LNT_OK;
    const lnt_operand *x = lnt_ginfo(g, t->in[0]), *image = lnt_ginfo(g, n->out[0]);
    if (x->rank != 3 || image->rank != 4 || x->dims[2] <= 0 || image->dims[1] != x->dims[2] ||
        x->dims[0] != image->dims[0] || x->dims[0] == LNT_DIM_UNKNOWN)
        return LNT_OK;
    return rewrite(e, n, t->in[0], (int64_t[]){0, 3, 1, 2}, 4, (int64_t[]){to[0], to[2], to[3], x->dims[2]},
                   4, false);
}
