/* typed.h — elementwise loops for the element types and operators that programs do not cover.
 *
 * Programs (ops/elementwise/program.h) are for float, its halves and bool. Double and integers, and the float functions
 * too rare for an instruction, run through these plain loops, one per operator and type. */
#ifndef LNT_OPS_ELEMENTWISE_TYPED_H
#define LNT_OPS_ELEMENTWISE_TYPED_H

#include "ops/op.h"

/* One row of elements. Strides in bytes; 0 repeats an operand. out may be exactly in[0] or in[1]. */
typedef struct lnt_typed_args {
    char *out;
    const char *in[3];
    int64_t out_stride, stride[3];
    int64_t n;
    const double *param; /* attributes, as the lookup filled them */
    uint8_t dtype[2];    /* of in[0] and in[1] */
} lnt_typed_args;

/* param: two attributes, then which function of typed_real.c it is. */
enum { LNT_TYPED_FUNCTION = 2, LNT_TYPED_PARAMS = 3 };

/* False if the data holds what the operator cannot take: division by zero, the smallest integer by -1. */
typedef bool (*lnt_typed_fn)(const lnt_typed_args *a);

/* The loop for a node on this element type, and its parameters; NULL if there is none. */
lnt_typed_fn lnt_typed_unary(const lnt_node *node, lnt_dtype dtype, double *param);
lnt_typed_fn lnt_typed_binary(const lnt_node *node, lnt_dtype dtype);
/* The loop that clamps to an upper or a lower bound. */
lnt_typed_fn lnt_typed_bound(bool upper, lnt_dtype dtype);
/* mask ? a : b for elements of this many bytes. */
lnt_typed_fn lnt_typed_where(size_t size);

/* Floating-point functions, computed in double for every floating-point type (typed_real.c). */
lnt_typed_fn lnt_typed_real(const lnt_node *node, lnt_dtype dtype, double *param);
/* Does lnt_cast know this type? */
bool lnt_can_cast(lnt_dtype dtype);
/* n elements of type from into type to (cast.c), strides in bytes. Integers wrap; floating-point is cut
 * towards zero, and what does not fit an int32 (int64, where the type is wider), NaN too, gives the smallest
 * one, of which narrower integers are the low bits. For types that lnt_can_cast. */
void lnt_cast(const void *src, lnt_dtype from, int64_t src_stride, void *dst, lnt_dtype to,
              int64_t dst_stride, int64_t n);

#endif
