/* judge.c — what every instruction of elementwise programs should give, and how far off it may be. */
#include "ops/check/judge.h"

#include "base/half.h"
#include "ops/program.h"

#include <string.h>
#include <tgmath.h>

/* judge_NAME(a, b, c, p, q): sources and immediates. */
#define JUDGE(name, result)                                                                                  \
    static lnt_wide judge_##name(lnt_wide a, lnt_wide b, lnt_wide c, lnt_wide p, lnt_wide q)                 \
    {                                                                                                        \
        (void)a, (void)b, (void)c, (void)p, (void)q;                                                         \
        return result;                                                                                       \
    }

static lnt_wide lesser(lnt_wide a, lnt_wide b)
{
    return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}

static lnt_wide greater(lnt_wide a, lnt_wide b)
{
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static lnt_wide clamped(lnt_wide a, lnt_wide low, lnt_wide high)
{
    return lesser(greater(a, low), high);
}

static lnt_wide softplus(lnt_wide a)
{
    return greater(a, 0) + log1p(exp(-fabs(a)));
}

static lnt_wide gate(lnt_wide a, lnt_wide t)
{
    return a / (1 + exp(-t));
}

JUDGE(ADD, a + b)
JUDGE(SUB, a - b)
JUDGE(MUL, a *b)
JUDGE(DIV, a / b)
JUDGE(MIN, lesser(a, b))
JUDGE(MAX, greater(a, b))
JUDGE(POW, pow(a, b))
JUDGE(MOD, fmod(a, b))
JUDGE(PRELU, a < 0 ? a * b : a)
JUDGE(ABS, fabs(a))
JUDGE(NEG, -a)
JUDGE(SQRT, sqrt(a))
JUDGE(RECIPROCAL, 1 / a)
JUDGE(FLOOR, floor(a))
JUDGE(CEIL, ceil(a))
JUDGE(ROUND, rint(a))
JUDGE(SIGN, isnan(a) ? a : (lnt_wide)((a > 0) - (a < 0)))
JUDGE(EXP, exp(a))
JUDGE(LOG, log(a))
JUDGE(SIN, sin(a))
JUDGE(COS, cos(a))
JUDGE(TANH, tanh(a))
JUDGE(SIGMOID, 1 / (1 + exp(-a)))
JUDGE(ERF, erf(a))
JUDGE(SOFTPLUS, softplus(a))
JUDGE(RELU, greater(a, 0))
JUDGE(CLIP, clamped(a, p, q))
JUDGE(LEAKY_RELU, a < 0 ? p * a : a)
JUDGE(ELU, a < 0 ? p * expm1(q * a) : a)
JUDGE(HARD_SIGMOID, clamped(p *a + q, 0, 1))
JUDGE(HARD_SWISH, a *clamped(a / 6 + 0.5, 0, 1))
JUDGE(GELU, isinf(a) ? greater(a, 0) : a * 0.5 * erfc(-a * (lnt_wide)0.70710678118654752440L))
JUDGE(GELU_TANH, gate(a, (lnt_wide)1.59576912160573071176L * (a + (lnt_wide)0.044715L * a * a * a)))
JUDGE(SILU, gate(a, p *a))
JUDGE(MISH, a > 40 ? a : a * tanh(softplus(a)))
JUDGE(EQUAL, a == b)
JUDGE(LESS, a < b)
JUDGE(LESS_EQUAL, a <= b)
JUDGE(GREATER, a > b)
JUDGE(GREATER_EQUAL, a >= b)
JUDGE(AND, a != 0 && b != 0)
JUDGE(OR, a != 0 || b != 0)
JUDGE(XOR, (a != 0) != (b != 0))
JUDGE(NOT, a == 0)
JUDGE(WHERE, a != 0 ? b : c)
JUDGE(IS_NAN, isnan(a))
JUDGE(SQUARE, a *a)
JUDGE(TO_FLOAT, a)
JUDGE(TO_F16, (lnt_wide)lnt_f16_to_float(lnt_float_to_f16((float)a)))
JUDGE(TO_BF16, (lnt_wide)lnt_bf16_to_float(lnt_float_to_bf16((float)a)))

JUDGE(TAN, tan(a))
JUDGE(ASIN, asin(a))
JUDGE(ACOS, acos(a))
JUDGE(ATAN, atan(a))
JUDGE(SINH, sinh(a))
JUDGE(COSH, cosh(a))
JUDGE(ASINH, asinh(a))
JUDGE(ACOSH, acosh(a))
JUDGE(ATANH, atanh(a))

static lnt_wide judge_CONST(lnt_wide a, lnt_wide b, lnt_wide c, lnt_wide p, lnt_wide q)
{
    (void)a, (void)b, (void)c, (void)q;
    return p;
}

/* Rounded once. A hair more than a half: the judge is rounded, too. */
#define EXACT                                                                                                \
    {                                                                                                        \
        0.5001, 0                                                                                            \
    }

lnt_bound lnt_bound_of(unsigned op, double a, double p, double q)
{
    switch (op) {
    case LNT_I_EXP: return (lnt_bound){1.1, 0};
    case LNT_I_LOG: return (lnt_bound){1, 0};
    case LNT_I_SIN:
    case LNT_I_COS: return (lnt_bound){2, 0};
    case LNT_I_POW: return (lnt_bound){1, 0};
    case LNT_I_TANH:
    case LNT_I_SIGMOID:
    case LNT_I_SOFTPLUS: return (lnt_bound){3, 0};
    case LNT_I_ERF: return (lnt_bound){3.5, 0};
    case LNT_I_ELU: return (lnt_bound){4 + fabs(p) + fabs(q), 1e-7 * fabs(p)};
    /* Sums of products, rounded step by step: relative to the parts. */
    case LNT_I_HARD_SIGMOID: return (lnt_bound){2, 1e-7 * (1 + fabs(q))};
    case LNT_I_HARD_SWISH: return (lnt_bound){4, 2e-7};
    /* e**-t for a large t feels t's own rounding. The left tails run out: erfc is good to 1e-8, and e**-t
     * overflows where the result is 1e-36. */
    case LNT_I_GELU: return (lnt_bound){4 + 2 * a * a, 1e-8};
    case LNT_I_GELU_TANH: return (lnt_bound){4 + 6 * fabs(a) + 0.3 * fabs(a * a * a), 1e-30};
    case LNT_I_SILU: return (lnt_bound){4 + fabs(p * a), 1e-30};
    case LNT_I_MISH: return (lnt_bound){6, 1e-30};
    case LNT_I_ACOS:
    case LNT_I_ATAN:
    case LNT_I_COSH: return (lnt_bound){2, 0};
    case LNT_I_ASIN:
    case LNT_I_SINH: return (lnt_bound){2.5, 0};
    case LNT_I_TAN: return (lnt_bound){4, 0};
    case LNT_I_ASINH:
    case LNT_I_ACOSH: return (lnt_bound){3, 0};
    case LNT_I_ATANH: return (lnt_bound){3.5, 0};
    default: return (lnt_bound)EXACT;
    }
}

const lnt_judged lnt_judged_instrs[] = {
#define INSTR(number, name, sources, result, text) [number] = {judge_##name, #name, sources, result},
#include "ops/program_list.h"
#undef INSTR
};
const unsigned lnt_judged_count = sizeof lnt_judged_instrs / sizeof lnt_judged_instrs[0];

/* |got - want| in units of want's last place as a float. */
double lnt_ulps_between(float got, lnt_wide want)
{
    const double near = (double)want;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf(got) && (isinf(want) || fabs(want) > 0x1.fffffep127L))
        return (got > 0) == (want > 0) ? 0 : INFINITY;
    if (isinf(want))
        return INFINITY;
    if (LNT_FLUSHES && fabs(want) < 0x1p-126L && fabsf(got) <= 0x1p-126f)
        return 0;
    /* One over the last place: a float has 23 digits behind the leading one, down to 2**-149. */
    uint64_t bits;
    memcpy(&bits, &near, sizeof bits);
    const int64_t exponent = (int64_t)(bits >> 52 & 0x7ff) - 1023,
                  last = (exponent < -126 ? -126 : exponent) - 23;
    const uint64_t inverse_bits = (uint64_t)(1023 - last) << 52;
    double inverse;
    memcpy(&inverse, &inverse_bits, sizeof inverse);
    return (double)fabs(got - want) * inverse;
}
