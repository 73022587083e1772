/* check.c — what the checkers share: noting failures, measuring a core. */
#include "ops/check/check.h"

#include "base/clock.h"
#include "base/memory.h"
#include "ops/gemm/gemm.h"
#include "ops/quant/qgemm.h"
#include "ops/rows/int8_rows.h"
#include "ops/rows/row.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void lnt_check_fail(lnt_check_report *r, const char *format, ...)
{
    if (r->failures++)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(r->first, sizeof r->first, format, args);
    va_end(args);
}

/* Work of which the fastest turn counts. */
typedef struct work {
    void (*turn)(const struct work *w);
    const lnt_kernels *kernels;
    void *arg;
    size_t n;
} work;

static double fastest(const work *w, double seconds)
{
    enum { TURNS_LEAST = 3 };
    double best = 1e30;
    const double begin = lnt_now();
    unsigned turns = 0;
    for (double from = begin; turns++ < TURNS_LEAST || from - begin < seconds; from = lnt_now()) {
        w->turn(w);
        const double took = lnt_now() - from;
        best = took < best ? took : best;
    }
    return best;
}

enum { PEAK_ROUNDS = 20000 };

static void turn_peak(const work *w)
{
    float sink[LNT_PANEL]; /* no lane may fade into denormals, nor grow */
    for (unsigned i = 0; i < LNT_PANEL; i++)
        sink[i] = 0.25f;
    w->kernels->gemm->fma(PEAK_ROUNDS, sink);
}

double lnt_check_peak(lnt_level level, double seconds)
{
    const work w = {.turn = turn_peak, .kernels = lnt_kernels_of(level)};
    return 2.0 * PEAK_ROUNDS * w.kernels->gemm->fma_lanes / fastest(&w, seconds) / 1e9;
}

enum { DEPTH = 256, TURNS = 100, PANELS = 2 };

/* Operands of a tile: what the first-level caches of small cores hold. */
typedef struct operands {
    _Alignas(LNT_ALIGN) float b[PANELS * LNT_PANEL * DEPTH];
    _Alignas(LNT_ALIGN) float a[LNT_TILE_ROWS_MAX][DEPTH], c[LNT_TILE_ROWS_MAX][PANELS * LNT_PANEL];
    _Alignas(LNT_ALIGN) uint8_t bytes[LNT_QROWS_MAX][4 * DEPTH];
    _Alignas(LNT_ALIGN) int8_t panel[LNT_QPANEL * 4 * DEPTH];
    int32_t sums[LNT_QPANELS_MAX][LNT_QROWS_MAX * LNT_QPANEL], columns[LNT_QPANELS_MAX * LNT_QPANEL];
} operands;

static void turn_floats(const work *w)
{
    static const ptrdiff_t no_offset = 0;
    operands *o = w->arg;
    const float *a[LNT_TILE_ROWS_MAX];
    float *c[LNT_TILE_ROWS_MAX];
    for (unsigned r = 0; r < LNT_TILE_ROWS_MAX; r++)
        a[r] = o->a[r], c[r] = o->c[r];
    const lnt_tile tile = {.a = a,
                           .c = c,
                           .tap_offset = &no_offset,
                           .taps = 1,
                           .depth = DEPTH,
                           .b = o->b,
                           .b_row = LNT_PANEL,
                           .b_panel = LNT_PANEL * DEPTH,
                           .columns = w->kernels->gemm->tile_panels * LNT_PANEL,
                           .scale = 1,
                           .low = -INFINITY,
                           .high = INFINITY};
    for (size_t i = 0; i < w->n; i++)
        w->kernels->gemm->tile[w->kernels->gemm->tile_rows](&tile);
}

static void turn_bytes(const work *w)
{
    operands *o = w->arg;
    const uint8_t *a[LNT_QROWS_MAX];
    for (unsigned r = 0; r < LNT_QROWS_MAX; r++)
        a[r] = o->bytes[r];
    lnt_qproduct product = {.a = a,
                            .rows = w->kernels->qgemm->rows,
                            .tap_offset = lnt_qone_run,
                            .taps = 1,
                            .quads = DEPTH,
                            .panels = w->kernels->qgemm->panels,
                            .sums = o->columns};
    for (unsigned i = 0; i < product.panels; i++) {
        product.panel[i] = o->panel;
        product.c[i] = o->sums[i];
    }
    for (size_t i = 0; i < w->n; i++)
        w->kernels->qgemm->tile(&product);
}

static void turn_quantize(const work *w)
{
    operands *o = w->arg;
    const lnt_row_kernels *row = w->kernels->row;
    for (size_t i = 0; i < w->n; i++) {
        const float low = row->min(o->b, PANELS * LNT_PANEL * DEPTH),
                    high = row->max(o->b, PANELS * LNT_PANEL * DEPTH);
        w->kernels->int8->quantize(o->b, o->panel, PANELS * LNT_PANEL * DEPTH, high > low ? high - low : 1, 0, false);
    }
}

static void turn_read(const work *w)
{
    *(volatile float *)w->arg = w->kernels->row->sum(w->arg, (int64_t)w->n);
}

static double tile_seconds(lnt_level level, void (*turn)(const work *w), double seconds)
{
    operands *o = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *o, NULL);
    const work w = {turn, lnt_kernels_of(level), o, TURNS};
    const double best = o ? fastest(&w, seconds) / TURNS : INFINITY;
    lnt_free(&lnt_malloc_allocator, o);
    return best;
}

double lnt_check_float_rate(lnt_level level, double seconds)
{
    const lnt_gemm_kernels *kernels = lnt_kernels_of(level)->gemm;
    const double products = (double)kernels->tile_rows * kernels->tile_panels * LNT_PANEL * DEPTH;
    return 2 * products / tile_seconds(level, turn_floats, seconds) / 1e9;
}

double lnt_check_byte_rate(lnt_level level, double seconds)
{
    const lnt_qgemm_kernels *kernels = lnt_kernels_of(level)->qgemm;
    return kernels ? 2.0 * kernels->rows * kernels->panels * LNT_QPANEL * 4 * DEPTH /
                         tile_seconds(level, turn_bytes, seconds) / 1e9
                   : 0;
}

double lnt_check_quantize_rate(lnt_level level, double seconds)
{
    if (!lnt_kernels_of(level)->int8)
        return 0;
    return (double)PANELS * LNT_PANEL * DEPTH / tile_seconds(level, turn_quantize, seconds) / 1e9;
}

double lnt_check_read_rate(lnt_level level, size_t bytes, double seconds)
{
    float *x = lnt_alloc_zero(&lnt_malloc_allocator, bytes, 1, NULL);
    const work w = {turn_read, lnt_kernels_of(level), x, bytes / sizeof *x};
    if (!x)
        return 0;
    const double rate = (double)bytes / fastest(&w, seconds) / 1e9;
    lnt_free(&lnt_malloc_allocator, x);
    return rate;
}
