/* gemm.h — the micro-kernels that matrix products, convolutions and recurrent layers are made of.
 *
 * One tile is a few rows of A times panels of B (formats/packed.h) giving as many rows of C:
 *
 *     C[i][n] = clamp(scale * sum over taps t, k < depth of A[i][tap_offset[t] + k] * B[t * depth + k][n]
 *                     + bias[n] + residual[i][n], low, high)
 *
 * A is only row pointers, so that a row may be a row of a matrix, the neighborhood of a pixel of a
 * channels-last image (taps), or a row gathered into scratch memory. C is row pointers too. */
#ifndef LNT_OPS_GEMM_GEMM_H
#define LNT_OPS_GEMM_GEMM_H

#include "formats/packed.h"
#include "ops/kernels.h"
#include "ops/conv/winograd.h"

#include <stdbool.h>
#include <stddef.h>

enum { LNT_TILE_ROWS_MAX = 10, LNT_FAR_FLOATS = 256 * 1024, LNT_TALL_COLUMNS = 2 * LNT_PANEL };
enum { LNT_FETCH_STEP = 4 };

typedef struct lnt_tile {
    const float *const *a;        /* [rows] */
    float *const *c;              /* [rows] */
    const float *const *residual; /* [rows], or NULL */
    const ptrdiff_t *tap_offset;  /* [taps], in floats from a[i] */
    size_t taps, depth;
    const float *b;        /* the panel of column 0 */
    size_t b_row;          /* floats from row to row of B: 16 in a panel, more where B is read in place */
    size_t b_panel;        /* floats from panel to panel */
    size_t first, columns; /* columns [first, columns) are computed; first is a multiple of 16, the pointers
                              are to column 0 */
    const float *bias;     /* [columns], or NULL */
    float scale, low, high;
    bool accumulate; /* the sum goes on from what is in C, unscaled */
    bool b_is_far;   /* B is more than LNT_FAR_FLOATS: it will not come from a second-level cache */
    /* Fetched meanwhile for later calls: so many lines for every LNT_FETCH_STEP elements of K of a part, so
     * many floats apart. */
    const float *ahead;
    unsigned ahead_lines;
    size_t ahead_step;
} lnt_tile;

/* Few columns leave much of a vector empty: then each column of B lies by itself, [columns][b_panel] with its
 * taps * depth elements one after the other, and b_row is not used. At most LNT_TILE_ROWS_MAX rows. */
typedef void (*lnt_narrow_fn)(const lnt_tile *t, unsigned rows);
enum { LNT_NARROW_COLUMNS = 12 /* as many or fewer */, LNT_NARROW_ROWS = 8 /* go well together */ };

/* A run of pixels of a depthwise convolution, some of its channels. Pixel i takes taps t of each of the
 * kernel's lines (its extent along x, or y) from pixel first + i * stride + t * spacing of an image's line,
 * as far as that lies in [0, width):
 *
 *     c[i * pixel + n] = clamp(sum over l, t of line[l][that * in_pixel + n] * w[l][t * w_tap + n]
 *                              + bias[n] + residual[i * pixel + n], low, high)
 *
 * In groups of `features` that share group_channels channels of the image, it is the sum over these, too: of
 * line[l][that * in_pixel + n / features * group_channels + k] * w[l][t * w_tap + k * w_channel + n]. See
 * lnt_depthwise_takes for what groups there may be. */
typedef struct lnt_depthwise {
    const float *const *line; /* [lines], pixel 0 */
    const float *const *w;    /* [lines], readable up to channels rounded up to 16 */
    size_t lines, taps;
    ptrdiff_t first, width, stride, spacing;
    size_t in_pixel, pixel; /* floats from pixel to pixel, of the image and of the result */
    size_t w_tap, pixels, channels;
    size_t features, group_channels, w_channel; /* features 0: one channel per group */
    float *c;
    const float *residual; /* lies as c does, or NULL */
    const float *bias;     /* [channels] or NULL */
    float low, high;
} lnt_depthwise;

/* Groups whose channels, wherever a vector of features begins, lie in one vector: one channel, or powers of
 * two and no more channels than features. */
static inline bool lnt_depthwise_takes(int64_t group_channels, int64_t features)
{
    const bool powers = (group_channels & (group_channels - 1)) == 0 && (features & (features - 1)) == 0;
    return group_channels >= 1 && features >= 1 && features < LNT_PANEL &&
           (group_channels == 1 || (group_channels <= features && powers));
}

/* A run of pixels of a convolution of few channels: c[i * c_step + n] = clamp(sum over k < depth of
 * x[i * step + offset[k]] * B[k][n] + bias[n], low, high). Where features are planes it is c[n * c_step + i],
 * step is 1 and there are LNT_PLANE_PIXELS or more. */
typedef struct lnt_stem {
    const float *x;
    size_t step;
    const uint32_t *offset; /* [depth] */
    size_t depth;
    const float *b; /* panels, b_panel floats apart */
    size_t b_panel;
    const float *bias;      /* [columns] or NULL */
    size_t pixels, columns; /* pixels: LNT_STEM_PIXELS or more */
    float *c;
    size_t c_step;
    float low, high;
} lnt_stem;

/* Winograd's transforms (ops/conv/winograd.h) of tiles side by side, LNT_WINOGRAD_RUN or fewer. */
enum { LNT_WINOGRAD_RUN = 8 };

/* Patches of an image: element (i, j) of B' d B for tile t and channel n goes to
 * v[(6 i + j) * v_point + t * v_tile + n]. Column x of the first patch is pixel first + x of a line; those
 * outside [0, width) are 0. */
typedef struct lnt_winograd_in {
    const float *line[LNT_WINOGRAD_PATCH]; /* pixel 0 */
    size_t pixel[LNT_WINOGRAD_PATCH];      /* floats from pixel to pixel of that line; 0: a line of zeros */
    ptrdiff_t first, width;
    size_t tiles, channels;
    float *v; /* rows of tiles writable up to channels rounded up to 16 */
    size_t v_tile, v_point;
} lnt_winograd_in;

/* Pixels from products, which lie as v does: line i, pixel x, column n goes to
 * c[i * line + x * pixel + n] = clamp(A' m A + bias[n] + residual there, low, high). */
typedef struct lnt_winograd_out {
    const float *m;
    size_t m_tile, m_point;
    size_t tiles, columns;
    size_t lines, width; /* of the tiles' that there are: lines 1 to 4, pixels of all of them together */
    float *c;
    const float *residual; /* lies as c does, or NULL */
    size_t line, pixel;
    const float *bias; /* [columns] or NULL */
    float low, high;
} lnt_winograd_out;

/* The transforms of a line whose taps stand `apart` pixels from each other. A tile of `tile` (4 or 6) outputs
 * of each of so many neighbors is as many rows, r = t * apart + p. Point j of B' d for channel n goes to
 * v[j * v_point + r * v_row + n], where input i of the row is pixel first + (t * tile + i) * apart + p; those
 * outside [0, width) are 0. */
typedef struct lnt_winograd_line_in {
    const float *x;     /* pixel 0, channels floats each */
    const float *zeros; /* [channels] */
    ptrdiff_t first, width, apart, tile, rows;
    size_t channels, points; /* points: 8, or 7 without infinity */
    float *v; /* rows writable up to channels rounded up to 16 */
    size_t v_row, v_point;
} lnt_winograd_line_in;

/* Output i of row r is pixel (t * tile + i) * apart + p, if that is below width: column n of pixel x goes to
 * c[x * pixel + n] = clamp(A' m + bias[n] + residual there, low, high). */
typedef struct lnt_winograd_line_out {
    const float *m; /* lies as v does */
    size_t m_row, m_point;
    ptrdiff_t width, apart, tile, rows;
    size_t columns, points;
    float *c;
    const float *residual; /* lies as c does, or NULL */
    size_t pixel;
    const float *bias; /* [columns] or NULL */
    float low, high;
} lnt_winograd_line_out;

enum { LNT_STEM_PIXELS = 14, LNT_PLANE_PIXELS = LNT_PANEL };

typedef void (*lnt_tile_fn)(const lnt_tile *t);
typedef void (*lnt_stem_fn)(const lnt_stem *s);
typedef void (*lnt_depthwise_fn)(const lnt_depthwise *d);
typedef void (*lnt_winograd_in_fn)(const lnt_winograd_in *w);
typedef void (*lnt_winograd_out_fn)(const lnt_winograd_out *w);
typedef void (*lnt_winograd_line_in_fn)(const lnt_winograd_line_in *w);
typedef void (*lnt_winograd_line_out_fn)(const lnt_winograd_line_out *w);

/* ---- recurrent cells ---- */

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

/* One row of one step. Gate values lie as the packed weights' columns do, [hidden / 16][gates][16]; state and
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

typedef struct lnt_gemm_kernels {
    unsigned tile_rows;   /* most rows of a tile at this level */
    unsigned tile_panels; /* panels it takes at once, at least 1 */
    unsigned depth_block; /* length of K after which a panel should be left to be used again */
    unsigned tall_rows;   /* most rows where columns are LNT_TALL_COLUMNS or fewer: tile_rows, or more */
    lnt_tile_fn tile[LNT_TILE_ROWS_MAX + 1]; /* by rows, 1 .. tall_rows */
    lnt_narrow_fn narrow;
    unsigned lanes; /* floats in a vector */
    lnt_depthwise_fn depthwise;
    lnt_stem_fn stem, stem_planes;
    lnt_winograd_in_fn winograd_in;
    lnt_winograd_out_fn winograd_out;
    lnt_winograd_line_in_fn winograd_line_in;
    lnt_winograd_line_out_fn winograd_line_out;
    /* For measuring: `rounds` times fma_lanes independent multiply-adds, the results summed into *sink. */
    void (*fma)(size_t rounds, float *sink);
    unsigned fma_lanes;
    lnt_rnn_cell_fn rnn, lstm;
    lnt_rnn_cell_fn gru_gates; /* makes z and r of recurrent, and reset */
    lnt_rnn_cell_fn gru_state; /* the new h, from what gru_gates left */
} lnt_gemm_kernels;

/* Are `columns` sums over taps * depth elements of many rows had sooner along K than side by side in vectors?
 * Along K each of them costs some additions across a vector besides. */
static inline bool lnt_is_narrow(const lnt_gemm_kernels *kernels, int64_t columns, int64_t taps,
                                 int64_t depth)
{
    enum { ACROSS = 5 /* vectors' worth */ };
    const int64_t lanes = kernels->lanes, vectors = (depth + lanes - 1) / lanes;
    return columns <= LNT_NARROW_COLUMNS &&
           columns * (taps * vectors + ACROSS) < (columns + lanes - 1) / lanes * taps * depth;
}

extern const lnt_gemm_kernels lnt_gemm_scalar, lnt_gemm_avx2, lnt_gemm_avx512, lnt_gemm_neon;

#endif
