/* linear_attention.c — LinearAttention: a recurrence instead of a softmax. Each key head carries a matrix
 * S [d_k, d_v]; a token forgets, learns and reads:
 *
 *     S = exp(g) * S                          gated rules: g one number a head, or one a row of S
 *     S = S + k (x) beta * (v - S^T k)        delta rules; else S = S + k (x) v
 *     o = scale * q^T S                       for each query head that shares the key head */
#include "ops/op.h"

#include "base/lnt_assert.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA }; /* inputs */

typedef struct linear_attention {
    int64_t batches, tokens, heads, kv_heads, k_width, v_width;
    int64_t decay_width; /* 0 not gated, 1 per head, k_width per row of S */
    int64_t beta_heads;  /* 0 no delta rule, 1 or kv_heads */
    float scale;
} linear_attention;

typedef struct job {
    const linear_attention *p;
    const float *query, *key, *value, *past, *decay, *beta;
    float *y, *present, *delta; /* delta: [thread][v_width] */
} job;

static void forget(const linear_attention *p, float *state, const float *decay)
{
    for (int64_t i = 0; i < p->k_width; i++) {
        const float keep = expf(decay[p->decay_width > 1 ? i : 0]);
        for (int64_t j = 0; j < p->v_width; j++)
            state[i * p->v_width + j] *= keep;
    }
}

/* out = S^T row: the sum of the rows of S, weighted. */
static void read_state(const linear_attention *p, const float *state, const float *row, float *out)
{
    memset(out, 0, (size_t)p->v_width * sizeof *out);
    for (int64_t i = 0; i < p->k_width; i++)
        for (int64_t j = 0; j < p->v_width; j++)
            out[j] += row[i] * state[i * p->v_width + j];
}

static void learn(const linear_attention *p, float *state, const float *key, const float *value)
{
    for (int64_t i = 0; i < p->k_width; i++)
        for (int64_t j = 0; j < p->v_width; j++)
            state[i * p->v_width + j] += key[i] * value[j];
}

/* Token t of batch entry b for key head h and the query heads that share it. */
static void step_token(const job *w, int64_t b, int64_t h, int64_t t, float *state, float *delta)
{
    const linear_attention *p = w->p;
    const int64_t token = b * p->tokens + t, group = p->heads / p->kv_heads;
    const float *key = w->key + (token * p->kv_heads + h) * p->k_width;
    const float *value = w->value + (token * p->kv_heads + h) * p->v_width;
    if (p->decay_width)
        forget(p, state, w->decay + (token * p->kv_heads + h) * p->decay_width);
    if (p->beta_heads) {
        const float beta = w->beta[token * p->beta_heads + (p->beta_heads > 1 ? h : 0)];
        read_state(p, state, key, delta);
        for (int64_t j = 0; j < p->v_width; j++)
            delta[j] = beta * (value[j] - delta[j]);
        value = delta;
    }
    learn(p, state, key, value);
    for (int64_t q = h * group; w->y && q < (h + 1) * group; q++) {
        float *out = w->y + (token * p->heads + q) * p->v_width;
        read_state(p, state, w->query + (token * p->heads + q) * p->k_width, out);
        for (int64_t j = 0; j < p->v_width; j++)
            out[j] *= p->scale;
    }
}

static lnt_status attend(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const job *w = arg;
    const linear_attention *p = w->p;
    const size_t cells = (size_t)(p->k_width * p->v_width);
    for (int64_t head = begin; head < end; head++) {
        float *state = w->present + (size_t)head * cells;
        if (w->past)
            memcpy(state, w->past + (size_t)head * cells, cells * sizeof *state);
        else
            memset(state, 0, cells * sizeof *state);
        for (int64_t t = 0; t < p->tokens; t++) {
            LNT_TRY(lnt_cancelled(k));
            step_token(w, head / p->kv_heads, head % p->kv_heads, t, state, w->delta + thread * p->v_width);
        }
    }
    return LNT_OK;
}

static lnt_status run_linear_attention(lnt_kernel *k, const lnt_step *s)
{
    const linear_attention *p = s->params;
    LNT_ASSERT(s->scratch_bytes >= k->threads * (size_t)p->v_width * sizeof(float));
    float *scratch = lnt_scratch(k, s);
    job w = {p,
             lnt_in(k, s, QUERY),
             lnt_in(k, s, KEY),
             lnt_in(k, s, VALUE),
             lnt_in(k, s, PAST),
             lnt_in(k, s, DECAY),
             lnt_in(k, s, BETA),
             lnt_out(k, s, 0),
             lnt_out(k, s, 1),
             scratch};
    if (!w.present)
        w.present = scratch + k->threads * p->v_width;
    return lnt_parallel(k, p->batches * p->kv_heads, 1, attend, &w);
}

static lnt_status head_counts(const lnt_site *site, int64_t *heads, int64_t *kv_heads)
{
    *heads = lnt_attr_i(site->node, "q_num_heads", 0);
    *kv_heads = lnt_attr_i(site->node, "kv_num_heads", 0);
    LNT_REQUIRE(*kv_heads > 0 && *heads > 0 && *heads % *kv_heads == 0, site->err, LNT_E_ARGUMENT,
                "q_num_heads %lld must be a multiple of kv_num_heads %lld", (long long)*heads,
                (long long)*kv_heads);
    return LNT_OK;
}

static int64_t divide(int64_t a, int64_t b)
{
    return a < 0 ? LNT_DIM_UNKNOWN : a / b;
}

lnt_status lnt_shape_linear_attention(lnt_site *site)
{
    const lnt_operand *q = site->in[QUERY], *v = site->in[VALUE], *past = lnt_input(site, PAST);
    int64_t heads, kv_heads;
    LNT_TRY(head_counts(site, &heads, &kv_heads));
    LNT_REQUIRE(q->rank == 3 && site->in[KEY]->rank == 3 && v->rank == 3, site->err, LNT_E_SHAPE,
                "query, key and value must have rank 3");
    if (past)
        lnt_set_type(site, 1, (lnt_dtype)past->dtype);
    const int64_t k_width = divide(q->dims[2], heads), v_width = divide(v->dims[2], kv_heads);
    lnt_set_dims(site, 0, 3, (const int64_t[]){q->dims[0], q->dims[1], lnt_dim_mul(v_width, heads)});
    lnt_set_dims(site, 1, 4, (const int64_t[]){q->dims[0], kv_heads, k_width, v_width});
    return LNT_OK;
}

/* Whether input i is there, as the update rule wants it, and its last extent. */
static lnt_status gate_width(const lnt_site *site, unsigned i, bool wanted, const linear_attention *p,
                             int64_t *width)
{
    const lnt_operand *o = lnt_input(site, i);
    *width = 0;
    if (!wanted)
        return LNT_OK;
    LNT_REQUIRE(o, site->err, LNT_E_ARGUMENT, "the update rule needs input %u", i);
    LNT_REQUIRE(o->rank == 3 && o->dims[0] == p->batches && o->dims[1] == p->tokens, site->err, LNT_E_SHAPE,
                "input %u does not fit the query", i);
    *width = o->dims[2];
    return LNT_OK;
}

static lnt_status check_extents(const lnt_site *site, const linear_attention *p)
{
    const lnt_operand *q = site->in[QUERY], *past = lnt_input(site, PAST);
    const int64_t rows = p->batches * p->tokens;
    LNT_REQUIRE(q->dims[2] == p->heads * p->k_width &&
                    lnt_operand_count(site->in[KEY]) == rows * p->kv_heads * p->k_width &&
                    lnt_operand_count(site->in[VALUE]) == rows * p->kv_heads * p->v_width,
                site->err, LNT_E_SHAPE, "query, key and value do not fit together");
    LNT_REQUIRE(!past || lnt_operand_count(past) == p->batches * p->kv_heads * p->k_width * p->v_width,
                site->err, LNT_E_SHAPE, "past_state does not fit key and value");
    return LNT_OK;
}

/* Extents of decay and beta; decay_width becomes that of a head. */
static lnt_status bind_gates(const lnt_site *site, linear_attention *p)
{
    const char *rule = lnt_attr_s(site->node, "update_rule", "gated_delta");
    const bool gated = strcmp(rule, "gated") == 0 || strcmp(rule, "gated_delta") == 0;
    const bool delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    LNT_REQUIRE(gated || delta || strcmp(rule, "linear") == 0, site->err, LNT_E_ARGUMENT,
                "update_rule '%s' is unknown", rule);
    LNT_TRY(gate_width(site, DECAY, gated, p, &p->decay_width));
    LNT_TRY(gate_width(site, BETA, delta, p, &p->beta_heads));
    LNT_REQUIRE(!gated || p->decay_width == p->kv_heads || p->decay_width == p->kv_heads * p->k_width,
                site->err, LNT_E_SHAPE, "decay has %lld values a token", (long long)p->decay_width);
    LNT_REQUIRE(!delta || p->beta_heads == 1 || p->beta_heads == p->kv_heads, site->err, LNT_E_SHAPE,
                "beta has %lld values a token", (long long)p->beta_heads);
    p->decay_width /= p->kv_heads;
    return LNT_OK;
}

lnt_status lnt_bind_linear_attention(lnt_site *site)
{
    const lnt_operand *q = site->in[QUERY], *v = site->in[VALUE];
    linear_attention *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(head_counts(site, &p->heads, &p->kv_heads));
    p->batches = q->dims[0];
    p->tokens = q->dims[1];
    p->k_width = q->dims[2] / p->heads;
    p->v_width = v->dims[2] / p->kv_heads;
    LNT_TRY(check_extents(site, p));
    LNT_TRY(bind_gates(site, p));
    p->scale = lnt_attr_f(site->node, "scale", 0);
    if (p->scale == 0)
        p->scale = 1 / sqrtf((float)p->k_width);
    if (lnt_site_real_type(site) != LNT_FLOAT)
        return lnt_bind_unsupported_type(site, (lnt_dtype)q->dtype);
    const int64_t states = lnt_output(site, 1) ? 0 : p->batches * p->kv_heads * p->k_width * p->v_width;
    lnt_bind_scratch(site, (size_t)(site->threads * p->v_width + states) * sizeof(float));
    site->step->run = run_linear_attention;
    return lnt_bind_widened(site,
                            1u << QUERY | 1u << KEY | 1u << VALUE | 1u << PAST | 1u << DECAY | 1u << BETA, 3);
}
