/* check_floats.c — the functions of elementwise programs over all floats, or every so manieth, at every
 * level: a judge is asked once for each float, then all levels are held against it. */
#include "ops/check/check.h"
#include "ops/check/judge.h"

#include "base/half.h"
#include "base/memory.h"
#include "ops/program_kernels.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { LANES = 256 };

/* Immediates of those instructions that are not used with 1 and 1. */
static const struct {
    uint8_t op;
    float imm[2];
} usual[] = {{LNT_I_CLIP, {-1, 1}},
             {LNT_I_LEAKY_RELU, {0.01f, 0}},
             {LNT_I_HARD_SIGMOID, {0.2f, 0.5f}},
             {LNT_I_SILU, {1, 0}}};

static void immediates(unsigned op, float imm[2])
{
    imm[0] = imm[1] = 1;
    for (unsigned i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (usual[i].op == op)
            memcpy(imm, usual[i].imm, sizeof usual[i].imm);
}

/* Numbers to be judged together. */
typedef struct block {
    _Alignas(64) float x[LANES], y[LANES], got[LANES];
    lnt_wide want[LANES];
    lnt_bound limit[LANES];
} block;

static void judge_level(unsigned op, const block *b, lnt_float_row *row)
{
    for (unsigned i = 0; i < LANES; i++) {
        if (lnt_judged_instrs[op].result == 'm') {
            row->failures += lnt_float_bits(b->got[i]) != (b->want[i] != 0 ? UINT32_MAX : 0);
            continue;
        }
        const lnt_bound limit = b->limit[i];
        const double ulps = lnt_ulps_between(b->got[i], b->want[i]);
        if (ulps == 0 || fabs((double)((lnt_wide)b->got[i] - b->want[i])) <= limit.tiny)
            continue;
        const bool fails = !(ulps <= limit.ulps);
        row->failures += fails;
        if (ulps > row->worst) {
            row->worst = ulps;
            row->at[0] = b->x[i];
            row->at[1] = b->y[i];
            row->allowed = limit.ulps;
        }
    }
    row->cases += LANES;
}

static void judge_block(unsigned op, block *b, unsigned levels, lnt_float_row *rows)
{
    float imm[2];
    immediates(op, imm);
    for (unsigned i = 0; i < LANES; i++) {
        b->want[i] = lnt_judged_instrs[op].judge((lnt_wide)b->x[i], (lnt_wide)b->y[i], 0, (lnt_wide)imm[0],
                                                 (lnt_wide)imm[1]);
        b->limit[i] = lnt_bound_of(op, (double)b->x[i], (double)imm[0], (double)imm[1]);
    }
    for (unsigned level = 0; level < levels; level++) {
        const lnt_program_kernels *k = lnt_kernels_of((lnt_level)level)->program;
        if (level > 0 && k == lnt_kernels_of((lnt_level)(level - 1))->program)
            continue;
        const lnt_instr_fn run = k->instr[op];
        run(&(lnt_instr_args){.dst = b->got, .src = {b->x, b->y}, .step = {1, 1}, .imm = imm, .n = LANES});
        judge_level(op, b, &rows[level]);
    }
}

static float float_of(uint64_t bits)
{
    const float x = lnt_bits_float((uint32_t)bits);
    return LNT_FLUSHES && fabsf(x) < 0x1p-126f ? 0 : x;
}

static void judge_unary(unsigned op, uint64_t stride, unsigned levels, lnt_float_row *rows)
{
    block b = {.y = {0}};
    for (uint64_t first = 0; first <= UINT32_MAX; first += LANES * stride) {
        for (unsigned i = 0; i < LANES; i++)
            b.x[i] = float_of(first + i * stride);
        judge_block(op, &b, levels, rows);
    }
}

/* A grid: as many pairs as an instruction of one source has numbers. */
static void judge_binary(unsigned op, uint64_t stride, unsigned levels, lnt_float_row *rows)
{
    const uint64_t side = (uint64_t)sqrt(0x1p32 / (double)stride) / LANES * LANES + LANES;
    const uint64_t step = (UINT64_C(1) << 32) / side;
    block b;
    for (uint64_t row = 0; row < side; row++)
        for (uint64_t column = 0; column < side; column += LANES) {
            for (unsigned i = 0; i < LANES; i++) {
                b.x[i] = float_of(row * step + row);
                b.y[i] = float_of((column + i) * step + row);
            }
            judge_block(op, &b, levels, rows);
        }
}

/* ---- several instructions at a time ---- */

typedef struct campaign {
    uint64_t stride;
    unsigned levels;
    const char *only;
    lnt_float_row *rows; /* [instruction][level] */
    atomic_uint next;
} campaign;

static bool is_wanted(unsigned op, const char *only)
{
    const char *sources = lnt_judged_instrs[op].sources;
    return sources && (strcmp(sources, "f") == 0 || op == LNT_I_POW) &&
           (!only || strcmp(only, lnt_judged_instrs[op].name) == 0);
}

static void *work(void *arg)
{
    campaign *c = arg;
    for (unsigned op; (op = atomic_fetch_add(&c->next, 1)) < lnt_judged_count;)
        if (is_wanted(op, c->only))
            (op == LNT_I_POW ? judge_binary : judge_unary)(op, c->stride, c->levels,
                                                           c->rows + (size_t)op * c->levels);
    return NULL;
}

lnt_status lnt_check_floats(lnt_level best, uint32_t stride, const char *only, unsigned threads,
                            lnt_float_row_fn each, void *arg)
{
    enum { MOST = 64 };
    pthread_t thread[MOST];
    campaign c = {.stride = stride, .levels = (unsigned)best + 1, .only = only};
    const size_t n = (size_t)lnt_judged_count * c.levels;
    unsigned started = 0;
    uint64_t failures = 0;
    c.rows = lnt_alloc_zero(&lnt_malloc_allocator, n, sizeof *c.rows, NULL);
    if (!c.rows)
        return LNT_E_MEMORY;
    while (started + 1 < threads && started < MOST && pthread_create(&thread[started], NULL, work, &c) == 0)
        started++;
    work(&c);
    while (started > 0)
        pthread_join(thread[--started], NULL);
    for (size_t i = 0; i < n; i++) {
        lnt_float_row *row = &c.rows[i];
        row->name = lnt_judged_instrs[i / c.levels].name;
        row->level = (lnt_level)(i % c.levels);
        failures += row->failures;
        if (row->cases > 0)
            each(arg, row);
    }
    lnt_free(&lnt_malloc_allocator, c.rows);
    return failures ? LNT_E_INTERNAL : LNT_OK;
}
