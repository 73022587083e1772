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
} sums;

/* What sums begin with. */
typedef struct beginning {
    int32x4_t product[2 * PARTS];
} beginning;

/* How products are added: two as int16 before they are int32, or each by itself. IN_ORDER: as CHAINED, of two rows
 * that are in_pairs. */
typedef enum adding { CHAINED, IN_ORDER, SINGLE } adding;

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
        multiply(s, rows, p, b0, b1, x, how);
    }
}

#if defined(__aarch64__)
#include "ops/quant/qgemm_in_order.inc.h"
#else
#define pairs_in_order(s, product, a, flip) ((product)->panel[0])
#endif

/* Rows [first, first + rows). */
LNT_INLINE void rows_of(const unsigned rows, unsigned first, const lnt_qproduct *product, const shared *all,
                        const beginning *start, const adding how)
{
    sums s;
    int32x4_t acc[AT_ONCE][PARTS];
    const int8_t *panel = product->panel[0];
    const uint8_t *a[AT_ONCE] = {product->a[first], product->a[first + rows - 1]};
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(8, unsigned p = 0; p < 2 * PARTS; p++)
            s.product[r][p] = start->product[p];
    const bool paired = how == IN_ORDER;
    if (paired)
        panel = pairs_in_order(&s, product, a, vgetq_lane_u64(vreinterpretq_u64_u8(all->flip), 0));
    for (int64_t t = paired ? product->taps - product->quads % 2 : 0; t < product->taps; t++) {
        ptrdiff_t at = product->tap_offset[t] + (paired ? 4 * (ptrdiff_t)(product->quads - 1) : 0);
        int64_t q = paired ? 1 : product->quads;
        for (; !paired && q >= 2; q -= 2, at += 8, panel += 8 * LNT_QPANEL)
            step(&s, rows, a, all->flip, at, panel, true, how);
        if (q > 0) {
            step(&s, rows, a, all->flip, at, panel, false, how);
            panel += 4 * LNT_QPANEL;
        }
    }
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(4, unsigned p = 0; p < PARTS; p++)
            acc[r][p] = ADD_NEIGHBOURS(s.product[r][2 * p], s.product[r][2 * p + 1]);
    store_rows(product, all, first, rows, acc);
}

typedef void rows_fn(unsigned first, const lnt_qproduct *p, const shared *s, const beginning *b);

/* Rows from `first` on, two at a time. */
#define ROWS_BY(name, how)                                                                                   \
    static __attribute__((noinline)) void rows_##name(unsigned first, const lnt_qproduct *p,                 \
                                                      const shared *s, const beginning *b)                   \
    {                                                                                                        \
        for (; first + AT_ONCE <= p->rows; first += AT_ONCE)                                                 \
            rows_of(AT_ONCE, first, p, s, b, how);                                                           \
        if (first < p->rows)                                                                                 \
            LAST_##how(first, p, s, b);                                                                      \
    }
#define LAST_CHAINED(first, p, s, b) rows_of(1, first, p, s, b, CHAINED)
#define LAST_SINGLE(first, p, s, b) rows_of(1, first, p, s, b, SINGLE)
#define LAST_IN_ORDER(first, p, s, b) rows_chained(first, p, s, b)
ROWS_BY(chained, CHAINED)
ROWS_BY(single, SINGLE)

static bool panel_holds_least(const lnt_qproduct *p)
{
    const int8_t *panel = p->panel[0], *const end = panel + p->taps * p->quads * 4 * LNT_QPANEL;
    int8x16_t least = vdupq_n_s8(0);
    int8_t lanes[16];
    for (; panel < end; panel += 4 * LNT_QPANEL)
        UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++)
            least = vminq_s8(least, vld1q_s8(panel + 16 * i));
    vst1q_s8(lanes, least);
    for (unsigned i = 0; i < sizeof lanes; i++)
        if (lanes[i] == INT8_MIN)
            return true;
    return false;
}

/* chained: what multiplies rows by panels without -128. */
LNT_INLINE void tile_by(const lnt_qproduct *p, rows_fn *chained)
{
    shared s;
    beginning b;
    share(p, true, &s);
    UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++) {
        const int32x4x2_t apart = vzipq_s32(s.start[i], vdupq_n_s32(0));
        b.product[2 * i] = apart.val[0];
        b.product[2 * i + 1] = apart.val[1];
    }
    (p->full && panel_holds_least(p) ? rows_single : chained)(0, p, &s, &b);
}

static void tile(const lnt_qproduct *p)
{
    tile_by(p, rows_chained);
}

const lnt_qgemm_kernels lnt_qgemm_neon = {QGEMM_TABLE(AT_ONCE, true, tile)};

#if defined(__aarch64__)
ROWS_BY(in_order, IN_ORDER)

static void tile_in_order(const lnt_qproduct *p)
{
    tile_by(p, in_pairs(p) ? rows_in_order : rows_chained);
}

const lnt_qgemm_kernels lnt_qgemm_neon_in_order = {QGEMM_TABLE(AT_ONCE, true, tile_in_order)};
#endif
