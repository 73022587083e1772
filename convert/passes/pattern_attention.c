/* pattern_attention.c — attention as exporters write it, softmax(scale * Q K^T + mask) V with the reshapes
 * and transposes around it, put in the form of one Attention node. */
#include "convert/passes/patterns.h"

#include <math.h>
#include <string.h>

enum { MAX_MASKS = 3 };

/* A node between the product and the softmax that masks: Add of a mask, or Where with something far below. */
typedef struct masking {
    const lnt_gnode *node;
    unsigned logits; /* the input that holds them */
} masking;

typedef struct found {
    lnt_gnode *product;          /* Q K^T */
    lnt_gnode *transpose, *last; /* behind the second product, or NULL; the node whose output is replaced */
    uint32_t q, k, v;
    int64_t heads, kv_heads; /* 0: not told by the operands */
    double scale;
    masking mask[MAX_MASKS]; /* the last one first */
    unsigned n_masks, rank;  /* rank: of the result */
} found;

static lnt_gnode *producer_of(const lnt_graph *g, uint32_t value)
{
    return value == LNT_NONE ? NULL : g->value[value].producer;
}

static bool has_perm(const lnt_gnode *n, unsigned rank, const int64_t *perm)
{
    const lnt_attr *a = lnt_gnode_perm(n);
    return a && a->count == rank && memcmp(a->i, perm, rank * sizeof *perm) == 0;
}

static const int64_t swap_heads[] = {0, 2, 1, 3}, swap_last[] = {0, 1, 3, 2}, to_columns[] = {0, 2, 3, 1};

static bool known_same(int64_t a, int64_t b)
{
    return a == b && a != LNT_DIM_UNKNOWN;
}

/* ---- from the softmax back to the product ---- */

/* x times or divided by a constant: x, with *scale multiplied. */
static uint32_t unscaled(const lnt_graph *g, uint32_t value, double *scale)
{
    const lnt_gnode *n = producer_of(g, value);
    double s;
    unsigned other;
    if (lnt_is(n, Mul) && lnt_scalar_operand(g, n, &s, &other)) {
        *scale *= s;
        return n->in[other];
    }
    if (lnt_is(n, Div) && lnt_constant_scalar(g, n->in[1], &s) && s != 0) {
        *scale /= s;
        return n->in[0];
    }
    return value;
}

static bool is_product(const lnt_gnode *n)
{
    return (lnt_is(n, MatMul) || lnt_is(n, FusedMatMul)) && !n->program;
}

/* Does value come from a product through nothing but scaling and masking? */
static bool leads_to_product(const lnt_graph *g, uint32_t value, unsigned depth)
{
    double scale = 1;
    const lnt_gnode *n = producer_of(g, unscaled(g, value, &scale));
    if (is_product(n))
        return true;
    if (!depth || (!lnt_is(n, Add) && !lnt_is(n, Where)))
        return false;
    for (unsigned i = 0; i < n->n_in; i++)
        if (leads_to_product(g, n->in[i], depth - 1))
            return true;
    return false;
}

/* The input of n that holds the logits, if n masks. */
static bool masks(const lnt_graph *g, const lnt_gnode *n, unsigned *logits)
{
    double far;
    if (lnt_is(n, Add)) {
        *logits = leads_to_product(g, n->in[0], MAX_MASKS) ? 0 : 1;
        return leads_to_product(g, n->in[*logits], MAX_MASKS);
    }
    for (*logits = 1; lnt_is(n, Where) && *logits <= 2; (*logits)++)
        if (lnt_constant_scalar(g, n->in[3 - *logits], &far) && far <= -1e9 &&
            leads_to_product(g, n->in[*logits], MAX_MASKS))
            return true;
    return false;
}

/* Is `reader` the only one of n's output, but for a Shape that a mask is expanded by? */
static bool only_reader(lnt_edit *e, const lnt_gnode *n, const lnt_gnode *reader)
{
    const uint32_t value = n->out[0];
    uint32_t at = LNT_EDIT_FIRST;
    if (lnt_edit_uses(e, value) != 2)
        return lnt_edit_follower(e, n) == reader;
    for (const lnt_gnode *shape; (shape = lnt_edit_reader(e, value, &at)) != NULL;)
        if (lnt_is(shape, Shape) && shape->subgraph == n->subgraph)
            return !lnt_edit_pinned(e, value) && reader->subgraph == n->subgraph &&
                   lnt_is(lnt_edit_follower(e, shape), Expand);
    return false;
}

/* Fills masks, scale and product; value is what the softmax is given. Every node on the way has one reader. */
static bool find_logits(lnt_edit *e, const lnt_gnode *softmax, found *f)
{
    const lnt_graph *g = e->g;
    const lnt_gnode *reader = softmax;
    uint32_t value = softmax->in[0];
    f->scale = 1;
    for (;;) {
        lnt_gnode *n = producer_of(g, value);
        unsigned logits;
        if (!n || !only_reader(e, n, reader))
            return false;
        reader = n;
        if (is_product(n)) {
            f->product = n;
            return true;
        }
        const uint32_t before = unscaled(g, value, &f->scale);
        if (before != value) {
            value = before;
        } else if (f->scale == 1 && f->n_masks < MAX_MASKS && masks(g, n, &logits)) {
            f->mask[f->n_masks++] = (masking){n, logits};
            value = n->in[logits];
        } else {
            return false;
        }
    }
}

/* ---- operands ---- */

/* [batch][head][row][width] that is a transposed Reshape of [batch][row][head * width]: that, and *heads. */
static uint32_t before_split(const lnt_graph *g, const lnt_gnode *transpose, int64_t *heads)
{
    const lnt_gnode *reshape = producer_of(g, transpose->in[0]);
    if (!lnt_is(reshape, Reshape))
        return LNT_NONE;
    const lnt_operand *from = lnt_ginfo(g, reshape->in[0]), *to = lnt_ginfo(g, reshape->out[0]);
    if (from->rank != 3 || to->rank != 4 || to->dims[2] < 1 || to->dims[3] < 1 ||
        from->dims[2] != to->dims[2] * to->dims[3] || !known_same(from->dims[0], to->dims[0]))
        return LNT_NONE;
    *heads = to->dims[2];
    return reshape->in[0];
}

/* Is value part *i of a stack along axis 0, that axis taken away? */
static uint32_t stack_of(const lnt_graph *g, uint32_t value, int64_t *i)
{
    const lnt_gnode *n = producer_of(g, value);
    unsigned count = 1;
    if (lnt_is(n, Gather) && lnt_gnode_int(n, "axis", 0) == 0 && lnt_ginfo(g, n->in[1])->rank == 0 &&
        lnt_constant_ints(g, n->in[1], i, &count))
        return n->in[0];
    const lnt_gnode *split = lnt_is(n, Squeeze) ? producer_of(g, n->in[0]) : NULL;
    if (!lnt_is(split, Split) || lnt_gnode_int(split, "axis", 0) != 0 || lnt_ginfo(g, n->in[0])->rank != 5 ||
        lnt_ginfo(g, n->in[0])->dims[0] != 1 || lnt_in_value(n, 1) == LNT_NONE ||
        !lnt_constant_ints(g, n->in[1], i, &count) || *i != 0)
        return LNT_NONE;
    for (*i = 0; split->out[*i] != n->in[0]; ++*i)
        if (lnt_ginfo(g, split->out[*i])->dims[0] != 1)
            return LNT_NONE;
    return split->in[0];
}

/* [batch][head][row][width] out of a stack that is a transposed Reshape of [batch][row][part * head * width]:
 * those columns of it, sliced before `at`. */
static uint32_t unstacked(lnt_edit *e, lnt_gnode *at, uint32_t value, int64_t *heads)
{
    static const int64_t parts_first[] = {2, 0, 3, 1, 4}, last = 2;
    lnt_graph *g = e->g;
    int64_t i;
    const lnt_gnode *t = producer_of(g, stack_of(g, value, &i));
    const lnt_gnode *reshape = has_perm(t, 5, parts_first) ? producer_of(g, t->in[0]) : NULL;
    if (!lnt_is(reshape, Reshape))
        return LNT_NONE;
    const lnt_operand *from = lnt_ginfo(g, reshape->in[0]), *to = lnt_ginfo(g, reshape->out[0]);
    const int64_t width = to->dims[3] * to->dims[4];
    i += i < 0 ? to->dims[2] : 0;
    if (from->rank != 3 || to->dims[2] < 1 || to->dims[3] < 1 || to->dims[4] < 1 ||
        from->dims[2] != to->dims[2] * width || !known_same(from->dims[0], to->dims[0]))
        return LNT_NONE;
    *heads = to->dims[3];
    const int64_t start = i * width, end = start + width;
    const uint32_t in[] = {reshape->in[0], lnt_add_ints(g, "start", 1, &start),
                           lnt_add_ints(g, "end", 1, &end), lnt_add_ints(g, "axis", 1, &last)};
    uint32_t made = LNT_NONE;
    const lnt_gnode *slice = lnt_edit_insert(e, at, lnt_op_by_id(LNT_ID_Slice), in, 4, LNT_NONE, &made);
    return slice && lnt_graph_infer_node(g, slice) == LNT_OK ? made : LNT_NONE;
}

/* An operand [batch][head][row][width] in the form Attention reads with least work. */
static uint32_t operand(lnt_edit *e, lnt_gnode *at, uint32_t value, int64_t *heads)
{
    const lnt_graph *g = e->g;
    const lnt_gnode *n = producer_of(g, value);
    uint32_t split = has_perm(n, 4, swap_heads) ? before_split(g, n, heads) : LNT_NONE;
    if (split == LNT_NONE)
        split = unstacked(e, at, value, heads);
    if (split != LNT_NONE)
        return split;
    *heads = lnt_ginfo(g, value)->dims[1];
    return value;
}

/* Key heads that were repeated for the queries of their group: [b][h][t][d] unsqueezed, expanded along the
 * new axis 2 and reshaped to as many heads. Gives the keys as they were. */
static uint32_t unrepeated(const lnt_graph *g, uint32_t value)
{
    const lnt_gnode *reshape = producer_of(g, value);
    const lnt_gnode *expand = lnt_is(reshape, Reshape) ? producer_of(g, reshape->in[0]) : NULL;
    const lnt_gnode *unsqueeze = lnt_is(expand, Expand) ? producer_of(g, expand->in[0]) : NULL;
    int64_t axis;
    unsigned count = 1;
    if (!lnt_is(unsqueeze, Unsqueeze) || !lnt_constant_ints(g, unsqueeze->in[1], &axis, &count) ||
        (axis != 2 && axis != -3))
        return value;
    const lnt_operand *own = lnt_ginfo(g, unsqueeze->in[0]), *wide = lnt_ginfo(g, expand->out[0]),
                      *all = lnt_ginfo(g, value);
    if (own->rank != 4 || wide->rank != 5 || all->rank != 4 || own->dims[1] < 1 || own->dims[3] < 1 ||
        wide->dims[1] != own->dims[1] || wide->dims[4] != own->dims[3] || all->dims[3] != own->dims[3] ||
        wide->dims[2] < 1 || all->dims[1] != own->dims[1] * wide->dims[2] ||
        !known_same(all->dims[0], own->dims[0]))
        return value;
    return unsqueeze->in[0];
}

/* K of the product's second input, which is K^T, or K where the product transposes it itself. */
static bool find_keys(lnt_edit *e, found *f)
{
    lnt_graph *g = e->g;
    lnt_gnode *n = f->product;
    uint32_t value = unscaled(g, n->in[1], &f->scale);
    const lnt_gnode *t = producer_of(g, value);
    if (lnt_is(n, FusedMatMul)) {
        if (lnt_gnode_int(n, "transA", 0) || !lnt_gnode_int(n, "transB", 0))
            return false;
        f->scale *= (double)lnt_gnode_float(n, "alpha", 1);
    } else if (has_perm(t, 4, to_columns)) {
        const uint32_t split = before_split(g, t, &f->kv_heads);
        if (split != LNT_NONE) {
            f->k = split;
            return true;
        }
        const lnt_attr perm = {.name = "perm", .type = LNT_ATTR_INTS, .count = 4, .i = swap_heads};
        lnt_gnode *own = lnt_edit_insert(e, n, t->op, t->in, 1, LNT_NONE, &value);
        if (!own || lnt_gnode_set_attr(g, own, &perm) != LNT_OK || lnt_graph_infer_node(g, own) != LNT_OK)
            return false;
    } else if (has_perm(t, 4, swap_last)) {
        value = t->in[0];
    } else {
        return false;
    }
    value = unrepeated(g, unscaled(g, value, &f->scale));
    f->k = operand(e, f->product, value, &f->kv_heads);
    return true;
}

static bool find_operands(lnt_edit *e, const lnt_gnode *n, found *f)
{
    const lnt_graph *g = e->g;
    int64_t v_heads;
    const uint32_t q = unscaled(g, f->product->in[0], &f->scale), v = unrepeated(g, n->in[1]);
    for (unsigned i = 0; i < 2; i++)
        if (lnt_ginfo(g, f->product->in[i])->rank != 4 || lnt_ginfo(g, n->in[i])->rank != 4)
            return false;
    if (!find_keys(e, f))
        return false;
    f->q = operand(e, f->product, q, &f->heads);
    f->v = operand(e, f->product, v, &v_heads);
    return f->heads > 0 && f->kv_heads > 0 && v_heads == f->kv_heads && f->heads % f->kv_heads == 0;
}

/* ---- masks ---- */

/* The mask of extents [batch or 1][head or 1][query][key]; only the last two may be unknown. */
static bool mask_fits(const lnt_graph *g, uint32_t mask, const lnt_operand *logits)
{
    const lnt_operand *m = lnt_ginfo(g, mask);
    if (m->rank < 1 || m->rank > 4 || m->dtype != LNT_FLOAT)
        return false;
    for (unsigned d = 0; d < m->rank; d++) {
        const unsigned axis = d + 4 - m->rank;
        const int64_t extent = m->dims[d];
        const bool same = known_same(extent, logits->dims[axis]) || (axis >= 2 && extent < 0);
        if (!same && (extent != 1 || axis == 3))
            return false;
    }
    return true;
}

/* What was expanded to the logits' extents does as it was. */
static uint32_t unexpanded(const lnt_graph *g, uint32_t value, const lnt_operand *logits)
{
    const lnt_gnode *n = producer_of(g, value);
    const lnt_operand *o = lnt_ginfo(g, value);
    if (!lnt_is(n, Expand) || o->rank != 4)
        return value;
    for (unsigned d = 0; d < 4; d++)
        if (o->dims[d] != 1 && !known_same(o->dims[d], logits->dims[d]))
            return value;
    return n->in[0];
}

/* One mask that is added to the logits; LNT_NONE where there is none, *fine false where it cannot be had. */
static uint32_t make_mask(lnt_edit *e, const found *f, bool *fine)
{
    lnt_graph *g = e->g;
    const lnt_operand *extents = lnt_ginfo(g, f->product->out[0]);
    uint32_t mask = LNT_NONE;
    const float nothing = 0;
    for (unsigned i = f->n_masks; i-- > 0;) {
        const lnt_gnode *n = f->mask[i].node;
        const unsigned logits = f->mask[i].logits;
        uint32_t in[3] = {mask};
        if (lnt_is(n, Add)) {
            in[1] = unexpanded(g, n->in[1 - logits], extents);
            if (mask == LNT_NONE) {
                mask = in[1];
                continue;
            }
        } else {
            memcpy(in, n->in, sizeof in);
            in[0] = unexpanded(g, in[0], extents);
            in[logits] = mask == LNT_NONE ? lnt_add_floats(g, "0", 0, NULL, &nothing) : mask;
        }
        lnt_gnode *made = lnt_edit_insert(e, f->last, n->op, in, n->n_in, LNT_NONE, &mask);
        *fine = made && lnt_graph_infer_node(g, made) == LNT_OK;
        if (!*fine)
            return LNT_NONE;
        extents = lnt_ginfo(g, f->product->out[0]); /* the values may have moved */
    }
    *fine = mask == LNT_NONE || mask_fits(g, mask, extents);
    return mask;
}

/* ---- */

/* Softmax along the last axis; behind it may stand Where(IsNaN(p), 0, p), which the operator does by itself. */
static const lnt_gnode *softmax_of(lnt_edit *e, const lnt_gnode *n)
{
    const lnt_graph *g = e->g;
    const lnt_gnode *p = lnt_producer(g, n, 0), *reader = n;
    double zero;
    if (lnt_is(p, Where) && lnt_edit_follower(e, p) == n) {
        const lnt_gnode *nan = producer_of(g, p->in[0]);
        reader = p;
        if (!lnt_is(nan, IsNaN) || nan->in[0] != p->in[2] || !lnt_constant_scalar(g, p->in[1], &zero) ||
            zero != 0 || lnt_edit_uses(e, p->in[2]) != 2 || lnt_edit_pinned(e, p->in[2]))
            return NULL;
        p = producer_of(g, p->in[2]);
    }
    const int64_t axis = lnt_is(p, Softmax) ? lnt_gnode_int(p, "axis", -1) : 0;
    const bool only = lnt_is(p, Softmax) && (reader != n || lnt_edit_follower(e, p) == n);
    return only && (axis == -1 || axis == 3) ? p : NULL;
}

/* Where the heads are merged behind the product, the node that has done so gives the result, of rank 3. */
static void find_end(lnt_edit *e, lnt_gnode *n, found *f)
{
    const lnt_graph *g = e->g;
    lnt_gnode *t = lnt_edit_follower(e, n), *merge;
    f->last = n;
    f->rank = 4;
    if (!has_perm(t, 4, swap_heads) || !lnt_is(merge = lnt_edit_follower(e, t), Reshape))
        return;
    const lnt_operand *from = lnt_ginfo(g, t->out[0]), *to = lnt_ginfo(g, merge->out[0]);
    if (to->rank == 3 && from->dims[2] > 0 && from->dims[3] > 0 &&
        to->dims[2] == from->dims[2] * from->dims[3] && known_same(to->dims[0], from->dims[0])) {
        f->transpose = t;
        f->last = merge;
        f->rank = 3;
    }
}

lnt_status lnt_fuse_attention(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    found f = {.q = LNT_NONE};
    const lnt_gnode *softmax = lnt_is(n, MatMul) && !n->program ? softmax_of(e, n) : NULL;
    if (!softmax || lnt_ginfo(g, n->out[0])->dtype != LNT_FLOAT || !find_logits(e, softmax, &f) ||
        !find_operands(e, n, &f))
        return g->err->code;
    find_end(e, n, &f);
    bool fine;
    const uint32_t mask = make_mask(e, &f, &fine);
    if (!fine)
        return g->err->code;
    const uint32_t in[] = {f.q, f.k, f.v, mask};
    lnt_gnode *a =
        lnt_edit_substitute(e, f.last, lnt_op_by_id(LNT_ID_Attention), in, mask == LNT_NONE ? 3 : 4);
    if (!a)
        return LNT_E_MEMORY;
    lnt_edit_drop(e, n);
    if (f.transpose)
        lnt_edit_drop(e, f.transpose);
    LNT_TRY(lnt_gnode_set_int(g, a, "q_num_heads", f.heads));
    LNT_TRY(lnt_gnode_set_int(g, a, "kv_num_heads", f.kv_heads));
    LNT_TRY(lnt_gnode_set_int(g, a, "output_rank", f.rank));
    LNT_TRY(lnt_gnode_set_float(g, a, "scale", (float)f.scale));
    return lnt_edit_count(e, "Attention");
}

/* ---- caches ---- */

/* The Concat along axis 2 of [batch][head][past][width] and what is new, that nobody else reads than n's
 * input i; or NULL. */
static lnt_gnode *cache_of(lnt_edit *e, const lnt_gnode *n, unsigned i)
{
    lnt_gnode *c = lnt_producer(e->g, n, i);
    if (!lnt_is(c, Concat) || c->n_in != 2 || c->subgraph != n->subgraph ||
        lnt_edit_uses(e, c->out[0]) != 1 || lnt_ginfo(e->g, c->in[0])->rank != 4 ||
        lnt_ginfo(e->g, c->in[1])->rank != 4)
        return NULL;
    const int64_t axis = lnt_gnode_int(c, "axis", 0);
    return axis == 2 || axis == -2 ? c : NULL;
}

/* Keys and values that are past ones with new ones behind them: told so, Attention appends to the cache
 * itself, in place where it is a state. */
lnt_status lnt_fuse_cache(lnt_edit *e, lnt_gnode *n)
{
    enum { KEY = 1, VALUE, PAST = 4, INPUTS = 6 };
    if (!lnt_is(n, Attention) || n->n_in > PAST || n->n_out > 1 || lnt_gnode_int(n, "is_causal", 0) ||
        lnt_gnode_int(n, "left_window_size", -1) >= 0 || lnt_gnode_int(n, "right_window_size", -1) >= 0)
        return LNT_OK;
    lnt_gnode *k = cache_of(e, n, KEY), *v = cache_of(e, n, VALUE);
    if (!k || !v || k == v)
        return LNT_OK;
    const uint32_t in[INPUTS] = {n->in[0], k->in[1], v->in[1], lnt_in_value(n, 3), k->in[0], v->in[0]};
    const uint32_t out[] = {n->out[0], k->out[0], v->out[0]};
    lnt_gnode *a = lnt_graph_add_node(e->g, n->subgraph, n, n->op, n->name, in, INPUTS, out, 3);
    if (!a)
        return LNT_E_MEMORY;
    a->attr = n->attr;
    a->n_attr = n->n_attr;
    lnt_edit_changed(e, a);
    lnt_edit_drop(e, k);
    lnt_edit_drop(e, v);
    lnt_edit_drop(e, n);
    return lnt_edit_count(e, "Attention that extends its cache");
}
