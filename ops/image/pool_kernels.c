/* pool_kernels.c — the kernels of pooling at the scalar level. */
#include "ops/image/pool_kernels.inc.h"
