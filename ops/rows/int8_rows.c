/* int8_rows.c — the kernels of int8 rows at the scalar level. */
#define LNT_SIMD_SINGLE
#include "ops/rows/int8_rows.inc.h"
