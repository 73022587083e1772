/* nbits_kernels_neon.c — weights of few bits at level neon. */
#define LNT_SIMD_NEON
#include "ops/simd/simd.h"

#include "ops/nbits/nbits_kernels.inc.h"
