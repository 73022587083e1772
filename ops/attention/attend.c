/* attend.c — the kernels of attention at the scalar level. */
#define MIX_ROWS 4
#include "ops/attention/attend.inc.h"
