/* qgemm_dot.inc.h — int8 GEMM by ARM's four-byte dot products; included by the files of the levels
 * that have them, which define
 *
 *     SIGNED    1 if the instruction multiplies int8 by int8 only: A is moved by -128
 *     DOT(acc, b, a, lane)    acc[j] += the four bytes b[j] times the four bytes a[lane], for 4 columns j */
#define LNT_SIMD_NEON
#include "ops/quant/qgemm_neon.inc.h"

#include "ops/quant/qdepthwise_neon.inc.h"

#include <string.h>

/* GCC 12 otherwise lifts loads to the top of a step and then has to spill accumulators. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif

enum { DOT_ROWS = 5 /* most rows of a tile */ };

/* A quad of the rows x with one of the panel. */
#define QUAD(lane, panel)                                                                                    \
    do {                                                                                                     \
        int8x16_t b[PARTS];                                                                                  \
        UNROLL_FOR(4, unsigned p = 0; p < PARTS; p++)                                                        \
            b[p] = vld1q_s8((panel) + 16 * p);                                                               \
        UNROLL_FOR(5, unsigned r = 0; r < rows; r++)                                                         \
            UNROLL_FOR(4, unsigned p = 0; p < PARTS; p++)                                                    \
                acc[r][p] = DOT(acc[r][p], b[p], x[r], lane);                                                \
    } while (0)

LNT_INLINE int8x16_t flipped(uint8x16_t x, uint8x16_t flip)
{
    return vreinterpretq_s8_u8(SIGNED ? veorq_u8(x, flip) : x);
}

LNT_INLINE int8x16_t dot_quad(const uint8_t *a, uint8x16_t flip)
{
    uint32_t four;
    memcpy(&four, a, sizeof four);
    return flipped(vreinterpretq_u8_u32(vdupq_n_u32(four)), flip);
}

/* Eight bytes twice. */
LNT_INLINE int8x16_t dot_quads(const uint8_t *a, uint8x16_t flip)
{
    uint64_t eight;
    memcpy(&eight, a, sizeof eight);
    return flipped(vreinterpretq_u8_u64(vdupq_n_u64(eight)), flip);
}

/* Rows [first, first + rows). */
LNT_INLINE void dot_rows(const unsigned rows, unsigned first, const lnt_qproduct *product, const shared *s)
{
    const int8_t *panel = product->panel[0];
    const uint8x16_t flip = s->flip;
    int32x4_t acc[DOT_ROWS][PARTS];
    int8x16_t x[DOT_ROWS];
    UNROLL_FOR(5, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(4, unsigned p = 0; p < PARTS; p++)
            acc[r][p] = s->start[p];
    for (int64_t t = 0; t < product->taps; t++) {
        const ptrdiff_t offset = product->tap_offset[t];
        const uint8_t *a[DOT_ROWS];
        int64_t q = product->quads;
        UNROLL_FOR(5, unsigned r = 0; r < rows; r++)
            a[r] = product->a[first + r] + offset;
        for (; q >= 4; q -= 4, panel += 16 * LNT_QPANEL) {
            UNROLL_FOR(5, unsigned r = 0; r < rows; r++) {
                x[r] = flipped(vld1q_u8(a[r]), flip);
                a[r] += 16;
            }
            QUAD(0, panel);
            QUAD(1, panel + 4 * LNT_QPANEL);
            QUAD(2, panel + 8 * LNT_QPANEL);
            QUAD(3, panel + 12 * LNT_QPANEL);
        }
        if (q & 2) {
            UNROLL_FOR(5, unsigned r = 0; r < rows; r++) {
                x[r] = dot_quads(a[r], flip);
                a[r] += 8;
            }
            QUAD(0, panel);
            QUAD(1, panel + 4 * LNT_QPANEL);
            panel += 8 * LNT_QPANEL;
        }
        if (q & 1) {
            UNROLL_FOR(5, unsigned r = 0; r < rows; r++)
                x[r] = dot_quad(a[r], flip);
            QUAD(0, panel);
            panel += 4 * LNT_QPANEL;
        }
    }
    store_rows(product, s, first, rows, acc);
}
