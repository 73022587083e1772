/* check_winograd.c — Winograd's transforms against their matrices in double.
 *
 * Runs of tiles at any place of an image's line, lines of zeros above and below, odd numbers of channels,
 * tiles of which some lines and pixels do not exist; lines with taps side by side and apart. Results lie
 * between guards. A kernel may be off by (terms + 4) * 2^-24 of the sum of the terms' magnitudes. */
#include "ops/check/check.h"

#include "base/memory.h"
#include "ops/conv/conv_kernels.h"
#include "ops/conv/winograd.h"

#include <math.h>

enum {
    TILE = LNT_WINOGRAD_TILE,
    PATCH = LNT_WINOGRAD_PATCH,
    POINTS = LNT_WINOGRAD_POINTS,
    CHANNELS_MAX = 53,
    ROOM = 64, /* for them, whole vectors */
    WIDTH_MAX = TILE * LNT_WINOGRAD_RUN + PATCH,
    LINE = WIDTH_MAX * CHANNELS_MAX,
    PRODUCTS = POINTS * LNT_WINOGRAD_RUN * ROOM,
    PIXELS = TILE * TILE * LNT_WINOGRAD_RUN * (CHANNELS_MAX + 1) + 1,
    CASES = 200,
    LINE_POINTS = LNT_WINOGRAD_LINE_POINTS_MAX,
    LINE_TILE_MAX = LNT_WINOGRAD_LINE_TILE_MAX,
    APART_MAX = 5,
    ROWS_MAX = 2 * APART_MAX + 3 /* of lines: whole tiles and a part of one */
};

#define P LNT_WINOGRAD_P
#define Q LNT_WINOGRAD_Q

/* B' and A' of ops/conv/winograd.h. */
static const double forward[PATCH][PATCH] = {{1, 0, -2.5, 0, 1, 0},      {0, -2 * P, -2, P, 1, 0},
                                             {0, 2 * P, -2, -P, 1, 0},   {0, -Q / 2, -0.5, Q, 1, 0},
                                             {0, Q / 2, -0.5, -Q, 1, 0}, {0, 1, 0, -2.5, 0, 1}};
static const double backward[TILE][PATCH] = {
    {1, 1, 1, 1, 1, 0}, {0, P, -P, Q, -Q, 0}, {0, 0.5, 0.5, 2, 2, 0}, {0, P / 2, -P / 2, 2 * Q, -2 * Q, 1}};

/* Those of lines, from their points: infinity is the last one. */
typedef struct line_matrices {
    double forward[LINE_POINTS][LINE_POINTS], backward[LINE_TILE_MAX][LINE_POINTS];
} line_matrices;

static line_matrices matrices_of(unsigned tile)
{
    static const double point[LINE_POINTS - 1] = {0, 0.5, -0.5, 1, -1, 2, -2};
    line_matrices m = {0};
    for (unsigned i = 0; i < LINE_POINTS; i++) {
        double *row = m.forward[i];
        row[0] = 1;
        for (unsigned j = 0; j < LINE_POINTS - 1; j++)
            for (unsigned k = LINE_POINTS - 1; j != i && k < LINE_POINTS; k--) /* times x - point j */
                row[k] = (k > 0 ? row[k - 1] : 0) - point[j] * row[k];
        for (unsigned k = 0; k < tile; k++)
            m.backward[k][i] = i < LINE_POINTS - 1 ? pow(point[i], k) : k + 1 == tile;
    }
    return m;
}

static const float guard_value = 12345.5f;

typedef struct bench {
    lnt_check_report *report;
    uint64_t random;
    const lnt_conv_kernels *kernels;
    float lines[PATCH][LINE], zeros[CHANNELS_MAX], products[PRODUCTS];
    float pixels[PIXELS], residual[PIXELS], bias[CHANNELS_MAX];
} bench;

static size_t below(bench *t, size_t n)
{
    return (size_t)(lnt_check_random(&t->random) >> 33) % n;
}

static void fill(bench *t, float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = lnt_check_float(&t->random);
}

static void guard(float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = guard_value;
}

static bool agrees(bench *t, float got, double want, unsigned terms, double magnitude)
{
    const double off = fabs((double)got - want), error = (terms + 4) * 0x1p-24 * (magnitude + 1e-30);
    if (off <= error && off > t->report->worst * error)
        t->report->worst = off / error;
    return off <= error;
}

/* Element (i, j) of left d right' for d(a, b) = at(arg, a, b), and the sum of its terms' magnitudes. */
typedef double (*element_fn)(const void *arg, unsigned a, unsigned b);
static double transformed(const double *left, const double *right, element_fn at, const void *arg,
                          double *magnitude)
{
    double sum = 0;
    *magnitude = 0;
    for (unsigned a = 0; a < PATCH; a++)
        for (unsigned b = 0; b < PATCH; b++) {
            const double term = left[a] * right[b] * at(arg, a, b);
            sum += term;
            *magnitude += fabs(term);
        }
    return sum;
}

/* ---- inputs ---- */

typedef struct place {
    const void *args;
    size_t tile, n;
} place;

static double input_at(const void *arg, unsigned a, unsigned b)
{
    const place *p = arg;
    const lnt_winograd_in *w = p->args;
    const ptrdiff_t x = w->first + (ptrdiff_t)(p->tile * TILE + b);
    return x < 0 || x >= w->width ? 0 : (double)w->line[a][(size_t)x * w->pixel[a] + p->n];
}

static void check_in(bench *t, const char *level, uint64_t seed)
{
    const size_t channels = 1 + below(t, CHANNELS_MAX), tiles = 1 + below(t, LNT_WINOGRAD_RUN);
    lnt_winograd_in w = {.first = (ptrdiff_t)below(t, 2 * PATCH) - PATCH,
                         .width = 1 + (ptrdiff_t)below(t, WIDTH_MAX),
                         .tiles = tiles,
                         .channels = channels,
                         .v = t->products,
                         .v_tile = ROOM,
                         .v_point = LNT_WINOGRAD_RUN * ROOM};
    for (unsigned i = 0; i < PATCH; i++) {
        const bool zeros = below(t, 5) == 0;
        w.pixel[i] = zeros ? 0 : channels; /* up to the end of the memory */
        w.line[i] =
            zeros ? t->zeros + CHANNELS_MAX - channels : t->lines[i] + LINE - (size_t)w.width * channels;
        fill(t, t->lines[i], LINE);
    }
    guard(t->products, PRODUCTS);
    t->kernels->winograd_in(&w);
    t->report->cases++;
    for (size_t at = 0; at < PRODUCTS; at++) {
        const place p = {&w, at / ROOM % LNT_WINOGRAD_RUN, at % ROOM};
        const size_t point = at / w.v_point;
        double magnitude, want;
        if (p.tile < tiles && p.n >= channels && p.n < (channels + LNT_PANEL - 1) / LNT_PANEL * LNT_PANEL)
            continue;
        if (p.tile >= tiles || p.n >= channels) {
            want = guard_value, magnitude = 0;
        } else {
            want = transformed(forward[point / PATCH], forward[point % PATCH], input_at, &p, &magnitude);
        }
        if (agrees(t, t->products[at], want, POINTS, magnitude))
            continue;
        lnt_check_fail(
            t->report,
            "%s Winograd, inputs of %zu tiles, %zu channels: tile %zu, channel %zu, point %zu is %g, not "
            "%g (seed %llu)",
            level, tiles, channels, p.tile, p.n, point, (double)t->products[at], want,
            (unsigned long long)seed);
        return;
    }
}

/* ---- outputs ---- */

static double product_at(const void *arg, unsigned a, unsigned b)
{
    const place *p = arg;
    const lnt_winograd_out *w = p->args;
    return (double)w->m[(a * PATCH + b) * w->m_point + p->tile * w->m_tile + p->n];
}

/* Element `at` of the pixels, which are stored line by line: a result, or guard. */
static bool pixel_holds(bench *t, const lnt_winograd_out *w, size_t at)
{
    const size_t line = at / w->line, x = at % w->line / w->pixel;
    const place p = {w, x / TILE, at % w->line % w->pixel};
    if (line >= w->lines || x >= w->width || p.n >= w->columns)
        return t->pixels[at] == guard_value;
    double magnitude;
    const double sum = transformed(backward[line], backward[x % TILE], product_at, &p, &magnitude);
    const double bias = w->bias ? (double)w->bias[p.n] : 0, rest = w->residual ? (double)w->residual[at] : 0;
    return agrees(t, t->pixels[at], fmin(fmax(sum + bias + rest, (double)w->low), (double)w->high), POINTS,
                  magnitude + fabs(bias) + fabs(rest));
}

static void check_out(bench *t, const char *level, uint64_t seed)
{
    const size_t columns = 1 + below(t, CHANNELS_MAX), tiles = 1 + below(t, LNT_WINOGRAD_RUN);
    const size_t pixel = columns + below(t, 2);
    const lnt_winograd_out w = {.m = t->products,
                                .m_tile = ROOM,
                                .m_point = LNT_WINOGRAD_RUN * ROOM,
                                .tiles = tiles,
                                .columns = columns,
                                .lines = 1 + below(t, TILE),
                                .width = TILE * tiles - below(t, TILE),
                                .c = t->pixels,
                                .residual = below(t, 2) ? t->residual : NULL,
                                .line = TILE * tiles * pixel,
                                .pixel = pixel,
                                .bias = below(t, 2) ? t->bias + CHANNELS_MAX - columns : NULL,
                                .low = below(t, 2) ? -INFINITY : -0.5f,
                                .high = below(t, 2) ? INFINITY : 0.75f};
    fill(t, t->products, PRODUCTS);
    fill(t, t->residual, PIXELS);
    fill(t, t->bias, CHANNELS_MAX);
    guard(t->pixels, PIXELS);
    t->kernels->winograd_out(&w);
    t->report->cases++;
    for (size_t at = 0; at < PIXELS; at++)
        if (!pixel_holds(t, &w, at)) {
            lnt_check_fail(
                t->report,
                "%s Winograd, outputs of %zu tiles, %zu columns, %zu lines, %zu pixels: element %zu is %g "
                "(seed %llu)",
                level, tiles, columns, w.lines, w.width, at, (double)t->pixels[at], (unsigned long long)seed);
            return;
        }
}

/* ---- lines ---- */

/* Point `at / v_point` of what is there: the sum of its terms, or guard. */
static bool line_point_holds(bench *t, const lnt_winograd_line_in *w, const line_matrices *b, size_t at)
{
    const size_t point = at / w->v_point, n = at % ROOM;
    const ptrdiff_t row = (ptrdiff_t)(at % w->v_point / ROOM);
    const size_t written = (w->channels + LNT_PANEL - 1) / LNT_PANEL * LNT_PANEL;
    double want = 0, magnitude = 0;
    if (point >= w->points || row >= w->rows || n >= written)
        return t->products[at] == guard_value;
    if (n >= w->channels)
        return true;
    for (unsigned i = 0; i < LINE_POINTS; i++) {
        const ptrdiff_t x = w->first + (row / w->apart * w->tile + i) * w->apart + row % w->apart;
        const bool inside = x >= 0 && x < w->width;
        const double term = inside ? b->forward[point][i] * (double)w->x[(size_t)x * w->channels + n] : 0;
        want += term;
        magnitude += fabs(term);
    }
    return agrees(t, t->products[at], want, LINE_POINTS, magnitude);
}

static void check_line_in(bench *t, const char *level, uint64_t seed)
{
    const size_t channels = 1 + below(t, CHANNELS_MAX);
    lnt_winograd_line_in w = {.zeros = t->zeros + CHANNELS_MAX - channels,
                              .first = (ptrdiff_t)below(t, 2 * PATCH) - PATCH,
                              .width = 1 + (ptrdiff_t)below(t, WIDTH_MAX),
                              .apart = 1 + (ptrdiff_t)below(t, APART_MAX),
                              .tile = below(t, 2) ? LNT_WINOGRAD_LINE_GROUP : LINE_TILE_MAX,
                              .rows = 1 + (ptrdiff_t)below(t, ROWS_MAX),
                              .channels = channels,
                              .points = LINE_POINTS - below(t, 2),
                              .v = t->products,
                              .v_row = ROOM,
                              .v_point = ROWS_MAX * ROOM};
    const line_matrices b = matrices_of((unsigned)w.tile);
    w.x = t->lines[0] + LINE - (size_t)w.width * channels; /* up to the end of the memory */
    fill(t, t->lines[0], LINE);
    guard(t->products, PRODUCTS);
    t->kernels->winograd_line_in(&w);
    t->report->cases++;
    for (size_t at = 0; at < LINE_POINTS * w.v_point; at++)
        if (!line_point_holds(t, &w, &b, at)) {
            lnt_check_fail(t->report,
                           "%s Winograd, inputs of %td rows of a line, %td apart, %zu channels: element %zu is "
                           "%g (seed %llu)",
                           level, w.rows, w.apart, channels, at, (double)t->products[at],
                           (unsigned long long)seed);
            return;
        }
}

/* Element `at` of a line's pixels: a result, or guard. */
static bool line_pixel_holds(bench *t, const lnt_winograd_line_out *w, const line_matrices *a, size_t at)
{
    const ptrdiff_t x = (ptrdiff_t)(at / w->pixel), each = w->apart * w->tile;
    const ptrdiff_t row = x / each * w->apart + x % w->apart, i = x % each / w->apart;
    const size_t n = at % w->pixel;
    if (x >= w->width || row >= w->rows || n >= w->columns)
        return t->pixels[at] == guard_value;
    const double bias = w->bias ? (double)w->bias[n] : 0, rest = w->residual ? (double)w->residual[at] : 0;
    double sum = bias + rest, magnitude = fabs(bias) + fabs(rest);
    for (size_t point = 0; point < w->points; point++) {
        const double term =
            a->backward[i][point] * (double)w->m[point * w->m_point + (size_t)row * w->m_row + n];
        sum += term;
        magnitude += fabs(term);
    }
    return agrees(t, t->pixels[at], fmin(fmax(sum, (double)w->low), (double)w->high), LINE_POINTS, magnitude);
}

static void check_line_out(bench *t, const char *level, uint64_t seed)
{
    const size_t columns = 1 + below(t, CHANNELS_MAX);
    const ptrdiff_t apart = 1 + (ptrdiff_t)below(t, APART_MAX), rows = 1 + (ptrdiff_t)below(t, ROWS_MAX);
    const lnt_winograd_line_out w = {.m = t->products,
                                     .m_row = ROOM,
                                     .m_point = ROWS_MAX * ROOM,
                                     .width = 1 + (ptrdiff_t)below(t, WIDTH_MAX),
                                     .apart = apart,
                                     .tile = below(t, 2) ? LNT_WINOGRAD_LINE_GROUP : LINE_TILE_MAX,
                                     .rows = rows,
                                     .columns = columns,
                                     .points = LINE_POINTS - below(t, 2),
                                     .c = t->pixels,
                                     .residual = below(t, 2) ? t->residual : NULL,
                                     .pixel = columns + below(t, 2),
                                     .bias = below(t, 2) ? t->bias + CHANNELS_MAX - columns : NULL,
                                     .low = below(t, 2) ? -INFINITY : -0.5f,
                                     .high = below(t, 2) ? INFINITY : 0.75f};
    const line_matrices a = matrices_of((unsigned)w.tile);
    fill(t, t->products, PRODUCTS);
    fill(t, t->residual, PIXELS);
    fill(t, t->bias, CHANNELS_MAX);
    guard(t->pixels, PIXELS);
    t->kernels->winograd_line_out(&w);
    t->report->cases++;
    for (size_t at = 0; at < PIXELS; at++)
        if (!line_pixel_holds(t, &w, &a, at)) {
            lnt_check_fail(t->report,
                           "%s Winograd, outputs of %td rows of a line, %td apart, %zu columns, %td pixels: "
                           "element %zu is %g (seed %llu)",
                           level, rows, apart, columns, w.width, at, (double)t->pixels[at],
                           (unsigned long long)seed);
            return;
        }
}

lnt_status lnt_check_winograd(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    bench *t = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *t, NULL);
    if (!t)
        return LNT_E_MEMORY;
    t->report = r;
    t->random = seed ? seed : 1;
    t->kernels = lnt_kernels_of(level)->conv;
    const uint64_t failures = r->failures;
    for (unsigned i = 0; i < CASES && t->kernels->winograd_in; i++) {
        check_in(t, lnt_level_text(level), seed);
        check_out(t, lnt_level_text(level), seed);
        check_line_in(t, lnt_level_text(level), seed);
        check_line_out(t, lnt_level_text(level), seed);
    }
    lnt_free(&lnt_malloc_allocator, t);
    return r->failures > failures ? LNT_E_INTERNAL : LNT_OK;
}
