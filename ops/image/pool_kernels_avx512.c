/* pool_kernels_avx512.c — the kernels of pooling at the avx512 level. */
#define LNT_SIMD_AVX512
#include "ops/image/pool_kernels.inc.h"
