/* gemm_neon.c — tile kernels for NEON: 6 x 16 with the 32 registers of AArch64, 4 x 8 with the 16 of ARMv7. */
#define LNT_SIMD_NEON
#if defined(__aarch64__)
#define SHAPE LNT_SHAPE_AARCH64
/* As many as registers are left. */
#define ROWS_AHEAD(rows) ((rows) > 1 ? 32 - TILE_VECTORS * ((rows) + 1) : 0)
#else
#define SHAPE LNT_SHAPE_ARMV7
#endif
/* GCC 12 otherwise lifts all loads of an inner step to its top and then has to spill accumulators. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif
#include "ops/gemm/gemm_tile.inc.h"
