/* qgemm.h — the kernel table of the qgemm family: int8 GEMM, uint8 A times int8 B with exact int32 accumulators.
 *
 * Weights are packed in panels of LNT_QPANEL (16) columns (LNT_LAYOUT_PANEL_I8), K ordered [tap][channel], the channels
 * padded with zeros to whole quads. Rows of A are uint8 of the same K. Zero points are applied to the accumulators:
 *
 *     sum of (a - za)(b - zb) = sum of a b - za * (sum of b) - zb * (sum of a - K * za) */
#ifndef LNT_OPS_QUANT_QGEMM_H
#define LNT_OPS_QUANT_QGEMM_H

#include "base/operand.h"
#include "formats/packed.h"
#include "ops/kernels.h"
#include "ops/rows/int8_rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LNT_QROWS_MAX = 32, LNT_QPANELS_MAX = 8 };

/* A tile: rows of A times one panel or several adjacent ones. A row may be the receptive field of a pixel of a
 * channels-last image: its taps are then contiguous runs of elements. For p < panels, r < rows and j < 16
 *
 *     c[p][r * 16 + j] = sum over t < taps, k < 4 * quads of
 *                        a[r][tap_offset[t] + k] * panel[p][t * quads + k / 4][j][k % 4]
 *
 * where elements of rows that are `moved` are stored as int8, less by 128. */
typedef struct lnt_qproduct {
    const uint8_t *const *a; /* [rows] */
    unsigned rows;
    const ptrdiff_t *tap_offset; /* [taps], in bytes */
    int64_t taps, quads;         /* quads of one tap */
    unsigned panels;             /* 1, or as many as the level takes at once */
    const int8_t *panel[LNT_QPANELS_MAX];
    const int32_t *sums; /* [panels][16], of the panels' columns */
    bool full;           /* -128 may be among the weights */
    bool moved;          /* for levels that take such rows */
    int32_t *c[LNT_QPANELS_MAX];
    const int8_t *ahead; /* NULL, or memory of a panel's size that is needed next, to be prefetched */
    const lnt_requantize_tile
        *requantize; /* NULL, or requantization within the tile: then c is not written. Without
                                             row and slope */
} lnt_qproduct;

/* The result type of a depthwise convolution. INT8: int8 or uint8. */
typedef enum lnt_qresult { LNT_QRESULT_INT8, LNT_QRESULT_INTS, LNT_QRESULT_FLOATS } lnt_qresult;

/* Pixels side by side: tap t of pixel i is at tap[t] + i * step, its output at y + i * pixel, in bytes. */
typedef struct lnt_qdepthwise_run {
    const uint8_t *const *tap; /* [taps] */
    size_t pixels;
    uint8_t *y;
} lnt_qdepthwise_run;

/* A depthwise convolution: with the accumulator of channel n,
 *
 *     acc_bias[n] + sum over t of (tap[t][n] ^ flip) * (w[t * w_tap + n] - zeros[n])
 *
 * the results are int8 or uint8, lnt_requantize(acc * scale[n]); int32, acc; or float, acc * scale[n] + bias[n]
 * clamped to low and high. */
typedef struct lnt_qdepthwise {
    const lnt_qdepthwise_run *run;
    size_t runs, taps, channels; /* taps: LNT_QTAPS_MAX or fewer */
    size_t step, pixel, w_tap;   /* w_tap: channels rounded up to 16, as far as parameters are readable */
    const int8_t *w;
    const int32_t *acc_bias, *zeros;
    bool has_w_zero;           /* zeros are not all 0 */
    const float *scale, *bias; /* bias: float results only */
    lnt_qresult result;
    float low, high; /* float results only */
    int32_t zero;    /* zero point of int8 or uint8 results */
    uint8_t flip;
    bool is_signed;
} lnt_qdepthwise;

enum { LNT_QTAPS_MAX = 64 };

static inline size_t lnt_qresult_bytes(lnt_qresult r)
{
    return r == LNT_QRESULT_INT8 ? 1 : 4;
}

/* A product whose results are integers, of rows of at most LNT_QTHIN bytes that follow one another without padding:
 *
 *     y[r * ld + n] = sum over k of ((a[r * depth + k] ^ flip) - zero) * (panel's weight k of n - zeros[n]) */
typedef struct lnt_qthin {
    const uint8_t *a;
    size_t rows, depth, columns, ld;
    const int8_t *panels; /* of all columns */
    const int32_t *sums, *zeros; /* of the columns, readable up to 16 */
    int32_t zero;
    int32_t *y;
    uint8_t flip;
    bool has_zeros; /* of the columns; they are not all 0 */
} lnt_qthin;

enum { LNT_QTHIN = 128 };

/* A product of at most LNT_QPLANE_ROWS rows of few quads, as those of lnt_qproduct, whose results are integers and
 * stand in planes, one for each column. With the rows' sums, unless these are NULL, and the columns' zeros
 *
 *     y[n * plane + r] = acc_bias[n] - sums[r] * zeros[n] + the product of row r and column n */
typedef struct lnt_qplanes {
    const uint8_t *const *a; /* [rows] */
    unsigned rows;
    const ptrdiff_t *tap_offset;
    int64_t taps, quads;  /* taps * quads: at most LNT_QPLANE_QUADS */
    const int8_t *panels; /* of all columns */
    size_t columns;
    const int32_t *acc_bias, *zeros, *sums; /* those of columns are readable up to 16 */
    int32_t *y;
    ptrdiff_t plane; /* in elements */
} lnt_qplanes;

enum { LNT_QPLANE_ROWS = 64, LNT_QPLANE_QUADS = 32 };

/* Has a level a kernel that makes integers itself? */
#if defined(__x86_64__)
enum { LNT_QTILES_OF_INTEGERS = true };
#else
enum { LNT_QTILES_OF_INTEGERS = false };
#endif

typedef struct lnt_qgemm_kernels {
    unsigned rows;     /* most rows of a tile */
    unsigned rows_by;  /* they are best a multiple of this */
    unsigned panels;   /* most panels */
    bool fewer_panels; /* may be had, too; else one */
    bool requantizes;  /* the tile can requantize its accumulators itself, */
    bool some_columns; /* of a panel that is not whole, too */
    bool takes_moved;  /* rows of int8 as they are, see lnt_qproduct */
    bool dequantizes;  /* integers takes a scale, and acc_bias a number of times */
    void (*tile)(const lnt_qproduct *p);
    /* NULL, or the tile as rows of *to from `first` on, without accumulators in memory; false, and nothing done, if it
     * is none that is computed so. */
    bool (*integers)(const lnt_qproduct *p, const lnt_integer_tile *to, unsigned first);
    void (*thin)(const lnt_qthin *t); /* or NULL */
    void (*planes)(const lnt_qplanes *t); /* or NULL */
    void (*depthwise)(const lnt_qdepthwise *d);
} lnt_qgemm_kernels;

/* May -128 be among weights? What is packed in a file says so. */
static inline bool lnt_qweights_are_full(const lnt_operand *weights)
{
    return !weights->packed || weights->packed->layout != LNT_LAYOUT_PANEL_I8;
}

/* The tap_offset of rows in one piece. */
extern const ptrdiff_t lnt_qone_run[1];

/* Bytes of a row of A: taps of whole quads. */
static inline int64_t lnt_qrow_bytes(const lnt_packed *p)
{
    return (int64_t)lnt_packed_panel_bytes(p) / LNT_QPANEL;
}

/* Panels of one product. */
static inline int64_t lnt_qpanels(const lnt_packed *p)
{
    return ((int64_t)p->N + LNT_QPANEL - 1) / LNT_QPANEL;
}

#endif
