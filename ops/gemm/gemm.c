/* gemm.c — tile kernels of the scalar level: what every compiler makes of four-lane vectors, or, where the target has
 * none, of numbers. */
/* GCC 12 otherwise lifts loads far above their uses and then has to spill accumulators. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif
#define LNT_SIMD_SINGLE
#include "ops/simd/simd.h"
#if LNT_VL == 1
#define SHAPE LNT_SHAPE_SINGLE
#else
#define SHAPE LNT_SHAPE_SCALAR
#endif
#include "ops/gemm/gemm_tile.inc.h"
