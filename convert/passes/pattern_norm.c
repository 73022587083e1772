/* pattern_norm.c — LayerNormalization, RMSNormalization and Softmax written out in arithmetic. */
#include "convert/passes/patterns.h"

#include <math.h>
#include <string.h>

/* What is known of a normalization while it is put together. */
typedef struct norm {
    uint32_t centered; /* what was squared: x less its mean, or x itself */
    uint32_t x, mean;  /* mean LNT_NONE: there is none to subtract */
    double epsilon;
    unsigned axis; /* first of the axes reduced, which are the last ones */
    unsigned rank;
} norm;

static lnt_gnode *producer_of(const lnt_graph *g, uint32_t value)
{
    return value == LNT_NONE ? NULL : g->value[value].producer;
}

/* The axes n reduces, kept as 1: all from *first on. */
static bool reduces_last_axes(const lnt_graph *g, const lnt_gnode *n, unsigned *first, unsigned *rank)
{
    int64_t axes[LNT_MAX_RANK];
    unsigned count = LNT_MAX_RANK;
    uint32_t seen = 0;
    *rank = lnt_ginfo(g, n->in[0])->rank;
    if (*rank > LNT_MAX_RANK || !lnt_gnode_int(n, "keepdims", 1) || lnt_in_value(n, 1) == LNT_NONE ||
        !lnt_constant_ints(g, n->in[1], axes, &count) || count == 0 || count > *rank)
        return false;
    for (unsigned i = 0; i < count; i++)
        seen |= 1u << (axes[i] < 0 ? axes[i] + *rank : axes[i]);
    *first = *rank - count;
    return seen == ((1u << *rank) - 1) - ((1u << *first) - 1);
}

static bool square_of(const lnt_graph *g, uint32_t value, uint32_t *root)
{
    const lnt_gnode *n = producer_of(g, value);
    double two;
    *root = n && n->n_in ? n->in[0] : LNT_NONE;
    if (lnt_is(n, Mul))
        return n->in[0] == n->in[1];
    return lnt_is(n, Pow) && lnt_constant_scalar(g, n->in[1], &two) && two == 2;
}

/* value is mean(square(centered)) + epsilon. */
static bool variance(const lnt_graph *g, uint32_t value, norm *v)
{
    const lnt_gnode *add = producer_of(g, value);
    unsigned other;
    if (!lnt_is(add, Add) || !lnt_scalar_operand(g, add, &v->epsilon, &other))
        return false;
    const lnt_gnode *mean = producer_of(g, add->in[other]);
    return lnt_is(mean, ReduceMean) && reduces_last_axes(g, mean, &v->axis, &v->rank) &&
           square_of(g, mean->in[0], &v->centered);
}

static bool deviation(const lnt_graph *g, uint32_t value, norm *v)
{
    const lnt_gnode *n = producer_of(g, value);
    double half;
    if (lnt_is(n, Pow) && lnt_constant_scalar(g, n->in[1], &half) && half == 0.5)
        return variance(g, n->in[0], v);
    return lnt_is(n, Sqrt) && variance(g, n->in[0], v);
}

/* value is 1 / deviation, in one of its forms. */
static bool inverse_deviation(const lnt_graph *g, uint32_t value, norm *v)
{
    const lnt_gnode *n = producer_of(g, value);
    double k;
    if (lnt_is(n, Reciprocal))
        return deviation(g, n->in[0], v);
    if (lnt_is(n, Div) && lnt_constant_scalar(g, n->in[0], &k) && k == 1)
        return deviation(g, n->in[1], v);
    return lnt_is(n, Pow) && lnt_constant_scalar(g, n->in[1], &k) && k == -0.5 && variance(g, n->in[0], v);
}

/* Fills x and mean from what was squared. */
static void find_mean(const lnt_graph *g, norm *v)
{
    const lnt_gnode *sub = producer_of(g, v->centered);
    const lnt_gnode *mean = lnt_is(sub, Sub) ? producer_of(g, sub->in[1]) : NULL;
    unsigned axis, rank;
    v->x = v->centered;
    v->mean = LNT_NONE;
    if (lnt_is(mean, ReduceMean) && mean->in[0] == sub->in[0] && reduces_last_axes(g, mean, &axis, &rank) &&
        axis == v->axis) {
        v->x = sub->in[0];
        v->mean = mean->out[0];
    }
}

/* ---- scale and shift ---- */

/* The parameter as a constant of the extents that are normalized; LNT_NONE if it is none. */
static uint32_t parameter(lnt_graph *g, const norm *v, uint32_t value)
{
    int64_t count, dims[LNT_MAX_RANK];
    const float *data = value == LNT_NONE ? NULL : lnt_constant_floats(g, value, &count);
    const unsigned rank = v->rank - v->axis;
    if (!data)
        return LNT_NONE;
    const lnt_operand *p = lnt_ginfo(g, value), *x = lnt_ginfo(g, v->x);
    for (unsigned i = 0; i < rank; i++) {
        dims[i] = x->dims[v->axis + i];
        if (p->rank < rank || dims[i] < 0 || p->dims[p->rank - rank + i] != dims[i])
            return LNT_NONE;
        count /= dims[i] ? dims[i] : 1;
    }
    if (count != 1)
        return LNT_NONE;
    return p->rank == rank ? value : lnt_add_floats(g, g->value[value].name, rank, dims, data);
}

static uint32_t ones(lnt_graph *g, const norm *v, const char *name)
{
    const lnt_operand *x = lnt_ginfo(g, v->x);
    int64_t dims[LNT_MAX_RANK], count = 1;
    for (unsigned i = v->axis; i < v->rank; i++) {
        dims[i - v->axis] = x->dims[i];
        count = lnt_dim_mul(count, x->dims[i]);
    }
    float *data = count < 0 ? NULL : lnt_bump_alloc(&g->memory, (size_t)count * sizeof *data, g->err);
    for (int64_t i = 0; data && i < count; i++)
        data[i] = 1;
    return data ? lnt_add_floats(g, name, v->rank - v->axis, dims, data) : LNT_NONE;
}

/* The node behind *last, if it is `op` with a parameter: that parameter, and *last moves on. */
static uint32_t take_parameter(lnt_edit *e, const norm *v, lnt_gnode **last, unsigned op)
{
    lnt_gnode *n = lnt_edit_follower(e, *last);
    if (!lnt_gnode_is(n, op))
        return LNT_NONE;
    const uint32_t p = parameter(e->g, v, n->in[n->in[0] == (*last)->out[0]]);
    if (p != LNT_NONE)
        *last = n;
    return p;
}

static lnt_status write_norm(lnt_edit *e, const norm *v, lnt_gnode *last, uint32_t scale, uint32_t bias)
{
    const lnt_op *op =
        lnt_op_by_id(v->mean == LNT_NONE ? LNT_ID_RMSNormalization : LNT_ID_LayerNormalization);
    if (scale == LNT_NONE)
        scale = ones(e->g, v, last->name);
    if (scale == LNT_NONE)
        return e->g->err->code;
    const uint32_t in[] = {v->x, scale, bias};
    lnt_gnode *n = lnt_edit_substitute(e, last, op, in, bias == LNT_NONE ? 2 : 3);
    if (!n)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_gnode_set_int(e->g, n, "axis", v->axis));
    LNT_TRY(lnt_gnode_set_float(e->g, n, "epsilon", (float)v->epsilon));
    return lnt_edit_count(e, lnt_op_name(op));
}

/* ---- the two ways to write it ---- */

/* centered / deviation, or centered * (1 / deviation); then perhaps * scale + bias. */
static lnt_status fuse_quotient(lnt_edit *e, lnt_gnode *n)
{
    const lnt_graph *g = e->g;
    norm v;
    bool found = lnt_is(n, Div) && deviation(g, n->in[1], &v) && v.centered == n->in[0];
    for (unsigned i = 0; i < 2 && !found && lnt_is(n, Mul); i++)
        found = inverse_deviation(g, n->in[i], &v) && v.centered == n->in[1 - i];
    if (!found || lnt_ginfo(g, n->out[0])->dtype != LNT_FLOAT)
        return LNT_OK;
    find_mean(g, &v);
    lnt_gnode *last = n;
    const uint32_t scale = take_parameter(e, &v, &last, LNT_ID_Mul);
    const uint32_t bias = v.mean == LNT_NONE ? LNT_NONE : take_parameter(e, &v, &last, LNT_ID_Add);
    return write_norm(e, &v, last, scale, bias);
}

/* x * m + (bias - mean * m), where m = scale / deviation. */
static lnt_status fuse_affine(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    for (unsigned i = 0; i < 2 && lnt_is(n, Add); i++) {
        const lnt_gnode *scaled = lnt_producer(g, n, i), *sub = lnt_producer(g, n, 1 - i);
        const lnt_gnode *shift = lnt_is(sub, Sub) ? lnt_producer(g, sub, 1) : NULL;
        if (!lnt_is(scaled, Mul) || !lnt_is(shift, Mul))
            continue;
        for (unsigned k = 0; k < 4; k++) {
            const uint32_t m = scaled->in[k & 1], x = scaled->in[1 - (k & 1)];
            const lnt_gnode *factor = producer_of(g, m);
            norm v;
            if (!lnt_is(factor, Mul) || !inverse_deviation(g, factor->in[k >> 1], &v))
                continue;
            find_mean(g, &v);
            if (v.x != x || v.mean == LNT_NONE ||
                !((shift->in[0] == m && shift->in[1] == v.mean) ||
                  (shift->in[1] == m && shift->in[0] == v.mean)))
                continue;
            const uint32_t scale = parameter(g, &v, factor->in[1 - (k >> 1)]);
            const uint32_t bias = parameter(g, &v, sub->in[0]);
            if (scale != LNT_NONE && bias != LNT_NONE)
                return write_norm(e, &v, n, scale, bias);
        }
    }
    return LNT_OK;
}

lnt_status lnt_fuse_normalization(lnt_edit *e, lnt_gnode *n)
{
    LNT_TRY(fuse_quotient(e, n));
    return fuse_affine(e, n);
}

/* ---- Softmax ---- */

/* The one axis n reduces and keeps as 1. */
static bool reduces_axis(const lnt_graph *g, const lnt_gnode *n, int64_t *axis)
{
    unsigned count = 1;
    const unsigned rank = lnt_ginfo(g, n->in[0])->rank;
    if (rank > LNT_MAX_RANK || !lnt_gnode_int(n, "keepdims", 1) || lnt_in_value(n, 1) == LNT_NONE ||
        !lnt_constant_ints(g, n->in[1], axis, &count) || count != 1)
        return false;
    *axis += *axis < 0 ? rank : 0;
    return true;
}

/* exp(x - max(x)) / sum(exp(x - max(x))) */
lnt_status lnt_fuse_softmax(lnt_edit *e, lnt_gnode *n)
{
    const lnt_graph *g = e->g;
    if (!lnt_is(n, Div))
        return LNT_OK;
    const lnt_gnode *power = lnt_producer(g, n, 0), *sum = lnt_producer(g, n, 1);
    const lnt_gnode *sub = lnt_is(power, Exp) ? lnt_producer(g, power, 0) : NULL;
    const lnt_gnode *max = lnt_is(sub, Sub) ? lnt_producer(g, sub, 1) : NULL;
    int64_t axis, max_axis;
    if (!lnt_is(max, ReduceMax) || !lnt_is(sum, ReduceSum) || sum->in[0] != power->out[0] ||
        max->in[0] != sub->in[0] || !reduces_axis(g, sum, &axis) || !reduces_axis(g, max, &max_axis) ||
        axis != max_axis || lnt_ginfo(g, n->out[0])->dtype != LNT_FLOAT)
        return LNT_OK;
    const uint32_t x = sub->in[0];
    n = lnt_edit_substitute(e, n, lnt_op_by_id(LNT_ID_Softmax), &x, 1);
    if (!n)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_gnode_set_int(e->g, n, "axis", axis));
    return lnt_edit_count(e, "Softmax");
}

lnt_status lnt_fuse_sum_square(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    const lnt_gnode *square = lnt_is(n, ReduceSum) ? lnt_producer(g, n, 0) : NULL;
    uint32_t x;
    if (!lnt_is(square, Mul) || !square_of(g, n->in[0], &x) || lnt_edit_follower(e, square) != n)
        return LNT_OK;
    LNT_TRY(lnt_edit_set_input(e, n, 0, x));
    n->op = lnt_op_by_id(LNT_ID_ReduceSumSquare);
    return lnt_edit_count(e, "ReduceSumSquare");
}
