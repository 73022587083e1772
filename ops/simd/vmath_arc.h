/* vmath_arc.h — tangent, inverse circular, hyperbolic and inverse hyperbolic functions, in the manner of
 * ops/simd/vmath.h.
 *
 * Largest errors over all floats, in units in the last place: atan, acos and cosh 2, asin and sinh 2.5,
 * asinh and acosh 3, atanh 3.5, tan 4. */
#ifndef LNT_OPS_SIMD_VMATH_ARC_H
#define LNT_OPS_SIMD_VMATH_ARC_H

#include "ops/simd/vmath.h"

/* pi/2 in two floats. */
#define LNT_HALF_PI 0x1.921fb6p0f
#define LNT_HALF_PI_REST (-0x1.777a5cp-25f)

/* atan(z), 0 <= z <= 1 */
LNT_INLINE vf v_atan_unit(vf z)
{
    const vf u = z * z;
    const vf p = LNT_POLY(u, -0x1.55553ep-2f, 0x1.9991fep-3f, -0x1.2421b4p-3f, 0x1.c099f8p-4f,
                          -0x1.58347cp-4f, 0x1.dac99ep-5f, -0x1.fed0d4p-6f, 0x1.65a5c8p-7f, -0x1.d62ee6p-10f);
    return v_fma(z * u, p, z);
}

/* Beyond 1 it is pi/2 - atan(1 / |x|). */
LNT_INLINE vf v_atan(vf x)
{
    const vf one = v_splat(1), a = v_abs(x);
    const vi far = a > one;
    const vf y = v_atan_unit(v_select(far, one / a, a));
    const vf beyond = v_splat(LNT_HALF_PI) - (y - v_splat(LNT_HALF_PI_REST));
    return v_sign_of(v_select(far, beyond, y), x);
}

/* asin(a), 0 <= a <= 1/2 */
LNT_INLINE vf v_asin_half(vf a)
{
    const vf u = a * a;
    const vf p = LNT_POLY(u, 0x1.5555c8p-3f, 0x1.3301e4p-4f, 0x1.747e4ap-5f, 0x1.8c2844p-6f, 0x1.596d22p-5f);
    return v_fma(a * u, p, a);
}

/* asin of what is in [0, 1/2]: |x|, or where that is beyond (*far) sqrt((1 - |x|) / 2), whose arc sine is
 * half of what is missing to pi/2. NaN for |x| > 1. */
LNT_INLINE vf v_asin_folded(vf x, vi *far)
{
    const vf a = v_abs(x), half = v_splat(0.5f);
    *far = a > half;
    return v_asin_half(v_select(*far, v_sqrt(half - half * a), a));
}

LNT_INLINE vf v_asin(vf x)
{
    vi far;
    const vf y = v_asin_folded(x, &far);
    const vf beyond = v_splat(LNT_HALF_PI) - (y + y - v_splat(LNT_HALF_PI_REST));
    return v_sign_of(v_select(far, beyond, y), x);
}

LNT_INLINE vf v_acos(vf x)
{
    vi far;
    const vf y = v_asin_folded(x, &far), rest = v_splat(LNT_HALF_PI_REST), quarter = v_splat(LNT_HALF_PI);
    const vf near = quarter - (v_sign_of(y, x) - rest), twice = y + y;
    const vf below = (quarter + quarter) - (twice - (rest + rest));
    return v_select(far, v_select(x < v_splat(0), below, twice), near);
}

/* Sine and cosine of one reduced argument. */
LNT_INLINE vf v_tan(vf x)
{
    return v_sin(x) / v_cos(x);
}

/* e**a / 4 for a >= 0: the halves of sinh and cosh overflow later than e**a. */
LNT_INLINE vf v_exp_quarter(vf a)
{
    vf shifted;
    const vf y = v_exp_reduced(v_min(v_splat(89.5f), a), &shifted);
    const vi n = (vi)((vu)shifted - (vu)v_splat(LNT_EXP_MAGIC));
    return v_exp_scaled(y, v_exp2_int(n - vi_splat(2)));
}

LNT_INLINE vf v_sinh(vf x)
{
    const vf a = v_abs(x), u = a * a, e = v_exp_quarter(a), two = v_splat(2);
    const vf small =
        v_fma(a * u, LNT_POLY(u, 0x1.555556p-3f, 0x1.111134p-7f, 0x1.9ffe92p-13f, 0x1.7a15b6p-19f), a);
    return v_sign_of(v_select(a < v_splat(1), small, two * (e - v_splat(0.0625f) / e)), x);
}

LNT_INLINE vf v_cosh(vf x)
{
    const vf e = v_exp_quarter(v_abs(x));
    return v_splat(2) * (e + v_splat(0.0625f) / e);
}

/* log(1 + z), z >= 0 and finite; what 1 + z lost is put back to first order. */
LNT_INLINE vf v_log1p(vf z)
{
    const vf one = v_splat(1), u = one + z;
    return v_log(u) + (z - (u - one)) / u;
}

/* From here on the roots of asinh and acosh are 2 |x| to all digits. */
#define LNT_ARC_FAR 0x1p14f

/* For far, log(2 a); else log(1 + z). */
LNT_INLINE vf v_log_far(vi far, vf a, vf z)
{
    const vf far_result = v_log(v_select(far, a, v_splat(1))) + v_splat(0x1.62e43p-1f); /* log(2) */
    return v_select(far, far_result, v_log1p(v_select(far, v_splat(0), z)));
}

LNT_INLINE vf v_asinh(vf x)
{
    const vf a = v_abs(x), one = v_splat(1), u = a * a;
    const vf z = a + u / (one + v_sqrt(one + u));
    return v_sign_of(v_log_far(a >= v_splat(LNT_ARC_FAR), a, z), x);
}

LNT_INLINE vf v_acosh(vf x)
{
    const vf t = x - v_splat(1), z = t + v_sqrt(t * (t + v_splat(2)));
    const vf y = v_log_far(x >= v_splat(LNT_ARC_FAR), x, z);
    return v_select(x < v_splat(1), v_splat(NAN), y);
}

/* log((1 + |x|) / (1 - |x|)) / 2 */
LNT_INLINE vf v_atanh(vf x)
{
    const vf a = v_abs(x), one = v_splat(1);
    const vf y = v_splat(0.5f) * v_log1p((a + a) / (one - a));
    return v_sign_of(v_select(a == one, v_splat(INFINITY), y), x);
}

#endif
