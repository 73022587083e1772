/* kernels.c — the tables of each level, as base/levels.h says. Never an empty slot, but for families that no
 * operator of a trimmed library uses. */
#include "ops/kernels.h"

#include "formats/packed.h"
#include "ops/half_kernels.h"
#include "ops/list_names.h"

/* The flags of this library's operators. */
enum {
    FLAGS = 0
#define OP(id, version, ident, domain, name, imin, imax, omin, omax, types, shape, bind, values, flags)      \
    | (flags)
#include "ops/list.h"
#undef OP
};

const lnt_half_kernels lnt_half_none = {NULL, NULL, NULL, NULL};

/* Families of which not every level has a table: 64-bit ARM always has NEON, typed loops wider than AVX2's would
 * wait for memory, and random numbers want no more. */
#if defined(__aarch64__)
#define PLAIN_scalar neon
#else
#define PLAIN_scalar scalar
#endif
#define PLAIN_neon neon
#define PLAIN_avx2 avx2
#define PLAIN_avx512 avx512
#define TYPED_scalar PLAIN_scalar
#define TYPED_neon neon
#define TYPED_avx2 avx2
#define TYPED_avx512 avx2

#define TURN_scalar scalar
#define TURN_neon scalar
#define TURN_avx2 avx2
#define TURN_avx512 avx2
#define lnt_widen_scalar NULL

#define NIBBLES_scalar PLAIN_scalar
#define NIBBLES_neon neon
#define NIBBLES_neon_in_order neon
#define NIBBLES_dotprod dotprod
#define NIBBLES_i8mm dotprod
#define NIBBLES_avx2 avx2
#define NIBBLES_avxvnni avxvnni
#define NIBBLES_avx512vnni avx512vnni
#define NIBBLES_amx avx512vnni

/* own: the suffix of the tables that the level has twice. */
#define TABLES(own, floats, halves, bytes)                                                                   \
    TABLES_OF(own, floats, PLAIN_##floats, TYPED_##floats, TURN_##floats, NIBBLES_##bytes, halves, bytes)
#define TABLES_OF(own, floats, plain, typed, turns, nibbles, halves, bytes)                                  \
    TABLES_FROM(own, floats, plain, typed, turns, nibbles, halves, bytes)
#define TABLES_FROM(own, floats, plain, loops, turns, nibbles, halves, bytes)                                \
    {                                                                                                        \
        .gemm = &lnt_gemm_##own, .conv = &lnt_conv_##own, .rnn = &lnt_rnn_##floats,                          \
        .program = &lnt_program_##floats, .cells = &lnt_cells_##floats,                                      \
        .number = LNT_HAS_MATRICES ? &lnt_number_##plain : NULL, .typed = &lnt_typed_##loops,                \
        .row = &lnt_row_##floats, .turn = lnt_turn_##turns, .widen = lnt_widen_##turns,                      \
        .half = LNT_HAS_HALVES ? &lnt_half_##halves : &lnt_half_none,                                        \
        .int8 = FLAGS & (INT8 | QUANTIZED) ? &lnt_int8_##floats : NULL, .pool = &lnt_pool_##floats,          \
        .qgemm = FLAGS & INT8 ? &lnt_qgemm_##bytes : NULL,                                                   \
        .nbits = LNT_HAS_MatMulNBits ? &lnt_nbits_##plain : NULL,                                            \
        .nibble = LNT_HAS_MatMulNBits ? &lnt_nibble_##nibbles : NULL,                                        \
        .attend = LNT_HAS_Attention ? &lnt_attend_##floats : NULL,                                           \
        .random = FLAGS & RANDOM ? &lnt_random_##loops : NULL,                                               \
    }

static const lnt_kernels tables[LNT_LEVEL_COUNT] = {
#define LEVEL(ident, name, floats, halves, bytes, has)                                                       \
    [LNT_LEVEL_##ident] = TABLES(floats, floats, halves, bytes),
#include "base/levels.h"
#undef LEVEL
};

const lnt_kernels *lnt_kernels_of(lnt_level level)
{
    return &tables[level];
}

#if defined(__aarch64__)
#define IN_ORDER_scalar scalar
#define IN_ORDER_neon neon_in_order
#define IN_ORDER_dotprod dotprod
#define IN_ORDER_i8mm i8mm
#define IN_ORDER_TABLES(own, floats, halves, bytes) TABLES(own, floats, halves, bytes)
static const lnt_kernels in_order[LNT_LEVEL_COUNT] = {
#define LEVEL(ident, name, floats, halves, bytes, has)                                                       \
    [LNT_LEVEL_##ident] = IN_ORDER_TABLES(IN_ORDER_##floats, floats, halves, IN_ORDER_##bytes),
#include "base/levels.h"
#undef LEVEL
};
#else
#define in_order tables
#endif

const lnt_kernels *lnt_kernels_in_order(lnt_level level)
{
    return &in_order[level];
}
