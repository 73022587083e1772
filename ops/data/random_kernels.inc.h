/* random_kernels.inc.h — random floats, included by the file of each level.
 *
 * Bits come from Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011),
 * normal numbers by the transform of Box and Muller ("A Note on the Generation of Random Normal Deviates", 1958).
 * Only additions, multiplications and square roots, each rounded by itself: every level gives the same bits. */
#include "ops/data/random_kernels.h"
#include "ops/simd/simd.h"

enum { WORDS = 4, BLOCKS = LNT_RANDOM_GROUP / WORDS };

LNT_INLINE vu words_of(uint32_t x)
{
    return (vu)vi_splat((int32_t)x);
}

/* One word each of LNT_VL blocks. */
typedef struct words {
    vu at[WORDS];
} words;

/* Blocks from `block` on, a multiple of LNT_VL. */
LNT_INLINE words draw_words(uint64_t key, uint64_t block)
{
    static const int32_t lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const vu low = words_of((uint32_t)block) + (vu)vi_load(lanes);
    words w = {{low, words_of((uint32_t)(block >> 32)), words_of(0), words_of(0)}};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (unsigned round = 0; round < 10; round++) {
        vu a_high, b_high;
        const vu a = vu_product(w.at[0], 0xd2511f53u, &a_high), b = vu_product(w.at[2], 0xcd9e8d57u, &b_high);
        w = (words){{b_high ^ w.at[1] ^ words_of(k0), b, a_high ^ w.at[3] ^ words_of(k1), a}};
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return w;
}

/* (k + 1/2) / 2^23 of the 23 bits k. */
LNT_INLINE vf open_interval(vu k)
{
    return (vi_float((vi)k) + v_splat(0.5f)) * v_splat(0x1p-23f);
}

/* -2 ln u of 0 < u <= 1, u = 2^e (1 + t) with 1 + t in [sqrt 1/2, sqrt 2); relative error below 1e-7. */
LNT_INLINE vf minus_two_logs(vf u)
{
    const vi half_root = vi_splat(0x3f3504f3); /* bits of sqrt 1/2 */
    const vi e = ((vi)u - half_root) >> 23;
    const vf t = (vf)((vi)((vu)u - ((vu)e << 23))) - v_splat(1);
    vf p = v_splat(-0x1.6d45bap-3f);
    p = p * t + v_splat(0x1.25e450p-2f);
    p = p * t + v_splat(-0x1.30ae3cp-2f);
    p = p * t + v_splat(0x1.5343a4p-2f);
    p = p * t + v_splat(-0x1.98e42ep-2f);
    p = p * t + v_splat(0x1.000494p-1f);
    p = p * t + v_splat(-0x1.5556b6p-1f);
    return vi_float(e) * v_splat(-0x1.62e430p+0f) + (t * v_splat(-2) + t * t * (p * t + v_splat(1)));
}

/* Two normal numbers of two words: one gives the radius; of the other two bits say which quarter of the circle, and the
 * rest an angle f pi / 2, -1/2 < f < 1/2, in it. */
LNT_INLINE void normal_pair(vu radius, vu angle, vf *x, vf *y)
{
    const vf u = (vi_float((vi)(radius >> 1)) + v_splat(0.5f)) * v_splat(0x1p-31f);
    const vf r = (vf)((vu)v_sqrt(minus_two_logs(u)) ^ (angle & words_of(0x80000000u)));
    const vf f = open_interval((angle << 2) >> 9) - v_splat(0.5f), f2 = f * f;
    vf s = v_splat(-0x1.2d9bb8p-8f), c = v_splat(-0x1.4ea9e6p-6f);
    s = s * f2 + v_splat(0x1.465ec6p-4f);
    s = s * f2 + v_splat(-0x1.4abbbap-1f);
    s = (s * f2 + v_splat(0x1.921fb6p+0f)) * f;
    c = c * f2 + v_splat(0x1.03b162p-2f);
    c = c * f2 + v_splat(-0x1.3bd3a2p+0f);
    c = c * f2 + v_splat(1);
    const vi swapped = (vi)(angle << 1) >> 31;
    *x = r * v_select(swapped, s, c);
    *y = r * v_select(swapped, c, s);
}

static void draw(uint64_t key, int64_t group, int64_t groups, bool normal, float base, float scale, float *out)
{
    for (int64_t i = 0; i < groups * BLOCKS; i += LNT_VL) {
        const words w = draw_words(key, (uint64_t)(group * BLOCKS + i));
        float *to = out + i / BLOCKS * LNT_RANDOM_GROUP + i % BLOCKS;
        vf x[WORDS];
        for (unsigned c = 0; c < WORDS && normal; c += 2)
            normal_pair(w.at[c], w.at[c + 1], &x[c], &x[c + 1]);
        for (unsigned c = 0; c < WORDS && !normal; c++)
            x[c] = open_interval(w.at[c] >> 9);
        for (unsigned c = 0; c < WORDS; c++)
            v_store(to + c * BLOCKS, v_splat(base) + v_splat(scale) * x[c]);
    }
}

const lnt_random_kernels LNT_SIMD_NAME(lnt_random) = {draw};
