/* quantize_ranges.c — see quantize_ranges.h.
 *
 * The range with the least Kullback-Leibler divergence of the quantized histogram from the one that was seen is found
 * as by Migacz, "8-bit Inference with TensorRT", 2017, with windows around 0 that need not be symmetric. */
#include "convert/quantize/quantize_ranges.h"

#include "base/lnt_assert.h"

#include <math.h>
#include <string.h>

enum { BINS = LNT_SEEN_BINS, LEVELS = 256 };

void lnt_seen_bounds(lnt_seen *s, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            s->not_finite = true;
            continue;
        }
        s->low = s->any ? fminf(s->low, x[i]) : x[i];
        s->high = s->any ? fmaxf(s->high, x[i]) : x[i];
        s->any = true;
    }
}

static double bin_width(const lnt_seen *s)
{
    return ((double)s->high - s->low) / BINS;
}

void lnt_seen_count(lnt_seen *s, const float *x, int64_t n)
{
    LNT_ASSERT(s->low <= s->high);
    const double width = bin_width(s);
    for (int64_t i = 0; i < n && width > 0; i++) {
        if (!(x[i] >= s->low && x[i] <= s->high) || x[i] == 0)
            continue;
        const int at = (int)(((double)x[i] - s->low) / width);
        s->bin[at < BINS ? at : BINS - 1]++;
    }
}

/* ---- bins [from, to) that are to be held ---- */

static double sum(const uint64_t *bin, int from, int to)
{
    double total = 0;
    for (int i = from; i < to; i++)
        total += (double)bin[i];
    return total;
}

/* Leaves at most half of one element in ten thousand outside at either end. */
static void keep_percentile(const uint64_t *bin, int *from, int *to)
{
    LNT_ASSERT(*from <= *to);
    const double outside = sum(bin, 0, BINS) * 0.5e-4;
    double below = 0, above = 0;
    while (*from < *to - 1 && (below += (double)bin[*from]) <= outside)
        ++*from;
    while (*to > *from + 1 && (above += (double)bin[*to - 1]) <= outside)
        --*to;
}

/* Kullback-Leibler divergence, in nats, of the histogram quantized to LEVELS levels over bins [from, to) from the
 * histogram itself, whose elements outside of them count at the ends. A level's elements are spread evenly over
 * its bins that are not empty. */
static double kl_divergence(const uint64_t *bin, int from, int to)
{
    const double total = sum(bin, 0, BINS), before = sum(bin, 0, from), behind = sum(bin, to, BINS);
    const double inside = total - before - behind;
    double divergence = 0;
    for (int level = 0; level < LEVELS; level++) {
        const int a = from + (to - from) * level / LEVELS, b = from + (to - from) * (level + 1) / LEVELS;
        double mass = 0, filled = 0;
        for (int i = a; i < b; i++) {
            mass += (double)bin[i];
            filled += bin[i] > 0;
        }
        for (int i = a; i < b; i++) {
            const double moved = (i == from ? before : 0) + (i == to - 1 ? behind : 0);
            const double p = ((double)bin[i] + moved) / total;
            const double q = mass > 0 && bin[i] > 0 ? mass / filled / inside : 1 / (total * LEVELS);
            if (p > 0)
                divergence += p * log(p / q);
        }
    }
    return divergence;
}

/* Of windows around 0 the one that loses least. */
static void keep_entropy(const uint64_t *bin, int zero, int *from, int *to)
{
    enum { STEP = 16 };
    double least = INFINITY;
    for (int reach = LEVELS / 2; reach < BINS + STEP; reach += STEP) {
        const int a = zero - reach > 0 ? zero - reach : 0, b = zero + reach < BINS ? zero + reach : BINS;
        const double divergence = b - a >= LEVELS ? kl_divergence(bin, a, b) : INFINITY;
        if (divergence < least) {
            least = divergence;
            *from = a;
            *to = b;
        }
    }
}

/* The squared error, in squares of bins, of quantizing to LEVELS levels over bins [from, to): of rounding within them
 * and of clipping outside. */
static double squared_error(const uint64_t *bin, int from, int to)
{
    const double step = (double)(to - from) / (LEVELS - 1);
    double error = sum(bin, from, to) * step * step / 12;
    for (int i = 0; i < from; i++)
        error += (double)bin[i] * (from - i) * (from - i);
    for (int i = to; i < BINS; i++)
        error += (double)bin[i] * (i + 1 - to) * (i + 1 - to);
    return error;
}

/* Of windows around 0, by what part of each side they hold, the one that loses least. */
static void keep_squares(const uint64_t *bin, int zero, int *from, int *to)
{
    enum { PARTS = 24, LEAST = 6 };
    double least = INFINITY;
    for (int low = LEAST; low <= PARTS; low++)
        for (int high = LEAST; high <= PARTS; high++) {
            const int a = zero - zero * low / PARTS, b = zero + (BINS - zero) * high / PARTS;
            const double error = b > a ? squared_error(bin, a, b) : INFINITY;
            if (error < least) {
                least = error;
                *from = a;
                *to = b;
            }
        }
}

void lnt_seen_range(const lnt_seen *s, lnt_range_method method, float *low, float *high)
{
    const double width = bin_width(s);
    const int zero = width > 0 ? (int)fmax(0, fmin(BINS, -s->low / width)) : 0; /* bin */
    int from = 0, to = BINS;
    if (s->bin && width > 0 && method == LNT_RANGE_PERCENTILE)
        keep_percentile(s->bin, &from, &to);
    if (s->bin && width > 0 && method == LNT_RANGE_ENTROPY)
        keep_entropy(s->bin, zero, &from, &to);
    if (s->bin && width > 0 && method == LNT_RANGE_MSE)
        keep_squares(s->bin, zero, &from, &to);
    *low = fminf(from == 0 ? s->low : (float)(s->low + from * width), 0);
    *high = fmaxf(to == BINS ? s->high : (float)(s->low + to * width), 0);
}
