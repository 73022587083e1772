/* custom.c — operators that the host brings: a node of theirs is a Custom node whose attributes custom_domain
 * and custom_name say which. The host's functions see tensors, not operands. */
#include "ops/op.h"

#include "base/lnt_assert.h"

#include <string.h>

enum { MAX_OPERANDS = 64 };

typedef struct call_frame {
    lnt_custom_call call;
    lnt_tensor in[MAX_OPERANDS], out[MAX_OPERANDS];
} call_frame;

static void describe(lnt_tensor *t, const lnt_operand *o, const void *data)
{
    *t = (lnt_tensor){.dtype = LNT_UNDEFINED};
    if (!o)
        return;
    t->dtype = (lnt_dtype)o->dtype;
    t->rank = o->rank;
    t->data = (void *)(uintptr_t)data;
    memcpy(t->dims, o->dims, sizeof t->dims);
    t->bytes = lnt_known_bytes(o);
}

static void begin(call_frame *f, const lnt_node *node, lnt_error *err)
{
    f->call = (lnt_custom_call){.n_in = node->n_in,
                                .n_out = node->n_out,
                                .in = f->in,
                                .out = f->out,
                                .node = node,
                                .user = node->custom->user,
                                .err = err};
}

/* Without the host's functions (at conversion) nothing is known of the outputs. */
lnt_status lnt_shape_custom(lnt_site *site)
{
    const lnt_node *node = site->node;
    call_frame f;
    if (!node->custom)
        return LNT_UNKNOWN;
    LNT_REQUIRE(site->n_in <= MAX_OPERANDS && site->n_out <= MAX_OPERANDS, site->err, LNT_E_LIMIT,
                "a custom operator has at most %d inputs and outputs", MAX_OPERANDS);
    begin(&f, node, site->err);
    for (unsigned i = 0; i < site->n_in; i++) {
        if (site->in[i] && i < 32 && node->custom->value_inputs >> i & 1 && !site->in[i]->data)
            return LNT_UNKNOWN;
        describe(&f.in[i], site->in[i], site->in[i] ? site->in[i]->data : NULL);
    }
    for (unsigned i = 0; i < site->n_out; i++)
        f.out[i] = (lnt_tensor){.dtype = LNT_UNDEFINED};
    LNT_TRY(node->custom->shape(&f.call));
    for (unsigned i = 0; i < site->n_out; i++) {
        LNT_REQUIRE(f.out[i].rank <= LNT_MAX_RANK && lnt_dtype_size(f.out[i].dtype), site->err, LNT_E_SHAPE,
                    "the host gave output %u no type or a rank over %d", i, LNT_MAX_RANK);
        lnt_set_type(site, i, f.out[i].dtype);
        lnt_set_dims(site, i, f.out[i].rank, f.out[i].dims);
    }
    return LNT_OK;
}

static lnt_status run_custom(lnt_kernel *k, const lnt_step *s)
{
    LNT_ASSERT(s->n_in <= MAX_OPERANDS && s->n_out <= MAX_OPERANDS);
    const lnt_node *node = s->params;
    call_frame f;
    begin(&f, node, k->err);
    for (unsigned i = 0; i < s->n_in; i++)
        describe(&f.in[i], s->in[i], lnt_in(k, s, i));
    for (unsigned i = 0; i < s->n_out; i++)
        describe(&f.out[i], s->out[i], lnt_out(k, s, i));
    return node->custom->run(&f.call);
}

lnt_status lnt_bind_custom(lnt_site *site)
{
    site->step->run = run_custom;
    site->step->params = site->node;
    return LNT_OK;
}

/* ---- attributes, for the host ---- */

int64_t lnt_custom_attr_int(const lnt_custom_call *call, const char *name, int64_t otherwise)
{
    return lnt_attr_i(call->node, name, otherwise);
}

float lnt_custom_attr_float(const lnt_custom_call *call, const char *name, float otherwise)
{
    return lnt_attr_f(call->node, name, otherwise);
}

const char *lnt_custom_attr_string(const lnt_custom_call *call, const char *name, const char *otherwise)
{
    return lnt_attr_s(call->node, name, otherwise);
}

const int64_t *lnt_custom_attr_ints(const lnt_custom_call *call, const char *name, uint32_t *n)
{
    const lnt_attr *a = lnt_attr_find(call->node, name);
    *n = a && a->type == LNT_ATTR_INTS ? a->count : 0;
    return *n ? a->i : NULL;
}
