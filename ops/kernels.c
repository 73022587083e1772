/* kernels.c — which table serves which level. A family without a version of its own at a level is served by
 * the next lower one: never an empty slot. */
#include "ops/kernels.h"

#include "ops/attend.h"
#include "ops/gemm.h"
#include "ops/program_kernels.h"
#include "ops/qgemm.h"
#include "ops/row.h"

static const lnt_kernels tables[LNT_LEVEL_COUNT] = {
#if !defined(LNT_NEON_ONLY)
    [LNT_LEVEL_SCALAR] = {&lnt_gemm_scalar, &lnt_program_scalar, &lnt_row_scalar, &lnt_qgemm_scalar,
                          &lnt_attend_scalar},
#endif
#if defined(__x86_64__)
    [LNT_LEVEL_AVX2] = {&lnt_gemm_avx2, &lnt_program_avx2, &lnt_row_avx2, &lnt_qgemm_avx2, &lnt_attend_avx2},
    [LNT_LEVEL_AVX512] = {&lnt_gemm_avx512, &lnt_program_avx512, &lnt_row_avx512, &lnt_qgemm_avx2,
                          &lnt_attend_avx512},
    [LNT_LEVEL_AVX512VNNI] = {&lnt_gemm_avx512, &lnt_program_avx512, &lnt_row_avx512, &lnt_qgemm_avx512vnni,
                              &lnt_attend_avx512},
#elif defined(__aarch64__) || defined(__ARM_NEON) || defined(LNT_ARMV7)
    [LNT_LEVEL_NEON] = {&lnt_gemm_neon, &lnt_program_neon, &lnt_row_neon, &lnt_qgemm_neon, &lnt_attend_neon},
#endif
#if defined(__aarch64__)
    [LNT_LEVEL_DOTPROD] = {&lnt_gemm_neon, &lnt_program_neon, &lnt_row_neon, &lnt_qgemm_dotprod,
                           &lnt_attend_neon},
    [LNT_LEVEL_I8MM] = {&lnt_gemm_neon, &lnt_program_neon, &lnt_row_neon, &lnt_qgemm_i8mm, &lnt_attend_neon},
#endif
};

const lnt_kernels *lnt_kernels_of(lnt_level level)
{
    return &tables[level];
}
