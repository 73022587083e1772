/* qgemm_neon.c — int8 GEMM at the neon level, by SMULL, SMLAL and SADALP: two rows by sixteen
 * columns.
 *
 * 128 is subtracted from A to fit int8, and 128 times the sum of the weights added afterwards. The sum of two
 * int8 products fits int16 unless all four factors are -128: where weights hold that value, each product is added by
 * itself. */

/* GCC 12 otherwise lifts loads to the top of a step and then has to spill accumulators. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif
#define LNT_SIMD_NEON
#include "ops/quant/qgemm.h"
#include "ops/simd/simd.h"

#include "ops/quant/qdepthwise_neon.inc.h"

#include <arm_neon.h>
#include <string.h>

enum {
    ROWS = 2,
    PARTS = LNT_QPANEL / 4, /* vectors of weights in a quad, four columns each */
    SUM_QUADS = 64          /* whose weights, summed by two, fit int16 */
};
_Static_assert(LNT_QPANEL == 16, "the loops over the parts of 16 columns are unrolled to registers");

typedef struct sums {
    int32x4_t product[ROWS][2 * PARTS]; /* of two columns: K's elements 0 1, 2 3, then 0 1, 2 3 */
    int16x8_t weights[PARTS];           /* of four columns, two elements of K each */
    int8x16_t least;                    /* weight of each lane */
} sums;

/* A quad of a row minus 128, once for each of four columns. */
LNT_INLINE int8x16_t load_quad(const uint8_t *a)
{
    uint32_t four;
    memcpy(&four, a, sizeof four);
    return vreinterpretq_s8_u32(vdupq_n_u32(four ^ 0x80808080u));
}

#if defined(__aarch64__)
#define MULTIPLY_HIGH(a, b) vmull_high_s8(a, b)
#define ADD_HIGH(acc, a, b) vmlal_high_s8(acc, a, b)
#define ADD_NEIGHBOURS(a, b) vpaddq_s32(a, b)
#else
#define MULTIPLY_HIGH(a, b) vmull_s8(vget_high_s8(a), vget_high_s8(b))
#define ADD_HIGH(acc, a, b) vmlal_s8(acc, vget_high_s8(a), vget_high_s8(b))
#define ADD_NEIGHBOURS(a, b)                                                                                 \
    vcombine_s32(vpadd_s32(vget_low_s32(a), vget_high_s32(a)), vpadd_s32(vget_low_s32(b), vget_high_s32(b)))
#endif

/* Four columns of all rows times two quads. Each kind of instruction for all of them before the next kind:
 * cores that run in order wait for no result. */
LNT_INLINE void multiply(sums *s, const unsigned rows, const unsigned p, int8x16_t b0, int8x16_t b1,
                         int8x16_t x[ROWS][2], const bool chained)
{
    int16x8_t low[ROWS], high[ROWS];
#pragma GCC unroll 2
    for (unsigned r = 0; r < rows; r++) {
        low[r] = vmull_s8(vget_low_s8(b0), vget_low_s8(x[r][0]));
        high[r] = MULTIPLY_HIGH(b0, x[r][0]);
    }
#pragma GCC unroll 2
    for (unsigned r = 0; r < rows; r++) {
        if (!chained) {
            s->product[r][2 * p] = vpadalq_s16(s->product[r][2 * p], low[r]);
            s->product[r][2 * p + 1] = vpadalq_s16(s->product[r][2 * p + 1], high[r]);
            low[r] = high[r] = vdupq_n_s16(0);
        }
        low[r] = vmlal_s8(low[r], vget_low_s8(b1), vget_low_s8(x[r][1]));
        high[r] = ADD_HIGH(high[r], b1, x[r][1]);
    }
#pragma GCC unroll 2
    for (unsigned r = 0; r < rows; r++) {
        s->product[r][2 * p] = vpadalq_s16(s->product[r][2 * p], low[r]);
        s->product[r][2 * p + 1] = vpadalq_s16(s->product[r][2 * p + 1], high[r]);
    }
}

/* Two quads of all rows, or a last one. at: of the first, in a row. */
LNT_INLINE void step(sums *s, const unsigned rows, const uint8_t *const *a, ptrdiff_t at, const int8_t *panel,
                     const bool two, const bool chained)
{
    int8x16_t x[ROWS][2];
#pragma GCC unroll 2
    for (unsigned r = 0; r < rows; r++) {
        x[r][0] = load_quad(a[r] + at);
        x[r][1] = two ? load_quad(a[r] + at + 4) : vdupq_n_s8(0);
    }
#pragma GCC unroll 4
    for (unsigned p = 0; p < PARTS; p++) {
        const int8x16_t b0 = vld1q_s8(panel + 16 * p);
        const int8x16_t b1 = two ? vld1q_s8(panel + 4 * LNT_QPANEL + 16 * p) : vdupq_n_s8(0);
        s->weights[p] = vpadalq_s8(vpadalq_s8(s->weights[p], b0), b1);
        if (chained)
            s->least = vminq_s8(s->least, vminq_s8(b0, b1));
        multiply(s, rows, p, b0, b1, x, chained);
    }
}

static bool holds_least(int8x16_t least)
{
    int8_t lanes[16];
    vst1q_s8(lanes, least);
    for (unsigned i = 0; i < sizeof lanes; i++)
        if (lanes[i] == INT8_MIN)
            return true;
    return false;
}

/* The quads of one tap. */
LNT_INLINE void add_tap(sums *s, int32x4_t *moved, const unsigned rows, const lnt_qproduct *product,
                        int64_t tap, const bool chained)
{
    const int8_t *panel = product->panel[0] + tap * product->quads * 4 * LNT_QPANEL;
    const ptrdiff_t offset = product->tap_offset[tap];
    for (int64_t q = 0; q < product->quads;) {
        const int64_t end = product->quads - q < SUM_QUADS ? product->quads : q + SUM_QUADS;
#pragma GCC unroll 4
        for (unsigned p = 0; p < PARTS; p++)
            s->weights[p] = vdupq_n_s16(0);
        for (; q + 2 <= end; q += 2, panel += 8 * LNT_QPANEL)
            step(s, rows, product->a, offset + (ptrdiff_t)(4 * q), panel, true, chained);
        if (q < end)
            step(s, rows, product->a, offset + (ptrdiff_t)(4 * q++), panel, false, chained);
#pragma GCC unroll 4
        for (unsigned p = 0; p < PARTS; p++)
            moved[p] = vpadalq_s16(moved[p], s->weights[p]);
    }
}

/* False, and nothing in c, if products were chained and must not be. */
LNT_INLINE bool tile_of(const unsigned rows, const lnt_qproduct *product, const bool chained)
{
    sums s = {.least = vdupq_n_s8(0)};
    int32x4_t moved[PARTS];
#pragma GCC unroll 4
    for (unsigned p = 0; p < PARTS; p++) {
        moved[p] = vdupq_n_s32(0);
#pragma GCC unroll 2
        for (unsigned r = 0; r < rows; r++)
            s.product[r][2 * p] = s.product[r][2 * p + 1] = vdupq_n_s32(0);
    }
    for (int64_t t = 0; t < product->taps; t++)
        add_tap(&s, moved, rows, product, t, chained);
    if (chained && holds_least(s.least))
        return false;
#pragma GCC unroll 2
    for (unsigned r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (unsigned p = 0; p < PARTS; p++) {
            const int32x4_t sum = ADD_NEIGHBOURS(s.product[r][2 * p], s.product[r][2 * p + 1]);
            vst1q_s32(product->c[0] + r * LNT_QPANEL + 4 * p, vaddq_s32(sum, vshlq_n_s32(moved[p], 7)));
        }
    return true;
}

static void tile(const lnt_qproduct *p)
{
    if (p->rows == 1 && !tile_of(1, p, true))
        tile_of(1, p, false);
    if (p->rows == 2 && !tile_of(2, p, true))
        tile_of(2, p, false);
}

const lnt_qgemm_kernels lnt_qgemm_neon = {
    .rows = ROWS, .rows_by = 1, .panels = 1, .tile = tile, .depthwise = depthwise};
