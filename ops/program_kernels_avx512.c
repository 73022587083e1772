/* program_kernels_avx512.c — elementwise programs at level avx512. */
#define LNT_SIMD_AVX512
#include "ops/simd.h"

#include "ops/program_kernels.inc.h"
