/* row.h — the kernel table of the row family: reductions, softmax and normalization along contiguous rows.
 *
 * There is one table per level for float and one for double (plain C, also the judge of the others). The
 * order of additions depends on the row's length and the level alone. Rows are n elements, element-aligned;
 * y may be x, otherwise nothing overlaps. n may be 0. */
#ifndef LNT_OPS_ROWS_ROW_H
#define LNT_OPS_ROWS_ROW_H

#include "ops/kernels.h"
#include "ops/op.h"

#include <stdbool.h>
#include <stdint.h>

/* max and min are NaN if an element is; of an empty row -inf and +inf. */
#define LNT_ROW_FIELDS(R)                                                                                    \
    /* along a row */                                                                                        \
    R (*sum)(const R *x, int64_t n);                                                                         \
    R (*sum_squares)(const R *x, int64_t n);                                                                 \
    R (*sum_abs)(const R *x, int64_t n);                                                                     \
    R (*product)(const R *x, int64_t n);                                                                     \
    R (*max)(const R *x, int64_t n);                                                                         \
    R (*min)(const R *x, int64_t n);                                                                         \
    R (*sum_exp)(const R *x, int64_t n, R minus); /* of e ** (x - minus), x <= minus */                      \
    R (*dot)(const R *a, const R *b, int64_t n);                                                             \
    /* index of the first or last extreme element; NaN is more extreme than any number; n > 0 */             \
    int64_t (*argmax)(const R *x, int64_t n, bool last);                                                     \
    int64_t (*argmin)(const R *x, int64_t n, bool last);                                                     \
    /* mean and mean squared distance from it; n > 0 */                                                      \
    void (*moments)(const R *x, int64_t n, R *mean, R *variance);                                            \
    void (*softmax)(const R *x, R *y, int64_t n);                                                            \
    void (*log_softmax)(const R *x, R *y, int64_t n);                                                        \
    /* y = (x - mean) * factor * scale + bias; scale and bias may be NULL */                                 \
    void (*normalize)(const R *x, R *y, int64_t n, R mean, R factor, const R *scale, const R *bias);         \
    /* y = (x - minus) * factor + plus, with one set of numbers for the row or one per element */            \
    void (*shift_scale)(const R *x, R *y, int64_t n, R minus, R factor, R plus);                             \
    void (*shift_scale_each)(const R *x, R *y, int64_t n, const R *minus, const R *factor, const R *plus);   \
    /* element by element into an accumulator row */                                                         \
    void (*add)(R * acc, const R *x, int64_t n);                                                             \
    void (*add_squares)(R * acc, const R *x, int64_t n);                                                     \
    void (*add_abs)(R * acc, const R *x, int64_t n);                                                         \
    void (*multiply)(R * acc, const R *x, int64_t n);                                                        \
    void (*max_to)(R * acc, const R *x, int64_t n);                                                          \
    void (*min_to)(R * acc, const R *x, int64_t n);                                                          \
    void (*add_scaled)(R * acc, const R *x, R factor, int64_t n);           /* acc += factor * x */          \
    void (*blend)(const R *a, R of_a, const R *b, R of_b, R *y, int64_t n); /* y = of_a * a + of_b * b */    \
    /* y = e ** (x - minus), acc += y, where x <= minus; y may be NULL */                                    \
    void (*exp_minus)(R * acc, const R *x, const R *minus, R *y, int64_t n);                                 \
    void (*subtract)(const R *x, const R *minus, R *y, int64_t n); /* y = x - minus */                       \
    /* y = the largest, or the sum, of n_rows > 0 rows element by element; y may be one of them */           \
    void (*max_rows)(const R *const *rows, int64_t n_rows, R *y, int64_t n);                                 \
    void (*sum_rows)(const R *const *rows, int64_t n_rows, R *y, int64_t n);                                 \
    /* y[o] = largest or sum of x[o * stride + t * dilation], t < taps. Up to LNT_ROW_SLACK elements behind  \
     * the last may be read. */                                                                              \
    void (*max_window)(const R *x, R *y, int64_t n, int64_t stride, int64_t taps, int64_t dilation);         \
    void (*sum_window)(const R *x, R *y, int64_t n, int64_t stride, int64_t taps, int64_t dilation);         \
    /* y[o * y_step + i] = largest or sum of lines[l][o * step + t * tap_step + i], l < n_lines, t < taps,   \
     * both above 0, for o < outputs: windows of pixels of n channels */                                     \
    void (*max_pixels)(const R *const *lines, int64_t n_lines, int64_t taps, int64_t tap_step, R *y,         \
                       int64_t y_step, int64_t outputs, int64_t step, int64_t n);                            \
    void (*sum_pixels)(const R *const *lines, int64_t n_lines, int64_t taps, int64_t tap_step, R *y,         \
                       int64_t y_step, int64_t outputs, int64_t step, int64_t n);

enum { LNT_ROW_SLACK = 32 };

/* Sums of byte products on their way to real numbers: rows of 16 columns, the first `columns` are stored; or
 * one row of any number of them. */
typedef struct lnt_qtile {
    const int32_t *acc; /* [rows][16], or [1][columns rounded up to 16] */
    unsigned rows, columns;
    const float *scale, *bias;    /* scale of each row; bias of each column, or NULL */
    const int32_t *zero;          /* of each row */
    const int32_t *sums;          /* of the columns' weights, as far as a row of acc */
    const float *scales;          /* of each column */
    float *const *y;              /* rows of the output */
    const float *const *residual; /* rows to be added, or NULL */
    float low, high;
} lnt_qtile;

/* The same on their way to bytes: lnt_requantize of (acc + plus - row * zeros) * scale. Where there are
 * slopes, in 0 to 1, v becomes max(v, v * slope, or floor where that is more) before. The numbers of columns
 * are readable up to 16. */
typedef struct lnt_qbytes {
    const int32_t *acc; /* [rows][16] */
    unsigned rows, columns;
    const int32_t *plus, *zeros; /* of each column */
    const int32_t *row;          /* of each row, or NULL: zeros do not matter */
    const float *scale;          /* of each column */
    const float *slope, *floor;  /* the same, or NULL */
    int32_t zero;
    bool is_signed;
    uint8_t *y; /* row r of the output is at y + out[r] */
    const int64_t *out;
} lnt_qbytes;

/* Two rows of bytes into one: lnt_requantize of (a - a_zero) * a_ratio + (b - b_zero) * b_ratio, or of
 * (a - a_zero) * (b - b_zero) * a_ratio. A row whose step is 0 is one byte. */
typedef struct lnt_qpair {
    const uint8_t *a, *b;
    uint8_t *c;
    unsigned a_step, b_step; /* 0 or 1 */
    int32_t a_zero, b_zero, c_zero;
    bool a_signed, b_signed, c_signed;
    bool multiply;
    float a_ratio, b_ratio;
} lnt_qpair;

typedef struct lnt_row_kernels {
    LNT_ROW_FIELDS(float)
    /* lnt_requantize of x / scale to int8 or uint8; dequantize: (x - zero) * scale */
    void (*quantize)(const float *x, void *y, int64_t n, float scale, int32_t zero, bool is_signed);
    void (*dequantize)(const void *x, float *y, int64_t n, float scale, int32_t zero, bool is_signed);
    /* y = (acc - zero * sums) * (scale * scales) + bias + residual, clamped; NaN stays */
    void (*store_sums)(const lnt_qtile *tile);
    /* NULL in trimmed libraries without operators that ask for them. */
    void (*store_bytes)(const lnt_qbytes *tile);
    void (*combine_bytes)(const lnt_qpair *pair, int64_t n);
    /* the largest of n_rows > 0 rows element by element, int8 or uint8 */
    void (*max_bytes)(const uint8_t *const *rows, int64_t n_rows, bool is_signed, uint8_t *y, int64_t n);
    /* y[i] = to[x[i]]; to has 256 bytes, none of them in y */
    void (*look_up)(const uint8_t *to, const uint8_t *x, int64_t n, uint8_t *y);
    /* where x beats best, best = x and at = index; ties and NaN as in argmax and argmin */
    void (*pick_max)(float *best, int32_t *at, const float *x, int32_t index, bool least, bool last,
                     int64_t n);
    /* index of the first element that is above limit (below it, where least), or NaN; n if there is none */
    int64_t (*first_beyond)(const float *x, int64_t n, float limit, bool least);
} lnt_row_kernels;

typedef struct lnt_row_double_kernels {
    LNT_ROW_FIELDS(double)
} lnt_row_double_kernels;

extern const lnt_row_double_kernels lnt_row_double;

/* Which functions the operators of this library call, where not all do: of the others a table has NULL. */
enum {
    LNT_ROW_SOFTMAX = LNT_HAS_Softmax || LNT_HAS_LogSoftmax || LNT_HAS_Hardmax || LNT_HAS_Attention,
    LNT_ROW_WINDOWS = LNT_HAS_MaxPool || LNT_HAS_AveragePool || LNT_HAS_LpPool
};

/* The start of the initializer of a table whose functions have the fields' names. */
#define LNT_ROW_TABLE                                                                                        \
    .sum = sum, .sum_squares = sum_squares, .sum_abs = sum_abs, .product = product, .max = max, .min = min,  \
    .sum_exp = sum_exp, .dot = dot, .argmax = argmax, .argmin = argmin, .moments = moments,                  \
    .softmax = LNT_ROW_SOFTMAX ? softmax : NULL, .log_softmax = LNT_ROW_SOFTMAX ? log_softmax : NULL,        \
    .normalize = normalize, .shift_scale = shift_scale, .shift_scale_each = shift_scale_each, .add = add,    \
    .add_squares = add_squares, .add_abs = add_abs, .multiply = multiply, .max_to = max_to,                  \
    .min_to = min_to, .add_scaled = add_scaled, .exp_minus = exp_minus, .subtract = subtract,                \
    .max_window = LNT_ROW_WINDOWS ? max_window : NULL, .sum_window = LNT_ROW_WINDOWS ? sum_window : NULL,    \
    .max_rows = max_rows, .sum_rows = sum_rows, .max_pixels = LNT_ROW_WINDOWS ? max_pixels : NULL,           \
    .sum_pixels = LNT_ROW_WINDOWS ? sum_pixels : NULL, .blend = blend

#endif
