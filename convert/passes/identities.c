/* identities.c — takes out nodes that change nothing, and merges neighbors that undo or repeat each other.
 *
 * Only what leaves every bit of the results as it was: x + 0 stays, since it turns -0 into +0. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

static const lnt_operand *info(const lnt_graph *g, uint32_t value)
{
    return &g->value[value].info;
}

/* ---- nodes that do nothing ---- */

static bool same_type_cast(const lnt_graph *g, const lnt_gnode *n)
{
    const unsigned from = info(g, n->in[0])->dtype;
    const int64_t to = lnt_is(n, Cast) ? lnt_gnode_int(n, "to", 0) : info(g, n->in[1])->dtype;
    return from != LNT_UNDEFINED && from == to;
}

static bool idle_dropout(const lnt_edit *e, const lnt_gnode *n)
{
    const uint32_t mode = lnt_in_value(n, 2);
    double training = 0;
    if (n->n_out > 1 && n->out[1] != LNT_NONE &&
        (lnt_edit_uses(e, n->out[1]) > 0 || lnt_edit_pinned(e, n->out[1])))
        return false;
    return mode == LNT_NONE || (lnt_constant_scalar(e->g, mode, &training) && training == 0);
}

static bool identity_perm(const lnt_attr *perm)
{
    if (!perm)
        return false;
    for (uint32_t i = 0; i < perm->count; i++)
        if (perm->i[i] != i)
            return false;
    return true;
}

static bool all_ints(const lnt_graph *g, uint32_t value, int64_t wanted)
{
    int64_t v[2 * LNT_MAX_RANK];
    unsigned n = 2 * LNT_MAX_RANK;
    if (value == LNT_NONE)
        return true;
    if (!lnt_constant_ints(g, value, v, &n))
        return false;
    for (unsigned i = 0; i < n; i++)
        if (v[i] != wanted)
            return false;
    return true;
}

/* A Slice from the start to beyond any end, or one that keeps all of what is known to be there. */
static bool whole_slice(const lnt_graph *g, const lnt_gnode *n)
{
    int64_t start[LNT_MAX_RANK], end[LNT_MAX_RANK];
    unsigned n_start = LNT_MAX_RANK, n_end = LNT_MAX_RANK;
    if (!all_ints(g, lnt_in_value(n, 4), 1))
        return false;
    if (lnt_same_dims(info(g, n->in[0]), info(g, n->out[0])))
        return true;
    if (!lnt_constant_ints(g, n->in[1], start, &n_start) || !lnt_constant_ints(g, n->in[2], end, &n_end))
        return false;
    for (unsigned i = 0; i < n_start && i < n_end; i++)
        if (start[i] != 0 || end[i] < LNT_BEYOND_EXTENTS)
            return false;
    return n_start == n_end;
}

/* Every element of the constant is x, and broadcasting it leaves the other operand's extents. */
static bool neutral(const lnt_graph *g, const lnt_gnode *n, unsigned constant, double x)
{
    const lnt_operand *c = info(g, n->in[constant]), *other = info(g, n->in[1 - constant]);
    double v;
    if (!lnt_constant_scalar(g, n->in[constant], &v) || v != x || c->dtype != other->dtype)
        return false;
    return other->rank != LNT_RANK_UNKNOWN && c->rank <= other->rank;
}

static bool idle_arithmetic(const lnt_graph *g, const lnt_gnode *n, unsigned *pass)
{
    *pass = 0;
    if (lnt_is(n, Mul) && neutral(g, n, 0, 1)) {
        *pass = 1;
        return true;
    }
    return ((lnt_is(n, Mul) || lnt_is(n, Div) || lnt_is(n, Pow)) && neutral(g, n, 1, 1)) ||
           (lnt_is(n, Sub) && neutral(g, n, 1, 0));
}

/* Operators that hand on their elements in order: without effect where the extents stay. */
static bool keeps_elements(const lnt_gnode *n)
{
    return lnt_is(n, Reshape) || lnt_is(n, Flatten) || lnt_is(n, Squeeze) || lnt_is(n, Unsqueeze) ||
           lnt_is(n, Expand) || lnt_is(n, Tile);
}

static bool variadic_of_one(const lnt_gnode *n)
{
    return n->n_in == 1 &&
           (lnt_is(n, Concat) || lnt_is(n, Sum) || lnt_is(n, Max) || lnt_is(n, Min) || lnt_is(n, Mean));
}

/* Is output 0 the same as input *pass? */
static bool does_nothing(const lnt_edit *e, const lnt_gnode *n, unsigned *pass)
{
    const lnt_graph *g = e->g;
    *pass = 0;
    if (lnt_is(n, Identity) || variadic_of_one(n) || (lnt_is(n, Split) && n->n_out == 1))
        return true;
    if (lnt_is(n, Cast) || lnt_is(n, CastLike))
        return same_type_cast(g, n);
    if (lnt_is(n, Dropout))
        return idle_dropout(e, n);
    if (lnt_is(n, Transpose))
        return identity_perm(lnt_gnode_perm(n));
    if (lnt_is(n, Pad))
        return all_ints(g, lnt_in_value(n, 1), 0);
    if (lnt_is(n, Slice))
        return whole_slice(g, n);
    if (keeps_elements(n))
        return lnt_same_dims(info(g, n->in[0]), info(g, n->out[0]));
    return idle_arithmetic(g, n, pass);
}

/* ---- neighbors ---- */

/* Hands on all elements of input 0 in order, under other extents. */
static bool renames_extents(const lnt_gnode *n)
{
    return lnt_is(n, Reshape) || lnt_is(n, Flatten) || lnt_is(n, Squeeze) || lnt_is(n, Unsqueeze);
}

/* Squeeze(Unsqueeze(x)) and longer chains that come back to the extents they started from: x. */
static uint32_t chain_start(const lnt_graph *g, const lnt_gnode *n)
{
    enum { LONGEST = 16 };
    const lnt_operand *out = info(g, n->out[0]);
    const lnt_gnode *p = lnt_producer(g, n, 0);
    for (unsigned i = 0; i < LONGEST && p && renames_extents(p); i++, p = lnt_producer(g, p, 0))
        if (lnt_same_dims(info(g, p->in[0]), out))
            return p->in[0];
    return LNT_NONE;
}

/* Transpose(Transpose(x)) becomes one. */
static lnt_status merge_transposes(lnt_edit *e, lnt_gnode *n, bool *merged)
{
    const lnt_gnode *first = lnt_producer(e->g, n, 0);
    const lnt_attr *p = lnt_gnode_perm(first);
    const lnt_attr *q = lnt_gnode_perm(n);
    int64_t both[LNT_MAX_RANK];
    if (!p || !q || p->count != q->count)
        return LNT_OK;
    for (uint32_t i = 0; i < q->count; i++)
        both[i] = p->i[q->i[i]];
    LNT_TRY(lnt_edit_set_input(e, n, 0, first->in[0]));
    *merged = true;
    const lnt_attr perm = {.name = "perm", .type = LNT_ATTR_INTS, .count = q->count, .i = both};
    return lnt_gnode_set_attr(e->g, n, &perm);
}

/* A Cast of a half that another one has made a float, exactly, takes the half. */
static lnt_status skip_widening(lnt_edit *e, lnt_gnode *n, bool *merged)
{
    const lnt_gnode *first = lnt_producer(e->g, n, 0);
    *merged =
        lnt_is(first, Cast) && info(e->g, n->in[0])->dtype == LNT_FLOAT &&
        (info(e->g, first->in[0])->dtype == LNT_FLOAT16 || info(e->g, first->in[0])->dtype == LNT_BFLOAT16);
    return *merged ? lnt_edit_set_input(e, n, 0, first->in[0]) : LNT_OK;
}

/* The output of a Reshape does not depend on the input's own extents. */
static bool absolute_reshape(const lnt_graph *g, const lnt_gnode *n)
{
    int64_t to[LNT_MAX_RANK];
    unsigned count = LNT_MAX_RANK;
    if (!lnt_constant_ints(g, n->in[1], to, &count))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (to[i] == 0 && !lnt_gnode_int(n, "allowzero", 0))
            return false;
    return true;
}

/* Reshape(Reshape(x)), Reshape(Unsqueeze(x)), ...: the last one alone says what comes out. */
static bool merge_reshapes(lnt_edit *e, lnt_gnode *n)
{
    const lnt_gnode *first = lnt_producer(e->g, n, 0);
    if (!first || !renames_extents(first) || !absolute_reshape(e->g, n))
        return false;
    return lnt_edit_set_input(e, n, 0, first->in[0]) == LNT_OK;
}

/* A shape computed from the input's own extents needs no computing: 0 says "as in the input". */
static lnt_status copy_extents(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    const lnt_gvalue *shape = &g->value[n->in[1]];
    const lnt_operand *x = info(g, n->in[0]);
    const int64_t count = lnt_operand_count(&shape->info);
    int64_t to[LNT_MAX_RANK];
    if (!shape->elements || count < 0 || count > LNT_MAX_RANK || x->rank > LNT_MAX_RANK ||
        lnt_gnode_int(n, "allowzero", 0))
        return LNT_OK;
    for (unsigned i = 0; i < count; i++) {
        const lnt_gelement el = shape->elements[i];
        to[i] = el.known ? el.value : 0;
        if (el.known ? el.value == 0 : i >= x->rank || x->dims[i] != el.value || el.value == LNT_DIM_UNKNOWN)
            return LNT_OK;
    }
    const uint32_t constant = lnt_add_ints(g, shape->name, (unsigned)count, to);
    if (constant == LNT_NONE)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_edit_set_input(e, n, 1, constant));
    return lnt_edit_count(e, "shapes taken from the input");
}

static lnt_status simplify(lnt_edit *e, lnt_gnode *n)
{
    unsigned pass;
    bool merged = false;
    if (lnt_is(n, Transpose))
        LNT_TRY(merge_transposes(e, n, &merged));
    else if (lnt_is(n, Cast))
        LNT_TRY(skip_widening(e, n, &merged));
    else if (lnt_is(n, Reshape)) {
        LNT_TRY(copy_extents(e, n));
        merged = merge_reshapes(e, n);
    }
    const uint32_t start = renames_extents(n) ? chain_start(e->g, n) : LNT_NONE;
    merged |= start != LNT_NONE && lnt_edit_bypass(e, n, start);
    if (merged)
        LNT_TRY(lnt_edit_count(e, "neighbors merged"));
    if (!n->dead && n->n_in > 0 && n->in[0] != LNT_NONE && does_nothing(e, n, &pass) &&
        lnt_edit_bypass(e, n, n->in[pass]))
        return lnt_edit_count(e, "nodes without effect");
    return LNT_OK;
}

lnt_status lnt_pass_identities(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "identities"));
    return lnt_edit_each(&e, simplify);
}
