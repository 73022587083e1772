/* qdepthwise.inc.h — depthwise convolutions of bytes over the primitives of ops/simd.h, which the including
 * file has included for its level. */
#include "ops/simd_narrow.h"

/* What a vector of channels has in common for all pixels. */
typedef struct depthwise_lanes {
    vi w[LNT_QTAPS_MAX]; /* zero points taken out */
    vi plus, zero;
    vf scale, bias, low, high;
} depthwise_lanes;

/* Channels [first, first + lanes); the other lanes hold nothing of use. */
LNT_INLINE void depthwise_load(const lnt_qdepthwise *d, size_t first, unsigned lanes, depthwise_lanes *l)
{
    int32_t w[LNT_VL] = {0}, plus[LNT_VL] = {0};
    float scale[LNT_VL] = {0}, bias[LNT_VL] = {0};
    const bool floats = d->result == LNT_QRESULT_FLOATS;
    const float low = floats ? d->low : (float)((d->is_signed ? -128 : 0) - d->zero);
    for (size_t t = 0; t < d->taps; t++) {
        for (unsigned i = 0; i < lanes; i++)
            w[i] = d->w[t * d->w_tap + first + i] - d->zeros[first + i];
        l->w[t] = vi_load(w);
    }
    memcpy(plus, d->plus + first, lanes * sizeof *plus);
    memcpy(scale, d->scale + first, lanes * sizeof *scale);
    if (floats)
        memcpy(bias, d->bias + first, lanes * sizeof *bias);
    l->plus = vi_load(plus);
    l->bias = v_load(bias);
    l->scale = v_load(scale);
    l->zero = vi_splat(d->zero);
    l->low = v_splat(low);
    l->high = v_splat(floats ? d->high : low + 255);
}

/* One pixel; bytes are at x[t] + at. */
LNT_INLINE void depthwise_pixel(const lnt_qdepthwise *d, const depthwise_lanes *l, const uint8_t *const *x,
                                size_t at, void *y)
{
    const vi flip = vi_splat(d->flip);
    vi acc = l->plus;
    for (size_t t = 0; t < d->taps; t++)
        acc += (vi_load_u8(x[t] + at) ^ flip) * l->w[t];
    const vf v = vi_float(acc) * l->scale;
    if (d->result == LNT_QRESULT_BYTES)
        vi_store_8(y, v_round_int(v_min(l->high, v_at_least(v, l->low))) + l->zero);
    else if (d->result == LNT_QRESULT_INTS)
        vi_store(y, acc);
    else
        v_store(y, v_min(l->high, v_max(l->low, v + l->bias)));
}

/* The last channels, fewer than a vector has lanes. */
static void depthwise_rest(const lnt_qdepthwise *d, size_t first, unsigned lanes)
{
    depthwise_lanes l;
    uint8_t copies[LNT_QTAPS_MAX][LNT_VL] = {{0}};
    const size_t width = lnt_qresult_bytes(d->result);
    int32_t y[LNT_VL];
    const uint8_t *x[LNT_QTAPS_MAX];
    depthwise_load(d, first, lanes, &l);
    for (size_t t = 0; t < d->taps; t++)
        x[t] = copies[t];
    for (const lnt_qdepthwise_run *run = d->run; run < d->run + d->runs; run++)
        for (size_t i = 0; i < run->pixels; i++) {
            for (size_t t = 0; t < d->taps; t++)
                memcpy(copies[t], run->tap[t] + i * d->step + first, lanes);
            depthwise_pixel(d, &l, x, 0, y);
            memcpy(run->y + i * d->pixel + first * width, y, lanes * width);
        }
}

static void depthwise(const lnt_qdepthwise *d)
{
    const size_t width = lnt_qresult_bytes(d->result);
    size_t first = 0;
    for (; first + LNT_VL <= d->channels; first += LNT_VL) {
        depthwise_lanes l;
        depthwise_load(d, first, LNT_VL, &l);
        for (const lnt_qdepthwise_run *run = d->run; run < d->run + d->runs; run++)
            for (size_t i = 0; i < run->pixels; i++)
                depthwise_pixel(d, &l, run->tap, i * d->step + first, run->y + i * d->pixel + first * width);
    }
    if (first < d->channels)
        depthwise_rest(d, first, (unsigned)(d->channels - first));
}
