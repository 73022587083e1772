/* nbits_kernels.h — the kernel table of products with weights of 2, 4 or 8 bits.
 *
 * A column of weights is read as words of 32 bits, a vector of them at a time, and number j of each word is taken out
 * of all of them at once. Where a row of A meets a column, its elements are brought into the order in which the weights
 * come: groups of `lanes` words, in each group first the elements that meet number 0 of the words, then those that meet
 * number 1... Behind them are, of each group, [lanes] sums of those that meet the same word. */
#ifndef LNT_OPS_GEMM_NBITS_KERNELS_H
#define LNT_OPS_GEMM_NBITS_KERNELS_H

#include "formats/packed.h"
#include "ops/kernels.h"

#include <stdint.h>

enum { LNT_NBITS_INT8 = 4 /* accuracy_level that lets A be int8 */ };

/* A column of weights: (number - zero of its block) * scale of its block. */
typedef struct lnt_nbits_column {
    const uint8_t *weights; /* [blocks][block] numbers, lowest bits first; blocks start at words */
    const float *scales;    /* [blocks] */
    const float *zeros;     /* [blocks], or NULL: half of the numbers' range */
    int64_t blocks;
    unsigned block_log2; /* a block is 2 ** this numbers, a word of them or more */
    unsigned bits;
    int64_t next_weights, next_scales, next_zeros; /* elements to the column behind it */
} lnt_nbits_column;

/* LNT_PANEL columns side by side. */
typedef struct lnt_nbits_panel {
    const uint8_t *weights;
    int64_t at[LNT_PANEL];       /* bytes to each column */
    const float *scales, *zeros; /* [blocks][LNT_PANEL]; zeros may be NULL as above */
    unsigned block_log2, bits;
} lnt_nbits_panel;

typedef struct lnt_nbits_kernels {
    unsigned lanes; /* words in a group */
    /* A row of A, [pitch], times so many columns of 4 or 8 bits from c on while they are taken apart: y[columns]. */
    void (*dot)(const lnt_nbits_column *c, int64_t columns, const float *a, int64_t pitch, float *y);
    /* Words [first, end) of the panel's columns as floats, [numbers][LNT_PANEL]. */
    void (*unpack)(const lnt_nbits_panel *p, int64_t first, int64_t end, float *to);
    /* n floats of each of LNT_PANEL columns, which begin at from + at[] bytes, side by side: [n][LNT_PANEL]. */
    void (*beside)(const float *from, const int64_t *at, int64_t n, float *to);
    /* n numbers of 4 bits as floats, and some behind them, to a multiple of LNT_PANEL; or NULL. */
    void (*numbers)(const uint8_t *from, int64_t n, float *to);
} lnt_nbits_kernels;

#endif
