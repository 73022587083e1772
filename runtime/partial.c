/* partial.c — running parts of a model: some outputs only, from values that are given instead of computed. */
#include "runtime/internal.h"

#include "base/checked.h"
#include "base/lnt_assert.h"

#include <string.h>

/* ---- what is needed ---- */

static void need(lnt_session *s, uint32_t value)
{
    if (value != LNT_NONE)
        s->needed[value] = true;
}

/* All that a node reads, its subgraphs included: of those every node is taken to be needed. The verifier
 * bounds the nesting. */
static void need_inputs(lnt_session *s, const lnt_node *n)
{
    for (unsigned i = 0; i < n->n_in; i++)
        need(s, n->in[i]);
    for (unsigned a = 0; a < n->n_attr; a++) {
        if (n->attr[a].type != LNT_ATTR_GRAPH)
            continue;
        const lnt_rec_subgraph *sub = &s->model->sub[*n->attr[a].i];
        for (uint32_t i = 0; i < sub->n_nodes; i++) {
            const lnt_node *inner = lnt_session_node(s, sub->first_node + i);
            for (unsigned o = 0; o < inner->n_out; o++)
                need(s, inner->out[o]);
            need_inputs(s, inner);
        }
        for (uint32_t o = 0; o < sub->n_out; o++)
            need(s, s->model->file.operands[sub->first_operand + sub->n_in + o]);
    }
}

bool lnt_node_needed(const lnt_session *s, const lnt_node *n)
{
    for (unsigned o = 0; o < n->n_out; o++)
        if (n->out[o] != LNT_NONE && s->needed[n->out[o]] && !s->injected[n->out[o]].tensor.data)
            return true;
    return false;
}

void lnt_mark_needed(lnt_session *s)
{
    const lnt_model *m = s->model;
    const lnt_rec_subgraph *sub = &m->sub[0];
    for (uint32_t v = 0; v < m->n_values; v++)
        s->needed[v] = s->fetched[v];
    for (uint32_t o = 0; o < m->n_out; o++)
        if (s->selected[o])
            need(s, m->out[o]);
    for (uint32_t i = sub->n_nodes; i-- > 0;) {
        const lnt_node *n = lnt_session_node(s, sub->first_node + i);
        if (lnt_node_needed(s, n))
            need_inputs(s, n);
    }
}

/* ---- giving values ---- */

void lnt_place_injected(lnt_session *s)
{
    for (uint32_t v = 0; s->any_injected && v < s->model->n_values; v++) {
        const lnt_tensor *t = &s->injected[v].tensor;
        if (!t->data)
            continue;
        s->value[v].rank = (uint8_t)t->rank;
        memcpy(s->value[v].dims, t->dims, sizeof t->dims);
        lnt_place_value(s, v, LNT_PLACE_KNOWN, t->data, true);
    }
}

/* Copies ONNX order into the storage order of a value. */
static void into_order(const lnt_operand *v, const lnt_tensor *t, char *to)
{
    LNT_ASSERT(v->order == LNT_ORDER_PLAIN || t->rank >= 3);
    const size_t size = lnt_dtype_size(t->dtype);
    if (v->order == LNT_ORDER_PLAIN) {
        memcpy(to, t->data, t->bytes);
        return;
    }
    const int64_t n = t->dims[0], c = t->dims[1];
    const int64_t positions = n > 0 && c > 0 ? (int64_t)(t->bytes / size) / (n * c) : 0;
    for (int64_t i = 0; i < n * c; i++)
        for (int64_t p = 0; p < positions; p++)
            memcpy(to + (size_t)(((i / c) * positions + p) * c + i % c) * size,
                   (const char *)t->data + (size_t)(i * positions + p) * size, size);
}

static lnt_status check_injected(const lnt_session *s, uint32_t value, const char *name, lnt_tensor *t,
                                 lnt_error *err)
{
    const lnt_operand *v = &s->model->value[value];
    size_t bytes;
    LNT_REQUIRE(!v->constant, err, LNT_E_ARGUMENT, "%s is a constant of the model", name);
    for (uint32_t i = 0; i < s->model->n_in; i++)
        LNT_REQUIRE(s->model->in[i] != value, err, LNT_E_ARGUMENT, "%s is an input: use lnt_set_input", name);
    LNT_REQUIRE(t->dtype == v->dtype, err, LNT_E_TYPE, "%s is %s, not %s", name,
                lnt_dtype_text((lnt_dtype)v->dtype), lnt_dtype_text(t->dtype));
    LNT_REQUIRE(lnt_dtype_size(t->dtype), err, LNT_E_TYPE, "%s is %s, which cannot be injected", name,
                lnt_dtype_text(t->dtype));
    LNT_REQUIRE(t->rank <= LNT_MAX_RANK && (v->rank == LNT_RANK_UNKNOWN || v->rank == t->rank) &&
                    (v->order == LNT_ORDER_PLAIN || t->rank >= 3),
                err, LNT_E_SHAPE, "%s has rank %u, not %u", name, v->rank, t->rank);
    for (unsigned d = 0; v->rank != LNT_RANK_UNKNOWN && d < t->rank; d++)
        LNT_REQUIRE(v->dims[d] < 0 || v->dims[d] == t->dims[d], err, LNT_E_SHAPE,
                    "%s has %lld along axis %u, not %lld", name, (long long)v->dims[d], d,
                    (long long)t->dims[d]);
    LNT_REQUIRE(lnt_shape_bytes(t->dims, t->rank, lnt_dtype_size(t->dtype), &bytes) && bytes <= t->bytes, err,
                LNT_E_SHAPE, "%s: its data is shorter than its shape says", name);
    t->bytes = bytes;
    return LNT_OK;
}

static lnt_status select_outputs(lnt_session *s, const uint32_t *outputs, uint32_t n, lnt_error *err)
{
    const uint32_t n_out = s->model->n_out;
    LNT_REQUIRE(!outputs || n <= n_out, err, LNT_E_ARGUMENT, "%u outputs of a model that has %u", n, n_out);
    for (uint32_t i = 0; outputs && i < n; i++)
        LNT_REQUIRE(outputs[i] < n_out, err, LNT_E_ARGUMENT, "there is no output %u", outputs[i]);
    for (uint32_t o = 0; o < n_out; o++)
        s->selected[o] = !outputs;
    for (uint32_t i = 0; outputs && i < n; i++)
        s->selected[outputs[i]] = true;
    s->partial = outputs || s->any_injected;
    s->rebind = true;
    return LNT_OK;
}

lnt_status lnt_select_outputs(lnt_session *s, const uint32_t *outputs, uint32_t n, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, select_outputs(s, outputs, n, err));
}

static lnt_status inject(lnt_session *s, const char *name, const lnt_tensor *tensor, lnt_error *err)
{
    uint32_t value;
    LNT_REQUIRE(name, err, LNT_E_ARGUMENT, "a name must be given");
    LNT_TRY(lnt_find_value(s, name, &value, err));
    s->rebind = true;
    if (!tensor) {
        s->injected[value].tensor.data = NULL;
        return LNT_OK;
    }
    lnt_injected *given = &s->injected[value];
    lnt_tensor t = *tensor;
    LNT_REQUIRE(t.data, err, LNT_E_ARGUMENT, "%s is to be injected without data", name);
    LNT_TRY(check_injected(s, value, name, &t, err));
    LNT_TRY(lnt_buffer_reserve(s, &given->buffer, t.bytes, err));
    into_order(&s->model->value[value], &t, given->buffer.data);
    t.data = given->buffer.data;
    given->tensor = t;
    s->any_injected = true;
    if (!s->partial)
        return select_outputs(s, NULL, 0, err);
    return LNT_OK;
}

lnt_status lnt_inject(lnt_session *s, const char *name, const lnt_tensor *tensor, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, inject(s, name, tensor, err));
}
