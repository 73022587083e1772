/* rnn_cells.inc.h — what happens to the gates of one row in one step: activations and the new state. Written once over
 * ops/simd/simd.h and compiled per level; the including file says which. */
#include "ops/op.h"
#include "ops/recurrent/rnn_cells.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"
#include "ops/simd/vmath.h"

static __attribute__((noinline)) vf activate_other(const lnt_activation *a, vf x)
{
    const vf alpha = v_splat(a->alpha), beta = v_splat(a->beta), zero = v_splat(0), one = v_splat(1);
    switch (a->kind) {
    case LNT_ACT_RELU: return v_max(zero, x);
    case LNT_ACT_AFFINE: return alpha * x + beta;
    case LNT_ACT_LEAKY_RELU: return v_select(x < zero, alpha * x, x);
    case LNT_ACT_THRESHOLDED_RELU: return v_select(x <= alpha, zero, x);
    case LNT_ACT_SCALED_TANH: return alpha * v_tanh(beta * x);
    case LNT_ACT_HARD_SIGMOID: return v_max(zero, v_min(one, alpha * x + beta));
    case LNT_ACT_ELU: return v_elu(x, alpha, one);
    case LNT_ACT_SOFTSIGN: return x / (one + v_abs(x));
    case LNT_ACT_SOFTPLUS: return v_softplus(x);
    default: return x;
    }
}

enum {
    VECTORS =
        LNT_PANEL / LNT_VL /* of a gate in a block of units: computed side by side, none waits for another */
};

LNT_INLINE void load_block(vf *x, const float *from)
{
    UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++)
        x[j] = v_load(from + j * LNT_VL);
}

LNT_INLINE void store_block(float *to, const vf *x)
{
    UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++)
        v_store(to + j * LNT_VL, x[j]);
}

LNT_INLINE void sigmoid_block(vf *x)
{
    vf near[VECTORS];
    vi within = vi_splat(-1);
    UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++) {
        near[j] = v_sigmoid_narrow(x[j]);
        within &= v_within(x[j], 80);
    }
    const bool far = vi_any(~within);
    UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++)
        x[j] = __builtin_expect(far, 0) ? v_sigmoid_wide(x[j], near[j]) : near[j];
}

/* Where a block is several vectors their steps fill a function; of one the activations of a cell go in between. */
#if LNT_VL > 4
#define BLOCK_FUNCTION LNT_INLINE
#else
#define BLOCK_FUNCTION static __attribute__((noinline))
#endif

BLOCK_FUNCTION void activate(const lnt_activation *a, vf *x)
{
    if (a->kind == LNT_ACT_SIGMOID)
        sigmoid_block(x);
    else if (a->kind == LNT_ACT_TANH)
        UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++)
            x[j] = v_tanh(x[j]);
    else
        UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++)
            x[j] = activate_other(a, x[j]);
}

/* A gate: the sum is clipped, then activated. */
LNT_INLINE void open_gate(const lnt_rnn_cell *cell, const lnt_activation *a, vf *x)
{
    const vf high = v_splat(cell->clip), low = v_splat(-cell->clip);
    UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++)
        x[j] = v_min(high, v_max(low, x[j]));
    activate(a, x);
}

/* x += p * c, if there are weights p */
LNT_INLINE void add_state(vf *x, const float *p, const vf *c)
{
    if (!p)
        return;
    UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++)
        x[j] += v_load(p + j * LNT_VL) * c[j];
}

/* Stores the new h of 16 units from n on. */
LNT_INLINE void store_h(const lnt_rnn_cell *cell, size_t n, const vf *h)
{
    store_block(cell->h + n, h);
    if (cell->y && cell->hidden - n >= LNT_PANEL)
        store_block(cell->y + n, h);
    else if (cell->y)
        for (unsigned j = 0; j < VECTORS && n < cell->hidden; j++, n += LNT_VL)
            store(cell->y + n, h[j], lanes_left(cell->hidden - n));
}

static void rnn_cell(const lnt_rnn_cell *cell, size_t first, size_t end)
{
    LNT_ASSERT(first % LNT_PANEL == 0 && end <= cell->hidden);
    for (size_t n = first; n < end; n += LNT_PANEL) {
        vf h[VECTORS];
        load_block(h, cell->recurrent + n);
        open_gate(cell, &cell->f, h);
        store_h(cell, n, h);
    }
}

/* Gates i, o, f, c: units [n, n + 16). */
LNT_INLINE void lstm_block(const lnt_rnn_cell *cell, size_t n)
{
    const size_t padded = (cell->hidden + LNT_PANEL - 1) / LNT_PANEL * LNT_PANEL;
    const float *gate = cell->recurrent + 4 * n, *p = cell->peephole ? cell->peephole + n : NULL;
    vf i[VECTORS], o[VECTORS], f[VECTORS], g[VECTORS], c[VECTORS];
    load_block(i, gate);
    load_block(f, gate + 2 * LNT_PANEL);
    load_block(g, gate + 3 * LNT_PANEL);
    load_block(c, cell->c + n);
    add_state(i, p, c);
    add_state(f, p ? p + 2 * padded : NULL, c);
    open_gate(cell, &cell->f, i);
    if (!cell->input_forget)
        open_gate(cell, &cell->f, f);
    open_gate(cell, &cell->g, g);
    UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++)
        c[j] = (cell->input_forget ? v_splat(1) - i[j] : f[j]) * c[j] + i[j] * g[j];
    store_block(cell->c + n, c);
    load_block(o, gate + LNT_PANEL);
    add_state(o, p ? p + padded : NULL, c);
    open_gate(cell, &cell->f, o);
    activate(&cell->h_act, c); /* the state itself is not clipped */
    UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++)
        o[j] *= c[j];
    store_h(cell, n, o);
}

static void lstm_cell(const lnt_rnn_cell *cell, size_t first, size_t end)
{
    LNT_ASSERT(first % LNT_PANEL == 0 && end <= cell->hidden && cell->c);
    for (size_t n = first; n < end; n += LNT_PANEL)
        lstm_block(cell, n);
}

/* Gates z, r, h. */
static void gru_gates(const lnt_rnn_cell *cell, size_t first, size_t end)
{
    LNT_ASSERT(first % LNT_PANEL == 0 && end <= cell->hidden && cell->reset);
    for (size_t n = first; n < end; n += LNT_PANEL) {
        const float *x = cell->input + 3 * n;
        float *s = cell->recurrent + 3 * n;
        vf z[VECTORS], r[VECTORS];
        UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++) {
            z[j] = v_load(x + j * LNT_VL) + v_load(s + j * LNT_VL);
            r[j] = v_load(x + LNT_PANEL + j * LNT_VL) + v_load(s + LNT_PANEL + j * LNT_VL);
        }
        open_gate(cell, &cell->f, z);
        open_gate(cell, &cell->f, r);
        store_block(s, z);
        store_block(s + LNT_PANEL, r);
        UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++)
            v_store(cell->reset + n + j * LNT_VL, r[j] * v_load(cell->h + n + j * LNT_VL));
    }
}

static void gru_state(const lnt_rnn_cell *cell, size_t first, size_t end)
{
    LNT_ASSERT(first % LNT_PANEL == 0 && end <= cell->hidden && cell->input);
    for (size_t n = first; n < end; n += LNT_PANEL) {
        const float *x = cell->input + 3 * n + 2 * LNT_PANEL, *s = cell->recurrent + 3 * n;
        vf h[VECTORS];
        UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++) {
            h[j] = v_load(s + 2 * LNT_PANEL + j * LNT_VL);
            if (cell->linear_before_reset)
                h[j] *= v_load(s + LNT_PANEL + j * LNT_VL);
            h[j] += v_load(x + j * LNT_VL);
        }
        open_gate(cell, &cell->g, h);
        UNROLL_FOR(4, unsigned j = 0; j < VECTORS; j++) {
            const vf z = v_load(s + j * LNT_VL);
            h[j] = (v_splat(1) - z) * h[j] + z * v_load(cell->h + n + j * LNT_VL);
        }
        store_h(cell, n, h);
    }
}

const lnt_rnn_kernels LNT_SIMD_NAME(lnt_rnn) = {
    .rnn = LNT_HAS_RNN ? rnn_cell : NULL,
    .lstm = LNT_HAS_LSTM || LNT_HAS_DynamicLSTM ? lstm_cell : NULL,
    .gru_gates = LNT_HAS_GRU || LNT_HAS_DynamicGRU ? gru_gates : NULL,
    .gru_state = LNT_HAS_GRU || LNT_HAS_DynamicGRU ? gru_state : NULL,
};
