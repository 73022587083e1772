/* simd_nibbles.h — vectors of bytes of two numbers of 4 bits each, and their products with int8.
 *
 * A vector of them is a step: byte i holds numbers 2i, in its low bits, and 2i + 1. The int8 that it is multiplied with
 * come as a vector that meets the even numbers, then one that meets the odd.
 *
 *     nibbles_dot     sums of products, each in a lane of the 128 bits that its numbers are in
 *     nibbles_add     adds products of 4 numbers in each lane, to sums of 8 such at most; nibbles_sums: these
 *     vi_columns      four words of each of LNT_VL columns, which begin at p + at[]: one after the other those of all
 *     v_spread(x, i)  in the lanes of each 128 bits of step i, the number of x that is of them: x has one for each 128
 *                     bits of four steps; where NIBBLES_COLUMNS is 0
 *
 * On x86 nibbles_of takes bytes apart by masks: where NIBBLES_8_BITS, numbers of 8 bits are even ones without odd. */
#ifndef LNT_OPS_SIMD_SIMD_NIBBLES_H
#define LNT_OPS_SIMD_SIMD_NIBBLES_H

#include "ops/simd/simd_narrow.h"

enum { NIBBLES_BYTES = LNT_VL * 4, NIBBLES_STEP = 2 * NIBBLES_BYTES };

/* Does it cost little to pick lanes and to gather words? */
#if defined(LNT_SIMD_AVX2) || defined(LNT_SIMD_AVX512)
#define NIBBLES_COLUMNS 1
#else
#define NIBBLES_COLUMNS 0
#endif

/* Loops over steps are best unrolled so often. */
#if defined(LNT_SIMD_NEON)
#define NIBBLES_UNROLLED 4
#else
#define NIBBLES_UNROLLED 1
#endif

#if NIBBLES_COLUMNS
/* Lane i is i >> shift. */
LNT_INLINE vi v_lanes_of(unsigned shift)
{
    static const int32_t lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return vi_load(lane) >> (int)shift;
}

/* The LNT_VL numbers from p on, of which `left` bytes are left, and 0 behind these. */
LNT_INLINE vi nibbles_numbers(const uint8_t *p, int64_t left)
{
#if defined(LNT_SIMD_AVX512)
    const __mmask16 some = (__mmask16)((1u << (left < LNT_VL / 2 ? left : LNT_VL / 2)) - 1);
    const __m512i bytes = _mm512_cvtepu8_epi64(_mm_maskz_loadu_epi8(some, p));
    return (vi)_mm512_or_si512(bytes, _mm512_slli_epi64(bytes, 28)) & vi_splat(15);
#else
    uint32_t word = 0;
    if (left >= LNT_VL / 2)
        memcpy(&word, p, LNT_VL / 2);
    else
        for (int64_t i = 0; i < left; i++)
            word |= (uint32_t)p[i] << 8 * i;
    const __m256i bytes = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128((int32_t)word));
    return (vi)_mm256_or_si256(bytes, _mm256_slli_epi64(bytes, 28)) & vi_splat(15);
#endif
}

/* The same of bytes, n of them. */
LNT_INLINE vi nibbles_bytes(const uint8_t *p, unsigned n)
{
#if defined(LNT_SIMD_AVX512)
    return (vi)_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1), p));
#else
    uint8_t bytes[LNT_VL] = {0};
    memcpy(bytes, p, n);
    return vi_load_u8(bytes);
#endif
}
#endif

/* Are there sums of products of bytes that do not saturate, and registers for all that numbers may be? */
#if defined(__AVX512VNNI__)
#define NIBBLES_8_BITS true
#else
#define NIBBLES_8_BITS false
#endif

#if defined(LNT_SIMD_AVX512)

typedef struct nibbles {
    __m512i even, odd;
} nibbles;

LNT_INLINE nibbles nibbles_of(vi bytes, vi low, vi high)
{
    const __m512i both = (__m512i)bytes;
    return (nibbles){_mm512_and_si512(both, (__m512i)low),
                     _mm512_and_si512(_mm512_srli_epi32(both, 4), (__m512i)high)};
}

#if defined(__AVX512VNNI__)
LNT_INLINE vi nibbles_add(vi sums, vi w, vi a)
{
    return (vi)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)w, (__m512i)a);
}

LNT_INLINE vi nibbles_sums(vi sums)
{
    return sums;
}

LNT_INLINE vi nibbles_dot(nibbles w, const int8_t *a)
{
    const vi even = nibbles_add(vi_splat(0), (vi)w.even, (vi)_mm512_loadu_si512(a));
    return nibbles_add(even, (vi)w.odd, (vi)_mm512_loadu_si512(a + NIBBLES_BYTES));
}
#endif

LNT_INLINE __m512i four_columns(const char *p, const int64_t *at)
{
    const __m128i *from[4];
    for (unsigned i = 0; i < 4; i++)
        from[i] = (const __m128i *)(const void *)(p + at[4 * i]);
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(from[0])),
                                                _mm_loadu_si128(from[1]), 1),
                  high = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(from[2])),
                                                 _mm_loadu_si128(from[3]), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

LNT_INLINE void vi_columns(const void *p, const int64_t *at, vi *words)
{
    const __m512i a = four_columns(p, at), b = four_columns(p, at + 1), c = four_columns(p, at + 2),
                  d = four_columns(p, at + 3);
    const __m512i ab = _mm512_unpacklo_epi32(a, b), ab2 = _mm512_unpackhi_epi32(a, b),
                  cd = _mm512_unpacklo_epi32(c, d), cd2 = _mm512_unpackhi_epi32(c, d);
    words[0] = (vi)_mm512_unpacklo_epi64(ab, cd);
    words[1] = (vi)_mm512_unpackhi_epi64(ab, cd);
    words[2] = (vi)_mm512_unpacklo_epi64(ab2, cd2);
    words[3] = (vi)_mm512_unpackhi_epi64(ab2, cd2);
}

/* Number 0 to 15 in the low bits of each lane, less 8. */
LNT_INLINE vf nibbles_centered(vi words)
{
    const __m512 table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    return (vf)_mm512_permutexvar_ps((__m512i)words, table);
}

#elif defined(LNT_SIMD_AVX2)

typedef struct nibbles {
    __m256i even, odd;
} nibbles;

LNT_INLINE nibbles nibbles_of(vi bytes, vi low, vi high)
{
    const __m256i both = (__m256i)bytes;
    return (nibbles){_mm256_and_si256(both, (__m256i)low),
                     _mm256_and_si256(_mm256_srli_epi16(both, 4), (__m256i)high)};
}

#if defined(__AVXVNNI__)
LNT_INLINE vi nibbles_add(vi sums, vi w, vi a)
{
    return (vi)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)w, (__m256i)a);
}

LNT_INLINE vi nibbles_sums(vi sums)
{
    return sums;
}
#else
LNT_INLINE vi nibbles_add(vi sums, vi w, vi a)
{
    return (vi)_mm256_add_epi16((__m256i)sums, _mm256_maddubs_epi16((__m256i)w, (__m256i)a));
}

LNT_INLINE vi nibbles_sums(vi sums)
{
    return (vi)_mm256_madd_epi16((__m256i)sums, _mm256_set1_epi16(1));
}
#endif

LNT_INLINE vi nibbles_dot(nibbles w, const int8_t *a)
{
    const __m256i *x = (const __m256i *)(const void *)a;
    const vi even = nibbles_add(vi_splat(0), (vi)w.even, (vi)_mm256_loadu_si256(x));
    return nibbles_sums(nibbles_add(even, (vi)w.odd, (vi)_mm256_loadu_si256(x + 1)));
}

LNT_INLINE __m256i two_columns(const void *a, const void *b)
{
    const __m128i first = _mm_loadu_si128((const __m128i *)a), second = _mm_loadu_si128((const __m128i *)b);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
}

LNT_INLINE void vi_columns(const void *p, const int64_t *at, vi *words)
{
    const char *from = p;
    const __m256i a = two_columns(from + at[0], from + at[4]), b = two_columns(from + at[1], from + at[5]),
                  c = two_columns(from + at[2], from + at[6]), d = two_columns(from + at[3], from + at[7]);
    const __m256i ab = _mm256_unpacklo_epi32(a, b), ab2 = _mm256_unpackhi_epi32(a, b),
                  cd = _mm256_unpacklo_epi32(c, d), cd2 = _mm256_unpackhi_epi32(c, d);
    words[0] = (vi)_mm256_unpacklo_epi64(ab, cd);
    words[1] = (vi)_mm256_unpackhi_epi64(ab, cd);
    words[2] = (vi)_mm256_unpacklo_epi64(ab2, cd2);
    words[3] = (vi)_mm256_unpackhi_epi64(ab2, cd2);
}

/* 32 numbers of -128 to 127 as they come. */
LNT_INLINE void nibbles_join(const vi *x, int8_t *to)
{
    const __m256i first = _mm256_packs_epi32((__m256i)x[0], (__m256i)x[1]),
                  second = _mm256_packs_epi32((__m256i)x[2], (__m256i)x[3]);
    _mm256_storeu_si256((__m256i *)(void *)to,
                        _mm256_permutevar8x32_epi32(_mm256_packs_epi16(first, second),
                                                    _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}

/* The even ones of them, and the odd. */
LNT_INLINE void nibbles_part(const vi *x, int8_t *even, int8_t *odd)
{
    const __m256i first = _mm256_packs_epi32((__m256i)x[0], (__m256i)x[1]),
                  second = _mm256_packs_epi32((__m256i)x[2], (__m256i)x[3]);
    const __m256i apart =
        _mm256_set_epi64x(0x0f0d0b0907050301, 0x0e0c0a0806040200, 0x0f0d0b0907050301, 0x0e0c0a0806040200);
    const __m256i both = _mm256_shuffle_epi8(_mm256_packs_epi16(first, second), apart);
    const __m128i low = _mm256_castsi256_si128(both), high = _mm256_extracti128_si256(both, 1);
    _mm_storeu_si128((__m128i *)(void *)even, _mm_unpacklo_epi16(low, high));
    _mm_storeu_si128((__m128i *)(void *)odd, _mm_unpackhi_epi16(low, high));
}

#elif defined(LNT_SIMD_NEON)

typedef struct nibbles {
    int8x16_t even, odd;
} nibbles;

LNT_INLINE nibbles nibbles_load(const uint8_t *p)
{
    const uint8x16_t both = vld1q_u8(p);
    return (nibbles){vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15))),
                     vreinterpretq_s8_u8(vshrq_n_u8(both, 4))};
}

LNT_INLINE vi nibbles_dot(nibbles w, const int8_t *a)
{
    const int8x16_t even = vld1q_s8(a), odd = vld1q_s8(a + NIBBLES_BYTES);
#if defined(__ARM_FEATURE_DOTPROD)
    return (vi)vdotq_s32(vdotq_s32(vdupq_n_s32(0), w.even, even), w.odd, odd);
#else
    int16x8_t pairs = vmull_s8(vget_low_s8(w.even), vget_low_s8(even));
    pairs = vmlal_s8(pairs, vget_high_s8(w.even), vget_high_s8(even));
    pairs = vmlal_s8(pairs, vget_low_s8(w.odd), vget_low_s8(odd));
    return (vi)vpaddlq_s16(vmlal_s8(pairs, vget_high_s8(w.odd), vget_high_s8(odd)));
#endif
}

LNT_INLINE vf v_spread(vf x, const unsigned i)
{
    return v_splat(x[i]);
}

#else

typedef struct nibbles {
    uint8_t even[NIBBLES_BYTES], odd[NIBBLES_BYTES];
} nibbles;

LNT_INLINE nibbles nibbles_load(const uint8_t *p)
{
    nibbles w;
    for (unsigned i = 0; i < NIBBLES_BYTES; i++) {
        w.even[i] = p[i] & 15;
        w.odd[i] = p[i] >> 4;
    }
    return w;
}

LNT_INLINE vi nibbles_dot(nibbles w, const int8_t *a)
{
    int32_t sum[LNT_VL] = {0};
    for (unsigned i = 0; i < NIBBLES_BYTES; i++)
        sum[i / 4] += w.even[i] * a[i] + w.odd[i] * a[NIBBLES_BYTES + i];
    return vi_load(sum);
}

LNT_INLINE vf v_spread(vf x, const unsigned i)
{
#if LNT_VL == 1
    (void)i;
    return x;
#else
    return v_splat(x[i]);
#endif
}

#endif

#endif
