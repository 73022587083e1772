/* det.c — Det: determinants of square matrices by elimination with row pivots, in double precision. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/data/data.h"
#include "ops/number.h"

#include <math.h>

lnt_status lnt_shape_det(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    if (in->rank < 2)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the input must have rank 2 or more, has %u", in->rank);
    const int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1];
    if (rows >= 0 && columns >= 0 && rows != columns)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "a matrix of %lld x %lld is not square", (long long)rows,
                             (long long)columns);
    lnt_set_dims(site, 0, in->rank - 2u, in->dims);
    return LNT_OK;
}

static void swap_rows(double *a, double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
}

/* Determinant of m, n x n, which is destroyed. */
static double determinant(double *m, int64_t n)
{
    double det = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t r = c + 1; r < n; r++)
            if (fabs(m[r * n + c]) > fabs(m[pivot * n + c]))
                pivot = r;
        if (pivot != c) {
            swap_rows(m + pivot * n, m + c * n, n);
            det = -det;
        }
        const double head = m[c * n + c];
        det *= head;
        if (head == 0)
            return 0;
        for (int64_t r = c + 1; r < n; r++) {
            const double factor = m[r * n + c] / head;
            for (int64_t i = c + 1; i < n; i++)
                m[r * n + i] -= factor * m[c * n + i];
        }
    }
    return det;
}

typedef struct det_job {
    lnt_dtype dtype;
    const void *in;
    void *out;
    int64_t n;
    char *scratch;
} det_job;

static size_t scratch_of_thread(int64_t n)
{
    return lnt_round_up((size_t)(n * n) * sizeof(double), LNT_ALIGN);
}

static lnt_status det_matrices(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    const det_job *job = arg;
    double *m = (double *)(void *)(job->scratch + thread * scratch_of_thread(job->n));
    for (int64_t i = begin; i < end; i++) {
        for (int64_t e = 0; e < job->n * job->n; e++)
            m[e] = lnt_load_number(job->dtype, job->in, i * job->n * job->n + e);
        lnt_store_number(job->dtype, job->out, i, determinant(m, job->n));
    }
    return LNT_OK;
}

static lnt_status run_det(lnt_kernel *k, const lnt_step *s)
{
    LNT_ASSERT(s->in[0]->rank >= 2);
    const lnt_operand *in = s->in[0];
    det_job job = {(lnt_dtype)in->dtype, lnt_in(k, s, 0), lnt_out(k, s, 0), in->dims[in->rank - 1],
                   lnt_scratch(k, s)};
    return lnt_parallel(k, lnt_operand_count(s->out[0]), lnt_grain(job.n * job.n * job.n * 8), det_matrices,
                        &job);
}

lnt_status lnt_bind_det(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    if (!lnt_is_floating(in->dtype))
        return lnt_bind_unsupported_type(site, (lnt_dtype)in->dtype);
    lnt_bind_scratch(site, scratch_of_thread(in->dims[in->rank - 1]) * site->threads);
    site->step->run = run_det;
    return LNT_OK;
}
