/* conv_blocks.h — the sizes by which convolutions choose an algorithm and cut their work; products' are in
 * ops/gemm/gemm_blocks.h. The same at every level: which sums are made, and in which order, follows from them. */
#ifndef LNT_OPS_CONV_CONV_BLOCKS_H
#define LNT_OPS_CONV_CONV_BLOCKS_H

/* clang-format off */

/* Which algorithm (ops/conv/conv_algorithm.c). */
enum {
    LNT_FEW_CHANNELS       = 4,   /* of a stem; what it reads is copied anyway, whatever its storage order */
    LNT_STEM_RUN_MAX       = 32,  /* floats side by side in K: more are work for tiles of rows */
    LNT_STEM_DEPTH_MAX     = 1024,
    LNT_STEM_FEATURES_MIN  = 4,
    LNT_FEW_FEATURES       = 16,  /* of a stem of many channels: lanes of the widest vectors */
    LNT_FEW_FEATURES_DEPTH = 160, /* longer sums hide what a tile of rows costs */
    LNT_SOME_DEPTH         = 192, /* of planes: more multiply-adds hide what order costs */
    LNT_POINTS_MAX         = 64,  /* channels and features of kernels of one tap */
    LNT_DEPTHWISE_LINES    = 64,  /* of the kernel, at most */
    LNT_PLANE_MIN          = 256, /* pixels of planes that are made of each other, */
    LNT_PLANE_SCALED       = 48,  /* of one tap, */
    LNT_PLANE_LANES        = 12,  /* so many to 16 lanes, */
    LNT_PLANE_HALVES_LANES = 10,  /* and at strides above 1 so many, */
    LNT_PLANE_TAPS         = 4    /* by so many taps at most along an axis */
};

/* Depthwise convolutions of planes (ops/conv/conv_planes.c). */
enum {
    LNT_PLANE_BAND_PIXELS   = 4096,     /* of a band of rows, which stays in the first-level cache */
    LNT_GROUP_ROWS_MIN      = 32,       /* pixels of planes of groups of several channels */
    LNT_GROUP_ROWS_FEATURES = 4,        /* where there are no groups */
    LNT_GROUP_ROWS_FLOATS   = 32 * 1024 /* of the lines that a row of such a group reads */
};

/* Stems (ops/conv/conv_stem.c): bands of lines in scratch memory. */
enum {
    LNT_STEM_BAND_ROWS   = 8,
    LNT_STEM_BAND_PIXELS = 256,       /* of each row */
    LNT_STEM_PLANE_RUN   = 512,       /* of each row of planes, which are far apart */
    LNT_STEM_SHORT_LINE  = 64,        /* of planes: bands are one run each, */
    LNT_STEM_RUN_PIXELS  = 256,       /* of about so many pixels */
    LNT_STEM_BAND_WORK   = 32 * 1024,
    LNT_STEM_SHARED_WORK = 320 * 1024 /* as many pay for pixels that go from one core's cache to another's */
};

/* Depthwise convolutions (ops/conv/conv_depthwise.c): runs of pixels, slices of channels. */
enum {
    LNT_DEPTHWISE_RUN_WORK     = 32 * 1024,  /* multiply-adds in a run of pixels */
    LNT_DEPTHWISE_SLICED_BYTES = 36 * 1024,  /* of a slice of the channels, in the first-level cache */
    LNT_DEPTHWISE_SLICED_RUN   = 64,         /* pixels, at most */
    LNT_DEPTHWISE_SLICE        = 64,         /* channels of a slice are a multiple of that */
    LNT_DEPTHWISE_BAND         = 8,          /* rows that go by with one slice of the channels */
    LNT_DEPTHWISE_SHORT_ROW    = 8,          /* pixels that are filtered together */
    LNT_DEPTHWISE_SHARED_WORK  = 128 * 1024  /* as many pay for pixels that go from one core's cache to another's */
};

/* Winograd's algorithm (ops/conv/conv_winograd.c): blocks of tiles. */
enum {
    LNT_WINOGRAD_BLOCK_BYTES = 768 * 1024, /* of v and m: about a second-level cache */
    LNT_WINOGRAD_ROWS_MIN    = 24,         /* of a block: for fewer the weights come slower than they are multiplied */
    LNT_WINOGRAD_ROWS_MAX    = 96,
    LNT_WINOGRAD_TAPS_WORK   = 120,        /* multiply-adds that transforming a filter is worth, */
    LNT_WINOGRAD_IN_WORK     = 160,        /* and a patch of a channel */
    /* Multiply-adds of a filter that must be saved for its taps to be transformed in each run. Wide vectors multiply
     * faster than memory takes what they transform. */
#if defined(__x86_64__)
    LNT_WINOGRAD_TAPS_BYTES       = 1300 * 1024, /* of transformed taps that are multiplied at once */
    LNT_WINOGRAD_TAPS_WORST       = 1000,
    LNT_WINOGRAD_SMALL_TAPS_WORST = 200,
#else
    LNT_WINOGRAD_TAPS_BYTES       = 160 * 1024,
    LNT_WINOGRAD_TAPS_WORST       = 160,
    LNT_WINOGRAD_SMALL_TAPS_WORST = 60,
#endif
    LNT_WINOGRAD_BLOCKS      = 4,          /* of tiles or parts of features there should be, for threads to share */
    LNT_WINOGRAD_PART_MIN    = 64          /* features, as wide as tiles are */
};

/* Images made line by line (ops/conv/row_fusion.c). */
enum {
    LNT_FUSION_BYTES  = 512 * 1024, /* an image worth being made so */
    LNT_FUSION_PIXELS = 128,        /* made at once, about */
    LNT_FUSION_ROWS   = 8           /* of a thread at least, for each line that its neighbor makes, too */
};

/* clang-format on */

#endif
