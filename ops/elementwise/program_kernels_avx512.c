/* program_kernels_avx512.c — elementwise programs at level avx512. */
#define LNT_SIMD_AVX512
#include "ops/simd/simd.h"

#include "ops/elementwise/program_kernels.inc.h"
