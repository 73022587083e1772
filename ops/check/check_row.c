/* check_row.c — row kernels against the double table on the same numbers.
 *
 * Rows of every length around a few vectors, at any element alignment, in place and not, with NaN and
 * infinities now and then; results between guard zones. A sum may be off by (terms + 8) * 2^-24 of its terms'
 * magnitudes, an element by a few units in the last place of what it is made of. */
#include "ops/check/check.h"

#include "base/memory.h"
#include "ops/row.h"

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
    const double product = d->product(t->a.d, n);
    compare(t, "product", 0, k->product(t->a.f, n), product, terms * fabs(product));
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
        fill(t, &t->y, 2, true);
        kernels[i].f(t->y.f, t->x.f, t->n);
        kernels[i].d(t->y.d, t->x.d, t->n);
        compare_rows(t, kernels[i].name, &t->y, 3, 4);
    }
    fill(t, &t->y, 2, false);
    fill(t, &t->x, 2, false);
    k->add_scaled(t->y.f, t->x.f, 0.75f, t->n);
    d->add_scaled(t->y.d, t->x.d, 0.75, t->n);
    compare_rows(t, "add_scaled", &t->y, 3, 4);
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
    k->kernel f_arguments;                                                                                   \
    d->kernel d_arguments;                                                                                   \
    compare_rows(t, #kernel, y, units, base);
    BOTH(softmax, (double)(n + 16), 0, (t->x.f, y->f, n), (t->x.d, y->d, n))
    BOTH(log_softmax, (double)(n + 16), 8, (t->x.f, y->f, n), (t->x.d, y->d, n))
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

static void check_bytes(bench *t)
{
    int32_t acc[LONGEST + 1], want[LONGEST + 1];
    uint8_t x[LONGEST];
    const bool is_signed = below(t, 2) != 0;
    const int32_t minus = (int32_t)below(t, 256) - 128 * is_signed, factor = (int32_t)below(t, 511) - 255;
    acc[t->n] = 4711;
    for (int64_t i = 0; i < t->n; i++) {
        x[i] = (uint8_t)below(t, 256);
        acc[i] = (int32_t)below(t, 1u << 30);
        want[i] = acc[i] + factor * ((is_signed ? (int8_t)x[i] : x[i]) - minus);
    }
    t->kernels->add_bytes(acc, x, is_signed, minus, factor, t->n);
    t->report->cases++;
    if (memcmp(acc, want, (size_t)t->n * sizeof *acc) != 0 || acc[t->n] != 4711)
        lnt_check_fail(t->report, "%s add_bytes: n %lld, seed %llu", t->level, (long long)t->n,
                       (unsigned long long)t->seed);
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
    t->seed = seed;
    t->random = seed | 1;
    for (int i = 0; i < CASES; i++) {
        t->n = i < 70 ? i : (int64_t)below(t, LONGEST + 1);
        check_sums(t);
        check_extremes(t);
        check_accumulators(t);
        check_maps(t);
        check_bytes(t);
    }
    lnt_free(&lnt_malloc_allocator, t);
    return r->failures > before ? LNT_E_INTERNAL : LNT_OK;
}
