/* rnn_float.c — the products of recurrent layers in float: X with W, and h with R in each step (rnn.h). */
#include "ops/recurrent/rnn.h"

#include "base/lnt_assert.h"

#include <math.h>

/* ---- the product of the input ---- */

static void rows_of_input(const lnt_gemm_call *call, int64_t product, int64_t row, unsigned n, size_t k_begin,
                          size_t k_end, float *gather, lnt_row_set *set)
{
    (void)k_begin, (void)k_end, (void)gather;
    const lnt_rnn *m = call->plan->rows_arg;
    set->gathered = false;
    for (unsigned i = 0; i < n; i++) {
        set->a[i] = lnt_rnn_input_row(m, call->a, row + i);
        set->out[i] = (product * call->plan->rows + row + i) * (int64_t)m->row;
    }
}

enum { SHARED_WORK = 1 << 20 }; /* multiply-adds with the inputs */

bool lnt_rnn_bind_floats(const lnt_site *site, lnt_rnn *m, size_t *scratch)
{
    static const ptrdiff_t no_offset = 0;
    lnt_gemm_plan *plan = &m->product.plan;
    plan->kernels = m->product.kernels = site->kernels->gemm;
    plan->rows_of = rows_of_input;
    plan->rows_arg = m;
    plan->products = m->e.directions;
    plan->rows = m->e.steps * m->e.batch;
    plan->columns = m->row;
    plan->taps = 1;
    plan->depth = (size_t)m->e.input;
    plan->tap_offset = &no_offset;
    plan->b_form = m->w.form;
    plan->b_row = LNT_PANEL;
    plan->b_panel = plan->depth * LNT_PANEL;
    plan->scale = 1.0f;
    plan->low = -INFINITY;
    plan->high = INFINITY;
    lnt_gemm_plan_blocks(plan);
    m->product.b_offset[1] = m->row * plan->depth;
    return lnt_reserve(scratch, site->threads, plan->widens ? plan->gather_bytes : 0, &m->product.gather_at);
}

typedef struct widen_call {
    const lnt_gemm_kernels *kernels;
    lnt_b_form form;
    const void *from;
    float *to;
} widen_call;

static lnt_status widen_lines(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k, (void)thread;
    const widen_call *c = arg;
    const size_t at = (size_t)begin * LNT_PANEL;
    c->kernels->widen[c->form](lnt_b_at(c->form, c->from, at), c->to + at, (size_t)(end - begin) * LNT_PANEL);
    return LNT_OK;
}

/* Packs what is not yet, widens what is to be, and points *weights there. */
static lnt_status packed(lnt_kernel *k, const lnt_rnn_call *c, const lnt_rnn_weights *how,
                         const void **weights)
{
    enum { GRAIN = 1024 };
    if (!how->pack && !(LNT_HAS_HALVES && how->widen))
        return LNT_OK;
    float *to = lnt_rnn_floats(c, how->at);
    widen_call widen = {c->m->product.kernels, how->form, *weights, to};
    size_t bytes;
    if (how->pack)
        LNT_TRY(lnt_gemm_pack(k, &how->record, LNT_FLOAT, *weights, to));
    else if (LNT_HAS_HALVES && lnt_packed_bytes(&how->record, &bytes))
        LNT_TRY(lnt_parallel(k, (int64_t)(bytes / sizeof *to / LNT_PANEL), GRAIN, widen_lines, &widen));
    *weights = to;
    return LNT_OK;
}

lnt_status lnt_rnn_multiply_floats(lnt_kernel *k, lnt_rnn_call *c, const float *bias)
{
    const lnt_rnn *m = c->m;
    const void *w = lnt_in(k, c->step, LNT_RNN_W);
    c->r = lnt_in(k, c->step, LNT_RNN_R);
    c->r_form = m->r.widen ? LNT_B_F32 : m->r.form;
    LNT_TRY(packed(k, c, &m->w, &w));
    LNT_TRY(packed(k, c, &m->r, &c->r));
    const lnt_gemm_call call = {.plan = &m->product.plan,
                                .step = c->step,
                                .a = c->x,
                                .b = w,
                                .b_offset = m->product.b_offset,
                                .c = lnt_rnn_floats(c, m->gates_at),
                                .bias = bias,
                                .bias_product = m->row,
                                .gather = c->scratch + m->product.gather_at};
    /* What another thread writes, the recurrence waits for at each step: as much is done by itself. */
    lnt_kernel alone = *k;
    if (m->e.directions == 1 && call.plan->work < SHARED_WORK)
        alone.threads = 1;
    return lnt_gemm_run(&alone, &call);
}

/* ---- the recurrence ---- */

static lnt_tile tile_of(const lnt_recurrence *r, float *const *out)
{
    static const ptrdiff_t no_offset = 0;
    const lnt_rnn *m = r->c->m;
    const size_t hidden = (size_t)m->e.hidden;
    const void *b = lnt_b_at(r->c->r_form, r->c->r, (size_t)r->direction * m->row * hidden);
    return (lnt_tile){.a = r->a,
                      .c = out,
                      .tap_offset = &no_offset,
                      .taps = 1,
                      .depth = hidden,
                      .b = b,
                      .b_half = b,
                      .b_row = LNT_PANEL,
                      .b_panel = hidden * LNT_PANEL,
                      .bias = r->c->bias_r ? r->c->bias_r + (size_t)r->direction * m->row : NULL,
                      .scale = 1.0f,
                      .low = -INFINITY,
                      .high = INFINITY,
                      .accumulate = r->accumulate,
                      .b_is_far = hidden * m->row > LNT_FAR_FLOATS};
}

static lnt_tile_fn tile_fn(const lnt_recurrence *r)
{
    const lnt_gemm_kernels *kernels = r->c->m->product.kernels;
    LNT_ASSERT(r->c->r_form == LNT_B_F32 || r->set->n == 1);
    return lnt_b_is_half(r->c->r_form) ? kernels->row[r->c->r_form] : kernels->tile[r->set->n];
}

/* Items are blocks of 16 units; all columns of theirs are a tile, some of them one for each block. */
lnt_status lnt_rnn_recur_floats(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k, (void)thread;
    const lnt_recurrence *r = arg;
    const lnt_rnn *m = r->c->m;
    const size_t block = (size_t)m->e.gates * LNT_PANEL; /* columns of 16 units */
    lnt_tile tile = tile_of(r, r->set->gates);
    if (r->columns == m->row) {
        tile.first = (size_t)begin * block;
        tile.columns = (size_t)end * block;
        tile_fn(r)(&tile);
        return LNT_OK;
    }
    for (int64_t i = begin; i < end; i++) {
        tile.first = (size_t)i * block + r->first * LNT_PANEL;
        tile.columns = tile.first + r->columns;
        tile_fn(r)(&tile);
    }
    return LNT_OK;
}
