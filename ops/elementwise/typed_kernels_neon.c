/* typed_kernels_neon.c — typed loops at the level neon. */
#define TABLE lnt_typed_neon
#include "ops/elementwise/typed_kernels.inc.h"
