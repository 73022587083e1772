/* qgemm.h — the kernel table of the qgemm family: exact products of bytes.
 *
 * Weights lie in panels of 16 columns as LNT_LAYOUT_PANEL_I8 has them, K running [tap][channel], the channels
 * padded with zeros to whole quads. Rows of A are uint8 of the same K. Zero points are taken into account
 * afterwards:
 *
 *     sum of (a - za)(b - zb) = sum of a b - za * (sum of b) - zb * (sum of a - K * za) */
#ifndef LNT_OPS_QGEMM_H
#define LNT_OPS_QGEMM_H

#include "formats/packed.h"
#include "ops/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LNT_QPANEL = LNT_PANEL, LNT_QROWS_MAX = 14 };

typedef struct lnt_qgemm_kernels {
    unsigned rows; /* most rows of a tile */
    /* c[r * 16 + j] = sum over k < 4 * quads of a[r][k] * panel[k / 4][j][k % 4], for r < rows and j < 16 */
    void (*tile)(const uint8_t *const *a, unsigned rows, const int8_t *panel, int64_t quads, int32_t *c);
} lnt_qgemm_kernels;

extern const lnt_qgemm_kernels lnt_qgemm_scalar, lnt_qgemm_avx2, lnt_qgemm_avx512vnni, lnt_qgemm_neon,
    lnt_qgemm_dotprod, lnt_qgemm_i8mm;

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
