/* typed.c — which typed loop a node takes; powers of any two types. */
#include "ops/elementwise/typed.h"

#include "ops/element.h"

#include <math.h>
#include <string.h>

/* ---- powers of mixed types ---- */

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

static int64_t read_integer(const lnt_kernels *kernels, lnt_dtype dtype, const void *p)
{
    int64_t x;
    lnt_cast(kernels, p, dtype, &x, LNT_INT64, 1);
    return x;
}

static double read_real(const lnt_kernels *kernels, lnt_dtype dtype, const void *p)
{
    double x;
    lnt_cast(kernels, p, dtype, &x, LNT_DOUBLE, 1);
    return x;
}

/* An integer to a negative integer power is 0, but for 1 and -1; 0 cannot be taken. */
static bool power_of_integers(int64_t x, int64_t y, int64_t *r)
{
    if (y < 0 && x != 1 && x != -1) {
        *r = 0;
        return x != 0;
    }
    const uint64_t magnitude = y < 0 ? 0 - (uint64_t)y : (uint64_t)y;
    *r = (int64_t)power_wrapped((uint64_t)x, magnitude);
    return true;
}

static bool loop_pow(const lnt_typed_args *a)
{
    const lnt_dtype base = a->dtype[0], exponent = a->dtype[1];
    const bool integers = is_integer(base) && is_integer(exponent);
    for (int64_t i = 0; i < a->n; i++) {
        const void *x = lnt_element_at(a->in[0], base, i), *y = lnt_element_at(a->in[1], exponent, i);
        void *out = lnt_element_at(a->out, base, i);
        if (integers) {
            int64_t r;
            if (!power_of_integers(read_integer(a->kernels, base, x), read_integer(a->kernels, exponent, y),
                                   &r))
                return false;
            lnt_cast(a->kernels, &r, LNT_INT64, out, base, 1);
        } else {
            const double r = pow(read_real(a->kernels, base, x), read_real(a->kernels, exponent, y));
            lnt_cast(a->kernels, &r, LNT_DOUBLE, out, base, 1);
        }
    }
    return true;
}

/* ---- lookup ---- */

static lnt_typed_row row_of(const lnt_node *node)
{
    /* clang-format off */
    switch (node->op->id) {
#define ROW(ident) case LNT_ID_##ident: return LNT_TYPED_##ident;
    ROW(Add) ROW(Sub) ROW(Mul) ROW(Div) ROW(Min) ROW(Max) ROW(PRelu)
    ROW(Equal) ROW(Less) ROW(LessOrEqual) ROW(Greater) ROW(GreaterOrEqual)
    ROW(BitwiseAnd) ROW(BitwiseOr) ROW(BitwiseXor) ROW(BitwiseNot)
    ROW(Abs) ROW(Neg) ROW(Relu) ROW(Sign) ROW(Floor) ROW(Ceil) ROW(Round) ROW(And) ROW(Or) ROW(Xor) ROW(Not)
#undef ROW
    case LNT_ID_Sum:
    case LNT_ID_Mean: return LNT_TYPED_Add;
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
        dtype < LNT_DTYPE_COUNT ? site->kernels->typed->loop[row_of(site->node)][dtype] : NULL;
    return loop ? loop : lnt_typed_real(site->node, dtype, param);
}

lnt_typed_fn lnt_typed_binary(const lnt_site *site, lnt_dtype dtype)
{
    if (LNT_HAS_Pow && site->node->op->id == LNT_ID_Pow)
        return dtype == LNT_BOOL ? NULL : loop_pow;
    return dtype < LNT_DTYPE_COUNT ? site->kernels->typed->loop[row_of(site->node)][dtype] : NULL;
}

lnt_typed_fn lnt_typed_bound(const lnt_site *site, bool upper, lnt_dtype dtype)
{
    const lnt_typed_row bound = upper ? LNT_TYPED_Min : LNT_TYPED_Max;
    return dtype < LNT_DTYPE_COUNT ? site->kernels->typed->loop[bound][dtype] : NULL;
}
