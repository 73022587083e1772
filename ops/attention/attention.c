/* attention.c — Attention: Y = softmax(scale * Q K^T + bias) V per head, with a cache of past keys and
 * values, groups of queries that share a key head, masks, causality, windows and a soft cap. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/attention/attention.h"
#include "ops/data/data.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, MASK, PAST_KEY, PAST_VALUE, VALID }; /* inputs */
enum { SHOW_RAW, SHOW_CAPPED, SHOW_BIASED, SHOW_CHOSEN };      /* what output 3 holds */

lnt_attention_range lnt_attention_range_of(const lnt_attention_job *j, int64_t b, int64_t query)
{
    const lnt_attention *p = j->p;
    const int64_t told = j->valid ? j->valid[b] : p->total, valid = told < p->total ? told : p->total;
    lnt_attention_range r = {0, valid > 0 ? valid : 0};
    const int64_t position = query + (j->valid ? r.end - p->queries : p->past);
    if (j->mask && p->mask.width < r.end)
        r.end = p->mask.width;
    if (p->causal && position + 1 < r.end)
        r.end = position + 1;
    if (p->right >= 0 && position + p->right + 1 < r.end)
        r.end = position + p->right + 1;
    if (p->left >= 0 && position - p->left > 0)
        r.first = position - p->left;
    return r;
}

#include "ops/real_float.h"
#include "ops/attention/attention.inc.h"
#include "ops/real_double.h"
#include "ops/attention/attention.inc.h"
#include "ops/product.h"

/* ---- the cache ---- */

/* Present keys or values, [batch][head][past + new][width], as the next run will be given them. */
typedef struct cache {
    const lnt_attention_layout *layout;
    const char *past, *fresh;
    char *present;
    int64_t past_head, present_head; /* elements from head to head */
} cache;

/* In one memory with what is past only what is new has to be written. */
static void extend(const lnt_attention_job *j, int64_t head, cache c)
{
    const lnt_attention *p = j->p;
    const lnt_attention_layout *f = c.layout;
    const size_t row = (size_t)f->width * j->size, past = (size_t)p->past * row;
    const int64_t from = head / p->kv_heads * f->batch + head % p->kv_heads * f->head;
    if (!c.present)
        return;
    char *to = c.present + (size_t)(head * c.present_head) * j->size;
    if (past && c.past != c.present)
        memcpy(to, c.past + (size_t)(head * c.past_head) * j->size, past);
    for (int64_t t = 0; t < p->fresh; t++)
        memcpy(to + past + (size_t)t * row, c.fresh + (size_t)(from + t * f->row) * j->size, row);
}

void lnt_attention_extend(const lnt_attention_job *j, int64_t head)
{
    const lnt_attention *p = j->p;
    extend(j, head,
           (cache){&p->k, j->past_key, j->key, j->present_key, j->past_key_head, j->present_key_head});
    extend(
        j, head,
        (cache){&p->v, j->past_value, j->value, j->present_value, j->past_value_head, j->present_value_head});
}

static lnt_status extend_heads(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k, (void)thread;
    for (int64_t head = begin; head < end; head++)
        lnt_attention_extend(arg, head);
    return LNT_OK;
}

lnt_status lnt_attention_extend_all(lnt_kernel *k, lnt_attention_job *j)
{
    const lnt_attention *p = j->p;
    const int64_t rows = j->past_key == j->present_key ? p->fresh : p->total;
    if (!j->present_key && !j->present_value)
        return LNT_OK;
    return lnt_parallel(k, p->batches * p->kv_heads,
                        lnt_grain(rows * (p->k.width + p->v.width) * (int64_t)j->size), extend_heads, j);
}

static int64_t head_pitch(lnt_operand *const *o, unsigned n, unsigned i)
{
    return i < n && o[i] ? lnt_operand_plane_pitch(o[i]) : 0;
}

static lnt_status run_attention(lnt_kernel *k, const lnt_step *s)
{
    const lnt_attention *p = s->params;
    LNT_ASSERT(p->kv_heads > 0 && p->heads % p->kv_heads == 0);
    LNT_ASSERT(s->in[0]->dtype == LNT_DOUBLE || s->in[0]->dtype == LNT_FLOAT);
    const bool wide = s->in[0]->dtype == LNT_DOUBLE;
    lnt_attention_job job = {p,
                             wide ? sizeof(double) : sizeof(float),
                             lnt_in(k, s, QUERY),
                             lnt_in(k, s, KEY),
                             lnt_in(k, s, VALUE),
                             lnt_in(k, s, MASK),
                             lnt_in(k, s, PAST_KEY),
                             lnt_in(k, s, PAST_VALUE),
                             lnt_in(k, s, VALID),
                             lnt_out(k, s, 0),
                             lnt_out(k, s, 1),
                             lnt_out(k, s, 2),
                             lnt_out(k, s, 3),
                             lnt_scratch(k, s),
                             head_pitch(s->in, s->n_in, PAST_KEY),
                             head_pitch(s->in, s->n_in, PAST_VALUE),
                             head_pitch(s->out, s->n_out, 1),
                             head_pitch(s->out, s->n_out, 2)};
    if (p->blocks)
        return lnt_attention_blocks(k, &job);
    LNT_TRY(lnt_attention_extend_all(k, &job));
    return lnt_parallel(k, p->batches * p->heads * p->queries, 1 + 16384 / (p->total * p->k.width + 1),
                        wide ? attend_double : attend_float, &job);
}

/* Extents of the problem, unknown (negative) ones included. */
typedef struct extents {
    int64_t batches, heads, kv_heads, queries, fresh, past, k_width, v_width;
} extents;

static int64_t divide(int64_t a, int64_t b)
{
    return a < 0 || b <= 0 ? LNT_DIM_UNKNOWN : a / b;
}

/* One operand of rank 4, [batch][head][row][width], or 3, [batch][row][head * width]. */
typedef struct heads_of {
    int64_t batches, heads, rows, width;
} heads_of;

static lnt_status read_heads(const lnt_site *site, unsigned input, const char *attr, heads_of *out)
{
    const lnt_operand *o = site->in[input];
    const int64_t heads = lnt_attr_i(site->node, attr, 0);
    LNT_REQUIRE(o->rank == 3 || o->rank == 4, site->err, LNT_E_SHAPE, "Q, K and V must have rank 3 or 4");
    LNT_REQUIRE(o->rank == 4 || heads > 0, site->err, LNT_E_ARGUMENT,
                "q_num_heads and kv_num_heads are needed where Q, K and V have rank 3");
    LNT_REQUIRE(o->rank == 4 || o->dims[2] < 0 || (heads <= o->dims[2] && o->dims[2] % heads == 0), site->err,
                LNT_E_SHAPE, "%lld heads do not share a width of %lld", (long long)heads,
                (long long)o->dims[2]);
    if (o->rank == 4)
        *out = (heads_of){o->dims[0], o->dims[1], o->dims[2], o->dims[3]};
    else
        *out = (heads_of){o->dims[0], heads, o->dims[1], divide(o->dims[2], heads)};
    return LNT_OK;
}

/* Are they the same, as far as both are known? */
static bool agree(int64_t a, int64_t b)
{
    return a < 0 || b < 0 || a == b;
}

/* Not all of Q, K and V need have the same rank. */
static lnt_status extents_of(const lnt_site *site, extents *e)
{
    const lnt_operand *past = lnt_input(site, PAST_KEY);
    heads_of q, k, v;
    LNT_TRY(read_heads(site, QUERY, "q_num_heads", &q));
    LNT_TRY(read_heads(site, KEY, "kv_num_heads", &k));
    LNT_TRY(read_heads(site, VALUE, "kv_num_heads", &v));
    LNT_REQUIRE(agree(q.batches, k.batches) && agree(k.batches, v.batches) && agree(k.heads, v.heads) &&
                    agree(k.rows, v.rows) && agree(q.width, k.width),
                site->err, LNT_E_SHAPE, "Q, K and V do not fit together");
    *e = (extents){q.batches, q.heads, k.heads, q.rows, k.rows, 0, q.width, v.width};
    if (past)
        e->past = past->rank == 4 ? past->dims[2] : LNT_DIM_UNKNOWN;
    return LNT_OK;
}

/* As Q's; the converter may ask for the other one. */
static unsigned output_rank(const lnt_site *site)
{
    return lnt_attr_i(site->node, "output_rank", site->in[QUERY]->rank) == 4 ? 4 : 3;
}

lnt_status lnt_shape_attention(lnt_site *site)
{
    const lnt_operand *q = site->in[QUERY];
    extents e;
    lnt_set_type(site, 0, q->dtype);
    lnt_set_type(site, 1, site->in[KEY]->dtype);
    lnt_set_type(site, 2, site->in[VALUE]->dtype);
    lnt_set_type(site, 3, q->dtype);
    for (unsigned i = QUERY; i <= VALUE; i++)
        if (site->in[i]->rank == LNT_RANK_UNKNOWN)
            return LNT_UNKNOWN;
    LNT_TRY(extents_of(site, &e));
    const int64_t total = lnt_input(site, PAST_KEY) ? lnt_dim_add(e.past, e.fresh) : e.fresh;
    if (output_rank(site) == 4)
        lnt_set_dims(site, 0, 4, (const int64_t[]){e.batches, e.heads, e.queries, e.v_width});
    else
        lnt_set_dims(site, 0, 3, (const int64_t[]){e.batches, e.queries, lnt_dim_mul(e.heads, e.v_width)});
    lnt_set_dims(site, 1, 4, (const int64_t[]){e.batches, e.kv_heads, total, e.k_width});
    lnt_set_dims(site, 2, 4, (const int64_t[]){e.batches, e.kv_heads, total, e.v_width});
    lnt_set_dims(site, 3, 4, (const int64_t[]){e.batches, e.heads, e.queries, total});
    return LNT_OK;
}

static lnt_attention_layout layout_of(unsigned rank, int64_t heads, int64_t rows, int64_t width)
{
    if (rank == 4)
        return (lnt_attention_layout){heads * rows * width, rows * width, width, width};
    return (lnt_attention_layout){heads * rows * width, width, heads * width, width};
}

/* The mask broadcasts to [batch][head][query][key]; keys past its end are masked. */
static lnt_status bind_mask(lnt_site *site, lnt_attention *p)
{
    const lnt_operand *mask = lnt_input(site, MASK);
    const int64_t full[4] = {p->batches, p->heads, p->queries, p->total};
    int64_t stride[4], step = 1;
    if (!mask)
        return LNT_OK;
    LNT_REQUIRE(mask->rank >= 1 && mask->rank <= 4, site->err, LNT_E_SHAPE, "the mask has rank %u",
                mask->rank);
    for (unsigned d = 4; d-- > 0;) {
        const int64_t extent = d + mask->rank >= 4 ? mask->dims[d + mask->rank - 4] : 1;
        LNT_REQUIRE(extent == 1 || extent == full[d] || (d == 3 && extent < full[d]), site->err, LNT_E_SHAPE,
                    "the mask has extent %lld where %lld are needed", (long long)extent, (long long)full[d]);
        stride[d] = extent == 1 && d < 3 ? 0 : step;
        step *= extent;
    }
    p->mask = (lnt_attention_layout){stride[0], stride[1], stride[2], mask->dims[mask->rank - 1]};
    p->mask_is_bool = mask->dtype == LNT_BOOL;
    return LNT_OK;
}

static bool is_cache(const lnt_operand *past, const extents *e, int64_t width)
{
    return past->rank == 4 && past->dims[0] == e->batches && past->dims[1] == e->kv_heads &&
           past->dims[2] == e->past && past->dims[3] == width;
}

static lnt_status check_operands(const lnt_site *site, const extents *e)
{
    const lnt_operand *past_k = lnt_input(site, PAST_KEY), *past_v = lnt_input(site, PAST_VALUE);
    LNT_REQUIRE(e->kv_heads > 0 && e->heads % e->kv_heads == 0, site->err, LNT_E_SHAPE,
                "%lld query heads cannot share %lld key heads", (long long)e->heads, (long long)e->kv_heads);
    LNT_REQUIRE(!past_k == !past_v, site->err, LNT_E_ARGUMENT, "past_key and past_value go together");
    LNT_REQUIRE(!past_k || (is_cache(past_k, e, e->k_width) && is_cache(past_v, e, e->v_width)), site->err,
                LNT_E_SHAPE, "past_key or past_value do not fit K and V");
    const lnt_operand *valid = lnt_input(site, VALID);
    LNT_REQUIRE(!valid || (valid->dtype == LNT_INT64 && lnt_operand_count(valid) == e->batches), site->err,
                LNT_E_SHAPE, "nonpad_kv_seqlen must hold one int64 per batch entry");
    return LNT_OK;
}

/* How far a query may look: -1 is any number of keys, as is one that reaches past all of them. */
static int64_t window(const lnt_site *site, const char *attr, const extents *e)
{
    const int64_t keys = lnt_attr_i(site->node, attr, -1);
    return keys > e->past + e->fresh + e->queries ? -1 : keys;
}

lnt_status lnt_bind_attention(lnt_site *site)
{
    const lnt_node *node = site->node;
    extents e;
    lnt_attention *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(extents_of(site, &e));
    LNT_TRY(check_operands(site, &e));
    *p = (lnt_attention){.row = site->kernels->row,
                         .attend = site->kernels->attend,
                         .gemm = site->kernels->gemm,
                         .batches = e.batches,
                         .heads = e.heads,
                         .kv_heads = e.kv_heads,
                         .queries = e.queries,
                         .fresh = e.fresh,
                         .past = e.past,
                         .total = e.past + e.fresh,
                         .q = layout_of(site->in[QUERY]->rank, e.heads, e.queries, e.k_width),
                         .k = layout_of(site->in[KEY]->rank, e.kv_heads, e.fresh, e.k_width),
                         .v = layout_of(site->in[VALUE]->rank, e.kv_heads, e.fresh, e.v_width),
                         .y = layout_of(output_rank(site), e.heads, e.queries, e.v_width),
                         .causal = lnt_attr_i(node, "is_causal", 0) != 0,
                         .left = window(site, "left_window_size", &e),
                         .right = window(site, "right_window_size", &e),
                         .scale = lnt_attr_find(node, "scale") ? (double)lnt_attr_f(node, "scale", 1)
                                                               : 1 / sqrt((double)e.k_width),
                         .softcap = (double)lnt_attr_f(node, "softcap", 0),
                         .show = lnt_attr_i(node, "qk_matmul_output_mode", 0)};
    LNT_REQUIRE(p->show >= SHOW_RAW && p->show <= SHOW_CHOSEN, site->err, LNT_E_ARGUMENT,
                "qk_matmul_output_mode is %lld, not 0 to 3", (long long)p->show);
    LNT_TRY(bind_mask(site, p));
    p->blocks = lnt_site_real_type(site) == LNT_FLOAT && !lnt_output(site, 3) && p->k.width > 0;
    p->thread_bytes = p->blocks ? lnt_attention_blocks_bytes(p)
                                : lnt_round_up((size_t)p->total * 2 * sizeof(double), LNT_ALIGN);
    lnt_bind_scratch(site, p->thread_bytes * site->threads);
    static const lnt_append caches[] = {{PAST_KEY, 1}, {PAST_VALUE, 2}};
    lnt_bind_append(site, caches, 2);
    site->step->run = run_attention;
    const uint32_t real = 1u << QUERY | 1u << KEY | 1u << VALUE | 1u << PAST_KEY | 1u << PAST_VALUE;
    return lnt_bind_widened(site, real | (p->mask_is_bool ? 0 : 1u << MASK), UINT32_MAX);
}

/* Every query meets every key, and its weights every value; what a mask spares is counted, too. Keys are
 * [batch, heads, length, size] or [batch, length, heads * size], past ones of rank 4. */
static int64_t multiply_adds(const lnt_node *node, const lnt_step *s)
{
    (void)node;
    const lnt_operand *key = s->in[KEY], *past = s->n_in > PAST_KEY ? s->in[PAST_KEY] : NULL;
    const int64_t length = key->dims[key->rank - 2] + (past ? past->dims[2] : 0);
    return length * (lnt_operand_count(s->in[QUERY]) + lnt_operand_count(s->out[0]));
}

const lnt_product lnt_product_attention = {.multiply_adds = multiply_adds};
