/* nibble_kernels_avx2.c — products of int8 with weights of 4 bits at level avx2. */
#define LNT_SIMD_AVX2
#define NIBBLE_TILE_OF_ROWS
#include "ops/simd/simd.h"

#include "ops/nbits/nibble_kernels.inc.h"

const lnt_nibble_kernels lnt_nibble_avx2 = {.lanes = LNT_VL,
                                            .rows = ROWS,
                                            .quantize = lnt_nibble_quantize_avx2,
                                            .prepare = lnt_nibble_prepare_avx2,
                                            .tile = tile};
