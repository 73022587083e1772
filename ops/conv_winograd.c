/* conv_winograd.c — WinogradConv: a Conv of 3x3 taps by minimal filtering (ops/winograd.h), as the converter
 * makes it of Conv. Its weights are [6, 6, channels, features], the taps transformed.
 *
 *   block of tiles (and a part of the features, where tiles are few)
 *     for each run of tiles side by side    their patches, transformed: v
 *     for each of 36 points                 m = v * the weights of that point, by the tile kernels
 *     for each run of tiles                 m transformed back, bias, residual and clamp with it
 *
 * A block is one thread's: v and m stay in its caches. Blocks follow from the extents alone. */
#include "ops/winograd.h"

#include "base/checked.h"
#include "ops/conv.h"
#include "ops/gemm_driver.h"

#include <math.h>

enum {
    TILE = LNT_WINOGRAD_TILE,
    PATCH = LNT_WINOGRAD_PATCH,
    POINTS = LNT_WINOGRAD_POINTS,
    BLOCK_BYTES = 768 * 1024, /* of v and m: about a second-level cache */
    TILES_MIN = 24,           /* of a block: for fewer the weights come slower than they are multiplied */
    TILES_MAX = 96,
    BLOCKS = 4,              /* of tiles or parts of features there should be, for threads to share */
    PART_MIN = 4 * LNT_PANEL /* features, as wide as tiles are */
};

typedef struct winograd {
    lnt_conv g;
    lnt_conv_images images;
    lnt_store store;
    const lnt_epilogue *epilogue; /* run with each run of tiles */
    lnt_gemm_plan plan;           /* of a block: a product for each point */
    size_t b_offset[POINTS];
    const float *zeros;           /* a pixel of them */
    int64_t across, down;         /* tiles of an image */
    int64_t tiles, blocks, parts; /* tiles of all images, in so many blocks; parts of the features */
    size_t v_tile, m_tile, point; /* floats from tile to tile; tiles from point to point */
    size_t v_at, m_at, thread_bytes;
    size_t gather_at, threads_at;
} winograd;

typedef struct winograd_call {
    const winograd *w;
    const lnt_step *step;
    const float *x, *bias, *residual;
    float *y;
    int64_t ld;    /* floats from pixel to pixel of y */
    char *threads; /* their memory */
    lnt_gemm_call gemm;
} winograd_call;

/* Tiles side by side: from tile (down, across) of an image on. */
typedef struct run {
    int64_t image, down, across, tiles;
} run;

/* From tile t on, before `end`. */
static run run_at(const winograd *w, int64_t t, int64_t end)
{
    run r = {t / w->across / w->down, t / w->across % w->down, t % w->across, LNT_WINOGRAD_RUN};
    r.tiles = r.tiles < w->across - r.across ? r.tiles : w->across - r.across;
    r.tiles = r.tiles < end - t ? r.tiles : end - t;
    return r;
}

/* v: of the run's first tile. */
static void transform_in(const winograd_call *c, const run *r, float *v)
{
    const winograd *w = c->w;
    const lnt_window *window = &w->g.w;
    const int64_t height = window->in[1], width = window->in[2];
    lnt_winograd_in args = {.first = (ptrdiff_t)(r->across * TILE - window->before[2]),
                            .width = (ptrdiff_t)width,
                            .tiles = (size_t)r->tiles,
                            .channels = (size_t)w->g.channels,
                            .v = v,
                            .v_tile = w->v_tile,
                            .v_point = w->point * w->v_tile};
    for (unsigned i = 0; i < PATCH; i++) {
        const int64_t y = r->down * TILE - window->before[1] + i;
        const bool inside = y >= 0 && y < height;
        args.line[i] = inside ? c->x + (r->image * height + y) * width * w->g.channels : w->zeros;
        args.pixel[i] = inside ? (size_t)w->g.channels : 0;
    }
    w->plan.kernels->winograd_in(&args);
}

/* m: of the run's first tile; features [n, n + columns). */
static void transform_out(lnt_kernel *k, const winograd_call *c, const run *r, const float *m, int64_t n)
{
    const winograd *w = c->w;
    const int64_t *out = w->g.w.out, y = r->down * TILE, x = r->across * TILE;
    const int64_t lines = out[1] - y < TILE ? out[1] - y : TILE;
    const int64_t width = out[2] - x < r->tiles * TILE ? out[2] - x : r->tiles * TILE;
    const int64_t pixel = (r->image * out[1] + y) * out[2] + x, at = pixel * c->ld + n;
    const lnt_winograd_out args = {.m = m,
                                   .m_tile = w->m_tile,
                                   .m_point = w->point * w->m_tile,
                                   .tiles = (size_t)r->tiles,
                                   .columns = w->plan.columns,
                                   .lines = (size_t)lines,
                                   .width = (size_t)width,
                                   .c = c->y + at,
                                   .residual = c->residual ? c->residual + at : NULL,
                                   .line = (size_t)(out[2] * c->ld),
                                   .pixel = (size_t)c->ld,
                                   .bias = c->bias ? c->bias + n : NULL,
                                   .low = w->store.low,
                                   .high = w->store.high};
    w->plan.kernels->winograd_out(&args);
    for (int64_t i = 0; w->epilogue && i < lines; i++)
        lnt_epilogue_run(w->epilogue, k, c->step, args.c + (size_t)i * args.line, c->ld, pixel + i * out[2],
                         width, n, (int64_t)w->plan.columns);
}

static lnt_status run_items(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const winograd_call *c = arg;
    const winograd *w = c->w;
    char *own = c->threads + thread * w->thread_bytes;
    float *v = (float *)(void *)(own + w->v_at), *m = (float *)(void *)(own + w->m_at);
    lnt_gemm_call gemm = c->gemm;
    gemm.a = v;
    gemm.c = m;
    int64_t in_v = -1; /* the block that is */
    for (int64_t item = begin; item < end; item++) {
        const int64_t block = item / w->parts, n = item % w->parts * (int64_t)w->plan.columns;
        const int64_t first = lnt_cut(w->tiles, w->blocks, block),
                      stop = lnt_cut(w->tiles, w->blocks, block + 1);
        run r;
        for (int64_t t = first; in_v != block && t < stop; t += r.tiles) {
            r = run_at(w, t, stop);
            transform_in(c, &r, v + (size_t)(t - first) * w->v_tile);
        }
        in_v = block;
        gemm.b = c->gemm.b + n * w->g.channels;
        lnt_gemm_part(k, &gemm, 0, stop - first, thread);
        for (int64_t t = first; t < stop; t += r.tiles) {
            r = run_at(w, t, stop);
            transform_out(k, c, &r, m + (size_t)(t - first) * w->m_tile, n);
        }
    }
    return LNT_OK;
}

static void rows_of(const lnt_gemm_call *call, int64_t product, int64_t row, unsigned n, size_t k_begin,
                    size_t k_end, float *gather, lnt_row_set *set)
{
    const winograd *w = call->plan->rows_arg;
    const size_t at = (size_t)product * w->point + (size_t)row;
    (void)k_begin, (void)k_end, (void)gather;
    set->gathered = false;
    for (unsigned i = 0; i < n; i++) {
        set->a[i] = call->a + (at + i) * w->v_tile;
        set->out[i] = (int64_t)((at + i) * w->m_tile);
    }
}

static lnt_status run_winograd(lnt_kernel *k, const lnt_step *s)
{
    const winograd *w = s->params;
    char *scratch = lnt_scratch(k, s);
    winograd_call c = {.w = w,
                       .step = s,
                       .bias = w->store.bias >= 0 ? lnt_in(k, s, (unsigned)w->store.bias) : NULL,
                       .residual = w->store.residual >= 0 ? lnt_in(k, s, (unsigned)w->store.residual) : NULL,
                       .y = lnt_conv_output(k, s, &w->images),
                       .ld = lnt_conv_out_pixel(s),
                       .threads = scratch + w->threads_at,
                       .gemm = {.plan = &w->plan,
                                .step = s,
                                .b = lnt_in(k, s, 1),
                                .b_offset = w->b_offset,
                                .gather = scratch + w->gather_at}};
    LNT_TRY(lnt_conv_input(k, s, &w->images, &c.x));
    LNT_TRY(lnt_parallel(k, w->blocks * w->parts, 1, run_items, &c));
    return lnt_conv_finish(k, s, &w->images, w->epilogue ? NULL : w->store.program);
}

/* ---- bind ---- */

/* Floats from row to row: no power of two, or rows would share the sets of a cache. */
static size_t row_floats(size_t n)
{
    return lnt_round_up(n, LNT_PANEL) | LNT_PANEL;
}

static void cut_tiles(winograd *w)
{
    const int64_t *out = w->g.w.out, features = w->g.features;
    const int64_t bytes = POINTS * (int64_t)sizeof(float) * (w->g.channels + features);
    int64_t most = BLOCK_BYTES / bytes;
    most = most < TILES_MIN ? TILES_MIN : most > TILES_MAX ? TILES_MAX : most;
    w->down = (out[1] + TILE - 1) / TILE;
    w->across = (out[2] + TILE - 1) / TILE;
    w->tiles = w->g.batch * w->down * w->across;
    w->blocks = (w->tiles + most - 1) / most;
    if (w->blocks > 1)
        w->blocks = (w->blocks + BLOCKS - 1) / BLOCKS * BLOCKS;
    w->parts = 1;
    while (w->parts * w->blocks < BLOCKS && features % (2 * w->parts * PART_MIN) == 0)
        w->parts *= 2;
}

static void plan_products(lnt_site *site, winograd *w)
{
    static const ptrdiff_t no_offset = 0;
    const size_t channels = (size_t)w->g.channels, columns = lnt_round_up((size_t)w->g.features, LNT_PANEL);
    const int64_t most = w->blocks ? (w->tiles + w->blocks - 1) / w->blocks : 0;
    w->v_tile = row_floats(channels);
    w->m_tile = row_floats((size_t)(w->g.features / w->parts));
    w->point = (size_t)most | 1;
    w->plan = (lnt_gemm_plan){.kernels = site->kernels->gemm,
                              .rows_of = rows_of,
                              .rows_arg = w,
                              .products = POINTS,
                              .rows = most,
                              .columns = (size_t)(w->g.features / w->parts),
                              .taps = 1,
                              .depth = channels,
                              .tap_offset = &no_offset,
                              .b_row = LNT_PANEL,
                              .b_panel = channels * LNT_PANEL,
                              .scale = 1.0f,
                              .low = -INFINITY,
                              .high = INFINITY,
                              .row_step = (int64_t)w->v_tile};
    lnt_gemm_plan_blocks(&w->plan);
    for (size_t i = 0; i < POINTS; i++)
        w->b_offset[i] = i * columns * channels;
}

/* Scratch memory: for each thread what products want, v and m. */
static bool place(winograd *w, unsigned threads, size_t *scratch)
{
    const int64_t rows = POINTS * (int64_t)w->point;
    w->thread_bytes = 0;
    return lnt_reserve(scratch, threads, w->plan.gather_bytes, &w->gather_at) &&
           lnt_reserve(&w->thread_bytes, rows, w->v_tile * sizeof(float), &w->v_at) &&
           lnt_reserve(&w->thread_bytes, rows, w->m_tile * sizeof(float), &w->m_at) &&
           lnt_reserve(scratch, threads, w->thread_bytes, &w->threads_at);
}

/* ---- operands ---- */

static lnt_status window_of(const lnt_site *site, lnt_window *w)
{
    static const int64_t taps[2] = {LNT_WINOGRAD_TAPS, LNT_WINOGRAD_TAPS};
    const lnt_operand *x = site->in[0], *weights = site->in[1];
    LNT_REQUIRE(x->rank == 4 && weights->rank == 4 && weights->dims[0] == PATCH && weights->dims[1] == PATCH,
                site->err, LNT_E_SHAPE, "input of rank %u and weights of rank %u do not fit", x->rank,
                weights->rank);
    LNT_TRY(lnt_window_with(site, taps, w));
    LNT_REQUIRE(lnt_volume(w->stride) == 1 && lnt_volume(w->dilation) == 1, site->err, LNT_E_UNSUPPORTED,
                "it takes taps side by side at stride 1");
    return LNT_OK;
}

lnt_status lnt_shape_winograd_conv(lnt_site *site)
{
    lnt_window w;
    LNT_TRY(window_of(site, &w));
    lnt_set_dims(site, 0, 4,
                 (const int64_t[]){site->in[0]->dims[0], site->in[1]->dims[3], w.out[1], w.out[2]});
    return LNT_OK;
}

static lnt_status read_operands(lnt_site *site, lnt_conv *g)
{
    const lnt_operand *x = site->in[0], *weights = site->in[1], *bias = lnt_own_input(site, 2);
    LNT_TRY(window_of(site, &g->w));
    *g = (lnt_conv){.w = g->w,
                    .batch = x->dims[0],
                    .groups = 1,
                    .channels = weights->dims[2],
                    .features = weights->dims[3],
                    .axes = 2};
    LNT_REQUIRE(x->dims[1] == g->channels && (!bias || lnt_operand_count(bias) == g->features), site->err,
                LNT_E_SHAPE, "%lld channels and the bias do not fit weights of %lld x %lld",
                (long long)x->dims[1], (long long)g->channels, (long long)g->features);
    LNT_REQUIRE(weights->packed && weights->packed->source == LNT_SOURCE_KN, site->err, LNT_E_UNSUPPORTED,
                "its weights must be a packed constant");
    if (x->dtype != LNT_FLOAT || (bias && bias->dtype != LNT_FLOAT))
        return lnt_bind_unsupported_type(site, x->dtype != LNT_FLOAT ? x->dtype : bias->dtype);
    return LNT_OK;
}

lnt_status lnt_bind_winograd_conv(lnt_site *site)
{
    winograd *w = lnt_bind_params(site, sizeof *w);
    size_t scratch = 0;
    if (!w)
        return LNT_E_MEMORY;
    LNT_TRY(read_operands(site, &w->g));
    LNT_TRY(
        lnt_bind_store(site, 1, lnt_own_input(site, 2) ? 2 : -1, lnt_conv_writes_output(site), &w->store));
    w->epilogue = site->out[0]->order == LNT_ORDER_CHANNELS_LAST ? w->store.program : NULL;
    LNT_TRY(lnt_conv_bind_images(site, &w->g, NULL, &w->images, &scratch));
    w->zeros = lnt_bump_alloc(site->memory, (size_t)w->g.channels * sizeof *w->zeros, site->err);
    if (!w->zeros)
        return LNT_E_MEMORY;
    cut_tiles(w);
    plan_products(site, w);
    if (!place(w, site->threads, &scratch))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the transformed tiles are too large");
    lnt_bind_scratch(site, scratch);
    if (w->store.residual >= 0)
        lnt_bind_in_place(site, 0, (unsigned)w->store.residual);
    lnt_conv_bind_pitched(site, &w->store);
    site->step->run = run_winograd;
    return LNT_OK;
}
