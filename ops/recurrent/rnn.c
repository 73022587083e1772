/* rnn.c — LSTM, GRU and RNN; DynamicLSTM and DynamicGRU, whose weights are bytes.
 *
 *   1. gates of all steps from the input: one product [steps * batch][input] * W, biases added
 *   2. step by step: gates += h * R, then the cell
 *
 * Gates lie as the packed weights' columns do, [hidden / 16][gate][16], so that a cell finds the gates of 16
 * units side by side. Directions and blocks of rows of the batch are independent: they are what threads
 * share.
 *
 * The quantizer's DynamicLSTM and DynamicGRU have int8 W and R, each with a scale per column, in the order of
 * the columns, padding included: [directions][hidden / 16][gate][16]. Rows of X and h are quantized as they
 * come, each over its own range. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/gemm/gemm_driver.h"
#include "ops/recurrent/rnn_cells.h"
#include "ops/quant/qgemm_driver.h"
#include "ops/quant/qparams.h"
#include "ops/widen.h"

#include <math.h>
#include <string.h>

enum { IN_X, IN_W, IN_R, IN_B, IN_LENGTHS, IN_H, IN_C, IN_P, IN_W_SCALE, IN_R_SCALE };

/* ---- extents ---- */

typedef struct extents {
    int64_t steps, batch, input, hidden, directions, gates;
    bool batch_first; /* layout 1 */
} extents;

static int64_t kind_of(const lnt_op *op)
{
    return op->id == LNT_ID_DynamicLSTM ? LNT_ID_LSTM : op->id == LNT_ID_DynamicGRU ? LNT_ID_GRU : op->id;
}

static bool is_dynamic(const lnt_op *op)
{
    return (LNT_HAS_DynamicLSTM && op->id == LNT_ID_DynamicLSTM) ||
           (LNT_HAS_DynamicGRU && op->id == LNT_ID_DynamicGRU);
}

static int64_t gates_of(const lnt_op *op)
{
    const int64_t kind = kind_of(op);
    return kind == LNT_ID_LSTM ? 4 : kind == LNT_ID_GRU ? 3 : 1;
}

static lnt_status extents_of(const lnt_site *site, extents *e)
{
    const lnt_operand *x = site->in[IN_X], *w = site->in[IN_W], *r = site->in[IN_R];
    if (x->rank != 3 || w->rank != 3 || r->rank != 3)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "X, W and R must have rank 3");
    e->batch_first = lnt_attr_i(site->node, "layout", 0) != 0;
    e->steps = x->dims[e->batch_first ? 1 : 0];
    e->batch = x->dims[e->batch_first ? 0 : 1];
    e->input = x->dims[2];
    e->directions = w->dims[0];
    e->gates = gates_of(site->node->op);
    const int64_t hidden = lnt_attr_i(site->node, "hidden_size", 0);
    LNT_REQUIRE(hidden >= 0, site->err, LNT_E_ARGUMENT, "hidden_size is %lld", (long long)hidden);
    e->hidden = lnt_attr_i(site->node, "hidden_size", r->dims[2]);
    return LNT_OK;
}

lnt_status lnt_shape_rnn(lnt_site *site)
{
    extents e;
    LNT_TRY(extents_of(site, &e));
    const int64_t y[4] = {e.steps, e.directions, e.batch, e.hidden},
                  y_first[4] = {e.batch, e.steps, e.directions, e.hidden};
    const int64_t last[3] = {e.directions, e.batch, e.hidden},
                  last_first[3] = {e.batch, e.directions, e.hidden};
    lnt_set_dims(site, 0, 4, e.batch_first ? y_first : y);
    lnt_set_dims(site, 1, 3, e.batch_first ? last_first : last);
    lnt_set_dims(site, 2, 3, e.batch_first ? last_first : last);
    return LNT_OK;
}

/* ---- what a bound layer knows ---- */

/* Activations and direction of one direction. */
typedef struct direction {
    bool reverse;
    lnt_activation f, g, h;
} direction;

typedef struct rnn {
    extents e;
    size_t padded; /* hidden rounded up to 16 */
    size_t row;    /* gate values of one row: gates * padded */
    int64_t kind;  /* LNT_ID_LSTM, GRU or RNN */
    direction direction[2];
    float clip;
    bool input_forget, linear_before_reset;
    const lnt_gemm_kernels *kernels;
    const lnt_rnn_kernels *cells;
    lnt_gemm_plan plan; /* of the product with W */
    size_t b_offset[2];
    bool pack_w, pack_r;
    lnt_packed record_w, record_r;
    size_t w_at, r_at, extras_at, gates_at, state_at; /* bytes into scratch memory */
    size_t state_floats;  /* of one row of one direction: h, c or reset, GRU's recurrent gates */
    int64_t blocks;       /* of rows of the batch that go together, */
    int64_t block_rows;   /* so many in each */
    size_t block_floats;  /* of the states of a block, and what keeps them apart from the next one's */
    const float *extras;  /* biases and peepholes laid out, where they are constant */
    bool bytes;           /* DynamicLSTM, DynamicGRU */
    lnt_qgemm_plan qplan; /* of the product with W */
    int64_t h_bytes;      /* of a quantized row of h */
    size_t r_sums_at;     /* bytes from R to its columns' sums */
    size_t x_at, meaning_at, h_at, h_thread; /* scratch: quantized X and its rows' meaning, rows of h */
} rnn;

/* What trimmed libraries have no operator for is left out of them. */
static bool is_in_bytes(const rnn *m)
{
    return (LNT_HAS_DynamicLSTM || LNT_HAS_DynamicGRU) && m->bytes;
}

/* ---- attributes ---- */

static bool find_activation(const char *name, lnt_activation *out, bool *has_alpha, bool *has_beta)
{
#define X(ident, text, takes_alpha, takes_beta, alpha_default, beta_default)                                 \
    if (strcmp(name, text) == 0) {                                                                           \
        *out = (lnt_activation){LNT_ACT_##ident, alpha_default, beta_default};                               \
        *has_alpha = takes_alpha;                                                                            \
        *has_beta = takes_beta;                                                                              \
        return true;                                                                                         \
    }
    LNT_ACTIVATION_LIST(X)
#undef X
    return false;
}

/* The activations of all directions; activation_alpha and _beta are used up by those that take them. */
static lnt_status bind_activations(const lnt_site *site, rnn *m)
{
    static const char *const usual[][3] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const unsigned per_direction = m->kind == LNT_ID_LSTM ? 3 : m->kind == LNT_ID_GRU ? 2 : 1;
    const lnt_attr *names = lnt_attr_find(site->node, "activations");
    const lnt_attr *alphas = lnt_attr_find(site->node, "activation_alpha");
    const lnt_attr *betas = lnt_attr_find(site->node, "activation_beta");
    const unsigned wanted = per_direction * (unsigned)m->e.directions;
    unsigned alpha = 0, beta = 0;
    if (names && (names->type != LNT_ATTR_STRINGS || names->count != wanted))
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "activations must hold %u names", wanted);
    for (unsigned i = 0; i < wanted; i++) {
        const unsigned at = i % per_direction;
        direction *d = &m->direction[i / per_direction];
        lnt_activation *a = at == 0 ? &d->f : at == 1 ? &d->g : &d->h;
        const char *name = names ? names->strings[i] : usual[per_direction - 1][at];
        bool has_alpha, has_beta;
        if (!find_activation(name, a, &has_alpha, &has_beta))
            return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "activation %s is not implemented", name);
        if (has_alpha && alphas && alpha < alphas->count)
            a->alpha = alphas->f[alpha++];
        if (has_beta && betas && beta < betas->count)
            a->beta = betas->f[beta++];
    }
    return LNT_OK;
}

static lnt_status bind_attributes(lnt_site *site, rnn *m)
{
    const char *text = lnt_attr_s(site->node, "direction", "forward");
    const bool both = strcmp(text, "bidirectional") == 0, reverse = strcmp(text, "reverse") == 0;
    if (m->e.directions != (both ? 2 : 1))
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "direction %s does not fit weights of %lld directions", text,
                             (long long)m->e.directions);
    m->direction[0].reverse = reverse;
    m->direction[1].reverse = true;
    m->clip = lnt_attr_f(site->node, "clip", 0.0f);
    if (!(m->clip > 0.0f))
        m->clip = INFINITY;
    m->input_forget = lnt_attr_i(site->node, "input_forget", 0) != 0;
    m->linear_before_reset = lnt_attr_i(site->node, "linear_before_reset", 0) != 0;
    return bind_activations(site, m);
}

/* ---- run ---- */

enum {
    SHARED_STEP = 192 * 1024, /* recurrent weights that are worth calling the other threads for */
    APART = 2048 /* bytes between states that threads write again and again: as far as one may prefetch */
};

typedef struct rnn_call {
    const rnn *m;
    const lnt_step *step;
    const float *x;
    const int8_t *r_bytes;
    const float *r_scale;
    const float *r, *bias_r; /* bias_r: GRU's biases of the recurrent product, per direction */
    const float *h0, *c0, *peephole;
    const void *lengths;
    float *y, *y_h, *y_c;
    char *scratch;
    bool shares_steps; /* each step's product is work for all threads */
} rnn_call;

static float *floats_at(const rnn_call *c, size_t at)
{
    return (float *)(void *)(c->scratch + at);
}

/* Row `at` of all [steps * batch], of X. */
static const float *input_row(const rnn *m, const float *x, int64_t at)
{
    const int64_t step = at / m->e.batch, entry = at % m->e.batch;
    return x + (m->e.batch_first ? entry * m->e.steps + step : at) * m->e.input;
}

static void rows_of_input(const lnt_gemm_call *call, int64_t product, int64_t row, unsigned n, size_t k_begin,
                          size_t k_end, float *gather, lnt_row_set *set)
{
    (void)k_begin, (void)k_end, (void)gather;
    const rnn *m = call->plan->rows_arg;
    set->gathered = false;
    for (unsigned i = 0; i < n; i++) {
        set->a[i] = input_row(m, call->a, row + i);
        set->out[i] = (product * call->plan->rows + row + i) * (int64_t)m->row;
    }
}

/* Steps of entry b of the batch. */
static int64_t length_of(const rnn_call *c, int64_t b)
{
    const int64_t steps = c->m->e.steps, n = c->lengths ? ((const int32_t *)c->lengths)[b] : steps;
    return n < 0 ? 0 : n > steps ? steps : n;
}

/* Row of entry b in step t of direction d, counted in rows of hidden floats of output Y. */
static int64_t y_row(const extents *e, int64_t t, int64_t d, int64_t b)
{
    return e->batch_first ? (b * e->steps + t) * e->directions + d : (t * e->directions + d) * e->batch + b;
}

static int64_t state_row(const extents *e, int64_t d, int64_t b)
{
    return e->batch_first ? b * e->directions + d : d * e->batch + b;
}

/* Rows of the batch that take part in a step. */
typedef struct rows {
    unsigned n;
    const float *h[LNT_TILE_ROWS_MAX], *reset[LNT_TILE_ROWS_MAX];
    float *gates[LNT_TILE_ROWS_MAX];
    lnt_rnn_cell cell[LNT_TILE_ROWS_MAX];
} rows;

enum { CELLS = 2 };

/* gates (+)= a * panels [first, first + columns / 16) of each block of 16 units of R, bias included; then
 * what the units make of their gates. */
typedef struct recurrence {
    const rnn_call *c;
    int64_t direction;
    const rows *set;
    const float *const *a;
    size_t first, columns;
    bool accumulate;
    lnt_rnn_cell_fn cell[CELLS]; /* one after the other; the last may be NULL */
    uint8_t *h;                  /* room for quantized rows of a */
    /* Of those rows. */
    float scale[LNT_TILE_ROWS_MAX];
    int32_t zero[LNT_TILE_ROWS_MAX];
} recurrence;

static lnt_tile tile_of(const recurrence *r, float *const *out)
{
    static const ptrdiff_t no_offset = 0;
    const rnn *m = r->c->m;
    const size_t hidden = (size_t)m->e.hidden;
    return (lnt_tile){.a = r->a,
                      .c = out,
                      .tap_offset = &no_offset,
                      .taps = 1,
                      .depth = hidden,
                      .b = r->c->r + (size_t)r->direction * m->row * hidden,
                      .b_row = LNT_PANEL,
                      .b_panel = hidden * LNT_PANEL,
                      .bias = r->c->bias_r ? r->c->bias_r + (size_t)r->direction * m->row : NULL,
                      .scale = 1.0f,
                      .low = -INFINITY,
                      .high = INFINITY,
                      .accumulate = r->accumulate,
                      .b_is_far = hidden * m->row > LNT_FAR_FLOATS};
}

/* Items are blocks of 16 units; all columns of theirs are a tile, some of them one for each block. */
static lnt_status recur_blocks(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k, (void)thread;
    const recurrence *r = arg;
    const rnn *m = r->c->m;
    const size_t block = (size_t)m->e.gates * LNT_PANEL; /* columns of 16 units */
    lnt_tile tile = tile_of(r, r->set->gates);
    if (r->columns == m->row) {
        tile.first = (size_t)begin * block;
        tile.columns = (size_t)end * block;
        m->kernels->tile[r->set->n](&tile);
        return LNT_OK;
    }
    for (int64_t i = begin; i < end; i++) {
        tile.first = (size_t)i * block + r->first * LNT_PANEL;
        tile.columns = tile.first + r->columns;
        m->kernels->tile[r->set->n](&tile);
    }
    return LNT_OK;
}

static void quantize_rows(recurrence *r)
{
    const rnn *m = r->c->m;
    for (unsigned i = 0; i < r->set->n; i++) {
        const lnt_qrow q =
            lnt_quantize_row(m->qplan.row, m->qplan.int8, r->a[i], m->e.hidden, r->h + i * m->h_bytes, m->h_bytes);
        r->scale[i] = q.scale;
        r->zero[i] = q.zero;
    }
}

enum { PANELS_AT_ONCE = 24 }; /* of one row; no fewer than rows of a tile */
_Static_assert((int)PANELS_AT_ONCE >= (int)LNT_TILE_ROWS_MAX, "sums of a panel find room");

/* Sums of the quantized rows with panels [panel, panel + n) of R in bytes: [n][16] of one row, or [rows][16]
 * of one panel. */
static void sum_panels(const recurrence *r, size_t panel, size_t n, int32_t *acc)
{
    const rnn *m = r->c->m;
    const lnt_qgemm_kernels *kernels = m->qplan.kernels;
    const uint8_t *h[LNT_TILE_ROWS_MAX];
    const int8_t *b = r->c->r_bytes + panel * (size_t)m->h_bytes * LNT_PANEL;
    lnt_qproduct p = {.tap_offset = lnt_qone_run, .taps = 1, .quads = m->h_bytes / 4};
    for (unsigned i = 0; i < r->set->n; i++)
        h[i] = r->h + i * m->h_bytes;
    for (size_t i = 0; i < n; i += p.panels) {
        p.panels = n - i < kernels->panels ? 1 : kernels->panels;
        for (unsigned k = 0; k < p.panels; k++) {
            p.panel[k] = b + (i + k) * (size_t)m->h_bytes * LNT_PANEL;
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
static void recur_panels(const recurrence *r, size_t panel, size_t n)
{
    const rnn_call *c = r->c;
    const rnn *m = c->m;
    const size_t at = ((size_t)r->direction * m->row / LNT_PANEL + panel) * LNT_PANEL;
    const int32_t *sums = (const int32_t *)(const void *)(c->r_bytes + m->r_sums_at);
    float *y[LNT_TILE_ROWS_MAX];
    int32_t acc[PANELS_AT_ONCE * LNT_QPANEL];
    for (unsigned i = 0; i < r->set->n; i++)
        y[i] = r->set->gates[i] + panel * LNT_PANEL;
    sum_panels(r, at / LNT_PANEL, n, acc);
    m->qplan.int8->store_sums(&(lnt_qtile){.acc = acc,
                                          .rows = r->set->n,
                                          .columns = (unsigned)n * LNT_PANEL,
                                          .scale = r->scale,
                                          .zero = r->zero,
                                          .sums = sums + at,
                                          .scales = c->r_scale + at,
                                          .bias = c->bias_r ? c->bias_r + at : NULL,
                                          .y = y,
                                          .residual = r->accumulate ? (const float *const *)y : NULL,
                                          .low = -INFINITY,
                                          .high = INFINITY});
}

/* Units [first, end). */
static void open_cells(const recurrence *r, size_t first, size_t end)
{
    for (unsigned f = 0; f < CELLS && r->cell[f]; f++)
        for (unsigned i = 0; i < r->set->n; i++) {
            const lnt_rnn_cell *cell = &r->set->cell[i];
            r->cell[f](cell, first, end < cell->hidden ? end : cell->hidden);
        }
}

/* recur_blocks, with R in bytes. All threads read the quantized state: the new one may take its place here. */
static lnt_status recur_bytes(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k, (void)thread;
    const recurrence *r = arg;
    const size_t gates = (size_t)r->c->m->e.gates, most = r->set->n == 1 ? PANELS_AT_ONCE : 1;
    const bool all = r->columns == r->c->m->row; /* panels of blocks that follow each other do so, too */
    const size_t runs = all ? 1 : (size_t)(end - begin);
    const size_t run = all ? (size_t)(end - begin) * gates : r->columns / LNT_PANEL;
    for (size_t i = 0; i < runs; i++)
        for (size_t done = 0, n; done < run; done += n) {
            n = run - done < most ? run - done : most;
            recur_panels(r, ((size_t)begin + i) * gates + r->first + done, n);
        }
    open_cells(r, (size_t)begin * LNT_PANEL, (size_t)end * LNT_PANEL);
    return LNT_OK;
}

static lnt_status recur(lnt_kernel *k, recurrence r)
{
    const int64_t blocks = (int64_t)(r.c->m->padded / LNT_PANEL);
    const bool bytes = is_in_bytes(r.c->m);
    const lnt_task_fn task = bytes ? recur_bytes : recur_blocks;
    if (bytes)
        quantize_rows(&r);
    /* Two slices a thread: more cost more than they even out. */
    const int64_t grain = 1 + blocks / (2 * (int64_t)k->threads + 1);
    LNT_TRY(r.c->shares_steps ? lnt_parallel(k, blocks, grain, task, &r) : task(k, &r, 0, blocks, 0));
    if (!bytes)
        open_cells(&r, 0, SIZE_MAX);
    return LNT_OK;
}

/* One step of the recurrence for a set of rows; h: room for their quantized states. */
static lnt_status advance(lnt_kernel *k, const rnn_call *c, int64_t d, const rows *set, uint8_t *h)
{
    const rnn *m = c->m;
    const lnt_rnn_kernels *cells = m->cells;
    recurrence r = {c, d, set, set->h, 0, m->row, m->kind != LNT_ID_GRU, .h = h};
    if (m->kind != LNT_ID_GRU) {
        r.cell[0] = m->kind == LNT_ID_LSTM ? cells->lstm : cells->rnn;
        return recur(k, r);
    }
    r.cell[0] = cells->gru_gates;
    if (m->linear_before_reset) {
        r.cell[1] = cells->gru_state;
        return recur(k, r);
    }
    r.columns = 2 * LNT_PANEL;
    LNT_TRY(recur(k, r));
    return recur(k, (recurrence){c, d, set, set->reset, 2, LNT_PANEL, .cell = {cells->gru_state}, .h = h});
}

/* State of entry b: h, then c (LSTM) or reset and gates (GRU). */
static float *state_of(const rnn_call *c, int64_t d, int64_t b)
{
    const rnn *m = c->m;
    const size_t block = (size_t)(d * m->blocks + b / m->block_rows), row = (size_t)(b % m->block_rows);
    return floats_at(c, m->state_at) + block * m->block_floats + row * m->state_floats;
}

static void begin_state(const rnn_call *c, int64_t d, int64_t b)
{
    const rnn *m = c->m;
    const size_t hidden = (size_t)m->e.hidden, from = (size_t)state_row(&m->e, d, b) * hidden;
    float *state = state_of(c, d, b);
    memset(state, 0, 2 * m->padded * sizeof *state);
    if (c->h0)
        memcpy(state, c->h0 + from, hidden * sizeof *state);
    if (c->c0)
        memcpy(state + m->padded, c->c0 + from, hidden * sizeof *state);
}

static void end_state(const rnn_call *c, int64_t d, int64_t b)
{
    const rnn *m = c->m;
    const size_t hidden = (size_t)m->e.hidden, to = (size_t)state_row(&m->e, d, b) * hidden;
    const float *state = state_of(c, d, b);
    if (c->y_h)
        memcpy(c->y_h + to, state, hidden * sizeof *state);
    if (c->y_c)
        memcpy(c->y_c + to, state + m->padded, hidden * sizeof *state);
    for (int64_t t = length_of(c, b); c->y && t < m->e.steps; t++)
        memset(c->y + (size_t)y_row(&m->e, t, d, b) * hidden, 0, hidden * sizeof *state);
}

static void add_row(const rnn_call *c, int64_t d, int64_t b, int64_t t, rows *set)
{
    const rnn *m = c->m;
    const direction *way = &m->direction[d];
    float *state = state_of(c, d, b);
    float *input = floats_at(c, m->gates_at) + (size_t)((d * m->e.steps + t) * m->e.batch + b) * m->row;
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
                                  .clip = m->clip,
                                  .f = way->f,
                                  .g = way->g,
                                  .h_act = way->h,
                                  .input_forget = m->input_forget,
                                  .linear_before_reset = m->linear_before_reset};
}

/* Item: one direction of one block of rows, all steps. */
static lnt_status run_blocks(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const rnn_call *c = arg;
    const rnn *m = c->m;
    uint8_t *h = (uint8_t *)c->scratch + m->h_at + thread * m->h_thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t d = item / m->blocks, first = item % m->blocks * m->block_rows;
        const int64_t stop = first + m->block_rows < m->e.batch ? first + m->block_rows : m->e.batch;
        for (int64_t b = first; b < stop; b++)
            begin_state(c, d, b);
        for (int64_t step = 0; step < m->e.steps; step++) {
            rows set;
            set.n = 0;
            for (int64_t b = first; b < stop; b++) {
                const int64_t n = length_of(c, b);
                if (step < n)
                    add_row(c, d, b, m->direction[d].reverse ? n - 1 - step : step, &set);
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

/* Element of the padded, interleaved gates that gate g of unit n goes to. */
static size_t gate_place(const rnn *m, size_t g, size_t n)
{
    return (n / LNT_PANEL * (size_t)m->e.gates + g) * LNT_PANEL + n % LNT_PANEL;
}

/* Wb + Rb into input[], for all directions; but GRU's Rb goes to recurrent[]. */
static void lay_out_bias(const rnn *m, const float *b, float *input, float *recurrent)
{
    const size_t hidden = (size_t)m->e.hidden, gates = (size_t)m->e.gates;
    for (size_t d = 0; d < (size_t)m->e.directions; d++, b += 2 * gates * hidden)
        for (size_t g = 0; g < gates; g++)
            for (size_t n = 0; n < hidden; n++) {
                const size_t to = d * m->row + gate_place(m, g, n);
                const float w = b[g * hidden + n], r = b[(gates + g) * hidden + n];
                input[to] = recurrent ? w : w + r;
                if (recurrent)
                    recurrent[to] = r;
            }
}

static void lay_out_peephole(const rnn *m, const float *p, float *to)
{
    const size_t hidden = (size_t)m->e.hidden;
    for (size_t i = 0; i < 3 * (size_t)m->e.directions; i++)
        memcpy(to + i * m->padded, p + i * hidden, hidden * sizeof *to);
}

static size_t extra_floats(const rnn *m)
{
    return (size_t)m->e.directions * (2 * m->row + 3 * m->padded);
}

/* Biases, those of the recurrent product, and peepholes, one after the other; b or p may be NULL. */
static void lay_out_extras(const rnn *m, const float *b, const float *p, float *to)
{
    const size_t all_gates = (size_t)m->e.directions * m->row;
    memset(to, 0, extra_floats(m) * sizeof *to);
    if (b)
        lay_out_bias(m, b, to, m->kind == LNT_ID_GRU ? to + all_gates : NULL);
    if (p)
        lay_out_peephole(m, p, to + 2 * all_gates);
}

static lnt_status packed(lnt_kernel *k, const rnn_call *c, bool pack, const lnt_packed *record, size_t at,
                         const float **weights)
{
    if (!pack)
        return LNT_OK;
    float *to = floats_at(c, at);
    LNT_TRY(lnt_gemm_pack(k, record, LNT_FLOAT, *weights, to));
    *weights = to;
    return LNT_OK;
}

static lnt_status quantize_input(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const rnn_call *c = arg;
    const rnn *m = c->m;
    const int64_t room = m->qplan.row_bytes;
    uint8_t *bytes = (uint8_t *)c->scratch + m->x_at;
    lnt_qrow *meaning = (lnt_qrow *)(void *)(c->scratch + m->meaning_at);
    (void)k, (void)thread;
    for (int64_t i = begin; i < end; i++)
        meaning[i] =
            lnt_quantize_row(m->qplan.row, m->qplan.int8, input_row(m, c->x, i), m->e.input, bytes + i * room, room);
    return LNT_OK;
}

static void quantized_rows(const lnt_qgemm_call *call, int64_t product, lnt_qrow_set *set)
{
    const rnn_call *c = call->arg;
    const rnn *m = c->m;
    const lnt_qrow *meaning = (const lnt_qrow *)(const void *)(c->scratch + m->meaning_at);
    for (unsigned i = 0; i < set->n; i++) {
        const int64_t at = set->first + i;
        set->a[i] = (const uint8_t *)c->scratch + m->x_at + at * m->qplan.row_bytes;
        set->out[i] = (product * m->qplan.rows + at) * (int64_t)m->row;
        set->scale[i] = meaning[at].scale;
        set->zero[i] = meaning[at].zero;
    }
}

/* W's and R's bytes and scales; the gates of all steps from the input. */
static lnt_status multiply_bytes(lnt_kernel *k, rnn_call *c, const float *bias)
{
    const rnn *m = c->m;
    const int8_t *w = lnt_in(k, c->step, IN_W);
    c->r_bytes = lnt_in(k, c->step, IN_R);
    c->r_scale = lnt_in(k, c->step, IN_R_SCALE);
    if (m->pack_w)
        LNT_TRY(lnt_gemm_pack(k, &m->record_w, LNT_INT8, w, c->scratch + m->w_at));
    if (m->pack_r)
        LNT_TRY(lnt_gemm_pack(k, &m->record_r, LNT_INT8, c->r_bytes, c->scratch + m->r_at));
    c->r_bytes = m->pack_r ? (int8_t *)c->scratch + m->r_at : c->r_bytes;
    LNT_TRY(lnt_parallel(k, m->qplan.rows, lnt_quantize_grain(m->e.input), quantize_input, c));
    const lnt_qgemm_call call = {.plan = &m->qplan,
                                 .step = c->step,
                                 .b = m->pack_w ? (int8_t *)c->scratch + m->w_at : w,
                                 .scales = lnt_in(k, c->step, IN_W_SCALE),
                                 .bias = bias,
                                 .c = floats_at(c, m->gates_at),
                                 .arg = c};
    return lnt_qgemm_run(k, &call);
}

static lnt_status multiply_floats(lnt_kernel *k, rnn_call *c, const float *bias)
{
    const rnn *m = c->m;
    const float *w = lnt_in(k, c->step, IN_W);
    c->r = lnt_in(k, c->step, IN_R);
    LNT_TRY(packed(k, c, m->pack_w, &m->record_w, m->w_at, &w));
    LNT_TRY(packed(k, c, m->pack_r, &m->record_r, m->r_at, &c->r));
    const lnt_gemm_call call = {.plan = &m->plan,
                                .step = c->step,
                                .a = c->x,
                                .b = w,
                                .b_offset = m->b_offset,
                                .c = floats_at(c, m->gates_at),
                                .bias = bias,
                                .bias_product = m->row,
                                .gather = c->scratch};
    return lnt_gemm_run(k, &call);
}

static lnt_status run_rnn(lnt_kernel *k, const lnt_step *s)
{
    const rnn *m = s->params;
    LNT_ASSERT(m->e.directions == 1 || m->e.directions == 2);
    const float *b = lnt_in(k, s, IN_B), *p = lnt_in(k, s, IN_P);
    rnn_call c = {.m = m,
                  .step = s,
                  .x = lnt_in(k, s, IN_X),
                  .h0 = lnt_in(k, s, IN_H),
                  .c0 = lnt_in(k, s, IN_C),
                  .lengths = lnt_in(k, s, IN_LENGTHS),
                  .y = lnt_out(k, s, 0),
                  .y_h = lnt_out(k, s, 1),
                  .y_c = lnt_out(k, s, 2),
                  .scratch = lnt_scratch(k, s)};
    const size_t all_gates = (size_t)m->e.directions * m->row;
    const float *extras = m->extras;
    if (!extras && (b || p)) {
        lay_out_extras(m, b, p, floats_at(&c, m->extras_at));
        extras = floats_at(&c, m->extras_at);
    }
    c.bias_r = b && m->kind == LNT_ID_GRU ? extras + all_gates : NULL;
    c.peephole = p ? extras + 2 * all_gates : NULL;
    LNT_TRY((is_in_bytes(m) ? multiply_bytes : multiply_floats)(k, &c, b ? extras : NULL));
    const int64_t items = m->e.directions * m->blocks;
    c.shares_steps = items == 1 && (size_t)m->e.hidden * m->row > SHARED_STEP;
    return items == 1 ? run_blocks(k, &c, 0, 1, 0) : lnt_parallel(k, items, 1, run_blocks, &c);
}

/* ---- bind ---- */

/* Is input i, if it is there, of these extents? A negative count ends them. */
static lnt_status check_input(const lnt_site *site, unsigned i, const char *name, int64_t a, int64_t b,
                              int64_t c)
{
    const lnt_operand *o = lnt_input(site, i);
    const int64_t want[3] = {a, b, c};
    bool fits = true;
    for (unsigned d = 0; o && d < 3; d++)
        fits &= want[d] < 0 ? o->rank == d || want[d - 1] < 0 : d < o->rank && o->dims[d] == want[d];
    return fits ? LNT_OK : LNT_SITE_FAIL(site, LNT_E_SHAPE, "the extents of %s do not fit the others", name);
}

static lnt_status check_inputs(const lnt_site *site, const extents *e)
{
    const int64_t d = e->directions, h = e->hidden, first = e->batch_first ? e->batch : d;
    const int64_t second = e->batch_first ? d : e->batch;
    if (h < 1 || d < 1 || d > 2)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "%lld directions of %lld units are not possible",
                             (long long)d, (long long)h);
    LNT_TRY(check_input(site, IN_W, "W", d, e->gates * h, e->input));
    LNT_TRY(check_input(site, IN_R, "R", d, e->gates * h, h));
    LNT_TRY(check_input(site, IN_B, "B", d, 2 * e->gates * h, -1));
    LNT_TRY(check_input(site, IN_LENGTHS, "sequence_lens", e->batch, -1, -1));
    LNT_TRY(check_input(site, IN_H, "initial_h", first, second, h));
    LNT_TRY(check_input(site, IN_C, "initial_c", first, second, h));
    LNT_TRY(check_input(site, IN_P, "P", d, 3 * h, -1));
    const lnt_operand *lengths = lnt_input(site, IN_LENGTHS);
    if (lengths && lengths->dtype != LNT_INT32)
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "sequence_lens must be int32");
    return LNT_OK;
}

static lnt_status bind_weights(lnt_site *site, unsigned input, const rnn *m, bool *pack, lnt_packed *record,
                               size_t *at, size_t *scratch)
{
    const lnt_operand *w = site->in[input];
    size_t bytes;
    *pack = !w->packed;
    *record = lnt_packed_panels(LNT_SOURCE_GATES, (uint32_t)m->e.directions, (uint32_t)w->dims[2],
                                (uint32_t)m->e.hidden);
    record->layout = is_in_bytes(m) ? LNT_LAYOUT_PANEL_I8 : LNT_LAYOUT_GATES_F32;
    record->gates = (uint32_t)m->e.gates;
    if (!lnt_packed_bytes(record, &bytes) || bytes > PTRDIFF_MAX ||
        !lnt_reserve(scratch, *pack ? (int64_t)bytes : 0, 1, at))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "the weights are too large");
    return LNT_OK;
}

static lnt_status check_scales(const lnt_site *site, const rnn *m)
{
    for (unsigned i = IN_W_SCALE; i <= IN_R_SCALE; i++)
        LNT_REQUIRE(site->in[i]->dtype == LNT_FLOAT &&
                        lnt_operand_count(site->in[i]) == m->e.directions * (int64_t)m->row,
                    site->err, LNT_E_SHAPE, "scales must hold %lld floats",
                    (long long)m->e.directions * (long long)m->row);
    return LNT_OK;
}

/* The product of the input with W in bytes. False: too many rows. */
static bool bind_byte_product(const lnt_site *site, rnn *m, size_t *scratch)
{
    lnt_qgemm_plan *plan = &m->qplan;
    plan->row = site->kernels->row;
    plan->int8 = site->kernels->int8;
    plan->kernels = site->kernels->qgemm;
    plan->rows_of = quantized_rows;
    plan->store = lnt_qstore_floats;
    lnt_qgemm_plan_weights(plan, &m->record_w);
    plan->rows = m->e.steps * m->e.batch;
    plan->columns = (int64_t)m->row;
    plan->panels = plan->columns / LNT_QPANEL;
    plan->low = -INFINITY;
    plan->high = INFINITY;
    m->h_bytes = lnt_qrow_bytes(&m->record_r);
    m->r_sums_at = lnt_packed_sums_at(&m->record_r);
    m->h_thread = lnt_round_up(LNT_TILE_ROWS_MAX * (size_t)m->h_bytes, LNT_ALIGN);
    return lnt_reserve(scratch, plan->rows, (size_t)plan->row_bytes, &m->x_at) &&
           lnt_reserve(scratch, plan->rows, sizeof(lnt_qrow), &m->meaning_at) &&
           lnt_reserve(scratch, site->threads, m->h_thread, &m->h_at);
}

static void bind_product(const lnt_site *site, rnn *m)
{
    static const ptrdiff_t no_offset = 0;
    lnt_gemm_plan *plan = &m->plan;
    plan->kernels = m->kernels = site->kernels->gemm;
    m->cells = site->kernels->rnn;
    plan->rows_of = rows_of_input;
    plan->rows_arg = m;
    plan->products = m->e.directions;
    plan->rows = m->e.steps * m->e.batch;
    plan->columns = m->row;
    plan->taps = 1;
    plan->depth = (size_t)m->e.input;
    plan->tap_offset = &no_offset;
    plan->b_row = LNT_PANEL;
    plan->b_panel = plan->depth * LNT_PANEL;
    plan->scale = 1.0f;
    plan->low = -INFINITY;
    plan->high = INFINITY;
    lnt_gemm_plan_blocks(plan);
    m->b_offset[1] = m->row * plan->depth;
}

/* Has the input, if it is there, contents at bind? */
static bool is_known(const lnt_operand *o)
{
    return !o || (o->constant && o->data && o->dtype == LNT_FLOAT);
}

static lnt_status bind_extras(lnt_site *site, rnn *m)
{
    const lnt_operand *b = lnt_input(site, IN_B), *p = lnt_input(site, IN_P);
    if (!is_known(b) || !is_known(p))
        return LNT_OK;
    float *to = lnt_bump_alloc(site->memory, extra_floats(m) * sizeof *to, site->err);
    if (!to)
        return LNT_E_MEMORY;
    lay_out_extras(m, b ? b->data : NULL, p ? p->data : NULL, to);
    m->extras = to;
    return LNT_OK;
}

/* Gates and states of all rows. False: too many. */
static bool bind_rows(rnn *m, size_t *scratch)
{
    const extents *e = &m->e;
    const int64_t tile = m->kernels->tile_rows, entries = lnt_dim_mul(e->directions, e->batch);
    m->state_floats = 2 * m->padded + (m->kind == LNT_ID_GRU ? m->row : 0);
    m->blocks = (e->batch + tile - 1) / tile;
    m->block_rows = m->blocks ? (e->batch + m->blocks - 1) / m->blocks : 1;
    m->block_floats = (size_t)m->block_rows * m->state_floats + APART / sizeof(float);
    return lnt_reserve(scratch, lnt_dim_mul(entries, e->steps), m->row * sizeof(float), &m->gates_at) &&
           lnt_reserve(scratch, e->directions * m->blocks, m->block_floats * sizeof(float), &m->state_at);
}

static lnt_status bind_layer(lnt_site *site, const extents *e)
{
    rnn *m = lnt_bind_params(site, sizeof *m);
    size_t scratch = 0;
    if (!m)
        return LNT_E_MEMORY;
    m->e = *e;
    m->kind = kind_of(site->node->op);
    m->bytes = is_dynamic(site->node->op);
    m->padded = lnt_round_up((size_t)e->hidden, LNT_PANEL);
    m->row = (size_t)e->gates * m->padded;
    LNT_TRY(bind_attributes(site, m));
    bind_product(site, m);
    LNT_TRY(bind_weights(site, IN_W, m, &m->pack_w, &m->record_w, &m->w_at, &scratch));
    LNT_TRY(bind_weights(site, IN_R, m, &m->pack_r, &m->record_r, &m->r_at, &scratch));
    if (is_in_bytes(m))
        LNT_TRY(check_scales(site, m));
    LNT_TRY(bind_extras(site, m));
    if ((is_in_bytes(m) && !bind_byte_product(site, m, &scratch)) ||
        !lnt_reserve(&scratch, m->extras ? 0 : (int64_t)extra_floats(m), sizeof(float), &m->extras_at) ||
        !bind_rows(m, &scratch))
        return LNT_SITE_FAIL(site, LNT_E_LIMIT, "%lld rows of gates are too many",
                             (long long)(e->steps * e->batch));
    lnt_bind_scratch(site, scratch);
    site->step->run = run_rnn;
    return LNT_OK;
}

lnt_status lnt_bind_rnn(lnt_site *site)
{
    extents e;
    LNT_TRY(extents_of(site, &e));
    LNT_TRY(check_inputs(site, &e));
    if (is_dynamic(site->node->op)) {
        for (unsigned i = IN_X; i <= IN_R; i++)
            if (site->in[i]->dtype != (i == IN_X ? LNT_FLOAT : LNT_INT8))
                return lnt_bind_unsupported_type(site, (lnt_dtype)site->in[i]->dtype);
        return bind_layer(site, &e);
    }
    if (lnt_site_real_type(site) != LNT_FLOAT)
        return lnt_bind_unsupported_type(site, (lnt_dtype)site->in[IN_X]->dtype);
    LNT_TRY(bind_layer(site, &e));
    return lnt_bind_widened(site, ~(1u << IN_LENGTHS), ~0u);
}
