/* check_nbits.c — columns of weights of few bits against the same numbers taken out one by one.
 *
 * All widths and blocks, some blocks that leave a group of words half filled, with and without zero points. A number
 * less its zero is exact, so unpacked it is off by one rounding; a sum by (terms + 8) * 2^-24 of its terms'
 * magnitudes. Of products with int8 (nibble_kernels.h) sums over a group are exact: off by 4 * 2^-24 of magnitudes for
 * each group. */
#include "ops/check/check.h"

#include "base/checked.h"
#include "base/memory.h"
#include "ops/nbits/nbits_kernels.h"
#include "ops/nbits/nibble_kernels.h"

#include <math.h>
#include <string.h>

enum { NUMBERS = 1024, PITCH = 2 * NUMBERS, BLOCKS = NUMBERS / 16, CASES = 300 };

typedef struct bench {
    lnt_check_report *report;
    const char *level;
    uint64_t seed, random;
    const lnt_nbits_kernels *kernels;
    unsigned bits;
    bool has_zeros;
    lnt_nbits_column column;
    float scales[BLOCKS], zeros[BLOCKS], a[PITCH];
    float side_scales[BLOCKS * LNT_PANEL], side_zeros[BLOCKS * LNT_PANEL], unpacked[NUMBERS * LNT_PANEL + 1];
    _Alignas(LNT_ALIGN) uint8_t weights[NUMBERS];
} bench;

static unsigned below(bench *t, unsigned n)
{
    return (unsigned)((lnt_check_random(&t->random) >> 33) % n);
}

static void make_case(bench *t)
{
    t->bits = 2u << below(t, 3);
    const unsigned log2 = 4 + below(t, 6);
    t->has_zeros = below(t, 2) != 0;
    t->column = (lnt_nbits_column){.weights = t->weights,
                                   .scales = t->scales,
                                   .zeros = t->has_zeros ? t->zeros : NULL,
                                   .blocks = 1 + (int64_t)below(t, NUMBERS >> log2),
                                   .block_log2 = log2,
                                   .bits = t->bits};
    for (unsigned i = 0; i < NUMBERS; i++)
        t->weights[i] = (uint8_t)below(t, 256);
    for (unsigned i = 0; i < BLOCKS; i++) {
        t->scales[i] = lnt_check_float(&t->random);
        t->zeros[i] = (float)below(t, 1u << t->bits);
    }
}

/* Number k of the column, or 0 behind its end. */
static double weight_at(const bench *t, int64_t k)
{
    const int64_t block = k >> t->column.block_log2, at = k * t->bits;
    if (block >= t->column.blocks)
        return 0;
    const unsigned number = (unsigned)t->weights[at / 8] >> (at % 8) & ((1u << t->bits) - 1);
    const double zero = t->has_zeros ? (double)t->zeros[block] : (double)(1u << (t->bits - 1));
    return (number - zero) * (double)t->scales[block];
}

static void judge(bench *t, const char *what, int64_t i, float got, double want, double error)
{
    if (lnt_check_within(t->report, fabs((double)got - want), error))
        return;
    lnt_check_fail(t->report,
                   "%s %s of %u bits: blocks %lld of %d, place %lld is %.9g, expected %.9g, seed %llu",
                   t->level, what, t->bits, (long long)t->column.blocks, 1 << t->column.block_log2,
                   (long long)i, (double)got, want, (unsigned long long)t->seed);
}

static void check_dot(bench *t)
{
    const int64_t lanes = t->kernels->lanes, per_word = 32 / t->bits, group = lanes * per_word,
                  numbers = t->column.blocks << t->column.block_log2;
    const int64_t pitch = (numbers + group - 1) / group * group;
    double want = 0, magnitudes = 0;
    if (t->bits == 2)
        return;
    for (int64_t i = 0; i < pitch / per_word; i++)
        t->a[pitch + i] = 0;
    for (int64_t k = 0; k < pitch; k++) {
        float *a = &t->a[k / group * group + k % per_word * lanes + k % group / per_word];
        *a = k < numbers ? lnt_check_float(&t->random) : 0;
        t->a[pitch + k / per_word] += *a;
        want += weight_at(t, k) * (double)*a;
        magnitudes += fabs(weight_at(t, k) * (double)*a);
    }
    float *y = t->unpacked; /* of a column as often */
    const int64_t columns = 1 + below(t, LNT_PANEL);
    y[columns] = 12345.5f;
    t->kernels->dot(&t->column, columns, t->a, pitch, y);
    for (int64_t i = 0; i < columns; i++)
        judge(t, "dot", i, y[i], want, ((double)pitch + 8) * 0x1p-24 * magnitudes);
    judge(t, "dot", columns, y[columns], 12345.5, 0);
}

/* Rows of side_scales beside each other are its columns. */
static void check_beside(bench *t)
{
    int64_t at[LNT_PANEL];
    const int64_t n = 1 + below(t, BLOCKS);
    float *to = t->unpacked;
    for (unsigned i = 0; i < LNT_PANEL; i++)
        at[i] = i * n * (int64_t)sizeof(float);
    t->kernels->beside(t->side_scales, at, n, to);
    for (int64_t i = 0; i < n * LNT_PANEL; i++)
        judge(t, "beside", i, to[i], (double)t->side_scales[i % LNT_PANEL * n + i / LNT_PANEL], 0);
}

/* A panel of columns that are all the same. */
static void check_unpack(bench *t)
{
    const int64_t per_word = 32 / t->bits, words = (t->column.blocks << t->column.block_log2) / per_word;
    const int64_t first = (int64_t)below(t, (unsigned)words) & ~3,
                  end = first + 1 + below(t, (unsigned)(words - first));
    const int64_t places = (end - first) * per_word * LNT_PANEL;
    const lnt_nbits_panel p = {.weights = t->weights,
                               .scales = t->side_scales,
                               .zeros = t->has_zeros ? t->side_zeros : NULL,
                               .block_log2 = t->column.block_log2,
                               .bits = t->bits};
    for (int64_t i = 0; i < t->column.blocks * LNT_PANEL; i++) {
        t->side_scales[i] = t->scales[i / LNT_PANEL];
        t->side_zeros[i] = t->zeros[i / LNT_PANEL];
    }
    check_beside(t);
    t->unpacked[places] = 12345.5f;
    t->kernels->unpack(&p, first, end, t->unpacked);
    for (int64_t i = 0; i < places; i++) {
        const double want = weight_at(t, first * per_word + i / LNT_PANEL);
        judge(t, "unpack", i, t->unpacked[i], want, fabs(want) * 0x1p-23);
    }
    if (t->unpacked[places] != 12345.5f)
        lnt_check_fail(t->report, "%s unpack: wrote behind its result, seed %llu", t->level,
                       (unsigned long long)t->seed);
}

/* ---- int8 ---- */

enum { ROWS_MOST = 9, COLUMNS_MOST = LNT_PANEL + 3, GROUPS_MOST = NUMBERS / 16 };

typedef struct nibble_bench {
    lnt_check_report *report;
    const char *level;
    uint64_t seed, random;
    int64_t K;
    int64_t M, N;
    lnt_nibble_job job;
    float largest[ROWS_MOST]
                 [GROUPS_MOST]; /* what 127 stands for in a group of a; NaN where not all are finite */
    float a[ROWS_MOST][NUMBERS], scales[COLUMNS_MOST * GROUPS_MOST], y[ROWS_MOST * COLUMNS_MOST + 1];
    uint8_t weights[COLUMNS_MOST * NUMBERS], zeros[COLUMNS_MOST * GROUPS_MOST];
    float side_scales[GROUPS_MOST * LNT_PANEL], side_zeros[GROUPS_MOST * LNT_PANEL];
    _Alignas(LNT_ALIGN) float room[LNT_PANEL * NUMBERS / 4];
    _Alignas(LNT_ALIGN) char rows[ROWS_MOST * (GROUPS_MOST + 32) * 24];
} nibble_bench;

static unsigned any_below(nibble_bench *t, unsigned n)
{
    return (unsigned)((lnt_check_random(&t->random) >> 33) % n);
}

static void fill_nibbles(nibble_bench *t)
{
    for (unsigned i = 0; i < sizeof t->weights; i++)
        t->weights[i] = (uint8_t)any_below(t, 256);
    for (unsigned i = 0; i < COLUMNS_MOST * GROUPS_MOST; i++) {
        t->scales[i] = lnt_check_float(&t->random);
        t->zeros[i] = (uint8_t)any_below(t, 256);
    }
    for (unsigned m = 0; m < ROWS_MOST; m++)
        for (unsigned k = 0; k < NUMBERS; k++)
            t->a[m][k] = any_below(t, 50) ? lnt_check_float(&t->random) : 0;
    if (any_below(t, 20) == 0)
        t->a[0][any_below(t, (unsigned)t->K)] = any_below(t, 2) ? NAN : INFINITY;
}

static float largest_of_group(const float *a, int64_t n)
{
    float largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = isfinite(a[i]) && !isnan(largest) ? fmaxf(largest, fabsf(a[i])) : NAN;
    return largest;
}

static void find_largest(nibble_bench *t)
{
    for (int64_t m = 0; m < t->M; m++)
        for (int64_t k = 0, group = 1 << t->job.group_log2; k < t->K; k += group)
            t->largest[m][k >> t->job.group_log2] = largest_of_group(t->a[m] + k, lnt_least(group, t->K - k));
}

static void make_nibbles(nibble_bench *t, const lnt_nibble_kernels *kernels)
{
    const unsigned log2 =
        LNT_NIBBLE_GROUP_LOG2 + any_below(t, 4) - (kernels->columns && any_below(t, 3) == 0);
    t->K = 1 + any_below(t, NUMBERS);
    t->M = 1 + any_below(t, ROWS_MOST);
    t->N = 1 + any_below(t, COLUMNS_MOST);
    t->job = (lnt_nibble_job){.w = {.weights = t->weights,
                                    .scales = t->scales,
                                    .zeros = any_below(t, 2) ? t->zeros : NULL,
                                    .blocks = (t->K + (1 << log2) - 1) >> log2,
                                    .block_log2 = log2,
                                    .bits = kernels->bytes && any_below(t, 2) ? 8 : 4},
                              .rows = t->rows,
                              .lanes = kernels->lanes,
                              .M = t->M,
                              .N = t->N,
                              .y = t->y};
    lnt_nibble_measure(&t->job, t->K);
    fill_nibbles(t);
    find_largest(t);
}

static unsigned number_at(const uint8_t *bytes, int64_t i, unsigned bits)
{
    return bits == 8 ? bytes[i] : bytes[i / 2] >> (i % 2 * 4) & 15;
}

static unsigned zero_at(const lnt_nibbles *w, int64_t n, int64_t block)
{
    const int64_t bytes = (w->blocks * w->bits + 7) / 8;
    return w->zeros ? number_at(w->zeros + n * bytes, block, w->bits) : 1u << (w->bits - 1);
}

static void check_nibble_sum(nibble_bench *t, int64_t m, int64_t n, float got)
{
    const lnt_nibbles *w = &t->job.w;
    const double groups = (double)(t->K >> t->job.group_log2) + 4;
    double want = 0, magnitudes = 0;
    for (int64_t k = 0; k < t->K; k++) {
        const int64_t block = k >> w->block_log2;
        const unsigned number = number_at(w->weights, ((n * w->blocks) << w->block_log2) + k, w->bits),
                       zero = zero_at(w, n, block);
        const float largest = t->largest[m][k >> t->job.group_log2];
        const double q = (double)rintf(t->a[m][k] * (largest > 0 ? 127 / largest : 0));
        const double scale = (double)largest / 127 * (double)w->scales[n * w->blocks + block];
        want += isnan(largest) ? NAN : scale * q * ((double)number - zero);
        magnitudes += isnan(largest) ? 0 : fabs(scale * q) * (number + zero);
    }
    if (isnan(want) ? isnan(got)
                    : lnt_check_within(t->report, fabs((double)got - want), groups * 0x1p-22 * magnitudes))
        return;
    lnt_check_fail(
        t->report,
        "%s int8 by %u bits: K %lld, block %d, row %lld, column %lld is %.9g, expected %.9g, seed %llu",
        t->level, w->bits, (long long)t->K, 1 << w->block_log2, (long long)m, (long long)n, (double)got, want,
        (unsigned long long)t->seed);
}

static void quantize_all(nibble_bench *t, const lnt_nibble_kernels *kernels, unsigned lanes)
{
    lnt_nibble_job *j = &t->job;
    j->lanes = lanes;
    lnt_nibble_measure(j, t->K);
    for (int64_t m = 0; m < t->M; m++)
        kernels->quantize(j, t->a[m], t->K, t->rows + m * j->row_bytes);
}

static void check_tiles(nibble_bench *t, const lnt_nibble_kernels *kernels)
{
    for (int64_t n = 0; n < t->N; n += LNT_NIBBLE_COLUMNS) {
        const unsigned columns = (unsigned)(t->N - n < LNT_NIBBLE_COLUMNS ? t->N - n : LNT_NIBBLE_COLUMNS);
        lnt_nibble_block b;
        float sums[LNT_NIBBLE_COLUMNS];
        kernels->prepare(&t->job, n, columns, t->room, &b);
        for (int64_t m = 0; m < t->M; m++) {
            kernels->tile(&t->job, &b, m, sums);
            for (unsigned i = 0; i < columns; i++)
                check_nibble_sum(t, m, n + i, sums[i]);
        }
    }
}

/* The panel of columns from n on, behind the last one that again. */
static lnt_nbits_panel nibble_panel(nibble_bench *t, int64_t n)
{
    const lnt_nibbles *w = &t->job.w;
    lnt_nbits_panel p = {.weights = w->weights, .scales = t->side_scales, .block_log2 = w->block_log2};
    p.zeros = w->zeros ? t->side_zeros : NULL;
    for (int64_t i = 0; i < LNT_PANEL; i++) {
        const int64_t column = n + i < t->N ? n + i : t->N - 1;
        p.at[i] = column * ((w->blocks << w->block_log2) * w->bits / 8);
        for (int64_t b = 0; b < w->blocks; b++) {
            t->side_scales[b * LNT_PANEL + i] = w->scales[column * w->blocks + b];
            if (w->zeros)
                t->side_zeros[b * LNT_PANEL + i] = (float)zero_at(w, column, b);
        }
    }
    return p;
}

static void check_result(nibble_bench *t)
{
    for (int64_t i = 0; i < t->M * t->N; i++)
        check_nibble_sum(t, i / t->N, i % t->N, t->y[i]);
    if (t->y[t->M * t->N] != 12345.5f)
        lnt_check_fail(t->report, "%s int8 by %u bits: wrote behind its result, seed %llu", t->level,
                       t->job.w.bits, (unsigned long long)t->seed);
}

static void check_nibbles(nibble_bench *t, const lnt_nibble_kernels *kernels)
{
    quantize_all(t, kernels, kernels->lanes);
    t->y[t->M * t->N] = 12345.5f;
    if (!kernels->columns) {
        check_tiles(t, kernels);
        return;
    }
    kernels->columns(&t->job, 0, t->N);
    check_result(t);
    const bool short_blocks = t->job.w.block_log2 < LNT_NIBBLE_GROUP_LOG2;
    if ((short_blocks && !kernels->bytes) || t->job.column_bytes % LNT_NIBBLE_UNPACKED)
        return;
    quantize_all(t, kernels, LNT_NIBBLE_PANEL_LANES);
    for (int64_t n = 0; n < t->N; n += LNT_PANEL) {
        const lnt_nbits_panel p = nibble_panel(t, n);
        kernels->panel(&t->job, &p, n, (unsigned)(t->N - n < LNT_PANEL ? t->N - n : LNT_PANEL), t->room);
    }
    check_result(t);
}

static lnt_status check_all_nibbles(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    nibble_bench *t = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *t, NULL);
    if (!t)
        return LNT_E_MEMORY;
    t->report = r;
    t->level = lnt_level_text(level);
    for (unsigned i = 0; i < CASES; i++) {
        t->seed = seed + i;
        t->random = 0x9e3779b97f4a7c15u * (seed + i + 1);
        make_nibbles(t, lnt_kernels_of(level)->nibble);
        check_nibbles(t, lnt_kernels_of(level)->nibble);
    }
    lnt_free(&lnt_malloc_allocator, t);
    return LNT_OK;
}

lnt_status lnt_check_nbits(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    const uint64_t before = r->failures;
    const lnt_nbits_kernels *kernels = lnt_kernels_of(level)->nbits;
    if (!kernels)
        return LNT_OK;
    bench *t = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *t, NULL);
    if (!t)
        return LNT_E_MEMORY;
    t->report = r;
    t->level = lnt_level_text(level);
    t->kernels = kernels;
    for (unsigned i = 0; i < CASES; i++) {
        t->seed = seed + i;
        t->random = 0x9e3779b97f4a7c15u * (seed + i + 1);
        make_case(t);
        check_dot(t);
        check_unpack(t);
    }
    lnt_free(&lnt_malloc_allocator, t);
    LNT_TRY(check_all_nibbles(level, seed, r));
    return r->failures > before ? LNT_E_INTERNAL : LNT_OK;
}
