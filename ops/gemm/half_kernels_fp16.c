/* half_kernels_fp16.c — the tables of half arithmetic for FEAT_FP16, and what is too little for one. */
#define LNT_SIMD_FP16
#include "ops/half_kernels.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"

extern const struct lnt_gemm_kernels lnt_gemm_fp16;
extern const struct lnt_conv_kernels lnt_conv_fp16;
extern const struct lnt_program_kernels lnt_program_fp16;

static void max_rows(const void *const *rows, int64_t n_rows, void *y, int64_t n)
{
    LNT_ASSERT(n_rows > 0);
    for (int64_t i = 0; i < n; i += LNT_VL) {
        const unsigned left = lanes_left((size_t)(n - i));
        vf most = load(ELEMS(rows[0]) + i, left);
        for (int64_t r = 1; r < n_rows; r++)
            most = v_max_or_nan(most, load(ELEMS(rows[r]) + i, left));
        store(ELEMS_OUT(y) + i, most, left);
    }
}

const lnt_half_kernels lnt_half_fp16 = {
    .gemm = &lnt_gemm_fp16, .conv = &lnt_conv_fp16, .program = &lnt_program_fp16, .max_rows = max_rows};
