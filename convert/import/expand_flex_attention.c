/* expand_flex_attention.c — FlexAttention of ai.onnx.preview, attention whose scores and probabilities a subgraph
 * may change: without one it is ONNX's Attention, else it is written out around what the subgraphs compute. */
#include "convert/import/expand.h"

#include <math.h>

/* Queries that share a key head lie side by side as rows of it, so that keys and values are not repeated. */
typedef struct flex {
    uint32_t q, k, v;       /* [batch][head][row][width]; fewer heads in k and v */
    lnt_dtype type, within; /* of the operands; of scores and probabilities */
    bool grouped;           /* k and v have fewer heads, or it is not known whether they have */
} flex;

/* Reads the operands; false, and reported, where they cannot be converted. */
static bool read_operands(maker *m, flex *f)
{
    const lnt_inode *n = m->n;
    const lnt_graph *g = m->im->g;
    const lnt_operand *q = lnt_ginfo(g, n->in[0]), *k = lnt_ginfo(g, n->in[1]), *v = lnt_ginfo(g, n->in[2]);
    const lnt_dtype wide = q->dtype == LNT_DOUBLE ? LNT_DOUBLE : LNT_FLOAT;
    const int64_t within = lnt_inode_i(n, "softmax_precision", wide);
    *f = (flex){n->in[0], n->in[1], n->in[2], (lnt_dtype)q->dtype, (lnt_dtype)within, true};
    if (q->rank != 4 || k->rank != 4 || v->rank != 4) {
        unsupported(m, "query, key and value must have rank 4");
        return false;
    }
    const int64_t heads = q->dims[1], shared = k->dims[1];
    f->grouped = heads < 0 || heads != shared;
    if (shared == 0 || (heads >= 0 && shared > 0 && heads % shared)) {
        unsupported(m, "the query's heads must be a multiple of the key's");
        return false;
    }
    if (within != LNT_FLOAT && within != LNT_FLOAT16 && within != LNT_BFLOAT16 && within != LNT_DOUBLE) {
        unsupported(m, "softmax_precision must be a floating-point type");
        return false;
    }
    return true;
}

/* The attribute, or 1 / sqrt(width of a head). */
static uint32_t scale_of(maker *m, const flex *f)
{
    const lnt_attr *given = lnt_inode_attr(m->n, "scale");
    const int64_t width = lnt_ginfo(m->im->g, f->q)->dims[3];
    if (given || width > 0)
        return scalar(m, "scale", f->type,
                      given ? (double)lnt_inode_f(m->n, "scale", 1) : 1 / sqrt((double)width));
    const uint32_t root = make(m, "Sqrt", IN(cast(m, extent(m, f->q, 3), LNT_FLOAT)), NULL);
    return cast(m, make(m, "Reciprocal", IN(root), NULL), f->type);
}

/* What the subgraph makes of x, which it must keep in type and extents; x where there is none. */
static uint32_t modified(maker *m, const char *attribute, uint32_t x)
{
    uint32_t out = LNT_NONE;
    if (m->status != LNT_OK || !lnt_import_body(m->n, attribute))
        return x;
    lnt_inlining once = {attribute, 1, 1, 1, &x, &out, NULL};
    m->status = lnt_import_inline_tensors(m->im, m->n, &once);
    return m->status == LNT_OK ? out : LNT_NONE;
}

static uint32_t reshaped(maker *m, uint32_t x, operands extents)
{
    const int64_t first = 0;
    return make(m, "Reshape", IN(x, make(m, "Concat", extents, INT_ATTR("axis", &first))), NULL);
}

static void write_out(maker *m, const flex *f)
{
    static const int64_t turned[] = {0, 1, 3, 2};
    const int64_t last = -1;
    const uint32_t batch = extent(m, f->q, 0), heads = extent(m, f->q, 1), rows = extent(m, f->q, 2);
    const uint32_t shared = extent(m, f->k, 1), keys = extent(m, f->k, 2);
    const uint32_t sharing = make(m, "Div", IN(heads, shared), NULL);
    const uint32_t all_rows = make(m, "Mul", IN(rows, sharing), NULL);
    uint32_t x = make(m, "Mul", IN(f->q, scale_of(m, f)), NULL);
    if (f->grouped)
        x = reshaped(m, x, IN(batch, shared, all_rows, extent(m, f->q, 3)));
    x = make(m, "MatMul", IN(x, transpose(m, f->k, turned, 4)), NULL);
    if (f->grouped)
        x = reshaped(m, x, IN(batch, heads, rows, keys));
    x = modified(m, "score_mod", f->within == f->type ? x : cast(m, x, f->within));
    x = modified(m, "prob_mod", make(m, "Softmax", IN(x), INT_ATTR("axis", &last)));
    if (f->grouped)
        x = reshaped(m, x, IN(batch, shared, all_rows, keys));
    x = make(m, "MatMul", IN(x, f->within == f->type ? f->v : cast(m, f->v, f->within)), NULL);
    if (f->grouped)
        x = reshaped(m, x, IN(batch, heads, rows, extent(m, f->v, 3)));
    const int64_t to = f->type;
    finish(m, 0, "Cast", IN(x), INT_ATTR("to", &to));
}

static void expand_flex_attention(maker *m)
{
    const lnt_attr *scale = lnt_inode_attr(m->n, "scale");
    flex f;
    if (!read_operands(m, &f))
        return;
    const bool plain = !lnt_import_body(m->n, "score_mod") && !lnt_import_body(m->n, "prob_mod") &&
                       f.within == (f.type == LNT_DOUBLE ? LNT_DOUBLE : LNT_FLOAT);
    if (plain)
        finish(m, 0, "Attention", IN(f.q, f.k, f.v), scale);
    else
        write_out(m, &f);
}

lnt_status lnt_expand_preview(lnt_importer *im, lnt_inode *n)
{
    static const lnt_expansion table[] = {{"FlexAttention", NULL, 3, 3, 1, expand_flex_attention}};
    return strcmp(n->domain, "ai.onnx.preview") == 0 ? lnt_expand_by(table, 1, im, n) : LNT_OK;
}
