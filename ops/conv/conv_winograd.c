/* conv_winograd.c — WinogradConv: a Conv of 3x3 taps, or of taps in a line, by minimal filtering
 * (ops/conv/winograd.h), as the converter makes it of Conv. Its weights are the taps transformed: [6, 6, channels,
 * features] of squares, [4, 4, channels, features] of those in small tiles, [points, groups * channels, features] of
 * lines. Small tiles with weights of float16 are computed with halves where the level can.
 *
 * Or they are Conv's, [features, channels, 3, 3], which takes no room: transformed in each run, to small tiles of
 * halves, if that is sooner for the extents that there are; or else the operator is a Conv.
 *
 *   block of tiles (and a part of the features, where tiles are few)
 *     their inputs, transformed: v
 *     the part's taps, transformed, where they are not yet: u
 *     for each point        m = v * the weights of that point, by the tile kernels
 *     m transformed back, bias, residual and clamp with it
 *
 * A block is one thread's: v and m stay in its caches. Blocks follow from the extents alone. */
#include "ops/conv/conv_winograd.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/gemm/half_step.h"
#include "ops/product.h"

#include <math.h>

enum { PATCH = LNT_WINOGRAD_PATCH, SMALL_PATCH = LNT_WINOGRAD_SMALL_PATCH, TAPS = LNT_WINOGRAD_TAPS };

/* Tiles [*first, *stop) of a block. */
static void block_tiles(const lnt_winograd *w, int64_t block, int64_t *first, int64_t *stop)
{
    const int64_t begin = block / w->blocks * w->tiles, part = block % w->blocks;
    *first = begin + lnt_cut(w->tiles, w->blocks, part);
    *stop = begin + lnt_cut(w->tiles, w->blocks, part + 1);
}

enum {
    ABREAST = 256, /* taps that are widened before they are transformed */
    CHUNK = 256    /* channels of one of several chunks, at most, of which a tile has one sum */
};

/* What a thread has transformed: the block that is in v, the part that is in u. */
typedef struct held {
    int64_t block, part;
} held;

/* Transforms the taps of features from n on, a part of them, of the chunk of their channels: Conv's panels. */
static void transform_taps(const lnt_winograd *w, const void *weights, int64_t n, int64_t chunk, float *u)
{
    enum { ALL = TAPS * TAPS };
    const size_t tap = (size_t)w->g.channels * LNT_PANEL, panel = ALL * tap;
    const size_t first = w->plan.depth * LNT_PANEL * (size_t)chunk, end = first + w->plan.depth * LNT_PANEL;
    const bool widens = w->taps_form != w->plan.b_form;
    float widened[ALL * ABREAST];
    for (size_t i = (size_t)n; i < (size_t)n + w->plan.columns; i += LNT_PANEL)
        for (size_t at = first, many; at < end;
             at += many, u = lnt_moved(u, (int64_t)many, lnt_element(w->element))) {
            const size_t from = i / LNT_PANEL * panel + at;
            many = widens && end - at > ABREAST ? ABREAST : end - at;
            for (size_t t = 0; widens && t < ALL; t++)
                w->plan.kernels->widen[w->taps_form](lnt_b_at(w->taps_form, weights, from + t * tap),
                                                     widened + t * ABREAST, many);
            w->transforms->taps(
                &(lnt_winograd_taps){.w = widens ? widened : lnt_b_at(w->taps_form, weights, from),
                                     .w_tap = widens ? ABREAST : tap,
                                     .u = u,
                                     .u_point = w->u_point,
                                     .n = many});
        }
}

/* m = v times the weights of features from n on; of taps a chunk of the channels after the other, which adds to m. */
static void multiply(lnt_kernel *k, const lnt_winograd_call *c, lnt_gemm_call *gemm, int64_t rows, int64_t n,
                     bool are_in_u, float *u, unsigned thread)
{
    const lnt_winograd *w = c->w;
    const float *v = gemm->a;
    gemm->residual = NULL;
    gemm->b = w->taps ? u : lnt_b_at(w->plan.b_form, c->gemm.b, (size_t)(n * w->groups * w->g.channels));
    LNT_ASSERT(w->chunks == 1 || lnt_gemm_in_place(&w->plan));
    for (int64_t chunk = 0; chunk < w->chunks; chunk++, gemm->residual = gemm->c) {
        if (w->taps && (!are_in_u || w->chunks > 1))
            transform_taps(w, c->gemm.b, n, chunk, u);
        gemm->a = v + chunk * (int64_t)w->plan.depth;
        lnt_gemm_part(k, gemm, 0, rows, thread);
    }
    gemm->a = v;
}

static lnt_status run_items(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_winograd_call *c = arg;
    const lnt_winograd *w = c->w;
    const int64_t blocks = w->sequences * w->blocks;
    char *own = c->threads + thread * w->thread_bytes;
    held *in = (held *)(void *)(own + w->held_at);
    float *u = (float *)(void *)(own + w->u_at), *v = (float *)(void *)(own + w->v_at),
          *m = (float *)(void *)(own + w->m_at);
    lnt_gemm_call gemm = c->gemm;
    gemm.a = v;
    gemm.c = m;
    for (int64_t item = begin; item < end; item++) {
        const int64_t block = w->parts_outside ? item % blocks : item / w->parts;
        const int64_t part = w->parts_outside ? item / blocks : item % w->parts;
        const int64_t n = part * (int64_t)w->plan.columns;
        int64_t first, stop;
        block_tiles(w, block, &first, &stop);
        if (in->block != block)
            w->kind->in(c, first, stop, v);
        multiply(k, c, &gemm, (stop - first) * w->rows, n, in->part == part, u, thread);
        *in = (held){block, part};
        w->kind->out(k, c, first, stop, m, n);
    }
    return LNT_OK;
}

static lnt_status run_winograd(lnt_kernel *k, const lnt_step *s)
{
    const lnt_winograd *w = s->params;
    LNT_ASSERT(w->gather_at <= s->scratch_bytes && w->threads_at < s->scratch_bytes);
    char *scratch = lnt_scratch(k, s);
    lnt_winograd_call c = {.w = w,
                           .step = s,
                           .bias = w->store.bias >= 0 ? lnt_in(k, s, (unsigned)w->store.bias) : NULL,
                           .residual =
                               w->store.residual >= 0 ? lnt_in(k, s, (unsigned)w->store.residual) : NULL,
                           .y = lnt_conv_output(k, s, &w->images),
                           .ld = lnt_conv_out_pixel(s),
                           .threads = scratch + w->threads_at,
                           .gemm = {.plan = &w->plan,
                                    .step = s,
                                    .b = lnt_in(k, s, 1),
                                    .b_offset = w->b_offset,
                                    .gather = scratch + w->gather_at}};
    LNT_TRY(lnt_conv_input(k, s, &w->images, &c.x));
    for (unsigned i = 0; i < k->threads; i++)
        *(held *)(void *)(c.threads + i * w->thread_bytes + w->held_at) = (held){-1, -1};
    LNT_TRY(lnt_parallel(k, w->sequences * w->blocks * w->parts, 1, run_items, &c));
    return lnt_conv_finish(k, s, &w->images, w->epilogue ? NULL : w->store.program);
}

/* ---- bind ---- */

/* Elements from row to row: no power of two, or rows would share the sets of a cache. */
static size_t row_length(size_t n)
{
    return lnt_round_up(n, LNT_PANEL) | LNT_PANEL;
}

/* Blocks of each sequence, and parts of the features. */
static void cut_blocks(lnt_winograd *w)
{
    const int64_t features = w->g.features;
    const int64_t row_bytes = (int64_t)(w->points * lnt_element(w->element)) * (w->g.channels + features);
    int64_t rows = LNT_WINOGRAD_BLOCK_BYTES / row_bytes;
    rows = rows < LNT_WINOGRAD_ROWS_MIN   ? LNT_WINOGRAD_ROWS_MIN
           : rows > LNT_WINOGRAD_ROWS_MAX ? LNT_WINOGRAD_ROWS_MAX
                                          : rows;
    const int64_t most = (rows + w->rows - 1) / w->rows;
    w->blocks = (w->tiles + most - 1) / most;
    if (w->blocks > 1 && w->sequences < LNT_WINOGRAD_BLOCKS)
        w->blocks = (w->blocks + LNT_WINOGRAD_BLOCKS - 1) / LNT_WINOGRAD_BLOCKS * LNT_WINOGRAD_BLOCKS;
    if (w->blocks > w->tiles)
        w->blocks = w->tiles;
    w->parts = 1;
    while (w->parts < LNT_WINOGRAD_BLOCKS && w->parts * w->blocks * w->sequences < LNT_WINOGRAD_BLOCKS &&
           features % (2 * w->parts * LNT_WINOGRAD_PART_MIN) == 0)
        w->parts *= 2;
}

/* How many chunks of the channels, of as many each, taps are transformed in, so that a cache holds a panel of one; 0
 * if there is no such number. Sums are not added up in halves. */
static int64_t chunks_of(int64_t channels, bool half)
{
    const int64_t filter = half ? LNT_WINOGRAD_SMALL_POINTS * (int64_t)sizeof(uint16_t)
                                : LNT_WINOGRAD_POINTS * (int64_t)sizeof(float);
    const int64_t most = LNT_WINOGRAD_TAPS_BYTES / LNT_PANEL / filter;
    for (int64_t chunks = 1; chunks <= (half ? 1 : channels / LNT_WINOGRAD_FEWEST); chunks++)
        if (channels % chunks == 0 && channels / chunks <= (chunks > 1 ? lnt_least(most, CHUNK) : most))
            return chunks;
    return 0;
}

/* Of taps: chunks; parts of whole panels that a cache holds when they are transformed; and what is done again, they or
 * inputs. */
static void cut_taps(lnt_winograd *w, bool half)
{
    const int64_t panels = w->g.features < LNT_PANEL ? 1 : w->g.features / LNT_PANEL;
    w->chunks = chunks_of(w->g.channels, half);
    const int64_t panel =
        w->g.channels / w->chunks * LNT_PANEL * (int64_t)(w->points * lnt_element(w->element));
    int64_t together = lnt_least(panels / w->parts, LNT_WINOGRAD_TAPS_BYTES / panel);
    while (panels % together)
        together--;
    if (w->g.features % LNT_PANEL == 0)
        w->parts = panels / together;
    w->parts_outside = w->chunks == 1 && (w->blocks - 1) * w->g.features * LNT_WINOGRAD_TAPS_WORK >
                                             (w->parts - 1) * w->tiles * LNT_WINOGRAD_IN_WORK;
}

/* Of a product: a part of the features. Fewer than a panel are multiplied as one. */
static size_t columns_of(const lnt_winograd *w)
{
    const size_t features = (size_t)(w->g.features / w->parts);
    return features < LNT_PANEL ? LNT_PANEL : features;
}

static lnt_status plan_products(lnt_site *site, lnt_winograd *w)
{
    const size_t channels = (size_t)w->g.channels, columns = lnt_round_up((size_t)w->g.features, LNT_PANEL);
    const size_t depth = (size_t)(w->groups * w->g.channels / w->chunks);
    const int64_t most = w->blocks ? (w->tiles + w->blocks - 1) / w->blocks : 0;
    ptrdiff_t *offset = lnt_bump_alloc(site->memory, (size_t)w->groups * sizeof *offset, site->err);
    if (!offset)
        return LNT_E_MEMORY;
    w->v_row = row_length(channels);
    w->m_row = row_length((size_t)(w->g.features / w->parts));
    w->point = (size_t)((most + w->groups - 1) * w->rows) | 1;
    for (int64_t i = 0; i < w->groups; i++)
        offset[i] = (ptrdiff_t)(i * w->rows * (int64_t)w->v_row);
    w->transforms = (site->half ? site->kernels->half->conv : site->kernels->conv)->winograd;
    w->plan = (lnt_gemm_plan){.kernels = site->half ? site->kernels->half->gemm : site->kernels->gemm,
                              .a_offset = w->a_offset,
                              .c_row = w->m_row,
                              .c_product = lnt_winograd_m_point(w),
                              .products = (int64_t)w->points,
                              .rows = most * w->rows,
                              .columns = columns_of(w),
                              .taps = (size_t)w->groups,
                              .depth = channels / (size_t)w->chunks,
                              .tap_offset = offset,
                              .b_form = lnt_b_form_of(site->in[1]),
                              .b_row = LNT_PANEL,
                              .b_panel = depth * LNT_PANEL,
                              .scale = 1.0f,
                              .low = -INFINITY,
                              .high = INFINITY,
                              .row_step = (int64_t)w->v_row};
    w->taps_form = w->plan.b_form;
    if (w->taps && !site->half)
        w->plan.b_form = LNT_B_F32;
    w->u_point = lnt_round_up(w->plan.columns, LNT_PANEL) * depth + LNT_PANEL;
    for (size_t i = 0; i < w->points; i++) {
        w->a_offset[i] = i * lnt_winograd_v_point(w);
        w->b_offset[i] = i * (w->taps ? w->u_point : columns * depth);
    }
    lnt_gemm_plan_blocks(&w->plan);
    LNT_ASSERT(!w->plan.gathers_all); /* rows are no power of two apart */
    return LNT_OK;
}

/* Scratch memory: for each thread what products want, v and m. */
static bool place(lnt_winograd *w, unsigned threads, size_t *scratch)
{
    const int64_t rows = (int64_t)(w->points * w->point);
    w->thread_bytes = 0;
    return lnt_reserve(scratch, threads, w->plan.gather_bytes, &w->gather_at) &&
           lnt_reserve(&w->thread_bytes, 1, sizeof(held), &w->held_at) &&
           lnt_reserve(&w->thread_bytes, w->taps ? (int64_t)w->points : 0,
                       w->u_point * lnt_element(w->element), &w->u_at) &&
           lnt_reserve(&w->thread_bytes, rows, w->v_row * lnt_element(w->element), &w->v_at) &&
           lnt_reserve(&w->thread_bytes, rows, w->m_row * lnt_element(w->element), &w->m_at) &&
           lnt_reserve(scratch, threads, w->thread_bytes, &w->threads_at);
}

/* ---- operands ---- */

/* Are they Conv's weights, [features, channels, 3, 3]? */
static bool are_taps(const lnt_operand *w)
{
    return w->rank == 4 && w->dims[0] >= LNT_WINOGRAD_FEWEST_OUT && w->dims[2] == TAPS && w->dims[3] == TAPS;
}

/* The window and the kind its weights are made for. */
static lnt_status window_of(const lnt_site *site, lnt_window *w, const lnt_winograd_kind **kind)
{
    const lnt_operand *x = site->in[0], *weights = site->in[1];
    const int64_t *k = w->kernel, *dims = weights->dims;
    LNT_TRY(lnt_window_of(site, w));
    const bool padded = w->before[1] || w->after[1];
    const bool transformed =
        weights->rank == 4 && (dims[0] == PATCH || dims[0] == SMALL_PATCH) && dims[1] == dims[0];
    if (x->rank == 4 && (transformed || are_taps(weights))) {
        *kind = &lnt_winograd_square;
        if (k[1] == TAPS && k[2] == TAPS && lnt_volume(w->stride) == 1 && lnt_volume(w->dilation) == 1)
            return LNT_OK;
    } else if (x->rank <= 4 && weights->rank == 3) {
        *kind = &lnt_winograd_line;
        if (k[1] == 1 && k[2] >= LNT_WINOGRAD_LINE_TAPS_MIN && k[2] <= LNT_WINOGRAD_LINE_TAPS_MAX &&
            lnt_volume(w->stride) == 1 && !padded && dims[0] == lnt_winograd_line_points(k[2]) &&
            dims[1] % lnt_winograd_line_groups(k[2]) == 0)
            return LNT_OK;
    }
    return LNT_SITE_FAIL(site, LNT_E_SHAPE,
                         "its weights are none of a square of 3x3 taps or of a line of %d to %d at stride 1",
                         LNT_WINOGRAD_LINE_TAPS_MIN, LNT_WINOGRAD_LINE_TAPS_MAX);
}

lnt_status lnt_shape_winograd_conv(lnt_site *site)
{
    const lnt_operand *x = site->in[0], *weights = site->in[1];
    const lnt_winograd_kind *kind;
    lnt_window w;
    LNT_TRY(window_of(site, &w, &kind));
    const int64_t dims[] = {x->dims[0], weights->dims[are_taps(weights) ? 0 : weights->rank - 1], w.out[1],
                            w.out[2]};
    const int64_t line[] = {dims[0], dims[1], dims[3]};
    lnt_set_dims(site, 0, x->rank, x->rank == 3 ? line : dims);
    return LNT_OK;
}

/* Taps of float16 have digits enough for large tiles, but halves have not. */
static int64_t tile_of_taps(bool half)
{
    return half ? LNT_WINOGRAD_SMALL_TILE : LNT_WINOGRAD_TILE;
}

static lnt_status read_operands(lnt_site *site, lnt_winograd *w)
{
    const lnt_operand *x = site->in[0], *weights = site->in[1], *bias = lnt_own_input(site, 2);
    lnt_conv *g = &w->g;
    lnt_window window;
    LNT_TRY(window_of(site, &window, &w->kind));
    w->taps = are_taps(weights);
    *g = (lnt_conv){.w = window,
                    .batch = x->dims[0],
                    .groups = 1,
                    .channels = weights->dims[w->taps ? 1 : weights->rank - 2],
                    .features = weights->dims[w->taps ? 0 : weights->rank - 1],
                    .axes = x->rank - 2u};
    w->tile = w->taps ? tile_of_taps(site->half) : weights->dims[0] - TAPS + 1;
    if (w->kind == &lnt_winograd_line)
        g->channels /= lnt_winograd_line_groups(window.kernel[2]);
    LNT_REQUIRE(x->dims[1] == g->channels && (!bias || lnt_operand_count(bias) == g->features), site->err,
                LNT_E_SHAPE, "%lld channels and the bias do not fit weights of %lld x %lld",
                (long long)x->dims[1], (long long)g->channels, (long long)g->features);
    const int64_t taps = window.kernel[2], dilation = window.dilation[2];
    LNT_REQUIRE(dilation <= LNT_WINOGRAD_LINE_NEAR || lnt_winograd_line_fills(taps, dilation, window.out[2]),
                site->err, LNT_E_LIMIT, "taps %lld apart are too far for %lld outputs", (long long)dilation,
                (long long)window.out[2]);
    LNT_REQUIRE(weights->packed && weights->packed->source == (w->taps ? LNT_SOURCE_CONV : LNT_SOURCE_KN),
                site->err, LNT_E_UNSUPPORTED, "its weights must be a packed constant");
    const int64_t fewest = w->taps ? LNT_WINOGRAD_FEWEST_OUT : LNT_WINOGRAD_FEWEST;
    LNT_REQUIRE(g->channels >= LNT_WINOGRAD_FEWEST && g->features >= fewest, site->err, LNT_E_UNSUPPORTED,
                "fewer than %d channels, or than %d features", LNT_WINOGRAD_FEWEST, (int)fewest);
    const lnt_dtype type = site->half ? LNT_FLOAT16 : LNT_FLOAT;
    if (x->dtype != type || (bias && bias->dtype != LNT_FLOAT))
        return lnt_bind_unsupported_type(site, x->dtype != type ? x->dtype : bias->dtype);
    return LNT_OK;
}

/* Of floats or halves. */
static lnt_status bind_images(lnt_site *site)
{
    lnt_winograd *w = lnt_bind_params(site, sizeof *w);
    size_t scratch = 0;
    if (!w)
        return LNT_E_MEMORY;
    w->element = lnt_site_element(site);
    LNT_TRY(read_operands(site, w));
    LNT_TRY(
        lnt_bind_store(site, 1, lnt_own_input(site, 2) ? 2 : -1, lnt_conv_writes_output(site), &w->store));
    w->epilogue = site->out[0]->order == LNT_ORDER_CHANNELS_LAST ? w->store.program : NULL;
    LNT_TRY(lnt_conv_bind_images(site, &w->g, NULL, &w->images, &scratch));
    w->zeros = lnt_bump_alloc(site->memory, (size_t)w->g.channels * sizeof *w->zeros, site->err);
    if (!w->zeros)
        return LNT_E_MEMORY;
    w->chunks = 1;
    w->kind->cut(w);
    cut_blocks(w);
    if (w->taps)
        cut_taps(w, site->half);
    LNT_TRY(plan_products(site, w));
    if (!place(w, site->threads, &scratch))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the transformed tiles are too large");
    lnt_bind_scratch(site, scratch);
    if (w->store.residual >= 0 && w->g.features % LNT_PANEL == 0) /* or a last vector meets others' results */
        lnt_bind_in_place(site, 0, (unsigned)w->store.residual);
    lnt_conv_bind_pitched(site, &w->store);
    site->step->run = run_winograd;
    return LNT_OK;
}

/* Is it sooner to transform taps in each run than to multiply by them? */
static bool saves_products(const lnt_site *site, bool half)
{
    const int64_t *y = site->out[0]->dims, tile = tile_of_taps(half), patch = tile + TAPS - 1;
    const int64_t tiles = y[0] * ((y[2] + tile - 1) / tile) * ((y[3] + tile - 1) / tile);
    return chunks_of(site->in[0]->dims[1], half) &&
           y[0] * y[2] * y[3] * TAPS * TAPS - tiles * patch * patch >
               (half ? LNT_WINOGRAD_SMALL_TAPS_WORST : LNT_WINOGRAD_TAPS_WORST);
}

lnt_status lnt_bind_winograd_conv(lnt_site *site)
{
    const bool half = lnt_has_half_weights(site, 1);
    if (LNT_HAS_Conv && are_taps(site->in[1]) && !saves_products(site, half))
        return lnt_bind_conv(site);
    return half ? lnt_bind_half(site, 1, bind_images) : bind_images(site);
}

/* ---- the row's hooks ---- */

/* As many as the Conv it stands for. */
static int64_t multiply_adds(const lnt_node *n, const lnt_step *s)
{
    const lnt_attr *kernel = lnt_attr_of(n, "kernel_shape", LNT_ATTR_INTS);
    int64_t each = lnt_operand_count(s->out[0]) * s->in[0]->dims[1];
    for (uint32_t i = 0; kernel && i < kernel->count; i++)
        each *= kernel->i[i];
    return each;
}

/* As Conv's, or each point's by itself. */
static bool pack(const lnt_node *node, const lnt_operand *w, lnt_packed *record)
{
    return are_taps(w) ? lnt_conv_pack(node, w, record) : lnt_pack_matrix(node, w, record);
}

static bool are_for_halves(const lnt_operand *w)
{
    return are_taps(w) || w->dims[0] == SMALL_PATCH;
}

const lnt_product lnt_product_winograd = {1u << 1, are_for_halves, pack, multiply_adds};
