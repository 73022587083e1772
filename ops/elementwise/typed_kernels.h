/* typed_kernels.h — the kernel table of typed loops: elements of one type, side by side. */
#ifndef LNT_OPS_ELEMENTWISE_TYPED_KERNELS_H
#define LNT_OPS_ELEMENTWISE_TYPED_KERNELS_H

#include "ops/kernels.h"
#include "ops/op.h"

/* n elements of each operand side by side. out may be exactly an operand. */
typedef struct lnt_typed_args {
    void *out;
    const void *in[3];
    int64_t n;
    bool one; /* in[1] is one element for all, of loops that lnt_typed_takes_one names */
    const double *param; /* attributes, as the lookup filled them */
    const lnt_kernels *kernels;
    uint8_t dtype[2]; /* of in[0] and in[1] */
} lnt_typed_args;

/* False if the data holds what the operator cannot take: division by zero, the smallest integer by -1. */
typedef bool (*lnt_typed_fn)(const lnt_typed_args *a);

/* Columns of the tables: types with numbers below have loops or none, others none. */
#define LNT_TYPED_DTYPES (LNT_UINT64 + 1)

/* Which types' loops do so: those that models compute with, where a library has room for them. */
#if defined(__x86_64__)
#define LNT_TYPED_TAKES_ONE(dtype)                                                                           \
    ((dtype) == LNT_INT8 || (dtype) == LNT_UINT8 || (dtype) == LNT_INT32 || (dtype) == LNT_INT64 ||          \
     (dtype) == LNT_DOUBLE)
#else
#define LNT_TYPED_TAKES_ONE(dtype) false
#endif

/* Fmod takes the sign of the dividend, Mod that of the divisor. */
#define LNT_TYPED_LIST(X)                                                                                    \
    X(Add)                                                                                                   \
    X(Sub)                                                                                                   \
    X(Mul)                                                                                                   \
    X(Div)                                                                                                   \
    X(Fmod)                                                                                                  \
    X(Mod)                                                                                                   \
    X(Min)                                                                                                   \
    X(Max)                                                                                                   \
    X(PRelu)                                                                                                 \
    X(Equal)                                                                                                 \
    X(Less)                                                                                                  \
    X(LessOrEqual)                                                                                           \
    X(BitwiseAnd)                                                                                            \
    X(BitwiseOr)                                                                                             \
    X(BitwiseXor)                                                                                            \
    X(BitwiseNot)                                                                                            \
    X(ShiftLeft)                                                                                             \
    X(ShiftRight)                                                                                            \
    X(Abs)                                                                                                   \
    X(Neg)                                                                                                   \
    X(Relu)                                                                                                  \
    X(Sign)                                                                                                  \
    X(Floor)                                                                                                 \
    X(Ceil)                                                                                                  \
    X(Round)                                                                                                 \
    X(Sqrt)                                                                                                  \
    X(Exp)                                                                                                   \
    X(Tanh)                                                                                                  \
    X(And)                                                                                                   \
    X(Or)                                                                                                    \
    X(Xor)                                                                                                   \
    X(Not)

/* Those that a row can be brought down to one element by. */
typedef enum lnt_typed_along {
    LNT_ALONG_Add,
    LNT_ALONG_Mul,
    LNT_ALONG_Min,
    LNT_ALONG_Max,
    LNT_TYPED_ALONGS
} lnt_typed_along;

typedef enum lnt_typed_row {
    LNT_TYPED_NONE,
#define X(name) LNT_TYPED_##name,
    LNT_TYPED_LIST(X)
#undef X
        LNT_TYPED_ROWS
} lnt_typed_row;

/* Rows of n > 0 elements, side by side, down to an element each, NaN where any is. Those of doubles, and of 64-bit
 * integers down to their largest or least, may be of pairs: columns is 2, n even, and each has its own result. */
typedef void (*lnt_along_fn)(void *out, const void *in, int64_t rows, int64_t n, int64_t columns);

/* Steps that casts are made of (ops/elementwise/cast.c), from_to, in bits; signs are named where they make a
 * difference, and odd is float with the last bit set where it is inexact ("round to odd"): halves of it are right.
 * Those that are asked for without Cast are 1. */
#define LNT_CAST_STEP_LIST(X)                                                                                \
    X(u8_16, 0)                                                                                              \
    X(u8_32, 0)                                                                                              \
    X(u16_32, 0)                                                                                             \
    X(u32_64, 0)                                                                                             \
    X(i8_16, 0)                                                                                              \
    X(i8_32, 0)                                                                                              \
    X(i16_32, 0)                                                                                             \
    X(i32_64, 0)                                                                                             \
    X(u8_64, 0)                                                                                              \
    X(i8_64, 0)                                                                                              \
    X(u16_64, 0)                                                                                             \
    X(i16_64, 0)                                                                                             \
    X(u8_f64, 0)                                                                                             \
    X(i8_f64, 0)                                                                                             \
    X(u16_f64, 0)                                                                                            \
    X(i16_f64, 0)                                                                                            \
    X(16_8, 0)                                                                                               \
    X(32_8, 0)                                                                                               \
    X(f64_8, 0)                                                                                              \
    X(f64_16, 0)                                                                                             \
    X(64_8, 0)                                                                                               \
    X(32_16, 0)                                                                                              \
    X(64_16, 0)                                                                                              \
    X(64_32, 0)                                                                                              \
    X(8_bool, 1)                                                                                             \
    X(16_bool, 0)                                                                                            \
    X(32_bool, 0)                                                                                            \
    X(64_bool, 0)                                                                                            \
    X(f32_bool, 1)                                                                                           \
    X(f64_bool, 1)                                                                                           \
    X(i32_odd, 0)                                                                                            \
    X(u32_odd, 0)                                                                                            \
    X(f64_odd, 1)                                                                                            \
    X(f64_f32, 1)                                                                                            \
    X(f32_f64, 1)                                                                                            \
    X(i32_f64, 0)                                                                                            \
    X(u32_f32, 0)                                                                                            \
    X(u32_f64, 0)                                                                                            \
    X(i64_f64, 0)                                                                                            \
    X(u64_f32, 0)                                                                                            \
    X(u64_f64, 0)                                                                                            \
    X(f64_i32, 0)                                                                                            \
    X(f64_i64, 0)                                                                                            \
    X(f64_u64, 0)

typedef enum lnt_cast_step {
    LNT_CAST_NONE,
#define X(name, always) LNT_CAST_##name,
    LNT_CAST_STEP_LIST(X)
#undef X
        LNT_CAST_STEPS
} lnt_cast_step;

typedef void (*lnt_convert_fn)(void *to, const void *from, int64_t n);
/* Are all n cut to int32 as they are to int64? */
typedef bool (*lnt_fits_fn)(const void *from, int64_t n);

typedef struct lnt_cast_kernels {
    lnt_convert_fn step[LNT_CAST_STEPS];
    lnt_fits_fn i64_fits, u64_fits, f32_fits, f64_fits;
} lnt_cast_kernels;

/* NULL where an operator has no such type. */
typedef struct lnt_typed_kernels {
    lnt_typed_fn loop[LNT_TYPED_ROWS][LNT_TYPED_DTYPES];
    lnt_along_fn along[LNT_TYPED_ALONGS]
                      [LNT_TYPED_DTYPES]; /* not of float, which has row kernels (ops/rows/row.h) */
    lnt_cast_kernels cast;
    lnt_typed_fn where[4]; /* mask ? a : b for elements of 1, 2, 4 and 8 bytes */
    /* x brought to low..high, in the order of bytes with the bits of flip turned over: 0x80 where they are int8 */
    void (*clip_bytes)(uint8_t *y, const uint8_t *x, uint8_t low, uint8_t high, uint8_t flip, int64_t n);
    /* where x beats best, best = x and at = index: sign is 1 for the largest, -1 for the smallest; ties and NaN as in
     * ArgMax and ArgMin (ops/rows/argmax.c) */
    void (*pick_double)(double *best, int64_t *at, const double *x, int64_t index, double sign, bool last,
                        int64_t n);
} lnt_typed_kernels;

/* mask ? a : b for elements of this many bytes; NULL if there is none. */
static inline lnt_typed_fn lnt_typed_where(const lnt_typed_kernels *kernels, size_t size)
{
    switch (size) {
    case 1: return kernels->where[0];
    case 2: return kernels->where[1];
    case 4: return kernels->where[2];
    case 8: return kernels->where[3];
    default: return NULL;
    }
}

#endif
