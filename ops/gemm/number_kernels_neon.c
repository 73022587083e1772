/* number_kernels_neon.c — products of double and integers at level neon. */
#define LNT_SIMD_NEON
#include "ops/simd/simd.h"

#include "ops/gemm/number_kernels.inc.h"
