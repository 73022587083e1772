/* matmul.c — MatMul, FusedMatMul (com.microsoft) and Gemm.
 *
 * All three are Y = alpha * op(A) * op(B) + beta * C over a batch. float goes to the tile kernels: a constant
 * B is packed already; any other is read in place for few rows, packed a few panels at a time for some, and whole, in
 * scratch memory, for many. So do halves at a level that computes with them, where B is
 * packed as such. Halves that are not constant are multiplied as floats; double and integers are in
 * matmul_number.c. */
#include "base/checked.h"
#include "base/half.h"
#include "base/lnt_assert.h"
#include "ops/copy.h"
#include "ops/data/data.h"
#include "ops/element.h"
#include "ops/gemm/gemm_store.h"
#include "ops/gemm/half_step.h"
#include "ops/gemm/matmul.h"
#include "ops/product.h"
#include "ops/widen.h"

#include <string.h>

/* ---- extents ---- */

static bool flag(const lnt_node *node, const char *name)
{
    return lnt_attr_i(node, name, 0) != 0;
}

static lnt_matrices matrices_of(const lnt_node *node, const lnt_operand *a, const lnt_operand *b)
{
    lnt_matrices p = {.trans_a = flag(node, "transA") && a->rank > 1,
                  .trans_b = flag(node, "transB") && b->rank > 1,
                  .vector_a = a->rank == 1,
                  .vector_b = b->rank == 1,
                  .alpha = lnt_attr_f(node, "alpha", 1.0f),
                  .beta = lnt_attr_f(node, "beta", 1.0f)};
    const unsigned ra = a->rank, rb = b->rank;
    p.M = p.vector_a ? 1 : a->dims[p.trans_a ? ra - 1 : ra - 2];
    p.K = a->dims[p.vector_a || !p.trans_a ? ra - 1 : ra - 2];
    p.N = p.vector_b ? 1 : b->dims[p.trans_b ? rb - 2 : rb - 1];
    return p;
}

/* Extent of B that must equal K. */
static int64_t inner_of_b(const lnt_matrices *p, const lnt_operand *b)
{
    return p->vector_b ? b->dims[0] : b->dims[p->trans_b ? b->rank - 1 : b->rank - 2];
}

/* The axes before the last two. */
static lnt_operand batch_of(const lnt_operand *o)
{
    lnt_operand batch = *o;
    batch.rank = (uint8_t)(o->rank > 2 ? o->rank - 2 : 0);
    return batch;
}

static lnt_status check_inner(const lnt_site *site, const lnt_matrices *p, const lnt_operand *b)
{
    const int64_t inner = inner_of_b(p, b);
    if (p->K >= 0 && inner >= 0 && p->K != inner)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "A has %lld columns, B has %lld rows", (long long)p->K,
                             (long long)inner);
    return LNT_OK;
}

lnt_status lnt_shape_matmul(lnt_site *site)
{
    const lnt_operand *a = site->in[0], *b = site->in[1];
    if (a->rank == 0 || b->rank == 0)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "operands must not be scalars");
    const lnt_matrices p = matrices_of(site->node, a, b);
    LNT_TRY(check_inner(site, &p, b));
    const lnt_operand batch_a = batch_of(a), batch_b = batch_of(b);
    int64_t dims[LNT_MAX_RANK];
    unsigned rank = 0;
    LNT_TRY(lnt_broadcast_dims(site, &rank, dims, &batch_a));
    LNT_TRY(lnt_broadcast_dims(site, &rank, dims, &batch_b));
    if (!p.vector_a)
        dims[rank++] = p.M;
    if (!p.vector_b)
        dims[rank++] = p.N;
    lnt_set_dims(site, 0, rank, dims);
    return LNT_OK;
}

lnt_status lnt_shape_gemm(lnt_site *site)
{
    const lnt_operand *a = site->in[0], *b = site->in[1], *c = lnt_own_input(site, 2);
    if (a->rank != 2 || b->rank != 2)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "A and B must be matrices");
    const lnt_matrices p = matrices_of(site->node, a, b);
    LNT_TRY(check_inner(site, &p, b));
    const int64_t dims[2] = {p.M, p.N};
    if (c) {
        unsigned rank = 2;
        int64_t with_c[LNT_MAX_RANK] = {p.M, p.N};
        LNT_TRY(lnt_broadcast_dims(site, &rank, with_c, c));
        if (rank != 2 || (p.M >= 0 && with_c[0] >= 0 && with_c[0] != p.M) ||
            (p.N >= 0 && with_c[1] >= 0 && with_c[1] != p.N))
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "C does not broadcast to the product");
    }
    lnt_set_dims(site, 0, 2, dims);
    return LNT_OK;
}

/* ---- what a bound product knows ---- */

/* Offsets of each batch entry's matrix in an operand, in matrices, broadcasting. */
static void batch_offsets(const lnt_operand *o, unsigned rank, const int64_t *dims, int64_t count,
                          size_t *out)
{
    const unsigned own = o->rank > 2 ? o->rank - 2u : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, step = 1;
        size_t at = 0;
        for (unsigned d = rank; d-- > 0;) {
            const int64_t index = rest % dims[d];
            rest /= dims[d];
            if (d + own < rank)
                continue;
            const int64_t extent = o->dims[d + own - rank];
            at += extent == 1 ? 0 : (size_t)(index * step);
            step *= extent;
        }
        out[i] = at;
    }
}

static lnt_status bind_batch(lnt_site *site, lnt_matmul *m)
{
    const lnt_operand *a = site->in[0], *b = site->in[1];
    const lnt_operand batch_a = batch_of(a), batch_b = batch_of(b);
    int64_t dims[LNT_MAX_RANK], count, in_b;
    unsigned rank = 0;
    LNT_TRY(lnt_broadcast_dims(site, &rank, dims, &batch_a));
    LNT_TRY(lnt_broadcast_dims(site, &rank, dims, &batch_b));
    if (!lnt_count(dims, rank, &count) || !lnt_count(batch_b.dims, batch_b.rank, &in_b))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "too many matrices");
    const bool merge = in_b == 1 && !m->p.trans_a && count == lnt_operand_count(&batch_a);
    if (merge) {
        m->p.M *= count;
        count = 1;
    }
    m->batch = count;
    m->matrices_b = in_b;
    size_t *offsets = lnt_bump_alloc(site->memory, (2 * (size_t)count + 1) * sizeof *offsets, site->err);
    if (!offsets)
        return LNT_E_MEMORY;
    if (!merge) {
        batch_offsets(a, rank, dims, count, offsets);
        batch_offsets(b, rank, dims, count, offsets + count);
    }
    for (int64_t i = 0; i < count; i++)
        offsets[i] *= (size_t)(m->p.M * m->p.K);
    m->offset_a = offsets;
    m->offset_b = offsets + count; /* in matrices still */
    return LNT_OK;
}

void lnt_matmul_scale_offsets(const lnt_matmul *m, size_t elements)
{
    for (int64_t i = 0; i < m->batch; i++)
        m->offset_b[i] *= elements;
}

static void find_c(const lnt_site *site, lnt_matmul *m)
{
    const lnt_operand *c = lnt_own_input(site, 2);
    m->has_c = c && m->p.beta != 0.0f;
    if (!m->has_c)
        return;
    const int64_t columns = c->rank ? c->dims[c->rank - 1] : 1, rows = c->rank > 1 ? c->dims[0] : 1;
    m->stride_c[0] = rows == 1 ? 0 : columns;
    m->stride_c[1] = columns == 1 ? 0 : 1;
}

/* ---- float, and halves handed around as floats ---- */

enum {
    DIRECT_ROWS = 12,        /* fewer rows than that do not pay for packing B */
    DIRECT_COLUMNS = 64,     /* so few are close together anyway */
    DIRECT_BYTES = 24 * 1024 /* of a B that stays in the first-level cache unpacked */
};

/* May tiles read B in place? Of few rows also where columns are left behind the last whole panel, which are a tile of
 * their own. Where the bias is one of rows, columns are pixels, and how many there are may change no sum. */
static bool reads_in_place(const lnt_matmul *m, bool whole)
{
    if (m->row_bias)
        return m->p.M <= DIRECT_ROWS;
    return m->p.M <= DIRECT_ROWS ? m->p.N >= LNT_PANEL
                                 : whole && (m->p.N <= DIRECT_COLUMNS ||
                                             m->p.K <= DIRECT_BYTES / (int64_t)sizeof(float) / m->p.N);
}

/* Or are its panels packed as they are needed, for each block of rows? All planes together are often more than a cache
 * holds. */
static bool packs_panels(const lnt_matmul *m)
{
    const bool turned = m->p.trans_b && m->p.M < LNT_NARROW_ROWS;
    return m->row_bias || ((m->p.N > LNT_NARROW_COLUMNS || turned) && m->p.M <= LNT_BLOCK_ROWS);
}

/* Or are its few columns laid out one by one? */
static bool is_narrow(const lnt_site *site, const lnt_matmul *m)
{
    return !m->row_bias && m->p.M >= LNT_NARROW_ROWS &&
           lnt_is_narrow(site->kernels->gemm, m->p.M, m->p.N, 1, m->p.K);
}

/* Rows that are gathered. */
static void rows_of_matrix(const lnt_gemm_call *call, int64_t product, int64_t row, unsigned n,
                           size_t k_begin, size_t k_end, float *gather, lnt_row_set *set)
{
    const lnt_gemm_plan *p = call->plan;
    const size_t element = p->kernels->element, length = k_end - k_begin;
    const size_t first = p->a_offset[product] + (size_t)(row * p->row_step) + k_begin;
    set->gathered = true;
    for (unsigned i = 0; i < n; i++) {
        float *to = lnt_moved(gather, (int64_t)(i * length), element);
        memcpy(to, lnt_moved(call->a, (int64_t)first + i * p->row_step, element), length * element);
        set->a[i] = to;
        set->out[i] = (product * p->rows + row + i) * (int64_t)p->columns;
    }
}

/* Of C as products take it. */
static int64_t columns_of_c(const lnt_matmul *m)
{
    return m->column_c ? 1 : m->p.N;
}

/* beta * C, broadcast to whole rows: [1 or M][columns_of_c], a residual's of the product's elements. */
static void expand_c(const lnt_kernel *k, const lnt_matmul *m, const float *c, float *dst)
{
    const int64_t rows = m->stride_c[0] ? m->p.M : 1, N = columns_of_c(m);
    if (m->stride_c[0] && m->plan.kernels->element != sizeof *dst) {
        uint16_t *halves = (uint16_t *)(void *)dst;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < N; j++)
                halves[i * N + j] = lnt_float_to_f16(m->p.beta * c[i * m->stride_c[0] + j * m->stride_c[1]]);
        return;
    }
    if (!m->stride_c[1]) {
        lnt_repeat_each(dst, c, m->stride_c[0] * (int64_t)sizeof *c, rows, N, sizeof *c);
        c = dst;
    }
    if (m->p.beta != 1.0f)
        k->kernels->row->shift_scale(c, dst, rows * N, 0, m->p.beta, -0.0f);
}

lnt_status lnt_matmul_run(lnt_kernel *k, const lnt_step *s)
{
    const lnt_matmul *m = s->params;
    LNT_ASSERT(!m->pack_b || m->scratch_b <= s->scratch_bytes);
    LNT_ASSERT(!m->transpose_a || m->scratch_a <= s->scratch_bytes);
    char *scratch = lnt_scratch(k, s);
    const float *a = lnt_in(k, s, m->a), *b = lnt_in(k, s, m->b), *c = m->has_c ? lnt_in(k, s, 2) : NULL;
    if (m->pack_b) {
        float *packed = (float *)(void *)(scratch + m->scratch_b);
        LNT_TRY(lnt_gemm_pack(k, &m->packed, LNT_FLOAT, b, packed));
        b = packed;
    }
    if (m->transpose_a) {
        float *rows = (float *)(void *)(scratch + m->scratch_a);
        LNT_TRY(lnt_copy_run(k, &m->transpose, rows, a));
        a = rows;
    }
    if (m->expand_c) {
        float *rows = (float *)(void *)(scratch + m->scratch_c);
        expand_c(k, m, c, rows);
        c = rows;
    }
    lnt_gemm_call call = {.plan = &m->plan,
                          .step = s,
                          .a = a,
                          .b = b,
                          .b_offset = m->offset_b,
                          .c = lnt_out(k, s, 0),
                          .ld = m->p.N,
                          .bias_product = (size_t)(m->matrices_a * m->p.M),
                          .gather = scratch + m->scratch_gather};
    if (m->has_c && (m->column_c || !m->stride_c[0]))
        call.bias = c;
    else if (m->has_c)
        call.residual = c;
    if (m->store.bias >= 0)
        call.bias = lnt_in(k, s, (unsigned)m->store.bias);
    if (m->store.residual >= 0)
        call.residual = lnt_in(k, s, (unsigned)m->store.residual);
    return lnt_gemm_run(k, &call);
}

/* ---- a row or a few, times a B that is not packed ---- */

enum {
    FEW_ROWS = 3,            /* for which B is read once, as it lies in memory */
    STRIP_MIN = 512,         /* columns worth an item, */
    STRIP_MAX = 4096,        /* and of sums that stay in the first-level cache */
    OUTER_MIN = 256,         /* columns worth going row by row where each sum is one product */
    NEAR_FLOATS = 64 * 1024, /* of a B that is read from a cache, in any order */
    STREAMS = 16,            /* rows of a larger one, which are fetched ahead side by side; */
    STREAMS_ALIKE = 8,       /* fewer, if one set of the first-level cache has to hold them: */
    ALIKE = 512              /* a multiple of so many floats apart */
};

typedef struct strips_job {
    const lnt_matmul *m;
    const float *a, *b, *addend; /* C of Gemm */
    float *c;
    int64_t strips; /* of a product */
} strips_job;

/* n columns from `first` on of a product's rows: sums of rows of B, or along them where it is transposed. */
static void sum_strip(const lnt_matmul *m, const float *a, const float *b, float *c, int64_t n)
{
    const int64_t M = m->p.M, K = m->p.K, N = m->p.N, streams = N % ALIKE == 0 ? STREAMS_ALIKE : STREAMS,
                  by = K * N <= NEAR_FLOATS ? K : streams;
    if (m->p.trans_b || N == 1) {
        const int64_t some = M == 1 ? n : 4; /* several rows take columns from the first-level cache */
        for (int64_t i = 0; i < n; i += some)
            for (int64_t row = 0; row < M; row++)
                m->row->dot_rows(b + i * K, K, a + row * K, K, c + row * N + i, lnt_least(some, n - i));
        return;
    }
    if (!LNT_TRIMMED && K == 1 && M == 1) {
        m->row->shift_scale(b, c, n, 0, *a, 0);
        return;
    }
    for (int64_t row = 0; row < M; row++)
        memset(c + row * N, 0, (size_t)n * sizeof *c);
    for (int64_t k = 0; k < K; k += by)
        for (int64_t row = 0; row < M; row++)
            m->row->add_scaled(c + row * N, b + k * N, N, a + row * K + k, lnt_least(by, K - k), n);
}

/* See lnt_matmul.outer. */
static inline int64_t outer_of(const lnt_matmul *m)
{
    return LNT_TRIMMED ? 1 : m->outer;
}

static void run_strip(const strips_job *j, int64_t product, int64_t first, int64_t n)
{
    const lnt_matmul *m = j->m;
    const lnt_matrices *p = &m->p;
    const int64_t outer = outer_of(m), entry = outer > 1 ? product / outer : product,
                  at = product - entry * outer;
    const int64_t a_first = (int64_t)m->offset_a[entry] + at, c_first = product * p->M * p->N + first,
                  b_first = (int64_t)m->offset_b[entry] + first * (p->trans_b ? p->K : 1);
    if (LNT_TYPED_TAKES_ONE(LNT_DOUBLE) && !LNT_TRIMMED && m->scale) {
        m->scale(&(lnt_typed_args){.out = (double *)(void *)j->c + c_first,
                                   .in = {(const double *)(const void *)j->b + b_first,
                                          (const double *)(const void *)j->a + a_first},
                                   .n = n,
                                   .one = true});
        return;
    }
    float *c = j->c + c_first;
    sum_strip(m, j->a + a_first, j->b + b_first, c, n);
    for (int64_t row = at; row < at + p->M; row++, c += p->N) {
        const float *addend = m->has_c ? j->addend + row * m->stride_c[0] + first * m->stride_c[1] : NULL;
        if (p->alpha != 1.0f)
            m->row->shift_scale(c, c, n, 0, p->alpha, 0);
        if (m->has_c && m->stride_c[1])
            m->row->add_scaled(c, addend, 0, &p->beta, 1, n);
        else if (m->has_c)
            m->row->shift_scale(c, c, n, 0, 1, p->beta * *addend);
    }
}

static lnt_status run_strips(lnt_kernel *k, void *arg, int64_t item, int64_t end, unsigned thread)
{
    const strips_job *j = arg;
    const int64_t N = j->m->p.N;
    (void)k, (void)thread;
    while (item < end) {
        const int64_t product = item / j->strips, first = item % j->strips;
        const int64_t strips = lnt_least(lnt_least(j->strips - first, end - item), STRIP_MAX / STRIP_MIN);
        run_strip(j, product, first * STRIP_MIN, lnt_least(strips * STRIP_MIN, N - first * STRIP_MIN));
        item += strips;
    }
    return LNT_OK;
}

static lnt_status run_few_rows(lnt_kernel *k, const lnt_step *s)
{
    const lnt_matmul *m = s->params;
    strips_job job = {.m = m,
                      .a = lnt_in(k, s, m->a),
                      .b = lnt_in(k, s, m->b),
                      .addend = m->has_c ? lnt_in(k, s, 2) : NULL,
                      .c = lnt_out(k, s, 0),
                      .strips = (m->p.N + STRIP_MIN - 1) / STRIP_MIN};
    const int64_t work = lnt_dim_mul(m->p.M * m->p.K, lnt_least(m->p.N, STRIP_MIN));
    return lnt_parallel(k, m->batch * outer_of(m) * job.strips, lnt_grain(work), run_strips, &job);
}

/* A times the only column of B are a row, that one, times A as it lies, transposed. */
static void swap_operands(lnt_matmul *m)
{
    size_t *offset = m->offset_a;
    m->offset_a = m->offset_b;
    m->offset_b = offset;
    m->a = 1;
    m->b = 0;
    m->p.N = m->p.M;
    m->p.M = 1;
    m->p.trans_b = !m->p.trans_a && (LNT_TRIMMED || m->p.K > 1);
    m->stride_c[1] = m->stride_c[0];
    m->stride_c[0] = 0;
}

lnt_status lnt_bind_row_products(lnt_site *site, unsigned row, const lnt_matrices *p, int64_t batch)
{
    lnt_matmul *m = lnt_bind_params(site, sizeof *m);
    size_t *offsets = m ? lnt_bump_alloc(site->memory, 2 * (size_t)batch * sizeof *offsets, site->err) : NULL;
    if (!offsets)
        return LNT_E_MEMORY;
    *m = (lnt_matmul){.p = *p, .a = row, .b = !row, .batch = batch, .row = site->kernels->row, .outer = 1};
    m->offset_a = offsets;
    m->offset_b = offsets + batch;
    for (int64_t i = 0; i < batch; i++) {
        m->offset_a[i] = (size_t)(i * p->K);
        m->offset_b[i] = (size_t)(i * p->K * p->N);
    }
    site->step->run = run_few_rows;
    return LNT_OK;
}

/* May rows be summed up without panels? */
static bool takes_strips(const lnt_site *site)
{
    return !site->in[1]->packed && !site->half && !site->node->program;
}

/* Are rows of so many elements long enough for vectors of them? */
static bool sums_along(const lnt_site *site, int64_t n)
{
    return 2 * n >= (int64_t)site->kernels->gemm->lanes;
}

/* Not where tiles read B in place from a cache, or its rows are too short to be summed along. */
static bool has_few_rows(const lnt_site *site, const lnt_matmul *m)
{
    const lnt_matrices *p = &m->p;
    const bool near = p->N % LNT_PANEL == 0 && lnt_dim_mul(p->K, p->N) <= NEAR_FLOATS;
    return p->M <= FEW_ROWS && (p->M == 1 || !p->trans_a) && (p->trans_b ? sums_along(site, p->K) : !near);
}

/* Where each element of long rows is one product, rows are products of their own; else false. */
static __attribute__((noinline)) bool split_rows(lnt_matmul *m)
{
    if (LNT_TRIMMED || m->p.K != 1 || m->p.N < OUTER_MIN || (m->has_c && m->stride_c[1]))
        return false;
    m->outer = m->p.M;
    m->p.M = 1;
    return true;
}

bool lnt_bind_outer_double(lnt_site *site, lnt_matmul *m)
{
    if (!LNT_TYPED_TAKES_ONE(LNT_DOUBLE) || site->in[0]->dtype != LNT_DOUBLE || m->has_c ||
        m->p.alpha != 1.0f || !split_rows(m))
        return false;
    m->scale = site->kernels->typed->loop[LNT_TYPED_Mul][LNT_DOUBLE];
    site->step->run = run_few_rows;
    return true;
}

/* Chooses where B is read from; *bytes grows by the scratch memory for it. */
static lnt_status bind_b(lnt_site *site, lnt_matmul *m, size_t *bytes)
{
    const lnt_operand *b = site->in[m->b];
    lnt_gemm_plan *plan = &m->plan;
    size_t packed_bytes;
    plan->b_form = lnt_b_form_of(b);
    plan->b_row = LNT_PANEL;
    plan->b_panel = (size_t)m->p.K * LNT_PANEL;
    const bool plain = !b->packed && !m->p.trans_b, whole = m->p.N % LNT_PANEL == 0;
    const bool parts = !LNT_TRIMMED && !site->half; /* may B be packed in parts? */
    const bool in_place = plain && reads_in_place(m, whole) && (whole || parts);
    plan->packs_rest = in_place && !whole;
    plan->packs = parts && !b->packed && !in_place && (packs_panels(m) || is_narrow(site, m));
    if (in_place || plan->packs) {
        plan->b_row = m->p.trans_b ? 1 : (size_t)m->p.N;
        plan->b_column = m->p.trans_b ? (size_t)m->p.K : 1;
        plan->b_panel = LNT_PANEL;
        lnt_matmul_scale_offsets(m, (size_t)(m->p.K * m->p.N));
        return LNT_OK;
    }
    lnt_matmul_scale_offsets(m, (size_t)m->p.K * lnt_round_up((size_t)m->p.N, LNT_PANEL));
    if (b->packed)
        return LNT_OK;
    if (m->p.K > UINT32_MAX || m->p.N > UINT32_MAX || m->matrices_b > UINT32_MAX)
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "matrix B is too large");
    m->packed = lnt_packed_panels(m->p.trans_b ? LNT_SOURCE_NK : LNT_SOURCE_KN, (uint32_t)m->matrices_b,
                                  (uint32_t)m->p.K, (uint32_t)m->p.N);
    if (!lnt_packed_bytes(&m->packed, &packed_bytes))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "matrix B is too large");
    m->pack_b = true;
    m->scratch_b = *bytes;
    *bytes += lnt_round_up(packed_bytes, 64);
    return LNT_OK;
}

/* Is C a column, of which a block lays down what its rows need? Fewer columns have a residual made of it sooner. */
static bool is_row_bias(const lnt_site *site, const lnt_matmul *m)
{
    return LNT_HAS_PLAIN_CONV && m->has_c && m->stride_c[0] && !m->stride_c[1] && !site->half &&
           m->p.N >= LNT_BIAS_COLUMNS;
}

/* Is C a bias or a residual as it is? */
static bool takes_c(const lnt_site *site, const lnt_matmul *m)
{
    const lnt_operand *c = lnt_own_input(site, 2);
    return m->p.beta == 1.0f && (m->column_c || (c->rank && c->dims[c->rank - 1] == m->p.N));
}

/* Else it is made one in scratch memory. */
static void bind_c(const lnt_site *site, lnt_matmul *m, size_t *bytes)
{
    m->column_c = is_row_bias(site, m);
    m->matrices_a = m->column_c;
    if (!m->has_c || takes_c(site, m))
        return;
    m->expand_c = true;
    m->scratch_c = *bytes;
    *bytes += lnt_round_up((size_t)(columns_of_c(m) * (m->stride_c[0] ? m->p.M : 1)) * sizeof(float), 64);
}

/* Is A, [K][M], turned in parts, as several blocks of rows need them? Not for so many columns that it would be again
 * and again, nor where rows are short. */
static bool turns_parts(const lnt_site *site, const lnt_matmul *m)
{
    enum { COLUMNS = 512, DEPTH = 2 * LNT_PANEL };
    return !LNT_TRIMMED && !site->half && m->p.trans_a && m->p.M > LNT_BLOCK_ROWS && m->p.K >= DEPTH &&
           m->p.N <= COLUMNS;
}

/* Or all matrices, to rows [M][K] in scratch memory? */
static void bind_turn(const lnt_site *site, lnt_matmul *m, size_t *bytes)
{
    const int64_t M = m->p.M, K = m->p.K, element = (int64_t)lnt_site_element(site),
                  count = lnt_operand_count(site->in[0]);
    m->transpose_a = m->p.trans_a && M > 1 && K > 1 && !turns_parts(site, m);
    if (!m->transpose_a)
        return;
    lnt_copy_begin(&m->transpose, (size_t)element);
    lnt_copy_axis(&m->transpose, count / (M * K), M * K * element, M * K * element);
    lnt_copy_axis(&m->transpose, M, K * element, element);
    lnt_copy_axis(&m->transpose, K, element, M * element);
    lnt_copy_settle(&m->transpose);
    m->scratch_a = *bytes;
    *bytes += lnt_round_up((size_t)(count * element), 64);
}

lnt_status lnt_matmul_begin(lnt_site *site, lnt_matmul **out)
{
    lnt_matmul *m = *out = lnt_bind_params(site, sizeof *m);
    if (!m)
        return LNT_E_MEMORY;
    m->p = matrices_of(site->node, site->in[0], site->in[1]);
    m->b = 1;
    if (!LNT_TRIMMED) { /* a column lies like a row */
        m->p.trans_a &= m->p.K != 1;
        m->p.trans_b &= m->p.K != 1;
        m->outer = 1;
    }
    LNT_TRY(bind_batch(site, m));
    find_c(site, m);
    return LNT_OK;
}

lnt_status lnt_matmul_plan(lnt_site *site, lnt_matmul *m, size_t bytes)
{
    static const ptrdiff_t no_offset[1] = {0};
    LNT_TRY(bind_b(site, m, &bytes));
    lnt_gemm_plan *plan = &m->plan;
    plan->kernels = site->half ? site->kernels->half->gemm : site->kernels->gemm;
    plan->rows_of = rows_of_matrix;
    plan->a_offset = m->offset_a;
    plan->products = m->batch;
    plan->rows = m->p.M;
    plan->columns = (size_t)m->p.N;
    plan->taps = 1;
    plan->depth = (size_t)m->p.K;
    plan->row_step = m->p.K;
    if (turns_parts(site, m)) {
        plan->row_step |= LNT_PANEL; /* no power of two, so that rows do not collide */
        plan->a_column = (size_t)m->p.M;
    }
    plan->tap_offset = no_offset;
    plan->scale = m->p.alpha;
    plan->low = m->store.low;
    plan->high = m->store.high;
    plan->row_bias = m->row_bias || m->column_c;
    plan->epilogue = m->row_bias ? NULL : m->store.program;
    plan->epilogue_rows = m->p.M;
    lnt_gemm_plan_blocks(plan);
    if (m->store.residual >= 0 && lnt_gemm_in_place(plan))
        lnt_bind_in_place(site, 0, (unsigned)m->store.residual);
    m->scratch_gather = bytes;
    lnt_bind_scratch(site, bytes + plan->gather_bytes * site->threads);
    site->step->run = lnt_matmul_run;
    return LNT_OK;
}

static lnt_status bind_product(lnt_site *site)
{
    size_t bytes = 0;
    lnt_matmul *m;
    LNT_TRY(lnt_matmul_begin(site, &m));
    const bool column = m->p.N == 1;
    if (takes_strips(site) && (column || split_rows(m) || has_few_rows(site, m))) {
        lnt_matmul_scale_offsets(m, (size_t)(m->p.K * m->p.N));
        if (column)
            swap_operands(m);
        m->row = site->kernels->row;
        site->step->run = run_few_rows;
        return LNT_OK;
    }
    bind_turn(site, m, &bytes);
    bind_c(site, m, &bytes);
    const bool own_bias = m->has_c && !m->stride_c[0], own_residual = m->has_c && m->stride_c[0];
    LNT_TRY(lnt_bind_store(site, site->out[0]->rank - 1u, own_bias ? 2 : -1, !own_residual, &m->store));
    if (own_bias)
        m->store.bias = -1; /* C may be scaled first */
    return lnt_matmul_plan(site, m, bytes);
}

/* Operands of a product of halves: A, and a C that is added element by element as it is. */
static uint32_t half_operands(const lnt_site *site)
{
    lnt_matmul m = {.p = matrices_of(site->node, site->in[0], site->in[1])};
    find_c(site, &m);
    return m.has_c && m.stride_c[0] && takes_c(site, &m) ? 1u << 0 | 1u << 2 : 1u << 0;
}

lnt_status lnt_bind_matmul(lnt_site *site)
{
    const lnt_operand *a = site->in[0], *b = site->in[1];
    const lnt_operand *c = lnt_own_input(site, 2);
    if (lnt_has_half_weights(site, 1) && (!c || c->dtype == LNT_FLOAT))
        return lnt_bind_half(site, half_operands(site), bind_product);
    if (a->dtype != b->dtype || (c && c->dtype != a->dtype))
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "operands must be of one type");
    if (a->dtype == LNT_FLOAT)
        return bind_product(site);
    if (site->node->program)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "fused work is for float only");
    if (a->dtype != LNT_FLOAT16 && a->dtype != LNT_BFLOAT16)
        return lnt_bind_matmul_number(site);
    LNT_TRY(bind_product(site));
    return lnt_bind_widened(site, UINT32_MAX, UINT32_MAX);
}

/* The only column of B stays what rows are summed along with: see bind_product. */
static bool pack_b(const lnt_node *node, const lnt_operand *b, lnt_packed *record)
{
    if (!lnt_pack_matrix(node, b, record))
        return false;
    return record->N != 1 || b->dtype != LNT_FLOAT || node->program;
}

const lnt_product lnt_product_matmul = {1u << 1, NULL, pack_b, lnt_matrix_multiply_adds};
