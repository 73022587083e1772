/* qparams.h — quantization parameters: real = (quantized - zero point) * scale. */
#ifndef LNT_OPS_QUANT_QPARAMS_H
#define LNT_OPS_QUANT_QPARAMS_H

#include "base/small.h"
#include "ops/element.h"
#include "ops/op.h"
#include "ops/rows/int8_rows.h"
#include "ops/rows/row.h"

#include <math.h>
#include <string.h>

/* Range of a stored type. */
typedef struct lnt_qrange {
    int32_t low, high;
} lnt_qrange;

static inline lnt_qrange lnt_qrange_of(lnt_dtype t)
{
    switch (t) {
    case LNT_INT8: return (lnt_qrange){INT8_MIN, INT8_MAX};
    case LNT_UINT8: return (lnt_qrange){0, UINT8_MAX};
    case LNT_INT16: return (lnt_qrange){INT16_MIN, INT16_MAX};
    case LNT_INT4: return (lnt_qrange){-8, 7};
    case LNT_UINT4: return (lnt_qrange){0, 15};
    case LNT_INT2: return (lnt_qrange){-2, 1};
    case LNT_UINT2: return (lnt_qrange){0, 3};
    default: return (lnt_qrange){0, UINT16_MAX};
    }
}

static inline bool lnt_is_quantized(lnt_dtype t)
{
    return t == LNT_INT8 || t == LNT_UINT8 || t == LNT_INT16 || t == LNT_UINT16;
}

static inline bool lnt_is_byte(lnt_dtype t)
{
    return t == LNT_INT8 || t == LNT_UINT8;
}

/* Quantize and requantize: saturate(round-half-even(x) + zero point), for every operator and level. NaN gives
 * the low end. */
static inline int32_t lnt_requantize(float x, int32_t zero_point, lnt_qrange r)
{
    const float low = (float)(r.low - zero_point), high = (float)(r.high - zero_point);
    const float inside = !(x > low) ? low : x < high ? x : high;
    return (int32_t)lrintf(inside) + zero_point;
}

/* Scale and uint8 zero point that hold n numbers and 0: what DynamicQuantizeLinear computes. */
lnt_status lnt_dynamic_scale(lnt_kernel *k, const lnt_row_kernels *row, const float *x, int64_t n,
                             float *scale, int32_t *zero);

/* Quantization parameters of a row or a value: real = (quantized - zero_point) * scale. */
typedef struct lnt_qparams {
    float scale;
    int32_t zero_point;
} lnt_qparams;

/* Parameters whose uint8 range covers low to high, and 0. If these are not finite the scale is NaN, so that all
 * results computed from them are NaN. */
static inline lnt_qparams lnt_qparams_of(float low, float high)
{
    if (!(high - low < INFINITY))
        return (lnt_qparams){NAN, 0};
    low = fminf(low, 0);
    const float scale = (fmaxf(high, 0) - low) / 255;
    const lnt_qparams q = {scale >= 1e-37f ? scale : 1, 0};
    return (lnt_qparams){q.scale, lnt_requantize((0 - low) / q.scale, 0, lnt_qrange_of(LNT_UINT8))};
}

/* n floats as uint8 over their own range, then zeros up to room. */
static inline lnt_qparams lnt_quantize_row(const lnt_row_kernels *row, const lnt_int8_kernels *int8,
                                           const float *x, int64_t n, uint8_t *y, int64_t room)
{
    const lnt_qparams q = lnt_qparams_of(row->min(x, n), row->max(x, n));
    int8->quantize(x, y, n, q.scale, q.zero_point, false);
    memset(y + n, 0, (size_t)(room - n));
    return q;
}

/* Rows of n elements that are worth a slice of their own to quantize. */
static inline int64_t lnt_quantize_grain(int64_t n)
{
    return 1 + 4096 / (n + 1);
}

/* Element i of operand data of an integer or real type, or what stands for a skipped operand or for one that has
 * no such element. */
static inline int32_t lnt_qint(const lnt_operand *o, const void *data, int64_t i, int32_t otherwise)
{
    int64_t x = otherwise;
    if (data && i < lnt_operand_count(o)) {
        const lnt_dtype t = lnt_small_as_byte((lnt_dtype)o->dtype);
        lnt_elements_to_int64(t, lnt_element_at(data, t, i), &x, 1);
    }
    return (int32_t)x;
}

static inline float lnt_qfloat(const lnt_operand *o, const void *data, int64_t i)
{
    float x = 1;
    if (data && i < lnt_operand_count(o))
        lnt_elements_to_float((lnt_dtype)o->dtype, lnt_element_at(data, (lnt_dtype)o->dtype, i), &x, 1);
    return x;
}

/* Input i of a running step as a scalar. */
static inline int32_t lnt_qstep_int(const lnt_kernel *k, const lnt_step *s, unsigned i)
{
    return lnt_qint(i < s->n_in ? s->in[i] : NULL, lnt_in(k, s, i), 0, 0);
}

static inline float lnt_qstep_float(const lnt_kernel *k, const lnt_step *s, unsigned i)
{
    return lnt_qfloat(i < s->n_in ? s->in[i] : NULL, lnt_in(k, s, i), 0);
}

#endif
