/* qconv_panels.c — int8 convolutions as matrix products (implicit GEMM): a row of A is the receptive field of a
 * pixel. */
#include "ops/quant/qconv.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/vectorize.h"

#include <string.h>

static void rows_of(const lnt_qgemm_call *call, int64_t group, lnt_qrow_set *set)
{
    const lnt_qconv_job *j = call->arg;
    const lnt_qimage *m = &j->p->images;
    lnt_qimage_rows(m, j->images, group, call->plan->columns, set);
    for (unsigned i = 0; j->requant.zeros && i < set->n; i++)
        set->sum[i] = lnt_qrow_sum(call->plan->int8, set->a[i], m->run_offset, m->runs, m->terms);
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
    if (j->p->y_plain)
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
    uint8_t bytes[LNT_QROWS_BLOCK * LNT_QPANEL];
    int64_t dense[LNT_QROWS_BLOCK];
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

typedef int32_t quad __attribute__((vector_size(16)));

/* Four rows of a panel's accumulators, plus acc_bias, to columns `plane` apart. */
static void turn_quads(const int32_t *acc, const int32_t *acc_bias, int32_t *y, int64_t plane)
{
    quad a[4], b[4], bias;
    memcpy(&bias, acc_bias, sizeof bias);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        memcpy(&a[i], acc + i * LNT_QPANEL, sizeof a[i]);
        a[i] += bias;
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        b[2 * i] = __builtin_shufflevector(a[i], a[i + 2], 0, 4, 1, 5);
        b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 2], 2, 6, 3, 7);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        a[2 * i] = __builtin_shufflevector(b[i], b[i + 2], 0, 4, 1, 5);
        a[2 * i + 1] = __builtin_shufflevector(b[i], b[i + 2], 2, 6, 3, 7);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        memcpy(y + i * plane, &a[i], sizeof a[i]);
}

/* y[c * plane + r] = acc[r][c] + acc_bias[c]; the last squares begin early enough to be whole. */
static void turn_panel(const int32_t *acc, const int32_t *acc_bias, int64_t rows, int64_t columns, int32_t *y,
                       int64_t plane)
{
    if (rows < 4 || columns < 4) {
        for (int64_t c = 0; c < columns; c++)
            for (int64_t r = 0; r < rows; r++)
                y[c * plane + r] = (int32_t)((uint32_t)acc[r * LNT_QPANEL + c] + (uint32_t)acc_bias[c]);
        return;
    }
    for (int64_t i = 0; i < columns; i += 4) {
        const int64_t c = i + 4 <= columns ? i : columns - 4;
        for (int64_t j = 0; j < rows; j += 4) {
            const int64_t r = j + 4 <= rows ? j : rows - 4;
            turn_quads(acc + r * LNT_QPANEL + c, acc_bias + c, y + c * plane + r, plane);
        }
    }
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
    for (unsigned i = 0; j->requant.zeros && i < n; i++)
        LNT_INDEPENDENT for (int c = 0; c < LNT_QPANEL; c++) acc[i * LNT_QPANEL + c] =
            (int32_t)((uint32_t)acc[i * LNT_QPANEL + c] -
                      (uint32_t)set->sum[from + i] * (uint32_t)j->requant.zero[at + c]);
    for (int64_t i = 0, rows; i < n; i += rows) {
        const int64_t row = set->first + from + i, image = row / plane, pixel = row % plane;
        rows = plane - pixel < n - i ? plane - pixel : n - i;
        turn_panel(acc + i * LNT_QPANEL, j->requant.acc_bias + at, rows, columns,
                   (int32_t *)(void *)j->y + (image * p->filters + column) * plane + pixel, plane);
    }
}

/* ---- few quads: ConvInteger by planes ---- */

_Static_assert((int)LNT_QPLANE_ROWS <= (int)LNT_QROWS_BLOCK, "a row set describes them");

static int64_t plane_items(const lnt_qconv *p)
{
    return (lnt_volume(p->w.out) + LNT_QPLANE_ROWS - 1) / LNT_QPLANE_ROWS;
}

/* Quads are gathered for 16 columns at least. What that takes is less than transposing does where they are few. */
static bool goes_by_planes(const lnt_qconv *p)
{
    const int64_t quads = p->plan.row_bytes / 4, columns = p->plan.columns;
    return p->plan.kernels->planes && !p->linear && quads <= LNT_QPLANE_QUADS && 2 * quads <= columns &&
           lnt_volume(p->w.out) >= LNT_QPANEL;
}

/* Item: some pixels of an image, all filters of a group. */
static lnt_status run_plane_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_qconv_job *j = arg;
    const lnt_qconv *p = j->p;
    const lnt_qgemm_call call = {.plan = &p->plan, .arg = j};
    const int64_t items = plane_items(p), plane = lnt_volume(p->w.out), panels = p->plan.panels;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t image = item / items / p->groups, group = item / items % p->groups,
                      pixel = item % items * LNT_QPLANE_ROWS, column = group * panels * LNT_QPANEL;
        lnt_qrow_set set;
        set.first = image * plane + pixel;
        set.n = (unsigned)lnt_least(plane - pixel, LNT_QPLANE_ROWS);
        rows_of(&call, group, &set);
        p->plan.kernels->planes(&(lnt_qplanes){
            .a = set.a,
            .rows = set.n,
            .tap_offset = p->plan.run_offset,
            .taps = p->plan.runs,
            .quads = p->plan.row_bytes / 4 / p->plan.runs,
            .panels = j->packed + column * p->plan.row_bytes,
            .columns = (size_t)p->plan.columns,
            .acc_bias = j->requant.acc_bias + column,
            .zeros = j->requant.zero + column,
            .sums = j->requant.zeros ? set.sum : NULL,
            .y = (int32_t *)(void *)j->y + (image * p->filters + group * p->plan.columns) * plane + pixel,
            .plane = (ptrdiff_t)plane,
        });
    }
    return LNT_OK;
}

static lnt_status run_planes(lnt_kernel *k, const lnt_qconv_job *job)
{
    const lnt_qconv *p = job->p;
    const int64_t work = LNT_QPLANE_ROWS * p->plan.columns * (p->plan.row_bytes + LNT_QSTORE_WORK);
    lnt_qconv_job own = *job;
    return lnt_parallel(k, p->batch * p->groups * plane_items(p), 1 + LNT_QITEM_WORK / work, run_plane_rows,
                        &own);
}

lnt_status lnt_qconv_run_panels(lnt_kernel *k, const lnt_qconv_job *job)
{
    LNT_ASSERT(!lnt_qconv_is_depthwise(&job->p->record));
    if (LNT_QTILES_OF_INTEGERS && job->p->planes)
        return run_planes(k, job);
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
    plan->epilogue_columns = p->y_plain ? 0 : plan->columns;
    plan->moved = p->images.direct && p->x_signed;
    p->planes = LNT_QTILES_OF_INTEGERS && goes_by_planes(p);
}
