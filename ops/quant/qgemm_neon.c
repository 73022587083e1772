/* qgemm_neon.c — int8 GEMM at the neon level, by SMULL, SMLAL and SADALP: two rows by sixteen
 * columns.
 *
 * 128 is subtracted from A to fit int8, unless it is stored so, and 128 times the sum of the weights added
 * afterwards. The sum of two int8 products fits int16 unless all four factors are -128: where weights hold that value,
 * each product is added by itself. */

#define LNT_SIMD_NEON
#include "ops/quant/qgemm_neon.inc.h"

#include "ops/quant/qdepthwise_neon.inc.h"

#include <string.h>

/* GCC 12 otherwise lifts loads to the top of a step and then has to spill accumulators. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif

enum { ROWS = LNT_QROWS_MAX, AT_ONCE = 2 /* rows that are multiplied side by side */ };

typedef struct sums {
    int32x4_t product[AT_ONCE][2 * PARTS]; /* of two columns: K's elements 0 1, 2 3, then 0 1, 2 3 */
    int8x16_t least;                       /* weight of each lane */
} sums;

/* What sums begin with. */
typedef struct beginning {
    int32x4_t product[2 * PARTS];
} beginning;

/* How products are added: two as int16 before they are int32, or each by itself. CHECKED: two, and `least` tells
 * whether that was right. */
typedef enum adding { CHAINED, CHECKED, SINGLE } adding;

/* A quad of a row as int8, once for each of four columns. */
LNT_INLINE int8x16_t load_quad(const uint8_t *a, uint8x16_t flip)
{
    uint32_t four;
    memcpy(&four, a, sizeof four);
    return vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_u32(vdupq_n_u32(four)), flip));
}

/* Two of them. */
LNT_INLINE void load_quads(const uint8_t *a, uint8x16_t flip, int8x16_t quad[2])
{
    const uint32x2_t both = vreinterpret_u32_u8(veor_u8(vld1_u8(a), vget_low_u8(flip)));
    quad[0] = vreinterpretq_s8_u32(vdupq_lane_u32(both, 0));
    quad[1] = vreinterpretq_s8_u32(vdupq_lane_u32(both, 1));
}

#if defined(__aarch64__)
#define ADD_NEIGHBOURS(a, b) vpaddq_s32(a, b)
#else
#define ADD_NEIGHBOURS(a, b)                                                                                 \
    vcombine_s32(vpadd_s32(vget_low_s32(a), vget_high_s32(a)), vpadd_s32(vget_low_s32(b), vget_high_s32(b)))
#endif

/* Four columns of all rows times two quads. Each kind of instruction for all of them before the next kind:
 * cores that run in order wait for no result. */
LNT_INLINE void multiply(sums *s, const unsigned rows, const unsigned p, int8x16_t b0, int8x16_t b1,
                         int8x16_t x[AT_ONCE][2], const adding how)
{
    int16x8_t low[AT_ONCE], high[AT_ONCE];
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++) {
        low[r] = vmull_s8(vget_low_s8(b0), vget_low_s8(x[r][0]));
        high[r] = MULTIPLY_HIGH(b0, x[r][0]);
    }
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++) {
        if (how == SINGLE) {
            s->product[r][2 * p] = vpadalq_s16(s->product[r][2 * p], low[r]);
            s->product[r][2 * p + 1] = vpadalq_s16(s->product[r][2 * p + 1], high[r]);
            low[r] = high[r] = vdupq_n_s16(0);
        }
        low[r] = vmlal_s8(low[r], vget_low_s8(b1), vget_low_s8(x[r][1]));
        high[r] = ADD_HIGH(high[r], b1, x[r][1]);
    }
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++) {
        s->product[r][2 * p] = vpadalq_s16(s->product[r][2 * p], low[r]);
        s->product[r][2 * p + 1] = vpadalq_s16(s->product[r][2 * p + 1], high[r]);
    }
}

/* Two quads of all rows, or a last one. at: of the first, in a row. */
LNT_INLINE void step(sums *s, const unsigned rows, const uint8_t *const *a, uint8x16_t flip, ptrdiff_t at,
                     const int8_t *panel, const bool two, const adding how)
{
    int8x16_t x[AT_ONCE][2];
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++) {
        if (two)
            load_quads(a[r] + at, flip, x[r]);
        else
            x[r][0] = load_quad(a[r] + at, flip), x[r][1] = vdupq_n_s8(0);
    }
    UNROLL_FOR(4, unsigned p = 0; p < PARTS; p++) {
        const int8x16_t b0 = vld1q_s8(panel + 16 * p);
        const int8x16_t b1 = two ? vld1q_s8(panel + 4 * LNT_QPANEL + 16 * p) : vdupq_n_s8(0);
        if (how == CHECKED)
            s->least = vminq_s8(s->least, vminq_s8(b0, b1));
        multiply(s, rows, p, b0, b1, x, how);
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

/* Rows [first, first + rows). False, and nothing stored, if products were added by two and must not be. */
LNT_INLINE bool rows_of(const unsigned rows, unsigned first, const lnt_qproduct *product, const shared *all,
                        const beginning *start, const adding how)
{
    sums s = {.least = vdupq_n_s8(0)};
    int32x4_t acc[AT_ONCE][PARTS];
    const int8_t *panel = product->panel[0];
    const uint8_t *a[AT_ONCE] = {product->a[first], product->a[first + rows - 1]};
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(8, unsigned p = 0; p < 2 * PARTS; p++)
            s.product[r][p] = start->product[p];
    for (int64_t t = 0; t < product->taps; t++) {
        ptrdiff_t at = product->tap_offset[t];
        int64_t q = product->quads;
        for (; q >= 2; q -= 2, at += 8, panel += 8 * LNT_QPANEL)
            step(&s, rows, a, all->flip, at, panel, true, how);
        if (q > 0) {
            step(&s, rows, a, all->flip, at, panel, false, how);
            panel += 4 * LNT_QPANEL;
        }
    }
    if (how == CHECKED && holds_least(s.least))
        return false;
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(4, unsigned p = 0; p < PARTS; p++)
            acc[r][p] = ADD_NEIGHBOURS(s.product[r][2 * p], s.product[r][2 * p + 1]);
    store_rows(product, all, first, rows, acc);
    return true;
}

/* Rows from `first` on, two at a time. False if products were added by two and must not be. */
LNT_INLINE bool rows_from(unsigned first, const lnt_qproduct *p, const shared *all, const beginning *start,
                          const adding how)
{
    bool right = true;
    for (; right && first + AT_ONCE <= p->rows; first += AT_ONCE)
        right = rows_of(AT_ONCE, first, p, all, start, how);
    return right && (first == p->rows || rows_of(1, first, p, all, start, how));
}

static __attribute__((noinline)) bool rows_chained(const lnt_qproduct *p, const shared *s, const beginning *b)
{
    return rows_from(0, p, s, b, CHAINED);
}

static __attribute__((noinline)) bool rows_checked(const lnt_qproduct *p, const shared *s, const beginning *b)
{
    return rows_from(0, p, s, b, CHECKED);
}

static void tile(const lnt_qproduct *p)
{
    shared s;
    beginning b;
    share(p, true, &s);
    UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++) {
        const int32x4x2_t apart = vzipq_s32(s.start[i], vdupq_n_s32(0));
        b.product[2 * i] = apart.val[0];
        b.product[2 * i + 1] = apart.val[1];
    }
    if (!(p->full ? rows_checked : rows_chained)(p, &s, &b))
        rows_from(0, p, &s, &b, SINGLE);
}

const lnt_qgemm_kernels lnt_qgemm_neon = {QGEMM_TABLE(AT_ONCE, true)};
