/* program_kernels_avx2.c — elementwise programs at level avx2. */
#define LNT_SIMD_AVX2
#include "ops/simd.h"

#include "ops/program_kernels.inc.h"
