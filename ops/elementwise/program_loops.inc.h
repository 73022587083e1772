/* program_loops.inc.h — loops of instructions, and those that are the same over floats and over halves, for the
 * level whose file includes this. */
#ifndef LNT_OPS_ELEMENTWISE_PROGRAM_LOOPS_INC_H
#define LNT_OPS_ELEMENTWISE_PROGRAM_LOOPS_INC_H

#include "ops/elementwise/program_kernels.h"
#include "ops/simd/simd_lanes.h"

/* ---- instructions: A, B, C are the sources' lanes, P and Q the immediates ---- */

#define ARGUMENTS                                                                                            \
    const int64_t n = a->n, step0 = a->step[0], step1 = a->step[1], step2 = a->step[2];                      \
    const elem *const s0 = ELEMS(a->src[0]), *const s1 = ELEMS(a->src[1]), *const s2 = ELEMS(a->src[2]);       \
    elem *const dst = ELEMS_OUT(a->dst);                                                                     \
    const vf P = v_splat_float(a->imm[0]), Q = v_splat_float(a->imm[1]);                                     \
    (void)step1, (void)step2, (void)s1, (void)s2, (void)P, (void)Q;
#define LOOP(name, result, ...)                                                                              \
    static void instr_##name(const lnt_instr_args *a)                                                        \
    {                                                                                                        \
        ARGUMENTS                                                                                            \
        for (int64_t i = 0; i < n; i += LNT_VL) {                                                            \
            const vf A = v_load(s0 + i * step0);                                                             \
            __VA_ARGS__                                                                                      \
            v_store(dst + i, (vf)(result));                                                                  \
        }                                                                                                    \
    }

/* Of rows, where vectors are long: the last one may share lanes with the one before it; so may the second of a long
 * row, from where vectors as long as a cache line lie in one line each. */
#if defined(__x86_64__) && LNT_VL >= 8
#define ROWS(name, result, ...)                                                                              \
    static void instr_##name(const lnt_instr_args *a)                                                        \
    {                                                                                                        \
        ARGUMENTS                                                                                            \
        int64_t end = n, second = 0;                                                                         \
        if (LNT_VL >= 16 && n >= 8 * LNT_VL && s0 != dst && s1 != dst && s2 != dst) {                        \
            second = LNT_VL - (int64_t)((uintptr_t)dst / sizeof(elem) % LNT_VL);                             \
            end = LNT_VL;                                                                                    \
        }                                                                                                    \
        for (int64_t i = 0;; i = end < n ? second : n - LNT_VL, end = n) {                                   \
            for (; i + LNT_VL <= end; i += LNT_VL) {                                                         \
                const vf A = v_load(s0 + i * step0);                                                         \
                __VA_ARGS__                                                                                  \
                v_store(dst + i, (vf)(result));                                                              \
            }                                                                                                \
            if (i == n)                                                                                      \
                return;                                                                                      \
        }                                                                                                    \
    }
#else
#define ROWS(name, result, ...) LOOP(name, result, __VA_ARGS__)
#endif

/* Functions of many instructions leave the processor no room to look ahead: the next block is asked for in
 * time, and so are the lines it will be written to. */
#if LNT_VL >= 8
enum { AHEAD = 512 };
#define ASK_AHEAD __builtin_prefetch(s0 + (i + AHEAD) * step0), __builtin_prefetch(dst + i + AHEAD, 1);
#else
#define ASK_AHEAD
#endif
#define WITH_B const vf B = v_load(s1 + i * step1);
#define WITH_C const vf C = v_load(s2 + i * step2);
#define UNARY(name, result) LOOP(name, result, )
#define HEAVY(name, result) LOOP(name, result, ASK_AHEAD)
#define BINARY(name, result) LOOP(name, result, WITH_B)
#define TERNARY(name, result) LOOP(name, result, WITH_B WITH_C)
#define BINARY_ROWS(name, result) ROWS(name, result, WITH_B)
#define TERNARY_ROWS(name, result) ROWS(name, result, WITH_B WITH_C)

LNT_INLINE vf clip(vf x, vf low, vf high)
{
    return v_min(high, v_max(low, x));
}

BINARY_ROWS(ADD, A + B)
BINARY_ROWS(SUB, A - B)
BINARY_ROWS(MUL, A *B)
BINARY_ROWS(MIN, v_min_or_nan(B, A))
BINARY_ROWS(MAX, v_max_or_nan(B, A))
BINARY_ROWS(PRELU, v_select(v_less(A, v_splat_float(0)), A *B, A))
UNARY(ABS, v_abs(A))
UNARY(NEG, -A)
UNARY(RELU, v_max(v_splat_float(0), A))
UNARY(CLIP, clip(A, P, Q))
UNARY(LEAKY_RELU, v_select(v_less(A, v_splat_float(0)), P *A, A))
UNARY(HARD_SIGMOID, clip(P *A + Q, v_splat_float(0), v_splat_float(1)))
UNARY(HARD_SWISH, A *clip(A *v_splat_float(1.0f / 6) + v_splat_float(0.5f), v_splat_float(0), v_splat_float(1)))
BINARY(OR, (vi)A | (vi)B)
UNARY(SQUARE, A *A)
TERNARY_ROWS(MUL_ADD, A *B + C)
BINARY_ROWS(ADD_CLIP, clip(A + B, P, Q))
BINARY_ROWS(MUL_CLIP, clip(A *B, P, Q))
TERNARY_ROWS(MUL_ADD_CLIP, clip(A *B + C, P, Q))

#endif
