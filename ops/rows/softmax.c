/* softmax.c — Softmax, LogSoftmax and Hardmax along an axis. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/copy.h"
#include "ops/elementwise/program.h"
#include "ops/elementwise/program_kernels.h"
#include "ops/elementwise/typed_kernels.h"
#include "ops/rows/row.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

enum {
    MANY_ROWS = 8, /* for each of them short ones are taken together */
    BLOCK = 256,   /* columns worked on at a time, where the axis is not the innermost */
    SHORT = 16,    /* rows that are no longer are transposed to columns, */
    SHORT_DOUBLES = 32,
    SHORT_HARD = 40,
    TRANSPOSED = 64, /* at most so many at a time */
    NARROW = 16, /* columns that are fewer are not worth a call: they are put side by side, or made rows, */
    ROOM = SHORT * BLOCK, /* of so many elements */
    LOGARITHMS = 16,      /* rows whose logarithms are taken together, */
    AT_HAND = 8192,       /* of about so many elements */
};
enum { SOFTMAX, LOG_SOFTMAX, HARDMAX };

typedef struct softmax softmax;

struct softmax {
    const lnt_row_kernels *row;
    const lnt_typed_kernels *typed;
    lnt_instr_fn log; /* of floats */
    unsigned kind;
    int64_t outer, n, inner; /* extents before, along and behind the axis */
    int64_t transposed; /* short rows, or images of narrow ones, that become columns together; 0: none do */
    int64_t logarithms;      /* taken together */
    int64_t size;            /* bytes of an element */
    void (*rows)(const softmax *p, const void *x, void *y, int64_t rows);
    /* w columns of n rows, which are `apart` elements apart */
    void (*columns)(const softmax *p, const void *x, void *y, int64_t apart, int64_t w);
};

typedef struct softmax_job {
    const softmax *p;
    const char *x;
    char *y;
} softmax_job;

/* Are there loops for rows of double? */
enum { SOFT_LOOPS = LNT_TYPED_TAKES_ONE(LNT_DOUBLE) };

static __attribute__((noinline)) void apply(const softmax *p, lnt_typed_row op, const double *x,
                                            const double *z, bool one, double *y, int64_t n)
{
    p->typed->loop[op][LNT_DOUBLE](&(lnt_typed_args){.out = y, .in = {x, z}, .n = n, .one = one});
}

static void of_one(const softmax *p, lnt_typed_row op, const double *x, double one, double *y)
{
    apply(p, op, x, &one, true, y, p->n);
}

static double sum_exp(const softmax *p, const double *x, double *powers, int64_t n)
{
    double sum;
    apply(p, LNT_TYPED_Exp, x, NULL, false, powers, n);
    p->typed->along[LNT_ALONG_Add][LNT_DOUBLE](&sum, powers, 1, n, 1);
    return sum;
}

static void soft_row(const softmax *p, const double *x, double *y)
{
    double largest, sum = 0, powers[BLOCK];
    p->typed->along[LNT_ALONG_Max][LNT_DOUBLE](&largest, x, 1, p->n, 1);
    of_one(p, LNT_TYPED_Sub, x, largest, y);
    if (p->kind == SOFTMAX) {
        of_one(p, LNT_TYPED_Mul, y, 1 / sum_exp(p, y, y, p->n), y);
        return;
    }
    for (int64_t i = 0; i < p->n; i += BLOCK)
        sum += sum_exp(p, y + i, powers, lnt_least(BLOCK, p->n - i));
    of_one(p, LNT_TYPED_Sub, y, log(sum), y);
}

/* powers = e ** (x - minus), added to total; powers may be NULL. */
static void add_powers(const softmax *p, double *total, const double *x, const double *minus, double *powers,
                       int64_t n)
{
    double buffer[BLOCK], *y = powers ? powers : buffer;
    apply(p, LNT_TYPED_Sub, x, minus, false, y, n);
    apply(p, LNT_TYPED_Exp, y, NULL, false, y, n);
    apply(p, LNT_TYPED_Add, total, y, false, total, n);
}

#include "ops/real_float.h"
#include "ops/rows/softmax.inc.h"
#include "ops/real_double.h"
#include "ops/rows/softmax.inc.h"

/* Short rows, or narrow images of them, as columns [n][inner][images] for so long. */
static void short_rows(const softmax *p, const void *x, void *y, int64_t images)
{
    double turned[ROOM];
    const int64_t line = p->n * p->inner, w = images * p->inner;
    LNT_ASSERT(w <= BLOCK && line * images <= ROOM);
    lnt_turn(turned, images, x, line, images, line, (size_t)p->size);
    p->columns(p, turned, turned, w, w);
    lnt_turn(y, line, turned, images, line, images, (size_t)p->size);
}

/* Few columns, as rows for so long. */
static void narrow_columns(const softmax *p, const char *x, char *y)
{
    double turned[ROOM];
    for (int64_t c = 0, w; c < p->inner; c += w) {
        w = lnt_least(p->inner - c, ROOM / p->n);
        lnt_turn(turned, p->n, x + c * p->size, p->inner, p->n, w, (size_t)p->size);
        p->rows(p, turned, turned, w);
        lnt_turn(y + c * p->size, p->inner, turned, p->n, w, p->n, (size_t)p->size);
    }
}

static lnt_status rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const softmax_job *j = arg;
    const softmax *p = j->p;
    const int64_t line = p->n * p->inner * p->size, at_once = p->transposed ? p->transposed : end - begin;
    (void)k, (void)thread;
    for (int64_t o = begin; o < end; o += at_once)
        (p->transposed ? short_rows : p->rows)(p, j->x + o * line, j->y + o * line,
                                               lnt_least(at_once, end - o));
    return LNT_OK;
}

static lnt_status columns(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const softmax_job *j = arg;
    const softmax *p = j->p;
    const int64_t blocks = (p->inner + BLOCK - 1) / BLOCK;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t column = item % blocks * BLOCK;
        const int64_t at = (item / blocks * p->n * p->inner + column) * p->size;
        if (p->inner < NARROW && p->n > SHORT && p->n <= ROOM)
            narrow_columns(p, j->x + at, j->y + at);
        else
            p->columns(p, j->x + at, j->y + at, p->inner, lnt_least(BLOCK, p->inner - column));
    }
    return LNT_OK;
}

static lnt_status run_softmax(lnt_kernel *k, const lnt_step *s)
{
    const softmax *p = s->params;
    LNT_ASSERT(p->n >= 0 && p->inner > 0);
    softmax_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0)};
    const int64_t blocks = p->inner == 1 ? 1 : (p->inner + BLOCK - 1) / BLOCK;
    const int64_t work = p->n * (p->inner < BLOCK ? p->inner : BLOCK);
    if (p->n == 0)
        return LNT_OK;
    return lnt_parallel(k, p->outer * blocks, 1 + 4096 / work,
                        p->inner == 1 || p->transposed ? rows : columns, &job);
}

/* Of float, or double: what lnt_bind_widened leaves. */
static void choose_type(softmax *p, bool doubles)
{
    const bool hard = p->kind == HARDMAX;
    p->size = doubles ? sizeof(double) : sizeof(float);
    p->rows = doubles ? long_rows_double : long_rows_float;
    p->columns = doubles ? (hard ? hard_columns_double : soft_columns_double)
                         : (hard ? hard_columns_float : soft_columns_float);
}

lnt_status lnt_bind_softmax(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    const uint16_t id = site->node->op->id;
    unsigned axis = 0;
    softmax *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    *p = (softmax){.row = site->kernels->row,
                   .typed = site->kernels->typed,
                   .log = site->kernels->program->instr[LNT_I_LOG],
                   .kind = id == LNT_ID_Softmax      ? SOFTMAX
                           : id == LNT_ID_LogSoftmax ? LOG_SOFTMAX
                                                     : HARDMAX,
                   .outer = 1,
                   .n = 1,
                   .inner = 1};
    if (x->rank > 0)
        LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", -1), x->rank, &axis));
    for (unsigned d = 0; d < x->rank; d++)
        *(d < axis ? &p->outer : d == axis ? &p->n : &p->inner) *= x->dims[d];
    if (p->inner == 0)
        p->n = 0;
    p->logarithms = 1 + lnt_least(LOGARITHMS - 1, AT_HAND / (p->n + 1));
    const bool doubles = lnt_site_real_type(site) == LNT_DOUBLE;
    choose_type(p, doubles);
    const int64_t most = p->kind == HARDMAX ? SHORT_HARD : SOFT_LOOPS && doubles ? SHORT_DOUBLES : SHORT;
    if (p->inner < NARROW && p->n > 0 && p->n <= most && p->outer * p->inner >= TRANSPOSED)
        p->transposed = lnt_least(TRANSPOSED, lnt_least(BLOCK, ROOM / p->n) / p->inner);
    site->step->run = run_softmax;
    lnt_bind_in_place(site, 0, 0);
    return lnt_bind_widened(site, 1, 1);
}
