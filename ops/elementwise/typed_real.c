/* typed_real.c — floating-point functions in double, with libm: for double tensors, and for what has no
 * program instruction. */
#include "ops/elementwise/typed.h"

#include "ops/element.h"

#include <math.h>
#include <string.h>

/* real_NAME computes row[n] in place; of result, x is the element, p the parameters. */
#define REAL(name, result)                                                                                   \
    static void real_##name(double *row, int64_t n, const double *p)                                         \
    {                                                                                                        \
        (void)p;                                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const double x = row[i];                                                                         \
            row[i] = result;                                                                                 \
        }                                                                                                    \
    }

static double softplus(double x)
{
    return (x > 0 ? x : x < 0 ? 0 : x) + log1p(exp(-fabs(x)));
}

static double clamp_unit(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static double shrink(double x, double lambda, double bias)
{
    return x < -lambda ? x + bias : x > lambda ? x - bias : 0;
}

static double gelu(double x, bool by_tanh)
{
    const double t = by_tanh ? tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)) : erf(x * M_SQRT1_2);
    return 0.5 * x * (1 + t);
}

REAL(Abs, fabs(x))
REAL(Neg, -x)
REAL(Sqrt, sqrt(x))
REAL(Reciprocal, 1 / x)
REAL(Floor, floor(x))
REAL(Ceil, ceil(x))
REAL(Round, nearbyint(x))
REAL(Sign, x > 0 ? 1 : x < 0 ? -1 : x)
REAL(Exp, exp(x))
REAL(Log, log(x))
REAL(Sin, sin(x))
REAL(Cos, cos(x))
REAL(Tan, tan(x))
REAL(Asin, asin(x))
REAL(Acos, acos(x))
REAL(Atan, atan(x))
REAL(Sinh, sinh(x))
REAL(Cosh, cosh(x))
REAL(Asinh, asinh(x))
REAL(Acosh, acosh(x))
REAL(Atanh, atanh(x))
REAL(Tanh, tanh(x))
REAL(Sigmoid, 1 / (1 + exp(-x)))
REAL(Erf, erf(x))
REAL(Softplus, softplus(x))
REAL(Softsign, x / (1 + fabs(x)))
REAL(Relu, x < 0 ? 0 : x)
REAL(LeakyRelu, x < 0 ? p[0] * x : x)
REAL(Elu, x < 0 ? p[0] * expm1(x) : x)
REAL(Selu, p[1] * (x < 0 ? p[0] * expm1(x) : x))
REAL(Celu, x < 0 ? p[0] * expm1(x / p[0]) : x)
REAL(ThresholdedRelu, x > p[0] ? x : 0)
REAL(HardSigmoid, clamp_unit(p[0] * x + p[1]))
REAL(HardSwish, (x * clamp_unit(x / 6 + 0.5)))
REAL(Gelu, gelu(x, p[0] != 0))
REAL(Mish, (x * tanh(softplus(x))))
REAL(Swish, x / (1 + exp(-p[0] * x)))
REAL(Shrink, shrink(x, p[0], p[1]))
REAL(Mean, x / p[0])
REAL(IsNaN, isnan(x))
REAL(IsInf, isinf(x) && (x > 0 ? p[1] : p[0]) != 0)

static const struct {
    uint16_t id;
    void (*real)(double *row, int64_t n, const double *p);
    const char *attr[2];
    double otherwise[2];
} functions[] = {
#define KEPT(ident) LNT_ID_##ident, LNT_HAS_##ident ? real_##ident : NULL
#define PLAIN(ident) {KEPT(ident), {NULL, NULL}, {0, 0}},
#define WITH(ident, a, value_a, b, value_b) {KEPT(ident), {a, b}, {value_a, value_b}},
    PLAIN(Abs) PLAIN(Neg) PLAIN(Sqrt) PLAIN(Reciprocal) PLAIN(Floor) PLAIN(Ceil) PLAIN(Round) PLAIN(Sign)
        PLAIN(Exp) PLAIN(Log) PLAIN(Sin) PLAIN(Cos) PLAIN(Tan) PLAIN(Asin) PLAIN(Acos) PLAIN(Atan) PLAIN(Sinh)
            PLAIN(Cosh) PLAIN(Asinh) PLAIN(Acosh) PLAIN(Atanh) PLAIN(Tanh) PLAIN(Sigmoid) PLAIN(Erf)
                PLAIN(Softplus) PLAIN(Softsign) PLAIN(Relu) PLAIN(HardSwish) PLAIN(Gelu) PLAIN(Mish)
                    PLAIN(Mean) PLAIN(IsNaN) PLAIN(IsInf) WITH(LeakyRelu, "alpha", 0.01f, NULL, 0)
                        WITH(Elu, "alpha", 1, NULL, 0)
                            WITH(Selu, "alpha", 1.67326319217681884765625, "gamma", 1.05070102214813232421875)
                                WITH(Celu, "alpha", 1, NULL, 0) WITH(ThresholdedRelu, "alpha", 1, NULL, 0)
                                    WITH(HardSigmoid, "alpha", 0.2f, "beta", 0.5)
                                        WITH(Swish, "alpha", 1, NULL, 0) WITH(Shrink, "lambd", 0.5, "bias", 0)
#undef PLAIN
#undef WITH
#undef KEPT
};

enum { CHUNK = 64 };

static bool loop_real(const lnt_typed_args *a)
{
    const lnt_dtype dtype = a->dtype[0];
    const unsigned f = (unsigned)a->param[LNT_TYPED_FUNCTION];
    const bool predicate = functions[f].id == LNT_ID_IsNaN || functions[f].id == LNT_ID_IsInf;
    const lnt_dtype to = predicate ? LNT_BOOL : dtype;
    double x[CHUNK];
    for (int64_t i = 0; i < a->n; i += CHUNK) {
        const int64_t n = a->n - i < CHUNK ? a->n - i : CHUNK;
        lnt_cast(a->kernels, lnt_element_at(a->in[0], dtype, i), dtype, x, LNT_DOUBLE, n);
        functions[f].real(x, n, a->param);
        lnt_cast(a->kernels, x, LNT_DOUBLE, lnt_element_at(a->out, to, i), to, n);
    }
    return true;
}

static void fill_params(const lnt_node *node, unsigned f, double *param)
{
    for (unsigned j = 0; j < 2; j++)
        if (functions[f].attr[j])
            param[j] = (double)lnt_attr_f(node, functions[f].attr[j], (float)functions[f].otherwise[j]);
    if (functions[f].id == LNT_ID_Gelu)
        param[0] = strcmp(lnt_attr_s(node, "approximate", "none"), "tanh") == 0;
    if (functions[f].id == LNT_ID_IsInf) {
        param[0] = lnt_attr_i(node, "detect_negative", 1) != 0;
        param[1] = lnt_attr_i(node, "detect_positive", 1) != 0;
    }
    if (functions[f].id == LNT_ID_Mean)
        param[0] = node->n_in;
    param[LNT_TYPED_FUNCTION] = f;
}

lnt_typed_fn lnt_typed_real(const lnt_node *node, lnt_dtype dtype, double *param)
{
    if (dtype != LNT_FLOAT && dtype != LNT_DOUBLE && dtype != LNT_FLOAT16 && dtype != LNT_BFLOAT16)
        return NULL;
    for (unsigned f = 0; f < sizeof functions / sizeof functions[0]; f++)
        if (functions[f].id == node->op->id) {
            fill_params(node, f, param);
            return loop_real;
        }
    return NULL;
}
