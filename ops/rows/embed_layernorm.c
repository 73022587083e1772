/* embed_layernorm.c — com.microsoft's EmbedLayerNormalization: word, position and segment embeddings are
 * looked up, added and brought to mean 0 and variance 1. */
#include "ops/op.h"

#include "base/lnt_assert.h"
#include "ops/rows/row.h"

#include <math.h>
#include <string.h>

enum { IDS, SEGMENT_IDS, WORDS, POSITIONS, SEGMENTS, GAMMA, BETA, MASK, POSITION_IDS }; /* inputs */

typedef struct embed {
    const lnt_row_kernels *row;
    int64_t batch, length, width;
    int64_t words, positions, segments; /* rows of the tables */
    int64_t position_batch;             /* 1 where all of the batch share position_ids */
    double epsilon;
} embed;

typedef struct embed_job {
    const embed *p;
    const int32_t *ids, *segment_ids, *position_ids;
    const float *words, *positions, *segments, *gamma, *beta;
    float *y, *sum;
} embed_job;

/* Row id of a table, NULL with the error set if there is none. */
static const float *look_up(lnt_kernel *k, const embed *p, const float *table, int64_t rows, int64_t id,
                            const char *what)
{
    if (id >= 0 && id < rows)
        return table + id * p->width;
    lnt_fail(k->err, LNT_E_VALUE, "%s %lld, of a table of %lld", what, (long long)id, (long long)rows);
    return NULL;
}

static lnt_status embed_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const embed_job *j = arg;
    const embed *p = j->p;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = i % p->length, shared = p->position_batch == 1 ? at : i;
        float *y = j->y + i * p->width, mean, variance;
        const float *word = look_up(k, p, j->words, p->words, j->ids[i], "input id");
        const float *position = look_up(k, p, j->positions, p->positions,
                                        j->position_ids ? j->position_ids[shared] : at, "position id");
        if (!word || !position)
            return LNT_E_VALUE;
        memcpy(y, word, (size_t)p->width * sizeof *y);
        p->row->add(y, position, p->width);
        if (j->segments) {
            const float *segment =
                look_up(k, p, j->segments, p->segments, j->segment_ids ? j->segment_ids[i] : 0, "segment id");
            if (!segment)
                return LNT_E_VALUE;
            p->row->add(y, segment, p->width);
        }
        if (j->sum)
            memcpy(j->sum + i * p->width, y, (size_t)p->width * sizeof *y);
        p->row->moments(y, p->width, &mean, &variance);
        const float factor = (float)(1 / sqrt((double)variance + p->epsilon));
        p->row->normalize(y, y, p->width, mean, factor, j->gamma, j->beta);
    }
    return LNT_OK;
}

static lnt_status run_embed(lnt_kernel *k, const lnt_step *s)
{
    const embed *p = s->params;
    LNT_ASSERT(p->batch >= 0 && p->length >= 0);
    embed_job job = {p,
                     lnt_in(k, s, IDS),
                     lnt_in(k, s, SEGMENT_IDS),
                     lnt_in(k, s, POSITION_IDS),
                     lnt_in(k, s, WORDS),
                     lnt_in(k, s, POSITIONS),
                     lnt_in(k, s, SEGMENTS),
                     lnt_in(k, s, GAMMA),
                     lnt_in(k, s, BETA),
                     lnt_out(k, s, 0),
                     lnt_out(k, s, 2)};
    const int32_t *mask = lnt_in(k, s, MASK);
    int32_t *valid = lnt_out(k, s, 1);
    for (int64_t b = 0; b < p->batch && valid; b++) {
        valid[b] = 0;
        for (int64_t i = 0; i < p->length && mask; i++)
            valid[b] += mask[b * p->length + i] == 1;
    }
    return lnt_parallel(k, p->batch * p->length, 1 + 8192 / (p->width + 1), embed_rows, &job);
}

lnt_status lnt_shape_embed_layernorm(lnt_site *site)
{
    const lnt_operand *ids = site->in[IDS], *words = site->in[WORDS];
    lnt_set_type(site, 0, words->dtype);
    lnt_set_type(site, 1, LNT_INT32);
    lnt_set_type(site, 2, words->dtype);
    if (ids->rank == LNT_RANK_UNKNOWN || words->rank == LNT_RANK_UNKNOWN)
        return LNT_UNKNOWN;
    LNT_REQUIRE(ids->rank == 2 && words->rank == 2, site->err, LNT_E_SHAPE,
                "input_ids and word_embedding must have rank 2");
    const int64_t dims[3] = {ids->dims[0], ids->dims[1], words->dims[1]};
    lnt_set_dims(site, 0, 3, dims);
    lnt_set_dims(site, 1, 1, dims);
    lnt_set_dims(site, 2, 3, dims);
    return LNT_OK;
}

/* Operand i, where it is given, has this type and number of elements. */
static lnt_status check(lnt_site *site, unsigned i, lnt_dtype dtype, int64_t count)
{
    const lnt_operand *o = lnt_input(site, i);
    if (o && o->dtype != dtype)
        return lnt_bind_unsupported_type(site, o->dtype);
    LNT_REQUIRE(!o || count < 0 || lnt_operand_count(o) == count, site->err, LNT_E_SHAPE,
                "input %u must hold %lld elements", i, (long long)count);
    return LNT_OK;
}

static int64_t table_rows(const lnt_operand *o, int64_t width)
{
    return o && o->rank == 2 && o->dims[1] == width ? o->dims[0] : 0;
}

lnt_status lnt_bind_embed_layernorm(lnt_site *site)
{
    const lnt_operand *position_ids = lnt_input(site, POSITION_IDS);
    embed *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->row = site->kernels->row;
    p->batch = site->in[IDS]->dims[0];
    p->length = site->in[IDS]->dims[1];
    p->width = site->in[WORDS]->dims[1];
    p->words = table_rows(site->in[WORDS], p->width);
    p->positions = table_rows(site->in[POSITIONS], p->width);
    p->segments = table_rows(lnt_input(site, SEGMENTS), p->width);
    p->position_batch = position_ids && position_ids->rank == 2 ? position_ids->dims[0] : 1;
    p->epsilon = (double)lnt_attr_f(site->node, "epsilon", 1e-12f);
    const int64_t tokens = p->batch * p->length;
    LNT_TRY(check(site, IDS, LNT_INT32, tokens));
    LNT_TRY(check(site, SEGMENT_IDS, LNT_INT32, tokens));
    LNT_TRY(check(site, MASK, LNT_INT32, tokens));
    LNT_TRY(check(site, POSITION_IDS, LNT_INT32, p->position_batch == 1 ? p->length : tokens));
    for (unsigned i = WORDS; i <= SEGMENTS; i++)
        LNT_TRY(check(site, i, LNT_FLOAT, -1));
    LNT_TRY(check(site, GAMMA, LNT_FLOAT, p->width));
    LNT_TRY(check(site, BETA, LNT_FLOAT, p->width));
    site->step->run = run_embed;
    return LNT_OK;
}
