/* number_kernels.h — the kernel table of products of double and integers: a few rows times a panel of columns. */
#ifndef LNT_OPS_GEMM_NUMBER_KERNELS_H
#define LNT_OPS_GEMM_NUMBER_KERNELS_H

#include "ops/kernels.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LNT_NUMBER_ROWS = 6,             /* most rows of a tile */
    LNT_NUMBER_PANEL_BYTES_MAX = 128 /* of a row of a panel */
};

/* y[i * row_y + j] = sum over e < depth of a[i * row_a + e * column_a] * b[e * row_b + j], for rows i and the columns
 * of a panel, added up in order of e, behind what y holds if they accumulate. Integers wrap. */
typedef struct lnt_number_tile {
    const void *a, *b;
    void *y;
    unsigned rows;                                /* at most LNT_NUMBER_ROWS */
    bool accumulate;
    bool half;                                    /* the first half of a panel's columns will do */
    int64_t row_a, column_a, row_b, row_y, depth; /* in elements */
} lnt_number_tile;

typedef void (*lnt_number_fn)(const lnt_number_tile *t);

typedef struct lnt_number_kernels {
    unsigned panel_bytes; /* of a row of a panel: a multiple of an element */
    lnt_number_fn f64, i32, i64;
} lnt_number_kernels;

#endif
