/* int8_rows_avx2.c — the kernels of int8 rows at the avx2 level. */
#define LNT_SIMD_AVX2
#include "ops/rows/int8_rows.inc.h"
