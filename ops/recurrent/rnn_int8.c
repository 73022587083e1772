/* rnn_int8.c — the products of DynamicLSTM and DynamicGRU: int8 weights, rows of X and h quantized
 * dynamically (rnn.h). */
#include "ops/recurrent/rnn.h"

#include "base/checked.h"
#include "ops/quant/qparams.h"

#include <math.h>

/* ---- the product of the input ---- */

lnt_status lnt_rnn_check_scales(const lnt_site *site, const lnt_rnn *m)
{
    for (unsigned i = LNT_RNN_W_SCALE; i <= LNT_RNN_R_SCALE; i++)
        LNT_REQUIRE(site->in[i]->dtype == LNT_FLOAT &&
                        lnt_operand_count(site->in[i]) == m->e.directions * (int64_t)m->row,
                    site->err, LNT_E_SHAPE, "scales must hold %lld floats",
                    (long long)m->e.directions * (long long)m->row);
    return LNT_OK;
}

static lnt_status quantize_input(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_rnn_call *c = arg;
    const lnt_rnn *m = c->m;
    const lnt_qgemm_plan *plan = &m->int8.plan;
    const int64_t room = plan->row_bytes;
    uint8_t *bytes = (uint8_t *)c->scratch + m->int8.x_at;
    lnt_qparams *qparams = (lnt_qparams *)(void *)(c->scratch + m->int8.x_qparams_at);
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const float *x = lnt_rnn_input_row(m, c->x, i);
        qparams[i] = lnt_quantize_row(plan->row, plan->int8, x, m->e.input, bytes + i * room, room);
    }
    return LNT_OK;
}

static void quantized_rows(const lnt_qgemm_call *call, int64_t product, lnt_qrow_set *set)
{
    const lnt_rnn_call *c = call->arg;
    const lnt_rnn *m = c->m;
    const lnt_qparams *qparams = (const lnt_qparams *)(const void *)(c->scratch + m->int8.x_qparams_at);
    for (unsigned i = 0; i < set->n; i++) {
        const int64_t at = set->first + i;
        set->a[i] = (const uint8_t *)c->scratch + m->int8.x_at + at * m->int8.plan.row_bytes;
        set->out[i] = (product * m->int8.plan.rows + at) * (int64_t)m->row;
        set->scale[i] = qparams[at].scale;
        set->zero[i] = qparams[at].zero_point;
    }
}

bool lnt_rnn_bind_int8(const lnt_site *site, lnt_rnn *m, size_t *scratch)
{
    lnt_qgemm_plan *plan = &m->int8.plan;
    plan->row = site->kernels->row;
    plan->int8 = site->kernels->int8;
    plan->kernels = site->kernels->qgemm;
    plan->rows_of = quantized_rows;
    plan->store = lnt_qstore_floats;
    lnt_qgemm_plan_weights(plan, &m->w.record, site->in[LNT_RNN_W]);
    plan->rows = m->e.steps * m->e.batch;
    plan->columns = (int64_t)m->row;
    plan->panels = plan->columns / LNT_QPANEL;
    plan->low = -INFINITY;
    plan->high = INFINITY;
    m->int8.h_bytes = lnt_qrow_bytes(&m->r.record);
    m->int8.r_sums_at = lnt_packed_sums_at(&m->r.record);
    m->int8.r_full = lnt_qweights_are_full(site->in[LNT_RNN_R]);
    m->int8.h_thread = lnt_round_up(LNT_TILE_ROWS_MAX * (size_t)m->int8.h_bytes, LNT_ALIGN);
    return lnt_reserve(scratch, plan->rows, (size_t)plan->row_bytes, &m->int8.x_at) &&
           lnt_reserve(scratch, plan->rows, sizeof(lnt_qparams), &m->int8.x_qparams_at) &&
           lnt_reserve(scratch, site->threads, m->int8.h_thread, &m->int8.h_at);
}

lnt_status lnt_rnn_multiply_int8(lnt_kernel *k, lnt_rnn_call *c, const float *bias)
{
    const lnt_rnn *m = c->m;
    const int8_t *w = lnt_in(k, c->step, LNT_RNN_W);
    c->r_int8 = lnt_in(k, c->step, LNT_RNN_R);
    c->r_scale = lnt_in(k, c->step, LNT_RNN_R_SCALE);
    if (m->w.pack)
        LNT_TRY(lnt_gemm_pack(k, &m->w.record, LNT_INT8, w, c->scratch + m->w.at));
    if (m->r.pack)
        LNT_TRY(lnt_gemm_pack(k, &m->r.record, LNT_INT8, c->r_int8, c->scratch + m->r.at));
    c->r_int8 = m->r.pack ? (int8_t *)c->scratch + m->r.at : c->r_int8;
    LNT_TRY(lnt_parallel(k, m->int8.plan.rows, lnt_quantize_grain(m->e.input), quantize_input, c));
    const lnt_qgemm_call call = {.plan = &m->int8.plan,
                                 .step = c->step,
                                 .b = m->w.pack ? (int8_t *)c->scratch + m->w.at : w,
                                 .scales = lnt_in(k, c->step, LNT_RNN_W_SCALE),
                                 .bias = bias,
                                 .c = lnt_rnn_floats(c, m->gates_at),
                                 .arg = c};
    return lnt_qgemm_run(k, &call);
}

/* ---- the recurrence ---- */

void lnt_rnn_quantize_states(lnt_recurrence *r)
{
    const lnt_rnn *m = r->c->m;
    const lnt_qgemm_plan *plan = &m->int8.plan;
    const int64_t room = m->int8.h_bytes;
    for (unsigned i = 0; i < r->set->n; i++) {
        const lnt_qparams q =
            lnt_quantize_row(plan->row, plan->int8, r->a[i], m->e.hidden, r->h + i * room, room);
        r->scale[i] = q.scale;
        r->zero[i] = q.zero_point;
    }
}

enum {
    PANELS_AT_ONCE = 24,           /* of one row; no fewer than rows of a tile */
    PARTS = LNT_PANEL / LNT_QPANEL /* panels of int8 of a gate's columns in a block */
};
_Static_assert((int)PANELS_AT_ONCE >= (int)LNT_TILE_ROWS_MAX, "accumulators of a panel find room");

/* int32 accumulators of the quantized rows with panels [panel, panel + n) of R: [n][16] of one row, or [rows][16] of
 * one panel. */
static void accumulate_panels(const lnt_recurrence *r, size_t panel, size_t n, int32_t *acc)
{
    const lnt_rnn *m = r->c->m;
    const lnt_qgemm_kernels *kernels = m->int8.plan.kernels;
    const uint8_t *h[LNT_TILE_ROWS_MAX];
    const int8_t *b = r->c->r_int8 + panel * (size_t)m->int8.h_bytes * LNT_QPANEL;
    const int32_t *sums = (const int32_t *)(const void *)(r->c->r_int8 + m->int8.r_sums_at);
    lnt_qproduct p = {
        .tap_offset = lnt_qone_run, .taps = 1, .quads = m->int8.h_bytes / 4, .full = m->int8.r_full};
    for (unsigned i = 0; i < r->set->n; i++)
        h[i] = r->h + i * m->int8.h_bytes;
    for (size_t i = 0; i < n; i += p.panels) {
        p.panels = n - i < kernels->panels ? 1 : kernels->panels;
        p.sums = sums + (panel + i) * LNT_QPANEL;
        for (unsigned k = 0; k < p.panels; k++) {
            p.panel[k] = b + (i + k) * (size_t)m->int8.h_bytes * LNT_QPANEL;
            p.c[k] = acc + (i + k) * LNT_QPANEL;
        }
        for (unsigned row = 0; row < r->set->n; row += p.rows, p.c[0] += p.rows * LNT_QPANEL) {
            const unsigned left = r->set->n - row;
            p.a = h + row;
            p.rows = left < kernels->rows ? left : kernels->rows;
            kernels->tile(&p);
        }
    }
}

/* The quantized rows times panels [panel, panel + n) of R; several of one row, or one. */
static void recur_panels(const lnt_recurrence *r, size_t panel, size_t n)
{
    const lnt_rnn_call *c = r->c;
    const lnt_rnn *m = c->m;
    const size_t at = (size_t)r->direction * m->row + panel * LNT_QPANEL;
    const int32_t *sums = (const int32_t *)(const void *)(c->r_int8 + m->int8.r_sums_at);
    float *y = r->set->gates[0] + panel * LNT_QPANEL;
    int64_t out[LNT_TILE_ROWS_MAX];
    int32_t acc[PANELS_AT_ONCE * LNT_QPANEL];
    for (unsigned i = 0; i < r->set->n; i++)
        out[i] = r->set->gates[i] - r->set->gates[0];
    accumulate_panels(r, at / LNT_QPANEL, n, acc);
    m->int8.plan.int8->store_dequantized(&(lnt_dequantize_tile){.acc = acc,
                                                                .rows = r->set->n,
                                                                .columns = (unsigned)n * LNT_QPANEL,
                                                                .scale = r->scale,
                                                                .zero = r->zero,
                                                                .sums = sums + at,
                                                                .scales = c->r_scale + at,
                                                                .bias = c->bias_r ? c->bias_r + at : NULL,
                                                                .y = y,
                                                                .residual = r->accumulate ? y : NULL,
                                                                .out = out,
                                                                .low = -INFINITY,
                                                                .high = INFINITY});
}

/* All threads read the quantized states: the new ones may take the place of the old here. */
lnt_status lnt_rnn_recur_int8(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k, (void)thread;
    const lnt_recurrence *r = arg;
    const size_t gates = (size_t)r->c->m->e.gates, most = r->set->n == 1 ? PANELS_AT_ONCE : 1;
    const bool all = r->columns == r->c->m->row; /* panels of blocks that follow each other do so, too */
    const size_t runs = all ? 1 : (size_t)(end - begin);
    const size_t run = all ? (size_t)(end - begin) * gates * PARTS : r->columns / LNT_QPANEL;
    for (size_t i = 0; i < runs; i++)
        for (size_t done = 0, n; done < run; done += n) {
            n = run - done < most ? run - done : most;
            recur_panels(r, (((size_t)begin + i) * gates + r->first) * PARTS + done, n);
        }
    lnt_rnn_open_cells(r, (size_t)begin * LNT_PANEL, (size_t)end * LNT_PANEL);
    return LNT_OK;
}
