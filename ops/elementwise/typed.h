/* typed.h — elementwise loops for the element types and operators that programs do not cover.
 *
 * Programs (ops/elementwise/program.h) are for float, its halves and bool. Double and integers, and the float functions
 * too rare for an instruction, run through plain loops, one per operator and type. */
#ifndef LNT_OPS_ELEMENTWISE_TYPED_H
#define LNT_OPS_ELEMENTWISE_TYPED_H

#include "base/small.h"
#include "ops/elementwise/typed_kernels.h"

/* param: two attributes, then which function of typed_real.c it is. */
enum { LNT_TYPED_FUNCTION = 2, LNT_TYPED_PARAMS = 3 };

/* The loop for a site's node on this element type, at its level, and its parameters; NULL if there is none. */
lnt_typed_fn lnt_typed_unary(const lnt_site *site, lnt_dtype dtype, double *param);
lnt_typed_fn lnt_typed_binary(const lnt_site *site, lnt_dtype dtype);
/* Does that take the operands the other way round? x > y is y < x. */
bool lnt_typed_is_turned(const lnt_node *node);
/* May that have one element as its second operand? */
bool lnt_typed_takes_one(const lnt_site *site, lnt_dtype dtype);
/* The loop that clamps to an upper or a lower bound. */
lnt_typed_fn lnt_typed_bound(const lnt_site *site, bool upper, lnt_dtype dtype);

/* Floating-point functions, computed in double for every floating-point type (typed_real.c). */
lnt_typed_fn lnt_typed_real(const lnt_node *node, lnt_dtype dtype, double *param);
/* Does lnt_cast know this type? */
bool lnt_can_cast(lnt_dtype dtype);
/* n elements of type from into type to (cast.c). Integers wrap; floating-point is cut towards zero, and what does not
 * fit an int32 (int64, where the type is wider), NaN too, gives the smallest one, of which narrower integers are the
 * low bits. For types that lnt_can_cast. */
void lnt_cast(const lnt_kernels *kernels, const void *src, lnt_dtype from, void *dst, lnt_dtype to,
              int64_t n);
/* Do levels have lnt_kernels.widen? */
#if defined(__x86_64__) && !LNT_TRIMMED
enum { LNT_HAS_CAST_ORDER = true };
#else
enum { LNT_HAS_CAST_ORDER = false };
#endif
/* Cast of images in ONNX order to channels-last ones in one step (cast_order.c). False where there is none. */
bool lnt_bind_cast_order(lnt_site *site);
/* The same where from or to is small, or both are (cast_small.c): small integers are the low bits of what int32
 * is; small floats are rounded once, to nearest even, float8e8m0 as `how` says. */
void lnt_cast_small(const lnt_kernels *kernels, const void *src, lnt_dtype from, void *dst, lnt_dtype to,
                    int64_t n, lnt_small_rounding how);

#endif
