/* conv_depthwise.c — Conv with one channel or a few per group: each group is filtered by itself.
 *
 * Rows of output pixels, or columns where rows are short, are cut into runs; a run's lines of the kernel are
 * those that lie inside the image. */
#include "base/checked.h"
#include "ops/conv.h"
#include "ops/gemm.h"

enum {
    RUN_WORK = 32 * 1024,    /* multiply-adds in a run of pixels */
    SHORT_ROW = 8,           /* pixels that are filtered together */
    SHARED_WORK = 128 * 1024 /* as many pay for pixels that go from one core's cache to another's */
};

typedef struct depthwise {
    lnt_conv g;
    lnt_conv_images images;
    lnt_conv_weights weights;
    lnt_store store;
    const lnt_gemm_kernels *kernels;
    const lnt_epilogue *epilogue; /* run with each run of pixels */
    unsigned along, across;       /* axes: of runs (2: rows; 1: columns), and of those beside each other */
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

/* Lines of the kernel that lie inside the image, for one row (or column) of output pixels. */
typedef struct line_list {
    const float *x[LNT_DEPTHWISE_LINES]; /* pixel 0 of the image's line */
    const float *w[LNT_DEPTHWISE_LINES];
    size_t n;
} line_list;

/* Pixels of an image, or taps of the kernel, from one to the next along an axis. */
static int64_t apart(const int64_t extent[LNT_WINDOW_AXES], unsigned axis)
{
    return axis == 1 ? extent[2] : 1;
}

/* row: of all images' rows of output pixels. */
static void list_lines(const depthwise_call *c, int64_t row, line_list *list)
{
    const depthwise *d = c->d;
    const lnt_window *w = &d->g.w;
    const int64_t rows = w->out[d->across], plane_row = row / rows;
    const int64_t image = plane_row / w->out[0], z0 = plane_row % w->out[0], at = row % rows;
    int64_t z, z_end, first, end;
    list->n = 0;
    lnt_window_taps(w, d->across, at, &first, &end);
    for (lnt_window_taps(w, 0, z0, &z, &z_end); z < z_end; z++)
        for (int64_t t = first; t < end; t++) {
            const int64_t plane = image * w->in[0] + lnt_window_at(w, 0, z0, z);
            const int64_t pixel =
                plane * w->in[1] * w->in[2] + lnt_window_at(w, d->across, at, t) * apart(w->in, d->across);
            const int64_t tap = z * w->kernel[1] * w->kernel[2] + t * apart(w->kernel, d->across);
            list->x[list->n] = c->x + pixel * d->in_pixel;
            list->w[list->n++] = c->w + (size_t)(tap * d->g.channels) * d->w_channel;
        }
}

/* The output pixel at position x of a row. */
static int64_t pixel_at(const depthwise *d, int64_t row, int64_t x)
{
    const int64_t *out = d->g.w.out, rows = out[d->across];
    return row / rows * out[1] * out[2] + row % rows * apart(out, d->across) + x * apart(out, d->along);
}

/* Pixels [x, stop) of a row. */
static void part_of_row(const depthwise_call *c, int64_t row, int64_t x, int64_t stop)
{
    const depthwise *d = c->d;
    const lnt_window *w = &d->g.w;
    const unsigned along = d->along;
    const int64_t out = pixel_at(d, row, x) * d->pixel;
    line_list lines;
    list_lines(c, row, &lines);
    const lnt_depthwise args = {.line = lines.x,
                                .w = lines.w,
                                .lines = lines.n,
                                .taps = (size_t)w->kernel[along],
                                .first = (ptrdiff_t)(x * w->stride[along] - w->before[along]),
                                .width = (ptrdiff_t)w->in[along],
                                .stride = (ptrdiff_t)w->stride[along],
                                .spacing = (ptrdiff_t)w->dilation[along],
                                .in_pixel = (size_t)(apart(w->in, along) * d->in_pixel),
                                .pixel = (size_t)(apart(w->out, along) * d->pixel),
                                .w_tap = (size_t)(apart(w->kernel, along) * d->g.channels) * d->w_channel,
                                .pixels = (size_t)(stop - x),
                                .channels = (size_t)d->pixel,
                                .features = d->pixel == d->g.groups ? 0 : (size_t)d->g.features,
                                .group_channels = (size_t)d->g.channels,
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
    const int64_t length = d->g.w.out[d->along];
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item / d->runs, x = item % d->runs * d->run;
        const int64_t stop = x + d->run < length ? x + d->run : length;
        part_of_row(c, row, x, stop);
        if (d->epilogue)
            lnt_epilogue_run(d->epilogue, k, c->step, c->y + (row * length + x) * d->pixel, d->pixel,
                             row * length + x, stop - x, 0, d->pixel);
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
    const int64_t rows = d->g.batch * d->g.w.out[0] * d->g.w.out[d->across];
    const int64_t work = d->run * d->pixel * d->g.channels * lnt_volume(d->g.w.kernel) + 1;
    LNT_TRY(lnt_parallel(k, rows * d->runs, SHARED_WORK / work + 1, run_items, &c));
    return lnt_conv_finish(k, s, &d->images, d->epilogue ? NULL : d->store.program);
}

lnt_status lnt_conv_bind_depthwise(lnt_site *site, const lnt_conv *g)
{
    const lnt_window *w = &g->w;
    const int64_t terms = lnt_volume(w->kernel) * g->channels;
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
    const bool columns = w->out[2] < SHORT_ROW && w->out[1] > w->out[2] && g->features == 1 && !d->epilogue &&
                         w->kernel[0] * w->kernel[2] <= LNT_DEPTHWISE_LINES;
    d->along = columns ? 1 : 2;
    d->across = columns ? 2 : 1;
    const int64_t length = w->out[d->along];
    d->run = RUN_WORK / (terms * d->pixel) / 8 * 8 + 8;
    if (d->run > length)
        d->run = length > 0 ? length : 1;
    d->runs = (length + d->run - 1) / d->run;
    lnt_bind_scratch(site, scratch);
    site->step->run = run_depthwise;
    return LNT_OK;
}
