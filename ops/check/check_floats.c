/* check_floats.c — the functions of elementwise programs over all floats, or every so manieth, at every
 * level: a judge is asked once for each float, then all levels are held against it. */
#include "ops/check/check.h"
#include "ops/check/judge.h"

#include "base/half.h"
#include "base/memory.h"
#include "ops/elementwise/program_kernels.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { LANES = 256, PIECES = 64 };

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
    double want[LANES]; /* but LNT_QUICK_ULPS */
    unsigned op, n;
    float imm[2];
} block;

/* Of equal errors the one at the smaller bits is told, whichever was found first. */
static bool is_worse(double ulps, float at, const lnt_float_row *row)
{
    return ulps > row->worst || (ulps == row->worst && lnt_float_bits(at) < lnt_float_bits(row->at[0]));
}

/* Lane i, whose error may count. */
static void judge_closely(const block *b, unsigned i, double sieve, lnt_float_row *row)
{
    const double x = (double)b->x[i], y = (double)b->y[i], p = (double)b->imm[0], q = (double)b->imm[1];
    if (lnt_ulps_between(b->got[i], b->want[i]) <= sieve)
        return;
    const lnt_wide want = lnt_judged_instrs[b->op].judge(x, y, 0, p, q);
    const double ulps = lnt_ulps_between(b->got[i], want);
    const lnt_bound limit = lnt_bound_of(b->op, x, p, q);
    if (ulps == 0 || fabs((double)((lnt_wide)b->got[i] - want)) <= limit.tiny)
        return;
    row->failures += !(ulps <= limit.ulps);
    if (is_worse(ulps, b->x[i], row)) {
        row->worst = ulps;
        row->at[0] = b->x[i];
        row->at[1] = b->y[i];
        row->allowed = limit.ulps;
    }
}

static void judge_masks(const block *b, lnt_float_row *row)
{
    for (unsigned i = 0; i < b->n; i++)
        row->failures += lnt_float_bits(b->got[i]) != (b->want[i] != 0 ? UINT32_MAX : 0);
}

/* What is rounded right is no error. Others count if they are as large as the largest so far, or larger than
 * what is allowed: most are neither by far, which takes but a product to see, for a unit in the last place is
 * at least want / 2**24. */
static void judge_level(const block *b, double allowed, lnt_float_row *row)
{
    for (unsigned i = 0; i < b->n; i++) {
        const double sieve = fmax(fmin(row->worst, allowed) - LNT_QUICK_ULPS, 0), want = b->want[i],
                     off = fabs((double)b->got[i] - want);
        if (b->got[i] != (float)want && !(off * 0x1p24 <= sieve * fabs(want)))
            judge_closely(b, i, sieve, row);
    }
}

static void judge_block(block *b, unsigned levels, lnt_float_row *rows)
{
    const lnt_judged *f = &lnt_judged_instrs[b->op];
    const double p = (double)b->imm[0], q = (double)b->imm[1], allowed = lnt_bound_of(b->op, 0, p, q).ulps;
    for (unsigned i = 0; i < b->n; i++)
        b->want[i] = f->quick((double)b->x[i], (double)b->y[i], 0, p, q);
    for (unsigned level = 0; level < levels; level++) {
        const lnt_program_kernels *k = lnt_kernels_of((lnt_level)level)->program;
        if (level > 0 && k == lnt_kernels_of((lnt_level)(level - 1))->program)
            continue;
        k->instr[b->op](
            &(lnt_instr_args){.dst = b->got, .src = {b->x, b->y}, .step = {1, 1}, .imm = b->imm, .n = LANES});
        if (f->result == 'm')
            judge_masks(b, &rows[level]);
        else
            judge_level(b, allowed, &rows[level]);
        rows[level].cases += b->n;
    }
}

/* ---- which numbers ---- */

static float float_of(uint64_t bits)
{
    const float x = lnt_bits_float((uint32_t)bits);
    return LNT_FLUSHES && fabsf(x) < 0x1p-126f ? 0 : x;
}

/* Pair i of a grid of side * side bases and exponents: every other exponent any float, the others such that
 * the power is between the smallest and the largest float, evenly in its logarithm. */
static void pair_of(uint64_t i, uint64_t side, float *x, float *y)
{
    const uint64_t row = i / side, column = i % side, step = (UINT64_C(1) << 32) / side;
    const float base = float_of(row * step + row % step), digits = fabsf(log2f(fabsf(base)));
    *x = base;
    *y = float_of(column * step + row % step);
    if (column % 2 && digits > 0 && digits < INFINITY)
        *y = (float)(280 * (double)column / (double)side - 150) / digits;
}

/* Numbers [first, end) of every stride-th float. */
static void judge_piece(unsigned op, uint64_t first, uint64_t end, uint64_t stride, unsigned levels,
                        lnt_float_row *rows)
{
    const uint64_t side = (uint64_t)sqrt(0x1p32 / (double)stride);
    block b = {.y = {0}, .op = op};
    immediates(op, b.imm);
    for (uint64_t i = first; i < end; i += LANES) {
        b.n = (unsigned)(end - i < LANES ? end - i : LANES);
        for (unsigned j = 0; j < b.n; j++)
            if (op == LNT_I_POW)
                pair_of(i + j, side, &b.x[j], &b.y[j]);
            else
                b.x[j] = float_of((i + j) * stride);
        judge_block(&b, levels, rows);
    }
}

/* ---- piece by piece on several threads ---- */

typedef struct campaign {
    const lnt_floats_options *how;
    unsigned levels;
    uint8_t ops[UINT8_MAX];
    size_t next, done, total; /* pieces, PIECES of each instruction */
    pthread_mutex_t lock;
    lnt_float_row *rows; /* [instruction][level] */
} campaign;

static bool is_wanted(unsigned op, const char *only)
{
    const char *sources = lnt_judged_instrs[op].sources;
    return sources && (strcmp(sources, "f") == 0 || op == LNT_I_POW) &&
           (!only || strcmp(only, lnt_judged_instrs[op].name) == 0);
}

bool lnt_has_float_check(const char *only)
{
    for (unsigned op = 0; op < lnt_judged_count; op++)
        if (is_wanted(op, only))
            return true;
    return false;
}

/* What is the largest error of all so far is where a piece begins; what it adds comes to the rest. */
static void merge(lnt_float_row *all, const lnt_float_row *row)
{
    const uint64_t cases = all->cases + row->cases, failures = all->failures + row->failures;
    if (is_worse(row->worst, row->at[0], all))
        *all = *row;
    all->cases = cases;
    all->failures = failures;
}

static void do_piece(campaign *c, size_t piece)
{
    const unsigned op = c->ops[piece / PIECES];
    const uint64_t stride = c->how->stride, n = UINT32_MAX / stride + 1, part = piece % PIECES;
    lnt_float_row rows[LNT_LEVEL_COUNT], *all = c->rows + (size_t)op * c->levels;
    pthread_mutex_lock(&c->lock);
    memcpy(rows, all, c->levels * sizeof *rows);
    pthread_mutex_unlock(&c->lock);
    for (unsigned level = 0; level < c->levels; level++)
        rows[level].cases = rows[level].failures = 0;
    judge_piece(op, n * part / PIECES, n * (part + 1) / PIECES, stride, c->levels, rows);
    pthread_mutex_lock(&c->lock);
    for (unsigned level = 0; level < c->levels; level++)
        merge(&all[level], &rows[level]);
    c->done++;
    if (c->how->progress)
        c->how->progress(c->done, c->total);
    pthread_mutex_unlock(&c->lock);
}

static void *work(void *arg)
{
    campaign *c = arg;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        const size_t piece = c->next++;
        pthread_mutex_unlock(&c->lock);
        if (piece >= c->total)
            return NULL;
        do_piece(c, piece);
    }
}

static void work_on_threads(campaign *c, unsigned threads)
{
    enum { MOST = 64 };
    pthread_t thread[MOST];
    unsigned started = 0;
    while (started + 1 < threads && started < MOST && pthread_create(&thread[started], NULL, work, c) == 0)
        started++;
    work(c);
    while (started > 0)
        pthread_join(thread[--started], NULL);
}

lnt_status lnt_check_floats(const lnt_floats_options *how, lnt_float_row_fn each, void *arg)
{
    campaign c = {.how = how, .levels = (unsigned)how->best + 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    const size_t n = (size_t)lnt_judged_count * c.levels;
    uint64_t failures = 0;
    for (unsigned op = 0; op < lnt_judged_count; op++)
        if (is_wanted(op, how->only)) {
            c.ops[c.total / PIECES] = (uint8_t)op;
            c.total += PIECES;
        }
    c.rows = lnt_alloc_zero(&lnt_malloc_allocator, n, sizeof *c.rows, NULL);
    if (!c.rows)
        return LNT_E_MEMORY;
    work_on_threads(&c, how->threads);
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
