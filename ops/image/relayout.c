/* relayout.c — Relayout: an image in another storage order, whole or line by line beside the step that makes its lines
 * or reads them (ops/conv/row_fusion.h). */
#include "ops/op.h"

#include "formats/packed.h"
#include "ops/conv/row_fusion.h"
#include "ops/copy.h"
#include "ops/kernels.h"

#include <string.h>

enum { TILE = 16 /* pixels turned at a time: a cache line of each channel */, GRAIN = 16384 /* elements */ };

typedef struct relayout {
    lnt_copy whole; /* if nothing makes its lines */
    lnt_window w;   /* of one pixel */
    lnt_row_fusion fusion;
    int64_t channels;
} relayout;

typedef struct relayout_call {
    const relayout *r;
    char *y;
} relayout_call;

/* planes [channels][plane], of whose pixels n begin there, from pixels [n][channels]. */
static void pixels_to_planes(const lnt_kernel *k, const relayout *r, char *planes, const char *pixels,
                             int64_t n)
{
    const int64_t plane = r->w.in[1] * r->w.in[2] * 4, pixel = r->channels * 4;
    for (int64_t i = 0; i < n; i += TILE) {
        const int64_t first = n < TILE ? 0 : lnt_least(i, n - TILE);
        k->kernels->turn(planes + first * 4, plane, pixels + first * pixel, pixel, r->channels,
                         lnt_least(TILE, n));
    }
}

/* The way back. */
static void planes_to_pixels(const lnt_kernel *k, const relayout *r, char *pixels, const char *planes,
                             int64_t n)
{
    const int64_t plane = r->w.in[1] * r->w.in[2] * 4, pixel = r->channels * 4;
    for (int64_t i = 0; i < n; i += TILE) {
        const int64_t first = n < TILE ? 0 : lnt_least(i, n - TILE);
        k->kernels->turn(pixels + first * pixel, pixel, planes + first * 4, plane, lnt_least(TILE, n),
                         r->channels);
    }
}

/* Bytes from the first element of a tensor to the first pixel of a line, in channels' first plane. */
static int64_t place_of_line(const relayout *r, int64_t image, int64_t line)
{
    return (image * r->channels * r->w.in[1] + line) * r->w.in[2] * 4;
}

static lnt_status lines_to_planes(lnt_kernel *k, const void *arg, const float *ring, int64_t image,
                                  int64_t row, int64_t row_end, unsigned thread)
{
    (void)thread;
    const relayout_call *c = arg;
    const relayout *r = c->r;
    for (int64_t i = row, n; i < row_end; i += n) {
        const int64_t at = (image * r->fusion.height + i) % r->fusion.ring_lines;
        n = lnt_least(row_end - i, r->fusion.ring_lines - at);
        pixels_to_planes(k, r, c->y + place_of_line(r, image, i), (const char *)(ring + at * r->fusion.line),
                         n * r->w.in[2]);
    }
    return LNT_OK;
}

static lnt_status run_whole(lnt_kernel *k, const lnt_step *s)
{
    const relayout *r = s->params;
    return lnt_copy_run(k, &r->whole, lnt_out(k, s, 0), lnt_in(k, s, 0));
}

static lnt_status run_fused(lnt_kernel *k, const lnt_step *s)
{
    const relayout *r = s->params;
    const relayout_call c = {r, lnt_out(k, s, 0)};
    return lnt_row_fusion_run(k, s, &r->fusion, &r->w, GRAIN / r->fusion.line, lines_to_planes, &c);
}

static lnt_status relayout_lines(lnt_kernel *k, const lnt_step *s, int64_t begin, int64_t end, float *to,
                                 unsigned thread)
{
    (void)thread;
    const relayout *r = s->params;
    const char *x = lnt_in(k, s, 0);
    const int64_t height = r->w.in[1], line = r->w.in[2] * r->channels;
    for (int64_t i = begin, n; i < end; i += n, to += n * line) {
        n = lnt_least(end - i, height - i % height);
        planes_to_pixels(k, r, (char *)to, x + place_of_line(r, i / height, i % height), n * r->w.in[2]);
    }
    return LNT_OK;
}

static bool is_turned(const lnt_operand *o)
{
    return o->order == LNT_ORDER_CHANNELS_LAST;
}

/* Of images whose elements have 4 bytes; a trimmed library does without. */
static bool turns_images(const lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    return !LNT_TRIMMED && x->rank == 4 && lnt_dtype_size(x->dtype) == 4 && is_turned(x) != is_turned(site->out[0]);
}

static void describe(const lnt_operand *x, relayout *r)
{
    r->channels = x->dims[1];
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        r->w.kernel[a] = r->w.stride[a] = r->w.dilation[a] = 1;
        r->w.in[a] = r->w.out[a] = a ? x->dims[a + 1] : 1;
    }
}

static void bind_whole(lnt_site *site, relayout *r, bool turns)
{
    const lnt_operand *in = site->in[0], *out = site->out[0];
    int64_t from[LNT_MAX_RANK], to[LNT_MAX_RANK];
    lnt_operand_strides(in, from);
    lnt_operand_strides(out, to);
    lnt_copy_box(&r->whole, lnt_dtype_size(in->dtype), in->rank, in->dims, to, from);
    r->whole.of_images = true;
    r->whole.by_columns = is_turned(in); /* each pixel is read by the thread that has written it, as a rule */
    site->step->run = run_whole;
    if (lnt_copy_is_plain(&r->whole))
        lnt_bind_view(site, 0, 0, 0);
    else if (turns && is_turned(out))
        site->step->produce_lines = relayout_lines;
}

lnt_status lnt_bind_relayout(lnt_site *site)
{
    const bool turns = turns_images(site);
    size_t scratch = 0;
    relayout *r = lnt_bind_params(site, sizeof *r);
    if (!r)
        return site->err->code;
    memset(r, 0, sizeof *r);
    if (turns)
        describe(site->in[0], r);
    if (turns && is_turned(site->in[0]))
        lnt_bind_row_fusion(site, &r->w, 1, &r->fusion, &scratch);
    if (turns && r->fusion.producer) {
        lnt_bind_scratch(site, scratch);
        site->step->run = run_fused;
    } else {
        bind_whole(site, r, turns);
    }
    return LNT_OK;
}
