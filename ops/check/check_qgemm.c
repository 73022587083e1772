/* check_qgemm.c — packing of byte weights and their tiles against a plain triple loop: exact. */
#include "ops/check/check.h"

#include "base/memory.h"
#include "ops/qgemm.h"

#include <string.h>

enum { TAPS_MAX = 5, DEPTH_MAX = 300, COLUMNS_MAX = 40, GUARD = 16, CASES = 600 };
enum { ROW_MAX = TAPS_MAX * (DEPTH_MAX + 3), PANELS_MAX = (COLUMNS_MAX + LNT_QPANEL - 1) / LNT_QPANEL };

typedef struct bench {
    uint8_t weights[TAPS_MAX * DEPTH_MAX * COLUMNS_MAX];
    uint8_t a[LNT_QROWS_MAX][ROW_MAX];
    int8_t packed[PANELS_MAX * LNT_QPANEL * ROW_MAX];
    int32_t c[LNT_QROWS_MAX * LNT_QPANEL + GUARD];
} bench;

static unsigned below(uint64_t *random, unsigned n)
{
    return (unsigned)((lnt_check_random(random) >> 33) % n);
}

/* What column n of the weights gives with a row of A, and the column's sum. */
static int32_t product(const lnt_qweights *w, const uint8_t *a, int64_t n, int32_t *sum)
{
    const int64_t padded = (w->depth + 3) / 4 * 4;
    int32_t total = 0;
    *sum = 0;
    for (int64_t t = 0; t < w->taps && n < w->columns; t++)
        for (int64_t d = 0; d < w->depth; d++) {
            const uint8_t b = w->data[t * w->tap_step + d * w->depth_step + n * w->column_step];
            const int32_t v = w->is_signed ? (int8_t)b : b - 128;
            total += v * a[t * padded + d];
            *sum += v;
        }
    return total;
}

/* A random problem: extreme bytes as often as others. */
static lnt_qweights draw(bench *t, uint64_t *random)
{
    lnt_qweights w = {.data = t->weights,
                      .is_signed = below(random, 2) != 0,
                      .taps = 1 + below(random, TAPS_MAX),
                      .depth = 1 + below(random, DEPTH_MAX),
                      .columns = 1 + below(random, COLUMNS_MAX)};
    const bool row_major = below(random, 2) != 0;
    w.tap_step = 1;
    w.depth_step = row_major ? w.columns * w.taps : w.taps;
    w.column_step = row_major ? w.taps : w.taps * w.depth;
    static const uint8_t extremes[] = {0, 127, 128, 255};
    for (int64_t i = 0; i < w.taps * w.depth * w.columns; i++)
        t->weights[i] = (uint8_t)(below(random, 2) ? extremes[below(random, 4)] : below(random, 256));
    for (unsigned r = 0; r < LNT_QROWS_MAX; r++)
        for (int64_t i = 0; i < lnt_qrow_bytes(&w); i++)
            t->a[r][i] = (uint8_t)(below(random, 2) ? extremes[below(random, 4)] : below(random, 256));
    return w;
}

static void check_case(bench *t, const lnt_qgemm_kernels *kernels, const char *level, uint64_t seed,
                       uint64_t *random, lnt_check_report *r)
{
    const lnt_qweights w = draw(t, random);
    const unsigned rows = 1 + below(random, kernels->rows);
    const int64_t panel = below(random, (unsigned)lnt_qpanels(&w)), bytes = lnt_qrow_bytes(&w);
    const uint8_t *a[LNT_QROWS_MAX];
    int32_t sums[LNT_QPANEL], sum;
    for (unsigned i = 0; i < rows; i++)
        a[i] = t->a[i];
    memset(t->c, 0x5a, sizeof t->c);
    lnt_qpack_panel(&w, panel, t->packed, sums);
    kernels->tile(a, rows, t->packed, bytes / 4, t->c);
    r->cases++;
    for (int64_t i = 0; i < (int64_t)rows * LNT_QPANEL; i++) {
        const int64_t n = panel * LNT_QPANEL + i % LNT_QPANEL;
        const int32_t want = product(&w, a[i / LNT_QPANEL], n, &sum);
        if (t->c[i] == want && sums[i % LNT_QPANEL] == sum)
            continue;
        lnt_check_fail(
            r, "%s tile: %u rows, %lld taps of %lld, row %lld, column %lld is %d, expected %d, seed %llu",
            level, rows, (long long)w.taps, (long long)w.depth, (long long)(i / LNT_QPANEL), (long long)n,
            (int)t->c[i], (int)want, (unsigned long long)seed);
        return;
    }
    for (unsigned i = rows * LNT_QPANEL; i < sizeof t->c / sizeof *t->c; i++)
        if (t->c[i] != 0x5a5a5a5a) {
            lnt_check_fail(r, "%s tile: %u rows, wrote past them, seed %llu", level, rows,
                           (unsigned long long)seed);
            return;
        }
}

lnt_status lnt_check_qgemm(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    lnt_error err = {0};
    bench *t = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *t, &err);
    const uint64_t before = r->failures;
    uint64_t random = seed | 1;
    if (!t)
        return LNT_E_MEMORY;
    for (int i = 0; i < CASES; i++)
        check_case(t, lnt_kernels_of(level)->qgemm, lnt_level_text(level), seed, &random, r);
    lnt_free(&lnt_malloc_allocator, t);
    return r->failures > before ? LNT_E_INTERNAL : LNT_OK;
}
