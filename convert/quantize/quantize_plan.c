/* quantize_plan.c — which nodes are computed in int8 when some layers are chosen, which of them one operator
 * computes together, and the quantization parameters of each value. */
#include "convert/quantize/quantize_static.h"

#include "convert/graph/edit.h"

#include <math.h>

/* ---- which nodes are int8 ---- */

static bool constant(const lnt_static *st, uint32_t value)
{
    return st->g->value[value].constant;
}

/* There are ranges for what the site reads quantized and for its output. */
static bool has_ranges(const lnt_static *st, const lnt_qsite *s)
{
    const lnt_gnode *n = s->node;
    if (s->kind == LNT_Q_PRODUCT) /* what it gives may be floats */
        return st->value[n->in[0]].usable;
    bool usable = st->value[n->out[0]].usable;
    for (unsigned k = 0; k < n->n_in; k++)
        if (n->in[k] != LNT_NONE && lnt_q_reads_quantized(s, k) && !constant(st, n->in[k]))
            usable = usable && st->value[n->in[k]].usable;
    return usable;
}

static bool is_chosen(const lnt_static *st, const lnt_qsite *s, const lnt_qlayers *layers)
{
    if (s->kind == LNT_Q_FLOAT || !has_ranges(st, s))
        return false;
    return s->layer == LNT_NONE || layers->layer[s->layer].chosen;
}

/* The value is the output of a node that is computed in int8. */
static bool made_quantized(const lnt_static *st, uint32_t value)
{
    const uint32_t p = st->value[value].producer;
    return p != LNT_NONE && st->site[p].on && st->value[value].usable;
}

static bool read_quantized(const lnt_static *st, uint32_t value)
{
    for (uint32_t r = st->value[value].first_reader; r != LNT_NONE; r = st->reader[r].next) {
        const lnt_qsite *s = &st->site[st->reader[r].site];
        if (s->on && lnt_q_reads_quantized(s, st->reader[r].operand))
            return true;
    }
    return false;
}

/* The site whose output is the product's: itself, or the Add of its bias. */
static const lnt_qsite *sums_at(const lnt_static *st, const lnt_qsite *s)
{
    return s->adds_bias == LNT_NONE ? s : &st->site[s->adds_bias];
}

/* What is no product only goes on with what others do: it reads quantized values, and an int8 node reads its output. */
static bool follows(const lnt_static *st, const lnt_qsite *s)
{
    const lnt_gnode *n = s->node;
    for (unsigned k = 0; k < n->n_in; k++)
        if (n->in[k] != LNT_NONE && lnt_q_reads_quantized(s, k) && !constant(st, n->in[k]) &&
            !made_quantized(st, n->in[k]))
            return false;
    return read_quantized(st, n->out[0]);
}

static void choose_sites(lnt_static *st, const lnt_qlayers *layers)
{
    bool changed = true;
    for (uint32_t i = 0; i < st->n_sites; i++) {
        lnt_qsite *s = &st->site[i];
        s->on = is_chosen(st, s, layers);
        s->folded = s->to_float = false;
        s->bend = NULL;
        s->last = i;
    }
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < st->n_sites; i++) {
            lnt_qsite *s = &st->site[i];
            if (s->on && s->kind != LNT_Q_PRODUCT && !follows(st, s)) {
                s->on = false;
                changed = true;
            }
        }
    }
}

/* ---- products with what they take in ---- */

/* The bounds of a Relu or Clip, with 0 between them. */
static bool clamps(const lnt_graph *g, const lnt_gnode *n, float *low, float *high)
{
    double bound[2] = {-INFINITY, INFINITY};
    const bool least = lnt_is(n, Max) && n->n_in == 2, most = lnt_is(n, Min) && n->n_in == 2;
    if (least || most) {
        const uint32_t other = g->value[n->in[0]].constant ? n->in[0] : n->in[1];
        if (!lnt_constant_scalar(g, other, &bound[most]))
            return false;
    } else if (lnt_is(n, Relu)) {
        bound[0] = 0;
    } else if (!lnt_is(n, Clip)) {
        return false;
    }
    for (unsigned i = 0; i < 2 && lnt_is(n, Clip); i++)
        if (lnt_in_value(n, i + 1) != LNT_NONE && !lnt_constant_scalar(g, n->in[i + 1], &bound[i]))
            return false;
    *low = (float)bound[0];
    *high = (float)bound[1];
    return *low <= 0 && *high >= 0;
}

float lnt_q_slope(const lnt_graph *g, const lnt_gnode *bend, int64_t channel)
{
    if (lnt_is(bend, LeakyRelu))
        return lnt_gnode_float(bend, "alpha", 0.01f);
    const lnt_operand *o = lnt_ginfo(g, bend->in[1]);
    return ((const float *)o->data)[lnt_operand_count(o) > 1 ? channel : 0];
}

/* Is function n one that the convolution can apply before it requantizes: slopes in 0 to 1 for what is below 0? */
static bool bends(const lnt_graph *g, const lnt_qsite *conv, const lnt_gnode *n)
{
    if (!lnt_is(conv->node, Conv) || lnt_gnode_int(conv->node, "group", 1) != 1 || conv->bend ||
        !(lnt_is(n, LeakyRelu) || (lnt_is(n, PRelu) && g->value[n->in[1]].constant)))
        return false;
    for (int64_t c = 0; c < conv->product.columns; c++) {
        const float slope = lnt_q_slope(g, n, c);
        if (!(slope >= 0 && slope <= 1))
            return false;
    }
    return true;
}

/* The only reader of what site `at` gives, if it is computed in int8; or LNT_NONE. */
static uint32_t follower(const lnt_static *st, uint32_t at)
{
    const lnt_qvalue *v = &st->value[st->site[at].node->out[0]];
    if (v->outside || v->first_reader == LNT_NONE || st->reader[v->first_reader].next != LNT_NONE)
        return LNT_NONE;
    const uint32_t next = st->reader[v->first_reader].site;
    return st->site[next].on && st->site[next].kind == LNT_Q_TABLE ? next : LNT_NONE;
}

static void take_in(lnt_static *st, lnt_qsite *s, uint32_t next)
{
    st->site[next].folded = true;
    st->site[s->last].next = next;
    s->last = next;
}

/* Takes in bounds behind operators that requantize, and functions behind functions. */
static void fold_followers(lnt_static *st, lnt_qsite *s)
{
    float low, high;
    lnt_qvalue *y = &st->value[st->site[s->last].node->out[0]];
    const bool rounds = s->kind == LNT_Q_PRODUCT || s->kind == LNT_Q_BINARY || s->kind == LNT_Q_POOL;
    y->clamp_low = -INFINITY;
    y->clamp_high = INFINITY;
    for (uint32_t next; (next = follower(st, s->last)) != LNT_NONE;) {
        const lnt_gnode *n = st->site[next].node;
        const bool bounds = rounds && clamps(st->g, n, &low, &high),
                   bent = y->clamp_low == -INFINITY && y->clamp_high == INFINITY && bends(st->g, s, n);
        if (!bounds && !bent && s->kind != LNT_Q_TABLE)
            return;
        s->bend = bent ? n : s->bend;
        lnt_qvalue *z = &st->value[st->site[next].node->out[0]];
        z->clamp_low = bounds ? fmaxf(y->clamp_low, low) : -INFINITY;
        z->clamp_high = bounds ? fminf(y->clamp_high, high) : INFINITY;
        y = z;
        take_in(st, s, next);
    }
}

static void fold_sites(lnt_static *st)
{
    for (uint32_t i = 0; i < st->n_sites; i++) {
        lnt_qsite *s = &st->site[i];
        if (!s->on || s->folded)
            continue;
        if (s->kind == LNT_Q_PRODUCT) {
            const uint32_t sums = sums_at(st, s)->node->out[0];
            s->to_float = !st->value[sums].usable || !read_quantized(st, sums);
            if (s->adds_bias != LNT_NONE)
                take_in(st, s, s->adds_bias);
        }
        if (!s->to_float)
            fold_followers(st, s);
    }
}

/* ---- quantization parameters ---- */

static uint32_t root_of(lnt_static *st, uint32_t value)
{
    while (st->value[value].group != value)
        value = st->value[value].group = st->value[st->value[value].group].group;
    return value;
}

/* The same quantization parameters for the values of both groups, if all bounds that were folded still hold. */
static bool unite(lnt_static *st, uint32_t one, uint32_t other)
{
    lnt_qvalue *a = &st->value[root_of(st, one)], *b = &st->value[root_of(st, other)];
    const float low = fminf(a->group_low, b->group_low), high = fmaxf(a->group_high, b->group_high);
    const float least = fmaxf(a->clamp_low, b->clamp_low), most = fminf(a->clamp_high, b->clamp_high);
    if (low < least || high > most)
        return false;
    a->group_low = low;
    a->group_high = high;
    a->clamp_low = least;
    a->clamp_high = most;
    b->group = a->group;
    return true;
}

static unsigned readers(const lnt_static *st, uint32_t value)
{
    unsigned n = st->value[value].outside;
    for (uint32_t r = st->value[value].first_reader; r != LNT_NONE; r = st->reader[r].next)
        n++;
    return n;
}

/* An input of a Concat takes the output's quantization parameters unless others, who read it too, would lose a bit. */
static void unite_concat(lnt_static *st, const lnt_qsite *s)
{
    const uint32_t y = s->node->out[0];
    for (unsigned k = 0; k < s->node->n_in; k++) {
        const lnt_qvalue *in = &st->value[root_of(st, s->node->in[k])], *out = &st->value[root_of(st, y)];
        const float width = in->group_high - in->group_low, all = out->group_high - out->group_low;
        if (readers(st, s->node->in[k]) == 1 || 2 * width >= all)
            unite(st, y, s->node->in[k]);
    }
}

static void group_values(lnt_static *st)
{
    for (uint32_t v = 0; v < st->n_values; v++) {
        st->value[v].group = v;
        st->value[v].group_low = st->value[v].low;
        st->value[v].group_high = st->value[v].high;
    }
    for (uint32_t i = 0; i < st->n_sites; i++)
        if (st->site[i].on && st->site[i].kind == LNT_Q_MOVE)
            unite(st, st->site[i].node->in[0], st->site[i].node->out[0]);
    for (uint32_t i = 0; i < st->n_sites; i++)
        if (st->site[i].on && st->site[i].kind == LNT_Q_CONCAT)
            unite_concat(st, &st->site[i]);
}

static void set_qparams(lnt_qvalue *v)
{
    enum { LEVELS = 255 };
    const float scale = (v->group_high - v->group_low) / LEVELS;
    v->scale = scale >= 1e-30f ? scale : 1;
    v->zero = (int32_t)lrintf(fminf(LEVELS, fmaxf(0, -v->group_low / v->scale)));
    v->scale_value = v->zero_value = LNT_NONE;
}

const lnt_qvalue *lnt_static_qparams(const lnt_static *st, uint32_t value)
{
    while (st->value[value].group != value)
        value = st->value[value].group;
    return &st->value[value];
}

void lnt_static_plan(lnt_static *st, const lnt_qlayers *layers)
{
    for (uint32_t v = 0; v < st->n_values; v++) {
        st->value[v].clamp_low = -INFINITY;
        st->value[v].clamp_high = INFINITY;
        st->value[v].twin_written = st->value[v].equalized = false;
    }
    choose_sites(st, layers);
    fold_sites(st);
    group_values(st);
    lnt_static_plan_equalization(st);
    for (uint32_t v = 0; v < st->n_values; v++)
        set_qparams(&st->value[v]);
}
