/* binarizer.c — Binarizer: 1 above a threshold, 0 elsewhere. */
#include "ops/op.h"

enum { GRAIN = 16384 }; /* elements of a slice */

typedef struct binarizer_job {
    const float *x;
    float *y;
    float threshold;
} binarizer_job;

static lnt_status binarize(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const binarizer_job *job = arg;
    for (int64_t i = begin; i < end; i++)
        job->y[i] = job->x[i] > job->threshold ? 1.0f : 0.0f;
    return LNT_OK;
}

static lnt_status run_binarizer(lnt_kernel *k, const lnt_step *s)
{
    binarizer_job job = {.x = lnt_in(k, s, 0), .y = lnt_out(k, s, 0), .threshold = *(const float *)s->params};
    return lnt_parallel(k, lnt_operand_count(s->in[0]), GRAIN, binarize, &job);
}

lnt_status lnt_bind_binarizer(lnt_site *site)
{
    if (site->in[0]->dtype != LNT_FLOAT)
        return lnt_bind_unsupported_type(site, (lnt_dtype)site->in[0]->dtype);
    float *threshold = lnt_bind_params(site, sizeof *threshold);
    if (!threshold)
        return LNT_E_MEMORY;
    *threshold = lnt_attr_f(site->node, "threshold", 0);
    site->step->run = run_binarizer;
    lnt_bind_in_place(site, 0, 0);
    return LNT_OK;
}
