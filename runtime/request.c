/* request.c — see request.h. */
#include "runtime/internal.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "formats/hash.h"

#include <string.h>

lnt_status lnt_request_make(lnt_session *s, lnt_error *err)
{
    const lnt_model *m = s->model;
    lnt_request *r = &s->request;
    lnt_bump *tables = &s->memory.tables;
    if (!(r->fetched = lnt_bump_alloc(tables, m->n_values * sizeof *r->fetched, err)) ||
        !(r->selected = lnt_bump_alloc(tables, m->n_out * sizeof *r->selected, err)) ||
        !(r->needed = lnt_bump_alloc(tables, m->n_values * sizeof *r->needed, err)) ||
        !(r->injected = lnt_bump_alloc(tables, m->n_values * sizeof *r->injected, err)))
        return LNT_E_MEMORY;
    return LNT_OK;
}

void lnt_request_trim(lnt_session *s)
{
    lnt_buffer_free(s, &s->request.copy);
    lnt_buffer_free(s, &s->request.names);
}

void lnt_request_free(lnt_session *s)
{
    for (uint32_t i = 0; s->request.injected && i < s->model->n_values; i++)
        lnt_buffer_free(s, &s->request.injected[i].buffer);
}

/* ---- values by name ---- */

/* The bucket of a name in a hash table of so many buckets, a power of two: its own, or the free one for it. */
static uint32_t *bucket_of_name(const lnt_model *m, uint32_t *table, size_t buckets, const char *name)
{
    size_t at = (size_t)lnt_hash(name, strlen(name)) & (buckets - 1);
    while (table[at] != LNT_NONE && strcmp(lnt_value_name(m, table[at]), name) != 0)
        at = (at + 1) & (buckets - 1);
    return &table[at];
}

/* Made when a name is first asked for. Of values with one name the first counts. */
static lnt_status make_names(lnt_session *s, size_t buckets, lnt_error *err)
{
    LNT_TRY(lnt_buffer_reserve(s, &s->request.names, buckets * sizeof(uint32_t), err));
    uint32_t *table = s->request.names.data;
    memset(table, 0xff, buckets * sizeof *table); /* LNT_NONE */
    for (uint32_t i = 0; i < s->model->n_values; i++) {
        uint32_t *bucket = bucket_of_name(s->model, table, buckets, lnt_value_name(s->model, i));
        if (*bucket == LNT_NONE)
            *bucket = i;
    }
    return LNT_OK;
}

lnt_status lnt_find_value(lnt_session *s, const char *name, uint32_t *value, lnt_error *err)
{
    size_t buckets = 2;
    while (buckets < 2 * (size_t)s->model->n_values)
        buckets *= 2;
    if (!s->request.names.data)
        LNT_TRY(make_names(s, buckets, err));
    *value = *bucket_of_name(s->model, s->request.names.data, buckets, name);
    if (*value != LNT_NONE)
        return LNT_OK;
    return lnt_fail(
        err, LNT_E_NOT_FOUND,
        "there is no value %s in the file: if the ONNX model has it, a fusion removed it; convert with "
        "--keep %s or --opt none",
        name, name);
}

static lnt_status fetch(lnt_session *s, const char *name, lnt_error *err)
{
    uint32_t value;
    LNT_REQUIRE(name, err, LNT_E_ARGUMENT, "a name must be given");
    LNT_TRY(lnt_find_value(s, name, &value, err));
    s->binding.stale |= !s->request.fetched[value];
    s->request.fetched[value] = true;
    return LNT_OK;
}

lnt_status lnt_keep_value(lnt_session *s, const char *name, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, fetch(s, name, err));
}

/* A value in ONNX order, in memory of the session's if it is stored otherwise. */
static lnt_status plain_copy(lnt_session *s, const lnt_operand *v, const void *data, const void **out,
                             lnt_error *err)
{
    *out = data;
    if (v->order == LNT_ORDER_PLAIN && !v->packed)
        return LNT_OK;
    size_t bytes;
    LNT_REQUIRE(lnt_operand_bytes(v, &bytes), err, LNT_E_INTERNAL, "a fetched value has no size");
    LNT_TRY(lnt_buffer_reserve(s, &s->request.copy, bytes, err));
    *out = s->request.copy.data;
    if (v->packed) {
        lnt_unpack(v->packed, (lnt_dtype)v->dtype, data, s->request.copy.data);
        return LNT_OK;
    }
    const size_t size = lnt_dtype_size((lnt_dtype)v->dtype);
    const int64_t n = v->dims[0], c = v->dims[1], positions = n && c ? lnt_operand_count(v) / (n * c) : 0;
    char *to = s->request.copy.data;
    for (int64_t i = 0; i < n * c && positions > 0; i++)
        for (int64_t p = 0; p < positions; p++, to += size)
            memcpy(to, (const char *)data + (size_t)(((i / c) * positions + p) * c + i % c) * size, size);
    return LNT_OK;
}

static lnt_status get_value(lnt_session *s, const char *name, lnt_tensor *t, lnt_error *err)
{
    uint32_t value;
    LNT_REQUIRE(name && t, err, LNT_E_ARGUMENT, "name and tensor must be given");
    LNT_TRY(lnt_find_value(s, name, &value, err));
    const lnt_operand *v = &s->value[value];
    LNT_REQUIRE(s->request.fetched[value] || v->constant, err, LNT_E_ARGUMENT,
                "ask for %s with lnt_keep_value before the run", name);
    LNT_REQUIRE(s->binding.exists && !s->binding.stale && v->rank != LNT_RANK_UNKNOWN &&
                    lnt_value_memory(s, v),
                err, LNT_E_ARGUMENT,
                "%s was not computed: run the session first (a branch not taken has no values)", name);
    const void *data;
    LNT_TRY(plain_copy(s, v, lnt_value_memory(s, v), &data, err));
    lnt_fill_tensor(t, v, data);
    return LNT_OK;
}

lnt_status lnt_get_value(lnt_session *s, const char *name, lnt_tensor *t, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, get_value(s, name, t, err));
}

/* ---- what is needed ---- */

static void need(lnt_session *s, uint32_t value)
{
    if (value != LNT_NONE)
        s->request.needed[value] = true;
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
        if (n->out[o] != LNT_NONE && s->request.needed[n->out[o]] &&
            !s->request.injected[n->out[o]].tensor.data)
            return true;
    return false;
}

void lnt_mark_needed(lnt_session *s)
{
    const lnt_model *m = s->model;
    const lnt_rec_subgraph *sub = &m->sub[0];
    for (uint32_t v = 0; v < m->n_values; v++)
        s->request.needed[v] = s->request.fetched[v];
    for (uint32_t o = 0; o < m->n_out; o++)
        if (s->request.selected[o])
            need(s, m->out[o]);
    for (uint32_t i = sub->n_nodes; i-- > 0;) {
        const lnt_node *n = lnt_session_node(s, sub->first_node + i);
        if (lnt_node_needed(s, n))
            need_inputs(s, n);
    }
}

/* ---- giving values ---- */

/* Vectors may be shapes, axes or scales, which binding wants to know. Others are like inputs: another one of the same
 * shape needs no binding. */
static bool binding_knows(const lnt_tensor *t)
{
    return t->rank < 2;
}

void lnt_place_injected(lnt_session *s)
{
    for (uint32_t v = 0; s->request.any_injected && v < s->model->n_values; v++) {
        const lnt_tensor *t = &s->request.injected[v].tensor;
        if (!t->data)
            continue;
        s->value[v].rank = (uint8_t)t->rank;
        memcpy(s->value[v].dims, t->dims, sizeof t->dims);
        const bool known = binding_knows(t);
        lnt_place_value(s, v, known ? LNT_PLACE_KNOWN : LNT_PLACE_INPUT, t->data, known);
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
    if (!t->bytes) /* then other extents may be as long as they like */
        return;
    const int64_t n = t->dims[0], c = t->dims[1], positions = (int64_t)(t->bytes / size) / (n * c);
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
        s->request.selected[o] = !outputs;
    for (uint32_t i = 0; outputs && i < n; i++)
        s->request.selected[outputs[i]] = true;
    s->request.partial = outputs || s->request.any_injected;
    s->binding.stale = true;
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
    lnt_injected *given = &s->request.injected[value];
    if (!tensor) {
        s->binding.stale |= given->tensor.data != NULL;
        given->tensor.data = NULL;
        return LNT_OK;
    }
    lnt_tensor t = *tensor;
    LNT_REQUIRE(t.data, err, LNT_E_ARGUMENT, "%s is to be injected without data", name);
    LNT_TRY(check_injected(s, value, name, &t, err));
    if (!given->tensor.data || binding_knows(&t) || !lnt_same_shape(&given->tensor, &t))
        s->binding.stale = true;
    LNT_TRY(lnt_buffer_reserve(s, &given->buffer, t.bytes, err));
    into_order(&s->model->value[value], &t, given->buffer.data);
    t.data = given->buffer.data;
    given->tensor = t;
    s->request.any_injected = true;
    if (!s->request.partial)
        return select_outputs(s, NULL, 0, err);
    return LNT_OK;
}

lnt_status lnt_set_value(lnt_session *s, const char *name, const lnt_tensor *tensor, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, inject(s, name, tensor, err));
}
