/* rnn_cells_neon.c — recurrent cells for NEON. */
#define LNT_SIMD_NEON
#include "ops/recurrent/rnn_cells.inc.h"
