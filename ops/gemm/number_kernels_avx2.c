/* number_kernels_avx2.c — products of double and integers at level avx2. */
#define LNT_SIMD_AVX2
#include "ops/simd/simd.h"

#include "ops/gemm/number_kernels.inc.h"
