/* gemm.c — tile kernels of the scalar level: what every compiler makes of four-lane vectors. */
#define SHAPE LNT_SHAPE_SCALAR
#include "ops/gemm/gemm_tile.inc.h"
