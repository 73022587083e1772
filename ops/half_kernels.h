/* half_kernels.h — half arithmetic: the kernel tables of levels that have it, in ops/gemm/half_kernels_SUFFIX.c.
 *
 * They are those of ops/gemm/gemm.h and others, their floats halves. All are NULL at levels whose CPUs have no half
 * arithmetic. A file that was converted for float16 declares floats: which of them are halves in memory is decided at
 * bind (runtime/halves.c), whose operands are of type float16 then. */
#ifndef LNT_OPS_HALF_KERNELS_H
#define LNT_OPS_HALF_KERNELS_H

#include "ops/kernels.h"
#include "ops/op.h"

typedef struct lnt_half_kernels {
    const struct lnt_gemm_kernels *gemm;
    const struct lnt_conv_kernels *conv;
    const struct lnt_program_kernels *program;
    /* The largest of n_rows > 0 rows of n halves, element by element; NaN if one is. */
    void (*max_rows)(const void *const *rows, int64_t n_rows, void *y, int64_t n);
} lnt_half_kernels;

/* 1: some level has half arithmetic. */
#ifdef __aarch64__
#define LNT_HAS_HALF_LEVELS 1
#else
#define LNT_HAS_HALF_LEVELS 0
#endif

/* Bytes of an element of what the kernel that is being bound reads and writes. */
static inline size_t lnt_site_element(const lnt_site *site)
{
    return LNT_HAS_HALF_LEVELS && site->half ? sizeof(uint16_t) : sizeof(float);
}

/* Those bytes, kept by a step: known where there is no half arithmetic. */
static inline size_t lnt_element(size_t kept)
{
    return LNT_HAS_HALF_LEVELS ? kept : sizeof(float);
}

/* p moved on by n elements of so many bytes: floats, or halves that are handed around as floats. */
static inline float *lnt_moved(const float *p, int64_t n, size_t element)
{
    return (float *)((uintptr_t)p + (uintptr_t)(n * (int64_t)element));
}

#endif
