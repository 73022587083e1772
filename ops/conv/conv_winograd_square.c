/* conv_winograd_square.c — tiles of 4x4 or 2x2 outputs of 3x3 taps: one sequence of all images' tiles. */
#include "ops/conv/conv_winograd.h"

#include "ops/half_kernels.h"

static bool is_small(const lnt_winograd *w)
{
    return w->tile == LNT_WINOGRAD_SMALL_TILE;
}

static size_t patch_of(const lnt_winograd *w)
{
    return (size_t)w->tile + LNT_WINOGRAD_TAPS - 1;
}

/* Tiles side by side: from tile (down, across) of an image on. */
typedef struct run {
    int64_t image, down, across, tiles;
} run;

/* From tile t on, before `end`. */
static run run_at(const lnt_winograd *w, int64_t t, int64_t end)
{
    run r = {t / w->across / w->down, t / w->across % w->down, t % w->across, LNT_WINOGRAD_RUN};
    r.tiles = r.tiles < w->across - r.across ? r.tiles : w->across - r.across;
    r.tiles = r.tiles < end - t ? r.tiles : end - t;
    return r;
}

/* v: of the run's first tile. */
static void run_in(const lnt_winograd_call *c, const run *r, float *v)
{
    const lnt_winograd *w = c->w;
    const lnt_window *window = &w->g.w;
    const int64_t height = window->in[1], width = window->in[2];
    lnt_winograd_in args = {.first = (ptrdiff_t)(r->across * w->tile - window->before[2]),
                            .width = (ptrdiff_t)width,
                            .tiles = (size_t)r->tiles,
                            .channels = (size_t)w->g.channels,
                            .v = v,
                            .v_tile = w->v_row,
                            .v_point = lnt_winograd_v_point(w)};
    for (unsigned i = 0; i < patch_of(w); i++) {
        const int64_t y = r->down * w->tile - window->before[1] + i;
        const bool inside = y >= 0 && y < height;
        args.line[i] =
            inside ? lnt_moved(c->x, (r->image * height + y) * width * w->g.channels, lnt_element(w->element))
                   : w->zeros;
        args.pixel[i] = inside ? (size_t)w->g.channels : 0;
    }
    (is_small(w) ? w->transforms->small_in : w->transforms->in)(&args);
}

/* m: of the run's first tile; features [n, n + columns). */
static void run_out(lnt_kernel *k, const lnt_winograd_call *c, const run *r, const float *m, int64_t n)
{
    const lnt_winograd *w = c->w;
    const int64_t *out = w->g.w.out, tile = w->tile, y = r->down * tile, x = r->across * tile;
    const int64_t lines = out[1] - y < tile ? out[1] - y : tile;
    const int64_t width = out[2] - x < r->tiles * tile ? out[2] - x : r->tiles * tile;
    const int64_t columns = w->g.features / w->parts;
    const int64_t pixel = (r->image * out[1] + y) * out[2] + x, at = pixel * c->ld + n;
    const lnt_winograd_out args = {
        .m = m,
        .m_tile = w->m_row,
        .m_point = lnt_winograd_m_point(w),
        .tiles = (size_t)r->tiles,
        .columns = (size_t)columns,
        .lines = (size_t)lines,
        .width = (size_t)width,
        .c = lnt_moved(c->y, at, lnt_element(w->element)),
        .residual = c->residual ? lnt_moved(c->residual, at, lnt_element(w->element)) : NULL,
        .line = (size_t)(out[2] * c->ld),
        .pixel = (size_t)c->ld,
        .bias = c->bias ? c->bias + n : NULL,
        .low = w->store.low,
        .high = w->store.high};
    (is_small(w) ? w->transforms->small_out : w->transforms->out)(&args);
    for (int64_t i = 0; w->epilogue && i < lines; i++)
        lnt_epilogue_run(w->epilogue, k, c->step,
                         lnt_moved(args.c, i * (int64_t)args.line, lnt_element(w->element)), c->ld,
                         pixel + i * out[2], width, n, columns);
}

static void tiles_in(const lnt_winograd_call *c, int64_t first, int64_t stop, float *v)
{
    for (int64_t t = first; t < stop;) {
        const run r = run_at(c->w, t, stop);
        run_in(c, &r, lnt_moved(v, (t - first) * (int64_t)c->w->v_row, lnt_element(c->w->element)));
        t += r.tiles;
    }
}

static void tiles_out(lnt_kernel *k, const lnt_winograd_call *c, int64_t first, int64_t stop,
                      const float *m, int64_t n)
{
    for (int64_t t = first; t < stop;) {
        const run r = run_at(c->w, t, stop);
        run_out(k, c, &r, lnt_moved(m, (t - first) * (int64_t)c->w->m_row, lnt_element(c->w->element)), n);
        t += r.tiles;
    }
}

static void cut_tiles(lnt_winograd *w)
{
    w->down = (w->g.w.out[1] + w->tile - 1) / w->tile;
    w->across = (w->g.w.out[2] + w->tile - 1) / w->tile;
    w->sequences = 1;
    w->tiles = w->g.batch * w->down * w->across;
    w->points = patch_of(w) * patch_of(w);
    w->rows = w->groups = 1;
}

const lnt_winograd_kind lnt_winograd_square = {cut_tiles, tiles_in, tiles_out};
