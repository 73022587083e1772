/* simd_single.h — the primitives of ops/simd/simd.h for vectors of one lane, part of it.
 *
 * A vector that no register of the target holds is kept in memory by compilers, operation by operation; a number is
 * not. Here vf is a float and vi an int32_t, so a kernel for both has no lanes and no casts between them, and takes
 * the results of comparisons for nothing but masks of v_select. */
#ifndef LNT_OPS_SIMD_SIMD_SINGLE_H
#define LNT_OPS_SIMD_SIMD_SINGLE_H

/* ARM's floating-point unit, whose multiply-add rounds twice. It is spelled out since GCC else collects all products of
 * a sum of an unrolled loop and loads their factors once more. */
#if defined(__arm__) && defined(__VFP_FP__) && !defined(__SOFTFP__)
#define LNT_VFP 1
#else
#define LNT_VFP 0
#endif

typedef float vf;
typedef int32_t vi;
typedef uint32_t vu;

LNT_INLINE vf v_splat(float x)
{
    return x;
}

LNT_INLINE vi vi_splat(int32_t x)
{
    return x;
}

/* ---- loads and stores ---- */

LNT_INLINE vf v_load(const float *p)
{
    return *p;
}

/* to[i] = p[i], i < n. VFP loads four in one instruction that compilers do not choose. */
LNT_INLINE void v_load_each(vf *to, const float *p, const unsigned n)
{
#if LNT_VFP
    if (n == 4) {
        register float a __asm__("s0"), b __asm__("s1"), c __asm__("s2"), d __asm__("s3");
        __asm__("vldmia %4, {s0-s3}"
                : "=t"(a), "=t"(b), "=t"(c), "=t"(d)
                : "r"(p), "m"(*(const float(*)[4])p));
        to[0] = a, to[1] = b, to[2] = c, to[3] = d;
        return;
    }
#endif
#pragma GCC unroll 4
    for (unsigned i = 0; i < n; i++)
        to[i] = p[i];
}

/* The same of four, and *p moves on. */
LNT_INLINE void v_load_next(vf *to, const float **p)
{
#if LNT_VFP
    register float a __asm__("s0"), b __asm__("s1"), c __asm__("s2"), d __asm__("s3");
    __asm__("vldmia %4!, {s0-s3}"
            : "=t"(a), "=t"(b), "=t"(c), "=t"(d), "+r"(*p)
            : "m"(*(const float(*)[4]) * p));
    to[0] = a, to[1] = b, to[2] = c, to[3] = d;
#else
    v_load_each(to, *p, 4);
    *p += 4;
#endif
}

LNT_INLINE void v_store(float *p, vf x)
{
    *p = x;
}

LNT_INLINE vi vi_load(const int32_t *p)
{
    return *p;
}

LNT_INLINE void vi_store(int32_t *p, vi x)
{
    *p = x;
}

LNT_INLINE vf v_load_n(const float *p, unsigned n)
{
    return n ? *p : 0;
}

LNT_INLINE void v_store_n(float *p, vf x, unsigned n)
{
    if (n)
        *p = x;
}

LNT_INLINE vf v_lanes(vf x, vi at)
{
    (void)at;
    return x;
}

LNT_INLINE vf v_pick(const float *p, unsigned n, vi at)
{
    (void)n;
    return p[at];
}

LNT_INLINE vf v_keep(vf x)
{
    return x;
}

LNT_INLINE void v_hold(vf *x)
{
    (void)x;
}

typedef uint8_t vb __attribute__((vector_size(LNT_VL * 4)));
typedef uint8_t vb_unaligned __attribute__((vector_size(LNT_VL * 4), aligned(1), may_alias));

LNT_INLINE vb vb_load(const uint8_t *p)
{
    return *(const vb_unaligned *)p;
}

LNT_INLINE void vb_store(uint8_t *p, vb x)
{
    *(vb_unaligned *)p = x;
}

LNT_INLINE vb vb_max(vb a, vb b)
{
    const vb larger = (vb)(a > b);
    return (a & larger) | (b & ~larger);
}

LNT_INLINE vi vb_add_to(vi sums, vb x)
{
    return sums + x[0] + x[1] + x[2] + x[3];
}

/* ---- arithmetic ---- */

LNT_INLINE vf v_fnma(vf a, vf b, vf c)
{
    return c - a * b;
}

LNT_INLINE void v_fma_to(vf *c, vf a, vf b, const bool half)
{
    (void)half;
#if LNT_VFP
    __asm__("vmla.f32 %0, %1, %2" : "+t"(*c) : "t"(a), "t"(b));
#else
    *c = a * b + *c;
#endif
}

LNT_INLINE vf v_fma(vf a, vf b, vf c)
{
    v_fma_to(&c, a, b, false);
    return c;
}

LNT_INLINE void v_fma_from(vf *c, const float *a, vf b, const bool half)
{
    v_fma_to(c, *a, b, half);
}

LNT_INLINE vf v_select(vi mask, vf a, vf b)
{
    return mask ? a : b;
}

LNT_INLINE vf v_min(vf a, vf b)
{
    return a < b ? a : b;
}

LNT_INLINE vf v_max(vf a, vf b)
{
    return a > b ? a : b;
}

LNT_INLINE vf v_abs(vf x)
{
    return fabsf(x);
}

LNT_INLINE vf v_max_or_nan(vf acc, vf x)
{
    return x <= acc || acc != acc ? acc : x;
}

LNT_INLINE vf v_at_least(vf x, vf low)
{
    return x > low ? x : low;
}

/* ---- rounding and conversion ---- */

LNT_INLINE vf vi_float(vi x)
{
    return (float)x;
}

LNT_INLINE vf vi_scaled(vi x, vf factor)
{
    return (float)x * factor;
}

LNT_INLINE vi v_round_int(vf x)
{
#if LNT_VFP
    int32_t y;
    __asm__("vcvtr.s32.f32 %0, %0\n\tvmov %1, %0" : "+t"(x), "=r"(y));
    return y;
#else
    return (vi)lrintf(x);
#endif
}

LNT_INLINE vf v_off_integer(vf x)
{
    const vf magic = 0x1.8p23f;
    return fabsf(x - ((x + magic) - magic));
}

/* ---- the lane ---- */

LNT_INLINE vi v_not_below(vf a, vf b)
{
    return !(a < b);
}

LNT_INLINE int vi_any(vi mask)
{
    return mask;
}

LNT_INLINE float v_first(vf x)
{
    return x;
}

LNT_INLINE float v_sum(vf x)
{
    return x;
}

LNT_INLINE float v_max_lane(vf x)
{
    return x;
}

#endif
