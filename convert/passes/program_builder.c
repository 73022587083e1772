/* program_builder.c — see program_builder.h.
 *
 * Virtual registers: 0 is the tile, 1 + i operand i, FIRST_RESULT + k what instruction k writes. */
#include "convert/passes/program_builder.h"

#include <string.h>

enum {
    FIRST_RESULT = 1 + LNT_PROGRAM_MAX_IN,
    N_VIRTUAL = FIRST_RESULT + LNT_PROGRAM_MAX_INSTR,
    MAX_NODE_IN = 16
};

static unsigned sources_of(const lnt_instr *instr)
{
    switch (instr->op) {
#define INSTR(number, name, sources, result, text)                                                           \
    case number:                                                                                             \
        return sizeof(sources) - 1;
#include "ops/elementwise/program_list.h"
#undef INSTR
    default: return 0;
    }
}

void lnt_builder_begin(lnt_builder *b, uint32_t tile)
{
    *b = (lnt_builder){.tile = tile};
}

/* Register of a value; -1 if there is no room for another operand. */
static int register_of(lnt_builder *b, uint32_t value)
{
    if (value == b->tile && value != LNT_NONE)
        return 0;
    for (unsigned i = 0; i < b->n_results; i++)
        if (b->result[i] == value)
            return b->result_reg[i];
    for (unsigned i = 0; i < b->n_operands; i++)
        if (b->operand[i] == value)
            return (int)(1 + i);
    if (b->n_operands == LNT_PROGRAM_MAX_IN)
        return -1;
    b->operand[b->n_operands++] = value;
    return (int)b->n_operands;
}

/* Translates one instruction of a node; temp[t] is the register that holds temporary t. */
static bool add_instr(lnt_builder *b, const lnt_gnode *n, const lnt_instr *from, uint8_t *temp)
{
    if (b->n_instr == LNT_PROGRAM_MAX_INSTR || from->dst < LNT_NODE_TEMP)
        return false;
    lnt_instr to = *from;
    for (unsigned i = 0; i < sources_of(from); i++) {
        const int reg = from->src[i] >= LNT_NODE_TEMP ? temp[from->src[i] - LNT_NODE_TEMP]
                                                      : register_of(b, n->in[from->src[i]]);
        if (reg < 0)
            return false;
        to.src[i] = (uint8_t)reg;
    }
    to.dst = temp[from->dst - LNT_NODE_TEMP] = (uint8_t)(FIRST_RESULT + b->n_instr);
    b->instr[b->n_instr++] = to;
    return true;
}

bool lnt_builder_add(lnt_builder *b, const lnt_graph *g, const lnt_gnode *n)
{
    const lnt_operand *in[MAX_NODE_IN];
    lnt_node_instrs code;
    lnt_node view;
    uint8_t temp[256 - LNT_NODE_TEMP];
    if (!(n->op->flags & LNT_OP_ELEMENTWISE) || n->n_in > MAX_NODE_IN ||
        b->n_results == LNT_PROGRAM_MAX_INSTR)
        return false;
    for (unsigned i = 0; i < n->n_in; i++)
        in[i] = lnt_ginfo(g, n->in[i]);
    lnt_gnode_view(n, &view);
    if (!lnt_node_instrs_of(&view, in, lnt_ginfo(g, n->out[0]), &code) || code.n == 0)
        return false;
    for (unsigned i = 0; i < code.n; i++)
        if (!add_instr(b, n, &code.instr[i], temp))
            return false;
    b->result[b->n_results] = n->out[0];
    b->result_reg[b->n_results++] = b->instr[b->n_instr - 1].dst;
    return true;
}

/* ---- real registers ---- */

typedef struct allocation {
    int last_use[N_VIRTUAL];
    uint8_t real[N_VIRTUAL];
    bool taken[LNT_PROGRAM_MAX_REGS];
    unsigned n_regs;
} allocation;

static bool take_register(allocation *a, unsigned virtual)
{
    unsigned r = 0;
    while (r < LNT_PROGRAM_MAX_REGS && a->taken[r])
        r++;
    if (r == LNT_PROGRAM_MAX_REGS)
        return false;
    a->taken[r] = true;
    a->real[virtual] = (uint8_t)r;
    a->n_regs = r >= a->n_regs ? r + 1 : a->n_regs;
    return true;
}

static int result_register(const lnt_builder *b, uint32_t value)
{
    for (unsigned i = 0; i < b->n_results; i++)
        if (b->result[i] == value)
            return b->result_reg[i];
    return 0;
}

/* Operands come first and keep their registers; a result's is free again after its last reader. */
static bool allocate(const lnt_builder *b, allocation *a, lnt_instr *instr)
{
    if (b->tile != LNT_NONE && !take_register(a, 0))
        return false;
    for (unsigned i = 0; i < b->n_operands; i++)
        if (!take_register(a, 1 + i))
            return false;
    for (unsigned k = 0; k < b->n_instr; k++) {
        instr[k] = b->instr[k];
        for (unsigned i = 0; i < sources_of(&instr[k]); i++) {
            const unsigned v = b->instr[k].src[i];
            instr[k].src[i] = a->real[v];
            if (v >= FIRST_RESULT && a->last_use[v] == (int)k)
                a->taken[a->real[v]] = false;
        }
        if (!take_register(a, b->instr[k].dst))
            return false;
        instr[k].dst = a->real[b->instr[k].dst];
    }
    return true;
}

lnt_program *lnt_builder_finish(const lnt_builder *b, lnt_graph *g, const uint32_t *out, unsigned n_out)
{
    allocation a = {.n_regs = 0};
    lnt_program *p = lnt_bump_alloc(&g->memory, sizeof *p, g->err);
    lnt_instr *instr = lnt_bump_alloc(&g->memory, b->n_instr * sizeof *instr, g->err);
    if (!p || !instr)
        return NULL;
    for (unsigned k = 0; k < b->n_instr; k++)
        for (unsigned i = 0; i < sources_of(&b->instr[k]); i++)
            a.last_use[b->instr[k].src[i]] = (int)k;
    for (unsigned i = 0; i < n_out; i++)
        a.last_use[result_register(b, out[i])] = LNT_PROGRAM_MAX_INSTR;
    if (!allocate(b, &a, instr))
        return NULL;
    *p = (lnt_program){.instr = instr,
                       .n_instr = (uint16_t)b->n_instr,
                       .n_in = (uint8_t)b->n_operands,
                       .n_out = (uint8_t)n_out,
                       .n_regs = (uint8_t)a.n_regs,
                       .epilogue = b->tile != LNT_NONE};
    for (unsigned i = 0; i < n_out; i++)
        p->out[i] = a.real[result_register(b, out[i])];
    return p;
}
