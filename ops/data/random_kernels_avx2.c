/* random_kernels_avx2.c — random floats in vectors of 256 bits, for avx2 and the levels above. */
#define LNT_SIMD_AVX2
#include "ops/data/random_kernels.inc.h"
