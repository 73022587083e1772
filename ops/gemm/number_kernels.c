/* number_kernels.c — products of double and integers at the level scalar. */
#define LNT_SIMD_SINGLE
#include "ops/simd/simd.h"

#include "ops/gemm/number_kernels.inc.h"
