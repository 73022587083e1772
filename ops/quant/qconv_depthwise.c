/* qconv_depthwise.c — int8 depthwise convolutions: one input and one output channel per group. The sums over the
 * taps of a run are computed by the level's kernel: qdepthwise.inc.h, or on ARM qdepthwise_neon.inc.h, compiled into
 * qgemm_LEVEL.c.
 *
 * Pixels all of whose taps lie inside the image are one run, read where they lie. At a border each pixel is a
 * run of its own. Taps outside the image point to a line of padding. */
#include "ops/quant/qconv.h"

#include "base/checked.h"
#include "base/lnt_assert.h"

#include <string.h>

enum { STRIP = 8 /* rows for which a kernel call prepares the weights once */ };

/* Pixels [*first, *end) of a row have all their taps along x inside the image. */
static void inner_pixels(const lnt_window *w, int64_t *first, int64_t *end)
{
    const int64_t last = w->in[2] - 1 - (w->kernel[2] - 1) * w->dilation[2] + w->before[2];
    *first = w->before[2] > 0 ? lnt_least((w->before[2] + w->stride[2] - 1) / w->stride[2], w->out[2]) : 0;
    *end = last < 0 ? 0 : lnt_least(last / w->stride[2] + 1, w->out[2]);
    *end = *end < *first ? *first : *end;
}

bool lnt_qconv_is_depthwise(const lnt_packed *record)
{
    return record->layout == LNT_LAYOUT_DEPTHWISE_I8;
}

static int64_t runs_of_row(const lnt_window *w)
{
    int64_t first, end;
    inner_pixels(w, &first, &end);
    return w->out[2] - (end - first) + (end > first);
}

/* A line as long as the taps of a run of outputs reach. */
static size_t padding_bytes(const lnt_qconv *p)
{
    const lnt_window *w = &p->w;
    const int64_t reach = (w->kernel[2] - 1) * w->dilation[2] + 1;
    return (size_t)(w->out[2] > 0 ? ((w->out[2] - 1) * w->stride[2] + reach) * p->channels : 0);
}

/* Taps of the pixel at (z, y, x) of an image. */
static void find_taps(const lnt_qconv_job *j, const uint8_t *image, int64_t z, int64_t y, int64_t x,
                      const uint8_t **tap)
{
    const lnt_window *w = &j->p->w;
    const int64_t channels = j->p->channels, along = w->dilation[2], columns = w->kernel[2], width = w->in[2],
                  left = lnt_window_at(w, 2, x, 0);
    for (int64_t tz = 0; tz < w->kernel[0]; tz++)
        for (int64_t ty = 0; ty < w->kernel[1]; ty++) {
            const int64_t iz = lnt_window_at(w, 0, z, tz), iy = lnt_window_at(w, 1, y, ty);
            const bool inside = iz >= 0 && iz < w->in[0] && iy >= 0 && iy < w->in[1];
            const uint8_t *padding = j->padding;
            int64_t ix = left, at = ((iz * w->in[1] + iy) * width + left) * channels;
            for (int64_t tx = 0; tx < columns; tx++, ix += along) {
                *tap++ = inside && ix >= 0 && ix < width ? image + at : padding;
                at += along * channels;
                padding += along * channels;
            }
        }
}

/* The runs of row (z, y) of an image, whose outputs begin at y_row; returns how many there are. */
static size_t find_runs(const lnt_qconv_job *j, const uint8_t *image, int64_t z, int64_t y, uint8_t *y_row,
                        lnt_qdepthwise_run *run, const uint8_t **tap)
{
    const lnt_qconv *p = j->p;
    const int64_t pixel = p->channels * (int64_t)lnt_qresult_bytes(j->result);
    int64_t first, end;
    size_t n = 0;
    inner_pixels(&p->w, &first, &end);
    for (int64_t x = 0; x < p->w.out[2]; n++, tap += p->taps) {
        find_taps(j, image, z, y, x, tap);
        run[n] = (lnt_qdepthwise_run){.tap = tap,
                                      .pixels = x == first && end > first ? (size_t)(end - first) : 1,
                                      .y = y_row + x * pixel};
        x += (int64_t)run[n].pixels;
    }
    return n;
}

/* Item: a strip of rows. */
static lnt_status convolve_strips(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_qconv_job *j = arg;
    const lnt_qconv *p = j->p;
    const lnt_window *w = &p->w;
    char *scratch = (char *)lnt_scratch(k, j->s) + p->thread_at + thread * p->thread_bytes;
    lnt_qdepthwise_run *run = (lnt_qdepthwise_run *)(void *)scratch;
    const uint8_t **tap = (const uint8_t **)(void *)(run + STRIP * runs_of_row(w));
    const int64_t plane = w->out[0] * w->out[1], rows = p->batch * plane;
    const int64_t pixel = p->channels * (int64_t)lnt_qresult_bytes(j->result);
    for (int64_t item = begin; item < end; item++) {
        lnt_qdepthwise d = {.w = j->packed,
                            .w_tap = (size_t)p->columns,
                            .taps = (size_t)p->taps,
                            .channels = (size_t)p->channels,
                            .step = (size_t)(w->stride[2] * p->channels),
                            .pixel = (size_t)pixel,
                            .run = run,
                            .flip = p->x_signed ? 0x80 : 0,
                            .acc_bias = j->requant.acc_bias,
                            .zeros = j->requant.zero,
                            .has_w_zero = j->requant.zeros,
                            .scale = j->requant.scale,
                            .bias = j->bias,
                            .result = j->result,
                            .low = j->low,
                            .high = j->high,
                            .zero = j->requant.y_zero,
                            .is_signed = p->y_signed};
        const int64_t top = item * p->strip, bottom = lnt_least(top + p->strip, rows);
        for (int64_t row = top; row < bottom; row++)
            d.runs += find_runs(j, j->images + row / plane * lnt_volume(w->in) * p->channels,
                                row % plane / w->out[1], row % w->out[1], j->y + row * w->out[2] * pixel,
                                run + d.runs, tap + d.runs * d.taps);
        p->plan.kernels->depthwise(&d);
        if (j->program)
            lnt_epilogue_run(j->program, k, j->s, (float *)(void *)(j->y + top * w->out[2] * pixel),
                             p->channels, j->first + top * w->out[2], (bottom - top) * w->out[2], 0,
                             p->channels);
    }
    return LNT_OK;
}

lnt_status lnt_qconv_run_filters(lnt_kernel *k, lnt_qconv_job *job)
{
    const lnt_qconv *p = job->p;
    LNT_ASSERT(p->strip > 0 && p->zeros_at < job->s->scratch_bytes);
    job->padding = memset((char *)lnt_scratch(k, job->s) + p->zeros_at,
                          (uint8_t)job->requant.x_zero ^ (p->x_signed ? 0x80 : 0), padding_bytes(p));
    const int64_t rows = p->batch * p->w.out[0] * p->w.out[1];
    const int64_t work = p->strip * p->w.out[2] * p->channels * p->taps;
    return lnt_parallel(k, (rows + p->strip - 1) / p->strip, 1 + 262144 / (work + 1), convolve_strips, job);
}

lnt_status lnt_qconv_run_depthwise(lnt_kernel *k, lnt_qconv_job *job)
{
    const lnt_qconv *p = job->p;
    char *scratch = lnt_scratch(k, job->s);
    uint8_t *y = job->y;
    job->images = lnt_in(k, job->s, 0);
    if (p->relayout_in.rank) {
        LNT_TRY(lnt_copy_run(k, &p->relayout_in, scratch + p->images_at, job->images));
        job->images = (uint8_t *)scratch + p->images_at;
    }
    if (p->relayout_out.rank)
        job->y = (uint8_t *)scratch + p->out_at;
    job->result = p->linear ? LNT_QRESULT_INT8 : LNT_QRESULT_INTS;
    LNT_TRY(lnt_qconv_run_filters(k, job));
    return p->relayout_out.rank ? lnt_copy_run(k, &p->relayout_out, y, job->y) : LNT_OK;
}

/* A copy of all of o from one order to the other; no axes where both are the same. */
static bool bind_relayout(const lnt_operand *o, lnt_order from, lnt_order to, lnt_copy *copy)
{
    lnt_operand here = *o, there = *o;
    int64_t src[LNT_MAX_RANK], dst[LNT_MAX_RANK];
    here.order = (uint8_t)from;
    there.order = (uint8_t)to;
    lnt_operand_strides(&here, src);
    lnt_operand_strides(&there, dst);
    lnt_copy_box(copy, lnt_dtype_size((lnt_dtype)o->dtype), o->rank, o->dims, dst, src);
    if (from == to || lnt_copy_is_plain(copy))
        copy->rank = 0;
    return copy->rank > 0;
}

void lnt_qconv_bind_filters(const lnt_site *site, lnt_qconv *p, size_t *scratch)
{
    const int64_t rows = p->batch * p->w.out[0] * p->w.out[1], runs = STRIP * runs_of_row(&p->w);
    p->plan.kernels = site->kernels->qgemm;
    const int64_t strips = site->threads > 1 ? 4 : 1; /* at least, to be shared */
    p->strip = rows / strips < 1 ? 1 : lnt_least(rows / strips, STRIP);
    p->zeros_at = lnt_qconv_reserve(scratch, padding_bytes(p));
    p->thread_bytes = lnt_round_up(
        (size_t)runs * (sizeof(lnt_qdepthwise_run) + (size_t)p->taps * sizeof(uint8_t *)), LNT_ALIGN);
    p->thread_at = lnt_qconv_reserve(scratch, p->thread_bytes * site->threads);
}

void lnt_qconv_bind_depthwise(const lnt_site *site, lnt_qconv *p, size_t *scratch)
{
    const lnt_operand *x = site->in[0], *y = site->out[0];
    if (bind_relayout(x, x->order, LNT_ORDER_CHANNELS_LAST, &p->relayout_in))
        p->images_at = lnt_qconv_reserve(scratch, (size_t)lnt_operand_count(x));
    if (bind_relayout(y, LNT_ORDER_CHANNELS_LAST, y->order, &p->relayout_out))
        p->out_at = lnt_qconv_reserve(scratch, lnt_known_bytes(y));
    lnt_qconv_bind_filters(site, p, scratch);
}
