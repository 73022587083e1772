/* row_avx512.c — the row kernels at the avx512 level. */
#define LNT_SIMD_AVX512
#include "ops/simd/simd.h"
#include "ops/rows/row.inc.h"
