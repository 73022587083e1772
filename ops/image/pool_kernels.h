/* pool_kernels.h — the kernel table of pooling: maxima and sums over windows of elements of a row, and of
 * channels-last pixels. One table per level for float, one for double (plain C, also the judge of the others). */
#ifndef LNT_OPS_IMAGE_POOL_KERNELS_H
#define LNT_OPS_IMAGE_POOL_KERNELS_H

#include "ops/kernels.h"
#include "ops/op.h"

#include <stdbool.h>
#include <stdint.h>

/* Rows are n elements, element-aligned; a maximum is NaN if an element is. */
#define LNT_POOL_FIELDS(R)                                                                                   \
    /* y[o] = largest or sum of x[o * stride + t * dilation], t < taps. Up to LNT_POOL_SLACK elements behind \
     * the last may be read. */                                                                              \
    void (*max_window)(const R *x, R *y, int64_t n, int64_t stride, int64_t taps, int64_t dilation);         \
    void (*sum_window)(const R *x, R *y, int64_t n, int64_t stride, int64_t taps, int64_t dilation);         \
    /* y[o * y_step + i] = largest or sum of lines[l][o * step + t * tap_step + i], l < n_lines, t < taps,   \
     * both above 0, for o < outputs: windows of pixels of n channels */                                     \
    void (*max_pixels)(const R *const *lines, int64_t n_lines, int64_t taps, int64_t tap_step, R *y,         \
                       int64_t y_step, int64_t outputs, int64_t step, int64_t n);                            \
    void (*sum_pixels)(const R *const *lines, int64_t n_lines, int64_t taps, int64_t tap_step, R *y,         \
                       int64_t y_step, int64_t outputs, int64_t step, int64_t n);

enum { LNT_POOL_SLACK = 32 };

/* NULL in trimmed libraries without operators that ask for them. */
typedef struct lnt_pool_kernels {
    LNT_POOL_FIELDS(float)
    /* the largest of n_rows > 0 rows element by element, int8 or uint8 */
    void (*max_bytes)(const uint8_t *const *rows, int64_t n_rows, bool is_signed, uint8_t *y, int64_t n);
} lnt_pool_kernels;

typedef struct lnt_pool_double_kernels {
    LNT_POOL_FIELDS(double)
} lnt_pool_double_kernels;

extern const lnt_pool_double_kernels lnt_pool_double;

enum { LNT_POOL_WINDOWS = LNT_HAS_MaxPool || LNT_HAS_AveragePool || LNT_HAS_LpPool };

/* The start of the initializer of a table whose functions have the fields' names. */
#define LNT_POOL_TABLE                                                                                       \
    .max_window = LNT_POOL_WINDOWS ? max_window : NULL, .sum_window = LNT_POOL_WINDOWS ? sum_window : NULL,  \
    .max_pixels = LNT_POOL_WINDOWS ? max_pixels : NULL, .sum_pixels = LNT_POOL_WINDOWS ? sum_pixels : NULL

#endif
