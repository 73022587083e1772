/* row_fusion.c — ring buffers of row fusion: when they pay, and how they are filled. */
#include "ops/conv/row_fusion.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/conv/conv_blocks.h"
#include "ops/half_kernels.h"

/* Lines of the image that are in a thread's ring buffer. */
typedef struct ring {
    int64_t begin, end; /* those computed without a gap; the last ring_lines of them are present */
} ring;

typedef struct fused_call {
    const lnt_row_fusion *fusion;
    const lnt_window *w;
    const lnt_step *step;
    lnt_consume_rows_fn rows;
    const void *arg;
} fused_call;

static int64_t clamped(int64_t x, int64_t high)
{
    return x < 0 ? 0 : x > high ? high : x;
}

static int64_t groups_down(const lnt_row_fusion *fusion)
{
    return (fusion->rows + fusion->rows_at_once - 1) / fusion->rows_at_once;
}

static ring *ring_of(const lnt_kernel *k, const lnt_step *s, const lnt_row_fusion *fusion, unsigned thread)
{
    return (ring *)(void *)((char *)lnt_scratch(k, s) + fusion->ring_at + thread * fusion->ring_bytes);
}

/* Has the producer compute the lines that rows [row, row_end) of an image need and that the ring buffer lacks. */
static lnt_status produce_lines(lnt_kernel *k, const fused_call *c, ring *r, float *to, int64_t image,
                                int64_t row, int64_t row_end, unsigned thread)
{
    const lnt_row_fusion *f = c->fusion;
    const int64_t first = lnt_window_at(c->w, 1, row, 0),
                  last = lnt_window_at(c->w, 1, row_end - 1, c->w->kernel[1] - 1);
    const int64_t begin = image * f->height + clamped(first, f->height);
    const int64_t end = image * f->height + clamped(last + 1, f->height);
    if (begin < r->begin || begin > r->end || begin + f->ring_lines < r->end)
        r->begin = r->end = begin;
    while (r->end < end) {
        const int64_t at = r->end % f->ring_lines, left = f->ring_lines - at, wanted = end - r->end;
        const int64_t lines = wanted < left ? wanted : left;
        LNT_TRY(f->producer->produce_lines(k, f->producer, r->end, r->end + lines,
                                           lnt_moved(to, at * f->line, lnt_element(f->element)), thread));
        r->end += lines;
    }
    return LNT_OK;
}

/* Groups of rows of output. */
static lnt_status run_groups(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const fused_call *c = arg;
    const lnt_row_fusion *f = c->fusion;
    const int64_t down = groups_down(f);
    ring *made = ring_of(k, c->step, f, thread);
    float *lines = (float *)(void *)((char *)made + LNT_ALIGN);
    for (int64_t item = begin; item < end; item++) {
        const int64_t image = item / down, row = item % down * f->rows_at_once;
        const int64_t row_end = row + f->rows_at_once < f->rows ? row + f->rows_at_once : f->rows;
        LNT_TRY(produce_lines(k, c, made, lines, image, row, row_end, thread));
        LNT_TRY(c->rows(k, c->arg, lines, image, row, row_end, thread));
    }
    return LNT_OK;
}

lnt_status lnt_row_fusion_run(lnt_kernel *k, const lnt_step *s, const lnt_row_fusion *fusion,
                              const lnt_window *w, int64_t grain, lnt_consume_rows_fn rows, const void *arg)
{
    LNT_ASSERT(fusion->producer && fusion->producer->produce_lines && fusion->rows_at_once > 0);
    LNT_ASSERT(fusion->ring_at + fusion->ring_bytes * k->threads <= s->scratch_bytes);
    fused_call c = {fusion, w, s, rows, arg};
    for (unsigned t = 0; t < k->threads; t++)
        *ring_of(k, s, fusion, t) = (ring){0, 0};
    return lnt_parallel(k, fusion->batch * groups_down(fusion), grain / fusion->rows_at_once + 1, run_groups,
                        &c);
}

/* ---- bind ---- */

/* The image must be large; the ring buffers of all threads must be small against it, so that they take no more memory
 * than it did; and few halo lines may be recomputed. */
static bool is_worth_it(const lnt_site *site, const lnt_window *w, const lnt_row_fusion *f)
{
    const size_t image = lnt_known_bytes(site->in[0]), before = lnt_known_bytes(site->producer->in[0]);
    const size_t behind = lnt_known_bytes(site->out[0]);
    const int64_t shared = f->ring_lines - f->rows_at_once * w->stride[1];
    return image >= LNT_FUSION_BYTES && f->rows >= LNT_FUSION_ROWS * shared * site->threads &&
           site->producer->scratch_bytes + f->ring_bytes * site->threads +
                   (before < behind ? before : behind) <=
               image;
}

void lnt_bind_row_fusion(lnt_site *site, const lnt_window *w, int64_t together, lnt_row_fusion *f,
                         size_t *scratch)
{
    int64_t reach, floats;
    f->element = lnt_site_element(site);
    if (!site->producer || lnt_dtype_size(site->in[0]->dtype) != lnt_element(f->element) ||
        w->in[0] * w->kernel[0] != 1 || w->out[1] * w->out[2] == 0 ||
        !lnt_mul_i64(w->kernel[1] - 1, w->dilation[1], &reach) || reach > w->in[1])
        return;
    f->batch = site->in[0]->dims[0];
    f->height = w->in[1];
    f->rows = w->out[1];
    f->line = w->in[2] * site->in[0]->dims[1];
    const int64_t rows = LNT_FUSION_PIXELS / (w->in[2] * w->stride[1] + 1) + 1;
    f->rows_at_once = (rows + together - 1) / together * together;
    f->ring_lines = reach + 1 + (f->rows_at_once - 1) * w->stride[1];
    if (!lnt_mul_i64(f->ring_lines, f->line, &floats) || floats > INT32_MAX / 4)
        return;
    f->ring_bytes = lnt_round_up((size_t)floats * lnt_element(f->element), LNT_ALIGN) + LNT_ALIGN;
    if (!is_worth_it(site, w, f))
        return;
    f->producer = site->step->producer = site->producer;
    f->ring_at = lnt_round_up(site->producer->scratch_bytes, LNT_ALIGN);
    *scratch = f->ring_at + f->ring_bytes * site->threads;
}
