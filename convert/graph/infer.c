/* infer.c — types and extents of every value, from inputs and constants through the operators' shape rules.
 *
 * What a rule cannot know stays unknown. Control flow is looked into: an If gives what its branches agree on
 * (a branch whose extents do not fit has no say), a Loop or Scan what its body gives once the loop-carried
 * values have stopped changing. */
#include "convert/graph/graph.h"

#include <string.h>

static lnt_status infer_sub(lnt_graph *g, uint32_t sub);

/* Outputs of unknown type and rank, keeping contents out of it. */
static void forget_outputs(lnt_graph *g, const lnt_gnode *n)
{
    for (unsigned i = 0; i < n->n_out; i++)
        if (n->out[i] != LNT_NONE) {
            lnt_operand *o = &g->value[n->out[i]].info;
            *o = (lnt_operand){.rank = LNT_RANK_UNKNOWN, .order = o->order};
        }
}

static bool some_type_unknown(const lnt_graph *g, const lnt_gnode *n)
{
    for (unsigned i = 0; i < n->n_in; i++)
        if (n->in[i] != LNT_NONE && g->value[n->in[i]].info.dtype == LNT_UNDEFINED)
            return true;
    return false;
}

static lnt_operand **operands(lnt_graph *g, const uint32_t *number, unsigned n)
{
    lnt_operand **list = lnt_bump_alloc(&g->memory, n * sizeof *list, g->err);
    for (unsigned i = 0; list && i < n; i++)
        list[i] = number[i] == LNT_NONE ? NULL : &g->value[number[i]].info;
    return list;
}

/* Does an input have the symbol for an extent? */
static bool has_symbol(const lnt_site *site, int64_t symbol)
{
    for (unsigned i = 0; i < site->n_in; i++)
        for (unsigned d = 0; site->in[i] && site->in[i]->rank <= LNT_MAX_RANK && d < site->in[i]->rank; d++)
            if (site->in[i]->dims[d] == symbol)
                return true;
    return false;
}

/* What a shape rule works out of numbers in the model may be negative, which would pass for a symbol. */
static lnt_status check_symbols(const lnt_site *site)
{
    for (unsigned o = 0; o < site->n_out; o++)
        for (unsigned d = 0; site->out[o] && site->out[o]->rank <= LNT_MAX_RANK && d < site->out[o]->rank;
             d++) {
            const int64_t extent = site->out[o]->dims[d];
            LNT_REQUIRE(extent >= LNT_DIM_UNKNOWN || has_symbol(site, extent), site->err, LNT_E_SHAPE,
                        "output %u would have %lld along axis %u", o, (long long)extent, d);
        }
    return LNT_OK;
}

static lnt_status infer_plain(lnt_graph *g, const lnt_gnode *n)
{
    lnt_node view;
    lnt_gnode_view(n, &view);
    const lnt_bump_mark mark = lnt_bump_here(&g->memory);
    lnt_operand **in = operands(g, n->in, n->n_in), **out = operands(g, n->out, n->n_out);
    if (!in || !out)
        return LNT_E_MEMORY;
    lnt_site site = {.node = &view, .in = in, .out = out, .n_in = n->n_in, .n_out = n->n_out, .err = g->err};
    lnt_status status = lnt_site_shape(&site);
    if (status == LNT_OK || status == LNT_UNKNOWN)
        status = check_symbols(&site);
    lnt_bump_rewind(&g->memory, mark);
    return status;
}

/* ---- control flow ---- */

/* Type and extents only: contents and storage are not passed on. */
static void assign(lnt_operand *to, const lnt_operand *from)
{
    to->dtype = from->dtype;
    to->rank = from->rank;
    memcpy(to->dims, from->dims, sizeof to->dims);
}

/* Widens *to so that it also covers b; true if that changed it. */
static bool widen(lnt_operand *to, const lnt_operand *b)
{
    bool changed = false;
    if (to->rank == LNT_RANK_UNKNOWN)
        return false;
    if (to->rank != b->rank) {
        to->rank = LNT_RANK_UNKNOWN;
        return true;
    }
    for (unsigned i = 0; i < to->rank; i++)
        if (to->dims[i] != b->dims[i] && to->dims[i] != LNT_DIM_UNKNOWN) {
            to->dims[i] = LNT_DIM_UNKNOWN;
            changed = true;
        }
    return changed;
}

static lnt_status same_type(lnt_graph *g, const lnt_operand *a, const lnt_operand *b, unsigned i,
                            const char *which)
{
    LNT_REQUIRE(a->dtype == b->dtype || !a->dtype || !b->dtype, g->err, LNT_E_TYPE,
                "output %u is %s, but %s in %s", i, lnt_dtype_text((lnt_dtype)a->dtype),
                lnt_dtype_text((lnt_dtype)b->dtype), which);
    return LNT_OK;
}

static lnt_status sub_of(lnt_graph *g, const lnt_gnode *n, const char *attr, uint32_t *sub)
{
    *sub = lnt_gnode_sub(n, attr);
    LNT_REQUIRE(*sub != LNT_NONE, g->err, LNT_E_MODEL, "attribute %s is missing", attr);
    return LNT_OK;
}

/* A branch whose extents do not fit may be one that is never taken: *broken says so, and that nothing depends
 * on its extents. */
static lnt_status infer_branch(lnt_graph *g, uint32_t sub, bool *broken)
{
    const unsigned before = g->misfits;
    const lnt_status status = infer_sub(g, sub);
    *broken = g->misfits > before;
    g->misfits = before;
    return status;
}

/* What stands in a subgraph may never run: that extents of n do not fit there is only noted. */
static lnt_status forgive(lnt_graph *g, const lnt_gnode *n, lnt_status status)
{
    const bool extents = status == LNT_E_SHAPE || status == LNT_E_VALUE || status == LNT_E_ARGUMENT;
    if (n->subgraph == 0 || !extents)
        return status;
    for (unsigned i = 0; i < n->n_out; i++)
        if (n->out[i] != LNT_NONE)
            g->value[n->out[i]].info.rank = LNT_RANK_UNKNOWN;
    lnt_error_clear(g->err);
    g->misfits++;
    return LNT_OK;
}

static lnt_status infer_if(lnt_graph *g, const lnt_gnode *n)
{
    uint32_t branch[2];
    bool broken[2];
    LNT_TRY(sub_of(g, n, "then_branch", &branch[0]));
    LNT_TRY(sub_of(g, n, "else_branch", &branch[1]));
    int64_t taken;
    const bool known = lnt_graph_known_int(g, n->in[0], &taken);
    for (unsigned b = 0; b < 2; b++) {
        broken[b] = known && b != (taken ? 0 : 1);
        if (!broken[b])
            LNT_TRY(infer_branch(g, branch[b], &broken[b]));
        LNT_REQUIRE(g->sub[branch[b]].n_out == n->n_out, g->err, LNT_E_MODEL,
                    "has %u outputs, but its %s branch %u", n->n_out, b ? "else" : "then",
                    g->sub[branch[b]].n_out);
    }
    LNT_REQUIRE(!broken[0] || !broken[1], g->err, LNT_E_SHAPE, "in neither branch the extents fit");
    for (unsigned i = 0; i < n->n_out; i++) {
        if (n->out[i] == LNT_NONE)
            continue;
        const lnt_operand *then = &g->value[g->sub[branch[0]].out[i]].info;
        const lnt_operand *otherwise = &g->value[g->sub[branch[1]].out[i]].info;
        lnt_operand *out = &g->value[n->out[i]].info;
        LNT_TRY(same_type(g, then, otherwise, i, "the else branch"));
        assign(out, broken[0] ? otherwise : then);
        if (!broken[0] && !broken[1])
            widen(out, otherwise);
    }
    return LNT_OK;
}

/* A body whose inputs [first_in, +count) are fed with its outputs [first_out, +count) of the round before,
 * starting from the node's inputs [first_init, +count): infers it until the extents of what is carried hold. */
static lnt_status infer_carried(lnt_graph *g, const lnt_gnode *n, uint32_t body, unsigned count,
                                unsigned first_init, unsigned first_in, unsigned first_out)
{
    const lnt_gsubgraph *s = &g->sub[body];
    for (unsigned i = 0; i < count; i++)
        if (n->in[first_init + i] != LNT_NONE)
            assign(&g->value[s->in[first_in + i]].info, &g->value[n->in[first_init + i]].info);
    for (unsigned round = 0;; round++) {
        bool changed = false;
        g->loops++;
        const lnt_status status = infer_sub(g, body);
        g->loops--;
        LNT_TRY(status);
        for (unsigned i = 0; i < count; i++) {
            lnt_operand *in = &g->value[s->in[first_in + i]].info;
            const lnt_operand *out = &g->value[s->out[first_out + i]].info;
            if (!in->dtype)
                in->dtype = out->dtype;
            LNT_TRY(same_type(g, in, out, i, "the body"));
            const bool widened = widen(in, out);
            /* Extents settle in a round or two; a rank lost late would take one more. */
            if (widened && round >= 2)
                in->rank = LNT_RANK_UNKNOWN;
            changed |= widened;
        }
        if (!changed)
            return LNT_OK;
    }
}

/* Output `to` stacks value `from` of each round along a new axis. */
static void stack(lnt_operand *to, const lnt_operand *from, unsigned axis, int64_t rounds)
{
    to->dtype = from->dtype;
    if (from->rank >= LNT_MAX_RANK || axis > from->rank)
        return;
    to->rank = (uint8_t)(from->rank + 1);
    for (unsigned i = 0; i < to->rank; i++)
        to->dims[i] = i == axis ? rounds : from->dims[i - (i > axis)];
}

static lnt_status infer_loop(lnt_graph *g, const lnt_gnode *n)
{
    uint32_t body;
    LNT_TRY(sub_of(g, n, "body", &body));
    const lnt_gsubgraph *s = &g->sub[body];
    const unsigned carried = n->n_in > 2 ? n->n_in - 2u : 0;
    LNT_REQUIRE(s->n_in == carried + 2 && s->n_out >= carried + 1 && n->n_out <= s->n_out - 1, g->err,
                LNT_E_MODEL, "has %u inputs and %u outputs, its body %u and %u", n->n_in, n->n_out, s->n_in,
                s->n_out);
    g->value[s->in[0]].info = (lnt_operand){.dtype = LNT_INT64};
    g->value[s->in[1]].info = (lnt_operand){.dtype = LNT_BOOL};
    LNT_TRY(infer_carried(g, n, body, carried, 2, 2, 1));
    for (unsigned i = 0; i < n->n_out; i++) {
        if (n->out[i] == LNT_NONE)
            continue;
        lnt_operand *out = &g->value[n->out[i]].info;
        const lnt_operand *given = &g->value[s->out[i + 1]].info;
        if (i < carried)
            assign(out, &g->value[s->in[i + 2]].info);
        else
            stack(out, given, 0, LNT_DIM_UNKNOWN);
    }
    return LNT_OK;
}

/* Entry i of an INTS attribute that may be missing (0), as an axis of a tensor of that rank. */
static lnt_status scan_axis(lnt_graph *g, const lnt_node *view, const char *name, unsigned i, unsigned rank,
                            unsigned *axis)
{
    const lnt_attr *a = lnt_attr_find(view, name);
    int64_t value = a && a->type == LNT_ATTR_INTS && i < a->count ? a->i[i] : 0;
    value += value < 0 ? rank : 0;
    LNT_REQUIRE(value >= 0 && value < rank, g->err, LNT_E_MODEL,
                "attribute %s is outside a tensor of rank %u", name, rank);
    *axis = (unsigned)value;
    return LNT_OK;
}

/* Body inputs behind the states: slices of the scan inputs. *rounds is the length they are cut into. */
static lnt_status slice_scan_inputs(lnt_graph *g, const lnt_gnode *n, const lnt_node *view, uint32_t body,
                                    unsigned states, int64_t *rounds)
{
    *rounds = LNT_DIM_UNKNOWN;
    for (unsigned i = states; i < n->n_in; i++) {
        if (n->in[i] == LNT_NONE)
            continue;
        const lnt_operand *from = &g->value[n->in[i]].info;
        lnt_operand *to = &g->value[g->sub[body].in[i]].info;
        *to = (lnt_operand){.dtype = from->dtype, .rank = LNT_RANK_UNKNOWN};
        if (from->rank == LNT_RANK_UNKNOWN)
            continue;
        unsigned axis;
        LNT_TRY(scan_axis(g, view, "scan_input_axes", i - states, from->rank, &axis));
        to->rank = (uint8_t)(from->rank - 1);
        for (unsigned d = 0; d < to->rank; d++)
            to->dims[d] = from->dims[d + (d >= axis)];
        if (*rounds < 0)
            *rounds = from->dims[axis];
    }
    return LNT_OK;
}

static lnt_status infer_scan(lnt_graph *g, const lnt_gnode *n)
{
    uint32_t body;
    lnt_node view;
    lnt_gnode_view(n, &view);
    LNT_TRY(sub_of(g, n, "body", &body));
    const lnt_gsubgraph *s = &g->sub[body];
    const int64_t scanned = lnt_attr_i(&view, "num_scan_inputs", 0);
    LNT_REQUIRE(scanned >= 1 && scanned <= n->n_in && s->n_in == n->n_in && n->n_out <= s->n_out &&
                    s->n_out >= n->n_in - scanned,
                g->err, LNT_E_MODEL, "has %u inputs (%lld scanned) and %u outputs, its body %u and %u",
                n->n_in, (long long)scanned, n->n_out, s->n_in, s->n_out);
    const unsigned states = (unsigned)(n->n_in - scanned);
    int64_t rounds;
    LNT_TRY(slice_scan_inputs(g, n, &view, body, states, &rounds));
    LNT_TRY(infer_carried(g, n, body, states, 0, 0, 0));
    for (unsigned i = 0; i < n->n_out; i++) {
        if (n->out[i] == LNT_NONE)
            continue;
        lnt_operand *out = &g->value[n->out[i]].info;
        const lnt_operand *given = &g->value[s->out[i]].info;
        unsigned axis = 0;
        if (i >= states && given->rank != LNT_RANK_UNKNOWN)
            LNT_TRY(scan_axis(g, &view, "scan_output_axes", i - states, given->rank + 1u, &axis));
        if (i < states)
            assign(out, &g->value[s->in[i]].info);
        else
            stack(out, given, axis, rounds);
    }
    return LNT_OK;
}

static lnt_status infer_node(lnt_graph *g, const lnt_gnode *n)
{
    forget_outputs(g, n);
    switch (n->op->id) {
    case LNT_ID_If: return infer_if(g, n);
    case LNT_ID_Loop: return infer_loop(g, n);
    case LNT_ID_Scan: return infer_scan(g, n);
    default: return some_type_unknown(g, n) ? LNT_OK : infer_plain(g, n);
    }
}

lnt_status lnt_graph_infer_node(lnt_graph *g, const lnt_gnode *n)
{
    lnt_status status = infer_node(g, n);
    if (status == LNT_OK)
        status = lnt_graph_trace_symbols(g, n);
    status = forgive(g, n, status);
    if (status != LNT_OK && status != LNT_E_MEMORY)
        lnt_error_prefix(g->err, "node '%s' (%s): ", n->name, lnt_op_name(n->op));
    return status;
}

static lnt_status infer_sub(lnt_graph *g, uint32_t sub)
{
    const lnt_gsubgraph *s = &g->sub[sub];
    for (size_t i = 0; i < s->n_nodes; i++)
        if (!s->node[i]->dead)
            LNT_TRY(lnt_graph_infer_node(g, s->node[i]));
    return LNT_OK;
}

lnt_status lnt_graph_infer(lnt_graph *g)
{
    return infer_sub(g, 0);
}
