/* vmath_half.h — functions of halves, for levels that compute with them (LNT_SIMD_FP16).
 *
 * A result is within 4 units in the last place of a half, or within 2^-9 where it is smaller: it is stored as a half
 * and multiplied with others next. NaN gives NaN. */
#ifndef LNT_OPS_SIMD_VMATH_HALF_H
#define LNT_OPS_SIMD_VMATH_HALF_H

#include "ops/simd/simd.h"

/* 1 / d: the 8 bits of the estimate, doubled by a Newton step; 0 for infinity. */
LNT_INLINE vf v_reciprocal(vf d)
{
    const float16x8_t x = (float16x8_t)d, r = vrecpeq_f16(x);
    return (vf)vmulq_f16(r, vrecpsq_f16(x, r));
}

/* What is added to it is rounded to an integer n, in its low bits behind the exponent's bias: shifted left they are
 * 2**n. 1.5 * 2^10 and that bias. */
#define LNT_HALF_MAGIC (1536 + 15)

/* y * power, of which the power alone may be infinite. */
typedef struct vf_exp2 {
    vf y, power;
} vf_exp2;

/* 2**(n + rest) for the integer n that was added to LNT_HALF_MAGIC, -14 <= n; infinity for n = 16. |rest| is half at
 * most. The polynomial is a minimax one, 1e-4 off. */
LNT_INLINE vf_exp2 v_exp2_split(vf shifted, vf rest)
{
    const vf one = v_splat(1), c3 = v_splat_float(0.05500893f), c2 = v_splat_float(0.24221099f),
             c1 = v_splat_float(0.69328293f);
    return (vf_exp2){.y = v_fma(rest, v_fma(rest, v_fma(rest, c3, c2), c1), one),
                     .power = (vf)((vi)shifted << 10)};
}

/* 2**t; no less than 2**-14, which is nothing beside 1, and infinity from 15.5 on. */
LNT_INLINE vf_exp2 v_exp2_beside_one(vf t)
{
    const vf near = v_max(v_splat(-14), v_min(v_splat_float(16.4f), t)), magic = v_splat(LNT_HALF_MAGIC);
    const vf shifted = near + magic;
    return v_exp2_split(shifted, near - (shifted - magic));
}

#define LNT_HALF_LOG2E 1.44269504f

/* 1 / (1 + 2**t): the logistic function of x for t = -log2(e) x. */
LNT_INLINE vf v_sigmoid_exp2(vf t)
{
    const vf_exp2 e = v_exp2_beside_one(t);
    return v_reciprocal(v_fma(e.y, e.power, v_splat(1)));
}

LNT_INLINE vf v_sigmoid(vf x)
{
    return v_sigmoid_exp2(x * v_splat_float(-LNT_HALF_LOG2E));
}

/* tanh(|x|) = 1 - 2 / (1 + e**(2 |x|)), near 0 its series; and x's sign. */
LNT_INLINE vf v_tanh(vf x)
{
    const vf a = v_abs(x), u = a * a, one = v_splat(1);
    const vf c2 = v_splat_float(2.0f / 15), c3 = v_splat_float(-17.0f / 315);
    const vf series = v_fma(u, v_fma(u, c3, c2), v_splat_float(-1.0f / 3));
    const vf near = v_fma(a * u, series, a);
    const vf far = v_fma(v_splat(-2), v_sigmoid_exp2(a * v_splat_float(2 * LNT_HALF_LOG2E)), one);
    const vi sign = (vi)x & vi_splat(INT16_MIN);
    return (vf)((vi)v_select(v_less(a, v_splat_float(0.55f)), near, far) | sign);
}

/* x times the normal distribution function: with c = erfc(|x| / sqrt(2)) / 2 it is x c below 0 and x - x c above. c is
 * 2**(|x| p(|x|) - 1), fitted so that x c is 1e-5 off for |x| <= 5, and 2^10-fold until it was multiplied. */
LNT_INLINE vf v_gelu(vf x)
{
    const vf end = v_splat(5), near = v_max(-end, v_min(end, x)), a = v_abs(near);
    const vf p3 = v_splat_float(0.00416166f), p2 = v_splat_float(-0.04573541f), p1 = v_splat_float(-0.46493053f),
             p0 = v_splat_float(-1.14956694f);
    const vf p = v_fma(a, v_fma(a, v_fma(a, p3, p2), p1), p0), magic = v_splat(LNT_HALF_MAGIC + 10 - 1);
    const vf shifted = v_fma(a, p, magic);
    const vf_exp2 e = v_exp2_split(shifted, v_fma(a, p, magic - shifted));
    const vf tail = near * (e.y * e.power) * v_splat_float(0x1p-10f);
    return v_select(v_less(x, v_splat(0)), tail, x - tail);
}

/* x sigmoid(2 t), t = sqrt(2 / pi) (x + 0.044715 x**3); from |x| = 5 on that is x or 0. */
LNT_INLINE vf v_gelu_tanh(vf x)
{
    const vf end = v_splat(5), near = v_max(-end, v_min(end, x));
    const vf c1 = v_splat_float(-1.5957691f * LNT_HALF_LOG2E),
             c3 = v_splat_float(-0.071354814f * LNT_HALF_LOG2E);
    return x * v_sigmoid_exp2(near * v_fma(near * near, c3, c1));
}

/* With w = e**x: tanh(log(1 + w)) = n / (n + 2), n = w (w + 2). From x = 4.5 on it is 1 to the last place,
 * and from -10 down next to nothing. */
LNT_INLINE vf v_mish(vf x)
{
    const vf two = v_splat(2);
    const vf_exp2 e = v_exp2_beside_one(v_min(v_splat_float(4.5f), x) * v_splat_float(LNT_HALF_LOG2E));
    const vf w = e.y * e.power, n = w * (w + two);
    return v_max(v_splat(-10), x) * (n * v_reciprocal(n + two));
}

#endif
