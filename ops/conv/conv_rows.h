/* conv_rows.h — rows of a product that are neighborhoods of an image's pixels.
 *
 * A neighborhood (receptive field) is a box of taps at constant spacing (dilation); neighborhoods are at constant
 * steps (stride). A convolution is one
 * set of them, a transposed convolution one for each phase. On a channels-last image a tap is a fixed
 * distance from the first one and its channels are contiguous. */
#ifndef LNT_OPS_CONV_CONV_ROWS_H
#define LNT_OPS_CONV_CONV_ROWS_H

#include "ops/gemm/gemm_driver.h"
#include "ops/window.h"

/* Axes as in lnt_window. */
typedef struct lnt_conv_rows {
    int64_t in[LNT_WINDOW_AXES];
    int64_t zeros[LNT_WINDOW_AXES][2]; /* of in: lines before and after the image that are padding */
    int64_t count[LNT_WINDOW_AXES];    /* positions along each axis */
    int64_t origin[LNT_WINDOW_AXES],
        step[LNT_WINDOW_AXES]; /* position p has its first tap at origin + p * step */
    int64_t taps[LNT_WINDOW_AXES], spacing[LNT_WINDOW_AXES];
    int64_t out[LNT_WINDOW_AXES];                                  /* extents of the output */
    int64_t out_first[LNT_WINDOW_AXES], out_step[LNT_WINDOW_AXES]; /* where position p is stored */
    int64_t pixel;              /* floats from pixel to pixel of the input */
    int64_t channels, features; /* of one group: product p writes the features from p * this on */
    int64_t group;              /* floats from a group's channels to the next one's */

    /* Set by lnt_conv_rows_plan. */
    size_t element;                    /* bytes of an element of the images */
    bool runs;                         /* taps along x are one run of taps[2] * channels floats */
    int64_t inner[LNT_WINDOW_AXES][2]; /* positions with all taps on the image: [begin, end) */
} lnt_conv_rows;

/* Completes *r, which the plan keeps a pointer to, and sets the plan's rows, taps, depth and where they start.
 * The caller has set the kernels, and sets products, columns, store and epilogue and calls lnt_gemm_plan_blocks. */
lnt_status lnt_conv_rows_plan(lnt_site *site, lnt_conv_rows *r, int64_t batch, lnt_gemm_plan *plan);

#endif
