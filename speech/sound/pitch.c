/* pitch.c — sound is played faster, and so higher. */
#include "speech/sound/pitch.h"

#include "base/lnt_assert.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* The kernel: zero crossings to a side; values between two of them. */
enum { CROSSINGS = 24, PHASES = 256, KERNEL = CROSSINGS * PHASES + 2 };

/* The modified Bessel function of the first kind and order 0. */
static double bessel_i0(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; term > sum * 1e-12; k++) {
        term *= x / (2 * k) * (x / (2 * k));
        sum += term;
    }
    return sum;
}

/* A sinc in Kaiser's window: 80 dB down outside of the band. */
static lnt_status make_kernel(lnt_pitch *p, lnt_error *err)
{
    static const double PI = 3.14159265358979323846, BETA = 8;
    p->kernel = lnt_alloc(&lnt_malloc_allocator, KERNEL * sizeof *p->kernel, err);
    if (!p->kernel)
        return LNT_E_MEMORY;
    for (int i = 0; i < KERNEL; i++) {
        const double x = (double)i / PHASES, across = x / CROSSINGS;
        const double window = across < 1 ? bessel_i0(BETA * sqrt(1 - across * across)) / bessel_i0(BETA) : 0;
        p->kernel[i] = (float)(i ? sin(PI * x) / (PI * x) * window : 1);
    }
    return LNT_OK;
}

lnt_status lnt_pitch_begin(lnt_pitch *p, double ratio, lnt_error *err)
{
    LNT_ASSERT(ratio >= 0.1 && ratio <= 10);
    if (!p->kernel)
        LNT_TRY(make_kernel(p, err));
    p->n = 0;
    p->first = p->next = 0;
    p->ratio = ratio;
    return LNT_OK;
}

/* Of what lies x zero crossings away. */
static float kernel_at(const lnt_pitch *p, double x)
{
    const double at = fabs(x) * PHASES;
    if (at >= CROSSINGS * PHASES)
        return 0;
    const int i = (int)at;
    return p->kernel[i] + (float)(at - i) * (p->kernel[i + 1] - p->kernel[i]);
}

/* The sound at `at`, in samples; band: the share of its band that is kept. */
static float sample_at(const lnt_pitch *p, double at, double band, uint64_t reach)
{
    const uint64_t middle = (uint64_t)at, end = p->first + p->n;
    const uint64_t from = middle >= reach + p->first ? middle - reach : p->first;
    const uint64_t to = middle + reach < end ? middle + reach + 1 : end;
    float sum = 0;
    for (uint64_t i = from; i < to; i++)
        sum += p->held[i - p->first] * kernel_at(p, ((double)i - at) * band);
    return sum * (float)band;
}

/* Samples before the one that is needed first go. */
static void forget(lnt_pitch *p, uint64_t reach)
{
    const uint64_t middle = (uint64_t)((double)p->next * p->ratio);
    const uint64_t from = middle > reach ? middle - reach : 0;
    const uint64_t gone = from <= p->first ? 0 : from - p->first < p->n ? from - p->first : p->n;
    p->n -= (size_t)gone;
    p->first += gone;
    if (gone && p->n)
        memmove(p->held, p->held + gone, p->n * sizeof *p->held);
}

lnt_status lnt_pitch_feed(lnt_pitch *p, const float *x, size_t n, bool last, const float **y, size_t *m,
                          lnt_error *err)
{
    const double band = p->ratio > 1 ? 1 / p->ratio : 1;
    const uint64_t reach = (uint64_t)ceil(CROSSINGS / band);
    *m = 0;
    for (size_t i = 0; i < n; i++) {
        LNT_TRY(LNT_GROW(&lnt_malloc_allocator, p->held, p->room, p->n, err));
        p->held[p->n++] = x[i];
    }
    const uint64_t end = p->first + p->n;
    for (double at = (double)p->next * p->ratio;
         last ? at < (double)end : at + (double)reach + 1 < (double)end; at = (double)++p->next * p->ratio) {
        LNT_TRY(LNT_GROW(&lnt_malloc_allocator, p->made, p->made_room, *m, err));
        p->made[(*m)++] = sample_at(p, at, band, reach);
    }
    forget(p, reach);
    *y = p->made;
    return LNT_OK;
}

void lnt_pitch_free(lnt_pitch *p)
{
    lnt_free(&lnt_malloc_allocator, p->kernel);
    lnt_free(&lnt_malloc_allocator, p->held);
    lnt_free(&lnt_malloc_allocator, p->made);
    *p = (lnt_pitch){0};
}
