/* pool_kernels_avx2.c — the kernels of pooling at the avx2 level. */
#define LNT_SIMD_AVX2
#include "ops/image/pool_kernels.inc.h"
