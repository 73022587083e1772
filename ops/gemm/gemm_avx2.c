/* gemm_avx2.c — tile kernels for AVX2 with FMA. */
#define LNT_SIMD_AVX2
#define SHAPE LNT_SHAPE_AVX2
#include "ops/gemm/gemm_tile.inc.h"
