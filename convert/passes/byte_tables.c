/* byte_tables.c — QLinearSigmoid and QLinearLeakyRelu, whose meanings of bytes are constant, as what they
 * make of each byte. */
#include "convert/passes/pass.h"

enum { BYTES = 256 };

static bool is_function(const lnt_graph *g, const lnt_gnode *n)
{
    bool fits = !n->dead && (lnt_is(n, QLinearSigmoid) || lnt_is(n, QLinearLeakyRelu));
    for (unsigned i = 1; fits && i < n->n_in; i++)
        fits = n->in[i] == LNT_NONE || lnt_is_constant(g, n->in[i]);
    return fits && lnt_ginfo(g, n->in[0])->dtype != LNT_UNDEFINED;
}

/* The node's outputs for all bytes in their order. */
static lnt_status fill(const lnt_graph *g, const lnt_gnode *n, uint8_t *table)
{
    uint8_t all[BYTES];
    const lnt_operand *x = lnt_ginfo(g, n->in[0]);
    lnt_operand operand[5] = {{.dtype = x->dtype, .rank = 1, .dims = {BYTES}, .data = all}}, y = {0};
    lnt_operand *in[5] = {operand}, *out = &y;
    void *data = table;
    lnt_node view;
    for (unsigned i = 0; i < BYTES; i++)
        all[i] = (uint8_t)i;
    for (unsigned i = 1; i < n->n_in; i++)
        if (n->in[i] != LNT_NONE) {
            operand[i] = *lnt_ginfo(g, n->in[i]);
            in[i] = &operand[i];
        }
    lnt_gnode_view(n, &view);
    lnt_site site = {.node = &view, .in = in, .out = &out, .n_in = n->n_in, .n_out = 1, .err = g->err};
    LNT_TRY(lnt_site_shape(&site));
    return lnt_evaluate(&view, in, &out, &data, LNT_LEVEL_SCALAR, 0, g->err);
}

static lnt_status visit(lnt_edit *e, lnt_gnode *n)
{
    static const int64_t dims[] = {1, BYTES};
    uint8_t table[BYTES];
    if (!is_function(e->g, n))
        return LNT_OK;
    LNT_TRY(fill(e->g, n, table));
    const uint32_t in[] = {n->in[0],
                           lnt_graph_add_constant(e->g, n->name, LNT_UINT8, 2, dims, table, sizeof table)};
    if (in[1] == LNT_NONE || !lnt_edit_substitute(e, n, lnt_op_by_id(LNT_ID_ByteTable), in, 2))
        return LNT_E_MEMORY;
    return lnt_edit_count(e, "functions of bytes");
}

lnt_status lnt_pass_byte_tables(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "byte_tables"));
    return lnt_edit_each(&e, visit);
}
