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
    if (!lnt_conv_splits(x->dims[1], features, groups) || x->dims[1] / groups != weights->dims[1])
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

/* Positions whose taps outside the image are the same, along the first axis with taps: the product leaves
 * those out. */
typedef struct band {
    lnt_conv_rows rows;
    int64_t skipped; /* taps before its own */
    lnt_gemm_plan plan;
    size_t *b_offset; /* [groups] */
} band;

typedef struct conv {
    lnt_conv g;
    lnt_conv_images images;
    lnt_conv_weights weights;
    lnt_store store;
    band *bands;
    unsigned n_bands;
    size_t gather_at, gather_bytes; /* of a thread */
} conv;

static lnt_gemm_call call_of(const lnt_kernel *k, const lnt_step *s, const float *x, const float *b)
{
    const conv *c = s->params;
    return (lnt_gemm_call){
        .plan = &c->bands[0].plan,
        .step = s,
        .a = x,
        .b = b,
        .b_offset = c->bands[0].b_offset,
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
    const float *x, *b;
    LNT_TRY(lnt_conv_input(k, s, &c->images, &x));
    LNT_TRY(lnt_conv_packed_weights(k, s, &c->weights, &b));
    lnt_gemm_call call = call_of(k, s, x, b);
    call.c = lnt_conv_output(k, s, &c->images);
    for (unsigned i = 0; i < c->n_bands; i++) {
        call.plan = &c->bands[i].plan;
        call.b_offset = c->bands[i].b_offset;
        LNT_TRY(lnt_gemm_run(k, &call));
    }
    return lnt_conv_finish(k, s, &c->images, c->bands[0].plan.epilogue ? NULL : c->store.program);
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

/* Taps [*first, *stop) of axis a lie inside the image for some of the positions [begin, end); at least one is
 * named. */
static void taps_met(const lnt_window *w, unsigned a, int64_t begin, int64_t end, int64_t *first,
                     int64_t *stop)
{
    int64_t ignored;
    lnt_window_taps(w, a, end - 1, first, &ignored);
    lnt_window_taps(w, a, begin, &ignored, stop);
    if (*first == w->kernel[a])
        --*first;
    if (*stop <= *first)
        *stop = *first + 1;
}

/* Positions [begin, end) of an axis, all of the others. Taps that meet nothing but padding are left out as
 * long as the others lie side by side in the weights. */
static void find_rows(const lnt_conv *g, unsigned axis, int64_t begin, int64_t end, band *b)
{
    const lnt_window *w = &g->w;
    lnt_conv_rows *r = &b->rows;
    int64_t behind = lnt_volume(w->kernel);
    bool crop = true;
    b->skipped = 0;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        const int64_t from = a == axis ? begin : 0, to = a == axis ? end : w->out[a];
        int64_t first = 0, stop = w->kernel[a];
        behind /= w->kernel[a];
        if (crop && from < to)
            taps_met(w, a, from, to, &first, &stop);
        crop &= stop - first == 1;
        b->skipped += first * behind;
        r->in[a] = w->in[a];
        r->out[a] = w->out[a];
        r->count[a] = to - from;
        r->step[a] = w->stride[a];
        r->spacing[a] = w->dilation[a];
        r->origin[a] = lnt_window_at(w, a, from, first);
        r->taps[a] = stop - first;
        r->out_first[a] = from;
        r->out_step[a] = 1;
    }
    r->channels = g->channels;
    r->features = g->features;
    r->pixel = g->groups * g->channels;
}

/* Where the band of positions along axis a that begins at `begin` ends. The first and the last tap met only
 * go back along the axis: where both are the same again, so they are all the way. */
static int64_t band_end(const lnt_window *w, unsigned a, int64_t begin, int64_t *taps)
{
    int64_t first, stop, end = begin + 1, beyond = w->out[a];
    taps_met(w, a, begin, begin + 1, &first, &stop);
    while (end < beyond) {
        const int64_t middle = end + (beyond - end) / 2;
        int64_t next, next_stop;
        taps_met(w, a, middle, middle + 1, &next, &next_stop);
        if (next == first && next_stop == stop)
            end = middle + 1;
        else
            beyond = middle;
    }
    *taps = stop - first;
    return end;
}

/* Cuts the rows into bands where that saves a fair share of the work: dilated taps that reach far. */
static lnt_status cut_bands(lnt_site *site, conv *c)
{
    enum { MOST_BANDS = 8 };
    const double worth = 0.8;
    const lnt_window *w = &c->g.w;
    const bool any = lnt_volume(w->out) > 0;
    int64_t begin[MOST_BANDS + 1] = {0}, work = 0, all = 0, first, stop, taps;
    unsigned axis = 0, n = 0;
    for (; any && axis < LNT_WINDOW_AXES; axis++) { /* the first that keeps more than one tap */
        taps_met(w, axis, 0, w->out[axis], &first, &stop);
        all = (stop - first) * w->out[axis];
        if (stop - first > 1)
            break;
    }
    axis = axis < LNT_WINDOW_AXES ? axis : LNT_WINDOW_AXES - 1;
    for (; any && n < MOST_BANDS && begin[n] < w->out[axis]; n++) {
        begin[n + 1] = band_end(w, axis, begin[n], &taps);
        work += (begin[n + 1] - begin[n]) * taps;
    }
    if (n == 0 || begin[n] < w->out[axis] || (double)work > worth * (double)all) {
        n = 1;
        begin[1] = w->out[axis];
    }
    c->n_bands = n;
    c->bands = lnt_bump_alloc(site->memory, n * sizeof *c->bands, site->err);
    if (!c->bands)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < n; i++)
        find_rows(&c->g, axis, begin[i], begin[i + 1], &c->bands[i]);
    return LNT_OK;
}

static double at_most_1(double x)
{
    return x < 1 ? x : 1;
}

/* Share of the tiles that touch the padding p. */
static double border_share(const lnt_conv_rows *r, const lnt_padding *p, unsigned tile_rows)
{
    const int64_t *n = r->count;
    double inner = 1;
    for (unsigned a = 0; a < 2; a++) {
        const double border = (double)(p->before[a] + p->after[a]) / (double)r->step[a];
        inner *= 1 - at_most_1(border / (double)n[a]);
    }
    const double sides = (p->before[2] > 0) + (p->after[2] > 0);
    return 1 - inner * (1 - at_most_1(sides * tile_rows / (double)n[2]));
}

/* Should the input be copied with its padding? If it is copied anyway, or if gathering tiles at the border
 * would be more work; then *p is that padding and the rows are those of the padded image. */
static bool pads_input(const lnt_site *site, lnt_conv_rows *r, lnt_padding *p)
{
    const double worth = 0.25;
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
    if (!any || !some || (!copied && border_share(r, p, site->kernels->gemm->tile_rows) < worth))
        return false;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        r->in[a] += p->before[a] + p->after[a];
        r->origin[a] += p->before[a];
    }
    return true;
}

static lnt_status bind_band(lnt_site *site, conv *c, band *b)
{
    lnt_gemm_plan *plan = &b->plan;
    const int64_t panel = lnt_volume(c->g.w.kernel) * c->g.channels * LNT_PANEL;
    *plan = (lnt_gemm_plan){.kernels = site->kernels->gemm};
    LNT_TRY(lnt_conv_rows_plan(site, &b->rows, c->g.batch, plan));
    plan->b_panel = (size_t)panel;
    plan->products = c->g.groups;
    plan->columns = (size_t)c->g.features;
    plan->scale = 1.0f;
    plan->low = c->store.low;
    plan->high = c->store.high;
    const bool at_once = site->out[0]->order == LNT_ORDER_CHANNELS_LAST && c->n_bands == 1;
    plan->epilogue = at_once ? c->store.program : NULL;
    plan->epilogue_columns = c->g.features;
    lnt_gemm_plan_blocks(plan);
    b->b_offset = lnt_bump_alloc(site->memory, (size_t)c->g.groups * sizeof *b->b_offset, site->err);
    if (!b->b_offset)
        return LNT_E_MEMORY;
    const size_t panels = lnt_round_up(plan->columns, LNT_PANEL) / LNT_PANEL;
    for (size_t g = 0; g < (size_t)c->g.groups; g++)
        b->b_offset[g] = g * panels * (size_t)panel + (size_t)(b->skipped * c->g.channels) * LNT_PANEL;
    c->gather_bytes = plan->gather_bytes > c->gather_bytes ? plan->gather_bytes : c->gather_bytes;
    return LNT_OK;
}

bool lnt_conv_may_feed(const lnt_site *site, const lnt_conv *c)
{
    enum { DEPTH = 256 };
    return site->in[0]->dtype == LNT_FLOAT && site->out[0]->order == LNT_ORDER_CHANNELS_LAST &&
           c->groups == 1 && c->channels * lnt_volume(c->w.kernel) <= DEPTH && c->w.out[2] >= LNT_GEMM_PART;
}

static lnt_status bind_float(lnt_site *site)
{
    lnt_conv g;
    LNT_TRY(lnt_conv_of(site, &g));
    if (lnt_conv_is_depthwise(&g))
        return lnt_conv_bind_depthwise(site, &g);
    const int own_bias = lnt_own_input(site, 2) ? 2 : -1;
    lnt_store store;
    LNT_TRY(lnt_bind_store(site, 1, own_bias, lnt_conv_writes_output(site), &store));
    if (store.residual < 0 && lnt_conv_is_stem(site, &g))
        return lnt_conv_bind_stem(site, &g, &store);
    conv *c = lnt_bind_params(site, sizeof *c);
    if (!c)
        return LNT_E_MEMORY;
    c->g = g;
    c->store = store;
    size_t scratch = 0;
    LNT_TRY(cut_bands(site, c));
    lnt_padding padding;
    const bool padded = c->n_bands == 1 && pads_input(site, &c->bands[0].rows, &padding);
    LNT_TRY(lnt_conv_bind_images(site, &g, padded ? &padding : NULL, &c->images, &scratch));
    LNT_TRY(lnt_conv_bind_weights(site, &g, &c->weights, &scratch));
    for (unsigned i = 0; i < c->n_bands; i++)
        LNT_TRY(bind_band(site, c, &c->bands[i]));
    if (store.residual >= 0 && c->n_bands == 1 && lnt_gemm_in_place(&c->bands[0].plan))
        lnt_bind_in_place(site, 0, (unsigned)store.residual);
    c->gather_at = scratch;
    lnt_bind_scratch(site, scratch + c->gather_bytes * site->threads);
    lnt_conv_bind_pitched(site, &store);
    site->step->run = run_conv;
    if (scratch == 0 && c->n_bands == 1 && lnt_gemm_has_parts(&c->bands[0].plan) &&
        lnt_conv_may_feed(site, &g))
        site->step->lines = conv_lines;
    return LNT_OK;
}

lnt_status lnt_bind_conv(lnt_site *site)
{
    lnt_conv c;
    LNT_TRY(lnt_conv_of(site, &c));
    return lnt_conv_bind_types(site, &c, bind_float);
}
