/* conv_kernels_avx512.c — convolution kernels for AVX-512. */
#define LNT_SIMD_AVX512
#include "ops/conv/conv_kernels.inc.h"
