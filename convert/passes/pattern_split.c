/* pattern_split.c — a product whose result is only read in slices of its channels (gates, heads, halves that
 * go different ways) becomes a product for each slice: no slice is copied, and what follows each goes into
 * its epilogue. An activation in between is repeated with the slices. */
#include "convert/passes/patterns.h"

#include <string.h>

enum {
    MAX_PARTS = 8,
    LEAST_CHANNELS = 16,     /* a panel */
    LEAST_MATRIX = 32 * 1024 /* elements; in a smaller product a call costs more than a copied slice */
};

typedef struct part {
    uint32_t out; /* the slice */
    int64_t first, channels;
    lnt_gnode *reader; /* the Slice or Split */
} part;

typedef struct split {
    lnt_gnode *product, *activation; /* activation: NULL if there is none */
    unsigned axis;                   /* of the channels, in the result */
    int64_t channels;
    part part[MAX_PARTS];
    unsigned n;
} split;

/* ---- finding the parts ---- */

static bool add_part(split *s, lnt_gnode *reader, uint32_t out, int64_t first, int64_t channels)
{
    if (s->n == MAX_PARTS || channels < LEAST_CHANNELS || first < 0 || first + channels > s->channels)
        return false;
    for (unsigned i = 0; i < s->n; i++)
        if (first < s->part[i].first + s->part[i].channels && s->part[i].first < first + channels)
            return false;
    s->part[s->n++] = (part){out, first, channels, reader};
    return true;
}

static bool one_int(const lnt_graph *g, const lnt_gnode *n, unsigned i, int64_t *out)
{
    unsigned count = 1;
    return lnt_in_value(n, i) != LNT_NONE && lnt_constant_ints(g, n->in[i], out, &count) && count == 1;
}

/* A Slice of channels alone. */
static bool add_slice(const lnt_graph *g, split *s, lnt_gnode *n, unsigned rank)
{
    int64_t start, end, axis = 0, step = 1;
    if (!one_int(g, n, 1, &start) || !one_int(g, n, 2, &end) ||
        (lnt_in_value(n, 3) != LNT_NONE && !one_int(g, n, 3, &axis)) ||
        (lnt_in_value(n, 4) != LNT_NONE && !one_int(g, n, 4, &step)) || step != 1)
        return false;
    start += start < 0 ? s->channels : 0;
    end += end < 0 ? s->channels : 0;
    end = end > s->channels ? s->channels : end;
    return (axis < 0 ? axis + rank : axis) == s->axis && add_part(s, n, n->out[0], start, end - start);
}

static bool add_split(const lnt_graph *g, split *s, lnt_gnode *n, unsigned rank)
{
    int64_t axis = lnt_gnode_int(n, "axis", 0), first = 0;
    if ((axis < 0 ? axis + rank : axis) != s->axis)
        return false;
    for (unsigned i = 0; i < n->n_out; i++) {
        const lnt_operand *o = lnt_ginfo(g, n->out[i]);
        if (!o || o->rank != rank || !add_part(s, n, n->out[i], first, o->dims[s->axis]))
            return false;
        first += o->dims[s->axis];
    }
    return first == s->channels;
}

/* All readers of the value are slices of its channels. */
static bool read_in_parts(lnt_edit *e, split *s, uint32_t value)
{
    const lnt_graph *g = e->g;
    const unsigned rank = lnt_ginfo(g, value)->rank;
    uint32_t at = LNT_EDIT_FIRST;
    for (lnt_gnode *n; (n = lnt_edit_reader(e, value, &at)) != NULL;)
        if (n->in[0] != value || n->subgraph != s->product->subgraph ||
            !(lnt_is(n, Slice) ? add_slice(g, s, n, rank) : lnt_is(n, Split) && add_split(g, s, n, rank)))
            return false;
    return s->n > 0;
}

/* A constant of one element for each of the last axis's channels. */
static bool is_row(const lnt_graph *g, uint32_t value, int64_t channels)
{
    int64_t count;
    return lnt_constant_floats(g, value, &count) && lnt_ginfo(g, value)->rank == 1 && count == channels;
}

/* Works on each element by itself, with numbers that are the same for all or, along the last axis, for each
 * channel. */
static bool acts_alone(const lnt_graph *g, const split *s, const lnt_gnode *n, uint32_t x)
{
    const bool rows = s->axis + 1u == lnt_ginfo(g, x)->rank;
    double k;
    for (unsigned i = 0; i < n->n_in; i++)
        if (n->in[i] != x && n->in[i] != LNT_NONE && !lnt_constant_scalar(g, n->in[i], &k) &&
            !(rows && is_row(g, n->in[i], s->channels)))
            return false;
    return (n->op->flags & LNT_OP_ELEMENTWISE) && n->n_out == 1 && !n->program &&
           lnt_same_dims(lnt_ginfo(g, x), lnt_ginfo(g, n->out[0]));
}

static bool find_parts(lnt_edit *e, lnt_gnode *n, split *s)
{
    const lnt_graph *g = e->g;
    int64_t count;
    if (n->dead || n->program || !(lnt_is(n, Conv) || lnt_is(n, MatMul)) ||
        (lnt_is(n, Conv) && lnt_gnode_int(n, "group", 1) != 1) || !lnt_constant_floats(g, n->in[1], &count) ||
        lnt_edit_pinned(e, n->out[0]))
        return false;
    const lnt_operand *w = lnt_ginfo(g, n->in[1]), *out = lnt_ginfo(g, n->out[0]);
    if (out->rank > LNT_MAX_RANK || (lnt_is(n, MatMul) && (w->rank != 2 || count < LEAST_MATRIX)))
        return false;
    *s = (split){.product = n, .axis = lnt_is(n, Conv) ? 1 : out->rank - 1u};
    s->channels = w->dims[lnt_is(n, Conv) ? 0 : 1];
    lnt_gnode *u = lnt_edit_follower(e, n);
    if (u && acts_alone(g, s, u, n->out[0]) && !lnt_edit_pinned(e, u->out[0])) {
        s->activation = u;
        return read_in_parts(e, s, u->out[0]);
    }
    return read_in_parts(e, s, n->out[0]);
}

/* ---- writing the parts ---- */

/* Rows [first, first + n) of the constant seen as [rows][row bytes]. */
static uint32_t some_rows(lnt_graph *g, uint32_t value, int64_t first, int64_t n)
{
    const lnt_gvalue v = g->value[value];
    int64_t dims[LNT_MAX_RANK];
    const size_t row = v.bytes / (size_t)v.info.dims[0];
    memcpy(dims, v.info.dims, sizeof dims);
    dims[0] = n;
    return lnt_add_floats(g, v.name, v.info.rank, dims,
                          (const float *)(const void *)((const char *)v.info.data + (size_t)first * row));
}

static uint32_t some_columns(lnt_graph *g, uint32_t value, int64_t first, int64_t n)
{
    const lnt_gvalue v = g->value[value];
    const int64_t rows = v.info.dims[0], width = v.info.dims[1], dims[2] = {rows, n};
    const float *from = v.info.data;
    float *to = lnt_bump_alloc(&g->memory, (size_t)(rows * n) * sizeof *to, g->err);
    if (!to)
        return LNT_NONE;
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + r * n, from + r * width + first, (size_t)n * sizeof *to);
    return lnt_add_floats(g, v.name, 2, dims, to);
}

static lnt_status write_part(lnt_edit *e, const split *s, const part *p)
{
    lnt_graph *g = e->g;
    const lnt_gnode *n = s->product;
    const bool conv = lnt_is(n, Conv);
    const uint32_t bias = conv ? lnt_in_value(n, 2) : LNT_NONE;
    uint32_t in[3] = {n->in[0], (conv ? some_rows : some_columns)(g, n->in[1], p->first, p->channels),
                      LNT_NONE};
    uint32_t made = s->activation ? LNT_NONE : p->out;
    if (bias != LNT_NONE && (in[2] = some_rows(g, bias, p->first, p->channels)) == LNT_NONE)
        return LNT_E_MEMORY;
    lnt_gnode *product =
        in[1] == LNT_NONE ? NULL
                          : lnt_edit_insert(e, p->reader, n->op, in, bias == LNT_NONE ? 2 : 3, made, &made);
    for (unsigned i = 0; product && i < n->n_attr; i++)
        LNT_TRY(lnt_gnode_set_attr(g, product, &n->attr[i]));
    if (!product || !s->activation)
        return product ? LNT_OK : LNT_E_MEMORY;
    const lnt_gnode *a = s->activation;
    uint32_t operand[4];
    for (unsigned i = 0; i < a->n_in; i++) {
        operand[i] = a->in[i] == n->out[0] ? made : a->in[i];
        if (is_row(g, operand[i], s->channels) && p->channels < s->channels &&
            (operand[i] = some_rows(g, operand[i], p->first, p->channels)) == LNT_NONE)
            return LNT_E_MEMORY;
    }
    lnt_gnode *act = lnt_edit_insert(e, p->reader, a->op, operand, a->n_in, p->out, NULL);
    for (unsigned i = 0; act && i < a->n_attr; i++)
        LNT_TRY(lnt_gnode_set_attr(g, act, &a->attr[i]));
    return act ? LNT_OK : LNT_E_MEMORY;
}

lnt_status lnt_split_product(lnt_edit *e, lnt_gnode *n)
{
    split s;
    int64_t count;
    if (!find_parts(e, n, &s) || (s.activation && s.activation->n_in > 4) ||
        (lnt_is(n, Conv) && lnt_in_value(n, 2) != LNT_NONE && !lnt_constant_floats(e->g, n->in[2], &count)))
        return LNT_OK;
    for (unsigned i = 0; i < s.n; i++)
        LNT_TRY(write_part(e, &s, &s.part[i]));
    for (unsigned i = 0; i < s.n; i++)
        lnt_edit_drop(e, s.part[i].reader);
    lnt_edit_drop(e, n);
    if (s.activation)
        lnt_edit_drop(e, s.activation);
    return lnt_edit_count(e, "products split where their slices part");
}
