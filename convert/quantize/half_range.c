/* half_range.c — activations too large for halves, brought into their range by powers of two (half_range.h).
 *
 * Networks without normalization, as SqueezeNet and VGG, reach ten thousands within. Values fall into groups that have
 * to have one factor: a Relu, a pooling or a sum gives f times as much for f times its inputs. Layers stand between
 * groups: their weights take the quotient of both factors, their bias that of what they give. Any other operator reads
 * what a multiplication gives back; what it writes keeps the factor 1, as do inputs and outputs of the model. */
#include "convert/quantize/half_range.h"

#include "base/lnt_assert.h"

#include <math.h>
#include <string.h>

typedef struct group { /* of values; that of a value by find() */
    uint32_t parent;
    bool fixed;
    int shift; /* the factor is 2**shift */
    float largest;
} group;

typedef struct multiple { /* a constant times 2**shift, for several readers */
    uint32_t from, to;
    int shift;
    struct multiple *next;
} multiple;

typedef struct scaler {
    lnt_edit *e;
    group *of; /* [values] */
    multiple *made;
} scaler;

static group *find(const scaler *s, uint32_t value)
{
    while (s->of[value].parent != value)
        value = s->of[value].parent = s->of[s->of[value].parent].parent;
    return &s->of[value];
}

static void join(const scaler *s, uint32_t a, uint32_t b)
{
    group *from = find(s, a), *to = find(s, b);
    from->parent = to->parent;
    to->fixed |= from->fixed;
}

static bool is_float(const scaler *s, uint32_t value)
{
    return value != LNT_NONE && s->e->g->value[value].info.dtype == LNT_FLOAT;
}

static void fix(const scaler *s, const uint32_t *value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (is_float(s, value[i]))
            find(s, value[i])->fixed = true;
}

/* Gives the program f times as much for f times its operands? */
static bool lets_through(const lnt_program *p)
{
    bool lets = true;
    for (unsigned i = 0; p && i < p->n_instr; i++)
        switch (p->instr[i].op) {
        case LNT_I_ADD:
        case LNT_I_SUB:
        case LNT_I_MIN:
        case LNT_I_MAX:
        case LNT_I_NEG:
        case LNT_I_ABS:
        case LNT_I_RELU:
        case LNT_I_LEAKY_RELU: break;
        default: lets = false;
        }
    return lets;
}

/* A constant in place of which there can be another one. */
static bool can_scale(const scaler *s, uint32_t value)
{
    const lnt_gvalue *v = &s->e->g->value[value];
    return v->constant && v->info.data && v->info.dtype == LNT_FLOAT && !v->narrow && !v->stored_as &&
           v->info.order == LNT_ORDER_PLAIN && !lnt_edit_pinned(s->e, value) &&
           (!v->info.packed || lnt_packed_element(v->info.packed) == LNT_FLOAT);
}

/* Does n give a sum of products with weights that can take a factor? */
static bool is_layer(const scaler *s, const lnt_gnode *n)
{
    const bool product =
        lnt_is(n, Conv) || lnt_is(n, WinogradConv) || lnt_is(n, ConvTranspose) ||
        (lnt_is(n, MatMul) && n->n_in - n->n_program_in == 2) ||
        (lnt_is(n, Gemm) && lnt_gnode_float(n, "alpha", 1) == 1 && lnt_gnode_float(n, "beta", 1) == 1);
    const uint32_t bias = n->n_in - n->n_program_in > 2 ? n->in[2] : LNT_NONE;
    return product && n->subgraph == 0 && is_float(s, n->in[0]) && !s->e->g->value[n->in[0]].constant &&
           can_scale(s, n->in[1]) && (bias == LNT_NONE || can_scale(s, bias));
}

/* A Resize that takes another value outside of its input. */
static bool extrapolates(const lnt_gnode *n)
{
    const char *const mode = lnt_gnode_string(n, "coordinate_transformation_mode", "half_pixel");
    return lnt_is(n, Resize) && strcmp(mode, "tf_crop_and_resize") == 0;
}

/* Gives n, of no weights, f times as much for f times its inputs? */
static bool is_homogeneous(const lnt_gnode *n)
{
    static const unsigned ids[] = {LNT_ID_Concat,      LNT_ID_Split,         LNT_ID_Relayout,
                                   LNT_ID_AveragePool, LNT_ID_GlobalMaxPool, LNT_ID_ReduceMean,
                                   LNT_ID_ReduceMax,   LNT_ID_ReduceMin,     LNT_ID_GlobalAveragePool,
                                   LNT_ID_ReduceSum,   LNT_ID_Add,           LNT_ID_Sub,
                                   LNT_ID_Max,         LNT_ID_Min,           LNT_ID_Relu,
                                   LNT_ID_LeakyRelu,   LNT_ID_Neg,           LNT_ID_Elementwise,
                                   LNT_ID_Abs};
    bool is = lnt_moves_elements(n) && !extrapolates(n);
    for (unsigned i = 0; i < sizeof ids / sizeof ids[0]; i++)
        is = is || n->op->id == ids[i];
    return is && n->subgraph == 0;
}

/* Joins what n reads, from operand `from` on, to what it gives. Constants would have to be others. */
static void join_operands(const scaler *s, const lnt_gnode *n, unsigned from)
{
    for (unsigned i = from; i < n->n_in; i++)
        if (is_float(s, n->in[i]) && !lnt_is(n, Resize)) {
            find(s, n->in[i])->fixed |= s->e->g->value[n->in[i]].constant;
            join(s, n->in[i], n->out[0]);
        }
    if (lnt_is(n, Resize)) /* its other floats are extents */
        join(s, n->in[0], n->out[0]);
    for (unsigned i = 1; i < n->n_out; i++)
        if (is_float(s, n->out[i]))
            join(s, n->out[i], n->out[0]);
}

/* Another factor of what it reads, from operand operands_of(n) on, shows in what it gives. */
static bool passes_on(const scaler *s, const lnt_gnode *n)
{
    return lets_through(n->program) && (is_layer(s, n) || (is_homogeneous(n) && is_float(s, n->out[0])));
}

/* Behind what a layer's constants make up for. */
static unsigned operands_of(const scaler *s, const lnt_gnode *n)
{
    return is_layer(s, n) ? (unsigned)n->n_in - n->n_program_in : 0;
}

static void look_at(const scaler *s, const lnt_gnode *n)
{
    if (passes_on(s, n)) {
        join_operands(s, n, operands_of(s, n));
        return;
    }
    fix(s, n->out, n->n_out);
    if (n->subgraph != 0)
        fix(s, n->in, n->n_in);
}

/* Halves a group's values until a quarter of what they may be is left to them. */
static bool choose_shifts(const scaler *s, const lnt_qlayers *layers)
{
    bool any = false;
    for (size_t i = 0; i < layers->n; i++) {
        const lnt_qlayer *l = &layers->layer[i];
        const uint32_t value[2] = {l->plain.in[0], l->plain.out[0]};
        for (unsigned k = 0; k < 2; k++)
            if (value[k] != LNT_NONE)
                find(s, value[k])->largest = fmaxf(find(s, value[k])->largest, l->largest[k]);
    }
    for (uint32_t v = 0; v < s->e->g->n_values; v++) {
        group *c = &s->of[v];
        if (c->parent != v || c->fixed || !(c->largest > LNT_HALF_AT_MOST) || isinf(c->largest))
            continue;
        c->shift = -(int)ceilf(log2f(c->largest / (LNT_HALF_AT_MOST / 4)));
        any = true;
    }
    return any;
}

static lnt_status make_constant(const scaler *s, multiple *made)
{
    lnt_graph *g = s->e->g;
    LNT_ASSERT(can_scale(s, made->from) && made->shift != 0);
    made->to = lnt_graph_add_value(g, g->value[made->from].name);
    const lnt_gvalue *from = &g->value[made->from];
    const float *x = from->info.data;
    float *data = lnt_bump_alloc(&g->memory, from->bytes, g->err);
    if (made->to == LNT_NONE || !data)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < from->bytes / sizeof *x; i++)
        data[i] = ldexpf(x[i], made->shift);
    lnt_gvalue *to = &g->value[made->to];
    to->info = from->info;
    to->info.data = data;
    to->bytes = from->bytes;
    to->constant = true;
    to->plain = from->plain;
    return LNT_OK;
}

/* Makes operand i of n, if there is one, 2**shift times what it is. */
static lnt_status scale_constant(scaler *s, lnt_gnode *n, unsigned i, int shift)
{
    const uint32_t from = i + n->n_program_in < n->n_in ? n->in[i] : LNT_NONE;
    multiple *m = s->made;
    if (from == LNT_NONE || shift == 0)
        return LNT_OK;
    while (m && (m->from != from || m->shift != shift))
        m = m->next;
    if (!m) {
        m = lnt_bump_alloc(&s->e->g->memory, sizeof *m, s->e->g->err);
        if (!m)
            return LNT_E_MEMORY;
        *m = (multiple){from, LNT_NONE, shift, s->made};
        s->made = m;
        LNT_TRY(make_constant(s, m));
    }
    return lnt_edit_set_input(s->e, n, i, m->to);
}

static lnt_status scale_layer(scaler *s, lnt_gnode *n)
{
    const int in = find(s, n->in[0])->shift, out = find(s, n->out[0])->shift;
    LNT_TRY(scale_constant(s, n, 1, out - in));
    LNT_TRY(scale_constant(s, n, 2, out));
    return out ? lnt_edit_count(s->e, "outputs scaled for float16") : LNT_OK;
}

/* n reads values as they were. */
static lnt_status give_back(scaler *s, lnt_gnode *n)
{
    lnt_graph *g = s->e->g;
    for (unsigned i = operands_of(s, n); i < n->n_in; i++) {
        const int shift = is_float(s, n->in[i]) ? find(s, n->in[i])->shift : 0;
        const float factor = ldexpf(1, -shift);
        if (shift == 0)
            continue;
        uint32_t by = lnt_add_floats(g, "factor", 0, NULL, &factor), made;
        if (by == LNT_NONE || !lnt_edit_insert(s->e, n, lnt_op_by_id(LNT_ID_Mul), (uint32_t[]){n->in[i], by},
                                               2, LNT_NONE, &made))
            return LNT_E_MEMORY;
        g->value[made].info = g->value[n->in[i]].info; /* and storage order */
        LNT_TRY(lnt_edit_set_input(s->e, n, i, made));
    }
    return LNT_OK;
}

static lnt_status scale(scaler *s)
{
    const lnt_gsubgraph *main = &s->e->g->sub[0];
    for (size_t i = 0; i < main->n_nodes; i++) {
        lnt_gnode *n = main->node[i];
        if (n->dead)
            continue;
        if (!passes_on(s, n))
            LNT_TRY(give_back(s, n));
        if (is_layer(s, n))
            LNT_TRY(scale_layer(s, n));
    }
    lnt_graph_sweep(s->e->g);
    return lnt_edit_renew(s->e);
}

lnt_status lnt_scale_for_halves(lnt_edit *e, const lnt_qlayers *layers, bool *scaled)
{
    const lnt_graph *g = e->g;
    LNT_TRY(lnt_edit_renew(e));
    scaler s = {e, lnt_alloc_zero(g->memory.allocator, g->n_values, sizeof(group), g->err), NULL};
    if (!s.of)
        return LNT_E_MEMORY;
    for (uint32_t v = 0; v < g->n_values; v++)
        s.of[v].parent = v;
    for (uint32_t v = 0; v < g->n_values; v++)
        s.of[v].fixed = lnt_edit_pinned(e, v) || (!g->value[v].producer && !g->value[v].constant);
    for (size_t k = 0; k < g->n_subs; k++)
        for (size_t i = 0; i < g->sub[k].n_nodes; i++)
            if (!g->sub[k].node[i]->dead)
                look_at(&s, g->sub[k].node[i]);
    *scaled = choose_shifts(&s, layers);
    const lnt_status status = *scaled ? scale(&s) : LNT_OK;
    lnt_free(g->memory.allocator, s.of);
    return status;
}
