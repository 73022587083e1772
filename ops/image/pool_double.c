/* pool_double.c — the kernels of pooling for double, in plain C: they serve double tensors at every level and judge
 * the float kernels in the checker. */
#include "ops/image/pool_kernels.h"

#include <math.h>

#define LARGER(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))

#define WINDOW(name, pixels_name, start, expression)                                                         \
    static void name(const double *x, double *y, int64_t n, int64_t stride, int64_t taps, int64_t dilation)  \
    {                                                                                                        \
        for (int64_t o = 0; o < n; o++) {                                                                    \
            double acc = (start);                                                                            \
            for (int64_t t = 0; t < taps; t++) {                                                             \
                const double v = x[o * stride + t * dilation];                                               \
                acc = (expression);                                                                          \
            }                                                                                                \
            y[o] = acc;                                                                                      \
        }                                                                                                    \
    }                                                                                                        \
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

WINDOW(max_window, max_pixels, -INFINITY, LARGER(acc, v))
WINDOW(sum_window, sum_pixels, 0, acc + v)

const lnt_pool_double_kernels lnt_pool_double = {LNT_POOL_TABLE};
