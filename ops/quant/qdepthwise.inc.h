/* qdepthwise.inc.h — int8 depthwise convolutions over the primitives of ops/simd/simd.h, which the including
 * file has included for its level. */
#include "ops/simd/simd_narrow.h"

/* Operands of a vector of channels that are the same for all pixels. */
typedef struct depthwise_lanes {
    vi w[LNT_QTAPS_MAX]; /* minus their zero points */
    vi acc_bias, zero;
    vf scale, bias, low, high;
} depthwise_lanes;

/* Channels [first, first + lanes); the other lanes hold nothing of use. */
LNT_INLINE void depthwise_load(const lnt_qdepthwise *d, size_t first, unsigned lanes, depthwise_lanes *l)
{
    int32_t w[LNT_VL] = {0}, acc_bias[LNT_VL] = {0};
    float scale[LNT_VL] = {0}, bias[LNT_VL] = {0};
    const bool floats = d->result == LNT_QRESULT_FLOATS;
    const float low = floats ? d->low : (float)((d->is_signed ? -128 : 0) - d->zero);
    for (size_t t = 0; t < d->taps; t++) {
        for (unsigned i = 0; i < lanes; i++)
            w[i] = d->w[t * d->w_tap + first + i] - d->zeros[first + i];
        l->w[t] = vi_load(w);
    }
    memcpy(acc_bias, d->acc_bias + first, lanes * sizeof *acc_bias);
    memcpy(scale, d->scale + first, lanes * sizeof *scale);
    if (floats)
        memcpy(bias, d->bias + first, lanes * sizeof *bias);
    l->acc_bias = vi_load(acc_bias);
    l->bias = v_load(bias);
    l->scale = v_load(scale);
    l->zero = vi_splat(d->zero);
    l->low = v_splat(low);
    l->high = v_splat(floats ? d->high : low + 255);
}

/* One pixel; tap t is at x[t] + at. */
LNT_INLINE void depthwise_pixel(const lnt_qdepthwise *d, const depthwise_lanes *l, const uint8_t *const *x,
                                size_t at, void *y)
{
    const vi flip = vi_splat(d->flip);
    vu sum = (vu)l->acc_bias; /* wraps, as sums of 32 bits do at every level */
    for (size_t t = 0; t < d->taps; t++)
        sum += (vu)((vi_load_u8(x[t] + at) ^ flip) * l->w[t]);
    const vi acc = (vi)sum;
    const vf v = vi_float(acc) * l->scale;
    if (d->result == LNT_QRESULT_INT8)
        vi_store_8(y, v_round_int(v_min(l->high, v_at_least(v, l->low))) + l->zero);
    else if (d->result == LNT_QRESULT_INTS)
        vi_store(y, acc);
    else
        v_store(y, v_min(l->high, v_max(l->low, v + l->bias)));
}

/* Channels [first, first + lanes). The last ones, fewer than a vector has lanes, are copied. */
static void depthwise_channels(const lnt_qdepthwise *d, size_t first, unsigned lanes)
{
    const size_t width = lnt_qresult_bytes(d->result);
    const bool whole = lanes == LNT_VL;
    depthwise_lanes l;
    uint8_t copies[LNT_QTAPS_MAX][LNT_VL];
    const uint8_t *copy[LNT_QTAPS_MAX];
    int32_t results[LNT_VL];
    depthwise_load(d, first, lanes, &l);
    for (size_t t = 0; !whole && t < d->taps; t++)
        copy[t] = memset(copies[t], 0, LNT_VL);
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
    for (size_t first = 0; first < d->channels; first += LNT_VL)
        depthwise_channels(d, first, d->channels - first < LNT_VL ? (unsigned)(d->channels - first) : LNT_VL);
}
