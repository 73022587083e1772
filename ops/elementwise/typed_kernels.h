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
    const double *param; /* attributes, as the lookup filled them */
    const lnt_kernels *kernels;
    uint8_t dtype[2]; /* of in[0] and in[1] */
} lnt_typed_args;

/* False if the data holds what the operator cannot take: division by zero, the smallest integer by -1. */
typedef bool (*lnt_typed_fn)(const lnt_typed_args *a);

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
    X(Greater)                                                                                               \
    X(GreaterOrEqual)                                                                                        \
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

/* Rows of n > 0 elements, side by side, down to an element each. Of several NaNs any is the result. */
typedef void (*lnt_along_fn)(void *out, const void *in, int64_t rows, int64_t n);

/* Element types as casts see them. Integers come first, by width. */
typedef enum lnt_cast_type {
    LNT_CAST_U8,
    LNT_CAST_I8,
    LNT_CAST_U16,
    LNT_CAST_I16,
    LNT_CAST_U32,
    LNT_CAST_I32,
    LNT_CAST_U64,
    LNT_CAST_I64,
    LNT_CAST_BOOL,
    LNT_CAST_F16,
    LNT_CAST_BF16,
    LNT_CAST_F32,
    LNT_CAST_F64,
    LNT_CAST_ODD, /* float with the last bit set where it is inexact ("round to odd"): halves of it are right */
    LNT_CAST_TYPES
} lnt_cast_type;

typedef void (*lnt_convert_fn)(void *to, const void *from, int64_t n);
typedef bool (*lnt_fits_fn)(const void *from, int64_t n);

/* Steps that casts are made of (ops/elementwise/cast.c); between floats and what cells hold, cells are. */
typedef struct lnt_cast_kernels {
    lnt_convert_fn step[LNT_CAST_TYPES][LNT_CAST_TYPES]; /* from, to; NULL: there is none */
    lnt_fits_fn fits[LNT_CAST_TYPES];                    /* are all n cut to int32 as they are to int64? */
} lnt_cast_kernels;

/* NULL where an operator has no such type. */
typedef struct lnt_typed_kernels {
    lnt_typed_fn loop[LNT_TYPED_ROWS][LNT_DTYPE_COUNT];
    lnt_along_fn along[LNT_TYPED_ALONGS]
                      [LNT_DTYPE_COUNT]; /* not of float, which has row kernels (ops/rows/row.h) */
    lnt_cast_kernels cast;
    lnt_typed_fn where[4]; /* mask ? a : b for elements of 1, 2, 4 and 8 bytes */
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
