/* attention_blocks.c — attention over blocks: up to LNT_ATTEND_ROWS queries that share a key head meet KEYS
 * keys at a time, and no more logits than those exist at once.
 *
 * The logits of a block are a product of the keys, as they are stored, with the transposed queries; of few queries, dot
 * products. The largest logit seen so far is kept for each query; when a larger one is found, what has been
 * summed is scaled: the online softmax of Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018,
 * over blocks as in Dao, Fu, Ermon, Rudra and Re, "FlashAttention: Fast and Memory-Efficient Exact Attention with
 * IO-Awareness", 2022. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "base/memory.h"
#include "ops/attention/attention.h"
#include "ops/copy.h"

#include <math.h>
#include <string.h>

enum {
    ROWS = LNT_ATTEND_ROWS,
    LANES = LNT_ATTEND_LANES,
    KEYS = 128,
    FEW = 4,        /* queries or less: by rows, so that no lanes are idle */
    MEMORY_ROWS = 8 /* fewer wait for keys and values as long as these take */
};

/* One block of queries at work. */
typedef struct block {
    const lnt_attention_job *job;
    int64_t batch, kv;
    unsigned rows;
    int64_t lanes;        /* LANES or ROWS; 0: few queries, by rows */
    const float *q[ROWS]; /* those past rows repeat the first */
    float *y[ROWS];
    const void *mask[ROWS];
    bool same_mask;
    lnt_attention_range range[ROWS], any,
        all;                  /* of keys that some query, and that every query, may look at */
    float *transposed, *s, *bias; /* scratch: queries transposed, logits, what is added to them */
    float max[ROWS], sum[ROWS], factor[ROWS], post[ROWS];
    bool begun; /* y holds something */
} block;

/* Keys [first, end) with neighbors `step` apart; k and v are of key `first`. */
typedef struct run {
    const float *k, *v;
    int64_t k_step, v_step, first, end;
} run;

size_t lnt_attention_blocks_bytes(const lnt_attention *p)
{
    return lnt_round_up((size_t)(p->k.width + 2 * KEYS) * ROWS * sizeof(float), LNT_ALIGN);
}

static void find_rows(block *b, int64_t first)
{
    const lnt_attention_job *j = b->job;
    const lnt_attention *p = j->p;
    const size_t mask_size = p->mask_is_bool ? 1 : sizeof(float);
    int64_t query = first % p->queries, head = b->kv * (p->heads / p->kv_heads) + first / p->queries;
    b->any = (lnt_attention_range){p->total, 0};
    b->all = (lnt_attention_range){0, p->total};
    b->same_mask = true;
    for (unsigned i = 0; i < b->rows; i++) {
        const int64_t mask = b->batch * p->mask.batch + head * p->mask.head + query * p->mask.row;
        b->q[i] = (const float *)j->query + b->batch * p->q.batch + head * p->q.head + query * p->q.row;
        b->y[i] = (float *)j->y + b->batch * p->y.batch + head * p->y.head + query * p->y.row;
        b->mask[i] = j->mask ? (const char *)j->mask + (size_t)mask * mask_size : NULL;
        b->same_mask &= b->mask[i] == b->mask[0];
        const lnt_attention_range r = b->range[i] = lnt_attention_range_of(j, b->batch, query);
        b->any.first = r.first < b->any.first ? r.first : b->any.first;
        b->any.end = r.end > b->any.end ? r.end : b->any.end;
        b->all.first = r.first > b->all.first ? r.first : b->all.first;
        b->all.end = r.end < b->all.end ? r.end : b->all.end;
        if (++query == p->queries) {
            query = 0;
            head++;
        }
    }
    for (unsigned i = b->rows; i < ROWS; i++)
        b->q[i] = b->q[0];
}

/* ---- logits ---- */

/* s[query][key], KEYS to a row: dot products. */
static void multiply_few(const block *b, const run *r, lnt_tile *t)
{
    const lnt_attention *p = b->job->p;
    float *c[FEW];
    for (unsigned i = 0; i < b->rows; i++)
        c[i] = b->s + i * KEYS;
    t->a = b->q;
    t->c = c;
    t->b = r->k;
    t->b_panel = (size_t)r->k_step;
    t->columns = (size_t)(r->end - r->first);
    t->scale = (float)p->scale;
    p->gemm->narrow(t, b->rows);
}

/* s[key][query]: tiles of keys, not packed, times the transposed queries. */
static void multiply(const block *b, const run *r)
{
    static const ptrdiff_t no_offset[1] = {0};
    const lnt_attention *p = b->job->p;
    const int64_t keys = r->end - r->first, step = p->gemm->tile_rows;
    const float *a[LNT_TILE_ROWS_MAX];
    float *c[LNT_TILE_ROWS_MAX];
    lnt_tile t = {.a = a,
                  .c = c,
                  .tap_offset = no_offset,
                  .taps = 1,
                  .depth = (size_t)p->k.width,
                  .b = b->transposed,
                  .b_row = LANES,
                  .b_panel = (size_t)p->k.width * LANES,
                  .columns = (size_t)b->lanes,
                  .scale = 1,
                  .low = -INFINITY,
                  .high = INFINITY};
    if (!b->lanes) {
        multiply_few(b, r, &t);
        return;
    }
    for (int64_t k = 0; k < keys; k += step) {
        const unsigned n = keys - k < step ? (unsigned)(keys - k) : (unsigned)step;
        for (unsigned i = 0; i < n; i++) {
            a[i] = r->k + (k + i) * r->k_step;
            c[i] = b->s + (k + i) * b->lanes;
        }
        p->gemm->tile[n](&t);
    }
}

/* What is added to the logits of query i at keys [first, first + keys): its mask, or that nothing be left outside its
 * range. */
static void fill_bias(const block *b, unsigned i, int64_t first, int64_t keys, float *bias)
{
    static const float never = -INFINITY;
    const lnt_attention_range r = b->range[i];
    const int64_t end = first + keys, from = r.first < first ? first : lnt_least(r.first, end);
    const int64_t to = r.end < from ? from : lnt_least(r.end, end), n = to - from;
    float *const inside = bias + (from - first);
    lnt_fill(bias, from - first, &never, sizeof never);
    lnt_fill(inside + n, end - to, &never, sizeof never);
    if (!b->mask[i])
        memset(inside, 0, (size_t)n * sizeof *inside);
    else if (!b->job->p->mask_is_bool)
        memcpy(inside, (const float *)b->mask[i] + from, (size_t)n * sizeof *inside);
    else
        for (int64_t k = 0; k < n; k++)
            inside[k] = ((const uint8_t *)b->mask[i])[from + k] ? 0 : -INFINITY;
}

/* The bias of query i: where it is stored, or filled in. */
static const float *bias_of(const block *b, unsigned i, bool open, int64_t first, int64_t keys)
{
    float *bias = b->bias + i * KEYS;
    if (open && !b->job->p->mask_is_bool)
        return (const float *)b->mask[i] + first;
    fill_bias(b, i, first, keys, bias);
    return bias;
}

static void add_bias(const block *b, int64_t first, int64_t keys)
{
    const lnt_attention *p = b->job->p;
    const bool open = b->all.first <= first && first + keys <= b->all.end;
    const float *rows[ROWS];
    if (open && !b->job->mask)
        return;
    if (b->lanes && open && b->same_mask) {
        p->attend->add_bias(bias_of(b, 0, open, first, keys), keys, b->s, b->lanes);
        return;
    }
    for (unsigned i = 0; i < ROWS; i++)
        rows[i] = i < b->rows ? bias_of(b, i, open, first, keys) : rows[0];
    for (unsigned i = 0; !b->lanes && i < b->rows; i++)
        p->row->add(b->s + i * KEYS, rows[i], keys);
    for (int64_t i = 0; i < b->lanes; i += LANES)
        p->attend->add_turned(rows + i, keys, b->s + i, b->lanes);
}

/* Logits to weights. */
static void choose(block *b, int64_t first, int64_t keys)
{
    const lnt_attention *p = b->job->p;
    const float limit = (float)p->softcap;
    if (limit > 0 && b->lanes)
        p->attend->cap(b->s, keys * b->lanes, limit);
    for (unsigned i = 0; limit > 0 && !b->lanes && i < b->rows; i++)
        p->attend->cap(b->s + i * KEYS, keys, limit);
    add_bias(b, first, keys);
    if (b->lanes)
        p->attend->choose(b->s, keys, b->lanes, b->max, b->sum, b->factor);
    for (unsigned i = 0; !b->lanes && i < b->rows; i++)
        p->attend->choose_row(b->s + i * KEYS, keys, b->max + i, b->sum + i, b->factor + i);
}

/* ---- one block of keys ---- */

static void take_keys(block *b, const run *r, bool last)
{
    const lnt_attention *p = b->job->p;
    multiply(b, r);
    choose(b, r->first, r->end - r->first);
    for (unsigned i = 0; i < b->rows; i++) /* nothing to choose from gives 0 */
        b->post[i] = !last ? 1 : b->max[i] == -INFINITY ? 0 : 1 / b->sum[i];
    const lnt_mix m = {.p = b->s,
                       .lanes = b->lanes,
                       .p_row = KEYS,
                       .v = r->v,
                       .v_row = r->v_step,
                       .keys = r->end - r->first,
                       .width = p->v.width,
                       .rows = b->rows,
                       .y = b->y,
                       .factor = b->begun ? b->factor : NULL,
                       .post = b->post};
    p->attend->mix(&m);
    b->begun = true;
}

/* The keys from `first` on that are contiguous: the whole cache, or what is past, or what is new. */
static run run_from(const block *b, int64_t first)
{
    const lnt_attention_job *j = b->job;
    const lnt_attention *p = j->p;
    const int64_t head = b->batch * p->kv_heads + b->kv, kw = p->k.width, vw = p->v.width;
    if (j->present_key && j->present_value)
        return (run){(const float *)j->present_key + head * j->present_key_head + first * kw,
                     (const float *)j->present_value + head * j->present_value_head + first * vw,
                     kw,
                     vw,
                     first,
                     p->total};
    if (first < p->past)
        return (run){(const float *)j->past_key + head * j->past_key_head + first * kw,
                     (const float *)j->past_value + head * j->past_value_head + first * vw,
                     kw,
                     vw,
                     first,
                     p->past};
    const int64_t row = first - p->past;
    return (run){(const float *)j->key + b->batch * p->k.batch + b->kv * p->k.head + row * p->k.row,
                 (const float *)j->value + b->batch * p->v.batch + b->kv * p->v.head + row * p->v.row,
                 p->k.row,
                 p->v.row,
                 first,
                 p->total};
}

static void attend_block(block *b, int64_t first)
{
    const lnt_attention *p = b->job->p;
    find_rows(b, first);
    b->begun = false;
    for (unsigned i = 0; i < ROWS; i++) {
        b->max[i] = -INFINITY;
        b->sum[i] = 0;
    }
    for (unsigned i = 0; b->any.first >= b->any.end && i < b->rows; i++)
        memset(b->y[i], 0, (size_t)p->v.width * sizeof *b->y[i]);
    for (int64_t i = 0; i < b->lanes; i += LANES)
        p->attend->transpose(b->q + i, p->k.width, (float)p->scale, b->transposed + i * p->k.width);
    for (int64_t key = b->any.first; key < b->any.end;) {
        run r = run_from(b, key);
        r.end = r.end < b->any.end ? r.end : b->any.end;
        r.end = r.end < key + KEYS ? r.end : key + KEYS;
        take_keys(b, &r, r.end == b->any.end);
        key = r.end;
    }
}

/* Queries [first, first + rows) of a key head; a few too many for one set of lanes go on their own. */
static void attend_rows(block *b, int64_t first, int64_t rows)
{
    const int64_t most = rows > LANES && rows <= LANES + FEW ? LANES : ROWS;
    for (int64_t i = 0; i < rows; i += most) {
        b->rows = (unsigned)(rows - i < most ? rows - i : most);
        b->lanes = b->rows <= FEW ? 0 : b->rows <= LANES ? LANES : ROWS;
        attend_block(b, first + i);
    }
}

/* Item: ROWS queries of a key head. */
static lnt_status attend_items(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_attention_job *j = arg;
    const lnt_attention *p = j->p;
    const int64_t all = p->heads / p->kv_heads * p->queries, blocks = (all + ROWS - 1) / ROWS;
    block b = {.job = j};
    b.transposed = (float *)(void *)((char *)j->scratch + thread * p->thread_bytes);
    b.s = b.transposed + p->k.width * ROWS;
    b.bias = b.s + KEYS * ROWS;
    (void)k;
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item % blocks * ROWS;
        if (blocks == 1)
            lnt_attention_extend(j, item); /* while it is in the cache */
        b.kv = item / blocks % p->kv_heads;
        b.batch = item / blocks / p->kv_heads;
        attend_rows(&b, first, all - first < ROWS ? all - first : ROWS);
    }
    return LNT_OK;
}

lnt_status lnt_attention_blocks(lnt_kernel *k, lnt_attention_job *job)
{
    const lnt_attention *p = job->p;
    LNT_ASSERT(job->size == sizeof(float) && p->attend);
    const int64_t all = p->heads / p->kv_heads * p->queries, blocks = (all + ROWS - 1) / ROWS;
    const int64_t rows = all < MEMORY_ROWS ? MEMORY_ROWS : all < ROWS ? all : ROWS;
    const int64_t work = p->total * (p->k.width + p->v.width) * rows;
    if (blocks != 1)
        LNT_TRY(lnt_attention_extend_all(k, job));
    return lnt_parallel(k, p->batches * p->kv_heads * blocks, 1 + 262144 / (work + 1), attend_items, job);
}
