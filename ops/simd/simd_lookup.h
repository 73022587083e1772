/* simd_lookup.h — bytes looked up in a table of 256, a vector of ops/simd/simd.h at a time, where the level has
 * instructions that look up many. */
#ifndef LNT_OPS_SIMD_SIMD_LOOKUP_H
#define LNT_OPS_SIMD_SIMD_LOOKUP_H

#include "ops/simd/simd.h"

#if defined(LNT_SIMD_AVX512)

#define LNT_LOOKS_UP 1
typedef struct vb_table {
    __m512i words[4]; /* two bytes each */
} vb_table;

LNT_INLINE vb_table vb_table_of(const uint8_t to[256])
{
    return (vb_table){{_mm512_loadu_si512(to), _mm512_loadu_si512(to + 64), _mm512_loadu_si512(to + 128),
                       _mm512_loadu_si512(to + 192)}};
}

/* at: words of 0 to 255. What they look up is in the low byte of each, something else in the high one. */
LNT_INLINE __m512i look_up_words(const vb_table *t, __m512i at)
{
    const __m512i pair = _mm512_srli_epi16(at, 1);
    const __m512i low = _mm512_permutex2var_epi16(t->words[0], pair, t->words[1]);
    const __m512i high = _mm512_permutex2var_epi16(t->words[2], pair, t->words[3]);
    const __mmask32 upper = _mm512_test_epi16_mask(at, _mm512_set1_epi16(0x80));
    const __m512i odd = _mm512_slli_epi16(_mm512_and_si512(at, _mm512_set1_epi16(1)), 3);
    return _mm512_srlv_epi16(_mm512_mask_blend_epi16(upper, low, high), odd);
}

LNT_INLINE vb vb_look_up(const vb_table *t, vb x)
{
    const __m512i even = look_up_words(t, _mm512_and_si512((__m512i)x, _mm512_set1_epi16(0xff)));
    const __m512i odd = look_up_words(t, _mm512_srli_epi16((__m512i)x, 8));
    return (vb)_mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaau, even, _mm512_slli_epi16(odd, 8));
}

#elif defined(LNT_SIMD_AVX2)

#define LNT_LOOKS_UP 1
typedef struct vb_table {
    __m256i row[16]; /* sixteen bytes, twice */
} vb_table;

LNT_INLINE vb_table vb_table_of(const uint8_t to[256])
{
    vb_table t;
    for (unsigned i = 0; i < 16; i++)
        t.row[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(to + 16 * i)));
    return t;
}

/* Each row gives its bytes where x is one of its sixteen, else 0: what is above gets its highest bit. */
LNT_INLINE vb vb_look_up(const vb_table *t, vb x)
{
    __m256i y = _mm256_setzero_si256();
#pragma GCC unroll 16
    for (unsigned i = 0; i < 16; i++) {
        const __m256i at = _mm256_xor_si256((__m256i)x, _mm256_set1_epi8((char)(16 * i)));
        const __m256i own = _mm256_adds_epu8(at, _mm256_set1_epi8(0x70));
        y = _mm256_or_si256(y, _mm256_shuffle_epi8(t->row[i], own));
    }
    return (vb)y;
}

#elif defined(LNT_SIMD_NEON) && defined(__aarch64__)

#define LNT_LOOKS_UP 1
typedef struct vb_table {
    uint8x16x4_t part[4];
} vb_table;

LNT_INLINE vb_table vb_table_of(const uint8_t to[256])
{
    return (vb_table){{vld1q_u8_x4(to), vld1q_u8_x4(to + 64), vld1q_u8_x4(to + 128), vld1q_u8_x4(to + 192)}};
}

LNT_INLINE vb vb_look_up(const vb_table *t, vb x)
{
    const uint8x16_t at = (uint8x16_t)x;
    uint8x16_t y = vqtbl4q_u8(t->part[0], at);
    y = vqtbx4q_u8(y, t->part[1], vsubq_u8(at, vdupq_n_u8(64)));
    y = vqtbx4q_u8(y, t->part[2], vsubq_u8(at, vdupq_n_u8(128)));
    return (vb)vqtbx4q_u8(y, t->part[3], vsubq_u8(at, vdupq_n_u8(192)));
}

#else
#define LNT_LOOKS_UP 0
#endif

#endif
