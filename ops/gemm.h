/* gemm.h — the kernel table of the gemm family. */
#ifndef LNT_OPS_GEMM_H
#define LNT_OPS_GEMM_H

#include "ops/kernels.h"

typedef struct lnt_gemm_kernels lnt_gemm_kernels;

extern const lnt_gemm_kernels lnt_gemm_scalar, lnt_gemm_avx2, lnt_gemm_neon;

#endif
