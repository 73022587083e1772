/* pattern_einsum.c — an Einsum that is a product of matrices becomes a MatMul: constant weights of one are packed and
 * quantized, and attention is recognized in it.
 *
 * Labels fall into four sets: batch (in both operands and the output), M (in A and the output), N (in B and the
 * output), K (in both operands, summed). MatMul takes [batch..., M..., K] and [batch..., K, N]. */
#include "convert/passes/patterns.h"

#include <ctype.h>
#include <string.h>

typedef char labels[LNT_MAX_RANK + 1]; /* a letter for each axis, for one of an ellipsis a digit */

typedef struct product {
    lnt_gnode *node;
    uint32_t value[2];   /* A and B */
    labels term[2], out; /* of A, B and the output */
    labels batch, m, n, k;
} product;

/* ---- the equation ---- */

/* Reads a term of *text, of an operand of that rank, up to its end; no label may be there twice, nor an ellipsis. */
static bool read_term(const char **text, unsigned rank, unsigned *dots, labels to)
{
    unsigned letters = 0, n = 0;
    for (const char *c = *text; *c && *c != ',' && *c != '-'; c++)
        letters += isalpha((unsigned char)*c) != 0;
    for (; **text && **text != ',' && **text != '-'; ++*text) {
        const char c = **text;
        if (strncmp(*text, "...", 3) == 0) {
            *dots = rank == LNT_RANK_UNKNOWN ? *dots : rank - letters;
            if (letters + *dots > LNT_MAX_RANK || (rank != LNT_RANK_UNKNOWN && letters > rank) ||
                memchr(to, '0', n))
                return false;
            for (unsigned i = 0; i < *dots && n < LNT_MAX_RANK; i++)
                to[n++] = (char)('0' + i);
            *text += 2;
        } else if (isalpha((unsigned char)c) && n < LNT_MAX_RANK && !memchr(to, c, n)) {
            to[n++] = c;
        } else if (c != ' ') {
            return false;
        }
    }
    to[n] = '\0';
    return rank == LNT_RANK_UNKNOWN || n == rank;
}

static bool read_equation(const lnt_graph *g, product *p)
{
    const char *text = lnt_gnode_string(p->node, "equation", "");
    unsigned dots[2] = {0, 0};
    for (unsigned i = 0; i < 2; i++, text++)
        if (lnt_ginfo(g, p->value[i])->rank == LNT_RANK_UNKNOWN ||
            !read_term(&text, lnt_ginfo(g, p->value[i])->rank, &dots[i], p->term[i]) || *text != ",-"[i])
            return false;
    const bool alike = dots[0] == dots[1] || !dots[0] || !dots[1];
    unsigned most = dots[0] > dots[1] ? dots[0] : dots[1];
    return alike && *text++ == '>' && read_term(&text, LNT_RANK_UNKNOWN, &most, p->out) && !*text;
}

/* ---- what it multiplies ---- */

static void add(labels to, char label)
{
    const size_t n = strlen(to);
    to[n] = label;
    to[n + 1] = '\0';
}

/* These two, one behind the other; together no more than an operand has. */
static void join(labels to, const labels first, const labels behind)
{
    memmove(to, first, strlen(first) + 1);
    (void)strcat(to, behind);
}

static int64_t extent_of(const lnt_graph *g, const product *p, unsigned i, char label)
{
    return lnt_ginfo(g, p->value[i])->dims[strchr(p->term[i], label) - p->term[i]];
}

/* False where a label is summed in one operand alone, or extents may differ that would be stretched. */
static bool sort_labels(const lnt_graph *g, product *p)
{
    for (const char *c = p->out; *c; c++) {
        const bool a = strchr(p->term[0], *c), b = strchr(p->term[1], *c);
        if (!a && !b)
            return false;
        add(a && b ? p->batch : a ? p->m : p->n, *c);
    }
    for (const char *c = p->term[0]; *c; c++) {
        if (strchr(p->out, *c))
            continue;
        if (!strchr(p->term[1], *c))
            return false;
        const int64_t extent = extent_of(g, p, 0, *c);
        if (extent == LNT_DIM_UNKNOWN || extent == 0 || extent != extent_of(g, p, 1, *c))
            return false;
        add(p->k, *c);
    }
    for (const char *c = p->term[1]; *c; c++)
        if (!strchr(p->out, *c) && !strchr(p->term[0], *c))
            return false;
    return *p->m && *p->n && *p->k;
}

/* The node as a product whose rows are of its operand `first`. */
static bool find(const lnt_graph *g, lnt_gnode *n, unsigned first, product *p)
{
    *p = (product){.node = n, .value = {n->in[0], n->in[1]}};
    if (!read_equation(g, p))
        return false;
    if (first == 1) {
        labels swapped;
        memcpy(swapped, p->term[0], sizeof swapped);
        memcpy(p->term[0], p->term[1], sizeof swapped);
        memcpy(p->term[1], swapped, sizeof swapped);
        p->value[0] = n->in[1];
        p->value[1] = n->in[0];
    }
    return sort_labels(g, p);
}

/* ---- attention ---- */

enum { BETWEEN = 4 }; /* nodes that scale, mask and cast */

/* Is the value read by a Softmax, behind a few nodes of one reader each? */
static bool leads_to_softmax(const lnt_edit *e, const lnt_gnode *n)
{
    for (unsigned i = 0; i <= BETWEEN && n; i++) {
        n = lnt_edit_follower(e, n);
        if (n && lnt_is(n, Softmax))
            return true;
    }
    return false;
}

static bool comes_from_softmax(const lnt_graph *g, uint32_t value)
{
    const lnt_gnode *n = g->value[value].producer;
    for (unsigned i = 0; i <= BETWEEN && n; i++) {
        if (lnt_is(n, Softmax))
            return true;
        n = n->n_in && n->in[0] != LNT_NONE ? lnt_producer(g, n, 0) : NULL;
    }
    return false;
}

/* ---- the nodes ---- */

static lnt_gnode *insert(lnt_edit *e, const product *p, unsigned op, uint32_t a, uint32_t b, uint32_t *made)
{
    const uint32_t in[] = {a, b};
    return lnt_edit_insert(e, p->node, lnt_op_by_id(op), in, b == LNT_NONE ? 1 : 2, LNT_NONE, made);
}

/* *x, of axes `from`, with them as in `to`; of a constant at once. */
static lnt_status transpose(lnt_edit *e, const product *p, const labels from, const labels to, uint32_t *x)
{
    int64_t perm[LNT_MAX_RANK];
    const unsigned rank = (unsigned)strlen(to);
    if (strcmp(from, to) == 0)
        return LNT_OK;
    for (unsigned i = 0; i < rank; i++)
        perm[i] = strchr(from, to[i]) - from;
    const lnt_attr attr = {.name = "perm", .type = LNT_ATTR_INTS, .count = rank, .i = perm};
    lnt_gnode *n = insert(e, p, LNT_ID_Transpose, *x, LNT_NONE, x);
    if (!n)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_gnode_set_attr(e->g, n, &attr));
    LNT_TRY(lnt_graph_infer_node(e->g, n));
    return lnt_fold_node(e, n);
}

static lnt_status reshape(lnt_edit *e, const product *p, unsigned rank, const int64_t *dims, uint32_t *x)
{
    const uint32_t to = lnt_add_ints(e->g, p->node->name, rank, dims);
    lnt_gnode *n = to == LNT_NONE ? NULL : insert(e, p, LNT_ID_Reshape, *x, to, x);
    if (!n)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_graph_infer_node(e->g, n));
    return lnt_fold_node(e, n);
}

/* Puts y in the place of the Einsum. */
static lnt_status finish(lnt_edit *e, const product *p, uint32_t y)
{
    if (!lnt_edit_bypass(e, p->node, y) &&
        !lnt_edit_substitute(e, p->node, lnt_op_by_id(LNT_ID_Identity), &y, 1))
        return LNT_E_MEMORY;
    return lnt_edit_count(e, "Einsum as MatMul");
}

/* Operands, transposed to batch, M, K and batch, K, N, and the result to the output's order. */
static lnt_status multiply(lnt_edit *e, const product *p, const labels a, const labels b, const labels c)
{
    uint32_t x = p->value[0], w = p->value[1], y;
    LNT_TRY(transpose(e, p, p->term[0], a, &x));
    LNT_TRY(transpose(e, p, p->term[1], b, &w));
    lnt_gnode *n = insert(e, p, LNT_ID_MatMul, x, w, &y);
    if (!n)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_graph_infer_node(e->g, n));
    LNT_TRY(transpose(e, p, c, p->out, &y));
    return finish(e, p, y);
}

static bool has_weights(const lnt_graph *g, const product *p)
{
    return lnt_is_constant(g, p->value[1]) && lnt_operand_count(lnt_ginfo(g, p->value[1])) > 0;
}

/* A is M..., K... and B constant, of any order: as a matrix [K, N]. */
static lnt_status multiply_weights(lnt_edit *e, const product *p)
{
    const unsigned rows = (unsigned)strlen(p->m), columns = (unsigned)strlen(p->n);
    int64_t dims[LNT_MAX_RANK] = {0}, matrix[2] = {1, 1}, apart[LNT_MAX_RANK] = {0};
    uint32_t x = p->value[0], w = p->value[1], y;
    labels order;
    join(order, p->k, p->n);
    for (const char *c = p->k; *c; c++)
        matrix[0] *= extent_of(e->g, p, 1, *c);
    for (unsigned i = 0; i < columns; i++)
        matrix[1] *= apart[rows + i] = extent_of(e->g, p, 1, p->n[i]);
    LNT_TRY(transpose(e, p, p->term[1], order, &w));
    if (strlen(order) > 2)
        LNT_TRY(reshape(e, p, 2, matrix, &w));
    dims[rows] = matrix[0];
    if (p->k[1])
        LNT_TRY(reshape(e, p, rows + 1, dims, &x));
    lnt_gnode *n = insert(e, p, LNT_ID_MatMul, x, w, &y);
    if (!n)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_graph_infer_node(e->g, n));
    if (columns > 1)
        LNT_TRY(reshape(e, p, rows + columns, apart, &y));
    return finish(e, p, y);
}

/* Where no more than the last two axes of B are to be turned, B is constant, or attention is to be found: transposes of
 * all else cost more than Einsum, which takes rows from anywhere. */
static lnt_status lower(lnt_edit *e, const product *p, bool *done)
{
    labels a, b, b_turned, c;
    join(a, p->batch, p->m);
    join(c, a, p->n);
    join(a, a, p->k);
    join(b, p->batch, p->k);
    join(b, b, p->n);
    join(b_turned, p->batch, p->n);
    join(b_turned, b_turned, p->k);
    const bool single = !p->m[1] && !p->n[1] && !p->k[1], plain = strcmp(p->out, c) == 0,
               in_order = plain && strcmp(p->term[0], a) == 0,
               matrix = !p->n[1] && !p->k[1] && (!p->m[1] || !*p->batch),
               attends = single &&
                         ((plain && leads_to_softmax(e, p->node)) || comes_from_softmax(e->g, p->value[0]));
    *done = true;
    if (in_order && !*p->batch && has_weights(e->g, p))
        return multiply_weights(e, p);
    if ((in_order && matrix && (strcmp(p->term[1], b) == 0 || strcmp(p->term[1], b_turned) == 0)) || attends)
        return multiply(e, p, a, b, c);
    *done = false;
    return LNT_OK;
}

lnt_status lnt_lower_einsum(lnt_edit *e, lnt_gnode *n)
{
    product p;
    bool done = false;
    if (!lnt_is(n, Einsum) || n->n_in != 2 || lnt_ginfo(e->g, n->in[0])->dtype != LNT_FLOAT)
        return LNT_OK;
    for (unsigned first = 0; first < 2 && !done; first++)
        if (find(e->g, n, first, &p))
            LNT_TRY(lower(e, &p, &done));
    return LNT_OK;
}
