/* qdepthwise.inc.h — int8 depthwise convolutions over the primitives of ops/simd/simd.h, which the including
 * file has included for its level; where it has included ops/simd/simd_quad.h, too, four channels are multiplied at
 * once. */
#include "ops/simd/simd_lanes.h"
#include "ops/simd/simd_narrow.h"

/* Channels that are computed at once. */
#ifdef LNT_OPS_SIMD_SIMD_QUAD_H
enum { LANES = 4 };
typedef quad depthwise_weights;
#else
enum { LANES = LNT_VL };
typedef vi depthwise_weights;
#endif
enum { VECTORS = LANES / LNT_VL };

/* Operands of LANES channels that are the same for all pixels. */
typedef struct depthwise_lanes {
    depthwise_weights w[LNT_QTAPS_MAX]; /* minus their zero points */
    vi acc_bias[VECTORS];
    vf scale[VECTORS], bias[VECTORS], low, high;
    byte_range range;
} depthwise_lanes;

/* Channels [first, first + lanes); the other lanes hold nothing of use. */
LNT_INLINE void depthwise_load(const lnt_qdepthwise *d, size_t first, unsigned lanes, depthwise_lanes *l)
{
    int32_t w[LANES] = {0}, acc_bias[LANES] = {0};
    float scale[LANES] = {0}, bias[LANES] = {0};
    const bool floats = d->result == LNT_QRESULT_FLOATS;
    for (size_t t = 0; t < d->taps; t++) {
        for (unsigned i = 0; i < lanes; i++)
            w[i] = d->w[t * d->w_tap + first + i] - d->zeros[first + i];
#ifdef LNT_OPS_SIMD_SIMD_QUAD_H
        l->w[t] = quad_of(w);
#else
        l->w[t] = vi_load(w);
#endif
    }
    memcpy(acc_bias, d->acc_bias + first, lanes * sizeof *acc_bias);
    memcpy(scale, d->scale + first, lanes * sizeof *scale);
    if (floats)
        memcpy(bias, d->bias + first, lanes * sizeof *bias);
    UNROLL_FOR(4, unsigned i = 0; i < VECTORS; i++) {
        l->acc_bias[i] = vi_load(acc_bias + i * LNT_VL);
        l->bias[i] = v_load(bias + i * LNT_VL);
        l->scale[i] = v_load(scale + i * LNT_VL);
    }
    l->low = v_splat(d->low);
    l->high = v_splat(d->high);
    l->range = byte_range_of(d->zero, d->is_signed);
}

/* The accumulators of a pixel; tap t is at x[t] + at. They wrap, as sums of 32 bits do at every level. */
LNT_INLINE void depthwise_sum(const lnt_qdepthwise *d, const depthwise_lanes *l, const uint8_t *const *x,
                              size_t at, vi acc[VECTORS])
{
#ifdef LNT_OPS_SIMD_SIMD_QUAD_H
    uint32_t sum[LANES];
    int32_t sums[LANES];
    UNROLL_FOR(4, unsigned i = 0; i < VECTORS; i++)
        vi_store(sums + i * LNT_VL, l->acc_bias[i]);
    UNROLL_FOR(4, unsigned i = 0; i < LANES; i++)
        sum[i] = (uint32_t)sums[i];
    for (size_t t = 0; t < d->taps; t++)
        quad_multiply_add(sum, quad_of_u8(x[t] + at, d->flip), l->w[t]);
    UNROLL_FOR(4, unsigned i = 0; i < LANES; i++)
        sums[i] = (int32_t)sum[i];
    UNROLL_FOR(4, unsigned i = 0; i < VECTORS; i++)
        acc[i] = vi_load(sums + i * LNT_VL);
#else
    const vi flip = vi_splat(d->flip);
    vu sum = (vu)l->acc_bias[0];
    for (size_t t = 0; t < d->taps; t++)
        sum += (vu)((vi_load_u8(x[t] + at) ^ flip) * l->w[t]);
    acc[0] = (vi)sum;
#endif
}

/* One pixel. */
LNT_INLINE void depthwise_pixel(const lnt_qdepthwise *d, const depthwise_lanes *l, const uint8_t *const *x,
                                size_t at, void *y)
{
    vi acc[VECTORS];
    vf v[VECTORS];
    depthwise_sum(d, l, x, at, acc);
    UNROLL_FOR(4, unsigned i = 0; i < VECTORS; i++)
        v[i] = vi_float(acc[i]) * l->scale[i];
    if (d->result == LNT_QRESULT_INT8)
        v_store_requantized(y, v, l->range);
    else if (d->result == LNT_QRESULT_INTS)
        UNROLL_FOR(4, unsigned i = 0; i < VECTORS; i++)
            vi_store((int32_t *)y + i * LNT_VL, acc[i]);
    else
        UNROLL_FOR(4, unsigned i = 0; i < VECTORS; i++)
            v_store((float *)y + i * LNT_VL, v_min(l->high, v_max(l->low, v[i] + l->bias[i])));
}

/* Channels [first, first + lanes). The last ones, fewer than LANES, are copied. */
static void depthwise_channels(const lnt_qdepthwise *d, size_t first, unsigned lanes)
{
    const size_t width = lnt_qresult_bytes(d->result);
    const bool whole = lanes == LANES;
    depthwise_lanes l;
    uint8_t copies[LNT_QTAPS_MAX][LANES];
    const uint8_t *copy[LNT_QTAPS_MAX];
    int32_t results[LANES];
    depthwise_load(d, first, lanes, &l);
    for (size_t t = 0; !whole && t < d->taps; t++)
        copy[t] = memset(copies[t], 0, LANES);
    for (const lnt_qdepthwise_run *run = d->run; run < d->run + d->runs; run++)
        for (size_t i = 0; i < run->pixels; i++) {
            const size_t at = i * d->step + first;
            uint8_t *y = run->y + i * d->pixel + first * width;
            for (size_t t = 0; !whole && t < d->taps; t++)
                memcpy(copies[t], run->tap[t] + at, lanes);
            depthwise_pixel(d, &l, whole ? run->tap : copy, whole ? at : 0, whole ? y : (void *)results);
            if (!whole)
                memcpy(y, results, lanes * width);
        }
}

static void depthwise(const lnt_qdepthwise *d)
{
    LNT_ASSERT(d->taps <= LNT_QTAPS_MAX);
    for (size_t first = 0; first < d->channels; first += LANES)
        depthwise_channels(d, first, d->channels - first < LANES ? (unsigned)(d->channels - first) : LANES);
}
