/* check_plane.c — a plane made of another one, or of some (lnt_plane), and lines of taps that are added up (lnt_fold),
 * at a level against plain loops in double. */
#include "ops/check/check.h"

#include "base/memory.h"
#include "ops/conv/conv_kernels.h"

#include <math.h>
#include <string.h>

enum {
    CASES = 400,
    CHANNELS_MAX = 4,
    ROWS_MAX = 13,
    PIXELS_MAX = 150,
    LINES_MAX = 7,
    TAPS_MAX = 9,
    SPACING_MAX = 3,
    STRIDE_MAX = 3,
    GUARD = 64
};
enum {
    LINE_MAX = PIXELS_MAX + TAPS_MAX * SPACING_MAX + LNT_PLANE_SLACK,
    X_MAX = (CHANNELS_MAX * (ROWS_MAX + LINES_MAX + 1) + LNT_PLANE_ROWS) * STRIDE_MAX * LINE_MAX,
    W_MAX = CHANNELS_MAX * LINES_MAX * TAPS_MAX,
    C_ROW = PIXELS_MAX + GUARD
};

typedef struct bench {
    float x[X_MAX], w[W_MAX], c[ROWS_MAX][C_ROW];
    size_t tap[LINES_MAX * TAPS_MAX];
    uint64_t random;
} bench;

static const float guard_value = 12345.0f;

static unsigned below(bench *b, unsigned n)
{
    return (unsigned)((lnt_check_random(&b->random) >> 33) % n);
}

static lnt_plane draw(bench *b)
{
    const bool unbounded = below(b, 2), shares = below(b, 2);
    lnt_plane p = {.x = b->x,
                   .tap = b->tap,
                   .spacing = 1 + below(b, SPACING_MAX),
                   .w = b->w,
                   .channels = 1 + below(b, 2) * below(b, CHANNELS_MAX),
                   .lines = 1 + below(b, LINES_MAX),
                   .taps = 1 + below(b, TAPS_MAX),
                   .rows = 1 + below(b, ROWS_MAX),
                   .pixels = 1 + below(b, PIXELS_MAX),
                   .c = b->c[0],
                   .c_row = C_ROW,
                   .bias = lnt_check_float(&b->random),
                   .low = unbounded ? -INFINITY : -1,
                   .high = unbounded ? INFINITY : 1.5f};
    const size_t line = p.pixels + p.taps * p.spacing + LNT_PLANE_SLACK;
    p.x_line = shares ? line : 0;
    p.x_row = shares ? line : (1 + below(b, STRIDE_MAX)) * line;
    p.x_channel = (p.lines + p.rows + below(b, 2)) * p.x_row;
    for (size_t t = 0; t < p.lines * p.taps; t++)
        b->tap[t] =
            t / p.taps * line + (shares ? t % p.taps * p.spacing : below(b, (unsigned)(p.taps * p.spacing)));
    for (size_t i = 0; i < X_MAX; i++)
        b->x[i] = below(b, 5000) ? lnt_check_float(&b->random) : INFINITY;
    for (size_t i = 0; i < W_MAX; i++)
        b->w[i] = lnt_check_float(&b->random);
    for (size_t i = 0; i < ROWS_MAX * C_ROW; i++)
        b->c[i / C_ROW][i % C_ROW] = guard_value;
    return p;
}

/* Pixel i of row r, and what it may be off by. */
static double judge(const lnt_plane *p, size_t r, size_t i, double *error)
{
    double sum = (double)p->bias, magnitude = fabs(sum);
    for (size_t k = 0; k < p->channels; k++)
        for (size_t l = 0; l < p->lines; l++)
            for (size_t t = 0; t < p->taps; t++) {
                const double product =
                    (double)p->x[k * p->x_channel + r * p->x_row + i + p->tap[l * p->taps + t]] *
                    (double)p->w[(k * p->lines + l) * p->taps + t];
                sum += product;
                magnitude += fabs(product);
            }
    *error = magnitude * (double)(p->channels * p->lines * p->taps + 1) * 0x1p-24;
    return sum > (double)p->high ? (double)p->high : sum < (double)p->low ? (double)p->low : sum;
}

static bool holds(lnt_check_report *report, const lnt_plane *p, size_t r, size_t i, float got)
{
    double error;
    if (r >= p->rows || i >= p->pixels)
        return got == guard_value;
    const double want = judge(p, r, i, &error);
    return isfinite(want) && isfinite(error) ? lnt_check_within(report, fabs((double)got - want), error)
                                             : isnan(want) || (double)got == want;
}

static void check_case(bench *b, lnt_level level, uint64_t seed, lnt_check_report *report)
{
    const lnt_plane p = draw(b);
    lnt_kernels_of(level)->conv->plane(&p);
    for (size_t at = 0; at < ROWS_MAX * C_ROW; at++) {
        const size_t r = at / C_ROW, i = at % C_ROW;
        if (holds(report, &p, r, i, b->c[r][i]))
            continue;
        lnt_check_fail(
            report, "%s plane of %zu x %zu, of %zu, kernel %zu x %zu: row %zu, pixel %zu is %g (seed %llu)",
            lnt_level_text(level), p.rows, p.pixels, p.channels, p.lines, p.taps, r, i, (double)b->c[r][i],
            (unsigned long long)seed);
        return;
    }
}

/* Lines and taps of random distances, in an area of random numbers with room before and behind. */
static lnt_fold draw_fold(bench *b)
{
    lnt_fold f = {.x = b->x + X_MAX / 2,
                  .lines = below(b, LINES_MAX),
                  .taps = 1 + below(b, TAPS_MAX),
                  .stride = 1 + below(b, STRIDE_MAX),
                  .width = 1 + below(b, PIXELS_MAX),
                  .c = b->c[0],
                  .phase = C_ROW,
                  .bias = lnt_check_float(&b->random),
                  .low = -3,
                  .high = 4};
    f.pixels = f.width + f.taps / f.stride;
    f.tap = f.width + below(b, 9);
    f.line = (ptrdiff_t)(f.tap * f.taps) - (ptrdiff_t)below(b, 9);
    return f;
}

static double judge_fold(const lnt_fold *f, size_t p, size_t i)
{
    double sum = (double)f->bias;
    for (size_t t = p, d = 0; t < f->taps && d <= i; t += f->stride, d++)
        for (size_t l = 0; l < f->lines && i - d < f->width; l++)
            sum += (double)f->x[(ptrdiff_t)(t * f->tap + i - d) + (ptrdiff_t)l * f->line];
    return fmin(fmax(sum, (double)f->low), (double)f->high);
}

static void check_fold(bench *b, lnt_level level, uint64_t seed, lnt_check_report *report)
{
    const lnt_fold f = draw_fold(b);
    lnt_kernels_of(level)->conv->fold(&f);
    for (size_t p = 0; p < f.stride; p++)
        for (size_t i = 0; i < f.pixels; i++) {
            const double want = judge_fold(&f, p, i), got = (double)b->c[p][i];
            if (lnt_check_within(report, fabs(got - want), (double)(f.lines * f.taps + 1) * 0x1p-20))
                continue;
            lnt_check_fail(report, "%s fold of %zu, %zu x %zu taps: pixel %zu of phase %zu is %g (seed %llu)",
                           lnt_level_text(level), f.width, f.lines, f.taps, i, p, got,
                           (unsigned long long)seed);
            return;
        }
}

lnt_status lnt_check_plane(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    const uint64_t failures = r->failures;
    const lnt_conv_kernels *kernels = lnt_kernels_of(level)->conv;
    bench *b = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *b, NULL);
    if (!b)
        return LNT_E_MEMORY;
    b->random = seed ? seed : 1;
    for (unsigned i = 0; i < CASES && kernels->plane; i++)
        check_case(b, level, seed, r);
    for (size_t i = 0; i < X_MAX; i++)
        b->x[i] = lnt_check_float(&b->random);
    for (unsigned i = 0; i < CASES && kernels->fold; i++)
        check_fold(b, level, seed, r);
    lnt_free(&lnt_malloc_allocator, b);
    return r->failures > failures ? LNT_E_INTERNAL : LNT_OK;
}
