/* mark_shapes.c — marks the small computations that extents depend on, so that the runtime does them at bind.
 *
 * From every input whose contents an operator's shape rule reads, the walk goes back through cheap operators
 * on small tensors to constants, graph inputs and shapes: all nodes on the way are evaluated early. Where it
 * meets a result of the run proper (a predicted duration, say), the first integer made of that becomes a
 * symbol (LNT_SYMBOL_DATA_VALUE), which the user may bound; extents of operators whose results have as many
 * elements as the data happen to give (NonZero, ...) become symbols, too (LNT_SYMBOL_DATA_EXTENT). */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

#include <stdio.h>
#include <string.h>

enum { SMALL = 1024, SMALL_FLOATS = 64 }; /* elements of a tensor worth computing at bind */

typedef enum verdict { UNSEEN, BUSY, EARLY, LATE } verdict;

typedef struct marker {
    lnt_graph *g;
    lnt_report *report;
    uint8_t *verdict; /* per value: can it be computed at bind? */
    bool *marked;     /* per value: its way was gone already */
} marker;

static bool is_float(unsigned dtype)
{
    return dtype == LNT_FLOAT || dtype == LNT_DOUBLE || dtype == LNT_FLOAT16 || dtype == LNT_BFLOAT16;
}

/* Few elements, or not known yet but of at most one axis. */
static bool small(const lnt_operand *o)
{
    const int64_t count = lnt_operand_count(o), most = is_float(o->dtype) ? SMALL_FLOATS : SMALL;
    return count >= 0 ? count <= most : o->rank <= 1 || (o->rank == LNT_RANK_UNKNOWN && !is_float(o->dtype));
}

static bool reads_extents_only(const lnt_gnode *n)
{
    return lnt_is(n, Shape) || lnt_is(n, Size);
}

/* Can the value be computed at bind from extents, constants and small inputs alone? */
static bool early(marker *m, uint32_t value)
{
    lnt_gvalue *v = &m->g->value[value];
    const lnt_gnode *p = v->producer;
    if (v->constant)
        return true;
    if (m->verdict[value] != UNSEEN)
        return m->verdict[value] == EARLY;
    m->verdict[value] = BUSY;
    /* Floats that are fed are data, unless a shape rule itself asks for them (Resize's scales). */
    bool yes = small(&v->info) && (p ? (p->op->flags & LNT_OP_CHEAP) != 0 : !is_float(v->info.dtype));
    for (unsigned i = 0; yes && p && !reads_extents_only(p) && i < p->n_in; i++)
        yes = p->in[i] == LNT_NONE || early(m, p->in[i]);
    m->verdict[value] = yes ? EARLY : LATE;
    return yes;
}

static lnt_status add_symbol(marker *m, const char *name, lnt_symbol_kind kind, uint32_t value, uint32_t axis,
                             uint32_t *number)
{
    lnt_graph *g = m->g;
    LNT_TRY(LNT_GROW(g->memory.allocator, g->symbol, g->symbol_capacity, g->n_symbols, g->err));
    char *copy = lnt_bump_string(&g->memory, name, strlen(name), g->err);
    if (!copy)
        return LNT_E_MEMORY;
    *number = (uint32_t)g->n_symbols;
    g->symbol[g->n_symbols++] =
        (lnt_gsymbol){.name = copy, .kind = kind, .value = value, .axis = axis, .bound = -1};
    return LNT_OK;
}

/* Can the node be evaluated on the spot, once its inputs are known in the middle of a run? Only integers
 * count: a float result is one of the run proper. */
static bool follows_on(const marker *m, const lnt_gnode *p)
{
    if (!p || !(p->op->flags & LNT_OP_CHEAP) || (p->op->flags & LNT_OP_COUNTS))
        return false;
    for (unsigned i = 0; i < p->n_in; i++) {
        if (p->in[i] == LNT_NONE || m->g->value[p->in[i]].constant)
            continue;
        const lnt_operand *o = &m->g->value[p->in[i]].info;
        if (is_float(o->dtype) || !small(o))
            return false;
    }
    return true;
}

/* Marks the value and the way it comes. */
static lnt_status mark(marker *m, uint32_t value)
{
    lnt_gvalue *v = &m->g->value[value];
    lnt_gnode *p = v->producer;
    if (v->constant || m->marked[value])
        return LNT_OK;
    m->marked[value] = v->feeds_shape = true;
    if (!p)
        return LNT_OK;
    const bool computable = early(m, value);
    if (!computable && !follows_on(m, p)) {
        uint32_t number;
        if (is_float(v->info.dtype) || v->info.rank > 1)
            return LNT_OK;
        return add_symbol(m, v->name, LNT_SYMBOL_DATA_VALUE, value, 0, &number);
    }
    if (!p->evaluate_early) {
        p->evaluate_early = true;
        LNT_TRY(lnt_report_count(m->report, "mark_shapes", "nodes evaluated at bind", 1));
    }
    for (unsigned i = 0; !reads_extents_only(p) && i < p->n_in; i++)
        if (p->in[i] != LNT_NONE)
            LNT_TRY(mark(m, p->in[i]));
    return LNT_OK;
}

/* ---- extents that the data give ---- */

static lnt_status symbol_extent(marker *m, uint32_t value, unsigned axis)
{
    lnt_graph *g = m->g;
    if (value == LNT_NONE || g->value[value].info.rank > LNT_MAX_RANK || axis >= g->value[value].info.rank ||
        g->value[value].info.dims[axis] >= 0)
        return LNT_OK;
    char *name = lnt_bump_alloc(&g->memory, strlen(g->value[value].name) + 8, g->err);
    uint32_t number;
    if (!name)
        return LNT_E_MEMORY;
    sprintf(name, "%s:%u", g->value[value].name, axis);
    LNT_TRY(add_symbol(m, name, LNT_SYMBOL_DATA_EXTENT, value, axis, &number));
    g->value[value].info.dims[axis] = lnt_symbol_extent(number);
    return LNT_OK;
}

/* The axis of Unique's or Compress's first output that the data decide. */
static unsigned counted_axis(const lnt_graph *g, const lnt_gnode *n)
{
    const lnt_attr *axis = lnt_gnode_attr(n, "axis");
    const lnt_operand *x = lnt_ginfo(g, n->in[0]);
    if (lnt_is(n, NonZero))
        return 1;
    if (!axis || axis->type != LNT_ATTR_INT || x->rank > LNT_MAX_RANK)
        return 0;
    return (unsigned)(*axis->i < 0 ? *axis->i + x->rank : *axis->i);
}

/* Outputs of a Loop that stack one element per round. */
static lnt_status mark_scan_outputs(marker *m, const lnt_gnode *n)
{
    for (unsigned i = n->n_in - 2u; i < n->n_out; i++)
        LNT_TRY(symbol_extent(m, n->out[i], 0));
    return LNT_OK;
}

static lnt_status mark_counted(marker *m, const lnt_gnode *n)
{
    if (n->evaluate_early)
        return LNT_OK;
    LNT_TRY(symbol_extent(m, n->out[0], counted_axis(m->g, n)));
    for (unsigned i = 1; i < n->n_out; i++)
        LNT_TRY(symbol_extent(m, n->out[i], 0));
    return LNT_OK;
}

/* ---- the pass ---- */

static lnt_status mark_inputs(marker *m, const lnt_gnode *n)
{
    for (unsigned i = 0; i < n->n_in && i < 32; i++) {
        const uint32_t value = n->in[i];
        if (!(n->op->value_inputs >> i & 1) || value == LNT_NONE)
            continue;
        /* Control flow decides on what it gets; a mask to count is data, unless it is made from shapes. */
        bool wanted = true;
        if (n->op->flags & LNT_OP_CONTROL)
            wanted = early(m, value);
        else if (n->op->flags & LNT_OP_COUNTS)
            wanted = m->g->value[value].producer && early(m, value);
        if (wanted)
            LNT_TRY(mark(m, value));
    }
    return LNT_OK;
}

lnt_status lnt_pass_mark_shapes(lnt_graph *g, lnt_report *report)
{
    marker m = {.g = g, .report = report};
    m.verdict = lnt_bump_alloc(&g->memory, g->n_values * sizeof *m.verdict, g->err);
    m.marked = lnt_bump_alloc(&g->memory, g->n_values * sizeof *m.marked, g->err);
    if (!m.verdict || !m.marked)
        return LNT_E_MEMORY;
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++)
            LNT_TRY(mark_inputs(&m, g->sub[s].node[i]));
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++) {
            const lnt_gnode *n = g->sub[s].node[i];
            if (n->op->flags & LNT_OP_COUNTS)
                LNT_TRY(mark_counted(&m, n));
            if (lnt_is(n, Loop))
                LNT_TRY(mark_scan_outputs(&m, n));
        }
    return LNT_OK;
}
