/* qgemm.c — the scalar level of products of bytes. */
#include "ops/qgemm.h"

#include <string.h>

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
