/* edit.c — see edit.h. */
#include "convert/graph/edit.h"

#include "base/half.h"
#include "base/lnt_assert.h"

#include <string.h>

/* ---- uses ---- */

static void unlink_use(lnt_uses *u, uint32_t use)
{
    LNT_ASSERT(use < u->n && (u->list[use].value == LNT_NONE || u->of[u->list[use].value].count > 0));
    const lnt_use *at = &u->list[use];
    if (at->value == LNT_NONE)
        return;
    *(at->before == LNT_NONE ? &u->of[at->value].first : &u->list[at->before].next) = at->next;
    if (at->next != LNT_NONE)
        u->list[at->next].before = at->before;
    u->of[at->value].count--;
}

static void link_use(lnt_uses *u, uint32_t use, lnt_gnode *by, uint32_t value)
{
    LNT_ASSERT(use < u->n && (value == LNT_NONE || value < u->n_values));
    lnt_use *at = &u->list[use];
    *at = (lnt_use){by, value, LNT_NONE, LNT_NONE};
    if (value == LNT_NONE)
        return;
    at->next = u->of[value].first;
    if (at->next != LNT_NONE)
        u->list[at->next].before = use;
    u->of[value].first = use;
    u->of[value].count++;
}

/* Records for values made since, and for the operands of n. */
static lnt_status make_room(lnt_graph *g, lnt_gnode *n)
{
    lnt_uses *u = &g->uses;
    for (; u->n_values < g->n_values; u->n_values++) {
        LNT_TRY(LNT_GROW(g->memory.allocator, u->of, u->value_capacity, u->n_values, g->err));
        u->of[u->n_values] =
            (lnt_readers){.first = LNT_NONE, .pinned = lnt_gvalue_is_kept(&g->value[u->n_values])};
    }
    if (n->n_in <= n->n_uses)
        return LNT_OK;
    n->first_use = (uint32_t)u->n;
    n->n_uses = 0;
    for (; n->n_uses < n->n_in; n->n_uses++, u->n++) {
        LNT_TRY(LNT_GROW(g->memory.allocator, u->list, u->capacity, u->n, g->err));
        u->list[u->n] = (lnt_use){.value = LNT_NONE};
    }
    return LNT_OK;
}

void lnt_edit_changed(lnt_edit *e, lnt_gnode *n)
{
    lnt_uses *u = &e->g->uses;
    for (uint32_t i = 0; i < n->n_uses && !u->incomplete; i++)
        unlink_use(u, n->first_use + i);
    u->incomplete |= make_room(e->g, n) != LNT_OK;
    for (uint32_t i = n->n_uses; i-- > 0 && !u->incomplete;) /* a list begins with the latest */
        link_use(u, n->first_use + i, n, n->dead || i >= n->n_in ? LNT_NONE : n->in[i]);
}

lnt_status lnt_edit_renew(lnt_edit *e)
{
    lnt_graph *g = e->g;
    g->uses.n = g->uses.n_values = 0;
    for (size_t s = 0; s < g->n_subs; s++) {
        const lnt_gsubgraph *sub = &g->sub[s];
        for (size_t i = sub->n_nodes; i-- > 0;) {
            sub->node[i]->n_uses = 0;
            sub->node[i]->place = (uint32_t)i;
            lnt_edit_changed(e, sub->node[i]);
        }
    }
    for (size_t s = 0; s < g->n_subs && !g->uses.incomplete; s++)
        for (unsigned o = 0; o < g->sub[s].n_out; o++)
            if (g->sub[s].out[o] < g->uses.n_values)
                g->uses.of[g->sub[s].out[o]].pinned = g->uses.of[g->sub[s].out[o]].output = true;
    return g->uses.incomplete ? LNT_E_MEMORY : LNT_OK;
}

lnt_status lnt_edit_begin(lnt_edit *e, lnt_graph *g, lnt_report *report, const char *pass)
{
    *e = (lnt_edit){.g = g, .report = report, .pass = pass};
    return lnt_edit_renew(e);
}

lnt_status lnt_edit_count(lnt_edit *e, const char *what)
{
    return e->g->uses.incomplete ? LNT_E_MEMORY : lnt_report_count(e->report, e->pass, what, 1);
}

/* What is known of the value; of one that was made since, nothing. */
static lnt_readers readers_of(const lnt_edit *e, uint32_t value)
{
    LNT_ASSERT(value < e->g->n_values);
    const lnt_uses *u = &e->g->uses;
    return value < u->n_values
               ? u->of[value]
               : (lnt_readers){.first = LNT_NONE, .pinned = lnt_gvalue_is_kept(&e->g->value[value])};
}

unsigned lnt_edit_uses(const lnt_edit *e, uint32_t value)
{
    return readers_of(e, value).count;
}

bool lnt_edit_pinned(const lnt_edit *e, uint32_t value)
{
    return readers_of(e, value).pinned;
}

bool lnt_edit_is_output(const lnt_edit *e, uint32_t value)
{
    return readers_of(e, value).output;
}

lnt_gnode *lnt_edit_reader(const lnt_edit *e, uint32_t value, uint32_t *at)
{
    const uint32_t use = *at == LNT_EDIT_FIRST ? readers_of(e, value).first : *at;
    if (use == LNT_NONE)
        return NULL;
    *at = e->g->uses.list[use].next;
    return e->g->uses.list[use].by;
}

lnt_gnode *lnt_edit_follower(const lnt_edit *e, const lnt_gnode *n)
{
    LNT_ASSERT(n->n_out > 0 && !n->dead);
    const uint32_t value = n->out[0];
    if (value == LNT_NONE)
        return NULL;
    const lnt_readers r = readers_of(e, value);
    if (r.pinned || r.count != 1)
        return NULL;
    lnt_gnode *reader = e->g->uses.list[r.first].by;
    return reader->subgraph == n->subgraph ? reader : NULL;
}

/* ---- edits ---- */

static bool is_subgraph_input(const lnt_graph *g, uint32_t value)
{
    return !g->value[value].producer && !g->value[value].constant;
}

static unsigned output_index(const lnt_gnode *n, uint32_t value)
{
    LNT_ASSERT(n->n_out > 0);
    unsigned i = 0;
    while (n->out[i] != value)
        i++;
    return i;
}

void lnt_edit_released(lnt_edit *e, uint32_t value)
{
    const lnt_graph *g = e->g;
    bool output = false;
    for (size_t s = 0; s < g->n_subs; s++)
        for (uint32_t o = 0; o < g->sub[s].n_out; o++)
            output |= g->sub[s].out[o] == value;
    if (value < g->uses.n_values) {
        e->g->uses.of[value].output = output;
        e->g->uses.of[value].pinned = output || lnt_gvalue_is_kept(&g->value[value]);
    }
}

void lnt_edit_drop(lnt_edit *e, lnt_gnode *n)
{
    LNT_ASSERT(n->subgraph < e->g->n_subs);
    n->dead = true;
    lnt_edit_changed(e, n);
}

void lnt_edit_replace(lnt_edit *e, uint32_t from, uint32_t to)
{
    LNT_ASSERT(from != to && to < e->g->n_values);
    LNT_ASSERT(!lnt_edit_pinned(e, from));
    for (uint32_t use; (use = readers_of(e, from).first) != LNT_NONE && !e->g->uses.incomplete;) {
        lnt_gnode *n = e->g->uses.list[use].by;
        for (unsigned i = 0; i < n->n_in; i++)
            if (n->in[i] == from)
                n->in[i] = to;
        lnt_edit_changed(e, n);
    }
}

lnt_status lnt_edit_set_input(lnt_edit *e, lnt_gnode *n, unsigned i, uint32_t value)
{
    LNT_ASSERT(value == LNT_NONE || value < e->g->n_values);
    LNT_ASSERT(i < UINT16_MAX);
    if (i >= n->n_in) {
        uint32_t *in = lnt_bump_alloc(&e->g->memory, (i + 1) * sizeof *in, e->g->err);
        if (!in)
            return LNT_E_MEMORY;
        for (unsigned k = 0; k <= i; k++)
            in[k] = lnt_in_value(n, k);
        n->in = in;
        n->n_in = (uint16_t)(i + 1);
    }
    n->in[i] = value;
    lnt_edit_changed(e, n);
    return LNT_OK;
}

lnt_gnode *lnt_edit_move(lnt_edit *e, lnt_gnode *n, lnt_gnode *at)
{
    LNT_ASSERT(n != at && n->n_out == at->n_out && n->subgraph == at->subgraph);
    lnt_gnode moved = *n;
    moved.ahead = at->ahead;
    moved.place = at->place;
    moved.first_use = at->first_use;
    moved.n_uses = at->n_uses;
    moved.out[0] = at->out[0];
    *at = moved;
    for (unsigned i = 0; i < at->n_out; i++)
        if (at->out[i] != LNT_NONE)
            e->g->value[at->out[i]].producer = at;
    lnt_edit_changed(e, at);
    lnt_edit_drop(e, n);
    return at;
}

bool lnt_edit_bypass(lnt_edit *e, lnt_gnode *n, uint32_t to)
{
    LNT_ASSERT(n->n_out > 0 && to < e->g->n_values && to != n->out[0]);
    lnt_graph *g = e->g;
    const uint32_t from = n->out[0];
    if (lnt_edit_pinned(e, from)) {
        lnt_gnode *p = g->value[to].producer;
        if (!p || is_subgraph_input(g, to) || p->subgraph != n->subgraph || lnt_edit_pinned(e, to))
            return false;
        p->out[output_index(p, to)] = from;
        g->value[from].producer = p;
        g->value[to].producer = NULL;
        lnt_edit_drop(e, n);
        lnt_edit_replace(e, to, from);
    } else {
        lnt_edit_drop(e, n);
        lnt_edit_replace(e, from, to);
        g->value[from].producer = NULL;
    }
    return true;
}

lnt_gnode *lnt_edit_insert(lnt_edit *e, lnt_gnode *at, const lnt_op *op, const uint32_t *in, unsigned n_in,
                           uint32_t out, uint32_t *made)
{
    LNT_ASSERT(!at->dead && op);
    if (out == LNT_NONE)
        out = lnt_graph_add_value(e->g, at->name);
    if (out == LNT_NONE)
        return NULL;
    if (made)
        *made = out;
    lnt_gnode *n = lnt_graph_add_node(e->g, at->subgraph, at, op, at->name, in, n_in, &out, 1);
    if (n)
        lnt_edit_changed(e, n);
    return n;
}

lnt_gnode *lnt_edit_substitute(lnt_edit *e, lnt_gnode *at, const lnt_op *op, const uint32_t *in,
                               unsigned n_in)
{
    LNT_ASSERT(at->n_out == 1 || at->out[0] != LNT_NONE);
    lnt_gnode *n = lnt_edit_insert(e, at, op, in, n_in, at->out[0], NULL);
    if (n)
        lnt_edit_drop(e, at);
    return n;
}

/* The nodes that wait ahead of n by now. */
static lnt_status visit_ahead(lnt_edit *e, lnt_gnode *n, lnt_status (*visit)(lnt_edit *e, lnt_gnode *n))
{
    size_t count = 0;
    for (const lnt_gnode *w = n->ahead; w; w = w->ahead)
        count++;
    lnt_gnode **list = lnt_bump_alloc(&e->g->memory, count * sizeof(lnt_gnode *), e->g->err);
    if (!list)
        return LNT_E_MEMORY;
    size_t at = count;
    for (lnt_gnode *w = n->ahead; w; w = w->ahead)
        list[--at] = w;
    for (; at < count; at++)
        if (!list[at]->dead)
            LNT_TRY(visit(e, list[at]));
    return LNT_OK;
}

lnt_status lnt_edit_each(lnt_edit *e, lnt_status (*visit)(lnt_edit *e, lnt_gnode *n))
{
    for (size_t s = 0; s < e->g->n_subs; s++)
        for (size_t i = 0; i < e->g->sub[s].n_nodes; i++) {
            lnt_gnode *n = e->g->sub[s].node[i];
            if (n->ahead)
                LNT_TRY(visit_ahead(e, n, visit));
            if (!n->dead)
                LNT_TRY(visit(e, n));
        }
    return LNT_OK;
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

int64_t lnt_gnode_int(const lnt_gnode *n, const char *attr, int64_t otherwise)
{
    lnt_node view;
    lnt_gnode_view(n, &view);
    return lnt_attr_i(&view, attr, otherwise);
}

int64_t lnt_gnode_int_at(const lnt_gnode *n, const char *attr, unsigned i, int64_t otherwise)
{
    const lnt_attr *a = lnt_gnode_attr(n, attr);
    return a && a->type == LNT_ATTR_INTS && i < a->count ? a->i[i] : otherwise;
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

const lnt_attr *lnt_gnode_perm(const lnt_gnode *n)
{
    const lnt_attr *a = lnt_is(n, Transpose) ? lnt_gnode_attr(n, "perm") : NULL;
    uint32_t seen = 0;
    if (!a || a->type != LNT_ATTR_INTS || a->count > LNT_MAX_RANK)
        return NULL;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->i[i] < 0 || a->i[i] >= a->count || seen >> a->i[i] & 1u)
            return NULL;
        seen |= 1u << a->i[i];
    }
    return a;
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
    LNT_ASSERT(o->data && i >= 0);
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
    LNT_ASSERT(*n > 0);
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
    LNT_ASSERT(rank <= LNT_MAX_RANK);
    size_t bytes;
    if (!lnt_shape_bytes(dims, rank, sizeof *data, &bytes))
        return LNT_NONE;
    return lnt_graph_add_constant(g, name, LNT_FLOAT, rank, dims, data, bytes);
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
