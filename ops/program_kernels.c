/* program_kernels.c — elementwise programs at level scalar. */
#include "ops/simd.h"

#include "ops/program_kernels.inc.h"
