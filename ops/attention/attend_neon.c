/* attend_neon.c — the kernels of attention at the neon level. */
#define LNT_SIMD_NEON
#define MIX_ROWS 4
#include "ops/attention/attend.inc.h"
