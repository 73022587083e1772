/* row_neon.c — the row kernels at the neon level. */
#define LNT_SIMD_NEON
#include "ops/simd/simd.h"
#include "ops/rows/row.inc.h"
