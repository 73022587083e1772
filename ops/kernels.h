/* kernels.h — the kernel tables of one level.
 *
 * A family declares its functions in a struct of pointers in its own header and defines one constant table per
 * level, in a file of the family's stem plus the level: gemm.c (scalar), gemm_avx2.c, gemm_neon.c. Which table
 * serves which level stands in base/levels.h. Kernels never ask which CPU they run on. */
#ifndef LNT_OPS_KERNELS_H
#define LNT_OPS_KERNELS_H

#include "base/cpu.h"
#include "ops/copy.h"

typedef struct lnt_kernels lnt_kernels;

struct lnt_kernels {
    const struct lnt_gemm_kernels *gemm;       /* ops/gemm/gemm.h: matrix products */
    const struct lnt_conv_kernels *conv;       /* ops/conv/conv_kernels.h: depthwise, few channels, Winograd */
    const struct lnt_rnn_kernels *rnn;         /* ops/recurrent/rnn_cells.h: recurrent cells */
    const struct lnt_program_kernels *program; /* ops/elementwise/program_kernels.h: elementwise programs, math */
    const struct lnt_number_kernels *number;   /* ops/gemm/number_kernels.h: products of double and integers */
    const struct lnt_cells *cells;             /* ops/cells.h: elements in memory to and from floats */
    const struct lnt_typed_kernels *typed;     /* ops/elementwise/typed_kernels.h: integers and double */
    const struct lnt_row_kernels *row;         /* ops/rows/row.h: reductions, softmax and norms along a row */
    const struct lnt_pool_kernels *pool;       /* ops/image/pool_kernels.h: windows of rows and pixels */
    lnt_turn_fn turn;                          /* ops/copy.h: transposes of 4-byte elements */
    lnt_turn_fn widen; /* of halves that become floats; NULL where it takes two steps */
    const struct lnt_half_kernels
        *half; /* ops/half_kernels.h: tables of half arithmetic, NULL where there is none */
    /* NULL in a trimmed library without operators that use them: */
    const struct lnt_int8_kernels *int8;     /* ops/rows/int8_rows.h: quantization of rows */
    const struct lnt_qgemm_kernels *qgemm;   /* ops/quant/qgemm.h: int8 products */
    const struct lnt_nbits_kernels *nbits;   /* ops/nbits/nbits_kernels.h: weights of few bits */
    const struct lnt_nibble_kernels *nibble; /* ops/nbits/nibble_kernels.h: of 4 bits times int8 */
    const struct lnt_attend_kernels *attend; /* ops/attention/attend.h: attention */
    const struct lnt_random_kernels *random; /* ops/data/random_kernels.h: random floats */
};

/* The tables: lnt_gemm_avx2, lnt_qgemm_amx, ... */
#define LEVEL(ident, name, floats, half, int8, has)                                                          \
    extern const struct lnt_gemm_kernels lnt_gemm_##floats;                                                  \
    extern const struct lnt_conv_kernels lnt_conv_##floats;                                                  \
    extern const struct lnt_rnn_kernels lnt_rnn_##floats;                                                    \
    extern const struct lnt_program_kernels lnt_program_##floats;                                            \
    extern const struct lnt_number_kernels lnt_number_##floats;                                              \
    extern const struct lnt_cells lnt_cells_##floats;                                                        \
    extern const struct lnt_typed_kernels lnt_typed_##floats;                                                \
    extern const struct lnt_row_kernels lnt_row_##floats;                                                    \
    extern const struct lnt_int8_kernels lnt_int8_##floats;                                                  \
    extern const struct lnt_pool_kernels lnt_pool_##floats;                                                  \
    extern const struct lnt_nbits_kernels lnt_nbits_##floats;                                                \
    extern const struct lnt_attend_kernels lnt_attend_##floats;                                              \
    extern const struct lnt_random_kernels lnt_random_##floats;                                              \
    extern const struct lnt_half_kernels lnt_half_##half;                                                    \
    extern const struct lnt_qgemm_kernels lnt_qgemm_##int8;
#include "base/levels.h"
#undef LEVEL
extern const struct lnt_nibble_kernels lnt_nibble_scalar, lnt_nibble_avx2, lnt_nibble_avxvnni, lnt_nibble_avx512vnni,
    lnt_nibble_neon, lnt_nibble_dotprod;
#if defined(__aarch64__)
extern const struct lnt_gemm_kernels lnt_gemm_neon_in_order; /* for cores that run in order */
extern const struct lnt_conv_kernels lnt_conv_neon_in_order;
extern const struct lnt_qgemm_kernels lnt_qgemm_neon_in_order;
#endif

const lnt_kernels *lnt_kernels_of(lnt_level level);

/* The same, scheduled for cores that run in order (lnt_cpu_in_order) where there is such a table. Equal results. */
const lnt_kernels *lnt_kernels_in_order(lnt_level level);

#endif
