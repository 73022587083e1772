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
    static void row_of_##name(const lnt_pool_lines *w, const double *const *lines, int64_t n_lines,          \
                              int64_t row, double *acc, double *y)                                           \
    {                                                                                                        \
        if (n_lines)                                                                                         \
            memcpy(acc + w->inside, lines[0] + row * w->line_step, (size_t)w->in * sizeof *acc);             \
        for (int64_t l = 1; l < n_lines; l++)                                                                \
            take_##name(acc + w->inside, lines[l] + row * w->line_step, 1, w->in);                           \
        for (int64_t o = w->begin; o < w->end; o++)                                                          \
            y[o] = acc[o * w->stride];                                                                       \
        for (int64_t t = 1; t < w->taps; t++)                                                                \
            take_##name(y + w->begin, acc + w->begin * w->stride + t * w->dilation, w->stride,               \
                        w->end - w->begin);                                                                  \
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

static void max_window(const lnt_pool_lines *w, const double *const *lines, int64_t n_lines, double *acc,
                       double *y)
{
    for (int64_t r = 0; r < w->rows; r++)
        row_of_max_window(w, lines, n_lines, r, acc, y + r * w->y_step);
}

static void sum_window(const lnt_pool_lines *w, const double *const *lines, int64_t n_lines, double *acc,
                       double *y, double factor, const double *share)
{
    for (int64_t r = 0; r < w->rows; r++, y += w->y_step) {
        row_of_sum_window(w, lines, n_lines, r, acc, y);
        for (int64_t o = w->begin; o < w->end; o++)
            y[o] *= factor * share[o];
    }
}

const lnt_pool_double_kernels lnt_pool_double = {LNT_POOL_TABLE};
