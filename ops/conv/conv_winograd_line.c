/* conv_winograd_line.c — tiles of outputs of taps in a line: each line of an image is a sequence.
 *
 * With dilation d the taps of an output read every d-th input: d neighboring outputs share no input. A tile is d
 * rows of the products, one for each of them, so that its outputs are contiguous; the inputs of the next group of
 * taps are d rows further on. */
#include "ops/conv/conv_winograd.h"

static void tiles_in(const lnt_winograd_call *c, int64_t first, int64_t stop, float *v)
{
    const lnt_winograd *w = c->w;
    const int64_t line = first / w->tiles, tile = first % w->tiles, apart = w->rows, width = w->g.w.in[2];
    const lnt_winograd_line_in args = {.x = c->x + line * width * w->g.channels,
                                       .zeros = w->zeros,
                                       .first = (ptrdiff_t)(tile * apart * w->tile - w->g.w.before[2]),
                                       .width = (ptrdiff_t)width,
                                       .apart = (ptrdiff_t)apart,
                                       .tile = (ptrdiff_t)w->tile,
                                       .rows = (ptrdiff_t)((stop - first + w->groups - 1) * apart),
                                       .channels = (size_t)w->g.channels,
                                       .points = w->points,
                                       .v = v,
                                       .v_row = w->v_row,
                                       .v_point = lnt_winograd_v_point(w)};
    w->transforms->line_in(&args);
}

static void tiles_out(lnt_kernel *k, const lnt_winograd_call *c, int64_t first, int64_t stop,
                      const float *m, int64_t n)
{
    const lnt_winograd *w = c->w;
    const int64_t line = first / w->tiles, length = w->g.w.out[2], piece = w->rows * w->tile;
    const int64_t begin = first % w->tiles * piece, most = (stop - first) * piece;
    const int64_t pixels = most < length - begin ? most : length - begin;
    const int64_t pixel = line * length + begin, at = pixel * c->ld + n;
    const lnt_winograd_line_out args = {.m = m,
                                        .m_row = w->m_row,
                                        .m_point = lnt_winograd_m_point(w),
                                        .width = (ptrdiff_t)pixels,
                                        .apart = (ptrdiff_t)w->rows,
                                        .tile = (ptrdiff_t)w->tile,
                                        .rows = (ptrdiff_t)((stop - first) * w->rows),
                                        .columns = w->plan.columns,
                                        .points = w->points,
                                        .c = c->y + at,
                                        .residual = c->residual ? c->residual + at : NULL,
                                        .pixel = (size_t)c->ld,
                                        .bias = c->bias ? c->bias + n : NULL,
                                        .low = w->store.low,
                                        .high = w->store.high};
    w->transforms->line_out(&args);
    if (w->epilogue)
        lnt_epilogue_run(w->epilogue, k, c->step, args.c, c->ld, pixel, pixels, n, (int64_t)w->plan.columns);
}

static void cut_tiles(lnt_winograd *w)
{
    const int64_t taps = w->g.w.kernel[2];
    w->tile = lnt_winograd_line_tile(taps);
    w->points = (size_t)lnt_winograd_line_points(taps);
    w->groups = lnt_winograd_line_groups(taps);
    w->rows = w->g.w.dilation[2];
    w->sequences = w->g.batch * w->g.w.out[0] * w->g.w.out[1];
    w->tiles = (w->g.w.out[2] + w->rows * w->tile - 1) / (w->rows * w->tile);
}

const lnt_winograd_kind lnt_winograd_line = {cut_tiles, tiles_in, tiles_out};
