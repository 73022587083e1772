/* rnn_cells.h — the elementwise half of a recurrent layer's step: activations of the gates and the new state. The
 * products that make the gate values are those of ops/gemm/gemm.h. */
#ifndef LNT_OPS_RECURRENT_RNN_CELLS_H
#define LNT_OPS_RECURRENT_RNN_CELLS_H

#include "formats/packed.h"
#include "ops/kernels.h"

#include <stdbool.h>
#include <stddef.h>

/* X(identifier, ONNX name, takes alpha, takes beta, alpha's default, beta's default) */
#define LNT_ACTIVATION_LIST(X)                                                                               \
    X(TANH, "Tanh", 0, 0, 0, 0)                                                                              \
    X(SIGMOID, "Sigmoid", 0, 0, 0, 0)                                                                        \
    X(RELU, "Relu", 0, 0, 0, 0)                                                                              \
    X(AFFINE, "Affine", 1, 1, 1, 0)                                                                          \
    X(LEAKY_RELU, "LeakyRelu", 1, 0, 0.01f, 0)                                                               \
    X(THRESHOLDED_RELU, "ThresholdedRelu", 1, 0, 1, 0)                                                       \
    X(SCALED_TANH, "ScaledTanh", 1, 1, 1, 1)                                                                 \
    X(HARD_SIGMOID, "HardSigmoid", 1, 1, 0.2f, 0.5f)                                                         \
    X(ELU, "Elu", 1, 0, 1, 0)                                                                                \
    X(SOFTSIGN, "Softsign", 0, 0, 0, 0)                                                                      \
    X(SOFTPLUS, "Softplus", 0, 0, 0, 0)

typedef enum lnt_activation_kind {
#define X(ident, name, has_alpha, has_beta, alpha, beta) LNT_ACT_##ident,
    LNT_ACTIVATION_LIST(X)
#undef X
} lnt_activation_kind;

typedef struct lnt_activation {
    lnt_activation_kind kind;
    float alpha, beta;
} lnt_activation;

/* One row of one step. Gate values are in the order of the packed weights' columns, [hidden / 16][gates][16]; state and
 * scratch vectors have hidden rounded up to 16 floats. */
typedef struct lnt_rnn_cell {
    const float *input;    /* gate values from the input, biases included */
    float *recurrent;      /* from the state. LSTM and RNN: the sum of both, input is not read */
    float *h, *c;          /* the state, updated; c of LSTM only */
    float *y;              /* [hidden]: the new h once more, or NULL */
    float *reset;          /* GRU: reset gate * h */
    const float *peephole; /* LSTM: NULL, or for i, o, f one after the other [hidden rounded up to 16] */
    size_t hidden;
    float clip; /* INFINITY: none */
    lnt_activation f, g, h_act;
    bool input_forget;        /* LSTM: f = 1 - i */
    bool linear_before_reset; /* GRU */
} lnt_rnn_cell;

/* Units [first, end), end <= hidden; first is a multiple of 16. */
typedef void (*lnt_rnn_cell_fn)(const lnt_rnn_cell *cell, size_t first, size_t end);

/* NULL where no operator of a trimmed library has such cells. */
typedef struct lnt_rnn_kernels {
    lnt_rnn_cell_fn rnn, lstm;
    lnt_rnn_cell_fn gru_gates; /* makes z and r of recurrent, and reset */
    lnt_rnn_cell_fn gru_state; /* the new h, from what gru_gates left */
} lnt_rnn_kernels;

#endif
