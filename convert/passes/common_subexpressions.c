/* common_subexpressions.c — computes once what is computed twice from the same values, and stores equal
 * constants once. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct entry {
    uint64_t key;
    uint32_t value;
} entry;

static int by_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->value < y->value ? -1 : 1;
}

/* ---- constants ---- */

static bool same_constant(const lnt_gvalue *a, const lnt_gvalue *b)
{
    return a->info.dtype == b->info.dtype && a->bytes == b->bytes && lnt_same_dims(&a->info, &b->info) &&
           memcmp(a->info.data, b->info.data, a->bytes) == 0;
}

static uint64_t constant_key(const lnt_gvalue *v)
{
    return XXH3_64bits_withSeed(v->info.data, v->bytes, v->info.dtype + 256u * v->info.rank);
}

/* to[v] is the value that stands for v from now on. */
static lnt_status merge_constants(lnt_edit *e, uint32_t *to, entry *list)
{
    const lnt_graph *g = e->g;
    size_t n = 0;
    for (uint32_t v = 0; v < g->n_values; v++)
        if (lnt_is_constant(g, v) && !lnt_edit_pinned(e, v))
            list[n++] = (entry){.key = constant_key(&g->value[v]), .value = v};
    if (n > 1)
        qsort(list, n, sizeof *list, by_key);
    for (size_t i = 1, first = 0; i < n; i++) {
        if (list[i].key == list[first].key &&
            same_constant(&g->value[list[first].value], &g->value[list[i].value])) {
            to[list[i].value] = list[first].value;
            if (lnt_edit_uses(e, list[i].value) > 0)
                LNT_TRY(lnt_edit_count(e, "constants stored once"));
        } else {
            first = i;
        }
    }
    return LNT_OK;
}

static void rename_operands(lnt_graph *g, const uint32_t *to)
{
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++)
            for (unsigned k = 0; k < g->sub[s].node[i]->n_in; k++)
                if (g->sub[s].node[i]->in[k] != LNT_NONE)
                    g->sub[s].node[i]->in[k] = to[g->sub[s].node[i]->in[k]];
}

/* ---- nodes ---- */

static bool mergeable(const lnt_gnode *n)
{
    if (n->dead || n->program || (n->op->flags & (LNT_OP_CONTROL | LNT_OP_RANDOM)))
        return false;
    for (unsigned i = 0; i < n->n_attr; i++)
        if (n->attr[i].type == LNT_ATTR_GRAPH || n->attr[i].type == LNT_ATTR_TENSOR)
            return false;
    return true;
}

static bool same_strings(const lnt_attr *a, const lnt_attr *b)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(a->strings[i], b->strings[i]) != 0)
            return false;
    return true;
}

static bool same_attr(const lnt_attr *a, const lnt_attr *b)
{
    if (!b || a->type != b->type || a->count != b->count)
        return false;
    switch (a->type) {
    case LNT_ATTR_INT:
    case LNT_ATTR_INTS: return memcmp(a->i, b->i, a->count * sizeof *a->i) == 0;
    case LNT_ATTR_FLOAT:
    case LNT_ATTR_FLOATS: return memcmp(a->f, b->f, a->count * sizeof *a->f) == 0;
    case LNT_ATTR_STRING: return strcmp(a->s, b->s) == 0;
    case LNT_ATTR_STRINGS: return same_strings(a, b);
    default: return false;
    }
}

static bool same_node(const lnt_gnode *a, const lnt_gnode *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out || a->n_attr != b->n_attr ||
        memcmp(a->in, b->in, a->n_in * sizeof *a->in) != 0)
        return false;
    for (unsigned i = 0; i < a->n_attr; i++)
        if (!same_attr(&a->attr[i], lnt_gnode_attr(b, a->attr[i].name)))
            return false;
    return true;
}

static uint64_t node_key(const lnt_gnode *n)
{
    return XXH3_64bits_withSeed(n->in, n->n_in * sizeof *n->in, n->op->id + 65536u * n->n_attr + n->subgraph);
}

/* Lets a's results serve b's readers. Where b's name must live, b stays. */
static bool take_over(lnt_edit *e, lnt_gnode *a, lnt_gnode *b)
{
    lnt_graph *g = e->g;
    for (unsigned i = 0; i < b->n_out; i++)
        if (b->out[i] != LNT_NONE && lnt_edit_pinned(e, b->out[i]))
            return false;
    for (unsigned i = 0; i < b->n_out; i++) {
        if (b->out[i] == LNT_NONE)
            continue;
        if (a->out[i] == LNT_NONE) {
            a->out[i] = b->out[i];
            g->value[b->out[i]].producer = a;
        } else {
            lnt_edit_replace(e, b->out[i], a->out[i]);
            g->value[b->out[i]].producer = NULL;
        }
    }
    lnt_edit_drop(e, b);
    return true;
}

enum { BUCKETS = 1024 };

typedef struct chain {
    struct chain *next;
    lnt_gnode *node;
} chain;

/* Nodes of one subgraph, first to last: the operands of a later one are already those of the merged. */
static lnt_status merge_nodes(lnt_edit *e, const lnt_gsubgraph *s, chain **bucket)
{
    memset(bucket, 0, BUCKETS * sizeof *bucket);
    for (size_t i = 0; i < s->n_nodes; i++) {
        lnt_gnode *n = s->node[i];
        if (!mergeable(n))
            continue;
        chain **at = &bucket[node_key(n) % BUCKETS];
        const chain *c = *at;
        while (c && !(same_node(c->node, n) && take_over(e, c->node, n)))
            c = c->next;
        if (c) {
            LNT_TRY(lnt_edit_count(e, "nodes computed once"));
            continue;
        }
        chain *link = lnt_bump_alloc(&e->g->memory, sizeof *link, e->g->err);
        if (!link)
            return LNT_E_MEMORY;
        *link = (chain){*at, n};
        *at = link;
    }
    return LNT_OK;
}

lnt_status lnt_pass_common_subexpressions(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "common_subexpressions"));
    uint32_t *to = lnt_bump_alloc(&g->memory, g->n_values * sizeof *to, g->err);
    entry *list = lnt_bump_alloc(&g->memory, g->n_values * sizeof *list, g->err);
    chain **bucket = lnt_bump_alloc(&g->memory, BUCKETS * sizeof *bucket, g->err);
    if (!to || !list || !bucket)
        return LNT_E_MEMORY;
    for (uint32_t v = 0; v < g->n_values; v++)
        to[v] = v;
    LNT_TRY(merge_constants(&e, to, list));
    rename_operands(g, to);
    LNT_TRY(lnt_edit_renew(&e));
    for (size_t s = 0; s < g->n_subs; s++)
        LNT_TRY(merge_nodes(&e, &g->sub[s], bucket));
    return LNT_OK;
}
