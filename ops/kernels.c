/* kernels.c — which table serves which level. A family without a version of its own at a level is served by
 * the next lower one: never an empty slot, but for families that no operator of a trimmed library uses. */
#include "ops/kernels.h"

#include "ops/attention/attend.h"
#include "ops/gemm/gemm.h"
#include "ops/op.h"
#include "ops/elementwise/program_kernels.h"
#include "ops/quant/qgemm.h"
#include "ops/rows/row.h"

/* Families that a trimmed library may have no operator for. */
enum {
    HAS_BYTES = LNT_HAS_MatMulInteger || LNT_HAS_QLinearMatMul || LNT_HAS_MatMulIntegerToFloat ||
                LNT_HAS_DynamicQuantizeMatMul || LNT_HAS_ConvInteger || LNT_HAS_QLinearConv ||
                LNT_HAS_DynamicMatMul || LNT_HAS_DynamicConv || LNT_HAS_DynamicLSTM || LNT_HAS_DynamicGRU
};
#define ATTEND(level) (LNT_HAS_Attention ? &lnt_attend_##level : NULL)
#define QGEMM(level) (HAS_BYTES ? &lnt_qgemm_##level : NULL)

static const lnt_kernels tables[LNT_LEVEL_COUNT] = {
#if !defined(LNT_NEON_ONLY)
    [LNT_LEVEL_SCALAR] = {&lnt_gemm_scalar, &lnt_program_scalar, &lnt_row_scalar, QGEMM(scalar),
                          ATTEND(scalar)},
#endif
#if defined(__x86_64__)
    [LNT_LEVEL_AVX2] = {&lnt_gemm_avx2, &lnt_program_avx2, &lnt_row_avx2, QGEMM(avx2), ATTEND(avx2)},
    [LNT_LEVEL_AVX512] = {&lnt_gemm_avx512, &lnt_program_avx512, &lnt_row_avx512, QGEMM(avx2),
                          ATTEND(avx512)},
    [LNT_LEVEL_AVX512VNNI] = {&lnt_gemm_avx512, &lnt_program_avx512, &lnt_row_avx512, QGEMM(avx512vnni),
                              ATTEND(avx512)},
    [LNT_LEVEL_AMX] = {&lnt_gemm_avx512, &lnt_program_avx512, &lnt_row_avx512, QGEMM(amx), ATTEND(avx512)},
#elif defined(__aarch64__) || defined(__ARM_NEON) || defined(LNT_ARMV7)
    [LNT_LEVEL_NEON] = {&lnt_gemm_neon, &lnt_program_neon, &lnt_row_neon, QGEMM(neon), ATTEND(neon)},
#endif
#if defined(__aarch64__)
    [LNT_LEVEL_DOTPROD] = {&lnt_gemm_neon, &lnt_program_neon, &lnt_row_neon, QGEMM(dotprod), ATTEND(neon)},
    [LNT_LEVEL_I8MM] = {&lnt_gemm_neon, &lnt_program_neon, &lnt_row_neon, QGEMM(i8mm), ATTEND(neon)},
#endif
};

const lnt_kernels *lnt_kernels_of(lnt_level level)
{
    return &tables[level];
}
