/* rnn_cells.c — recurrent cells of the scalar level. */
#include "ops/recurrent/rnn_cells.inc.h"
