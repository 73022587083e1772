/* qgemm_i8mm.c — int8 GEMM at the i8mm level: USMMLA, which multiplies two rows of eight uint8 by two columns of eight
 * int8.
 *
 * Sums of two rows and two columns are a vector. Two quads of a panel are interleaved to columns of eight. One row is
 * multiplied by SUDOT, four bytes at a time. */
#define SIGNED 0
#define DOT(acc, b, a, lane) vsudotq_laneq_s32(acc, b, vreinterpretq_u8_s8(a), lane)
#include "ops/quant/qgemm_dot.inc.h"

enum { AT_ONCE = 6 /* rows */, ROWS = 5 * AT_ONCE, PAIRS = AT_ONCE / 2, COLUMN_PAIRS = LNT_QPANEL / 2 };

typedef struct sums {
    int32x4_t pair[PAIRS][COLUMN_PAIRS]; /* of rows, of columns: row 0 columns 0 1, row 1 columns 0 1 */
} sums;

/* Eight bytes of two rows; four and zeros of a last quad. */
LNT_INLINE uint8x16_t load_rows(const uint8_t *a, const uint8_t *b, const bool two)
{
    uint64_t x = 0, y = 0;
    memcpy(&x, a, two ? 8 : 4);
    memcpy(&y, b, two ? 8 : 4);
    return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(x), vcreate_u64(y)));
}

/* Two quads of all rows, or a last one. */
LNT_INLINE void step(sums *s, const unsigned pairs, const uint8_t *const *a, ptrdiff_t at,
                     const int8_t *panel, const bool two)
{
    uint8x16_t x[PAIRS];
    UNROLL_FOR(3, unsigned r = 0; r < pairs; r++)
        x[r] = load_rows(a[2 * r] + at, a[2 * r + 1] + at, two);
    UNROLL_FOR(4, unsigned p = 0; p < PARTS; p++) {
        const int32x4_t first = vreinterpretq_s32_s8(vld1q_s8(panel + 16 * p)),
                        second = two ? vreinterpretq_s32_s8(vld1q_s8(panel + 4 * LNT_QPANEL + 16 * p))
                                     : vdupq_n_s32(0);
        const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(first, second)),
                        high = vreinterpretq_s8_s32(vzip2q_s32(first, second));
        UNROLL_FOR(3, unsigned r = 0; r < pairs; r++)
            s->pair[r][2 * p] = vusmmlaq_s32(s->pair[r][2 * p], x[r], low);
        UNROLL_FOR(3, unsigned r = 0; r < pairs; r++)
            s->pair[r][2 * p + 1] = vusmmlaq_s32(s->pair[r][2 * p + 1], x[r], high);
    }
}

LNT_INLINE int32x4_t half(const bool second, int32x4_t a, int32x4_t b)
{
    const int64x2_t x = vreinterpretq_s64_s32(a), y = vreinterpretq_s64_s32(b);
    return vreinterpretq_s32_s64(second ? vzip2q_s64(x, y) : vzip1q_s64(x, y));
}

/* Rows [first, first + rows). An odd last one is computed twice. */
LNT_INLINE void rows_of(const unsigned rows, unsigned first, const lnt_qproduct *product, const shared *all)
{
    const unsigned pairs = (rows + 1) / 2;
    const int8_t *panel = product->panel[0];
    const uint8_t *a[AT_ONCE];
    int32x4_t acc[AT_ONCE][PARTS];
    sums s;
    UNROLL_FOR(6, unsigned r = 0; r < 2 * pairs; r++)
        a[r] = product->a[first + (r < rows ? r : rows - 1)];
    UNROLL_FOR(3, unsigned r = 0; r < pairs; r++)
        UNROLL_FOR(4, unsigned p = 0; p < PARTS; p++) {
            s.pair[r][2 * p] = half(false, all->start[p], all->start[p]);
            s.pair[r][2 * p + 1] = half(true, all->start[p], all->start[p]);
        }
    for (int64_t t = 0; t < product->taps; t++) {
        ptrdiff_t at = product->tap_offset[t];
        int64_t q = product->quads;
        for (; q >= 2; q -= 2, at += 8, panel += 8 * LNT_QPANEL)
            step(&s, pairs, a, at, panel, true);
        if (q > 0) {
            step(&s, pairs, a, at, panel, false);
            panel += 4 * LNT_QPANEL;
        }
    }
    UNROLL_FOR(6, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(4, unsigned p = 0; p < PARTS; p++)
            acc[r][p] = half(r % 2, s.pair[r / 2][2 * p], s.pair[r / 2][2 * p + 1]);
    store_rows(product, all, first, rows, acc);
}

static __attribute__((noinline)) void some_rows(unsigned rows, unsigned first, const lnt_qproduct *p,
                                                const shared *s)
{
    switch (rows) {
    case 1: dot_rows(1, first, p, s); return;
    case 2: rows_of(2, first, p, s); return;
    case 3: rows_of(3, first, p, s); return;
    case 4: rows_of(4, first, p, s); return;
    default: rows_of(5, first, p, s); return;
    }
}

static void tile(const lnt_qproduct *p)
{
    shared s;
    share(p, false, &s);
    for (unsigned n, first = 0; first < p->rows; first += n) {
        n = p->rows - first < AT_ONCE ? p->rows - first : AT_ONCE;
        if (n == AT_ONCE)
            rows_of(AT_ONCE, first, p, &s);
        else
            some_rows(n, first, p, &s);
    }
}

const lnt_qgemm_kernels lnt_qgemm_i8mm = {QGEMM_TABLE(AT_ONCE, false, tile)};
