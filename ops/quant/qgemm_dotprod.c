/* qgemm_dotprod.c — int8 GEMM at the dotprod level: SDOT, which multiplies int8 by int8. */
#define SIGNED 1
#define DOT(acc, b, a, lane) vdotq_laneq_s32(acc, b, a, lane)
#include "ops/quant/qgemm_dot.inc.h"

enum { ROWS = DOT_ROWS };

static void tile(const lnt_qproduct *p)
{
    switch (p->rows) {
    case 1: dot_tile(1, p); return;
    case 2: dot_tile(2, p); return;
    case 3: dot_tile(3, p); return;
    case 4: dot_tile(4, p); return;
    case 5: dot_tile(5, p); return;
    default: return;
    }
}

const lnt_qgemm_kernels lnt_qgemm_dotprod = {QGEMM_TABLE(1)};
