/* qconv.c — convolutions of bytes: ConvInteger and QLinearConv, over 1 to 3 spatial axes, with groups.
 *
 * Groups of enough channels go by panels (qconv_panels.c). The others, depthwise above all, are done here: a
 * row of outputs is summed tap by tap, exactly in int32. Padding holds the input's zero point, that is the
 * real number 0. */
#include "ops/qconv.h"

#include "base/checked.h"

#include <string.h>

enum { STRIDED = 256 }; /* bytes picked at a time */

/* acc[o] += factor * (x[o * stride + shift] - zero) for every output that the tap finds inside the row. */
static void add_tap(const lnt_qconv *p, int32_t *acc, const uint8_t *x, int64_t shift, int32_t zero,
                    int32_t factor)
{
    const lnt_window *w = &p->w;
    const int64_t stride = w->stride[2], room = w->in[2] - shift;
    const int64_t low = shift < 0 ? (-shift + stride - 1) / stride : 0;
    const int64_t high = room <= 0 ? 0 : (room + stride - 1) / stride,
                  end = high < w->out[2] ? high : w->out[2];
    if (stride == 1 && low < end) {
        p->row->add_bytes(acc + low, x + low + shift, p->x_signed, zero, factor, end - low);
        return;
    }
    for (int64_t first = low; first < end; first += STRIDED) {
        const int64_t n = end - first < STRIDED ? end - first : STRIDED;
        const uint8_t *from = x + first * stride + shift;
        uint8_t found[STRIDED];
        for (int64_t i = 0; i < n; i++)
            found[i] = from[i * stride];
        p->row->add_bytes(acc + first, found, p->x_signed, zero, factor, n);
    }
}

/* The sums of one row of outputs: filter f of an image, at (oz, oy). */
static void sum_row(const lnt_qconv_job *j, const uint8_t *x, int64_t f, int64_t oz, int64_t oy, int32_t *acc)
{
    const lnt_qconv *p = j->p;
    const lnt_window *w = &p->w;
    const int64_t depth = p->channels / p->groups, first = f / (p->filters / p->groups) * depth;
    int64_t z0, z1, y0, y1;
    lnt_window_taps(w, 0, oz, &z0, &z1);
    lnt_window_taps(w, 1, oy, &y0, &y1);
    memset(acc, 0, (size_t)w->out[2] * sizeof *acc);
    for (int64_t c = 0; c < depth; c++) {
        const uint8_t *weights = j->w + (f * depth + c) * p->taps;
        for (int64_t tz = z0; tz < z1; tz++)
            for (int64_t ty = y0; ty < y1; ty++) {
                const int64_t iz = lnt_window_at(w, 0, oz, tz), iy = lnt_window_at(w, 1, oy, ty);
                const uint8_t *row = x + (((first + c) * w->in[0] + iz) * w->in[1] + iy) * w->in[2];
                const uint8_t *tap = weights + (tz * w->kernel[1] + ty) * w->kernel[2];
                for (int64_t t = 0; t < w->kernel[2]; t++) {
                    const int32_t factor = (p->w_signed ? (int8_t)tap[t] : tap[t]) - j->zero[f];
                    if (factor)
                        add_tap(p, acc, row, t * w->dilation[2] - w->before[2], j->x_zero, factor);
                }
            }
    }
}

/* n sums of filter f to the output from element `at` on. */
static void store_row(const lnt_qconv_job *j, int32_t *sums, int64_t n, int64_t f, int64_t at)
{
    const lnt_qconv *p = j->p;
    if (!p->linear) {
        memcpy((int32_t *)(void *)j->y + at, sums, (size_t)n * sizeof *sums);
        return;
    }
    for (int64_t i = 0; i < n && j->bias[f]; i++)
        sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)j->bias[f]);
    p->row->requantise(sums, j->y + at, n, j->scale[f], j->y_zero, j->y_signed);
}

static lnt_status convolve_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_qconv_job *j = arg;
    const lnt_qconv *p = j->p;
    const lnt_window *w = &p->w;
    int32_t *acc = (int32_t *)(j->scratch + p->thread_at + thread * p->thread_bytes);
    (void)k;
    for (int64_t item = begin; item < end; item++) {
        const int64_t oy = item % w->out[1], oz = item / w->out[1] % w->out[0];
        const int64_t plane = item / (w->out[1] * w->out[0]), f = plane % p->filters;
        const uint8_t *x = j->x + plane / p->filters * p->channels * w->in[0] * w->in[1] * w->in[2];
        sum_row(j, x, f, oz, oy, acc);
        store_row(j, acc, w->out[2], f, item * w->out[2]);
    }
    return LNT_OK;
}

/* Contents of input `in`, which holds one number for all filters or one for each. */
static const void *filters_in(const lnt_kernel *k, const lnt_step *s, unsigned in, const lnt_operand **o,
                              bool *each)
{
    *o = in < s->n_in ? s->in[in] : NULL;
    *each = *o && lnt_operand_count(*o) > 1;
    return lnt_in(k, s, in);
}

/* Scales, zero points and biases of all filters. */
static void fill_numbers(const lnt_kernel *k, const lnt_step *s, lnt_qconv_job *j)
{
    const lnt_qconv *p = j->p;
    const lnt_operand *zero, *scale = NULL, *bias = NULL;
    bool zeros, scales = false, biases = false;
    const void *zero_data = filters_in(k, s, p->w_zero, &zero, &zeros), *scale_data = NULL, *bias_data = NULL;
    float factor = 1;
    if (p->linear) {
        scale_data = filters_in(k, s, 4, &scale, &scales);
        bias_data = filters_in(k, s, 8, &bias, &biases);
        j->y_zero = lnt_qstep_int(k, s, 7);
        j->y_signed = s->out[0]->dtype == LNT_INT8;
    }
    for (int64_t f = 0; f < p->filters; f++) {
        j->zero[f] = lnt_qint(zero, zero_data, zeros ? f : 0, 0);
        j->bias[f] = 0;
        if (!p->linear)
            continue;
        factor = lnt_qfloat(scale, scale_data, scales ? f : 0);
        j->scale[f] = lnt_qstep_float(k, s, 1) * factor / lnt_qstep_float(k, s, 6);
        j->bias[f] = lnt_qint(bias, bias_data, biases ? f : 0, 0);
    }
}

static lnt_status run_qconv(lnt_kernel *k, const lnt_step *s)
{
    const lnt_qconv *p = s->params;
    char *scratch = lnt_scratch(k, s);
    float *numbers = (float *)(scratch + p->numbers_at);
    lnt_qconv_job job = {.p = p,
                         .s = s,
                         .x = lnt_in(k, s, 0),
                         .w = lnt_in(k, s, p->w_in),
                         .y = lnt_out(k, s, 0),
                         .x_zero = lnt_qstep_int(k, s, p->x_zero),
                         .scale = numbers,
                         .zero = (int32_t *)(numbers + p->filters),
                         .bias = (int32_t *)(numbers + 2 * p->filters),
                         .scratch = scratch};
    fill_numbers(k, s, &job);
    if (p->panels)
        return lnt_qconv_run_panels(k, &job);
    const int64_t rows = p->batch * p->filters * p->w.out[0] * p->w.out[1];
    const int64_t work = p->channels / p->groups * p->taps * p->w.out[2];
    return lnt_parallel(k, rows, 1 + 65536 / (work + 1), convolve_rows, &job);
}

static unsigned weights_in(const lnt_site *site)
{
    return site->node->op->id == LNT_ID_QLinearConv ? 3 : 1;
}

lnt_status lnt_shape_qconv(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *weights = site->in[weights_in(site)];
    int64_t dims[LNT_MAX_RANK] = {x->dims[0], weights->dims[0]};
    lnt_window w;
    lnt_set_type(site, 0, weights_in(site) == 3 ? (lnt_dtype)site->in[7]->dtype : LNT_INT32);
    if (x->rank == LNT_RANK_UNKNOWN || weights->rank == LNT_RANK_UNKNOWN)
        return LNT_UNKNOWN;
    LNT_REQUIRE(weights->rank == x->rank, site->err, LNT_E_SHAPE, "input has rank %u, weights %u", x->rank,
                weights->rank);
    LNT_TRY(lnt_window_with(site, weights->dims + 2, &w));
    for (unsigned d = 2; d < x->rank; d++)
        dims[d] = w.out[LNT_WINDOW_AXES + d - x->rank];
    lnt_set_dims(site, 0, x->rank, dims);
    return LNT_OK;
}

/* Types of the operands and whether their extents fit together. */
static lnt_status check_operands(lnt_site *site, const lnt_qconv *p)
{
    const lnt_operand *x = site->in[0], *weights = site->in[p->w_in];
    if (!lnt_is_byte(x->dtype))
        return lnt_bind_unsupported_type(site, x->dtype);
    if (!lnt_is_byte(weights->dtype))
        return lnt_bind_unsupported_type(site, weights->dtype);
    if (p->linear && !lnt_is_byte(site->out[0]->dtype))
        return lnt_bind_unsupported_type(site, site->out[0]->dtype);
    LNT_REQUIRE(p->groups > 0 && p->channels % p->groups == 0 && p->filters % p->groups == 0 &&
                    weights->dims[1] == p->channels / p->groups,
                site->err, LNT_E_SHAPE, "%lld channels and %lld filters of depth %lld in %lld groups",
                (long long)p->channels, (long long)p->filters, (long long)weights->dims[1],
                (long long)p->groups);
    for (unsigned i = p->linear ? 4 : p->w_zero; i < site->n_in; i += i == 5 ? 3 : 1) { /* 4, 5 and 8 */
        const int64_t n = lnt_input(site, i) ? lnt_operand_count(site->in[i]) : 1;
        LNT_REQUIRE((n == 1 && i != 8) || n == p->filters || !site->in[i], site->err, LNT_E_SHAPE,
                    "input %u must hold one number per filter, %lld", i, (long long)p->filters);
    }
    return LNT_OK;
}

lnt_status lnt_bind_qconv(lnt_site *site)
{
    lnt_qconv *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->w_in = weights_in(site);
    p->linear = p->w_in == 3;
    p->x_zero = 2;
    p->w_zero = p->linear ? 5 : 3;
    const lnt_operand *x = site->in[0], *weights = site->in[p->w_in];
    LNT_TRY(lnt_window_with(site, weights->dims + 2, &p->w));
    p->row = site->kernels->row;
    p->kernels = site->kernels->qgemm;
    p->batch = x->dims[0];
    p->channels = x->dims[1];
    p->filters = weights->dims[0];
    p->groups = lnt_attr_i(site->node, "group", 1);
    p->taps = p->w.kernel[0] * p->w.kernel[1] * p->w.kernel[2];
    p->x_signed = x->dtype == LNT_INT8;
    p->w_signed = weights->dtype == LNT_INT8;
    LNT_TRY(check_operands(site, p));
    site->step->run = run_qconv;
    p->thread_at = lnt_round_up((size_t)p->filters * 3 * sizeof(float), LNT_ALIGN);
    if (lnt_qconv_record(site->node, weights, &p->record))
        return lnt_qconv_bind_panels(site, p);
    p->thread_bytes = lnt_round_up((size_t)p->w.out[2] * sizeof(int32_t), LNT_ALIGN);
    lnt_bind_scratch(site, p->thread_at + p->thread_bytes * site->threads);
    return LNT_OK;
}
