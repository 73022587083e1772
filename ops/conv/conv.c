/* conv.c — Conv: the rows of a product are the neighborhoods of pixels.
 *
 * On a channels-last image a tap of the kernel is a fixed distance from the pixel, and its channels lie side
 * by side: the tile kernels walk [tap][channel] without a copy (ops/conv/conv_rows.h). */
#include "ops/conv/conv.h"

#include "base/checked.h"
#include "ops/conv/conv_rows.h"
#include "ops/gemm/half_step.h"
#include "ops/half_kernels.h"
#include "ops/product.h"

/* ---- extents ---- */

static lnt_status window_of(const lnt_site *site, lnt_window *w)
{
    const lnt_operand *x = site->in[0], *weights = site->in[1];
    if (x->rank < 3 || x->rank != weights->rank)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "input of rank %u and weights of rank %u do not fit", x->rank,
                             weights->rank);
    for (unsigned i = 2; i < weights->rank; i++)
        if (weights->dims[i] == 0)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the kernel has an extent of 0");
    return lnt_window_with(site, weights->dims + 2, w);
}

lnt_status lnt_shape_conv(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *weights = site->in[1];
    lnt_window w;
    LNT_TRY(window_of(site, &w));
    LNT_TRY(lnt_window_check_groups(site, weights, false));
    int64_t dims[LNT_MAX_RANK] = {x->dims[0], weights->dims[0]};
    for (unsigned i = 2; i < x->rank; i++)
        dims[i] = w.out[LNT_WINDOW_AXES + i - x->rank];
    lnt_set_dims(site, 0, x->rank, dims);
    return LNT_OK;
}

void lnt_conv_drop_taps(lnt_conv *c)
{
    for (unsigned a = 0; a < LNT_WINDOW_AXES && c->channels == 0; a++)
        c->w.kernel[a] = 1;
}

/* The two last ones of one channel, where the kernel has one tap along the last: taps along the other stand a line
 * apart. (A trimmed library has no room for it.) */
void lnt_conv_merge_axes(lnt_conv *c)
{
    lnt_window *w = &c->w;
    const int64_t line = w->in[2];
    int64_t pixels, apart;
    if (LNT_TRIMMED || c->axes != 3 || c->groups * c->channels != 1 || w->kernel[2] != 1 ||
        w->stride[1] != 1 || w->stride[2] != 1 || w->before[2] != 0 || w->out[2] != line || line < 1 ||
        w->in[1] < 0 || !lnt_mul_i64(line, w->in[1] + w->before[1] + w->after[1], &pixels) ||
        !lnt_mul_i64(line, w->dilation[1], &apart))
        return;
    *w = (lnt_window){.in = {1, w->in[0], w->in[1] * line},
                      .out = {1, w->out[0], w->out[1] * line},
                      .kernel = {1, w->kernel[0], w->kernel[1]},
                      .stride = {1, w->stride[0], 1},
                      .dilation = {1, w->dilation[0], apart},
                      .before = {0, w->before[0], w->before[1] * line},
                      .after = {0, w->after[0], w->after[1] * line}};
}

lnt_status lnt_conv_of(const lnt_site *site, lnt_conv *c)
{
    const lnt_operand *x = site->in[0], *weights = site->in[1], *bias = lnt_own_input(site, 2);
    const int64_t groups = lnt_attr_i(site->node, "group", 1), features = weights->dims[0];
    LNT_TRY(window_of(site, &c->w));
    LNT_TRY(lnt_window_check_groups(site, weights, false));
    if (bias && lnt_operand_count(bias) != features)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the bias must have %lld elements", (long long)features);
    c->batch = x->dims[0];
    c->groups = groups;
    c->channels = weights->dims[1];
    c->features = features / groups;
    c->axes = x->rank - 2u;
    c->transposed = false;
    lnt_conv_drop_taps(c);
    return LNT_OK;
}

/* ---- the product ---- */

typedef struct conv {
    lnt_conv g;
    lnt_conv_images images;
    lnt_conv_weights weights;
    lnt_store store;
    lnt_conv_rows rows;
    lnt_gemm_plan plan;
    size_t *b_offset; /* [groups] */
    size_t gather_at;
} conv;

static lnt_gemm_call call_of(const lnt_kernel *k, const lnt_step *s, const float *x, const void *b)
{
    const conv *c = s->params;
    return (lnt_gemm_call){
        .plan = &c->plan,
        .step = s,
        .a = x,
        .b = b,
        .b_offset = c->b_offset,
        .ld = lnt_conv_out_pixel(s),
        .residual = c->store.residual >= 0 ? lnt_in(k, s, (unsigned)c->store.residual) : NULL,
        .bias = c->store.bias >= 0 ? lnt_in(k, s, (unsigned)c->store.bias) : NULL,
        .bias_product = (size_t)c->g.features,
        .gather = (char *)lnt_scratch(k, s) + c->gather_at,
    };
}

static lnt_status run_conv(lnt_kernel *k, const lnt_step *s)
{
    const conv *c = s->params;
    const float *x;
    const void *b;
    LNT_TRY(lnt_conv_input(k, s, &c->images, &x));
    LNT_TRY(lnt_conv_packed_weights(k, s, &c->weights, &b));
    lnt_gemm_call call = call_of(k, s, x, b);
    call.c = lnt_conv_output(k, s, &c->images);
    LNT_TRY(lnt_gemm_run(k, &call));
    return lnt_conv_finish(k, s, &c->images, c->plan.epilogue ? NULL : c->store.program);
}

static lnt_status conv_lines(lnt_kernel *k, const lnt_step *s, int64_t begin, int64_t end, float *to,
                             unsigned thread)
{
    const conv *c = s->params;
    const int64_t width = c->g.w.out[2];
    lnt_gemm_call call = call_of(k, s, lnt_in(k, s, 0), lnt_in(k, s, 1));
    call.c = to;
    call.c_first = begin * width * call.ld;
    lnt_gemm_part(k, &call, begin * width, end * width, thread);
    return LNT_OK;
}

/* ---- bind ---- */

/* Taps [*first, *stop) of axis a lie inside the image for some position; at least one is named. */
static void taps_met(const lnt_window *w, unsigned a, int64_t *first, int64_t *stop)
{
    int64_t ignored;
    lnt_window_taps(w, a, w->out[a] - 1, first, &ignored);
    lnt_window_taps(w, a, 0, &ignored, stop);
    if (*first == w->kernel[a])
        --*first;
    if (*stop <= *first)
        *stop = *first + 1;
}

/* Taps that meet nothing but padding wherever the kernel stands are left out as long as the others lie side
 * by side in the weights. Returns how many come before those. */
static int64_t find_rows(const lnt_conv *g, lnt_conv_rows *r)
{
    const lnt_window *w = &g->w;
    int64_t behind = lnt_volume(w->kernel), skipped = 0;
    bool crop = lnt_volume(w->out) > 0;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        int64_t first = 0, stop = w->kernel[a];
        behind /= w->kernel[a];
        if (crop)
            taps_met(w, a, &first, &stop);
        crop &= stop - first == 1;
        skipped += first * behind;
        r->in[a] = w->in[a];
        r->zeros[a][0] = r->zeros[a][1] = 0;
        r->out[a] = w->out[a];
        r->count[a] = w->out[a];
        r->step[a] = w->stride[a];
        r->spacing[a] = w->dilation[a];
        r->origin[a] = lnt_window_at(w, a, 0, first);
        r->taps[a] = stop - first;
        r->out_first[a] = 0;
        r->out_step[a] = 1;
    }
    r->channels = g->channels;
    r->features = g->features;
    r->pixel = g->groups * g->channels;
    r->group = g->channels;
    return skipped;
}

static double at_most_1(double x)
{
    return x < 1 ? x : 1;
}

/* Share of the tiles that have to be gathered for the padding p: those that touch it left or right, or
 * partly above or below. */
static double border_share(const lnt_conv_rows *r, const lnt_padding *p, unsigned tile_rows)
{
    const int64_t *n = r->count;
    const double ends = at_most_1((double)tile_rows / (double)n[2]); /* tiles with an end of a line */
    double inner = 1;
    for (unsigned a = 0; a < 2; a++) {
        const double border = (double)(p->before[a] + p->after[a]) / (double)r->step[a];
        inner *= 1 - at_most_1(border / (double)n[a]) * ends;
    }
    const double sides = (p->before[2] > 0) + (p->after[2] > 0);
    return 1 - inner * (1 - at_most_1(sides * ends));
}

/* Are there pixels that no tap meets? Of an image that is copied in any case the others are enough. */
static bool skips_pixels(lnt_conv_rows *r, lnt_padding *p)
{
    bool skips = false;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        if (r->taps[a] != 1 || p->before[a] > 0 || p->after[a] > 0)
            return false;
        skips |= r->step[a] > 1;
    }
    for (unsigned a = 0; skips && a < LNT_WINDOW_AXES; a++) {
        p->step[a] = r->step[a];
        r->in[a] = (r->in[a] + r->step[a] - 1) / r->step[a];
        r->step[a] = 1;
    }
    return skips;
}

/* Should the input be copied with its padding? If it is copied anyway, or if gathering tiles at the border
 * would be more work; then *p is that padding and the rows are those of the padded image. Groups get images of
 * their own where rows would push each other out of the cache: gathered, few channels are copied for each tap again. */
static bool copies_input(const lnt_site *site, lnt_conv_rows *r, lnt_padding *p)
{
    enum { PIECE_WORK = 4096 /* multiply-adds */ };
    /* Gathering copies a tap at a time where taps along x are no run, for few features. */
    const bool grouped = r->pixel > r->channels, piecewise = grouped || (r->taps[2] > 1 && r->spacing[2] > 1);
    const double worth = piecewise && r->channels * r->features <= PIECE_WORK ? 0.06 : 0.25,
                 most = r->features <= LNT_NARROW_COLUMNS ? 6 : 3; /* as much memory */
    bool any = false, some = true;
    double grown = 1;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        const int64_t end =
            r->origin[a] + (r->count[a] - 1) * r->step[a] + (r->taps[a] - 1) * r->spacing[a] + 1;
        p->before[a] = r->origin[a] < 0 ? -r->origin[a] : 0;
        p->after[a] = end > r->in[a] ? end - r->in[a] : 0;
        p->step[a] = 1;
        any |= p->before[a] > 0 || p->after[a] > 0;
        some &= r->count[a] > 0;
        grown *= 1 + (double)(p->before[a] + p->after[a]) / (double)r->in[a];
    }
    const bool copied = site->in[0]->order == LNT_ORDER_PLAIN && r->pixel > 1;
    const bool apart =
        LNT_GROUPS_APART && grouped && lnt_volume(r->taps) > 1 &&
        lnt_rows_collide(site->kernels->gemm, r->step[2] * r->pixel, lnt_volume(r->count), r->features);
    p->groups = apart ? r->pixel / r->channels : 1;
    if (!LNT_TRIMMED && copied && skips_pixels(r, p))
        return true;
    if (!some || grown > most ||
        (!apart && (!any || (!copied && border_share(r, p, site->kernels->gemm->tile_rows) < worth))))
        return false;
    if (LNT_GROUPS_APART)
        r->pixel /= p->groups;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        r->in[a] += p->before[a] + p->after[a];
        r->origin[a] += p->before[a];
        r->zeros[a][0] = p->before[a];
        r->zeros[a][1] = p->after[a];
    }
    return true;
}

/* skipped: taps before the first one of the rows. */
static lnt_status bind_product(lnt_site *site, conv *c, int64_t skipped)
{
    lnt_gemm_plan *plan = &c->plan;
    const int64_t panel = lnt_volume(c->g.w.kernel) * c->g.channels * LNT_PANEL;
    *plan = (lnt_gemm_plan){.kernels = site->half ? site->kernels->half->gemm : site->kernels->gemm,
                            .b_form = lnt_b_form_of(site->in[1])};
    LNT_TRY(lnt_conv_rows_plan(site, &c->rows, c->g.batch, plan));
    plan->b_panel = (size_t)panel;
    plan->products = c->g.groups;
    plan->columns = (size_t)c->g.features;
    plan->scale = 1.0f;
    plan->low = c->store.low;
    plan->high = c->store.high;
    plan->epilogue = site->out[0]->order == LNT_ORDER_CHANNELS_LAST ? c->store.program : NULL;
    plan->epilogue_columns = c->g.features;
    lnt_gemm_plan_blocks(plan);
    c->b_offset = lnt_bump_alloc(site->memory, (size_t)c->g.groups * sizeof *c->b_offset, site->err);
    if (!c->b_offset)
        return LNT_E_MEMORY;
    const size_t panels = lnt_round_up(plan->columns, LNT_PANEL) / LNT_PANEL;
    for (size_t g = 0; g < (size_t)c->g.groups; g++)
        c->b_offset[g] = g * panels * (size_t)panel + (size_t)(skipped * c->g.channels) * LNT_PANEL;
    return LNT_OK;
}

bool lnt_conv_streams_rows(const lnt_site *site, const lnt_conv *c)
{
    enum { DEPTH = 256 };
    return site->in[0]->dtype == (site->half ? LNT_FLOAT16 : LNT_FLOAT) &&
           site->out[0]->order == LNT_ORDER_CHANNELS_LAST && c->groups == 1 &&
           c->channels * lnt_volume(c->w.kernel) <= DEPTH && c->w.out[2] >= LNT_GEMM_PART;
}

/* Pixels of one tap are rows of a product, too: the tile's pointers go along them, where the stem of a level without
 * vectors spends an addition on each load from one. */
static bool multiplies_points(const lnt_site *site)
{
    return site->kernels->gemm->lanes == 1;
}

/* Of floats or halves. */
static lnt_status bind_images(lnt_site *site)
{
    lnt_conv g;
    LNT_TRY(lnt_conv_of(site, &g));
    lnt_conv_merge_axes(&g);
    const int own_bias = lnt_own_input(site, 2) ? 2 : -1;
    const bool writes = lnt_conv_writes_output(site);
    lnt_store store;
    LNT_TRY(lnt_bind_store(site, 1, own_bias, writes, &store));
    lnt_conv_kind kind = lnt_conv_algorithm(&g, (lnt_order)site->in[0]->order, writes, store.residual >= 0);
    if (LNT_HAS_PLAIN_CONV && !site->half && site->out[0]->order == LNT_ORDER_PLAIN) {
        /* planes, too, where one feature could be pixels */
        const lnt_conv_kind plain = lnt_conv_algorithm(&g, (lnt_order)site->in[0]->order, false, false);
        if (plain == LNT_CONV_MATRIX && !site->in[1]->packed)
            return lnt_conv_bind_matrix(site, &g);
        const bool scales = lnt_conv_scales_planes(&g);
        if (plain == LNT_CONV_EACH && scales && lnt_conv_may_scale(site, &store))
            return lnt_conv_bind_scale(site, &g);
        if (LNT_HAS_PLANES && plain == LNT_CONV_EACH && !scales && site->kernels->conv->plane)
            return lnt_conv_bind_planes(site, &g);
    }
    if (LNT_HAS_PLAIN_CONV && kind == LNT_CONV_EACH)
        kind = lnt_conv_is_depthwise(&g) ? LNT_CONV_DEPTHWISE : LNT_CONV_PRODUCT;
    if ((LNT_HAS_PLAIN_CONV && kind == LNT_CONV_MATRIX) ||
        (site->half && kind != LNT_CONV_DEPTHWISE && !lnt_conv_sums_in_half(&g)))
        kind = LNT_CONV_PRODUCT;
    if (LNT_HAS_WIDE_GROUPS && kind == LNT_CONV_PRODUCT && !site->half &&
        site->kernels->gemm->lanes >= LNT_WIDE_GROUP_LANES && site->in[1]->packed && g.groups > 1 &&
        lnt_depthwise_widens(g.channels, g.features) && g.w.kernel[0] * g.w.kernel[1] <= LNT_DEPTHWISE_LINES)
        kind = LNT_CONV_DEPTHWISE;
    if (LNT_HAS_DEPTHWISE && kind == LNT_CONV_DEPTHWISE)
        return lnt_conv_bind_depthwise(site, &g, &store);
    if (kind != LNT_CONV_PRODUCT && !(kind == LNT_CONV_POINTS && multiplies_points(site)))
        return lnt_conv_bind_stem(site, &g, kind, &store);
    conv *c = lnt_bind_params(site, sizeof *c);
    if (!c)
        return LNT_E_MEMORY;
    c->g = g;
    c->store = store;
    size_t scratch = 0;
    lnt_padding padding;
    const int64_t skipped = find_rows(&g, &c->rows);
    const bool copies = copies_input(site, &c->rows, &padding);
    LNT_TRY(lnt_conv_bind_images(site, &g, copies ? &padding : NULL, &c->images, &scratch));
    if (LNT_GROUPS_APART && c->images.groups > 1)
        c->rows.group = g.batch * lnt_volume(c->images.whole) * g.channels;
    LNT_TRY(lnt_conv_bind_weights(site, &g, &c->weights, &scratch));
    LNT_TRY(bind_product(site, c, skipped));
    if (store.residual >= 0 && lnt_gemm_in_place(&c->plan))
        lnt_bind_in_place(site, 0, (unsigned)store.residual);
    c->gather_at = scratch;
    lnt_bind_scratch(site, scratch + c->plan.gather_bytes * site->threads);
    lnt_conv_bind_pitched(site, &store);
    site->step->run = run_conv;
    if (scratch == 0 && lnt_gemm_has_parts(&c->plan) && lnt_conv_streams_rows(site, &g))
        site->step->produce_lines = conv_lines;
    return LNT_OK;
}

lnt_status lnt_bind_conv(lnt_site *site)
{
    lnt_conv c;
    LNT_TRY(lnt_conv_of(site, &c));
    if (lnt_has_half_weights(site, 1) &&
        ((lnt_conv_sums_in_half(&c) && c.features == 1) || !lnt_conv_is_depthwise(&c)))
        return lnt_bind_half(site, 1, bind_images);
    return lnt_conv_bind_types(site, &c, bind_images);
}

const lnt_product lnt_product_conv = {1u << 1, NULL, lnt_conv_pack, lnt_conv_multiply_adds};
