/* expand_attention.c — com.microsoft's Attention, MultiHeadAttention, GroupQueryAttention, QAttention and
 * RotaryEmbedding, made of ONNX's Attention and RotaryEmbedding: projections, packed operands, masks and
 * caches are brought into the form those take. */
#include "convert/import/expand.h"

#include <math.h>

/* What Attention of ONNX is given. */
typedef struct attention {
    uint32_t q, k, v, mask, past_k, past_v, valid;
    uint32_t y, present_k, present_v;
    int64_t heads, kv_heads, causal, window;
    float scale, softcap; /* 0: the default */
} attention;

static const attention no_attention = {.q = LNT_NONE,
                                       .k = LNT_NONE,
                                       .v = LNT_NONE,
                                       .mask = LNT_NONE,
                                       .past_k = LNT_NONE,
                                       .past_v = LNT_NONE,
                                       .valid = LNT_NONE,
                                       .y = LNT_NONE,
                                       .present_k = LNT_NONE,
                                       .present_v = LNT_NONE,
                                       .window = -1};

/* Output i of the node; LNT_NONE where it is not wanted. */
static uint32_t wanted(const maker *m, unsigned i)
{
    return i < m->n->n_out ? m->n->out[i] : LNT_NONE;
}

static unsigned rank_of(const maker *m, uint32_t value)
{
    const lnt_operand *o = lnt_ginfo(m->im->g, value);
    return o ? o->rank : LNT_RANK_UNKNOWN;
}

static void attend(maker *m, const attention *a)
{
    const lnt_attr all[] = {
        {"q_num_heads", LNT_ATTR_INT, 1, {.i = &a->heads}},
        {"kv_num_heads", LNT_ATTR_INT, 1, {.i = &a->kv_heads}},
        {"is_causal", LNT_ATTR_INT, 1, {.i = &a->causal}},
        {"left_window_size", LNT_ATTR_INT, 1, {.i = &a->window}},
        {"softcap", LNT_ATTR_FLOAT, 1, {.f = &a->softcap}},
        {"scale", LNT_ATTR_FLOAT, 1, {.f = &a->scale}},
    };
    const uint32_t in[] = {a->q, a->k, a->v, a->mask, a->past_k, a->past_v, a->valid};
    const uint32_t out[] = {a->y, a->present_k, a->present_v};
    if (m->status == LNT_OK)
        m->status = lnt_make_node(m->im, m->n, "Attention", in, 7, all, a->scale != 0 ? 6 : 5, out, 3);
}

/* Splits value along axis into parts of the given lengths, or n even ones where length is NULL. */
static void split(maker *m, uint32_t value, int64_t axis, const int64_t *length, unsigned n, uint32_t *out)
{
    const int64_t parts = n;
    const lnt_attr attr[] = {*INT_ATTR("axis", &axis), *INT_ATTR("num_outputs", &parts)};
    const uint32_t in[] = {value, length ? make_ints(m, "lengths", length, n) : LNT_NONE};
    for (unsigned i = 0; i < n; i++)
        out[i] = new_value(m, "part");
    if (m->status == LNT_OK)
        m->status = lnt_make_node(m->im, m->n, "Split", in, length ? 2 : 1, attr, length ? 1 : 2, out, n);
}

/* Part i of value along an axis of extent 1 each, without that axis. */
static uint32_t pick(maker *m, uint32_t value, int64_t axis, int64_t i)
{
    uint32_t at = LNT_NONE;
    if (m->status == LNT_OK)
        m->status = lnt_make_int(m->im, m->n, "index", i, &at);
    return make(m, "Gather", IN(value, at), INT_ATTR("axis", &axis));
}

/* ---- masks ---- */

/* 0 where cond holds, else filter. */
static uint32_t filtered(maker *m, uint32_t cond)
{
    const double filter = (double)lnt_inode_f(m->n, "mask_filter_value", -10000.0f);
    return make(m, "Where", IN(cond, scalar(m, "zero", LNT_FLOAT, 0), scalar(m, "filter", LNT_FLOAT, filter)),
                NULL);
}

/* Which of `total` keys (a tensor of one element) lie before the end, and from the start on, of each entry of
 * the batch. index holds [batch] ends, or those and then [batch] starts. */
static uint32_t within(maker *m, uint32_t index, bool with_starts, uint32_t total)
{
    const uint32_t zero = scalar(m, "zero", LNT_INT64, 0), one = scalar(m, "one", LNT_INT64, 1);
    const uint32_t key = make(m, "Range", IN(zero, make(m, "Squeeze", IN(total), NULL), one), NULL);
    const uint32_t column = make(m, "Unsqueeze", IN(cast(m, index, LNT_INT64), INTS(m, "axis", 1)), NULL);
    if (!with_starts)
        return make(m, "Less", IN(key, column), NULL);
    uint32_t end_start[2];
    split(m, column, 0, NULL, 2, end_start);
    const uint32_t early = make(m, "Less", IN(key, end_start[0]), NULL);
    return make(m, "And", IN(early, make(m, "GreaterOrEqual", IN(key, end_start[1]), NULL)), NULL);
}

/* The mask [batch] (ends of keys), [2 * batch], [batch, keys] or [batch, queries, keys] as what is added to
 * the logits. */
static uint32_t padding_mask(maker *m, uint32_t mask, uint32_t q, uint32_t total)
{
    if (mask == LNT_NONE)
        return LNT_NONE;
    const lnt_operand o = *lnt_ginfo(m->im->g, mask);
    const lnt_operand *query = lnt_ginfo(m->im->g, q);
    if (o.rank == 1) {
        const bool starts = o.dims[0] > 0 && query->rank <= LNT_MAX_RANK && o.dims[0] == 2 * query->dims[0];
        const uint32_t open = within(m, mask, starts, total);
        return filtered(m, make(m, "Unsqueeze", IN(open, INTS(m, "axes", 1, 2)), NULL));
    }
    if (o.rank != 2 && o.rank != 3) {
        unsupported(m, "the mask must have rank 1, 2 or 3");
        return LNT_NONE;
    }
    const uint32_t open = make(m, "Greater", IN(mask, scalar(m, "none", (lnt_dtype)o.dtype, 0)), NULL);
    const uint32_t axes = o.rank == 2 ? INTS(m, "axes", 1, 2) : INTS(m, "axes", 1);
    return filtered(m, make(m, "Unsqueeze", IN(open, axes), NULL));
}

static uint32_t sum_of(maker *m, uint32_t a, uint32_t b)
{
    return a == LNT_NONE ? b : b == LNT_NONE ? a : make(m, "Add", IN(a, b), NULL);
}

/* past (may be missing) + fresh extents, each along `axis` of its value. */
static uint32_t total_keys(maker *m, uint32_t past, int64_t past_axis, uint32_t fresh, int64_t fresh_axis)
{
    const uint32_t n = extent(m, fresh, fresh_axis);
    return past == LNT_NONE ? n : make(m, "Add", IN(extent(m, past, past_axis), n), NULL);
}

/* ---- Attention, QAttention ---- */

/* past and present hold keys and values in one tensor, [2][batch][head][row][width]. */
static void attend_projected(maker *m, uint32_t x, uint32_t qkv, uint32_t mask, uint32_t past, uint32_t bias)
{
    attention a = no_attention;
    const lnt_inode *n = m->n;
    const lnt_attr *sizes = lnt_inode_attr(n, "qkv_hidden_sizes");
    const bool given = sizes && sizes->type == LNT_ATTR_INTS && sizes->count == 3;
    uint32_t part[3];
    if (lnt_inode_i(n, "do_rotary", 0) || lnt_inode_i(n, "past_present_share_buffer", 0)) {
        unsupported(m, "do_rotary and past_present_share_buffer are not supported");
        return;
    }
    a.heads = a.kv_heads = lnt_inode_i(n, "num_heads", 0);
    a.causal = lnt_inode_i(n, "unidirectional", 0);
    a.scale = lnt_inode_f(n, "scale", 0);
    split(m, qkv, 2, given ? sizes->i : NULL, 3, part);
    a.q = part[0];
    a.k = part[1];
    a.v = part[2];
    if (past != LNT_NONE) {
        a.past_k = pick(m, past, 0, 0);
        a.past_v = pick(m, past, 0, 1);
    }
    a.mask = sum_of(m, padding_mask(m, mask, x, total_keys(m, past, 3, x, 1)), bias);
    a.y = wanted(m, 0);
    if (wanted(m, 1) != LNT_NONE) {
        a.present_k = new_value(m, "present_key");
        a.present_v = new_value(m, "present_value");
    }
    attend(m, &a);
    if (wanted(m, 1) != LNT_NONE) {
        const int64_t first = 0;
        const uint32_t axis = INTS(m, "axis", 0), k = make(m, "Unsqueeze", IN(a.present_k, axis), NULL);
        finish(m, 1, "Concat", IN(k, make(m, "Unsqueeze", IN(a.present_v, axis), NULL)),
               INT_ATTR("axis", &first));
    }
}

void lnt_expand_attention(maker *m)
{
    lnt_inode *n = m->n;
    const uint32_t bias = lnt_inode_in(n, 2);
    uint32_t qkv = make(m, "MatMul", IN(n->in[0], n->in[1]), NULL);
    if (bias != LNT_NONE)
        qkv = make(m, "Add", IN(qkv, bias), NULL);
    attend_projected(m, n->in[0], qkv, lnt_inode_in(n, 3), lnt_inode_in(n, 4), lnt_inode_in(n, 5));
}

void lnt_expand_quantized_attention(maker *m)
{
    lnt_inode *n = m->n;
    const uint32_t qkv = make(
        m, "com.microsoft.MatMulIntegerToFloat",
        IN(n->in[0], n->in[1], n->in[3], n->in[4], lnt_inode_in(n, 6), lnt_inode_in(n, 7), n->in[2]), NULL);
    attend_projected(m, n->in[0], qkv, lnt_inode_in(n, 5), lnt_inode_in(n, 8), LNT_NONE);
}

/* ---- MultiHeadAttention ---- */

/* [batch][row][head][parts][width] into parts of [batch][row][head * width]. */
static void unpack(maker *m, uint32_t packed, unsigned parts, uint32_t *out)
{
    for (unsigned i = 0; i < parts; i++)
        out[i] = make(m, "Reshape", IN(pick(m, packed, 3, i), INTS(m, "rows", 0, 0, -1)), NULL);
}

static void find_operands(maker *m, attention *a)
{
    uint32_t part[3];
    const lnt_inode *n = m->n;
    a->q = n->in[0];
    a->k = lnt_inode_in(n, 1);
    a->v = lnt_inode_in(n, 2);
    if (rank_of(m, a->q) == 5) {
        unpack(m, a->q, 3, part);
        a->q = part[0];
        a->k = part[1];
        a->v = part[2];
    } else if (a->k != LNT_NONE && rank_of(m, a->k) == 5) {
        unpack(m, a->k, 2, part);
        a->k = part[0];
        a->v = part[1];
    }
    if (a->k == LNT_NONE || a->v == LNT_NONE)
        unsupported(m, "key and value are needed");
}

/* Adds each part of the bias [q][k][v] to its operand. */
static void add_biases(maker *m, attention *a, uint32_t bias)
{
    uint32_t *const operand[] = {&a->q, &a->k, &a->v};
    int64_t width[3];
    uint32_t part[3];
    if (bias == LNT_NONE || m->status != LNT_OK)
        return;
    for (unsigned i = 0; i < 3; i++) {
        const lnt_operand *o = lnt_ginfo(m->im->g, *operand[i]);
        /* Keys and values of rank 4 are a cache: the bias is in them. */
        width[i] = o->rank == 3   ? o->dims[2]
                   : o->rank == 4 ? lnt_dim_mul(o->dims[1], o->dims[3])
                                  : LNT_DIM_UNKNOWN;
        if (width[i] < 0) {
            unsupported(m, "a bias needs operands of known width");
            return;
        }
    }
    split(m, bias, 0, width, 3, part);
    for (unsigned i = 0; i < 3; i++)
        if (rank_of(m, *operand[i]) == 3)
            *operand[i] = make(m, "Add", IN(*operand[i], part[i]), NULL);
}

void lnt_expand_multi_head_attention(maker *m)
{
    lnt_inode *n = m->n;
    attention a = no_attention;
    if (lnt_inode_in(n, 8) != LNT_NONE || lnt_inode_in(n, 9) != LNT_NONE || wanted(m, 3) != LNT_NONE) {
        unsupported(m, "past_sequence_length, cache_indirection and output qk are not supported");
        return;
    }
    find_operands(m, &a);
    if (m->status != LNT_OK || a.k == LNT_NONE || a.v == LNT_NONE)
        return;
    add_biases(m, &a, lnt_inode_in(n, 3));
    a.heads = a.kv_heads = lnt_inode_i(n, "num_heads", 0);
    a.causal = lnt_inode_i(n, "unidirectional", 0);
    a.scale = lnt_inode_f(n, "scale", 0);
    a.past_k = lnt_inode_in(n, 6);
    a.past_v = lnt_inode_in(n, 7);
    const uint32_t total = total_keys(m, a.past_k, 2, a.k, rank_of(m, a.k) == 4 ? 2 : 1);
    a.mask = sum_of(m, padding_mask(m, lnt_inode_in(n, 4), a.q, total), lnt_inode_in(n, 5));
    a.y = wanted(m, 0);
    a.present_k = wanted(m, 1);
    a.present_v = wanted(m, 2);
    attend(m, &a);
}

/* ---- rotary embeddings ---- */

/* Positions [batch, length] of rows that start at `start` ([1] or [batch]). */
static uint32_t positions_from(maker *m, uint32_t start, uint32_t batch, uint32_t length)
{
    const int64_t first = 0;
    const uint32_t zero = scalar(m, "zero", LNT_INT64, 0), one = scalar(m, "one", LNT_INT64, 1);
    const uint32_t steps = make(m, "Range", IN(zero, make(m, "Squeeze", IN(length), NULL), one), NULL);
    const uint32_t column = make(m, "Unsqueeze", IN(start, INTS(m, "axis", 1)), NULL);
    const uint32_t shape = make(m, "Concat", IN(batch, length), INT_ATTR("axis", &first));
    return make(m, "Expand", IN(make(m, "Add", IN(steps, column), NULL), shape), NULL);
}

static uint32_t rotate(maker *m, uint32_t x, uint32_t cosine, uint32_t sine, uint32_t positions,
                       int64_t heads, int64_t turned, int64_t interleaved, uint32_t out)
{
    const lnt_attr attr[] = {*INT_ATTR("num_heads", &heads), *INT_ATTR("rotary_embedding_dim", &turned),
                             *INT_ATTR("interleaved", &interleaved)};
    const uint32_t in[] = {x, cosine, sine, positions};
    if (out == LNT_NONE)
        out = new_value(m, "rotated");
    if (m->status == LNT_OK)
        m->status = lnt_make_into(m->im, m->n, "RotaryEmbedding", in, 4, attr, 3, out);
    return out;
}

void lnt_expand_rotary(maker *m)
{
    lnt_inode *n = m->n;
    const lnt_operand *x = lnt_ginfo(m->im->g, n->in[0]), *ids = lnt_ginfo(m->im->g, n->in[1]);
    const lnt_operand *cosine = lnt_ginfo(m->im->g, n->in[2]);
    const int64_t row_axis = x->rank == 4 ? 2 : 1;
    int64_t heads = lnt_inode_i(n, "num_heads", 0);
    uint32_t positions = n->in[1];
    if (lnt_inode_i(n, "is_packed_batching", 0) || lnt_inode_f(n, "scale", 1) != 1.0f) {
        unsupported(m, "is_packed_batching and scale are not supported");
        return;
    }
    if (x->rank == 3 && heads == 0 && cosine->rank == 2 && x->dims[2] > 0 && cosine->dims[1] > 0)
        heads = x->dims[2] / (2 * cosine->dims[1]); /* whole heads turn */
    if (ids->rank == 1)
        positions = positions_from(m, positions, extent(m, n->in[0], 0), extent(m, n->in[0], row_axis));
    rotate(m, n->in[0], n->in[2], n->in[3], positions, heads, lnt_inode_i(n, "rotary_embedding_dim", 0),
           lnt_inode_i(n, "interleaved", 0), n->out[0]);
}

/* ---- GroupQueryAttention ---- */

/* Inputs. */
enum { G_QUERY, G_KEY, G_VALUE, G_PAST_K, G_PAST_V, G_LENGTHS, G_TOTAL, G_COS, G_SIN, G_IDS, G_BIAS, G_SINK };

static bool grouped_supported(maker *m)
{
    const lnt_inode *n = m->n;
    bool fine = lnt_inode_in(n, G_LENGTHS) != LNT_NONE && lnt_inode_in(n, G_TOTAL) != LNT_NONE;
    for (unsigned i = G_SINK; i < n->n_in; i++)
        fine = fine && n->in[i] == LNT_NONE;
    if (!fine || lnt_inode_i(n, "smooth_softmax", 0) > 0 || lnt_inode_i(n, "sliding_window_cache", 0) ||
        lnt_inode_i(n, "kv_cache_bit_width", 0) || wanted(m, 3) != LNT_NONE)
        unsupported(m, "only plain caches, softmax and two caches as outputs are supported");
    return fine && m->status == LNT_OK;
}

/* Room for `total` keys in the cache, the new ones written from row `at` of each batch entry on. */
static uint32_t written(maker *m, uint32_t past, uint32_t fresh, int64_t heads, uint32_t total, uint32_t at,
                        uint32_t out)
{
    static const int64_t heads_first[] = {0, 2, 1, 3};
    const int64_t axis = 2, first = 0;
    const uint32_t split_heads = make(m, "Reshape", IN(fresh, INTS(m, "heads", 0, 0, heads, -1)), NULL);
    const uint32_t rows = transpose(m, split_heads, heads_first, 4);
    const uint32_t batch = extent(m, rows, 0), width = extent(m, rows, 3), n_heads = INTS(m, "n", heads);
    uint32_t missing = total;
    if (past != LNT_NONE)
        missing = make(m, "Max",
                       IN(make(m, "Sub", IN(total, extent(m, past, 2)), NULL), INTS(m, "nothing", 0)), NULL);
    const uint32_t shape = make(m, "Concat", IN(batch, n_heads, missing, width), INT_ATTR("axis", &first));
    const uint32_t zeros =
        cast(m, make(m, "ConstantOfShape", IN(shape), NULL), type_of(m, past == LNT_NONE ? fresh : past));
    const uint32_t room =
        past == LNT_NONE ? zeros : make(m, "Concat", IN(past, zeros), INT_ATTR("axis", &axis));
    const uint32_t in[] = {room, rows, at};
    if (out == LNT_NONE)
        out = new_value(m, "cache");
    if (m->status == LNT_OK)
        m->status = lnt_make_into(m->im, m->n, "TensorScatter", in, 3, INT_ATTR("axis", &axis), 1, out);
    return out;
}

/* Query, key and value in one operand, [batch][row][(heads + 2 * kv_heads) * width]. */
static void unpack_grouped(maker *m, attention *a)
{
    const lnt_operand *o = lnt_ginfo(m->im->g, a->q);
    const int64_t all = a->heads + 2 * a->kv_heads;
    uint32_t part[3];
    if (o->rank != 3 || o->dims[2] <= 0 || all <= 0 || o->dims[2] % all) {
        unsupported(m, "packed operands need a known width");
        return;
    }
    const int64_t width = o->dims[2] / all;
    split(m, a->q, 2, (const int64_t[]){a->heads * width, a->kv_heads * width, a->kv_heads * width}, 3, part);
    a->q = part[0];
    a->k = part[1];
    a->v = part[2];
}

void lnt_expand_grouped_attention(maker *m)
{
    lnt_inode *n = m->n;
    attention a = no_attention;
    if (!grouped_supported(m))
        return;
    a.q = n->in[G_QUERY];
    a.k = lnt_inode_in(n, G_KEY);
    a.v = lnt_inode_in(n, G_VALUE);
    a.heads = lnt_inode_i(n, "num_heads", 0);
    a.kv_heads = lnt_inode_i(n, "kv_num_heads", 0);
    a.causal = lnt_inode_i(n, "causal", 1);
    a.scale = lnt_inode_f(n, "scale", 0);
    a.softcap = lnt_inode_f(n, "softcap", 0);
    a.window = lnt_inode_i(n, "local_window_size", -1);
    a.window -= a.window > 0; /* counts the query itself */
    if (a.k == LNT_NONE)
        unpack_grouped(m, &a);
    /* Where the new rows go: behind the old ones, of which there are none where lengths counts padding. */
    const uint32_t fresh = extent(m, a.q, 1), one = INTS(m, "one", 1);
    const uint32_t lengths = cast(m, n->in[G_LENGTHS], LNT_INT64);
    const uint32_t after = make(m, "Sub", IN(make(m, "Add", IN(lengths, one), NULL), fresh), NULL);
    const uint32_t at = make(m, "Max", IN(after, INTS(m, "start", 0)), NULL);
    if (lnt_inode_i(n, "do_rotary", 0)) {
        uint32_t positions = lnt_inode_in(n, G_IDS);
        if (positions == LNT_NONE)
            positions = positions_from(m, at, extent(m, a.q, 0), fresh);
        const uint32_t cosine = lnt_inode_in(n, G_COS), sine = lnt_inode_in(n, G_SIN);
        const lnt_operand *c = lnt_ginfo(m->im->g, cosine);
        const int64_t turned = c && c->rank == 2 && c->dims[1] > 0 ? 2 * c->dims[1] : 0;
        const int64_t interleaved = lnt_inode_i(n, "rotary_interleaved", 0);
        a.q = rotate(m, a.q, cosine, sine, positions, a.heads, turned, interleaved, LNT_NONE);
        a.k = rotate(m, a.k, cosine, sine, positions, a.kv_heads, turned, interleaved, LNT_NONE);
    }
    const uint32_t total =
        make(m, "Reshape", IN(cast(m, n->in[G_TOTAL], LNT_INT64), INTS(m, "shape", 1)), NULL);
    a.k = written(m, lnt_inode_in(n, G_PAST_K), a.k, a.kv_heads, total, at, wanted(m, 1));
    a.v = written(m, lnt_inode_in(n, G_PAST_V), a.v, a.kv_heads, total, at, wanted(m, 2));
    a.valid = make(m, "Add", IN(at, fresh), NULL);
    a.mask = lnt_inode_in(n, G_BIAS);
    a.y = wanted(m, 0);
    attend(m, &a);
}
