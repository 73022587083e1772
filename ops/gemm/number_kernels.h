/* number_kernels.h — the kernel table of products of double and integers: a few rows times a panel of columns. */
#ifndef LNT_OPS_GEMM_NUMBER_KERNELS_H
#define LNT_OPS_GEMM_NUMBER_KERNELS_H

#include "ops/kernels.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LNT_NUMBER_ROWS = 6,             /* that go together */
    LNT_NUMBER_PANEL_BYTES_MAX = 128 /* of a row of a panel */
};

/* y[i * row_y + j] = sum over e < depth of a[i * row_a + e * column_a] * b[e * row_b + j], for rows i and the columns
 * of a panel, added up in order of e, behind what y holds if they accumulate. Integers wrap. */
typedef struct lnt_number_tile {
    const void *a, *b;
    void *y;
    bool accumulate;
    int64_t rows,
        columns; /* of these, less than a panel's are given where masks say so, or where all may be written */
    int64_t row_a, column_a, row_b, row_y, depth; /* in elements */
} lnt_number_tile;

typedef void (*lnt_number_fn)(const lnt_number_tile *t);

typedef struct lnt_number_kernels {
    unsigned panel_bytes; /* of a row of a panel: a multiple of an element */
    bool masks;           /* no columns are written but those that are given */
    lnt_number_fn f64, i32, i64;
} lnt_number_kernels;

#endif
