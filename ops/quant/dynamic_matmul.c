/* dynamic_matmul.c — DynamicMatMul: float rows times int8 weights, which the quantizer makes of MatMul and Gemm.
 *
 *     Y = A * (B[k, n] * scale[n]) + bias        B int8, [K, N], or [N, K] with transB
 *
 * Each row of A is quantized by itself to uint8 over its own range, zero included. A row that is not finite
 * gives NaN. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/gemm/gemm_driver.h"
#include "ops/gemm/gemm_store.h"
#include "ops/quant/qgemm_driver.h"
#include "ops/quant/qparams.h"
#include "ops/product.h"

#include <string.h>

enum { IN_A, IN_B, IN_SCALE, IN_BIAS };

typedef struct product {
    lnt_qgemm_plan plan;
    lnt_store store;
    lnt_packed record;
    bool pack;
    int64_t K;
    size_t qparams_at, packed_at, rows_at; /* scratch */
} product;

typedef struct product_job {
    const product *p;
    const float *a;
    uint8_t *rows;
    lnt_qparams *qparams;
} product_job;

lnt_status lnt_shape_dynamic_matmul(lnt_site *site)
{
    const lnt_operand *a = site->in[IN_A], *b = site->in[IN_B];
    const bool transposed = lnt_attr_i(site->node, "transB", 0) != 0;
    int64_t dims[LNT_MAX_RANK];
    LNT_REQUIRE(a->rank >= 1 && b->rank == 2, site->err, LNT_E_SHAPE,
                "A of rank %u and B of rank %u are not possible", a->rank, b->rank);
    const int64_t K = a->dims[a->rank - 1], rows = b->dims[transposed ? 1 : 0];
    LNT_REQUIRE(K < 0 || rows < 0 || K == rows, site->err, LNT_E_SHAPE, "A has %lld columns, B %lld rows",
                (long long)K, (long long)rows);
    memcpy(dims, a->dims, sizeof dims);
    dims[a->rank - 1] = b->dims[transposed ? 0 : 1];
    lnt_set_dims(site, 0, a->rank, dims);
    return LNT_OK;
}

static lnt_status quantize_rows(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const product_job *j = arg;
    const product *p = j->p;
    const int64_t K = p->K, row_bytes = p->plan.row_bytes;
    (void)k, (void)thread;
    for (int64_t m = begin; m < end; m++)
        j->qparams[m] =
            lnt_quantize_row(p->plan.row, p->plan.int8, j->a + m * K, K, j->rows + m * row_bytes, row_bytes);
    return LNT_OK;
}

static void rows_of(const lnt_qgemm_call *call, int64_t index, lnt_qrow_set *set)
{
    const product_job *j = call->arg;
    const lnt_qgemm_plan *p = call->plan;
    (void)index;
    for (unsigned i = 0; i < set->n; i++) {
        const int64_t m = set->first + i;
        set->a[i] = j->rows + m * p->row_bytes;
        set->out[i] = m * p->columns;
        set->scale[i] = j->qparams[m].scale;
        set->zero[i] = j->qparams[m].zero_point;
    }
}

static lnt_status run_product(lnt_kernel *k, const lnt_step *s)
{
    const product *p = s->params;
    LNT_ASSERT(p->rows_at < s->scratch_bytes && p->qparams_at < s->scratch_bytes);
    char *scratch = lnt_scratch(k, s);
    product_job job = {.p = p,
                       .a = lnt_in(k, s, IN_A),
                       .rows = (uint8_t *)(scratch + p->rows_at),
                       .qparams = (lnt_qparams *)(void *)(scratch + p->qparams_at)};
    if (p->pack)
        LNT_TRY(lnt_gemm_pack(k, &p->record, LNT_INT8, lnt_in(k, s, IN_B), scratch + p->packed_at));
    LNT_TRY(lnt_parallel(k, p->plan.rows, lnt_quantize_grain(p->K), quantize_rows, &job));
    const lnt_qgemm_call call = {
        .plan = &p->plan,
        .step = s,
        .b = p->pack ? (int8_t *)scratch + p->packed_at : lnt_in(k, s, IN_B),
        .scales = lnt_in(k, s, IN_SCALE),
        .bias = p->store.bias >= 0 ? lnt_in(k, s, (unsigned)p->store.bias) : NULL,
        .c = lnt_out(k, s, 0),
        .residual = p->store.residual >= 0 ? lnt_in(k, s, (unsigned)p->store.residual) : NULL,
        .arg = &job};
    return lnt_qgemm_run(k, &call);
}

static lnt_status check_operands(lnt_site *site)
{
    const lnt_operand *a = site->in[IN_A], *b = site->in[IN_B], *y = site->out[0];
    const lnt_operand *scale = site->in[IN_SCALE], *bias = lnt_own_input(site, IN_BIAS);
    const int64_t N = y->dims[y->rank - 1];
    if (a->dtype != LNT_FLOAT || b->dtype != LNT_INT8)
        return lnt_bind_unsupported_type(site, a->dtype != LNT_FLOAT ? a->dtype : b->dtype);
    LNT_REQUIRE(scale->dtype == LNT_FLOAT && lnt_operand_count(scale) == N &&
                    (!bias || (bias->dtype == LNT_FLOAT && lnt_operand_count(bias) == N)),
                site->err, LNT_E_SHAPE, "scale and bias must hold %lld floats", (long long)N);
    return LNT_OK;
}

lnt_status lnt_bind_dynamic_matmul(lnt_site *site)
{
    product *p = lnt_bind_params(site, sizeof *p);
    const lnt_operand *a = site->in[IN_A], *b = site->in[IN_B], *y = site->out[0];
    const bool transposed = lnt_attr_i(site->node, "transB", 0) != 0;
    const int64_t N = y->dims[y->rank - 1];
    size_t packed = 0;
    if (!p)
        return LNT_E_MEMORY;
    LNT_TRY(check_operands(site));
    p->K = a->dims[a->rank - 1];
    p->record = lnt_packed_panels(transposed ? LNT_SOURCE_NK : LNT_SOURCE_KN, 1, (uint32_t)p->K, (uint32_t)N);
    p->record.layout = LNT_LAYOUT_PANEL_I8;
    LNT_REQUIRE(p->K > 0 && p->K <= INT32_MAX && N > 0 && N <= INT32_MAX &&
                    lnt_packed_bytes(&p->record, &packed),
                site->err, LNT_E_LIMIT, "B of %lld x %lld is not possible", (long long)p->K, (long long)N);
    p->pack = !b->packed;
    LNT_TRY(lnt_bind_store(site, y->rank - 1u, lnt_own_input(site, IN_BIAS) ? IN_BIAS : -1, true, &p->store));
    lnt_qgemm_plan *plan = &p->plan;
    plan->row = site->kernels->row;
    plan->int8 = site->kernels->int8;
    plan->kernels = site->kernels->qgemm;
    plan->rows_of = rows_of;
    plan->store = lnt_qstore_floats;
    lnt_qgemm_plan_weights(plan, &p->record, b);
    plan->rows = lnt_operand_count(a) / p->K;
    plan->low = p->store.low;
    plan->high = p->store.high;
    plan->epilogue = p->store.program;
    plan->ld = N;
    p->packed_at = lnt_round_up((size_t)plan->rows * sizeof(lnt_qparams), LNT_ALIGN);
    p->rows_at = p->packed_at + (p->pack ? packed : 0);
    lnt_bind_scratch(site, p->rows_at + (size_t)(plan->rows * plan->row_bytes));
    site->step->run = run_product;
    return LNT_OK;
}

static bool pack_b(const lnt_node *node, const lnt_operand *b, lnt_packed *record)
{
    return b->rank == 2 && lnt_pack_matrix(node, b, record);
}

const lnt_product lnt_product_dynamic_matmul = {1u << 1, NULL, pack_b, lnt_matrix_multiply_adds};
