/* check_graph.c — see check_graph.h. */
#include "convert/graph/check_graph.h"

#ifdef LNT_CHECKED

#include "base/lnt_assert.h"

static void check_values(const lnt_graph *g)
{
    for (size_t v = 0; v < g->n_values; v++) {
        const lnt_gvalue *value = &g->value[v];
        const lnt_operand *o = &value->info;
        LNT_ASSERT(o->rank <= LNT_MAX_RANK || o->rank == LNT_RANK_UNKNOWN);
        LNT_ASSERT(o->order == LNT_ORDER_PLAIN || (o->rank >= 3 && o->rank <= LNT_MAX_RANK));
        LNT_ASSERT(!value->constant || (!value->producer && lnt_operand_count(o) >= 0));
        LNT_ASSERT(!value->constant || o->data || value->bytes == 0);
    }
}

/* Lists of uses, as far as there are any, are as long as they say and lead back. */
static void check_uses(const lnt_graph *g)
{
    const lnt_uses *u = &g->uses;
    for (size_t v = 0; v < u->n_values; v++) {
        uint32_t n = 0, before = LNT_NONE;
        for (uint32_t at = u->of[v].first; at != LNT_NONE; before = at, at = u->list[at].next, n++) {
            LNT_ASSERT(at < u->n && n < u->n);
            LNT_ASSERT(u->list[at].value == v && u->list[at].before == before);
        }
        LNT_ASSERT(n == u->of[v].count);
    }
}

/* The nodes of a subgraph are numbered in running order: every input is made before. */
static void check_node(const lnt_graph *g, const lnt_gnode *n)
{
    LNT_ASSERT(n->n_program_in <= n->n_in && (n->n_program_in == 0 || n->program));
    for (unsigned i = 0; i < n->n_in; i++) {
        LNT_ASSERT(n->in[i] == LNT_NONE || n->in[i] < g->n_values);
        const lnt_gnode *from = n->in[i] == LNT_NONE ? NULL : g->value[n->in[i]].producer;
        LNT_ASSERT(!from || !from->dead);
        LNT_ASSERT(!from || from->subgraph != n->subgraph || from->place < n->place);
    }
    for (unsigned o = 0; o < n->n_out; o++) {
        LNT_ASSERT(n->out[o] == LNT_NONE || n->out[o] < g->n_values);
        LNT_ASSERT(n->out[o] == LNT_NONE || g->value[n->out[o]].producer == n);
    }
}

void lnt_check_graph(lnt_graph *g)
{
    check_values(g);
    check_uses(g);
    for (uint32_t s = 0; s < g->n_subs; s++) {
        const lnt_gsubgraph *sub = &g->sub[s];
        LNT_ASSERT(sub->n_waiting == 0);
        for (size_t i = 0; i < sub->n_nodes; i++) {
            LNT_ASSERT(!sub->node[i]->dead && !sub->node[i]->ahead && sub->node[i]->subgraph == s);
            sub->node[i]->place = (uint32_t)i;
        }
        for (uint32_t o = 0; o < sub->n_out; o++)
            LNT_ASSERT(sub->out[o] < g->n_values);
    }
    for (uint32_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++)
            check_node(g, g->sub[s].node[i]);
}

#endif
