/* quantize_static.c — which nodes of a float model can be computed in int8 with static quantization parameters. */
#include "convert/quantize/quantize_static.h"

#include "convert/graph/edit.h"

#include <math.h>
#include <string.h>

static bool is_float(const lnt_graph *g, uint32_t value)
{
    const lnt_operand *o = lnt_ginfo(g, value);
    return o && o->dtype == LNT_FLOAT && o->rank <= LNT_MAX_RANK;
}

static bool float_weights(const lnt_graph *g, uint32_t value)
{
    return lnt_is_constant(g, value) && is_float(g, value) && lnt_operand_count(lnt_ginfo(g, value)) > 0;
}

/* ---- products ---- */

/* Gemm's C times beta as a vector of N, LNT_NONE in *bias where there is none; false if C is none. */
static bool gemm_bias(lnt_graph *g, const lnt_gnode *n, int64_t N, uint32_t *bias, lnt_status *status)
{
    const uint32_t v = lnt_in_value(n, 2);
    const float beta = lnt_gnode_float(n, "beta", 1);
    int64_t count;
    *bias = LNT_NONE;
    if (v == LNT_NONE || beta == 0)
        return true;
    const float *c = lnt_constant_floats(g, v, &count);
    if (!c || (count != 1 && (count != N || g->value[v].info.dims[g->value[v].info.rank - 1] != N)))
        return false;
    float *all = lnt_bump_alloc(&g->memory, (size_t)N * sizeof *all, g->err);
    for (int64_t i = 0; all && i < N; i++)
        all[i] = beta * c[count == 1 ? 0 : i];
    *bias = all ? lnt_add_floats(g, g->value[v].name, 1, &N, all) : LNT_NONE;
    *status = *bias == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
    return true;
}

lnt_status lnt_qweights_of(lnt_graph *g, const lnt_gnode *n, lnt_qweights *p, bool *turned, bool *fits)
{
    enum { DEPTH_MIN = 16, COLUMNS_MIN = 4 }; /* of a matrix: below that int8 gains nothing */
    lnt_status status = LNT_OK;
    *turned = lnt_gnode_int(n, "transB", 0) != 0;
    *fits = false;
    if (!float_weights(g, n->in[1]) || lnt_gnode_int(n, "transA", 0) || lnt_gnode_int(n, "transBatchA", 0) ||
        lnt_gnode_int(n, "transBatchB", 0))
        return LNT_OK;
    const lnt_operand *a = lnt_ginfo(g, n->in[0]), *b = lnt_ginfo(g, n->in[1]);
    if (b->rank != 2 || a->rank == 0 || a->rank > LNT_MAX_RANK)
        return LNT_OK;
    const int64_t K = b->dims[*turned], N = b->dims[!*turned];
    *p = (lnt_qweights){.weights = n->in[1],
                        .factor = lnt_is(n, MatMul) ? 1 : lnt_gnode_float(n, "alpha", 1),
                        .bias = LNT_NONE,
                        .columns = N};
    *fits = K >= DEPTH_MIN && N >= COLUMNS_MIN && (!lnt_is(n, Gemm) || gemm_bias(g, n, N, &p->bias, &status));
    return status;
}

/* ---- kinds ---- */

/* A convolution whose weights, and bias, are constant. */
static bool is_conv(const lnt_graph *g, const lnt_gnode *n, lnt_qweights *p)
{
    const uint32_t bias = lnt_in_value(n, 2);
    int64_t columns = 0;
    if (!lnt_is(n, Conv) || !float_weights(g, n->in[1]) || g->value[n->in[0]].constant)
        return false;
    const lnt_operand *w = lnt_ginfo(g, n->in[1]);
    if (w->rank < 3 || w->rank > 5 ||
        (bias != LNT_NONE && (!lnt_constant_floats(g, bias, &columns) || columns != w->dims[0])))
        return false;
    *p = (lnt_qweights){.weights = n->in[1], .factor = 1, .bias = bias, .columns = w->dims[0]};
    return true;
}

static lnt_status turn(lnt_graph *g, lnt_qweights *p)
{
    const lnt_operand w = *lnt_ginfo(g, p->weights);
    const int64_t K = w.dims[1], N = w.dims[0], dims[] = {K, N};
    const float *from = w.data;
    float *to = lnt_alloc_zero(g->memory.allocator, (size_t)(K * N), sizeof *to, g->err);
    if (!to)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < K * N; i++)
        to[i % K * N + i / K] = from[i];
    p->weights = lnt_add_floats(g, g->value[p->weights].name, 2, dims, to);
    lnt_free(g->memory.allocator, to);
    return p->weights == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
}

/* Are rows of it gathered, too? Such a table is stored once, as the int8 weights that dynamic layers share. */
static bool is_table_of_rows(const lnt_graph *g, uint32_t value)
{
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++) {
            const lnt_gnode *n = g->sub[s].node[i];
            if (!n->dead && lnt_is(n, Gather) && n->in[0] == value)
                return true;
        }
    return false;
}

static lnt_status find_product(lnt_graph *g, lnt_qsite *s)
{
    bool turned, fits = is_conv(g, s->node, &s->product);
    if (!fits && (lnt_is(s->node, MatMul) || lnt_is(s->node, Gemm) || lnt_is(s->node, FusedMatMul))) {
        LNT_TRY(lnt_qweights_of(g, s->node, &s->product, &turned, &fits));
        fits = fits && !g->value[s->node->in[0]].constant && !is_table_of_rows(g, s->product.weights);
        if (fits && turned)
            LNT_TRY(turn(g, &s->product));
    }
    if (fits)
        s->kind = LNT_Q_PRODUCT;
    return LNT_OK;
}

/* Tables that a constant asks for, next to values like x: one, or one for each of a few channels; 0 where no
 * table will do. */
static int64_t tables_for(const lnt_operand *x, const lnt_operand *constant)
{
    enum { CHANNELS_MOST = 64 };
    int64_t tables = 1;
    for (unsigned i = 0; i < constant->rank; i++) {
        const unsigned axis = i + x->rank - constant->rank;
        if (constant->dims[i] == 1)
            continue;
        if (constant->rank > x->rank || axis != 1 || x->rank < 3 || constant->dims[i] != x->dims[1] ||
            x->dims[1] > CHANNELS_MOST)
            return 0;
        tables = x->dims[1];
    }
    return tables;
}

/* A function of one float tensor, the same for all elements of a channel: how many tables. 0: it is none. */
static int64_t tables_of(const lnt_graph *g, const lnt_gnode *n)
{
    const lnt_operand *x = NULL;
    int64_t tables = 1;
    if (!(n->op->flags & LNT_OP_ELEMENTWISE) || n->op->id == LNT_ID_Elementwise || n->n_out != 1 ||
        n->n_in > 4)
        return 0;
    for (unsigned i = 0; i < n->n_in; i++)
        if (n->in[i] != LNT_NONE && !lnt_is_constant(g, n->in[i])) {
            if (x || !is_float(g, n->in[i]))
                return 0;
            x = lnt_ginfo(g, n->in[i]);
        }
    for (unsigned i = 0; x && i < n->n_in; i++)
        if (n->in[i] != LNT_NONE && lnt_is_constant(g, n->in[i])) {
            const int64_t more = tables_for(x, lnt_ginfo(g, n->in[i]));
            tables = more == 0 ? 0 : more > 1 && tables ? more : tables;
        }
    return x ? tables : 0;
}

static bool is_binary(const lnt_graph *g, const lnt_gnode *n)
{
    if ((!lnt_is(n, Add) && !lnt_is(n, Mul) && !lnt_is(n, Sum)) || n->n_in != 2)
        return false;
    for (unsigned i = 0; i < 2; i++)
        if (!is_float(g, n->in[i]) || g->value[n->in[i]].constant)
            return false;
    return true;
}

static bool is_concat(const lnt_graph *g, const lnt_gnode *n)
{
    bool fits = lnt_is(n, Concat) && n->n_in <= LNT_Q_CONCAT_MOST;
    for (unsigned i = 0; fits && i < n->n_in; i++)
        fits = is_float(g, n->in[i]) && !g->value[n->in[i]].constant;
    return fits;
}

/* Of MaxPool the form without indices. */
static bool is_move(const lnt_graph *g, const lnt_gnode *n)
{
    return lnt_moves_elements(n) && n->n_out == 1 && !g->value[n->in[0]].constant;
}

static lnt_status classify(lnt_graph *g, lnt_qsite *s)
{
    const lnt_gnode *n = s->node;
    if (n->dead || n->program || n->n_in == 0 || n->n_out == 0 || n->in[0] == LNT_NONE ||
        n->out[0] == LNT_NONE || !is_float(g, n->in[0]) || !is_float(g, n->out[0]))
        return LNT_OK;
    s->tables = tables_of(g, n);
    if (s->tables)
        s->kind = LNT_Q_TABLE;
    else if (is_binary(g, n))
        s->kind = LNT_Q_BINARY;
    else if (is_concat(g, n))
        s->kind = LNT_Q_CONCAT;
    else if (lnt_is(n, AveragePool) || lnt_is(n, GlobalAveragePool))
        s->kind = LNT_Q_POOL;
    else if (is_move(g, n))
        s->kind = LNT_Q_MOVE;
    else
        return find_product(g, s);
    return LNT_OK;
}

bool lnt_q_reads_quantized(const lnt_qsite *s, unsigned operand)
{
    return operand == 0 || (operand == 1 && s->kind == LNT_Q_BINARY) || s->kind == LNT_Q_CONCAT ||
           s->kind == LNT_Q_TABLE;
}

/* ---- the web of nodes and values ---- */

static void note_reader(lnt_static *st, uint32_t site, unsigned operand, uint32_t *used)
{
    const uint32_t v = st->site[site].node->in[operand];
    if (v == LNT_NONE || v >= st->n_values)
        return;
    st->reader[*used] = (lnt_qreader){site, st->value[v].first_reader, operand};
    st->value[v].first_reader = (*used)++;
}

static void connect(lnt_static *st)
{
    const lnt_graph *g = st->g;
    uint32_t used = 0;
    for (uint32_t v = 0; v < st->n_values; v++) {
        st->value[v] = (lnt_qvalue){.producer = LNT_NONE, .first_reader = LNT_NONE, .twin = LNT_NONE};
        st->value[v].outside = lnt_gvalue_is_kept(&g->value[v]);
    }
    for (uint32_t i = 0; i < st->n_sites; i++) {
        const lnt_gnode *n = st->site[i].node;
        for (unsigned k = 0; k < n->n_in; k++)
            note_reader(st, i, k, &used);
        for (unsigned k = 0; k < n->n_out; k++)
            if (n->out[k] < st->n_values)
                st->value[n->out[k]].producer = i;
    }
    for (size_t s = 0; s < g->n_subs; s++) {
        for (uint32_t k = 0; k < g->sub[s].n_out; k++)
            st->value[g->sub[s].out[k]].outside = true;
        for (size_t i = 0; s > 0 && i < g->sub[s].n_nodes; i++)
            for (unsigned k = 0; k < g->sub[s].node[i]->n_in; k++)
                if (g->sub[s].node[i]->in[k] < st->n_values)
                    st->value[g->sub[s].node[i]->in[k]].outside = true;
    }
}

/* An Add of constants, one for each column, behind a product without a bias is its bias. */
static void find_bias(lnt_static *st, lnt_qsite *s)
{
    const lnt_graph *g = st->g;
    const lnt_qvalue *y = &st->value[s->node->out[0]];
    s->adds_bias = LNT_NONE;
    if (s->kind != LNT_Q_PRODUCT || lnt_is(s->node, Conv) || s->product.bias != LNT_NONE || y->outside ||
        y->first_reader == LNT_NONE || st->reader[y->first_reader].next != LNT_NONE)
        return;
    const lnt_qreader *r = &st->reader[y->first_reader];
    const lnt_gnode *add = st->site[r->site].node;
    if (!lnt_is(add, Add))
        return;
    const uint32_t c = lnt_in_value(add, 1 - r->operand);
    const lnt_operand *o = lnt_ginfo(g, c), *before = lnt_ginfo(g, s->node->out[0]);
    if (!float_weights(g, c) || lnt_operand_count(o) != s->product.columns || o->rank > before->rank ||
        o->dims[o->rank - 1] != s->product.columns)
        return;
    s->product.bias = c;
    s->adds_bias = r->site;
    st->site[r->site].kind = LNT_Q_FLOAT; /* no layer by itself */
    st->value[add->out[0]].producer = st->value[s->node->out[0]].producer;
}

static void absorb(lnt_static *st)
{
    for (uint32_t i = 0; i < st->n_sites; i++)
        find_bias(st, &st->site[i]);
}

static void observe(lnt_static *st)
{
    for (uint32_t i = 0; i < st->n_sites; i++) {
        const lnt_qsite *s = &st->site[i];
        const lnt_gnode *n = s->node;
        if (s->kind == LNT_Q_FLOAT)
            continue;
        st->value[n->out[0]].observed = true;
        if (s->adds_bias != LNT_NONE)
            st->value[st->site[s->adds_bias].node->out[0]].observed = true;
        for (unsigned k = 0; k < n->n_in; k++)
            if (n->in[k] != LNT_NONE && lnt_q_reads_quantized(s, k) && !st->g->value[n->in[k]].constant)
                st->value[n->in[k]].observed = true;
    }
}

void lnt_static_set_range(lnt_static *st, uint32_t value, float low, float high)
{
    lnt_qvalue *v = &st->value[value];
    v->low = low;
    v->high = high;
    v->usable = high - low < INFINITY;
}

static lnt_status add_layers(lnt_static *st, lnt_qlayers *layers)
{
    for (uint32_t i = 0; i < st->n_sites; i++) {
        lnt_qsite *s = &st->site[i];
        s->layer = LNT_NONE;
        if (s->kind == LNT_Q_FLOAT || s->kind == LNT_Q_MOVE)
            continue;
        const size_t weights = s->kind == LNT_Q_PRODUCT ? st->g->value[s->product.weights].bytes : 0;
        s->layer = (uint32_t)layers->n;
        LNT_TRY(lnt_qlayers_add(layers, st->g, s->node, weights));
        layers->layer[s->layer].fixed = true;
    }
    return LNT_OK;
}

lnt_status lnt_static_find(lnt_graph *g, lnt_qlayers *layers)
{
    const lnt_gsubgraph *sub = &g->sub[0];
    size_t operands = 1;
    lnt_static *st = layers->fixed = lnt_bump_alloc(&g->memory, sizeof *st, g->err);
    lnt_qsite *site = lnt_bump_alloc(&g->memory, (sub->n_nodes + 1) * sizeof *site, g->err);
    if (!st || !site)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < sub->n_nodes; i++) {
        site[i].node = sub->node[i];
        LNT_TRY(classify(g, &site[i]));
        operands += sub->node[i]->n_in;
    }
    *st = (lnt_static){
        .g = g, .site = site, .n_sites = (uint32_t)sub->n_nodes, .n_values = (uint32_t)g->n_values};
    st->value = lnt_bump_alloc(&g->memory, st->n_values * sizeof *st->value, g->err);
    st->twinned = lnt_bump_alloc(&g->memory, st->n_values * sizeof *st->twinned, g->err);
    st->reader = lnt_bump_alloc(&g->memory, operands * sizeof *st->reader, g->err);
    if (!st->value || !st->twinned || !st->reader)
        return LNT_E_MEMORY;
    connect(st);
    absorb(st);
    observe(st);
    LNT_TRY(lnt_static_find_channels(st));
    return add_layers(st, layers);
}

const lnt_qsite *lnt_static_site(const lnt_static *st, const lnt_gnode *n)
{
    for (unsigned k = 0; st && k < n->n_out; k++) {
        const uint32_t i = n->out[k] < st->n_values ? st->value[n->out[k]].producer : LNT_NONE;
        if (i != LNT_NONE)
            return st->site[i].node == n ? &st->site[i] : NULL;
    }
    return NULL;
}

bool lnt_static_claims(const lnt_static *st, const lnt_gnode *n)
{
    const lnt_qsite *s = lnt_static_site(st, n);
    return s && s->kind != LNT_Q_FLOAT;
}

bool lnt_static_is_on(const lnt_static *st, const lnt_gnode *n)
{
    const lnt_qsite *s = lnt_static_site(st, n);
    return s && s->on;
}

const char *lnt_static_why(const lnt_static *st, const lnt_gnode *n)
{
    const lnt_qsite *s = lnt_static_site(st, n);
    bool usable = st->value[n->out[0]].usable;
    for (unsigned k = 0; k < n->n_in; k++)
        if (n->in[k] != LNT_NONE && lnt_q_reads_quantized(s, k) && st->value[n->in[k]].observed)
            usable &= st->value[n->in[k]].usable;
    return usable ? "its neighbors are float" : "values that are not finite";
}

uint32_t lnt_static_source(const lnt_static *st, uint32_t twin)
{
    uint32_t low = 0, high = st->n_twinned;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (st->value[st->twinned[middle]].twin < twin)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < st->n_twinned && st->value[st->twinned[low]].twin == twin;
    return found ? st->twinned[low] : LNT_NONE;
}
