/* half_step.c — steps that compute with halves, and convert what is float. */
#include "ops/gemm/half_step.h"

#include "base/lnt_assert.h"
#include "ops/cells.h"
#include "ops/product.h"

#include <string.h>

bool lnt_has_half_weights(const lnt_site *site, unsigned weights)
{
    const lnt_operand *x = lnt_input(site, 0), *w = lnt_input(site, weights);
    return LNT_HAS_HALVES && site->kernels->half->gemm &&
           (x->dtype == LNT_FLOAT || x->dtype == LNT_FLOAT16) && lnt_multiplies_halves(site->node->op, w);
}

enum { OPERANDS_MAX = 32 };

/* A kernel of halves with operands that are float. */
typedef struct mixed {
    lnt_run_fn run;     /* the kernel */
    const void *params; /* its parameters */
    const lnt_cells *cells;
    uint32_t inputs; /* bit i: input i is converted */
    bool output;
    size_t at[OPERANDS_MAX + 1]; /* bytes into the scratch memory: of inputs, then of output 0 */
} mixed;

typedef struct conversion {
    const lnt_cells *cells;
    float *floats;
    uint16_t *halves;
} conversion;

enum { GRAIN = 16384 };

static lnt_status narrow(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const conversion *c = arg;
    (void)k, (void)thread;
    c->cells->store[LNT_CELL_F16](c->floats + begin, c->halves + begin, 1, end - begin);
    return LNT_OK;
}

static lnt_status widen(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const conversion *c = arg;
    (void)k, (void)thread;
    c->cells->load[LNT_CELL_F16](c->floats + begin, c->halves + begin, 1, end - begin);
    return LNT_OK;
}

/* The operand as halves in scratch memory. */
static lnt_operand in_scratch(const lnt_operand *o, const lnt_step *s, size_t at)
{
    lnt_operand copy = *o;
    copy.dtype = LNT_FLOAT16;
    copy.storage = s->scratch_slot;
    copy.offset = at;
    return copy;
}

static lnt_status run_mixed(lnt_kernel *k, const lnt_step *s)
{
    LNT_ASSERT(s->n_in <= OPERANDS_MAX && s->n_out == 1);
    const mixed *p = s->params;
    char *scratch = lnt_scratch(k, s);
    lnt_operand copy[OPERANDS_MAX], result, *in[OPERANDS_MAX], *out[1] = {s->out[0]};
    for (unsigned i = 0; i < s->n_in; i++) {
        in[i] = s->in[i];
        if (!(p->inputs >> i & 1))
            continue;
        copy[i] = in_scratch(s->in[i], s, p->at[i]);
        in[i] = &copy[i];
        conversion c = {p->cells, (float *)(uintptr_t)lnt_in(k, s, i),
                        (uint16_t *)(void *)(scratch + p->at[i])};
        LNT_TRY(lnt_parallel(k, lnt_operand_count(in[i]), GRAIN, narrow, &c));
    }
    if (p->output) {
        result = in_scratch(s->out[0], s, p->at[OPERANDS_MAX]);
        out[0] = &result;
    }
    lnt_step inner = *s;
    inner.run = p->run;
    inner.params = p->params;
    inner.in = in;
    inner.out = out;
    LNT_TRY(p->run(k, &inner));
    if (!p->output)
        return LNT_OK;
    conversion c = {p->cells, lnt_out(k, s, 0), (uint16_t *)(void *)(scratch + p->at[OPERANDS_MAX])};
    return lnt_parallel(k, lnt_operand_count(s->out[0]), GRAIN, widen, &c);
}

/* ---- bind ---- */

static lnt_status reserve(lnt_site *site, const lnt_operand *o, size_t *total, size_t *at)
{
    if (!lnt_reserve(total, lnt_operand_count(o), sizeof(uint16_t), at))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "an operand is too large");
    return LNT_OK;
}

/* Has the step, which is bound as if all of its operands were halves, convert those that are not. */
static lnt_status bind_conversions(lnt_site *site, uint32_t inputs, bool output)
{
    lnt_step *step = site->step;
    size_t total = lnt_round_up(step->scratch_bytes, LNT_ALIGN);
    const mixed plan = {step->run, step->params, site->kernels->cells, inputs, output, {0}};
    mixed *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    *p = plan;
    for (unsigned i = 0; i < site->n_in; i++)
        if (inputs >> i & 1)
            LNT_TRY(reserve(site, site->in[i], &total, &p->at[i]));
    if (output) {
        LNT_TRY(reserve(site, site->out[0], &total, &p->at[OPERANDS_MAX]));
        step->in_place = 0;
        step->pitched = false;
    }
    step->run = run_mixed;
    step->params = p;
    step->in_place &= ~inputs;
    step->pitched_in &= ~inputs;
    step->produce_lines = NULL;
    lnt_bind_scratch(site, total ? total : LNT_ALIGN); /* operands without elements need a slot, too */
    return LNT_OK;
}

lnt_status lnt_bind_half(lnt_site *site, uint32_t inputs, lnt_bind_fn bind)
{
    LNT_ASSERT(site->n_in <= OPERANDS_MAX && site->n_out == 1); /* own ones and a program's, which has 16 */
    lnt_operand *const *given_in = site->in, *const *given_out = site->out;
    const lnt_step *producer = site->producer;
    lnt_operand **in = lnt_bump_alloc(site->memory, (site->n_in + 1) * sizeof *in, site->err);
    lnt_operand *copy = lnt_bump_alloc(site->memory, (site->n_in + 1) * sizeof *copy, site->err);
    if (!in || !copy)
        return LNT_E_MEMORY;
    uint32_t converted = 0;
    memcpy(in, site->in, site->n_in * sizeof *in);
    for (unsigned i = 0; i < site->n_in; i++)
        if (inputs >> i & 1 && in[i] && in[i]->dtype == LNT_FLOAT) {
            converted |= 1u << i;
            copy[i] = *in[i];
            copy[i].dtype = LNT_FLOAT16;
            in[i] = &copy[i];
        }
    const bool output = site->out[0]->dtype == LNT_FLOAT;
    copy[site->n_in] = *site->out[0];
    copy[site->n_in].dtype = LNT_FLOAT16;
    in[site->n_in] = &copy[site->n_in];
    site->in = in;
    site->out = in + site->n_in;
    site->producer = converted & 1 ? NULL : producer;
    site->half = true;
    const lnt_status status = bind(site);
    site->half = false;
    site->in = given_in;
    site->out = given_out;
    site->producer = producer;
    return status == LNT_OK && (converted || output) ? bind_conversions(site, converted, output) : status;
}
