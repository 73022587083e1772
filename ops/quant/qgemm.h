/* qgemm.h — the kernel table of the qgemm family: exact products of bytes.
 *
 * Weights lie in panels of LNT_QPANEL (16) columns as LNT_LAYOUT_PANEL_I8 has them, K running [tap][channel], the
 * channels padded with zeros to whole quads. Rows of A are uint8 of the same K. Zero points are taken into account
 * afterwards:
 *
 *     sum of (a - za)(b - zb) = sum of a b - za * (sum of b) - zb * (sum of a - K * za) */
#ifndef LNT_OPS_QUANT_QGEMM_H
#define LNT_OPS_QUANT_QGEMM_H

#include "formats/packed.h"
#include "ops/kernels.h"
#include "ops/rows/int8_rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LNT_QROWS_MAX = 32, LNT_QPANELS_MAX = 8 };

/* Rows of A times one panel, or a few beside each other. A row may be the neighborhood of a pixel of a
 * channels-last image: its taps are then as many runs of bytes. For p < panels, r < rows and j < 16
 *
 *     c[p][r * 16 + j] = sum over t < taps, k < 4 * quads of
 *                        a[r][tap_offset[t] + k] * panel[p][t * quads + k / 4][j][k % 4] */
typedef struct lnt_qproduct {
    const uint8_t *const *a; /* [rows] */
    unsigned rows;
    const ptrdiff_t *tap_offset; /* [taps], in bytes */
    int64_t taps, quads;         /* quads of one tap */
    unsigned panels;             /* 1, or as many as the level takes at once */
    const int8_t *panel[LNT_QPANELS_MAX];
    int32_t *c[LNT_QPANELS_MAX];
    const int8_t *ahead;     /* NULL, or what is wanted next: as much as a panel, to be fetched meanwhile */
    const lnt_qbytes *bytes; /* NULL, or what becomes of the sums at once: then c is not written. As many
                                columns as the panels have; no row, no slope */
} lnt_qproduct;

/* What a depthwise convolution gives. */
typedef enum lnt_qresult { LNT_QRESULT_BYTES, LNT_QRESULT_INTS, LNT_QRESULT_FLOATS } lnt_qresult;

/* Pixels side by side: tap t of pixel i is at tap[t] + i * step, its output at y + i * pixel, in bytes. */
typedef struct lnt_qdepthwise_run {
    const uint8_t *const *tap; /* [taps] */
    size_t pixels;
    uint8_t *y;
} lnt_qdepthwise_run;

/* A depthwise convolution: of the sum of channel n,
 *
 *     plus[n] + sum over t of (tap[t][n] ^ flip) * (w[t * w_tap + n] - zeros[n])
 *
 * the results are bytes, lnt_requantize(sum * scale[n]); int32, the sum; or floats, sum * scale[n] + bias[n]
 * brought between low and high. */
typedef struct lnt_qdepthwise {
    const lnt_qdepthwise_run *run;
    size_t runs, taps, channels; /* taps: LNT_QTAPS_MAX or fewer */
    size_t step, pixel, w_tap;   /* w_tap: channels rounded up to 16, as far as numbers can be read */
    const int8_t *w;
    const int32_t *plus, *zeros;
    bool moved;                /* zeros are not all 0 */
    const float *scale, *bias; /* bias: of floats */
    lnt_qresult result;
    float low, high; /* of floats */
    int32_t zero;    /* of bytes */
    uint8_t flip;
    bool is_signed;
} lnt_qdepthwise;

enum { LNT_QTAPS_MAX = 64 };

static inline size_t lnt_qresult_bytes(lnt_qresult r)
{
    return r == LNT_QRESULT_BYTES ? 1 : 4;
}

typedef struct lnt_qgemm_kernels {
    unsigned rows;     /* most rows of a tile */
    unsigned rows_by;  /* they are best a multiple of this */
    unsigned panels;   /* most panels */
    bool fewer_panels; /* may be had, too; else one */
    bool to_bytes;     /* sums may go as bytes at once */
    void (*tile)(const lnt_qproduct *p);
    void (*depthwise)(const lnt_qdepthwise *d);
} lnt_qgemm_kernels;

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
