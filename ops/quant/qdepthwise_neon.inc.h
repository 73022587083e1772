/* qdepthwise_neon.inc.h — int8 depthwise convolutions on ARM, 16 channels at a time; included by the files of its
 * levels in place of qdepthwise.inc.h.
 *
 * Narrow: operands are int8, A moved by -128, and the products of two taps are added as int16, which they fit unless
 * all four factors are -128. Wide: operands are int16, for weights of -128 and for those with zero points. */
#include "ops/simd/simd_lanes.h"
#include "ops/simd/simd_narrow.h"

#include <arm_neon.h>

/* Pixels of a run from which on reading each column once is worth what it begins with. */
#ifdef __ARM_FEATURE_DOTPROD
enum { LONG_RUN = 2 };
#else
enum { LONG_RUN = 4 };
#endif

enum { BLOCK = 16, QUARTERS = BLOCK / LNT_VL, NINE = 9 /* taps that are held in registers */, SIDE = 3 };

/* Products of the low and of the high halves of a and b, and their addition to accumulators. On 64-bit ARM in the order
 * of the source, for cores that run in order, and of whole vectors: GCC would hold halves that are used often in
 * registers of their own. */
#if defined(__aarch64__)
#define MULTIPLY_HIGH(a, b) vmull_high_s8(a, b)
#define ADD_HIGH(acc, a, b) vmlal_high_s8(acc, a, b)

#define WHOLE_BYTES(name, instruction, half, access)                                                         \
    LNT_INLINE void name(int16x8_t *c, int8x16_t a, int8x16_t b)                                             \
    {                                                                                                        \
        __asm__ volatile(instruction " %0.8h, %1." half ", %2." half : access(*c) : "w"(a), "w"(b));         \
    }
#define WHOLE_SUMS(name, instruction, half)                                                                  \
    LNT_INLINE void name(int32x4_t *acc, int16x8_t a)                                                        \
    {                                                                                                        \
        const int32x4_t before = *acc;                                                                       \
        __asm__ volatile(instruction " %0.4s, %1.4s, %2." half : "=w"(*acc) : "w"(before), "w"(a));          \
    }
WHOLE_BYTES(multiply_low, "smull", "8b", "=w")
WHOLE_BYTES(multiply_high, "smull2", "16b", "=w")
WHOLE_BYTES(add_low, "smlal", "8b", "+w")
WHOLE_BYTES(add_high, "smlal2", "16b", "+w")
WHOLE_SUMS(widen_low, "saddw", "4h")
WHOLE_SUMS(widen_high, "saddw2", "8h")
#else
#define MULTIPLY_HIGH(a, b) vmull_s8(vget_high_s8(a), vget_high_s8(b))
#define ADD_HIGH(acc, a, b) vmlal_s8(acc, vget_high_s8(a), vget_high_s8(b))
#define multiply_low(c, a, b) (*(c) = vmull_s8(vget_low_s8(a), vget_low_s8(b)))
#define multiply_high(c, a, b) (*(c) = MULTIPLY_HIGH(a, b))
#define add_low(c, a, b) (*(c) = vmlal_s8(*(c), vget_low_s8(a), vget_low_s8(b)))
#define add_high(c, a, b) (*(c) = ADD_HIGH(*(c), a, b))
#define widen_low(acc, a) (*(acc) = vaddw_s16(*(acc), vget_low_s16(a)))
#define widen_high(acc, a) (*(acc) = vaddw_s16(*(acc), vget_high_s16(a)))
#endif

/* What pixels share. */
typedef struct depthwise_lanes {
    int32x4_t acc_bias[QUARTERS]; /* bounded: MAGIC_BITS are added */
    float32x4_t scale[QUARTERS];
    uint8x16_t flip;
    byte_range range;
    byte_offset offset;
} depthwise_lanes;

/* Channels [first, first + BLOCK). */
typedef struct depthwise_block {
    const lnt_qdepthwise *d;
    size_t first;
    bool narrow, bounded; /* bounded: results are int8 or uint8, and accumulators are bounded (are_bounded) */
    depthwise_lanes lanes;
    int8x16_t w[LNT_QTAPS_MAX];       /* narrow */
    int16x8_t wide[LNT_QTAPS_MAX][2]; /* else: minus their zero points */
    int8x16_t column[SIDE][QUARTERS]; /* of nine narrow ones: column_of the kernel */
} depthwise_block;

#ifdef __ARM_FEATURE_DOTPROD

/* A column of three lines: element i of each as quad i. */
LNT_INLINE void column_of(int8x16_t a, int8x16_t b, int8x16_t c, int8x16_t quad[QUARTERS])
{
    const int8x16_t none = vdupq_n_s8(0);
    const int16x8_t ab_low = vreinterpretq_s16_s8(vzip1q_s8(a, b)),
                    ab_high = vreinterpretq_s16_s8(vzip2q_s8(a, b)),
                    c_low = vreinterpretq_s16_s8(vzip1q_s8(c, none)),
                    c_high = vreinterpretq_s16_s8(vzip2q_s8(c, none));
    quad[0] = vreinterpretq_s8_s16(vzip1q_s16(ab_low, c_low));
    quad[1] = vreinterpretq_s8_s16(vzip2q_s16(ab_low, c_low));
    quad[2] = vreinterpretq_s8_s16(vzip1q_s16(ab_high, c_high));
    quad[3] = vreinterpretq_s8_s16(vzip2q_s16(ab_high, c_high));
}

#else

LNT_INLINE void column_of(int8x16_t a, int8x16_t b, int8x16_t c, int8x16_t column[QUARTERS])
{
    column[0] = a;
    column[1] = b;
    column[2] = column[3] = c;
}

#endif

/* The weights, in the form that they allow. */
static void depthwise_load_weights(depthwise_block *b)
{
    const lnt_qdepthwise *d = b->d;
    const int32_t *zeros = d->zeros + b->first;
    int8x16_t least = vdupq_n_s8(0);
    int8_t lanes[BLOCK];
    for (size_t t = 0; t < d->taps; t++)
        least = vminq_s8(least, b->w[t] = vld1q_s8(d->w + t * d->w_tap + b->first));
    vst1q_s8(lanes, least);
    b->narrow = !d->has_w_zero;
    for (unsigned i = 0; i < BLOCK; i++)
        b->narrow &= lanes[i] != INT8_MIN;
    for (unsigned i = 0; i < 2 && !b->narrow; i++) {
        const int16x8_t zero =
            vcombine_s16(vmovn_s32(vld1q_s32(zeros + 8 * i)), vmovn_s32(vld1q_s32(zeros + 8 * i + 4)));
        for (size_t t = 0; t < d->taps; t++)
            b->wide[t][i] = vsubq_s16(vmovl_s8(i ? vget_high_s8(b->w[t]) : vget_low_s8(b->w[t])), zero);
    }
}

static void depthwise_load(const lnt_qdepthwise *d, size_t first, depthwise_block *b)
{
    depthwise_lanes *l = &b->lanes;
    b->d = d;
    b->first = first;
    depthwise_load_weights(b);
    l->flip = vdupq_n_u8(b->narrow ? d->flip ^ 0x80 : d->flip);
    l->range = byte_range_of(d->zero, d->is_signed);
    l->offset = byte_offset_of(d->zero, d->is_signed);
    b->bounded = d->result == LNT_QRESULT_INT8 &&
                 are_bounded(d->acc_bias + first, d->scale + first, (int64_t)d->taps * UINT8_MAX * UINT8_MAX);
    for (unsigned i = 0; i < QUARTERS; i++) {
        l->scale[i] = vld1q_f32(d->scale + first + i * LNT_VL);
        l->acc_bias[i] =
            vaddq_s32(vld1q_s32(d->acc_bias + first + i * LNT_VL), vdupq_n_s32(b->bounded ? MAGIC_BITS : 0));
    }
    for (unsigned x = 0; x < SIDE && d->taps == NINE; x++)
        column_of(b->w[x], b->w[SIDE + x], b->w[2 * SIDE + x], b->column[x]);
    int16x8_t sums[2] = {vdupq_n_s16(0), vdupq_n_s16(0)};
    for (size_t t = 0; b->narrow && t < d->taps; t++) {
        sums[0] = vaddw_s8(sums[0], vget_low_s8(b->w[t]));
        sums[1] = vaddw_s8(sums[1], vget_high_s8(b->w[t]));
    }
    for (unsigned i = 0; i < QUARTERS; i++) /* what moving A took away */
        l->acc_bias[i] = vaddq_s32(
            l->acc_bias[i], vshll_n_s16(i % 2 ? vget_high_s16(sums[i / 2]) : vget_low_s16(sums[i / 2]), 7));
}

/* acc += the products of one tap, of two, or of four: those of two are added as int16. Each kind of instruction for all
 * before the next kind, so that no result is waited for. */
LNT_INLINE void add_narrow(const unsigned taps, const int8x16_t *x, const int8x16_t *w,
                           int32x4_t acc[QUARTERS])
{
    int16x8_t low[2], high[2];
    UNROLL_FOR(2, unsigned t = 0; t < taps; t += 2) {
        multiply_low(&low[t / 2], x[t], w[t]);
        multiply_high(&high[t / 2], x[t], w[t]);
    }
    UNROLL_FOR(2, unsigned t = 1; t < taps; t += 2) {
        add_low(&low[t / 2], x[t], w[t]);
        add_high(&high[t / 2], x[t], w[t]);
    }
    UNROLL_FOR(2, unsigned t = 0; t < taps; t += 2) {
        widen_low(&acc[0], low[t / 2]);
        widen_high(&acc[1], low[t / 2]);
        widen_low(&acc[2], high[t / 2]);
        widen_high(&acc[3], high[t / 2]);
    }
}

LNT_INLINE int8x16_t load_narrow(const uint8_t *x, uint8x16_t flip)
{
    return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(x), flip));
}

/* The same for taps whose pixels are at x[t] + at. */
LNT_INLINE void add_taps(const unsigned taps, const uint8_t *const *x, size_t at, uint8x16_t flip,
                         const int8x16_t *w, int32x4_t acc[QUARTERS])
{
    int8x16_t a[4];
    UNROLL_FOR(4, unsigned t = 0; t < taps; t++)
        a[t] = load_narrow(x[t] + at, flip);
    add_narrow(taps, a, w, acc);
}

/* acc += the products of all taps. What the sums begin with and the last of nine taps are loaded before all else. */
LNT_INLINE void accumulate_narrow(const int8x16_t *w, uint8x16_t flip, const uint8_t *const *x, size_t at,
                                  const size_t taps, int32x4_t acc[QUARTERS])
{
    size_t t = 0;
    UNROLL_FOR(4, unsigned i = 0; i < QUARTERS; i++)
        acc[i] = (int32x4_t)v_keep((vf)acc[i]);
    if (taps == NINE) {
        const int8x16_t last = (int8x16_t)v_keep((vf)load_narrow(x[NINE - 1] + at, flip));
        UNROLL_FOR(2, t = 0; t + 4 <= NINE; t += 4)
            add_taps(4, x + t, at, flip, w + t, acc);
        add_narrow(1, &last, &w[NINE - 1], acc);
        return;
    }
    for (; t + 2 <= taps; t += 2)
        add_taps(2, x + t, at, flip, w + t, acc);
    if (taps % 2)
        add_taps(1, x + t, at, flip, w + t, acc);
}

LNT_INLINE void accumulate_wide(const int16x8_t w[][2], uint8x16_t flip, const uint8_t *const *x, size_t at,
                                const size_t taps, int32x4_t acc[QUARTERS])
{
    for (size_t t = 0; t < taps; t++) {
        const uint8x16_t a = veorq_u8(vld1q_u8(x[t] + at), flip);
        const int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(a))),
                        high = vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(a)));
        acc[0] = vmlal_s16(acc[0], vget_low_s16(low), vget_low_s16(w[t][0]));
        acc[1] = vmlal_s16(acc[1], vget_high_s16(low), vget_high_s16(w[t][0]));
        acc[2] = vmlal_s16(acc[2], vget_low_s16(high), vget_low_s16(w[t][1]));
        acc[3] = vmlal_s16(acc[3], vget_high_s16(high), vget_high_s16(w[t][1]));
    }
}

/* Do the taps of a 3x3 kernel lie side by side in three lines, and is it moved by a pixel each time? The answer is the
 * same for all long runs. */
static bool in_lines(const lnt_qdepthwise *d)
{
    const lnt_qdepthwise_run *run = d->run, *const end = d->run + d->runs;
    while (run < end && run->pixels < LONG_RUN)
        run++;
    for (size_t t = 0; run < end && t < NINE; t++)
        if (run->tap[t] != run->tap[t - t % SIDE] + t % SIDE * d->step)
            return false;
    return run < end;
}

#ifdef __ARM_FEATURE_DOTPROD

/* A column of three bytes is interleaved once and meets the weights of the three outputs that read it: `done` has
 * its last column then, `middle` its middle one, `fresh` its first. */
LNT_INLINE void add_column(const depthwise_block *b, const int8x16_t w[SIDE][QUARTERS], uint8x16_t flip,
                           const uint8_t *const *line, size_t at, int32x4_t *done, int32x4_t *middle,
                           int32x4_t *fresh)
{
    int8x16_t quad[QUARTERS];
    column_of(load_narrow(line[0] + at, flip), load_narrow(line[1] + at, flip),
              load_narrow(line[2] + at, flip), quad);
    UNROLL_FOR(4, unsigned i = 0; i < QUARTERS; i++) {
        done[i] = vdotq_s32(done[i], quad[i], w[2][i]);
        middle[i] = vdotq_s32(middle[i], quad[i], w[1][i]);
        fresh[i] = vdotq_s32(b->lanes.acc_bias[i], quad[i], w[0][i]);
    }
}

#endif

/* Results of 32 bits. */
static __attribute__((noinline)) void depthwise_store_wide(const depthwise_block *b, const int32_t *acc,
                                                           uint8_t *y)
{
    const lnt_qdepthwise *d = b->d;
    for (unsigned i = 0; i < BLOCK; i += LNT_VL) {
        vi sums = vi_load(acc + i);
        if (d->result == LNT_QRESULT_FLOATS) {
            const vf v = vi_float(sums) * (vf)b->lanes.scale[i / LNT_VL] + v_load(d->bias + b->first + i);
            sums = (vi)v_min(v_splat(d->high), v_max(v_splat(d->low), v));
        }
        vi_store((int32_t *)(void *)y + i, sums);
    }
}

static __attribute__((noinline)) void depthwise_store_unbounded(const depthwise_block *b, const int32_t *acc,
                                                                uint8_t *y)
{
    vf v[QUARTERS];
    if (b->d->result != LNT_QRESULT_INT8) {
        depthwise_store_wide(b, acc, y);
        return;
    }
    for (unsigned i = 0; i < QUARTERS; i++)
        v[i] = vi_scaled(vi_load(acc + i * LNT_VL), (vf)b->lanes.scale[i]);
    v_store_requantized(y, v, b->lanes.range);
}

LNT_INLINE void depthwise_store(const depthwise_lanes *l, int32x4_t acc[QUARTERS], uint8_t *y)
{
    int32x4_t copy[1][QUARTERS];
    uint8x16_t bytes[1];
    UNROLL_FOR(4, unsigned i = 0; i < QUARTERS; i++)
        copy[0][i] = acc[i];
    requantize_bounded(1, copy, l->scale, l->offset, bytes);
    vst1q_u8(y, bytes[0]);
}

/* All pixels of a run. */
static __attribute__((noinline)) void depthwise_any(const depthwise_block *b, const lnt_qdepthwise_run *run)
{
    const lnt_qdepthwise *d = b->d;
    const size_t width = lnt_qresult_bytes(d->result), taps = d->taps;
    const uint8x16_t flip = b->lanes.flip;
    uint8_t *y = run->y + b->first * width, *const end = y + run->pixels * d->pixel;
    for (size_t at = b->first; y < end; y += d->pixel, at += d->step) {
        int32x4_t acc[QUARTERS];
        int32_t sums[BLOCK];
        UNROLL_FOR(4, unsigned i = 0; i < QUARTERS; i++)
            acc[i] = b->lanes.acc_bias[i];
        if (b->narrow)
            accumulate_narrow(b->w, flip, run->tap, at, taps, acc);
        else
            accumulate_wide(b->wide, flip, run->tap, at, taps, acc);
        if (b->bounded) {
            depthwise_store(&b->lanes, acc, y);
            continue;
        }
        UNROLL_FOR(4, unsigned i = 0; i < QUARTERS; i++)
            vst1q_s32(sums + i * LNT_VL, acc[i]);
        depthwise_store_unbounded(b, sums, y);
    }
}

/* All runs, or the short ones, of nine narrow taps with bounded accumulators. */
static __attribute__((noinline)) void depthwise_nine(const depthwise_block *b, const bool short_ones)
{
    const lnt_qdepthwise *d = b->d;
    const uint8x16_t flip = b->lanes.flip;
    const size_t step = d->step, pixel = d->pixel;
    int8x16_t w[NINE];
    UNROLL_FOR(9, size_t t = 0; t < NINE; t++)
        w[t] = b->w[t];
    for (const lnt_qdepthwise_run *run = d->run, *last = run + d->runs; run < last; run++) {
        const uint8_t *tap[NINE];
        if (short_ones && run->pixels >= LONG_RUN)
            continue;
        UNROLL_FOR(9, size_t t = 0; t < NINE; t++)
            tap[t] = run->tap[t];
        uint8_t *y = run->y + b->first, *const end = y + run->pixels * pixel;
        for (size_t at = b->first; y < end; y += pixel, at += step) {
            int32x4_t acc[QUARTERS];
            UNROLL_FOR(4, unsigned i = 0; i < QUARTERS; i++)
                acc[i] = b->lanes.acc_bias[i];
            accumulate_narrow(w, flip, tap, at, NINE, acc);
            depthwise_store(&b->lanes, acc, y);
        }
    }
}

/* A run of pixels in lines, with bounded accumulators: each column is read once. */
#ifdef __ARM_FEATURE_DOTPROD

LNT_INLINE void columns_of_run(const depthwise_block *b, const int8x16_t w[SIDE][QUARTERS], uint8x16_t flip,
                               const lnt_qdepthwise_run *run)
{
    const uint8_t *const line[SIDE] = {run->tap[0], run->tap[SIDE], run->tap[2 * SIDE]};
    const size_t step = b->d->step, pixel = b->d->pixel;
    int32x4_t sums[SIDE][QUARTERS];
    uint8_t *y = run->y + b->first;
    const uint8_t *const end = y + run->pixels * pixel;
    size_t at = b->first;
    UNROLL_FOR(3, unsigned x = 0; x < SIDE; x++)
        UNROLL_FOR(4, unsigned i = 0; i < QUARTERS; i++)
            sums[x][i] = b->lanes.acc_bias[i];
    add_column(b, w, flip, line, at, sums[1], sums[2], sums[0]);
    add_column(b, w, flip, line, at += step, sums[2], sums[0], sums[1]);
#define OUTPUT(done, middle, fresh)                                                                          \
    add_column(b, w, flip, line, at += step, sums[done], sums[middle], sums[fresh]);                         \
    depthwise_store(&b->lanes, sums[done], y);                                                               \
    y += pixel;                                                                                              \
    if (y == end)                                                                                            \
    return
    for (;;) {
        OUTPUT(0, 1, 2);
        OUTPUT(1, 2, 0);
        OUTPUT(2, 0, 1);
    }
#undef OUTPUT
}

#else

LNT_INLINE void load_column(const uint8_t *const line[SIDE], size_t at, uint8x16_t flip,
                            int8x16_t column[SIDE])
{
    UNROLL_FOR(3, unsigned i = 0; i < SIDE; i++)
        column[i] = load_narrow(line[i] + at, flip);
}

/* A pixel, of whose columns the last one has just been read. */
LNT_INLINE void pixel_of_columns(const depthwise_lanes *l, const int8x16_t w[SIDE][QUARTERS],
                                 const int8x16_t first[SIDE], const int8x16_t middle[SIDE],
                                 const int8x16_t last[SIDE], uint8_t *y)
{
    int32x4_t acc[QUARTERS];
    UNROLL_FOR(4, unsigned i = 0; i < QUARTERS; i++)
        acc[i] = l->acc_bias[i];
    add_narrow(4, (const int8x16_t[]){first[0], first[1], first[2], middle[0]},
               (const int8x16_t[]){w[0][0], w[0][1], w[0][2], w[1][0]}, acc);
    add_narrow(4, (const int8x16_t[]){middle[1], middle[2], last[0], last[1]},
               (const int8x16_t[]){w[1][1], w[1][2], w[2][0], w[2][1]}, acc);
    add_narrow(1, &last[2], &w[2][2], acc);
    depthwise_store(l, acc, y);
}

LNT_INLINE void columns_of_run(const depthwise_block *b, const int8x16_t w[SIDE][QUARTERS], uint8x16_t flip,
                               const lnt_qdepthwise_run *run)
{
    const uint8_t *const line[SIDE] = {run->tap[0], run->tap[SIDE], run->tap[2 * SIDE]};
    const size_t step = b->d->step, pixel = b->d->pixel;
    const depthwise_lanes lanes =
        b->lanes; /* which results might overwrite, for all that the compiler knows */
    int8x16_t x[SIDE][SIDE];
    uint8_t *y = run->y + b->first;
    const uint8_t *const end = y + run->pixels * pixel;
    size_t at = b->first;
    load_column(line, at, flip, x[0]);
    load_column(line, at += step, flip, x[1]);
#define OUTPUT(first, middle, last)                                                                          \
    load_column(line, at += step, flip, x[last]);                                                            \
    pixel_of_columns(&lanes, w, x[first], x[middle], x[last], y);                                            \
    y += pixel;                                                                                              \
    if (y == end)                                                                                            \
    return
    for (;;) {
        OUTPUT(0, 1, 2);
        OUTPUT(1, 2, 0);
        OUTPUT(2, 0, 1);
    }
#undef OUTPUT
}

#endif

/* All long runs. */
static __attribute__((noinline)) void depthwise_columns(const depthwise_block *b)
{
    const lnt_qdepthwise *d = b->d;
    int8x16_t w[SIDE][QUARTERS];
    UNROLL_FOR(3, unsigned x = 0; x < SIDE; x++)
        UNROLL_FOR(4, unsigned i = 0; i < QUARTERS; i++)
            w[x][i] = b->column[x][i];
    for (const lnt_qdepthwise_run *run = d->run, *last = run + d->runs; run < last; run++)
        if (run->pixels >= LONG_RUN)
            columns_of_run(b, w, b->lanes.flip, run);
}

/* The same for fewer channels than a block has: copies of their taps, and of what becomes of them. */
static void depthwise_few(const depthwise_block *b, const lnt_qdepthwise_run *run)
{
    const lnt_qdepthwise *d = b->d;
    uint8_t copies[LNT_QTAPS_MAX][BLOCK];
    int32_t results[BLOCK];
    const uint8_t *copy[LNT_QTAPS_MAX];
    const lnt_qdepthwise_run one = {.tap = copy, .pixels = 1, .y = (uint8_t *)results};
    for (size_t t = 0; t < d->taps; t++)
        copy[t] = memset(copies[t], 0, BLOCK);
    for (size_t i = 0; i < run->pixels; i++) {
        for (size_t t = 0; t < d->taps; t++)
            memcpy(copies[t], run->tap[t] + i * d->step, d->channels);
        depthwise_any(b, &one);
        memcpy(run->y + i * d->pixel, results, d->channels * lnt_qresult_bytes(d->result));
    }
}

static void depthwise_runs(const depthwise_block *b, const bool lines)
{
    const lnt_qdepthwise *d = b->d;
    if (d->taps == NINE && b->narrow && b->bounded) {
        if (lines)
            depthwise_columns(b);
        depthwise_nine(b, lines);
        return;
    }
    for (const lnt_qdepthwise_run *run = d->run; run < d->run + d->runs; run++)
        depthwise_any(b, run);
}

/* Blocks are whole: the last one begins where 16 channels are left, some of which the one before has computed. */
static void depthwise(const lnt_qdepthwise *d)
{
    LNT_ASSERT(d->taps <= LNT_QTAPS_MAX && d->w_tap >= BLOCK && d->w_tap % BLOCK == 0);
    const bool few = d->channels < BLOCK;
    const bool lines = d->taps == NINE && in_lines(d);
    for (size_t first = 0; first < d->channels; first += BLOCK) {
        depthwise_block b;
        depthwise_load(d, few || first + BLOCK <= d->channels ? first : d->channels - BLOCK, &b);
        if (!few)
            depthwise_runs(&b, lines);
        for (const lnt_qdepthwise_run *run = d->run; few && run < d->run + d->runs; run++)
            depthwise_few(&b, run);
    }
}
