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

#if defined(__aarch64__)
#define NARROW_PAIR(a, b) vqmovn_high_s32(vqmovn_s32(a), b)
#define NARROW_BYTES(a, b) vqmovn_high_s16(vqmovn_s16(a), b)
#else
#define NARROW_PAIR(a, b) vcombine_s16(vqmovn_s32(a), vqmovn_s32(b))
#define NARROW_BYTES(a, b) vcombine_s8(vqmovn_s16(a), vqmovn_s16(b))
#endif

/* by: tiles are best a multiple of so many rows; int8: A may be. */
#define QGEMM_TABLE(by, int8, multiply)                                                                      \
    .rows = ROWS, .rows_by = by, .panels = 1, .requantizes = REQUANTIZES, .some_columns = true,              \
    .takes_moved = int8, .tile = multiply, .depthwise = FILTERS ? depthwise : NULL

/* ---- requantization of accumulators that are bounded ---- */

/* Numbers of less than 2**22 in size, added to the bits of 1.5 * 2**23, are bits of the float 1.5 * 2**23 + number:
 * a subtraction converts them, and an addition of 1.5 * 2**23 rounds a float to the nearest integer, ties to even.
 * Beyond 2**22 both keep their order, so that what is saturated anyway stays so. */
#define MAGIC 0x1.8p23f
enum { MAGIC_BITS = 0x4b400000, EXACT = 1 << 22 };

/* Of int8 or uint8 results: what is subtracted from bits to have results as int8, and what makes these uint8. */
typedef struct byte_offset {
    int32x4_t bits;
    uint8x16_t flip;
} byte_offset;

LNT_INLINE byte_offset byte_offset_of(int32_t zero, bool is_signed)
{
    return (byte_offset){vdupq_n_s32(MAGIC_BITS - (is_signed ? zero : zero - 128)),
                         vdupq_n_u8(is_signed ? 0 : 0x80)};
}

/* May MAGIC_BITS stand in the accumulators of 16 columns, which differ from acc_bias by `reach` at most? Then each is
 * less than EXACT in size, or what is at least that is out of a byte's range; none overflows, none becomes NaN. */
LNT_INLINE bool are_bounded(const int32_t *acc_bias, const float *scale, int64_t reach)
{
    const int32x4_t room = vdupq_n_s32(reach < EXACT ? (int32_t)(EXACT - reach) : 0);
    uint32x4_t all = vdupq_n_u32(reach <= 1 << 29 ? UINT32_MAX : 0);
    uint32_t lanes[LNT_VL];
    for (unsigned i = 0; i < PARTS; i++) {
        const int32x4_t bias = vqabsq_s32(vld1q_s32(acc_bias + i * LNT_VL));
        const float32x4_t factor = vabsq_f32(vld1q_f32(scale + i * LNT_VL));
        const uint32x4_t fits = vcltq_s32(bias, room), finite = vcleq_f32(factor, vdupq_n_f32(0x1p127f)),
                         saturates = vandq_u32(vcleq_s32(bias, vdupq_n_s32(1 << 28)),
                                               vcgeq_f32(factor, vdupq_n_f32(0x1p-13f)));
        all = vandq_u32(all, vandq_u32(finite, vorrq_u32(fits, saturates)));
    }
    vst1q_u32(lanes, all);
    return lanes[0] & lanes[1] & lanes[2] & lanes[3];
}

/* lnt_requantize of accumulators that hold MAGIC_BITS. */
LNT_INLINE void requantize_bounded(const unsigned rows, int32x4_t acc[][PARTS],
                                   const float32x4_t scale[PARTS], byte_offset offset, uint8x16_t to[])
{
    int16x8_t narrow[2][2];
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++) {
            const float32x4_t v = vsubq_f32(vreinterpretq_f32_s32(acc[r][i]), vdupq_n_f32(MAGIC));
            acc[r][i] = vreinterpretq_s32_f32(vmulq_f32(v, scale[i]));
        }
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++) {
            const float32x4_t v = vaddq_f32(vreinterpretq_f32_s32(acc[r][i]), vdupq_n_f32(MAGIC));
            acc[r][i] = vqsubq_s32(vreinterpretq_s32_f32(v), offset.bits);
        }
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(2, unsigned i = 0; i < 2; i++)
            narrow[r][i] = NARROW_PAIR(acc[r][2 * i], acc[r][2 * i + 1]);
    UNROLL_FOR(2, unsigned r = 0; r < rows; r++)
        to[r] = veorq_u8(vreinterpretq_u8_s8(NARROW_BYTES(narrow[r][0], narrow[r][1])), offset.flip);
}

/* ---- tiles ---- */

/* What the rows of a tile have in common. */
typedef struct shared {
    int32x4_t start[PARTS];   /* what accumulators begin with */
    float32x4_t scale[PARTS]; /* if requantized */
    byte_offset offset;
    uint8x16_t flip; /* makes elements of A what the products take */
    bool bounded;    /* accumulators hold MAGIC_BITS, and are requantized to all columns of the panel */
} shared;

LNT_INLINE void share(const lnt_qproduct *p, const bool moved, shared *s)
{
    const lnt_requantize_tile *to = REQUANTIZES ? p->requantize : NULL;
    UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++)
        s->start[i] = moved ? vshlq_n_s32(vld1q_s32(p->sums + i * LNT_VL), 7) : vdupq_n_s32(0);
    s->flip = vdupq_n_u8(moved && !p->moved ? 0x80 : 0);
    s->bounded = false;
    if (!to)
        return;
    s->bounded = to->columns == LNT_QPANEL &&
                 are_bounded(to->acc_bias, to->scale, p->taps * p->quads * 4 * UINT8_MAX * -INT8_MIN);
    UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++) {
        const int32x4_t bias = vld1q_s32(to->acc_bias + i * LNT_VL);
        s->start[i] = vaddq_s32(s->start[i], vaddq_s32(bias, vdupq_n_s32(s->bounded ? MAGIC_BITS : 0)));
        s->scale[i] = vld1q_f32(to->scale + i * LNT_VL);
    }
    s->offset = byte_offset_of(to->zero, to->is_signed);
}

/* Requantizes rows [first, first + rows), whatever they hold, for the first columns of a panel. */
static __attribute__((noinline, unused)) void
store_some_columns(const lnt_requantize_tile *to, unsigned first, unsigned rows, const int32_t *acc)
{
    vf scale[PARTS];
    for (unsigned i = 0; i < PARTS; i++)
        scale[i] = v_load(to->scale + i * LNT_VL);
    for (unsigned r = 0; r < rows; r++, acc += LNT_QPANEL) {
        uint8_t bytes[LNT_QPANEL], *y = to->y + to->out[first + r];
        vf v[PARTS];
        UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++)
            v[i] = vi_scaled(vi_load(acc + i * LNT_VL), scale[i]);
        v_store_requantized(bytes, v, byte_range_of(to->zero, to->is_signed));
        if (to->columns == LNT_QPANEL / 2)
            memcpy(y, bytes, LNT_QPANEL / 2);
        else
            memcpy(y, bytes, to->columns);
    }
}

/* Stores accumulators of rows [first, first + rows), or their requantization. */
LNT_INLINE void store_rows(const lnt_qproduct *p, const shared *s, unsigned first, const unsigned rows,
                           int32x4_t acc[][PARTS])
{
    const lnt_requantize_tile *to = p->requantize;
    if (REQUANTIZES && s->bounded) {
        const int64_t *out = to->out + first;
        uint8_t *y = to->y;
        uint8x16_t bytes[2];
        UNROLL_FOR(8, unsigned r = 0; r < rows; r += 2) {
            requantize_bounded(r + 1 < rows ? 2 : 1, acc + r, s->scale, s->offset, bytes);
            vst1q_u8(y + out[r], bytes[0]);
            if (r + 1 < rows)
                vst1q_u8(y + out[r + 1], bytes[1]);
        }
        return;
    }
    int32_t some[8 * LNT_QPANEL], *c = REQUANTIZES && to ? some : p->c[0] + first * LNT_QPANEL;
    UNROLL_FOR(8, unsigned r = 0; r < rows; r++)
        UNROLL_FOR(4, unsigned i = 0; i < PARTS; i++)
            vst1q_s32(c + r * LNT_QPANEL + i * LNT_VL, acc[r][i]);
    if (REQUANTIZES && to)
        store_some_columns(to, first, rows, some);
}
