/* rotary.c — RotaryEmbedding: pairs of a head's channels rotated by an angle proportional to the position. */
#include "base/lnt_assert.h"
#include "ops/cells.h"
#include "ops/data/data.h"
#include "ops/rows/row.h"
#include "ops/vectorize.h"

#include <string.h>

typedef struct rotary_params {
    const lnt_row_kernels *row;
    int64_t batch, heads, length, head, rotated; /* extents; channels of a head that are rotated */
    int64_t head_step, position_step; /* elements between heads and between positions of the input */
    bool interleaved;
    lnt_dtype type;
    const lnt_cells *cells;
    void (*rotate)(const struct rotary_params *p, const void *x, const void *cosine, const void *sine,
                   void *y);
} rotary_params;

static void rotate_neighbors(const float *x, const float *c, const float *s, float *y, int64_t pairs)
{
    LNT_INDEPENDENT
    for (int64_t i = 0; i < pairs; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = c[i] * a - s[i] * b;
        y[2 * i + 1] = s[i] * a + c[i] * b;
    }
}

/* One head at one position: channel i of the first half and of the second, or neighbors, are a pair. */
static void rotate_floats(const rotary_params *p, const void *x, const void *cosine, const void *sine,
                          void *y)
{
    (p->interleaved ? rotate_neighbors : p->row->rotate_halves)(x, cosine, sine, y, p->rotated / 2);
}

/* The same of float16 or bfloat16, some pairs at a time as floats. */
static void rotate_narrow(const rotary_params *p, const void *in, const void *cosine, const void *sine,
                          void *out)
{
    enum { PAIRS = 64 };
    const uint16_t *x = in, *c = cosine, *s = sine;
    uint16_t *y = out;
    const int64_t half = p->rotated / 2;
    float pairs[2 * PAIRS], c_floats[PAIRS], s_floats[PAIRS];
    for (int64_t i = 0, n; i < half; i += n) {
        n = half - i < PAIRS ? half - i : PAIRS;
        const int64_t first = p->interleaved ? 2 * i : i, second = p->interleaved ? first + n : half + i;
        lnt_cells_to_float(p->cells, p->type, c + i, c_floats, n);
        lnt_cells_to_float(p->cells, p->type, s + i, s_floats, n);
        lnt_cells_to_float(p->cells, p->type, x + first, pairs, n);
        lnt_cells_to_float(p->cells, p->type, x + second, pairs + n, n);
        (p->interleaved ? rotate_neighbors : p->row->rotate_halves)(pairs, c_floats, s_floats, pairs, n);
        lnt_cells_from_float(p->cells, p->type, pairs, y + first, n);
        lnt_cells_from_float(p->cells, p->type, pairs + n, y + second, n);
    }
}

typedef struct rotary_job {
    const rotary_params *p;
    const char *x, *cosine, *sine;
    char *y;
    const int64_t *positions; /* [batch, length], or NULL: the caches are per batch and position */
    int64_t size;
} rotary_job;

static lnt_status rotate_positions(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k;
    (void)thread;
    const rotary_job *job = arg;
    const rotary_params *p = job->p;
    LNT_ASSERT(p->rotated % 2 == 0 && p->rotated <= p->head && p->length > 0);
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = (job->positions ? job->positions[i] : i) * (p->rotated / 2) * job->size;
        const int64_t batch = i / p->length, position = i % p->length;
        const int64_t first = batch * p->heads * p->length * p->head + position * p->position_step;
        for (int64_t h = 0; h < p->heads; h++) {
            const int64_t at = (first + h * p->head_step) * job->size;
            p->rotate(p, job->x + at, job->cosine + row, job->sine + row, job->y + at);
            const int64_t rotated = p->rotated * job->size;
            memcpy(job->y + at + rotated, job->x + at + rotated, (size_t)(p->head * job->size - rotated));
        }
    }
    return LNT_OK;
}

static lnt_status run_rotary(lnt_kernel *k, const lnt_step *s)
{
    const rotary_params *p = s->params;
    rotary_job job = {p,
                      lnt_in(k, s, 0),
                      lnt_in(k, s, 1),
                      lnt_in(k, s, 2),
                      lnt_out(k, s, 0),
                      lnt_in(k, s, 3),
                      (int64_t)lnt_element_size(s->in[0])};
    const int64_t n = p->batch * p->length;
    for (int64_t i = 0; job.positions && i < n; i++)
        if (job.positions[i] < 0 || job.positions[i] >= s->in[1]->dims[0])
            return lnt_fail(k->err, LNT_E_VALUE, "element %lld of position_ids is %lld, the caches hold %lld",
                            (long long)i, (long long)job.positions[i], (long long)s->in[1]->dims[0]);
    return lnt_parallel(k, n, lnt_grain(p->heads * p->head * job.size), rotate_positions, &job);
}

lnt_status lnt_shape_rotary(lnt_site *site)
{
    if (site->in[0]->rank != 3 && site->in[0]->rank != 4)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the input must have rank 3 or 4, has %u", site->in[0]->rank);
    return lnt_shape_same(site);
}

/* [batch, length, heads * head] or [batch, heads, length, head]. */
static lnt_status read_layout(lnt_site *site, rotary_params *p)
{
    const lnt_operand *x = site->in[0];
    const int64_t heads = lnt_attr_i(site->node, "num_heads", 0);
    p->batch = x->dims[0];
    if (x->rank == 4) {
        p->heads = x->dims[1];
        p->length = x->dims[2];
        p->head = p->position_step = x->dims[3];
        p->head_step = p->length * p->head;
    } else {
        if (heads < 1 || x->dims[2] % heads != 0)
            return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "num_heads %lld does not divide %lld",
                                 (long long)heads, (long long)x->dims[2]);
        p->heads = heads;
        p->length = x->dims[1];
        p->head = p->head_step = x->dims[2] / heads;
        p->position_step = x->dims[2];
    }
    p->interleaved = lnt_attr_i(site->node, "interleaved", 0) != 0;
    p->rotated = lnt_attr_i(site->node, "rotary_embedding_dim", 0);
    if (p->rotated == 0)
        p->rotated = p->head;
    if (p->rotated < 0 || p->rotated > p->head || p->rotated % 2 != 0)
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "rotary_embedding_dim %lld of heads of %lld",
                             (long long)p->rotated, (long long)p->head);
    return LNT_OK;
}

/* Caches are [positions, rotated / 2] beside position_ids, else [batch, length, rotated / 2]. */
static lnt_status check_caches(lnt_site *site, const rotary_params *p)
{
    const lnt_operand *ids = lnt_input(site, 3);
    const unsigned rank = ids ? 2 : 3;
    for (unsigned i = 1; i <= 2; i++) {
        const lnt_operand *cache = site->in[i];
        if (cache->rank != rank || cache->dims[rank - 1] != p->rotated / 2 ||
            cache->dtype != site->in[0]->dtype || cache->dims[0] != (ids ? site->in[1]->dims[0] : p->batch) ||
            (!ids && cache->dims[1] != p->length))
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "cache %u does not fit the input", i);
    }
    if (ids &&
        (ids->dtype != LNT_INT64 || ids->rank != 2 || ids->dims[0] != p->batch || ids->dims[1] != p->length))
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "position_ids must be int64 [batch, length]");
    return LNT_OK;
}

lnt_status lnt_bind_rotary(lnt_site *site)
{
    rotary_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->row = site->kernels->row;
    LNT_TRY(read_layout(site, p));
    LNT_TRY(check_caches(site, p));
    p->cells = site->kernels->cells;
    p->type = (lnt_dtype)site->in[0]->dtype;
    p->rotate = p->type == LNT_FLOAT ? rotate_floats : rotate_narrow;
    if (p->type != LNT_FLOAT && p->type != LNT_FLOAT16 && p->type != LNT_BFLOAT16)
        return lnt_bind_unsupported_type(site, p->type);
    lnt_bind_in_place(site, 0, 0);
    site->step->run = run_rotary;
    return LNT_OK;
}
