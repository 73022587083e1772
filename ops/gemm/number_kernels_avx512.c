/* number_kernels_avx512.c — products of double and integers at level avx512. */
#define LNT_SIMD_AVX512
#include "ops/simd/simd.h"

#include "ops/gemm/number_kernels.inc.h"
