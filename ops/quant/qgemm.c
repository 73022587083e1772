/* qgemm.c — int8 GEMM at the scalar level: a few rows of A, widened once for all columns of a panel, by as many of
 * these as registers are left for. */
/* GCC 12 otherwise lifts loads far above their uses and then has to spill accumulators. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif
#define LNT_SIMD_SINGLE
#include "ops/quant/qgemm.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"
#include "ops/simd/simd_quad.h"

#include "ops/quant/qdepthwise.inc.h"

#include <string.h>

const ptrdiff_t lnt_qone_run[1] = {0};

/* Rows of a tile are taken four, two or one at a time; CHUNK quads of them are widened at a time. */
enum { ROWS = 8, CHUNK = 64, SUMS = 4 };

/* Adds the products of `rows` rows, whose quads stand side by side, with columns [0, columns) of a panel. */
LNT_INLINE void block(const quad *a, const unsigned rows, const int8_t *panel, const unsigned columns,
                      size_t quads, int32_t *c)
{
    uint32_t acc[SUMS][SUMS];
    UNROLL_FOR(4, unsigned i = 0; i < rows; i++)
        UNROLL_FOR(4, unsigned j = 0; j < columns; j++)
            acc[i][j] = (uint32_t)c[i * LNT_QPANEL + j];
    for (size_t q = 0; q < quads; q++, a += rows, panel += 4 * LNT_QPANEL) {
        quad x[SUMS];
        UNROLL_FOR(4, unsigned j = 0; j < columns; j++) {
            const quad y = quad_of_i8(panel + 4 * j);
            UNROLL_FOR(4, unsigned i = 0; i < rows; i++) {
                if (j == 0)
                    x[i] = quad_load(a + i);
                acc[i][j] = quad_dot(acc[i][j], x[i], y);
            }
        }
    }
    UNROLL_FOR(4, unsigned i = 0; i < rows; i++)
        UNROLL_FOR(4, unsigned j = 0; j < columns; j++)
            c[i * LNT_QPANEL + j] = (int32_t)acc[i][j];
}

/* All columns. */
#define BLOCKS(rows, columns)                                                                                \
    static void blocks_of_##rows(const quad *a, const int8_t *panel, size_t quads, int32_t *c)               \
    {                                                                                                        \
        for (unsigned j = 0; j < LNT_QPANEL; j += columns)                                                   \
            block(a, rows, panel + 4 * j, columns, quads, c + j);                                            \
    }
BLOCKS(4, 1)
BLOCKS(2, 2)
BLOCKS(1, 4)
#undef BLOCKS

/* Quads of some rows, side by side: n of them from quad *at of the tap at *offset on, which move on. */
static void widen(const uint8_t *const *a, unsigned rows, size_t tap_quads, const ptrdiff_t **offset,
                  size_t *at, size_t n, quad *to)
{
    for (size_t run; n > 0; n -= run, to += run * rows) {
        run = tap_quads - *at < n ? tap_quads - *at : n;
        for (unsigned r = 0; r < rows; r++) {
            const uint8_t *x = a[r] + **offset + 4 * *at, *end = x + 4 * run;
            for (quad *y = to + r; x < end; x += 4, y += rows)
                *y = quad_of_u8(x, 0);
        }
        *at += run;
        if (*at == tap_quads) {
            *at = 0;
            ++*offset;
        }
    }
}

static void tile(const lnt_qproduct *p)
{
    const size_t tap_quads = (size_t)p->quads, quads = (size_t)p->taps * tap_quads;
    quad wide[SUMS * CHUNK];
    memset(p->c[0], 0, p->rows * LNT_QPANEL * sizeof *p->c[0]);
    for (unsigned r = 0, rows; r < p->rows; r += rows) {
        const ptrdiff_t *offset = p->tap_offset;
        size_t at = 0;
        int32_t *c = p->c[0] + r * LNT_QPANEL;
        rows = p->rows - r >= 4 ? 4 : p->rows - r >= 2 ? 2 : 1;
        for (size_t q = 0, n; q < quads; q += n) {
            const int8_t *panel = p->panel[0] + q * 4 * LNT_QPANEL;
            n = quads - q < CHUNK ? quads - q : CHUNK;
            widen(p->a + r, rows, tap_quads, &offset, &at, n, wide);
            if (rows == 4)
                blocks_of_4(wide, panel, n, c);
            else if (rows == 2)
                blocks_of_2(wide, panel, n, c);
            else
                blocks_of_1(wide, panel, n, c);
        }
    }
}

const lnt_qgemm_kernels lnt_qgemm_scalar = {
    .rows = ROWS, .rows_by = 4, .panels = 1, .tile = tile, .depthwise = depthwise};
