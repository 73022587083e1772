/* qmatmul.c — matrix products of bytes: MatMulInteger, QLinearMatMul, and com.microsoft's
 * MatMulIntegerToFloat and DynamicQuantizeMatMul; QLinearGemm, which is QLinearMatMul with transB and a bias
 * of int32 in units of both scales. All accumulate exactly in int32 and differ in what goes in and comes out.
 */
#include "ops/op.h"

#include "base/checked.h"
#include "ops/axes.h"
#include "ops/gemm_driver.h"
#include "ops/qgemm.h"
#include "ops/quantise.h"
#include "ops/row.h"

#include <string.h>

enum { NONE = 255 };

/* Operand numbers of an operator of the family; NONE where it has no such operand. */
typedef struct operands {
    uint16_t id;
    uint8_t b, a_scale, a_zero, b_scale, b_zero, y_scale, y_zero,
        bias;        /* bias: float, or int32 of QLinearGemm */
    bool quantise_a; /* A is float and quantised on the way in */
} operands;

static const operands family[] = {
    {LNT_ID_MatMulInteger, 1, NONE, 2, NONE, 3, NONE, NONE, NONE, false},
    {LNT_ID_QLinearMatMul, 3, 1, 2, 4, 5, 6, 7, NONE, false},
    {LNT_ID_QLinearGemm, 3, 1, 2, 4, 5, 6, 7, 8, false},
    {LNT_ID_MatMulIntegerToFloat, 1, 2, 4, 3, 5, NONE, NONE, 6, false},
    {LNT_ID_DynamicQuantizeMatMul, 1, NONE, NONE, 2, 3, NONE, NONE, 4, true},
};

enum { ROW_BLOCK = 56 }; /* rows of A that meet a panel in one go */

typedef struct qmatmul {
    const lnt_row_kernels *row;
    const lnt_qgemm_kernels *kernels;
    const operands *operands;
    int64_t M, K, N, batch;
    lnt_axes a, b;     /* matrices of the batch, in elements */
    lnt_packed record; /* of B */
    bool a_signed, b_signed;
    int64_t a_rows; /* of all matrices of A */
    int64_t row_bytes, panels;
    bool pack;                  /* B is packed in each run */
    size_t a_at, sums_at, b_at; /* scratch: rows of A, their sums, B packed */
} qmatmul;

typedef struct qmatmul_job {
    const qmatmul *p;
    const lnt_kernel *k;
    const lnt_step *s;
    const void *a;
    uint8_t *rows;
    int32_t *row_sums;
    const int8_t *packed;
    const int32_t *column_sums;
    float a_scale; /* of a quantised A */
    int32_t a_zero, y_zero;
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

/* Rows of A as uint8, padded to whole quads, and their sums. */
static lnt_status prepare_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const qmatmul_job *j = arg;
    const qmatmul *p = j->p;
    (void)k, (void)thread;
    for (int64_t m = begin; m < end; m++) {
        uint8_t *row = j->rows + m * p->row_bytes;
        int32_t total = 0;
        memset(row + p->K, 0, (size_t)(p->row_bytes - p->K));
        if (p->operands->quantise_a)
            p->row->quantise((const float *)j->a + m * p->K, row, p->K, j->a_scale, j->a_zero, false);
        else
            memcpy(row, (const uint8_t *)j->a + m * p->K, (size_t)p->K);
        for (int64_t i = 0; i < p->K && p->a_signed; i++)
            row[i] ^= 0x80;
        for (int64_t i = 0; i < p->K; i++)
            total += row[i];
        j->row_sums[m] = total;
    }
    return LNT_OK;
}

/* What a panel's columns have in common for all rows. */
typedef struct columns {
    int64_t n; /* of them */
    const int32_t *sums;
    int32_t zero[LNT_QPANEL], sum_bias[LNT_QPANEL];
    float scale[LNT_QPANEL], bias[LNT_QPANEL];
} columns;

static columns columns_of(const qmatmul_job *j, int64_t batch, int64_t first, const int32_t *sums)
{
    const qmatmul *p = j->p;
    const operands *o = p->operands;
    const void *bias = o->bias == NONE ? NULL : lnt_in(j->k, j->s, o->bias);
    const float y_scale = scale_of(j, o->y_scale, 0, 0, 1);
    columns c = {.n = p->N - first < LNT_QPANEL ? p->N - first : LNT_QPANEL, .sums = sums};
    for (int64_t i = 0; i < c.n; i++) {
        c.zero[i] = zero_of(j, o->b_zero, batch, first + i, p->N) - (p->b_signed ? 0 : 128);
        c.scale[i] = scale_of(j, o->b_scale, batch, first + i, p->N) / y_scale;
        if (bias && j->s->in[o->bias]->dtype == LNT_INT32)
            c.sum_bias[i] = ((const int32_t *)bias)[first + i];
        else
            c.bias[i] = bias ? lnt_qfloat(j->s->in[o->bias], bias, first + i) : 0;
    }
    return c;
}

/* A row of raw sums to the output from element `at` on. */
static void store_row(const qmatmul_job *j, const columns *c, int32_t *acc, int64_t batch, int64_t m,
                      int32_t row_sum, int64_t at)
{
    const qmatmul *p = j->p;
    const operands *o = p->operands;
    const lnt_operand *y = j->s->out[0];
    void *out = lnt_element_at(lnt_out(j->k, j->s, 0), y->dtype, at);
    const int32_t zero =
        (o->quantise_a ? j->a_zero : zero_of(j, o->a_zero, batch, m, p->M)) + 128 * p->a_signed;
    const uint32_t rest = (uint32_t)row_sum - (uint32_t)p->K * (uint32_t)zero;
    p->row->take_zeros(acc, LNT_QPANEL, zero, c->sums, (int32_t)rest, c->zero, c->sum_bias);
    if (y->dtype == LNT_INT32) {
        memcpy(out, acc, (size_t)c->n * sizeof *acc);
        return;
    }
    const float a_scale = o->quantise_a ? j->a_scale : scale_of(j, o->a_scale, batch, m, p->M);
    float scale[LNT_QPANEL];
    for (int64_t n = 0; n < c->n; n++)
        scale[n] = a_scale * c->scale[n];
    if (lnt_is_byte(y->dtype)) {
        p->row->requantise_each(acc, out, c->n, scale, j->y_zero, y->dtype == LNT_INT8);
        return;
    }
    float real[LNT_QPANEL];
    for (int64_t n = 0; n < c->n; n++)
        real[n] = (float)acc[n] * scale[n] + c->bias[n];
    lnt_elements_from_float(y->dtype, real, out, c->n);
}

/* Item: a panel of a batch entry against a block of rows. */
static lnt_status multiply_blocks(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const qmatmul_job *j = arg;
    const qmatmul *p = j->p;
    const int64_t blocks = (p->M + ROW_BLOCK - 1) / ROW_BLOCK;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t panel = item % p->panels, batch = item / (p->panels * blocks);
        const int64_t from = item / p->panels % blocks * ROW_BLOCK,
                      to = from + ROW_BLOCK < p->M ? from + ROW_BLOCK : p->M;
        const int64_t row = lnt_axes_offset(&p->a, batch) / p->K;
        const int64_t b = lnt_axes_offset(&p->b, batch) / (p->K * p->N) * p->panels + panel;
        const columns c = columns_of(j, batch, panel * LNT_QPANEL, j->column_sums + b * LNT_QPANEL);
        for (int64_t m = from; m < to; m += p->kernels->rows) {
            const unsigned rows = to - m < p->kernels->rows ? (unsigned)(to - m) : p->kernels->rows;
            const uint8_t *a[LNT_QROWS_MAX];
            int32_t acc[LNT_QROWS_MAX * LNT_QPANEL];
            for (unsigned r = 0; r < rows; r++)
                a[r] = j->rows + (row + m + r) * p->row_bytes;
            p->kernels->tile(&(lnt_qproduct){.a = a,
                                             .rows = rows,
                                             .tap_offset = lnt_qone_run,
                                             .taps = 1,
                                             .quads = p->row_bytes / 4,
                                             .panels = 1,
                                             .panel = {j->packed + b * p->row_bytes * LNT_QPANEL},
                                             .c = {acc}});
            for (unsigned r = 0; r < rows; r++)
                store_row(j, &c, acc + r * LNT_QPANEL, batch, m + r, j->row_sums[row + m + r],
                          (batch * p->M + m + r) * p->N + panel * LNT_QPANEL);
        }
    }
    return LNT_OK;
}

static lnt_status run_qmatmul(lnt_kernel *k, const lnt_step *s)
{
    const qmatmul *p = s->params;
    char *scratch = lnt_scratch(k, s);
    const int8_t *packed = p->pack ? (int8_t *)scratch + p->b_at : lnt_in(k, s, p->operands->b);
    qmatmul_job job = {.p = p,
                       .k = k,
                       .s = s,
                       .a = lnt_in(k, s, 0),
                       .rows = (uint8_t *)(scratch + p->a_at),
                       .row_sums = (int32_t *)(scratch + p->sums_at),
                       .packed = packed};
    if (p->K == 0) {
        memset(lnt_out(k, s, 0), 0, (size_t)lnt_operand_count(s->out[0]) * sizeof(int32_t));
        return LNT_OK;
    }
    job.y_zero = zero_of(&job, p->operands->y_zero, 0, 0, 1);
    if (p->operands->quantise_a)
        lnt_dynamic_scale(p->row, job.a, lnt_operand_count(s->in[0]), &job.a_scale, &job.a_zero);
    LNT_TRY(lnt_parallel(k, p->a_rows, 1 + 16384 / p->row_bytes, prepare_rows, &job));
    if (p->pack)
        LNT_TRY(lnt_gemm_pack(k, &p->record, p->b_signed ? LNT_INT8 : LNT_UINT8, lnt_in(k, s, p->operands->b),
                              scratch + p->b_at));
    job.column_sums = (const int32_t *)(const void *)(packed + lnt_packed_sums_at(&p->record));
    const int64_t blocks = (p->M + ROW_BLOCK - 1) / ROW_BLOCK;
    const int64_t work = p->row_bytes * LNT_QPANEL * (p->M < ROW_BLOCK ? p->M : ROW_BLOCK);
    return lnt_parallel(k, p->batch * blocks * p->panels, 1 + 524288 / (work + 1), multiply_blocks, &job);
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

/* Lays out the scratch memory. */
static lnt_status bind_memory(lnt_site *site, qmatmul *p)
{
    const lnt_operand *a = site->in[0], *b = site->in[p->operands->b];
    const int64_t matrices = p->K > 0 && p->N > 0 ? lnt_operand_count(b) / (p->K * p->N) : 0;
    size_t packed = 0;
    const lnt_source source = lnt_attr_i(site->node, "transB", 0) ? LNT_SOURCE_NK : LNT_SOURCE_KN;
    p->record = lnt_packed_panels(source, (uint32_t)matrices, (uint32_t)p->K, (uint32_t)p->N);
    p->record.layout = LNT_LAYOUT_PANEL_I8;
    LNT_REQUIRE(p->K <= INT32_MAX && p->N <= INT32_MAX && matrices <= INT32_MAX &&
                    lnt_packed_bytes(&p->record, &packed),
                site->err, LNT_E_LIMIT, "matrix B is too large");
    p->row_bytes = lnt_qrow_bytes(&p->record);
    p->panels = lnt_qpanels(&p->record);
    p->a_rows = p->K ? lnt_operand_count(a) / p->K : 0;
    p->pack = !b->packed;
    p->sums_at = lnt_round_up((size_t)(p->a_rows * p->row_bytes), LNT_ALIGN);
    p->b_at = p->sums_at + lnt_round_up((size_t)p->a_rows * sizeof(int32_t), LNT_ALIGN);
    lnt_bind_scratch(site, p->b_at + (p->pack ? packed : 0));
    return LNT_OK;
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
    p->kernels = site->kernels->qgemm;
    p->M = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    p->K = a->dims[a->rank - 1];
    p->N = b->rank > 1 ? b->dims[b->rank - (lnt_attr_i(site->node, "transB", 0) ? 2 : 1)] : 1;
    if (o->id == LNT_ID_QLinearGemm)
        LNT_REQUIRE(b->rank == 2 && site->in[o->bias]->dtype == LNT_INT32 &&
                        lnt_operand_count(site->in[o->bias]) == p->N,
                    site->err, LNT_E_SHAPE, "the bias must hold %lld int32", (long long)p->N);
    p->a = batch_axes(a, y->dims, rank, p->M * p->K);
    p->b = batch_axes(b, y->dims, rank, p->K * p->N);
    p->batch = lnt_axes_items(&p->a);
    p->a_signed = a->dtype == LNT_INT8;
    p->b_signed = b->dtype == LNT_INT8;
    for (unsigned i = 1; i < site->n_in; i++)
        LNT_REQUIRE(i == o->b || !site->in[i] || lnt_operand_count(site->in[i]) > 0, site->err, LNT_E_SHAPE,
                    "input %u, a scale or zero point, is empty", i);
    const lnt_operand *bias = o->bias == NONE ? NULL : lnt_input(site, o->bias);
    LNT_REQUIRE(!bias || lnt_operand_count(bias) == p->N, site->err, LNT_E_SHAPE,
                "bias must hold %lld elements", (long long)p->N);
    LNT_REQUIRE(p->K > 0 || y->dtype == LNT_INT32, site->err, LNT_E_UNSUPPORTED, "A has rows of no elements");
    site->step->run = run_qmatmul;
    return bind_memory(site, p);
}
