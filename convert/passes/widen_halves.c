/* widen_halves.c — float16 and bfloat16 between operators become float.
 *
 * Such a model is computed in float between its inputs and outputs, which keep their types: nothing is rounded on the
 * way, so that it is nearer to what it was made from, and operators are fused as those of float are. Its weights are
 * stored in what they were where no pass has changed them, or in what --precision says (convert/quantize/precision.c).
 *
 *     x: float16 ─ op ─ op ─ y: float16      →      x ─ Cast ─ op ─ op ─ Cast ─ y
 *
 * A Cast from float that only other Casts read rounds on purpose: it stays. So does what is only moved, from the
 * model's inputs to its outputs. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

#include "base/half.h"
#include "base/lnt_assert.h"

#include <string.h>

typedef struct widener {
    lnt_edit e;
    uint32_t *to;   /* [values]: what readers read instead; the value itself */
    bool *stays;    /* [values]: rounded on purpose, or only moved */
    bool *moved;    /* [values]: while it is looked for what is only moved */
    bool changed;
    size_t n;       /* values that there were */
    size_t half[2]; /* elements of constants of float16, bfloat16 */
} widener;

static bool is_half(lnt_dtype dtype)
{
    return dtype == LNT_FLOAT16 || dtype == LNT_BFLOAT16;
}

static bool holds_half(const widener *w, uint32_t value)
{
    return value != LNT_NONE && value < w->n && !w->stays[value] &&
           is_half((lnt_dtype)w->e.g->value[value].info.dtype);
}

static bool is_model_output(const lnt_graph *g, uint32_t value)
{
    for (uint32_t i = 0; i < g->sub[0].n_out; i++)
        if (g->sub[0].out[i] == value)
            return true;
    return false;
}

/* ---- may it be done? ---- */

/* Operators of the host, and bits taken for another type, need the type that they were given. */
static bool node_allows(const widener *w, const lnt_gnode *n)
{
    for (unsigned i = 0; i < n->n_in + n->n_out; i++) {
        const uint32_t v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (v == LNT_NONE)
            continue;
        if (!w->e.g->value[v].info.dtype || (holds_half(w, v) && (lnt_is(n, Custom) || lnt_is(n, BitCast))))
            return false;
    }
    return true;
}

typedef lnt_status (*node_fn)(widener *w, lnt_gnode *n);

static lnt_status each_node(widener *w, node_fn visit)
{
    for (size_t s = 0; s < w->e.g->n_subs; s++)
        for (size_t i = 0; i < w->e.g->sub[s].n_nodes; i++)
            LNT_TRY(visit(w, w->e.g->sub[s].node[i]));
    return LNT_OK;
}

static lnt_status look_at(widener *w, lnt_gnode *n)
{
    return node_allows(w, n) ? LNT_OK : LNT_E_UNSUPPORTED;
}

/* ---- types that nodes name ---- */

/* Casts from float to half whose result nothing but Casts reads. */
static lnt_status find_rounding(widener *w, lnt_gnode *n)
{
    uint32_t at = LNT_EDIT_FIRST;
    if (!lnt_is(n, Cast) || !holds_half(w, n->out[0]) || lnt_edit_pinned(&w->e, n->out[0]) ||
        lnt_ginfo(w->e.g, n->in[0])->dtype != LNT_FLOAT)
        return LNT_OK;
    unsigned readers = 0;
    for (const lnt_gnode *r; (r = lnt_edit_reader(&w->e, n->out[0], &at)) != NULL; readers++)
        if (!lnt_is(r, Cast) || is_half((lnt_dtype)lnt_gnode_int(r, "to", 0)))
            return LNT_OK;
    w->stays[n->out[0]] = readers > 0;
    return LNT_OK;
}

/* Halves of a node that does not only move them, or moves some that do not stay, do not stay. */
static lnt_status spread_widening(widener *w, lnt_gnode *n)
{
    bool all =
        n->op->flags & LNT_OP_HALVES_ALIKE && strcmp(lnt_gnode_string(n, "reduction", "none"), "none") == 0;
    for (unsigned i = 0; i < n->n_in + n->n_out; i++) {
        const uint32_t v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        all &= !holds_half(w, v) || w->moved[v];
    }
    for (unsigned i = 0; i < n->n_in + n->n_out && !all; i++) {
        const uint32_t v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (!holds_half(w, v) || !w->moved[v])
            continue;
        w->moved[v] = false;
        w->changed = true;
    }
    return LNT_OK;
}

static lnt_status find_moved(widener *w)
{
    lnt_graph *g = w->e.g;
    w->moved = lnt_bump_alloc(&g->memory, w->n * sizeof *w->moved, g->err);
    if (!w->moved)
        return LNT_E_MEMORY;
    for (uint32_t v = 0; v < w->n; v++)
        w->moved[v] = g->n_subs == 1; /* bodies hand values in and out by no node */
    do {
        w->changed = false;
        LNT_TRY(each_node(w, spread_widening));
    } while (w->changed);
    for (uint32_t v = 0; v < w->n; v++)
        w->stays[v] |= w->moved[v] && holds_half(w, v);
    return LNT_OK;
}

static lnt_status widen_tensor(lnt_graph *g, const lnt_operand *from, lnt_operand *to)
{
    const int64_t n = lnt_operand_count(from);
    const uint16_t *half = from->data;
    LNT_ASSERT(n >= 0 && is_half((lnt_dtype)from->dtype));
    float *floats = lnt_bump_alloc(&g->memory, ((size_t)n + 1) * sizeof *floats, g->err);
    if (!floats)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < n; i++)
        floats[i] = from->dtype == LNT_FLOAT16 ? lnt_f16_to_float(half[i]) : lnt_bf16_to_float(half[i]);
    *to = *from;
    to->dtype = LNT_FLOAT;
    to->data = floats;
    return LNT_OK;
}

static lnt_status widen_attribute(widener *w, lnt_gnode *n, const lnt_attr *a)
{
    static const char *const types[] = {
        "to", "dtype", "output_dtype", "output_datatype", "stash_type", "softmax_precision"};
    lnt_graph *g = w->e.g;
    if (a->type == LNT_ATTR_TENSOR && is_half((lnt_dtype)a->tensor->dtype)) {
        lnt_operand *wide = lnt_bump_alloc(&g->memory, sizeof *wide, g->err);
        if (!wide)
            return LNT_E_MEMORY;
        LNT_TRY(widen_tensor(g, a->tensor, wide));
        lnt_attr changed = *a;
        changed.tensor = wide;
        return lnt_gnode_set_attr(g, n, &changed);
    }
    for (size_t i = 0; i < sizeof types / sizeof *types && a->type == LNT_ATTR_INT; i++)
        if (strcmp(a->name, types[i]) == 0 && is_half((lnt_dtype)*a->i))
            return lnt_gnode_set_int(g, n, types[i], LNT_FLOAT);
    return LNT_OK;
}

static lnt_status widen_attributes(widener *w, lnt_gnode *n)
{
    if (n->n_out && n->out[0] != LNT_NONE && n->out[0] < w->n && w->stays[n->out[0]])
        return LNT_OK;
    for (unsigned i = 0; i < n->n_attr; i++)
        LNT_TRY(widen_attribute(w, n, &n->attr[i]));
    return LNT_OK;
}

/* ---- values ---- */

/* A value of float that stands for v. */
static lnt_status add_wide(widener *w, uint32_t v, uint32_t *wide)
{
    lnt_graph *g = w->e.g;
    *wide = lnt_graph_add_value(g, g->value[v].name);
    if (*wide == LNT_NONE)
        return LNT_E_MEMORY;
    g->value[*wide].info = g->value[v].info;
    g->value[*wide].info.dtype = LNT_FLOAT;
    w->to[v] = *wide;
    return LNT_OK;
}

/* Constants that are outputs have their type; others are floats from now on. */
static lnt_status widen_constant(widener *w, uint32_t v)
{
    lnt_graph *g = w->e.g;
    lnt_operand wide;
    uint32_t to = v;
    w->half[g->value[v].info.dtype == LNT_BFLOAT16] += g->value[v].bytes / sizeof(uint16_t);
    LNT_TRY(widen_tensor(g, &g->value[v].info, &wide));
    if (is_model_output(g, v) || lnt_gvalue_is_kept(&g->value[v]))
        LNT_TRY(add_wide(w, v, &to));
    g->value[to].bytes = g->value[v].bytes * 2;
    g->value[to].constant = true;
    g->value[to].info = wide;
    return LNT_OK;
}

static lnt_status add_cast(widener *w, uint32_t sub, lnt_gnode *before, uint32_t from, uint32_t to,
                           lnt_dtype type)
{
    lnt_graph *g = w->e.g;
    lnt_gnode *n =
        lnt_graph_add_node(g, sub, before, lnt_op_by_id(LNT_ID_Cast), g->value[to].name, &from, 1, &to, 1);
    return n ? lnt_gnode_set_int(g, n, "to", type) : LNT_E_MEMORY;
}

static lnt_status widen_inputs(widener *w)
{
    lnt_gsubgraph *s = &w->e.g->sub[0];
    lnt_gnode *first = s->n_nodes ? s->node[0] : NULL;
    for (uint32_t i = 0; i < s->n_in; i++) {
        const uint32_t v = s->in[i];
        uint32_t wide;
        if (!holds_half(w, v) || !lnt_edit_uses(&w->e, v))
            continue;
        LNT_TRY(add_wide(w, v, &wide));
        LNT_TRY(add_cast(w, 0, first, v, wide, LNT_FLOAT));
    }
    return LNT_OK;
}

/* The node that runs after n; NULL: n is the last. */
static lnt_gnode *behind(const lnt_graph *g, const lnt_gnode *n)
{
    const lnt_gsubgraph *s = &g->sub[n->subgraph];
    size_t i = 0;
    while (s->node[i] != n)
        i++;
    return i + 1 < s->n_nodes ? s->node[i + 1] : NULL;
}

/* What n computes under a name that is the model's, or kept: from a value of float, right behind it. */
static lnt_status widen_outputs(widener *w, lnt_gnode *n)
{
    lnt_graph *g = w->e.g;
    for (unsigned i = 0; i < n->n_out; i++) {
        const uint32_t v = n->out[i];
        uint32_t wide;
        if (!holds_half(w, v) || w->to[v] != v ||
            !(is_model_output(g, v) || lnt_gvalue_is_kept(&g->value[v])))
            continue;
        const lnt_dtype type = (lnt_dtype)g->value[v].info.dtype;
        LNT_TRY(add_wide(w, v, &wide));
        n->out[i] = wide;
        g->value[wide].producer = n;
        LNT_TRY(add_cast(w, n->subgraph, behind(g, n), wide, v, type));
    }
    return LNT_OK;
}

static void follow(const widener *w, uint32_t *value)
{
    if (*value != LNT_NONE && *value < w->n)
        *value = w->to[*value];
}

/* Nodes that there were read what values have become. */
static lnt_status redirect(widener *w, lnt_gnode *n)
{
    for (unsigned i = 0; i < n->n_in; i++)
        follow(w, &n->in[i]);
    return LNT_OK;
}

static lnt_status widen_values(widener *w)
{
    lnt_graph *g = w->e.g;
    for (uint32_t v = 0; v < w->n; v++)
        if (g->value[v].constant && holds_half(w, v))
            LNT_TRY(widen_constant(w, v));
    LNT_TRY(each_node(w, widen_outputs));
    LNT_TRY(widen_inputs(w));
    LNT_TRY(each_node(w, redirect));
    for (size_t s = 1; s < g->n_subs; s++)
        for (uint32_t i = 0; i < g->sub[s].n_out; i++)
            follow(w, &g->sub[s].out[i]);
    lnt_graph_sweep(g);
    return LNT_OK;
}

/* ---- what is left of Casts ---- */

static lnt_status drop_cast(lnt_edit *e, lnt_gnode *n)
{
    if (!lnt_is(n, Cast) || lnt_ginfo(e->g, n->in[0])->dtype != LNT_FLOAT ||
        lnt_gnode_int(n, "to", 0) != LNT_FLOAT || !lnt_edit_bypass(e, n, n->in[0]))
        return LNT_OK;
    return lnt_edit_count(e, "Casts between floats");
}

static lnt_status widen(widener *w)
{
    lnt_graph *g = w->e.g;
    LNT_TRY(each_node(w, find_rounding));
    LNT_TRY(find_moved(w));
    LNT_TRY(each_node(w, widen_attributes));
    LNT_TRY(widen_values(w));
    LNT_TRY(lnt_graph_infer(g));
    LNT_TRY(lnt_edit_renew(&w->e));
    if (w->half[0] + w->half[1] > 0)
        g->model_halves = w->half[1] > w->half[0] ? LNT_BFLOAT16 : LNT_FLOAT16;
    w->e.report->was_half = true;
    LNT_TRY(lnt_edit_count(&w->e, "models of 16 bits computed in float"));
    return lnt_edit_each(&w->e, drop_cast);
}

lnt_status lnt_pass_widen_halves(lnt_graph *g, lnt_report *report)
{
    widener w = {.n = g->n_values};
    bool any = false;
    LNT_TRY(lnt_edit_begin(&w.e, g, report, "widen_halves"));
    for (size_t v = 0; v < g->n_values && !any; v++)
        any = is_half((lnt_dtype)g->value[v].info.dtype);
    if (!any)
        return LNT_OK;
    w.to = lnt_bump_alloc(&g->memory, w.n * sizeof *w.to, g->err);
    w.stays = lnt_bump_alloc(&g->memory, w.n * sizeof *w.stays, g->err);
    if (!w.to || !w.stays)
        return LNT_E_MEMORY;
    for (uint32_t v = 0; v < w.n; v++) {
        w.to[v] = v;
        w.stays[v] = false;
    }
    return each_node(&w, look_at) == LNT_OK ? widen(&w) : LNT_OK;
}
