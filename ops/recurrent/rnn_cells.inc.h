/* rnn_cells.inc.h — what happens to the gates of one row in one step: activations and the new state. Written once over
 * ops/simd/simd.h and compiled per level; the including file says which. */
#include "ops/op.h"
#include "ops/recurrent/rnn_cells.h"
#include "ops/simd/simd.h"
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

LNT_INLINE vf activate(const lnt_activation *a, vf x)
{
    if (a->kind == LNT_ACT_SIGMOID)
        return v_sigmoid(x);
    if (a->kind == LNT_ACT_TANH)
        return v_tanh(x);
    return activate_other(a, x);
}

/* A gate: the sum is clipped, then activated. */
LNT_INLINE vf open_gate(const lnt_rnn_cell *cell, const lnt_activation *a, vf x)
{
    return activate(a, v_min(v_splat(cell->clip), v_max(v_splat(-cell->clip), x)));
}

/* Stores the new h of lanes n .. of the row. */
LNT_INLINE void store_h(const lnt_rnn_cell *cell, size_t n, vf h)
{
    v_store(cell->h + n, h);
    if (!cell->y || n >= cell->hidden)
        return;
    const size_t left = cell->hidden - n;
    if (left >= LNT_VL)
        v_store(cell->y + n, h);
    else
        v_store_n(cell->y + n, h, (unsigned)left);
}

/* Where unit n of the first gate is; the other gates follow, each LNT_PANEL further. */
LNT_INLINE size_t place_of_unit(size_t n, size_t gates)
{
    return n / LNT_PANEL * LNT_PANEL * gates + n % LNT_PANEL;
}

static void rnn_cell(const lnt_rnn_cell *cell, size_t first, size_t end)
{
    LNT_ASSERT(first % LNT_PANEL == 0 && end <= cell->hidden);
    for (size_t n = first; n < end; n += LNT_VL)
        store_h(cell, n, open_gate(cell, &cell->f, v_load(cell->recurrent + n)));
}

/* Gates i, o, f, c. */
static void lstm_cell(const lnt_rnn_cell *cell, size_t first, size_t end)
{
    LNT_ASSERT(first % LNT_PANEL == 0 && end <= cell->hidden && cell->c);
    const size_t padded = (cell->hidden + LNT_PANEL - 1) / LNT_PANEL * LNT_PANEL;
    const float *p = cell->peephole;
    for (size_t n = first; n < end; n += LNT_VL) {
        const size_t at = place_of_unit(n, 4);
        const float *gate = cell->recurrent + at;
        vf i = v_load(gate), o = v_load(gate + LNT_PANEL), f = v_load(gate + 2 * LNT_PANEL);
        const vf c = v_load(cell->c + n);
        if (p) {
            i += v_load(p + n) * c;
            f += v_load(p + 2 * padded + n) * c;
        }
        i = open_gate(cell, &cell->f, i);
        f = cell->input_forget ? v_splat(1) - i : open_gate(cell, &cell->f, f);
        const vf fresh = f * c + i * open_gate(cell, &cell->g, v_load(gate + 3 * LNT_PANEL));
        if (p)
            o += v_load(p + padded + n) * fresh;
        o = open_gate(cell, &cell->f, o);
        v_store(cell->c + n, fresh);
        store_h(cell, n, o * activate(&cell->h_act, fresh)); /* the state itself is not clipped */
    }
}

/* Gates z, r, h. */
static void gru_gates(const lnt_rnn_cell *cell, size_t first, size_t end)
{
    LNT_ASSERT(first % LNT_PANEL == 0 && end <= cell->hidden && cell->reset);
    for (size_t n = first; n < end; n += LNT_VL) {
        const size_t at = place_of_unit(n, 3);
        const float *x = cell->input + at;
        float *s = cell->recurrent + at;
        const vf r = open_gate(cell, &cell->f, v_load(x + LNT_PANEL) + v_load(s + LNT_PANEL));
        v_store(s, open_gate(cell, &cell->f, v_load(x) + v_load(s)));
        v_store(s + LNT_PANEL, r);
        v_store(cell->reset + n, r * v_load(cell->h + n));
    }
}

static void gru_state(const lnt_rnn_cell *cell, size_t first, size_t end)
{
    LNT_ASSERT(first % LNT_PANEL == 0 && end <= cell->hidden && cell->input);
    for (size_t n = first; n < end; n += LNT_VL) {
        const size_t at = place_of_unit(n, 3);
        const float *x = cell->input + at, *s = cell->recurrent + at;
        const vf z = v_load(s), r = v_load(s + LNT_PANEL);
        vf h = v_load(s + 2 * LNT_PANEL);
        if (cell->linear_before_reset)
            h *= r;
        h = open_gate(cell, &cell->g, v_load(x + 2 * LNT_PANEL) + h);
        store_h(cell, n, (v_splat(1) - z) * h + z * v_load(cell->h + n));
    }
}

const lnt_rnn_kernels LNT_SIMD_NAME(lnt_rnn) = {
    .rnn = LNT_HAS_RNN ? rnn_cell : NULL,
    .lstm = LNT_HAS_LSTM || LNT_HAS_DynamicLSTM ? lstm_cell : NULL,
    .gru_gates = LNT_HAS_GRU || LNT_HAS_DynamicGRU ? gru_gates : NULL,
    .gru_state = LNT_HAS_GRU || LNT_HAS_DynamicGRU ? gru_state : NULL,
};
