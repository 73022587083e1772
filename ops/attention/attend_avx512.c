/* attend_avx512.c — the kernels of attention at the avx512 level. */
#define LNT_SIMD_AVX512
#define MIX_ROWS 8
#include "ops/attention/attend.inc.h"
