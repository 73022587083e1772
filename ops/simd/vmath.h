/* vmath.h — exp, log, tanh, erf, sin, pow and their kin over the vectors of ops/simd/simd.h.
 *
 * The same polynomials at every level but for those of exp and tanh (levels with fused multiply-add round
 * less often). Coefficients are weighted least squares iterated to the minimax of the relative error. Largest
 * errors over all floats, in units in the last place: exp 1.1, log 1, sin and cos 2, tanh 3, sigmoid 3,
 * erf 3.5, softplus 3, pow 1, fmod none (ops/check/check_program.c holds them to it). NaN stays NaN;
 * infinities give the limits. What a lane gives never depends on its neighbors. */
#ifndef LNT_OPS_SIMD_VMATH_H
#define LNT_OPS_SIMD_VMATH_H

#include "ops/simd/simd.h"
#if defined(LNT_SIMD_AVX512)
#include "ops/simd/vmath_tanh.h"
#endif

#define LNT_NOINLINE static __attribute__((noinline, unused))

/* c[0] + c[1] x + ... */
#define LNT_POLY(x, ...)                                                                                     \
    v_poly((x), (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))
LNT_INLINE vf v_poly(vf x, const float *c, unsigned n)
{
    vf y = v_splat(c[n - 1]);
#pragma GCC unroll 16
    for (unsigned i = n - 1; i-- > 0;)
        y = v_fma(y, x, v_splat(c[i]));
    return y;
}

/* ---- exponentials ---- */

/* Adding it rounds to an integer, which is then in the low bits behind the exponent's bias of 127. */
#define LNT_EXP_MAGIC 0x1.8000fep23f

/* x = n ln 2 + r with |r| <= ln(2) / 2: returns r and sets *shifted to n + LNT_EXP_MAGIC. |x| <= 104. */
LNT_INLINE vf v_exp_rest(vf x, vf *shifted)
{
    const vf magic = v_splat(LNT_EXP_MAGIC);
    *shifted = v_fma(x, v_splat(0x1.715476p0f), magic);
    const vf whole = *shifted - magic;
    /* The first part of ln 2 has nine bits: its product is exact. */
    const vf r = v_fma(whole, v_splat(-0.693359375f), x);
    return v_fma(whole, v_splat(2.12194440e-4f), r);
}

/* q of e**r = 1 + r + r * r * q. */
LNT_INLINE vf v_exp_quadratic(vf r)
{
    return LNT_POLY(r, 0x1.fffffcp-2f, 0x1.555490p-3f, 0x1.5558f6p-5f, 0x1.123a6ap-7f, 0x1.6a22eep-10f);
}

/* e**r - 1 of the same r. */
LNT_INLINE vf v_exp_reduced(vf x, vf *shifted)
{
    const vf r = v_exp_rest(x, shifted);
    return v_fma(r * r, v_exp_quadratic(r), r);
}

/* 2**n, -126 <= n <= 127 */
LNT_INLINE vf v_exp2_int(vi n)
{
    return (vf)(((vu)n << 23) + (vu)vi_splat(0x3f800000));
}

/* 2**n for n + LNT_EXP_MAGIC of the same n. */
LNT_INLINE vf v_exp2_shifted(vf shifted)
{
    return (vf)((vu)shifted << 23);
}

/* (1 + y) * scale, rounded once even where y * scale is denormal. */
LNT_INLINE vf v_exp_scaled(vf y, vf scale)
{
#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2) || defined(LNT_SIMD_NEON)
    return v_fma(y, scale, scale);
#else
    return (v_splat(1) + y) * scale;
#endif
}

#if defined(LNT_SIMD_AVX512)
/* x = n ln 2 + r, n a multiple of 1/16 and |r| <= ln(2) / 32 for |x| <= 104: two terms do after r. The
 * sixteenths come from a table, whose index the permutation finds in the low bits; scaling by instruction
 * takes the whole part of n, through overflow and denormals. Beyond 104 n alone says what comes out, infinity
 * and NaN as well: limited, r stays a number. */
LNT_INLINE vf v_exp_sixteenths(vf x, bool limited)
{
    static const float sixteenths[16] = {0x1p0f,        0x1.0b5586p0f, 0x1.172b84p0f, 0x1.2387a6p0f,
                                         0x1.306fep0f,  0x1.3dea64p0f, 0x1.4bfdaep0f, 0x1.5ab07ep0f,
                                         0x1.6a09e6p0f, 0x1.7a1148p0f, 0x1.8ace54p0f, 0x1.9c4918p0f,
                                         0x1.ae89fap0f, 0x1.c199bep0f, 0x1.d5818ep0f, 0x1.ea4afap0f};
    const vf magic = v_splat(0x1.8p19f);
    const vf shifted = v_fma(x, v_splat(0x1.715476p0f), magic), n = shifted - magic;
    vf r = v_fma(n, v_splat(-0.693359375f), x);
    r = v_fma(n, v_splat(2.12194440e-4f), r);
    if (limited) /* to the smaller magnitude, its number if one is NaN, r's sign */
        r = (vf)_mm512_range_ps((__m512)r, (__m512)v_splat(0x1p-5f), 2);
    const vf y = v_fma(r * r, v_fma(r, v_splat(0x1.555556p-3f), v_splat(0.5f)), r);
    const vf part = (vf)_mm512_permutexvar_ps((__m512i)shifted, (__m512)v_load(sixteenths));
    return (vf)_mm512_scalef_ps((__m512)v_fma(part, y, part), (__m512)n);
}

/* |x| <= 104 */
LNT_INLINE vf v_exp_narrow(vf x)
{
    return v_exp_sixteenths(x, false);
}

LNT_INLINE vf v_exp(vf x)
{
    return v_exp_sixteenths(x, true);
}

/* The same without what the table's numbers are rounded by: for functions that feel it. */
LNT_INLINE vf v_exp_close_narrow(vf x)
{
    vf shifted;
    const vf r = v_exp_rest(x, &shifted), one = v_splat(1),
             y = v_fma(r, v_fma(r, v_exp_quadratic(r), one), one);
    return (vf)_mm512_scalef_ps((__m512)y, (__m512)(shifted - v_splat(LNT_EXP_MAGIC)));
}

LNT_INLINE vf v_exp_close(vf x)
{
    return v_exp_close_narrow(v_max(v_splat(-104), v_min(v_splat(89), x)));
}
#else
/* Any x: scales in two steps, through overflow and denormals. */
LNT_NOINLINE vf v_exp_wide(vf x)
{
    vf shifted;
    const vf y = v_exp_reduced(v_max(v_splat(-104), v_min(v_splat(89), x)), &shifted);
    const vi n = (vi)((vu)shifted - (vu)v_splat(LNT_EXP_MAGIC)), half = n >> 1;
    const vf scale = v_exp2_int(half);
    return v_exp_scaled(y, scale) * v_exp2_int(n - half);
}

/* Inside |x| < 87 one step does, without a look at the range. */
LNT_INLINE vf v_exp_narrow(vf x)
{
    vf shifted;
    const vf y = v_exp_reduced(x, &shifted);
    return v_exp_scaled(y, v_exp2_shifted(shifted));
}

LNT_INLINE vf v_exp(vf x)
{
    if (__builtin_expect(v_any_beyond(x, 87), 0))
        return v_exp_wide(x);
    return v_exp_narrow(x);
}

LNT_INLINE vf v_exp_close_narrow(vf x)
{
    return v_exp_narrow(x);
}

LNT_INLINE vf v_exp_close(vf x)
{
    return v_exp(x);
}
#endif

/* e**x - 1 for x <= 0, exact near 0. */
LNT_INLINE vf v_expm1_negative(vf x)
{
    vf shifted;
    const vf y = v_exp_reduced(v_max(v_splat(-30), x), &shifted), scale = v_exp2_shifted(shifted);
    return v_fma(y, scale, scale - v_splat(1));
}

/* |x| < 80 */
LNT_INLINE vf v_sigmoid_narrow(vf x)
{
    const vf one = v_splat(1);
    return v_ratio(one, one + v_exp_close_narrow(-x));
}

/* near where |x| < 80. Far out e**-|x| alone is the result on one side, 1 on the other. */
LNT_NOINLINE vf v_sigmoid_wide(vf x, vf near)
{
    const vf far = v_select(x >= v_splat(0), v_splat(1), v_exp(-v_abs(x)));
    return v_select(v_abs(x) < v_splat(80), near, far);
}

LNT_INLINE vf v_sigmoid(vf x)
{
    const vf near = v_sigmoid_narrow(x);
    return __builtin_expect(v_any_beyond(x, 80), 0) ? v_sigmoid_wide(x, near) : near;
}

/* e**x for sums with 1: a term fewer, one unit in the last place more. |x| < 87 */
LNT_INLINE vf v_exp_beside_one(vf x)
{
#if defined(LNT_SIMD_AVX512)
    return v_exp_narrow(x);
#else
    vf shifted;
    const vf r = v_exp_rest(x, &shifted);
    const vf q = LNT_POLY(r, 0x1.fffdfcp-2f, 0x1.5557aep-3f, 0x1.572a02p-5f, 0x1.10627cp-7f);
    return v_exp_scaled(v_fma(r * r, q, r), v_exp2_shifted(shifted));
#endif
}

/* x * sigmoid(-t), |t| < 80 */
LNT_INLINE vf v_gate_narrow(vf x, vf t)
{
    return v_ratio(x, v_splat(1) + v_exp_beside_one(t));
}

/* x * sigmoid(-t) */
LNT_INLINE vf v_gate(vf x, vf t)
{
    const vf near = v_gate_narrow(x, t);
    if (__builtin_expect(v_any_beyond(t, 80), 0))
        return v_select(v_abs(t) < v_splat(80), near, x * v_sigmoid_wide(-t, near));
    return near;
}

/* a < 0 ? alpha * (e**(rate * a) - 1) : a */
LNT_INLINE vf v_elu(vf a, vf alpha, vf rate)
{
    return v_select(a < v_splat(0), alpha * v_expm1_negative(rate * a), a);
}

/* With w = e**x: tanh(log(1 + w)) = n / (n + 2), n = w (w + 2). From x = 20 on it is 1. */
LNT_INLINE vf v_mish_exponent(vf x)
{
    return v_min(v_splat(20), x);
}

LNT_INLINE vf v_mish_of(vf x, vf w)
{
    const vf two = v_splat(2), n = w * (w + two);
    return x * v_ratio(n, n + two);
}

LNT_INLINE vf v_mish(vf x)
{
    return v_mish_of(x, v_exp(v_mish_exponent(x)));
}

/* x > -87 */
LNT_INLINE vf v_mish_narrow(vf x)
{
    return v_mish_of(x, v_exp_narrow(v_mish_exponent(x)));
}

/* ---- logarithms ---- */

/* Positive, normal, finite x. f = m - 1 for the mantissa m in [sqrt(1/2), sqrt(2)). */
LNT_INLINE vf v_log_narrow(vf x)
{
    const vi sqrt_half = vi_splat(0x3f3504f3);
    const vi exponent = ((vi)x - sqrt_half) >> 23;
    const vf f = (vf)((vi)x - (exponent << 23)) - v_splat(1), e = vi_float(exponent), u = f * f;
    const vf p = LNT_POLY(f, 0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a008p-3f, -0x1.547244p-3f, 0x1.22da1cp-3f,
                          -0x1.0d8542p-3f, 0x1.055b6cp-3f, -0x1.38b586p-4f);
    vf y = v_fma(e, v_splat(-2.12194440e-4f), u * f * p);
    y = v_fma(v_splat(-0.5f), u, y);
    return v_fma(e, v_splat(0.693359375f), f + y);
}

LNT_NOINLINE vf v_log_wide(vf x)
{
    const vf inf = v_splat(INFINITY), zero = v_splat(0);
    const vi denormal = x < v_splat(0x1p-126f);
    const vf positive = v_select((x > zero) & (x < inf), x, v_splat(1));
    vf y = v_log_narrow(v_select(denormal & (x > zero), x * v_splat(0x1p23f), positive));
    y = v_select(denormal, y - v_splat(0x1.fe2804p3f), y); /* 23 ln 2 */
    y = v_select(x == zero, -inf, y);
    y = v_select(x < zero, v_splat(NAN), y);
    return v_select((x == inf) | v_is_nan(x), x, y);
}

LNT_INLINE vi v_log_is_narrow(vf x)
{
    return (x >= v_splat(0x1p-126f)) & (x < v_splat(INFINITY));
}

LNT_INLINE vf v_log(vf x)
{
    if (__builtin_expect(vi_any(~v_log_is_narrow(x)), 0))
        return v_log_wide(x);
    return v_log_narrow(x);
}

/* log(1 + z) for 0 <= z <= 1; what 1 + z lost is put back to first order. */
LNT_INLINE vf v_log1p_unit(vf z)
{
    const vf one = v_splat(1), u = one + z, lost = z - (u - one);
    return v_fma(lost, v_fma(v_splat(-0.5f), z, one), v_log_narrow(u));
}

LNT_INLINE vf v_softplus(vf x)
{
    return v_max(v_splat(0), x) + v_log1p_unit(v_exp_close(-v_abs(x)));
}

/* |x| < 87 */
LNT_INLINE vf v_softplus_narrow(vf x)
{
    return v_max(v_splat(0), x) + v_log1p_unit(v_exp_close_narrow(-v_abs(x)));
}

#if !defined(LNT_SIMD_AVX512)
/* tanh(|x|) = -e / (2 + e) with e = e**(-2 |x|) - 1, and x's sign. */
LNT_INLINE vf v_tanh(vf x)
{
    const vf e = v_expm1_negative(v_splat(-2) * v_abs(x));
    return v_sign_of(v_ratio(e, v_splat(2) + e), x);
}
#endif

/* log(erfc(a)) / a is smooth: for 0 <= a <= 4.2, where erfc is 3e-9, the product with a is returned. */
LNT_INLINE vf v_log_erfc(vf a)
{
    return a * LNT_POLY(a, -1.1283791783049415f, -0.6366188238052871f, -0.10278508117142224f,
                        0.019187327122539673f, 8.414781144130963e-05f, -0.0015783592886946184f,
                        0.0005777099839582957f, -0.0001003757343376277f, 7.12654979051523e-06f);
}

LNT_INLINE vf v_erf(vf x)
{
    return v_sign_of(v_expm1_negative(v_log_erfc(v_min(v_splat(4.2f), v_abs(x)))), x);
}

/* The same of a / sqrt(2), the root in the coefficients: a need not be rounded once more. */
LNT_INLINE vf v_log_erfc_normal(vf a)
{
    return a * LNT_POLY(a, -0x1.988476p-1f, -0x1.45eff2p-2f, -0x1.2a08d2p-5f, 0x1.3ef95cp-8f,
                        -0x1.9d190ep-15f, -0x1.593d7cp-13f, 0x1.5f3d04p-15f, -0x1.4d3bdep-18f,
                        0x1.05af70p-22f);
}

/* x times the normal distribution function: with c = erfc(|x| / sqrt(2)) / 2 it is x c below 0, x - x c
 * above, which keeps digits of the left tail; c is 0 from |x| = 5.94 on, where the result is below 1e-8. */
LNT_INLINE vf v_gelu(vf x)
{
    const vf a = v_abs(x);
    const vi far = a >= v_splat(5.94f);
    const vf c = v_splat(0.5f) * v_exp_narrow(v_log_erfc_normal(a));
    const vf tail = (vf)((vi)(x * c) & ~far);
    return v_select(x < v_splat(0), tail, x - tail);
}

/* a / 2 (1 + tanh(t)) is a sigmoid(2 t): from 80 on 1, down from -80 next to nothing, which denormal numbers
 * would take a hundred cycles to say. */
LNT_INLINE vf v_gelu_tanh(vf x)
{
    /* 2 sqrt(2 / pi) and 0.044715 times that; few roundings, as e**-t feels each of them t-fold. */
    const vf t = x * v_fma(x * x, v_splat(0.071354814f), v_splat(1.5957691f)), end = v_splat(80);
    const vf gate = v_sigmoid_narrow(v_max(-end, v_min(end, t)));
    return x * v_select(t < -end, v_splat(0), gate);
}

/* ---- in double: half a vector at a time ---- */

LNT_INLINE vd vd_splat(double x)
{
#if LNT_VL == 16
    return (vd){x, x, x, x, x, x, x, x};
#elif LNT_VL == 8
    return (vd){x, x, x, x};
#else
    return (vd){x, x};
#endif
}

LNT_INLINE vd vd_select(vl mask, vd a, vd b)
{
    return (vd)(((vl)a & mask) | ((vl)b & ~mask));
}

LNT_INLINE vd vd_poly(vd x, const double *c, unsigned n)
{
    vd y = vd_splat(c[n - 1]);
#pragma GCC unroll 16
    for (unsigned i = n - 1; i-- > 0;)
        y = y * x + vd_splat(c[i]);
    return y;
}

LNT_INLINE vd vd_round(vd x)
{
    const vd magic = vd_splat(0x1.8p52);
    return (x + magic) - magic;
}

/* x - n pi/2 with n in *quadrant; |x| <= 2**17. pi/2 in two doubles of which the first has 25 bits, so that
 * its product with n is exact and r is good to a float's last place even next to a multiple of pi/2. */
LNT_INLINE vf v_trig_reduced(vf x, vi *quadrant)
{
    vd d[2], n[2];
    d[0] = v_widen_low(x);
    d[1] = v_widen_high(x);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        n[i] = vd_round(d[i] * vd_splat(0x1.45f306dc9c883p-1));
        d[i] = d[i] - n[i] * vd_splat(0x1.921fb5p0);
        d[i] = d[i] - n[i] * vd_splat(0x1.110b4611a6263p-26);
    }
    *quadrant = v_trunc_int(v_narrow(n[0], n[1]));
    return v_narrow(d[0], d[1]);
}

/* sin of x + shift pi/2 inside the reduced range. */
LNT_INLINE vf v_sin_narrow(vf x, int shift)
{
    vi n;
    const vf r = v_trig_reduced(x, &n), u = r * r;
    const vf sine = v_fma(r * u, LNT_POLY(u, -0x1.555546p-3f, 0x1.110730p-7f, -0x1.994062p-13f), r);
    const vf c = LNT_POLY(u, 0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e86cp-16f);
    const vf cosine = v_fma(u * u, c, v_fma(v_splat(-0.5f), u, v_splat(1)));
    n += vi_splat(shift);
    const vf y = v_select((n & vi_splat(1)) == vi_splat(1), cosine, sine);
    return (vf)((vi)y ^ ((n & vi_splat(2)) << 30));
}

/* Some lane is beyond 2**17: those are libm's. */
LNT_NOINLINE vf v_sin_wide(vf x, int shift)
{
    const vi wide = ~(v_abs(x) < v_splat(0x1p17f));
    vf y = v_sin_narrow(v_select(wide, v_splat(0), x), shift);
    for (unsigned i = 0; i < LNT_VL; i++)
        if (wide[i])
            y[i] = shift ? cosf(x[i]) : sinf(x[i]);
    return y;
}

LNT_INLINE vf v_sin_shifted(vf x, int shift)
{
    if (__builtin_expect(v_any_beyond(x, 0x1p17f), 0))
        return v_sin_wide(x, shift);
    return v_sin_narrow(x, shift);
}

LNT_INLINE vf v_sin(vf x)
{
    return v_sin_shifted(x, 0);
}

LNT_INLINE vf v_cos(vf x)
{
    return v_sin_shifted(x, 1);
}

/* log2 of positive normal doubles: exponent + (2 / ln 2) atanh(s), s = (m - 1) / (m + 1). */
LNT_INLINE vd vd_log2(vd x)
{
    static const double c[] = {2.88539008179014, 0.9617966732670413, 0.5770836002073128, 0.4116717533579793,
                               0.34074883706128};
    vl bits, exponent_bits;
    memcpy(&bits, &x, sizeof x);
    const int64_t sqrt_half = 0x3fe6a09e667f3bcd;
    /* Signed right shift of 64-bit lanes is slow before AVX-512: the exponent is biased to be positive. */
    exponent_bits = (vl)(bits - sqrt_half + (INT64_C(1024) << 52));
    const vul biased = (vul)exponent_bits >> 52;
    const vd m = (vd)(bits - (vl)((biased - 1024) << 52));
    /* 0x1p52 + k holds k in its low bits. */
    const vd e = (vd)(biased | (vul)(vl)vd_splat(0x1p52)) - vd_splat(0x1p52 + 1024);
    const vd s = (m - vd_splat(1)) / (m + vd_splat(1));
    return e + s * vd_poly(s * s, c, 5);
}

/* 2**x, |x| <= 1000. */
LNT_INLINE vd vd_exp2(vd x)
{
    static const double c[] = {1.0000000005551593,    0.6931472057720648,   0.24022646885650514,
                               0.05550328700948156,   0.009618489248856284, 0.001339996206192973,
                               0.00015345799118804328};
    const vd magic = vd_splat(0x1.8p52), shifted = x + magic, r = x - (shifted - magic);
    const vul scale = ((vul)shifted << 52) + UINT64_C(0x3ff0000000000000);
    return vd_poly(r, c, 7) * (vd)scale;
}

/* Positive finite a, finite b. */
LNT_INLINE vf v_pow_narrow(vf a, vf b)
{
    vd x[2] = {v_widen_low(a), v_widen_high(a)}, y[2] = {v_widen_low(b), v_widen_high(b)};
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        vd t = y[i] * vd_log2(x[i]);
        const vd limit = vd_splat(200); /* far outside float on both sides */
        t = vd_select((vl)(t > limit), limit, t);
        t = vd_select((vl)(t < -limit), -limit, t);
        x[i] = vd_exp2(t);
    }
    return v_narrow(x[0], x[1]);
}

LNT_INLINE vi v_pow_is_wide(vf a, vf b)
{
    const vf inf = v_splat(INFINITY);
    return ~((a > v_splat(0)) & (a < inf) & (v_abs(b) < inf));
}

/* Some lane's base is not positive and finite, or its exponent not finite: those are libm's. The others must
 * not feel it, so that a result never depends on its neighbors. */
LNT_NOINLINE vf v_pow_wide(vf a, vf b)
{
    const vi wide = v_pow_is_wide(a, b);
    vf y = v_pow_narrow(v_select(wide, v_splat(1), a), v_select(wide, v_splat(1), b));
    for (unsigned i = 0; i < LNT_VL; i++)
        if (wide[i])
            y[i] = powf(a[i], b[i]);
    return y;
}

LNT_INLINE vf v_pow(vf a, vf b)
{
    if (__builtin_expect(vi_any(v_pow_is_wide(a, b)), 0))
        return v_pow_wide(a, b);
    return v_pow_narrow(a, b);
}

/* ---- remainders ---- */

LNT_NOINLINE vf v_fmod_lanes(vf a, vf b)
{
    for (unsigned i = 0; i < LNT_VL; i++)
        a[i] = fmodf(a[i], b[i]);
    return a;
}

/* C's fmod, exactly: the remainder is a float, so that one rounding gives it. So is what is left where the
 * quotient was rounded up to the next integer. */
LNT_INLINE vf v_fmod(vf a, vf b)
{
#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2) || (defined(LNT_SIMD_NEON) && defined(__aarch64__))
    const vf zero = v_splat(0), n = v_abs(a), d = v_abs(b), quotient = n / d;
    if (!v_any_beyond(quotient, 0x1p23f)) {
        const vf whole = vi_float(v_trunc_int(quotient)), rest = v_fnma(whole, d, n);
        /* Where whole is 0, d may be infinite. */
        return v_sign_of(v_select(whole == zero, n, v_select(rest < zero, rest + d, rest)), a);
    }
#endif
    return v_fmod_lanes(a, b);
}

#endif
