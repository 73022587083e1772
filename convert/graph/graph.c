/* graph.c — building, changing and searching the model while it is being converted. */
#include "convert/graph/edit.h"

#include "base/lnt_assert.h"

#include <stdio.h>
#include <string.h>

void lnt_graph_init(lnt_graph *g, const lnt_allocator *memory, lnt_error *err)
{
    *g =
        (lnt_graph){.names.heap = memory, .fixed_dims.heap = memory, .word_numbers.heap = memory, .err = err};
    lnt_bump_init(&g->memory, memory);
}

void lnt_graph_free(lnt_graph *g)
{
    const lnt_allocator *a = g->memory.allocator;
    for (size_t i = 0; i < g->n_subs; i++)
        lnt_free(a, g->sub[i].node);
    lnt_free(a, g->uses.list);
    lnt_free(a, g->uses.of);
    lnt_free(a, g->value);
    lnt_free(a, g->sub);
    lnt_free(a, g->symbol);
    lnt_free(a, g->state);
    lnt_free(a, g->meta);
    lnt_names_free(&g->names);
    lnt_names_free(&g->fixed_dims);
    lnt_names_free(&g->word_numbers);
    lnt_free(a, g->words.word);
    lnt_bump_free(&g->memory);
    lnt_graph_init(g, a, g->err);
}

/* ---- adding ---- */

static void *copy(lnt_graph *g, const void *data, size_t bytes)
{
    void *block = lnt_bump_alloc(&g->memory, bytes, g->err);
    return block && bytes ? memcpy(block, data, bytes) : block;
}

static char *copy_text(lnt_graph *g, const char *text)
{
    return lnt_bump_string(&g->memory, text, strlen(text), g->err);
}

/* name, or name_1, name_2, ... where that is taken. */
static const char *unique_name(lnt_graph *g, const char *name)
{
    if (lnt_names_find(&g->names, name) == LNT_NAMES_NONE)
        return copy_text(g, name);
    const size_t length = strlen(name);
    char *text = lnt_bump_alloc(&g->memory, length + 12, g->err);
    if (!text)
        return NULL;
    memcpy(text, name, length);
    /* The number of values makes a first guess that is nearly always free. */
    for (uint32_t suffix = (uint32_t)g->n_values;; suffix++) {
        snprintf(text + length, 12, "_%u", suffix);
        if (lnt_names_find(&g->names, text) == LNT_NAMES_NONE)
            return text;
    }
}

uint32_t lnt_graph_add_value(lnt_graph *g, const char *name)
{
    if (LNT_GROW(g->memory.allocator, g->value, g->value_capacity, g->n_values, g->err) != LNT_OK)
        return LNT_NONE;
    const uint32_t number = (uint32_t)g->n_values;
    const char *unique = unique_name(g, name);
    if (!unique || lnt_names_set(&g->names, unique, number, g->err) != LNT_OK)
        return LNT_NONE;
    g->value[number] = (lnt_gvalue){.name = unique, .info = {.rank = LNT_RANK_UNKNOWN}};
    g->n_values++;
    return number;
}

uint32_t lnt_graph_add_constant(lnt_graph *g, const char *name, lnt_dtype dtype, unsigned rank,
                                const int64_t *dims, const void *data, size_t bytes)
{
    LNT_ASSERT(rank <= LNT_MAX_RANK && (rank == 0 || dims));
    const void *contents = copy(g, data, bytes);
    const uint32_t number = contents ? lnt_graph_add_value(g, name) : LNT_NONE;
    if (number == LNT_NONE)
        return LNT_NONE;
    lnt_gvalue *v = &g->value[number];
    v->constant = v->info.constant = true;
    v->info.dtype = (uint8_t)dtype;
    v->info.rank = (uint8_t)rank;
    if (rank)
        memcpy(v->info.dims, dims, rank * sizeof *dims);
    v->info.data = contents;
    v->bytes = bytes;
    return number;
}

uint32_t lnt_graph_add_sub(lnt_graph *g, const char *name)
{
    const char *text = copy_text(g, name);
    if (!text || LNT_GROW(g->memory.allocator, g->sub, g->sub_capacity, g->n_subs, g->err) != LNT_OK)
        return LNT_NONE;
    g->sub[g->n_subs] = (lnt_gsubgraph){.name = text};
    return (uint32_t)g->n_subs++;
}

/* There is room for all that wait, too: a sweep cannot fail. */
static lnt_status make_room(lnt_graph *g, lnt_gsubgraph *s)
{
    return LNT_GROW(g->memory.allocator, s->node, s->node_capacity, s->n_nodes + s->n_waiting, g->err);
}

lnt_status lnt_graph_put_before(lnt_graph *g, lnt_gnode *n, lnt_gnode *before)
{
    LNT_ASSERT(before->subgraph < g->n_subs && !n->ahead);
    lnt_gsubgraph *s = &g->sub[before->subgraph];
    LNT_TRY(make_room(g, s));
    n->subgraph = before->subgraph;
    n->place = before->place;
    n->ahead = before->ahead;
    before->ahead = n;
    s->n_waiting++;
    return LNT_OK;
}

static lnt_status append(lnt_graph *g, lnt_gnode *n)
{
    LNT_ASSERT(n->subgraph < g->n_subs);
    lnt_gsubgraph *s = &g->sub[n->subgraph];
    LNT_TRY(make_room(g, s));
    s->node[s->n_nodes++] = n;
    return LNT_OK;
}

lnt_gnode *lnt_graph_add_node(lnt_graph *g, uint32_t sub, lnt_gnode *before, const lnt_op *op,
                              const char *name, const uint32_t *in, unsigned n_in, const uint32_t *out,
                              unsigned n_out)
{
    LNT_ASSERT(op && sub < g->n_subs && (!before || before->subgraph == sub));
    lnt_gnode *n = lnt_bump_alloc(&g->memory, sizeof *n, g->err);
    if (!n)
        return NULL;
    if (n_in > UINT16_MAX || n_out > UINT16_MAX) {
        lnt_fail(g->err, LNT_E_LIMIT, "node '%s' has more than %d operands", name, UINT16_MAX);
        return NULL;
    }
    *n = (lnt_gnode){.op = op, .n_in = (uint16_t)n_in, .n_out = (uint16_t)n_out, .subgraph = sub};
    n->name = copy_text(g, name);
    n->in = copy(g, in, n_in * sizeof *in);
    n->out = copy(g, out, n_out * sizeof *out);
    if (!n->name || !n->in || !n->out ||
        (before ? lnt_graph_put_before(g, n, before) : append(g, n)) != LNT_OK)
        return NULL;
    for (unsigned i = 0; i < n_out; i++)
        if (out[i] != LNT_NONE)
            g->value[out[i]].producer = n;
    return n;
}

/* ---- attributes ---- */

static const char *const *copy_strings(lnt_graph *g, const char *const *strings, uint32_t count)
{
    const char **list = lnt_bump_alloc(&g->memory, count * sizeof *list, g->err);
    for (uint32_t i = 0; list && i < count; i++)
        if (!(list[i] = copy_text(g, strings[i])))
            return NULL;
    return list;
}

static const lnt_operand *copy_tensor(lnt_graph *g, const lnt_operand *tensor)
{
    lnt_operand *o = copy(g, tensor, sizeof *tensor);
    size_t bytes;
    if (!o || !lnt_operand_bytes(tensor, &bytes))
        return NULL;
    o->data = copy(g, tensor->data, bytes);
    return o->data ? o : NULL;
}

/* Replaces what a->i, f, s, ... points to by a copy in the graph's memory. */
static lnt_status copy_contents(lnt_graph *g, lnt_attr *a)
{
    switch (a->type) {
    case LNT_ATTR_STRING: a->s = lnt_bump_string(&g->memory, a->s, a->count, g->err); break;
    case LNT_ATTR_STRINGS: a->strings = copy_strings(g, a->strings, a->count); break;
    case LNT_ATTR_TENSOR: a->tensor = copy_tensor(g, a->tensor); break;
    case LNT_ATTR_FLOAT:
    case LNT_ATTR_FLOATS: a->f = copy(g, a->f, a->count * sizeof *a->f); break;
    case LNT_ATTR_INT:
    case LNT_ATTR_INTS:
    case LNT_ATTR_GRAPH: a->i = copy(g, a->i, a->count * sizeof *a->i); break;
    }
    return a->i ? LNT_OK : lnt_fail(g->err, LNT_E_MEMORY, "no memory for attribute %s", a->name);
}

lnt_status lnt_gnode_set_attr(lnt_graph *g, lnt_gnode *n, const lnt_attr *attr)
{
    LNT_ASSERT(attr->name && attr->type >= LNT_ATTR_INT && attr->type <= LNT_ATTR_GRAPH);
    lnt_attr fresh = *attr;
    LNT_TRY(copy_contents(g, &fresh));
    for (unsigned i = 0; i < n->n_attr; i++)
        if (strcmp(n->attr[i].name, attr->name) == 0) {
            fresh.name = n->attr[i].name;
            n->attr[i] = fresh;
            return LNT_OK;
        }
    fresh.name = copy_text(g, attr->name);
    lnt_attr *list = lnt_bump_alloc(&g->memory, (n->n_attr + 1u) * sizeof *list, g->err);
    if (!fresh.name || !list)
        return LNT_E_MEMORY;
    if (n->n_attr)
        memcpy(list, n->attr, n->n_attr * sizeof *list);
    list[n->n_attr++] = fresh;
    n->attr = list;
    return LNT_OK;
}

lnt_status lnt_gnode_set_int(lnt_graph *g, lnt_gnode *n, const char *name, int64_t value)
{
    const lnt_attr attr = {.name = name, .type = LNT_ATTR_INT, .count = 1, .i = &value};
    return lnt_gnode_set_attr(g, n, &attr);
}

uint32_t lnt_gnode_sub(const lnt_gnode *n, const char *name)
{
    lnt_node view;
    lnt_gnode_view(n, &view);
    const lnt_attr *a = lnt_attr_find(&view, name);
    return a && a->type == LNT_ATTR_GRAPH ? (uint32_t)*a->i : LNT_NONE;
}

void lnt_gnode_view(const lnt_gnode *n, lnt_node *view)
{
    *view = (lnt_node){.op = n->op,
                       .name = n->name,
                       .in = n->in,
                       .out = n->out,
                       .n_in = n->n_in,
                       .n_out = n->n_out,
                       .n_program_in = n->n_program_in,
                       .n_attr = n->n_attr,
                       .attr = n->attr,
                       .program = n->program,
                       .evaluate_early = n->evaluate_early};
}

bool lnt_graph_any(const lnt_graph *g, bool (*is)(const lnt_gnode *n))
{
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++)
            if (is(g->sub[s].node[i]))
                return true;
    return false;
}

const lnt_gnode *lnt_graph_unseeded(const lnt_graph *g)
{
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++) {
            const lnt_gnode *n = g->sub[s].node[i];
            if (!n->dead && n->op->flags & LNT_OP_RANDOM && !lnt_gnode_attr(n, "seed"))
                return n;
        }
    return NULL;
}

void lnt_graph_let_in(lnt_graph *g, uint32_t sub)
{
    LNT_ASSERT(sub < g->n_subs);
    lnt_gsubgraph *s = &g->sub[sub];
    size_t from = s->n_nodes, to = from + s->n_waiting;
    s->n_nodes = to;
    s->n_waiting = 0;
    while (to > from) /* from the last to the first: each that waits moves the others on by one */
        for (lnt_gnode *n = s->node[--from], *ahead; n; n = ahead) {
            ahead = n->ahead;
            n->ahead = NULL;
            s->node[--to] = n;
        }
}

void lnt_graph_sweep(lnt_graph *g)
{
    for (uint32_t s = 0; s < g->n_subs; s++) {
        lnt_gsubgraph *sub = &g->sub[s];
        size_t kept = 0;
        lnt_graph_let_in(g, s);
        for (size_t i = 0; i < sub->n_nodes; i++)
            if (!sub->node[i]->dead)
                sub->node[kept++] = sub->node[i];
        sub->n_nodes = kept;
    }
}
