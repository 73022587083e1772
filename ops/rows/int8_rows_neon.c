/* int8_rows_neon.c — the kernels of int8 rows at the neon level. */
#define LNT_SIMD_NEON
#include "ops/rows/int8_rows.inc.h"
