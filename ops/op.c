/* op.c — the operator table, and what shape rules and bind functions share. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/half.h"
#include "base/lnt_assert.h"
#include "ops/list_names.h"

#include <stddef.h>
#include <string.h>

/* The names one behind another, each with its end. */
static const struct names {
#define OP(id, version, ident, domain, name, ...) char ident[sizeof name];
#include "ops/list.h"
#undef OP
} names = {
#define OP(id, version, ident, domain, name, ...) name,
#include "ops/list.h"
#undef OP
};
static const char domains[][16] = {[LNT_DOMAIN_ONNX] = "",
                                   [LNT_DOMAIN_MICROSOFT] = "com.microsoft",
                                   [LNT_DOMAIN_ML] = "ai.onnx.ml",
                                   [LNT_DOMAIN_LINNET] = "linnet"};

const lnt_op lnt_ops[] = {
#define OP(id, version, ident, domain, name, imin, imax, omin, omax, types, shape, bind, values, flags)      \
    {id,   offsetof(struct names, ident), version, domain, imin, imax, omin, omax, LNT_TYPE_##types, values, \
     flags},
#include "ops/list.h"
#undef OP
};
const unsigned lnt_op_count = sizeof lnt_ops / sizeof lnt_ops[0];

/* Rows by their place in lnt_ops. */
enum row {
#define OP(id, version, ident, ...) ROW_##ident,
#include "ops/list.h"
#undef OP
};

static enum row row_of(const lnt_site *site)
{
    LNT_ASSERT(site->node->op >= lnt_ops && site->node->op < lnt_ops + lnt_op_count);
    return (enum row)(site->node->op - lnt_ops);
}

lnt_status lnt_row_shape(lnt_site *site)
{
    switch (row_of(site)) {
#define OP(id, version, ident, domain, name, imin, imax, omin, omax, types, shape, ...)                      \
    case ROW_##ident:                                                                                        \
        return lnt_shape_##shape(site);
#include "ops/list.h"
#undef OP
    }
    return LNT_E_INTERNAL;
}

lnt_status lnt_row_bind(lnt_site *site)
{
    switch (row_of(site)) {
#define OP(id, version, ident, domain, name, imin, imax, omin, omax, types, shape, bind, ...)                \
    case ROW_##ident:                                                                                        \
        return lnt_bind_##bind(site);
#include "ops/list.h"
#undef OP
    }
    return LNT_E_INTERNAL;
}

const char *lnt_op_name(const lnt_op *op)
{
    return (const char *)&names + op->name_at;
}

const char *lnt_op_domain(const lnt_op *op)
{
    return domains[op->domain];
}

const lnt_op *lnt_op_by_name(const char *domain, const char *name)
{
    for (unsigned i = 0; i < lnt_op_count; i++)
        if (strcmp(lnt_op_name(&lnt_ops[i]), name) == 0 && strcmp(lnt_op_domain(&lnt_ops[i]), domain) == 0)
            return &lnt_ops[i];
    return NULL;
}

const lnt_op *lnt_op_by_id(unsigned id)
{
    for (unsigned i = 0; i < lnt_op_count; i++)
        if (lnt_ops[i].id == id)
            return &lnt_ops[i];
    return NULL;
}

bool lnt_op_may_skip(const lnt_op *op, unsigned i)
{
    return op->flags & LNT_OP_SKIPS_ANY || (i < 8 && op->flags & LNT_OP_SKIPS(i)) ||
           (i >= op->in_min && op->in_max != 255);
}

bool lnt_op_is_image(const lnt_op *op, unsigned i)
{
    return op->flags & LNT_OP_TRIPLES ? i % 3 == 2 : i == 0;
}

uint32_t lnt_node_value_inputs(const lnt_node *node)
{
    return node->custom ? node->custom->value_inputs : node->op->value_inputs;
}

/* ---- attributes ---- */

const lnt_attr *lnt_attr_find(const lnt_node *node, const char *name)
{
    for (unsigned i = 0; i < node->n_attr; i++)
        if (node->attr[i].name[0] == name[0] && strcmp(node->attr[i].name, name) == 0)
            return &node->attr[i];
    return NULL;
}

const lnt_attr *lnt_attr_of(const lnt_node *node, const char *name, lnt_attr_type type)
{
    const lnt_attr *a = lnt_attr_find(node, name);
    return a && a->type == type ? a : NULL;
}

int64_t lnt_attr_i(const lnt_node *node, const char *name, int64_t otherwise)
{
    const lnt_attr *a = lnt_attr_find(node, name);
    return a && a->type == LNT_ATTR_INT ? *a->i : otherwise;
}

float lnt_attr_f(const lnt_node *node, const char *name, float otherwise)
{
    const lnt_attr *a = lnt_attr_find(node, name);
    return a && a->type == LNT_ATTR_FLOAT ? *a->f : otherwise;
}

const char *lnt_attr_s(const lnt_node *node, const char *name, const char *otherwise)
{
    const lnt_attr *a = lnt_attr_find(node, name);
    return a && a->type == LNT_ATTR_STRING ? a->s : otherwise;
}

int lnt_attr_choice(const lnt_node *node, const char *name, const char *const *list, int n)
{
    const char *text = lnt_attr_s(node, name, list[0]);
    for (int i = 0; i < n; i++)
        if (strcmp(text, list[i]) == 0)
            return i;
    return -1;
}

lnt_status lnt_attr_ints(const lnt_site *site, const char *name, int64_t *out, unsigned n, int64_t otherwise)
{
    LNT_ASSERT(n <= 2 * LNT_MAX_RANK);
    const lnt_attr *a = lnt_attr_find(site->node, name);
    if (a && (a->type != LNT_ATTR_INTS || a->count != n))
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "attribute %s must hold %u integers", name, n);
    for (unsigned i = 0; i < n; i++)
        out[i] = a ? a->i[i] : otherwise;
    return LNT_OK;
}

/* ---- shapes ---- */

static void set_types(lnt_site *site)
{
    static const lnt_dtype fixed[] = {
        [LNT_TYPE_BOOL] = LNT_BOOL, [LNT_TYPE_INT64] = LNT_INT64, [LNT_TYPE_FLOAT] = LNT_FLOAT};
    const unsigned rule = site->node->op->type_rule;
    for (unsigned i = 0; i < site->n_out; i++) {
        if (!site->out[i])
            continue;
        site->out[i]->rank = LNT_RANK_UNKNOWN;
        const unsigned source = rule == LNT_TYPE_INDEX ? 0 : rule;
        if (rule == LNT_TYPE_INDEX && i == 1)
            site->out[i]->dtype = LNT_INT64;
        else if (source <= LNT_TYPE_IN2)
            site->out[i]->dtype = lnt_input(site, source) ? site->in[source]->dtype : LNT_UNDEFINED;
        else if (rule != LNT_TYPE_RULE)
            site->out[i]->dtype = (uint8_t)fixed[rule];
    }
}

lnt_status lnt_site_shape(lnt_site *site)
{
    const lnt_op *op = site->node->op;
    set_types(site);
    if (!(op->flags & LNT_OP_ANY_RANK) && op->type_rule != LNT_TYPE_RULE)
        for (unsigned i = 0; i < site->n_in; i++)
            if (site->in[i] && site->in[i]->rank == LNT_RANK_UNKNOWN)
                return LNT_UNKNOWN;
    return lnt_row_shape(site);
}

void lnt_set_dims(lnt_site *site, unsigned i, unsigned rank, const int64_t *dims)
{
    LNT_ASSERT(rank <= LNT_MAX_RANK);
    lnt_operand *o = lnt_output(site, i);
    if (!o)
        return;
    o->rank = (uint8_t)rank;
    for (unsigned d = 0; d < LNT_MAX_RANK; d++)
        o->dims[d] = d < rank ? dims[d] : 0;
}

void lnt_set_dims_like(lnt_site *site, unsigned i, const lnt_operand *like)
{
    lnt_operand *o = lnt_output(site, i);
    if (!o)
        return;
    o->rank = like->rank;
    memcpy(o->dims, like->dims, sizeof o->dims);
}

void lnt_set_type(lnt_site *site, unsigned i, lnt_dtype dtype)
{
    lnt_operand *o = lnt_output(site, i);
    const bool known = dtype == LNT_STRING || lnt_dtype_size(dtype) > 0; /* attributes may hold any number */
    if (o)
        o->dtype = (uint8_t)(known ? dtype : LNT_UNDEFINED);
}

/* Element i of an integer, bool or floating tensor. */
static bool read_int(const lnt_operand *o, int64_t i, int64_t *out)
{
    switch (o->dtype) {
    case LNT_INT64: *out = ((const int64_t *)o->data)[i]; return true;
    case LNT_UINT64: *out = (int64_t)((const uint64_t *)o->data)[i]; return true;
    case LNT_INT32: *out = ((const int32_t *)o->data)[i]; return true;
    case LNT_UINT32: *out = ((const uint32_t *)o->data)[i]; return true;
    case LNT_INT16: *out = ((const int16_t *)o->data)[i]; return true;
    case LNT_UINT16: *out = ((const uint16_t *)o->data)[i]; return true;
    case LNT_INT8: *out = ((const int8_t *)o->data)[i]; return true;
    case LNT_UINT8:
    case LNT_BOOL: *out = ((const uint8_t *)o->data)[i]; return true;
    default: return false;
    }
}

static bool read_float(const lnt_operand *o, int64_t i, double *out)
{
    switch (o->dtype) {
    case LNT_FLOAT: *out = ((const float *)o->data)[i]; return true;
    case LNT_DOUBLE: *out = ((const double *)o->data)[i]; return true;
    case LNT_FLOAT16: *out = lnt_f16_to_float(((const uint16_t *)o->data)[i]); return true;
    case LNT_BFLOAT16: *out = lnt_bf16_to_float(((const uint16_t *)o->data)[i]); return true;
    default: return false;
    }
}

/* Common ground of lnt_value_ints and lnt_value_floats: *count elements of a known, plain input i. */
static lnt_status value_of(const lnt_site *site, unsigned i, unsigned capacity, unsigned *n, bool *given,
                           const lnt_operand **operand)
{
    const lnt_operand *o = *operand = lnt_input(site, i);
    *n = 0;
    if (given)
        *given = o != NULL;
    if (!o)
        return LNT_OK;
    const int64_t count = lnt_operand_count(o);
    if (o->packed || (!o->data && count != 0))
        return LNT_UNKNOWN;
    if (count < 0 || count > capacity)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "input %u has %lld elements, at most %u are expected", i,
                             (long long)count, capacity);
    *n = (unsigned)count;
    return LNT_OK;
}

lnt_status lnt_value_ints(const lnt_site *site, unsigned i, int64_t *out, unsigned *n, bool *given)
{
    const lnt_operand *o;
    LNT_TRY(value_of(site, i, *n, n, given, &o));
    for (unsigned e = 0; e < *n; e++)
        if (!read_int(o, e, &out[e]))
            return LNT_SITE_FAIL(site, LNT_E_TYPE, "input %u must hold integers, not %s", i,
                                 lnt_dtype_text(o->dtype));
    return LNT_OK;
}

lnt_status lnt_value_floats(const lnt_site *site, unsigned i, double *out, unsigned *n, bool *given)
{
    const lnt_operand *o;
    LNT_TRY(value_of(site, i, *n, n, given, &o));
    for (unsigned e = 0; e < *n; e++)
        if (!read_float(o, e, &out[e]))
            return LNT_SITE_FAIL(site, LNT_E_TYPE, "input %u must hold floating-point numbers, not %s", i,
                                 lnt_dtype_text(o->dtype));
    return LNT_OK;
}

int64_t lnt_dim_mul(int64_t a, int64_t b)
{
    int64_t r;
    if (b == 1)
        return a;
    if (a == 1)
        return b;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) ? LNT_DIM_UNKNOWN : r;
}

lnt_status lnt_axis(const lnt_site *site, int64_t axis, unsigned rank, unsigned *out)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "axis %lld is outside a tensor of rank %u",
                             (long long)axis, rank);
    *out = (unsigned)(axis < 0 ? axis + rank : axis);
    return LNT_OK;
}

/* One axis of a broadcast; false if a and b cannot meet. */
static bool broadcast_dim(int64_t a, int64_t b, int64_t *out)
{
    if (a == b || b == 1)
        *out = a;
    else if (a == 1)
        *out = b;
    else if (a < 0 || b < 0)
        *out = a > 1 ? a : b > 1 ? b : LNT_DIM_UNKNOWN;
    else
        return false;
    return true;
}

lnt_status lnt_broadcast_dims(const lnt_site *site, unsigned *rank, int64_t *out, const lnt_operand *b)
{
    const unsigned ra = *rank, rb = b->rank, r = ra > rb ? ra : rb;
    int64_t merged[LNT_MAX_RANK];
    for (unsigned i = 0; i < r; i++) {
        const int64_t da = i + ra >= r ? out[i + ra - r] : 1, db = i + rb >= r ? b->dims[i + rb - r] : 1;
        if (!broadcast_dim(da, db, &merged[i]))
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "extents %lld and %lld do not broadcast", (long long)da,
                                 (long long)db);
    }
    memcpy(out, merged, r * sizeof *out);
    *rank = r;
    return LNT_OK;
}

/* Control flow has no shape of its own: converter and runtime look into its subgraphs. */
lnt_status lnt_shape_control(lnt_site *site)
{
    (void)site;
    return LNT_UNKNOWN;
}

lnt_status lnt_bind_control(lnt_site *site)
{
    return LNT_SITE_FAIL(site, LNT_E_INTERNAL, "control flow is bound by the runtime");
}

lnt_status lnt_shape_same(lnt_site *site)
{
    for (unsigned i = 0; i < site->n_out; i++)
        lnt_set_dims_like(site, i, site->in[0]);
    return LNT_OK;
}

lnt_status lnt_shape_broadcast(lnt_site *site)
{
    unsigned rank = 0;
    int64_t dims[LNT_MAX_RANK];
    for (unsigned i = 0; i < site->n_in; i++)
        if (site->in[i])
            LNT_TRY(lnt_broadcast_dims(site, &rank, dims, site->in[i]));
    lnt_set_dims(site, 0, rank, dims);
    return LNT_OK;
}

bool lnt_order_free(const lnt_operand *o)
{
    int64_t positions = 1;
    for (unsigned i = 2; i < o->rank; i++)
        positions = lnt_dim_mul(positions, o->dims[i]);
    return o->rank < 3 || o->dims[1] == 1 || positions == 1;
}

/* ---- bind ---- */

void *lnt_bind_params(lnt_site *site, size_t bytes)
{
    void *params = lnt_bump_alloc(site->memory, bytes, site->err);
    site->step->params = params;
    return params;
}

void lnt_bind_scratch(lnt_site *site, size_t bytes)
{
    site->step->scratch_bytes = bytes;
}

bool lnt_reserve(size_t *total, int64_t n, size_t size, size_t *at)
{
    const size_t most = PTRDIFF_MAX - LNT_ALIGN;
    size_t bytes;
    *at = *total;
    if (n < 0 || (uint64_t)n > most || !lnt_mul_size((size_t)n, size, &bytes) || bytes > most ||
        *total > most - bytes)
        return false;
    *total += lnt_round_up(bytes, LNT_ALIGN);
    return true;
}

bool lnt_bind_view(lnt_site *site, unsigned out, unsigned in, size_t offset)
{
    LNT_ASSERT(in < site->n_in && site->in[in]);
    if (out >= LNT_MAX_VIEWS || in > INT16_MAX || site->in[in]->packed)
        return false;
    site->view_of[out] = (int16_t)in;
    site->view_offset[out] = offset;
    return true;
}

void lnt_bind_in_place(lnt_site *site, unsigned out, unsigned in)
{
    LNT_ASSERT(in < site->n_in && out < site->n_out);
    if (in < 32 && out == 0)
        site->step->in_place |= 1u << in;
}

void lnt_bind_append(lnt_site *site, const lnt_append *append, unsigned n)
{
    LNT_ASSERT(n == 0 || append);
    site->step->append = append;
    site->step->n_append = n;
}

void lnt_bind_pitched(lnt_site *site)
{
    site->step->pitched = true;
}

void lnt_bind_pitched_input(lnt_site *site, unsigned in)
{
    if (in < 32)
        site->step->pitched_in |= 1u << in;
}

void lnt_bind_join(lnt_site *site, const lnt_join *join)
{
    LNT_ASSERT(join && site->n_out > 0);
    site->step->join = join;
}

lnt_status lnt_bind_unsupported_type(lnt_site *site, lnt_dtype dtype)
{
    return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "%s is not implemented for %s", lnt_op_name(site->node->op),
                         lnt_dtype_text(dtype));
}
