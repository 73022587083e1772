/* qgemm.c — packing of byte weights, and the scalar level of their products. */
#include "ops/qgemm.h"

#include <string.h>

void lnt_qpack_panel(const lnt_qweights *w, int64_t p, int8_t *dst, int32_t *sums)
{
    const int64_t quads = (w->depth + 3) / 4, first = p * LNT_QPANEL;
    memset(dst, 0, (size_t)(w->taps * quads * 4 * LNT_QPANEL));
    for (int64_t j = 0; j < LNT_QPANEL; j++) {
        sums[j] = 0;
        if (first + j >= w->columns)
            continue;
        for (int64_t t = 0; t < w->taps; t++)
            for (int64_t d = 0; d < w->depth; d++) {
                const uint8_t b = w->data[t * w->tap_step + d * w->depth_step + (first + j) * w->column_step];
                const int8_t v = (int8_t)(w->is_signed ? b : b ^ 0x80);
                dst[((t * quads + d / 4) * LNT_QPANEL + j) * 4 + d % 4] = v;
                sums[j] += v;
            }
    }
}

static void tile(const uint8_t *const *a, unsigned rows, const int8_t *panel, int64_t quads, int32_t *c)
{
    for (unsigned r = 0; r < rows; r++) {
        int32_t acc[LNT_QPANEL] = {0};
        for (int64_t q = 0; q < quads; q++) {
            const uint8_t *x = a[r] + 4 * q;
            const int8_t *b = panel + q * 4 * LNT_QPANEL;
            for (int j = 0; j < LNT_QPANEL; j++)
                acc[j] += x[0] * b[4 * j] + x[1] * b[4 * j + 1] + x[2] * b[4 * j + 2] + x[3] * b[4 * j + 3];
        }
        memcpy(c + r * LNT_QPANEL, acc, sizeof acc);
    }
}

const lnt_qgemm_kernels lnt_qgemm_scalar = {.rows = 1, .tile = tile};
