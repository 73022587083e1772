/* qgemm_dot.inc.h — int8 GEMM by ARM's four-byte dot products; included by the files of the levels
 * that have them, which define
 *
 *     SIGNED    1 if the instruction multiplies int8 by int8 only: A is moved by -128, and 128 times the sum
 * of the weights added afterwards DOT(acc, b, a, lane)    acc[j] += the four bytes b[j] times the four bytes
 * a[lane], for 4 columns j */
#define LNT_SIMD_NEON
#include "ops/quant/qgemm.h"
#include "ops/simd/simd.h"

#include "ops/quant/qdepthwise_neon.inc.h"

#include <arm_neon.h>
#include <string.h>

enum { ROWS = 5, PARTS = LNT_QPANEL / 4 };
_Static_assert(LNT_QPANEL == 16, "the loops over the parts of 16 columns are unrolled to registers");

/* The next four quads of a row of A, or the `quads` that are left and zeros. */
static inline int8x16_t load_row(const uint8_t *a, int64_t quads)
{
    uint8_t rest[16] = {0};
    if (quads < 4)
        a = memcpy(rest, a, (size_t)(4 * quads));
    const uint8x16_t x = vld1q_u8(a);
    return vreinterpretq_s8_u8(SIGNED ? veorq_u8(x, vdupq_n_u8(0x80)) : x);
}

/* One quad of all rows; sums collects what moving A by -128 took away, as a negative number. */
#define QUAD(lane)                                                                                           \
    if ((lane) < left) {                                                                                     \
        int8x16_t b[PARTS];                                                                                  \
        _Pragma("GCC unroll 4") for (unsigned p = 0; p < PARTS; p++)                                         \
        {                                                                                                    \
            b[p] = vld1q_s8(panel + (lane)*4 * LNT_QPANEL + 16 * p);                                         \
            if (SIGNED)                                                                                      \
                sums[p] = DOT(sums[p], b[p], minus_128, 0);                                                  \
        }                                                                                                    \
        _Pragma("GCC unroll 5") for (unsigned r = 0; r < rows; r++)                                          \
            _Pragma("GCC unroll 4") for (unsigned p = 0; p < PARTS; p++) acc[r][p] =                         \
                DOT(acc[r][p], b[p], x[r], lane);                                                            \
    }

static inline __attribute__((always_inline)) void tile_of(unsigned rows, const lnt_qproduct *product)
{
    const int8_t *panel = product->panel[0];
    const int8x16_t minus_128 = vdupq_n_s8(-128);
    int32x4_t acc[ROWS][PARTS], sums[PARTS];
    int8x16_t x[ROWS];
#pragma GCC unroll 4
    for (unsigned p = 0; p < PARTS; p++) {
        sums[p] = vdupq_n_s32(0);
#pragma GCC unroll 5
        for (unsigned r = 0; r < rows; r++)
            acc[r][p] = vdupq_n_s32(0);
    }
    for (int64_t t = 0; t < product->taps; t++) {
        const ptrdiff_t offset = product->tap_offset[t];
        for (int64_t q = 0; q < product->quads; q += 4) {
            const int64_t left = product->quads - q;
#pragma GCC unroll 5
            for (unsigned r = 0; r < rows; r++)
                x[r] = load_row(product->a[r] + offset + 4 * q, left);
            QUAD(0)
            QUAD(1)
            QUAD(2)
            QUAD(3)
            panel += (left < 4 ? left : 4) * 4 * LNT_QPANEL;
        }
    }
#pragma GCC unroll 5
    for (unsigned r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (unsigned p = 0; p < PARTS; p++)
            vst1q_s32(product->c[0] + r * LNT_QPANEL + 4 * p,
                      SIGNED ? vsubq_s32(acc[r][p], sums[p]) : acc[r][p]);
}

static void tile(const lnt_qproduct *p)
{
    switch (p->rows) {
    case 1: tile_of(1, p); return;
    case 2: tile_of(2, p); return;
    case 3: tile_of(3, p); return;
    case 4: tile_of(4, p); return;
    case 5: tile_of(5, p); return;
    default: return;
    }
}
