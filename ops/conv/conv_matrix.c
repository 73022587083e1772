/* conv_matrix.c — Conv of one tap, and ConvTranspose whose taps never meet, between images in ONNX order: the weights,
 * for each group a matrix [features, channels], times the planes, [channels, pixels] of an image's group, are planes.
 * Neither image is brought into another order; the bias is one of rows.
 *
 * Each tap of a ConvTranspose is a feature by itself, a few lines at a time. Where the kernel is as long as its stride,
 * lines of the outputs are made of lines of the taps' planes in turns; else those that meet are added up first. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/conv/conv.h"
#include "ops/gemm/matmul.h"
#include "ops/half_kernels.h"

#include <math.h>
#include <string.h>

static lnt_status run_matrix(lnt_kernel *k, const lnt_step *s)
{
    const lnt_matmul *m = s->params;
    const lnt_conv_images none = {.element = sizeof(float)};
    LNT_TRY(lnt_matmul_run(k, s));
    return lnt_conv_finish(k, s, &none, m->store.program);
}

lnt_status lnt_conv_bind_matrix(lnt_site *site, const lnt_conv *g)
{
    int64_t matrices;
    if (!lnt_mul_i64(g->batch, g->groups, &matrices) || matrices > INT32_MAX)
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "too many images");
    lnt_matmul *m = lnt_bind_params(site, sizeof *m);
    size_t *offsets = lnt_bump_alloc(site->memory, (2 * (size_t)matrices + 1) * sizeof *offsets, site->err);
    if (!m || !offsets)
        return LNT_E_MEMORY;
    *m = (lnt_matmul){.p = {.M = g->features, .K = g->channels, .N = lnt_volume(g->w.out), .alpha = 1},
                      .a = 1,
                      .row_bias = true,
                      .matrices_a = g->groups,
                      .matrices_b = matrices,
                      .batch = matrices,
                      .offset_a = offsets,
                      .offset_b = offsets + matrices};
    for (int64_t i = 0; i < matrices; i++) {
        offsets[i] = (size_t)(i % g->groups * g->features * g->channels);
        offsets[matrices + i] = (size_t)i;
    }
    LNT_TRY(lnt_bind_store(site, 1, lnt_own_input(site, 2) ? 2 : -1, false, &m->store));
    LNT_TRY(lnt_matmul_plan(site, m, 0));
    site->step->run = run_matrix;
    return LNT_OK;
}

/* ---- transposed ---- */

typedef struct spread {
    lnt_window w;
    const lnt_conv_kernels *kernels;  /* NULL: taps never meet */
    int64_t images, groups;           /* images: of all groups */
    int64_t height, width;            /* lines of all planes of an image */
    int64_t channels, features, rows; /* rows of the product: taps of features */
    int64_t share, shares;            /* features that are made together; how often */
    int64_t lines, parts;             /* outputs of so many lines are a part; parts of a share of an image */
    int64_t near, all;                /* lines before those that meet them; lines multiplied for a part */
    int64_t taps, plane;              /* of a feature; of a tap, for a part */
    int64_t pitch, together,
        phase; /* outputs of a line that are `stride` apart; lines at once; of all of these */
    size_t bias, product, gather,
        one; /* floats into scratch memory, behind the weights; of a thread's product and lines */
    lnt_store store;
    lnt_gemm_plan plan;
} spread;

typedef struct spread_call {
    const spread *p;
    lnt_gemm_call gemm; /* of the first image */
    const float *x, *bias;
    float *y;
} spread_call;

/* A line of outputs: what comes of a line `last` of planes, and of those before it, by every `stride`-th tap. */
static void fold_line(const spread *p, const float *taps, int64_t last, int64_t n_taps, float bias,
                      float *sums)
{
    const int64_t wide = p->w.kernel[2], first = last < p->all ? 0 : last - p->all + 1,
                  n = lnt_least(n_taps, last + 1) - first, down = p->w.stride[1] * wide * p->plane - p->width;
    const lnt_fold fold = {.x = taps + last * p->width + first * down,
                           .tap = (size_t)p->plane,
                           .line = (ptrdiff_t)down,
                           .lines = n > 0 ? (size_t)n : 0,
                           .taps = (size_t)wide,
                           .stride = (size_t)p->w.stride[2],
                           .width = (size_t)p->width,
                           .pixels = (size_t)p->pitch,
                           .c = sums,
                           .phase = (size_t)p->phase,
                           .bias = bias,
                           .low = p->store.low,
                           .high = p->store.high};
    p->kernels->fold(&fold);
}

/* `lines` lines of outputs from line o on, as far as line `last` of planes comes to the first of them. */
static void fold_some(const lnt_kernel *k, const spread *p, const float *planes, int64_t o, int64_t lines,
                      int64_t from, float *sums, float bias, float *y)
{
    enum { FLOAT = sizeof(float) };
    const lnt_window *w = &p->w;
    const int64_t apart = w->stride[2], down = w->stride[1];
    for (int64_t i = 0; i < lines; i++) {
        const int64_t at = o + i + w->before[1], tap = at % down;
        fold_line(p, planes + tap * w->kernel[2] * p->plane, at / down - from,
                  (w->kernel[1] - 1 - tap + down) / down, bias, sums + i * p->pitch);
    }
    float *turned = apart > 1 ? sums + apart * p->phase : sums;
    if (apart > 1)
        k->kernels->turn((char *)turned, apart * FLOAT, (const char *)sums, p->phase * FLOAT,
                         lines * p->pitch, apart);
    for (int64_t i = 0; i < lines; i++)
        memcpy(y + i * w->out[2], turned + i * apart * p->pitch + w->before[2], (size_t)w->out[2] * FLOAT);
}

/* planes: p->all lines from line `from` on of each tap, to the outputs that lines [first, end) come to first, of an
 * image's feature at y. */
static void fold_lines(const lnt_kernel *k, const spread *p, const float *planes, int64_t from, int64_t first,
                       int64_t end, float *sums, float bias, float *y)
{
    const lnt_window *w = &p->w;
    const int64_t stride = w->stride[1], before = w->before[1];
    const int64_t stop = lnt_least(end * stride - before, w->out[1]);
    const int64_t start = first * stride > before ? first * stride - before : 0;
    for (int64_t o = start; o < stop; o += p->together)
        fold_some(k, p, planes, o, lnt_least(p->together, stop - o), from, sums, bias, y + o * w->out[2]);
}

/* n lines of the planes of a line of taps, to as many lines of outputs `pitch` floats apart: those next to each other
 * are one. Short ones are turned together, as a call for each takes longer than to copy it. */
static void spread_some(const lnt_kernel *k, const spread *p, const float *planes, int64_t n, int64_t pitch,
                        float *sums, float *y)
{
    enum { FLOAT = sizeof(float) };
    const int64_t wide = p->w.kernel[2], pixels = n * p->width,
                  floats = pitch == p->w.out[2] ? pixels * wide : p->w.out[2];
    float *turned = floats == pixels * wide ? y : sums;
    if (wide > 1)
        k->kernels->turn((char *)turned, wide * FLOAT, (const char *)planes, p->plane * FLOAT, pixels, wide);
    const float *lines = wide > 1 ? turned : planes;
    for (int64_t i = 0; i < pixels * wide && lines != y; i += floats, y += pitch)
        memcpy(y, lines + i, (size_t)floats * FLOAT);
}

/* The same of taps that never meet. */
static void spread_lines(const lnt_kernel *k, const spread *p, const float *planes, int64_t from,
                         int64_t first, int64_t end, float *sums, float *y)
{
    enum { LONG = 128 };
    const lnt_window *w = &p->w;
    const int64_t tall = w->in[1], down = w->kernel[1], line = w->out[2],
                  together = line < LONG ? p->together : 1;
    for (int64_t t = 0; t < w->kernel[0] * down; t++, planes += w->kernel[2] * p->plane)
        for (int64_t i = first, n; i < lnt_least(end, p->height); i += n) {
            n = lnt_least(together, lnt_least(tall - i % tall, end - i));
            const int64_t z = i / tall * w->kernel[0] + t / down, o = i % tall * down + t % down;
            spread_some(k, p, planes + (i - from) * p->width, n, down * line, sums,
                        y + (z * w->out[1] + o) * line);
        }
}

static lnt_status spread_parts(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const spread_call *c = arg;
    const spread *p = c->p;
    lnt_gemm_call call = c->gemm;
    float *const product = call.c + thread * p->one + LNT_FOLD_SLACK,
                 *sums = product + p->share * p->taps * p->plane;
    for (int64_t item = begin; item < end; item++) {
        const int64_t image = item / p->parts / p->shares, group = image % p->groups,
                      feature = item / p->parts % p->shares * p->share,
                      stop = lnt_least(feature + p->share, p->features), first = item % p->parts * p->lines,
                      from = lnt_least(first > p->near ? first - p->near : 0, p->height - p->all);
        call.a = c->gemm.a + group * p->rows * p->plan.row_step;
        call.b = c->x + (image * p->channels * p->height + from) * p->width;
        call.bias = p->kernels || !c->bias ? NULL : c->gemm.bias + group * p->rows;
        float *planes = call.c = product;
        call.c_first = feature * p->taps * p->plane;
        lnt_gemm_part(k, &call, feature * p->taps, stop * p->taps, thread);
        for (int64_t f = feature; f < stop; f++, planes += p->taps * p->plane) {
            float *y = c->y + (image * p->features + f) * lnt_volume(p->w.out);
            if (LNT_HAS_FOLDS && p->kernels)
                fold_lines(k, p, planes, from, first, first + p->lines, sums,
                           c->bias ? c->bias[group * p->features + f] : 0, y);
            else
                spread_lines(k, p, planes, from, first, first + p->lines, sums, y);
        }
    }
    return LNT_OK;
}

static lnt_status run_spread(lnt_kernel *k, const lnt_step *s)
{
    static const size_t no_offset[1] = {0};
    enum { FLOAT = sizeof(float) };
    const spread *p = s->params;
    const lnt_conv_images none = {.element = FLOAT};
    LNT_ASSERT(p->gather * FLOAT <= s->scratch_bytes);
    float *weights = lnt_scratch(k, s), *bias = weights + p->bias;
    const int64_t group = p->channels * p->rows, turned = p->rows * p->plan.row_step;
    spread_call c = {.p = p,
                     .gemm = {.plan = &p->plan,
                              .a = weights,
                              .b_offset = no_offset,
                              .c = weights + p->product,
                              .bias_product = (size_t)p->rows,
                              .bias = bias,
                              .gather = (char *)(weights + p->gather)},
                     .x = lnt_in(k, s, 0),
                     .bias = p->store.bias >= 0 ? lnt_in(k, s, (unsigned)p->store.bias) : NULL,
                     .y = lnt_out(k, s, 0)};
    const float *in = lnt_in(k, s, 1);
    for (int64_t g = 0; g < p->groups; g++)
        k->kernels->turn((char *)(weights + g * turned), p->plan.row_step * FLOAT,
                         (const char *)(in + g * group), p->rows * FLOAT, p->rows, p->channels);
    if (c.bias)
        lnt_repeat_each(bias, c.bias, FLOAT, p->groups * p->features, p->taps, FLOAT);
    LNT_TRY(lnt_parallel(k, p->images * p->shares * p->parts,
                         (int64_t)(LNT_SHARED_WORK / (p->plan.work + 1)) + 1, spread_parts, &c));
    return lnt_conv_finish(k, s, &none, p->store.program);
}

static void plan_lines(const lnt_site *site, const spread *p, lnt_gemm_plan *plan)
{
    enum {
        PERIOD = 1024, /* rows of weights a large power of two apart would be gathered */
        FEW_ROWS = 32  /* read columns in place */
    };
    static const ptrdiff_t no_tap[1] = {0};
    static const size_t no_offset[1] = {0};
    plan->kernels = site->kernels->gemm;
    plan->a_offset = no_offset;
    plan->products = 1;
    plan->rows = p->rows;
    plan->columns = (size_t)p->plane;
    plan->taps = 1;
    plan->depth = (size_t)p->channels;
    plan->tap_offset = no_tap;
    plan->b_row = (size_t)(p->height * p->width);
    plan->b_panel = LNT_PANEL;
    plan->row_bias = true;
    plan->packs = p->share * p->taps > FEW_ROWS;
    plan->packs_rest = !plan->packs && p->plane % LNT_PANEL != 0;
    plan->b_column = 1;
    plan->scale = 1;
    plan->low = p->kernels ? -INFINITY : p->store.low;
    plan->high = p->kernels ? INFINITY : p->store.high;
    plan->row_step = p->channels % PERIOD ? p->channels : p->channels + LNT_PANEL;
    lnt_gemm_plan_blocks(plan);
}

/* How an image is cut into shares of its features, and these into parts: each multiplies the lines before its own
 * again. Lines of outputs are counted as if none was cut off before them. */
static void plan_parts(const lnt_site *site, spread *p)
{
    enum {
        FLOATS = 1 << 17, /* at a time: what comes of them is left in the cache */
        ROWS = 64,        /* of a product pay for its columns being packed */
        SUMS = 2048       /* at a time: they are stored before they are turned */
    };
    const lnt_window *w = &p->w;
    const int64_t down = w->stride[1], across = w->stride[2];
    const int64_t lines = w->in[0] * ((w->before[1] + w->out[1] + down - 1) / down),
                  outputs = (w->before[2] + w->out[2] + across - 1) / across;
    const int64_t fit = FLOATS / (p->height * p->width * p->taps + 1), least = (ROWS + p->taps - 1) / p->taps;
    p->share = lnt_least(p->features, fit > least ? fit : least);
    p->shares = (p->features + p->share - 1) / p->share;
    p->share = (p->features + p->shares - 1) / p->shares;
    p->parts = p->height * p->width * p->share * p->taps / FLOATS + 1;
    if (p->parts < site->threads && p->images * p->shares < site->threads)
        p->parts = site->threads;
    p->lines = (lines + p->parts - 1) / p->parts;
    p->parts = (lines + p->lines - 1) / p->lines;
    p->near = (w->kernel[1] - 1) / down;
    p->all = lnt_least(p->lines + p->near, p->height);
    p->plane = p->all * p->width;
    p->pitch = p->width + (w->kernel[2] - 1) / across;
    p->pitch = outputs > p->pitch ? outputs : p->pitch;
    p->together = SUMS / (p->pitch * across) + 1;
    p->phase = p->together * p->pitch + LNT_FOLD_SLACK;
}

lnt_status lnt_conv_bind_spread(lnt_site *site, const lnt_conv *g)
{
    const lnt_window *w = &g->w;
    spread *p = lnt_bind_params(site, sizeof *p); /* of zeros */
    if (!p)
        return LNT_E_MEMORY;
    p->w = *w;
    p->kernels = LNT_HAS_FOLDS && !lnt_conv_spreads(g) ? site->kernels->conv : NULL;
    p->images = g->batch * g->groups;
    p->groups = g->groups;
    p->channels = g->channels;
    p->features = g->features;
    p->height = w->in[0] * w->in[1];
    p->width = w->in[2];
    p->taps = lnt_volume(w->kernel);
    p->rows = g->features * p->taps;
    LNT_TRY(lnt_bind_store(site, 1, lnt_own_input(site, 2) ? 2 : -1, false, &p->store));
    plan_parts(site, p);
    plan_lines(site, p, &p->plan);
    p->bias = lnt_round_up((size_t)(g->groups * p->rows * p->plan.row_step), LNT_ALIGN);
    p->product = p->bias + lnt_round_up((size_t)(g->groups * p->rows), LNT_ALIGN);
    p->one = lnt_round_up((size_t)(p->share * p->taps * p->plane + 2 * p->phase * w->stride[2]), LNT_ALIGN) +
             LNT_FOLD_SLACK;
    p->gather = p->product + p->one * site->threads;
    lnt_bind_scratch(site, p->gather * sizeof(float) + p->plan.gather_bytes * site->threads);
    site->step->run = run_spread;
    return LNT_OK;
}
