/* widen.c — a step that converts its operands, runs a float or double kernel and rounds the results. */
#include "ops/widen.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/cells.h"
#include "ops/element.h"
#include "ops/kernels.h"

#include <math.h>

typedef struct widened {
    lnt_run_fn run;     /* the kernel within */
    const void *params; /* its parameters */
    const lnt_cells *cells;
    lnt_dtype type;     /* float or double */
    bool in[LNT_WIDEN_MAX], out[LNT_WIDEN_MAX];
    size_t in_at[LNT_WIDEN_MAX], out_at[LNT_WIDEN_MAX]; /* bytes into the scratch memory */
} widened;

/* What a worker converts. */
typedef struct conversion {
    const lnt_cells *cells;
    lnt_dtype stored, real;
    void *plain, *wide;
} conversion;

enum { GRAIN = 16384 };

static lnt_status convert_in(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const conversion *c = arg;
    (void)k, (void)thread;
    const void *src = lnt_element_at(c->plain, c->stored, begin);
    if (c->real == LNT_FLOAT)
        lnt_cells_to_float(c->cells, c->stored, src, (float *)c->wide + begin, end - begin);
    else
        lnt_elements_to_double(c->stored, src, (double *)c->wide + begin, end - begin);
    return LNT_OK;
}

/* Integers are rounded half to even, not truncated. */
static void round_all(const conversion *c, int64_t begin, int64_t end)
{
    if (c->real == LNT_FLOAT && lnt_dtype_size(c->stored) <= sizeof(int16_t))
        lnt_cells_round((float *)c->wide + begin, end - begin);
    else if (c->real == LNT_FLOAT)
        for (int64_t i = begin; i < end; i++)
            ((float *)c->wide)[i] = rintf(((float *)c->wide)[i]);
    else
        for (int64_t i = begin; i < end; i++)
            ((double *)c->wide)[i] = rint(((double *)c->wide)[i]);
}

static lnt_status convert_out(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const conversion *c = arg;
    (void)k, (void)thread;
    void *dst = lnt_element_at(c->plain, c->stored, begin);
    if (lnt_is_integer(c->stored))
        round_all(c, begin, end);
    if (c->real == LNT_FLOAT)
        lnt_cells_from_float(c->cells, c->stored, (const float *)c->wide + begin, dst, end - begin);
    else
        lnt_elements_from_double(c->stored, (const double *)c->wide + begin, dst, end - begin);
    return LNT_OK;
}

static void place_in_scratch(lnt_operand *o, lnt_operand *copy, const lnt_step *s, const widened *p,
                             size_t at)
{
    *copy = *o;
    copy->dtype = (uint8_t)p->type;
    copy->storage = s->scratch_slot;
    copy->offset = at;
}

static lnt_status run_widened(lnt_kernel *k, const lnt_step *s)
{
    LNT_ASSERT(s->n_in <= LNT_WIDEN_MAX && s->n_out <= LNT_WIDEN_MAX);
    const widened *p = s->params;
    lnt_operand copies[2][LNT_WIDEN_MAX];
    lnt_operand *in[LNT_WIDEN_MAX], *out[LNT_WIDEN_MAX];
    char *scratch = lnt_scratch(k, s);
    for (unsigned i = 0; i < s->n_in; i++) {
        in[i] = s->in[i];
        if (!p->in[i])
            continue;
        place_in_scratch(s->in[i], in[i] = &copies[0][i], s, p, p->in_at[i]);
        conversion c = {p->cells, s->in[i]->dtype, p->type, (void *)(uintptr_t)lnt_in(k, s, i), scratch + p->in_at[i]};
        LNT_TRY(lnt_parallel(k, lnt_operand_count(in[i]), GRAIN, convert_in, &c));
    }
    for (unsigned i = 0; i < s->n_out; i++) {
        out[i] = s->out[i];
        if (p->out[i])
            place_in_scratch(s->out[i], out[i] = &copies[1][i], s, p, p->out_at[i]);
    }
    lnt_step inner = *s;
    inner.run = p->run;
    inner.params = p->params;
    inner.in = in;
    inner.out = out;
    LNT_TRY(p->run(k, &inner));
    for (unsigned i = 0; i < s->n_out; i++) {
        if (!p->out[i])
            continue;
        conversion c = {p->cells, s->out[i]->dtype, p->type, lnt_out(k, s, i), scratch + p->out_at[i]};
        LNT_TRY(lnt_parallel(k, lnt_operand_count(out[i]), GRAIN, convert_out, &c));
    }
    return LNT_OK;
}

/* Room for a converted operand at the end of the scratch memory. */
static lnt_status reserve(lnt_site *site, const lnt_operand *o, lnt_dtype type, size_t *total, size_t *at)
{
    if (!lnt_is_floating(o->dtype) && !lnt_is_integer(o->dtype) && o->dtype != LNT_BOOL)
        return lnt_bind_unsupported_type(site, o->dtype);
    if (!lnt_reserve(total, lnt_operand_count(o), lnt_dtype_size(type), at))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "an operand is too large");
    return LNT_OK;
}

lnt_dtype lnt_site_real_type(const lnt_site *site)
{
    return lnt_real_type(site->in[0]->dtype);
}

/* Whether operand i, named in mask, has to be converted. */
static bool wants(const lnt_operand *o, unsigned i, uint32_t mask, lnt_dtype type)
{
    return o && (mask >> i & 1u) && o->dtype != type;
}

lnt_status lnt_bind_widened(lnt_site *site, uint32_t inputs, uint32_t outputs)
{
    const lnt_dtype type = lnt_site_real_type(site);
    widened plan = {site->step->run, site->step->params, site->kernels->cells, type, {0}, {0}, {0}, {0}};
    size_t total = lnt_round_up(site->step->scratch_bytes, LNT_ALIGN);
    bool any = false;
    LNT_REQUIRE(site->n_in <= LNT_WIDEN_MAX && site->n_out <= LNT_WIDEN_MAX, site->err, LNT_E_LIMIT,
                "too many operands");
    for (unsigned i = 0; i < site->n_in; i++)
        if ((plan.in[i] = wants(site->in[i], i, inputs, type)) && (any = true))
            LNT_TRY(reserve(site, site->in[i], type, &total, &plan.in_at[i]));
    for (unsigned i = 0; i < site->n_out; i++)
        if ((plan.out[i] = wants(site->out[i], i, outputs, type)) && (any = true))
            LNT_TRY(reserve(site, site->out[i], type, &total, &plan.out_at[i]));
    if (!any)
        return LNT_OK;
    widened *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    *p = plan;
    site->step->run = run_widened;
    site->step->pitched = false;
    site->step->pitched_in = 0;
    site->step->n_append = 0;
    lnt_bind_scratch(site, total ? total : LNT_ALIGN); /* operands without elements need a slot, too */
    return LNT_OK;
}
