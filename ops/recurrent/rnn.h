/* rnn.h — LSTM, GRU and RNN; DynamicLSTM and DynamicGRU, whose weights are int8. Private to these files:
 *
 *     rnn.c        extents, attributes, what is bound
 *     rnn_steps.c  a run: the states of a batch, step by step
 *     rnn_float.c  the products with W and R in float
 *     rnn_int8.c   the same with int8 weights
 *     rnn_cells.h  activations and the new state, by level
 *
 *   1. gates of all steps from the input: one product [steps * batch][input] * W, biases added
 *   2. step by step: gates += h * R, then the cell
 *
 * Gates are in the order of the packed weights' columns, [hidden / 16][gate][16], so that a cell finds the gates of 16
 * units side by side. Directions and blocks of rows of the batch are independent: they are what threads
 * share; a single block whose R is large has its columns shared in each step.
 *
 * DynamicLSTM and DynamicGRU, made by the converter, have int8 W and R, each with a scale per column, in the
 * order of the columns, padding included: [directions][hidden / 16][gate][16]. Rows of X and h are quantized
 * as they come, each over its own range. */
#ifndef LNT_OPS_RECURRENT_RNN_H
#define LNT_OPS_RECURRENT_RNN_H

#include "ops/gemm/gemm_driver.h"
#include "ops/quant/qgemm_driver.h"
#include "ops/recurrent/rnn_cells.h"

/* Inputs. */
enum {
    LNT_RNN_X,
    LNT_RNN_W,
    LNT_RNN_R,
    LNT_RNN_B,
    LNT_RNN_LENGTHS,
    LNT_RNN_H,
    LNT_RNN_C,
    LNT_RNN_P,
    LNT_RNN_W_SCALE,
    LNT_RNN_R_SCALE
};

/* ---- what a bound layer knows ---- */

typedef struct lnt_rnn_extents {
    int64_t steps, batch, input, hidden, directions, gates;
    bool batch_first; /* layout 1 */
} lnt_rnn_extents;

/* Activations and order of one direction. */
typedef struct lnt_rnn_direction {
    bool reverse;
    lnt_activation f, g, h;
} lnt_rnn_direction;

/* What the attributes say. */
typedef struct lnt_rnn_rule {
    lnt_rnn_direction direction[2];
    float clip; /* INFINITY: none */
    bool input_forget, linear_before_reset;
} lnt_rnn_rule;

/* W or R. Unless the file has them packed, each run packs them. */
typedef struct lnt_rnn_weights {
    bool pack;
    bool widen;      /* they are packed and not of floats: each run makes them that */
    lnt_b_form form; /* of the file's */
    lnt_packed record;
    size_t at; /* bytes into scratch memory */
} lnt_rnn_weights;

/* Biases, those of GRU's recurrent product, and peepholes, [gates as packed], one after the other. */
typedef struct lnt_rnn_extras {
    const float *known; /* where they are constant; else NULL: */
    size_t at;          /* bytes into scratch memory */
} lnt_rnn_extras;

/* States of the batch's rows, block by block, for each direction: h; c of LSTM, or reset and the recurrent
 * gates of GRU. */
typedef struct lnt_rnn_states {
    size_t at;           /* bytes into scratch memory */
    size_t floats;       /* of one row of one direction */
    int64_t blocks;      /* of rows of the batch that go together, */
    int64_t block_rows;  /* so many in each */
    size_t block_floats; /* of the states of a block, and what keeps them apart from the next one's */
} lnt_rnn_states;

/* The product of X with W in float. */
typedef struct lnt_rnn_product {
    const lnt_gemm_kernels *kernels;
    lnt_gemm_plan plan;
    size_t b_offset[2];
    size_t gather_at; /* scratch: what the product wants for each thread */
} lnt_rnn_product;

/* Of layers with int8 weights. */
typedef struct lnt_rnn_int8 {
    lnt_qgemm_plan plan;       /* of the product of X with W */
    int64_t h_bytes;           /* of a quantized row of h */
    size_t r_sums_at;          /* bytes from R to its columns' sums */
    bool r_full;               /* -128 may be in R */
    size_t x_at, x_qparams_at; /* scratch: quantized X, and scale and zero point of its rows */
    size_t h_at, h_thread;     /* scratch: quantized rows of h; so many bytes for each thread */
} lnt_rnn_int8;

typedef struct lnt_rnn {
    lnt_rnn_extents e;
    size_t padded; /* hidden rounded up to 16 */
    size_t row;    /* gate values of one row: gates * padded */
    int64_t kind;  /* LNT_ID_LSTM, GRU or RNN */
    bool dynamic;  /* DynamicLSTM, DynamicGRU */
    lnt_rnn_rule rule;
    const lnt_rnn_kernels *cells;
    lnt_rnn_weights w, r;
    lnt_rnn_extras extras;
    size_t gates_at; /* bytes into scratch memory: gate values of all steps */
    lnt_rnn_states states;
    lnt_rnn_product product;
    lnt_rnn_int8 int8;
} lnt_rnn;

/* What trimmed libraries have no operator for is left out of them. */
static inline bool lnt_rnn_is_int8(const lnt_rnn *m)
{
    return (LNT_HAS_DynamicLSTM || LNT_HAS_DynamicGRU) && m->dynamic;
}

/* ---- a run ---- */

typedef struct lnt_rnn_call {
    const lnt_rnn *m;
    const lnt_step *step;
    const float *x;
    const void *r; /* weights of a form, */
    lnt_b_form r_form;
    const int8_t *r_int8; /* or these, */
    const float *r_scale; /* with a scale for each column */
    const float *bias_r;  /* GRU's biases of the recurrent product, per direction; or NULL */
    const float *h0, *c0, *peephole;
    const void *lengths;
    float *y, *y_h, *y_c;
    char *scratch;
    bool shares_steps; /* each step's product is work for all threads */
} lnt_rnn_call;

static inline float *lnt_rnn_floats(const lnt_rnn_call *c, size_t at)
{
    return (float *)(void *)(c->scratch + at);
}

/* Row `at` of all [steps * batch], of X. */
static inline const float *lnt_rnn_input_row(const lnt_rnn *m, const float *x, int64_t at)
{
    const int64_t step = at / m->e.batch, entry = at % m->e.batch;
    return x + (m->e.batch_first ? entry * m->e.steps + step : at) * m->e.input;
}

/* Rows of the batch that take part in a step. */
typedef struct lnt_rnn_rows {
    unsigned n;
    const float *h[LNT_TILE_ROWS_MAX], *reset[LNT_TILE_ROWS_MAX];
    float *gates[LNT_TILE_ROWS_MAX];
    lnt_rnn_cell cell[LNT_TILE_ROWS_MAX];
} lnt_rnn_rows;

enum { LNT_RNN_CELLS = 2 };

/* gates (+)= a * panels [first, first + columns / 16) of each block of 16 units of R, bias included; then
 * what the units make of their gates. */
typedef struct lnt_recurrence {
    const lnt_rnn_call *c;
    int64_t direction;
    const lnt_rnn_rows *set;
    const float *const *a;
    size_t first, columns;
    bool accumulate;
    lnt_rnn_cell_fn cell[LNT_RNN_CELLS]; /* one after the other; the last may be NULL */
    uint8_t *h;                          /* room for quantized rows of a */
    /* Of those rows. */
    float scale[LNT_TILE_ROWS_MAX];
    int32_t zero[LNT_TILE_ROWS_MAX];
} lnt_recurrence;

/* ---- rnn_product.c ---- */
unsigned lnt_rnn_gates(const lnt_op *op);

/* ---- rnn.c ---- */
size_t lnt_rnn_extra_floats(const lnt_rnn *m);
/* Lays out biases and peepholes; b or p may be NULL. */
void lnt_rnn_lay_out_extras(const lnt_rnn *m, const float *b, const float *p, float *to);

/* ---- rnn_steps.c ---- */
lnt_status lnt_run_rnn(lnt_kernel *k, const lnt_step *s);
/* The cells of units [first, end) of all rows. */
void lnt_rnn_open_cells(const lnt_recurrence *r, size_t first, size_t end);

/* ---- rnn_float.c ---- */
/* Once the weights are bound. False: too many rows. */
bool lnt_rnn_bind_floats(const lnt_site *site, lnt_rnn *m, size_t *scratch);
/* W and R packed; the gates of all steps from the input. */
lnt_status lnt_rnn_multiply_floats(lnt_kernel *k, lnt_rnn_call *c, const float *bias);
/* A task over blocks of 16 units: arg is the lnt_recurrence; gates only. */
lnt_status lnt_rnn_recur_floats(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread);

/* ---- rnn_int8.c ---- */
lnt_status lnt_rnn_check_scales(const lnt_site *site, const lnt_rnn *m);
/* False: too many rows. */
bool lnt_rnn_bind_int8(const lnt_site *site, lnt_rnn *m, size_t *scratch);
/* W and R packed, their scales; the gates of all steps from the input. */
lnt_status lnt_rnn_multiply_int8(lnt_kernel *k, lnt_rnn_call *c, const float *bias);
/* Quantizes the rows a of the recurrence; then the task, as above, but with the cells. */
void lnt_rnn_quantize_states(lnt_recurrence *r);
lnt_status lnt_rnn_recur_int8(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread);

#endif
