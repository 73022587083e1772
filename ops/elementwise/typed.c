/* typed.c — which typed loop a node takes; powers of any two types. */
#include "ops/elementwise/typed.h"

#include "base/checked.h"
#include "ops/element.h"

#include <math.h>
#include <string.h>

/* ---- powers of mixed types ---- */

enum {
    AT_ONCE = 64,     /* powers of mixed types */
    RAISED = 2048,    /* bytes of numbers that have one exponent */
    SMALL_POWER = 64, /* whole powers that are multiplied out */
    SHORT_POWER = 3   /* those that may be rounded at each product */
};

/* x ** y modulo 2**64. */
static uint64_t power_wrapped(uint64_t x, uint64_t y)
{
    uint64_t r = 1;
    for (; y; y >>= 1, x *= x)
        if (y & 1)
            r *= x;
    return r;
}

static bool is_integer(unsigned dtype)
{
    return dtype >= LNT_UINT8 && dtype != LNT_FLOAT16 && dtype != LNT_DOUBLE && dtype != LNT_BFLOAT16;
}

/* An integer to a negative integer power is 0, but for 1 and -1; 0 cannot be taken. */
static bool power_of_integers(int64_t x, int64_t y, int64_t *r)
{
    if (y < 0 && x != 1 && x != -1) {
        *r = 0;
        return x != 0;
    }
    *r = (int64_t)power_wrapped((uint64_t)x, y < 0 ? 0 - (uint64_t)y : (uint64_t)y);
    return true;
}

/* Products in double err by nothing that a narrower type would show. */
static double power_of_reals(double x, double y, bool narrow)
{
    double r = 1;
    if (!narrow || fabs(y) > SMALL_POWER || y != trunc(y))
        return pow(x, y);
    for (unsigned n = (unsigned)fabs(y); n; n >>= 1, x *= x)
        if (n & 1)
            r *= x;
    return y < 0 ? 1 / r : r;
}

/* Every base to the power of y > 0, by the level's products. */
static void raise_all(const lnt_typed_args *a, lnt_typed_fn multiply, size_t size, uint64_t y)
{
    _Alignas(16) char square[RAISED], product[RAISED];
    const int64_t at_once = RAISED / (int64_t)size;
    for (int64_t i = 0; i < a->n; i += at_once) {
        const int64_t n = lnt_least(at_once, a->n - i);
        const void *x = (const char *)a->in[0] + (size_t)i * size, *r = NULL;
        for (uint64_t left = y; left; left >>= 1) {
            if (left & 1 && r)
                multiply(&(lnt_typed_args){.out = product, .in = {r, x}, .n = n});
            if (left & 1)
                r = r ? product : left == 1 ? x : memcpy(product, x, (size_t)n * size);
            if (left > 1)
                multiply(&(lnt_typed_args){.out = square, .in = {x, x}, .n = n});
            x = square;
        }
        memcpy((char *)a->out + (size_t)i * size, r, (size_t)n * size);
    }
}

/* One exponent for all, of few products or of integers, which wrap around in any order? */
static bool raise_by_one(const lnt_typed_args *a, bool integers)
{
    const lnt_dtype base = a->dtype[0], exponent = a->dtype[1];
    const lnt_typed_fn multiply =
        base < LNT_TYPED_DTYPES ? a->kernels->typed->loop[LNT_TYPED_Mul][base] : NULL;
    const size_t size = lnt_dtype_size(exponent);
    double y;
    if (!multiply || a->n == 0 ||
        memcmp(a->in[1], (const char *)a->in[1] + size, (size_t)(a->n - 1) * size) != 0)
        return false;
    lnt_cast(a->kernels, a->in[1], exponent, &y, LNT_DOUBLE, 1);
    if (!(y >= 1 && y <= (integers ? SMALL_POWER : base == LNT_FLOAT ? SHORT_POWER : 2) && y == trunc(y)))
        return false;
    raise_all(a, multiply, lnt_dtype_size(base), (uint64_t)y);
    return true;
}

static bool loop_pow(const lnt_typed_args *a)
{
    const lnt_dtype base = a->dtype[0], exponent = a->dtype[1];
    const bool integers = is_integer(base) && is_integer(exponent);
    const bool narrow = base == LNT_FLOAT || base == LNT_FLOAT16 || base == LNT_BFLOAT16;
    const lnt_dtype wide = integers ? LNT_INT64 : LNT_DOUBLE;
    union {
        int64_t integer[AT_ONCE];
        double real[AT_ONCE];
    } x, y;
    if ((integers || !is_integer(base)) && raise_by_one(a, integers))
        return true;
    for (int64_t i = 0; i < a->n; i += AT_ONCE) {
        const int64_t n = lnt_least(AT_ONCE, a->n - i);
        bool can = true;
        lnt_cast(a->kernels, lnt_element_at(a->in[0], base, i), base, &x, wide, n);
        lnt_cast(a->kernels, lnt_element_at(a->in[1], exponent, i), exponent, &y, wide, n);
        for (int64_t j = 0; j < n && integers; j++)
            can &= power_of_integers(x.integer[j], y.integer[j], &x.integer[j]);
        for (int64_t j = 0; j < n && !integers; j++)
            x.real[j] = power_of_reals(x.real[j], y.real[j], narrow);
        if (!can)
            return false;
        lnt_cast(a->kernels, &x, wide, lnt_element_at(a->out, base, i), base, n);
    }
    return true;
}

/* ---- bools by one bool: all are decided by it, or none ---- */

static bool loop_bools(const lnt_typed_args *a, lnt_typed_row row, bool deciding)
{
    const lnt_typed_kernels *typed = a->kernels->typed;
    if (!a->one)
        return typed->loop[row][LNT_BOOL](a);
    if ((*(const uint8_t *)a->in[1] != 0) == deciding)
        memset(a->out, deciding, (size_t)a->n);
    else
        typed->cast.step[LNT_CAST_8_bool](a->out, a->in[0], a->n);
    return true;
}

static bool loop_and(const lnt_typed_args *a)
{
    return loop_bools(a, LNT_TYPED_And, false);
}

static bool loop_or(const lnt_typed_args *a)
{
    return loop_bools(a, LNT_TYPED_Or, true);
}

/* ---- lookup ---- */

static lnt_typed_row row_of(const lnt_node *node)
{
    /* clang-format off */
    switch (node->op->id) {
#define ROW(ident) case LNT_ID_##ident: return LNT_TYPED_##ident;
    ROW(Add) ROW(Sub) ROW(Mul) ROW(Div) ROW(Min) ROW(Max) ROW(PRelu)
    ROW(Equal) ROW(Less) ROW(LessOrEqual)
    ROW(BitwiseAnd) ROW(BitwiseOr) ROW(BitwiseXor) ROW(BitwiseNot)
    ROW(Abs) ROW(Neg) ROW(Relu) ROW(Sign) ROW(Floor) ROW(Ceil) ROW(Round) ROW(Sqrt) ROW(Exp) ROW(Tanh)
    ROW(And) ROW(Or) ROW(Xor) ROW(Not)
#undef ROW
    case LNT_ID_Sum:
    case LNT_ID_Mean: return LNT_TYPED_Add;
    case LNT_ID_Greater: return LNT_TYPED_Less;
    case LNT_ID_GreaterOrEqual: return LNT_TYPED_LessOrEqual;
    case LNT_ID_Mod: return lnt_attr_i(node, "fmod", 0) ? LNT_TYPED_Fmod : LNT_TYPED_Mod;
    case LNT_ID_BitShift:
        return strcmp(lnt_attr_s(node, "direction", "LEFT"), "LEFT") == 0 ? LNT_TYPED_ShiftLeft
                                                                       : LNT_TYPED_ShiftRight;
    default: return LNT_TYPED_NONE;
    }
    /* clang-format on */
}

lnt_typed_fn lnt_typed_unary(const lnt_site *site, lnt_dtype dtype, double *param)
{
    const lnt_typed_fn loop =
        dtype < LNT_TYPED_DTYPES ? site->kernels->typed->loop[row_of(site->node)][dtype] : NULL;
    return loop ? loop : lnt_typed_real(site->node, dtype, param);
}

lnt_typed_fn lnt_typed_binary(const lnt_site *site, lnt_dtype dtype)
{
    if (LNT_HAS_Pow && site->node->op->id == LNT_ID_Pow)
        return dtype == LNT_BOOL ? NULL : loop_pow;
    if (LNT_HAS_And && site->node->op->id == LNT_ID_And && dtype == LNT_BOOL)
        return loop_and;
    if (LNT_HAS_Or && site->node->op->id == LNT_ID_Or && dtype == LNT_BOOL)
        return loop_or;
    return dtype < LNT_TYPED_DTYPES ? site->kernels->typed->loop[row_of(site->node)][dtype] : NULL;
}

bool lnt_typed_is_turned(const lnt_node *node)
{
    return node->op->id == LNT_ID_Greater || node->op->id == LNT_ID_GreaterOrEqual;
}

bool lnt_typed_takes_one(const lnt_site *site, lnt_dtype dtype)
{
    switch (row_of(site->node)) {
    case LNT_TYPED_Add:
    case LNT_TYPED_Sub:
    case LNT_TYPED_Mul:
    case LNT_TYPED_Min:
    case LNT_TYPED_Max: return LNT_TYPED_TAKES_ONE(dtype);
    case LNT_TYPED_Div: return LNT_TYPED_TAKES_ONE(dtype) && dtype == LNT_DOUBLE;
    case LNT_TYPED_And:
    case LNT_TYPED_Or: return dtype == LNT_BOOL;
    default: return false;
    }
}

lnt_typed_fn lnt_typed_bound(const lnt_site *site, bool upper, lnt_dtype dtype)
{
    const lnt_typed_row bound = upper ? LNT_TYPED_Min : LNT_TYPED_Max;
    return dtype < LNT_TYPED_DTYPES ? site->kernels->typed->loop[bound][dtype] : NULL;
}
