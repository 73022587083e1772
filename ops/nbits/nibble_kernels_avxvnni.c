/* nibble_kernels_avxvnni.c — products of int8 with weights of 4 bits at level avxvnni: the tile. */
#define LNT_SIMD_AVX2
#define NIBBLE_TILE_ALONE
#include "ops/simd/simd.h"

#include "ops/nbits/nibble_kernels.inc.h"

const lnt_nibble_kernels lnt_nibble_avxvnni = {
    .lanes = LNT_VL, .quantize = lnt_nibble_quantize_avx2, .columns = columns, .panel = panel};
