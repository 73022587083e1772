/* verify_graph.c — the verifier's last part: the graph can run in the order it is written.
 *
 * The model is walked as a run would walk it, entering the subgraphs of a node (If's branches, a Loop's body)
 * before the node's outputs exist. A value is unmade until a constant, a subgraph's input or a node makes it;
 * when its subgraph ends it is gone for good. */
#include "formats/verify.h"

#include "base/lnt_assert.h"

#include <inttypes.h>


typedef enum state { UNMADE, MADE, GONE } state;

typedef struct frame {
    uint32_t subgraph, node; /* node: the next to look at */
    uint32_t attr;           /* of that node: the next that may be a subgraph; 0: not yet begun */
} frame;

typedef struct walk {
    const lnt_file *f;
    uint8_t *value;   /* [n_values] state */
    uint8_t *entered; /* [n_subgraphs] */
    frame stack[LNT_FILE_MAX_NESTING];
    unsigned depth;
    lnt_error *err;
} walk;

static const char *value_name(const lnt_file *f, uint32_t value)
{
    LNT_ASSERT(value < f->n_values);
    return f->strings + f->values[value].name;
}

/* Every node stands in exactly one subgraph. */
static lnt_status check_node_ranges(const lnt_file *f, uint8_t *taken, lnt_error *err)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < f->n_subgraphs; i++)
        total += f->subgraphs[i].n_nodes;
    LNT_CHECK(total == f->n_nodes, err, "subgraphs section: hold %" PRIu64 " nodes, the file %" PRIu32, total,
              f->n_nodes);
    for (uint32_t i = 0; i < f->n_subgraphs; i++) {
        const lnt_rec_subgraph *g = &f->subgraphs[i];
        for (uint32_t k = g->first_node; k < g->first_node + g->n_nodes; k++)
            LNT_CHECK_RECORD(!taken[k]++, err, "subgraphs", i, "shares node %" PRIu32 " with another", k);
    }
    return LNT_OK;
}

static lnt_status make_value(walk *w, const char *section, uint32_t record, uint32_t value)
{
    LNT_CHECK(w->value[value] == UNMADE && w->f->values[value].constant == LNT_FILE_NONE, w->err,
              "%s section, record %" PRIu32 ": makes value %" PRIu32
              " (%.100s), which is a constant or made before",
              section, record, value, value_name(w->f, value));
    w->value[value] = MADE;
    return LNT_OK;
}

static lnt_status use_value(walk *w, const char *section, uint32_t record, uint32_t value)
{
    LNT_CHECK(w->value[value] == MADE || w->f->values[value].constant != LNT_FILE_NONE, w->err,
              "%s section, record %" PRIu32 ": uses value %" PRIu32
              " (%.100s), which nothing before it makes",
              section, record, value, value_name(w->f, value));
    return LNT_OK;
}

static lnt_status enter(walk *w, uint32_t subgraph)
{
    const lnt_rec_subgraph *g = &w->f->subgraphs[subgraph];
    LNT_CHECK_RECORD(!w->entered[subgraph]++, w->err, "subgraphs", subgraph,
                     "is part of two nodes or of itself");
    LNT_CHECK_RECORD(w->depth < LNT_FILE_MAX_NESTING, w->err, "subgraphs", subgraph,
                     "is nested deeper than %d", LNT_FILE_MAX_NESTING);
    w->stack[w->depth++] = (frame){.subgraph = subgraph, .node = g->first_node};
    for (uint32_t k = 0; k < g->n_in; k++)
        LNT_TRY(make_value(w, "subgraphs", subgraph, w->f->operands[g->first_operand + k]));
    return LNT_OK;
}

/* The subgraph's outputs exist; what it made is out of reach from here on. */
static lnt_status leave(walk *w)
{
    LNT_ASSERT(w->depth > 0);
    const uint32_t subgraph = w->stack[--w->depth].subgraph;
    const lnt_rec_subgraph *g = &w->f->subgraphs[subgraph];
    const uint32_t *operand = w->f->operands + g->first_operand;
    for (uint32_t k = g->n_in; k < g->n_in + g->n_out; k++)
        LNT_TRY(use_value(w, "subgraphs", subgraph, operand[k]));
    for (uint32_t k = 0; k < g->n_in; k++)
        w->value[operand[k]] = GONE;
    for (uint32_t i = g->first_node; i < g->first_node + g->n_nodes; i++) {
        const lnt_rec_node *n = &w->f->nodes[i];
        const uint32_t *out = w->f->operands + n->first_operand + n->n_in;
        for (unsigned k = 0; k < n->n_out; k++)
            if (out[k] != LNT_FILE_NONE)
                w->value[out[k]] = GONE;
    }
    return LNT_OK;
}

static lnt_status use_inputs(walk *w, uint32_t node)
{
    LNT_ASSERT(node < w->f->n_nodes);
    const lnt_rec_node *n = &w->f->nodes[node];
    const uint32_t *in = w->f->operands + n->first_operand;
    for (unsigned k = 0; k < n->n_in; k++)
        if (in[k] != LNT_FILE_NONE)
            LNT_TRY(use_value(w, "nodes", node, in[k]));
    return LNT_OK;
}

static lnt_status make_outputs(walk *w, uint32_t node)
{
    LNT_ASSERT(node < w->f->n_nodes);
    const lnt_rec_node *n = &w->f->nodes[node];
    const uint32_t *out = w->f->operands + n->first_operand + n->n_in;
    for (unsigned k = 0; k < n->n_out; k++)
        if (out[k] != LNT_FILE_NONE)
            LNT_TRY(make_value(w, "nodes", node, out[k]));
    return LNT_OK;
}

/* One move: begin a node, enter its next subgraph, or end it. */
static lnt_status advance(walk *w, frame *top)
{
    const lnt_rec_node *n = &w->f->nodes[top->node];
    if (top->attr == 0)
        LNT_TRY(use_inputs(w, top->node));
    while (top->attr < n->n_attrs) {
        const lnt_rec_attr *a = &w->f->attrs[n->first_attr + top->attr++];
        if (a->type == LNT_ATTR_GRAPH)
            return enter(w, (uint32_t)a->data);
    }
    top->attr = 0;
    return make_outputs(w, top->node++);
}

static lnt_status walk_model(walk *w)
{
    LNT_TRY(enter(w, 0));
    while (w->depth > 0) {
        frame *top = &w->stack[w->depth - 1];
        const lnt_rec_subgraph *g = &w->f->subgraphs[top->subgraph];
        LNT_TRY(top->node == g->first_node + g->n_nodes ? leave(w) : advance(w, top));
    }
    for (uint32_t i = 0; i < w->f->n_subgraphs; i++)
        LNT_CHECK_RECORD(w->entered[i], w->err, "subgraphs", i, "belongs to no node");
    return LNT_OK;
}

lnt_status lnt_verify_graph(const lnt_file *f, lnt_error *err)
{
    const lnt_allocator *a = &lnt_malloc_allocator;
    walk w = {.f = f, .err = err};
    uint8_t *taken = lnt_alloc_zero(a, f->n_nodes, 1, err);
    w.value = lnt_alloc_zero(a, f->n_values, 1, err);
    w.entered = lnt_alloc_zero(a, f->n_subgraphs, 1, err);
    lnt_status status = LNT_E_MEMORY;
    if (taken && w.value && w.entered)
        status = check_node_ranges(f, taken, err);
    if (status == LNT_OK)
        status = walk_model(&w);
    lnt_free(a, w.entered);
    lnt_free(a, w.value);
    lnt_free(a, taken);
    return status;
}
