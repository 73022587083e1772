/* simd_narrow.h — narrow elements in memory to and from the lanes of ops/simd/simd.h.
 *
 * Loads widen with or without sign, stores keep the low bits; float16 rounds to nearest even. Compilers take
 * such conversions apart into single lanes, so they are spelled out where a level has instructions for them. */
#ifndef LNT_OPS_SIMD_SIMD_NARROW_H
#define LNT_OPS_SIMD_SIMD_NARROW_H

#include "base/half.h"
#include "ops/simd/simd.h"

#if defined(LNT_SIMD_AVX512)

LNT_INLINE vi vi_load_u8(const uint8_t *p)
{
    return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

LNT_INLINE vi vi_load_i8(const int8_t *p)
{
    return (vi)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

LNT_INLINE vi vi_load_u16(const uint16_t *p)
{
    return (vi)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

LNT_INLINE vi vi_load_i16(const int16_t *p)
{
    return (vi)_mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

LNT_INLINE void vi_store_8(void *p, vi x)
{
    _mm_storeu_si128(p, _mm512_cvtepi32_epi8((__m512i)x));
}

LNT_INLINE void vi_store_16(void *p, vi x)
{
    _mm256_storeu_si256(p, _mm512_cvtepi32_epi16((__m512i)x));
}

LNT_INLINE vf v_load_f16(const uint16_t *p)
{
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

LNT_INLINE void v_store_f16(uint16_t *p, vf x)
{
    _mm256_storeu_si256((__m256i *)(void *)p,
                        _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#elif defined(LNT_SIMD_AVX2)

LNT_INLINE vi vi_load_u8(const uint8_t *p)
{
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

LNT_INLINE vi vi_load_i8(const int8_t *p)
{
    return (vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

LNT_INLINE vi vi_load_u16(const uint16_t *p)
{
    return (vi)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

LNT_INLINE vi vi_load_i16(const int16_t *p)
{
    return (vi)_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

LNT_INLINE void vi_store_8(void *p, vi x)
{
    const __m256i low_bytes = _mm256_set1_epi32(0x0c080400);
    const __m256i packed = _mm256_shuffle_epi8((__m256i)x, low_bytes);
    _mm_storel_epi64(p,
                     _mm_unpacklo_epi32(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1)));
}

LNT_INLINE void vi_store_16(void *p, vi x)
{
    const __m256i low_halves = _mm256_set1_epi64x(0x0d0c090805040100);
    const __m256i packed = _mm256_shuffle_epi8((__m256i)x, low_halves);
    _mm_storeu_si128(p, _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}

LNT_INLINE vf v_load_f16(const uint16_t *p)
{
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

LNT_INLINE void v_store_f16(uint16_t *p, vf x)
{
    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#elif defined(LNT_SIMD_NEON)

LNT_INLINE vi vi_load_u16(const uint16_t *p)
{
    return (vi)vmovl_u16(vld1_u16(p));
}

LNT_INLINE vi vi_load_i16(const int16_t *p)
{
    return (vi)vmovl_s16(vld1_s16(p));
}

LNT_INLINE vi vi_load_u8(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return (vi)vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)))));
}

LNT_INLINE vi vi_load_i8(const int8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return (vi)vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)))));
}

LNT_INLINE void vi_store_16(void *p, vi x)
{
    vst1_u16(p, vmovn_u32((uint32x4_t)x));
}

LNT_INLINE vf v_load_f16(const uint16_t *p)
{
#if defined(__aarch64__)
    return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#else /* compilers know float16 on ARMv7 where they are told of it alone; the level's CPUs (vfpv4) all have it */
    float32x4_t x;
    __asm__("vcvt.f32.f16 %q0, %P1" : "=w"(x) : "w"(vld1_u16(p)));
    return (vf)x;
#endif
}

LNT_INLINE void vi_store_8(void *p, vi x)
{
    const uint16x4_t halves = vmovn_u32((uint32x4_t)x);
    const uint8x8_t bytes = vmovn_u16(vcombine_u16(halves, halves));
    const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
    memcpy(p, &four, sizeof four);
}

#elif LNT_VL == 1

LNT_INLINE vi vi_load_u8(const uint8_t *p)
{
    return *p;
}

LNT_INLINE vi vi_load_i8(const int8_t *p)
{
    return *p;
}

LNT_INLINE void vi_store_8(void *p, vi x)
{
    *(uint8_t *)p = (uint8_t)x;
}

LNT_INLINE vf v_load_f16(const uint16_t *p)
{
    return lnt_f16_to_float(*p);
}

LNT_INLINE vf v_load_bf16(const uint16_t *p)
{
    return lnt_bf16_to_float(*p);
}

#else

#define LNT_LOAD_NARROW(name, type)                                                                          \
    LNT_INLINE vi vi_load_##name(const type *p)                                                              \
    {                                                                                                        \
        return (vi){p[0], p[1], p[2], p[3]};                                                                 \
    }
LNT_LOAD_NARROW(u8, uint8_t)
LNT_LOAD_NARROW(i8, int8_t)
LNT_LOAD_NARROW(u16, uint16_t)
LNT_LOAD_NARROW(i16, int16_t)
#undef LNT_LOAD_NARROW

LNT_INLINE void vi_store_8(void *p, vi x)
{
    for (unsigned i = 0; i < LNT_VL; i++)
        ((uint8_t *)p)[i] = (uint8_t)x[i];
}

LNT_INLINE void vi_store_16(void *p, vi x)
{
    for (unsigned i = 0; i < LNT_VL; i++)
        ((uint16_t *)p)[i] = (uint16_t)x[i];
}

#endif

/* ---- bytes to and from LNT_BYTE_VECTORS vectors at once ---- */

#if defined(LNT_SIMD_NEON)

enum { LNT_BYTE_VECTORS = 4 };

LNT_INLINE void vi_load_bytes(const uint8_t *p, bool is_signed, vi to[LNT_BYTE_VECTORS])
{
    /* What is signed is moved by 128 and moved back by what is subtracted from 16 bits. */
    const uint8x16_t flip = vdupq_n_u8(is_signed ? 0x80 : 0), x = veorq_u8(vld1q_u8(p), flip);
    const uint8x8_t moved = vget_low_u8(flip);
    const int16x8_t low = vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(x), moved)),
                    high = vreinterpretq_s16_u16(vsubl_u8(vget_high_u8(x), moved));
    to[0] = (vi)vmovl_s16(vget_low_s16(low));
    to[1] = (vi)vmovl_s16(vget_high_s16(low));
    to[2] = (vi)vmovl_s16(vget_low_s16(high));
    to[3] = (vi)vmovl_s16(vget_high_s16(high));
}

#if defined(__aarch64__) && !defined(__ARM_FEATURE_DOTPROD)

/* int8 or uint8 results: saturated to int8 with a zero point moved by 128 where they are uint8, and moved back. */
typedef struct byte_range {
    int16x8_t zero;
    uint8x16_t flip;
} byte_range;

LNT_INLINE byte_range byte_range_of(int32_t zero, bool is_signed)
{
    return (byte_range){vdupq_n_s16((int16_t)(is_signed ? zero : zero - 128)),
                        vdupq_n_u8(is_signed ? 0 : 0x80)};
}

/* Two vectors rounded to int16, ties to even; what is beyond bytes and NaN stays so, NaN below. */
LNT_INLINE int16x8_t v_round_16(vf a, vf b)
{
    const float32x4_t low = vdupq_n_f32(-1e4f);
    const int32x4_t first = vcvtnq_s32_f32(vmaxnmq_f32((float32x4_t)a, low)),
                    second = vcvtnq_s32_f32(vmaxnmq_f32((float32x4_t)b, low));
    return vqmovn_high_s32(vqmovn_s32(first), second);
}

/* lnt_requantize (ops/quant/qparams.h), lane by lane. */
LNT_INLINE uint8x16_t vb_requantize(const vf x[LNT_BYTE_VECTORS], byte_range r)
{
    const int16x8_t low = vqaddq_s16(v_round_16(x[0], x[1]), r.zero),
                    high = vqaddq_s16(v_round_16(x[2], x[3]), r.zero);
    const int8x16_t bytes = vcombine_s8(vqmovn_s16(low), vqmovn_s16(high));
    return veorq_u8(vreinterpretq_u8_s8(bytes), r.flip);
}

#else

/* Where there is no such conversion (ARMv7), or it takes two turns of one of two units (A76 and its successors):
 * clamped and added to 1.5 * 2**23 numbers have their nearest integer, ties to even, in the low bits. */
typedef struct byte_range {
    float32x4_t low, high;
    uint8x16_t zero;
} byte_range;

LNT_INLINE byte_range byte_range_of(int32_t zero, bool is_signed)
{
    const float low = (float)((is_signed ? -128 : 0) - zero);
    return (byte_range){vdupq_n_f32(low), vdupq_n_f32(low + 255), vdupq_n_u8((uint8_t)zero)};
}

LNT_INLINE uint16x4_t v_round_low(vf x, byte_range r)
{
#if defined(__aarch64__)
    const float32x4_t inside = vminnmq_f32(vmaxnmq_f32((float32x4_t)x, r.low), r.high);
#else
    const float32x4_t y = (float32x4_t)x,
                      inside = vminq_f32(vbslq_f32(vcgtq_f32(y, r.low), y, r.low), r.high);
#endif
    return vmovn_u32(vreinterpretq_u32_f32(vaddq_f32(inside, vdupq_n_f32(0x1.8p23f))));
}

/* lnt_requantize (ops/quant/qparams.h), lane by lane. */
LNT_INLINE uint8x16_t vb_requantize(const vf x[LNT_BYTE_VECTORS], byte_range r)
{
    const uint16x8_t low = vcombine_u16(v_round_low(x[0], r), v_round_low(x[1], r)),
                     high = vcombine_u16(v_round_low(x[2], r), v_round_low(x[3], r));
    return vaddq_u8(vcombine_u8(vmovn_u16(low), vmovn_u16(high)), r.zero);
}

#endif

LNT_INLINE void v_store_requantized(uint8_t *p, const vf x[LNT_BYTE_VECTORS], byte_range r)
{
    vst1q_u8(p, vb_requantize(x, r));
}

#else

enum { LNT_BYTE_VECTORS = LNT_VL == 1 ? 4 : 1 };

LNT_INLINE void vi_load_bytes(const uint8_t *p, bool is_signed, vi to[LNT_BYTE_VECTORS])
{
#pragma GCC unroll 4
    for (unsigned i = 0; i < LNT_BYTE_VECTORS; i++)
        to[i] = is_signed ? vi_load_i8((const int8_t *)p + i * LNT_VL) : vi_load_u8(p + i * LNT_VL);
}

typedef struct byte_range {
    vf low, high;
    vi zero;
} byte_range;

LNT_INLINE byte_range byte_range_of(int32_t zero, bool is_signed)
{
    const vf low = v_splat((float)((is_signed ? -128 : 0) - zero));
    return (byte_range){low, low + v_splat(255), vi_splat(zero)};
}

/* lnt_requantize (ops/quant/qparams.h), lane by lane. */
LNT_INLINE void v_store_requantized(uint8_t *p, const vf x[LNT_BYTE_VECTORS], byte_range r)
{
#pragma GCC unroll 4
    for (unsigned i = 0; i < LNT_BYTE_VECTORS; i++)
        vi_store_8(p + i * LNT_VL, v_round_int(v_min(r.high, v_at_least(x[i], r.low))) + r.zero);
}

#if LNT_VL == 8
/* The same of two vectors, which are put together before they become bytes. */
LNT_INLINE void v_store_requantized_two(uint8_t *p, vf a, vf b, byte_range r)
{
    const __m256i low_bytes = _mm256_set1_epi64x(0x0e0c0a0806040200);
    const vi first = v_round_int(v_min(r.high, v_at_least(a, r.low))) + r.zero,
             second = v_round_int(v_min(r.high, v_at_least(b, r.low))) + r.zero;
    const __m256i packed =
        _mm256_shuffle_epi8(_mm256_packs_epi32((__m256i)first, (__m256i)second), low_bytes);
    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm_unpacklo_epi32(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1)));
}
#endif

#endif

/* ---- the same of LNT_WIDE_VECTORS vectors, for loops over many bytes ---- */

#if LNT_VL >= 8

enum { LNT_WIDE_VECTORS = 4 };

/* int8 or uint8 results: saturated to int8 with a zero point moved by 128 where they are uint8, and moved back. */
typedef struct wide_range {
    vi zeros, flip; /* in each 16 bits, in each byte */
} wide_range;

LNT_INLINE wide_range wide_range_of(int32_t zero, bool is_signed)
{
    const uint32_t z = (uint16_t)(is_signed ? zero : zero - 128);
    return (wide_range){vi_splat((int32_t)(z | z << 16)), vi_splat(is_signed ? 0 : (int32_t)0x80808080u)};
}

/* lnt_requantize (ops/quant/qparams.h), lane by lane: what is beyond bytes is still so in 16 bits, NaN below. */
LNT_INLINE void v_store_requantized_wide(uint8_t *p, const vf x[LNT_WIDE_VECTORS], wide_range r)
{
    vi v[LNT_WIDE_VECTORS];
#pragma GCC unroll 4
    for (unsigned i = 0; i < LNT_WIDE_VECTORS; i++)
        v[i] = v_round_int(v_min(v_splat(1e4f), x[i]));
#if defined(LNT_SIMD_AVX512)
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                  low = _mm512_packs_epi32((__m512i)v[0], (__m512i)v[1]),
                  high = _mm512_packs_epi32((__m512i)v[2], (__m512i)v[3]),
                  bytes = _mm512_packs_epi16(_mm512_adds_epi16(low, (__m512i)r.zeros),
                                             _mm512_adds_epi16(high, (__m512i)r.zeros));
    _mm512_storeu_si512(p, (__m512i)((vi)_mm512_permutexvar_epi32(order, bytes) ^ r.flip));
#else
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7),
                  low = _mm256_packs_epi32((__m256i)v[0], (__m256i)v[1]),
                  high = _mm256_packs_epi32((__m256i)v[2], (__m256i)v[3]),
                  bytes = _mm256_packs_epi16(_mm256_adds_epi16(low, (__m256i)r.zeros),
                                             _mm256_adds_epi16(high, (__m256i)r.zeros));
    _mm256_storeu_si256((__m256i *)(void *)p,
                        (__m256i)((vi)_mm256_permutevar8x32_epi32(bytes, order) ^ r.flip));
#endif
}

#else

enum { LNT_WIDE_VECTORS = LNT_BYTE_VECTORS };
typedef byte_range wide_range;
#define wide_range_of byte_range_of
#define v_store_requantized_wide v_store_requantized

#endif

/* int8 or uint8 less their zero point. */
LNT_INLINE void v_load_centered(const uint8_t *p, bool is_signed, int32_t zero, vf to[LNT_WIDE_VECTORS])
{
    vi x[LNT_WIDE_VECTORS];
    if (is_signed)
#pragma GCC unroll 4
        for (unsigned i = 0; i < LNT_WIDE_VECTORS; i += LNT_BYTE_VECTORS)
            vi_load_bytes(p + i * LNT_VL, true, x + i);
    else
#pragma GCC unroll 4
        for (unsigned i = 0; i < LNT_WIDE_VECTORS; i += LNT_BYTE_VECTORS)
            vi_load_bytes(p + i * LNT_VL, false, x + i);
#pragma GCC unroll 4
    for (unsigned i = 0; i < LNT_WIDE_VECTORS; i++)
        to[i] = vi_float(x[i] - vi_splat(zero));
}

#if LNT_VL > 1

/* ---- float16 without instructions for it: bits in the low half of each lane ---- */

LNT_INLINE vf v_from_f16(vi h)
{
    const vi sign = (h & vi_splat(0x8000)) << 16, rest = h & vi_splat(0x7fff);
    const vi normal = (rest << 13) + vi_splat(0x38000000);
    const vi special = vi_splat(0x7f800000) | (rest << 13);
    const vi subnormal = (vi)(vi_float(rest) * v_splat(0x1p-24f));
    vi y = vi_select(rest >= vi_splat(0x400), normal, subnormal);
    y = vi_select(rest >= vi_splat(0x7c00), special, y);
    return (vf)(y | sign);
}

LNT_INLINE vi v_to_f16(vf x)
{
    const vi magnitude = (vi)x & vi_splat(0x7fffffff), sign = ((vi)x >> 16) & vi_splat(0x8000);
    const vi odd = (magnitude >> 13) & vi_splat(1);
    const vu rounded = (vu)magnitude + (vu)vi_splat(0xfff) + (vu)odd; /* a NaN's may be beyond 2**31 */
    /* Below 2**-14 a multiple of 2**-24, rounded by the addition. */
    const vi subnormal = (vi)((vf)magnitude + v_splat(0.5f)) - vi_splat(0x3f000000);
    const vi normal = (vi)((rounded - (vu)vi_splat(0x38000000)) >> 13);
    vi y = vi_select(magnitude < vi_splat(0x38800000), subnormal, normal);
    y = vi_select(magnitude >= vi_splat(0x477ff000), vi_splat(0x7c00), y);
    y = vi_select(magnitude > vi_splat(0x7f800000), vi_splat(0x7e00), y);
    return y | sign;
}

#if !defined(LNT_SIMD_AVX512) && !defined(LNT_SIMD_AVX2)
#if !defined(LNT_SIMD_NEON)
LNT_INLINE vf v_load_f16(const uint16_t *p)
{
    return v_from_f16(vi_load_u16(p));
}
#endif

LNT_INLINE void v_store_f16(uint16_t *p, vf x)
{
#if defined(LNT_SIMD_NEON) && defined(__aarch64__)
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)x)));
#else
    vi_store_16(p, v_to_f16(x));
#endif
}
#endif

/* ---- bfloat16 ---- */

LNT_INLINE vf v_load_bf16(const uint16_t *p)
{
    return (vf)(vi_load_u16(p) << 16);
}

LNT_INLINE vi v_to_bf16(vf x)
{
    const vi u = (vi)x, odd = (u >> 16) & vi_splat(1);
    const vi rounded = (vi)((vu)u + (vu)vi_splat(0x7fff) + (vu)odd) >> 16; /* that of a NaN may wrap */
    return vi_select(v_is_nan(x), (u >> 16) | vi_splat(0x40), rounded);
}

LNT_INLINE void v_store_bf16(uint16_t *p, vf x)
{
    vi_store_16(p, v_to_bf16(x));
}

/* x as it is once it has been stored. */
LNT_INLINE vf v_round_bf16(vf x)
{
    return (vf)(v_to_bf16(x) << 16);
}

LNT_INLINE vf v_round_f16(vf x)
{
#if defined(LNT_SIMD_AVX512) || defined(LNT_SIMD_AVX2)
    uint16_t stored[LNT_VL];
    v_store_f16(stored, x);
    return v_load_f16(stored);
#elif defined(LNT_SIMD_NEON) && defined(__aarch64__)
    return (vf)vcvt_f32_f16(vcvt_f16_f32((float32x4_t)x));
#else
    return v_from_f16(v_to_f16(x));
#endif
}

/* ---- float to int32: towards zero; what does not fit, NaN too, is the smallest one ---- */

LNT_INLINE vi v_cut_int(vf x)
{
#if defined(LNT_SIMD_AVX512) /* what the instruction gives */
    return (vi)_mm512_cvttps_epi32((__m512)x);
#elif defined(LNT_SIMD_AVX2)
    return (vi)_mm256_cvttps_epi32((__m256)x);
#elif defined(LNT_SIMD_NEON)
    return vi_select(v_within(x, 0x1p31f), (vi)vcvtq_s32_f32((float32x4_t)x), vi_splat(INT32_MIN));
#else
    const vi fits = v_abs(x) < v_splat(0x1p31f);
    return vi_select(fits, v_trunc_int(v_select(fits, x, v_splat(0))), vi_splat(INT32_MIN));
#endif
}

static inline int64_t lnt_cut_i64(float x)
{
    return x >= -0x1p63f && x < 0x1p63f ? (int64_t)x : INT64_MIN;
}

/* Between floats and int64 few levels have instructions: lanes that an int32 holds, as nearly all do, go by it. */
LNT_INLINE void vi_store_i64(int64_t *p, vi x)
{
#if defined(LNT_SIMD_AVX2)
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_cvtepi32_epi64(_mm256_castsi256_si128((__m256i)x)));
    _mm256_storeu_si256((__m256i *)(void *)(p + 4),
                        _mm256_cvtepi32_epi64(_mm256_extracti128_si256((__m256i)x, 1)));
#elif defined(LNT_SIMD_NEON)
    vst1q_s64(p, vmovl_s32(vget_low_s32((int32x4_t)x)));
    vst1q_s64(p + 2, vmovl_s32(vget_high_s32((int32x4_t)x)));
#else
    for (unsigned i = 0; i < LNT_VL; i++)
        p[i] = x[i];
#endif
}

/* The low halves; *fits: the lanes that they are all of. */
LNT_INLINE vi vi_load_i64(const int64_t *p, vi *fits)
{
#if defined(LNT_SIMD_AVX2)
    const __m256 a = _mm256_loadu_ps((const float *)(const void *)p),
                 b = _mm256_loadu_ps((const float *)(const void *)(p + 4));
    const vi low = (vi)_mm256_shuffle_ps(a, b, 0x88), high = (vi)_mm256_shuffle_ps(a, b, 0xdd);
    *fits = high == low >> 31;
    return (vi)_mm256_permute4x64_epi64((__m256i)low, 0xd8);
#elif defined(LNT_SIMD_NEON)
    const int32x4x2_t x = vld2q_s32((const int32_t *)(const void *)p);
    *fits = (vi)x.val[1] == (vi)x.val[0] >> 31;
    return (vi)x.val[0];
#else
    vi low;
    for (unsigned i = 0; i < LNT_VL; i++) {
        low[i] = (int32_t)p[i];
        (*fits)[i] = low[i] == p[i] ? -1 : 0;
    }
    return low;
#endif
}

/* The same to int64. */
LNT_INLINE void v_cut_i64(int64_t *p, vf x)
{
#if defined(LNT_SIMD_AVX512)
    _mm512_storeu_si512(p, _mm512_cvttps_epi64(_mm512_castps512_ps256((__m512)x)));
    _mm512_storeu_si512(p + 8, _mm512_cvttps_epi64(_mm512_extractf32x8_ps((__m512)x, 1)));
#else
    if (__builtin_expect(!v_any_beyond(x, 0x1p31f), 1)) {
        vi_store_i64(p, v_trunc_int(x));
        return;
    }
    for (unsigned i = 0; i < LNT_VL; i++)
        p[i] = lnt_cut_i64(x[i]);
#endif
}

/* int64 as float, rounded once. */
LNT_INLINE vf v_load_i64(const int64_t *p)
{
#if defined(LNT_SIMD_AVX512)
    const __m512 low = _mm512_castps256_ps512(_mm512_cvtepi64_ps(_mm512_loadu_si512(p)));
    return (vf)_mm512_insertf32x8(low, _mm512_cvtepi64_ps(_mm512_loadu_si512(p + 8)), 1);
#else
    vi fits;
    vf x = vi_float(vi_load_i64(p, &fits));
    if (__builtin_expect(vi_any(~fits), 0))
        for (unsigned i = 0; i < LNT_VL; i++)
            x[i] = (float)p[i];
    return x;
#endif
}

#endif

static inline int32_t lnt_cut_int(float x)
{
    return x > -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN;
}

/* Two neighboring vectors. */
typedef struct two_vf {
    vf first, second;
} two_vf;

LNT_INLINE two_vf v_load_f16_two(const uint16_t *p)
{
#if defined(LNT_SIMD_NEON) && defined(__aarch64__)
    const float16x8_t x = vreinterpretq_f16_u16(vld1q_u16(p));
    return (two_vf){(vf)vcvt_f32_f16(vget_low_f16(x)), (vf)vcvt_high_f32_f16(x)};
#else
    return (two_vf){v_load_f16(p), v_load_f16(p + LNT_VL)};
#endif
}

LNT_INLINE two_vf v_load_bf16_two(const uint16_t *p)
{
    return (two_vf){v_load_bf16(p), v_load_bf16(p + LNT_VL)};
}

#endif
