/* nibble_kernels_avx512vnni.c — products of int8 with weights of 4 bits at level avx512vnni: the tile. */
#define LNT_SIMD_AVX512
#define NIBBLE_TILE_ALONE
#include "ops/simd/simd.h"

#include "ops/nbits/nibble_kernels.inc.h"

const lnt_nibble_kernels lnt_nibble_avx512vnni = {
    .lanes = LNT_VL, .bytes = true, .quantize = lnt_nibble_quantize_avx2, .columns = columns, .panel = panel};
