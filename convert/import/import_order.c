/* import_order.c — nodes in an order that can run. ONNX asks for such an order, some exporters forget. */
#include "convert/import/import.h"

#include <string.h>

/* Calls visit for every name that node reads, those of its subgraphs included. Names that a subgraph defines
 * itself may be among them. */
typedef lnt_status (*name_visitor)(void *arg, const char *name);

static lnt_status visit_names(const LntOnnx__Node *node, name_visitor visit, void *arg)
{
    for (size_t i = 0; i < node->n_input; i++)
        LNT_TRY(visit(arg, node->input[i]));
    for (size_t a = 0; a < node->n_attribute; a++) {
        const LntOnnx__Graph *g = node->attribute[a]->g;
        for (size_t i = 0; g && i < g->n_node; i++)
            LNT_TRY(visit_names(g->node[i], visit, arg));
        for (size_t i = 0; g && i < g->n_output; i++)
            if (g->output[i]->name)
                LNT_TRY(visit(arg, g->output[i]->name));
    }
    return LNT_OK;
}

typedef struct edges {
    lnt_names maker; /* name -> node that computes it */
    struct edge {
        uint32_t reader, next; /* next edge of the same maker */
    } * edge;
    size_t n_edges, capacity;
    uint32_t *first;   /* per node: its first edge, LNT_NONE */
    uint32_t *waiting; /* per node: edges into it from nodes that are not placed */
    uint32_t reader;
    bool in_order;
    lnt_error *err;
    const lnt_allocator *memory;
} edges;

static lnt_status add_edge(void *arg, const char *name)
{
    edges *e = arg;
    const uint32_t maker = lnt_names_find(&e->maker, name);
    if (maker == LNT_NAMES_NONE || maker == e->reader)
        return LNT_OK;
    if (maker > e->reader)
        e->in_order = false;
    LNT_TRY(LNT_GROW(e->memory, e->edge, e->capacity, e->n_edges, e->err));
    e->edge[e->n_edges] = (struct edge){e->reader, e->first[maker]};
    e->first[maker] = (uint32_t)e->n_edges++;
    e->waiting[e->reader]++;
    return LNT_OK;
}

static lnt_status collect(edges *e, LntOnnx__Node *const *node, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < node[i]->n_output; k++)
            if (node[i]->output[k][0])
                LNT_TRY(lnt_names_set(&e->maker, node[i]->output[k], (uint32_t)i, e->err));
    for (size_t i = 0; i < n; i++) {
        e->first[i] = LNT_NONE;
        e->waiting[i] = 0;
    }
    e->in_order = true;
    for (size_t i = 0; i < n; i++) {
        e->reader = (uint32_t)i;
        LNT_TRY(visit_names(node[i], add_edge, e));
    }
    return LNT_OK;
}

/* Places nodes as soon as all they read is placed. Where that comes to no end (a cycle, or a name of a
 * subgraph taken for one out here) the file's order stands, and the node that reads too early is named later. */
static void sort(edges *e, size_t n, uint32_t *order)
{
    size_t placed = 0;
    for (size_t i = 0; i < n; i++)
        if (e->waiting[i] == 0)
            order[placed++] = (uint32_t)i;
    for (size_t i = 0; i < placed; i++)
        for (uint32_t k = e->first[order[i]]; k != LNT_NONE; k = e->edge[k].next)
            if (--e->waiting[e->edge[k].reader] == 0)
                order[placed++] = e->edge[k].reader;
    for (size_t i = 0; placed < n && i < n; i++)
        order[i] = (uint32_t)i;
}

lnt_status lnt_import_order(lnt_importer *im, LntOnnx__Node *const *node, size_t n, uint32_t *order)
{
    const lnt_allocator *a = im->g->memory.allocator;
    LNT_REQUIRE(n < UINT32_MAX, im->err, LNT_E_LIMIT, "a graph has %zu nodes", n);
    edges e = {.maker.heap = a, .memory = a, .err = im->err};
    e.first = lnt_alloc_zero(a, n, sizeof *e.first, im->err);
    e.waiting = lnt_alloc_zero(a, n, sizeof *e.waiting, im->err);
    lnt_status status = e.first && e.waiting ? collect(&e, node, n) : LNT_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    if (status == LNT_OK && !e.in_order)
        sort(&e, n, order);
    lnt_names_free(&e.maker);
    lnt_free(a, e.edge);
    lnt_free(a, e.first);
    lnt_free(a, e.waiting);
    return status;
}
