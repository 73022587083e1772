/* conv_transpose.c — ConvTranspose as one product per phase, or one depthwise convolution.
 *
 * Output position o reads input i through tap t where i * stride = o + before - t * dilation. So all o with
 * the same remainder of o + before modulo stride read the same taps, and neighbors among them read
 * neighboring pixels: each phase is an ordinary convolution of stride 1 whose results stand `stride` apart.
 * Nothing is computed twice or added up in memory. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_rows.h"
#include "ops/gemm/half_step.h"
#include "ops/product.h"

#include <string.h>

enum { PHASES_MOST = 65536 }; /* a plan for each */

/* ---- extents ---- */

/* The padding and extent of one axis. asked is the extent wanted by output_shape, or -1. */
static void settle_axis(lnt_window *w, unsigned a, int64_t output_padding, int64_t asked,
                        const char *auto_pad)
{
    const int64_t reach = (w->kernel[a] - 1) * w->dilation[a] + 1;
    if (asked < 0 && strncmp(auto_pad, "SAME", 4) == 0)
        asked = lnt_dim_mul(w->in[a], w->stride[a]);
    if (w->in[a] < 0 || w->kernel[a] < 0) {
        w->out[a] = asked >= 0 ? asked : LNT_DIM_UNKNOWN;
        return;
    }
    const int64_t whole = (w->in[a] - 1) * w->stride[a] + reach + output_padding;
    if (asked < 0) {
        const int64_t out = whole - w->before[a] - w->after[a];
        w->out[a] = out > 0 ? out : 0;
        return;
    }
    const int64_t total = whole > asked ? whole - asked : 0;
    w->before[a] = strcmp(auto_pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
    w->after[a] = total - w->before[a];
    w->out[a] = asked;
}

static lnt_status window_of(const lnt_site *site, lnt_window *w)
{
    const lnt_operand *x = site->in[0], *weights = site->in[1];
    const lnt_attr *shape = lnt_attr_find(site->node, "output_shape");
    const char *auto_pad = lnt_attr_s(site->node, "auto_pad", "NOTSET");
    if (x->rank < 3 || x->rank != weights->rank)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "input of rank %u and weights of rank %u do not fit", x->rank,
                             weights->rank);
    for (unsigned i = 2; i < weights->rank; i++)
        if (weights->dims[i] == 0)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the kernel has an extent of 0");
    LNT_TRY(lnt_window_with(site, weights->dims + 2, w)); /* strides, dilations, pads */
    const unsigned n = x->rank - 2u;
    int64_t padding[LNT_MAX_RANK];
    LNT_TRY(lnt_attr_ints(site, "output_padding", padding, n, 0));
    if (shape && (shape->type != LNT_ATTR_INTS || shape->count < n))
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "output_shape must hold %u integers", n);
    for (unsigned i = 0; i < n; i++) {
        const unsigned a = LNT_WINDOW_AXES - n + i;
        const int64_t asked = shape ? shape->i[shape->count - n + i] : -1;
        if (padding[i] < 0 || padding[i] > INT32_MAX)
            return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "output_padding must not be negative");
        if (auto_pad[0] == 'S')
            w->before[a] = w->after[a] = 0; /* those of a convolution */
        settle_axis(w, a, padding[i], asked, auto_pad);
    }
    int64_t phases;
    if (!lnt_count(w->stride, LNT_WINDOW_AXES, &phases) || phases > PHASES_MOST)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "strides make more than %d phases", PHASES_MOST);
    return LNT_OK;
}

lnt_status lnt_shape_conv_transpose(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *weights = site->in[1];
    lnt_window w;
    LNT_TRY(window_of(site, &w));
    LNT_TRY(lnt_window_check_groups(site, weights, true));
    int64_t dims[LNT_MAX_RANK] = {x->dims[0],
                                  lnt_dim_mul(weights->dims[1], lnt_attr_i(site->node, "group", 1))};
    for (unsigned i = 2; i < x->rank; i++)
        dims[i] = w.out[LNT_WINDOW_AXES + i - x->rank];
    lnt_set_dims(site, 0, x->rank, dims);
    return LNT_OK;
}

lnt_status lnt_conv_transpose_of(const lnt_site *site, lnt_conv *c)
{
    const lnt_operand *x = site->in[0], *weights = site->in[1], *bias = lnt_own_input(site, 2);
    const int64_t groups = lnt_attr_i(site->node, "group", 1);
    LNT_TRY(window_of(site, &c->w));
    LNT_TRY(lnt_window_check_groups(site, weights, true));
    c->batch = x->dims[0];
    c->groups = groups;
    c->channels = x->dims[1] / groups;
    c->features = weights->dims[1];
    c->axes = x->rank - 2u;
    c->transposed = true;
    lnt_conv_drop_taps(c);
    if (bias && lnt_operand_count(bias) != c->features * groups)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the bias must have %lld elements",
                             (long long)(c->features * groups));
    return LNT_OK;
}

/* ---- phases ---- */

typedef struct phase {
    lnt_conv_rows rows;
    lnt_gemm_plan plan;
    size_t *b_offset; /* [groups] */
} phase;

typedef struct conv_transpose {
    lnt_conv g;
    lnt_conv_images images;
    lnt_conv_weights weights;
    lnt_store store;
    phase *phases;
    unsigned n_phases;
    size_t gather_at;
} conv_transpose;

/* Axis a of phase r: which taps it has, which outputs. */
static void find_axis(const lnt_window *w, unsigned a, int64_t r, lnt_conv_rows *rows)
{
    const int64_t s = w->stride[a], d = w->dilation[a];
    const int64_t after_r =
        r - w->before[a]; /* output o = q * s + after_r reads pixels q - (t * d - r) / s */
    const int64_t q = after_r >= 0 ? 0 : (-after_r + s - 1) / s;
    int64_t last = 0;
    rows->taps[a] = 0;
    rows->spacing[a] = 1;
    for (int64_t t = 0; t < w->kernel[a]; t++) {
        if (t * d % s != r)
            continue;
        const int64_t back = (t * d - r) / s;
        if (rows->taps[a]++)
            rows->spacing[a] = back - last;
        last = back;
    }
    rows->in[a] = w->in[a];
    rows->zeros[a][0] = rows->zeros[a][1] = 0;
    rows->out[a] = w->out[a];
    rows->origin[a] = q - last;
    rows->step[a] = 1;
    rows->out_first[a] = q * s + after_r;
    rows->out_step[a] = s;
    rows->count[a] = rows->out_first[a] < w->out[a] ? (w->out[a] - rows->out_first[a] + s - 1) / s : 0;
}

/* start: floats of panels before this phase, for one group. */
static lnt_status bind_phase(lnt_site *site, conv_transpose *c, unsigned number, phase *p, size_t start)
{
    const lnt_conv *g = &c->g;
    lnt_gemm_plan *plan = &p->plan;
    int64_t rest = number;
    for (unsigned a = LNT_WINDOW_AXES; a-- > 0; rest /= g->w.stride[a])
        find_axis(&g->w, a, rest % g->w.stride[a], &p->rows);
    p->rows.channels = g->channels;
    p->rows.features = g->features;
    p->rows.pixel = g->groups * g->channels;
    p->rows.group = g->channels;
    plan->kernels = site->half ? site->kernels->half->gemm : site->kernels->gemm;
    LNT_TRY(lnt_conv_rows_plan(site, &p->rows, g->batch, plan));
    plan->b_form = lnt_b_form_of(site->in[1]);
    plan->products = g->groups;
    plan->columns = (size_t)g->features;
    plan->scale = 1.0f;
    plan->low = c->store.low;
    plan->high = c->store.high;
    lnt_gemm_plan_blocks(plan);
    p->b_offset = lnt_bump_alloc(site->memory, (size_t)g->groups * sizeof *p->b_offset, site->err);
    if (!p->b_offset)
        return LNT_E_MEMORY;
    const size_t columns = lnt_round_up(plan->columns, LNT_PANEL);
    const size_t group = (size_t)(lnt_volume(g->w.kernel) * g->channels) * columns;
    for (size_t i = 0; i < (size_t)g->groups; i++)
        p->b_offset[i] = i * group + start;
    return LNT_OK;
}

static lnt_status bind_phases(lnt_site *site, conv_transpose *c, size_t *gather_bytes)
{
    const size_t columns = lnt_round_up((size_t)c->g.features, LNT_PANEL);
    size_t start = 0;
    c->n_phases = (unsigned)lnt_volume(c->g.w.stride);
    c->phases = lnt_bump_alloc(site->memory, c->n_phases * sizeof *c->phases, site->err);
    if (!c->phases)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < c->n_phases; i++) {
        phase *p = &c->phases[i];
        LNT_TRY(bind_phase(site, c, i, p, start));
        start += (size_t)(lnt_volume(p->rows.taps) * c->g.channels) * columns;
        if (p->plan.gather_bytes > *gather_bytes)
            *gather_bytes = p->plan.gather_bytes;
    }
    return LNT_OK;
}

static lnt_status run_conv_transpose(lnt_kernel *k, const lnt_step *s)
{
    const conv_transpose *c = s->params;
    LNT_ASSERT(c->gather_at <= s->scratch_bytes);
    lnt_gemm_call call = {
        .step = s,
        .c = lnt_conv_output(k, s, &c->images),
        .ld = lnt_conv_out_pixel(s),
        .residual = c->store.residual >= 0 ? lnt_in(k, s, (unsigned)c->store.residual) : NULL,
        .bias = c->store.bias >= 0 ? lnt_in(k, s, (unsigned)c->store.bias) : NULL,
        .bias_product = (size_t)c->g.features,
        .gather = (char *)lnt_scratch(k, s) + c->gather_at,
    };
    LNT_TRY(lnt_conv_input(k, s, &c->images, &call.a));
    LNT_TRY(lnt_conv_packed_weights(k, s, &c->weights, &call.b));
    for (unsigned i = 0; i < c->n_phases; i++) {
        call.plan = &c->phases[i].plan;
        call.b_offset = c->phases[i].b_offset;
        LNT_TRY(lnt_gemm_run(k, &call));
    }
    return lnt_conv_finish(k, s, &c->images, c->store.program);
}

/* ---- one channel per group ---- */

/* Phase r along x: its outputs, and the taps of the kernel that it has. */
typedef struct filter_phase {
    lnt_conv_rows rows;
    int64_t last_tap, tap_step; /* meets the first one of the pixels; taps from one to the next */
} filter_phase;

/* Each phase of a line of outputs is a run of pixels of the depthwise kernel (conv_kernels.h), whose pixels go up
 * where the kernel's taps go down. */
typedef struct filters {
    lnt_conv g;
    lnt_conv_images images;
    lnt_conv_weights weights;
    lnt_store store;
    const lnt_conv_kernels *kernels;
    size_t element;       /* bytes of an element */
    filter_phase *phases; /* [stride along x] */
} filters;

typedef struct filters_call {
    const filters *f;
    const float *x, *w, *bias, *residual;
    float *y;
    int64_t ld, w_channel; /* floats from pixel to pixel of y, from tap to tap of w */
} filters_call;

/* Lines of the image, and of the kernel, that a line of outputs depends on. Returns how many. */
static size_t list_lines(const filters_call *c, int64_t line, const float **x, const float **w)
{
    const filters *f = c->f;
    const int64_t *kernel = f->g.w.kernel, *in = f->g.w.in, *out = f->g.w.out;
    const int64_t image = line / out[1] / out[0];
    size_t n = 0;
    for (int64_t t = 0; t < kernel[0] * kernel[1]; t++) {
        int64_t z, y;
        if (!lnt_conv_source(&f->g, 0, line / out[1] % out[0], t / kernel[1], &z) ||
            !lnt_conv_source(&f->g, 1, line % out[1], t % kernel[1], &y))
            continue;
        x[n] =
            lnt_moved(c->x, ((image * in[0] + z) * in[1] + y) * in[2] * f->g.groups, lnt_element(f->element));
        w[n++] = lnt_moved(c->w, t * kernel[2] * c->w_channel, lnt_element(f->element));
    }
    return n;
}

/* Outputs of one phase of a line. */
static void filter_line(const filters_call *c, int64_t line, const filter_phase *p, const float *const *x,
                        const float *const *w, size_t lines)
{
    const filters *f = c->f;
    const float *taps[LNT_DEPTHWISE_LINES];
    const int64_t out = (line * f->g.w.out[2] + p->rows.out_first[2]) * c->ld;
    lines = p->rows.taps[2] ? lines : 0;
    for (size_t l = 0; l < lines; l++)
        taps[l] = lnt_moved(w[l], p->last_tap * c->w_channel, lnt_element(f->element));
    const lnt_depthwise args = {.line = x,
                                .w = taps,
                                .lines = lines,
                                .taps = lines ? (size_t)p->rows.taps[2] : 1,
                                .first = (ptrdiff_t)p->rows.origin[2],
                                .width = (ptrdiff_t)f->g.w.in[2],
                                .stride = 1,
                                .spacing = (ptrdiff_t)p->rows.spacing[2],
                                .in_pixel = (size_t)f->g.groups,
                                .pixel = (size_t)(f->g.w.stride[2] * c->ld),
                                .w_tap = (ptrdiff_t)(-p->tap_step * c->w_channel),
                                .pixels = (size_t)p->rows.count[2],
                                .channels = (size_t)f->g.groups,
                                .c = lnt_moved(c->y, out, lnt_element(f->element)),
                                .residual =
                                    c->residual ? lnt_moved(c->residual, out, lnt_element(f->element)) : NULL,
                                .bias = c->bias,
                                .low = f->store.low,
                                .high = f->store.high};
    f->kernels->depthwise(&args);
}

static lnt_status filter_lines(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const filters_call *c = arg;
    const float *x[LNT_DEPTHWISE_LINES], *w[LNT_DEPTHWISE_LINES];
    (void)k, (void)thread;
    for (int64_t line = begin; line < end; line++) {
        const size_t lines = list_lines(c, line, x, w);
        for (int64_t r = 0; r < c->f->g.w.stride[2]; r++)
            if (c->f->phases[r].rows.count[2] > 0)
                filter_line(c, line, &c->f->phases[r], x, w, lines);
    }
    return LNT_OK;
}

static lnt_status run_filters(lnt_kernel *k, const lnt_step *s)
{
    const filters *f = s->params;
    const lnt_window *w = &f->g.w;
    const void *weights;
    filters_call c = {.f = f,
                      .y = lnt_conv_output(k, s, &f->images),
                      .bias = f->store.bias >= 0 ? lnt_in(k, s, (unsigned)f->store.bias) : NULL,
                      .residual = f->store.residual >= 0 ? lnt_in(k, s, (unsigned)f->store.residual) : NULL,
                      .ld = lnt_conv_out_pixel(s),
                      .w_channel = (int64_t)lnt_round_up((size_t)f->g.groups, LNT_PANEL)};
    LNT_TRY(lnt_conv_input(k, s, &f->images, &c.x));
    LNT_TRY(lnt_conv_packed_weights(k, s, &f->weights, &weights));
    c.w = weights;
    const int64_t work = w->out[2] * f->g.groups * (lnt_volume(w->kernel) / lnt_volume(w->stride) + 1);
    LNT_TRY(lnt_parallel(k, f->g.batch * w->out[0] * w->out[1], LNT_DEPTHWISE_SHARED_WORK / (work + 1) + 1,
                         filter_lines, &c));
    return lnt_conv_finish(k, s, &f->images, f->store.program);
}

static lnt_status bind_filters(lnt_site *site, const lnt_conv *g)
{
    filters *f = lnt_bind_params(site, sizeof *f);
    size_t scratch = 0;
    if (!f)
        return LNT_E_MEMORY;
    f->g = *g;
    f->kernels = site->half ? site->kernels->half->conv : site->kernels->conv;
    f->element = lnt_site_element(site);
    LNT_TRY(lnt_conv_bind_images(site, g, NULL, &f->images, &scratch));
    LNT_TRY(lnt_conv_bind_floats(site, g, &f->weights, &scratch));
    const int own_bias = lnt_own_input(site, 2) ? 2 : -1;
    LNT_TRY(lnt_bind_store(site, 1, own_bias, lnt_conv_writes_output(site), &f->store));
    const int64_t stride = g->w.stride[2], dilation = g->w.dilation[2];
    f->phases = lnt_bump_alloc(site->memory, (size_t)stride * sizeof *f->phases, site->err);
    if (!f->phases)
        return LNT_E_MEMORY;
    for (int64_t r = 0; r < stride; r++) {
        filter_phase *p = &f->phases[r];
        find_axis(&g->w, 2, r, &p->rows);
        p->tap_step = p->rows.spacing[2] * stride / dilation;
        p->last_tap = 0;
        for (int64_t t = 0; t < g->w.kernel[2]; t++)
            p->last_tap = t * dilation % stride == r ? t : p->last_tap;
    }
    lnt_bind_scratch(site, scratch);
    lnt_conv_bind_pitched(site, &f->store);
    site->step->run = run_filters;
    return LNT_OK;
}

/* Of floats or halves. */
static lnt_status bind_images(lnt_site *site)
{
    lnt_conv g;
    LNT_TRY(lnt_conv_transpose_of(site, &g));
    if (LNT_HAS_DEPTHWISE && lnt_conv_is_depthwise(&g))
        return bind_filters(site, &g);
    if (!LNT_TRIMMED && !site->half && !site->in[1]->packed &&
        lnt_conv_algorithm(&g, (lnt_order)site->in[0]->order, site->out[0]->order != LNT_ORDER_PLAIN,
                           false) == LNT_CONV_MATRIX)
        return lnt_conv_bind_spread(site, &g);
    conv_transpose *c = lnt_bind_params(site, sizeof *c);
    size_t scratch = 0, gather_bytes = 0;
    if (!c)
        return LNT_E_MEMORY;
    c->g = g;
    LNT_TRY(lnt_conv_bind_images(site, &c->g, NULL, &c->images, &scratch));
    LNT_TRY(lnt_conv_bind_weights(site, &c->g, &c->weights, &scratch));
    const int own_bias = lnt_own_input(site, 2) ? 2 : -1;
    LNT_TRY(lnt_bind_store(site, 1, own_bias, lnt_conv_writes_output(site), &c->store));
    LNT_TRY(bind_phases(site, c, &gather_bytes));
    c->gather_at = scratch;
    lnt_bind_scratch(site, scratch + gather_bytes * site->threads);
    lnt_conv_bind_pitched(site, &c->store);
    site->step->run = run_conv_transpose;
    return LNT_OK;
}

lnt_status lnt_bind_conv_transpose(lnt_site *site)
{
    lnt_conv c;
    LNT_TRY(lnt_conv_transpose_of(site, &c));
    if (lnt_has_half_weights(site, 1) && (lnt_conv_sums_in_half(&c) || !lnt_conv_is_depthwise(&c)))
        return lnt_bind_half(site, 1, bind_images);
    return lnt_conv_bind_types(site, &c, bind_images);
}

/* ---- the row's hooks ---- */

static int64_t multiply_adds(const lnt_node *node, const lnt_step *s)
{
    (void)node;
    return lnt_window_multiply_adds(s->in[0], s->in[1]);
}

const lnt_product lnt_product_conv_transpose = {1u << 1, NULL, lnt_conv_pack, multiply_adds};
