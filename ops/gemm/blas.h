/* blas.h — OpenBLAS, in builds that ask for it (BLAS=openblas defines LNT_OPENBLAS): products in double
 * precision, and a contender in `bench --kernels`. One thread of its own; ours share the rows. */
#ifndef LNT_OPS_GEMM_BLAS_H
#define LNT_OPS_GEMM_BLAS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef LNT_OPENBLAS

typedef struct lnt_blas_call {
    bool trans_a, trans_b;
    int64_t M, N, K;  /* below 2**31 */
    int64_t lda, ldb; /* elements from row to row of the operands as stored; C has N */
    double alpha, beta;
} lnt_blas_call;

/* C = alpha * op(A) * op(B) + beta * C */
void lnt_blas_f64(const lnt_blas_call *p, const double *a, const double *b, double *c);
void lnt_blas_f32(const lnt_blas_call *p, const float *a, const float *b, float *c);
/* The core OpenBLAS takes this CPU for: not always the best one, and OPENBLAS_CORETYPE overrules it. */
const char *lnt_blas_core(void);

#endif
#endif
