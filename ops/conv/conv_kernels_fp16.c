/* conv_kernels_fp16.c — convolution kernels of half arithmetic: sums are halves. */
#define LNT_SIMD_FP16
/* GCC 12 otherwise lifts all loads of an inner step to its top and then has to spill accumulators. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif
#include "ops/conv/conv_kernels.inc.h"
