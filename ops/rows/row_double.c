/* row_double.c — the row kernels for double, in plain C: they serve double tensors at every level and judge
 * the float kernels in the checker. */
#include "ops/rows/row.h"

#include <math.h>

#define ALONG(name, start, expression)                                                                       \
    static double name(const double *x, int64_t n)                                                           \
    {                                                                                                        \
        double acc = (start);                                                                                \
        for (int64_t i = 0; i < n; i++)                                                                      \
            acc = (expression);                                                                              \
        return acc;                                                                                          \
    }

#define LARGER(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define SMALLER(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))

ALONG(sum, 0, acc + x[i])
ALONG(sum_squares, 0, acc + x[i] * x[i])
ALONG(sum_abs, 0, acc + fabs(x[i]))
ALONG(product, 1, (acc * x[i]))
ALONG(max, -INFINITY, LARGER(acc, x[i]))
ALONG(min, INFINITY, SMALLER(acc, x[i]))

#define ACROSS(name, expression)                                                                             \
    static void name(double *acc, const double *x, int64_t n)                                                \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++)                                                                      \
            acc[i] = (expression);                                                                           \
    }

ACROSS(add, acc[i] + x[i])
ACROSS(add_squares, acc[i] + x[i] * x[i])
ACROSS(add_abs, acc[i] + fabs(x[i]))
ACROSS(multiply, acc[i] * x[i])
ACROSS(max_to, LARGER(acc[i], x[i]))
ACROSS(min_to, SMALLER(acc[i], x[i]))

static double sum_exp(const double *x, int64_t n, double minus)
{
    double acc = 0;
    for (int64_t i = 0; i < n; i++)
        acc += exp(x[i] - minus);
    return acc;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double acc = 0;
    for (int64_t i = 0; i < n; i++)
        acc += a[i] * b[i];
    return acc;
}

/* First or last element equal to extreme, NaN being equal to NaN. */
static int64_t find(const double *x, int64_t n, double extreme, bool last)
{
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] != extreme && !(x[i] != x[i] && extreme != extreme))
            continue;
        at = i;
        if (!last)
            break;
    }
    return at;
}

static int64_t argmax(const double *x, int64_t n, bool last)
{
    return find(x, n, max(x, n), last);
}

static int64_t argmin(const double *x, int64_t n, bool last)
{
    return find(x, n, min(x, n), last);
}

static void moments(const double *x, int64_t n, double *mean, double *variance)
{
    const double m = sum(x, n) / (double)n;
    double acc = 0;
    for (int64_t i = 0; i < n; i++)
        acc += (x[i] - m) * (x[i] - m);
    *mean = m;
    *variance = acc / (double)n;
}

static void shift_scale(const double *x, double *y, int64_t n, double minus, double factor, double plus)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - minus) * factor + plus;
}

static void softmax(const double *x, double *y, int64_t n)
{
    const double m = max(x, n);
    double acc = 0;
    for (int64_t i = 0; i < n; i++)
        acc += y[i] = exp(x[i] - m);
    shift_scale(y, y, n, 0, 1 / acc, 0);
}

static void normalize(const double *x, double *y, int64_t n, double mean, double factor, const double *scale,
                      const double *bias)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * factor * (scale ? scale[i] : 1) + (bias ? bias[i] : 0);
}

static void shift_scale_each(const double *x, double *y, int64_t n, const double *minus, const double *factor,
                             const double *plus)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - minus[i]) * factor[i] + plus[i];
}

static void add_scaled(double *acc, const double *x, int64_t step, const double *factor, int64_t rows,
                       int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++)
            acc[i] += factor[r] * x[r * step + i];
}

static void blend(const double *a, double of_a, const double *b, double of_b, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = of_a * a[i] + of_b * b[i];
}

static void exp_minus(double *acc, const double *x, const double *minus, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double e = exp(x[i] - minus[i]);
        acc[i] += e;
        if (y)
            y[i] = e;
    }
}

static void subtract(const double *x, const double *minus, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - minus[i];
}

#define JOIN(name, expression)                                                                               \
    static void name(const double *const *rows, int64_t n_rows, double *y, int64_t n)                        \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            double acc = rows[0][i];                                                                         \
            for (int64_t r = 1; r < n_rows; r++) {                                                           \
                const double v = rows[r][i];                                                                 \
                acc = (expression);                                                                          \
            }                                                                                                \
            y[i] = acc;                                                                                      \
        }                                                                                                    \
    }

JOIN(max_rows, LARGER(acc, v))
JOIN(sum_rows, acc + v)

const lnt_row_double_kernels lnt_row_double = {LNT_ROW_TABLE};
