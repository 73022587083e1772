/* conv.c — Conv: the rows of a product are the neighbourhoods of pixels.
 *
 * On a channels-last image a tap of the kernel is a fixed distance from the pixel, and its channels lie side
 * by side: the tile kernels walk [tap][channel] without a copy. Taps side by side along x are one run. Tiles
 * that touch the padding are gathered into scratch memory, zeros included. */
#include "ops/conv.h"

#include "base/checked.h"
#include "ops/gemm_driver.h"

#include <string.h>

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
    lnt_gemm_plan plan;
    size_t gather_at;
    size_t *b_offset;       /* [groups] */
    bool runs;              /* taps along x are one run of kernel[2] * channels floats */
    int64_t pixel, feature; /* floats of a pixel of the input, of the output */
    int64_t inner[3][2];    /* output positions whose window lies inside the input: [begin, end) per axis */
} conv;

/* An output pixel and where its window starts. */
typedef struct place {
    int64_t image, o[3];
} place;

static place place_of(const conv *c, int64_t row)
{
    const int64_t *out = c->g.w.out;
    return (place){row / lnt_volume(out),
                   {row / (out[1] * out[2]) % out[0], row / out[2] % out[1], row % out[2]}};
}

static void next_place(const conv *c, place *p)
{
    for (unsigned a = 3; a-- > 0;) {
        if (++p->o[a] < c->g.w.out[a])
            return;
        p->o[a] = 0;
    }
    p->image++;
}

static bool is_inner(const conv *c, const place *p)
{
    bool inner = true;
    for (unsigned a = 0; a < 3; a++)
        inner &= p->o[a] >= c->inner[a][0] && p->o[a] < c->inner[a][1];
    return inner;
}

/* Floats from the start of the input to tap 0 of the window; its position is start[]. */
static int64_t window_start(const conv *c, const place *p, int64_t start[3])
{
    const lnt_window *w = &c->g.w;
    for (unsigned a = 0; a < 3; a++)
        start[a] = p->o[a] * w->stride[a] - w->before[a];
    return (((p->image * w->in[0] + start[0]) * w->in[1] + start[1]) * w->in[2] + start[2]) * c->pixel;
}

/* Which floats [*low, *high) of tap t lie inside the image. */
static void tap_inside(const conv *c, const int64_t start[3], size_t t, int64_t *low, int64_t *high)
{
    const lnt_window *w = &c->g.w;
    const int64_t along_x = c->runs ? 1 : w->kernel[2], tap = (int64_t)t;
    const int64_t z = start[0] + tap / (along_x * w->kernel[1]) * w->dilation[0];
    const int64_t y = start[1] + tap / along_x % w->kernel[1] * w->dilation[1];
    const int64_t x = start[2] + tap % along_x * w->dilation[2];
    const int64_t pixels = c->runs ? w->kernel[2] : 1;
    *low = *high = 0;
    if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1] || x >= w->in[2] || x + pixels <= 0)
        return;
    *low = x < 0 ? -x * c->g.channels : 0;
    *high = (x + pixels > w->in[2] ? w->in[2] - x : pixels) * c->g.channels;
}

/* Copies elements [k_begin, k_end) of a window; x is where its tap 0 would be. */
static void gather_row(const conv *c, const float *x, const int64_t start[3], size_t k_begin, size_t k_end,
                       float *dst)
{
    const size_t depth = c->plan.depth;
    for (size_t k = k_begin; k < k_end;) {
        const size_t t = k / depth, first = k - t * depth;
        const size_t end = k_end - t * depth < depth ? k_end - t * depth : depth;
        int64_t low, high;
        tap_inside(c, start, t, &low, &high);
        const size_t from = low > (int64_t)first ? (size_t)low : first;
        const size_t to = high < (int64_t)end ? (size_t)high : end;
        if (from >= to) {
            memset(dst, 0, (end - first) * sizeof *dst);
        } else {
            memset(dst, 0, (from - first) * sizeof *dst);
            memcpy(dst + (from - first), x + c->plan.tap_offset[t] + (ptrdiff_t)from,
                   (to - from) * sizeof *dst);
            memset(dst + (to - first), 0, (end - to) * sizeof *dst);
        }
        dst += end - first;
        k += end - first;
    }
}

static void rows_of_conv(const lnt_gemm_call *call, int64_t product, int64_t row, unsigned n, size_t k_begin,
                         size_t k_end, float *gather, lnt_row_set *set)
{
    const conv *c = call->plan->rows_arg;
    const float *x = call->a + product * c->g.channels;
    int64_t start[LNT_TILE_ROWS_MAX][3], at[LNT_TILE_ROWS_MAX];
    place p = place_of(c, row);
    bool inner = true;
    for (unsigned i = 0; i < n; i++, next_place(c, &p)) {
        inner &= is_inner(c, &p);
        at[i] = window_start(c, &p, start[i]);
        set->out[i] = (row + i) * c->feature + product * c->g.features;
    }
    set->gathered = !inner;
    for (unsigned i = 0; i < n; i++) {
        set->a[i] = x + at[i];
        if (inner)
            continue;
        gather_row(c, x + at[i], start[i], k_begin, k_end, gather);
        set->a[i] = gather;
        gather += k_end - k_begin;
    }
}

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

static void find_inner(conv *c)
{
    const lnt_window *w = &c->g.w;
    for (unsigned a = 0; a < 3; a++) {
        const int64_t last = w->in[a] - 1 - (w->kernel[a] - 1) * w->dilation[a] + w->before[a];
        c->inner[a][0] = (w->before[a] + w->stride[a] - 1) / w->stride[a];
        c->inner[a][1] = last < 0 ? 0 : last / w->stride[a] + 1;
    }
}

static lnt_status bind_taps(lnt_site *site, conv *c)
{
    const lnt_window *w = &c->g.w;
    c->runs = w->dilation[2] == 1 && c->g.groups == 1;
    const int64_t along_x = c->runs ? 1 : w->kernel[2], taps = w->kernel[0] * w->kernel[1] * along_x;
    c->plan.taps = (size_t)taps;
    c->plan.depth = (size_t)(c->g.channels * (c->runs ? w->kernel[2] : 1));
    ptrdiff_t *offset = lnt_bump_alloc(site->memory, (size_t)taps * sizeof *offset, site->err);
    c->b_offset = lnt_bump_alloc(site->memory, (size_t)c->g.groups * sizeof *c->b_offset, site->err);
    if (!offset || !c->b_offset)
        return LNT_E_MEMORY;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t z = t / (along_x * w->kernel[1]), y = t / along_x % w->kernel[1], x = t % along_x;
        const int64_t lines = z * w->dilation[0] * w->in[1] + y * w->dilation[1];
        offset[t] = (ptrdiff_t)((lines * w->in[2] + x * w->dilation[2]) * c->pixel);
    }
    for (int64_t g = 0; g < c->g.groups; g++)
        c->b_offset[g] =
            (size_t)g * c->plan.taps * c->plan.depth * lnt_round_up((size_t)c->g.features, LNT_PANEL);
    c->plan.tap_offset = offset;
    return LNT_OK;
}

static lnt_status bind_product(lnt_site *site, conv *c)
{
    lnt_gemm_plan *plan = &c->plan;
    const lnt_window *w = &c->g.w;
    c->pixel = c->g.groups * c->g.channels;
    c->feature = c->g.groups * c->g.features;
    LNT_TRY(bind_taps(site, c));
    find_inner(c);
    plan->kernels = site->kernels->gemm;
    plan->rows_of = rows_of_conv;
    plan->rows_arg = c;
    plan->products = c->g.groups;
    plan->rows = c->g.batch * lnt_volume(w->out);
    plan->columns = (size_t)c->g.features;
    plan->b_row = LNT_PANEL;
    plan->b_panel = plan->taps * plan->depth * LNT_PANEL;
    plan->scale = 1.0f;
    plan->low = c->store.low;
    plan->high = c->store.high;
    plan->epilogue = site->out[0]->order == LNT_ORDER_CHANNELS_LAST ? c->store.program : NULL;
    plan->epilogue_columns = c->g.features;
    plan->ld = c->feature;
    for (unsigned a = 0; a < 3; a++)
        plan->gathers |= c->inner[a][0] > 0 || c->inner[a][1] < w->out[a];
    lnt_gemm_plan_blocks(plan);
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
    lnt_conv_bind_images(site, &c->images, &scratch);
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
