/* nibble_kernels_avx2.c — products of int8 with weights of 4 bits at level avx2. */
#define LNT_SIMD_AVX2
#include "ops/simd/simd.h"

#include "ops/nbits/nibble_kernels.inc.h"

const lnt_nibble_kernels lnt_nibble_avx2 = {
    .lanes = LNT_VL, .quantize = lnt_nibble_quantize_avx2, .columns = columns, .panel = panel};
