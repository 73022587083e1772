/* qconv_panels.c — int8 convolutions as matrix products (implicit GEMM): a row of A is the receptive field of a
 * pixel. */
#include "ops/quant/qconv.h"

#include "base/checked.h"
#include "base/lnt_assert.h"

static void rows_of(const lnt_qgemm_call *call, int64_t group, lnt_qrow_set *set)
{
    const lnt_qconv_job *j = call->arg;
    const lnt_qimage *m = &j->p->images;
    lnt_qimage_rows(m, j->images, group, call->plan->columns, set);
    for (unsigned i = 0; j->requant.zeros && i < set->n; i++)
        set->sum[i] = lnt_qrow_sum(set->a[i], m->run_offset, m->runs, m->terms);
}

/* Transposes int8 outputs [n][16] from row `first` on to planes, one for each column. */
static void store_planes(const lnt_qconv_job *j, int64_t first, int64_t n, int64_t column, int64_t columns,
                         const uint8_t *bytes)
{
    const lnt_qconv *p = j->p;
    const int64_t plane = lnt_volume(p->w.out);
    for (int64_t left; n > 0; first += left, n -= left, bytes += left * LNT_QPANEL) {
        const int64_t image = first / plane, at = first % plane;
        left = plane - at < n ? plane - at : n;
        lnt_transpose_bytes(bytes, left, columns, LNT_QPANEL,
                            j->y + (image * p->filters + column) * plane + at, plane, 0);
    }
}

/* Requantization of so many columns from the start of a panel; the caller sets acc, y and out. */
static lnt_requantize_tile requantize_tile(const lnt_qgemm_call *call, const lnt_qrow_set *set, unsigned from,
                                           unsigned n, int64_t product, int64_t panel, unsigned columns)
{
    const lnt_qconv_job *j = call->arg;
    const lnt_qconv *p = j->p;
    const int64_t at = (product * call->plan->panels + panel) * LNT_QPANEL;
    return (lnt_requantize_tile){.rows = n,
                                 .columns = columns,
                                 .acc_bias = j->requant.acc_bias + at,
                                 .row = j->requant.zeros ? set->sum + from : NULL,
                                 .zeros = j->requant.zero + at,
                                 .scale = j->requant.scale + at,
                                 .slope = p->has_slope ? j->requant.slope + at : NULL,
                                 .floor = p->has_slope ? j->requant.floor + at : NULL,
                                 .zero = j->requant.y_zero,
                                 .is_signed = p->y_signed};
}

static bool requantize_of(const lnt_qgemm_call *call, const lnt_qrow_set *set, int64_t product, int64_t panel,
                          unsigned columns, lnt_requantize_tile *to)
{
    const lnt_qconv_job *j = call->arg;
    if (j->p->y_plain || j->p->has_slope || j->requant.zeros)
        return false;
    *to = requantize_tile(call, set, 0, set->n, product, panel, columns);
    to->y = j->y + panel * LNT_QPANEL;
    return true;
}

static void store_quantized(const lnt_qgemm_call *call, const lnt_qrow_set *set, unsigned from, unsigned n,
                            int64_t product, int64_t panel, int32_t *acc)
{
    const lnt_qconv_job *j = call->arg;
    const lnt_qconv *p = j->p;
    const int64_t first = panel * LNT_QPANEL, left = call->plan->columns - first,
                  columns = left < LNT_QPANEL ? left : LNT_QPANEL;
    uint8_t bytes[LNT_QROWS_MAX * LNT_QPANEL];
    int64_t dense[LNT_QROWS_MAX];
    for (unsigned i = 0; p->y_plain && i < n; i++)
        dense[i] = i * LNT_QPANEL;
    lnt_requantize_tile tile = requantize_tile(call, set, from, n, product, panel, (unsigned)columns);
    tile.acc = acc;
    tile.y = p->y_plain ? bytes : j->y + first;
    tile.out = p->y_plain ? dense : set->out + from;
    p->int8->store_requantized(&tile);
    if (p->y_plain)
        store_planes(j, set->first + from, n, product * call->plan->columns + first, columns, bytes);
}

/* ConvInteger: the accumulators themselves, in ONNX order. */
static void store_ints(const lnt_qgemm_call *call, const lnt_qrow_set *set, unsigned from, unsigned n,
                       int64_t product, int64_t panel, int32_t *acc)
{
    const lnt_qconv_job *j = call->arg;
    const lnt_qconv *p = j->p;
    const int64_t first = panel * LNT_QPANEL, at = (product * call->plan->panels + panel) * LNT_QPANEL;
    const int64_t left = call->plan->columns - first, columns = left < LNT_QPANEL ? left : LNT_QPANEL;
    const int64_t plane = lnt_volume(p->w.out), column = product * call->plan->columns + first;
    for (unsigned i = 0; i < n; i++) {
        const int64_t row = set->first + from + i, image = row / plane;
        const uint32_t total = j->requant.zeros ? (uint32_t)set->sum[from + i] : 0;
        int32_t *y = (int32_t *)(void *)j->y + (image * p->filters + column) * plane + row % plane;
        for (int64_t c = 0; c < columns; c++)
            y[c * plane] =
                (int32_t)((uint32_t)acc[i * LNT_QPANEL + c] + (uint32_t)j->requant.acc_bias[at + c] -
                          total * (uint32_t)j->requant.zero[at + c]);
    }
}

lnt_status lnt_qconv_run_panels(lnt_kernel *k, const lnt_qconv_job *job)
{
    LNT_ASSERT(!lnt_qconv_is_depthwise(&job->p->record));
    const lnt_qgemm_call call = {.plan = &job->p->plan, .step = job->s, .b = job->packed, .arg = job};
    return lnt_qgemm_run(k, &call);
}

void lnt_qconv_bind_panels(const lnt_site *site, lnt_qconv *p)
{
    lnt_qgemm_plan *plan = &p->plan;
    plan->row = site->kernels->row;
    plan->int8 = site->kernels->int8;
    plan->kernels = site->kernels->qgemm;
    plan->rows_of = rows_of;
    plan->store = p->linear ? store_quantized : store_ints;
    plan->requantize_of = p->linear ? requantize_of : NULL;
    lnt_qgemm_plan_weights(plan, &p->record, site->in[p->w_in]);
    lnt_qgemm_plan_runs(plan, p->images.run_offset, p->images.runs);
    plan->rows = p->batch * lnt_volume(p->w.out);
    plan->moved = p->images.direct && p->x_signed;
}
