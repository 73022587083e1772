/* int8_rows.h — the kernel table of int8 rows: quantization and dequantization, what becomes of int32 accumulators
 * (dequantized or requantized), sums and products of two quantized rows, tables of 256 entries. */
#ifndef LNT_OPS_ROWS_INT8_ROWS_H
#define LNT_OPS_ROWS_INT8_ROWS_H

#include "formats/packed.h"
#include "ops/kernels.h"

#include <stdbool.h>
#include <stdint.h>

/* int32 accumulators that are dequantized: rows of LNT_QPANEL (16) columns, of which the first `columns` are
 * stored; or one row of any number of them. */
typedef struct lnt_dequantize_tile {
    const int32_t *acc; /* [rows][16], or [1][columns rounded up to 16] */
    unsigned rows, columns;
    const float *scale, *bias;    /* scale of each row; bias of each column, or NULL */
    const int32_t *zero;          /* zero point of each row */
    bool alike;                   /* rows have the first one's scale and zero point */
    const int32_t *sums;          /* of the columns' weights, as far as a row of acc */
    const float *scales;          /* of each column */
    const int32_t *row,
        *zeros; /* sum of each row of A, the columns' zero points as far as acc; row NULL: none */
    float *y;   /* row r of the output is at y + out[r], */
    const float *residual; /* and what is added to it at residual + out[r], or NULL */
    const int64_t *out;
    float low, high;
} lnt_dequantize_tile;

/* int32 accumulators that are requantized to int8 or uint8: lnt_requantize of (acc + acc_bias - row * zeros) *
 * scale. With slopes, in 0 to 1 (LeakyRelu or PRelu), v = max(v, max(v * slope, floor)) before. Parameters of columns
 * are readable up to 16. */
typedef struct lnt_requantize_tile {
    const int32_t *acc; /* [rows][16] */
    unsigned rows, columns;
    const int32_t *acc_bias, *zeros; /* of each column; zeros: the weights' zero points */
    const int32_t *row;              /* sum of the elements of each row of A; NULL: all zeros are 0 */
    const float *scale;              /* of each column */
    const float *slope, *floor;      /* the same, or NULL */
    int32_t zero;
    bool is_signed;
    uint8_t *y; /* row r of the output is at y + out[r] */
    const int64_t *out;
} lnt_requantize_tile;

/* int32 accumulators that are stored as such: acc + acc_bias - row * zeros. Parameters of columns, but for a bias, are
 * readable up to 16. */
typedef struct lnt_integer_tile {
    const int32_t *acc; /* [rows][16] */
    unsigned rows, columns;
    const int32_t *acc_bias, *zeros; /* of each column; zeros: the weights' zero points */
    const int32_t *row;              /* sum of the elements of each row of A; NULL: all zeros are 0 */
    int32_t *y;                      /* row r of the output is at y + out[r] */
    const int64_t *out;
    /* Of lnt_qgemm_kernels alone: acc_bias is taken so often. scale is NULL, or of each column; the results are floats
     * then, these times a_scale * scale, + bias where it is not NULL, clamped. */
    int32_t times;
    float a_scale;
    const float *scale;
    const float *bias;
    float low, high;
} lnt_integer_tile;

/* Two quantized rows into one: lnt_requantize of (a - a_zero) * a_ratio + (b - b_zero) * b_ratio, or of
 * (a - a_zero) * (b - b_zero) * a_ratio. A row whose step is 0 is one element; a's is 0 only where n is 1. */
typedef struct lnt_qpair {
    const uint8_t *a, *b;
    uint8_t *c;
    unsigned a_step, b_step; /* 0 or 1 */
    int32_t a_zero, b_zero, c_zero;
    bool a_signed, b_signed, c_signed;
    bool multiply;
    float a_ratio, b_ratio;
} lnt_qpair;

enum { LNT_PACK_PANELS = 4 };

/* Has a level a kernel that packs bytes? */
#if defined(__x86_64__)
enum { LNT_PACKS_BYTES = true };
#else
enum { LNT_PACKS_BYTES = false };
#endif

/* Rows are n elements, element-aligned; n may be 0. */
typedef struct lnt_int8_kernels {
    /* lnt_requantize of x / scale to int8 or uint8; dequantize: (x - zero) * scale */
    void (*quantize)(const float *x, void *y, int64_t n, float scale, int32_t zero, bool is_signed);
    void (*dequantize)(const void *x, float *y, int64_t n, float scale, int32_t zero, bool is_signed);
    /* of bytes, or where QLinearGlobalAveragePool may ask for it of int8 */
    int32_t (*sum)(const uint8_t *x, int64_t n, bool is_signed);
    /* sums[i] = that of n bytes from x + i * n on, less `minus` */
    void (*sum_rows)(const uint8_t *x, int64_t n, unsigned rows, int32_t minus, int32_t *sums);
    /* NULL, or up to LNT_PACK_PANELS * 16 columns of bytes, each more by `flip`, into panels from `to` on, and their
     * sums. Rows are `step` apart. */
    void (*pack)(const uint8_t *b, size_t step, size_t rows, size_t columns, uint8_t flip, int8_t *to,
                 int32_t *sums);
    /* y = (acc - zero * sums - row * zeros) * (scale * scales) + bias + residual, clamped; NaN stays */
    void (*store_dequantized)(const lnt_dequantize_tile *tile);
    /* The others are NULL in trimmed libraries without operators that ask for them. */
    void (*store_integers)(const lnt_integer_tile *tile);
    void (*store_requantized)(const lnt_requantize_tile *tile);
    void (*combine_quantized)(const lnt_qpair *pair, int64_t n);
    /* y[i] = to[x[i]]; to has 256 entries and does not overlap y */
    void (*look_up)(const uint8_t *to, const uint8_t *x, int64_t n, uint8_t *y);
} lnt_int8_kernels;

#endif
