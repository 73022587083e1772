/* check_qgemm.c — packing of byte weights and their tiles against a plain triple loop: exact. */
#include "ops/check/check.h"

#include "base/memory.h"
#include "ops/quant/qgemm.h"
#include "ops/quant/qparams.h"
#include "ops/rows/int8_rows.h"

#include <math.h>
#include <string.h>

enum { TAPS_MAX = 5, DEPTH_MAX = 300, COLUMNS_MAX = 100, GUARD = 16, CASES = 600 };
enum { ROW_MAX = TAPS_MAX * (DEPTH_MAX + 3), PANELS_MAX = (COLUMNS_MAX + LNT_QPANEL - 1) / LNT_QPANEL };

typedef struct bench {
    uint8_t weights[TAPS_MAX * DEPTH_MAX * COLUMNS_MAX];
    uint8_t a[LNT_QROWS_MAX][ROW_MAX];
    _Alignas(LNT_ALIGN) int8_t packed[PANELS_MAX * LNT_QPANEL * (ROW_MAX + sizeof(int32_t))];
    uint8_t back[TAPS_MAX * DEPTH_MAX * COLUMNS_MAX];
    lnt_packed record;
    lnt_dtype type;
    int32_t c[LNT_QPANELS_MAX][LNT_QROWS_MAX * LNT_QPANEL + GUARD];
    /* Requantization: accumulator bias and scale of each column, rows of results. */
    int32_t acc_bias[LNT_QPANELS_MAX * LNT_QPANEL];
    float scale[LNT_QPANELS_MAX * LNT_QPANEL];
    uint8_t y[LNT_QROWS_MAX][LNT_QPANELS_MAX * LNT_QPANEL + GUARD];
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

/* A random problem: extreme values as often as others. */
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
    const bool full = below(random, 2) != 0;
    const uint8_t least = b->type == LNT_INT8 ? 128 : 0;
    for (size_t i = 0; i < (size_t)b->record.K * b->record.N; i++) {
        b->weights[i] = (uint8_t)(below(random, 2) ? extremes[below(random, 4)] : below(random, 256));
        if (b->weights[i] == least && !full)
            b->weights[i] = 1;
    }
    for (unsigned r = 0; r < LNT_QROWS_MAX; r++)
        for (int64_t i = 0; i < lnt_qrow_bytes(&b->record); i++)
            b->a[r][i] = (uint8_t)(below(random, 2) ? extremes[below(random, 4)] : below(random, 256));
}

/* What is asked of a tile. */
typedef struct question {
    unsigned rows, panels, row[LNT_QROWS_MAX]; /* row r is the bench's row[r] */
    int64_t first;                             /* panel */
    bool apart; /* each tap by itself, backwards; otherwise the row in one piece */
    bool requantizes, is_signed;
    bool full;        /* -128 is said to be possible among the weights */
    bool moved;       /* rows are given as int8 */
    unsigned columns; /* that are requantized */
    int32_t zero;     /* zero point of results */
} question;

static bool holds_least(const bench *t)
{
    return memchr(t->packed, 0x80, lnt_packed_sums_at(&t->record)) != NULL;
}

static question draw_question(const bench *t, const lnt_qgemm_kernels *kernels, uint64_t *random)
{
    const unsigned there = (unsigned)lnt_qpanels(&t->record), most = kernels->panels;
    question q = {.rows = 1 + below(random, kernels->rows), .panels = 1};
    if (kernels->fewer_panels)
        q.panels += below(random, there < most ? there : most);
    else if (there >= most && below(random, 2))
        q.panels = most;
    q.first = below(random, there - q.panels + 1);
    q.apart = below(random, 2) != 0;
    const bool mixed = below(random, 2) != 0;
    for (unsigned i = 0; i < q.rows; i++)
        q.row[i] = mixed ? below(random, LNT_QROWS_MAX) : i;
    q.requantizes = kernels->requantizes && below(random, 2);
    q.moved = kernels->takes_moved && below(random, 2);
    q.full = holds_least(t) || below(random, 2) != 0;
    q.columns = q.panels * LNT_QPANEL;
    if (kernels->some_columns)
        q.columns -= below(random, 2) * below(random, LNT_QPANEL);
    q.is_signed = below(random, 2) != 0;
    q.zero = (int32_t)below(random, 256) - (q.is_signed ? 128 : 0);
    return q;
}

/* Numbers that bring most sums into a byte's range and some far beyond it. In half of the cases all are such that
 * requantization may take sums for bounded; in the others some scales are too small for that, or one is NaN. */
static void draw_numbers(bench *t, uint64_t *random)
{
    const bool bounded = below(random, 2) != 0;
    for (unsigned i = 0; i < LNT_QPANELS_MAX * LNT_QPANEL; i++) {
        const float unit = below(random, 8) == 0 ? 1e4f : bounded || below(random, 2) ? 1.3e-4f : 1e-6f;
        t->acc_bias[i] = (int32_t)below(random, 20001) - 10000;
        if (below(random, 8) == 0)
            t->acc_bias[i] = (int32_t)below(random, (1u << 29) + 1) - (1 << 28);
        t->scale[i] = (float)(1 + below(random, 1000)) * unit;
    }
    if (!bounded && below(random, 4) == 0)
        t->scale[below(random, LNT_QPANEL)] = NAN;
}

static void ask(bench *t, const lnt_qgemm_kernels *kernels, const question *q)
{
    const int64_t bytes = lnt_qrow_bytes(&t->record), taps = t->record.taps, tap = bytes / taps;
    ptrdiff_t offset[TAPS_MAX];
    const int32_t *sums = (const int32_t *)(const void *)(t->packed + lnt_packed_sums_at(&t->record));
    const uint8_t *a[LNT_QROWS_MAX];
    uint8_t turned[LNT_QROWS_MAX][ROW_MAX];
    for (int64_t i = 0; i < taps; i++) {
        offset[i] = (ptrdiff_t)((taps - 1 - i) * tap);
        for (unsigned k = 0; k < q->rows; k++)
            memcpy(turned[k] + offset[i], t->a[q->row[k]] + i * tap, (size_t)tap);
    }
    for (unsigned i = 0; i < q->rows; i++) {
        a[i] = q->apart ? turned[i] : memcpy(turned[i], t->a[q->row[i]], (size_t)bytes);
        for (int64_t k = 0; k < bytes && q->moved; k++)
            turned[i][k] ^= 0x80;
    }
    lnt_qproduct product = {.a = a,
                            .rows = q->rows,
                            .tap_offset = q->apart ? offset : lnt_qone_run,
                            .taps = q->apart ? taps : 1,
                            .quads = (q->apart ? tap : bytes) / 4,
                            .panels = q->panels,
                            .sums = sums + q->first * LNT_QPANEL,
                            .full = q->full,
                            .moved = q->moved};
    int64_t out[LNT_QROWS_MAX];
    for (unsigned i = 0; i < q->rows; i++) /* backwards */
        out[i] = (int64_t)((q->rows - 1 - i) * sizeof t->y[0]);
    const lnt_requantize_tile to = {.rows = q->rows,
                                    .columns = q->columns,
                                    .acc_bias = t->acc_bias,
                                    .scale = t->scale,
                                    .zero = q->zero,
                                    .is_signed = q->is_signed,
                                    .y = t->y[0],
                                    .out = out};
    product.requantize = q->requantizes ? &to : NULL;
    for (unsigned i = 0; i < q->panels; i++) {
        product.panel[i] = t->packed + (q->first + i) * bytes * LNT_QPANEL;
        product.c[i] = t->c[i];
    }
    kernels->tile(&product);
}

/* Are the sums of one panel what they should be? */
static bool judge(const bench *t, const question *q, unsigned panel, const char *level, uint64_t seed,
                  lnt_check_report *r)
{
    const lnt_packed *p = &t->record;
    const int32_t *sums = (const int32_t *)(const void *)(t->packed + lnt_packed_sums_at(p)),
                  *c = t->c[panel];
    int32_t sum;
    for (int64_t i = 0; i < (int64_t)q->rows * LNT_QPANEL; i++) {
        const int64_t n = (q->first + panel) * LNT_QPANEL + i % LNT_QPANEL;
        const int32_t want = product(t, t->a[q->row[i / LNT_QPANEL]], n, &sum);
        if (c[i] == want && sums[n] == sum)
            continue;
        lnt_check_fail(
            r,
            "%s tile: %u rows, %u panels, %u taps, K %u, row %lld, column %lld is %d, expected %d, "
            "seed %llu",
            level, q->rows, q->panels, p->taps, p->K, (long long)(i / LNT_QPANEL), (long long)n, (int)c[i],
            (int)want, (unsigned long long)seed);
        return false;
    }
    for (unsigned i = q->rows * LNT_QPANEL; i < sizeof t->c[0] / sizeof t->c[0][0]; i++)
        if (c[i] != 0x5a5a5a5a) {
            lnt_check_fail(r, "%s tile: %u rows, wrote past them, seed %llu", level, q->rows,
                           (unsigned long long)seed);
            return false;
        }
    return true;
}

/* Are the requantized rows exact? */
static void judge_requantized(const bench *t, const question *q, const char *level, uint64_t seed,
                              lnt_check_report *r)
{
    const lnt_qrange range = lnt_qrange_of(q->is_signed ? LNT_INT8 : LNT_UINT8);
    const unsigned columns = q->columns;
    int32_t sum;
    for (unsigned i = 0; i < q->rows * columns; i++) {
        const unsigned row = i / columns, n = i % columns;
        const int32_t total = product(t, t->a[q->row[row]], q->first * LNT_QPANEL + n, &sum) + t->acc_bias[n];
        const int32_t want = lnt_requantize((float)total * t->scale[n], q->zero, range);
        const uint8_t got = t->y[q->rows - 1 - row][n];
        if (got != (uint8_t)want) {
            lnt_check_fail(r, "%s tile: %u rows requantized, row %u, column %u is %d, expected %d, seed %llu",
                           level, q->rows, row, n, got, (uint8_t)want, (unsigned long long)seed);
            return;
        }
    }
    for (unsigned row = 0; row < LNT_QROWS_MAX; row++)
        for (unsigned n = row < q->rows ? columns : 0; n < sizeof t->y[0]; n++)
            if (t->y[row][n] != 0x5a) {
                lnt_check_fail(r, "%s tile: %u rows requantized, wrote past them, seed %llu", level, q->rows,
                               (unsigned long long)seed);
                return;
            }
}

/* A few panels at a time, as matrices that are given are. */
static void pack_by(const lnt_int8_kernels *kernels, bench *t)
{
    const lnt_packed *p = &t->record;
    const int64_t panel_bytes = (int64_t)lnt_packed_panel_bytes(p);
    int32_t *sums = (int32_t *)(void *)(t->packed + lnt_packed_sums_at(p));
    memset(t->packed, 0x5a, sizeof t->packed);
    for (int64_t n = 0; n < p->N; n += LNT_PACK_PANELS * LNT_QPANEL)
        kernels->pack(t->weights + n, p->N, p->K, (size_t)lnt_least(p->N - n, LNT_PACK_PANELS * LNT_QPANEL),
                      t->type == LNT_UINT8 ? 0x80 : 0, t->packed + n / LNT_QPANEL * panel_bytes, sums + n);
}

/* Weights that were packed so are what they were; by kernels, or NULL. */
static void check_packing(bench *t, const lnt_packed *p, const lnt_int8_kernels *kernels, uint64_t seed,
                          lnt_check_report *r)
{
    if (kernels && kernels->pack && p->source == LNT_SOURCE_KN)
        pack_by(kernels, t);
    else
        lnt_pack(p, t->type, t->weights, t->packed);
    lnt_unpack(p, t->type, t->packed, t->back);
    if (memcmp(t->back, t->weights, (size_t)p->K * p->N) != 0)
        lnt_check_fail(r, "weights of %u taps and %u columns, layout %u, do not come back, seed %llu",
                       p->taps, p->N, p->layout, (unsigned long long)seed);
}

static void check_case(bench *t, const lnt_qgemm_kernels *kernels, const lnt_int8_kernels *int8,
                       const char *level, uint64_t seed, uint64_t *random, lnt_check_report *r)
{
    draw(t, random);
    lnt_packed lines = t->record;
    lines.layout = LNT_LAYOUT_LINES_I8;
    draw_numbers(t, random);
    memset(t->c, 0x5a, sizeof t->c);
    memset(t->y, 0x5a, sizeof t->y);
    if (lines.source == LNT_SOURCE_CONV && lines.taps > 1)
        check_packing(t, &lines, NULL, seed, r);
    check_packing(t, &t->record, below(random, 2) ? int8 : NULL, seed, r);
    const question q = draw_question(t, kernels, random);
    ask(t, kernels, &q);
    r->cases++;
    if (q.requantizes)
        judge_requantized(t, &q, level, seed, r);
    for (unsigned i = 0; i < q.panels && !q.requantizes && judge(t, &q, i, level, seed, r); i++)
        ;
}

lnt_status lnt_check_qgemm(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    lnt_error err = {0};
    bench *t = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *t, &err);
    const uint64_t before = r->failures;
    uint64_t random = seed | 1;
    if (!t)
        return LNT_E_MEMORY;
    const lnt_qgemm_kernels *const kernels[] = {lnt_kernels_of(level)->qgemm,
                                                lnt_kernels_in_order(level)->qgemm};
    for (int i = 0; kernels[0] && i < CASES; i++)
        check_case(t, kernels[i % 2], lnt_kernels_of(level)->int8, lnt_level_text(level), seed, &random, r);
    lnt_free(&lnt_malloc_allocator, t);
    return r->failures > before ? LNT_E_INTERNAL : LNT_OK;
}
