/* groupnorm.c — GroupNormalization, and InstanceNormalization as its case of one channel per group: each
 * group of channels of each image is brought to mean 0 and variance 1, then each channel is scaled and
 * shifted. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/rows/row.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

enum { ROW_WIDTH = 256 }; /* elements that a row kernel is worth calling for */

typedef struct groupnorm {
    const lnt_row_kernels *row;
    int64_t batch, channels, positions, groups;
    double epsilon;
    bool channels_last;
    int64_t fold;        /* positions of channels-last images taken together: few channels are short rows */
    size_t thread_bytes; /* scratch for three rows of as many channels */
} groupnorm;

typedef struct groupnorm_job {
    const groupnorm *p;
    const void *x, *scale, *bias;
    void *y, *scratch;
} groupnorm_job;

#include "ops/real_float.h"
#include "ops/rows/groupnorm.inc.h"
#include "ops/real_double.h"
#include "ops/rows/groupnorm.inc.h"

static lnt_status run_groupnorm(lnt_kernel *k, const lnt_step *s)
{
    static const lnt_task_fn tasks[2][2] = {{groups_float, images_float}, {groups_double, images_double}};
    const groupnorm *p = s->params;
    LNT_ASSERT(s->in[0]->dtype == LNT_DOUBLE || s->in[0]->dtype == LNT_FLOAT);
    LNT_ASSERT(p->groups > 0 && p->channels % p->groups == 0);
    groupnorm_job job = {
        p, lnt_in(k, s, 0), lnt_in(k, s, 1), lnt_in(k, s, 2), lnt_out(k, s, 0), lnt_scratch(k, s)};
    const int64_t items = p->channels_last ? p->batch : p->batch * p->groups;
    if (p->channels * p->positions == 0)
        return LNT_OK;
    return lnt_parallel(k, items, 1, tasks[s->in[0]->dtype == LNT_DOUBLE][p->channels_last], &job);
}

lnt_status lnt_bind_groupnorm(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    groupnorm *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_REQUIRE(x->rank >= 2, site->err, LNT_E_SHAPE, "the input must have a batch and a channel axis");
    *p = (groupnorm){.row = site->kernels->row, .batch = x->dims[0], .channels = x->dims[1], .positions = 1};
    for (unsigned d = 2; d < x->rank; d++)
        p->positions *= x->dims[d];
    p->groups = lnt_attr_i(site->node, "num_groups", p->channels);
    p->epsilon = (double)lnt_attr_f(site->node, "epsilon", 1e-5f);
    p->channels_last = x->order == LNT_ORDER_CHANNELS_LAST && p->channels > 1;
    p->fold = p->channels > 0 ? lnt_least(ROW_WIDTH / p->channels, p->positions) : 0;
    p->fold = p->fold < 1 ? 1 : p->fold;
    LNT_REQUIRE(p->channels == 0 || (p->groups > 0 && p->channels % p->groups == 0), site->err,
                LNT_E_ARGUMENT, "%lld channels cannot be split into %lld groups", (long long)p->channels,
                (long long)p->groups);
    for (unsigned i = 1; i < 3; i++)
        LNT_REQUIRE(lnt_operand_count(site->in[i]) == p->channels, site->err, LNT_E_SHAPE,
                    "input %u must hold one number per channel, %lld", i, (long long)p->channels);
    if (p->channels_last) {
        p->thread_bytes = lnt_round_up((size_t)(p->channels * p->fold) * 3 * sizeof(double), LNT_ALIGN);
        lnt_bind_scratch(site, p->thread_bytes * site->threads);
    }
    site->step->run = run_groupnorm;
    lnt_bind_in_place(site, 0, 0);
    return lnt_bind_widened(site, UINT32_MAX, UINT32_MAX);
}
