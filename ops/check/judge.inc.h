/* judge.inc.h — what instructions should give, written once for every width of number that judges: LNT_REAL
 * is the type, LNT_JUDGE(NAME) names a function. */

/* a, b, c: sources; p, q: immediates. */
#define JUDGE(name, result)                                                                                  \
    static LNT_REAL LNT_JUDGE(name)(LNT_REAL a, LNT_REAL b, LNT_REAL c, LNT_REAL p, LNT_REAL q)              \
    {                                                                                                        \
        (void)a, (void)b, (void)c, (void)p, (void)q;                                                         \
        return result;                                                                                       \
    }

static LNT_REAL LNT_JUDGE(lesser)(LNT_REAL a, LNT_REAL b)
{
    return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}

static LNT_REAL LNT_JUDGE(greater)(LNT_REAL a, LNT_REAL b)
{
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static LNT_REAL LNT_JUDGE(clamped)(LNT_REAL a, LNT_REAL low, LNT_REAL high)
{
    return LNT_JUDGE(lesser)(LNT_JUDGE(greater)(a, low), high);
}

static LNT_REAL LNT_JUDGE(softplus)(LNT_REAL a)
{
    return LNT_JUDGE(greater)(a, 0) + log1p(exp(-fabs(a)));
}

static LNT_REAL LNT_JUDGE(gate)(LNT_REAL a, LNT_REAL t)
{
    return a / (1 + exp(-t));
}

/* musl's powl loses the sign of what overflows or vanishes. */
static LNT_REAL LNT_JUDGE(power)(LNT_REAL a, LNT_REAL b)
{
    const LNT_REAL y = pow(a, b);
    return a < 0 && fabs(fmod(b, 2)) == 1 ? copysign(y, -1) : y;
}

JUDGE(ADD, a + b)
JUDGE(SUB, a - b)
JUDGE(MUL, (a * b))
JUDGE(DIV, a / b)
JUDGE(MIN, LNT_JUDGE(lesser)(a, b))
JUDGE(MAX, LNT_JUDGE(greater)(a, b))
JUDGE(POW, LNT_JUDGE(power)(a, b))
JUDGE(MOD, fmod(a, b))
JUDGE(PRELU, a < 0 ? a * b : a)
JUDGE(ABS, fabs(a))
JUDGE(NEG, -a)
JUDGE(SQRT, sqrt(a))
JUDGE(RECIPROCAL, 1 / a)
JUDGE(FLOOR, floor(a))
JUDGE(CEIL, ceil(a))
JUDGE(ROUND, rint(a))
JUDGE(SIGN, isnan(a) ? a : (LNT_REAL)((a > 0) - (a < 0)))
JUDGE(EXP, exp(a))
JUDGE(LOG, log(a))
JUDGE(SIN, sin(a))
JUDGE(COS, cos(a))
JUDGE(TANH, tanh(a))
JUDGE(SIGMOID, 1 / (1 + exp(-a)))
JUDGE(ERF, erf(a))
JUDGE(SOFTPLUS, LNT_JUDGE(softplus)(a))
JUDGE(RELU, LNT_JUDGE(greater)(a, 0))
JUDGE(CLIP, LNT_JUDGE(clamped)(a, p, q))
JUDGE(LEAKY_RELU, a < 0 ? p * a : a)
JUDGE(ELU, a < 0 ? p * expm1(q * a) : a)
JUDGE(HARD_SIGMOID, LNT_JUDGE(clamped)(q + p * a, 0, 1))
JUDGE(HARD_SWISH, a *LNT_JUDGE(clamped)(a / 6 + 0.5, 0, 1))
JUDGE(GELU, isinf(a) ? LNT_JUDGE(greater)(a, 0) : a * 0.5 * erfc(-a * (LNT_REAL)0.70710678118654752440L))
JUDGE(GELU_TANH,
      LNT_JUDGE(gate)(a, (LNT_REAL)1.59576912160573071176L * (a + (LNT_REAL)0.044715L * a * a * a)))
JUDGE(SILU, LNT_JUDGE(gate)(a, (p * a)))
JUDGE(MISH, a > 40 ? a : a * tanh(LNT_JUDGE(softplus)(a)))
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
JUDGE(IS_INF, isinf(a))
JUDGE(SQUARE, (a * a))
JUDGE(TO_FLOAT, a)
JUDGE(TO_F16, (LNT_REAL)lnt_f16_to_float(lnt_float_to_f16((float)a)))
JUDGE(TO_BF16, (LNT_REAL)lnt_bf16_to_float(lnt_float_to_bf16((float)a)))

JUDGE(TAN, tan(a))
JUDGE(ASIN, asin(a))
JUDGE(ACOS, acos(a))
JUDGE(ATAN, atan(a))
JUDGE(SINH, sinh(a))
JUDGE(COSH, cosh(a))
JUDGE(ASINH, asinh(a))
JUDGE(ACOSH, a < 1 ? NAN : acosh(a)) /* musl's acoshl gives a number there */
JUDGE(ATANH, atanh(a))

static LNT_REAL LNT_JUDGE(CONST)(LNT_REAL a, LNT_REAL b, LNT_REAL c, LNT_REAL p, LNT_REAL q)
{
    (void)a, (void)b, (void)c, (void)q;
    return p;
}

#undef JUDGE
#undef LNT_REAL
#undef LNT_JUDGE
