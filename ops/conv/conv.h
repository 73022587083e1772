/* conv.h — what Conv and ConvTranspose share: geometry, storage orders, the loop for double. */
#ifndef LNT_OPS_CONV_CONV_H
#define LNT_OPS_CONV_CONV_H

#include "formats/packed.h"
#include "ops/copy.h"
#include "ops/conv/conv_blocks.h"
#include "ops/conv/conv_kernels.h"
#include "ops/gemm/gemm_store.h"
#include "ops/window.h"

typedef struct lnt_conv {
    lnt_window w; /* of a transposed convolution: in is the small side, before what is cut off the result */
    int64_t batch, groups;
    int64_t channels, features; /* of one group: input and output channels */
    unsigned axes;              /* spatial ones */
    bool transposed;
} lnt_conv;

/* Geometry of a bound Conv or ConvTranspose; fails where operands do not fit each other. */
lnt_status lnt_conv_of(const lnt_site *site, lnt_conv *c);
lnt_status lnt_conv_transpose_of(const lnt_site *site, lnt_conv *c);

/* Input position that tap t of one axis reads for output position o; false if there is none. */
bool lnt_conv_source(const lnt_conv *c, unsigned axis, int64_t o, int64_t t, int64_t *i);

/* Taps of no channels may be any number, and are worth nothing: one is left of them. */
void lnt_conv_drop_taps(lnt_conv *c);

/* Three axes become two where they can, of the same pixels and taps in the same order. */
void lnt_conv_merge_axes(lnt_conv *c);

/* What weights and attributes tell of it, all other extents unknown: W of Conv [groups * features, channels,
 * kernel...], of ConvTranspose [groups * channels, features, kernel...]. False where they do not fit each other, or
 * the kernel's extents are unknown. */
bool lnt_conv_of_weights(const lnt_node *node, const lnt_operand *w, bool transposed, lnt_conv *c);

/* The record of float weights w for this geometry; depthwise ones have their own layout. */
lnt_packed lnt_conv_record(const lnt_conv *c);

/* The same of a constant; false where node's attributes do not fit it. */
bool lnt_conv_pack(const lnt_node *node, const lnt_operand *w, lnt_packed *record);

/* May groups have images of their own? On ARM tiles have fewer rows, and gathering them takes less than to copy all. A
 * trimmed library gathers, too. */
#if defined(__x86_64__) && !LNT_TRIMMED
#define LNT_GROUPS_APART 1
#else
#define LNT_GROUPS_APART 0
#endif

/* How an image is copied: pixels of zeros around it, every step-th of its own. */
typedef struct lnt_padding {
    int64_t before[LNT_WINDOW_AXES], after[LNT_WINDOW_AXES], step[LNT_WINDOW_AXES];
    int64_t groups; /* as many have images of their own */
} lnt_padding;

/* Channels-last images for the kernels, whatever the order of input and output: those in ONNX order are
 * converted in scratch memory, where the input may also be padded. */
typedef struct lnt_conv_images {
    bool relayout_in, relayout_out, pad_in;
    size_t element; /* bytes of a float, or of a half */
    lnt_copy in, out;
    size_t in_at, out_at;                                    /* bytes into scratch memory */
    int64_t extent[LNT_WINDOW_AXES], whole[LNT_WINDOW_AXES]; /* of the input, without and with padding */
    int64_t before[LNT_WINDOW_AXES];
    int64_t groups, batch, pixel; /* the input's images: [groups, batch]; floats of a pixel */
} lnt_conv_images;

/* padding: NULL, or what the kernels want around the input in memory. */
lnt_status lnt_conv_bind_images(lnt_site *site, const lnt_conv *c, const lnt_padding *padding,
                                lnt_conv_images *images, size_t *scratch);
/* True if output 0 can be written channels-last in place. */
bool lnt_conv_writes_output(const lnt_site *site);
lnt_status lnt_conv_input(lnt_kernel *k, const lnt_step *s, const lnt_conv_images *images, const float **x);
float *lnt_conv_output(lnt_kernel *k, const lnt_step *s, const lnt_conv_images *images);
/* Floats from pixel to pixel of the output that kernels write. */
int64_t lnt_conv_out_pixel(const lnt_step *s);
/* Lets output 0 be given a pitch, if it is channels-last and the kernel adds no residual, which has none. */
void lnt_conv_bind_pitched(lnt_site *site, const lnt_store *store);
/* After the kernels: puts the output in its place, then runs program over all of it, unless NULL. */
lnt_status lnt_conv_finish(lnt_kernel *k, const lnt_step *s, const lnt_conv_images *images,
                           const lnt_epilogue *program);

/* Weights that are no packed constant: packed into scratch memory by each run. */
typedef struct lnt_conv_weights {
    bool pack;
    lnt_packed record;
    size_t at;
    const float *widened; /* of a packed constant of 16 bits, for kernels that read floats; else NULL */
} lnt_conv_weights;

lnt_status lnt_conv_bind_weights(lnt_site *site, const lnt_conv *c, lnt_conv_weights *w, size_t *scratch);
/* The same for kernels that read floats alone: the few weights of a stem or a depthwise convolution. */
lnt_status lnt_conv_bind_floats(lnt_site *site, const lnt_conv *c, lnt_conv_weights *w, size_t *scratch);
/* Of the form that site->in[1] has (lnt_b_form_of), unless it has become floats. */
lnt_status lnt_conv_packed_weights(lnt_kernel *k, const lnt_step *s, const lnt_conv_weights *w,
                                   const void **b);

/* Of a packed constant as ONNX has them, in floats that live as long as the site's step. */
lnt_status lnt_conv_plain_weights(lnt_site *site, const float **plain);

/* float16, bfloat16 and double: bind_float is the float kernel's bind function. */
lnt_status lnt_conv_bind_types(lnt_site *site, const lnt_conv *c, lnt_status (*bind_float)(lnt_site *site));

/* ---- how it is computed (conv_algorithm.c) ---- */

typedef enum lnt_conv_kind {
    LNT_CONV_PRODUCT,   /* neighborhoods of pixels times the weights: conv.c */
    LNT_CONV_DEPTHWISE, /* one or few input and output channels per group: conv_depthwise.c */
    LNT_CONV_STEM,      /* few channels, or few features: conv_stem.c, columns of a pixel side by side */
    LNT_CONV_PLANES,    /* the same, pixels of a feature side by side */
    LNT_CONV_POINTS,    /* the same as STEM of one tap: pixels are read in place */
    LNT_CONV_EACH, /* a channel per group, or few features, from planes to planes: conv_planes.c, conv_scale.c;
                      weights as ONNX has them */
    LNT_CONV_MATRIX /* one tap, or few features of a transposed one, from planes to planes: the weights, as ONNX has
                       them, times planes: conv_matrix.c */
} lnt_conv_kind;

/* c may have unknown extents (negative) of images, which are taken to be large enough. in: the order of the input.
 * writes_pixels: can the output be written as channels-last (lnt_conv_writes_output)? adds: a residual? */
lnt_conv_kind lnt_conv_algorithm(const lnt_conv *c, lnt_order in, bool writes_pixels, bool adds);

/* Whatever the order. */
bool lnt_conv_is_depthwise(const lnt_conv *c);

/* Is it a factor for each plane (conv_scale.c)? */
bool lnt_conv_scales_planes(const lnt_conv *c);

/* Does each output of a transposed convolution have one tap? */
bool lnt_conv_spreads(const lnt_conv *c);

/* Taps of transposed convolutions whose lines are added up, one below the other and side by side; a line of all of
 * them is in memory at once. */
enum {
    LNT_FOLD_TAPS = 8,
    LNT_FOLD_WIDE = 64,
    LNT_FOLD_CHANNELS = 8, /* at least */
    LNT_FOLD_LINE = 1 << 20
};

/* Does each tap along x meet another stride phase (x modulo the stride), or is there one alone? */
bool lnt_meets_phases(const lnt_window *w);

/* Are lines of planes so short that those of a band are one run? Then what each tap along x meets is copied by itself,
 * which many features are worth, unless it is a phase. */
bool lnt_conv_joins_lines(const lnt_conv *c);

/* May the products of one output be added up in half arithmetic, without a sum in float? */
bool lnt_conv_sums_in_half(const lnt_conv *c);

/* What a convolution of so many channels reads is copied anyway, whatever its storage order. */
static inline bool lnt_conv_few_channels(int64_t channels)
{
    return channels >= 1 && channels <= LNT_FEW_CHANNELS;
}

/* Is the input a plane for each channel? */
static inline bool lnt_conv_in_planes(const lnt_conv *c, lnt_order in)
{
    return in == LNT_ORDER_PLAIN || c->channels == 1;
}

/* May the convolution be the producer of a row fusion? Yes, if it is cheap for the size of its output, and its lines
 * are long. */
bool lnt_conv_streams_rows(const lnt_site *site, const lnt_conv *c);

/* For bind functions. */
lnt_status lnt_conv_bind_depthwise(lnt_site *site, const lnt_conv *c, const lnt_store *store);
/* Weights are no packed constant. */
lnt_status lnt_conv_bind_matrix(lnt_site *site, const lnt_conv *c);
lnt_status lnt_conv_bind_spread(lnt_site *site, const lnt_conv *c); /* of a transposed one */
lnt_status lnt_conv_bind_planes(lnt_site *site, const lnt_conv *c);
/* Has the level a kernel for that with these limits? */
bool lnt_conv_may_scale(const lnt_site *site, const lnt_store *store);
lnt_status lnt_conv_bind_scale(lnt_site *site, const lnt_conv *c);
/* kind: STEM, PLANES or POINTS. */
lnt_status lnt_conv_bind_stem(lnt_site *site, const lnt_conv *c, lnt_conv_kind kind, const lnt_store *store);

#endif
