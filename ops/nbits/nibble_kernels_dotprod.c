/* nibble_kernels_dotprod.c — products of int8 with weights of 4 bits at level dotprod: the tile, by SDOT. */
#define LNT_SIMD_NEON
#define NIBBLE_TILE_ALONE
#include "ops/simd/simd.h"

#include "ops/nbits/nibble_kernels.inc.h"

const lnt_nibble_kernels lnt_nibble_dotprod = {
    .lanes = LNT_VL, .quantize = lnt_nibble_quantize_neon, .prepare = lnt_nibble_prepare_neon, .tile = tile};
