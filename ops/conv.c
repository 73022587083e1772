/* conv.c — Conv: the rows of a product are the neighbourhoods of pixels.
 *
 * On a channels-last image a tap of the kernel is a fixed distance from the pixel, and its channels lie side
 * by side: the tile kernels walk [tap][channel] without a copy. Taps side by side along x are one run. Tiles
 * that touch the padding are gathered into scratch memory, zeros included. */
#include "ops/conv.h"

#include "base/checked.h"
#include "ops/conv_rows.h"

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
    int64_t dims[LNT_MAX_RANK] = {x->dims[0], weights->dims[0]};
    for (unsigned i = 2; i < x->rank; i++)
        dims[i] = w.out[LNT_WINDOW_AXES + i - x->rank];
    lnt_set_dims(site, 0, x->rank, dims);
    return LNT_OK;
}

lnt_status lnt_conv_of(const lnt_site *site, lnt_conv *c)
{
    const lnt_operand *x = site->in[0], *weights = site->in[1], *bias = lnt_own_input(site, 2);
    const int64_t groups = lnt_attr_i(site->node, "group", 1), features = weights->dims[0];
    LNT_TRY(window_of(site, &c->w));
    if (groups < 1 || features % groups || x->dims[1] != weights->dims[1] * groups)
        return LNT_SITE_FAIL(
            site, LNT_E_SHAPE, "%lld channels do not fit weights of %lld x %lld in %lld groups",
            (long long)x->dims[1], (long long)features, (long long)weights->dims[1], (long long)groups);
    if (bias && lnt_operand_count(bias) != features)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the bias must have %lld elements", (long long)features);
    c->batch = x->dims[0];
    c->groups = groups;
    c->channels = weights->dims[1];
    c->features = features / groups;
    c->axes = x->rank - 2u;
    c->transposed = false;
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
    size_t gather_at;
    size_t *b_offset; /* [groups] */
} conv;

static lnt_status run_conv(lnt_kernel *k, const lnt_step *s)
{
    const conv *c = s->params;
    const float *x, *b;
    LNT_TRY(lnt_conv_input(k, s, &c->images, &x));
    LNT_TRY(lnt_conv_packed_weights(k, s, &c->weights, &b));
    const lnt_gemm_call call = {
        .plan = &c->plan,
        .step = s,
        .a = x,
        .b = b,
        .b_offset = c->b_offset,
        .c = lnt_conv_output(k, s, &c->images),
        .residual = c->store.residual >= 0 ? lnt_in(k, s, (unsigned)c->store.residual) : NULL,
        .bias = c->store.bias >= 0 ? lnt_in(k, s, (unsigned)c->store.bias) : NULL,
        .bias_product = (size_t)c->g.features,
        .gather = (char *)lnt_scratch(k, s) + c->gather_at,
    };
    LNT_TRY(lnt_gemm_run(k, &call));
    return lnt_conv_finish(k, s, &c->images, c->plan.epilogue ? NULL : c->store.program);
}

/* ---- bind ---- */

static void find_rows(conv *c)
{
    const lnt_window *w = &c->g.w;
    lnt_conv_rows *r = &c->rows;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        r->in[a] = w->in[a];
        r->count[a] = r->out[a] = w->out[a];
        r->origin[a] = -w->before[a];
        r->step[a] = w->stride[a];
        r->taps[a] = w->kernel[a];
        r->spacing[a] = w->dilation[a];
        r->out_first[a] = 0;
        r->out_step[a] = 1;
    }
    r->channels = c->g.channels;
    r->features = c->g.features;
    r->pixel = c->g.groups * c->g.channels;
    r->out_pixel = c->g.groups * c->g.features;
}

static double at_most_1(double x)
{
    return x < 1 ? x : 1;
}

/* Share of the tiles that touch the padding p. */
static double border_share(const conv *c, const lnt_padding *p, unsigned tile_rows)
{
    const int64_t *n = c->rows.count;
    double inner = 1;
    for (unsigned a = 0; a < 2; a++) {
        const double border = (double)(p->before[a] + p->after[a]) / (double)c->rows.step[a];
        inner *= 1 - at_most_1(border / (double)n[a]);
    }
    const double sides = (p->before[2] > 0) + (p->after[2] > 0);
    return 1 - inner * (1 - at_most_1(sides * tile_rows / (double)n[2]));
}

/* Should the input be copied with its padding? If it is copied anyway, or if gathering tiles at the border
 * would be more work; then *p is that padding and the rows are those of the padded image. */
static bool pads_input(const lnt_site *site, conv *c, lnt_padding *p)
{
    const double worth = 0.25;
    lnt_conv_rows *r = &c->rows;
    bool any = false, some = true;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        const int64_t end =
            r->origin[a] + (r->count[a] - 1) * r->step[a] + (r->taps[a] - 1) * r->spacing[a] + 1;
        p->before[a] = r->origin[a] < 0 ? -r->origin[a] : 0;
        p->after[a] = end > r->in[a] ? end - r->in[a] : 0;
        any |= p->before[a] > 0 || p->after[a] > 0;
        some &= r->count[a] > 0;
    }
    const bool copied = site->in[0]->order == LNT_ORDER_PLAIN && r->pixel > 1;
    if (!any || !some || (!copied && border_share(c, p, site->kernels->gemm->tile_rows) < worth))
        return false;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        r->in[a] += p->before[a] + p->after[a];
        r->origin[a] += p->before[a];
    }
    return true;
}

static lnt_status bind_product(lnt_site *site, conv *c)
{
    lnt_gemm_plan *plan = &c->plan;
    LNT_TRY(lnt_conv_rows_plan(site, &c->rows, c->g.batch, plan));
    plan->kernels = site->kernels->gemm;
    plan->products = c->g.groups;
    plan->columns = (size_t)c->g.features;
    plan->scale = 1.0f;
    plan->low = c->store.low;
    plan->high = c->store.high;
    plan->epilogue = site->out[0]->order == LNT_ORDER_CHANNELS_LAST ? c->store.program : NULL;
    plan->epilogue_columns = c->g.features;
    plan->ld = c->rows.out_pixel;
    lnt_gemm_plan_blocks(plan);
    c->b_offset = lnt_bump_alloc(site->memory, (size_t)c->g.groups * sizeof *c->b_offset, site->err);
    if (!c->b_offset)
        return LNT_E_MEMORY;
    for (size_t g = 0; g < (size_t)c->g.groups; g++)
        c->b_offset[g] = g * plan->taps * plan->depth * lnt_round_up(plan->columns, LNT_PANEL);
    return LNT_OK;
}

static lnt_status bind_float(lnt_site *site)
{
    lnt_conv g;
    LNT_TRY(lnt_conv_of(site, &g));
    if (lnt_conv_is_depthwise(&g))
        return lnt_conv_bind_depthwise(site, &g);
    conv *c = lnt_bind_params(site, sizeof *c);
    if (!c)
        return LNT_E_MEMORY;
    c->g = g;
    size_t scratch = 0;
    find_rows(c);
    lnt_padding padding;
    const bool padded = pads_input(site, c, &padding);
    LNT_TRY(lnt_conv_bind_images(site, &g, padded ? &padding : NULL, &c->images, &scratch));
    LNT_TRY(lnt_conv_bind_weights(site, &g, &c->weights, &scratch));
    const int own_bias = lnt_own_input(site, 2) ? 2 : -1;
    LNT_TRY(lnt_bind_store(site, 1, own_bias, lnt_conv_writes_output(site), &c->store));
    LNT_TRY(bind_product(site, c));
    c->gather_at = scratch;
    lnt_bind_scratch(site, scratch + c->plan.gather_bytes * site->threads);
    site->step->run = run_conv;
    return LNT_OK;
}

lnt_status lnt_bind_conv(lnt_site *site)
{
    lnt_conv c;
    LNT_TRY(lnt_conv_of(site, &c));
    return lnt_conv_bind_types(site, &c, bind_float);
}
