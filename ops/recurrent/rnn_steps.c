/* rnn_steps.c — a run of a recurrent layer: states of the batch's rows, step by step (rnn.h). */
#include "ops/recurrent/rnn.h"

#include "base/lnt_assert.h"

#include <string.h>

enum { SHARED_STEP = 192 * 1024 }; /* recurrent weights that are worth calling the other threads for */

/* ---- states ---- */

/* Steps of entry b of the batch. */
static int64_t length_of(const lnt_rnn_call *c, int64_t b)
{
    const int64_t steps = c->m->e.steps, n = c->lengths ? ((const int32_t *)c->lengths)[b] : steps;
    return n < 0 ? 0 : n > steps ? steps : n;
}

/* Row of entry b in step t of direction d, counted in rows of hidden floats of output Y. */
static int64_t y_row(const lnt_rnn_extents *e, int64_t t, int64_t d, int64_t b)
{
    return e->batch_first ? (b * e->steps + t) * e->directions + d : (t * e->directions + d) * e->batch + b;
}

static int64_t state_row(const lnt_rnn_extents *e, int64_t d, int64_t b)
{
    return e->batch_first ? b * e->directions + d : d * e->batch + b;
}

/* State of entry b: h, then c (LSTM) or reset and gates (GRU). */
static float *state_of(const lnt_rnn_call *c, int64_t d, int64_t b)
{
    const lnt_rnn_states *s = &c->m->states;
    const size_t block = (size_t)(d * s->blocks + b / s->block_rows), row = (size_t)(b % s->block_rows);
    return lnt_rnn_floats(c, s->at) + block * s->block_floats + row * s->floats;
}

static void begin_state(const lnt_rnn_call *c, int64_t d, int64_t b)
{
    const lnt_rnn *m = c->m;
    const size_t hidden = (size_t)m->e.hidden, from = (size_t)state_row(&m->e, d, b) * hidden;
    float *state = state_of(c, d, b);
    memset(state, 0, 2 * m->padded * sizeof *state);
    if (c->h0)
        memcpy(state, c->h0 + from, hidden * sizeof *state);
    if (c->c0)
        memcpy(state + m->padded, c->c0 + from, hidden * sizeof *state);
}

static void end_state(const lnt_rnn_call *c, int64_t d, int64_t b)
{
    const lnt_rnn *m = c->m;
    const size_t hidden = (size_t)m->e.hidden, to = (size_t)state_row(&m->e, d, b) * hidden;
    const float *state = state_of(c, d, b);
    if (c->y_h)
        memcpy(c->y_h + to, state, hidden * sizeof *state);
    if (c->y_c)
        memcpy(c->y_c + to, state + m->padded, hidden * sizeof *state);
    for (int64_t t = length_of(c, b); c->y && t < m->e.steps; t++)
        memset(c->y + (size_t)y_row(&m->e, t, d, b) * hidden, 0, hidden * sizeof *state);
}

static void add_row(const lnt_rnn_call *c, int64_t d, int64_t b, int64_t t, lnt_rnn_rows *set)
{
    const lnt_rnn *m = c->m;
    const lnt_rnn_direction *way = &m->rule.direction[d];
    float *state = state_of(c, d, b);
    float *input = lnt_rnn_floats(c, m->gates_at) + (size_t)((d * m->e.steps + t) * m->e.batch + b) * m->row;
    const unsigned n = set->n++;
    set->h[n] = state;
    set->reset[n] = state + m->padded;
    set->gates[n] = m->kind == LNT_ID_GRU ? state + 2 * m->padded : input;
    set->cell[n] = (lnt_rnn_cell){.input = input,
                                  .recurrent = set->gates[n],
                                  .h = state,
                                  .c = state + m->padded,
                                  .y = c->y ? c->y + y_row(&m->e, t, d, b) * m->e.hidden : NULL,
                                  .reset = state + m->padded,
                                  .peephole = c->peephole ? c->peephole + (size_t)d * 3 * m->padded : NULL,
                                  .hidden = (size_t)m->e.hidden,
                                  .clip = m->rule.clip,
                                  .f = way->f,
                                  .g = way->g,
                                  .h_act = way->h,
                                  .input_forget = m->rule.input_forget,
                                  .linear_before_reset = m->rule.linear_before_reset};
}

/* ---- one step ---- */

void lnt_rnn_open_cells(const lnt_recurrence *r, size_t first, size_t end)
{
    for (unsigned f = 0; f < LNT_RNN_CELLS && r->cell[f]; f++)
        for (unsigned i = 0; i < r->set->n; i++) {
            const lnt_rnn_cell *cell = &r->set->cell[i];
            r->cell[f](cell, first, end < cell->hidden ? end : cell->hidden);
        }
}

static lnt_status recur(lnt_kernel *k, lnt_recurrence r)
{
    const int64_t blocks = (int64_t)(r.c->m->padded / LNT_PANEL);
    const bool int8 = lnt_rnn_is_int8(r.c->m);
    const lnt_task_fn task = int8 ? lnt_rnn_recur_int8 : lnt_rnn_recur_floats;
    if (int8)
        lnt_rnn_quantize_states(&r);
    /* Two slices a thread: more cost more than they even out. */
    const int64_t grain = 1 + blocks / (2 * (int64_t)k->threads + 1);
    LNT_TRY(r.c->shares_steps ? lnt_parallel(k, blocks, grain, task, &r) : task(k, &r, 0, blocks, 0));
    if (!int8)
        lnt_rnn_open_cells(&r, 0, SIZE_MAX);
    return LNT_OK;
}

/* One step of the recurrence for a set of rows; h: room for their quantized states. */
static lnt_status advance(lnt_kernel *k, const lnt_rnn_call *c, int64_t d, const lnt_rnn_rows *set,
                          uint8_t *h)
{
    const lnt_rnn *m = c->m;
    const lnt_rnn_kernels *cells = m->cells;
    lnt_recurrence r = {c, d, set, set->h, 0, m->row, m->kind != LNT_ID_GRU, .h = h};
    if (m->kind != LNT_ID_GRU) {
        r.cell[0] = m->kind == LNT_ID_LSTM ? cells->lstm : cells->rnn;
        return recur(k, r);
    }
    r.cell[0] = cells->gru_gates;
    if (m->rule.linear_before_reset) {
        r.cell[1] = cells->gru_state;
        return recur(k, r);
    }
    r.columns = 2 * LNT_PANEL;
    LNT_TRY(recur(k, r));
    return recur(k,
                 (lnt_recurrence){c, d, set, set->reset, 2, LNT_PANEL, .cell = {cells->gru_state}, .h = h});
}

/* ---- the whole ---- */

/* Item: one direction of one block of rows, all steps. */
static lnt_status run_blocks(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const lnt_rnn_call *c = arg;
    const lnt_rnn *m = c->m;
    uint8_t *h = (uint8_t *)c->scratch + m->int8.h_at + thread * m->int8.h_thread;
    const int64_t blocks = m->states.blocks, rows = m->states.block_rows;
    for (int64_t item = begin; item < end; item++) {
        const int64_t d = item / blocks, first = item % blocks * rows;
        const int64_t stop = first + rows < m->e.batch ? first + rows : m->e.batch;
        for (int64_t b = first; b < stop; b++)
            begin_state(c, d, b);
        for (int64_t step = 0; step < m->e.steps; step++) {
            lnt_rnn_rows set;
            set.n = 0;
            for (int64_t b = first; b < stop; b++) {
                const int64_t n = length_of(c, b);
                if (step < n)
                    add_row(c, d, b, m->rule.direction[d].reverse ? n - 1 - step : step, &set);
            }
            if (set.n == 0)
                break;
            LNT_TRY(advance(k, c, d, &set, h));
            LNT_TRY(lnt_cancelled(k));
        }
        for (int64_t b = first; b < stop; b++)
            end_state(c, d, b);
    }
    return LNT_OK;
}

lnt_status lnt_run_rnn(lnt_kernel *k, const lnt_step *s)
{
    const lnt_rnn *m = s->params;
    LNT_ASSERT(m->e.directions == 1 || m->e.directions == 2);
    const float *b = lnt_in(k, s, LNT_RNN_B), *p = lnt_in(k, s, LNT_RNN_P);
    lnt_rnn_call c = {.m = m,
                      .step = s,
                      .x = lnt_in(k, s, LNT_RNN_X),
                      .h0 = lnt_in(k, s, LNT_RNN_H),
                      .c0 = lnt_in(k, s, LNT_RNN_C),
                      .lengths = lnt_in(k, s, LNT_RNN_LENGTHS),
                      .y = lnt_out(k, s, 0),
                      .y_h = lnt_out(k, s, 1),
                      .y_c = lnt_out(k, s, 2),
                      .scratch = lnt_scratch(k, s)};
    const size_t all_gates = (size_t)m->e.directions * m->row;
    const float *extras = m->extras.known;
    if (!extras && (b || p)) {
        lnt_rnn_lay_out_extras(m, b, p, lnt_rnn_floats(&c, m->extras.at));
        extras = lnt_rnn_floats(&c, m->extras.at);
    }
    c.bias_r = b && m->kind == LNT_ID_GRU ? extras + all_gates : NULL;
    c.peephole = p ? extras + 2 * all_gates : NULL;
    LNT_TRY((lnt_rnn_is_int8(m) ? lnt_rnn_multiply_int8 : lnt_rnn_multiply_floats)(k, &c, b ? extras : NULL));
    const int64_t items = m->e.directions * m->states.blocks;
    c.shares_steps = items == 1 && (size_t)m->e.hidden * m->row > SHARED_STEP;
    return items == 1 ? run_blocks(k, &c, 0, 1, 0) : lnt_parallel(k, items, 1, run_blocks, &c);
}
