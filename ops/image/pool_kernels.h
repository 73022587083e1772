/* pool_kernels.h — the kernel table of pooling: maxima and sums over windows of elements of a row, and of
 * channels-last pixels. One table per level for float, one for double (plain C, also the judge of the others). */
#ifndef LNT_OPS_IMAGE_POOL_KERNELS_H
#define LNT_OPS_IMAGE_POOL_KERNELS_H

#include "ops/kernels.h"
#include "ops/op.h"
#include "ops/window.h"

#include <stdbool.h>
#include <stdint.h>

/* Rows of outputs of plain images, whose windows cover as many lines each. */
typedef struct lnt_pool_lines {
    int64_t in, inside; /* elements of a line; of acc before it: padding */
    int64_t begin, end; /* outputs of a row */
    int64_t stride, taps, dilation;
    int64_t rows, line_step, y_step; /* elements from the lines and outputs of a row to those of the next */
    int64_t together; /* rows joined before neighbors of any are picked: what is stored has arrived */
    int64_t acc_step; /* elements from one to the next of them at acc */
} lnt_pool_lines;

/* Rows are n elements, element-aligned; a maximum is NaN if an element is. */
#define LNT_POOL_FIELDS(R)                                                                                       \
    /* For each row r, the lines of its windows are joined, acc[inside + i] = largest or sum of                \
     * lines[l][r * line_step + i], l < n_lines, i < in (acc as it is where there is none: of one row), then   \
     * neighbors (for rows joined together acc is acc_step further on for each):   \
     * y[r * y_step + o] = largest or sum of acc[o * stride + t * dilation], t < taps, for begin <= o < end; of sums \
     * times factor * share[o]. acc may be read as far as LNT_POOL_SLACK elements behind the last. */ \
    void (*max_window)(const lnt_pool_lines *w, const R *const *lines, int64_t n_lines, R *acc, R *y);           \
    void (*sum_window)(const lnt_pool_lines *w, const R *const *lines, int64_t n_lines, R *acc, R *y,            \
                       R factor, const R *share);                                                                \
    /* y[o * y_step + i] = largest or sum of lines[l][o * step + t * tap_step + i], l < n_lines, t < taps,   \
     * both above 0, for o < outputs: windows of pixels of n channels */   \
    void (*max_pixels)(const R *const *lines, int64_t n_lines, int64_t taps, int64_t tap_step, R *y,             \
                       int64_t y_step, int64_t outputs, int64_t step, int64_t n);                                \
    void (*sum_pixels)(const R *const *lines, int64_t n_lines, int64_t taps, int64_t tap_step, R *y,             \
                       int64_t y_step, int64_t outputs, int64_t step, int64_t n);

enum {
    LNT_POOL_SLACK = 64,
    LNT_POOL_LANES = 16,
    LNT_POOL_WIDE = 16 /* elements of lines that max_window and sum_window join, or more */
};

/* NULL in trimmed libraries without operators that ask for them. */
typedef struct lnt_pool_kernels {
    LNT_POOL_FIELDS(float)
    /* the largest of n_rows > 0 rows element by element, int8 or uint8 */
    void (*max_bytes)(const uint8_t *const *rows, int64_t n_rows, bool is_signed, uint8_t *y, int64_t n);
#ifdef __x86_64__
    /* Planes one behind the other, whose rows have fewer than 2 * LNT_POOL_LANES elements and those of outputs at
     * most LNT_POOL_LANES: the largest elements, or where there is a share [out[1]][out[2]] of each output, sums
     * times that. lanes [kernel[2]][LNT_POOL_LANES]: the element of a row that an output has as a tap, the last
     * lane of two vectors where it has none. NULL below avx512. */
    void (*narrow_planes)(const lnt_window *w, const int32_t *lanes, const float *share, const float *x,
                          float *y, int64_t planes);
#endif
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
