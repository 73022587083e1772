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
    /* acc[i] += factor[r] * x[r * step + i], r < rows, one after the other */                               \
    void (*add_scaled)(R * acc, const R *x, int64_t step, const R *factor, int64_t rows, int64_t n);         \
    void (*blend)(const R *a, R of_a, const R *b, R of_b, R *y, int64_t n); /* y = of_a * a + of_b * b */    \
    /* y = e ** (x - minus), acc += y, where x <= minus; y may be NULL */                                    \
    void (*exp_minus)(R * acc, const R *x, const R *minus, R *y, int64_t n);                                 \
    void (*subtract)(const R *x, const R *minus, R *y, int64_t n); /* y = x - minus */                       \
    /* y = the largest, or the sum, of n_rows > 0 rows element by element; y may be one of them */           \
    void (*max_rows)(const R *const *rows, int64_t n_rows, R *y, int64_t n);                                 \
    void (*sum_rows)(const R *const *rows, int64_t n_rows, R *y, int64_t n);

typedef struct lnt_row_kernels {
    LNT_ROW_FIELDS(float)
    /* y[r] = the dot product of b and row r of x, n of each `step` floats; r < rows. With MatMul, FusedMatMul and
     * Gemm only. */
    void (*dot_rows)(const float *x, int64_t step, const float *b, int64_t n, float *y, int64_t rows);
    /* where x beats best, best = x and at = index; ties and NaN as in argmax and argmin */
    void (*pick_max)(float *best, int32_t *at, const float *x, int32_t index, bool least, bool last,
                     int64_t n);
    /* Pairs x[i], x[n + i] rotated: y[i] = c[i] * x[i] - s[i] * x[n + i], y[n + i] = s[i] * x[i] + c[i] * x[n + i] */
    void (*rotate_halves)(const float *x, const float *c, const float *s, float *y, int64_t n);
    /* index of the first element that is above limit (below it, where least), or NaN; n if there is none */
    int64_t (*first_beyond)(const float *x, int64_t n, float limit, bool least);
    /* Their keys (ops/data/order.h), for the largest the other way round, in 32 bits; n is a multiple of 8. With
     * insert_columns only. */
    void (*order_keys)(const float *x, int64_t n, bool largest, int64_t *key);
    /* Into a list of the k smallest keys and their indices for each of n columns, a multiple of 8: x[c] to that of
     * column c, behind keys that equal it. Entry i of column c is at i * n + c, and there are `have` so far. NULL where
     * it would not be quicker than column by column. */
    void (*insert_columns)(int64_t *keys, int64_t *indices, int64_t have, int64_t k, const int64_t *x,
                           int64_t index, int64_t n);
} lnt_row_kernels;

typedef struct lnt_row_double_kernels {
    LNT_ROW_FIELDS(double)
} lnt_row_double_kernels;

extern const lnt_row_double_kernels lnt_row_double;

/* Has this library operators with a softmax? Else the tables have NULL for it. */
enum { LNT_ROW_SOFTMAX = LNT_HAS_Softmax || LNT_HAS_LogSoftmax || LNT_HAS_Hardmax || LNT_HAS_Attention };

/* The start of the initializer of a table whose functions have the fields' names. */
#define LNT_ROW_TABLE                                                                                        \
    .sum = sum, .sum_squares = sum_squares, .sum_abs = sum_abs,                                              \
    .product = LNT_HAS_ReduceProd ? product : NULL, .max = max, .min = min, .sum_exp = sum_exp, .dot = dot,  \
    .argmax = argmax, .argmin = argmin, .moments = moments, .softmax = LNT_ROW_SOFTMAX ? softmax : NULL,     \
    .normalize = normalize, .shift_scale = shift_scale,                                                      \
    .shift_scale_each = shift_scale_each, .add = add, .add_squares = add_squares, .add_abs = add_abs,        \
    .multiply = multiply, .max_to = max_to, .min_to = min_to, .add_scaled = add_scaled,                      \
    .exp_minus = exp_minus, .subtract = subtract, .blend = blend, .max_rows = max_rows, .sum_rows = sum_rows

#endif
