/* kernels.h — the kernel tables of one level.
 *
 * Each family declares its functions in a struct of pointers in its own header and defines one constant table
 * per level, in a file of the family's stem plus the level: gemm.c (scalar), gemm_avx2.c, gemm_neon.c.
 * Kernels never ask which CPU they run on. */
#ifndef LNT_OPS_KERNELS_H
#define LNT_OPS_KERNELS_H

#include "base/cpu.h"

typedef struct lnt_kernels lnt_kernels;

struct lnt_kernels {
    const struct lnt_gemm_kernels *gemm;       /* ops/gemm/gemm.h: GEMM, convolution and gate micro-kernels */
    const struct lnt_program_kernels *program; /* ops/elementwise/program_kernels.h: elementwise programs, math */
    const struct lnt_row_kernels *row;         /* ops/rows/row.h: reductions, softmax and norms along a row */
    /* NULL in a trimmed library without operators that use them: */
    const struct lnt_qgemm_kernels *qgemm;   /* ops/quant/qgemm.h: products of bytes */
    const struct lnt_attend_kernels *attend; /* ops/attention/attend.h: attention */
};

const lnt_kernels *lnt_kernels_of(lnt_level level);

#endif
