/* nibble_kernels_neon.c — products of int8 with weights of 4 bits at level neon. */
#define LNT_SIMD_NEON
#include "ops/simd/simd.h"

#include "ops/nbits/nibble_kernels.inc.h"

const lnt_nibble_kernels lnt_nibble_neon = {
    .lanes = LNT_VL, .quantize = lnt_nibble_quantize_neon, .prepare = lnt_nibble_prepare_neon, .tile = tile};
