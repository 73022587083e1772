/* rnn_cells_avx2.c — recurrent cells for AVX2 with FMA. */
#define LNT_SIMD_AVX2
#include "ops/recurrent/rnn_cells.inc.h"
