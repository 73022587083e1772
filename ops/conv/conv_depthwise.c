/* conv_depthwise.c — Conv with one channel or a few per group: each group is filtered by itself.
 *
 * Rows of output pixels, or columns where rows are short, are cut into runs; a run's lines of the kernel are those
 * inside the image. Two rows that share lines go together where the level has a kernel for them. The image may be
 * computed line by line by a fused producer (ops/conv/row_fusion.h), as the expansion convolution of an inverted
 * residual block is. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/conv/conv.h"
#include "ops/conv/row_fusion.h"
#include "ops/conv/conv_kernels.h"
#include "ops/half_kernels.h"

enum {
    SLICED_BYTES = LNT_DEPTHWISE_SLICED_BYTES,
    SLICED_RUN = LNT_DEPTHWISE_SLICED_RUN,
    SLICE = LNT_DEPTHWISE_SLICE,
    BAND = LNT_DEPTHWISE_BAND,
    MOVED = 4 /* taps, about, take as long as a pixel to be read and stored */
};

typedef struct depthwise {
    lnt_conv g;
    lnt_conv_images images;
    lnt_conv_weights weights;
    lnt_store store;
    const lnt_conv_kernels *kernels;
    size_t element;               /* bytes of an element */
    const lnt_epilogue *epilogue; /* run with each run of pixels */
    unsigned along, across;       /* axes: of runs (2: rows; 1: columns), and of those beside each other */
    int64_t run, runs;            /* pixels in a run, runs in a row */
    int64_t slice, slices;        /* channels of a run; how many runs have them all */
    int64_t rows, bands;          /* of output pixels, of all images; cut into so many */
    int64_t together;             /* rows of a piece of work: 2 if they are computed in pairs */
    int64_t in_pixel, pixel;      /* floats of a pixel of input and output */
    size_t w_channel;             /* floats of one channel's weights for one tap, all features */
    lnt_row_fusion fusion;
} depthwise;

typedef struct depthwise_call {
    const depthwise *d;
    const lnt_step *step;
    const float *x, *w, *bias, *residual;
    float *y;
    int64_t pixels; /* at x, of all images or of a ring buffer */
    int64_t ld;     /* floats from pixel to pixel of y */
} depthwise_call;

/* Lines of the kernel that lie inside the image, for one row (or column) of output pixels. */
typedef struct line_list {
    const float *x[LNT_DEPTHWISE_LINES]; /* pixel 0 of the image's line */
    const float *w[LNT_DEPTHWISE_LINES];
    size_t n;
} line_list;

static bool is_single(const lnt_conv *g)
{
    return g->channels == 1 && g->features == 1;
}

/* Pixels of an image, or taps of the kernel, from one to the next along an axis. */
static int64_t apart(const int64_t extent[LNT_WINDOW_AXES], unsigned axis)
{
    return axis == 1 ? extent[2] : 1;
}

/* Where a pixel is, channels from n on. Rows without pixels have lines, too, of padding alone, which nobody reads. */
static const float *line_at(const depthwise_call *c, int64_t pixel, int64_t n)
{
    const int64_t at = c->pixels > 0 ? pixel % c->pixels : 0;
    return lnt_moved(c->x, at * c->d->in_pixel + n, lnt_element(c->d->element));
}

/* row: of all images' rows of output pixels; channels from n on. */
static void list_lines(const depthwise_call *c, int64_t row, int64_t n, line_list *list)
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
            list->x[list->n] = line_at(c, pixel, n);
            list->w[list->n++] =
                lnt_moved(c->w, tap * d->g.channels * (int64_t)d->w_channel + n, lnt_element(d->element));
        }
}

/* The output pixel at position x of a row. */
static int64_t pixel_at(const depthwise *d, int64_t row, int64_t x)
{
    const int64_t *out = d->g.w.out, rows = out[d->across];
    return row / rows * out[1] * out[2] + row % rows * apart(out, d->across) + x * apart(out, d->along);
}

/* All lines of rows `row` and row + 1; those outside the image are NULL. */
static void list_pair(const depthwise_call *c, int64_t row, int64_t n, line_list *list)
{
    const depthwise *d = c->d;
    const lnt_window *w = &d->g.w;
    const int64_t rows = w->out[d->across], image = row / rows,
                  first = lnt_window_at(w, d->across, row % rows, 0);
    const int64_t kernel = w->kernel[d->across], lines = kernel + w->stride[d->across];
    list->n = (size_t)kernel;
    for (int64_t l = 0; l < lines; l++) {
        const int64_t at = first + l, pixel = image * w->in[1] * w->in[2] + at * apart(w->in, d->across);
        const bool inside = at >= 0 && at < w->in[d->across];
        list->x[l] = inside ? line_at(c, pixel, n) : NULL;
        if (l < kernel)
            list->w[l] = lnt_moved(c->w, l * apart(w->kernel, d->across) * (int64_t)d->w_channel + n,
                                   lnt_element(d->element));
    }
}

/* Pixels [x, stop) of a row, or of a pair of them, channels from n on. */
static void part_of_row(const depthwise_call *c, int64_t row, bool pair, int64_t x, int64_t stop, int64_t n,
                        int64_t channels)
{
    const depthwise *d = c->d;
    const lnt_window *w = &d->g.w;
    const unsigned along = d->along;
    const int64_t out = pixel_at(d, row, x) * c->ld + n;
    line_list lines;
    if (pair)
        list_pair(c, row, n, &lines);
    else
        list_lines(c, row, n, &lines);
    const lnt_depthwise args = {
        .line = lines.x,
        .w = lines.w,
        .lines = lines.n,
        .taps = (size_t)w->kernel[along],
        .first = (ptrdiff_t)(x * w->stride[along] - w->before[along]),
        .width = (ptrdiff_t)w->in[along],
        .stride = (ptrdiff_t)w->stride[along],
        .spacing = (ptrdiff_t)w->dilation[along],
        .in_pixel = (size_t)(apart(w->in, along) * d->in_pixel),
        .pixel = (size_t)(apart(w->out, along) * c->ld),
        .w_tap = (ptrdiff_t)(apart(w->kernel, along) * d->g.channels) * (ptrdiff_t)d->w_channel,
        .pixels = (size_t)(stop - x),
        .channels = (size_t)channels,
        .features = is_single(&d->g) ? 0 : (size_t)d->g.features,
        .group_channels = (size_t)d->g.channels,
        .w_channel = d->w_channel,
        .row = (size_t)(apart(w->out, d->across) * c->ld),
        .c = lnt_moved(c->y, out, lnt_element(d->element)),
        .residual = c->residual ? lnt_moved(c->residual, out, lnt_element(d->element)) : NULL,
        .bias = c->bias ? c->bias + n : NULL,
        .low = d->store.low,
        .high = d->store.high};
    (pair ? d->kernels->depthwise_pair : d->kernels->depthwise)(&args);
}

/* Run `run` of rows [row, row_end), slice `slice` of their channels. */
static void run_piece(lnt_kernel *k, const depthwise_call *c, int64_t row, int64_t row_end, int64_t run,
                      int64_t slice)
{
    const depthwise *d = c->d;
    const int64_t length = d->g.w.out[d->along], x = run * d->run, n = slice * d->slice;
    const int64_t stop = x + d->run < length ? x + d->run : length;
    const int64_t channels = n + d->slice < d->pixel ? d->slice : d->pixel - n;
    for (; row < row_end; row++) {
        const bool pair = d->together == 2 && row + 2 <= row_end && (row + 1) % d->g.w.out[d->across] != 0;
        part_of_row(c, row, pair, x, stop, n, channels);
        for (int64_t r = row; d->epilogue && r <= row + pair; r++)
            lnt_epilogue_run(d->epilogue, k, c->step,
                             lnt_moved(c->y, (r * length + x) * c->ld + n, lnt_element(d->element)), c->ld,
                             r * length + x, stop - x, n, channels);
        row += pair;
    }
}

/* Pieces of a band, of one row or `together`. */
static int64_t most_pieces(const depthwise *d)
{
    const int64_t rows = (d->rows + d->bands - 1) / d->bands;
    return (rows + d->together - 1) / d->together;
}

/* Bands of rows, of each the slices one after the other, of each the pieces. */
static lnt_status run_items(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    const depthwise_call *c = arg;
    const depthwise *d = c->d;
    const int64_t most = most_pieces(d);
    for (int64_t item = begin; item < end; item++) {
        const int64_t piece = item / d->runs, slice = piece / most % d->slices,
                      band = piece / most / d->slices;
        const int64_t row = lnt_cut(d->rows, d->bands, band) + piece % most * d->together;
        const int64_t row_end = row + d->together, band_end = lnt_cut(d->rows, d->bands, band + 1);
        run_piece(k, c, row, row_end < band_end ? row_end : band_end, item % d->runs, slice);
    }
    return LNT_OK;
}

static lnt_status run_fused(lnt_kernel *k, const void *arg, const float *ring, int64_t image, int64_t row,
                            int64_t row_end, unsigned thread)
{
    depthwise_call c = *(const depthwise_call *)arg;
    const depthwise *d = c.d;
    (void)thread;
    c.x = ring;
    c.pixels = d->fusion.ring_lines * d->g.w.in[2];
    for (int64_t slice = 0; slice < d->slices; slice++)
        for (int64_t r = row; r < row_end; r += d->together)
            for (int64_t run = 0; run < d->runs; run++) {
                const int64_t first = image * d->g.w.out[1] + r, left = row_end - r;
                run_piece(k, &c, first, first + (left < d->together ? left : d->together), run, slice);
            }
    return LNT_OK;
}

static lnt_status run_depthwise(lnt_kernel *k, const lnt_step *s)
{
    const depthwise *d = s->params;
    LNT_ASSERT(d->run > 0 && d->slice > 0 && d->runs > 0 && d->slices > 0);
    depthwise_call c = {.d = d, .step = s, .ld = lnt_conv_out_pixel(s)};
    if (!d->fusion.producer)
        LNT_TRY(lnt_conv_input(k, s, &d->images, &c.x));
    const void *weights;
    LNT_TRY(lnt_conv_packed_weights(k, s, &d->weights, &weights));
    c.w = weights;
    c.y = lnt_conv_output(k, s, &d->images);
    if (d->store.bias >= 0)
        c.bias = lnt_in(k, s, (unsigned)d->store.bias);
    if (d->store.residual >= 0)
        c.residual = lnt_in(k, s, (unsigned)d->store.residual);
    const int64_t taps = lnt_volume(d->g.w.kernel) + MOVED;
    const int64_t work = d->run * d->together * d->slice * d->g.channels * taps + 1;
    c.pixels = d->g.batch * lnt_volume(d->g.w.in);
    const int64_t items = d->bands ? d->bands * most_pieces(d) * d->slices * d->runs : 0;
    const int64_t grain = LNT_DEPTHWISE_SHARED_WORK / work + 1;
    LNT_TRY(d->fusion.producer
                ? lnt_row_fusion_run(k, s, &d->fusion, &d->g.w, grain / (d->runs * d->slices), run_fused, &c)
                : lnt_parallel(k, items, grain, run_items, &c));
    return lnt_conv_finish(k, s, &d->images, d->epilogue ? NULL : d->store.program);
}

/* ---- bind ---- */

/* Threads that cannot have as many of a few rows as each other share the channels of all. */
static bool shares_channels(const lnt_site *site, const depthwise *d)
{
    const int64_t threads = site->threads;
    return d->rows <= BAND && d->rows % threads && d->rows > 1 && d->pixel >= threads * SLICE &&
           is_single(&d->g);
}

/* Pixels of a run: of the only row that there is, threads share the pixels, as what comes before and after does. */
static int64_t run_of(const lnt_site *site, const depthwise *d, int64_t terms)
{
    const int64_t length = d->g.w.out[d->along],
                  run = LNT_DEPTHWISE_RUN_WORK / (terms * d->pixel) / 8 * 8 + 8;
    return d->rows > 1 ? run : lnt_least(run, (int64_t)lnt_round_up((size_t)(length / site->threads + 1), 8));
}

/* Rows in pairs, where each thread gets some. */
static int64_t rows_together(const lnt_site *site, const depthwise *d)
{
    const lnt_window *w = &d->g.w;
    const unsigned along = d->along, across = d->across;
    const bool pairs = d->kernels->depthwise_pair && is_single(&d->g) && w->kernel[0] == 1 &&
                       w->out[0] == 1 && w->in[along] > 0 && w->stride[along] == w->stride[across] &&
                       w->dilation[across] == 1 &&
                       lnt_depthwise_pairs((size_t)w->kernel[across], (size_t)w->kernel[along],
                                           (ptrdiff_t)w->stride[along], (ptrdiff_t)w->dilation[along]);
    return pairs && d->rows >= 4 * (int64_t)site->threads ? 2 : 1;
}

/* Each thread gets as many slices of bands. */
static int64_t bands_of(const lnt_site *site, const depthwise *d)
{
    const int64_t threads = site->threads, bands = (d->rows + BAND - 1) / BAND,
                  even = (bands + threads - 1) / threads * threads;
    if (d->slices == 1 || d->rows < even)
        return d->together == 2 ? (d->rows + 1) / 2 : d->rows;
    return bands * d->slices % threads ? even : bands;
}

/* Channels of a slice. Where runs of all channels are short, a pixel is read again for each of its
 * neighbors: then some channels of whole rows, whose lines stay in the first-level cache. But not where
 * pixels are so far apart that those share a few of its sets. */
static int64_t slice_of(const depthwise *d)
{
    const lnt_window *w = &d->g.w;
    const int64_t bytes = d->in_pixel * (int64_t)lnt_element(d->element),
                  reach = (w->kernel[1] - 1) * w->dilation[1] + 1;
    if (d->epilogue || d->run > 8 || w->out[2] <= 8 || d->along != 2 || !is_single(&d->g) ||
        (bytes & -bytes) >= 1024)
        return d->pixel;
    const int64_t width = w->in[2] < SLICED_RUN * w->stride[2] ? w->in[2] : SLICED_RUN * w->stride[2];
    const int64_t slice = SLICED_BYTES / (reach * width * (int64_t)lnt_element(d->element)) / SLICE * SLICE;
    return slice < SLICE ? SLICE : slice < d->pixel ? slice : d->pixel;
}

lnt_status lnt_conv_bind_depthwise(lnt_site *site, const lnt_conv *g, const lnt_store *store)
{
    const lnt_window *w = &g->w;
    const int64_t terms = lnt_volume(w->kernel) * g->channels;
    depthwise *d = lnt_bind_params(site, sizeof *d);
    if (!d)
        return LNT_E_MEMORY;
    d->g = *g;
    d->kernels = site->half ? site->kernels->half->conv : site->kernels->conv;
    d->element = lnt_site_element(site);
    size_t scratch = 0;
    LNT_TRY(lnt_conv_bind_images(site, g, NULL, &d->images, &scratch));
    LNT_TRY(lnt_conv_bind_floats(site, g, &d->weights, &scratch));
    d->store = *store;
    d->epilogue = site->out[0]->order == LNT_ORDER_CHANNELS_LAST ? d->store.program : NULL;
    d->in_pixel = g->groups * g->channels;
    d->pixel = g->groups * g->features;
    d->w_channel = lnt_round_up((size_t)d->pixel, LNT_PANEL);
    const bool columns = w->out[2] < LNT_DEPTHWISE_SHORT_ROW && w->out[1] > w->out[2] && is_single(g) &&
                         !d->epilogue && w->kernel[0] * w->kernel[2] <= LNT_DEPTHWISE_LINES;
    d->along = columns ? 1 : 2;
    d->across = columns ? 2 : 1;
    d->rows = g->batch * w->out[0] * w->out[d->across];
    const int64_t length = w->out[d->along];
    d->run = run_of(site, d, terms);
    d->slice = slice_of(d);
    if (d->slice < d->pixel)
        d->run = SLICED_RUN;
    else if (shares_channels(site, d))
        d->slice = (int64_t)lnt_round_up((size_t)(d->pixel / site->threads), SLICE);
    d->slices = (d->pixel + d->slice - 1) / d->slice;
    d->together = rows_together(site, d);
    d->bands = bands_of(site, d);
    if (d->run > length)
        d->run = length > 0 ? length : 1;
    d->runs = (length + d->run - 1) / d->run;
    if (d->along == 2 && !d->images.relayout_out && !d->weights.pack)
        lnt_bind_row_fusion(site, w, d->together, &d->fusion, &scratch);
    lnt_bind_scratch(site, scratch);
    lnt_conv_bind_pitched(site, &d->store);
    site->step->run = run_depthwise;
    return LNT_OK;
}
