/* cast_order.c — Cast of halves in planes to floats in pixels: each is turned and widened at once. */
#include "base/checked.h"
#include "ops/element.h"
#include "ops/elementwise/typed.h"
#include "ops/kernels.h"

enum { PIXELS = 32 /* at a time: a cache line of each channel */, LEAST = 8 /* that kernels take */ };

typedef struct turned_call {
    const char *x;
    char *y;
    int64_t channels, pixels, parts; /* of an image */
} turned_call;

static lnt_status widen_parts(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    enum { HALF = 2, FLOAT = 4 };
    const turned_call *c = arg;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / c->parts * c->channels * c->pixels, part = i % c->parts,
                      first = part * PIXELS, n = part + 1 < c->parts ? PIXELS : c->pixels - first;
        k->kernels->widen(c->y + (image + first * c->channels) * FLOAT, c->channels * FLOAT,
                          c->x + (image + first) * HALF, c->pixels * HALF, n, c->channels);
    }
    return LNT_OK;
}

static lnt_status run_turned(lnt_kernel *k, const lnt_step *s)
{
    enum { SHARED = 16384 /* elements that are worth a thread */ };
    const lnt_operand *x = s->in[0];
    turned_call c = {.x = lnt_in(k, s, 0), .y = lnt_out(k, s, 0), .channels = x->dims[1]};
    c.pixels = lnt_operand_count(x) / x->dims[0] / c.channels;
    c.parts = c.pixels < PIXELS ? 1 : c.pixels / PIXELS; /* the last one takes what is left */
    return lnt_parallel(k, x->dims[0] * c.parts, SHARED / (PIXELS * c.channels) + 1, widen_parts, &c);
}

bool lnt_bind_cast_order(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    const int64_t count = lnt_operand_count(in);
    if (!site->kernels->widen || in->dtype != LNT_FLOAT16 || site->out[0]->dtype != LNT_FLOAT ||
        in->order != LNT_ORDER_PLAIN || count == 0 || in->dims[1] < LEAST ||
        count / in->dims[0] / in->dims[1] < LEAST)
        return false;
    site->step->run = run_turned;
    return true;
}
