/* lookup_tables.c — com.microsoft's QLinearSigmoid, QLinearLeakyRelu, QLinearAdd and QLinearMul become lookup tables of
 * 256 entries (LookupTable), where quantization parameters are constant and all inputs depend on one int8 or uint8
 * tensor, element by element: x * sigmoid(x) is a table, too. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

enum { LEVELS = 256, MAX_INPUTS = 8, TENSOR_INPUTS = 3 /* a tensor, its scale and its zero point */ };

/* How many tensors n combines, the first input of each TENSOR_INPUTS; 0 if it is no such operator. */
static unsigned tensors_of(const lnt_gnode *n)
{
    if (lnt_is(n, QLinearSigmoid) || lnt_is(n, QLinearLeakyRelu))
        return 1;
    return lnt_is(n, QLinearAdd) || lnt_is(n, QLinearMul) ? 2 : 0;
}

static bool is_tensor(const lnt_gnode *n, unsigned i)
{
    return i % TENSOR_INPUTS == 0 && i / TENSOR_INPUTS < tensors_of(n);
}

/* The table that input i of n comes out of, NULL if it comes from elsewhere. */
static const lnt_gnode *table_before(const lnt_graph *g, const lnt_gnode *n, unsigned i)
{
    const lnt_gnode *table = lnt_producer(g, n, i);
    const bool known = lnt_is(table, LookupTable) && lnt_is_constant(g, table->in[1]);
    return known && lnt_ginfo(g, table->in[1])->dims[0] == 1 ? table : NULL;
}

/* The quantized tensor that input i of n depends on. */
static uint32_t root_of(const lnt_graph *g, const lnt_gnode *n, unsigned i)
{
    const lnt_gnode *table = table_before(g, n, i);
    return table ? table->in[0] : n->in[i];
}

static bool is_function(const lnt_graph *g, const lnt_gnode *n)
{
    bool fits = !n->dead && tensors_of(n) > 0 && n->n_in <= MAX_INPUTS;
    for (unsigned i = 0; fits && i < n->n_in; i++)
        fits = is_tensor(n, i) ? root_of(g, n, i) == root_of(g, n, 0)
                               : n->in[i] == LNT_NONE || lnt_is_constant(g, n->in[i]);
    return fits && lnt_ginfo(g, root_of(g, n, 0))->dtype != LNT_UNDEFINED;
}

/* The node's outputs for all values of the root, in the order of their bit patterns. */
static lnt_status fill(const lnt_graph *g, const lnt_gnode *n, uint8_t *to)
{
    const lnt_operand *root = lnt_ginfo(g, root_of(g, n, 0));
    uint8_t all[LEVELS];
    lnt_operand operand[MAX_INPUTS], y = {0}, *in[MAX_INPUTS] = {NULL}, *out = &y;
    void *data = to;
    lnt_node view;
    for (unsigned i = 0; i < LEVELS; i++)
        all[i] = (uint8_t)i;
    for (unsigned i = 0; i < n->n_in; i++) {
        if (n->in[i] == LNT_NONE)
            continue;
        in[i] = &operand[i];
        operand[i] = *lnt_ginfo(g, n->in[i]);
        if (is_tensor(n, i)) {
            const lnt_gnode *table = table_before(g, n, i);
            operand[i] = (lnt_operand){.dtype = root->dtype, .rank = 1, .dims = {LEVELS}};
            operand[i].data = table ? lnt_ginfo(g, table->in[1])->data : all;
        }
    }
    lnt_gnode_view(n, &view);
    lnt_site site = {.node = &view, .in = in, .out = &out, .n_in = n->n_in, .n_out = 1, .err = g->err};
    LNT_TRY(lnt_site_shape(&site));
    return lnt_evaluate(g->memory.allocator, &view, in, &out, &data, LNT_LEVEL_SCALAR, 0, g->err);
}

static lnt_status visit(lnt_edit *e, lnt_gnode *n)
{
    static const int64_t dims[] = {1, LEVELS};
    uint8_t to[LEVELS];
    if (!is_function(e->g, n))
        return LNT_OK;
    LNT_TRY(fill(e->g, n, to));
    const uint32_t in[] = {root_of(e->g, n, 0),
                           lnt_graph_add_constant(e->g, n->name, LNT_UINT8, 2, dims, to, sizeof to)};
    if (in[1] == LNT_NONE || !lnt_edit_substitute(e, n, lnt_op_by_id(LNT_ID_LookupTable), in, 2))
        return LNT_E_MEMORY;
    return lnt_edit_count(e, "functions of int8 values");
}

lnt_status lnt_pass_lookup_tables(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "lookup_tables"));
    return lnt_edit_each(&e, visit);
}
