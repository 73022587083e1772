/* qgemm_dotprod.c — int8 GEMM at the dotprod level: SDOT, which multiplies int8 by int8. */
#define SIGNED 1
#define DOT(acc, b, a, lane) vdotq_laneq_s32(acc, b, a, lane)
#include "ops/quant/qgemm_dot.inc.h"

enum { ROWS = 6 * DOT_ROWS };

static __attribute__((noinline)) void some_rows(unsigned rows, unsigned first, const lnt_qproduct *p,
                                                const shared *s)
{
    switch (rows) {
    case 1: dot_rows(1, first, p, s); return;
    case 2: dot_rows(2, first, p, s); return;
    case 3: dot_rows(3, first, p, s); return;
    default: dot_rows(4, first, p, s); return;
    }
}

/* Rows by fives; six to nine that are left as two about equal parts. */
static void tile(const lnt_qproduct *p)
{
    shared s;
    share(p, SIGNED, &s);
    for (unsigned n, first = 0, left = p->rows; left > 0; first += n, left -= n) {
        n = left >= 2 * DOT_ROWS ? DOT_ROWS : left > DOT_ROWS ? (left + 1) / 2 : left;
        if (n == DOT_ROWS)
            dot_rows(DOT_ROWS, first, p, &s);
        else
            some_rows(n, first, p, &s);
    }
}

const lnt_qgemm_kernels lnt_qgemm_dotprod = {QGEMM_TABLE(DOT_ROWS, true, tile)};
