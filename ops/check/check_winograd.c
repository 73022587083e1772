/* check_winograd.c — Winograd's transforms against their matrices in double.
 *
 * Runs of tiles at any place of an image's line, lines of zeros above and below, odd numbers of channels,
 * tiles of which some lines and pixels do not exist; lines with taps side by side and apart. Results lie
 * between guards. A kernel may be off by (terms + 4) * 2^-24 of the sum of the terms' magnitudes; of half arithmetic,
 * which has small tiles alone, it is (terms + 8) * 2^-11. */
#include "ops/check/check.h"

#include "base/half.h"
#include "base/memory.h"
#include "ops/conv/conv_kernels.h"
#include "ops/conv/winograd.h"
#include "ops/half_kernels.h"

#include <math.h>

enum {
    TILE = LNT_WINOGRAD_TILE,
    PATCH = LNT_WINOGRAD_PATCH,
    TAPS = LNT_WINOGRAD_TAPS,
    POINTS = LNT_WINOGRAD_POINTS,
    FEWEST = LNT_WINOGRAD_FEWEST,
    FEWEST_OUT = LNT_WINOGRAD_FEWEST_OUT,
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

/* B', A' and G of ops/conv/winograd.h, of squares. */
typedef struct square {
    size_t tile, patch;
    double forward[PATCH][PATCH], backward[TILE][PATCH], filter[PATCH][TAPS];
} square;

static const square large = {
    TILE,
    PATCH,
    {{1, 0, -2.5, 0, 1, 0},
     {0, -2 * P, -2, P, 1, 0},
     {0, 2 * P, -2, -P, 1, 0},
     {0, -Q / 2, -0.5, Q, 1, 0},
     {0, Q / 2, -0.5, -Q, 1, 0},
     {0, 1, 0, -2.5, 0, 1}},
    {{1, 1, 1, 1, 1, 0}, {0, P, -P, Q, -Q, 0}, {0, 0.5, 0.5, 2, 2, 0}, {0, P / 2, -P / 2, 2 * Q, -2 * Q, 1}},
    {{1, 0, 0},
     {-2 / 3., -2 / 3. * P, -1 / 3.},
     {-2 / 3., 2 / 3. * P, -1 / 3.},
     {1 / 6., Q / 6, 1 / 3.},
     {1 / 6., -Q / 6, 1 / 3.},
     {0, 0, 1}}};
static const square small = {LNT_WINOGRAD_SMALL_TILE,
                             LNT_WINOGRAD_SMALL_PATCH,
                             {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}},
                             {{1, 1, 1, 0}, {0, 1, -1, 1}},
                             {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}}};

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

static const float guard_value = 12344.0f; /* a half, too */

typedef struct bench {
    lnt_check_report *report;
    uint64_t random;
    const lnt_winograd_kernels *kernels;
    const square *square;
    bool half;        /* kernels are those of half arithmetic, */
    uint16_t *halves; /* which work on what stands here, element i for the i-th float of this struct */
    float lines[PATCH][LINE], zeros[CHANNELS_MAX], products[PRODUCTS];
    float pixels[PIXELS], residual[PIXELS], bias[CHANNELS_MAX];
} bench;

static size_t below(bench *t, size_t n)
{
    return (size_t)(lnt_check_random(&t->random) >> 33) % n;
}

#include "ops/check/halves.inc.h"

static void fill(bench *t, float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        set(t, p + i, lnt_check_float(&t->random));
}

static void guard(bench *t, float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        set(t, p + i, guard_value);
}

static bool agrees(bench *t, float got, double want, size_t terms, double magnitude)
{
    const double off = fabs((double)got - want),
                 error = t->half ? (double)(terms + 8) * 0x1p-11 * (magnitude + 0x1p-13)
                                 : (double)(terms + 4) * 0x1p-24 * (magnitude + 1e-30);
    if (off <= error && off > t->report->worst * error)
        t->report->worst = off / error;
    return off <= error;
}

/* Element (i, j) of left d right' for d(a, b) = at(arg, a, b) of n x n, and the sum of its terms' magnitudes. */
typedef double (*element_fn)(const void *arg, unsigned a, unsigned b);
static double transformed(size_t n, const double *left, const double *right, element_fn at, const void *arg,
                          double *magnitude)
{
    double sum = 0;
    *magnitude = 0;
    for (unsigned a = 0; a < n; a++)
        for (unsigned b = 0; b < n; b++) {
            const double term = left[a] * right[b] * at(arg, a, b);
            sum += term;
            *magnitude += fabs(term);
        }
    return sum;
}

/* ---- inputs ---- */

typedef struct place {
    const bench *bench;
    const void *args;
    size_t tile, n;
} place;

static double input_at(const void *arg, unsigned a, unsigned b)
{
    const place *p = arg;
    const lnt_winograd_in *w = p->args;
    const ptrdiff_t x = w->first + (ptrdiff_t)(p->tile * p->bench->square->tile + b);
    return x < 0 || x >= w->width ? 0 : (double)w->line[a][(size_t)x * w->pixel[a] + p->n];
}

static void run_in(bench *t, lnt_winograd_in w)
{
    for (unsigned i = 0; i < t->square->patch; i++)
        w.line[i] = given(t, w.line[i]);
    w.v = given(t, w.v);
    (t->square == &small ? t->kernels->small_in : t->kernels->in)(&w);
    take_results(t, t->products, PRODUCTS);
    t->report->cases++;
}

static void check_in(bench *t, const char *level, uint64_t seed)
{
    const size_t channels = FEWEST + below(t, CHANNELS_MAX - FEWEST + 1),
                 tiles = 1 + below(t, LNT_WINOGRAD_RUN);
    const size_t patch = t->square->patch;
    lnt_winograd_in w = {.first = (ptrdiff_t)below(t, 2 * PATCH) - PATCH,
                         .width = 1 + (ptrdiff_t)below(t, WIDTH_MAX),
                         .tiles = tiles,
                         .channels = channels,
                         .v = t->products,
                         .v_tile = ROOM,
                         .v_point = LNT_WINOGRAD_RUN * ROOM};
    for (unsigned i = 0; i < patch; i++) {
        const bool zeros = below(t, 5) == 0;
        w.pixel[i] = zeros ? 0 : channels; /* up to the end of the memory */
        w.line[i] =
            zeros ? t->zeros + CHANNELS_MAX - channels : t->lines[i] + LINE - (size_t)w.width * channels;
        fill(t, t->lines[i], LINE);
    }
    guard(t, t->products, PRODUCTS);
    run_in(t, w);
    for (size_t at = 0; at < PRODUCTS; at++) {
        const place p = {t, &w, at / ROOM % LNT_WINOGRAD_RUN, at % ROOM};
        const size_t point = at / w.v_point;
        double magnitude, want;
        if (p.tile < tiles && point < patch * patch && p.n >= channels &&
            p.n < (channels + LNT_PANEL - 1) / LNT_PANEL * LNT_PANEL)
            continue;
        if (p.tile >= tiles || p.n >= channels || point >= patch * patch)
            want = guard_value, magnitude = 0;
        else
            want = transformed(patch, t->square->forward[point / patch], t->square->forward[point % patch],
                               input_at, &p, &magnitude);
        if (agrees(t, t->products[at], want, patch * patch, magnitude))
            continue;
        lnt_check_fail(t->report,
                       "%s Winograd%s, inputs of %zu tiles of %zu, %zu channels: tile %zu, channel %zu, "
                       "point %zu is %g, not "
                       "%g (seed %llu)",
                       level, t->half ? " of halves" : "", tiles, t->square->tile, channels, p.tile, p.n,
                       point, (double)t->products[at], want, (unsigned long long)seed);
        return;
    }
}

/* ---- outputs ---- */

static double product_at(const void *arg, unsigned a, unsigned b)
{
    const place *p = arg;
    const lnt_winograd_out *w = p->args;
    return (double)w->m[(a * p->bench->square->patch + b) * w->m_point + p->tile * w->m_tile + p->n];
}

/* Element `at` of the pixels, which are stored line by line: a result, or guard. */
static bool pixel_holds(bench *t, const lnt_winograd_out *w, size_t at)
{
    const square *s = t->square;
    const size_t line = at / w->line, x = at % w->line / w->pixel;
    const place p = {t, w, x / s->tile, at % w->line % w->pixel};
    if (line >= w->lines || x >= w->width || p.n >= w->columns)
        return t->pixels[at] == guard_value;
    double magnitude;
    const double sum =
        transformed(s->patch, s->backward[line], s->backward[x % s->tile], product_at, &p, &magnitude);
    const double bias = w->bias ? (double)w->bias[p.n] : 0, rest = w->residual ? (double)w->residual[at] : 0;
    return agrees(t, t->pixels[at], fmin(fmax(sum + bias + rest, (double)w->low), (double)w->high),
                  s->patch * s->patch, magnitude + fabs(bias) + fabs(rest));
}

static void run_out(bench *t, lnt_winograd_out w)
{
    w.m = given(t, w.m);
    w.c = given(t, w.c);
    w.residual = given(t, w.residual);
    (t->square == &small ? t->kernels->small_out : t->kernels->out)(&w);
    take_results(t, t->pixels, PIXELS);
    t->report->cases++;
}

static void check_out(bench *t, const char *level, uint64_t seed)
{
    const size_t columns = FEWEST_OUT + below(t, CHANNELS_MAX - FEWEST_OUT + 1),
                 tiles = 1 + below(t, LNT_WINOGRAD_RUN);
    const size_t pixel = columns + below(t, 2), tile = t->square->tile;
    const lnt_winograd_out w = {.m = t->products,
                                .m_tile = ROOM,
                                .m_point = LNT_WINOGRAD_RUN * ROOM,
                                .tiles = tiles,
                                .columns = columns,
                                .lines = 1 + below(t, tile),
                                .width = tile * tiles - below(t, tile),
                                .c = t->pixels,
                                .residual = below(t, 2) ? t->residual : NULL,
                                .line = tile * tiles * pixel,
                                .pixel = pixel,
                                .bias = below(t, 2) ? t->bias + CHANNELS_MAX - columns : NULL,
                                .low = below(t, 2) ? -INFINITY : -0.5f,
                                .high = below(t, 2) ? INFINITY : 0.75f};
    fill(t, t->products, PRODUCTS);
    fill(t, t->residual, PIXELS);
    fill(t, t->bias, CHANNELS_MAX);
    guard(t, t->pixels, PIXELS);
    run_out(t, w);
    for (size_t at = 0; at < PIXELS; at++)
        if (!pixel_holds(t, &w, at)) {
            lnt_check_fail(t->report,
                           "%s Winograd%s, outputs of %zu tiles of %zu, %zu columns, %zu lines, %zu pixels: "
                           "element %zu is %g "
                           "(seed %llu)",
                           level, t->half ? " of halves" : "", tiles, tile, columns, w.lines, w.width, at,
                           (double)t->pixels[at], (unsigned long long)seed);
            return;
        }
}

/* ---- taps ---- */

static double tap_at(const void *arg, unsigned a, unsigned b)
{
    const place *p = arg;
    const lnt_winograd_taps *w = p->args;
    return (double)w->w[(a * TAPS + b) * w->w_tap + p->n];
}

static void run_taps(bench *t, lnt_winograd_taps w)
{
    w.w = given(t, w.w);
    w.u = given(t, w.u);
    t->kernels->taps(&w);
    take_results(t, t->products, PRODUCTS);
    t->report->cases++;
}

static void check_taps(bench *t, const char *level, uint64_t seed)
{
    const size_t patch = t->square->patch, n = LNT_PANEL * (1 + below(t, 3)), tap = n + below(t, ROOM);
    const lnt_winograd_taps w = {.w = t->lines[0] + LINE - (TAPS * TAPS - 1) * tap -
                                      n, /* up to the end of the memory */
                                 .w_tap = tap,
                                 .u = t->products,
                                 .u_point = LNT_WINOGRAD_RUN * ROOM,
                                 .n = n};
    fill(t, t->lines[0], LINE);
    guard(t, t->products, PRODUCTS);
    run_taps(t, w);
    for (size_t at = 0; at < PRODUCTS; at++) {
        const place p = {t, &w, 0, at % w.u_point};
        const size_t point = at / w.u_point;
        double magnitude = 0, want = guard_value;
        if (point < patch * patch && p.n < n)
            want = transformed(TAPS, t->square->filter[point / patch], t->square->filter[point % patch],
                               tap_at, &p, &magnitude);
        if (agrees(t, t->products[at], want, TAPS * TAPS, magnitude))
            continue;
        lnt_check_fail(t->report,
                       "%s Winograd%s, taps of %zu filters: filter %zu, point %zu is %g, not %g (seed %llu)",
                       level, t->half ? " of halves" : "", n, p.n, point, (double)t->products[at], want,
                       (unsigned long long)seed);
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
    const size_t channels = FEWEST + below(t, CHANNELS_MAX - FEWEST + 1);
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
    guard(t, t->products, PRODUCTS);
    t->kernels->line_in(&w);
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
    const size_t columns = FEWEST + below(t, CHANNELS_MAX - FEWEST + 1);
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
    guard(t, t->pixels, PIXELS);
    t->kernels->line_out(&w);
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

static void check_square(bench *t, const square *s, const char *level, uint64_t seed)
{
    t->square = s;
    check_in(t, level, seed);
    check_out(t, level, seed);
    if (t->half || s == &large)
        check_taps(t, level, seed);
}

lnt_status lnt_check_winograd(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    bench *t = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *t, NULL);
    uint16_t *halves = lnt_alloc_zero(&lnt_malloc_allocator, sizeof *t / sizeof(float), sizeof *halves, NULL);
    const lnt_conv_kernels *half = lnt_kernels_of(level)->half->conv;
    const lnt_winograd_kernels *floats = lnt_kernels_of(level)->conv->winograd,
                               *of_halves = half ? half->winograd : NULL;
    const uint64_t failures = r->failures;
    const char *name = lnt_level_text(level);
    if (!t || !halves) {
        lnt_free(&lnt_malloc_allocator, t);
        lnt_free(&lnt_malloc_allocator, halves);
        return LNT_E_MEMORY;
    }
    t->report = r;
    t->random = seed ? seed : 1;
    t->halves = halves;
    for (unsigned i = 0; i < CASES && floats; i++) {
        t->kernels = floats;
        t->half = false;
        check_square(t, &large, name, seed);
        check_square(t, &small, name, seed);
        check_line_in(t, name, seed);
        check_line_out(t, name, seed);
        t->kernels = of_halves;
        t->half = true;
        if (of_halves)
            check_square(t, &small, name, seed);
    }
    lnt_free(&lnt_malloc_allocator, halves);
    lnt_free(&lnt_malloc_allocator, t);
    return r->failures > failures ? LNT_E_INTERNAL : LNT_OK;
}
