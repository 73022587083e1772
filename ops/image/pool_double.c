/* pool_double.c — the kernels of pooling for double, in plain C: they serve double tensors at every level and judge
 * the float kernels in the checker. */
#include "ops/vectorize.h"

#include "ops/image/pool_kernels.h"

#include <string.h>

#define LARGER(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))

#define WINDOW(name, pixels_name, expression)                                                                \
    static                                                                                                   \
        __attribute__((noinline)) void take_##name(double *to, const double *x, int64_t stride, int64_t n)   \
    {                                                                                                        \
        LNT_INDEPENDENT for (int64_t i = 0; i < n; i++)                                                      \
        {                                                                                                    \
            const double acc = to[i], v = x[i * stride];                                                     \
            to[i] = (expression);                                                                            \
        }                                                                                                    \
    }                                                                                                        \
                                                                                                             \
    static void pixels_name(const double *const *lines, int64_t n_lines, int64_t taps, int64_t tap_step,     \
                            double *y, int64_t y_step, int64_t outputs, int64_t step, int64_t n)             \
    {                                                                                                        \
        for (int64_t o = 0; o < outputs; o++)                                                                \
            for (int64_t i = 0; i < n; i++) {                                                                \
                double acc = lines[0][o * step + i];                                                         \
                for (int64_t at = 1; at < n_lines * taps; at++) {                                            \
                    const double v = lines[at / taps][o * step + at % taps * tap_step + i];                  \
                    acc = (expression);                                                                      \
                }                                                                                            \
                y[o * y_step + i] = acc;                                                                     \
            }                                                                                                \
    }

WINDOW(max_window, max_pixels, LARGER(acc, v))
WINDOW(sum_window, sum_pixels, acc + v)

typedef void (*take_fn)(double *to, const double *x, int64_t stride, int64_t n);

/* share: NULL for maxima */
static void windows(const lnt_pool_lines *w, const double *const *lines, int64_t n_lines, double *acc,
                    double *y, take_fn take, double factor, const double *share)
{
    const int64_t n = w->end - w->begin;
    double *inside = acc + w->inside, *to = y + w->begin;
    for (int64_t r = 0, at = 0; r < w->rows; r++, at += w->line_step, to += w->y_step) {
        if (n_lines)
            memcpy(inside, lines[0] + at, (size_t)w->in * sizeof *inside);
        for (int64_t l = 1; l < n_lines; l++)
            take(inside, lines[l] + at, 1, w->in);
        for (int64_t o = 0; o < n; o++)
            to[o] = acc[(w->begin + o) * w->stride];
        for (int64_t t = 1; t < w->taps; t++)
            take(to, acc + w->begin * w->stride + t * w->dilation, w->stride, n);
        for (int64_t o = 0; share && o < n; o++)
            to[o] *= factor * share[w->begin + o];
    }
}

static void max_window(const lnt_pool_lines *w, const double *const *lines, int64_t n_lines, double *acc,
                       double *y)
{
    windows(w, lines, n_lines, acc, y, take_max_window, 1, NULL);
}

static void sum_window(const lnt_pool_lines *w, const double *const *lines, int64_t n_lines, double *acc,
                       double *y, double factor, const double *share)
{
    windows(w, lines, n_lines, acc, y, take_sum_window, factor, share);
}

const lnt_pool_double_kernels lnt_pool_double = {LNT_POOL_TABLE};
