/* gemm_store.c — recognizes bias, residual and clamp in an epilogue program. */
#include "ops/gemm/gemm_store.h"

#include "base/lnt_assert.h"
#include "ops/elementwise/program.h"

#include <math.h>
#include <string.h>

static lnt_dtype tile_type(const lnt_site *site)
{
    return site->half ? LNT_FLOAT16 : LNT_FLOAT;
}

/* Do all extents but column_axis broadcast, and that one not? */
static bool is_per_column(const lnt_operand *o, const lnt_operand *out, unsigned column_axis)
{
    const unsigned missing = out->rank - o->rank;
    if (o->dtype != LNT_FLOAT || o->rank > out->rank || column_axis < missing)
        return false;
    for (unsigned i = 0; i < o->rank; i++)
        if (o->dims[i] != (i + missing == column_axis ? out->dims[column_axis] : 1))
            return false;
    return true;
}

/* Are its elements those that the tile is made of, in the output's order? */
static bool lies_like(const lnt_site *site, const lnt_operand *o, const lnt_operand *out)
{
    return o->dtype == tile_type(site) && o->rank == out->rank && o->order == out->order &&
           memcmp(o->dims, out->dims, out->rank * sizeof *out->dims) == 0;
}

/* One more clamp behind those already there. */
static void clamp(lnt_store *s, float low, float high)
{
    s->low = fminf(fmaxf(s->low, low), high);
    s->high = fminf(fmaxf(s->high, low), high);
}

/* Takes one instruction into the store; false if it does not fit. value is the register of the tile. */
static bool take(const lnt_site *site, const lnt_instr *instr, unsigned value, unsigned column_axis,
                 bool residual_fits, lnt_store *s)
{
    const bool clamped = s->low != -INFINITY || s->high != INFINITY;
    if (instr->op == LNT_I_RELU && instr->src[0] == value) {
        clamp(s, 0.0f, INFINITY);
        return true;
    }
    if (instr->op == LNT_I_CLIP && instr->src[0] == value && instr->imm[0] <= instr->imm[1]) {
        clamp(s, instr->imm[0], instr->imm[1]);
        return true;
    }
    const unsigned a = instr->src[0], b = instr->src[1], other = a == value ? b : a;
    if (instr->op != LNT_I_ADD || clamped || (a != value && b != value) || other == value || other == 0 ||
        other > site->node->program->n_in)
        return false;
    const unsigned input = lnt_own_inputs(site) + other - 1;
    const lnt_operand *o = site->in[input], *out = site->out[0];
    if (s->bias < 0 && s->residual < 0 && is_per_column(o, out, column_axis))
        s->bias = (int)input;
    else if (residual_fits && s->residual < 0 && lies_like(site, o, out))
        s->residual = (int)input;
    else
        return false;
    return true;
}

/* Registers of operands may be written over: then the program is left to its executor. */
static bool overwrites_operand(const lnt_program *p)
{
    for (unsigned i = 0; i < p->n_instr; i++)
        if (p->instr[i].dst != 0 && p->instr[i].dst <= p->n_in)
            return true;
    return false;
}

lnt_status lnt_bind_store(lnt_site *site, unsigned column_axis, int own_bias, bool residual_fits,
                          lnt_store *out)
{
    LNT_ASSERT(site->node->n_program_in <= site->n_in);
    LNT_ASSERT(own_bias < (int)lnt_own_inputs(site));
    const lnt_program *p = site->node->program;
    const lnt_store plain = {.bias = own_bias, .residual = -1, .low = -INFINITY, .high = INFINITY};
    *out = plain;
    if (!p)
        return LNT_OK;
    unsigned value = 0;
    bool fits = site->out[0]->dtype == tile_type(site) && !overwrites_operand(p);
    for (unsigned i = 0; fits && i < p->n_instr; i++) {
        fits = take(site, &p->instr[i], value, column_axis, residual_fits, out);
        value = p->instr[i].dst;
    }
    if (fits && p->out[0] == value)
        return LNT_OK;
    *out = plain;
    return lnt_bind_epilogue(site, &out->program);
}
