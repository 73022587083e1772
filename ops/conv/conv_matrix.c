/* conv_matrix.c — Conv of one tap, and ConvTranspose whose taps never meet, between images in ONNX order: the weights,
 * for each group a matrix [features, channels], times the planes, [channels, pixels] of an image's group, are planes.
 * Neither image is brought into another order; the bias is one of rows.
 *
 * Where the kernel of a ConvTranspose is as long as its stride, each tap is a feature by itself: lines of the outputs
 * are made of lines of the taps' planes in turns, a few lines at a time. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/conv/conv.h"
#include "ops/gemm/matmul.h"
#include "ops/half_kernels.h"

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
    int64_t batch, height, width, channels, features;
    int64_t planar;           /* lines of a plane; height: of all planes of an image */
    int64_t deep, tall, wide; /* extents of the kernel */
    int64_t rows;             /* of the product: taps of features */
    int64_t lines, parts; /* that are multiplied at a time; parts of an image */
    size_t bias, product, gather,
        one; /* floats into scratch memory, behind the weights; of a thread's product */
    lnt_store store;
    lnt_gemm_plan plan[2]; /* of so many lines, and of the last ones */
} spread;

typedef struct spread_call {
    const spread *p;
    lnt_gemm_call gemm; /* of the first image */
    const float *x;
    float *y;
} spread_call;

/* planes: lines [first, first + lines) of each tap, to its outputs of the image at y. */
static void spread_lines(const lnt_kernel *k, const spread *p, const float *planes, int64_t first,
                         int64_t lines, float *y)
{
    enum { FLOAT = sizeof(float) };
    const int64_t wide = p->wide, width = p->width, plane = lines * width, outputs = wide * width;
    for (int64_t f = 0; f < p->features; f++, y += p->height * p->deep * p->tall * outputs)
        for (int64_t l = first; l < first + lines; l++) {
            float *to = y + (l / p->planar * p->deep * p->planar + l % p->planar) * p->tall * outputs;
            const float *tap = planes + ((f * p->deep * p->tall * wide) * lines + l - first) * width;
            for (int64_t z = 0; z < p->deep; z++, to += (p->planar - 1) * p->tall * outputs)
                for (int64_t t = 0; t < p->tall; t++, to += outputs, tap += wide * plane)
                    k->kernels->turn((char *)to, wide * FLOAT, (const char *)tap, plane * FLOAT, width, wide);
        }
}

static lnt_status spread_parts(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const spread_call *c = arg;
    const spread *p = c->p;
    lnt_gemm_call call = c->gemm;
    call.c += thread * p->one;
    for (int64_t item = begin; item < end; item++) {
        const int64_t image = item / p->parts, first = item % p->parts * p->lines,
                      plane = p->height * p->width;
        const int64_t lines = lnt_least(p->lines, p->height - first), at = first * p->width;
        call.plan = &p->plan[lines < p->lines];
        call.b = c->x + image * p->channels * plane + at;
        lnt_gemm_part(k, &call, 0, p->rows, thread);
        spread_lines(k, p, call.c, first, lines, c->y + image * p->rows * plane);
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
    spread_call c = {.p = p,
                     .gemm = {.a = weights,
                              .b_offset = no_offset,
                              .c = weights + p->product,
                              .bias_product = (size_t)p->rows,
                              .gather = (char *)(weights + p->gather)},
                     .x = lnt_in(k, s, 0),
                     .y = lnt_out(k, s, 0)};
    k->kernels->turn((char *)weights, p->plan->row_step * FLOAT, lnt_in(k, s, 1), p->rows * FLOAT, p->rows,
                     p->channels);
    if (p->store.bias >= 0) {
        c.gemm.bias = bias;
        lnt_repeat_each(bias, lnt_in(k, s, (unsigned)p->store.bias), FLOAT, p->features,
                        p->rows / p->features, FLOAT);
    }
    LNT_TRY(lnt_parallel(k, p->batch * p->parts, (int64_t)(LNT_SHARED_WORK / (p->plan->work + 1)) + 1,
                         spread_parts, &c));
    return lnt_conv_finish(k, s, &none, p->store.program);
}

static void plan_lines(const lnt_site *site, const spread *p, int64_t lines, lnt_gemm_plan *plan)
{
    enum { PERIOD = 1024 /* rows of weights a large power of two apart would be gathered */ };
    static const ptrdiff_t no_tap[1] = {0};
    static const size_t no_offset[1] = {0};
    plan->kernels = site->kernels->gemm;
    plan->a_offset = no_offset;
    plan->products = 1;
    plan->rows = p->rows;
    plan->columns = (size_t)(lines * p->width);
    plan->taps = 1;
    plan->depth = (size_t)p->channels;
    plan->tap_offset = no_tap;
    plan->b_row = (size_t)(p->height * p->width);
    plan->b_panel = LNT_PANEL;
    plan->packs = plan->row_bias = true;
    plan->b_column = 1;
    plan->scale = 1;
    plan->low = p->store.low;
    plan->high = p->store.high;
    plan->row_step = p->channels % PERIOD ? p->channels : p->channels + LNT_PANEL;
    lnt_gemm_plan_blocks(plan);
}

lnt_status lnt_conv_bind_spread(lnt_site *site, const lnt_conv *g)
{
    enum { PIXELS = 1024 /* at a time: what comes of them is left in the cache */ };
    const lnt_window *w = &g->w;
    spread *p = lnt_bind_params(site, sizeof *p); /* of zeros */
    if (!p)
        return LNT_E_MEMORY;
    p->batch = g->batch;
    p->channels = g->channels;
    p->features = g->features;
    p->planar = w->in[1];
    p->height = w->in[0] * w->in[1];
    p->width = w->in[2];
    p->deep = w->kernel[0];
    p->tall = w->kernel[1];
    p->wide = w->kernel[2];
    p->rows = g->features * lnt_volume(w->kernel);
    LNT_TRY(lnt_bind_store(site, 1, lnt_own_input(site, 2) ? 2 : -1, false, &p->store));
    p->parts = lnt_volume(w->in) / PIXELS + 1;
    if (p->parts < site->threads && p->batch < site->threads)
        p->parts = site->threads;
    p->parts = lnt_least(p->parts, p->height);
    p->lines = (p->height + p->parts - 1) / p->parts;
    p->parts = (p->height + p->lines - 1) / p->lines;
    size_t gather = 0;
    for (int64_t last = 0; last < 2; last++) {
        lnt_gemm_plan *plan = &p->plan[last];
        plan_lines(site, p, last ? p->height - p->lines * (p->parts - 1) : p->lines, plan);
        gather = plan->gather_bytes > gather ? plan->gather_bytes : gather;
    }
    p->bias = lnt_round_up((size_t)(p->rows * p->plan->row_step), LNT_ALIGN);
    p->product = p->bias + lnt_round_up((size_t)p->rows, LNT_ALIGN);
    p->one = lnt_round_up((size_t)p->rows * p->plan->columns, LNT_ALIGN);
    p->gather = p->product + p->one * site->threads;
    lnt_bind_scratch(site, p->gather * sizeof(float) + gather * site->threads);
    site->step->run = run_spread;
    return LNT_OK;
}
