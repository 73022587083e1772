/* qconv.h — what int8 convolutions share: input images in the kernels' layout, records of packed weights, and
 * requantization parameters (qconv.c, qconv_panels.c, qconv_depthwise.c, dynamic_conv.c). */
#ifndef LNT_OPS_QUANT_QCONV_H
#define LNT_OPS_QUANT_QCONV_H

#include "base/checked.h"
#include "ops/copy.h"
#include "ops/quant/qgemm_driver.h"
#include "ops/quant/qparams.h"
#include "ops/rows/int8_rows.h"
#include "ops/window.h"

/* ---- images ---- */

/* uint8 images in which every tap of a convolution has a constant byte offset from its pixel: channels-last, the
 * channels of each group padded to whole quads, with explicit spatial padding. An input that already has this layout
 * is read in place. */
typedef struct lnt_qimage {
    lnt_window w;
    int64_t batch, groups, depth;           /* depth: channels of a group */
    int64_t padded, pixel;                  /* bytes of a group's channels, of a pixel */
    int64_t extent[LNT_WINDOW_AXES], image; /* extents with the padding; bytes of an image */
    bool direct;                            /* kernels read the input itself */
    bool plain;                             /* the input is in ONNX order */
    uint8_t flip;                           /* XORed into its elements: 0x80 converts int8 to uint8 */
    int64_t runs, run;                      /* contiguous taps are one run of that many bytes, */
    int64_t terms;         /* of which so many are multiplied by weights that are not padding */
    ptrdiff_t *run_offset; /* [runs] from the pixel of the first tap */
    size_t bytes;          /* of all images; 0 if direct */
} lnt_qimage;

enum { LNT_QIMAGE_SLACK = 4 }; /* bytes behind all images that are read for the padding of weights */

/* The window is that of the site's input 0: int8 or uint8, or float that is quantized channels-last before.
 * takes_signed: int8 images need no converting. */
lnt_status lnt_qimage_bind(lnt_site *site, const lnt_window *w, int64_t groups, lnt_order order,
                           bool is_signed, const lnt_packed *weights, bool takes_signed, lnt_qimage *m);
/* Makes the images; zero[i] is what the padding of image i holds, as uint8. */
lnt_status lnt_qimage_fill(lnt_kernel *k, const lnt_qimage *m, const uint8_t *input, const uint8_t *zero,
                           uint8_t *images);
/* Sets rows [first, first + n) of the set to the receptive fields of those outputs in a group, and its outputs to
 * pixels of groups * columns channels. */
void lnt_qimage_rows(const lnt_qimage *m, const uint8_t *images, int64_t group, int64_t columns,
                     lnt_qrow_set *set);

/* Transposition of 8-bit elements: dst[column][row] = src[row][column] ^ flip, with the given row pitches. */
void lnt_transpose_bytes(const uint8_t *src, int64_t rows, int64_t columns, int64_t src_step, uint8_t *dst,
                         int64_t dst_step, uint8_t flip);

/* ---- weights ---- */

/* The record of weights for which a dynamically quantized convolution pays. */
bool lnt_qconv_record(const lnt_node *node, const lnt_operand *weights, lnt_packed *record);
/* The record of any weights of ConvInteger or QLinearConv; false if their extents are out of bounds. */
bool lnt_qlinear_record(const lnt_node *node, const lnt_operand *weights, lnt_packed *record);

/* ---- ConvInteger and QLinearConv ---- */

/* Requantization parameters of each column of the packed weights: y = (acc + acc_bias - zero * sum of the row of A) *
 * scale; then, with a LeakyRelu or PRelu in the epilogue, y = max(y, max(y * slope, floor)). */
typedef struct lnt_requant {
    int32_t x_zero, y_zero; /* zero points of the input as uint8, and of the output */
    bool zeros;             /* a weight zero point is not 0 */
    float *scale;
    int32_t *acc_bias,
        *zero;            /* acc_bias: bias minus the zero-point terms; zero: the weights' zero point, int8 */
    float *slope, *floor; /* LeakyRelu or PRelu, or not used; floor in units of the output */
} lnt_requant;

typedef struct lnt_qconv {
    const lnt_int8_kernels *int8;
    const lnt_qgemm_kernels *kernels;
    bool linear;    /* QLinearConv: operands and output have scales */
    bool has_slope; /* LeakyRelu or PRelu in the epilogue */
    unsigned w_in, x_zero, w_zero;
    lnt_window w;
    int64_t batch, channels, filters, groups, taps;
    bool x_signed, w_signed, y_signed, y_plain;
    lnt_packed record;
    lnt_qimage images;
    lnt_qgemm_plan plan;
    bool planes;     /* lnt_qplanes */
    int64_t columns; /* of requant */
    bool known;      /* requant was computed at bind */
    lnt_requant requant;
    bool pack;                                         /* the weights are packed in each run */
    size_t requant_at, zeros_at, images_at, packed_at; /* scratch */
    /* Depthwise only. */
    int64_t strip;                      /* rows of an item */
    lnt_copy relayout_in, relayout_out; /* to and from channels-last; rank 0: not needed */
    size_t out_at, thread_at, thread_bytes;
} lnt_qconv;

typedef struct lnt_qconv_job {
    const lnt_qconv *p;
    const lnt_step *s;
    lnt_requant requant;
    const uint8_t *images;
    const int8_t *packed;
    const uint8_t *padding; /* a line of it */
    uint8_t *y;
    /* Depthwise only: the result type; of float results bias, clamp and epilogue. */
    lnt_qresult result;
    const float *bias;
    float low, high;
    const lnt_epilogue *program;
    int64_t first; /* pixel of the output that is the first one of y */
} lnt_qconv_job;

void lnt_qconv_bind_panels(const lnt_site *site, lnt_qconv *p);
lnt_status lnt_qconv_run_panels(lnt_kernel *k, const lnt_qconv_job *job);
bool lnt_qconv_is_depthwise(const lnt_packed *record);
/* For int8 and uint8 operands in any storage order; the other two for channels-last images, job->images and
 * job->y. */
void lnt_qconv_bind_depthwise(const lnt_site *site, lnt_qconv *p, size_t *scratch);
lnt_status lnt_qconv_run_depthwise(lnt_kernel *k, lnt_qconv_job *job);
void lnt_qconv_bind_filters(const lnt_site *site, lnt_qconv *p, size_t *scratch);
lnt_status lnt_qconv_run_filters(lnt_kernel *k, lnt_qconv_job *job);

/* Takes bytes of scratch memory. */
static inline size_t lnt_qconv_reserve(size_t *scratch, size_t bytes)
{
    const size_t at = *scratch;
    *scratch += lnt_round_up(bytes, LNT_ALIGN);
    return at;
}

#endif
