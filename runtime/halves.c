/* halves.c — which floats of a file that was converted for float16 are halves in memory.
 *
 * At a level with half arithmetic, products whose weights are float16 compute with halves. Between them a value that is
 * declared float need not become one: it is of type float16 while the binding lasts, half as many bytes to write and to
 * read. Inputs and outputs, states, what the user fetches or gives, what subgraphs see, and what meets an operator that
 * has no say in it (LNT_OP_HALVES, LNT_OP_HALVES_ALIKE) stay floats. */
#include "runtime/internal.h"

#include "formats/packed.h"
#include "ops/half_kernels.h"
#include "ops/kernels.h"
#include "ops/product.h"

static bool is_half_weight(const lnt_operand *o)
{
    return o->packed && o->dtype == LNT_FLOAT && lnt_packed_element(o->packed) == LNT_FLOAT16;
}

static bool has_half_weights(const lnt_model *m)
{
    uint32_t i = 0;
    while (i < m->n_values && !is_half_weight(&m->value[i]))
        i++;
    return i < m->n_values;
}

/* Do all matrices that the node multiplies with come as halves? True of what is no product. */
static bool multiplies_halves(const lnt_model *m, const lnt_node *n)
{
    bool all = true;
    const lnt_product *product = lnt_product_of(n->op);
    for (unsigned i = 0; product && i < n->n_in; i++)
        if (product->packed_inputs >> i & 1)
            all &= n->in[i] != LNT_NONE && lnt_multiplies_halves(n->op, &m->value[n->in[i]]);
    return all;
}

/* May operands of the node be halves? Elementwise programs take any; updates that are reduced with what was there are
 * not only moved. */
static bool takes_halves(const lnt_model *m, const lnt_node *n)
{
    const bool program = n->op->flags & LNT_OP_ELEMENTWISE && n->n_in <= LNT_PROGRAM_MAX_IN;
    return (program || n->op->flags & (LNT_OP_HALVES | LNT_OP_HALVES_ALIKE)) && !n->evaluate_early &&
           strcmp(lnt_attr_s(n, "reduction", "none"), "none") == 0 && multiplies_halves(m, n);
}

/* Is input i of a node one of those that are all of one type? */
static bool is_alike(const lnt_node *n, unsigned i)
{
    return n->op->flags & LNT_OP_HALVES_ALIKE && !(i < 32 && lnt_node_value_inputs(n) >> i & 1);
}

static bool is_float(const lnt_model *m, uint32_t value)
{
    return value != LNT_NONE && m->value[value].dtype == LNT_FLOAT;
}

/* Value is no half; returns whether it was to be one. */
static bool drop(lnt_session *s, uint32_t value)
{
    const bool was = value != LNT_NONE && s->binding.half[value];
    if (was)
        s->binding.half[value] = false;
    return was;
}

static bool drop_all(lnt_session *s, const lnt_node *n)
{
    bool any = false;
    for (unsigned i = 0; i < n->n_in; i++)
        any |= drop(s, n->in[i]);
    for (unsigned o = 0; o < n->n_out; o++)
        any |= drop(s, n->out[o]);
    return any;
}

/* A bias, or what else a product is given beside what it multiplies, is read as floats. */
static bool drop_beside(lnt_session *s, const lnt_node *n)
{
    bool any = false;
    for (unsigned i = 1; lnt_product_of(n->op) && i + n->n_program_in < n->n_in; i++)
        any |= drop(s, n->in[i]);
    return any;
}

/* Has one of the node's values that are all of one type to be a float? */
static bool meets_float(const lnt_session *s, const lnt_node *n)
{
    bool any = false;
    for (unsigned i = 0; i < n->n_in; i++)
        any |= is_alike(n, i) && is_float(s->model, n->in[i]) && !s->binding.half[n->in[i]];
    for (unsigned o = 0; o < n->n_out; o++)
        any |= n->op->flags & LNT_OP_HALVES_ALIKE && is_float(s->model, n->out[o]) &&
               !s->binding.half[n->out[o]];
    return any;
}

/* What is seen from outside: of the model, or of the graph that a subgraph is part of. */
static void drop_outer(lnt_session *s)
{
    const lnt_model *m = s->model;
    const lnt_rec_subgraph *root = &m->sub[0];
    for (uint32_t i = 0; i < m->file.n_subgraphs; i++)
        for (uint32_t o = 0; o < m->sub[i].n_out; o++)
            drop(s, m->file.operands[m->sub[i].first_operand + m->sub[i].n_in + o]);
    for (uint32_t i = 0; i < m->n_nodes; i++)
        if (i < root->first_node || i >= root->first_node + root->n_nodes)
            drop_all(s, &m->node[i]);
    for (uint32_t v = 0; v < m->n_values; v++)
        if (s->request.fetched[v] || s->request.injected[v].tensor.data)
            drop(s, v);
}

static void mark(lnt_session *s, uint32_t value)
{
    if (is_float(s->model, value) && !s->model->value[value].constant)
        s->binding.half[value] = true;
}

/* What could be halves: what others than elementwise programs read and give. Of what programs give to each other nobody
 * has asked whether halves are large enough: the converter looks at products, and moves and windows between them make
 * nothing larger. */
static void mark_candidates(lnt_session *s)
{
    const lnt_model *m = s->model;
    memset(s->binding.half, 0, m->n_values * sizeof *s->binding.half);
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        const lnt_node *n = &m->node[i];
        if (!takes_halves(m, n) || n->op->flags & LNT_OP_ELEMENTWISE)
            continue;
        for (unsigned k = 0; k < n->n_in; k++)
            mark(s, n->in[k]);
        for (unsigned o = 0; o < n->n_out; o++)
            mark(s, n->out[o]);
    }
    for (uint32_t i = 0; i < m->n_in; i++)
        drop(s, m->in[i]);
}

void lnt_find_halves(lnt_session *s)
{
    const lnt_model *m = s->model;
    if (!LNT_HAS_HALVES || !lnt_kernels_of(s->level)->half->gemm || !has_half_weights(m)) {
        memset(s->binding.half, 0, m->n_values * sizeof *s->binding.half);
        return;
    }
    mark_candidates(s);
    drop_outer(s);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < m->n_nodes; i++)
            again |= !takes_halves(m, &m->node[i]) || meets_float(s, &m->node[i]) ? drop_all(s, &m->node[i])
                                                                                  : drop_beside(s, &m->node[i]);
    }
}

static bool reads_halves(const lnt_session *s, const lnt_site *site)
{
    bool any = false;
    for (unsigned i = 0; i < site->n_in; i++)
        any |= site->node->in[i] != LNT_NONE && s->binding.half[site->node->in[i]];
    return any;
}

/* An output that the file declares as float has the type that the rule worked out, which may be that of a half that the
 * node reads. What is neither is for the check against the declaration to refuse. */
void lnt_set_halves(const lnt_session *s, const lnt_site *site)
{
    const bool reads_half = reads_halves(s, site);
    for (unsigned o = 0; o < site->n_out; o++) {
        const uint32_t value = site->node->out[o];
        if (!is_float(s->model, value) || !(reads_half || s->binding.half[value]))
            continue;
        if (site->out[o]->dtype == LNT_FLOAT || site->out[o]->dtype == LNT_FLOAT16)
            site->out[o]->dtype = s->binding.half[value] ? LNT_FLOAT16 : LNT_FLOAT;
    }
}

bool lnt_program_of_halves(const lnt_session *s, const lnt_site *site)
{
    return site->node->op->flags & LNT_OP_ELEMENTWISE && reads_halves(s, site);
}
