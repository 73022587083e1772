/* dead_nodes.c — drops nodes that no output, no kept value and no state depends on. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

typedef struct liveness {
    lnt_edit *e;
    bool *needed;  /* per value */
    bool *reached; /* per subgraph */
} liveness;

/* Optional outputs nobody reads are not computed; those of variadic operators keep their place. */
static lnt_status drop_outputs(liveness *l, lnt_gnode *n)
{
    bool dropped = false;
    if (n->op->out_max == 255)
        return LNT_OK;
    for (unsigned i = n->op->out_min; i < n->n_out; i++)
        if (n->out[i] != LNT_NONE && !l->needed[n->out[i]]) {
            n->out[i] = LNT_NONE;
            dropped = true;
        }
    while (n->n_out > n->op->out_min && n->out[n->n_out - 1] == LNT_NONE)
        n->n_out--;
    return dropped ? lnt_edit_count(l->e, "optional outputs dropped") : LNT_OK;
}

static lnt_status live_subgraph(liveness *l, uint32_t sub);

static lnt_status live_node(liveness *l, lnt_gnode *n)
{
    for (unsigned i = 0; i < n->n_in; i++)
        if (n->in[i] != LNT_NONE)
            l->needed[n->in[i]] = true;
    for (unsigned i = 0; i < n->n_attr; i++)
        if (n->attr[i].type == LNT_ATTR_GRAPH)
            LNT_TRY(live_subgraph(l, (uint32_t)*n->attr[i].i));
    return drop_outputs(l, n);
}

/* From the last node to the first: readers stand behind producers, and a subgraph's readers of outer values
 * are met with the node that owns the subgraph. */
static lnt_status live_subgraph(liveness *l, uint32_t sub)
{
    lnt_gsubgraph *s = &l->e->g->sub[sub];
    l->reached[sub] = true;
    for (unsigned i = 0; i < s->n_out; i++)
        if (s->out[i] != LNT_NONE)
            l->needed[s->out[i]] = true;
    for (size_t i = s->n_nodes; i-- > 0;) {
        lnt_gnode *n = s->node[i];
        bool live = false;
        for (unsigned o = 0; o < n->n_out && !n->dead; o++)
            live |= n->out[o] != LNT_NONE && l->needed[n->out[o]];
        if (live) {
            LNT_TRY(live_node(l, n));
        } else if (!n->dead) {
            n->dead = true;
            LNT_TRY(lnt_edit_count(l->e, "nodes nobody needs"));
        }
    }
    return LNT_OK;
}

lnt_status lnt_pass_dead_nodes(lnt_graph *g, lnt_report *report)
{
    lnt_edit e = {.g = g, .report = report, .pass = "dead_nodes"};
    liveness l = {.e = &e};
    l.needed = lnt_bump_alloc(&g->memory, g->n_values * sizeof *l.needed, g->err);
    l.reached = lnt_bump_alloc(&g->memory, g->n_subs * sizeof *l.reached, g->err);
    if (!l.needed || !l.reached)
        return LNT_E_MEMORY;
    for (size_t v = 0; v < g->n_values; v++)
        l.needed[v] = lnt_gvalue_is_kept(&g->value[v]);
    LNT_TRY(live_subgraph(&l, 0));
    for (size_t s = 0; s < g->n_subs; s++)
        if (!l.reached[s])
            g->sub[s].n_nodes = g->sub[s].n_in = g->sub[s].n_out = 0;
    return LNT_OK;
}
