/* pattern_activation.c — activations written out in arithmetic, recognized by their values.
 *
 * Exporters write GELU, SiLU and the like in many forms. A web of elementwise nodes whose only variable is x
 * is a function of one number: it is computed at a handful of points and compared with the functions there
 * are operators for. */
#include "convert/passes/patterns.h"

#include <math.h>

enum { MAX_DEPTH = 12, MAX_CLIMB = 5, MAX_CANDIDATES = 16, N_POINTS = 12 };

static const double points[N_POINTS] = {-9.7, -4.1, -2.93, -1.71, -0.83, -0.21,
                                        0.37, 0.92, 1.63,  2.71,  3.9,   8.3};

/* ---- the web as a function ---- */

typedef struct function {
    const lnt_graph *g;
    uint32_t x; /* the variable */
    double at;
} function;

static double unary(const lnt_gnode *n, double a)
{
    if (lnt_is(n, Erf))
        return erf(a);
    if (lnt_is(n, Tanh))
        return tanh(a);
    if (lnt_is(n, Sigmoid))
        return 1 / (1 + exp(-a));
    if (lnt_is(n, Relu))
        return fmax(a, 0);
    if (lnt_is(n, Exp))
        return exp(a);
    if (lnt_is(n, Neg))
        return -a;
    if (lnt_is(n, Softplus))
        return log1p(exp(a));
    if (lnt_is(n, HardSigmoid))
        return fmax(0, fmin(1, lnt_gnode_float(n, "alpha", 0.2f) * a + lnt_gnode_float(n, "beta", 0.5f)));
    return NAN;
}

static double binary(const lnt_gnode *n, double a, double b)
{
    if (lnt_is(n, Add))
        return a + b;
    if (lnt_is(n, Sub))
        return a - b;
    if (lnt_is(n, Mul))
        return a * b;
    if (lnt_is(n, Div))
        return a / b;
    if (lnt_is(n, Pow))
        return pow(a, b);
    if (lnt_is(n, Min))
        return fmin(a, b);
    if (lnt_is(n, Max))
        return fmax(a, b);
    return NAN;
}

static double value_at(const function *f, uint32_t value, unsigned depth);

static double clip_at(const function *f, const lnt_gnode *n, unsigned depth)
{
    double low = -INFINITY, high = INFINITY;
    const uint32_t min = lnt_in_value(n, 1), max = lnt_in_value(n, 2);
    if ((min != LNT_NONE && !lnt_constant_scalar(f->g, min, &low)) ||
        (max != LNT_NONE && !lnt_constant_scalar(f->g, max, &high)))
        return NAN;
    return fmin(fmax(value_at(f, n->in[0], depth), low), high);
}

/* NaN where something else than x, constants and known operators comes in. */
static double value_at(const function *f, uint32_t value, unsigned depth)
{
    double constant;
    if (value == f->x)
        return f->at;
    if (value == LNT_NONE || depth == 0)
        return NAN;
    if (lnt_constant_scalar(f->g, value, &constant))
        return constant;
    const lnt_gnode *n = f->g->value[value].producer;
    if (!n || n->dead || n->program)
        return NAN;
    if (lnt_is(n, Clip))
        return clip_at(f, n, depth - 1);
    if (n->n_in == 1)
        return unary(n, value_at(f, n->in[0], depth - 1));
    return n->n_in == 2 ? binary(n, value_at(f, n->in[0], depth - 1), value_at(f, n->in[1], depth - 1)) : NAN;
}

/* ---- known functions ---- */

static double gelu(double x, double unused)
{
    (void)unused;
    return x / 2 * (1 + erf(x / sqrt(2)));
}

static double gelu_tanh(double x, double unused)
{
    (void)unused;
    return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static double swish(double x, double alpha)
{
    return x / (1 + exp(-alpha * x));
}

static double hard_sigmoid(double x, double unused)
{
    (void)unused;
    return fmax(0, fmin(1, x / 6 + 0.5));
}

static double hard_swish(double x, double unused)
{
    return x * hard_sigmoid(x, unused);
}

static double mish(double x, double unused)
{
    (void)unused;
    return x * tanh(log1p(exp(x)));
}

typedef struct known {
    unsigned op;
    double (*f)(double x, double alpha);
    double alpha;
    const char *approximate; /* attribute of Gelu */
} known;

/* Does y hold f's values at the points, to the precision of constants in single precision? */
static bool matches(const known *k, const double *y)
{
    for (unsigned i = 0; i < N_POINTS; i++) {
        const double wanted = k->f(points[i], k->alpha);
        if (!(fabs(y[i] - wanted) <= 2e-6 * (fabs(wanted) + 1e-3 * fabs(points[i]))))
            return false;
    }
    return true;
}

static bool recognize(const double *y, known *found)
{
    /* Were it a Swish, its value at one point would give alpha. */
    const double share = y[6] / points[6], alpha = log(share / (1 - share)) / points[6];
    const known list[] = {{LNT_ID_Gelu, gelu, 0, "none"},
                          {LNT_ID_Gelu, gelu_tanh, 0, "tanh"},
                          {LNT_ID_HardSwish, hard_swish, 0, NULL},
                          {LNT_ID_Mish, mish, 0, NULL},
                          {LNT_ID_HardSigmoid, hard_sigmoid, 0, NULL},
                          {LNT_ID_Swish, swish, fabs(alpha - 1) < 1e-6 ? 1 : alpha, NULL}};
    for (unsigned i = 0; i < sizeof list / sizeof list[0]; i++)
        if (matches(&list[i], y)) {
            *found = list[i];
            return true;
        }
    return false;
}

/* ---- finding the web ---- */

/* Values below `value` that could be the variable, nearest first. */
static unsigned candidates(const lnt_graph *g, uint32_t value, uint32_t *list)
{
    unsigned n = 0;
    list[n++] = value;
    for (unsigned done = 0; done < n; done++) {
        const lnt_gnode *p = g->value[list[done]].producer;
        if (!p || p->n_in > 3 || !(p->op->flags & LNT_OP_ELEMENTWISE))
            continue;
        for (unsigned i = 0; i < p->n_in && n < MAX_CANDIDATES; i++)
            if (p->in[i] != LNT_NONE && !g->value[p->in[i]].constant)
                list[n++] = p->in[i];
    }
    return n;
}

static bool function_of(const lnt_graph *g, uint32_t result, uint32_t x, known *found)
{
    function f = {.g = g, .x = x};
    double y[N_POINTS];
    if (result == x || !lnt_same_dims(lnt_ginfo(g, result), lnt_ginfo(g, x)))
        return false;
    for (unsigned i = 0; i < N_POINTS; i++) {
        f.at = points[i];
        y[i] = value_at(&f, result, MAX_DEPTH);
        if (isnan(y[i]))
            return false;
    }
    return recognize(y, found);
}

static lnt_status replace(lnt_edit *e, lnt_gnode *top, uint32_t x, const known *k)
{
    lnt_gnode *n = lnt_edit_substitute(e, top, lnt_op_by_id(k->op), &x, 1);
    if (!n)
        return LNT_E_MEMORY;
    if (k->approximate) {
        const lnt_attr attr = {
            .name = "approximate", .type = LNT_ATTR_STRING, .count = 4, .s = k->approximate};
        LNT_TRY(lnt_gnode_set_attr(e->g, n, &attr));
    }
    if (k->f == swish)
        LNT_TRY(lnt_gnode_set_float(e->g, n, "alpha", (float)k->alpha));
    if (k->f == hard_sigmoid) {
        LNT_TRY(lnt_gnode_set_float(e->g, n, "alpha", 1.0f / 6));
        LNT_TRY(lnt_gnode_set_float(e->g, n, "beta", 0.5f));
    }
    return lnt_edit_count(e, lnt_op_name(n->op));
}

lnt_status lnt_fuse_activation(lnt_edit *e, lnt_gnode *n)
{
    const bool bent =
        lnt_is(n, Erf) || lnt_is(n, Tanh) || lnt_is(n, Sigmoid) || lnt_is(n, HardSigmoid) || lnt_is(n, Clip);
    if (!bent || lnt_ginfo(e->g, n->out[0])->dtype != LNT_FLOAT)
        return LNT_OK;
    lnt_gnode *above[MAX_CLIMB] = {n};
    uint32_t x[MAX_CANDIDATES];
    unsigned n_above = 1;
    while (n_above < MAX_CLIMB && (above[n_above] = lnt_edit_follower(e, above[n_above - 1])) != NULL)
        n_above++;
    const unsigned n_x = candidates(e->g, n->in[0], x);
    for (unsigned top = n_above; top-- > 1;)
        for (unsigned i = 0; i < n_x; i++) {
            known found;
            if (function_of(e->g, above[top]->out[0], x[i], &found))
                return replace(e, above[top], x[i], &found);
        }
    return LNT_OK;
}
