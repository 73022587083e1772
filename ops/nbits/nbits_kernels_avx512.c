/* nbits_kernels_avx512.c — weights of few bits at level avx512. */
#define LNT_SIMD_AVX512
#include "ops/simd/simd.h"

#include "ops/nbits/nbits_kernels.inc.h"
