/* gemm_avx512.c — tile kernels for AVX-512: 14 x 32 over two panels, 28 of 32 registers accumulate. */
#define LNT_SIMD_AVX512
#define TILE_ROWS 14
#define TILE_VECTORS 2
#define SUMS_MIN 8
#define DEPTH_BLOCK 256
#include "ops/gemm_tile.inc.h"
