/* nibble_kernels.c — products of int8 with weights of 4 bits at the level scalar. */
#define LNT_SIMD_SINGLE
#include "ops/simd/simd.h"

#include "ops/nbits/nibble_kernels.inc.h"

const lnt_nibble_kernels lnt_nibble_scalar = {.lanes = LNT_VL,
                                              .quantize = lnt_nibble_quantize_scalar,
                                              .prepare = lnt_nibble_prepare_scalar,
                                              .tile = tile};
