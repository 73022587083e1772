/* check_row.c — row kernels against the double table on the same numbers.
 *
 * Rows of every length around a few vectors, at any element alignment, in place and not, with NaN and
 * infinities now and then; results between guard zones. A sum may be off by (terms + 8) * 2^-24 of its terms'
 * magnitudes, an element by a few units in the last place of what it is made of. */
#include "ops/check/check.h"

#include "base/memory.h"
#include "ops/data/order.h"
#include "ops/image/pool_kernels.h"
#include "ops/quant/qparams.h"
#include "ops/rows/int8_rows.h"
#include "ops/rows/row.h"

#include <math.h>
#include <string.h>

enum { LONGEST = 300, GUARD = 16, ROOM = LONGEST + 2 * GUARD + 8, CASES = 1500 };

static const float guard_value = 12345.5f;
static const double unit = 0x1p-24; /* half a unit in the last place of 1 */

/* A row in both types; f points into memory with guards on both sides. */
typedef struct row {
    float memory[ROOM], *f;
    double d[LONGEST];
} row;

typedef struct bench {
    lnt_check_report *report;
    const char *level;
    uint64_t seed, random;
    const lnt_row_kernels *kernels;
    const lnt_int8_kernels *int8;
    const lnt_pool_kernels *pool;
    int64_t n;
    row x, a, b, c, y;
} bench;

static unsigned below(bench *t, unsigned n)
{
    return (unsigned)((lnt_check_random(&t->random) >> 33) % n);
}

/* Random numbers in [-scale, scale) between guards; special: one in 100 is odd. */
static void fill(bench *t, row *r, float scale, bool special)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e30f, 1e-40f};
    for (int i = 0; i < ROOM; i++)
        r->memory[i] = guard_value;
    r->f = r->memory + GUARD + below(t, 8);
    for (int64_t i = 0; i < t->n; i++) {
        r->f[i] = special && below(t, 100) == 0 ? odd[below(t, sizeof odd / sizeof *odd)]
                                                : scale * lnt_check_float(&t->random);
        r->d[i] = (double)r->f[i];
    }
}

static void guards(bench *t, const row *r, const char *what)
{
    for (const float *p = r->memory; p < r->memory + ROOM; p++)
        if ((p < r->f || p >= r->f + t->n) && *p != guard_value) {
            lnt_check_fail(t->report, "%s %s: n %lld, seed %llu: wrote %lld elements from the row", t->level,
                           what, (long long)t->n, (unsigned long long)t->seed, (long long)(p - r->f));
            return;
        }
}

/* Notes a failure unless got is want, give or take error. NaN and infinities must agree. */
static void compare(bench *t, const char *what, int64_t i, float got, double want, double error)
{
    const double off = fabs((double)got - want);
    t->report->cases++;
    if (isnan(want) ? isnan(got) : isinf((float)want) ? got == (float)want : off <= error) {
        if (isfinite(off) && error > 0 && off / error > t->report->worst)
            t->report->worst = off / error;
        return;
    }
    lnt_check_fail(t->report, "%s %s: n %lld, element %lld is %.9g, expected %.9g, seed %llu", t->level, what,
                   (long long)t->n, (long long)i, (double)got, want, (unsigned long long)t->seed);
}

static double magnitude(const bench *t, const row *r)
{
    return lnt_row_double.sum_abs(r->d, t->n);
}

static void check_sums(bench *t)
{
    const lnt_row_kernels *k = t->kernels;
    const lnt_row_double_kernels *d = &lnt_row_double;
    const int64_t n = t->n;
    const double terms = (double)(n + 8) * unit;
    fill(t, &t->x, 4, false);
    fill(t, &t->a, 1, false);
    const double squares = d->sum_squares(t->x.d, n);
    compare(t, "sum", 0, k->sum(t->x.f, n), d->sum(t->x.d, n), terms * magnitude(t, &t->x));
    compare(t, "sum_squares", 0, k->sum_squares(t->x.f, n), squares, terms * squares);
    compare(t, "sum_abs", 0, k->sum_abs(t->x.f, n), magnitude(t, &t->x), terms * magnitude(t, &t->x));
    const double exps = d->sum_exp(t->x.d, n, 0.5);
    compare(t, "sum_exp", 0, k->sum_exp(t->x.f, n, 0.5f), exps, terms * exps * 2);
    compare(t, "dot", 0, k->dot(t->x.f, t->a.f, n), d->dot(t->x.d, t->a.d, n), terms * magnitude(t, &t->x));
    for (int64_t i = 0; i < n; i++)
        t->a.d[i] = (double)(t->a.f[i] = 1 + 0.25f * t->a.f[i]);
    if (k->product) {
        const double product = d->product(t->a.d, n);
        compare(t, "product", 0, k->product(t->a.f, n), product, terms * fabs(product));
    }
    if (n > 0) {
        float mean, variance;
        double want_mean, want_variance;
        k->moments(t->x.f, n, &mean, &variance);
        d->moments(t->x.d, n, &want_mean, &want_variance);
        compare(t, "mean", 0, mean, want_mean, terms * magnitude(t, &t->x) / (double)n + unit);
        compare(t, "variance", 0, variance, want_variance, 2 * terms * (want_variance + 1));
    }
}

static void check_extremes(bench *t)
{
    const lnt_row_kernels *k = t->kernels;
    const lnt_row_double_kernels *d = &lnt_row_double;
    const int64_t n = t->n;
    fill(t, &t->x, 3, true);
    for (int64_t i = 0; i < n && below(t, 2); i++) /* ties */
        t->x.d[i] = (double)(t->x.f[i] = rintf(t->x.f[i]));
    compare(t, "max", 0, k->max(t->x.f, n), d->max(t->x.d, n), 0);
    compare(t, "min", 0, k->min(t->x.f, n), d->min(t->x.d, n), 0);
    for (int last = 0; last < 2 && n > 0; last++) {
        compare(t, "argmax", last, (float)k->argmax(t->x.f, n, last), (double)d->argmax(t->x.d, n, last), 0);
        compare(t, "argmin", last, (float)k->argmin(t->x.f, n, last), (double)d->argmin(t->x.d, n, last), 0);
    }
}

/* Compares row r with its double twin; the error allowed is units in the last place of the element, or of
 * base. */
static void compare_rows(bench *t, const char *what, const row *r, double units, double base)
{
    for (int64_t i = 0; i < t->n; i++)
        compare(t, what, i, r->f[i], r->d[i], unit * units * fmax(fabs(r->d[i]), base) + 1e-38);
    guards(t, r, what);
}

/* acc (+) x for the kernels that take an accumulator row and a row. */
static void check_accumulators(bench *t)
{
    const lnt_row_kernels *k = t->kernels;
    const lnt_row_double_kernels *d = &lnt_row_double;
    const struct {
        const char *name;
        void (*f)(float *acc, const float *x, int64_t n);
        void (*d)(double *acc, const double *x, int64_t n);
    } kernels[] = {{"add", k->add, d->add},
                   {"add_squares", k->add_squares, d->add_squares},
                   {"add_abs", k->add_abs, d->add_abs},
                   {"multiply", k->multiply, d->multiply},
                   {"max_to", k->max_to, d->max_to},
                   {"min_to", k->min_to, d->min_to}};
    for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        fill(t, &t->x, 2, true);
        fill(t, &t->y, 2, kernels[i].f != k->add_squares); /* the square of 1e30 is inf in float alone */
        kernels[i].f(t->y.f, t->x.f, t->n);
        kernels[i].d(t->y.d, t->x.d, t->n);
        compare_rows(t, kernels[i].name, &t->y, 3, 4);
    }
    fill(t, &t->y, 2, false);
    fill(t, &t->x, 2, false);
    fill(t, &t->a, 1, false);
    const int64_t n = t->n, step = below(t, 40), rows = n > 3 * step && n > 3 ? 4 : n > 0;
    t->n -= (rows - 1) * step * (n > 0);
    k->add_scaled(t->y.f, t->x.f, step, t->a.f, rows, t->n);
    d->add_scaled(t->y.d, t->x.d, step, t->a.d, rows, t->n);
    t->n = n;
    compare_rows(t, "add_scaled", &t->y, 6, 8);
    k->blend(t->x.f, 0.75f, t->y.f, -0.5f, t->y.f, t->n);
    d->blend(t->x.d, 0.75, t->y.d, -0.5, t->y.d, t->n);
    compare_rows(t, "blend", &t->y, 3, 6);
}

/* Kernels that write y from x; sometimes y is x. */
static void check_maps(bench *t)
{
    const lnt_row_kernels *k = t->kernels;
    const lnt_row_double_kernels *d = &lnt_row_double;
    const int64_t n = t->n;
    row *y = below(t, 2) ? &t->x : &t->y;
    fill(t, &t->a, 2, false);
    fill(t, &t->b, 2, false);
    fill(t, &t->c, 2, false);
#define BOTH(kernel, units, base, f_arguments, d_arguments)                                                  \
    fill(t, &t->x, 2, false);                                                                                \
    fill(t, &t->y, 2, false);                                                                                \
    if (k->kernel) {                                                                                         \
        k->kernel f_arguments;                                                                               \
        d->kernel d_arguments;                                                                               \
        compare_rows(t, #kernel, y, units, base);                                                            \
    }
    BOTH(softmax, (double)(n + 16), 0, (t->x.f, y->f, n), (t->x.d, y->d, n))
    BOTH(normalize, 8, 16, (t->x.f, y->f, n, 0.5f, 1.25f, t->a.f, t->b.f),
         (t->x.d, y->d, n, 0.5, 1.25, t->a.d, t->b.d))
    BOTH(normalize, 8, 16, (t->x.f, y->f, n, 0.5f, 1.25f, t->a.f, NULL),
         (t->x.d, y->d, n, 0.5, 1.25, t->a.d, NULL))
    BOTH(normalize, 8, 16, (t->x.f, y->f, n, 0.5f, 1.25f, NULL, NULL),
         (t->x.d, y->d, n, 0.5, 1.25, NULL, NULL))
    BOTH(shift_scale, 4, 16, (t->x.f, y->f, n, 0.5f, 1.25f, -1), (t->x.d, y->d, n, 0.5, 1.25, -1))
    BOTH(shift_scale_each, 4, 16, (t->x.f, y->f, n, t->a.f, t->b.f, t->c.f),
         (t->x.d, y->d, n, t->a.d, t->b.d, t->c.d))
    BOTH(subtract, 2, 0, (t->x.f, t->a.f, y->f, n), (t->x.d, t->a.d, y->d, n))
#undef BOTH
    fill(t, &t->x, 2, false);
    k->exp_minus(t->c.f, t->x.f, t->a.f, t->x.f, n);
    d->exp_minus(t->c.d, t->x.d, t->a.d, t->x.d, n);
    compare_rows(t, "exp_minus", &t->x, 12, 0);
    compare_rows(t, "exp_minus", &t->c, 16, 64);
    guards(t, &t->a, "exp_minus");
}

/* Windows of a row of pixels in two lines. */
static void check_pixels(bench *t)
{
    const int64_t n = t->n;
    if (n == 0 || !t->pool->max_pixels)
        return;
    fill(t, &t->x, 2, true);
    fill(t, &t->a, 2, true);
    const float *lines[] = {t->x.f, t->a.f};
    const double *judges[] = {t->x.d, t->a.d};
    const int64_t pixel = 1 + below(t, (unsigned)n), pixels = n / pixel,
                  taps = pixels < 3 ? 1 : 1 + below(t, 3);
    const int64_t stride = 1 + below(t, 2), outputs = (pixels - taps) / stride + 1;
    const int64_t spare = n / outputs - pixel, step = pixel + (spare > 0 ? below(t, (unsigned)spare + 1) : 0);
    t->n = outputs * step;
    fill(t, &t->y, 2, false);
    t->pool->max_pixels(lines, 2, taps, pixel, t->y.f, step, outputs, stride * pixel, pixel);
    lnt_pool_double.max_pixels(judges, 2, taps, pixel, t->y.d, step, outputs, stride * pixel, pixel);
    compare_rows(t, "max_pixels", &t->y, 0, 0);
    t->pool->sum_pixels(lines, 2, taps, pixel, t->y.f, step, outputs, stride * pixel, pixel);
    lnt_pool_double.sum_pixels(judges, 2, taps, pixel, t->y.d, step, outputs, stride * pixel, pixel);
    compare_rows(t, "sum_pixels", &t->y, 6, 8);
    t->n = n;
}

/* Windows over two lines that are joined, or over one that is. */
static void check_lines(bench *t)
{
    const int64_t n = t->n, inside = below(t, 3), stride = 1 + below(t, 5), taps = 1 + below(t, 4),
                  dilation = 1 + below(t, 3);
    const int64_t in = n - inside - LNT_POOL_SLACK, lines = in < LNT_POOL_WIDE ? 0 : below(t, 4);
    const int64_t last = (in - (taps - 1) * dilation - 1) / stride, begin = below(t, 3);
    lnt_pool_lines w = {in, inside, begin, last + 1, stride, taps, dilation, 1, 0, 0, 1, 0};
    if (in <= (taps - 1) * dilation || last < begin || !t->pool->max_window)
        return;
    const struct {
        const char *name;
        double tolerance, units;
    } of[] = {{"max_window", 0, 0}, {"sum_window", 12, 16}};
    for (unsigned sums = 0; sums < 2; sums++) {
        fill(t, &t->x, 2, true);
        fill(t, &t->a, 2, true);
        fill(t, &t->b, 2, true);
        fill(t, &t->c, 2, false);
        const float *from[] = {t->a.f, t->b.f, t->a.f};
        const double *judge[] = {t->a.d, t->b.d, t->a.d};
        fill(t, &t->y, 2, false);
        if (sums) {
            t->pool->sum_window(&w, from, lines, t->x.f, t->y.f, 0.25f, t->c.f);
            lnt_pool_double.sum_window(&w, judge, lines, t->x.d, t->y.d, 0.25, t->c.d);
        } else {
            t->pool->max_window(&w, from, lines, t->x.f, t->y.f);
            lnt_pool_double.max_window(&w, judge, lines, t->x.d, t->y.d);
        }
        compare_rows(t, of[sums].name, &t->y, of[sums].tolerance, of[sums].units);
    }
}

/* The columns' extremes taken row by row. */
static void check_joins(bench *t)
{
    const lnt_row_kernels *k = t->kernels;
    const int64_t n = t->n;
    fill(t, &t->x, 2, true);
    fill(t, &t->a, 2, true);
    fill(t, &t->y, 2, false);
    const float *rows[] = {t->y.f, t->x.f, t->a.f};
    const double *judges[] = {t->y.d, t->x.d, t->a.d};
    t->kernels->max_rows(rows, 3, t->y.f, n);
    lnt_row_double.max_rows(judges, 3, t->y.d, n);
    compare_rows(t, "max_rows", &t->y, 0, 0);
    t->kernels->sum_rows(rows, 3, t->y.f, n);
    lnt_row_double.sum_rows(judges, 3, t->y.d, n);
    compare_rows(t, "sum_rows", &t->y, 3, 8);
    int32_t at[LONGEST] = {0};
    const bool least = below(t, 2) != 0, last = below(t, 2) != 0;
    fill(t, &t->a, 2, true);
    fill(t, &t->b, 2, true);
    for (int64_t i = 0; i < n && below(t, 2); i++) /* ties */
        t->b.f[i] = t->a.f[i];
    memcpy(t->y.memory, t->a.memory, sizeof t->a.memory);
    t->y.f = t->y.memory + (t->a.f - t->a.memory);
    k->pick_max(t->y.f, at, t->b.f, 1, least, last, n);
    for (int64_t i = 0; i < n; i++) {
        const double both[2] = {(double)t->a.f[i], (double)t->b.f[i]};
        const int64_t want = (least ? lnt_row_double.argmin : lnt_row_double.argmax)(both, 2, last);
        compare(t, "pick_max", i, (float)at[i], (double)want, 0);
        compare(t, "pick_max", i, t->y.f[i], both[want], 0);
    }
    guards(t, &t->y, "pick_max");
}

static void check_rotate_halves(bench *t)
{
    const int64_t n = t->n / 2;
    fill(t, &t->x, 1, false);
    fill(t, &t->a, 1, false);
    fill(t, &t->b, 1, false);
    memcpy(t->y.memory, t->x.memory, sizeof t->x.memory);
    t->y.f = t->y.memory + (t->x.f - t->x.memory); /* in place */
    t->kernels->rotate_halves(t->y.f, t->a.f, t->b.f, t->y.f, n);
    for (int64_t i = 0; i < n; i++) {
        const double c = t->a.d[i], s = t->b.d[i], x = t->x.d[i], mate = t->x.d[n + i];
        compare(t, "rotate_halves", i, t->y.f[i], c * x - s * mate,
                4 * unit * (fabs(c * x) + fabs(s * mate)));
        compare(t, "rotate_halves", n + i, t->y.f[n + i], s * x + c * mate,
                4 * unit * (fabs(s * x) + fabs(c * mate)));
    }
    guards(t, &t->y, "rotate_halves");
}

static void check_dot_rows(bench *t)
{
    const int64_t count = 1 + below(t, 9), step = t->n / count, n = step - (step > 0 ? below(t, 2) : 0),
                  all = t->n;
    fill(t, &t->x, 1, false);
    fill(t, &t->a, 1, false);
    t->n = count <= all ? count : all;
    fill(t, &t->y, 1, false);
    t->kernels->dot_rows(t->x.f, step, t->a.f, n, t->y.f, t->n);
    for (int64_t r = 0; r < t->n; r++) {
        double sum = 0, magnitude = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += t->x.d[r * step + i] * t->a.d[i];
            magnitude += fabs(t->x.d[r * step + i] * t->a.d[i]);
        }
        compare(t, "dot_rows", r, t->y.f[r], sum, (double)(n + 1) * unit * magnitude);
    }
    guards(t, &t->y, "dot_rows");
    t->n = all;
}

static void check_first_beyond(bench *t)
{
    const bool least = below(t, 2) != 0;
    fill(t, &t->a, 1, true);
    const float *x = t->a.f, limit = below(t, 3) ? (least ? -0.95f : 0.95f) : x[t->n / 2];
    int64_t want = 0;
    while (want < t->n && (least ? x[want] >= limit : x[want] <= limit))
        want++;
    compare(t, "first_beyond", 0, (float)t->kernels->first_beyond(x, t->n, limit, least), (double)want, 0);
}

/* Lists of the smallest keys of columns, against one list at a time. */
static void check_insert_columns(bench *t)
{
    enum { COLUMNS = 32, MOST = 7, ELEMENTS = 20 };
    const int64_t n = 8 * (1 + (int64_t)below(t, COLUMNS / 8)), k = 1 + (int64_t)below(t, MOST);
    int64_t keys[MOST * COLUMNS], at[MOST * COLUMNS], x[COLUMNS], want[COLUMNS][MOST + 1],
        want_at[COLUMNS][MOST + 1];
    for (int64_t i = 0; i < ELEMENTS; i++) {
        const int64_t have = i < k ? i : k;
        for (int64_t c = 0; c < n; c++) {
            int64_t place = have;
            x[c] = (int64_t)below(t, 9) - 4;
            for (; place > 0 && want[c][place - 1] > x[c]; place--) {
                want[c][place] = want[c][place - 1];
                want_at[c][place] = want_at[c][place - 1];
            }
            want[c][place] = x[c];
            want_at[c][place] = i;
        }
        t->kernels->insert_columns(keys, at, have, k, x, i, n);
    }
    for (int64_t i = 0; i < k * n; i++) {
        compare(t, "insert_columns", i, (float)keys[i], (double)want[i % n][i / n], 0);
        compare(t, "insert_columns", i, (float)at[i], (double)want_at[i % n][i / n], 0);
    }
}

static void check_order_keys(bench *t)
{
    const int64_t n = t->n / 8 * 8;
    const bool largest = below(t, 2) != 0;
    int64_t key[LONGEST];
    fill(t, &t->x, 1, true);
    if (n > 0)
        t->x.f[below(t, (unsigned)n)] = below(t, 2) ? -0.0f : NAN;
    t->kernels->order_keys(t->x.f, n, largest, key);
    for (int64_t i = 1; i < n; i++) {
        const uint64_t a = lnt_float_key(t->x.f[i - 1]), b = lnt_float_key(t->x.f[i]);
        const bool before = largest ? a > b : a < b;
        compare(t, "order_keys", i, key[i - 1] < key[i], before, 0);
        compare(t, "order_keys", i, key[i - 1] == key[i], a == b, 0);
    }
}

/* Quantizing and back, one number at a time by the shared definition. */
static void check_quantized(bench *t)
{
    const bool is_signed = below(t, 2) != 0;
    const lnt_qrange range = lnt_qrange_of(is_signed ? LNT_INT8 : LNT_UINT8);
    const int32_t zero = range.low + (int32_t)below(t, 256);
    const float scale = below(t, 3) ? 0.013f : 0.5f; /* halves are ties */
    uint8_t y[LONGEST + 1];
    fill(t, &t->x, scale * 200, true);
    y[t->n] = 0x5a;
    for (int64_t i = 0; i < t->n; i++)
        if (below(t, 3) == 0)
            t->x.f[i] = scale * 0.5f * (float)((int)below(t, 600) - 300);
    t->int8->quantize(t->x.f, y, t->n, scale, zero, is_signed);
    t->int8->dequantize(y, t->b.f = t->b.memory + GUARD, t->n, scale, zero, is_signed);
    for (int64_t i = 0; i < t->n; i++) {
        const int32_t stored = is_signed ? (int8_t)y[i] : y[i];
        compare(t, "quantize", i, (float)stored, lnt_requantize(t->x.f[i] / scale, zero, range), 0);
        compare(t, "dequantize", i, t->b.f[i], (double)((float)(stored - zero) * scale), 0);
    }
    if (y[t->n] != 0x5a)
        lnt_check_fail(t->report, "%s quantize: n %lld, wrote past the row", t->level, (long long)t->n);
}

static float with_slope(const lnt_requantize_tile *q, unsigned column, float v)
{
    if (!q->slope)
        return v;
    const float below_zero = v * q->slope[column];
    const float low = below_zero > q->floor[column] ? below_zero : q->floor[column];
    return v > low ? v : low;
}

/* Sums of a tile to bytes. */
static void check_stored(bench *t)
{
    enum { ROWS = 3, PANEL = LNT_QPANEL };
    int32_t acc[ROWS * PANEL], acc_bias[PANEL], zeros[PANEL], of_row[ROWS];
    uint8_t y[ROWS][PANEL + 1];
    int64_t out[ROWS];
    lnt_requantize_tile q = {
        .acc = acc, .rows = 1 + below(t, ROWS), .columns = 1 + below(t, PANEL), .acc_bias = acc_bias};
    float scale[PANEL], slope[PANEL], least[PANEL];
    q.floor = least;
    q.zeros = zeros;
    q.scale = scale;
    q.row = below(t, 2) ? of_row : NULL;
    q.is_signed = below(t, 2) != 0;
    q.zero = (int32_t)below(t, 256) - 128 * q.is_signed;
    q.y = y[0];
    q.out = out;
    for (unsigned i = 0; i < PANEL; i++) {
        acc_bias[i] = (int32_t)below(t, 1u << 20);
        zeros[i] = (int32_t)below(t, 512) - 256;
        scale[i] = below(t, 16) ? 0.001f * (float)below(t, 64) : INFINITY;
        slope[i] = (float)(acc_bias[i] % 9) / 8;
        least[i] = acc_bias[i] % 4 ? -(float)(acc_bias[i] % 300) : -INFINITY;
    }
    q.slope = acc_bias[0] % 2 ? slope : NULL;
    for (unsigned i = 0; i < ROWS * PANEL; i++)
        acc[i] = (int32_t)below(t, 1u << 20) - (1 << 20);
    for (unsigned r = 0; r < ROWS; r++) {
        of_row[r] = (int32_t)below(t, 1000);
        out[r] = r * (PANEL + 1);
        memset(y[r], 0x5a, sizeof y[r]);
    }
    t->int8->store_requantized(&q);
    t->report->cases++;
    for (unsigned i = 0; i < ROWS * (PANEL + 1); i++) {
        const unsigned r = i / (PANEL + 1), c = i % (PANEL + 1);
        uint8_t want = 0x5a;
        if (r < q.rows && c < q.columns)
            want = (uint8_t)lnt_requantize(
                with_slope(&q, c,
                           (float)(acc[r * PANEL + c] + acc_bias[c] - (q.row ? of_row[r] * zeros[c] : 0)) *
                               q.scale[c]),
                q.zero, lnt_qrange_of(q.is_signed ? LNT_INT8 : LNT_UINT8));
        if (y[r][c] != want)
            lnt_check_fail(t->report, "%s store_bytes: row %u, column %u of %u is %u, not %u, seed %llu",
                           t->level, r, c, q.columns, y[r][c], want, (unsigned long long)t->seed);
    }
}

/* Sums of a tile as they are, with numbers of its own, so that those of other kernels stay. */
static void check_integers(bench *t)
{
    enum { ROWS = 3, PANEL = LNT_QPANEL };
    uint64_t random = t->seed + (uint64_t)t->n;
    int32_t acc[ROWS * PANEL], acc_bias[PANEL], zeros[PANEL], of_row[ROWS], y[ROWS * (PANEL + 1)];
    const int64_t out[ROWS] = {0, PANEL + 1, 2 * (PANEL + 1)};
    const lnt_integer_tile tile = {.acc = acc,
                                   .rows = 1 + (unsigned)t->n % ROWS,
                                   .columns = 1 + (unsigned)t->n % PANEL,
                                   .acc_bias = acc_bias,
                                   .zeros = zeros,
                                   .row = t->n % 2 ? of_row : NULL,
                                   .y = y,
                                   .out = out};
    for (unsigned i = 0; i < ROWS * PANEL; i++)
        acc[i] = (int32_t)lnt_check_random(&random);
    for (unsigned i = 0; i < PANEL; i++) {
        acc_bias[i] = (int32_t)lnt_check_random(&random);
        zeros[i] = (int32_t)(lnt_check_random(&random) >> 55) - 256;
    }
    for (unsigned i = 0; i < ROWS; i++)
        of_row[i] = (int32_t)lnt_check_random(&random);
    memset(y, 0x5a, sizeof y);
    t->int8->store_integers(&tile);
    t->report->cases++;
    for (unsigned i = 0; i < ROWS * (PANEL + 1); i++) {
        const unsigned r = i / (PANEL + 1), c = i % (PANEL + 1);
        uint32_t want = 0x5a5a5a5a;
        if (r < tile.rows && c < tile.columns)
            want = (uint32_t)acc[r * PANEL + c] + (uint32_t)acc_bias[c] -
                   (tile.row ? (uint32_t)of_row[r] * (uint32_t)zeros[c] : 0);
        if ((uint32_t)y[i] != want)
            lnt_check_fail(t->report, "%s store_integers: row %u, column %u of %u is %d, not %d, seed %llu",
                           t->level, r, c, tile.columns, (int)y[i], (int)want, (unsigned long long)t->seed);
    }
}

/* Sums of rows of n bytes, side by side. */
static void check_sum_rows(bench *t)
{
    enum { ROWS = 37 };
    uint64_t random = t->seed + (uint64_t)t->n;
    static const uint8_t extremes[] = {0, 255, 255, 254};
    uint8_t x[ROWS * 40];
    int32_t sums[ROWS + 1];
    const int64_t n = t->n % 40;
    const unsigned rows = (unsigned)(t->n % (ROWS + 1));
    const int32_t minus = (int32_t)t->n - 7;
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = extremes[lnt_check_random(&random) >> 62];
    sums[rows] = 0x5a;
    t->int8->sum_rows(x, n, rows, minus, sums);
    t->report->cases++;
    for (unsigned r = 0; r < rows; r++) {
        int32_t want = -minus;
        for (int64_t i = 0; i < n; i++)
            want += x[r * n + i];
        compare(t, "sum_rows", r, (float)sums[r], (float)want, 0);
    }
    if (sums[rows] != 0x5a)
        lnt_check_fail(t->report, "%s sum_rows: %u rows, wrote past them", t->level, rows);
}

/* The largest of bytes; of numbers of its own, so that those of other kernels stay. */
static void check_largest(bench *t)
{
    enum { ROWS = 3 };
    uint8_t x[ROWS][LONGEST], y[LONGEST + 1];
    const uint8_t *const rows[ROWS] = {x[0], x[1], x[2]};
    const bool is_signed = t->n % 2 != 0;
    uint64_t random = t->seed + (uint64_t)t->n;
    for (int64_t i = 0; i < ROWS * t->n; i++)
        x[i / t->n][i % t->n] = (uint8_t)(lnt_check_random(&random) >> 33);
    y[t->n] = 0x5a;
    t->pool->max_bytes(rows, ROWS, is_signed, y, t->n);
    t->report->cases++;
    for (int64_t i = 0; i < t->n; i++) {
        uint8_t want = x[0][i];
        for (unsigned r = 1; r < ROWS; r++)
            if (is_signed ? (int8_t)x[r][i] > (int8_t)want : x[r][i] > want)
                want = x[r][i];
        compare(t, "max_bytes", i, y[i], want, 0);
    }
    if (y[t->n] != 0x5a)
        lnt_check_fail(t->report, "%s max_bytes: n %lld, wrote past the row", t->level, (long long)t->n);
}

/* Bytes through a table, x in place or not. */
static void check_look_up(bench *t)
{
    uint8_t to[256], x[LONGEST], y[LONGEST + 1];
    for (unsigned i = 0; i < sizeof to; i++)
        to[i] = (uint8_t)below(t, 256);
    int32_t sum = 0, of_int8 = 0;
    for (int64_t i = 0; i < t->n; i++) {
        sum += x[i] = (uint8_t)below(t, 256);
        of_int8 += (int8_t)x[i];
    }
    compare(t, "sum of bytes", 0, (float)t->int8->sum(x, t->n, false), sum, 0);
    compare(t, "sum of int8", 0, (float)t->int8->sum(x, t->n, true), of_int8, 0);
    const bool in_place = below(t, 2) != 0;
    y[t->n] = 0x5a;
    memcpy(y, x, (size_t)t->n);
    t->int8->look_up(to, in_place ? y : x, t->n, y);
    for (int64_t i = 0; i < t->n; i++)
        compare(t, "look_up", i, y[i], to[x[i]], 0);
    if (y[t->n] != 0x5a)
        lnt_check_fail(t->report, "%s look_up: n %lld, wrote past the row", t->level, (long long)t->n);
}

lnt_status lnt_check_row(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    lnt_error err = {0};
    bench *t = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *t, &err);
    const uint64_t before = r->failures;
    if (!t)
        return LNT_E_MEMORY;
    t->report = r;
    t->level = lnt_level_text(level);
    t->kernels = lnt_kernels_of(level)->row;
    t->int8 = lnt_kernels_of(level)->int8;
    t->pool = lnt_kernels_of(level)->pool;
    t->seed = seed;
    t->random = seed | 1;
    for (int i = 0; i < CASES; i++) {
        t->n = i < 70 ? i : (int64_t)below(t, LONGEST + 1);
        check_sums(t);
        check_extremes(t);
        check_accumulators(t);
        check_maps(t);
        if (t->int8 && t->int8->store_requantized)
            check_stored(t);
        if (t->int8 && t->int8->store_integers)
            check_integers(t);
        if (t->int8)
            check_sum_rows(t);
        if (t->pool->max_bytes)
            check_largest(t);
        if (t->int8 && t->int8->look_up)
            check_look_up(t);
        check_lines(t);
        check_joins(t);
        check_pixels(t);
        if (t->kernels->dot_rows)
            check_dot_rows(t);
        if (t->kernels->rotate_halves)
            check_rotate_halves(t);
        if (t->kernels->first_beyond)
            check_first_beyond(t);
        if (t->kernels->insert_columns) {
            check_insert_columns(t);
            check_order_keys(t);
        }
        if (t->int8)
            check_quantized(t);
    }
    lnt_free(&lnt_malloc_allocator, t);
    return r->failures > before ? LNT_E_INTERNAL : LNT_OK;
}
