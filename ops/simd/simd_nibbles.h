/* simd_nibbles.h — vectors of bytes of two numbers of 4 bits each, and their products with int8.
 *
 * A vector of them is a step: byte i holds numbers 2i, in its low bits, and 2i + 1. The int8 that it is multiplied with
 * come as a vector that meets the even numbers, then one that meets the odd. */
#ifndef LNT_OPS_SIMD_SIMD_NIBBLES_H
#define LNT_OPS_SIMD_SIMD_NIBBLES_H

#include "ops/simd/simd.h"

enum { NIBBLES_BYTES = LNT_VL * 4, NIBBLES_STEP = 2 * NIBBLES_BYTES };

#if defined(LNT_SIMD_AVX2)

typedef struct nibbles {
    __m256i even, odd;
} nibbles;

LNT_INLINE nibbles nibbles_load(const uint8_t *p)
{
    const __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)p), low = _mm256_set1_epi8(15);
    return (nibbles){_mm256_and_si256(both, low), _mm256_and_si256(_mm256_srli_epi16(both, 4), low)};
}

/* Sums of products, each in a lane of the 128 bits that its numbers are in. */
LNT_INLINE vi nibbles_dot(nibbles w, const int8_t *a)
{
    const __m256i *x = (const __m256i *)(const void *)a;
    const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(w.even, _mm256_loadu_si256(x)),
                                           _mm256_maddubs_epi16(w.odd, _mm256_loadu_si256(x + 1)));
    return (vi)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* Lane i, 0 <= i < 4, of each 128 bits in all lanes of these. */
LNT_INLINE vf v_spread(vf x, const unsigned i)
{
    switch (i) {
    case 0: return (vf)_mm256_permute_ps((__m256)x, 0x00);
    case 1: return (vf)_mm256_permute_ps((__m256)x, 0x55);
    case 2: return (vf)_mm256_permute_ps((__m256)x, 0xaa);
    default: return (vf)_mm256_permute_ps((__m256)x, 0xff);
    }
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
