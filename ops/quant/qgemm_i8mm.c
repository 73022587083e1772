/* qgemm_i8mm.c — int8 GEMM at the i8mm level: SUDOT, which multiplies int8 by uint8. */
#define SIGNED 0
#define DOT(acc, b, a, lane) vsudotq_laneq_s32(acc, b, vreinterpretq_u8_s8(a), lane)
#include "ops/quant/qgemm_dot.inc.h"

const lnt_qgemm_kernels lnt_qgemm_i8mm = {QGEMM_TABLE};
