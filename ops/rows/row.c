/* row.c — the row kernels at the scalar level. */
#include "ops/simd/simd.h"
#include "ops/rows/row.inc.h"
