/* judge.c — what every instruction of elementwise programs should give, and how far off it may be. */
#include "ops/check/judge.h"

#include "base/half.h"
#include "ops/elementwise/program.h"

#include <string.h>
#include <tgmath.h>

#define LNT_REAL lnt_wide
#define LNT_JUDGE(name) wide_##name
#include "ops/check/judge.inc.h"

#define LNT_REAL double
#define LNT_JUDGE(name) quick_##name
#include "ops/check/judge.inc.h"

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
#define INSTR(number, name, sources, result, text)                                                           \
    [number] = {wide_##name, quick_##name, #name, sources, result},
#include "ops/elementwise/program_list.h"
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
