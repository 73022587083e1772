/* half_kernels_fp16.c — the tables of half arithmetic for FEAT_FP16, and what is too little for one. */
#define LNT_SIMD_FP16
#include "ops/half_kernels.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"

extern const struct lnt_gemm_kernels lnt_gemm_fp16;
extern const struct lnt_conv_kernels lnt_conv_fp16;
extern const struct lnt_program_kernels lnt_program_fp16;

/* Lanes i and on, `left` of them. */
LNT_INLINE void largest(const void *const *rows, int64_t n_rows, void *y, int64_t i, const unsigned left)
{
    vf most = load(ELEMS(rows[0]) + i, left);
    for (int64_t r = 1; r < n_rows; r++)
        most = v_max_or_nan(most, load(ELEMS(rows[r]) + i, left));
    store(ELEMS_OUT(y) + i, most, left);
}

static __attribute__((noinline)) void largest_rest(const void *const *rows, int64_t n_rows, void *y,
                                                   int64_t i, unsigned left)
{
    largest(rows, n_rows, y, i, left);
}

static void max_rows(const void *const *rows, int64_t n_rows, void *y, int64_t n)
{
    LNT_ASSERT(n_rows > 0);
    int64_t i = 0;
    for (; i + LNT_VL <= n; i += LNT_VL)
        largest(rows, n_rows, y, i, LNT_VL);
    if (i < n)
        largest_rest(rows, n_rows, y, i, (unsigned)(n - i));
}

const lnt_half_kernels lnt_half_fp16 = {
    .gemm = &lnt_gemm_fp16, .conv = &lnt_conv_fp16, .program = &lnt_program_fp16, .max_rows = max_rows};
