/* check_attend.c — the kernels of attention against the formulas of ops/attention/attend.h in double.
 *
 * Blocks of one and two sets of lanes and by rows, any number of keys around a few vectors, any width and
 * alignment; results between guard zones. A weight may be off by 4 units in the last place of the terms of
 * its exponent, a sum by (terms + 8) * 2^-24 of its terms' magnitudes. */
#include "ops/check/check.h"

#include "base/kernel.h"
#include "ops/attention/attend.h"

#include <math.h>
#include <string.h>

enum { KEYS = 40, WIDTH = 70, ROWS = LNT_ATTEND_ROWS, LANES = LNT_ATTEND_LANES, GUARD = 16, CASES = 400 };
enum { ROOM = (WIDTH + 2) * KEYS + 2 * GUARD + 8 };
_Static_assert(ROOM >= WIDTH * ROWS + 2 * GUARD + 8, "holds queries, logits and values");

static const float guard_value = 12345.5f;
static const double unit = 0x1p-24;

typedef struct buffer {
    float memory[ROOM], *f;
    int64_t n;
} buffer;

typedef struct bench {
    lnt_check_report *report;
    const char *level;
    uint64_t seed, random;
    const lnt_attend_kernels *kernels;
    int64_t keys, width, lanes; /* lanes 0: by rows */
    unsigned rows;
    buffer s, y, v;
    float max[ROWS], sum[ROWS], factor[ROWS];
} bench;

static unsigned below(bench *t, unsigned n)
{
    return (unsigned)((lnt_check_random(&t->random) >> 33) % n);
}

static void fill(bench *t, buffer *b, int64_t n, float scale)
{
    for (int i = 0; i < ROOM; i++)
        b->memory[i] = guard_value;
    b->f = b->memory + GUARD + below(t, 8);
    b->n = n;
    for (int64_t i = 0; i < n; i++)
        b->f[i] = scale * lnt_check_float(&t->random);
}

static void guards(bench *t, const buffer *b, const char *what)
{
    for (const float *p = b->memory; p < b->memory + ROOM; p++)
        if ((p < b->f || p >= b->f + b->n) && *p != guard_value) {
            lnt_check_fail(t->report, "%s %s: wrote %lld elements from its result, seed %llu", t->level, what,
                           (long long)(p - b->f), (unsigned long long)t->seed);
            return;
        }
}

static void compare(bench *t, const char *what, int64_t i, float got, double want, double error)
{
    if (lnt_check_within(t->report, fabs((double)got - want), error))
        return;
    lnt_check_fail(t->report,
                   "%s %s: keys %lld, width %lld, lanes %lld, element %lld is %.9g, expected %.9g, "
                   "seed %llu",
                   t->level, what, (long long)t->keys, (long long)t->width, (long long)t->lanes, (long long)i,
                   (double)got, want, (unsigned long long)t->seed);
}

/* Where the logit of query i and key k is. */
static int64_t place(const bench *t, unsigned i, int64_t k)
{
    return t->lanes ? k * t->lanes + i : i * t->keys + k;
}

static void check_turn(bench *t)
{
    const float *rows[LANES], scale = lnt_check_float(&t->random);
    float before[WIDTH * ROWS];
    const int64_t step = t->lanes ? t->lanes : LANES;
    fill(t, &t->v, t->width * LANES, 1);
    for (unsigned i = 0; i < LANES; i++)
        rows[i] = t->v.f + i * t->width;
    fill(t, &t->y, t->width * LANES, 1);
    t->kernels->transpose(rows, t->width, scale, t->y.f);
    for (int64_t i = 0; i < t->width * LANES; i++) {
        const float wanted = scale * rows[i % LANES][i / LANES];
        compare(t, "transpose", i, t->y.f[i], (double)wanted, 0);
    }
    guards(t, &t->y, "transpose");
    fill(t, &t->y, t->width * step, 1);
    memcpy(before, t->y.f, (size_t)t->y.n * sizeof *before);
    t->kernels->add_turned(rows, t->width, t->y.f, step);
    for (int64_t i = 0; i < t->width * step; i++)
        compare(t, "add_turned", i, t->y.f[i],
                (double)(i % step < LANES ? before[i] + rows[i % step][i / step] : before[i]), 0);
    guards(t, &t->y, "add_turned");
}

static void check_logits(bench *t)
{
    float before[WIDTH * ROWS], bias[KEYS];
    const int64_t n = t->keys * t->lanes;
    const float cap = 0.5f + (float)below(t, 20);
    for (int64_t k = 0; k < t->keys; k++)
        bias[k] = lnt_check_float(&t->random);
    fill(t, &t->s, n, 9);
    memcpy(before, t->s.f, (size_t)n * sizeof *before);
    t->kernels->add_bias(bias, t->keys, t->s.f, t->lanes);
    for (int64_t i = 0; i < n; i++)
        compare(t, "add_bias", i, t->s.f[i], (double)(before[i] + bias[i / t->lanes]), 0);
    guards(t, &t->s, "add_bias");
    fill(t, &t->s, t->keys, 30);
    memcpy(before, t->s.f, (size_t)t->keys * sizeof *before);
    t->kernels->cap(t->s.f, t->keys, cap);
    for (int64_t i = 0; i < t->keys; i++)
        compare(t, "cap", i, t->s.f[i], (double)cap * tanh((double)before[i] / (double)cap),
                16 * unit * (double)cap);
    guards(t, &t->s, "cap");
}

/* Logits, some of them masked, into weights, after an earlier block that left max and sum. */
static void check_choose(bench *t)
{
    float before[KEYS * ROWS], max[ROWS], sum[ROWS];
    fill(t, &t->s, t->keys * (t->lanes ? t->lanes : t->rows), 20);
    for (int64_t i = 0; i < t->s.n; i++)
        if (below(t, 8) == 0)
            t->s.f[i] = -INFINITY;
    memcpy(before, t->s.f, (size_t)t->s.n * sizeof *before);
    const unsigned rows = t->lanes ? (unsigned)t->lanes : t->rows;
    for (unsigned i = 0; i < rows; i++) {
        const bool first = below(t, 2) == 0;
        max[i] = t->max[i] = first ? -INFINITY : 20 * lnt_check_float(&t->random);
        sum[i] = t->sum[i] = first ? 0 : 1.5f;
    }
    if (t->lanes)
        t->kernels->choose(t->s.f, t->keys, t->lanes, t->max, t->sum, t->factor);
    for (unsigned i = 0; !t->lanes && i < rows; i++)
        t->kernels->choose_row(t->s.f + i * t->keys, t->keys, t->max + i, t->sum + i, t->factor + i);
    for (unsigned i = 0; i < rows; i++) {
        double most = (double)max[i], total = 0;
        for (int64_t k = 0; k < t->keys; k++)
            most = fmax(most, (double)before[place(t, i, k)]);
        const double minus = most == -INFINITY ? 0 : most, factor = exp((double)max[i] - minus);
        for (int64_t k = 0; k < t->keys; k++) {
            const double x = (double)before[place(t, i, k)] - minus, e = exp(x);
            total += e;
            compare(t, "choose", place(t, i, k), t->s.f[place(t, i, k)], e,
                    (isinf(x) ? 0 : (8 + 2 * fabs(x)) * unit * e) + 1e-37);
        }
        if (most != -INFINITY)
            compare(t, "choose, max", i, t->max[i], most, 0);
        compare(t, "choose, factor", i, t->factor[i], factor,
                (isinf(max[i]) ? 0 : 80 * unit * factor) + 1e-37);
        compare(t, "choose, sum", i, t->sum[i], total + factor * (double)sum[i],
                (double)(t->keys + 100) * unit * (total + factor) + 1e-35);
    }
    guards(t, &t->s, "choose");
}

static void check_mix(bench *t)
{
    float before[WIDTH * ROWS], post[ROWS], *y[ROWS];
    const int64_t v_row = t->width + below(t, 3);
    const bool begun = below(t, 2) == 0;
    fill(t, &t->s, t->keys * (t->lanes ? t->lanes : t->rows), 1);
    fill(t, &t->v, (t->keys - 1) * v_row + t->width, 1);
    fill(t, &t->y, t->rows * t->width, 1);
    memcpy(before, t->y.f, (size_t)t->y.n * sizeof *before);
    for (unsigned i = 0; i < t->rows; i++) {
        y[i] = t->y.f + i * t->width;
        post[i] = lnt_check_float(&t->random);
        t->factor[i] = lnt_check_float(&t->random);
    }
    t->kernels->mix(&(lnt_mix){.p = t->s.f,
                               .lanes = t->lanes,
                               .p_row = t->keys,
                               .v = t->v.f,
                               .v_row = v_row,
                               .keys = t->keys,
                               .width = t->width,
                               .rows = t->rows,
                               .y = y,
                               .factor = begun ? t->factor : NULL,
                               .post = post});
    for (int64_t at = 0; at < t->y.n; at++) {
        const unsigned i = (unsigned)(at / t->width);
        double want = begun ? (double)before[at] * (double)t->factor[i] : 0, size = fabs(want);
        for (int64_t k = 0; k < t->keys; k++) {
            const double term = (double)t->s.f[place(t, i, k)] * (double)t->v.f[k * v_row + at % t->width];
            want += term;
            size += fabs(term);
        }
        compare(t, "mix", at, t->y.f[at], want * (double)post[i],
                (double)(t->keys + 8) * unit * size * fabs((double)post[i]));
    }
    guards(t, &t->y, "mix");
}

lnt_status lnt_check_attend(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    bench t = {.report = r, .level = lnt_level_text(level), .kernels = lnt_kernels_of(level)->attend};
    const uint64_t failures = r->failures;
    for (unsigned i = 0; t.kernels && i < CASES; i++) {
        t.seed = seed + i;
        t.random = lnt_mix_seed(t.seed) | 1;
        t.keys = 1 + below(&t, KEYS);
        t.width = 1 + below(&t, WIDTH - 2);
        t.lanes = below(&t, 3) * LANES;
        t.rows = 1 + below(&t, t.lanes ? (unsigned)t.lanes : 4);
        check_turn(&t);
        check_logits(&t);
        check_choose(&t);
        check_mix(&t);
    }
    return r->failures == failures ? LNT_OK : LNT_E_INTERNAL;
}
