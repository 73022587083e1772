/* row.c — the row kernels at the scalar level. */
#include "ops/simd.h"
#include "ops/row.inc.h"
