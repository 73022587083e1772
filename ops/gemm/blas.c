/* blas.c — OpenBLAS behind ops/gemm/blas.h; not part of other builds. */
#include "ops/gemm/blas.h"

#include <cblas.h>
#include <pthread.h>

static void use_one_thread(void)
{
    openblas_set_num_threads(1);
}

static void prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, use_one_thread);
}

static CBLAS_TRANSPOSE order_of(bool transposed)
{
    return transposed ? CblasTrans : CblasNoTrans;
}

void lnt_blas_f64(const lnt_blas_call *p, const double *a, const double *b, double *c)
{
    prepare();
    cblas_dgemm(CblasRowMajor, order_of(p->trans_a), order_of(p->trans_b), (blasint)p->M, (blasint)p->N,
                (blasint)p->K, p->alpha, a, (blasint)p->lda, b, (blasint)p->ldb, p->beta, c, (blasint)p->N);
}

void lnt_blas_f32(const lnt_blas_call *p, const float *a, const float *b, float *c)
{
    prepare();
    cblas_sgemm(CblasRowMajor, order_of(p->trans_a), order_of(p->trans_b), (blasint)p->M, (blasint)p->N,
                (blasint)p->K, (float)p->alpha, a, (blasint)p->lda, b, (blasint)p->ldb, (float)p->beta, c,
                (blasint)p->N);
}

const char *lnt_blas_core(void)
{
    return openblas_get_corename();
}
