/* nbits_kernels.inc.h — columns of weights of few bits over simd.h, compiled once per level. */
#include "ops/nbits/nbits_kernels.h"
#include "ops/simd/simd_lanes.h"

/* What a group of words is taken apart with. */
typedef struct group {
    vi words;
    vf scale, zero; /* of each word's block */
} group;

/* Which block, counted from that of a group's first word, each word is of; at most `last`. */
LNT_INLINE vi lane_blocks(const lnt_nbits_column *c, const unsigned bits, int64_t last)
{
    int32_t of[LNT_VL];
    for (unsigned i = 0; i < LNT_VL; i++) {
        const int64_t block = (int64_t)(i * (32 / bits)) >> c->block_log2;
        of[i] = (int32_t)(block < last ? block : last);
    }
    return vi_load(of);
}

/* Each word's of the numbers that blocks have, from the block of the first word on: `left` of them. */
LNT_INLINE vf of_blocks(const float *numbers, int64_t left, vi lane_block, const bool one_block)
{
    return one_block ? v_splat(*numbers)
                     : v_pick(numbers, (unsigned)(left < LNT_VL ? left : LNT_VL), lane_block);
}

LNT_INLINE vi load_words(const uint8_t *from, int64_t bytes)
{
    int32_t words[LNT_VL] = {0};
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (bytes >= (int64_t)sizeof words)
        return vi_load((const int32_t *)(const void *)from);
#endif
    memcpy(words, from, bytes < (int64_t)sizeof words ? (size_t)bytes : sizeof words);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (unsigned i = 0; i < LNT_VL; i++)
        words[i] = (int32_t)__builtin_bswap32((uint32_t)words[i]);
#endif
    return vi_load(words);
}

/* Can the level look up 16 numbers by the low bits of each lane? They are then half of the range less. */
#if LNT_VL == 16
#define LOOKS_UP(bits) ((bits) == 4)
#else
#define LOOKS_UP(bits) 0
#endif

LNT_INLINE group load_group(const lnt_nbits_column *c, int64_t g, vi lane_block, const bool one_block,
                            const unsigned bits)
{
    const int64_t numbers = c->blocks << c->block_log2, at = g * LNT_VL * (32 / bits),
                  block = at >> c->block_log2;
    const int64_t left = c->blocks - block;
    const float half = (float)(1u << (bits - 1));
    if (!one_block && left < LNT_VL)
        lane_block = lane_blocks(c, bits, left - 1);
    group x = {.words = load_words(c->weights + at * bits / 8, (numbers - at) * bits / 8),
               .scale = of_blocks(c->scales + block, left, lane_block, one_block),
               .zero = v_splat(LOOKS_UP(bits) ? 0 : half)};
    if (c->zeros)
        x.zero =
            of_blocks(c->zeros + block, left, lane_block, one_block) - v_splat(LOOKS_UP(bits) ? half : 0);
    return x;
}

/* Number j of each word, less its zero; `centered`: zeros are half of the range. */
LNT_INLINE vf take(const group *x, const unsigned j, const unsigned bits, const bool centered)
{
    const vi moved = x->words >> (int)(j * bits);
#if LNT_VL == 16
    if (LOOKS_UP(bits)) {
        const __m512 table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
        const vf number = (vf)_mm512_permutexvar_ps((__m512i)moved, table);
        return centered ? number : number - x->zero;
    }
#endif
    (void)centered;
    return vi_float(moved & vi_splat((int32_t)((1u << bits) - 1))) - x->zero;
}

LNT_INLINE int64_t groups_of(const lnt_nbits_column *c, const unsigned bits)
{
    const int64_t size = LNT_VL * (32 / bits);
    return ((c->blocks << c->block_log2) + size - 1) / size;
}

LNT_INLINE float dot_groups(const lnt_nbits_column *c, const float *a, const unsigned bits,
                            const bool one_block, const bool centered)
{
    const vi lane_block = lane_blocks(c, bits, LNT_VL - 1);
    const int64_t groups = groups_of(c, bits);
    vf total = v_splat(0);
    for (int64_t g = 0; g < groups; g++, a += LNT_VL * (32 / bits)) {
        const group x = load_group(c, g, lane_block, one_block, bits);
        vf sum = v_splat(0);
        UNROLL_FOR(8, unsigned j = 0; j < 32 / bits; j++)
            sum = v_fma(v_load(a + j * LNT_VL), take(&x, j, bits, centered), sum);
        total = v_fma(sum, x.scale, total);
    }
    return v_sum(total);
}

LNT_INLINE float dot_of(const lnt_nbits_column *c, const float *a, const unsigned bits)
{
    const bool one_block = (LNT_VL * (32 / bits)) >> c->block_log2 <= 1;
    return LOOKS_UP(bits) && !c->zeros ? dot_groups(c, a, bits, one_block, true)
                                       : dot_groups(c, a, bits, one_block, false);
}

LNT_INLINE void unpack_of(const lnt_nbits_column *c, float *to, const unsigned bits)
{
    const vi lane_block = lane_blocks(c, bits, LNT_VL - 1);
    const int64_t groups = groups_of(c, bits);
    const bool one_block = (LNT_VL * (32 / bits)) >> c->block_log2 <= 1;
    for (int64_t g = 0; g < groups; g++, to += LNT_VL * (32 / bits)) {
        const group x = load_group(c, g, lane_block, one_block, bits);
        UNROLL_FOR(8, unsigned j = 0; j < 32 / bits; j++)
            v_store(to + j * LNT_VL, take(&x, j, bits, false) * x.scale);
    }
}

static float dot_4(const lnt_nbits_column *c, const float *a)
{
    return dot_of(c, a, 4);
}

static float dot_8(const lnt_nbits_column *c, const float *a)
{
    return dot_of(c, a, 8);
}

#define OF_BITS(bits)                                                                                        \
    static void unpack_##bits(const lnt_nbits_column *c, float *to)                                          \
    {                                                                                                        \
        unpack_of(c, to, bits);                                                                              \
    }
OF_BITS(2)
OF_BITS(4)
OF_BITS(8)

const lnt_nbits_kernels LNT_SIMD_NAME(lnt_nbits) = {
    .lanes = LNT_VL, .dot = {NULL, dot_4, dot_8}, .unpack = {unpack_2, unpack_4, unpack_8}};
