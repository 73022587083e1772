/* rnn_cells_avx512.c — recurrent cells for AVX-512. */
#define LNT_SIMD_AVX512
#include "ops/recurrent/rnn_cells.inc.h"
