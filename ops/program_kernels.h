/* program_kernels.h — the kernel table of the program family. */
#ifndef LNT_OPS_PROGRAM_KERNELS_H
#define LNT_OPS_PROGRAM_KERNELS_H

#include "ops/kernels.h"

typedef struct lnt_program_kernels lnt_program_kernels;

extern const lnt_program_kernels lnt_program_scalar, lnt_program_avx2, lnt_program_neon;

#endif
