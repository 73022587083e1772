/* conv_depthwise.c — Conv with one channel per group: each channel is filtered by itself.
 *
 * Rows of output pixels are cut into runs. Inside, all taps exist and several pixels go at once; at the
 * border the taps that exist are listed for each pixel. */
#include "base/checked.h"
#include "ops/conv.h"
#include "ops/gemm.h"

enum { RUN_WORK = 32 * 1024 /* multiply-adds in a run of pixels */ };

typedef struct depthwise {
    lnt_conv g;
    lnt_conv_images images;
    lnt_conv_weights weights;
    lnt_store store;
    const lnt_gemm_kernels *kernels;
    const lnt_epilogue *epilogue; /* run with each run of pixels */
    int64_t run, runs;            /* pixels in a run, runs in a row */
    int64_t inner[2];             /* positions along x where all taps exist */
    size_t w_tap;
} depthwise;

typedef struct depthwise_call {
    const depthwise *d;
    const lnt_step *step;
    const float *x, *w, *bias, *residual;
    float *y;
} depthwise_call;

/* Taps of a window that lie inside the image: offsets from the pixel under the first one, numbers. */
typedef struct tap_list {
    ptrdiff_t offset[LNT_DEPTHWISE_TAPS];
    uint32_t tap[LNT_DEPTHWISE_TAPS];
    size_t n;
} tap_list;

/* o: output position; along x all taps are taken if whole_x. */
static void list_taps(const depthwise *d, const int64_t o[3], bool whole_x, tap_list *list)
{
    const lnt_window *w = &d->g.w;
    int64_t first[3], end[3];
    for (unsigned a = 0; a < 3; a++)
        lnt_window_taps(w, a, o[a], &first[a], &end[a]);
    if (whole_x)
        first[2] = 0, end[2] = w->kernel[2];
    list->n = 0;
    for (int64_t z = first[0]; z < end[0]; z++)
        for (int64_t y = first[1]; y < end[1]; y++)
            for (int64_t x = first[2]; x < end[2]; x++) {
                const int64_t lines = z * w->dilation[0] * w->in[1] + y * w->dilation[1];
                list->offset[list->n] = (ptrdiff_t)((lines * w->in[2] + x * w->dilation[2]) * d->g.groups);
                list->tap[list->n++] = (uint32_t)((z * w->kernel[1] + y) * w->kernel[2] + x);
            }
}

/* Computes n pixels from x of row `row` (of all images' rows) with the taps listed. */
static void pixels(const depthwise_call *c, const tap_list *taps, int64_t row, const int64_t o[3], int64_t x,
                   unsigned n)
{
    const depthwise *d = c->d;
    const lnt_window *w = &d->g.w;
    const int64_t image = row / (w->out[0] * w->out[1]), channels = d->g.groups;
    const int64_t line = (image * w->in[0] + o[0] * w->stride[0] - w->before[0]) * w->in[1] +
                         o[1] * w->stride[1] - w->before[1];
    const float *a[LNT_TILE_ROWS_MAX], *residual[LNT_TILE_ROWS_MAX];
    float *y[LNT_TILE_ROWS_MAX];
    for (unsigned i = 0; i < n; i++) {
        const int64_t out = (row * w->out[2] + x + i) * channels;
        a[i] = c->x + (line * w->in[2] + (x + i) * w->stride[2] - w->before[2]) * channels;
        y[i] = c->y + out;
        residual[i] = c->residual ? c->residual + out : NULL;
    }
    const lnt_depthwise args = {.a = a,
                                .c = y,
                                .residual = c->residual ? residual : NULL,
                                .tap_offset = taps->offset,
                                .tap = taps->tap,
                                .taps = taps->n,
                                .channels = (size_t)channels,
                                .w = c->w,
                                .w_tap = d->w_tap,
                                .bias = c->bias,
                                .low = d->store.low,
                                .high = d->store.high};
    d->kernels->depthwise[n](&args);
}

/* Pixels [x, end) of a row. */
static void run_of_pixels(const depthwise_call *c, int64_t row, int64_t x, int64_t end)
{
    const depthwise *d = c->d;
    const unsigned at_once = d->kernels->depthwise_pixels;
    int64_t o[3] = {row / d->g.w.out[1] % d->g.w.out[0], row % d->g.w.out[1], 0};
    tap_list whole, border;
    list_taps(d, o, true, &whole);
    while (x < end) {
        const bool inner = x >= d->inner[0] && x < d->inner[1];
        const int64_t left = (inner && d->inner[1] < end ? d->inner[1] : end) - x;
        const unsigned n = inner && left >= at_once ? at_once : 1;
        o[2] = x;
        if (!inner)
            list_taps(d, o, false, &border);
        pixels(c, inner ? &whole : &border, row, o, x, n);
        x += n;
    }
}

static lnt_status run_items(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    const depthwise_call *c = arg;
    const depthwise *d = c->d;
    const int64_t width = d->g.w.out[2], channels = d->g.groups;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item / d->runs, x = item % d->runs * d->run;
        const int64_t stop = x + d->run < width ? x + d->run : width;
        run_of_pixels(c, row, x, stop);
        if (d->epilogue)
            lnt_epilogue_run(d->epilogue, k, c->step, c->y + (row * width + x) * channels, channels,
                             row * width + x, stop - x, 0, channels);
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
    const int64_t work = d->run * d->g.groups * lnt_volume(d->g.w.kernel) + 1;
    LNT_TRY(lnt_parallel(k, rows * d->runs, RUN_WORK / work + 1, run_items, &c));
    return lnt_conv_finish(k, s, &d->images, d->epilogue ? NULL : d->store.program);
}

lnt_status lnt_conv_bind_depthwise(lnt_site *site, const lnt_conv *g)
{
    const lnt_window *w = &g->w;
    const int64_t taps = lnt_volume(w->kernel), width = w->out[2];
    depthwise *d = lnt_bind_params(site, sizeof *d);
    if (!d)
        return LNT_E_MEMORY;
    d->g = *g;
    d->kernels = site->kernels->gemm;
    size_t scratch = 0;
    lnt_conv_bind_images(site, &d->images, &scratch);
    LNT_TRY(lnt_conv_bind_weights(site, g, &d->weights, &scratch));
    LNT_TRY(
        lnt_bind_store(site, 1, lnt_own_input(site, 2) ? 2 : -1, lnt_conv_writes_output(site), &d->store));
    d->epilogue = site->out[0]->order == LNT_ORDER_CHANNELS_LAST ? d->store.program : NULL;
    d->w_tap = lnt_round_up((size_t)g->groups, LNT_PANEL);
    const int64_t last = w->in[2] - 1 - (w->kernel[2] - 1) * w->dilation[2] + w->before[2];
    d->inner[0] = (w->before[2] + w->stride[2] - 1) / w->stride[2];
    d->inner[1] = last < 0 ? 0 : last / w->stride[2] + 1;
    d->run = RUN_WORK / (taps * g->groups) / 4 * 4 + 4;
    if (d->run > width)
        d->run = width > 0 ? width : 1;
    d->runs = (width + d->run - 1) / d->run;
    lnt_bind_scratch(site, scratch);
    site->step->run = run_depthwise;
    return LNT_OK;
}
