/* kernel_rows.c — what `linnet bench --kernels` measures. */
#include "cli/kernels.h"

#define PLAIN false, false
#define DEEP true, true  /* channels-last, as between two convolutions */
#define TURN false, true /* as the first one of a model */

const lnt_kernel_row lnt_kernel_rows[] = {
    /* Products. */
    {"gemm", "MatMul", "256x256 =256x256", "", PLAIN},
    {"gemm", "MatMul", "16x384 =384x384", "", PLAIN},
    {"gemm", "MatMul", "1x384 =384x384", "", PLAIN},

    /* Attention: MiniLM's heads, wider ones, one token of a decoder. */
    {"attention", "Attention", "1x16x384 1x16x384 1x16x384", "q_num_heads=12 kv_num_heads=12", PLAIN},
    {"attention", "Attention", "1x128x384 1x128x384 1x128x384", "q_num_heads=12 kv_num_heads=12", PLAIN},
    {"attention", "Attention", "8x128x384 8x128x384 8x128x384", "q_num_heads=12 kv_num_heads=12", PLAIN},
    {"attention", "Attention", "1x512x768 1x512x768 1x512x768", "q_num_heads=12 kv_num_heads=12", PLAIN},
    {"attention", "Attention", "1x1x768 1x1024x768 1x1024x768", "q_num_heads=12 kv_num_heads=12", PLAIN},

    /* Convolutions: large ones, 1x1, odd extents, strides, few channels, one axis, groups. */
    {"conv", "Conv", "1x64x56x56 =64x64x3x3 =64", "pads=1,1,1,1", DEEP},
    {"conv", "Conv", "1x128x28x28 =128x128x3x3 =128", "pads=1,1,1,1", DEEP},
    {"conv", "Conv", "1x256x14x14 =256x256x3x3 =256", "pads=1,1,1,1", DEEP},
    {"conv", "Conv", "1x512x7x7 =512x512x3x3 =512", "pads=1,1,1,1", DEEP},
    {"conv", "Conv", "1x128x56x56 =128x128x3x3 =128", "pads=1,1,1,1 strides=2,2", DEEP},
    {"conv", "Conv", "1x64x56x56 =256x64x1x1 =256", "", DEEP},
    {"conv", "Conv", "1x256x56x56 =64x256x1x1 =64", "", DEEP},
    {"conv", "Conv", "1x1024x14x14 =256x1024x1x1 =256", "", DEEP},
    {"conv", "Conv", "1x512x7x7 =2048x512x1x1 =2048", "", DEEP},
    {"conv", "Conv", "1x256x56x56 =512x256x1x1 =512", "strides=2,2", DEEP},
    {"conv", "Conv", "1x16x54x54 =64x16x1x1 =64", "", DEEP},
    {"conv", "Conv", "1x16x54x54 =64x16x3x3 =64", "pads=1,1,1,1", DEEP},
    {"conv", "Conv", "1x48x13x13 =192x48x3x3 =192", "pads=1,1,1,1", DEEP},
    {"conv", "Conv", "1x40x30x37 =72x40x3x3 =72", "pads=1,1,1,1", DEEP},
    {"conv", "Conv", "1x8x32x32 =8x8x3x3 =8", "pads=1,1,1,1", DEEP},
    {"conv", "Conv", "1x64x80x60 =8x64x3x3 =8", "pads=1,1,1,1", DEEP},
    {"conv", "Conv", "1x32x28x28 =32x32x3x3 =32", "pads=2,2,2,2 dilations=2,2", DEEP},
    {"conv", "Conv", "1x128x28x28 =128x4x3x3 =128", "pads=1,1,1,1 group=32", DEEP},
    {"conv", "Conv", "1x16x16x16x16 =32x16x3x3x3 =32", "pads=1,1,1,1,1,1", DEEP},
    {"stem", "Conv", "1x3x224x224 =64x3x7x7 =64", "pads=3,3,3,3 strides=2,2", TURN},
    {"stem", "Conv", "1x3x224x224 =64x3x3x3 =64", "strides=2,2", TURN},
    {"stem", "Conv", "1x3x240x320 =16x3x3x3 =16", "pads=1,1,1,1 strides=2,2", TURN},
    {"stem", "Conv", "1x1x224x224 =64x1x5x5 =64", "pads=2,2,2,2", TURN},
    {"conv1d", "Conv", "1x128x400 =128x128x3 =128", "pads=5,5 dilations=5,", DEEP},
    {"conv1d", "Conv", "1x32x6400 =32x32x11 =32", "pads=25,25 dilations=5,", DEEP},

    {"depthwise", "Conv", "1x144x56x56 =144x1x3x3 =144", "pads=1,1,1,1 group=144", DEEP},
    {"depthwise", "Conv", "1x576x14x14 =576x1x3x3 =576", "pads=1,1,1,1 group=576", DEEP},
    {"depthwise", "Conv", "1x960x7x7 =960x1x3x3 =960", "pads=1,1,1,1 group=960", DEEP},
    {"depthwise", "Conv", "1x96x112x112 =96x1x3x3 =96", "pads=1,1,1,1 strides=2,2 group=96", DEEP},
    {"depthwise", "Conv", "1x120x28x28 =120x1x5x5 =120", "pads=2,2,2,2 group=120", DEEP},
    {"depthwise", "Conv", "1x64x80x80 =64x1x3x3 =64", "pads=1,1,1,1 group=64", DEEP},
    {"depthwise", "Conv", "1x16x160x160 =16x1x3x3 =16", "pads=1,1,1,1 group=16", DEEP},

    {"transposed", "ConvTranspose", "1x256x100 =256x128x16 =128", "strides=8, pads=4,4", DEEP},
    {"transposed", "ConvTranspose", "1x64x6400 =64x32x4 =32", "strides=2, pads=1,1", DEEP},
    {"transposed", "ConvTranspose", "1x64x28x28 =64x32x2x2 =32", "strides=2,2", DEEP},

    /* Memory. */
    {"pool", "MaxPool", "1x64x112x112", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", DEEP},
    {"pool", "MaxPool", "1x64x56x56", "kernel_shape=2,2 strides=2,2", DEEP},
    {"pool", "MaxPool", "1x128x20x20", "kernel_shape=5,5 pads=2,2,2,2", DEEP},
    {"pool", "MaxPool", "1x64x112x112", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", PLAIN},
    {"pool", "AveragePool", "1x128x28x28", "kernel_shape=2,2 strides=2,2", DEEP},
    {"pool", "AveragePool", "1x64x35x35", "kernel_shape=3,3 pads=1,1,1,1", DEEP},
    {"pool", "GlobalAveragePool", "1x1024x7x7", "", DEEP},
    {"resize", "Resize", "1x64x40x40 - (1,1,2,2)", "mode=nearest", DEEP},
    {"resize", "Resize", "1x64x40x40 - (1,1,2,2)", "mode=linear", DEEP},
    {"resize", "Resize", "1x3x112x112 - (1,1,2,2)", "mode=linear", PLAIN},
};

const size_t lnt_kernel_row_count = sizeof lnt_kernel_rows / sizeof *lnt_kernel_rows;
