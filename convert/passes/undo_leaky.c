/* undo_leaky.c — a residual sum that is also read through LeakyRelu, as vocoders have it:
 *
 *     y = conv + before        y = conv + before
 *     z = LeakyRelu(y)    →    z = LeakyRelu(y)
 *     next + y                 next + LeakyRelu(z; 1 / alpha)
 *
 * LeakyRelu can be undone. So y need not be kept: both LeakyRelus go into epilogues, and there is one pass
 * over memory and one value less. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

enum { MAX_READERS = 8 };

/* A product whose only reader is n can do n's work on its tiles. */
static bool carries(lnt_edit *e, const lnt_gnode *product, const lnt_gnode *n)
{
    return product && !product->dead && (product->op->flags & LNT_OP_EPILOGUE) &&
           product->subgraph == n->subgraph && lnt_edit_follower(e, product) == n;
}

/* Is n a sum that goes into the epilogue of the product of the operand that is not `but`? */
static bool is_carried_sum(lnt_edit *e, const lnt_gnode *n, uint32_t but)
{
    if (!lnt_is(n, Add))
        return false;
    for (unsigned i = 0; i < 2; i++)
        if (n->in[i] != but && carries(e, lnt_producer(e->g, n, i), n))
            return true;
    return false;
}

/* The readers of y but n, all of them sums in the epilogues of products, behind n. False where there are
 * others. */
static bool sums_behind(lnt_edit *e, const lnt_gnode *n, uint32_t y, lnt_gnode **sum, unsigned *count)
{
    uint32_t at = LNT_EDIT_FIRST;
    *count = 0;
    for (lnt_gnode *r; (r = lnt_edit_reader(e, y, &at)) != NULL;) {
        if (r == n)
            continue;
        if (r->subgraph != n->subgraph || r->place <= n->place || *count == MAX_READERS ||
            !is_carried_sum(e, r, y))
            return false;
        sum[(*count)++] = r;
    }
    return *count > 0;
}

static lnt_status undo(lnt_edit *e, lnt_gnode *n)
{
    const float least = 1e-3f;
    lnt_gnode *sum[MAX_READERS];
    unsigned count;
    if (!lnt_is(n, LeakyRelu))
        return LNT_OK;
    const uint32_t y = n->in[0], z = n->out[0];
    const lnt_gnode *p = lnt_producer(e->g, n, 0);
    const float alpha = lnt_gnode_float(n, "alpha", 0.01f);
    if (!p || p->dead || p->program || p->subgraph != n->subgraph || alpha < least || alpha > 1 ||
        lnt_ginfo(e->g, y)->dtype != LNT_FLOAT || lnt_edit_pinned(e, y) ||
        !((p->op->flags & LNT_OP_EPILOGUE) || is_carried_sum(e, p, LNT_NONE)) ||
        !sums_behind(e, n, y, sum, &count))
        return LNT_OK;
    for (unsigned i = 0; i < count; i++) {
        uint32_t again;
        lnt_gnode *steep = lnt_edit_insert(e, sum[i], n->op, &z, 1, LNT_NONE, &again);
        if (!steep)
            return LNT_E_MEMORY;
        e->g->value[again].info = e->g->value[z].info;
        LNT_TRY(lnt_gnode_set_float(e->g, steep, "alpha", 1 / alpha));
        LNT_TRY(lnt_edit_set_input(e, sum[i], sum[i]->in[0] == y ? 0 : 1, again));
    }
    return lnt_edit_count(e, "in residual sums");
}

lnt_status lnt_pass_undo_leaky(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "undo_leaky"));
    return lnt_edit_each(&e, undo);
}
