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

#define LNT_HALF_MAGIC 1536 /* 1.5 * 2^10: what is added to it is rounded to an integer, in its low bits */

/* 2**(n + rest + scale) for the integer n that `shifted` holds, -14 <= n + scale; infinity for n + scale = 16.
 * |rest| is half at most. The polynomial is a minimax one, 1e-4 off. */
LNT_INLINE vf v_exp2_split(vf shifted, vf rest, int16_t scale)
{
    const vf one = v_splat(1), c3 = v_splat_float(0.05500893f), c2 = v_splat_float(0.24221099f),
             c1 = v_splat_float(0.69328293f);
    const vf y = v_fma(rest, v_fma(rest, v_fma(rest, c3, c2), c1), one);
    return y * (vf)(((vi)shifted + vi_splat((int16_t)(scale + 15))) << 10);
}

/* e**x; no less than e**-9.7, which is nothing beside 1, and infinity from 10.7 on. 1 / ln 2 in two halves. */
LNT_INLINE vf v_exp_beside_one(vf x)
{
    const vf t = v_max(v_splat_float(-9.7f), v_min(v_splat_float(11.4f), x)), magic = v_splat(LNT_HALF_MAGIC);
    const vf log2e = v_splat_float(0x1.714p0f), n = v_fma(t, log2e, magic);
    const vf rest = v_fma(t, v_splat_float(0x1.476p-12f), v_fma(t, log2e, magic - n));
    return v_exp2_split(n, rest, 0);
}

LNT_INLINE vf v_sigmoid(vf x)
{
    return v_reciprocal(v_splat(1) + v_exp_beside_one(-x));
}

/* tanh(|x|) = 1 - 2 / (1 + e**(2 |x|)), near 0 its series; and x's sign. */
LNT_INLINE vf v_tanh(vf x)
{
    const vf a = v_abs(x), u = a * a, one = v_splat(1);
    const vf c2 = v_splat_float(2.0f / 15), c3 = v_splat_float(-17.0f / 315);
    const vf series = v_fma(u, v_fma(u, c3, c2), v_splat_float(-1.0f / 3));
    const vf near = v_fma(a * u, series, a);
    const vf far = v_fma(v_splat(-2), v_reciprocal(one + v_exp_beside_one(a + a)), one);
    const vi sign = (vi)x & vi_splat(INT16_MIN);
    return (vf)((vi)v_select(v_less(a, v_splat_float(0.55f)), near, far) | sign);
}

/* x times the normal distribution function: with c = erfc(|x| / sqrt(2)) / 2 it is x c below 0 and x - x c above. c is
 * 2**(|x| p(|x|) - 1), fitted so that x c is 1e-5 off for |x| <= 5, and 2^10-fold until it was multiplied. */
LNT_INLINE vf v_gelu(vf x)
{
    const vf end = v_splat(5), near = v_max(-end, v_min(end, x)), a = v_abs(near), one = v_splat(1);
    const vf p3 = v_splat_float(0.00416166f), p2 = v_splat_float(-0.04573541f), p1 = v_splat_float(-0.46493053f),
             p0 = v_splat_float(-1.14956694f);
    const vf p = v_fma(a, v_fma(a, v_fma(a, p3, p2), p1), p0), magic = v_splat(LNT_HALF_MAGIC);
    const vf n = v_fma(a, p, magic - one), rest = v_fma(a, p, magic - one - n);
    const vf tail = near * v_exp2_split(n, rest, 10) * v_splat_float(0x1p-10f);
    return v_select(v_less(x, v_splat(0)), tail, x - tail);
}

/* x sigmoid(2 t), t = sqrt(2 / pi) (x + 0.044715 x**3); from |x| = 5 on that is x or 0. */
LNT_INLINE vf v_gelu_tanh(vf x)
{
    const vf end = v_splat(5), near = v_max(-end, v_min(end, x));
    return x * v_sigmoid(near * v_fma(near * near, v_splat_float(0.071354814f), v_splat_float(1.5957691f)));
}

/* With w = e**x: tanh(log(1 + w)) = n / (n + 2), n = w (w + 2). From x = 4.5 on it is 1 to the last place,
 * and from -10 down next to nothing. */
LNT_INLINE vf v_mish(vf x)
{
    const vf two = v_splat(2), w = v_exp_beside_one(v_min(v_splat_float(4.5f), x)), n = w * (w + two);
    return v_max(v_splat(-10), x) * (n * v_reciprocal(n + two));
}

#endif
