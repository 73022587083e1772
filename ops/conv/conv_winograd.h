/* conv_winograd.h — what WinogradConv's two kinds share: squares of 3x3 taps, and taps in a line. */
#ifndef LNT_OPS_CONV_CONV_WINOGRAD_H
#define LNT_OPS_CONV_CONV_WINOGRAD_H

#include "ops/conv/conv.h"
#include "ops/conv/conv_kernels.h"
#include "ops/gemm/gemm_driver.h"
#include "ops/conv/winograd.h"

typedef struct lnt_winograd lnt_winograd;
typedef struct lnt_winograd_call lnt_winograd_call;

typedef struct lnt_winograd_kind {
    /* Fills in kind's own part of *w, of which the geometry is known. */
    void (*cut)(lnt_winograd *w);
    /* Transforms the inputs of tiles [first, stop) of one sequence: v is that of the first one. */
    void (*in)(const lnt_winograd_call *c, int64_t first, int64_t stop, float *v);
    /* Makes pixels of their products m, features [n, n + the plan's columns). */
    void (*out)(lnt_kernel *k, const lnt_winograd_call *c, int64_t first, int64_t stop, const float *m,
                int64_t n);
} lnt_winograd_kind;

extern const lnt_winograd_kind lnt_winograd_square, lnt_winograd_line;

struct lnt_winograd {
    const lnt_winograd_kind *kind;
    lnt_conv g;
    lnt_conv_images images;
    lnt_store store;
    const lnt_epilogue *epilogue; /* run with each run of tiles */
    const lnt_winograd_kernels *transforms;
    size_t element;     /* bytes of a float, or of a half: floats of the following are elements */
    lnt_gemm_plan plan; /* of a block: a product for each point */
    size_t a_offset[LNT_WINOGRAD_POINTS], b_offset[LNT_WINOGRAD_POINTS];
    const float *zeros; /* a pixel of them */

    /* Kind's own part: tiles number sequences * tiles, a block has some of one sequence. */
    int64_t sequences, tiles;
    size_t points;
    int64_t rows;         /* of a product, for each tile */
    int64_t groups;       /* of taps: each takes its inputs a tile further on */
    int64_t across, down; /* square: tiles of an image */
    int64_t tile;         /* outputs of a row */

    int64_t blocks, parts;      /* of a sequence's tiles; of the features */
    size_t v_row, m_row, point; /* floats from row to row; rows from point to point */
    /* Weights are taps as they are: those of a part are transformed to u before they are multiplied. */
    bool taps;
    int64_t chunks;     /* of the channels, transformed one after the other */
    bool parts_outside; /* blocks of a part one after the other, not parts of a block */
    lnt_b_form taps_form;
    size_t u_point; /* floats */
    size_t held_at, u_at, v_at, m_at, thread_bytes;
    size_t gather_at, threads_at;
};

struct lnt_winograd_call {
    const lnt_winograd *w;
    const lnt_step *step;
    const float *x, *bias, *residual;
    float *y;
    int64_t ld;    /* floats from pixel to pixel of y */
    char *threads; /* their memory */
    lnt_gemm_call gemm;
};

/* From one point to the next. */
static inline size_t lnt_winograd_v_point(const lnt_winograd *w)
{
    return w->point * w->v_row;
}

static inline size_t lnt_winograd_m_point(const lnt_winograd *w)
{
    return w->point * w->m_row;
}

#endif
