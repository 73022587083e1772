/* check_nbits.c — columns of weights of few bits against the same numbers taken out one by one.
 *
 * All widths and blocks, some blocks that leave a group of words half filled, with and without zero points. A number
 * less its zero is exact, so unpacked it is off by one rounding; a sum by (terms + 8) * 2^-24 of its terms'
 * magnitudes. */
#include "ops/check/check.h"

#include "base/memory.h"
#include "ops/nbits/nbits_kernels.h"

#include <math.h>
#include <string.h>

enum { NUMBERS = 1024, PITCH = NUMBERS + 256, BLOCKS = NUMBERS / 16, CASES = 300 };

typedef struct bench {
    lnt_check_report *report;
    const char *level;
    uint64_t seed, random;
    const lnt_nbits_kernels *kernels;
    unsigned bits, form;
    bool has_zeros;
    lnt_nbits_column column;
    float scales[BLOCKS], zeros[BLOCKS], a[LNT_NBITS_ROWS][PITCH], unpacked[PITCH];
    _Alignas(LNT_ALIGN) uint8_t weights[NUMBERS];
} bench;

static unsigned below(bench *t, unsigned n)
{
    return (unsigned)((lnt_check_random(&t->random) >> 33) % n);
}

static void make_case(bench *t)
{
    t->form = below(t, LNT_NBITS_FORMS);
    t->bits = 2u << t->form;
    const unsigned log2 = 4 + below(t, 6);
    t->has_zeros = below(t, 2) != 0;
    t->column = (lnt_nbits_column){.weights = t->weights,
                                   .scales = t->scales,
                                   .zeros = t->has_zeros ? t->zeros : NULL,
                                   .blocks = 1 + (int64_t)below(t, NUMBERS >> log2),
                                   .block_log2 = log2};
    for (unsigned i = 0; i < NUMBERS; i++)
        t->weights[i] = (uint8_t)below(t, 256);
    for (unsigned i = 0; i < BLOCKS; i++) {
        t->scales[i] = lnt_check_float(&t->random);
        t->zeros[i] = (float)below(t, 1u << t->bits);
    }
    for (unsigned r = 0; r < LNT_NBITS_ROWS; r++)
        for (unsigned i = 0; i < PITCH; i++)
            t->a[r][i] = lnt_check_float(&t->random);
}

/* What stands at place i of the kernels' order: number k of the column, or 0 behind its end. */
static double weight_at(const bench *t, int64_t i)
{
    const int64_t lanes = t->kernels->lanes, per_word = 32 / t->bits, group = lanes * per_word;
    const int64_t k = i / group * group + i % group % lanes * per_word + i % group / lanes;
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

static void check_case(bench *t)
{
    const int64_t group = t->kernels->lanes * (32 / t->bits),
                  numbers = t->column.blocks << t->column.block_log2;
    const int64_t pitch = (numbers + group - 1) / group * group;
    const unsigned rows = 1 + below(t, LNT_NBITS_ROWS);
    float sums[LNT_NBITS_ROWS];
    for (unsigned r = 0; r < rows; r++) /* behind the column's end A is 0 */
        for (int64_t i = 0; i < pitch; i++)
            if (weight_at(t, i) == 0)
                t->a[r][i] = 0;
    t->unpacked[pitch] = 12345.5f;
    t->kernels->unpack[t->form](&t->column, t->unpacked);
    t->kernels->dot[t->form](&t->column, t->a[0], PITCH, rows, sums);
    for (int64_t i = 0; i < pitch; i++)
        if (weight_at(t, i) != 0)
            judge(t, "unpack", i, t->unpacked[i], weight_at(t, i), fabs(weight_at(t, i)) * 0x1p-23);
    if (t->unpacked[pitch] != 12345.5f)
        lnt_check_fail(t->report, "%s unpack: wrote behind its result, seed %llu", t->level,
                       (unsigned long long)t->seed);
    for (unsigned r = 0; r < rows; r++) {
        double want = 0, magnitudes = 0;
        for (int64_t i = 0; i < pitch; i++) {
            want += weight_at(t, i) * (double)t->a[r][i];
            magnitudes += fabs(weight_at(t, i) * (double)t->a[r][i]);
        }
        judge(t, "dot", r, sums[r], want, ((double)pitch + 8) * 0x1p-24 * magnitudes);
    }
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
        check_case(t);
    }
    lnt_free(&lnt_malloc_allocator, t);
    return r->failures > before ? LNT_E_INTERNAL : LNT_OK;
}
