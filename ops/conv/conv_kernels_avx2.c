/* conv_kernels_avx2.c — convolution kernels for AVX2 with FMA. */
#define LNT_SIMD_AVX2
#include "ops/conv/conv_kernels.inc.h"
