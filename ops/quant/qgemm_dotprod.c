/* qgemm_dotprod.c — int8 GEMM at the dotprod level: SDOT, which multiplies int8 by int8. */
#define SIGNED 1
#define DOT(acc, b, a, lane) vdotq_laneq_s32(acc, b, a, lane)
#include "ops/quant/qgemm_dot.inc.h"

const lnt_qgemm_kernels lnt_qgemm_dotprod = {QGEMM_TABLE};
