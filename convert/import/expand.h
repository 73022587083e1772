/* expand.h — what the files that make one node into several share: a maker of nodes that goes quiet after a
 * failure, so that a rule reads like the formula it stands for. */
#ifndef LNT_CONVERT_IMPORT_EXPAND_H
#define LNT_CONVERT_IMPORT_EXPAND_H

#include "convert/import/import.h"

#include <string.h>

/* Builds nodes beside n; after a failure it does nothing more and hands out LNT_NONE. */
typedef struct maker {
    lnt_importer *im;
    lnt_inode *n;
    lnt_status status;
} maker;

typedef struct operands {
    uint32_t value[18]; /* as many as any operator that is expanded has */
    unsigned n;
} operands;

#define IN(...) ((operands){{__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)})
#define INT_ATTR(text, pointer)                                                                              \
    (&(lnt_attr){.name = (text), .type = LNT_ATTR_INT, .count = 1, .i = (pointer)})
#define INTS(m, what, ...)                                                                                   \
    make_ints(m, what, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static inline uint32_t make(maker *m, const char *op, operands in, const lnt_attr *attr)
{
    uint32_t out = LNT_NONE;
    if (m->status == LNT_OK)
        m->status = lnt_make(m->im, m->n, op, in.value, in.n, attr, attr != NULL, &out);
    return m->status == LNT_OK ? out : LNT_NONE;
}

static inline void unsupported(maker *m, const char *why)
{
    if (m->status == LNT_OK)
        m->status = lnt_import_unsupported(m->im, m->n, "%s", why);
}

/* Room for n values, or for none: never NULL but after a failure. */
static inline uint32_t *list_of(maker *m, size_t n)
{
    uint32_t *list = NULL;
    if (m->status == LNT_OK)
        list = lnt_bump_alloc(&m->im->g->memory, (n + 1) * sizeof *list, m->im->err);
    if (m->status == LNT_OK && !list)
        m->status = LNT_E_MEMORY;
    return list;
}

/* A value that a node with several outputs is to write. */
static inline uint32_t new_value(maker *m, const char *what)
{
    const char *name = m->status == LNT_OK ? lnt_import_text(m->im, "%s/%s", m->n->name, what) : NULL;
    const uint32_t value = name ? lnt_graph_add_value(m->im->g, name) : LNT_NONE;
    if (value == LNT_NONE && m->status == LNT_OK)
        m->status = LNT_E_MEMORY;
    return value;
}

/* The node's output i is what this operator gives. */
static inline void finish(maker *m, unsigned i, const char *op, operands in, const lnt_attr *attr)
{
    if (m->status == LNT_OK && i < m->n->n_out && m->n->out[i] != LNT_NONE)
        m->status = lnt_make_into(m->im, m->n, op, in.value, in.n, attr, attr != NULL, m->n->out[i]);
}

static inline uint32_t make_ints(maker *m, const char *what, const int64_t *v, size_t count)
{
    uint32_t out = LNT_NONE;
    if (m->status == LNT_OK)
        m->status = lnt_make_ints(m->im, m->n, what, v, count, &out);
    return out;
}

static inline uint32_t scalar(maker *m, const char *what, lnt_dtype dtype, double v)
{
    uint32_t out = LNT_NONE;
    if (m->status == LNT_OK)
        m->status = lnt_make_scalar(m->im, m->n, what, dtype, v, &out);
    return out;
}

static inline lnt_dtype type_of(const maker *m, uint32_t value)
{
    const lnt_operand *o = lnt_ginfo(m->im->g, value);
    return o ? (lnt_dtype)o->dtype : LNT_UNDEFINED;
}

/* Extent `axis` of value as a tensor of one element. */
static inline uint32_t extent(maker *m, uint32_t value, int64_t axis)
{
    const int64_t end = axis + 1;
    const lnt_attr range[] = {*INT_ATTR("start", &axis), *INT_ATTR("end", &end)};
    uint32_t out = LNT_NONE;
    if (m->status == LNT_OK)
        m->status = lnt_make(m->im, m->n, "Shape", &value, 1, range, 2, &out);
    return out;
}

static inline uint32_t cast(maker *m, uint32_t value, lnt_dtype dtype)
{
    const int64_t to = dtype;
    return make(m, "Cast", IN(value), INT_ATTR("to", &to));
}

static inline uint32_t transpose(maker *m, uint32_t value, const int64_t *perm, unsigned rank)
{
    const lnt_attr at = {.name = "perm", .type = LNT_ATTR_INTS, .count = rank, .i = perm};
    return make(m, "Transpose", IN(value), &at);
}

/* Is it a sequence, or an optional that holds nothing? */
static inline bool is_no_tensor(const lnt_graph *g, uint32_t value)
{
    return value != LNT_NONE && (g->value[value].piece || g->value[value].absent);
}

/* Output i holds numbers of words if this value does. */
static inline void mark_text(maker *m, unsigned i, uint32_t like)
{
    if (m->status == LNT_OK && m->n->out[i] != LNT_NONE)
        m->im->g->value[m->n->out[i]].text = m->im->g->value[like].text;
}

/* Output i is what this value is: a sequence, nothing, or a tensor. */
static inline void give(maker *m, unsigned i, uint32_t value)
{
    if (m->status != LNT_OK || m->n->out[i] == LNT_NONE)
        return;
    const lnt_gvalue from = m->im->g->value[value];
    if (!from.piece && !from.absent)
        finish(m, i, "Identity", IN(value), NULL);
    lnt_gvalue *to = &m->im->g->value[m->n->out[i]];
    to->piece = from.piece;
    to->n_pieces = from.n_pieces;
    to->absent = from.absent;
    to->words = from.words;
    to->text = from.text;
}

/* An operator that becomes several nodes. */
typedef struct lnt_expansion {
    const char *op, *when; /* when: an attribute that must not be 0; or NULL */
    uint8_t in_min, in_max, out_max;
    void (*expand)(maker *m);
} lnt_expansion;

/* Expands n if the table has its operator; lists it as unsupported where its numbers of operands do not fit. */
lnt_status lnt_expand_by(const lnt_expansion *table, size_t count, lnt_importer *im, lnt_inode *n);

/* Are all values of the sequence tensors of one type, with one set of extents, which are known? */
bool lnt_sequence_is_even(const lnt_graph *g, const lnt_gvalue *s);

/* Attention and its kin of com.microsoft (expand_attention.c). */
void lnt_expand_attention(maker *m);
void lnt_expand_multi_head_attention(maker *m);
void lnt_expand_grouped_attention(maker *m);
void lnt_expand_quantized_attention(maker *m);
void lnt_expand_rotary(maker *m);

#endif
