/* row_avx2.c — the row kernels at the avx2 level. */
#define LNT_SIMD_AVX2
#include "ops/simd/simd.h"
#include "ops/rows/row.inc.h"
