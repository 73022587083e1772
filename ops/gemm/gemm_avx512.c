/* gemm_avx512.c — tile kernels for AVX-512: 6 x 64 over four panels, 24 of 32 registers accumulate. More rows
 * over fewer panels would need more loads for each multiply-add than the cores can hide; but where there are
 * only one or two panels, 10 rows: more take more pointers than there are registers. */
#define LNT_SIMD_AVX512
#define SHAPE LNT_SHAPE_AVX512
#include "ops/gemm/gemm_tile.inc.h"
