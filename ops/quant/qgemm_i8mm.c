/* qgemm_i8mm.c — int8 GEMM at the i8mm level: USMMLA, which multiplies two rows of eight uint8 by two columns of eight
 * int8.
 *
 * Sums of two rows and two columns are a vector. Two quads of a panel are interleaved to columns of eight. One row is
 * multiplied by SUDOT, four bytes at a time. */
#define SIGNED 0
#define DOT(acc, b, a, lane) vsudotq_laneq_s32(acc, b, vreinterpretq_u8_s8(a), lane)
#include "ops/quant/qgemm_dot.inc.h"

enum { ROWS = 6, PAIRS = ROWS / 2, COLUMN_PAIRS = LNT_QPANEL / 2 };

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

/* An odd last row is computed twice. */
LNT_INLINE void tile_of(const unsigned rows, const lnt_qproduct *product)
{
    const unsigned pairs = (rows + 1) / 2;
    const int8_t *panel = product->panel[0];
    const uint8_t *a[ROWS];
    int32x4_t start[PARTS], acc[ROWS][PARTS];
    sums s;
    UNROLL_FOR(6, unsigned r = 0; r < 2 * pairs; r++)
        a[r] = product->a[r < rows ? r : rows - 1];
    start_of(product, false, start);
    UNROLL_FOR(3, unsigned r = 0; r < pairs; r++)
        UNROLL_FOR(4, unsigned p = 0; p < PARTS; p++) {
            s.pair[r][2 * p] = half(false, start[p], start[p]);
            s.pair[r][2 * p + 1] = half(true, start[p], start[p]);
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
    store_rows(product, 0, rows, acc);
}

static void tile(const lnt_qproduct *p)
{
    switch (p->rows) {
    case 1: dot_tile(1, p); return;
    case 2: tile_of(2, p); return;
    case 3: tile_of(3, p); return;
    case 4: tile_of(4, p); return;
    case 5: tile_of(5, p); return;
    case 6: tile_of(6, p); return;
    default: return;
    }
}

const lnt_qgemm_kernels lnt_qgemm_i8mm = {QGEMM_TABLE(2)};
