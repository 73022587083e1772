/* conv_kernels.c — convolution kernels of the scalar level. */
#include "ops/conv/conv_kernels.inc.h"
