/* typed.c — integer and double loops. Integers wrap around; what C leaves undefined is an error or defined
 * here. */
#include "ops/elementwise/typed.h"

#include "ops/number.h"

#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("tree-loop-vectorize", "vect-cost-model=dynamic")
#endif

/* X(type, lnt_dtype, unsigned type of the same size) */
#define SIGNED_TYPES(X)                                                                                      \
    X(int8_t, INT8, uint8_t)                                                                                 \
    X(int16_t, INT16, uint16_t)                                                                              \
    X(int32_t, INT32, uint32_t)                                                                              \
    X(int64_t, INT64, uint64_t)
#define UNSIGNED_TYPES(X)                                                                                    \
    X(uint8_t, UINT8, uint8_t)                                                                               \
    X(uint16_t, UINT16, uint16_t)                                                                            \
    X(uint32_t, UINT32, uint32_t)                                                                            \
    X(uint64_t, UINT64, uint64_t)
#define REAL_TYPES(X)                                                                                        \
    X(float, FLOAT, float)                                                                                   \
    X(double, DOUBLE, double)
#define INTEGER_TYPES(X) SIGNED_TYPES(X) UNSIGNED_TYPES(X)
#define ALL_TYPES(X) INTEGER_TYPES(X) REAL_TYPES(X)

/* loop_NAME_DTYPE: r = result of x (and y); ok says whether the operands can be taken. For common types the
 * compiler is told the strides of elements side by side and of one number, and makes vectors. */
#define BINARY(name, type, dtype, result_type, ok, result)                                                   \
    static inline __attribute__((always_inline)) bool walk_##name##_##dtype(                                 \
        const lnt_typed_args *a, int64_t x_stride, int64_t y_stride, int64_t out_stride)                     \
    {                                                                                                        \
        const char *px = a->in[0], *py = a->in[1];                                                           \
        char *out = a->out;                                                                                  \
        for (int64_t i = 0, n = a->n; i < n; i++) {                                                          \
            const type x = *(const type *)(const void *)(px + i * x_stride),                                 \
                       y = *(const type *)(const void *)(py + i * y_stride);                                 \
            if (!(ok))                                                                                       \
                return false;                                                                                \
            *(result_type *)(void *)(out + i * out_stride) = (result_type)(result);                          \
        }                                                                                                    \
        return true;                                                                                         \
    }                                                                                                        \
    static bool loop_##name##_##dtype(const lnt_typed_args *a)                                               \
    {                                                                                                        \
        const int64_t in = sizeof(type), out = sizeof(result_type);                                          \
        const bool dense = LNT_COMMON_##dtype && a->stride[0] == in && a->out_stride == out;                 \
        if (dense && a->stride[1] == in)                                                                     \
            return walk_##name##_##dtype(a, in, in, out);                                                    \
        if (dense && a->stride[1] == 0)                                                                      \
            return walk_##name##_##dtype(a, in, 0, out);                                                     \
        return walk_##name##_##dtype(a, a->stride[0], a->stride[1], a->out_stride);                          \
    }
#define UNARY(name, type, dtype, result)                                                                     \
    static inline __attribute__((always_inline)) bool walk_##name##_##dtype(                                 \
        const lnt_typed_args *a, int64_t stride, int64_t out_stride)                                         \
    {                                                                                                        \
        const char *px = a->in[0];                                                                           \
        char *out = a->out;                                                                                  \
        for (int64_t i = 0, n = a->n; i < n; i++) {                                                          \
            const type x = *(const type *)(const void *)(px + i * stride);                                   \
            *(type *)(void *)(out + i * out_stride) = (type)(result);                                        \
        }                                                                                                    \
        return true;                                                                                         \
    }                                                                                                        \
    static bool loop_##name##_##dtype(const lnt_typed_args *a)                                               \
    {                                                                                                        \
        const int64_t size = sizeof(type);                                                                   \
        if (LNT_COMMON_##dtype && a->stride[0] == size && a->out_stride == size)                             \
            return walk_##name##_##dtype(a, size, size);                                                     \
        return walk_##name##_##dtype(a, a->stride[0], a->out_stride);                                        \
    }

/* Sums and products through uint64_t: exact modulo the type's range. */
#define WRAP(op) ((uint64_t)x op(uint64_t) y)
/* The smallest integer by -1 is out of range. */
#define DIVIDES(type, utype) (y != 0 && !(y == -1 && x == (type)((utype)1 << (sizeof x * 8 - 1))))

#define INTEGER_LOOPS(type, dtype, utype)                                                                    \
    BINARY(Add, type, dtype, type, true, WRAP(+))                                                            \
    BINARY(Sub, type, dtype, type, true, WRAP(-))                                                            \
    BINARY(Mul, type, dtype, type, true, WRAP(*))                                                            \
    BINARY(BitwiseAnd, type, dtype, type, true, x &y)                                                        \
    BINARY(BitwiseOr, type, dtype, type, true, x | y)                                                        \
    BINARY(BitwiseXor, type, dtype, type, true, x ^ y)                                                       \
    UNARY(BitwiseNot, type, dtype, ~x)
#define SIGNED_LOOPS(type, dtype, utype)                                                                     \
    BINARY(Div, type, dtype, type, DIVIDES(type, utype), x / y)                                              \
    BINARY(Fmod, type, dtype, type, DIVIDES(type, utype), x % y)                                             \
    BINARY(Mod, type, dtype, type, DIVIDES(type, utype), x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0)) \
    BINARY(PRelu, type, dtype, type, true, x < 0 ? (type)WRAP(*) : x)                                        \
    UNARY(Abs, type, dtype, x < 0 ? (type)(0 - (uint64_t)x) : x)                                             \
    UNARY(Neg, type, dtype, 0 - (uint64_t)x)                                                                 \
    UNARY(Relu, type, dtype, x < 0 ? 0 : x)                                                                  \
    UNARY(Sign, type, dtype, (x > 0) - (x < 0))
#define UNSIGNED_LOOPS(type, dtype, utype)                                                                   \
    BINARY(Div, type, dtype, type, y != 0, x / y)                                                            \
    BINARY(Fmod, type, dtype, type, y != 0, x % y)                                                           \
    BINARY(ShiftLeft, type, dtype, type, true, y < sizeof x * 8 ? (uint64_t)x << y : 0)                      \
    BINARY(ShiftRight, type, dtype, type, true, y < sizeof x * 8 ? x >> y : 0)                               \
    UNARY(Same, type, dtype, x)                                                                              \
    UNARY(Sign, type, dtype, x > 0)
#define REAL_LOOPS(type, dtype, utype)                                                                       \
    BINARY(Add, type, dtype, type, true, x + y)                                                              \
    BINARY(Sub, type, dtype, type, true, x - y)                                                              \
    BINARY(Mul, type, dtype, type, true, (x * y))                                                            \
    BINARY(Div, type, dtype, type, true, x / y)                                                              \
    BINARY(Fmod, type, dtype, type, true, fmod((double)x, (double)y))                                        \
    BINARY(Mod, type, dtype, type, true, (double)x - floor((double)x / (double)y) * (double)y)               \
    BINARY(PRelu, type, dtype, type, true, x < 0 ? x * y : x)
/* x != x comes first so that a NaN on either side is the result. */
#define ALL_LOOPS(type, dtype, utype)                                                                        \
    BINARY(Min, type, dtype, type, true, x != x || x < y ? x : y)                                            \
    BINARY(Max, type, dtype, type, true, x != x || x > y ? x : y)                                            \
    BINARY(Equal, type, dtype, uint8_t, true, x == y)                                                        \
    BINARY(Less, type, dtype, uint8_t, true, x < y)                                                          \
    BINARY(LessOrEqual, type, dtype, uint8_t, true, x <= y)                                                  \
    BINARY(Greater, type, dtype, uint8_t, true, x > y)                                                       \
    BINARY(GreaterOrEqual, type, dtype, uint8_t, true, x >= y)

/* Bytes of bools: any but 0 is true, results are 1. */
#define BOOL_LOOPS(type, dtype, utype)                                                                       \
    BINARY(And, type, dtype, type, true, (x != 0) & (y != 0))                                                \
    BINARY(Or, type, dtype, type, true, (x | y) != 0)                                                        \
    BINARY(Xor, type, dtype, type, true, (x != 0) ^ (y != 0))                                                \
    BINARY(Equal, type, dtype, type, true, (x != 0) == (y != 0))                                             \
    UNARY(Not, type, dtype, x == 0)

INTEGER_TYPES(INTEGER_LOOPS)
BOOL_LOOPS(uint8_t, BOOL, uint8_t)
SIGNED_TYPES(SIGNED_LOOPS)
UNSIGNED_TYPES(UNSIGNED_LOOPS)
REAL_TYPES(REAL_LOOPS)
ALL_TYPES(ALL_LOOPS)

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

static int64_t read_integer(lnt_dtype dtype, const void *p)
{
    int64_t x;
    lnt_cast(p, dtype, 0, &x, LNT_INT64, 0, 1);
    return x;
}

static double read_real(lnt_dtype dtype, const void *p)
{
    double x;
    lnt_cast(p, dtype, 0, &x, LNT_DOUBLE, 0, 1);
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
        const char *x = a->in[0] + i * a->stride[0], *y = a->in[1] + i * a->stride[1];
        char *out = a->out + i * a->out_stride;
        if (integers) {
            int64_t r;
            if (!power_of_integers(read_integer(base, x), read_integer(exponent, y), &r))
                return false;
            lnt_cast(&r, LNT_INT64, 0, out, base, 0, 1);
        } else {
            const double r = pow(read_real(base, x), read_real(exponent, y));
            lnt_cast(&r, LNT_DOUBLE, 0, out, base, 0, 1);
        }
    }
    return true;
}

/* ---- choosing by mask ---- */

#define WHERE(type)                                                                                          \
    static bool where_##type(const lnt_typed_args *a)                                                        \
    {                                                                                                        \
        for (int64_t i = 0; i < a->n; i++) {                                                                 \
            const unsigned j = a->in[0][i * a->stride[0]] ? 1 : 2;                                           \
            memcpy(a->out + i * a->out_stride, a->in[j] + i * a->stride[j], sizeof(type));                   \
        }                                                                                                    \
        return true;                                                                                         \
    }
WHERE(uint8_t)
WHERE(uint16_t)
WHERE(uint32_t)
WHERE(uint64_t)

lnt_typed_fn lnt_typed_where(size_t size)
{
    return size == 1   ? where_uint8_t
           : size == 2 ? where_uint16_t
           : size == 4 ? where_uint32_t
           : size == 8 ? where_uint64_t
                       : NULL;
}

/* ---- lookup ---- */

typedef enum row {
    ROW_NONE,
    Add,
    Sub,
    Mul,
    Div,
    Fmod,
    Mod,
    Min,
    Max,
    PRelu,
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    BitwiseNot,
    ShiftLeft,
    ShiftRight,
    Abs,
    Neg,
    Relu,
    Sign,
    And,
    Or,
    Xor,
    Not,
    ROW_COUNT
} row;

/* Which rows the operators of this library can ask for. */
enum {
    WITH_Add = LNT_HAS_Add || LNT_HAS_Sum || LNT_HAS_Mean,
    WITH_Sub = LNT_HAS_Sub,
    WITH_Mul = LNT_HAS_Mul,
    WITH_Div = LNT_HAS_Div,
    WITH_Fmod = LNT_HAS_Mod,
    WITH_Mod = LNT_HAS_Mod,
    WITH_Min = LNT_HAS_Min || LNT_HAS_Clip,
    WITH_Max = LNT_HAS_Max || LNT_HAS_Clip,
    WITH_PRelu = LNT_HAS_PRelu,
    WITH_Equal = LNT_HAS_Equal,
    WITH_Less = LNT_HAS_Less,
    WITH_LessOrEqual = LNT_HAS_LessOrEqual,
    WITH_Greater = LNT_HAS_Greater,
    WITH_GreaterOrEqual = LNT_HAS_GreaterOrEqual,
    WITH_BitwiseAnd = LNT_HAS_BitwiseAnd,
    WITH_BitwiseOr = LNT_HAS_BitwiseOr,
    WITH_BitwiseXor = LNT_HAS_BitwiseXor,
    WITH_BitwiseNot = LNT_HAS_BitwiseNot,
    WITH_ShiftLeft = LNT_HAS_BitShift,
    WITH_ShiftRight = LNT_HAS_BitShift,
    WITH_Abs = LNT_HAS_Abs,
    WITH_Neg = LNT_HAS_Neg,
    WITH_Relu = LNT_HAS_Relu,
    WITH_Sign = LNT_HAS_Sign,
    WITH_And = LNT_HAS_And,
    WITH_Or = LNT_HAS_Or,
    WITH_Xor = LNT_HAS_Xor,
    WITH_Not = LNT_HAS_Not
};

/* clang-format off */
#define CELL(name, dtype, loop) [name][LNT_##dtype] = WITH_##name ? loop_##loop##_##dtype : NULL,
#define ENTRY(name, dtype) CELL(name, dtype, name)
#define INTEGER_ENTRIES(type, dtype, utype)                                                                  \
    ENTRY(BitwiseAnd, dtype) ENTRY(BitwiseOr, dtype) ENTRY(BitwiseXor, dtype) ENTRY(BitwiseNot, dtype)       \
    ENTRY(Sign, dtype)
#define SIGNED_ENTRIES(type, dtype, utype)                                                                   \
    ENTRY(Mod, dtype) ENTRY(PRelu, dtype) ENTRY(Abs, dtype) ENTRY(Neg, dtype) ENTRY(Relu, dtype)
#define UNSIGNED_ENTRIES(type, dtype, utype)                                                                 \
    ENTRY(ShiftLeft, dtype) ENTRY(ShiftRight, dtype)                                                         \
    CELL(Mod, dtype, Fmod) CELL(PRelu, dtype, Same) CELL(Abs, dtype, Same) CELL(Relu, dtype, Same)
#define REAL_ENTRIES(type, dtype, utype) ENTRY(Mod, dtype) ENTRY(PRelu, dtype)
#define ALL_ENTRIES(type, dtype, utype)                                                                      \
    ENTRY(Add, dtype) ENTRY(Sub, dtype) ENTRY(Mul, dtype) ENTRY(Div, dtype) ENTRY(Fmod, dtype)               \
    ENTRY(Min, dtype) ENTRY(Max, dtype)                                                                      \
    ENTRY(Equal, dtype) ENTRY(Less, dtype) ENTRY(LessOrEqual, dtype)                                         \
    ENTRY(Greater, dtype) ENTRY(GreaterOrEqual, dtype)

static const lnt_typed_fn loops[ROW_COUNT][LNT_DTYPE_COUNT] = {
    INTEGER_TYPES(INTEGER_ENTRIES)
    SIGNED_TYPES(SIGNED_ENTRIES)
    UNSIGNED_TYPES(UNSIGNED_ENTRIES)
    REAL_TYPES(REAL_ENTRIES)
    ALL_TYPES(ALL_ENTRIES)
    ENTRY(And, BOOL) ENTRY(Or, BOOL) ENTRY(Xor, BOOL) ENTRY(Equal, BOOL) ENTRY(Not, BOOL)
};
/* clang-format on */

static row row_of(const lnt_node *node)
{
    /* clang-format off */
    switch (node->op->id) {
#define ROW(ident) case LNT_ID_##ident: return ident;
    ROW(Add) ROW(Sub) ROW(Mul) ROW(Div) ROW(Min) ROW(Max) ROW(PRelu)
    ROW(Equal) ROW(Less) ROW(LessOrEqual) ROW(Greater) ROW(GreaterOrEqual)
    ROW(BitwiseAnd) ROW(BitwiseOr) ROW(BitwiseXor) ROW(BitwiseNot)
    ROW(Abs) ROW(Neg) ROW(Relu) ROW(Sign) ROW(And) ROW(Or) ROW(Xor) ROW(Not)
#undef ROW
    case LNT_ID_Sum:
    case LNT_ID_Mean: return Add;
    case LNT_ID_Mod: return lnt_attr_i(node, "fmod", 0) ? Fmod : Mod;
    case LNT_ID_BitShift:
        return strcmp(lnt_attr_s(node, "direction", "LEFT"), "LEFT") == 0 ? ShiftLeft : ShiftRight;
    default: return ROW_NONE;
    }
    /* clang-format on */
}

lnt_typed_fn lnt_typed_unary(const lnt_node *node, lnt_dtype dtype, double *param)
{
    const lnt_typed_fn integer = dtype < LNT_DTYPE_COUNT ? loops[row_of(node)][dtype] : NULL;
    return integer ? integer : lnt_typed_real(node, dtype, param);
}

lnt_typed_fn lnt_typed_binary(const lnt_node *node, lnt_dtype dtype)
{
    if (LNT_HAS_Pow && node->op->id == LNT_ID_Pow)
        return dtype == LNT_BOOL ? NULL : loop_pow;
    return dtype < LNT_DTYPE_COUNT ? loops[row_of(node)][dtype] : NULL;
}

lnt_typed_fn lnt_typed_bound(bool upper, lnt_dtype dtype)
{
    return dtype < LNT_DTYPE_COUNT ? loops[upper ? Min : Max][dtype] : NULL;
}
