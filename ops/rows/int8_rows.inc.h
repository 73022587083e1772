/* int8_rows.inc.h — the kernels of int8 rows, written once over ops/simd/simd.h and compiled per level; the including
 * file says which. */
#include "ops/op.h"
#include "ops/rows/int8_rows.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lookup.h"
#include "ops/simd/simd_narrow.h"

enum { VL = LNT_VL };

/* lnt_requantize (ops/quant/qparams.h), lane by lane. */
LNT_INLINE void requantize_lanes(uint8_t *y, vf v, vf low, vf high, vi zero)
{
    vi_store_8(y, v_round_int(v_min(high, v_at_least(v, low))) + zero);
}

/* Runs block over whole vectors of n elements, the rest through a copy of them in a vector's room. */
#define INT8_LOOP(x_type, y_type, block)                                                                     \
    do {                                                                                                     \
        int64_t i = 0;                                                                                       \
        for (; i + VL <= n; i += VL)                                                                         \
            block((const x_type *)x + i, (y_type *)y + i);                                                   \
        if (i < n) {                                                                                         \
            x_type x_rest[VL] = {0};                                                                         \
            y_type y_rest[VL];                                                                               \
            memcpy(x_rest, (const x_type *)x + i, (size_t)(n - i) * sizeof *x_rest);                         \
            block(x_rest, y_rest);                                                                           \
            memcpy((y_type *)y + i, y_rest, (size_t)(n - i) * sizeof *y_rest);                               \
        }                                                                                                    \
    } while (0)

/* x / scale where it is near the middle between integers; elsewhere x * inverse, which rounds to the same one
 * and takes a fraction of the time. */
LNT_INLINE vf divided(vf x, float scale, float inverse)
{
    const float near_middle = 0.5f - 0x1p-12f; /* their distance is a thousandth of that below 512 */
    const vf v = x * v_splat(inverse);
    return v_any_beyond(v - v_round(v), near_middle) ? x / v_splat(scale) : v;
}

static void quantize(const float *x, void *y, int64_t n, float scale, int32_t zero, bool is_signed)
{
    const vf low = v_splat((float)((is_signed ? -128 : 0) - zero)), high = low + v_splat(255);
    const vi z = vi_splat(zero);
    const float inverse = scale > 1e-30f && scale < 1e30f ? 1 / scale : NAN; /* NaN: always divides */
#define BLOCK(from, to) requantize_lanes(to, divided(v_load(from), scale, inverse), low, high, z)
    INT8_LOOP(float, uint8_t, BLOCK);
#undef BLOCK
}

LNT_INLINE vi load_bytes(const uint8_t *p, bool is_signed)
{
    return is_signed ? vi_load_i8((const int8_t *)p) : vi_load_u8(p);
}

static void dequantize(const void *x, float *y, int64_t n, float scale, int32_t zero, bool is_signed)
{
    const vf s = v_splat(scale);
    const vi z = vi_splat(zero);
#define BLOCK(from, to) v_store(to, vi_float(load_bytes(from, is_signed) - z) * s)
    INT8_LOOP(uint8_t, float, BLOCK);
#undef BLOCK
}

/* Columns [j, j + n) of all rows; n is VL if they are `whole`. */
LNT_INLINE void dequantize_columns(const lnt_dequantize_tile *t, unsigned j, unsigned n, const bool whole)
{
    const vf low = v_splat(t->low), high = v_splat(t->high);
    const vu sums = (vu)vi_load(t->sums + j);
    const vf factors = whole ? v_load(t->scales + j) : v_load_n(t->scales + j, n);
    const vf bias = !t->bias ? v_splat(0) : whole ? v_load(t->bias + j) : v_load_n(t->bias + j, n);
    vu taken = (vu)vi_splat(t->zero[0]) * sums;
    for (unsigned r = 0; r < t->rows; r++) {
        if (r > 0 && t->zero[r] != t->zero[r - 1])
            taken = (vu)vi_splat(t->zero[r]) * sums;
        const vu acc = (vu)vi_load(t->acc + r * LNT_QPANEL + j) - taken;
        vf v = vi_float((vi)acc) * (v_splat(t->scale[r]) * factors) + bias;
        if (t->residual)
            v += whole ? v_load(t->residual[r] + j) : v_load_n(t->residual[r] + j, n);
        v = v_min(high, v_max(low, v));
        if (whole)
            v_store(t->y[r] + j, v);
        else
            v_store_n(t->y[r] + j, v, n);
    }
}

static void store_dequantized(const lnt_dequantize_tile *tile)
{
    LNT_ASSERT(tile->rows <= 1 || tile->columns <= LNT_QPANEL);
    const lnt_dequantize_tile own = *tile; /* out of reach of the stores */
    unsigned j = 0;
    for (; j + VL <= own.columns; j += VL)
        dequantize_columns(&own, j, VL, true);
    if (j < own.columns)
        dequantize_columns(&own, j, own.columns - j, false);
}

/* Columns [j, j + VL) of all rows: `whole` if there are as many, `has_w_zero` if weights have zero points,
 * `has_slope` with slopes. */
LNT_INLINE void requantize_columns(const lnt_requantize_tile *t, unsigned j, const bool whole,
                                   const bool has_w_zero, const bool has_slope)
{
    const vf low = v_splat((float)((t->is_signed ? -128 : 0) - t->zero)), high = low + v_splat(255);
    const vi zero = vi_splat(t->zero);
    const vu acc_bias = (vu)vi_load(t->acc_bias + j), zeros = (vu)vi_load(t->zeros + j);
    const vf scale = v_load(t->scale + j);
    const vf slope = v_load(has_slope ? t->slope + j : t->scale + j),
             floor = v_load(has_slope ? t->floor + j : t->scale + j);
    for (unsigned r = 0; r < t->rows; r++) {
        vu acc = (vu)vi_load(t->acc + r * LNT_QPANEL + j) + acc_bias;
        if (has_w_zero)
            acc -= (vu)vi_splat(t->row[r]) * zeros;
        vf v = vi_float((vi)acc) * scale;
        if (has_slope)
            v = v_at_least(v, v_at_least(v * slope, floor));
        uint8_t bytes[VL];
        requantize_lanes(whole ? t->y + t->out[r] + j : bytes, v, low, high, zero);
        if (!whole)
            memcpy(t->y + t->out[r] + j, bytes, t->columns - j);
    }
}

static void store_requantized(const lnt_requantize_tile *tile)
{
    const lnt_requantize_tile t = *tile; /* out of reach of the stores */
    for (unsigned j = 0; j < t.columns; j += VL)
        if (j + VL <= t.columns && !t.row && !t.slope)
            requantize_columns(&t, j, true, false, false);
        else if (j + VL <= t.columns && !t.slope)
            requantize_columns(&t, j, true, true, false);
        else
            requantize_columns(&t, j, j + VL <= t.columns, t.row != NULL, t.slope != NULL);
}

LNT_INLINE void combine_vector(const lnt_qpair *p, vi a, vi b, bool multiply, uint8_t *c)
{
    const vf low = v_splat((float)((p->c_signed ? -128 : 0) - p->c_zero)), high = low + v_splat(255);
    const vf of_a = v_splat(p->a_ratio), of_b = v_splat(p->b_ratio);
    a -= vi_splat(p->a_zero);
    b -= vi_splat(p->b_zero);
    const vf v = multiply ? vi_float(a * b) * of_a : vi_float(a) * of_a + vi_float(b) * of_b;
    requantize_lanes(c, v, low, high, vi_splat(p->c_zero));
}

LNT_INLINE void combine_row(const lnt_qpair *p, int64_t n, bool multiply, bool each_a, bool each_b)
{
    const lnt_qpair own = *p; /* out of reach of the stores */
    uint8_t fill_a[VL], fill_b[VL], c[VL];
    memset(fill_a, own.a[0], sizeof fill_a);
    memset(fill_b, own.b[0], sizeof fill_b);
    const vi one_a = load_bytes(fill_a, own.a_signed), one_b = load_bytes(fill_b, own.b_signed);
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        combine_vector(&own, each_a ? load_bytes(own.a + i, own.a_signed) : one_a,
                       each_b ? load_bytes(own.b + i, own.b_signed) : one_b, multiply, own.c + i);
    if (i == n)
        return;
    memcpy(fill_a, own.a + each_a * i, each_a ? (size_t)(n - i) : 1);
    memcpy(fill_b, own.b + each_b * i, each_b ? (size_t)(n - i) : 1);
    combine_vector(&own, load_bytes(fill_a, own.a_signed), load_bytes(fill_b, own.b_signed), multiply, c);
    memcpy(own.c + i, c, (size_t)(n - i));
}

static void combine_quantized(const lnt_qpair *p, int64_t n)
{
    if (n == 0)
        return;
    if (p->a_step && p->b_step) {
        if (p->multiply)
            combine_row(p, n, true, true, true);
        else
            combine_row(p, n, false, true, true);
    } else {
        combine_row(p, n, p->multiply, p->a_step, p->b_step);
    }
}

/* to[] is out of reach of the stores. */
static void look_up(const uint8_t *restrict to, const uint8_t *x, int64_t n, uint8_t *y)
{
    int64_t i = 0;
#if LNT_LOOKS_UP
    enum { BYTES = sizeof(vb) };
    if (n >= BYTES) {
        const vb_table table = vb_table_of(to);
        for (; i + BYTES <= n; i += BYTES)
            vb_store(y + i, vb_look_up(&table, vb_load(x + i)));
    }
#endif
#pragma GCC unroll 8
    for (; i < n; i++)
        y[i] = to[x[i]];
}

/* Left out where no operator of a trimmed library asks for them. */
enum {
    LOOKS_UP =
        LNT_HAS_LookupTable || LNT_HAS_QLinearSigmoid || LNT_HAS_QLinearLeakyRelu || LNT_HAS_QLinearConcat,
    REQUANTIZES = LNT_HAS_QLinearConv || LNT_HAS_QLinearMatMul || LNT_HAS_QLinearGemm,
    COMBINES = LNT_HAS_QLinearAdd || LNT_HAS_QLinearMul
};

const lnt_int8_kernels LNT_SIMD_NAME(lnt_int8) = {.quantize = quantize,
                                                  .dequantize = dequantize,
                                                  .store_dequantized = store_dequantized,
                                                  .store_requantized = REQUANTIZES ? store_requantized : NULL,
                                                  .combine_quantized = COMBINES ? combine_quantized : NULL,
                                                  .look_up = LOOKS_UP ? look_up : NULL};
