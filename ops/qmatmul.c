/* qmatmul.c — matrix products of bytes: MatMulInteger, QLinearMatMul, and com.microsoft's
 * MatMulIntegerToFloat and DynamicQuantizeMatMul. All accumulate exactly in int32 and differ in what goes in
 * and comes out. */
#include "ops/op.h"

#include "base/checked.h"
#include "ops/axes.h"
#include "ops/quantise.h"
#include "ops/row.h"

#include <string.h>

enum { NONE = 255 };

/* Operand numbers of an operator of the family; NONE where it has no such operand. */
typedef struct operands {
    uint16_t id;
    uint8_t b, a_scale, a_zero, b_scale, b_zero, y_scale, y_zero, bias;
    bool quantise_a; /* A is float and quantised on the way in */
} operands;

static const operands family[] = {
    {LNT_ID_MatMulInteger, 1, NONE, 2, NONE, 3, NONE, NONE, NONE, false},
    {LNT_ID_QLinearMatMul, 3, 1, 2, 4, 5, 6, 7, NONE, false},
    {LNT_ID_MatMulIntegerToFloat, 1, 2, 4, 3, 5, NONE, NONE, 6, false},
    {LNT_ID_DynamicQuantizeMatMul, 1, NONE, NONE, 2, 3, NONE, NONE, 4, true},
};

typedef struct qmatmul {
    const lnt_row_kernels *row;
    const operands *operands;
    int64_t M, K, N, batch;
    lnt_axes a, b; /* matrices of the batch, in elements */
    bool a_signed, b_signed;
    size_t a_bytes;      /* scratch: A quantised, or 0 */
    size_t thread_bytes; /* scratch: a row of sums */
} qmatmul;

typedef struct qmatmul_job {
    const qmatmul *p;
    const lnt_kernel *k;
    const lnt_step *s;
    const uint8_t *a, *b;
    float a_scale; /* of a quantised A */
    int32_t a_zero;
    char *scratch;
} qmatmul_job;

/* Scale or zero point of one row or column: operand i holds one number, one per row or column, or one per row
 * or column and batch entry. */
static int64_t pick(const lnt_step *s, unsigned i, int64_t batch, int64_t index, int64_t extent)
{
    const int64_t n = i < s->n_in && s->in[i] ? lnt_operand_count(s->in[i]) : 1;
    return n == 1 ? 0 : n == extent ? index : (batch * extent + index) % n;
}

static int32_t zero_of(const qmatmul_job *j, unsigned i, int64_t batch, int64_t index, int64_t extent)
{
    return i == NONE ? 0
                     : lnt_qint(i < j->s->n_in ? j->s->in[i] : NULL, lnt_in(j->k, j->s, i),
                                pick(j->s, i, batch, index, extent), 0);
}

static float scale_of(const qmatmul_job *j, unsigned i, int64_t batch, int64_t index, int64_t extent)
{
    return i == NONE ? 1
                     : lnt_qfloat(i < j->s->n_in ? j->s->in[i] : NULL, lnt_in(j->k, j->s, i),
                                  pick(j->s, i, batch, index, extent));
}

/* Row of exact sums: acc[n] = sum over k of (a[k] - a zero) * (b[k][n] - b zero[n]). */
static void sum_row(const qmatmul_job *j, const uint8_t *a, const uint8_t *b, int64_t batch, int64_t m,
                    int32_t *acc)
{
    const qmatmul *p = j->p;
    const operands *o = p->operands;
    const int32_t a_zero = o->quantise_a ? j->a_zero : zero_of(j, o->a_zero, batch, m, p->M);
    const bool shared =
        o->b_zero >= j->s->n_in || !j->s->in[o->b_zero] || lnt_operand_count(j->s->in[o->b_zero]) == 1;
    const int32_t b_zero = shared ? zero_of(j, o->b_zero, batch, 0, p->N) : 0;
    uint32_t total = 0;
    memset(acc, 0, (size_t)p->N * sizeof *acc);
    for (int64_t i = 0; i < p->K; i++) {
        const int32_t x = (p->a_signed ? (int8_t)a[i] : a[i]) - a_zero;
        total += (uint32_t)x;
        if (x)
            p->row->add_bytes(acc, b + i * p->N, p->b_signed, b_zero, x, p->N);
    }
    for (int64_t n = 0; n < p->N && !shared; n++)
        acc[n] = (int32_t)((uint32_t)acc[n] - total * (uint32_t)zero_of(j, o->b_zero, batch, n, p->N));
}

/* A row of sums to a row of outputs; at: index of the first. */
static void store_row(const qmatmul_job *j, const int32_t *acc, int64_t batch, int64_t m, int64_t at)
{
    const qmatmul *p = j->p;
    const operands *o = p->operands;
    const lnt_operand *y = j->s->out[0];
    void *out = lnt_element_at(lnt_out(j->k, j->s, 0), y->dtype, at);
    if (y->dtype == LNT_INT32) {
        memcpy(out, acc, (size_t)p->N * sizeof *acc);
        return;
    }
    const float a_scale = o->quantise_a ? j->a_scale : scale_of(j, o->a_scale, batch, m, p->M);
    const float y_scale = scale_of(j, o->y_scale, 0, 0, 1);
    const int32_t y_zero = zero_of(j, o->y_zero, 0, 0, 1);
    const void *bias = o->bias == NONE ? NULL : lnt_in(j->k, j->s, o->bias);
    for (int64_t n = 0; n < p->N; n++) {
        const float real = (float)acc[n] * (a_scale * scale_of(j, o->b_scale, batch, n, p->N) / y_scale);
        if (lnt_is_byte(y->dtype))
            ((uint8_t *)out)[n] = (uint8_t)lnt_requantise(real, y_zero, lnt_qrange_of(y->dtype));
        else {
            const float sum = bias ? real + lnt_qfloat(j->s->in[o->bias], bias, n) : real;
            lnt_elements_from_float(y->dtype, &sum, lnt_element_at(out, y->dtype, n), 1);
        }
    }
}

static lnt_status multiply_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const qmatmul_job *j = arg;
    const qmatmul *p = j->p;
    int32_t *acc = (int32_t *)(j->scratch + p->a_bytes + thread * p->thread_bytes);
    (void)k;
    for (int64_t item = begin; item < end; item++) {
        const int64_t batch = item / p->M, m = item % p->M;
        const uint8_t *a = j->a + lnt_axes_offset(&p->a, batch) + m * p->K;
        sum_row(j, a, j->b + lnt_axes_offset(&p->b, batch), batch, m, acc);
        store_row(j, acc, batch, m, item * p->N);
    }
    return LNT_OK;
}

static lnt_status run_qmatmul(lnt_kernel *k, const lnt_step *s)
{
    const qmatmul *p = s->params;
    qmatmul_job job = {.p = p,
                       .k = k,
                       .s = s,
                       .a = lnt_in(k, s, 0),
                       .b = lnt_in(k, s, p->operands->b),
                       .scratch = lnt_scratch(k, s)};
    if (p->operands->quantise_a) {
        const int64_t count = lnt_operand_count(s->in[0]);
        const float *x = lnt_in(k, s, 0);
        lnt_dynamic_scale(p->row, x, count, &job.a_scale, &job.a_zero);
        for (int64_t i = 0; i < count; i++)
            ((uint8_t *)job.scratch)[i] =
                (uint8_t)lnt_requantise(x[i] / job.a_scale, job.a_zero, lnt_qrange_of(LNT_UINT8));
        job.a = (const uint8_t *)job.scratch;
    }
    return lnt_parallel(k, p->batch * p->M, 1 + 65536 / (p->K * p->N + 1), multiply_rows, &job);
}

static const operands *operands_of(const lnt_site *site)
{
    for (unsigned i = 0; i < sizeof family / sizeof family[0]; i++)
        if (family[i].id == site->node->op->id)
            return &family[i];
    return NULL;
}

lnt_status lnt_shape_qmatmul(lnt_site *site)
{
    const operands *o = operands_of(site);
    lnt_operand *factors[2] = {site->in[0], site->in[o->b]};
    lnt_site product = *site;
    product.in = factors;
    product.n_in = 2;
    lnt_set_type(site, 0,
                 o->y_zero != NONE                            ? (lnt_dtype)site->in[o->y_zero]->dtype
                 : site->node->op->id == LNT_ID_MatMulInteger ? LNT_INT32
                                                              : LNT_FLOAT);
    if (factors[0]->rank == LNT_RANK_UNKNOWN || factors[1]->rank == LNT_RANK_UNKNOWN)
        return LNT_UNKNOWN;
    return lnt_shape_matmul(&product);
}

/* Where the matrices of operand o lie, for each entry of the output's batch of the given rank. */
static lnt_axes batch_axes(const lnt_operand *o, const int64_t *batch, unsigned rank, int64_t matrix)
{
    lnt_axes a = {0};
    int64_t stride[LNT_MAX_RANK], step = matrix;
    for (unsigned d = rank; d-- > 0;) {
        const int64_t extent = d + o->rank >= rank + 2 ? o->dims[d + o->rank - rank - 2] : 1;
        stride[d] = extent == 1 ? 0 : step;
        step *= extent;
    }
    for (unsigned d = 0; d < rank; d++)
        lnt_axes_push(&a, batch[d], stride[d]);
    return a;
}

lnt_status lnt_bind_qmatmul(lnt_site *site)
{
    qmatmul *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    const operands *o = p->operands = operands_of(site);
    const lnt_operand *a = site->in[0], *b = site->in[o->b], *y = site->out[0];
    const unsigned rank = y->rank - (a->rank > 1) - (b->rank > 1);
    if (!(o->quantise_a ? a->dtype == LNT_FLOAT : lnt_is_byte(a->dtype)))
        return lnt_bind_unsupported_type(site, a->dtype);
    if (!lnt_is_byte(b->dtype))
        return lnt_bind_unsupported_type(site, b->dtype);
    p->row = site->kernels->row;
    p->M = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    p->K = a->dims[a->rank - 1];
    p->N = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    p->a = batch_axes(a, y->dims, rank, p->M * p->K);
    p->b = batch_axes(b, y->dims, rank, p->K * p->N);
    p->batch = lnt_axes_items(&p->a);
    p->a_signed = a->dtype == LNT_INT8;
    p->b_signed = b->dtype == LNT_INT8;
    p->a_bytes = o->quantise_a ? lnt_round_up((size_t)lnt_operand_count(a), LNT_ALIGN) : 0;
    p->thread_bytes = lnt_round_up((size_t)p->N * sizeof(int32_t), LNT_ALIGN);
    lnt_bind_scratch(site, p->a_bytes + p->thread_bytes * site->threads);
    site->step->run = run_qmatmul;
    return LNT_OK;
}
