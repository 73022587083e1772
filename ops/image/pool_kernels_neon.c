/* pool_kernels_neon.c — the kernels of pooling at the neon level. */
#define LNT_SIMD_NEON
#include "ops/image/pool_kernels.inc.h"
