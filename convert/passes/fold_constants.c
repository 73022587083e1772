/* fold_constants.c — computes at conversion what does not depend on inputs.
 *
 * A node all of whose inputs are constants is run by the runtime's own kernels; a shape whose extents are
 * known becomes a constant; an If whose condition is constant gives way to its branch. */
#include "convert/passes/patterns.h"
#include "convert/passes/passes.h"

#include <string.h>

enum {
    FOLD_GROWTH = 64 * 1024, /* bytes by which a result may exceed the inputs it was computed from */
    FOLD_TOTAL = 256 << 20,  /* bytes of all results, above FOLD_SHARE times those of the model's constants */
    FOLD_SHARE = 8,
    MAX_OPERANDS = 64
};

/* ---- is it worth it, is it allowed ---- */

/* Does the node read the value as weights, so that having them at conversion pays (packing, folding)? */
static bool reads_weights(const lnt_gnode *user, uint32_t value)
{
    const bool weighted = lnt_is(user, Conv) || lnt_is(user, ConvTranspose) || lnt_is(user, Gemm) ||
                          lnt_is(user, MatMul) || lnt_is(user, LSTM) || lnt_is(user, GRU) ||
                          lnt_is(user, RNN);
    return weighted && user->in[0] != value;
}

/* A few nodes can make any number of bytes of one constant: what is over the limit is left to the run. */
static bool within_limit(lnt_graph *g, size_t bytes)
{
    if (!g->fold_limit) {
        g->fold_limit = FOLD_TOTAL;
        for (size_t v = 0; v < g->n_values; v++)
            g->fold_limit += g->value[v].constant ? FOLD_SHARE * g->value[v].bytes : 0;
    }
    return g->folded <= g->fold_limit && bytes <= g->fold_limit - g->folded;
}

static bool result_fits(lnt_edit *e, const lnt_gnode *n, size_t in_bytes, size_t out_bytes)
{
    const bool worth = out_bytes <= in_bytes + FOLD_GROWTH ||
                       (n->n_out == 1 && reads_weights(lnt_edit_follower(e, n), n->out[0]));
    return worth && within_limit(e->g, out_bytes);
}

static bool foldable_kind(const lnt_gnode *n)
{
    return !n->dead && !(n->op->flags & (LNT_OP_CONTROL | LNT_OP_RANDOM | LNT_OP_TEXT)) &&
           n->n_in <= MAX_OPERANDS && n->n_out <= MAX_OPERANDS && !n->program;
}

/* All inputs constant; *bytes of all, each value once. */
static bool inputs_constant(const lnt_graph *g, const lnt_gnode *n, size_t *bytes)
{
    *bytes = 0;
    for (unsigned i = 0; i < n->n_in; i++) {
        if (n->in[i] == LNT_NONE)
            continue;
        if (!lnt_is_constant(g, n->in[i]))
            return false;
        bool before = false;
        for (unsigned k = 0; k < i; k++)
            before |= n->in[k] == n->in[i];
        *bytes += before ? 0 : g->value[n->in[i]].bytes;
    }
    return true;
}

/* Outputs of known type and extents, none of which must stay an operator's result; *bytes of all. */
static bool outputs_known(lnt_edit *e, const lnt_gnode *n, size_t *bytes)
{
    *bytes = 0;
    for (unsigned i = 0; i < n->n_out; i++) {
        if (n->out[i] == LNT_NONE)
            continue;
        const lnt_operand *o = &e->g->value[n->out[i]].info;
        size_t more;
        if (lnt_edit_pinned(e, n->out[i]) || !lnt_operand_bytes(o, &more) ||
            !lnt_add_size(*bytes, more, bytes))
            return false;
    }
    return true;
}

/* ---- folding one node ---- */

static void become_constant(lnt_graph *g, uint32_t value, void *data, size_t bytes)
{
    lnt_gvalue *v = &g->value[value];
    v->constant = v->info.constant = true;
    v->producer = NULL;
    v->info.data = data;
    v->elements = NULL;
    v->bytes = bytes;
}

/* Runs the node; *folded says whether that worked: a node that fails here is left to fail, or not, at run. */
static lnt_status evaluate(lnt_edit *e, lnt_gnode *n, bool *folded)
{
    lnt_graph *g = e->g;
    lnt_operand *in[MAX_OPERANDS], *out[MAX_OPERANDS];
    void *data[MAX_OPERANDS] = {NULL};
    size_t bytes[MAX_OPERANDS] = {0};
    for (unsigned i = 0; i < n->n_in; i++)
        in[i] = n->in[i] == LNT_NONE ? NULL : &g->value[n->in[i]].info;
    for (unsigned i = 0; i < n->n_out; i++) {
        out[i] = n->out[i] == LNT_NONE ? NULL : &g->value[n->out[i]].info;
        if (!out[i])
            continue;
        data[i] = lnt_operand_bytes(out[i], &bytes[i]) ? lnt_bump_alloc(&g->memory, bytes[i], g->err) : NULL;
        if (!data[i])
            return LNT_E_MEMORY;
    }
    lnt_node view;
    lnt_gnode_view(n, &view);
    lnt_error err = {.code = LNT_OK};
    *folded = lnt_evaluate(g->memory.allocator, &view, in, out, data, LNT_LEVEL_SCALAR, 0, &err) == LNT_OK;
    for (unsigned i = 0; *folded && i < n->n_out; i++)
        if (out[i])
            become_constant(g, n->out[i], data[i], bytes[i]);
    return LNT_OK;
}

lnt_status lnt_fold_node(lnt_edit *e, lnt_gnode *n)
{
    size_t in_bytes, out_bytes;
    if (!inputs_constant(e->g, n, &in_bytes) || !outputs_known(e, n, &out_bytes) ||
        !result_fits(e, n, in_bytes, out_bytes))
        return LNT_OK;
    bool folded;
    LNT_TRY(evaluate(e, n, &folded));
    if (!folded)
        return LNT_OK;
    e->g->folded += out_bytes;
    lnt_edit_drop(e, n);
    return lnt_edit_count(e, "nodes computed");
}

/* ---- shapes ---- */

static void store(void *data, lnt_dtype dtype, int64_t i, int64_t value)
{
    switch (dtype) {
    case LNT_INT64: ((int64_t *)data)[i] = value; break;
    case LNT_INT32: ((int32_t *)data)[i] = (int32_t)value; break;
    default: ((uint8_t *)data)[i] = (uint8_t)value; break;
    }
}

/* Makes output 0 a constant if all of its elements were found out (symbols.c): a shape, or a part of one. */
static lnt_status fold_known_elements(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    if (n->n_out != 1 || n->out[0] == LNT_NONE || lnt_edit_pinned(e, n->out[0]))
        return LNT_OK;
    const lnt_gvalue *v = &g->value[n->out[0]];
    const int64_t count = lnt_operand_count(&v->info);
    for (int64_t i = 0; v->elements && i < count; i++)
        if (!v->elements[i].known)
            return LNT_OK;
    if (!v->elements)
        return LNT_OK;
    size_t bytes;
    void *data = lnt_operand_bytes(&v->info, &bytes) ? lnt_bump_alloc(&g->memory, bytes, g->err) : NULL;
    if (!data)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < count; i++)
        store(data, v->info.dtype, i, v->elements[i].value);
    become_constant(g, n->out[0], data, bytes);
    lnt_edit_drop(e, n);
    return lnt_edit_count(e, "shapes known");
}

/* ---- If ---- */

/* Lets the If's output o be the branch's value b. */
static lnt_status connect_branch(lnt_edit *e, lnt_gnode *at, uint32_t b, uint32_t o)
{
    if (!lnt_edit_pinned(e, o)) {
        lnt_edit_replace(e, o, b);
        return LNT_OK;
    }
    /* A pinned name keeps a producer of its own; the identities pass drops it where it can. */
    return lnt_edit_insert(e, at, lnt_op_by_id(LNT_ID_Identity), &b, 1, o, NULL) ? LNT_OK : LNT_E_MEMORY;
}

static lnt_status visit(lnt_edit *e, lnt_gnode *n);

/* Puts the branch's nodes in the place of the If, and folds them, too: nesting bounds the recursion. */
static lnt_status inline_branch(lnt_edit *e, lnt_gnode *n, uint32_t sub)
{
    lnt_graph *g = e->g;
    lnt_graph_let_in(g, sub);
    lnt_gsubgraph *branch = &g->sub[sub];
    const size_t n_nodes = branch->n_nodes;
    const uint32_t n_out = branch->n_out;
    branch->n_nodes = branch->n_in = branch->n_out = 0;
    for (size_t i = 0; i < n_nodes; i++)
        LNT_TRY(lnt_graph_put_before(g, branch->node[i], n));
    for (unsigned i = 0; i < n_out; i++)
        lnt_edit_released(e, branch->out[i]);
    for (unsigned i = 0; i < n->n_out && i < n_out; i++)
        if (n->out[i] != LNT_NONE)
            LNT_TRY(connect_branch(e, n, branch->out[i], n->out[i]));
    lnt_edit_drop(e, n);
    LNT_TRY(lnt_edit_count(e, "If inlined"));
    for (size_t i = 0; i < n_nodes; i++)
        if (!branch->node[i]->dead)
            LNT_TRY(visit(e, branch->node[i]));
    return LNT_OK;
}

static lnt_status fold_if(lnt_edit *e, lnt_gnode *n)
{
    double condition;
    if (!lnt_constant_scalar(e->g, n->in[0], &condition))
        return LNT_OK;
    const lnt_attr *branch = lnt_gnode_attr(n, condition != 0 ? "then_branch" : "else_branch");
    return branch && branch->type == LNT_ATTR_GRAPH ? inline_branch(e, n, (uint32_t)*branch->i) : LNT_OK;
}

/* The transpose of a table that rows are also looked up in: the product does it itself, so that the table is
 * stored once. */
static lnt_status keep_tied(lnt_edit *e, lnt_gnode *n)
{
    const lnt_graph *g = e->g;
    const bool shared = lnt_is_constant(g, n->in[0]) && lnt_edit_uses(e, n->in[0]) > 1;
    bool looked_up = false;
    uint32_t at = LNT_EDIT_FIRST;
    for (const lnt_gnode *reader; shared && (reader = lnt_edit_reader(e, n->in[0], &at)) != NULL;)
        looked_up |= lnt_is(reader, Gather) && reader->in[0] == n->in[0] && reader->subgraph == n->subgraph;
    lnt_gnode *product = looked_up ? lnt_edit_follower(e, n) : NULL;
    if (!product)
        return LNT_OK;
    LNT_TRY(lnt_fuse_transpose(e, product));
    if (product->dead)
        lnt_edit_drop(e, n);
    return LNT_OK;
}

static lnt_status visit(lnt_edit *e, lnt_gnode *n)
{
    LNT_TRY(lnt_graph_infer_node(e->g, n)); /* what was folded before it may tell more */
    if (lnt_is(n, If))
        LNT_TRY(fold_if(e, n));
    else
        LNT_TRY(fold_known_elements(e, n));
    if (lnt_is(n, Transpose))
        LNT_TRY(keep_tied(e, n));
    return foldable_kind(n) ? lnt_fold_node(e, n) : LNT_OK;
}

lnt_status lnt_pass_fold_constants(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "fold_constants"));
    return lnt_edit_each(&e, visit);
}
