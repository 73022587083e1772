/* pattern_embedding.c — lookups in a constant table: one written as a product with one-hot rows becomes a
 * Gather, and elementwise work behind a Gather is done on the table instead. */
#include "convert/passes/patterns.h"

#include <string.h>

/* ---- one-hot products ---- */

/* The constant holds 0, 1, 2, ... along its last axis and has no other. */
static bool counts_up(const lnt_graph *g, uint32_t value, int64_t n)
{
    const lnt_operand *o = lnt_ginfo(g, value);
    if (!lnt_is_constant(g, value) || o->rank == 0 || lnt_operand_count(o) != n || o->dims[o->rank - 1] != n)
        return false;
    for (int64_t i = 0; i < n; i++)
        if (o->dtype == LNT_INT64   ? ((const int64_t *)o->data)[i] != i
            : o->dtype == LNT_INT32 ? ((const int32_t *)o->data)[i] != i
                                    : true)
            return false;
    return true;
}

/* The table with a row of zeros behind it. */
static uint32_t padded_table(lnt_graph *g, uint32_t table)
{
    const lnt_gvalue t = g->value[table];
    const size_t row = t.bytes / (size_t)t.info.dims[0];
    char *data = lnt_bump_alloc(&g->memory, t.bytes + row, g->err);
    if (!data)
        return LNT_NONE;
    memcpy(data, t.info.data, t.bytes);
    const int64_t dims[2] = {t.info.dims[0] + 1, t.info.dims[1]};
    return lnt_graph_add_constant(g, t.name, LNT_FLOAT, 2, dims, data, t.bytes + row);
}

static uint32_t integer(lnt_graph *g, const char *name, unsigned dtype, int64_t value)
{
    const int32_t narrow = (int32_t)value;
    return dtype == LNT_INT64 ? lnt_graph_add_constant(g, name, LNT_INT64, 0, NULL, &value, sizeof value)
                              : lnt_graph_add_constant(g, name, LNT_INT32, 0, NULL, &narrow, sizeof narrow);
}

/* MatMul(Cast(id == [0, 1, ..., K-1]), table): row id of the table, or zeros where there is none. Both -1 and
 * K name the row of zeros behind the table. */
lnt_status lnt_fuse_one_hot(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    const lnt_gnode *cast = lnt_is(n, MatMul) && !n->program ? lnt_producer(g, n, 0) : NULL;
    const lnt_gnode *equal = lnt_is(cast, Cast) ? lnt_producer(g, cast, 0) : NULL;
    int64_t count;
    if (!lnt_is(equal, Equal) || lnt_edit_follower(e, equal) != cast || lnt_edit_follower(e, cast) != n ||
        !lnt_constant_floats(g, n->in[1], &count) || lnt_ginfo(g, n->in[1])->rank != 2)
        return LNT_OK;
    const int64_t rows = lnt_ginfo(g, n->in[1])->dims[0];
    const unsigned ids = lnt_is_constant(g, equal->in[0]) ? 1 : 0;
    const lnt_operand id = *lnt_ginfo(g, equal->in[ids]);
    const lnt_operand *counter = lnt_ginfo(g, equal->in[1 - ids]);
    if (id.rank == 0 || id.rank > LNT_MAX_RANK || id.dims[id.rank - 1] != 1 || counter->rank > id.rank ||
        counter->dtype != id.dtype || rows == 0 || !counts_up(g, equal->in[1 - ids], rows))
        return LNT_OK;
    uint32_t flat, within;
    const uint32_t squeeze[] = {equal->in[ids], lnt_add_ints(g, n->name, 1, &(int64_t){id.rank - 1})};
    if (squeeze[1] == LNT_NONE ||
        !lnt_edit_insert(e, n, lnt_op_by_id(LNT_ID_Squeeze), squeeze, 2, LNT_NONE, &flat))
        return LNT_E_MEMORY;
    const uint32_t clip[] = {flat, integer(g, n->name, id.dtype, -1), integer(g, n->name, id.dtype, rows)};
    if (!lnt_edit_insert(e, n, lnt_op_by_id(LNT_ID_Clip), clip, 3, LNT_NONE, &within))
        return LNT_E_MEMORY;
    const uint32_t in[] = {padded_table(g, n->in[1]), within};
    if (in[0] == LNT_NONE || !lnt_edit_substitute(e, n, lnt_op_by_id(LNT_ID_Gather), in, 2))
        return LNT_E_MEMORY;
    return lnt_edit_count(e, "one-hot product as Gather");
}

/* ---- work on the table ---- */

/* The constant as an operand for the table's rows; LNT_NONE if it varies along anything but the last axis. */
static uint32_t along_rows(lnt_graph *g, uint32_t value, int64_t width)
{
    int64_t count;
    const float *data = value == LNT_NONE ? NULL : lnt_constant_floats(g, value, &count);
    if (!data)
        return LNT_NONE;
    if (count == 1)
        return lnt_add_floats(g, g->value[value].name, 0, NULL, data);
    const lnt_operand *o = lnt_ginfo(g, value);
    return count == width && o->dims[o->rank - 1] == width
               ? lnt_add_floats(g, g->value[value].name, 1, &width, data)
               : LNT_NONE;
}

/* f(Gather(table, i)) is Gather(f(table), i), and f(table) is a constant. */
static lnt_status fold_follower(lnt_edit *e, lnt_gnode *n, bool *folded)
{
    lnt_graph *g = e->g;
    uint32_t in[4], work;
    int64_t count;
    *folded = false;
    if (!lnt_is(n, Gather) || lnt_gnode_int(n, "axis", 0) != 0 || !lnt_constant_floats(g, n->in[0], &count) ||
        lnt_ginfo(g, n->in[0])->rank != 2 || lnt_edit_uses(e, n->in[0]) != 1)
        return LNT_OK;
    lnt_gnode *u = lnt_edit_follower(e, n);
    if (!u || !(u->op->flags & LNT_OP_ELEMENTWISE) || u->program || u->n_out != 1 || u->n_in > 4 ||
        lnt_ginfo(g, u->out[0])->dtype != LNT_FLOAT ||
        !lnt_same_dims(lnt_ginfo(g, u->out[0]), lnt_ginfo(g, n->out[0])))
        return LNT_OK;
    const int64_t width = lnt_ginfo(g, n->in[0])->dims[1];
    for (unsigned i = 0; i < u->n_in; i++) {
        in[i] = u->in[i] == n->out[0] ? n->in[0] : u->in[i];
        if (in[i] != n->in[0] && in[i] != LNT_NONE && (in[i] = along_rows(g, in[i], width)) == LNT_NONE)
            return g->err->code;
    }
    lnt_gnode *f = lnt_edit_insert(e, n, u->op, in, u->n_in, LNT_NONE, &work);
    if (!f)
        return LNT_E_MEMORY;
    f->attr = u->attr;
    f->n_attr = u->n_attr;
    LNT_TRY(lnt_edit_set_input(e, n, 0, work));
    n->out[0] = u->out[0];
    g->value[n->out[0]].producer = n;
    lnt_edit_drop(e, u);
    LNT_TRY(lnt_graph_infer_node(g, f));
    LNT_TRY(lnt_fold_node(e, f));
    *folded = true;
    return lnt_edit_count(e, "work on an embedding's table");
}

lnt_status lnt_fold_into_table(lnt_edit *e, lnt_gnode *n)
{
    bool folded;
    do
        LNT_TRY(fold_follower(e, n, &folded));
    while (folded);
    return LNT_OK;
}
