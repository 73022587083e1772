/* qconv.h — what the two ways of convolving bytes share (qconv.c, qconv_panels.c). */
#ifndef LNT_OPS_QCONV_H
#define LNT_OPS_QCONV_H

#include "ops/qgemm.h"
#include "ops/quantise.h"
#include "ops/row.h"
#include "ops/window.h"

/* Neighbourhoods of pixels in a channels-last image of bytes, as rows [tap][channel] of whole quads. */
typedef struct lnt_qneighbours {
    lnt_window w;
    int64_t pixel, depth; /* channels of all groups, of one group */
    int64_t padded;       /* depth in whole quads */
    bool lies;            /* a row is the pixel as it lies */
    bool runs;            /* taps along x lie side by side */
} lnt_qneighbours;

lnt_qneighbours lnt_qneighbours_bind(const lnt_window *w, int64_t groups, int64_t depth);
/* The row of output position o in a group; where it has to be gathered, in row. zero fills the padding. */
const uint8_t *lnt_qneighbours_of(const lnt_qneighbours *n, const uint8_t *image, int64_t o, int64_t group,
                                  uint8_t zero, uint8_t *row);

/* dst[column][row] = src[row][column] ^ flip for bytes; steps are from row to row, and from column to column.
 */
void lnt_turn_bytes(const uint8_t *src, int64_t rows, int64_t columns, int64_t src_step, uint8_t *dst,
                    int64_t dst_step, uint8_t flip);

typedef struct lnt_qconv {
    const lnt_row_kernels *row;
    const lnt_qgemm_kernels *kernels;
    bool linear; /* QLinearConv: its operands are scaled, and so is the output */
    unsigned w_in, x_zero, w_zero;
    lnt_window w;
    int64_t batch, channels, filters, groups, taps;
    bool x_signed, w_signed;
    size_t numbers_at;              /* scratch: per filter a scale, a zero point and a bias */
    size_t thread_at, thread_bytes; /* scratch of each thread */
    /* By panels only. */
    lnt_packed record;
    lnt_qneighbours rows;
    int64_t depth, columns;     /* channels and filters of one group */
    int64_t row_bytes, panels;  /* of one group */
    bool pack;                  /* the weights are packed in each run */
    size_t image_at, packed_at; /* scratch: one image channels-last; the weights packed */
} lnt_qconv;

typedef struct lnt_qconv_job {
    const lnt_qconv *p;
    const lnt_step *s;
    const uint8_t *x, *w; /* x: one image for panels, else all */
    uint8_t *y;
    int32_t x_zero, y_zero;
    bool y_signed;
    float *scale;         /* [filters] of sums in the output */
    int32_t *zero, *bias; /* [filters] */
    uint8_t *image;
    bool sums_count; /* of rows of A: a weight's zero point is not 0 */
    const int8_t *packed;
    const int32_t *column_sums;
    char *scratch;
} lnt_qconv_job;

/* The record of weights that go by panels; false for those done row by row instead. */
bool lnt_qconv_record(const lnt_node *node, const lnt_operand *weights, lnt_packed *record);

lnt_status lnt_qconv_bind_panels(lnt_site *site, lnt_qconv *p);
lnt_status lnt_qconv_run_panels(lnt_kernel *k, lnt_qconv_job *job);

#endif
