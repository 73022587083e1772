/* conv_depthwise.c — Conv with one channel or a few per group: each group is filtered by itself.
 *
 * Rows of output pixels are cut into runs; a run's lines of the kernel are those that lie inside the image.
 */
#include "base/checked.h"
#include "ops/conv.h"
#include "ops/gemm.h"

enum {
    RUN_WORK = 32 * 1024,    /* multiply-adds in a run of pixels */
    SHARED_WORK = 128 * 1024 /* as many pay for pixels that go from one core's cache to another's */
};

typedef struct depthwise {
    lnt_conv g;
    lnt_conv_images images;
    lnt_conv_weights weights;
    lnt_store store;
    const lnt_gemm_kernels *kernels;
    const lnt_epilogue *epilogue; /* run with each run of pixels */
    int64_t run, runs;            /* pixels in a run, runs in a row */
    int64_t in_pixel, pixel;      /* floats of a pixel of input and output */
    size_t w_channel;             /* floats of one channel's weights for one tap, all features */
} depthwise;

typedef struct depthwise_call {
    const depthwise *d;
    const lnt_step *step;
    const float *x, *w, *bias, *residual;
    float *y;
} depthwise_call;

/* Lines of the kernel that lie inside the image, for one row of output pixels. */
typedef struct line_list {
    const float *x[LNT_DEPTHWISE_LINES]; /* pixel 0 of the image's line */
    const float *w[LNT_DEPTHWISE_LINES];
    size_t n;
} line_list;

/* row: of all images' rows of output pixels. */
static void list_lines(const depthwise_call *c, int64_t row, line_list *list)
{
    const depthwise *d = c->d;
    const lnt_window *w = &d->g.w;
    const int64_t image = row / (w->out[0] * w->out[1]), z0 = row / w->out[1] % w->out[0],
                  y0 = row % w->out[1];
    int64_t z, y, z_end, y_first, y_end;
    list->n = 0;
    lnt_window_taps(w, 1, y0, &y_first, &y_end);
    for (lnt_window_taps(w, 0, z0, &z, &z_end); z < z_end; z++)
        for (y = y_first; y < y_end; y++) {
            const int64_t plane = image * w->in[0] + z0 * w->stride[0] - w->before[0] + z * w->dilation[0];
            const int64_t line = plane * w->in[1] + y0 * w->stride[1] - w->before[1] + y * w->dilation[1];
            list->x[list->n] = c->x + line * w->in[2] * d->in_pixel;
            list->w[list->n++] =
                c->w + (size_t)((z * w->kernel[1] + y) * w->kernel[2] * d->g.channels) * d->w_channel;
        }
}

/* Pixels [x, stop) of a row. */
static void part_of_row(const depthwise_call *c, int64_t row, int64_t x, int64_t stop)
{
    const depthwise *d = c->d;
    const lnt_window *w = &d->g.w;
    const int64_t out = (row * w->out[2] + x) * d->pixel;
    line_list lines;
    list_lines(c, row, &lines);
    const lnt_depthwise args = {.line = lines.x,
                                .w = lines.w,
                                .lines = lines.n,
                                .taps = (size_t)w->kernel[2],
                                .first = (ptrdiff_t)(x * w->stride[2] - w->before[2]),
                                .width = (ptrdiff_t)w->in[2],
                                .stride = (ptrdiff_t)w->stride[2],
                                .spacing = (ptrdiff_t)w->dilation[2],
                                .pixel = (size_t)d->pixel,
                                .w_tap = (size_t)d->g.channels * d->w_channel,
                                .pixels = (size_t)(stop - x),
                                .channels = (size_t)d->pixel,
                                .features = d->pixel == d->g.groups ? 0 : (size_t)d->g.features,
                                .group_channels = (size_t)d->g.channels,
                                .in_pixel = (size_t)d->in_pixel,
                                .w_channel = d->w_channel,
                                .c = c->y + out,
                                .residual = c->residual ? c->residual + out : NULL,
                                .bias = c->bias,
                                .low = d->store.low,
                                .high = d->store.high};
    d->kernels->depthwise(&args);
}

static lnt_status run_items(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    const depthwise_call *c = arg;
    const depthwise *d = c->d;
    const int64_t width = d->g.w.out[2], pixel = d->pixel;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item / d->runs, x = item % d->runs * d->run;
        const int64_t stop = x + d->run < width ? x + d->run : width;
        part_of_row(c, row, x, stop);
        if (d->epilogue)
            lnt_epilogue_run(d->epilogue, k, c->step, c->y + (row * width + x) * pixel, pixel,
                             row * width + x, stop - x, 0, pixel);
    }
    return LNT_OK;
}

static lnt_status run_depthwise(lnt_kernel *k, const lnt_step *s)
{
    const depthwise *d = s->params;
    depthwise_call c = {.d = d, .step = s};
    LNT_TRY(lnt_conv_input(k, s, &d->images, &c.x));
    LNT_TRY(lnt_conv_packed_weights(k, s, &d->weights, &c.w));
    c.y = lnt_conv_output(k, s, &d->images);
    if (d->store.bias >= 0)
        c.bias = lnt_in(k, s, (unsigned)d->store.bias);
    if (d->store.residual >= 0)
        c.residual = lnt_in(k, s, (unsigned)d->store.residual);
    const int64_t *out = d->g.w.out, rows = d->g.batch * out[0] * out[1];
    const int64_t work = d->run * d->pixel * d->g.channels * lnt_volume(d->g.w.kernel) + 1;
    LNT_TRY(lnt_parallel(k, rows * d->runs, SHARED_WORK / work + 1, run_items, &c));
    return lnt_conv_finish(k, s, &d->images, d->epilogue ? NULL : d->store.program);
}

lnt_status lnt_conv_bind_depthwise(lnt_site *site, const lnt_conv *g)
{
    const lnt_window *w = &g->w;
    const int64_t terms = lnt_volume(w->kernel) * g->channels, width = w->out[2];
    depthwise *d = lnt_bind_params(site, sizeof *d);
    if (!d)
        return LNT_E_MEMORY;
    d->g = *g;
    d->kernels = site->kernels->gemm;
    size_t scratch = 0;
    LNT_TRY(lnt_conv_bind_images(site, g, NULL, &d->images, &scratch));
    LNT_TRY(lnt_conv_bind_weights(site, g, &d->weights, &scratch));
    LNT_TRY(
        lnt_bind_store(site, 1, lnt_own_input(site, 2) ? 2 : -1, lnt_conv_writes_output(site), &d->store));
    d->epilogue = site->out[0]->order == LNT_ORDER_CHANNELS_LAST ? d->store.program : NULL;
    d->in_pixel = g->groups * g->channels;
    d->pixel = g->groups * g->features;
    d->w_channel = lnt_round_up((size_t)d->pixel, LNT_PANEL);
    d->run = RUN_WORK / (terms * d->pixel) / 8 * 8 + 8;
    if (d->run > width)
        d->run = width > 0 ? width : 1;
    d->runs = (width + d->run - 1) / d->run;
    lnt_bind_scratch(site, scratch);
    site->step->run = run_depthwise;
    return LNT_OK;
}
