/* nbits_kernels_avx2.c — weights of few bits at level avx2. */
#define LNT_SIMD_AVX2
#include "ops/simd/simd.h"

#include "ops/nbits/nbits_kernels.inc.h"
