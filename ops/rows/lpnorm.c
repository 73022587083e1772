/* lpnorm.c — LpNormalization, MeanVarianceNormalization and LRN. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/axes.h"
#include "ops/copy.h"
#include "ops/elementwise/program_kernels.h"
#include "ops/rows/row.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 256, /* columns worked on at a time */
    SHORT = 16,  /* LpNormalization's rows that are no longer are turned to columns, */
    TURNED = 64, /* at most so many at a time, */
    NARROW = 16  /* and images of fewer columns */
};

typedef struct lpnorm lpnorm;

struct lpnorm {
    const lnt_row_kernels *row;
    lnt_turn_fn turn;
    lnt_instr_fn pow;         /* LRN of floats */
    int64_t outer, n, inner;  /* extents before, along and behind the axis */
    int64_t order;            /* 1 or 2, of the norm */
    int64_t together;         /* LpNormalization: positions before the axis that are taken at once */
    int64_t size;             /* LRN: channels that count */
    double alpha, beta, bias; /* LRN */
    lnt_axes kept, reduced;   /* MeanVarianceNormalization, n elements reduced, */
    int64_t run;              /* of which so many are contiguous; `reduced` is without their axes */
    int64_t element;          /* LpNormalization: bytes of one; a row, */
    void (*row_of)(const lpnorm *p, const void *x, void *y);
    /* and w columns of n rows, `step` elements apart */
    void (*columns)(const lpnorm *p, const void *x, void *y, int64_t step, int64_t w);
};

typedef struct lpnorm_job {
    const lpnorm *p;
    const void *x;
    void *y;
} lpnorm_job;

/* x ** exponent, element by element, for n <= BLOCK of them; elements behind them may change, up to BLOCK. */
static void raise_float(const lpnorm *p, float *x, int64_t n, double exponent)
{
    float vector[LNT_VECTOR_MAX];
    for (unsigned i = 0; i < LNT_VECTOR_MAX; i++)
        vector[i] = (float)exponent;
    p->pow(&(lnt_instr_args){.dst = x,
                             .src = {x, vector},
                             .step = {1, 0},
                             .imm = vector,
                             .n = (int64_t)lnt_round_up((size_t)n, LNT_VECTOR_MAX)});
}

static void raise_double(const lpnorm *p, double *x, int64_t n, double exponent)
{
    (void)p;
    for (int64_t i = 0; i < n; i++)
        x[i] = pow(x[i], exponent);
}

#include "ops/real_float.h"
#include "ops/rows/lpnorm.inc.h"
#include "ops/real_double.h"
#include "ops/rows/lpnorm.inc.h"

/* Short rows, or narrow images of them, as columns [n][inner][images] for so long: where vectors are long, and a
 * library has room. */
static void lp_short_rows(const lpnorm *p, const char *x, char *y, int64_t images)
{
    double turned[SHORT * BLOCK];
    const int64_t line = p->n * p->inner, w = images * p->inner;
    LNT_ASSERT(w <= BLOCK && p->n <= SHORT);
    lnt_turn_by(p->turn, turned, images, x, line, images, line, (size_t)p->element);
    p->columns(p, turned, turned, w, w);
    lnt_turn_by(p->turn, y, line, turned, images, line, images, (size_t)p->element);
}

static lnt_status lp(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lpnorm_job *j = arg;
    const lpnorm *p = j->p;
    const int64_t blocks = (p->inner + BLOCK - 1) / BLOCK;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item / blocks * p->together, column = item % blocks * BLOCK;
        const int64_t at = (row * p->n * p->inner + column) * p->element;
        const char *x = (const char *)j->x + at;
        char *y = (char *)j->y + at;
        if (LNT_LONG_VECTORS && p->together > 1)
            lp_short_rows(p, x, y, lnt_least(p->together, p->outer - row));
        else if (p->inner == 1)
            p->row_of(p, x, y);
        else
            p->columns(p, x, y, p->inner, lnt_least(BLOCK, p->inner - column));
    }
    return LNT_OK;
}

static lnt_status run_lpnorm(lnt_kernel *k, const lnt_step *s)
{
    LNT_ASSERT(s->in[0]->dtype == LNT_DOUBLE || s->in[0]->dtype == LNT_FLOAT);
    const lpnorm *p = s->params;
    lpnorm_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0)};
    const int64_t blocks = (p->inner + BLOCK - 1) / BLOCK;
    return lnt_parallel(k, (p->outer + p->together - 1) / p->together * blocks,
                        1 + 8192 / (p->n * p->together + 1), lp, &job);
}

static lnt_status run_lrn(lnt_kernel *k, const lnt_step *s)
{
    const lpnorm *p = s->params;
    lpnorm_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0)};
    const int64_t blocks = (p->n * p->inner + BLOCK - 1) / BLOCK;
    return lnt_parallel(k, p->outer * blocks, 1, s->in[0]->dtype == LNT_DOUBLE ? lrn_double : lrn_float,
                        &job);
}

static lnt_status run_mvn(lnt_kernel *k, const lnt_step *s)
{
    const lpnorm *p = s->params;
    lpnorm_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0)};
    return lnt_parallel(k, p->outer, 1, s->in[0]->dtype == LNT_DOUBLE ? mvn_double : mvn_float, &job);
}

/* Splits the input's extents at axis. */
static lpnorm *bind_axis(lnt_site *site, int64_t wanted)
{
    const lnt_operand *x = site->in[0];
    unsigned axis;
    lpnorm *p = lnt_bind_params(site, sizeof *p);
    if (!p || lnt_axis(site, wanted, x->rank, &axis) != LNT_OK)
        return NULL;
    p->row = site->kernels->row;
    p->turn = site->kernels->turn;
    p->outer = p->n = p->inner = 1;
    for (unsigned d = 0; d < x->rank; d++)
        *(d < axis ? &p->outer : d == axis ? &p->n : &p->inner) *= x->dims[d];
    return p;
}

lnt_status lnt_bind_lpnorm(lnt_site *site)
{
    lpnorm *p = bind_axis(site, lnt_attr_i(site->node, "axis", -1));
    if (!p)
        return site->err->code;
    p->order = lnt_attr_i(site->node, "p", 2);
    LNT_REQUIRE(p->order == 1 || p->order == 2, site->err, LNT_E_ARGUMENT, "p must be 1 or 2, is %lld",
                (long long)p->order);
    if (p->n == 1) { /* rows of one element are one of columns */
        p->inner *= p->outer;
        p->outer = 1;
    }
    p->together = LNT_LONG_VECTORS && p->inner > 0 && p->inner < NARROW && p->n > 0 && p->n <= SHORT
                      ? lnt_least(TURNED, BLOCK / p->inner)
                      : 1;
    const bool doubles = lnt_site_real_type(site) == LNT_DOUBLE;
    p->element = doubles ? sizeof(double) : sizeof(float);
    p->row_of = doubles ? lp_row_double : lp_row_float;
    p->columns = doubles ? lp_columns_double : lp_columns_float;
    site->step->run = run_lpnorm;
    lnt_bind_in_place(site, 0, 0);
    return lnt_bind_widened(site, 1, 1);
}

lnt_status lnt_bind_lrn(lnt_site *site)
{
    lpnorm *p = bind_axis(site, 1);
    if (!p)
        return site->err->code;
    p->pow = site->kernels->program->instr[LNT_I_POW];
    p->size = lnt_attr_i(site->node, "size", 0);
    p->alpha = (double)lnt_attr_f(site->node, "alpha", 1e-4f);
    p->beta = (double)lnt_attr_f(site->node, "beta", 0.75f);
    p->bias = (double)lnt_attr_f(site->node, "bias", 1);
    LNT_REQUIRE(p->size > 0, site->err, LNT_E_ARGUMENT, "size must be positive, is %lld", (long long)p->size);
    site->step->run = run_lrn;
    return lnt_bind_widened(site, 1, 1);
}

lnt_status lnt_bind_mvn(lnt_site *site)
{
    static const int64_t otherwise[] = {0, 2, 3};
    const lnt_operand *x = site->in[0];
    const lnt_attr *a = lnt_attr_of(site->node, "axes", LNT_ATTR_INTS);
    const int64_t *list = a ? a->i : otherwise;
    uint32_t mask = 0;
    int64_t stride = lnt_operand_count(x);
    lpnorm *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < (a ? a->count : 3); i++) {
        unsigned axis;
        LNT_TRY(lnt_axis(site, list[i], x->rank, &axis));
        mask |= 1u << axis;
    }
    p->row = site->kernels->row;
    for (unsigned d = 0; d < x->rank; d++) {
        lnt_axes *to = mask >> d & 1u ? &p->reduced : &p->kept;
        stride = x->dims[d] ? stride / x->dims[d] : 0;
        lnt_axes_push(to, x->dims[d], stride);
    }
    p->outer = lnt_axes_items(&p->kept);
    p->n = lnt_axes_items(&p->reduced);
    p->run = 1;
    for (; p->reduced.n > 0 && p->reduced.stride[p->reduced.n - 1] == p->run; p->reduced.n--)
        p->run *= p->reduced.extent[p->reduced.n - 1];
    site->step->run = run_mvn;
    lnt_bind_in_place(site, 0, 0);
    return lnt_bind_widened(site, 1, 1);
}
