/* program_kernels.c — elementwise programs at level scalar. */
#include "ops/simd/simd.h"

#include "ops/elementwise/program_kernels.inc.h"
