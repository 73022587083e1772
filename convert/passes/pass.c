/* pass.c — see pass.h. */
#include "convert/passes/pass.h"

#include "base/half.h"

#include <string.h>

/* ---- the index of uses ---- */

lnt_status lnt_edit_begin(lnt_edit *e, lnt_graph *g, lnt_report *report, const char *pass)
{
    *e = (lnt_edit){.g = g, .report = report, .pass = pass, .stale = true};
    /* A pass adds few values: room for twice as many lasts it; lnt_edit_uses falls back to the graph's count.
     */
    e->capacity = 2 * g->n_values + 64;
    e->uses = lnt_bump_alloc(&g->memory, e->capacity * sizeof *e->uses, g->err);
    e->user = lnt_bump_alloc(&g->memory, e->capacity * sizeof(lnt_gnode *), g->err);
    e->pinned = lnt_bump_alloc(&g->memory, e->capacity * sizeof *e->pinned, g->err);
    return e->uses && e->user && e->pinned ? LNT_OK : LNT_E_MEMORY;
}

void lnt_edit_changed(lnt_edit *e)
{
    e->stale = true;
}

lnt_status lnt_edit_count(lnt_edit *e, const char *what)
{
    return lnt_report_count(e->report, e->pass, what, 1);
}

static void note_use(lnt_edit *e, uint32_t value, lnt_gnode *by)
{
    if (value < e->n) {
        e->uses[value]++;
        e->user[value] = by;
    }
}

static void renew(lnt_edit *e)
{
    const lnt_graph *g = e->g;
    e->n = g->n_values < e->capacity ? g->n_values : e->capacity;
    memset(e->uses, 0, e->n * sizeof *e->uses);
    memset(e->user, 0, e->n * sizeof(lnt_gnode *));
    for (size_t v = 0; v < e->n; v++)
        e->pinned[v] = g->value[v].keep;
    for (size_t s = 0; s < g->n_subs; s++) {
        const lnt_gsubgraph *sub = &g->sub[s];
        for (size_t i = 0; i < sub->n_nodes; i++)
            for (unsigned k = 0; k < sub->node[i]->n_in && !sub->node[i]->dead; k++)
                note_use(e, sub->node[i]->in[k], sub->node[i]);
        for (unsigned o = 0; o < sub->n_out; o++)
            if (sub->out[o] < e->n)
                e->pinned[sub->out[o]] = true;
    }
    e->stale = false;
}

/* True if the index knows the value. */
static bool indexed(lnt_edit *e, uint32_t value)
{
    if (e->stale)
        renew(e);
    return value < e->n;
}

unsigned lnt_edit_uses(lnt_edit *e, uint32_t value)
{
    return indexed(e, value) ? e->uses[value] : lnt_graph_uses(e->g, value);
}

bool lnt_edit_pinned(lnt_edit *e, uint32_t value)
{
    return indexed(e, value) ? e->pinned[value] : e->g->value[value].keep || lnt_graph_is_output(e->g, value);
}

lnt_gnode *lnt_edit_follower(lnt_edit *e, const lnt_gnode *n)
{
    const uint32_t value = n->out[0];
    if (value == LNT_NONE || !indexed(e, value) || e->pinned[value] || e->uses[value] != 1)
        return NULL;
    return e->user[value]->subgraph == n->subgraph ? e->user[value] : NULL;
}

/* ---- edits ---- */

static bool is_subgraph_input(const lnt_graph *g, uint32_t value)
{
    return !g->value[value].producer && !g->value[value].constant;
}

static unsigned output_index(const lnt_gnode *n, uint32_t value)
{
    unsigned i = 0;
    while (n->out[i] != value)
        i++;
    return i;
}

bool lnt_edit_bypass(lnt_edit *e, lnt_gnode *n, uint32_t to)
{
    lnt_graph *g = e->g;
    const uint32_t from = n->out[0];
    if (lnt_edit_pinned(e, from)) {
        lnt_gnode *p = g->value[to].producer;
        if (!p || is_subgraph_input(g, to) || p->subgraph != n->subgraph || lnt_edit_pinned(e, to))
            return false;
        p->out[output_index(p, to)] = from;
        g->value[from].producer = p;
        g->value[to].producer = NULL;
        lnt_graph_replace(g, to, from);
    } else {
        lnt_graph_replace(g, from, to);
        g->value[from].producer = NULL;
    }
    n->dead = true;
    lnt_edit_changed(e);
    return true;
}

lnt_gnode *lnt_edit_insert(lnt_edit *e, const lnt_gnode *at, const lnt_op *op, const uint32_t *in,
                           unsigned n_in, uint32_t out, uint32_t *made)
{
    if (out == LNT_NONE)
        out = lnt_graph_add_value(e->g, at->name);
    if (out == LNT_NONE)
        return NULL;
    if (made)
        *made = out;
    lnt_edit_changed(e);
    return lnt_graph_add_node(e->g, at->subgraph, at, op, at->name, in, n_in, &out, 1);
}

lnt_gnode *lnt_edit_substitute(lnt_edit *e, lnt_gnode *at, const lnt_op *op, const uint32_t *in,
                               unsigned n_in)
{
    lnt_gnode *n = lnt_edit_insert(e, at, op, in, n_in, at->out[0], NULL);
    if (n)
        at->dead = true;
    return n;
}

/* ---- nodes ---- */

bool lnt_gnode_is(const lnt_gnode *n, unsigned op)
{
    return n && !n->dead && n->op->id == op;
}

bool lnt_moves_elements(const lnt_gnode *n)
{
    static const unsigned ids[] = {LNT_ID_Reshape, LNT_ID_Flatten, LNT_ID_Squeeze,      LNT_ID_Unsqueeze,
                                   LNT_ID_Expand,  LNT_ID_Tile,    LNT_ID_Transpose,    LNT_ID_DepthToSpace,
                                   LNT_ID_Slice,   LNT_ID_Gather,  LNT_ID_SpaceToDepth, LNT_ID_MaxPool};
    for (unsigned i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (n->op->id == ids[i])
            return true;
    return lnt_is(n, Resize) && strcmp(lnt_gnode_string(n, "mode", "nearest"), "nearest") == 0;
}

lnt_gnode *lnt_producer(const lnt_graph *g, const lnt_gnode *n, unsigned i)
{
    const uint32_t v = lnt_in_value(n, i);
    return v == LNT_NONE ? NULL : g->value[v].producer;
}

uint32_t lnt_in_value(const lnt_gnode *n, unsigned i)
{
    return i < n->n_in ? n->in[i] : LNT_NONE;
}

lnt_status lnt_gnode_set_input(lnt_graph *g, lnt_gnode *n, unsigned i, uint32_t value)
{
    if (i >= n->n_in) {
        uint32_t *in = lnt_bump_alloc(&g->memory, (i + 1) * sizeof *in, g->err);
        if (!in)
            return LNT_E_MEMORY;
        for (unsigned k = 0; k <= i; k++)
            in[k] = lnt_in_value(n, k);
        n->in = in;
        n->n_in = (uint16_t)(i + 1);
    }
    n->in[i] = value;
    return LNT_OK;
}

int64_t lnt_gnode_int(const lnt_gnode *n, const char *attr, int64_t otherwise)
{
    lnt_node view;
    lnt_gnode_view(n, &view);
    return lnt_attr_i(&view, attr, otherwise);
}

float lnt_gnode_float(const lnt_gnode *n, const char *attr, float otherwise)
{
    lnt_node view;
    lnt_gnode_view(n, &view);
    return lnt_attr_f(&view, attr, otherwise);
}

const char *lnt_gnode_string(const lnt_gnode *n, const char *attr, const char *otherwise)
{
    lnt_node view;
    lnt_gnode_view(n, &view);
    return lnt_attr_s(&view, attr, otherwise);
}

const lnt_attr *lnt_gnode_attr(const lnt_gnode *n, const char *attr)
{
    lnt_node view;
    lnt_gnode_view(n, &view);
    return lnt_attr_find(&view, attr);
}

lnt_status lnt_gnode_set_float(lnt_graph *g, lnt_gnode *n, const char *name, float value)
{
    return lnt_gnode_set_attr(g, n,
                              &(lnt_attr){.name = name, .type = LNT_ATTR_FLOAT, .count = 1, .f = &value});
}

bool lnt_scalar_operand(const lnt_graph *g, const lnt_gnode *n, double *scalar, unsigned *other)
{
    if (n->n_in != 2)
        return false;
    for (unsigned i = 0; i < 2; i++)
        if (lnt_constant_scalar(g, n->in[i], scalar)) {
            *other = 1 - i;
            return true;
        }
    return false;
}

/* ---- values ---- */

bool lnt_is_constant(const lnt_graph *g, uint32_t value)
{
    return value != LNT_NONE && g->value[value].constant && g->value[value].info.data &&
           !g->value[value].info.packed;
}

static bool element(const lnt_operand *o, int64_t i, double *out)
{
    switch (o->dtype) {
    case LNT_FLOAT: *out = ((const float *)o->data)[i]; return true;
    case LNT_DOUBLE: *out = ((const double *)o->data)[i]; return true;
    case LNT_FLOAT16: *out = lnt_f16_to_float(((const uint16_t *)o->data)[i]); return true;
    case LNT_BFLOAT16: *out = lnt_bf16_to_float(((const uint16_t *)o->data)[i]); return true;
    case LNT_INT64: *out = (double)((const int64_t *)o->data)[i]; return true;
    case LNT_INT32: *out = ((const int32_t *)o->data)[i]; return true;
    case LNT_UINT8:
    case LNT_BOOL: *out = ((const uint8_t *)o->data)[i]; return true;
    default: return false;
    }
}

bool lnt_constant_scalar(const lnt_graph *g, uint32_t value, double *out)
{
    if (!lnt_is_constant(g, value) || lnt_operand_count(&g->value[value].info) != 1)
        return false;
    return element(&g->value[value].info, 0, out);
}

bool lnt_constant_ints(const lnt_graph *g, uint32_t value, int64_t *out, unsigned *n)
{
    if (!lnt_is_constant(g, value))
        return false;
    const lnt_operand *o = &g->value[value].info;
    const int64_t count = lnt_operand_count(o);
    if ((o->dtype != LNT_INT64 && o->dtype != LNT_INT32) || count < 0 || count > *n)
        return false;
    *n = (unsigned)count;
    for (int64_t i = 0; i < count; i++)
        out[i] = o->dtype == LNT_INT64 ? ((const int64_t *)o->data)[i] : ((const int32_t *)o->data)[i];
    return true;
}

const float *lnt_constant_floats(const lnt_graph *g, uint32_t value, int64_t *n)
{
    if (!lnt_is_constant(g, value) || g->value[value].info.dtype != LNT_FLOAT)
        return NULL;
    *n = lnt_operand_count(&g->value[value].info);
    return *n < 0 ? NULL : g->value[value].info.data;
}

uint32_t lnt_add_floats(lnt_graph *g, const char *name, unsigned rank, const int64_t *dims, const float *data)
{
    int64_t n = 1;
    for (unsigned i = 0; i < rank; i++)
        n *= dims[i];
    return lnt_graph_add_constant(g, name, LNT_FLOAT, rank, dims, data, (size_t)n * sizeof *data);
}

uint32_t lnt_add_ints(lnt_graph *g, const char *name, unsigned n, const int64_t *data)
{
    return lnt_graph_add_constant(g, name, LNT_INT64, 1, &(int64_t){n}, data, n * sizeof *data);
}

bool lnt_dims_equal(const lnt_operand *o, unsigned rank, const int64_t *dims)
{
    if (o->rank != rank || rank > LNT_MAX_RANK)
        return false;
    for (unsigned i = 0; i < rank; i++)
        if (o->dims[i] != dims[i] || dims[i] == LNT_DIM_UNKNOWN)
            return false;
    return true;
}

bool lnt_same_dims(const lnt_operand *a, const lnt_operand *b)
{
    return lnt_dims_equal(a, b->rank, b->dims);
}
