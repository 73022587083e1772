/* nbits_kernels.h — the kernel table of products with weights of 2, 4 or 8 bits.
 *
 * A column of weights is read as words of 32 bits, a vector of them at a time, and number j of each word is taken out
 * of all of them at once. So the elements of a row of A are brought into the order in which its weights come: groups
 * of `lanes` words, in each group first the elements that meet number 0 of the words, then those that meet number
 * 1... */
#ifndef LNT_OPS_GEMM_NBITS_KERNELS_H
#define LNT_OPS_GEMM_NBITS_KERNELS_H

#include "ops/kernels.h"

#include <stdint.h>

enum {
    LNT_NBITS_FORMS = 3, /* of 2, 4 and 8 bits */
    LNT_NBITS_INT8 = 4   /* accuracy_level that lets A be int8 */
};

/* A column of weights: (number - zero of its block) * scale of its block. */
typedef struct lnt_nbits_column {
    const uint8_t *weights; /* [blocks][block] numbers, lowest bits first; blocks start at words */
    const float *scales;    /* [blocks] */
    const float *zeros;     /* [blocks], or NULL: half of the numbers' range */
    int64_t blocks;
    unsigned block_log2; /* a block is 2 ** this numbers, a word of them or more */
} lnt_nbits_column;

typedef struct lnt_nbits_kernels {
    unsigned lanes; /* words in a group */
    /* A row of A, [pitch], times the column while it is taken apart; by form, NULL of 2 bits. */
    float (*dot[LNT_NBITS_FORMS])(const lnt_nbits_column *c, const float *a);
    /* The column as floats, in the order that A is brought into: [pitch]. */
    void (*unpack[LNT_NBITS_FORMS])(const lnt_nbits_column *c, float *to);
} lnt_nbits_kernels;

#endif
