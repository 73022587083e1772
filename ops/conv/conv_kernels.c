/* conv_kernels.c — convolution kernels of the scalar level. */
/* GCC 12 otherwise lifts loads far above their uses and then has to spill accumulators. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif
#define LNT_SIMD_SINGLE
#include "ops/conv/conv_kernels.inc.h"
