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
    _Alignas(LNT_ALIGN) int8_t packed[PANELS_MAX * LNT_QPANEL * (ROW_MAX + sizeof(int32_t))];
    uint8_t back[TAPS_MAX * DEPTH_MAX * COLUMNS_MAX];
    lnt_packed record;
    lnt_dtype type;
    int32_t c[LNT_QROWS_MAX * LNT_QPANEL + GUARD];
} bench;

static unsigned below(uint64_t *random, unsigned n)
{
    return (unsigned)((lnt_check_random(random) >> 33) % n);
}

/* What column n of the weights, [columns][depth][taps] or [depth][columns], gives with a row of A, and the
 * column's sum. */
static int32_t product(const bench *b, const uint8_t *a, int64_t n, int32_t *sum)
{
    const lnt_packed *p = &b->record;
    const int64_t taps = p->taps, depth = p->K / p->taps, padded = (depth + 3) / 4 * 4;
    int32_t total = 0;
    *sum = 0;
    for (int64_t t = 0; t < taps && n < p->N; t++)
        for (int64_t d = 0; d < depth; d++) {
            const int64_t at = p->source == LNT_SOURCE_KN ? d * p->N + n : (n * depth + d) * taps + t;
            const int32_t v = b->type == LNT_INT8 ? (int8_t)b->weights[at] : b->weights[at] - 128;
            total += v * a[t * padded + d];
            *sum += v;
        }
    return total;
}

/* A random problem: extreme bytes as often as others. */
static void draw(bench *b, uint64_t *random)
{
    static const uint8_t extremes[] = {0, 127, 128, 255};
    const bool matrix = below(random, 2) != 0;
    const uint32_t taps = matrix ? 1 : 1 + below(random, TAPS_MAX), depth = 1 + below(random, DEPTH_MAX);
    b->type = below(random, 2) ? LNT_INT8 : LNT_UINT8;
    b->record = lnt_packed_panels(matrix ? LNT_SOURCE_KN : LNT_SOURCE_CONV, 1, taps * depth,
                                  1 + below(random, COLUMNS_MAX));
    b->record.layout = LNT_LAYOUT_PANEL_I8;
    b->record.taps = b->record.kernel[0] = taps;
    for (size_t i = 0; i < (size_t)b->record.K * b->record.N; i++)
        b->weights[i] = (uint8_t)(below(random, 2) ? extremes[below(random, 4)] : below(random, 256));
    for (unsigned r = 0; r < LNT_QROWS_MAX; r++)
        for (int64_t i = 0; i < lnt_qrow_bytes(&b->record); i++)
            b->a[r][i] = (uint8_t)(below(random, 2) ? extremes[below(random, 4)] : below(random, 256));
}

static void check_case(bench *t, const lnt_qgemm_kernels *kernels, const char *level, uint64_t seed,
                       uint64_t *random, lnt_check_report *r)
{
    draw(t, random);
    const lnt_packed *p = &t->record;
    const unsigned rows = 1 + below(random, kernels->rows);
    const int64_t panel = below(random, (unsigned)lnt_qpanels(p)), bytes = lnt_qrow_bytes(p);
    const int32_t *sums = (const int32_t *)(const void *)(t->packed + lnt_packed_sums_at(p));
    const uint8_t *a[LNT_QROWS_MAX];
    int32_t sum;
    for (unsigned i = 0; i < rows; i++)
        a[i] = t->a[i];
    memset(t->c, 0x5a, sizeof t->c);
    lnt_pack(p, t->type, t->weights, t->packed);
    lnt_unpack(p, t->type, t->packed, t->back);
    if (memcmp(t->back, t->weights, (size_t)p->K * p->N) != 0)
        lnt_check_fail(r, "weights of %u taps and %u columns do not come back, seed %llu", p->taps, p->N,
                       (unsigned long long)seed);
    /* The row in one piece, or each tap by itself, backwards. */
    const bool apart = below(random, 2) != 0;
    const int64_t tap = bytes / p->taps;
    ptrdiff_t offset[TAPS_MAX];
    uint8_t turned[LNT_QROWS_MAX][ROW_MAX];
    for (int64_t i = 0; i < p->taps; i++) {
        offset[i] = (ptrdiff_t)((p->taps - 1 - i) * tap);
        for (unsigned k = 0; k < rows; k++)
            memcpy(turned[k] + offset[i], t->a[k] + i * tap, (size_t)tap);
    }
    for (unsigned i = 0; apart && i < rows; i++)
        a[i] = turned[i];
    kernels->tile(&(lnt_qproduct){.a = a,
                                  .rows = rows,
                                  .tap_offset = apart ? offset : lnt_qone_run,
                                  .taps = apart ? p->taps : 1,
                                  .quads = (apart ? tap : bytes) / 4,
                                  .panels = 1,
                                  .panel = {t->packed + panel * bytes * LNT_QPANEL},
                                  .c = {t->c}});
    r->cases++;
    for (int64_t i = 0; i < (int64_t)rows * LNT_QPANEL; i++) {
        const int64_t n = panel * LNT_QPANEL + i % LNT_QPANEL;
        const int32_t want = product(t, t->a[i / LNT_QPANEL], n, &sum);
        if (t->c[i] == want && sums[n] == sum)
            continue;
        lnt_check_fail(r,
                       "%s tile: %u rows, %u taps, K %u, row %lld, column %lld is %d, expected %d, seed %llu",
                       level, rows, p->taps, p->K, (long long)(i / LNT_QPANEL), (long long)n, (int)t->c[i],
                       (int)want, (unsigned long long)seed);
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
    const lnt_qgemm_kernels *kernels = lnt_kernels_of(level)->qgemm;
    for (int i = 0; kernels && i < CASES; i++)
        check_case(t, kernels, lnt_level_text(level), seed, &random, r);
    lnt_free(&lnt_malloc_allocator, t);
    return r->failures > before ? LNT_E_INTERNAL : LNT_OK;
}
