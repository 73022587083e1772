/* qgemm.h — the kernel table of the qgemm family: exact products of bytes.
 *
 * Weights lie in panels of 16 columns, [N / 16][K / 4][16][4], as int8; K runs [tap][depth], the depth padded
 * with zeros to whole quads. Rows of A are uint8 of the same K. Zero points are taken into account
 * afterwards:
 *
 *     sum of (a - za)(b - zb) = sum of a b - za * (sum of b) - zb * (sum of a - K * za) */
#ifndef LNT_OPS_QGEMM_H
#define LNT_OPS_QGEMM_H

#include "ops/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LNT_QPANEL = 16, LNT_QROWS_MAX = 14 };

typedef struct lnt_qgemm_kernels {
    unsigned rows; /* most rows of a tile */
    /* c[r * 16 + j] = sum over k < 4 * quads of a[r][k] * panel[k / 4][j][k % 4], for r < rows and j < 16 */
    void (*tile)(const uint8_t *const *a, unsigned rows, const int8_t *panel, int64_t quads, int32_t *c);
} lnt_qgemm_kernels;

extern const lnt_qgemm_kernels lnt_qgemm_scalar, lnt_qgemm_avx2, lnt_qgemm_avx512vnni, lnt_qgemm_neon;

/* Where the weights to be packed lie: element (tap, d, n) at tap * tap_step + d * depth_step + n *
 * column_step. */
typedef struct lnt_qweights {
    const uint8_t *data;
    bool is_signed; /* uint8 weights are moved by -128, and so must their zero points be */
    int64_t taps, depth, columns;
    int64_t tap_step, depth_step, column_step;
} lnt_qweights;

/* Bytes of a row of A: taps of whole quads. */
static inline int64_t lnt_qrow_bytes(const lnt_qweights *w)
{
    return w->taps * ((w->depth + 3) / 4 * 4);
}

static inline int64_t lnt_qpanels(const lnt_qweights *w)
{
    return (w->columns + LNT_QPANEL - 1) / LNT_QPANEL;
}

/* Packs panel p to dst [16 * lnt_qrow_bytes] and its columns' sums to sums[16]. */
void lnt_qpack_panel(const lnt_qweights *w, int64_t p, int8_t *dst, int32_t *sums);

#endif
