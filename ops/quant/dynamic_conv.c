/* dynamic_conv.c — DynamicConv: a float convolution with int8 weights, which the quantizer makes of Conv.
 *
 *     Y = conv(X, W[f, ...] * scale[f]) + bias        W int8
 *
 * Each image is quantized to uint8 over its own range, zero included, channels-last. The padding is the
 * image's zero point. An image that is not finite gives NaN. Depthwise convolutions use the depthwise kernels. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/conv/conv.h"
#include "ops/gemm/gemm_driver.h"
#include "ops/quant/qconv.h"
#include "ops/quant/qgemm_driver.h"
#include "ops/product.h"

#include <string.h>

enum { IN_X, IN_W, IN_SCALE, IN_BIAS };
enum { CHUNK = 8192 }; /* floats whose range one item looks for */

typedef struct conv {
    lnt_conv g;
    lnt_conv_images images;
    lnt_store store;
    lnt_packed record;
    lnt_qimage quantized;
    bool pack;
    int64_t image, chunks; /* floats of an image; chunks of it */
    lnt_qgemm_plan plan;
    lnt_qconv filters; /* of a depthwise one, for one image */
    size_t ranges_at, qparams_at, zeros_at, bytes_at, padded_at, packed_at, requant_at; /* scratch */
} conv;

typedef struct conv_job {
    const conv *p;
    const float *x;
    float *range;         /* [batch][chunks][2] */
    lnt_qparams *qparams; /* [batch] */
    uint8_t *zeros;       /* [batch] */
    uint8_t *bytes;
    const uint8_t *rows; /* the images in the kernels' layout */
} conv_job;

static int64_t chunk_length(const conv *p, int64_t chunk)
{
    return p->image - chunk * CHUNK < CHUNK ? p->image - chunk * CHUNK : CHUNK;
}

static lnt_status find_ranges(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const conv_job *j = arg;
    const conv *p = j->p;
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t chunk = i % p->chunks, n = chunk_length(p, chunk);
        const float *x = j->x + i / p->chunks * p->image + chunk * CHUNK;
        j->range[2 * i] = p->plan.row->min(x, n);
        j->range[2 * i + 1] = p->plan.row->max(x, n);
    }
    return LNT_OK;
}

static void join_ranges(const conv_job *j)
{
    const conv *p = j->p;
    for (int64_t i = 0; i < p->g.batch; i++) {
        const float *range = j->range + i * p->chunks * 2;
        float low = 0, high = 0;
        for (int64_t c = 0; c < p->chunks; c++) {
            low = range[2 * c] >= low ? low : range[2 * c]; /* NaN stays, once it is there */
            high = range[2 * c + 1] <= high ? high : range[2 * c + 1];
            if (!(high - low < INFINITY))
                break;
        }
        j->qparams[i] = lnt_qparams_of(low, high);
        j->zeros[i] = (uint8_t)j->qparams[i].zero_point;
    }
}

static lnt_status quantize_chunks(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const conv_job *j = arg;
    const conv *p = j->p;
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / p->chunks, at = image * p->image + i % p->chunks * CHUNK;
        const lnt_qparams q = j->qparams[image];
        p->plan.int8->quantize(j->x + at, j->bytes + at, chunk_length(p, i % p->chunks), q.scale,
                               q.zero_point, false);
    }
    return LNT_OK;
}

static void rows_of(const lnt_qgemm_call *call, int64_t group, lnt_qrow_set *set)
{
    const conv_job *j = call->arg;
    const conv *p = j->p;
    const int64_t plane = lnt_volume(p->g.w.out);
    lnt_qimage_rows(&p->quantized, j->rows, group, p->g.features, set);
    for (unsigned i = 0; i < set->n; i++) {
        const lnt_qparams q = j->qparams[(set->first + i) / plane];
        set->scale[i] = q.scale;
        set->zero[i] = q.zero_point;
    }
}

/* ---- depthwise ---- */

/* Parameters of an image for all columns: scales, accumulator biases, bias. */
static void fill_requant(const lnt_kernel *k, const lnt_step *s, const lnt_qparams *image, lnt_qconv_job *job)
{
    const conv *p = s->params;
    const lnt_qconv *f = &p->filters;
    const size_t columns = (size_t)f->columns;
    const float *scale = lnt_in(k, s, IN_SCALE);
    const int32_t *sums = (const int32_t *)(const void *)(job->packed + lnt_packed_sums_at(&p->record));
    float *bias = (float *)(void *)((char *)lnt_scratch(k, s) + p->requant_at);
    memset(bias, 0, columns * 4 * sizeof *bias);
    job->bias = bias;
    job->requant.scale = bias + columns;
    job->requant.acc_bias = (int32_t *)(void *)(bias + 2 * columns);
    job->requant.zero = (int32_t *)(void *)(bias + 3 * columns);
    job->requant.x_zero = image->zero_point;
    if (p->store.bias >= 0)
        memcpy(bias, lnt_in(k, s, (unsigned)p->store.bias), (size_t)f->channels * sizeof *bias);
    for (int64_t i = 0; i < f->channels; i++) {
        job->requant.scale[i] = image->scale * scale[i];
        job->requant.acc_bias[i] = -image->zero_point * sums[i];
    }
}

static lnt_status run_filters(lnt_kernel *k, const lnt_step *s, const conv_job *j, const int8_t *weights,
                              float *y)
{
    const conv *p = j->p;
    const int64_t pixels = lnt_volume(p->g.w.out);
    lnt_qconv_job job = {.p = &p->filters,
                         .s = s,
                         .packed = weights,
                         .result = LNT_QRESULT_FLOATS,
                         .low = p->store.low,
                         .high = p->store.high,
                         .program = p->plan.epilogue};
    for (int64_t i = 0; i < p->g.batch; i++) {
        fill_requant(k, s, &j->qparams[i], &job);
        job.images = j->bytes + i * p->image;
        job.first = i * pixels;
        job.y = (uint8_t *)(y + i * pixels * p->filters.channels);
        LNT_TRY(lnt_qconv_run_filters(k, &job));
    }
    return LNT_OK;
}

static void bind_filters(const lnt_site *site, conv *p, size_t *scratch)
{
    lnt_qconv *f = &p->filters;
    f->w = p->g.w;
    f->batch = 1;
    f->channels = p->g.groups;
    f->taps = p->record.taps;
    f->columns = (int64_t)lnt_packed_panel_count(&p->record) * LNT_QPANEL;
    p->requant_at = lnt_qconv_reserve(scratch, (size_t)f->columns * 4 * sizeof(float));
    lnt_qconv_bind_filters(site, f, scratch);
}

/* ---- all ---- */

static lnt_status run_panels(lnt_kernel *k, const lnt_step *s, conv_job *j, const int8_t *weights, float *y)
{
    const conv *p = j->p;
    uint8_t *padded = (uint8_t *)lnt_scratch(k, s) + p->padded_at;
    j->rows = p->quantized.direct ? j->bytes : padded;
    if (!p->quantized.direct)
        LNT_TRY(lnt_qimage_fill(k, &p->quantized, j->bytes, j->zeros, padded));
    const lnt_qgemm_call call = {
        .plan = &p->plan,
        .step = s,
        .b = weights,
        .scales = lnt_in(k, s, IN_SCALE),
        .bias = p->store.bias >= 0 ? lnt_in(k, s, (unsigned)p->store.bias) : NULL,
        .c = y,
        .residual = p->store.residual >= 0 ? lnt_in(k, s, (unsigned)p->store.residual) : NULL,
        .arg = j};
    return lnt_qgemm_run(k, &call);
}

static lnt_status run_conv(lnt_kernel *k, const lnt_step *s)
{
    const conv *p = s->params;
    LNT_ASSERT(p->ranges_at < s->scratch_bytes && p->qparams_at < s->scratch_bytes);
    char *scratch = lnt_scratch(k, s);
    conv_job job = {.p = p,
                    .range = (float *)(void *)(scratch + p->ranges_at),
                    .qparams = (lnt_qparams *)(void *)(scratch + p->qparams_at),
                    .zeros = (uint8_t *)(scratch + p->zeros_at),
                    .bytes = (uint8_t *)(scratch + p->bytes_at)};
    LNT_TRY(lnt_conv_input(k, s, &p->images, &job.x));
    if (p->pack)
        LNT_TRY(lnt_gemm_pack(k, &p->record, LNT_INT8, lnt_in(k, s, IN_W), scratch + p->packed_at));
    LNT_TRY(lnt_parallel(k, p->g.batch * p->chunks, 4, find_ranges, &job));
    join_ranges(&job);
    LNT_TRY(lnt_parallel(k, p->g.batch * p->chunks, 2, quantize_chunks, &job));
    const int8_t *weights = p->pack ? (const int8_t *)scratch + p->packed_at : lnt_in(k, s, IN_W);
    float *y = lnt_conv_output(k, s, &p->images);
    LNT_TRY(lnt_qconv_is_depthwise(&p->record) ? run_filters(k, s, &job, weights, y)
                                               : run_panels(k, s, &job, weights, y));
    return lnt_conv_finish(k, s, &p->images, p->plan.epilogue ? NULL : p->store.program);
}

static lnt_status check_operands(lnt_site *site, const lnt_conv *g)
{
    const lnt_operand *x = site->in[IN_X], *w = site->in[IN_W], *scale = site->in[IN_SCALE],
                      *bias = lnt_own_input(site, IN_BIAS);
    const int64_t features = g->groups * g->features;
    if (x->dtype != LNT_FLOAT || w->dtype != LNT_INT8)
        return lnt_bind_unsupported_type(site, x->dtype != LNT_FLOAT ? x->dtype : w->dtype);
    LNT_REQUIRE(scale->dtype == LNT_FLOAT && lnt_operand_count(scale) == features &&
                    (!bias || (bias->dtype == LNT_FLOAT && lnt_operand_count(bias) == features)),
                site->err, LNT_E_SHAPE, "scale and bias must hold %lld floats", (long long)features);
    return LNT_OK;
}

static void bind_plan(lnt_site *site, conv *p)
{
    lnt_qgemm_plan *plan = &p->plan;
    plan->row = site->kernels->row;
    plan->int8 = site->kernels->int8;
    plan->kernels = site->kernels->qgemm;
    plan->rows_of = rows_of;
    plan->store = lnt_qstore_floats;
    lnt_qgemm_plan_weights(plan, &p->record, site->in[IN_W]);
    lnt_qgemm_plan_runs(plan, p->quantized.run_offset, p->quantized.runs);
    plan->rows = p->g.batch * lnt_volume(p->g.w.out);
    plan->low = p->store.low;
    plan->high = p->store.high;
    plan->epilogue = site->out[0]->order == LNT_ORDER_CHANNELS_LAST ? p->store.program : NULL;
    plan->epilogue_columns = p->g.features;
    plan->ld = p->g.groups * p->g.features;
}

lnt_status lnt_bind_dynamic_conv(lnt_site *site)
{
    conv *p = lnt_bind_params(site, sizeof *p);
    size_t scratch = 0, packed = 0;
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_conv_of(site, &p->g));
    LNT_TRY(check_operands(site, &p->g));
    LNT_REQUIRE(lnt_qconv_record(site->node, site->in[IN_W], &p->record) &&
                    lnt_packed_bytes(&p->record, &packed),
                site->err, LNT_E_UNSUPPORTED, "weights of these extents do not go by panels");
    p->pack = !site->in[IN_W]->packed;
    p->image = p->g.groups * p->g.channels * lnt_volume(p->g.w.in);
    p->chunks = (p->image + CHUNK - 1) / CHUNK;
    const bool depthwise = lnt_qconv_is_depthwise(&p->record);
    if (!depthwise)
        LNT_TRY(lnt_qimage_bind(site, &p->g.w, p->g.groups, LNT_ORDER_CHANNELS_LAST, false, &p->record, false,
                                &p->quantized));
    LNT_TRY(lnt_conv_bind_images(site, &p->g, NULL, &p->images, &scratch));
    LNT_TRY(lnt_bind_store(site, 1, lnt_own_input(site, IN_BIAS) ? IN_BIAS : -1,
                           !depthwise && lnt_conv_writes_output(site), &p->store));
    bind_plan(site, p);
    if (depthwise)
        bind_filters(site, p, &scratch);
    p->ranges_at = lnt_qconv_reserve(&scratch, (size_t)(p->g.batch * p->chunks) * 2 * sizeof(float));
    p->qparams_at = lnt_qconv_reserve(&scratch, (size_t)p->g.batch * sizeof(lnt_qparams));
    p->zeros_at = lnt_qconv_reserve(&scratch, (size_t)p->g.batch);
    p->bytes_at = lnt_qconv_reserve(&scratch, (size_t)(p->g.batch * p->image));
    p->padded_at = lnt_qconv_reserve(&scratch, p->quantized.bytes);
    p->packed_at = lnt_qconv_reserve(&scratch, p->pack ? packed : 0);
    lnt_bind_scratch(site, scratch);
    site->step->run = run_conv;
    return LNT_OK;
}

const lnt_product lnt_product_dynamic_conv = {1u << IN_W, NULL, lnt_qconv_record, lnt_conv_multiply_adds};
