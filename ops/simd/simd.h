/* simd.h — the vector primitives kernels are written with, over GCC/Clang vector extensions.
 *
 * A kernel is written once, in a file `stem_*.inc.h` or in functions of this header's vocabulary, and
 * compiled per level: the level's file says which before including this header.
 *
 *     #define LNT_SIMD_AVX2        // or _AVX512, _NEON, or nothing for the scalar level
 *     #include "ops/simd/simd.h"        // vf is now 8 floats, vi 8 int32
 *     #include "ops/conv/stem.inc.h"
 *     const lnt_stem_kernels LNT_SIMD_NAME(lnt_stem) = {...};   // lnt_stem_avx2
 *
 * +, -, *, /, comparisons (giving a vi of 0 or -1), &, |, ^, ~, << and >> work on vectors as in C. Casting
 * between vf and vi keeps the bits. Loads and stores take any element-aligned address. The scalar level has
 * vectors too (4 lanes, whatever the compiler makes of them), but no fused multiply-add; where the target has
 * none, and the file says LNT_SIMD_SINGLE, they are single numbers (ops/simd/simd_single.h).
 *
 * elem is what a vector consists of: float, or a half with LNT_SIMD_FP16, which has what products, pooling and
 * elementwise programs need of this (ops/simd/simd_half.h). */
#ifndef LNT_OPS_SIMD_SIMD_H
#define LNT_OPS_SIMD_SIMD_H

#include "base/lnt_assert.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LNT_INLINE static inline __attribute__((always_inline, unused))

/* Registers for four floats without a level's flags. */
#if defined(__SSE2__) || defined(__ARM_NEON) || defined(__ALTIVEC__) || defined(__VX__)
#define LNT_TARGET_HAS_VECTORS 1
#else
#define LNT_TARGET_HAS_VECTORS 0
#endif

#define LNT_SIMD_PASTE2(a, b) a##_##b
#define LNT_SIMD_PASTE(a, b) LNT_SIMD_PASTE2(a, b)
#define LNT_SIMD_NAME(stem) LNT_SIMD_PASTE(stem, LNT_SIMD_SUFFIX)

#if defined(LNT_SIMD_FP16)
#include "ops/simd/simd_half.h"
#else

#if defined(LNT_SIMD_AVX512)
#include <immintrin.h>
#define LNT_VL 16
#define LNT_SIMD_SUFFIX avx512
#elif defined(LNT_SIMD_AVX2)
#include <immintrin.h>
#define LNT_VL 8
#define LNT_SIMD_SUFFIX avx2
#elif defined(LNT_SIMD_NEON)
#include <arm_neon.h>
#define LNT_VL 4
#define LNT_SIMD_SUFFIX neon
#elif defined(LNT_SIMD_SINGLE) && !LNT_TARGET_HAS_VECTORS
#define LNT_VL 1
#define LNT_SIMD_SUFFIX scalar
#else
#define LNT_VL 4
#define LNT_SIMD_SUFFIX scalar
#endif

typedef float elem;
typedef int32_t vi_lane;

#if LNT_VL == 1
#include "ops/simd/simd_single.h"
#else
typedef float vf __attribute__((vector_size(LNT_VL * 4)));
typedef int32_t vi __attribute__((vector_size(LNT_VL * 4)));
typedef uint32_t vu __attribute__((vector_size(LNT_VL * 4))); /* where sums may wrap */
typedef float vf_unaligned __attribute__((vector_size(LNT_VL * 4), aligned(4), may_alias));
typedef int32_t vi_unaligned __attribute__((vector_size(LNT_VL * 4), aligned(4), may_alias));

/* ---- making, loading, storing ---- */

LNT_INLINE vf v_splat(float x)
{
#if LNT_VL == 16
    return (vf){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#elif LNT_VL == 8
    return (vf){x, x, x, x, x, x, x, x};
#else
    return (vf){x, x, x, x};
#endif
}

LNT_INLINE vi vi_splat(int32_t x)
{
#if LNT_VL == 16
    return (vi){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#elif LNT_VL == 8
    return (vi){x, x, x, x, x, x, x, x};
#else
    return (vi){x, x, x, x};
#endif
}

LNT_INLINE vf v_load(const float *p)
{
    return *(const vf_unaligned *)p;
}

/* to[i] = vector i from p on, i < n. */
LNT_INLINE void v_load_each(vf *to, const float *p, const unsigned n)
{
#pragma GCC unroll 4
    for (unsigned i = 0; i < n; i++)
        to[i] = v_load(p + i * LNT_VL);
}

/* x, held in a register: a compiler may rather load it again for each of its uses. */
LNT_INLINE vf v_keep(vf x)
{
#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2)
    __asm__("" : "+v"(x));
#elif defined(LNT_SIMD_NEON)
    __asm__("" : "+w"(x));
#endif
    return x;
}

LNT_INLINE void v_store(float *p, vf x)
{
    *(vf_unaligned *)p = x;
}

LNT_INLINE vi vi_load(const int32_t *p)
{
    return *(const vi_unaligned *)p;
}

LNT_INLINE void vi_store(int32_t *p, vi x)
{
    *(vi_unaligned *)p = x;
}

/* Keeps what was loaded in a register: GCC would rather load it again for each use. */
LNT_INLINE void v_hold(vf *x)
{
#if defined(LNT_SIMD_AVX512)
    __asm__("" : "+v"(*x));
#elif defined(LNT_SIMD_AVX2)
    __asm__("" : "+x"(*x));
#else
    (void)x;
#endif
}

/* As many bytes as fit a vector, unsigned. */
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
#if defined(LNT_SIMD_AVX512)
    return (vb)_mm512_max_epu8((__m512i)a, (__m512i)b);
#elif defined(LNT_SIMD_AVX2)
    return (vb)_mm256_max_epu8((__m256i)a, (__m256i)b);
#elif defined(LNT_SIMD_NEON)
    return (vb)vmaxq_u8((uint8x16_t)a, (uint8x16_t)b);
#else
    const vb larger = (vb)(a > b);
    return (a & larger) | (b & ~larger);
#endif
}

/* Adds every byte of x to one of the sums. */
LNT_INLINE vi vb_add_to(vi sums, vb x)
{
#if defined(LNT_SIMD_AVX512)
    return sums + (vi)_mm512_sad_epu8((__m512i)x, _mm512_setzero_si512());
#elif defined(LNT_SIMD_AVX2)
    return sums + (vi)_mm256_sad_epu8((__m256i)x, _mm256_setzero_si256());
#elif defined(LNT_SIMD_NEON)
    return (vi)vpadalq_u16((uint32x4_t)sums, vpaddlq_u8((uint8x16_t)x));
#else
    const vi every_other = vi_splat(0x00ff00ff), pairs = ((vi)x & every_other) + (((vi)x >> 8) & every_other);
    return sums + (pairs & vi_splat(0xffff)) + (pairs >> 16);
#endif
}

/* The first n lanes only, 0 <= n <= LNT_VL; memory past them is not touched. Other lanes load as 0. */
#if defined(LNT_SIMD_AVX512)
LNT_INLINE vf v_load_n(const float *p, unsigned n)
{
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

LNT_INLINE void v_store_n(float *p, vf x, unsigned n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)x);
}
#elif defined(LNT_SIMD_AVX2)
LNT_INLINE __m256i v_lane_mask(unsigned n)
{
    static const int32_t ones_then_zeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones_then_zeros + 8 - n));
}

LNT_INLINE vf v_load_n(const float *p, unsigned n)
{
    return (vf)_mm256_maskload_ps(p, v_lane_mask(n));
}

LNT_INLINE void v_store_n(float *p, vf x, unsigned n)
{
    _mm256_maskstore_ps(p, v_lane_mask(n), (__m256)x);
}
#elif defined(LNT_SIMD_NEON)
LNT_INLINE vf v_load_n(const float *p, unsigned n)
{
    vf x = v_splat(0);
    switch (n) {
    case 0: return x;
    case 1: x[0] = p[0]; return x;
    case 2: x[0] = p[0], x[1] = p[1]; return x;
    case 3: x[0] = p[0], x[1] = p[1], x[2] = p[2]; return x;
    default: return v_load(p);
    }
}

LNT_INLINE void v_store_n(float *p, vf x, unsigned n)
{
    switch (n) {
    case 0: return;
    case 1: p[0] = x[0]; return;
    case 2: p[0] = x[0], p[1] = x[1]; return;
    case 3: p[0] = x[0], p[1] = x[1], p[2] = x[2]; return;
    default: v_store(p, x);
    }
}
#else
LNT_INLINE vf v_load_n(const float *p, unsigned n)
{
    float lanes[LNT_VL] = {0};
    for (unsigned i = 0; i < n; i++)
        lanes[i] = p[i];
    return v_load(lanes);
}

LNT_INLINE void v_store_n(float *p, vf x, unsigned n)
{
    float lanes[LNT_VL];
    v_store(lanes, x);
    for (unsigned i = 0; i < n; i++)
        p[i] = lanes[i];
}
#endif

/* Lane i is lane at[i] of x, 0 <= at[i] < LNT_VL. */
LNT_INLINE vf v_lanes(vf x, vi at)
{
#if defined(LNT_SIMD_AVX512)
    return (vf)_mm512_permutexvar_ps((__m512i)at, (__m512)x);
#elif defined(LNT_SIMD_AVX2)
    return (vf)_mm256_permutevar8x32_ps((__m256)x, (__m256i)at);
#elif defined(LNT_SIMD_NEON) && defined(__aarch64__)
    return (vf)vqtbl1q_u8((uint8x16_t)x, (uint8x16_t)(at * 0x04040404 + 0x03020100));
#else
    return (vf){x[at[0]], x[at[1]], x[at[2]], x[at[3]]};
#endif
}

#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2)
/* Lanes of a and b with an even index, and those with an odd one. */
LNT_INLINE void v_halves(vf a, vf b, vf halves[2])
{
#if defined(LNT_SIMD_AVX512)
    const __m512i even = (__m512i)((vi){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} * 2);
    halves[0] = (vf)_mm512_permutex2var_ps((__m512)a, even, (__m512)b);
    halves[1] = (vf)_mm512_permutex2var_ps((__m512)a, (__m512i)((vi)even + 1), (__m512)b);
#else
    const __m256 even = _mm256_shuffle_ps((__m256)a, (__m256)b, 0x88),
                 odd = _mm256_shuffle_ps((__m256)a, (__m256)b, 0xdd);
    halves[0] = (vf)_mm256_permute4x64_pd((__m256d)even, 0xd8);
    halves[1] = (vf)_mm256_permute4x64_pd((__m256d)odd, 0xd8);
#endif
}
#endif

/* Lane i is p[at[i]], 0 <= at[i] < min(n, LNT_VL); memory past p[n] is not touched. */
LNT_INLINE vf v_pick(const float *p, unsigned n, vi at)
{
#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2)
    return v_lanes(v_load_n(p, n < LNT_VL ? n : LNT_VL), at);
#else
    (void)n;
    vf x;
    for (unsigned i = 0; i < LNT_VL; i++)
        x[i] = p[at[i]];
    return x;
#endif
}

/* ---- arithmetic ---- */

/* a * b + c, rounded once where the level has fused multiply-add. */
LNT_INLINE vf v_fma(vf a, vf b, vf c)
{
#if defined(LNT_SIMD_AVX512)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(LNT_SIMD_AVX2)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(LNT_SIMD_NEON)
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

/* *c = a * b + *c, where *c is a register and stays the same one: left to itself GCC writes over a or b and
 * then moves and spills to get its sums back. With half, only the first half of the lanes is wanted. */
LNT_INLINE void v_fma_to(vf *c, vf a, vf b, const bool half)
{
    (void)half;
#if defined(LNT_SIMD_AVX512)
    if (half)
        __asm__("vfmadd231ps %t2, %t1, %t0" : "+v"(*c) : "v"(a), "v"(b));
    else
        __asm__("vfmadd231ps %2, %1, %0" : "+v"(*c) : "v"(a), "v"(b));
#elif defined(LNT_SIMD_AVX2)
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(*c) : "x"(a), "x"(b));
#else
    *c = v_fma(a, b, *c);
#endif
}

/* The same for *a in all lanes. */
LNT_INLINE void v_fma_from(vf *c, const float *a, vf b, const bool half)
{
#if defined(LNT_SIMD_AVX512)
    if (half)
        __asm__("vfmadd231ps %2%{1to8%}, %t1, %t0" : "+v"(*c) : "v"(b), "m"(*a));
    else
        __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(*c) : "v"(b), "m"(*a));
#else
    v_fma_to(c, v_splat(*a), b, half);
#endif
}

/* c - a * b */
LNT_INLINE vf v_fnma(vf a, vf b, vf c)
{
    return v_fma(-a, b, c);
}

/* a / b to about half a unit in the last place, for finite a and |b| in [2**-120, 2**120]: without the
 * divider where that is slow, or missing. NaN stays NaN. */
LNT_INLINE vf v_ratio(vf a, vf b)
{
#if defined(LNT_SIMD_AVX512)
    const vf r = (vf)_mm512_rcp14_ps((__m512)b), q = a * r;
    return v_fma(v_fnma(q, b, a), r, q);
#elif defined(LNT_SIMD_NEON)
    float32x4_t r = vrecpeq_f32((float32x4_t)b);
    r = vmulq_f32(r, vrecpsq_f32((float32x4_t)b, r)); /* to 2**-16, and the quotient to its square */
#if !defined(__aarch64__)
    /* The smallest normal quotients would be flushed to 0 where the reciprocal is a little too small. */
    r = vmulq_f32(r, vrecpsq_f32((float32x4_t)b, r));
#endif
    const vf q = a * (vf)r;
    return v_fma(v_fnma(q, b, a), (vf)r, q);
#else
    return a / b;
#endif
}

/* mask ? a : b, lane by lane; mask lanes are 0 or -1. */
LNT_INLINE vf v_select(vi mask, vf a, vf b)
{
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
}

LNT_INLINE vi vi_select(vi mask, vi a, vi b)
{
    return (a & mask) | (b & ~mask);
}

LNT_INLINE vi v_is_nan(vf x)
{
    return x != x;
}

/* The smaller or larger. NaN if b is NaN; if only a is NaN the result is a or b, by level. So
 * v_max(v_splat(0), x) keeps x's NaN. */
LNT_INLINE vf v_min(vf a, vf b)
{
#if defined(LNT_SIMD_AVX512)
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(LNT_SIMD_AVX2)
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(LNT_SIMD_NEON)
    return (vf)vminq_f32((float32x4_t)a, (float32x4_t)b);
#else
    return v_select(a < b, a, b);
#endif
}

LNT_INLINE vf v_max(vf a, vf b)
{
#if defined(LNT_SIMD_AVX512)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(LNT_SIMD_AVX2)
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(LNT_SIMD_NEON)
    return (vf)vmaxq_f32((float32x4_t)a, (float32x4_t)b);
#else
    return v_select(a > b, a, b);
#endif
}

/* The larger or smaller of acc and x; NaN if either is. */
LNT_INLINE vf v_max_or_nan(vf acc, vf x)
{
#if defined(LNT_SIMD_AVX512)
    const __mmask16 number = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_ORD_Q);
    return (vf)_mm512_mask_max_ps((__m512)x, number, (__m512)x, (__m512)acc);
#elif defined(LNT_SIMD_AVX2)
    return (vf)((vi)v_max(x, acc) | v_is_nan(x));
#elif defined(LNT_SIMD_NEON)
    return v_max(acc, x);
#else
    return v_select((x > acc) | (x != x), x, acc);
#endif
}

LNT_INLINE vf v_min_or_nan(vf acc, vf x)
{
#if defined(LNT_SIMD_AVX512)
    const __mmask16 number = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_ORD_Q);
    return (vf)_mm512_mask_min_ps((__m512)x, number, (__m512)x, (__m512)acc);
#elif defined(LNT_SIMD_AVX2)
    return (vf)((vi)v_min(x, acc) | v_is_nan(x));
#elif defined(LNT_SIMD_NEON)
    return v_min(acc, x);
#else
    return v_select((x < acc) | (x != x), x, acc);
#endif
}

/* The larger of both; low for NaN. */
LNT_INLINE vf v_at_least(vf x, vf low)
{
#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2)
    return v_max(x, low);
#else
    return v_select(x > low, x, low);
#endif
}

LNT_INLINE vf v_abs(vf x)
{
    return (vf)((vi)x & vi_splat(0x7fffffff));
}

/* |magnitude| with the sign of x. */
LNT_INLINE vf v_sign_of(vf magnitude, vf x)
{
    const vi sign = vi_splat(INT32_MIN);
    return (vf)(((vi)magnitude & ~sign) | ((vi)x & sign));
}

/* The low words of a * b; *high: the high ones. */
LNT_INLINE vu vu_product(vu a, uint32_t b, vu *high)
{
#if defined(LNT_SIMD_AVX2)
    const __m256i factor = _mm256_set1_epi32((int32_t)b);
    const __m256i even = _mm256_mul_epu32((__m256i)a, factor);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), factor);
    *high = (vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    return (vu)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
#elif defined(LNT_SIMD_NEON)
    const uint64x2_t low = vmull_n_u32(vget_low_u32((uint32x4_t)a), b);
    const uint64x2_t up = vmull_n_u32(vget_high_u32((uint32x4_t)a), b);
    const uint32x4x2_t parts = vuzpq_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(up));
    *high = (vu)parts.val[1];
    return (vu)parts.val[0];
#else
    for (unsigned i = 0; i < LNT_VL; i++)
        (*high)[i] = (uint32_t)(((uint64_t)a[i] * b) >> 32);
    return a * b;
#endif
}

LNT_INLINE vf v_sqrt(vf x)
{
#if defined(LNT_SIMD_AVX512)
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined(LNT_SIMD_AVX2)
    return (vf)_mm256_sqrt_ps((__m256)x);
#elif defined(__aarch64__) && defined(LNT_SIMD_NEON)
    return (vf)vsqrtq_f32((float32x4_t)x);
#else
    for (unsigned i = 0; i < LNT_VL; i++)
        x[i] = sqrtf(x[i]);
    return x;
#endif
}

/* ---- rounding and conversion ---- */

/* Towards zero; the value must fit an int32. */
LNT_INLINE vi v_trunc_int(vf x)
{
    return __builtin_convertvector(x, vi);
}

LNT_INLINE vf vi_float(vi x)
{
    return __builtin_convertvector(x, vf);
}

/* x * factor; products below the least normal number may be 0. GCC multiplies floats one by one on ARMv7 unless it is
 * told so. */
LNT_INLINE vf vi_scaled(vi x, vf factor)
{
#if defined(LNT_SIMD_NEON)
    return (vf)vmulq_f32(vcvtq_f32_s32((int32x4_t)x), (float32x4_t)factor);
#else
    return vi_float(x) * factor;
#endif
}

/* To the nearest integer, ties to even. Any magnitude; keeps NaN, infinity and the sign of zero. */
LNT_INLINE vf v_round(vf x)
{
#if defined(LNT_SIMD_AVX512)
    return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(LNT_SIMD_AVX2)
    return (vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__) && defined(LNT_SIMD_NEON)
    return (vf)vrndnq_f32((float32x4_t)x);
#else
    const vi sign = (vi)x & vi_splat(INT32_MIN);
    const vf magic = v_splat(0x1p23f), magnitude = v_abs(x);
    const vf rounded = (vf)((vi)((magnitude + magic) - magic) | sign);
    return v_select(magnitude < magic, rounded, x);
#endif
}

/* The distance from an integer, for magnitudes below 2**22; of larger ones something that is 0 or more, NaN of NaN,
 * and 0 or NaN of infinity. */
LNT_INLINE vf v_off_integer(vf x)
{
#if defined(LNT_SIMD_NEON)
    const float32x4_t magic = vdupq_n_f32(0x1.8p23f), y = (float32x4_t)x;
    return (vf)vabdq_f32(y, vsubq_f32(vaddq_f32(y, magic), magic));
#elif defined(LNT_SIMD_AVX512)
    return v_abs((vf)_mm512_reduce_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
    return v_abs(x - v_round(x));
#endif
}

/* To the nearest integer, ties to even; the value must fit an int32. */
LNT_INLINE vi v_round_int(vf x)
{
#if defined(LNT_SIMD_AVX512)
    return (vi)_mm512_cvtps_epi32((__m512)x);
#elif defined(LNT_SIMD_AVX2)
    return (vi)_mm256_cvtps_epi32((__m256)x);
#else
    return v_trunc_int(v_round(x));
#endif
}

LNT_INLINE vf v_floor(vf x)
{
    const vf r = v_round(x);
    return v_select(r > x, r - v_splat(1), r);
}

LNT_INLINE vf v_ceil(vf x)
{
    const vf r = v_round(x), up = r + v_splat(1);
    return v_select(r < x, (vf)((vi)up | ((vi)x & vi_splat(INT32_MIN))), r);
}

/* ---- double precision: half as many lanes ---- */

typedef double vd __attribute__((vector_size(LNT_VL * 4)));
typedef int64_t vl __attribute__((vector_size(LNT_VL * 4)));
typedef uint64_t vul __attribute__((vector_size(LNT_VL * 4)));

/* The first or second half of x, widened; and the way back, each rounded to nearest. */
#if defined(LNT_SIMD_AVX512)
LNT_INLINE vd v_widen_low(vf x)
{
    return (vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)x));
}

LNT_INLINE vd v_widen_high(vf x)
{
    return (vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)x, 1));
}

LNT_INLINE vf v_narrow(vd low, vd high)
{
    const __m512 x = _mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)low));
    return (vf)_mm512_insertf32x8(x, _mm512_cvtpd_ps((__m512d)high), 1);
}
#elif defined(LNT_SIMD_AVX2)
LNT_INLINE vd v_widen_low(vf x)
{
    return (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x));
}

LNT_INLINE vd v_widen_high(vf x)
{
    return (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1));
}

LNT_INLINE vf v_narrow(vd low, vd high)
{
    return (vf)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high), _mm256_cvtpd_ps((__m256d)low));
}
#else
LNT_INLINE vd v_widen_low(vf x)
{
    return (vd){(double)x[0], (double)x[1]};
}

LNT_INLINE vd v_widen_high(vf x)
{
    return (vd){(double)x[2], (double)x[3]};
}

LNT_INLINE vf v_narrow(vd low, vd high)
{
    return (vf){(float)low[0], (float)low[1], (float)high[0], (float)high[1]};
}
#endif

/* ---- across lanes: pairwise, in the same order at every level of the same width ---- */

LNT_INLINE float v_first(vf x)
{
    return x[0];
}

LNT_INLINE float v_sum(vf x)
{
#if LNT_VL == 16
    return _mm512_reduce_add_ps((__m512)x);
#elif LNT_VL == 8
    const __m128 four = _mm256_castps256_ps128((__m256)x) + _mm256_extractf128_ps((__m256)x, 1);
    const __m128 two = four + _mm_movehl_ps(four, four);
    return two[0] + two[1];
#else
    return (x[0] + x[2]) + (x[1] + x[3]);
#endif
}

/* The sums of each in lanes 0 to 3, all taken in one order. */
LNT_INLINE vf v_sum4(vf a, vf b, vf c, vf d)
{
#if LNT_VL == 16
    const __m512 ab = _mm512_unpacklo_ps((__m512)a, (__m512)b) + _mm512_unpackhi_ps((__m512)a, (__m512)b);
    const __m512 cd = _mm512_unpacklo_ps((__m512)c, (__m512)d) + _mm512_unpackhi_ps((__m512)c, (__m512)d);
    const __m512 all = _mm512_shuffle_ps(ab, cd, 0x44) + _mm512_shuffle_ps(ab, cd, 0xee);
    const __m256 half =
        _mm512_castps512_ps256(all) + _mm512_castps512_ps256(_mm512_shuffle_f32x4(all, all, 0x4e));
    return (vf)_mm512_castps128_ps512(_mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1));
#elif LNT_VL == 8
    const __m256 ab = _mm256_unpacklo_ps((__m256)a, (__m256)b) + _mm256_unpackhi_ps((__m256)a, (__m256)b);
    const __m256 cd = _mm256_unpacklo_ps((__m256)c, (__m256)d) + _mm256_unpackhi_ps((__m256)c, (__m256)d);
    const __m256 all = _mm256_shuffle_ps(ab, cd, 0x44) + _mm256_shuffle_ps(ab, cd, 0xee);
    return (vf)(all + _mm256_permute2f128_ps(all, all, 1));
#else
    return (vf){v_sum(a), v_sum(b), v_sum(c), v_sum(d)};
#endif
}

/* Largest lane; unspecified if a lane is NaN. */
LNT_INLINE float v_max_lane(vf x)
{
#if LNT_VL == 16
    return _mm512_reduce_max_ps((__m512)x);
#elif LNT_VL == 8
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return two[0] > two[1] ? two[0] : two[1];
#else
    float m = x[0];
    for (unsigned i = 1; i < LNT_VL; i++)
        m = x[i] > m ? x[i] : m;
    return m;
#endif
}

/* True if any lane of a comparison's result is set. */
LNT_INLINE int vi_any(vi mask)
{
#if defined(LNT_SIMD_AVX512)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(LNT_SIMD_AVX2)
    return _mm256_movemask_ps((__m256)mask) != 0;
#elif defined(__aarch64__) && defined(LNT_SIMD_NEON)
    return vmaxvq_u32((uint32x4_t)mask) != 0;
#elif defined(LNT_SIMD_NEON)
    const uint32x2_t folded = vorr_u32(vget_low_u32((uint32x4_t)mask), vget_high_u32((uint32x4_t)mask));
    return vget_lane_u64(vreinterpret_u64_u32(folded), 0) != 0;
#else
    return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
#endif
}

/* The first lane that is set; one is. */
LNT_INLINE unsigned vi_first(vi mask)
{
#if defined(LNT_SIMD_AVX512)
    return (unsigned)__builtin_ctz(_mm512_movepi32_mask((__m512i)mask));
#elif defined(LNT_SIMD_AVX2)
    return (unsigned)__builtin_ctz((unsigned)_mm256_movemask_ps((__m256)mask));
#else
    unsigned i = 0;
    while (!mask[i])
        i++;
    return i;
#endif
}

/* Lanes that are b's or more, or NaN. */
LNT_INLINE vi v_not_below(vf a, vf b)
{
    return ~(a < b);
}

/* Lanes whose magnitude is below limit. */
LNT_INLINE vi v_within(vf x, float limit)
{
#if defined(LNT_SIMD_NEON) && defined(__aarch64__)
    vi within; /* GCC makes two instructions of vcaltq_f32 */
    __asm__("facgt %0.4s, %1.4s, %2.4s" : "=w"(within) : "w"(v_splat(limit)), "w"(x));
    return within;
#elif defined(LNT_SIMD_NEON)
    return (vi)vcaltq_f32((float32x4_t)x, (float32x4_t)v_splat(limit));
#else
    return v_abs(x) < v_splat(limit);
#endif
}

/* True if the magnitude of any lane is limit or more, or NaN. */
LNT_INLINE int v_any_beyond(vf x, float limit)
{
#if defined(LNT_SIMD_AVX512)
    return _mm512_cmp_ps_mask((__m512)v_abs(x), (__m512)v_splat(limit), _CMP_NLT_UQ) != 0;
#else
    return vi_any(~(v_abs(x) < v_splat(limit)));
#endif
}

#endif

/* Of what is float whatever an elem is: a bias, limits. */
LNT_INLINE vf v_load_floats(const float *p, unsigned n)
{
    return n == LNT_VL ? v_load(p) : v_load_n(p, n);
}

LNT_INLINE vi v_less(vf a, vf b)
{
    return a < b;
}

LNT_INLINE vf v_splat_float(float x)
{
    return v_splat(x);
}

LNT_INLINE void v_prefetch(const void *p)
{
    __builtin_prefetch(p, 0, 3);
}

/* Into the second-level cache. */
LNT_INLINE void v_prefetch_far(const void *p)
{
    __builtin_prefetch(p, 0, 2);
}

#endif /* LNT_SIMD_FP16 */
#endif
