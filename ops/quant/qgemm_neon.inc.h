/* qgemm_neon.inc.h — what the int8 tiles of ARM's levels begin with and what becomes of their sums; included by the
 * files of these levels.
 *
 * Where A is moved by -128 to be int8, 128 times the sums of the columns, which lie behind the panels, are added. */
#include "ops/op.h"
#include "ops/quant/qgemm.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"
#include "ops/simd/simd_narrow.h"

#include <arm_neon.h>

enum { PARTS = LNT_QPANEL / LNT_VL /* vectors of a row of accumulators, or of a quad of the panel */ };
_Static_assert(LNT_QPANEL == 16, "the loops over the parts of 16 columns are unrolled to registers");

/* Left out where no operator of a trimmed library asks for them. */
enum {
    REQUANTIZES = LNT_HAS_QLinearConv || LNT_HAS_QLinearMatMul || LNT_HAS_QLinearGemm,
    FILTERS = LNT_HAS_QLinearConv || LNT_HAS_ConvInteger || LNT_HAS_DynamicConv
};

/* by: tiles are best a multiple of so many rows. */
#define QGEMM_TABLE(by)                                                                                      \
    .rows = ROWS, .rows_by = by, .panels = 1, .requantizes = REQUANTIZES, .some_columns = true,              \
    .tile = tile, .depthwise = FILTERS ? depthwise : NULL

/* What the accumulators of a row begin with. */
LNT_INLINE void start_of(const lnt_qproduct *p, const bool moved, int32x4_t start[PARTS])
{
    UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++) {
        start[i] = vdupq_n_s32(0);
        if (REQUANTIZES && p->requantize)
            start[i] = vld1q_s32(p->requantize->acc_bias + i * LNT_VL);
        if (moved)
            start[i] = vaddq_s32(start[i], vshlq_n_s32(vld1q_s32(p->sums + i * LNT_VL), 7));
    }
}

/* The requantization of accumulators of row r. */
LNT_INLINE uint8x16_t requantized(const int32x4_t acc[PARTS], const vf scale[PARTS], byte_range range)
{
    vf v[PARTS];
    UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++)
        v[i] = vi_scaled((vi)acc[i], scale[i]);
    return vb_requantize(v, range);
}

LNT_INLINE void load_scales(const lnt_requantize_tile *to, vf scale[PARTS])
{
    UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++)
        scale[i] = v_load(to->scale + i * LNT_VL);
}

/* The same of rows [first, first + rows) for the first columns of a panel. */
static __attribute__((noinline, unused)) void
store_some_columns(const lnt_requantize_tile *to, unsigned first, unsigned rows, const int32_t *acc)
{
    vf scale[PARTS];
    load_scales(to, scale);
    for (unsigned r = 0; r < rows; r++, acc += LNT_QPANEL) {
        uint8_t bytes[LNT_QPANEL], *y = to->y + to->out[first + r];
        const int32x4_t row[PARTS] = {vld1q_s32(acc), vld1q_s32(acc + 4), vld1q_s32(acc + 8),
                                      vld1q_s32(acc + 12)};
        vst1q_u8(bytes, requantized(row, scale, byte_range_of(to->zero, to->is_signed)));
        if (to->columns == LNT_QPANEL / 2)
            memcpy(y, bytes, LNT_QPANEL / 2);
        else
            memcpy(y, bytes, to->columns);
    }
}

/* Stores accumulators of rows [first, first + rows), or their requantization. */
LNT_INLINE void store_rows(const lnt_qproduct *p, unsigned first, const unsigned rows, int32x4_t acc[][PARTS])
{
    const lnt_requantize_tile *to = p->requantize;
    if (REQUANTIZES && to && to->columns == LNT_QPANEL) {
        const byte_range range = byte_range_of(to->zero, to->is_signed);
        const int64_t *out = to->out + first;
        uint8_t *y = to->y;
        vf scale[PARTS];
        load_scales(to, scale);
        UNROLL_FOR(8, unsigned r = 0; r < rows; r++)
            vst1q_u8(y + out[r], requantized(acc[r], scale, range));
        return;
    }
    int32_t some[LNT_QROWS_MAX * LNT_QPANEL], *c = REQUANTIZES && to ? some : p->c[0] + first * LNT_QPANEL;
    UNROLL_FOR(8, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++)
            vst1q_s32(c + r * LNT_QPANEL + i * LNT_VL, acc[r][i]);
    if (REQUANTIZES && to)
        store_some_columns(to, first, rows, some);
}
