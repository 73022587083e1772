/* attend_avx2.c — the kernels of attention at the avx2 level. */
#define LNT_SIMD_AVX2
#define MIX_ROWS 4
#include "ops/attention/attend.inc.h"
