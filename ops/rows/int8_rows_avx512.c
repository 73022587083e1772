/* int8_rows_avx512.c — the kernels of int8 rows at the avx512 level. */
#define LNT_SIMD_AVX512
#include "ops/rows/int8_rows.inc.h"
