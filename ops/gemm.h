/* gemm.h — the micro-kernels that matrix products, convolutions and recurrent layers are made of.
 *
 * One tile is a few rows of A times panels of B (formats/packed.h) giving as many rows of C:
 *
 *     C[i][n] = clamp(scale * sum over taps t, k < depth of A[i][tap_offset[t] + k] * B[t * depth + k][n]
 *                     + bias[n] + residual[i][n], low, high)
 *
 * A is only row pointers, so that a row may be a row of a matrix, the neighbourhood of a pixel of a
 * channels-last image (taps), or a row gathered into scratch memory. C is row pointers too. */
#ifndef LNT_OPS_GEMM_H
#define LNT_OPS_GEMM_H

#include "formats/packed.h"
#include "ops/kernels.h"

#include <stdbool.h>
#include <stddef.h>

enum { LNT_TILE_ROWS_MAX = 6 };

typedef struct lnt_tile {
    const float *const *a;        /* [rows] */
    float *const *c;              /* [rows] */
    const float *const *residual; /* [rows], or NULL */
    const ptrdiff_t *tap_offset;  /* [taps], in floats from a[i] */
    size_t taps, depth;
    const float *b;    /* the first panel */
    size_t b_row;      /* floats from row to row of B: 16 in a panel, more where B is read in place */
    size_t b_panel;    /* floats from panel to panel */
    size_t columns;    /* panels = columns / 16 rounded up; c and the like are not touched past them */
    const float *bias; /* [columns], or NULL */
    float scale, low, high;
    bool accumulate; /* the sum goes on from what is in C, unscaled */
} lnt_tile;

/* A few pixels of a depthwise convolution, all channels:
 * c[i][n] = clamp(sum over t of a[i][tap_offset[t] + n] * w[tap[t] * w_tap + n] + bias[n] + residual.., ..)
 */
typedef struct lnt_depthwise {
    const float *const *a; /* [pixels] */
    float *const *c;       /* [pixels] */
    const float *const *residual;
    const ptrdiff_t *tap_offset; /* [taps] */
    const uint32_t *tap;         /* [taps], rows of w */
    size_t taps, channels;
    const float *w;
    size_t w_tap;
    const float *bias;
    float low, high;
} lnt_depthwise;

typedef void (*lnt_tile_fn)(const lnt_tile *t);
typedef void (*lnt_depthwise_fn)(const lnt_depthwise *d);

typedef struct lnt_gemm_kernels {
    unsigned tile_rows;   /* most rows of a tile at this level */
    unsigned depth_block; /* length of K after which a panel should be left to be used again */
    unsigned depthwise_pixels;
    lnt_tile_fn tile[LNT_TILE_ROWS_MAX + 1];           /* by rows, 1 .. tile_rows */
    lnt_depthwise_fn depthwise[LNT_TILE_ROWS_MAX + 1]; /* by pixels, 1 .. depthwise_pixels */
} lnt_gemm_kernels;

extern const lnt_gemm_kernels lnt_gemm_scalar, lnt_gemm_avx2, lnt_gemm_neon;

#endif
