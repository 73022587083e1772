/* random_kernels.c — random floats at the level scalar. */
#include "ops/data/random_kernels.inc.h"
