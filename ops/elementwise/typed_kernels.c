/* typed_kernels.c — typed loops at the level scalar. */
#define TABLE lnt_typed_scalar
#include "ops/elementwise/typed_kernels.inc.h"
