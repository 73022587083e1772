/* pool_kernels.c — the kernels of pooling at the scalar level. */
#define LNT_SIMD_SINGLE
#include "ops/image/pool_kernels.inc.h"
