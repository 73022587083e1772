/* conv_stem.c — Conv of few channels, as a model's first one, or of few features, as its last ones.
 *
 * The input lines of a band of output rows are copied with their padding into scratch memory, from either storage
 * order; there each tap of each channel has a constant offset from the pixel. Kernels of one tap (1x1) need no copy:
 * all pixels are one run, read in place.
 *
 * If the output is in ONNX order, there may be more channels, and groups, each an image by itself; vectors hold
 * pixels: the lines in scratch memory are de-interleaved by stride phase (x modulo the stride), so that every tap reads
 * contiguous pixels. Of short lines what each tap along x meets is copied by itself, if it is not a phase already, and
 * lines are apart by their stride, too: rows of a band are one run. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_kernels.h"
#include "ops/gemm/gemm.h"
#include "ops/half_kernels.h"

#include <string.h>

enum { RUN_SLACK = 8 /* elements behind what a tap meets */ };

typedef struct stem {
    lnt_conv g;
    lnt_conv_weights weights;
    lnt_store store;
    const lnt_conv_kernels *kernels;
    size_t element;               /* bytes of an element */
    const lnt_epilogue *epilogue; /* run with each row of a band */
    bool direct;                  /* one tap: pixels are read in place, all in one row */
    int64_t band, runs;           /* rows of a band; bands side by side */
    int64_t rows, width, images;  /* of the output; images of all groups */
    int64_t levels;               /* images of each channel one behind the other: the first of three axes */
    int64_t planes, pixel;        /* of the input: planes of an image, floats of a pixel */
    int64_t lines, line, plane;   /* of a band in scratch memory: lines of a plane; floats of both */
    bool split;                   /* de-interleaved by stride phase: the output is in ONNX order */
    int64_t phase;                /* then: floats of one stride phase of a line */
    int64_t tap;                  /* floats of a band that a tap along x meets, or 0: rows are no run */
    int64_t turn;                 /* then: floats of those lines of it that are a stride apart */
    bool phased; /* each tap along x meets a stride phase, which lies `tap` floats from the next */
    uint32_t *offset;             /* [K] */
    size_t depth, band_at, thread_bytes;
} stem;

typedef struct stem_call {
    const stem *s;
    const lnt_step *step;
    const float *x, *b, *bias;
    float *y;
    int64_t y_first; /* pixels of the output before y */
    int64_t ld;      /* floats from one to the next */
    char *bands;
} stem_call;

/* Rows [row, row_end) of image `image`, pixels [begin, end). */
typedef struct band {
    int64_t image, row, row_end, begin, end;
} band;

/* Copies elements [first, first + n) of a line of `width`; those outside are 0. */
static void copy_line(float *to, const float *line, int64_t first, int64_t n, int64_t width, size_t element)
{
    const int64_t left = first >= 0   ? 0
                         : -first < n ? -first
                                      : n,
                  end = width - first < n ? width - first : n;
    if (!line || end <= left) {
        memset(to, 0, (size_t)n * element);
        return;
    }
    memset(to, 0, (size_t)left * element);
    memcpy(lnt_moved(to, left, element), lnt_moved(line, first + left, element),
           (size_t)(end - left) * element);
    memset(lnt_moved(to, end, element), 0, (size_t)(n - end) * element);
}

typedef float quad __attribute__((vector_size(16)));

static quad load_quad(const float *from)
{
    quad x;
    memcpy(&x, from, sizeof x);
    return x;
}

/* De-interleaves n floats into even and odd ones, except for the last few: returns how many. */
static int64_t deinterleave_pairs(float *to, const float *line, int64_t n, int64_t phase)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8, to += 4) {
        const quad a = load_quad(line + i), b = load_quad(line + i + 4);
        const quad even = __builtin_shufflevector(a, b, 0, 2, 4, 6),
                   odd = __builtin_shufflevector(a, b, 1, 3, 5, 7);
        memcpy(to, &even, sizeof even);
        memcpy(to + phase, &odd, sizeof odd);
    }
    return i;
}

/* De-interleaves a line by stride phase: pixels `stride` apart become contiguous. */
static void deinterleave_line(const lnt_kernel *k, float *to, const float *line, int64_t n, int64_t stride,
                              int64_t phase)
{
    enum { FLOAT = sizeof(float) };
    const int64_t done = stride == 2    ? deinterleave_pairs(to, line, n, phase)
                         : !LNT_TRIMMED ? n - n % stride
                                        : 0;
    if (!LNT_TRIMMED && stride != 2)
        k->kernels->turn((char *)to, phase * FLOAT, (const char *)line, stride * FLOAT, stride, n / stride);
    for (int64_t first = 0; first < stride; first++, to += phase)
        for (int64_t i = done + first, j = done / stride; i < n; i += stride, j++)
            to[j] = line[i];
}

static void deinterleave_halves(uint16_t *to, const uint16_t *line, int64_t n, int64_t stride, int64_t phase)
{
    for (int64_t first = 0; first < stride; first++, to += phase)
        for (int64_t i = first, j = 0; i < n; i += stride, j++)
            to[j] = line[i];
}

/* Are rows of a band one run? Trimmed libraries have no room for that. */
static bool joins_rows(const stem *s)
{
    return !LNT_TRIMMED && s->tap;
}

/* Where rows are one run: elements from what a tap along x meets of a band's first line to what it meets of line l. */
static int64_t met_at(const stem *s, int64_t l)
{
    const int64_t stride = s->g.w.stride[1];
    return l % stride * s->turn + l / stride * s->width;
}

/* From a line in scratch memory to where tap x of its first pixel is. */
static int64_t tap_at(const stem *s, int64_t x)
{
    const int64_t at = x * s->g.w.dilation[2], stride = s->g.w.stride[2];
    return s->split ? at % stride * s->phase + at / stride : at * s->pixel;
}

/* Where rows are one run: copies what taps along x meet of lines in scratch memory. Up to RUN_SLACK elements behind it
 * are written, too. */
static void copy_met(const stem *s, char *to, const char *from, int64_t lines)
{
    const size_t row = (size_t)s->width * lnt_element(s->element),
                 line = (size_t)s->line * lnt_element(s->element);
    for (int64_t x = 0; x < s->g.w.kernel[2]; x++, to += (size_t)s->tap * lnt_element(s->element)) {
        const char *at = from + (size_t)tap_at(s, x) * lnt_element(s->element);
        char *met = to;
        for (int64_t l = 0; l < lines; l++, at += line, met += row)
            for (size_t i = 0; i < row; i += sizeof(quad))
                memcpy(met + i, at + i, sizeof(quad));
    }
}

static void copy_band(const lnt_kernel *k, const stem_call *c, const band *b, float *to)
{
    const stem *s = c->s;
    const lnt_window *w = &s->g.w;
    const int64_t width = w->in[2] * s->pixel, first = (b->begin * w->stride[2] - w->before[2]) * s->pixel;
    const int64_t reach = (b->end - b->begin - 1) * w->stride[2] + (w->kernel[2] - 1) * w->dilation[2] + 1;
    const int64_t lines = (b->row_end - b->row - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
    /* An image that comes from memory is fetched sooner by a copy. */
    const bool near = !LNT_TRIMMED && s->planes * w->in[1] * width < 4 * LNT_FAR_FLOATS;
    const bool split = s->split && w->stride[2] > 1, copies = joins_rows(s) && !s->phased,
               inside = near && split && first >= 0 && first + reach * s->pixel <= width;
    const int64_t item = b->image / s->levels, level = b->image % s->levels;
    float *whole = lnt_moved(to, s->planes * s->plane, lnt_element(s->element)),
          *apart = lnt_moved(whole, s->line, lnt_element(s->element));
    for (int64_t plane = 0; plane < s->planes;
         plane++, to = lnt_moved(to, s->plane, lnt_element(s->element))) {
        for (int64_t l = 0; l < lines; l++) {
            const int64_t y = b->row * w->stride[1] - w->before[1] + l;
            const int64_t image = (item * s->planes + plane) * s->levels + level;
            const float *from = lnt_moved(c->x, (image * w->in[1] + y) * width, lnt_element(s->element));
            float *line =
                lnt_moved(copies ? apart : to, !LNT_TRIMMED && s->phased ? met_at(s, l) : l * s->line,
                          lnt_element(s->element));
            const bool outside = y < 0 || y >= w->in[1], ready = inside && !outside;
            const float *met = ready ? lnt_moved(from, first, lnt_element(s->element)) : whole;
            if (!ready)
                copy_line(split ? whole : line, outside ? NULL : from, first, reach * s->pixel, width,
                          lnt_element(s->element));
            if (split && lnt_element(s->element) == sizeof(float))
                deinterleave_line(k, line, met, reach, w->stride[2], s->phase);
            else if (split)
                deinterleave_halves((uint16_t *)(void *)line, (const uint16_t *)(const void *)met, reach,
                                    w->stride[2], s->phase);
        }
        if (copies)
            copy_met(s, (char *)to, (const char *)apart, lines);
    }
}

/* Where pixel b->begin of a row goes, and how far from it the next one does: the next plane's if split. */
static float *result_at(const stem_call *c, const band *b, int64_t row, size_t *step)
{
    const stem *s = c->s;
    if (s->split) {
        const int64_t image = b->image / s->levels * s->g.features * s->levels + b->image % s->levels;
        *step = (size_t)(s->levels * s->rows * s->width);
        return lnt_moved(c->y, (image * s->rows + row) * s->width + b->begin, lnt_element(s->element));
    }
    *step = (size_t)c->ld;
    return lnt_moved(c->y, ((b->image * s->rows + row) * s->width + b->begin - c->y_first) * c->ld,
                     lnt_element(s->element));
}

static void run_band(lnt_kernel *k, const stem_call *c, const band *b, const float *x)
{
    const stem *s = c->s;
    const lnt_window *w = &s->g.w;
    const int64_t features = s->g.features, group = b->image / s->levels % s->g.groups;
    const size_t panels = lnt_round_up((size_t)features, LNT_PANEL) / LNT_PANEL, panel = s->depth * LNT_PANEL;
    const float *weights = lnt_moved(c->b, group * (int64_t)(panels * panel), lnt_element(s->element)),
                *bias = c->bias ? c->bias + group * features : NULL;
    const int64_t together = joins_rows(s) ? b->row_end - b->row : 1;
    for (int64_t row = b->row; row < b->row_end; row += together) {
        const int64_t at = (b->image * s->rows + row) * s->width + b->begin;
        size_t c_step;
        float *y = result_at(c, b, row, &c_step);
        const lnt_stem args = {
            .x = lnt_moved(x, (row - b->row) * w->stride[1] * s->line, lnt_element(s->element)),
            .step = s->split ? 1 : (size_t)(w->stride[2] * s->pixel),
            .offset = s->offset,
            .depth = s->depth,
            .b = weights,
            .b_panel = panel,
            .bias = bias,
            .pixels = (size_t)(together * (b->end - b->begin)),
            .columns = (size_t)features,
            .c = y,
            .c_step = c_step,
            .low = s->store.low,
            .high = s->store.high};
        (s->split ? s->kernels->stem_planes : s->kernels->stem)(&args);
        if (s->epilogue)
            lnt_epilogue_run(s->epilogue, k, c->step, y, c->ld, at, b->end - b->begin, 0, features);
    }
}

static int64_t bands_down(const stem *s)
{
    return (s->rows + s->band - 1) / s->band;
}

/* Rows [row, row_end) of an image, as many as a band has at most; run `run` of their pixels. */
static void run_piece(lnt_kernel *k, const stem_call *c, int64_t image, int64_t row, int64_t row_end,
                      int64_t run, unsigned thread)
{
    const stem *s = c->s;
    float *scratch = (float *)(void *)(c->bands + thread * s->thread_bytes);
    const band b = {.image = image,
                    .row = row,
                    .row_end = row_end,
                    .begin = s->width * run / s->runs,
                    .end = s->width * (run + 1) / s->runs};
    if (!s->direct)
        copy_band(k, c, &b, scratch);
    run_band(k, c, &b, s->direct ? lnt_moved(c->x, b.begin * s->pixel, lnt_element(s->element)) : scratch);
}

static int64_t band_end(const stem *s, int64_t row)
{
    return row + s->band < s->rows ? row + s->band : s->rows;
}

static lnt_status run_bands(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const stem_call *c = arg;
    const stem *s = c->s;
    const int64_t down = bands_down(s);
    for (int64_t item = begin; item < end; item++) {
        const int64_t i = item / s->runs % down;
        run_piece(k, c, item / s->runs / down, s->rows * i / down, s->rows * (i + 1) / down, item % s->runs,
                  thread);
    }
    return LNT_OK;
}

static stem_call call_of(const lnt_kernel *k, const lnt_step *step, const float *b)
{
    const stem *s = step->params;
    return (stem_call){.s = s,
                       .step = step,
                       .x = lnt_in(k, step, 0),
                       .b = b,
                       .ld = lnt_conv_out_pixel(step),
                       .bias = s->store.bias >= 0 ? lnt_in(k, step, (unsigned)s->store.bias) : NULL,
                       .bands = (char *)lnt_scratch(k, step) + s->band_at};
}

/* Where all pixels are one row, lines are runs of them. */
static lnt_status stem_lines(lnt_kernel *k, const lnt_step *step, int64_t begin, int64_t end, float *to,
                             unsigned thread)
{
    const stem *s = step->params;
    const int64_t width = s->g.w.out[2];
    stem_call c = call_of(k, step, s->weights.widened ? s->weights.widened : lnt_in(k, step, 1));
    c.y = to;
    c.y_first = begin * width;
    if (s->direct) {
        const band b = {.row_end = 1, .begin = begin * width, .end = end * width};
        run_band(k, &c, &b, lnt_moved(c.x, b.begin * s->pixel, lnt_element(s->element)));
        return LNT_OK;
    }
    for (int64_t line = begin, next; line < end; line = next) {
        const int64_t first = line % s->rows, most = end - line + first, stop = band_end(s, first);
        next = line - first + (stop < most ? stop : most);
        for (int64_t run = 0; run < s->runs; run++)
            run_piece(k, &c, line / s->rows, first, next - (line - first), run, thread);
    }
    return LNT_OK;
}

static lnt_status run_stem(lnt_kernel *k, const lnt_step *step)
{
    const stem *s = step->params;
    LNT_ASSERT(s->runs > 0 && s->band > 0 && s->depth > 0);
    const void *b;
    LNT_TRY(lnt_conv_packed_weights(k, step, &s->weights, &b));
    stem_call c = call_of(k, step, b);
    c.y = lnt_out(k, step, 0);
    const int64_t work = s->band * (s->width / s->runs) * (int64_t)s->depth * s->g.features;
    LNT_TRY(lnt_parallel(k, s->images * bands_down(s) * s->runs, LNT_STEM_BAND_WORK / (work + 1) + 1,
                         run_bands, &c));
    if (!s->store.program || s->epilogue)
        return LNT_OK;
    const lnt_conv_images none = {.relayout_out = false, .element = lnt_element(s->element)};
    return lnt_conv_finish(k, step, &none, s->store.program);
}

static void find_offsets(stem *s)
{
    const lnt_window *w = &s->g.w;
    uint32_t *offset = s->offset;
    for (int64_t y = 0; y < w->kernel[1]; y++)
        for (int64_t x = 0; x < w->kernel[2]; x++)
            for (int64_t c = 0; c < s->g.channels; c++) {
                const int64_t line = y * w->dilation[1],
                              tap = joins_rows(s) && !s->phased ? x * s->tap : tap_at(s, x),
                              at = joins_rows(s) ? met_at(s, line) : line * s->line;
                *offset++ = (uint32_t)(at + tap + c * (s->planes > 1 ? s->plane : 1));
            }
}

/* Pieces of a line. Where bands are few, threads get as many pixels each. */
static int64_t runs_of(const lnt_site *site, const stem *s)
{
    const int64_t run = s->split ? LNT_STEM_PLANE_RUN : LNT_STEM_BAND_PIXELS,
                  runs = s->width / run + (s->width < run);
    const int64_t even = (runs + site->threads - 1) / site->threads * site->threads;
    const int64_t work = s->width / even * s->g.channels * lnt_volume(s->g.w.kernel) * s->g.features;
    return s->images * bands_down(s) < site->threads && s->width / even >= LNT_PLANE_PIXELS &&
                   work >= LNT_STEM_SHARED_WORK
               ? even
               : runs;
}

/* Rows of a band; of the only image threads get as many each. */
static int64_t band_of(const lnt_site *site, const stem *s)
{
    const int64_t most =
        joins_rows(s) ? LNT_STEM_RUN_PIXELS / (s->width + 1) + LNT_STEM_BAND_ROWS : LNT_STEM_BAND_ROWS;
    int64_t bands = (s->rows + most - 1) / most;
    if (s->images < site->threads)
        bands = (bands + site->threads - 1) / site->threads * site->threads;
    if (joins_rows(s)) /* as many pixels in each as the kernels want */
        bands = lnt_least(bands, s->rows * s->width / (s->width + LNT_PLANE_PIXELS));
    bands += bands == 0;
    return (s->rows + bands - 1) / bands;
}

/* Floats of a thread's band in scratch memory, and of its planes. */
static bool size_bands(stem *s, int64_t *floats)
{
    if (!lnt_mul_i64(s->lines, s->line, &s->plane) || s->plane > INT32_MAX)
        return false;
    int64_t own = s->split ? s->line : 0;
    if (joins_rows(s)) {
        const lnt_window *w = &s->g.w;
        own += s->phased ? 0 : s->plane + RUN_SLACK;
        s->turn = (s->lines + w->stride[1] - 1) / w->stride[1] * s->width + RUN_SLACK;
        s->tap = s->turn * w->stride[1];
        s->phase = s->phased ? s->tap : s->phase;
        if (!lnt_mul_i64(s->tap, s->phased ? w->stride[2] : w->kernel[2], &s->plane) || s->plane > INT32_MAX)
            return false;
    }
    *floats = s->plane * s->planes + own;
    return *floats <= INT32_MAX;
}

static lnt_status plan_bands(lnt_site *site, lnt_conv_kind kind, stem *s)
{
    const lnt_window *w = &s->g.w;
    const bool planes = lnt_conv_in_planes(&s->g, (lnt_order)site->in[0]->order);
    s->split = kind == LNT_CONV_PLANES;
    s->planes = planes ? s->g.channels : 1;
    s->pixel = planes ? 1 : s->g.channels;
    s->direct = kind == LNT_CONV_POINTS;
    s->levels = s->direct ? 1 : w->in[0];
    s->images = s->direct ? 1 : s->g.batch * s->g.groups * s->levels;
    s->rows = s->direct ? 1 : w->out[1];
    s->width = s->direct ? s->g.batch * lnt_volume(w->out) : w->out[2];
    s->tap = !LNT_TRIMMED && s->split && lnt_conv_joins_lines(&s->g);
    s->phased = joins_rows(s) && lnt_meets_phases(w);
    s->band = band_of(site, s);
    s->runs = joins_rows(s) ? 1 : runs_of(site, s);
    const int64_t pixels = (s->width + s->runs - 1) / s->runs;
    int64_t floats;
    if (!lnt_mul_i64(w->kernel[1] - 1, w->dilation[1], &s->lines) ||
        !lnt_mul_i64(w->kernel[2] - 1, w->dilation[2], &s->line))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the dilated kernel is too large");
    s->lines += (s->band - 1) * w->stride[1] + 1;
    s->line = (s->line + (pixels - 1) * w->stride[2] + 1) * s->pixel;
    s->phase = (s->line + w->stride[2] - 1) / w->stride[2];
    if (s->split)
        s->line = s->phase * w->stride[2];
    if (!size_bands(s, &floats))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the dilated kernel is too large");
    s->thread_bytes = s->direct ? 0 : lnt_round_up((size_t)floats * lnt_element(s->element), LNT_ALIGN);
    s->depth = (size_t)(s->g.channels * lnt_volume(w->kernel));
    s->offset = lnt_bump_alloc(site->memory, s->depth * sizeof *s->offset, site->err);
    if (!s->offset)
        return LNT_E_MEMORY;
    find_offsets(s);
    return LNT_OK;
}

lnt_status lnt_conv_bind_stem(lnt_site *site, const lnt_conv *g, lnt_conv_kind kind, const lnt_store *store)
{
    stem *s = lnt_bind_params(site, sizeof *s);
    if (!s)
        return LNT_E_MEMORY;
    s->g = *g;
    s->kernels = site->half ? site->kernels->half->conv : site->kernels->conv;
    s->element = lnt_site_element(site);
    size_t scratch = 0;
    LNT_TRY(lnt_conv_bind_floats(site, g, &s->weights, &scratch));
    s->store = *store;
    s->epilogue = site->out[0]->order == LNT_ORDER_CHANNELS_LAST ? s->store.program : NULL;
    LNT_TRY(plan_bands(site, kind, s));
    s->band_at = scratch;
    lnt_bind_scratch(site, scratch + s->thread_bytes * site->threads);
    lnt_conv_bind_pitched(site, store);
    site->step->run = run_stem;
    if (!s->weights.pack && lnt_conv_streams_rows(site, g))
        site->step->produce_lines = stem_lines;
    return LNT_OK;
}
