/* qgemm_neon.c — products of bytes at the neon level: bytes widened to int16, products added to four partial
 * sums per column, which are joined at the end. */
#define LNT_SIMD_NEON
#include "ops/qgemm.h"
#include "ops/simd.h"

#include "ops/qdepthwise.inc.h"

#include <arm_neon.h>
#include <string.h>

static void tile(const lnt_qproduct *p)
{
    const int8_t *panel = p->panel[0];
    int32_t *c = p->c[0];
    int32x4_t acc[LNT_QPANEL];
#pragma GCC unroll 16
    for (int j = 0; j < LNT_QPANEL; j++)
        acc[j] = vdupq_n_s32(0);
    for (int64_t t = 0; t < p->taps; t++) {
        const uint8_t *a = p->a[0] + p->tap_offset[t];
        for (int64_t q = 0; q < p->quads; q++, panel += 4 * LNT_QPANEL) {
            uint32_t four;
            memcpy(&four, a + 4 * q, sizeof four);
            const int16x4_t x =
                vreinterpret_s16_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)))));
#pragma GCC unroll 8
            for (int j = 0; j < LNT_QPANEL; j += 2) {
                const int16x8_t b = vmovl_s8(vld1_s8(panel + 4 * j));
                acc[j] = vmlal_s16(acc[j], vget_low_s16(b), x);
                acc[j + 1] = vmlal_s16(acc[j + 1], vget_high_s16(b), x);
            }
        }
    }
#pragma GCC unroll 16
    for (int j = 0; j < LNT_QPANEL; j++) {
        const int32x2_t pair = vadd_s32(vget_low_s32(acc[j]), vget_high_s32(acc[j]));
        c[j] = vget_lane_s32(vpadd_s32(pair, pair), 0);
    }
}

const lnt_qgemm_kernels lnt_qgemm_neon = {.rows = 1, .panels = 1, .tile = tile, .depthwise = depthwise};
