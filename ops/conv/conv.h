/* conv.h — what Conv and ConvTranspose share: geometry, storage orders, the loop for double. */
#ifndef LNT_OPS_CONV_CONV_H
#define LNT_OPS_CONV_CONV_H

#include "formats/packed.h"
#include "ops/copy.h"
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

/* What weights and attributes tell of it, all other extents unknown: W of Conv [groups * features, channels,
 * kernel...], of ConvTranspose [groups * channels, features, kernel...]. False where they do not fit each other, or
 * the kernel's extents are unknown. */
bool lnt_conv_of_weights(const lnt_node *node, const lnt_operand *w, bool transposed, lnt_conv *c);

/* The record of float weights w for this geometry; depthwise ones have their own layout. */
lnt_packed lnt_conv_record(const lnt_conv *c);

/* The same of a constant; false where node's attributes do not fit it. */
bool lnt_conv_pack(const lnt_node *node, const lnt_operand *w, bool transposed, lnt_packed *record);

/* Pixels of zeros around an image. */
typedef struct lnt_padding {
    int64_t before[LNT_WINDOW_AXES], after[LNT_WINDOW_AXES];
} lnt_padding;

/* Channels-last images for the kernels, whatever the order of input and output: the ones that lie plain are
 * turned into and out of scratch memory, where the input may be given its padding, too. */
typedef struct lnt_conv_images {
    bool turn_in, turn_out, pad_in;
    lnt_copy in, out;
    size_t in_at, out_at;                                    /* bytes into scratch memory */
    int64_t extent[LNT_WINDOW_AXES], whole[LNT_WINDOW_AXES]; /* of the input, without and with padding */
    int64_t before[LNT_WINDOW_AXES];
    int64_t batch, pixel; /* floats of a pixel */
} lnt_conv_images;

/* padding: NULL, or what the kernels want around the input in memory. */
lnt_status lnt_conv_bind_images(lnt_site *site, const lnt_conv *c, const lnt_padding *padding,
                                lnt_conv_images *images, size_t *scratch);
/* True if output 0 can be written as channels-last where it lies. */
bool lnt_conv_writes_output(const lnt_site *site);
lnt_status lnt_conv_input(lnt_kernel *k, const lnt_step *s, const lnt_conv_images *images, const float **x);
float *lnt_conv_output(lnt_kernel *k, const lnt_step *s, const lnt_conv_images *images);
/* Floats from pixel to pixel of the output that kernels write. */
int64_t lnt_conv_out_pixel(const lnt_step *s);
/* Lets output 0 be given a pitch, if it lies channels-last and the kernel adds no residual, which has none. */
void lnt_conv_bind_pitched(lnt_site *site, const lnt_store *store);
/* After the kernels: puts the output in its place, then runs program over all of it, unless NULL. */
lnt_status lnt_conv_finish(lnt_kernel *k, const lnt_step *s, const lnt_conv_images *images,
                           const lnt_epilogue *program);

/* Weights that are no packed constant: packed into scratch memory by each run. */
typedef struct lnt_conv_weights {
    bool pack;
    lnt_packed record;
    size_t at;
} lnt_conv_weights;

lnt_status lnt_conv_bind_weights(lnt_site *site, const lnt_conv *c, lnt_conv_weights *w, size_t *scratch);
lnt_status lnt_conv_packed_weights(lnt_kernel *k, const lnt_step *s, const lnt_conv_weights *w,
                                   const float **b);

/* float16, bfloat16 and double: bind_float is the float kernel's bind function. */
lnt_status lnt_conv_bind_types(lnt_site *site, const lnt_conv *c, lnt_status (*bind_float)(lnt_site *site));

enum { LNT_DEPTHWISE_LINES = 64 };

/* One or few input and output channels per group. */
static inline bool lnt_conv_is_depthwise(const lnt_conv *c)
{
    return !c->transposed && c->groups > 1 && lnt_depthwise_takes(c->channels, c->features) &&
           c->w.kernel[0] * c->w.kernel[1] <= LNT_DEPTHWISE_LINES;
}

/* Few channels in kernels of taps_x taps side by side, of `taps` in all. */
static inline bool lnt_stem_takes(int64_t channels, int64_t features, int64_t taps, int64_t taps_x)
{
    enum {
        CHANNELS_MAX = 4,
        RUN_MAX = 32, /* floats side by side in K: more are work for tiles of rows */
        DEPTH_MAX = 1024
    };
    return channels >= 1 && channels <= CHANNELS_MAX && taps_x <= RUN_MAX / channels &&
           taps <= DEPTH_MAX / channels && features >= LNT_PANEL / 4;
}

/* Few channels, or few features and an output that can be written channels-last. */
bool lnt_conv_is_stem(const lnt_site *site, const lnt_conv *c);

/* Is there any sense in making the output line by line? Yes, if little work makes much of it, and lines are
 * long. */
bool lnt_conv_may_feed(const lnt_site *site, const lnt_conv *c);

/* For bind functions. */
lnt_status lnt_conv_bind_depthwise(lnt_site *site, const lnt_conv *c);
/* store must add no residual. */
lnt_status lnt_conv_bind_stem(lnt_site *site, const lnt_conv *c, const lnt_store *store);

#endif
