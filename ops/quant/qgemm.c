/* qgemm.c — int8 GEMM at the scalar level. */
#include "ops/quant/qgemm.h"
#include "ops/simd/simd.h"

#include "ops/quant/qdepthwise.inc.h"

#include <string.h>

const ptrdiff_t lnt_qone_run[1] = {0};

static void tile(const lnt_qproduct *p)
{
    for (unsigned r = 0; r < p->rows; r++) {
        int32_t acc[LNT_QPANEL] = {0};
        const int8_t *b = p->panel[0];
        for (int64_t t = 0; t < p->taps; t++) {
            const uint8_t *x = p->a[r] + p->tap_offset[t];
            for (int64_t q = 0; q < p->quads; q++, x += 4, b += 4 * LNT_QPANEL)
                for (int j = 0; j < LNT_QPANEL; j++)
                    acc[j] +=
                        x[0] * b[4 * j] + x[1] * b[4 * j + 1] + x[2] * b[4 * j + 2] + x[3] * b[4 * j + 3];
        }
        memcpy(p->c[0] + r * LNT_QPANEL, acc, sizeof acc);
    }
}

const lnt_qgemm_kernels lnt_qgemm_scalar = {
    .rows = 1, .rows_by = 1, .panels = 1, .tile = tile, .depthwise = depthwise};
