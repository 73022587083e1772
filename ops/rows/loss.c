/* loss.c — NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/rows/row.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

enum { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM };

typedef struct loss {
    int64_t batch, classes, positions;
    unsigned reduction;
    bool softmax, ignores;
    int64_t ignore; /* targets that do not count */
} loss;

typedef struct loss_job {
    const loss *p;
    const void *x, *target, *weight;
    bool wide_targets; /* int64, else int32 */
    void *log_prob;
    double *weighted, *weights; /* scratch, one per position of the batch */
} loss_job;

#include "ops/real_float.h"
#include "ops/rows/loss.inc.h"
#include "ops/real_double.h"
#include "ops/rows/loss.inc.h"

static lnt_status run_loss(lnt_kernel *k, const lnt_step *s)
{
    const loss *p = s->params;
    LNT_ASSERT(p->batch >= 0 && p->positions >= 0 && p->classes >= 0);
    const int64_t items = p->batch * p->positions;
    const bool wide = s->in[0]->dtype == LNT_DOUBLE;
    double *scratch = lnt_scratch(k, s);
    loss_job job = {p,
                    lnt_in(k, s, 0),
                    lnt_in(k, s, 1),
                    lnt_in(k, s, 2),
                    s->in[1]->dtype == LNT_INT64,
                    lnt_out(k, s, 1),
                    scratch,
                    scratch + items};
    LNT_TRY(
        lnt_parallel(k, items, 1 + 1024 / (p->classes + 1), wide ? positions_double : positions_float, &job));
    if (wide)
        reduce_double(p, &job, lnt_out(k, s, 0));
    else
        reduce_float(p, &job, lnt_out(k, s, 0));
    return LNT_OK;
}

static unsigned reduction_of(const lnt_site *site)
{
    const char *name = lnt_attr_s(site->node, "reduction", "mean");
    return strcmp(name, "none") == 0 ? REDUCE_NONE : strcmp(name, "sum") == 0 ? REDUCE_SUM : REDUCE_MEAN;
}

lnt_status lnt_shape_loss(lnt_site *site)
{
    if (reduction_of(site) == REDUCE_NONE)
        lnt_set_dims_like(site, 0, site->in[1]);
    else
        lnt_set_dims(site, 0, 0, NULL);
    lnt_set_dims_like(site, 1, site->in[0]);
    return LNT_OK;
}

lnt_status lnt_bind_loss(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *target = site->in[1], *weight = lnt_input(site, 2);
    loss *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_REQUIRE(x->rank >= 2, site->err, LNT_E_SHAPE, "the input must have a batch and a class axis");
    *p = (loss){.batch = x->dims[0],
                .classes = x->dims[1],
                .positions = 1,
                .reduction = reduction_of(site),
                .softmax = site->node->op->id == LNT_ID_SoftmaxCrossEntropyLoss,
                .ignores = lnt_attr_find(site->node, "ignore_index") != NULL,
                .ignore = lnt_attr_i(site->node, "ignore_index", 0)};
    for (unsigned d = 2; d < x->rank; d++)
        p->positions *= x->dims[d];
    if (target->dtype != LNT_INT64 && target->dtype != LNT_INT32)
        return lnt_bind_unsupported_type(site, target->dtype);
    LNT_REQUIRE(lnt_operand_count(target) == p->batch * p->positions &&
                    (!weight || lnt_operand_count(weight) == p->classes),
                site->err, LNT_E_SHAPE, "target or weight do not fit the input");
    LNT_REQUIRE(p->classes > 0 || p->batch * p->positions == 0, site->err, LNT_E_SHAPE,
                "there are no classes");
    lnt_bind_scratch(site, (size_t)(p->batch * p->positions) * 2 * sizeof(double));
    site->step->run = run_loss;
    return lnt_bind_widened(site, 5, 3);
}
