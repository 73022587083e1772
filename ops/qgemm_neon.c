/* qgemm_neon.c — products of bytes at the neon level: bytes widened to int16, products added to four partial
 * sums per column, which are joined at the end. */
#include "ops/qgemm.h"

#include <arm_neon.h>
#include <string.h>

static void tile(const uint8_t *const *a, unsigned rows, const int8_t *panel, int64_t quads, int32_t *c)
{
    (void)rows;
    int32x4_t acc[LNT_QPANEL];
#pragma GCC unroll 16
    for (int j = 0; j < LNT_QPANEL; j++)
        acc[j] = vdupq_n_s32(0);
    for (int64_t q = 0; q < quads; q++, panel += 4 * LNT_QPANEL) {
        uint32_t four;
        memcpy(&four, a[0] + 4 * q, sizeof four);
        const int16x4_t x =
            vreinterpret_s16_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)))));
#pragma GCC unroll 8
        for (int j = 0; j < LNT_QPANEL; j += 2) {
            const int16x8_t b = vmovl_s8(vld1_s8(panel + 4 * j));
            acc[j] = vmlal_s16(acc[j], vget_low_s16(b), x);
            acc[j + 1] = vmlal_s16(acc[j + 1], vget_high_s16(b), x);
        }
    }
#pragma GCC unroll 16
    for (int j = 0; j < LNT_QPANEL; j++) {
        const int32x2_t pair = vadd_s32(vget_low_s32(acc[j]), vget_high_s32(acc[j]));
        c[j] = vget_lane_s32(vpadd_s32(pair, pair), 0);
    }
}

const lnt_qgemm_kernels lnt_qgemm_neon = {.rows = 1, .tile = tile};
