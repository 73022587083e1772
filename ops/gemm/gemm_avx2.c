/* gemm_avx2.c — tile kernels for AVX2 with FMA: 6 x 16, 12 of 16 registers accumulate. */
#define LNT_SIMD_AVX2
#define TILE_ROWS 6
#define TILE_VECTORS 2
#define SUMS_MIN 8
#define DEPTH_BLOCK 384
#include "ops/gemm/gemm_tile.inc.h"
