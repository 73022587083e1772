/* nbits_kernels.inc.h — columns of weights of few bits over simd.h, compiled once per level. */
#include "ops/nbits/nbits_kernels.h"
#include "ops/simd/simd_lanes.h"
#include "ops/simd/simd_nibbles.h"

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

/* Number j of each word, less CENTERED. */
#if LNT_VL == 16
#define CENTERED(bits) ((bits) == 4 ? 8 : 0)
#else
#define CENTERED(bits) 0
#endif

LNT_INLINE vf take(vi words, const unsigned j, const unsigned bits)
{
    const vi moved = words >> (int)(j * bits);
#if LNT_VL == 16
    if (bits == 4)
        return nibbles_centered(moved);
#endif
    return vi_float(moved & vi_splat((int32_t)((1u << bits) - 1)));
}

#if NIBBLES_COLUMNS

/* Adds group g, whose words these are. Zero points of 4 bits come once, times the sums of A. */
LNT_INLINE vf add_words(const lnt_nbits_column *c, vi words, int64_t g, const unsigned bits, const float *a,
                        const float *sums, vf total)
{
    const unsigned per_word = 32 / bits, shift = c->block_log2 - (bits == 4 ? 3 : 2);
    const int64_t first = g * LNT_VL >> shift;
    const vi block = v_lanes_of(shift);
    const unsigned blocks = lanes_left((size_t)(c->blocks - first));
    vf zero = v_splat((float)(1u << (bits - 1))), sum = v_splat(0);
    if (c->zeros)
        zero = v_pick(c->zeros + first, blocks, block);
    if (bits == 4 && (c->zeros || CENTERED(4) == 0))
        sum = (v_splat(CENTERED(4)) - zero) * v_load(sums + g * LNT_VL);
    a += g * LNT_VL * per_word;
    UNROLL_FOR(8, unsigned j = 0; j < per_word; j++)
        sum = v_fma(v_load(a + j * LNT_VL), bits == 4 ? take(words, j, 4) : take(words, j, bits) - zero, sum);
    return v_fma(sum, v_pick(c->scales + first, blocks, block), total);
}

LNT_INLINE vf dot_words(const lnt_nbits_column *c, const float *a, int64_t pitch, const unsigned bits)
{
    const int64_t words = (c->blocks << c->block_log2) / (32 / bits);
    const float *weights = (const float *)(const void *)c->weights;
    vf total = v_splat(0);
    for (int64_t at = 0; at < words; at += LNT_VL) {
        const vi some = (vi)v_load_n(weights + at, lanes_left((size_t)(words - at)));
        total = add_words(c, some, at / LNT_VL, bits, a, a + pitch, total);
    }
    return total;
}

static void numbers(const uint8_t *from, int64_t n, float *to)
{
    int64_t i = 0;
    for (; LNT_VL == 16 && i + LNT_VL <= n; i += LNT_VL) /* without masks of their own */
        v_store(to + i, vi_float(nibbles_numbers(from + i / 2, LNT_VL / 2)));
    for (; i < n; i += LNT_VL)
        v_store(to + i, vi_float(nibbles_numbers(from + i / 2, (n + 1 - i) / 2)));
}

#else

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
               .zero = v_splat(half)};
    if (c->zeros)
        x.zero = of_blocks(c->zeros + block, left, lane_block, one_block);
    return x;
}

LNT_INLINE int64_t groups_of(const lnt_nbits_column *c, const unsigned bits)
{
    const int64_t size = LNT_VL * (32 / bits);
    return ((c->blocks << c->block_log2) + size - 1) / size;
}

LNT_INLINE vf dot_groups(const lnt_nbits_column *c, const float *a, const unsigned bits, const bool one_block)
{
    const vi lane_block = lane_blocks(c, bits, LNT_VL - 1);
    const int64_t groups = groups_of(c, bits);
    vf total = v_splat(0);
    for (int64_t g = 0; g < groups; g++, a += LNT_VL * (32 / bits)) {
        const group x = load_group(c, g, lane_block, one_block, bits);
        vf sum = v_splat(0);
        UNROLL_FOR(8, unsigned j = 0; j < 32 / bits; j++)
            sum = v_fma(v_load(a + j * LNT_VL), take(x.words, j, bits) - x.zero, sum);
        total = v_fma(sum, x.scale, total);
    }
    return total;
}

LNT_INLINE vf dot_words(const lnt_nbits_column *c, const float *a, int64_t pitch, const unsigned bits)
{
    (void)pitch;
    return dot_groups(c, a, bits, (LNT_VL * (32 / bits)) >> c->block_log2 <= 1);
}

#endif

enum { TOGETHER = LNT_VL > 4 ? 4 : 1 /* columns whose sums are added up at once */ };

LNT_INLINE void dot_columns(const lnt_nbits_column *first, int64_t columns, const float *a, int64_t pitch,
                            float *y, const unsigned bits)
{
    lnt_nbits_column c = *first;
    for (int64_t left = columns; left > 0; left -= TOGETHER, y += TOGETHER) {
        const unsigned some = left < TOGETHER ? (unsigned)left : TOGETHER;
        vf total[4] = {v_splat(0), v_splat(0), v_splat(0), v_splat(0)};
        for (unsigned i = 0; i < some; i++) {
            total[i] = dot_words(&c, a, pitch, bits);
            c.weights += c.next_weights;
            c.scales += c.next_scales;
            if (c.zeros)
                c.zeros += c.next_zeros;
            /* GCC would keep these in registers that the words' loop lacks. */
            __asm__("" : "+m"(c.next_weights), "+m"(c.next_scales), "+m"(c.next_zeros));
        }
#if LNT_VL > 4
        v_store_n(y, v_sum4(total[0], total[1], total[2], total[3]), some);
#else
        *y = v_sum(total[0]);
#endif
    }
}

static void dot(const lnt_nbits_column *c, int64_t columns, const float *a, int64_t pitch, float *y)
{
    if (c->bits == 4)
        dot_columns(c, columns, a, pitch, y, 4);
    else
        dot_columns(c, columns, a, pitch, y, 8);
}

/* ---- panels ---- */

/* Words of LNT_VL columns, n of each, which begin at p + at[]: one after the other those of all columns. */
LNT_INLINE void column_words(const void *p, const int64_t *at, int64_t n, vi *words)
{
#if NIBBLES_COLUMNS
    if (n == 4) {
        vi_columns(p, at, words);
        return;
    }
#endif
    for (int64_t k = 0; k < n; k++) {
        uint32_t some[LNT_VL];
        for (unsigned i = 0; i < LNT_VL; i++)
            memcpy(&some[i], (const char *)p + at[i] + 4 * k, sizeof some[i]);
        words[k] = vi_load((const int32_t *)some);
    }
}

/* Words [i, i + n) of LNT_VL columns from `first` on. */
LNT_INLINE void unpack_words(const lnt_nbits_panel *p, int64_t i, int64_t n, unsigned first,
                             const unsigned bits, float *to)
{
    vi words[4];
    column_words(p->weights + i * 4, p->at + first, n, words);
    for (int64_t k = 0; k < n; k++, to += 32 / bits * LNT_PANEL) {
        const int64_t at = ((i + k) * (32 / bits) >> p->block_log2) * LNT_PANEL + first;
        const vf scale = v_load(p->scales + at), half = v_splat((float)(1u << (bits - 1))),
                 zero = (p->zeros ? v_load(p->zeros + at) : half) - v_splat(CENTERED(bits));
        vi word = load_words((const uint8_t *)&words[k], sizeof word);
        UNROLL_FOR(1, unsigned j = 0; j < 32 / bits; j++, word >>= (int)bits)
            v_store(to + j * LNT_PANEL + first, (take(word, 0, bits) - zero) * scale);
    }
}

LNT_INLINE void unpack_of(const lnt_nbits_panel *p, int64_t first, int64_t end, const unsigned bits,
                          float *to)
{
    for (int64_t i = first; i < end; i += 4, to += 4 * (32 / bits) * LNT_PANEL)
        for (unsigned c = 0; c < LNT_PANEL; c += LNT_VL)
            unpack_words(p, i, end - i < 4 ? end - i : 4, c, bits, to);
}

/* GCC 12 for 32-bit ARM shifts by 0 where it does not know the number of bits: there each has a loop of its own. */
#if defined(__arm__)
#define KNOWS_BITS true
#else
#define KNOWS_BITS false
#endif

static void unpack(const lnt_nbits_panel *p, int64_t first, int64_t end, float *to)
{
    if ((CENTERED(4) || KNOWS_BITS) && p->bits == 4)
        unpack_of(p, first, end, 4, to);
    else if (KNOWS_BITS && p->bits == 2)
        unpack_of(p, first, end, 2, to);
    else if (KNOWS_BITS)
        unpack_of(p, first, end, 8, to);
    else
        unpack_of(p, first, end, p->bits, to);
}

static void beside(const float *from, const int64_t *at, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i += 4)
        for (unsigned first = 0; first < LNT_PANEL; first += LNT_VL) {
            const int64_t left = n - i < 4 ? n - i : 4;
            vi words[4];
            column_words(from + i, at + first, left, words);
            for (int64_t k = 0; k < left; k++)
                memcpy(to + (i + k) * LNT_PANEL + first, &words[k], sizeof words[k]);
        }
}

const lnt_nbits_kernels LNT_SIMD_NAME(lnt_nbits) = {.lanes = LNT_VL,
                                                    .dot = dot,
                                                    .beside = beside,
#if NIBBLES_COLUMNS
                                                    .numbers = numbers,
#endif
                                                    .unpack = unpack};
