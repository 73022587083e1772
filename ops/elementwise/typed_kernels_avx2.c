/* typed_kernels_avx2.c — typed loops of 256-bit vectors, for avx2 and the levels above. */
#define TABLE lnt_typed_avx2
#include "ops/elementwise/typed_kernels.inc.h"
