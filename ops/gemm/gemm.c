/* gemm.c — tile kernels of the scalar level: what every compiler makes of four-lane vectors. */
#define TILE_ROWS 4
#define TILE_VECTORS 2
#define SUMS_MIN 6
#define DEPTH_BLOCK 256
#include "ops/gemm/gemm_tile.inc.h"
