/* program_kernels_neon.c — elementwise programs at level neon. */
#define LNT_SIMD_NEON
#include "ops/simd/simd.h"

#include "ops/elementwise/program_kernels.inc.h"
