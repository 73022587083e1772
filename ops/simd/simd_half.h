/* simd_half.h — ops/simd/simd.h's vocabulary over halves, for levels whose CPUs compute with them: a vf is 8 halves, a
 * vi 8 int16, an elem a half. What kernels are given as floats besides, a bias or limits, is rounded on the way in. */
#ifndef LNT_OPS_SIMD_SIMD_HALF_H
#define LNT_OPS_SIMD_SIMD_HALF_H

#include <arm_neon.h>
#include <string.h>

#define LNT_VL 8
#define LNT_SIMD_SUFFIX fp16

typedef _Float16 elem;
typedef _Float16 vf __attribute__((vector_size(LNT_VL * 2)));
typedef int16_t vi_lane;
typedef int16_t vi __attribute__((vector_size(LNT_VL * 2)));
typedef _Float16 vf_unaligned __attribute__((vector_size(LNT_VL * 2), aligned(2), may_alias));

/* A vector in float, and the way back. */
typedef struct vf_wide {
    float32x4_t low, high;
} vf_wide;

LNT_INLINE vf_wide v_widen(vf x)
{
    return (vf_wide){vcvt_f32_f16(vget_low_f16((float16x8_t)x)), vcvt_high_f32_f16((float16x8_t)x)};
}

LNT_INLINE vf v_narrow(vf_wide x)
{
    return (vf)vcvt_high_f16_f32(vcvt_f16_f32(x.low), x.high);
}

/* ---- making, loading, storing ---- */

LNT_INLINE vf v_splat(elem x)
{
    return (vf){x, x, x, x, x, x, x, x};
}

/* The nearest half of a float, infinity past the largest. */
LNT_INLINE vf v_splat_float(float x)
{
    return v_splat((elem)x);
}

LNT_INLINE vi vi_splat(int16_t x)
{
    return (vi){x, x, x, x, x, x, x, x};
}

LNT_INLINE vf v_load(const elem *p)
{
    return *(const vf_unaligned *)p;
}

LNT_INLINE void v_store(elem *p, vf x)
{
    *(vf_unaligned *)p = x;
}

LNT_INLINE vi vi_load(const vi_lane *p)
{
    vi x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* to[i] = vector i from p on, i < n. */
LNT_INLINE void v_load_each(vf *to, const elem *p, const unsigned n)
{
#pragma GCC unroll 4
    for (unsigned i = 0; i < n; i++)
        to[i] = v_load(p + i * LNT_VL);
}

LNT_INLINE vf v_keep(vf x)
{
    __asm__("" : "+w"(x));
    return x;
}

/* n < 4 halves, in the low bits. */
LNT_INLINE uint64_t v_few_bits(const elem *p, unsigned n)
{
    uint32_t two = 0;
    uint16_t one = 0;
    if (n & 2)
        memcpy(&two, p, sizeof two);
    if (n & 1)
        memcpy(&one, p + (n & 2), sizeof one);
    return two | (uint64_t)one << 16 * (n & 2);
}

LNT_INLINE void v_store_few(elem *p, uint64_t bits, unsigned n)
{
    const uint32_t two = (uint32_t)bits;
    const uint16_t one = (uint16_t)(bits >> 16 * (n & 2));
    if (n & 2)
        memcpy(p, &two, sizeof two);
    if (n & 1)
        memcpy(p + (n & 2), &one, sizeof one);
}

/* The first n lanes only, 0 <= n <= LNT_VL; memory past them is not touched. Other lanes load as 0. */
LNT_INLINE vf v_load_n(const elem *p, unsigned n)
{
    if (n == LNT_VL)
        return v_load(p);
    uint64_t four = 0;
    if (n & 4)
        memcpy(&four, p, sizeof four);
    const uint64_t few = v_few_bits(p + (n & 4), n & 3);
    return (vf)(n & 4 ? (uint64x2_t){four, few} : (uint64x2_t){few, 0});
}

LNT_INLINE void v_store_n(elem *p, vf x, unsigned n)
{
    const uint64x2_t bits = (uint64x2_t)x;
    if (n == LNT_VL) {
        v_store(p, x);
        return;
    }
    if (n & 4)
        memcpy(p, &bits, sizeof bits / 2);
    v_store_few(p + (n & 4), n & 4 ? bits[1] : bits[0], n & 3);
}

/* The first n of floats, rounded. */
LNT_INLINE vf v_load_floats(const float *p, unsigned n)
{
    if (n == LNT_VL)
        return v_narrow((vf_wide){vld1q_f32(p), vld1q_f32(p + 4)});
    elem lanes[LNT_VL] = {0};
    for (unsigned i = 0; i < n; i++)
        lanes[i] = (elem)p[i];
    return v_load(lanes);
}

/* Lane i is p[at[i]], 0 <= at[i] < min(n, LNT_VL); memory past p[n] is not touched. */
LNT_INLINE vf v_pick(const elem *p, unsigned n, vi at)
{
    (void)n;
    vf x;
    for (unsigned i = 0; i < LNT_VL; i++)
        x[i] = p[at[i]];
    return x;
}

/* ---- arithmetic ---- */

LNT_INLINE vf v_fma(vf a, vf b, vf c)
{
    return (vf)vfmaq_f16((float16x8_t)c, (float16x8_t)a, (float16x8_t)b);
}

/* *c += a[lane] * b. GCC 12 would rather spread the lane over a register first. a is in one of the lower 16 registers,
 * which are all that the instruction takes. */
#define v_fma_lane(c, a, lane, b) __asm__("fmla %0.8h, %1.8h, %2.h[" #lane "]" : "+w"(*(c)) : "w"(b), "x"(a))
/* A number where a vector's lane 0 is asked for: clang's constraint takes whole registers alone. */
#ifdef __clang__
#define v_as_lane(a) ((vf){a})
#else
#define v_as_lane(a) (a)
#endif

LNT_INLINE void v_fma_from(vf *c, const elem *a, vf b, const bool half)
{
    (void)half;
    *c = v_fma(v_splat(*a), b, *c);
}

LNT_INLINE vf v_select(vi mask, vf a, vf b)
{
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
}

LNT_INLINE vf v_abs(vf x)
{
    return (vf)vabsq_f16((float16x8_t)x);
}

/* Lanes where a < b: all bits. GCC 12 compares halves one by one. */
LNT_INLINE vi v_less(vf a, vf b)
{
    return (vi)vcltq_f16((float16x8_t)a, (float16x8_t)b);
}

/* NaN if either is. */
LNT_INLINE vf v_min(vf a, vf b)
{
    return (vf)vminq_f16((float16x8_t)a, (float16x8_t)b);
}

LNT_INLINE vf v_max(vf a, vf b)
{
    return (vf)vmaxq_f16((float16x8_t)a, (float16x8_t)b);
}

LNT_INLINE vf v_max_or_nan(vf acc, vf x)
{
    return v_max(acc, x);
}

LNT_INLINE vf v_min_or_nan(vf acc, vf x)
{
    return v_min(acc, x);
}

LNT_INLINE void v_prefetch(const void *p)
{
    __builtin_prefetch(p, 0, 3);
}

#endif
