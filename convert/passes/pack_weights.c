/* pack_weights.c — stores weights as the kernels walk them.
 *
 * A constant all of whose readers want the same layout is packed in its place; a Gather of rows reads them
 * out of panels, so that an embedding tied to an output projection is stored once. Where readers differ there
 * is a packed copy per layout beside the ONNX one, and the report names the constant. */
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

#include "ops/product.h"

#include <string.h>

typedef struct copy { /* a packed constant and what it was made from */
    uint32_t from, to;
    struct copy *next;
} copy;

/* Is -128, or what uint8 weights keep as that, among the weights? */
static bool holds_least(const lnt_gvalue *v)
{
    return memchr(v->info.data, v->info.dtype == LNT_UINT8 ? 0 : 0x80, v->bytes) != NULL;
}

/* A convolution whose weights are taken as they are (ops/conv/conv_matrix.c, conv_planes.c). */
static bool reads_plain(const lnt_graph *g, const lnt_gnode *n, unsigned i)
{
    lnt_conv_kind kind;
    return i == 1 && !lnt_is_for_halves(g) && lnt_makes_planes(g, n, &kind) && kind != LNT_CONV_PLANES &&
           lnt_ginfo(g, n->in[0])->order == LNT_ORDER_PLAIN &&
           lnt_ginfo(g, n->out[0])->order == LNT_ORDER_PLAIN;
}

/* The record node n wants for its constant input i; false if it takes it as it is. */
static bool wanted(lnt_graph *g, const lnt_gnode *n, unsigned i, lnt_packed *record)
{
    if (n->dead || !lnt_is_constant(g, n->in[i]) || reads_plain(g, n, i))
        return false;
    lnt_node view;
    lnt_gnode_view(n, &view);
    memset(record, 0, sizeof *record);
    if (!lnt_pack_wanted(&view, i, lnt_ginfo(g, n->in[i]), record))
        return false;
    if (record->layout == LNT_LAYOUT_PANEL_I8 && holds_least(&g->value[n->in[i]]))
        record->layout = LNT_LAYOUT_PANEL_I8_FULL;
    return true;
}

/* Can n read input i out of panels although it does not ask for them? */
static bool reads_rows(const lnt_graph *g, const lnt_gnode *n, unsigned i, const lnt_packed *record)
{
    if (lnt_is(n, DynamicGather) && i == 0)
        return lnt_packed_is_int8(record) && record->source == LNT_SOURCE_NK;
    return lnt_is(n, Gather) && i == 0 && lnt_gnode_int(n, "axis", 0) == 0 &&
           lnt_ginfo(g, n->in[0])->rank == 2 && record->layout == LNT_LAYOUT_PANEL_F32 &&
           (record->source == LNT_SOURCE_KN || record->source == LNT_SOURCE_NK);
}

static bool takes(lnt_graph *g, const lnt_gnode *n, unsigned i, const lnt_packed *record)
{
    lnt_packed other;
    return reads_rows(g, n, i, record) ||
           (wanted(g, n, i, &other) && memcmp(&other, record, sizeof other) == 0);
}

/* Can every reader of the value do with this record? */
static bool all_agree(const lnt_edit *e, uint32_t value, const lnt_packed *record)
{
    uint32_t at = LNT_EDIT_FIRST;
    if (lnt_edit_is_output(e, value))
        return false;
    for (const lnt_gnode *n; (n = lnt_edit_reader(e, value, &at)) != NULL;)
        for (unsigned k = 0; k < n->n_in; k++)
            if (n->in[k] == value && !takes(e->g, n, k, record))
                return false;
    return true;
}

/* Packs the contents of `from` into value `to`. */
static lnt_status pack_into(lnt_graph *g, uint32_t from, uint32_t to, const lnt_packed *record)
{
    size_t bytes;
    LNT_REQUIRE(lnt_packed_bytes(record, &bytes), g->err, LNT_E_INTERNAL, "'%s' cannot be packed",
                g->value[from].name);
    lnt_packed *kept = lnt_bump_alloc(&g->memory, sizeof *kept, g->err);
    void *data = lnt_bump_alloc(&g->memory, bytes, g->err);
    if (!kept || !data)
        return LNT_E_MEMORY;
    *kept = *record;
    lnt_pack(record, (lnt_dtype)g->value[from].info.dtype, g->value[from].info.data, data);
    lnt_gvalue *v = &g->value[to];
    v->info = g->value[from].info;
    v->info.data = data;
    v->info.packed = kept;
    v->bytes = bytes;
    v->constant = true;
    return LNT_OK;
}

static lnt_status pack_copy(lnt_edit *e, lnt_gnode *n, unsigned i, const lnt_packed *record, copy **copies)
{
    lnt_graph *g = e->g;
    const uint32_t from = n->in[i];
    for (const copy *c = *copies; c; c = c->next)
        if (c->from == from && memcmp(g->value[c->to].info.packed, record, sizeof *record) == 0)
            return lnt_edit_set_input(e, n, i, c->to);
    copy *c = lnt_bump_alloc(&g->memory, sizeof *c, g->err);
    const uint32_t to = c ? lnt_graph_add_value(g, g->value[from].name) : LNT_NONE;
    if (to == LNT_NONE)
        return LNT_E_MEMORY;
    *c = (copy){from, to, *copies};
    *copies = c;
    LNT_TRY(pack_into(g, from, to, record));
    LNT_TRY(lnt_edit_set_input(e, n, i, to));
    e->report->duplicated_bytes += g->value[to].bytes;
    const char *what =
        lnt_report_text(e->report, "'%s' stored in another layout as well", g->value[from].name);
    return what ? lnt_edit_count(e, what) : LNT_E_MEMORY;
}

lnt_status lnt_pass_pack_weights(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    copy *copies = NULL;
    lnt_packed record;
    LNT_TRY(lnt_edit_begin(&e, g, report, "pack_weights"));
    for (size_t s = 0; s < g->n_subs; s++)
        for (size_t i = 0; i < g->sub[s].n_nodes; i++) {
            lnt_gnode *n = g->sub[s].node[i];
            for (unsigned k = 0; k < n->n_in; k++) {
                if (!wanted(g, n, k, &record))
                    continue;
                if (all_agree(&e, n->in[k], &record))
                    LNT_TRY(pack_into(g, n->in[k], n->in[k], &record));
                else
                    LNT_TRY(pack_copy(&e, n, k, &record, &copies));
            }
        }
    return LNT_OK;
}
