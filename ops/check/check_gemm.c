/* check_gemm.c — tile, depthwise, stem and cell kernels against plain loops in double.
 *
 * Shapes are drawn around the edges: one tile, less, more, odd widths, no depth; every part of the store on
 * and off; NaN and infinities now and then; results between guard zones. A kernel may be off by its own
 * rounding: (terms + 4) * 2^-24 of the sum of the terms' magnitudes. Of half arithmetic it is (terms + 8) * 2^-11, and
 * 2^-24 beside for numbers below the normal halves; terms are those between two sums in float. */
#include "ops/check/check.h"

#include "base/half.h"
#include "base/memory.h"
#include "ops/conv/conv_kernels.h"
#include "ops/gemm/gemm.h"
#include "ops/half_kernels.h"
#include "ops/recurrent/rnn_cells.h"

#include <math.h>
#include <string.h>

enum {
    TAPS_MAX = 7,
    DEPTH_MAX = 70,
    COLUMNS_MAX = 124,
    GUARD = 32, /* floats before and behind each row of results */
    ROW = COLUMNS_MAX + 2 * GUARD,
    A_ROW = TAPS_MAX * (DEPTH_MAX + 3),
    PANELS = (COLUMNS_MAX + LNT_PANEL - 1) / LNT_PANEL,
    GEMM_CASES = 4000,
    DEPTHWISE_CASES = 2000,
    DEPTHWISE_LINES = 7,
    GROUP_CHANNELS = 8,
    PIXELS_MAX = 14,
    STEM_PIXELS_MAX = 60,
    RESULTS = (STEM_PIXELS_MAX + 1) * (COLUMNS_MAX + 1) + 2 * GUARD,
    IMAGE = (3 * PIXELS_MAX + 1) * COLUMNS_MAX,
    STEM_CASES = 400,
    CELL_CASES = 400,
    HIDDEN_MAX = 50,
    HIDDEN_ROOM = 64
};

static const float guard_value = 12344.0f; /* a half, too */

/* Everything one case works on; too large for a stack. */
typedef struct bench {
    lnt_check_report *report;
    const char *level;
    uint64_t seed, random;
    const lnt_gemm_kernels *kernels, *in_order;
    const lnt_conv_kernels *conv, *conv_in_order;
    const lnt_rnn_kernels *cells;
    uint16_t half_panels[PANELS * LNT_PANEL * TAPS_MAX * DEPTH_MAX];
    bool half;        /* kernels and conv are those of half arithmetic, */
    uint16_t *halves; /* which work on what stands here, element i for the i-th float of this struct */
    float a[LNT_TILE_ROWS_MAX][A_ROW], b[PANELS * LNT_PANEL * TAPS_MAX * DEPTH_MAX];
    float c[LNT_TILE_ROWS_MAX][ROW], before[LNT_TILE_ROWS_MAX][ROW], residual[LNT_TILE_ROWS_MAX][ROW];
    float bias[COLUMNS_MAX], weights[DEPTHWISE_LINES * TAPS_MAX * GROUP_CHANNELS * PANELS * LNT_PANEL];
    float image[IMAGE], pixels[RESULTS], wanted[RESULTS], added[2 * PIXELS_MAX * COLUMNS_MAX];
} bench;

static unsigned below(bench *t, unsigned n)
{
    return (unsigned)((lnt_check_random(&t->random) >> 33) % n);
}

static bool sometimes(bench *t)
{
    return below(t, 2) == 0;
}

#include "ops/check/halves.inc.h"

static void set_all(bench *t, float *p, size_t n, const float *from)
{
    for (size_t i = 0; i < n; i++)
        set(t, p + i, from ? from[i] : guard_value);
}

static void fill(bench *t, float *p, size_t n, bool special)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e30f, 1e-40f};
    for (size_t i = 0; i < n; i++)
        set(t, p + i,
            special && below(t, 400) == 0 ? odd[below(t, sizeof odd / sizeof *odd)]
                                          : lnt_check_float(&t->random));
}

/* What a sum of so many terms may be off by. */
static double error_of(const bench *t, double magnitude, size_t terms)
{
    return t->half ? (magnitude * 0x1p-11 + 0x1p-24) * (double)(terms + 8)
                   : magnitude * (double)(terms + 4) * 0x1p-24;
}

/* Is got the rounded value of want, give or take error? Infinities and NaN must agree. */
static bool agrees(bench *t, float got, double want, double error)
{
    if (isnan(want) || isinf((float)want))
        return isnan(want) ? isnan(got) : got == (float)want;
    const double off = fabs((double)got - want);
    if (isnan(got) || !(off <= error))
        return false;
    if (off > t->report->worst * error)
        t->report->worst = off / error;
    return true;
}

/* max and min as the kernels clamp: NaN stays. */
static double clamped(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* ---- tiles ---- */

typedef struct tile_case {
    lnt_tile tile;
    ptrdiff_t offset[TAPS_MAX];
    const float *a[LNT_TILE_ROWS_MAX], *residual[LNT_TILE_ROWS_MAX];
    float *c[LNT_TILE_ROWS_MAX];
    unsigned rows;
    bool special, narrow, widening;
    lnt_b_form form;
} tile_case;

static float widened(lnt_b_form form, uint16_t half)
{
    return form == LNT_B_F16 ? lnt_f16_to_float(half) : lnt_bf16_to_float(half);
}

/* The panels in elements of 16 bits, and floats that are the same. */
static void round_panels(bench *t, lnt_tile *tile, lnt_b_form form, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        t->half_panels[i] = form == LNT_B_F16 ? lnt_float_to_f16(t->b[i]) : lnt_float_to_bf16(t->b[i]);
        t->b[i] = widened(form, t->half_panels[i]);
    }
    tile->b = NULL;
    tile->b_half = t->half_panels;
}

static void draw_tile(bench *t, tile_case *k)
{
    k->form =
        LNT_HAS_HALVES && !t->half && below(t, 4) == 0 ? (lnt_b_form)(LNT_B_F16 + below(t, 2)) : LNT_B_F32;
    k->widening = k->form == LNT_B_F16 && t->kernels->widening && sometimes(t);
    k->rows = k->form == LNT_B_F32 ? 1 + below(t, t->kernels->tall_rows)
              : k->widening        ? 1 + below(t, t->kernels->tile_rows)
                                   : 1;
    k->narrow = k->form == LNT_B_F32 && below(t, 8) == 0 && t->kernels->narrow;
    k->special = below(t, 4) == 0;
    const size_t depth = below(t, DEPTH_MAX + 1), taps = 1 + below(t, TAPS_MAX),
                 columns = 1 + below(t, k->narrow ? LNT_NARROW_COLUMNS : COLUMNS_MAX);
    const size_t step = depth + below(t, 4);
    for (size_t i = 0; i < taps; i++)
        k->offset[i] = (ptrdiff_t)(step * i);
    for (unsigned i = 0; i < k->rows; i++) {
        k->a[i] = t->a[i];
        k->c[i] = t->c[i] + GUARD;
        k->residual[i] = t->residual[i];
    }
    const bool panels =
        t->half || k->form != LNT_B_F32 || sometimes(t); /* or whole rows of floats, as where B is read in place */
    const size_t padded = (columns + LNT_PANEL - 1) / LNT_PANEL * LNT_PANEL;
    k->tile = (lnt_tile){.a = k->a,
                         .c = k->c,
                         .residual = sometimes(t) ? k->residual : NULL,
                         .tap_offset = k->offset,
                         .taps = taps,
                         .depth = depth,
                         .before = below(t, 3 * LNT_HALF_RUN),
                         .b = t->b,
                         .b_row = panels ? LNT_PANEL : padded,
                         .b_panel = panels ? taps * depth * LNT_PANEL : LNT_PANEL,
                         .first = below(t, (unsigned)(columns + LNT_PANEL - 1) / LNT_PANEL) * LNT_PANEL,
                         .columns = columns,
                         .bias = sometimes(t) ? t->bias : NULL,
                         .scale = sometimes(t) ? 1.0f : 0.375f,
                         .low = sometimes(t) ? -INFINITY : -0.5f,
                         .high = sometimes(t) ? INFINITY : 0.75f,
                         .accumulate = below(t, 3) == 0 && !t->half};
    if (k->narrow)
        k->tile.b_panel = taps * depth, k->tile.b_row = 1;
    else if (panels)
        k->tile.b_column = below(t, (unsigned)(k->tile.first / LNT_PANEL) + 1) * LNT_PANEL;
    for (unsigned i = 0; i < k->rows; i++) {
        fill(t, t->a[i], A_ROW, k->special);
        fill(t, t->residual[i], ROW, k->special);
        fill(t, t->before[i], ROW, false);
        for (unsigned n = 0; n < GUARD; n++)
            t->before[i][n] = t->before[i][GUARD + columns + n] = guard_value;
    }
    fill(t, t->b, padded * taps * depth, false);
    if (k->form != LNT_B_F32)
        round_panels(t, &k->tile, k->form, padded * taps * depth);
    fill(t, t->bias, COLUMNS_MAX, k->special);
    set_all(t, &t->c[0][0], sizeof t->c / sizeof t->c[0][0], &t->before[0][0]);
}

/* Element (i, n) of the result and what it may be off by. */
static double judge_tile(const bench *t, const tile_case *k, unsigned i, size_t n, double *error)
{
    const lnt_tile *s = &k->tile;
    double sum = 0, magnitude = 1e-30, bias = s->bias ? s->bias[n] : 0,
           residual = s->residual ? s->residual[i][n] : 0;
    for (size_t tap = 0; tap < s->taps; tap++)
        for (size_t d = 0; d < s->depth; d++) {
            const size_t row = tap * s->depth + d;
            const double a = t->a[i][s->tap_offset[tap] + (ptrdiff_t)d];
            const double b =
                k->narrow ? t->b[n * s->b_panel + row]
                          : t->b[(n - s->b_column) / LNT_PANEL * s->b_panel + row * s->b_row + n % LNT_PANEL];
            sum += a * b;
            magnitude += fabs(a * b);
        }
    if (s->accumulate) {
        sum += t->before[i][GUARD + n];
        magnitude += fabs(t->before[i][GUARD + n]);
    }
    magnitude = magnitude * s->scale + fabs(bias) + fabs(residual);
    const size_t terms = s->taps * s->depth;
    *error = error_of(t, magnitude, t->half && terms > LNT_HALF_RUN ? LNT_HALF_RUN : terms);
    return clamped(sum * s->scale + bias + residual, s->low, s->high);
}

static bool guards_hold(const float *row, size_t columns)
{
    for (unsigned n = 0; n < GUARD; n++)
        if (row[n] != guard_value || row[GUARD + columns + n] != guard_value)
            return false;
    return true;
}

/* Are the results of the tile for cores that run in order those in t->c, to the bit? */
static bool in_order_agrees(bench *t, const tile_case *k)
{
    float other[LNT_TILE_ROWS_MAX][ROW];
    lnt_tile tile = k->tile;
    float *c[LNT_TILE_ROWS_MAX];
    memcpy(other, t->before, sizeof other);
    for (unsigned i = 0; i < k->rows; i++)
        c[i] = other[i] + GUARD;
    tile.c = c;
    t->in_order->tile[k->rows](&tile);
    for (unsigned i = 0; i < k->rows; i++)
        for (unsigned n = 0; n < ROW; n++)
            if (isnan(t->c[i][n]) ? !isnan(other[i][n])
                                  : memcmp(&t->c[i][n], &other[i][n], sizeof(float)) != 0)
                return false;
    return true;
}

static void run_tile(bench *t, const tile_case *k)
{
    tile_case of = *k;
    for (unsigned i = 0; i < k->rows; i++) {
        of.a[i] = given(t, k->a[i]);
        of.c[i] = given(t, k->c[i]);
        of.residual[i] = given(t, k->residual[i]);
    }
    of.tile.a = of.a;
    of.tile.c = of.c;
    of.tile.residual = k->tile.residual ? of.residual : NULL;
    if (t->half)
        of.tile.b_half = halves_of(t, k->tile.b);
    if (k->narrow)
        t->kernels->narrow(&of.tile, k->rows);
    else if (k->widening)
        t->kernels->widening(&of.tile, k->rows);
    else if (k->form != LNT_B_F32)
        t->kernels->row[k->form](&of.tile);
    else
        t->kernels->tile[k->rows](&of.tile);
    take_results(t, &t->c[0][0], sizeof t->c / sizeof t->c[0][0]);
}

static void check_tile(bench *t, uint64_t seed)
{
    tile_case k;
    t->report->cases++;
    draw_tile(t, &k);
    run_tile(t, &k);
    if (!k.narrow && k.form == LNT_B_F32 && !t->half && t->in_order != t->kernels && !in_order_agrees(t, &k))
        lnt_check_fail(t->report,
                       "%s tile for cores in order, %u rows, %zu columns: not as the other (seed %llu)",
                       t->level, k.rows, k.tile.columns, (unsigned long long)seed);
    for (unsigned i = 0; i < k.rows; i++) {
        if (!guards_hold(t->c[i], k.tile.columns)) {
            lnt_check_fail(t->report, "%s tile of %u rows, %zu columns writes outside its rows (seed %llu)",
                           t->level, k.rows, k.tile.columns, (unsigned long long)seed);
            return;
        }
        for (size_t n = k.tile.first; n < k.tile.columns; n++) {
            double error;
            const double want = judge_tile(t, &k, i, n, &error);
            if (agrees(t, t->c[i][GUARD + n], want, error))
                continue;
            lnt_check_fail(
                t->report,
                "%s tile of %u rows, %zu columns of form %d, %zu x %zu deep: row %u, column %zu is %g, "
                "not %g (seed %llu)",
                t->level, k.rows, k.tile.columns, k.form, k.tile.taps, k.tile.depth, i, n,
                (double)t->c[i][GUARD + n], want, (unsigned long long)seed);
            return;
        }
    }
}

/* Every element of 16 bits as a float. */
static void check_widen(bench *t, lnt_b_form form)
{
    enum { BLOCK = 256, ALL = 1 << 16 };
    t->report->cases++;
    for (unsigned first = 0; first < ALL; first += BLOCK) {
        for (unsigned i = 0; i < BLOCK; i++)
            t->half_panels[i] = (uint16_t)(first + i);
        t->kernels->widen[form](t->half_panels, t->b, BLOCK);
        for (unsigned i = 0; i < BLOCK; i++) {
            const float want = widened(form, t->half_panels[i]);
            if (isnan(want) ? isnan(t->b[i]) : memcmp(&want, &t->b[i], sizeof want) == 0)
                continue;
            lnt_check_fail(t->report, "%s: element %#x of form %d is %g, not %g", t->level, first + i, form,
                           (double)t->b[i], (double)want);
            return;
        }
    }
}

/* ---- depthwise ---- */

/* Lines of weights at t->weights, all lines of pixels within t->image, results in t->pixels. */
typedef struct depthwise_case {
    lnt_depthwise d;
    const float *line[DEPTHWISE_LINES], *w[DEPTHWISE_LINES];
} depthwise_case;

/* Groups of features with some channels of theirs, as many as fit COLUMNS_MAX. */
static void draw_groups(bench *t, lnt_depthwise *d)
{
    const unsigned power = below(t, 4);
    const bool shared = sometimes(t);
    d->features = shared ? (size_t)1 << power : 1 + below(t, LNT_GROUP_FEATURES - 1);
    d->group_channels = shared ? (size_t)1 << below(t, power + 1) : 1;
    if (shared && t->kernels->lanes >= LNT_WIDE_GROUP_LANES && sometimes(t) &&
        lnt_depthwise_widens((int64_t)2 << power, (int64_t)1 << power))
        d->group_channels = (size_t)2 << (power + (power == 0 && sometimes(t)));
    const size_t most = d->features > d->group_channels ? d->features : d->group_channels;
    const size_t groups = 1 + below(t, COLUMNS_MAX / (unsigned)most);
    d->in_pixel = groups * d->group_channels;
    d->channels = d->pixel = groups * d->features;
}

static void draw_depthwise(bench *t, depthwise_case *k)
{
    const bool special = below(t, 4) == 0;
    const size_t pixel = 1 + below(t, COLUMNS_MAX), w_channel = PANELS * LNT_PANEL;
    const size_t channels = pixel - below(t, 2) * below(t, (unsigned)pixel);
    const unsigned width = 1 + below(t, 3 * PIXELS_MAX);
    k->d = (lnt_depthwise){.line = k->line,
                           .w = k->w,
                           .lines = below(t, DEPTHWISE_LINES + 1),
                           .taps = 1 + below(t, TAPS_MAX),
                           .first = (ptrdiff_t)below(t, width + TAPS_MAX) - TAPS_MAX,
                           .width = (ptrdiff_t)width,
                           .stride = 1 + (ptrdiff_t)below(t, 3),
                           .spacing = sometimes(t) ? 1 : 1 + (ptrdiff_t)below(t, 3),
                           .pixel = pixel,
                           .w_channel = w_channel,
                           .in_pixel = sometimes(t) ? channels : pixel,
                           .pixels = 1 + below(t, PIXELS_MAX),
                           .channels = channels,
                           .c = t->pixels + GUARD,
                           .residual = sometimes(t) ? t->added : NULL,
                           .bias = sometimes(t) ? t->bias : NULL,
                           .low = sometimes(t) ? -INFINITY : -0.5f,
                           .high = sometimes(t) ? INFINITY : 0.75f};
    if (below(t, 3) == 0 && !t->half)
        draw_groups(t, &k->d);
    const size_t w_tap = k->d.w_tap = w_channel * (k->d.features ? k->d.group_channels : 1);
    for (size_t l = 0; l < k->d.lines; l++) { /* up to the end of the memory */
        const unsigned room = IMAGE - width * (unsigned)k->d.in_pixel;
        k->line[l] = t->image + (sometimes(t) ? room : below(t, room + 1));
        k->w[l] = t->weights + l * TAPS_MAX * w_tap;
    }
    fill(t, t->image, IMAGE, special);
    fill(t, t->weights, DEPTHWISE_LINES * TAPS_MAX * w_tap, false);
    fill(t, t->added, sizeof t->added / sizeof *t->added, special);
    fill(t, t->bias, COLUMNS_MAX, false);
    set_all(t, t->pixels, sizeof t->pixels / sizeof *t->pixels, NULL);
}

static double judge_depthwise(const bench *t, const depthwise_case *k, size_t i, size_t n, double *error)
{
    const lnt_depthwise *d = &k->d;
    const double bias = d->bias ? d->bias[n] : 0, rest = d->residual ? d->residual[i * d->pixel + n] : 0;
    const size_t channels = d->features ? d->group_channels : 1;
    double sum = bias + rest, magnitude = fabs(bias) + fabs(rest) + 1e-30;
    for (size_t l = 0; l < d->lines; l++)
        for (size_t tap = 0; tap < d->taps; tap++) {
            const ptrdiff_t at = d->first + (ptrdiff_t)i * d->stride + (ptrdiff_t)tap * d->spacing;
            if (at < 0 || at >= d->width)
                continue;
            const size_t first = d->features ? n / d->features * d->group_channels : n;
            for (size_t c = 0; c < channels; c++) {
                const double product = (double)d->line[l][(size_t)at * d->in_pixel + first + c] *
                                       d->w[l][tap * d->w_tap + c * d->w_channel + n];
                sum += product;
                magnitude += fabs(product);
            }
        }
    *error = error_of(t, magnitude, d->lines * d->taps * channels);
    return clamped(sum, d->low, d->high);
}

/* Is element `at` of t->pixels right: a sum, or the guard around and between them? */
static bool depthwise_holds(bench *t, const depthwise_case *k, size_t at)
{
    const lnt_depthwise *d = &k->d;
    const size_t i = (at - GUARD) / d->pixel, n = (at - GUARD) % d->pixel;
    if (at < GUARD || i >= d->pixels || n >= d->channels)
        return t->pixels[at] == guard_value;
    double error;
    const double want = judge_depthwise(t, k, i, n, &error);
    return agrees(t, t->pixels[at], want, error);
}

static void run_depthwise(bench *t, const depthwise_case *k)
{
    depthwise_case of = *k;
    for (size_t l = 0; l < k->d.lines; l++) {
        of.line[l] = given(t, k->line[l]);
        of.w[l] = given(t, k->w[l]);
    }
    of.d.line = of.line;
    of.d.w = of.w;
    of.d.c = given(t, k->d.c);
    of.d.residual = given(t, k->d.residual);
    t->conv->depthwise(&of.d);
    take_results(t, t->pixels, sizeof t->pixels / sizeof *t->pixels);
}

static void check_depthwise(bench *t, uint64_t seed)
{
    depthwise_case k;
    const lnt_depthwise *d = &k.d;
    t->report->cases++;
    draw_depthwise(t, &k);
    run_depthwise(t, &k);
    for (size_t at = 0; at < sizeof t->pixels / sizeof *t->pixels; at++) {
        if (depthwise_holds(t, &k, at))
            continue;
        lnt_check_fail(t->report,
                       "%s depthwise, %zu pixels, %zu of %zu channels, groups of %zu, %zu lines of %zu taps: "
                       "element %td "
                       "is %g (seed %llu)",
                       t->level, d->pixels, d->channels, d->pixel, d->features, d->lines, d->taps,
                       (ptrdiff_t)at - GUARD, (double)t->pixels[at], (unsigned long long)seed);
        return;
    }
}

/* Are the results those in t->wanted, to the bit? */
static bool as_wanted(const bench *t)
{
    for (size_t at = 0; at < RESULTS; at++)
        if (isnan(t->wanted[at]) ? !isnan(t->pixels[at])
                                 : memcmp(&t->wanted[at], &t->pixels[at], sizeof t->pixels[at]) != 0)
            return false;
    return true;
}

static void fill_guards(float *results)
{
    for (size_t at = 0; at < RESULTS; at++)
        results[at] = guard_value;
}

/* A pair of rows, some of whose lines lie outside the image. */
static void draw_pair(bench *t, depthwise_case *k, const float *line[2 * DEPTHWISE_LINES])
{
    lnt_depthwise *d = &k->d;
    do
        draw_depthwise(t, k);
    while (d->features != 0);
    d->lines = d->taps = sometimes(t) ? 3 : 5;
    d->stride = 1 + (ptrdiff_t)below(t, 2);
    d->spacing = 1;
    d->row = d->pixels * d->pixel + below(t, 4);
    const unsigned some = below(t, 3), room = IMAGE - (unsigned)((size_t)d->width * d->in_pixel);
    for (size_t l = 0; l < d->lines + (size_t)d->stride; l++)
        line[l] = some == 0 && sometimes(t) ? NULL : t->image + below(t, room + 1);
    for (size_t l = 0; l < d->lines; l++)
        k->w[l] = t->weights + l * TAPS_MAX * d->w_tap;
    d->line = line;
}

/* Row r of a pair by itself, to t->wanted. */
static void want_row(bench *t, const depthwise_case *k, size_t r)
{
    depthwise_case row = *k;
    lnt_depthwise *d = &row.d;
    d->line = row.line, d->w = row.w, d->lines = 0;
    d->c = t->wanted + GUARD + r * d->row;
    d->residual = d->residual ? d->residual + r * d->row : NULL;
    for (size_t l = 0; l < k->d.lines; l++) {
        const float *line = k->d.line[l + r * (size_t)d->stride];
        if (line)
            row.line[d->lines] = line, row.w[d->lines++] = k->w[l];
    }
    t->conv->depthwise(d);
}

static void check_pair(bench *t, const lnt_conv_kernels *conv, uint64_t seed)
{
    const float *line[2 * DEPTHWISE_LINES];
    depthwise_case k;
    t->report->cases++;
    draw_pair(t, &k, line);
    fill_guards(t->wanted);
    want_row(t, &k, 0);
    want_row(t, &k, 1);
    conv->depthwise_pair(&k.d);
    if (!as_wanted(t))
        lnt_check_fail(
            t->report,
            "%s depthwise, a pair of %zu pixels, %zu of %zu channels, %zu taps, stride %td: not what the "
            "rows are singly (seed %llu)",
            t->level, k.d.pixels, k.d.channels, k.d.pixel, k.d.taps, k.d.stride, (unsigned long long)seed);
}

/* ---- stems ---- */

static double judge_stem(const bench *t, const lnt_stem *s, size_t i, size_t n, double *error)
{
    double sum = s->bias ? s->bias[n] : 0, magnitude = fabs(sum) + 1e-30;
    for (size_t k = 0; k < s->depth; k++) {
        const double product = (double)s->x[i * s->step + s->offset[k]] *
                               s->b[n / LNT_PANEL * s->b_panel + k * LNT_PANEL + n % LNT_PANEL];
        sum += product;
        magnitude += fabs(product);
    }
    *error = error_of(t, magnitude, s->depth);
    return clamped(sum, s->low, s->high);
}

/* Pixels within t->image, results between guards in t->pixels. */
static lnt_stem draw_stem(bench *t, uint32_t *offset, bool planes)
{
    const size_t fewest = planes ? LNT_PLANE_PIXELS : LNT_STEM_PIXELS;
    const size_t pixels = fewest + below(t, (unsigned)(STEM_PIXELS_MAX - fewest + 1));
    const size_t columns = 1 + below(t, COLUMNS_MAX), depth = below(t, DEPTH_MAX + 1);
    const size_t step = planes ? 1 : 1 + below(t, 4);
    const bool adjacent = sometimes(t);
    for (size_t k = 0; k < depth; k++)
        offset[k] =
            adjacent && k % 2 ? offset[k - 1] + 1 : below(t, (unsigned)(IMAGE - 1 - (pixels - 1) * step));
    fill(t, t->image, IMAGE, below(t, 4) == 0);
    fill(t, t->b, PANELS * LNT_PANEL * depth, false);
    fill(t, t->bias, COLUMNS_MAX, false);
    set_all(t, t->pixels, sizeof t->pixels / sizeof *t->pixels, NULL);
    return (lnt_stem){.x = t->image,
                      .step = step,
                      .offset = offset,
                      .depth = depth,
                      .b = t->b,
                      .b_panel = depth * LNT_PANEL,
                      .bias = sometimes(t) ? t->bias : NULL,
                      .pixels = pixels,
                      .columns = columns,
                      .c = t->pixels + GUARD,
                      .c_step = (planes ? pixels : columns) + below(t, 2),
                      .low = sometimes(t) ? -INFINITY : -0.5f,
                      .high = sometimes(t) ? INFINITY : 0.75f};
}

/* Are the results of the stem for cores that run in order those in t->pixels? */
static bool stem_in_order_agrees(bench *t, const lnt_stem *s)
{
    lnt_stem other = *s;
    fill_guards(t->wanted);
    other.c = t->wanted + (s->c - t->pixels);
    t->conv_in_order->stem(&other);
    return as_wanted(t);
}

static void check_stem(bench *t, uint64_t seed, bool planes)
{
    uint32_t offset[DEPTH_MAX];
    const lnt_stem s = draw_stem(t, offset, planes);
    lnt_stem of = s;
    of.x = given(t, s.x);
    of.b = given(t, s.b);
    of.c = given(t, s.c);
    (planes ? t->conv->stem_planes : t->conv->stem)(&of);
    take_results(t, t->pixels, sizeof t->pixels / sizeof *t->pixels);
    t->report->cases++;
    if (!planes && !t->half && t->conv_in_order != t->conv && !stem_in_order_agrees(t, &s))
        lnt_check_fail(
            t->report,
            "%s stem for cores in order, %zu pixels, %zu columns, %zu deep: not as the other (seed %llu)",
            t->level, s.pixels, s.columns, s.depth, (unsigned long long)seed);
    for (size_t at = 0; at < sizeof t->pixels / sizeof *t->pixels; at++) {
        const size_t line = (at - GUARD) / s.c_step, within = (at - GUARD) % s.c_step;
        const size_t i = planes ? within : line, n = planes ? line : within;
        const bool is_result = at >= GUARD && i < s.pixels && n < s.columns;
        double error = 0;
        const double want = is_result ? judge_stem(t, &s, i, n, &error) : 0;
        if (is_result ? agrees(t, t->pixels[at], want, error) : t->pixels[at] == guard_value)
            continue;
        lnt_check_fail(t->report, "%s stem, %zu pixels, %zu %s, %zu deep: element %td is %g (seed %llu)",
                       t->level, s.pixels, s.columns, planes ? "planes" : "columns", s.depth,
                       (ptrdiff_t)at - GUARD, (double)t->pixels[at], (unsigned long long)seed);
        return;
    }
}

/* ---- cells ---- */

static double activated(const lnt_activation *a, double x)
{
    switch (a->kind) {
    case LNT_ACT_TANH: return tanh(x);
    case LNT_ACT_SIGMOID: return 1 / (1 + exp(-x));
    case LNT_ACT_RELU: return x < 0 ? 0 : x;
    case LNT_ACT_AFFINE: return a->alpha * x + a->beta;
    case LNT_ACT_LEAKY_RELU: return x < 0 ? a->alpha * x : x;
    case LNT_ACT_THRESHOLDED_RELU: return x > a->alpha ? x : 0;
    case LNT_ACT_SCALED_TANH: return a->alpha * tanh(a->beta * x);
    case LNT_ACT_HARD_SIGMOID: return clamped(a->alpha * x + a->beta, 0, 1);
    case LNT_ACT_ELU: return x < 0 ? a->alpha * expm1(x) : x;
    case LNT_ACT_SOFTSIGN: return x / (1 + fabs(x));
    default: return log1p(exp(x));
    }
}

/* The state of a cell in double, one unit at a time. */
typedef struct unit {
    double h, c, y;
} unit;

static double gate(const lnt_rnn_cell *cell, const lnt_activation *a, double x)
{
    return activated(a, clamped(x, -cell->clip, cell->clip));
}

static unit judge_lstm(const lnt_rnn_cell *cell, const float g[4], double c, const float p[3])
{
    const double i = gate(cell, &cell->f, g[0] + p[0] * c);
    const double f = cell->input_forget ? 1 - i : gate(cell, &cell->f, g[2] + p[2] * c);
    const double fresh = f * c + i * gate(cell, &cell->g, g[3]);
    const double h = gate(cell, &cell->f, g[1] + p[1] * fresh) * activated(&cell->h_act, fresh);
    return (unit){h, fresh, h};
}

static unit judge_gru(const lnt_rnn_cell *cell, const float x[3], const float s[3], double h)
{
    const double z = gate(cell, &cell->f, (double)x[0] + s[0]), r = gate(cell, &cell->f, (double)x[1] + s[1]);
    const double n = gate(cell, &cell->g, x[2] + (cell->linear_before_reset ? r : 1) * s[2]);
    const double fresh = (1 - z) * n + z * h;
    return (unit){fresh, 0, fresh};
}

/* gates: 4 LSTM, 3 GRU, 1 RNN. */
static void check_cell(bench *t, unsigned gates, uint64_t seed)
{
    enum { KINDS = LNT_ACT_SOFTPLUS + 1 };
    const lnt_rnn_kernels *cells = t->cells;
    if (!(gates == 4 ? cells->lstm : gates == 1 ? cells->rnn : cells->gru_gates))
        return;
    const size_t hidden = 1 + below(t, HIDDEN_MAX), room = (hidden + LNT_PANEL - 1) / LNT_PANEL * LNT_PANEL;
    float *input = t->b, *recurrent = input + 4 * HIDDEN_ROOM, *kept = recurrent + 4 * HIDDEN_ROOM;
    float *h = t->a[0], *c = h + HIDDEN_ROOM, *reset = t->a[1], *peephole = t->a[2];
    float h_before[2 * HIDDEN_ROOM];
    fill(t, input, 8 * HIDDEN_ROOM, false);
    memcpy(kept, recurrent, 4 * HIDDEN_ROOM * sizeof *kept);
    fill(t, h, 2 * HIDDEN_ROOM, false);
    memcpy(h_before, h, sizeof h_before);
    fill(t, peephole, 3 * HIDDEN_ROOM, false);
    for (unsigned n = 0; n < ROW; n++)
        t->c[0][n] = guard_value;
    lnt_activation act[3] = {{LNT_ACT_SIGMOID, 0, 0}, {LNT_ACT_TANH, 0, 0}, {LNT_ACT_TANH, 0, 0}};
    for (unsigned i = 0; i < 3; i++)
        if (sometimes(t))
            act[i] = (lnt_activation){(lnt_activation_kind)below(t, KINDS), 0.3f, 0.6f};
    const lnt_rnn_cell cell = {.input = input,
                               .recurrent = recurrent,
                               .h = h,
                               .c = c,
                               .y = t->c[0] + GUARD,
                               .reset = reset,
                               .peephole = sometimes(t) ? peephole : NULL,
                               .hidden = hidden,
                               .clip = sometimes(t) ? INFINITY : 0.7f,
                               .f = act[0],
                               .g = act[1],
                               .h_act = act[2],
                               .input_forget = sometimes(t),
                               .linear_before_reset = true};
    if (gates == 4)
        cells->lstm(&cell, 0, hidden);
    else if (gates == 1)
        cells->rnn(&cell, 0, hidden);
    else
        cells->gru_gates(&cell, 0, hidden), cells->gru_state(&cell, 0, hidden);
    t->report->cases++;
    for (size_t n = 0; n < hidden; n++) {
        float x[4] = {0}, s[4] = {0}, p[3] = {0};
        for (unsigned g = 0; g < gates; g++) {
            const size_t at = (n / LNT_PANEL * gates + g) * LNT_PANEL + n % LNT_PANEL;
            x[g] = input[at];
            s[g] = kept[at];
        }
        for (unsigned g = 0; g < 3 && cell.peephole; g++)
            p[g] = peephole[g * room + n];
        unit want = gates == 4   ? judge_lstm(&cell, s, h_before[HIDDEN_ROOM + n], p)
                    : gates == 3 ? judge_gru(&cell, x, s, h_before[n])
                                 : (unit){gate(&cell, &cell.f, s[0]), 0, 0};
        const double error = 4e-6;
        if (agrees(t, h[n], want.h, error) && agrees(t, cell.y[n], want.h, error) &&
            (gates != 4 || agrees(t, c[n], want.c, error)) && guards_hold(t->c[0], hidden))
            continue;
        lnt_check_fail(t->report,
                       "%s cell of %u gates, %zu units, activations %d %d %d: unit %zu is %g, not %g, or "
                       "guards are gone (seed %llu)",
                       t->level, gates, hidden, act[0].kind, act[1].kind, act[2].kind, n, (double)h[n],
                       want.h, (unsigned long long)seed);
        return;
    }
}

/* ---- all ---- */

static void check_products(bench *t, uint64_t seed)
{
    for (unsigned i = 0; i < GEMM_CASES; i++)
        check_tile(t, seed);
    for (unsigned i = 0; LNT_HAS_DEPTHWISE && i < DEPTHWISE_CASES; i++)
        check_depthwise(t, seed);
    for (unsigned i = 0; i < STEM_CASES; i++)
        check_stem(t, seed, i % 2 == 0);
}

static lnt_status check_halves(bench *t, const lnt_half_kernels *half, uint64_t seed)
{
    t->halves = lnt_alloc_zero(&lnt_malloc_allocator, sizeof *t / sizeof(float), sizeof *t->halves, NULL);
    if (!t->halves)
        return LNT_E_MEMORY;
    t->half = true;
    t->kernels = half->gemm;
    t->conv = half->conv;
    check_products(t, seed);
    lnt_free(&lnt_malloc_allocator, t->halves);
    return LNT_OK;
}

lnt_status lnt_check_gemm(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    bench *t = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *t, NULL);
    if (!t)
        return LNT_E_MEMORY;
    t->report = r;
    t->level = lnt_level_text(level);
    t->random = seed ? seed : 1;
    t->kernels = lnt_kernels_of(level)->gemm;
    t->in_order = lnt_kernels_in_order(level)->gemm;
    t->conv = lnt_kernels_of(level)->conv;
    t->conv_in_order = lnt_kernels_in_order(level)->conv;
    t->cells = lnt_kernels_of(level)->rnn;
    const uint64_t failures = r->failures;
    check_products(t, seed);
    for (unsigned form = LNT_B_F16; LNT_HAS_HALVES && form < LNT_B_FORMS; form++)
        check_widen(t, (lnt_b_form)form);
    for (unsigned i = 0; i < DEPTHWISE_CASES && t->conv->depthwise_pair; i++)
        check_pair(t, sometimes(t) ? t->conv : t->conv_in_order, seed);
    for (unsigned i = 0; i < CELL_CASES; i++)
        check_cell(t, i % 3 == 0 ? 4 : i % 3 == 1 ? 3 : 1, seed);
    const lnt_half_kernels *half = lnt_kernels_of(level)->half;
    const lnt_status status = half->gemm ? check_halves(t, half, seed) : LNT_OK;
    lnt_free(&lnt_malloc_allocator, t);
    return r->failures > failures ? LNT_E_INTERNAL : status;
}
