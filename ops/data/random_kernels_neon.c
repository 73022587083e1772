/* random_kernels_neon.c — random floats at the level neon. */
#define LNT_SIMD_NEON
#include "ops/data/random_kernels.inc.h"
