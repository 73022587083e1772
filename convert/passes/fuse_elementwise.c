/* fuse_elementwise.c — chains and webs of elementwise nodes with results of the same extents become one
 * linnet.Elementwise node, which reads each operand and writes each result once.
 *
 * Nodes are visited in running order. A group is open while nobody outside has read its values: then it may
 * still move down to the place of the node that joins it, and two open groups may become one. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"
#include "convert/passes/program_builder.h"

#include <string.h>

enum { NO_GROUP = -1 };

typedef struct group {
    lnt_gnode *member[LNT_PROGRAM_MAX_INSTR];
    unsigned n;
    bool open;
} group;

typedef struct fuser {
    lnt_edit e;
    int *of;        /* per value: the group that computes it */
    uint32_t *like; /* per value: a value of the same extents, the same for all that are alike */
    group *list;
    size_t n_groups, capacity;
    size_t n_closed; /* groups that are closed for certain, the first ones */
} fuser;

/* ---- which values have the same extents ---- */

/* The only input of an elementwise node that is not a single element; LNT_NONE if there are several. */
static uint32_t main_input(const fuser *f, const lnt_gnode *n)
{
    uint32_t found = LNT_NONE;
    for (unsigned i = 0; i < n->n_in; i++) {
        if (n->in[i] == LNT_NONE || lnt_operand_count(lnt_ginfo(f->e.g, n->in[i])) == 1)
            continue;
        if (found != LNT_NONE && f->like[found] != f->like[n->in[i]])
            return LNT_NONE;
        found = n->in[i];
    }
    return found;
}

static bool alike(const fuser *f, uint32_t a, uint32_t b)
{
    return f->like[a] == f->like[b] || lnt_same_dims(lnt_ginfo(f->e.g, a), lnt_ginfo(f->e.g, b));
}

static void find_likeness(fuser *f, const lnt_gnode *n)
{
    const uint32_t x = main_input(f, n);
    const lnt_operand *info = x == LNT_NONE ? NULL : lnt_ginfo(f->e.g, x);
    if (info && info->rank != LNT_RANK_UNKNOWN && info->rank == lnt_ginfo(f->e.g, n->out[0])->rank)
        f->like[n->out[0]] = f->like[x];
}

/* ---- groups ---- */

/* Reads of the value by members of the group. */
static unsigned uses_inside(const group *p, uint32_t value)
{
    unsigned uses = 0;
    for (unsigned i = 0; i < p->n; i++)
        for (unsigned k = 0; k < p->member[i]->n_in; k++)
            uses += p->member[i]->in[k] == value;
    return uses;
}

/* Values somebody outside wants, at most LNT_PROGRAM_MAX_OUT; *n becomes their number or one more. */
static void outputs_of(fuser *f, const group *p, uint32_t *out, unsigned *n)
{
    *n = 0;
    for (unsigned i = 0; i < p->n; i++) {
        const uint32_t v = p->member[i]->out[0];
        if (!lnt_edit_pinned(&f->e, v) && lnt_edit_uses(&f->e, v) == uses_inside(p, v))
            continue;
        if (*n < LNT_PROGRAM_MAX_OUT)
            out[*n] = v;
        if (++*n > LNT_PROGRAM_MAX_OUT)
            return;
    }
}

/* The results take their rank from the operands: constants that became immediates no longer lend theirs. */
static bool build(const fuser *f, const group *p, lnt_builder *b)
{
    const lnt_graph *g = f->e.g;
    unsigned rank = 0;
    lnt_builder_begin(b, LNT_NONE);
    for (unsigned i = 0; i < p->n; i++)
        if (!lnt_builder_add(b, g, p->member[i]))
            return false;
    for (unsigned i = 0; i < b->n_operands; i++)
        if (lnt_ginfo(g, b->operand[i])->rank > rank)
            rank = lnt_ginfo(g, b->operand[i])->rank;
    return rank == lnt_ginfo(g, p->member[0]->out[0])->rank;
}

/* Masks aside, all results of a program have one type. */
static bool one_type(const lnt_graph *g, const uint32_t *out, unsigned n_out, lnt_dtype *type)
{
    *type = LNT_BOOL;
    for (unsigned i = 0; i < n_out; i++) {
        const lnt_dtype t = (lnt_dtype)lnt_ginfo(g, out[i])->dtype;
        if (t != LNT_BOOL && *type != LNT_BOOL && t != *type)
            return false;
        *type = t == LNT_BOOL ? *type : t;
    }
    return true;
}

static bool possible(fuser *f, const group *p)
{
    lnt_builder b;
    uint32_t out[LNT_PROGRAM_MAX_OUT];
    unsigned n_out;
    lnt_dtype type;
    outputs_of(f, p, out, &n_out);
    return n_out <= LNT_PROGRAM_MAX_OUT && one_type(f->e.g, out, n_out, &type) && build(f, p, &b);
}

static bool append(group *p, lnt_gnode *const *nodes, unsigned n)
{
    if (p->n + n > LNT_PROGRAM_MAX_INSTR)
        return false;
    memcpy(p->member + p->n, nodes, n * sizeof *nodes);
    p->n += n;
    return true;
}

/* Lets n join the groups of its inputs, as many as go together. */
static int join(fuser *f, lnt_gnode *n)
{
    group joined = {.n = 0};
    int number = NO_GROUP;
    for (unsigned i = 0; i < n->n_in; i++) {
        const int at = n->in[i] == LNT_NONE ? NO_GROUP : f->of[n->in[i]];
        if (at == NO_GROUP || at == number || !f->list[at].open || !alike(f, n->in[i], n->out[0]))
            continue;
        group candidate = joined;
        if (joined.n)
            candidate.n--; /* n goes last */
        const group *other = &f->list[at];
        if (!append(&candidate, other->member, other->n) || !append(&candidate, &n, 1) ||
            !possible(f, &candidate))
            continue;
        if (number == NO_GROUP)
            number = at;
        for (unsigned k = 0; k < other->n; k++)
            f->of[other->member[k]->out[0]] = number;
        if (at != number)
            f->list[at].n = 0; /* now in the other */
        joined = candidate;
    }
    if (number != NO_GROUP) {
        joined.open = true;
        f->list[number] = joined;
    }
    return number;
}

static void close_inputs(fuser *f, const lnt_gnode *n, int own)
{
    for (unsigned i = 0; i < n->n_in; i++) {
        const int at = n->in[i] == LNT_NONE ? NO_GROUP : f->of[n->in[i]];
        if (at != NO_GROUP && at != own)
            f->list[at].open = false;
    }
}

static void close_all(fuser *f)
{
    for (; f->n_closed < f->n_groups; f->n_closed++)
        f->list[f->n_closed].open = false;
}

static lnt_status visit(fuser *f, lnt_gnode *n)
{
    lnt_graph *g = f->e.g;
    lnt_builder b;
    if (n->op->flags & LNT_OP_CONTROL) /* a subgraph may read any value */
        close_all(f);
    int own = NO_GROUP;
    lnt_builder_begin(&b, LNT_NONE);
    if (!n->program && n->n_out == 1 && lnt_builder_add(&b, g, n)) {
        find_likeness(f, n);
        own = join(f, n);
        if (own == NO_GROUP) {
            LNT_TRY(LNT_GROW(g->memory.allocator, f->list, f->capacity, f->n_groups, g->err));
            own = (int)f->n_groups++;
            f->list[own] = (group){.member = {n}, .n = 1, .open = true};
        }
        f->of[n->out[0]] = own;
    }
    close_inputs(f, n, own);
    return LNT_OK;
}

/* ---- writing ---- */

static lnt_status write_group(fuser *f, const group *p)
{
    lnt_graph *g = f->e.g;
    lnt_builder b;
    uint32_t out[LNT_PROGRAM_MAX_OUT];
    unsigned n_out;
    lnt_dtype type;
    outputs_of(f, p, out, &n_out);
    if (p->n < 2 || n_out == 0 || !one_type(g, out, n_out, &type) || !build(f, p, &b))
        return LNT_OK;
    lnt_program *program = lnt_builder_finish(&b, g, out, n_out);
    if (!program)
        return g->err->code;
    lnt_gnode *last = p->member[p->n - 1];
    lnt_gnode *n = lnt_graph_add_node(g, last->subgraph, last, lnt_op_by_id(LNT_ID_Elementwise), last->name,
                                      b.operand, b.n_operands, out, n_out);
    if (!n)
        return LNT_E_MEMORY;
    n->program = program;
    n->n_program_in = n->n_in;
    if (type != LNT_FLOAT && type != LNT_BOOL)
        LNT_TRY(lnt_gnode_set_int(g, n, "to", type));
    for (unsigned i = 0; i < p->n; i++)
        p->member[i]->dead = true;
    LNT_TRY(lnt_report_count(f->e.report, f->e.pass, "programs", 1));
    return lnt_report_count(f->e.report, f->e.pass, "nodes in programs", p->n);
}

static lnt_status fuse(fuser *f)
{
    lnt_graph *g = f->e.g;
    for (size_t v = 0; v < g->n_values; v++) {
        f->of[v] = NO_GROUP;
        f->like[v] = (uint32_t)v;
    }
    for (size_t s = 0; s < g->n_subs; s++) {
        for (size_t i = 0; i < g->sub[s].n_nodes; i++)
            LNT_TRY(visit(f, g->sub[s].node[i]));
        close_all(f);
    }
    for (size_t i = 0; i < f->n_groups; i++)
        LNT_TRY(write_group(f, &f->list[i]));
    return LNT_OK;
}

lnt_status lnt_pass_fuse_elementwise(lnt_graph *g, lnt_report *report)
{
    fuser f = {.n_groups = 0};
    LNT_TRY(lnt_edit_begin(&f.e, g, report, "fuse_elementwise"));
    f.of = lnt_bump_alloc(&g->memory, g->n_values * sizeof *f.of, g->err);
    f.like = lnt_bump_alloc(&g->memory, g->n_values * sizeof *f.like, g->err);
    const lnt_status status = f.of && f.like ? fuse(&f) : LNT_E_MEMORY;
    lnt_free(g->memory.allocator, f.list);
    return status;
}
