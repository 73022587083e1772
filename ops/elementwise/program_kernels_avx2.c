/* program_kernels_avx2.c — elementwise programs at level avx2. */
#define LNT_SIMD_AVX2
#include "ops/simd/simd.h"

#include "ops/elementwise/program_kernels.inc.h"
