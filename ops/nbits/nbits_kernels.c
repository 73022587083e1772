/* nbits_kernels.c — weights of few bits at the level scalar. */
#define LNT_SIMD_SINGLE
#include "ops/simd/simd.h"

#include "ops/nbits/nbits_kernels.inc.h"
