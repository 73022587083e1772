/* batchnorm.c — BatchNormalization: each channel is shifted and scaled by statistics that are given, or in
 * training mode taken from the batch. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/rows/row.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

typedef struct batchnorm {
    const lnt_row_kernels *row;
    int64_t batch, channels, positions;
    bool channels_last, training;
    double epsilon, momentum;
} batchnorm;

typedef struct batchnorm_job {
    const batchnorm *p;
    const void *x, *scale, *bias, *mean, *variance;
    void *y, *mean_out, *variance_out;
    void *factor, *batch_mean, *batch_variance; /* scratch, [channels] each */
} batchnorm_job;

#include "ops/real_float.h"
#include "ops/rows/batchnorm.inc.h"
#include "ops/real_double.h"
#include "ops/rows/batchnorm.inc.h"

static lnt_status run_batchnorm(lnt_kernel *k, const lnt_step *s)
{
    LNT_ASSERT(s->in[0]->dtype == LNT_DOUBLE || s->in[0]->dtype == LNT_FLOAT);
    const batchnorm *p = s->params;
    batchnorm_job job = {.p = p,
                         .x = lnt_in(k, s, 0),
                         .scale = lnt_in(k, s, 1),
                         .bias = lnt_in(k, s, 2),
                         .mean = lnt_in(k, s, 3),
                         .variance = lnt_in(k, s, 4),
                         .y = lnt_out(k, s, 0),
                         .mean_out = lnt_out(k, s, 1),
                         .variance_out = lnt_out(k, s, 2),
                         .factor = lnt_scratch(k, s)};
    return s->in[0]->dtype == LNT_DOUBLE ? run_double(k, p, &job) : run_float(k, p, &job);
}

lnt_status lnt_shape_batchnorm(lnt_site *site)
{
    lnt_set_type(site, 0, site->in[0]->dtype);
    lnt_set_type(site, 1, site->in[3]->dtype);
    lnt_set_type(site, 2, site->in[4]->dtype);
    if (site->in[3]->rank != LNT_RANK_UNKNOWN)
        lnt_set_dims_like(site, 1, site->in[3]);
    if (site->in[4]->rank != LNT_RANK_UNKNOWN)
        lnt_set_dims_like(site, 2, site->in[4]);
    if (site->in[0]->rank == LNT_RANK_UNKNOWN)
        return LNT_UNKNOWN;
    lnt_set_dims_like(site, 0, site->in[0]);
    return LNT_OK;
}

lnt_status lnt_bind_batchnorm(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    batchnorm *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_REQUIRE(x->rank >= 1, site->err, LNT_E_SHAPE, "the input is a scalar");
    p->row = site->kernels->row;
    p->batch = x->rank > 1 ? x->dims[0] : 1;
    p->channels = x->rank > 1 ? x->dims[1] : x->dims[0];
    p->positions = 1;
    for (unsigned d = 2; d < x->rank; d++)
        p->positions *= x->dims[d];
    /* With one position a plain tensor is a channels-last one: rows of channels are longer. */
    p->channels_last = x->order == LNT_ORDER_CHANNELS_LAST || p->positions == 1;
    p->training = lnt_attr_i(site->node, "training_mode", 0) != 0;
    p->epsilon = (double)lnt_attr_f(site->node, "epsilon", 1e-5f);
    p->momentum = (double)lnt_attr_f(site->node, "momentum", 0.9f);
    for (unsigned i = 1; i < 5; i++)
        LNT_REQUIRE(lnt_operand_count(site->in[i]) == p->channels, site->err, LNT_E_SHAPE,
                    "input %u must hold one number per channel, %lld", i, (long long)p->channels);
    lnt_bind_scratch(site, (size_t)p->channels * (p->training ? 3 : 1) * sizeof(double));
    site->step->run = run_batchnorm;
    lnt_bind_in_place(site, 0, 0);
    return lnt_bind_widened(site, UINT32_MAX, UINT32_MAX);
}
