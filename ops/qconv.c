/* qconv.c — convolutions of bytes: ConvInteger and QLinearConv, over 1 to 3 spatial axes, with groups.
 *
 * A row of outputs is summed tap by tap, exactly in int32. Padding holds the input's zero point, that is the
 * real number 0: taps there add nothing. */
#include "ops/op.h"

#include "base/checked.h"
#include "ops/quantise.h"
#include "ops/row.h"
#include "ops/window.h"

#include <string.h>

typedef struct qconv {
    const lnt_row_kernels *row;
    bool linear; /* QLinearConv: its operands are scaled, and so is the output */
    unsigned w_in, x_zero, w_zero;
    lnt_window w;
    int64_t batch, channels, filters, groups, taps;
    bool x_signed, w_signed;
    size_t thread_bytes; /* scratch: a row of sums */
} qconv;

typedef struct qconv_job {
    const qconv *p;
    const lnt_kernel *k;
    const lnt_step *s;
    const uint8_t *x, *w;
    int32_t x_zero;
    char *scratch;
} qconv_job;

/* Number i of operand o, which holds one for all or one per filter. */
static int64_t per_filter(const lnt_step *s, unsigned o, int64_t i)
{
    return o < s->n_in && s->in[o] && lnt_operand_count(s->in[o]) > 1 ? i : 0;
}

/* acc[o] += factor * (x[o * stride + shift] - zero) for every output that the tap finds inside the row. */
static void add_tap(const qconv *p, int32_t *acc, const uint8_t *x, int64_t shift, int32_t zero,
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
    for (int64_t o = low; o < end; o++) {
        const int32_t v = p->x_signed ? (int8_t)x[o * stride + shift] : x[o * stride + shift];
        acc[o] += factor * (v - zero);
    }
}

/* The sums of one row of outputs: filter f of an image, at (oz, oy). */
static void sum_row(const qconv_job *j, const uint8_t *x, int64_t f, int64_t oz, int64_t oy, int32_t *acc)
{
    const qconv *p = j->p;
    const lnt_window *w = &p->w;
    const int64_t depth = p->channels / p->groups, first = f / (p->filters / p->groups) * depth;
    const lnt_operand *zero = p->w_zero < j->s->n_in ? j->s->in[p->w_zero] : NULL;
    const int32_t w_zero = lnt_qint(zero, lnt_in(j->k, j->s, p->w_zero), per_filter(j->s, p->w_zero, f), 0);
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
                    const int32_t factor = (p->w_signed ? (int8_t)tap[t] : tap[t]) - w_zero;
                    if (factor)
                        add_tap(p, acc, row, t * w->dilation[2] - w->before[2], j->x_zero, factor);
                }
            }
    }
}

/* A row of sums of filter f to a row of outputs from element `at` on. */
static void store_row(const qconv_job *j, int32_t *acc, int64_t f, int64_t at)
{
    const qconv *p = j->p;
    const lnt_step *s = j->s;
    const int64_t n = p->w.out[2];
    const lnt_dtype type = s->out[0]->dtype;
    void *y = lnt_element_at(lnt_out(j->k, s, 0), type, at);
    if (!p->linear) {
        memcpy(y, acc, (size_t)n * sizeof *acc);
        return;
    }
    const float w_scale = lnt_qfloat(s->in[4], lnt_in(j->k, s, 4), per_filter(s, 4, f));
    const float scale = lnt_qstep_float(j->k, s, 1) * w_scale / lnt_qstep_float(j->k, s, 6);
    const int32_t bias = lnt_qint(s->n_in > 8 ? s->in[8] : NULL, lnt_in(j->k, s, 8), f, 0);
    const int32_t zero = lnt_qstep_int(j->k, s, 7);
    for (int64_t i = 0; i < n && bias; i++)
        acc[i] += bias;
    p->row->requantise(acc, y, n, scale, zero, type == LNT_INT8);
}

static lnt_status convolve_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const qconv_job *j = arg;
    const qconv *p = j->p;
    const lnt_window *w = &p->w;
    int32_t *acc = (int32_t *)(j->scratch + thread * p->thread_bytes);
    (void)k;
    for (int64_t item = begin; item < end; item++) {
        const int64_t oy = item % w->out[1], oz = item / w->out[1] % w->out[0];
        const int64_t plane = item / (w->out[1] * w->out[0]), f = plane % p->filters;
        const uint8_t *x = j->x + plane / p->filters * p->channels * w->in[0] * w->in[1] * w->in[2];
        sum_row(j, x, f, oz, oy, acc);
        store_row(j, acc, f, item * w->out[2]);
    }
    return LNT_OK;
}

static lnt_status run_qconv(lnt_kernel *k, const lnt_step *s)
{
    const qconv *p = s->params;
    qconv_job job = {
        p, k, s, lnt_in(k, s, 0), lnt_in(k, s, p->w_in), lnt_qstep_int(k, s, p->x_zero), lnt_scratch(k, s)};
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

lnt_status lnt_bind_qconv(lnt_site *site)
{
    qconv *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->w_in = weights_in(site);
    p->linear = p->w_in == 3;
    p->x_zero = 2;
    p->w_zero = p->linear ? 5 : 3;
    const lnt_operand *x = site->in[0], *weights = site->in[p->w_in], *bias = lnt_input(site, 8);
    if (!lnt_is_byte(x->dtype))
        return lnt_bind_unsupported_type(site, x->dtype);
    if (!lnt_is_byte(weights->dtype))
        return lnt_bind_unsupported_type(site, weights->dtype);
    if (p->linear && !lnt_is_byte(site->out[0]->dtype))
        return lnt_bind_unsupported_type(site, site->out[0]->dtype);
    LNT_TRY(lnt_window_with(site, weights->dims + 2, &p->w));
    p->row = site->kernels->row;
    p->batch = x->dims[0];
    p->channels = x->dims[1];
    p->filters = weights->dims[0];
    p->groups = lnt_attr_i(site->node, "group", 1);
    p->taps = p->w.kernel[0] * p->w.kernel[1] * p->w.kernel[2];
    p->x_signed = x->dtype == LNT_INT8;
    p->w_signed = weights->dtype == LNT_INT8;
    LNT_REQUIRE(p->groups > 0 && p->channels % p->groups == 0 && p->filters % p->groups == 0 &&
                    weights->dims[1] == p->channels / p->groups,
                site->err, LNT_E_SHAPE, "%lld channels and %lld filters of depth %lld in %lld groups",
                (long long)p->channels, (long long)p->filters, (long long)weights->dims[1],
                (long long)p->groups);
    LNT_REQUIRE(!p->linear || !bias || lnt_operand_count(bias) == p->filters, site->err, LNT_E_SHAPE,
                "the bias must hold one number per filter, %lld", (long long)p->filters);
    p->thread_bytes = lnt_round_up((size_t)p->w.out[2] * sizeof(int32_t), LNT_ALIGN);
    lnt_bind_scratch(site, p->thread_bytes * site->threads);
    site->step->run = run_qconv;
    return LNT_OK;
}
