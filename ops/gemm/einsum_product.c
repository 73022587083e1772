/* einsum_product.c — Einsum nodes that are a batch of matrix products, on the tile kernels.
 *
 * Labels fall into four sets: batch (in both operands and the output), M (in A and the output), N (in B and
 * the output), K (in both operands, summed). Rows of A and of the output may be anywhere, as long as the
 * elements of K, respectively N, are dense; else the operands, or the result, go through scratch memory. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/data/data.h"
#include "ops/gemm/einsum.h"
#include "ops/gemm/gemm_driver.h"
#include "ops/gemm/matmul.h"

#include <math.h>
#include <string.h>

enum {
    WORK_MIN = 256,
    COLUMNS_MIN = 4
}; /* multiplications and columns below which plain loops are as good */

typedef enum label_set { BATCH, M, N, K, SETS } label_set;

typedef struct labels {
    uint8_t at[LNT_EINSUM_LABELS];
    unsigned n;
    int64_t count; /* product of the extents */
} labels;

typedef int64_t steps[LNT_EINSUM_LABELS];

/* A node sorted out: operand 0 or 1 of the node is A. */
typedef struct sorted {
    labels set[SETS];
    unsigned a, b;
    steps step[3]; /* of A, B and the output */
} sorted;

typedef struct product_params {
    unsigned a, b; /* node inputs */
    bool copies_a, copies_b, copies_out;
    lnt_copy copy_a, copy_b, copy_out;
    size_t scratch_a, scratch_b, scratch_packed, scratch_out, scratch_gather; /* bytes into scratch memory */
    lnt_packed packed;
    const int64_t *a_product, *a_row, *out_product, *out_row; /* floats to each matrix and row */
    const size_t *b_offset;
    lnt_gemm_plan plan;
} product_params;

static bool sort_labels(const lnt_equation *e, sorted *s)
{
    for (unsigned i = 0; i < SETS; i++)
        s->set[i] = (labels){.count = 1};
    for (unsigned i = 0; i < e->n; i++) {
        const bool a = s->step[0][i] != 0, b = s->step[1][i] != 0, out = i < e->n_out;
        if (e->extent[i] == 1)
            continue;
        if (e->extent[i] == 0 || (!out && !(a && b)))
            return false;
        labels *set = &s->set[!out ? K : a && b ? BATCH : a ? M : N];
        set->at[set->n++] = (uint8_t)i;
        set->count = lnt_dim_mul(set->count, e->extent[i]);
    }
    return true;
}

/* Whether the sets, one after the other, are contiguous in an operand with these strides. */
static bool is_dense(const lnt_equation *e, const steps step, const labels *const *sets, unsigned n)
{
    int64_t want = 1;
    while (n-- > 0)
        for (unsigned i = sets[n]->n; i-- > 0;) {
            const unsigned label = sets[n]->at[i];
            if (step[label] != want)
                return false;
            want *= e->extent[label];
        }
    return true;
}

/* Puts K's labels in the order in which A has them. */
static void order_inner(sorted *s)
{
    labels *k = &s->set[K];
    for (unsigned i = 1; i < k->n; i++)
        for (unsigned j = i; j > 0 && s->step[0][k->at[j - 1]] < s->step[0][k->at[j]]; j--) {
            const uint8_t label = k->at[j];
            k->at[j] = k->at[j - 1];
            k->at[j - 1] = label;
        }
}

static void swap_operands(sorted *s)
{
    const labels set = s->set[M];
    steps step;
    memcpy(step, s->step[0], sizeof step);
    memcpy(s->step[0], s->step[1], sizeof step);
    memcpy(s->step[1], step, sizeof step);
    s->set[M] = s->set[N];
    s->set[N] = set;
    s->a = !s->a;
    s->b = !s->b;
}

/* Offsets of all positions of a set, last label fastest. */
static lnt_status list_offsets(lnt_site *site, const lnt_equation *e, const labels *set, const steps step,
                               const int64_t **out)
{
    int64_t *offset = lnt_bump_alloc(site->memory, (size_t)set->count * sizeof *offset, site->err);
    if (!offset)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < set->count; i++) {
        int64_t rest = i;
        for (unsigned l = set->n; l-- > 0; rest /= e->extent[set->at[l]])
            offset[i] += rest % e->extent[set->at[l]] * step[set->at[l]];
    }
    *out = offset;
    return LNT_OK;
}

/* Steps of a dense tensor made of the sets one after the other. */
static void dense_steps(const lnt_equation *e, const labels *const *sets, unsigned n, steps out)
{
    int64_t step = 1;
    memset(out, 0, sizeof(steps));
    while (n-- > 0)
        for (unsigned i = sets[n]->n; i-- > 0; step *= e->extent[sets[n]->at[i]])
            out[sets[n]->at[i]] = step;
}

/* The copy between two tensors that have the labels of the sets; false if it has too many axes. */
static bool plan_copy(const lnt_equation *e, const labels *const *sets, unsigned n, const steps dst,
                      const steps src, lnt_copy *c)
{
    const int64_t size = sizeof(float);
    unsigned axes = 0;
    lnt_copy_begin(c, sizeof(float));
    for (unsigned s = 0; s < n; s++)
        for (unsigned i = 0; i < sets[s]->n; i++) {
            const unsigned label = sets[s]->at[i];
            if (axes++ == LNT_COPY_AXES)
                return false;
            lnt_copy_axis(c, e->extent[label], dst[label] * size, src[label] * size);
        }
    lnt_copy_settle(c);
    return true;
}

/* ---- run ---- */

static void rows_of_product(const lnt_gemm_call *call, int64_t product, int64_t row, unsigned n,
                            size_t k_begin, size_t k_end, float *gather, lnt_row_set *set)
{
    (void)k_begin, (void)k_end, (void)gather;
    const product_params *p = call->plan->rows_arg;
    set->gathered = false;
    for (unsigned i = 0; i < n; i++) {
        set->a[i] = call->a + p->a_product[product] + p->a_row[row + i];
        set->out[i] = p->out_product[product] + p->out_row[row + i];
    }
}

static lnt_status run_product(lnt_kernel *k, const lnt_step *s)
{
    const product_params *p = s->params;
    LNT_ASSERT(p->scratch_packed < s->scratch_bytes);
    char *scratch = lnt_scratch(k, s);
    float *packed = (float *)(void *)(scratch + p->scratch_packed);
    const void *a = lnt_in(k, s, p->a), *b = lnt_in(k, s, p->b);
    if (p->copies_a) {
        LNT_TRY(lnt_copy_run(k, &p->copy_a, scratch + p->scratch_a, a));
        a = scratch + p->scratch_a;
    }
    if (p->copies_b) {
        LNT_TRY(lnt_copy_run(k, &p->copy_b, scratch + p->scratch_b, b));
        b = scratch + p->scratch_b;
    }
    LNT_TRY(lnt_gemm_pack(k, &p->packed, LNT_FLOAT, b, packed));
    void *out = lnt_out(k, s, 0), *c = p->copies_out ? scratch + p->scratch_out : out;
    lnt_gemm_call call = {.plan = &p->plan,
                          .step = s,
                          .a = a,
                          .b = packed,
                          .b_offset = p->b_offset,
                          .c = c,
                          .gather = scratch + p->scratch_gather};
    LNT_TRY(lnt_gemm_run(k, &call));
    return p->copies_out ? lnt_copy_run(k, &p->copy_out, out, c) : LNT_OK;
}

/* ---- bind ---- */

static bool plan_operands(const lnt_equation *e, const sorted *s, product_params *p, size_t *bytes)
{
    const labels *set = s->set;
    const labels *const a[] = {&set[BATCH], &set[M], &set[K]}, *const b[] = {&set[BATCH], &set[K], &set[N]};
    const labels *const b_turned[] = {&set[BATCH], &set[N], &set[K]}, *const out[] = {&set[BATCH], &set[M],
                                                                                      &set[N]};
    const int64_t inner = lnt_dim_mul(set[BATCH].count, set[K].count);
    const bool transposed = is_dense(e, s->step[1], b_turned, 3);
    steps dense;
    p->copies_a = !is_dense(e, s->step[0], a + 2, 1);
    p->copies_b = !transposed && !is_dense(e, s->step[1], b, 3);
    p->copies_out = !is_dense(e, s->step[2], out + 2, 1);
    dense_steps(e, a, 3, dense);
    if (p->copies_a && (!plan_copy(e, a, 3, dense, s->step[0], &p->copy_a) ||
                        !lnt_reserve(bytes, lnt_dim_mul(inner, set[M].count), sizeof(float), &p->scratch_a)))
        return false;
    dense_steps(e, b, 3, dense);
    if (p->copies_b && (!plan_copy(e, b, 3, dense, s->step[1], &p->copy_b) ||
                        !lnt_reserve(bytes, lnt_dim_mul(inner, set[N].count), sizeof(float), &p->scratch_b)))
        return false;
    dense_steps(e, out, 3, dense);
    if (p->copies_out &&
        (!plan_copy(e, out, 3, s->step[2], dense, &p->copy_out) ||
         !lnt_reserve(bytes, lnt_dim_mul(set[BATCH].count, lnt_dim_mul(set[M].count, set[N].count)),
                      sizeof(float), &p->scratch_out)))
        return false;
    p->packed = lnt_packed_panels(transposed ? LNT_SOURCE_NK : LNT_SOURCE_KN, (uint32_t)set[BATCH].count,
                                  (uint32_t)set[K].count, (uint32_t)set[N].count);
    size_t packed;
    return lnt_packed_bytes(&p->packed, &packed) && packed <= PTRDIFF_MAX &&
           lnt_reserve(bytes, (int64_t)packed, 1, &p->scratch_packed);
}

static lnt_status plan_rows(lnt_site *site, const lnt_equation *e, const sorted *s, product_params *p)
{
    const labels *set = s->set;
    const labels *const a[] = {&set[BATCH], &set[M], &set[K]}, *const out[] = {&set[BATCH], &set[M], &set[N]};
    steps step_a, step_out;
    memcpy(step_a, s->step[0], sizeof step_a);
    memcpy(step_out, s->step[2], sizeof step_out);
    if (p->copies_a)
        dense_steps(e, a, 3, step_a);
    if (p->copies_out)
        dense_steps(e, out, 3, step_out);
    LNT_TRY(list_offsets(site, e, &set[BATCH], step_a, &p->a_product));
    LNT_TRY(list_offsets(site, e, &set[M], step_a, &p->a_row));
    LNT_TRY(list_offsets(site, e, &set[BATCH], step_out, &p->out_product));
    LNT_TRY(list_offsets(site, e, &set[M], step_out, &p->out_row));
    size_t *b_offset = lnt_bump_alloc(site->memory, (size_t)set[BATCH].count * sizeof *b_offset, site->err);
    if (!b_offset)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < set[BATCH].count; i++)
        b_offset[i] = (size_t)(i * set[K].count) * lnt_round_up((size_t)set[N].count, LNT_PANEL);
    p->b_offset = b_offset;
    return LNT_OK;
}

static void plan_gemm(const lnt_site *site, const labels *set, const product_params *p, lnt_gemm_plan *plan)
{
    static const ptrdiff_t no_offset[1] = {0};
    *plan = (lnt_gemm_plan){.kernels = site->kernels->gemm,
                            .rows_of = rows_of_product,
                            .rows_arg = p,
                            .products = set[BATCH].count,
                            .rows = set[M].count,
                            .columns = (size_t)set[N].count,
                            .taps = 1,
                            .depth = (size_t)set[K].count,
                            .tap_offset = no_offset,
                            .b_row = LNT_PANEL,
                            .b_panel = (size_t)set[K].count * LNT_PANEL,
                            .scale = 1,
                            .low = -INFINITY,
                            .high = INFINITY};
    lnt_gemm_plan_blocks(plan);
}

/* What the labels are, the operands as they come. False if the node is no product. */
static bool begin_node(const lnt_site *site, const lnt_equation *e, sorted *s)
{
    int64_t strides[LNT_MAX_RANK] = {0};
    s->a = 0;
    s->b = 1;
    for (unsigned i = 0; i < 2; i++)
        lnt_einsum_steps(e, site->in[i], i, s->step[i]);
    lnt_operand_strides(site->out[0], strides);
    memset(s->step[2], 0, sizeof s->step[2]);
    memcpy(s->step[2], strides, e->n_out * sizeof *strides);
    return sort_labels(e, s);
}

/* Is each product one row, which becomes A, times a matrix, and all of them are dense? */
static bool is_row_products(const lnt_equation *e, sorted *s, lnt_matrices *p)
{
    const labels *set = s->set;
    if (set[N].count == 1)
        swap_operands(s);
    order_inner(s);
    const labels *const a[] = {&set[BATCH], &set[K]}, *const out[] = {&set[BATCH], &set[N]};
    const labels *const b[] = {&set[BATCH], &set[K], &set[N]}, *const turned[] = {&set[BATCH], &set[N],
                                                                                  &set[K]};
    *p = (lnt_matrices){
        .M = 1, .K = set[K].count, .N = set[N].count, .trans_b = !is_dense(e, s->step[1], b, 3), .alpha = 1};
    return set[M].count == 1 && p->N > 1 && is_dense(e, s->step[0], a, 2) &&
           is_dense(e, s->step[2], out, 2) && (!p->trans_b || is_dense(e, s->step[1], turned, 3));
}

/* A and B so that, if possible, the rows of the output are dense. False if the node is no product of a few rows. */
static bool sort_node(const lnt_equation *e, sorted *s)
{
    const labels *const rows = &s->set[N], *const columns = &s->set[M];
    if (!is_dense(e, s->step[2], &rows, 1) && is_dense(e, s->step[2], &columns, 1))
        swap_operands(s);
    order_inner(s);
    const bool along = s->set[M].count >= LNT_NARROW_ROWS && s->set[K].count >= LNT_PANEL; /* rows of K fill vectors */
    const int64_t n = s->set[N].count, work = lnt_dim_mul(lnt_dim_mul(s->set[M].count, n), s->set[K].count);
    return (n >= COLUMNS_MIN || along) && n <= UINT32_MAX && s->set[K].count <= UINT32_MAX &&
           s->set[BATCH].count <= UINT32_MAX && work >= WORK_MIN;
}

lnt_status lnt_einsum_bind_product(lnt_site *site, const lnt_equation *e, bool *done)
{
    sorted s;
    size_t bytes = 0;
    *done = false;
    if (e->n_operands != 2 || site->in[0]->dtype != LNT_FLOAT || site->in[1]->dtype != LNT_FLOAT ||
        !begin_node(site, e, &s))
        return LNT_OK;
    sorted rows = s;
    lnt_matrices extents;
    *done = LNT_HAS_MATRICES && is_row_products(e, &rows, &extents);
    if (*done)
        return lnt_bind_row_products(site, rows.a, &extents, s.set[BATCH].count);
    if (!sort_node(e, &s))
        return LNT_OK;
    product_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->a = s.a;
    p->b = s.b;
    if (!plan_operands(e, &s, p, &bytes))
        return LNT_OK;
    LNT_TRY(plan_rows(site, e, &s, p));
    plan_gemm(site, s.set, p, &p->plan);
    p->scratch_gather = bytes;
    lnt_bind_scratch(site, bytes + p->plan.gather_bytes * site->threads);
    site->step->run = run_product;
    *done = true;
    return LNT_OK;
}
