/* conv_planes.c — Conv between images in ONNX order: each plane of the output is made of one of the input, or of the
 * few of its group.
 *
 * The lines that a band of rows reads are copied with their padding into scratch memory: at stride 2 pixels with an
 * even index, then those with an odd one, so that what vectors of outputs meet is side by side. Lines that are between
 * those of a kernel of one line are not copied. Planes are one thread's, in its caches. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_kernels.h"

#include <math.h>
#include <string.h>

typedef struct planes {
    lnt_conv g;
    lnt_store store;
    const lnt_conv_kernels *kernels;
    int64_t count, bands; /* groups of all images; of a plane */
    int64_t band, line;   /* rows; floats of a line in scratch memory, */
    int64_t phase, lines; /* and of each phase of it; a channel has so many lines, */
    int64_t apart, step;  /* each so many of the image's behind the one before; lines from row to row */
    size_t *tap;          /* where all taps stand, in floats */
    size_t thread_bytes;
    const float *w; /* NULL: those of input 1 */
} planes;

typedef struct planes_call {
    const planes *p;
    const float *x, *w, *bias;
    float *y;
    char *scratch;
} planes_call;

/* Do rows of outputs meet the same lines? */
static bool shares_lines(const lnt_window *w)
{
    return w->stride[1] == 1 && w->stride[2] == 1;
}

/* `lines` lines of a plane from line y on, or padding. */
static void copy_lines(const planes *p, const float *plane, int64_t y, int64_t lines, float *to)
{
    const lnt_window *w = &p->g.w;
    const int64_t high = w->in[1], n = w->in[2], before = w->before[2], line = p->line;
    const int64_t above = y < 0 ? lnt_least(-y, lines) : 0,
                  end = lnt_least(lines, high > y ? (high - y + p->apart - 1) / p->apart : 0);
    const int64_t count = end > above ? end - above : 0, at_once = p->apart > 1 ? 1 : count;
    memset(to, 0, (size_t)(above * line) * sizeof *to);
    memset(to + (above + count) * line, 0, (size_t)((lines - above - count) * line) * sizeof *to);
    plane += (y + above) * n, to += above * line;
    for (int64_t i = 0; i < count; i += at_once, plane += p->apart * n, to += line)
        if (w->stride[2] == 2)
            p->kernels->plane_copy(plane, (size_t)n, (size_t)at_once, to + before % 2 * p->phase + before / 2,
                                   to + (before + 1) % 2 * p->phase + (before + 1) / 2, (size_t)line);
        else
            p->kernels->plane_copy(plane, (size_t)n, (size_t)at_once, to + before, NULL, (size_t)line);
}

/* Rows [row, row + rows) of each feature of group `at` of all images, of the lines at x. */
static void make_rows(const planes_call *c, int64_t at, int64_t row, int64_t rows, const float *x)
{
    const planes *p = c->p;
    const lnt_window *w = &p->g.w;
    const int64_t lines = w->kernel[1], taps = w->kernel[2], width = w->out[2],
                  depth = p->g.channels * lines * taps;
    const bool shares = shares_lines(w);
    const int64_t apart = shares ? w->dilation[1] : 1;
    lnt_plane plane = {.x_channel = (size_t)(p->lines * p->line),
                       .x_row = (size_t)(apart * p->step * p->line),
                       .tap = p->tap,
                       .x_line = shares ? (size_t)(apart * p->line) : 0,
                       .spacing = (size_t)w->dilation[2],
                       .channels = (size_t)p->g.channels,
                       .lines = (size_t)lines,
                       .taps = (size_t)taps,
                       .pixels = (size_t)width,
                       .c_row = (size_t)(apart * width),
                       .low = p->store.low,
                       .high = p->store.high};
    for (int64_t f = 0, feature = at % p->g.groups * p->g.features; f < p->g.features; f++, feature++)
        for (int64_t i = 0; i < apart && i < rows; i++) {
            plane.x = x + i * p->line;
            plane.w = c->w + feature * depth;
            plane.rows = (size_t)((rows - i + apart - 1) / apart);
            plane.c = c->y + ((at * p->g.features + f) * w->out[1] + row + i) * width;
            plane.bias = c->bias ? c->bias[feature] : 0;
            p->kernels->plane(&plane);
        }
}

static void run_band(const planes_call *c, int64_t at, int64_t row, int64_t rows, float *scratch)
{
    const planes *p = c->p;
    const lnt_window *w = &p->g.w;
    const int64_t lines = p->lines - (p->band - rows) * p->step;
    const float *x = c->x + at * p->g.channels * w->in[1] * w->in[2];
    for (int64_t k = 0; k < p->g.channels; k++, x += w->in[1] * w->in[2])
        copy_lines(p, x, row * w->stride[1] - w->before[1], lines, scratch + k * p->lines * p->line);
    make_rows(c, at, row, rows, scratch);
}

static lnt_status run_bands(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const planes_call *c = arg;
    const planes *p = c->p;
    float *scratch = (float *)(void *)(c->scratch + thread * p->thread_bytes);
    (void)k;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item % p->bands * p->band;
        run_band(c, item / p->bands, row, lnt_least(p->band, p->g.w.out[1] - row), scratch);
    }
    return LNT_OK;
}

static lnt_status run_planes(lnt_kernel *k, const lnt_step *s)
{
    const planes *p = s->params;
    LNT_ASSERT(k->threads * p->thread_bytes <= s->scratch_bytes && p->line >= p->g.w.in[2]);
    planes_call c = {p, lnt_in(k, s, 0), p->w, NULL, lnt_out(k, s, 0), lnt_scratch(k, s)};
    if (!c.w)
        c.w = lnt_in(k, s, 1);
    if (p->store.bias >= 0)
        c.bias = lnt_in(k, s, (unsigned)p->store.bias);
    memset(c.scratch, 0, k->threads * p->thread_bytes); /* beside what is copied it stays so */
    const int64_t work = p->band * p->g.w.out[2] * lnt_volume(p->g.w.kernel) * p->g.channels * p->g.features;
    LNT_TRY(lnt_parallel(k, p->count * p->bands, LNT_STEM_BAND_WORK / (work + 1) + 1, run_bands, &c));
    const lnt_conv_images none = {.element = sizeof(float)};
    return lnt_conv_finish(k, s, &none, p->store.program);
}

/* Lines in scratch memory; phases begin where vectors do, as loads of single lines are not shared. */
static bool plan_lines(const lnt_window *w, planes *p)
{
    const int64_t stride = w->stride[2];
    int64_t high, wide, beyond, floats;
    if (!lnt_mul_i64(w->kernel[1] - 1, w->dilation[1], &high) ||
        !lnt_mul_i64(p->band - 1, p->step, &p->lines) || !lnt_add_i64(p->lines + 1, high, &p->lines) ||
        !lnt_mul_i64(w->kernel[2] - 1, w->dilation[2], &wide) || wide > INT32_MAX || w->out[2] > INT32_MAX ||
        !lnt_mul_i64(LNT_PLANE_ROWS * w->dilation[1], w->stride[1], &beyond))
        return false;
    p->phase = wide / stride + stride - 1 + w->out[2];
    p->phase = !shares_lines(w) ? (int64_t)lnt_round_up((size_t)p->phase, LNT_PANEL) : p->phase;
    p->line = stride * p->phase;
    if (!lnt_mul_i64(p->lines, p->g.channels, &floats) || !lnt_add_i64(floats, beyond, &floats) ||
        !lnt_mul_i64(floats, p->line, &floats) || floats > INT32_MAX)
        return false;
    for (int64_t t = 0; t < lnt_volume(w->kernel); t++) {
        const int64_t at = t % w->kernel[2] * w->dilation[2];
        p->tap[t] =
            (size_t)(t / w->kernel[2] * w->dilation[1] * p->line + at % stride * p->phase + at / stride);
    }
    p->thread_bytes = lnt_round_up((size_t)(floats + LNT_PLANE_SLACK) * sizeof(float), LNT_ALIGN);
    return true;
}

lnt_status lnt_conv_bind_planes(lnt_site *site, const lnt_conv *g)
{
    const lnt_window *w = &g->w;
    planes *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->g = *g;
    p->kernels = site->kernels->conv;
    if (site->in[1]->packed)
        LNT_TRY(lnt_conv_plain_weights(site, &p->w));
    LNT_TRY(lnt_bind_store(site, 1, lnt_own_input(site, 2) ? 2 : -1, false, &p->store));
    p->band = lnt_least(w->out[1], LNT_PLANE_BAND_PIXELS / (g->channels * w->out[2] + 1) + 1);
    p->bands = p->band ? (w->out[1] + p->band - 1) / p->band : 0;
    p->count = g->batch * g->groups;
    p->tap = lnt_bump_alloc(site->memory, (size_t)lnt_volume(w->kernel) * sizeof *p->tap, site->err);
    if (!p->tap)
        return LNT_E_MEMORY;
    p->apart = w->kernel[1] == 1 && w->before[1] == 0 ? w->stride[1] : 1;
    p->step = w->stride[1] / p->apart;
    if (!plan_lines(w, p))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the dilated kernel is too large");
    lnt_bind_scratch(site, p->thread_bytes * site->threads);
    site->step->run = run_planes;
    return LNT_OK;
}
