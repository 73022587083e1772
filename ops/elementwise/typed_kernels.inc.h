/* typed_kernels.inc.h — loops over elements side by side, one for each operator and type; compiled per level, which
 * defines TABLE, the name of its table.
 *
 * Plain C, of which the compiler makes vectors of the level. Integers wrap around; what C leaves undefined is refused
 * or defined here. */
#include "ops/elementwise/typed_kernels.h"
#include "ops/vectorize.h"

#include <math.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* X(type, lnt_dtype, unsigned type of the same size, its lnt_dtype, type to divide in)
 *   On x86 integers of 8 and 32 bits are divided as floats and doubles, which hold them and come in vectors: a quotient
 *   that is no integer is further from one than it is rounded by. Others, and ARM, divide faster one by one, or hardly
 *   ever. */
#if defined(__x86_64__)
#define QUOTIENT_8 float
#define QUOTIENT_32(type) double
#else
#define QUOTIENT_8 int
#define QUOTIENT_32(type) type
#endif
#define SIGNED_TYPES(X)                                                                                      \
    X(int8_t, INT8, uint8_t, UINT8, QUOTIENT_8)                                                              \
    X(int16_t, INT16, uint16_t, UINT16, int)                                                                 \
    X(int32_t, INT32, uint32_t, UINT32, QUOTIENT_32(int32_t))                                                \
    X(int64_t, INT64, uint64_t, UINT64, int64_t)
#define UNSIGNED_TYPES(X)                                                                                    \
    X(uint8_t, UINT8, uint8_t, UINT8, QUOTIENT_8)                                                            \
    X(uint16_t, UINT16, uint16_t, UINT16, int)                                                               \
    X(uint32_t, UINT32, uint32_t, UINT32, QUOTIENT_32(uint32_t))                                             \
    X(uint64_t, UINT64, uint64_t, UINT64, uint64_t)
#define DOUBLE_TYPE(X) X(double, DOUBLE, double, DOUBLE, double)
#define REAL_TYPES(X) X(float, FLOAT, float, FLOAT, float) DOUBLE_TYPE(X)
#define INTEGER_TYPES(X) SIGNED_TYPES(X) UNSIGNED_TYPES(X)
#define ALL_TYPES(X) INTEGER_TYPES(X) REAL_TYPES(X)
#define NOT_FLOAT_TYPES(X) INTEGER_TYPES(X) DOUBLE_TYPE(X)

/* What models hardly compute with is left to plain loops, a few kilobytes smaller; on x86, where there is room, not
 * 16-bit integers, which sounds are made of. */
#if defined(__GNUC__) && !defined(__clang__)
#define RARE __attribute__((optimize("no-tree-loop-vectorize")))
#else
#define RARE
#endif
#if defined(__x86_64__)
#define RARE_16
#else
#define RARE_16 RARE
#endif
#define HOW_FLOAT RARE /* programs have them, and nothing else asks for most */
#define HOW_DOUBLE
#define HOW_INT8
#define HOW_INT16 RARE_16
#define HOW_INT32
#define HOW_INT64
#define HOW_UINT8
#define HOW_UINT16 RARE_16
#define HOW_UINT32 RARE
#define HOW_UINT64 RARE
#define HOW_BOOL

/* Counts of each element are what unsigned integers of 32 bits are shifted by in vectors, if by AVX2. */
#if defined(__AVX2__)
#define HOW_SHIFT(dtype)
#else
#define HOW_SHIFT(dtype) HOW_##dtype
#endif

/* loop_NAME_DTYPE: r = result of x (and y). first: a statement before the loop. */
#define LOOP_AS(how, first, name, type, dtype, result_type, result)                                          \
    how static bool loop_##name##_##dtype(const lnt_typed_args *a)                                           \
    {                                                                                                        \
        const type *px = a->in[0], *py = a->in[1];                                                           \
        result_type *out = a->out;                                                                           \
        const int64_t n = a->n;                                                                              \
        first LNT_INDEPENDENT for (int64_t i = 0; i < n; i++)                                                \
        {                                                                                                    \
            const type x = px[i], y = py[i];                                                                 \
            out[i] = (result_type)(result);                                                                  \
        }                                                                                                    \
        return true;                                                                                         \
    }
#define LOOP(first, name, type, dtype, result_type, result)                                                  \
    LOOP_AS(HOW_##dtype, first, name, type, dtype, result_type, result)
#define BINARY(name, type, dtype, result_type, result) LOOP(, name, type, dtype, result_type, result)
/* Of one y, which is not written out as often as there are x. */
#define OF_ONE(type, dtype, result_type, result)                                                             \
    if (LNT_TYPED_TAKES_ONE(LNT_##dtype) && a->one) {                                                        \
        const type y = *py;                                                                                  \
        LNT_INDEPENDENT                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const type x = px[i];                                                                            \
            out[i] = (result_type)(result);                                                                  \
        }                                                                                                    \
        return true;                                                                                         \
    }
#define BINARY_ONE(name, type, dtype, result_type, result)                                                   \
    LOOP(OF_ONE(type, dtype, result_type, result), name, type, dtype, result_type, result)
#define UNARY(name, type, dtype, result)                                                                     \
    HOW_##dtype static bool loop_##name##_##dtype(const lnt_typed_args *a)                                   \
    {                                                                                                        \
        const type *px = a->in[0];                                                                           \
        type *out = a->out;                                                                                  \
        const int64_t n = a->n;                                                                              \
        LNT_INDEPENDENT                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const type x = px[i];                                                                            \
            out[i] = (type)(result);                                                                         \
        }                                                                                                    \
        return true;                                                                                         \
    }
/* ok: can these operands be taken? */
#define CHECKED(name, type, dtype, ok, result)                                                               \
    HOW_##dtype static bool loop_##name##_##dtype(const lnt_typed_args *a)                                   \
    {                                                                                                        \
        const type *px = a->in[0], *py = a->in[1];                                                           \
        type *out = a->out;                                                                                  \
        const int64_t n = a->n;                                                                              \
        unsigned bad = 0;                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const type x = px[i], y = py[i];                                                                 \
            (void)x;                                                                                         \
            bad |= !(ok);                                                                                    \
        }                                                                                                    \
        if (bad)                                                                                             \
            return false;                                                                                    \
        LNT_INDEPENDENT                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const type x = px[i], y = py[i];                                                                 \
            out[i] = (type)(result);                                                                         \
        }                                                                                                    \
        return true;                                                                                         \
    }

/* Of x that is brought to low..high before, by a loop of its own: in one the compiler would branch there. */
#define BOUNDED(name, low, high, result)                                                                     \
    static bool loop_##name##_DOUBLE(const lnt_typed_args *a)                                                \
    {                                                                                                        \
        const double *px = a->in[0];                                                                         \
        double *out = a->out;                                                                                \
        const int64_t n = a->n;                                                                              \
        LNT_INDEPENDENT                                                                                      \
        for (int64_t i = 0; i < n; i++)                                                                      \
            out[i] = px[i] < (low) ? (low) : px[i] > (high) ? (high) : px[i];                                \
        LNT_INDEPENDENT                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const double x = out[i];                                                                         \
            out[i] = (result);                                                                               \
        }                                                                                                    \
        return true;                                                                                         \
    }

/* Modulo the type's range; of narrow types as unsigned, for a product of two uint16_t is an int. */
#define WRAP(utype, op) ((utype)(1u * (utype)x op(1u * (utype)y)))
#define QUOTIENT(type, real) ((type)((real)x / (real)y))
#define REST(type, real) (x - QUOTIENT(type, real) * y)
/* The smallest integer by -1 is out of range. */
#define DIVIDES(type, utype) (y != 0 && !(y == -1 && x == (type)((utype)1 << (sizeof x * 8 - 1))))

#define DIV(type, dtype, utype, real) CHECKED(Div, type, dtype, DIVIDES(type, utype), QUOTIENT(type, real))
#define DIV_INT8 DIV
#define DIV_INT16 DIV
#if defined(__x86_64__)
/* By one divisor: by its inverse, which is too large by less than a quotient that is no integer lies below the next.
 * Where a quotient cannot be taken another one is, until all are done. */
#define DIV_INT32(type, dtype, utype, real)                                                                  \
    static bool loop_Div_INT32(const lnt_typed_args *a)                                                      \
    {                                                                                                        \
        const int32_t *px = a->in[0], *py = a->in[1];                                                        \
        int32_t *out = a->out;                                                                               \
        const int64_t n = a->n;                                                                              \
        int32_t bad = 0;                                                                                     \
        if (n > 0 && py[0] != 0 && py[0] != -1 && memcmp(py, py + 1, (size_t)(n - 1) * sizeof *py) == 0) {   \
            const double inverse = (1 + 0x1p-50) / py[0];                                                    \
            LNT_INDEPENDENT                                                                                  \
            for (int64_t i = 0; i < n; i++)                                                                  \
                out[i] = (int32_t)((double)px[i] * inverse);                                                 \
            return true;                                                                                     \
        }                                                                                                    \
        LNT_INDEPENDENT                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const int32_t x = px[i], y = py[i], no = -(y == 0) | (-(y == -1) & -(x == INT32_MIN));           \
            bad |= no;                                                                                       \
            out[i] = (int32_t)((double)x / (double)((y & ~no) | (1 & no)));                                  \
        }                                                                                                    \
        return !bad;                                                                                         \
    }
/* Numbers that doubles hold divide as such in half the time. */
#define DIV_INT64(type, dtype, utype, real)                                                                  \
    static bool loop_Div_INT64(const lnt_typed_args *a)                                                      \
    {                                                                                                        \
        const int64_t *px = a->in[0], *py = a->in[1], n = a->n;                                              \
        int64_t *out = a->out, bits = 0;                                                                     \
        unsigned bad = 0;                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const int64_t x = px[i], y = py[i];                                                              \
            bad |= !DIVIDES(int64_t, uint64_t);                                                              \
            bits |= (x ^ x >> 63) | (y ^ y >> 63);                                                           \
        }                                                                                                    \
        for (int64_t i = 0; i < n && !bad; i++)                                                              \
            out[i] = bits >> 53 ? px[i] / py[i] : (int64_t)((double)px[i] / (double)py[i]);                  \
        return !bad;                                                                                         \
    }
#else
#define DIV_INT32 DIV
#define DIV_INT64 DIV
#endif

/* What is the same bits for signed and unsigned. */
#define WRAPPING_LOOPS(type, dtype, utype, udtype, real)                                                     \
    BINARY_ONE(Add, type, dtype, type, WRAP(utype, +))                                                       \
    BINARY_ONE(Sub, type, dtype, type, WRAP(utype, -))                                                       \
    BINARY_ONE(Mul, type, dtype, type, WRAP(utype, *))                                                       \
    BINARY(Equal, type, dtype, uint8_t, x == y)                                                              \
    BINARY(BitwiseAnd, type, dtype, type, x &y)                                                              \
    BINARY(BitwiseOr, type, dtype, type, x | y)                                                              \
    BINARY(BitwiseXor, type, dtype, type, x ^ y)                                                             \
    UNARY(BitwiseNot, type, dtype, ~x)
#define SIGNED_LOOPS(type, dtype, utype, udtype, real)                                                       \
    DIV_##dtype(type, dtype, utype, real)                                                                    \
    CHECKED(Fmod, type, dtype, DIVIDES(type, utype), REST(type, real))                                       \
    CHECKED(Mod, type, dtype, DIVIDES(type, utype),                                                          \
            REST(type, real) + (REST(type, real) != 0 && (x < 0) != (y < 0) ? y : 0))                        \
    BINARY(PRelu, type, dtype, type, x < 0 ? (type)WRAP(utype, *) : x)                                       \
    UNARY(Abs, type, dtype, x < 0 ? (type)(0u - (utype)x) : x)                                               \
    UNARY(Neg, type, dtype, 0u - (utype)x)                                                                   \
    UNARY(Relu, type, dtype, x < 0 ? 0 : x)                                                                  \
    UNARY(Sign, type, dtype, (x > 0) - (x < 0))
#define UNSIGNED_LOOPS(type, dtype, utype, udtype, real)                                                     \
    CHECKED(Div, type, dtype, y != 0, QUOTIENT(type, real))                                                  \
    CHECKED(Fmod, type, dtype, y != 0, REST(type, real))                                                     \
    LOOP_AS(HOW_SHIFT(dtype), , ShiftLeft, type, dtype, type, y < sizeof x * 8 ? 1u * x << y : 0)            \
    LOOP_AS(HOW_SHIFT(dtype), , ShiftRight, type, dtype, type, y < sizeof x * 8 ? 1u * x >> y : 0)           \
    UNARY(Same, type, dtype, x)                                                                              \
    UNARY(Sign, type, dtype, x > 0)
#define REAL_LOOPS(type, dtype, utype, udtype, real)                                                         \
    BINARY_ONE(Add, type, dtype, type, x + y)                                                                \
    BINARY_ONE(Mul, type, dtype, type, (x * y))                                                              \
    BINARY(Mod, type, dtype, type, (double)x - floor((double)x / (double)y) * (double)y)
/* e ** x = (1 + p) * low * high, two powers of 2 that are in range where their product is not: x less the nearest
 * multiple of ln 2, in two parts (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980), is 0.35
 * at most, where Taylor's polynomial of degree 13 errs by less than a rounding. NaN comes through in p. */
typedef struct powers {
    double p, low, high;
} powers;

static inline double power_of_two(double n) /* for whole n, -1023 < n < 1024 */
{
    const double shifted = n + (0x1.8p52 + 1023);
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits <<= 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static inline powers split_exponential(double x)
{
    const double nearest = 0x1.8p52;
    const double n = (x * 0x1.71547652b82fep+0 + nearest) - nearest, half = (n * 0.5 + nearest) - nearest;
    const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    return (powers){r + r * r * p, power_of_two(half), power_of_two(n - half)};
}

static inline double exponential(double x)
{
    const powers e = split_exponential(x);
    return (e.low + e.low * e.p) * e.high;
}

/* By e ** 2x - 1, which small x do not cancel in. */
static inline double hyperbolic_tangent(double x)
{
    const powers e = split_exponential(2 * x);
    const double power = e.low * e.high, less_one = power * e.p + (power - 1);
    return copysign(less_one / (less_one + 2), x);
}

/* The functions that are worth no call for each number. */
#define DOUBLE_LOOPS                                                                                         \
    BINARY_ONE(Sub, double, DOUBLE, double, x - y)                                                           \
    BINARY_ONE(Div, double, DOUBLE, double, x / y)                                                           \
    BINARY(Equal, double, DOUBLE, uint8_t, x == y)                                                           \
    BINARY(Fmod, double, DOUBLE, double, fmod(x, y))                                                         \
    BINARY(PRelu, double, DOUBLE, double, x < 0 ? x * y : x)                                                 \
    UNARY(Abs, double, DOUBLE, fabs(x))                                                                      \
    UNARY(Neg, double, DOUBLE, -x)                                                                           \
    UNARY(Relu, double, DOUBLE, x < 0 ? 0 : x)                                                               \
    UNARY(Sign, double, DOUBLE, x > 0 ? 1 : x < 0 ? -1 : x)                                                  \
    UNARY(Floor, double, DOUBLE, floor(x))                                                                   \
    UNARY(Ceil, double, DOUBLE, ceil(x))                                                                     \
    UNARY(Round, double, DOUBLE, nearbyint(x))                                                               \
    UNARY(Sqrt, double, DOUBLE, sqrt(x))                                                                     \
    BOUNDED(Exp, -746.0, 710.0, exponential(x))                                                              \
    BOUNDED(Tanh, -20.0, 20.0, hyperbolic_tangent(x)) /* beyond them it is 1 */
/* x != x comes first so that a NaN on either side is the result. */
#define ALL_LOOPS(type, dtype, utype, udtype, real)                                                          \
    BINARY_ONE(Min, type, dtype, type, x != x || x < y ? x : y)                                              \
    BINARY_ONE(Max, type, dtype, type, x != x || x > y ? x : y)
#define COMPARING_LOOPS(type, dtype, utype, udtype, real)                                                    \
    BINARY(Less, type, dtype, uint8_t, x < y)                                                                \
    BINARY(LessOrEqual, type, dtype, uint8_t, x <= y)

SIGNED_TYPES(WRAPPING_LOOPS)
SIGNED_TYPES(SIGNED_LOOPS)
UNSIGNED_TYPES(UNSIGNED_LOOPS)
REAL_TYPES(REAL_LOOPS)
ALL_TYPES(ALL_LOOPS)
NOT_FLOAT_TYPES(COMPARING_LOOPS)
DOUBLE_LOOPS

/* Bytes of bools: any but 0 is true, results are 1. */
BINARY(And, uint8_t, BOOL, uint8_t, (x != 0) & (y != 0))
BINARY(Or, uint8_t, BOOL, uint8_t, (x | y) != 0)
BINARY(Xor, uint8_t, BOOL, uint8_t, (x != 0) ^ (y != 0))
BINARY(Equal, uint8_t, BOOL, uint8_t, (x != 0) == (y != 0))
UNARY(Not, uint8_t, BOOL, x == 0)

/* in[0] ? in[1] : in[2] */
#define WHERE(type)                                                                                          \
    static bool where_##type(const lnt_typed_args *a)                                                        \
    {                                                                                                        \
        const uint8_t *mask = a->in[0];                                                                      \
        const type *px = a->in[1], *py = a->in[2];                                                           \
        type *out = a->out;                                                                                  \
        const int64_t n = a->n;                                                                              \
        LNT_INDEPENDENT                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const type x = px[i], y = py[i];                                                                 \
            out[i] = mask[i] ? x : y;                                                                        \
        }                                                                                                    \
        return true;                                                                                         \
    }
WHERE(uint8_t)
WHERE(uint16_t)
WHERE(uint32_t)
WHERE(uint64_t)

static void clip_bytes(uint8_t *y, const uint8_t *x, uint8_t low, uint8_t high, uint8_t flip, int64_t n)
{
    low ^= flip, high ^= flip;
    LNT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const uint8_t given = x[i] ^ flip, v = given > low ? given : low;
        y[i] = (v < high ? v : high) ^ flip;
    }
}

static void pick_double(double *best, int64_t *at, const double *x, int64_t index, double sign, bool last,
                        int64_t n)
{
    LNT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const double a = x[i] * sign, b = best[i] * sign;
        const bool beats = ((b == b) & !(a <= b)) | (last & ((a == b) | (a != a)));
        best[i] = beats ? x[i] : best[i];
        at[i] = beats ? index : at[i];
    }
}

#include "ops/elementwise/along_kernels.inc.h"
#include "ops/elementwise/cast_kernels.inc.h"

/* Which loops the operators of this library can ask for. */
enum {
    WITH_ARG = LNT_HAS_ArgMax || LNT_HAS_ArgMin,
    WITH_SCATTER = LNT_HAS_Scatter || LNT_HAS_ScatterElements || LNT_HAS_ScatterND,
    WITH_SOFT = LNT_TYPED_TAKES_ONE(LNT_DOUBLE) && (LNT_HAS_Softmax || LNT_HAS_LogSoftmax),
    WITH_SUMS = LNT_HAS_ReduceSum || LNT_HAS_ReduceMean || LNT_HAS_ReduceL1 || LNT_HAS_ReduceL2 ||
                LNT_HAS_ReduceSumSquare || LNT_HAS_ReduceLogSum || LNT_HAS_ReduceLogSumExp,
    WITH_Add = LNT_HAS_Add || LNT_HAS_Sum || LNT_HAS_Mean || LNT_HAS_CumSum || WITH_SCATTER || WITH_SUMS,
    WITH_Sub = LNT_HAS_Sub || WITH_SOFT,
    WITH_Mul = LNT_HAS_Mul || LNT_HAS_ReduceProd || LNT_HAS_ReduceSumSquare || LNT_HAS_ReduceL2 ||
               LNT_HAS_CumProd || LNT_HAS_Pow || WITH_SCATTER || WITH_SOFT,
    WITH_Div = LNT_HAS_Div,
    WITH_Fmod = LNT_HAS_Mod,
    WITH_Mod = LNT_HAS_Mod,
    WITH_Min = LNT_HAS_Min || LNT_HAS_Clip || LNT_HAS_ReduceMin || WITH_ARG || WITH_SCATTER,
    WITH_Max = LNT_HAS_Max || LNT_HAS_Clip || LNT_HAS_ReduceMax || LNT_HAS_ReduceLogSumExp || WITH_ARG ||
               WITH_SCATTER || WITH_SOFT,
    WITH_PRelu = LNT_HAS_PRelu,
    WITH_Equal = LNT_HAS_Equal || WITH_ARG,
    WITH_Less = LNT_HAS_Less || LNT_HAS_Greater || WITH_ARG,
    WITH_LessOrEqual = LNT_HAS_LessOrEqual || LNT_HAS_GreaterOrEqual || WITH_ARG,
    WITH_BitwiseAnd = LNT_HAS_BitwiseAnd,
    WITH_BitwiseOr = LNT_HAS_BitwiseOr,
    WITH_BitwiseXor = LNT_HAS_BitwiseXor,
    WITH_BitwiseNot = LNT_HAS_BitwiseNot,
    WITH_ShiftLeft = LNT_HAS_BitShift,
    WITH_ShiftRight = LNT_HAS_BitShift,
    WITH_Abs = LNT_HAS_Abs || LNT_HAS_ReduceL1,
    WITH_Neg = LNT_HAS_Neg,
    WITH_Relu = LNT_HAS_Relu,
    WITH_Sign = LNT_HAS_Sign,
    WITH_Floor = LNT_HAS_Floor,
    WITH_Ceil = LNT_HAS_Ceil,
    WITH_Round = LNT_HAS_Round,
    WITH_Sqrt = LNT_HAS_Sqrt,
    WITH_Exp = LNT_HAS_Exp || WITH_SOFT,
    WITH_Tanh = LNT_HAS_Tanh,
    WITH_And = LNT_HAS_And || WITH_SCATTER || LNT_HAS_ReduceMin,
    WITH_Or = LNT_HAS_Or || WITH_SCATTER || LNT_HAS_ReduceMax,
    WITH_Xor = LNT_HAS_Xor,
    WITH_Not = LNT_HAS_Not,
    WITH_Where = LNT_HAS_Where || WITH_ARG,
    WITH_ALONG_Add = WITH_SUMS || WITH_SOFT,
    WITH_ALONG_Mul = LNT_HAS_ReduceProd,
    WITH_ALONG_Min = LNT_HAS_ReduceMin || WITH_ARG,
    WITH_ALONG_Max = LNT_HAS_ReduceMax || LNT_HAS_ReduceLogSumExp || WITH_ARG || WITH_SOFT
};

/* clang-format off */
#define CELL(name, dtype, loop, loop_dtype)                                                                  \
    [LNT_TYPED_##name][LNT_##dtype] = WITH_##name ? loop_##loop##_##loop_dtype : NULL,
#define ENTRY(name, dtype) CELL(name, dtype, name, dtype)
#define BOTH(name, dtype, udtype) ENTRY(name, dtype) CELL(name, udtype, name, dtype)
#define WRAPPING_ENTRIES(type, dtype, utype, udtype, real)                                                   \
    BOTH(Add, dtype, udtype) BOTH(Sub, dtype, udtype) BOTH(Mul, dtype, udtype) BOTH(Equal, dtype, udtype)    \
    BOTH(BitwiseAnd, dtype, udtype) BOTH(BitwiseOr, dtype, udtype) BOTH(BitwiseXor, dtype, udtype)           \
    BOTH(BitwiseNot, dtype, udtype)
#define SIGNED_ENTRIES(type, dtype, utype, udtype, real)                                                     \
    ENTRY(Div, dtype) ENTRY(Fmod, dtype) ENTRY(Mod, dtype) ENTRY(PRelu, dtype) ENTRY(Abs, dtype)             \
    ENTRY(Neg, dtype) ENTRY(Relu, dtype) ENTRY(Sign, dtype)
#define UNSIGNED_ENTRIES(type, dtype, utype, udtype, real)                                                   \
    ENTRY(Div, dtype) ENTRY(Fmod, dtype) ENTRY(ShiftLeft, dtype) ENTRY(ShiftRight, dtype)                    \
    CELL(Mod, dtype, Fmod, dtype) CELL(PRelu, dtype, Same, dtype) CELL(Abs, dtype, Same, dtype)              \
    CELL(Relu, dtype, Same, dtype) ENTRY(Sign, dtype)
#define REAL_ENTRIES(type, dtype, utype, udtype, real)                                                       \
    ENTRY(Add, dtype) ENTRY(Mul, dtype) ENTRY(Mod, dtype)
#define ALL_ENTRIES(type, dtype, utype, udtype, real)                                                        \
    ENTRY(Min, dtype) ENTRY(Max, dtype)
#define COMPARING_ENTRIES(type, dtype, utype, udtype, real)                                                  \
    ENTRY(Less, dtype) ENTRY(LessOrEqual, dtype)
#define ALONG_CELL(name, dtype, loop_dtype)                                                                  \
    [LNT_ALONG_##name][LNT_##dtype] = WITH_ALONG_##name ? along_##name##_##loop_dtype : NULL,
#define ALONG_ENTRY(name, dtype) ALONG_CELL(name, dtype, dtype)
#define ALONG_ENTRIES(type, dtype, utype, udtype, real)                                                      \
    ALONG_ENTRY(Add, dtype) ALONG_CELL(Add, udtype, dtype) ALONG_ENTRY(Mul, dtype)                           \
    ALONG_CELL(Mul, udtype, dtype) ALONG_ENTRY(Min, dtype) ALONG_ENTRY(Min, udtype) ALONG_ENTRY(Max, dtype)  \
    ALONG_ENTRY(Max, udtype)

const lnt_typed_kernels TABLE = {
    .loop = {
        SIGNED_TYPES(WRAPPING_ENTRIES)
        SIGNED_TYPES(SIGNED_ENTRIES)
        UNSIGNED_TYPES(UNSIGNED_ENTRIES)
        REAL_TYPES(REAL_ENTRIES)
        ALL_TYPES(ALL_ENTRIES)
        NOT_FLOAT_TYPES(COMPARING_ENTRIES)
        ENTRY(Sub, DOUBLE) ENTRY(Div, DOUBLE) ENTRY(Equal, DOUBLE) ENTRY(Fmod, DOUBLE) ENTRY(PRelu, DOUBLE)
        ENTRY(Abs, DOUBLE) ENTRY(Neg, DOUBLE) ENTRY(Relu, DOUBLE) ENTRY(Sign, DOUBLE)
        ENTRY(Floor, DOUBLE) ENTRY(Ceil, DOUBLE) ENTRY(Round, DOUBLE)
        ENTRY(Sqrt, DOUBLE) ENTRY(Exp, DOUBLE) ENTRY(Tanh, DOUBLE)
        ENTRY(And, BOOL) ENTRY(Or, BOOL) ENTRY(Xor, BOOL) ENTRY(Equal, BOOL) ENTRY(Not, BOOL)
    },
    .along = {
        SIGNED_TYPES(ALONG_ENTRIES)
        ALONG_ENTRY(Add, DOUBLE) ALONG_ENTRY(Mul, DOUBLE) ALONG_ENTRY(Min, DOUBLE) ALONG_ENTRY(Max, DOUBLE)
        ALONG_CELL(Min, BOOL, UINT8) ALONG_CELL(Max, BOOL, UINT8) /* of bytes: which are true is for the caller */
    },
    .cast = CAST_TABLE,
    .where = {WITH_Where ? where_uint8_t : NULL, WITH_Where ? where_uint16_t : NULL,
              WITH_Where ? where_uint32_t : NULL, WITH_Where ? where_uint64_t : NULL},
    .clip_bytes = LNT_HAS_Clip ? clip_bytes : NULL,
    .pick_double = WITH_ARG || LNT_HAS_TopK ? pick_double : NULL,
};
/* clang-format on */
