/* fuse_epilogue.c — lets convolutions and matrix products do the elementwise work behind them on each tile
 * before it is stored: bias, activation, residual sum, and whatever follows of that kind.
 *
 * Other operands broadcast to the result: a value per channel, a residual, a mask. Only where the product has
 * no other reader, so that nothing is computed twice. What makes such an operand out of one other value is
 * done on the tile, too, if nothing else reads it. The product moves to where the last absorbed node
 * stood: there its new operands exist. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"
#include "convert/passes/program_builder.h"

#include <string.h>

/* Does x for certain broadcast to the result without widening it? */
static bool operand_fits(const lnt_operand *x, const lnt_operand *result)
{
    for (unsigned i = 0; i < x->rank; i++) {
        const int64_t extent = x->dims[i], wanted = result->dims[i + result->rank - x->rank];
        if (extent != 1 && (extent != wanted || extent == LNT_DIM_UNKNOWN))
            return false;
    }
    return true;
}

/* Can n, the reader of the running value, be done on the tile? */
static bool absorbable(const lnt_graph *g, const lnt_gnode *carrier, const lnt_gnode *n, uint32_t running)
{
    const lnt_operand *result = lnt_ginfo(g, carrier->out[0]), *out = lnt_ginfo(g, n->out[0]);
    if (!(n->op->flags & LNT_OP_ELEMENTWISE) || n->program || n->n_out != 1 || out->dtype != LNT_FLOAT)
        return false;
    for (unsigned i = 0; i < n->n_in; i++) {
        if (n->in[i] == running || n->in[i] == LNT_NONE)
            continue;
        const lnt_operand *x = lnt_ginfo(g, n->in[i]);
        if (result->rank > LNT_MAX_RANK || x->rank > result->rank || !operand_fits(x, result))
            return false;
    }
    return true;
}

/* What makes operand i of next, if that is elementwise work on one value, as large, which only next reads: it
 * is done on the tile, too. */
static lnt_gnode *private_map(lnt_edit *e, const lnt_gnode *carrier, const lnt_gnode *next, unsigned i,
                              uint32_t running)
{
    lnt_gnode *u = next->in[i] == running ? NULL : lnt_producer(e->g, next, i);
    const bool is = u && u != carrier && !u->dead && u->n_in == 1 && u->subgraph == next->subgraph &&
                    absorbable(e->g, carrier, u, LNT_NONE) &&
                    lnt_same_dims(lnt_ginfo(e->g, u->in[0]), lnt_ginfo(e->g, u->out[0])) &&
                    lnt_edit_follower(e, u) == next;
    return is ? u : NULL;
}

static lnt_status write_program(lnt_edit *e, lnt_gnode *n, const lnt_builder *b, lnt_program *program,
                                lnt_gnode *last)
{
    lnt_graph *g = e->g;
    const unsigned n_in = n->n_in + b->n_operands;
    uint32_t *in = lnt_bump_alloc(&g->memory, n_in * sizeof *in, g->err);
    if (!in)
        return LNT_E_MEMORY;
    memcpy(in, n->in, n->n_in * sizeof *in);
    memcpy(in + n->n_in, b->operand, b->n_operands * sizeof *in);
    n->in = in;
    n->n_in = (uint16_t)n_in;
    n->n_program_in = (uint16_t)b->n_operands;
    n->program = program;
    lnt_edit_move(e, n, last);
    return LNT_OK;
}

static bool append(lnt_edit *e, lnt_builder *b, const lnt_gnode *carrier, const lnt_gnode *next,
                   uint32_t running)
{
    for (unsigned i = 0; i < next->n_in; i++) {
        const lnt_gnode *u = private_map(e, carrier, next, i, running);
        if (u && !lnt_builder_add(b, e->g, u))
            return false;
    }
    return absorbable(e->g, carrier, next, running) && lnt_builder_add(b, e->g, next);
}

/* Drops what append took before last. */
static lnt_status drop_absorbed(lnt_edit *e, const lnt_gnode *n, const lnt_gnode *last)
{
    uint32_t running = n->out[0];
    for (lnt_gnode *next = lnt_edit_follower(e, n), *behind; next; running = next->out[0], next = behind) {
        LNT_TRY(lnt_edit_count(
            e, lnt_report_text(e->report, "%s into %s", lnt_op_name(next->op), lnt_op_name(n->op))));
        behind = next == last ? NULL : lnt_edit_follower(e, next);
        for (unsigned i = 0; i < next->n_in; i++) {
            lnt_gnode *u = private_map(e, n, next, i, running);
            if (u)
                lnt_edit_drop(e, u);
        }
        if (next != last)
            lnt_edit_drop(e, next);
    }
    return LNT_OK;
}

static lnt_status fuse_behind(lnt_edit *e, lnt_gnode *n)
{
    lnt_builder b, longer;
    lnt_gnode *last = n;
    lnt_builder_begin(&b, n->out[0]);
    for (lnt_gnode *next; (next = lnt_edit_follower(e, last)) != NULL; last = next) {
        longer = b;
        if (!append(e, &longer, n, next, last->out[0]))
            break;
        b = longer;
    }
    if (last == n)
        return LNT_OK;
    lnt_program *program = lnt_builder_finish(&b, e->g, &last->out[0], 1);
    if (!program)
        return e->g->err->code;
    LNT_TRY(drop_absorbed(e, n, last));
    return write_program(e, n, &b, program, last);
}

lnt_status lnt_pass_fuse_epilogue(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "fuse_epilogue"));
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++) {
            lnt_gnode *n = g->sub[s].node[i];
            if (!n->dead && !n->program && (n->op->flags & LNT_OP_EPILOGUE) && n->n_out == 1 &&
                lnt_ginfo(g, n->out[0])->dtype == LNT_FLOAT)
                LNT_TRY(fuse_behind(&e, n));
        }
    return LNT_OK;
}
