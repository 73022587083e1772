/* layernorm.c — LayerNormalization, RMSNormalization and their com.microsoft relatives: each row is brought
 * to mean 0 (not for RMS) and mean square 1, then scaled and shifted element by element. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/copy.h"
#include "ops/element.h"
#include "ops/rows/row.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

/* How an operand is broadcast against the input. */
typedef struct cast {
    bool spread; /* not simply one row of n elements for all rows */
    int64_t stride[LNT_MAX_RANK];
} cast;

/* Operand numbers of an operator of the family; 255 where it has no such operand. */
typedef struct operands {
    uint16_t id;
    uint8_t x, skip, scale, bias, skip_bias, mean, factor, sum;
    bool centered;
} operands;

enum {
    NONE = 255,
    SHORT =
        24, /* the moments of rows of floats up to that are those of columns, which they are turned into, */
    TAILED = 64,  /* (or that, where the next row is read as the last lanes of one are written, */
    LANES = 16,   /* of vectors at most) */
    TOGETHER = 64 /* so many at a time */
};

static const operands family[] = {
    {LNT_ID_LayerNormalization, 0, NONE, 1, 2, NONE, 1, 2, NONE, true},
    {LNT_ID_RMSNormalization, 0, NONE, 1, NONE, NONE, NONE, NONE, NONE, false},
    {LNT_ID_SimplifiedLayerNormalization, 0, NONE, 1, NONE, NONE, NONE, 1, NONE, false},
    {LNT_ID_SkipLayerNormalization, 0, 1, 2, 3, 4, 1, 2, 3, true},
    {LNT_ID_SkipSimplifiedLayerNormalization, 0, 1, 2, NONE, 3, 1, 2, 3, false},
};

typedef struct norm {
    const lnt_row_kernels *row;
    lnt_turn_fn turn;
    const operands *operands;
    int64_t rows, n, skip_rows;
    unsigned rank;
    int64_t dims[LNT_MAX_RANK];
    cast scale, bias;
    double epsilon;
    bool centered;
    size_t thread_bytes; /* scratch for two rows, where coefficients have to be spread */
} norm;

typedef struct norm_job {
    const norm *p;
    const void *x, *skip, *scale, *bias, *skip_bias;
    void *y, *mean, *factor, *sum, *scratch;
} norm_job;

/* Means, unless they are to be 0, and mean squared distances from them, of w short rows. */
static void moments_of_short(const norm *p, const float *x, int64_t w, float *moments)
{
    float *mean = memset(moments, 0, 2 * TOGETHER * sizeof *moments), *spread = moments + TOGETHER;
    float turned[TAILED * TOGETHER];
    const int64_t size = p->n * w;
    const float part = 1 / (float)p->n;
    lnt_turn_by(p->turn, turned, w, x, p->n, w, p->n, sizeof *x);
    for (int64_t at = 0; p->centered && at < size; at += w)
        p->row->add(mean, turned + at, w);
    p->row->shift_scale(mean, mean, w, 0, part, 0);
    for (int64_t at = 0; at < size; at += w) {
        p->row->subtract(turned + at, mean, turned + at, w);
        p->row->add_squares(spread, turned + at, w);
    }
    p->row->shift_scale(spread, spread, w, 0, part, 0);
}

#include "ops/real_float.h"
#include "ops/rows/layernorm.inc.h"
#include "ops/real_double.h"
#include "ops/rows/layernorm.inc.h"

static lnt_status run_norm(lnt_kernel *k, const lnt_step *s)
{
    const norm *p = s->params;
    LNT_ASSERT(s->in[0]->dtype == LNT_DOUBLE || s->in[0]->dtype == LNT_FLOAT);
    const operands *o = p->operands;
    norm_job job = {p,
                    lnt_in(k, s, o->x),
                    lnt_in(k, s, o->skip),
                    lnt_in(k, s, o->scale),
                    lnt_in(k, s, o->bias),
                    lnt_in(k, s, o->skip_bias),
                    lnt_out(k, s, 0),
                    lnt_out(k, s, o->mean),
                    lnt_out(k, s, o->factor),
                    lnt_out(k, s, o->sum),
                    lnt_scratch(k, s)};
    return lnt_parallel(k, p->rows, 1 + 8192 / (p->n + 1),
                        s->in[0]->dtype == LNT_DOUBLE ? rows_double : rows_float, &job);
}

static const operands *operands_of(const lnt_site *site)
{
    for (unsigned i = 0; i < sizeof family / sizeof family[0]; i++)
        if (family[i].id == site->node->op->id)
            return &family[i];
    return NULL;
}

/* First axis of a row. */
static lnt_status row_axis(const lnt_site *site, unsigned *axis)
{
    return lnt_axis(site, lnt_attr_i(site->node, "axis", -1), site->in[0]->rank, axis);
}

lnt_status lnt_shape_layernorm(lnt_site *site)
{
    const operands *o = operands_of(site);
    const lnt_operand *x = site->in[0];
    unsigned axis;
    int64_t dims[LNT_MAX_RANK];
    lnt_set_type(site, 0, x->dtype);
    lnt_set_type(site, o->sum, x->dtype);
    lnt_set_type(site, o->mean, (lnt_dtype)lnt_attr_i(site->node, "stash_type", LNT_FLOAT));
    lnt_set_type(site, o->factor, (lnt_dtype)lnt_attr_i(site->node, "stash_type", LNT_FLOAT));
    if (x->rank == LNT_RANK_UNKNOWN)
        return LNT_UNKNOWN;
    LNT_TRY(row_axis(site, &axis));
    for (unsigned d = 0; d < x->rank; d++)
        dims[d] = d < axis ? x->dims[d] : 1;
    lnt_set_dims_like(site, 0, x);
    lnt_set_dims_like(site, o->sum, x);
    lnt_set_dims(site, o->mean, x->rank, dims);
    lnt_set_dims(site, o->factor, x->rank, dims);
    return LNT_OK;
}

/* Strides of operand c against x; spread unless it is one row that serves all. */
static lnt_status bind_cast(const lnt_site *site, const lnt_operand *c, unsigned axis, cast *out)
{
    const lnt_operand *x = site->in[0];
    int64_t stride = 1;
    if (!c)
        return LNT_OK;
    LNT_REQUIRE(c->rank <= x->rank, site->err, LNT_E_SHAPE, "scale or bias has more axes than the input");
    for (unsigned d = x->rank; d-- > 0;) {
        const int64_t extent = d + c->rank >= x->rank ? c->dims[d + c->rank - x->rank] : 1;
        LNT_REQUIRE(extent == 1 || extent == x->dims[d], site->err, LNT_E_SHAPE,
                    "scale or bias of extent %lld along axis %u, the input has %lld", (long long)extent, d,
                    (long long)x->dims[d]);
        out->stride[d] = extent == 1 ? 0 : stride;
        out->spread |= x->dims[d] != 1 && (extent == 1) == (d >= axis);
        stride *= extent;
    }
    return LNT_OK;
}

static lnt_status bind_skip(lnt_site *site, norm *p)
{
    const lnt_operand *skip = lnt_input(site, p->operands->skip),
                      *bias = lnt_input(site, p->operands->skip_bias);
    p->skip_rows = 1;
    if (!skip)
        return LNT_OK;
    const int64_t count = lnt_operand_count(skip);
    LNT_REQUIRE(skip->rank > 0 && skip->dims[skip->rank - 1] == p->n, site->err, LNT_E_SHAPE,
                "skip must have rows of %lld", (long long)p->n);
    p->skip_rows = p->n ? count / p->n : 1;
    LNT_REQUIRE(p->skip_rows > 0 ? p->rows % p->skip_rows == 0 : p->rows == 0, site->err, LNT_E_SHAPE,
                "skip does not broadcast to the input");
    if (p->skip_rows == 0)
        p->skip_rows = 1;
    LNT_REQUIRE(!bias || lnt_operand_count(bias) == p->n, site->err, LNT_E_SHAPE,
                "bias must hold %lld elements", (long long)p->n);
    return LNT_OK;
}

lnt_status lnt_bind_layernorm(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    unsigned axis;
    norm *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->row = site->kernels->row;
    p->turn = site->kernels->turn;
    p->operands = operands_of(site);
    p->centered = p->operands->centered;
    p->epsilon = (double)lnt_attr_f(site->node, "epsilon", p->operands->skip == NONE ? 1e-5f : 1e-12f);
    p->rank = x->rank;
    memcpy(p->dims, x->dims, sizeof p->dims);
    LNT_TRY(row_axis(site, &axis));
    p->rows = p->n = 1;
    for (unsigned d = 0; d < x->rank; d++)
        *(d < axis ? &p->rows : &p->n) *= x->dims[d];
    LNT_TRY(bind_cast(site, lnt_input(site, p->operands->scale), axis, &p->scale));
    LNT_TRY(bind_cast(site, lnt_input(site, p->operands->bias), axis, &p->bias));
    LNT_TRY(bind_skip(site, p));
    if (p->scale.spread || p->bias.spread) {
        p->thread_bytes = lnt_round_up((size_t)p->n * 2 * sizeof(double), LNT_ALIGN);
        lnt_bind_scratch(site, p->thread_bytes * site->threads);
    }
    site->step->run = run_norm;
    lnt_bind_in_place(site, 0, 0);
    return lnt_bind_widened(site, UINT32_MAX, UINT32_MAX);
}
