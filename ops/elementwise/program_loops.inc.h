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

#if defined(__x86_64__) && LNT_VL >= 8
/* A row of last + LNT_VL lanes: source j goes on by step[j] lanes with each. Its last vector may share lanes with the
 * one before, and the second one, which begins at lane `second`, with the first. */
typedef struct row_args {
    int64_t last, second, step[3];
    vf P, Q;
} row_args;

typedef void (*row_fn)(elem *dst, const elem *s0, const elem *s1, const elem *s2, const row_args *a);

/* In a long row vectors as long as a cache line lie in one line each from the second one on. */
LNT_INLINE int64_t second_vector(const elem *dst, const elem *const s[3], int64_t last)
{
    if (LNT_VL < 16 || last < 4 * LNT_VL || s[0] == dst || s[1] == dst || s[2] == dst)
        return LNT_VL;
    return LNT_VL - (int64_t)((uintptr_t)dst / sizeof(elem) % LNT_VL);
}

static __attribute__((noinline)) void run_rows(const lnt_instr_args *a, row_fn row)
{
    row_args r = {a->n - LNT_VL,
                  LNT_VL,
                  {a->step[0], a->step[1], a->step[2]},
                  v_splat_float(a->imm[0]),
                  v_splat_float(a->imm[1])};
    _Alignas(64) elem one[3][LNT_VL];
    const elem *given[3] = {ELEMS(a->src[0]), ELEMS(a->src[1]), ELEMS(a->src[a->src[2] ? 2 : 0])};
    elem *dst = ELEMS_OUT(a->dst);
    for (int64_t more = a->more; more >= 0; more--) {
        const elem *s[3];
        UNROLL_FOR(4, unsigned j = 0; j < 3; j++) {
            s[j] = given[j];
            if (!r.step[j]) {
                v_store(one[j], v_splat_float(*s[j]));
                s[j] = one[j];
            }
            given[j] += a->pitch[j];
        }
        r.second = second_vector(dst, s, r.last);
        row(dst, s[0], s[1], s[2], &r);
        dst += a->pitch[3];
    }
}

/* The last vector is computed before the others are stored, for dst may be a source. */
#define ROWS(name, result, ...)                                                                              \
    LNT_INLINE vf lanes_##name(const elem *s0, const elem *s1, const elem *s2, vf P, vf Q)                   \
    {                                                                                                        \
        enum { i = 0, step1 = 0, step2 = 0 };                                                                \
        (void)s1, (void)s2, (void)P, (void)Q, (void)i, (void)step1, (void)step2;                             \
        const vf A = v_load(s0);                                                                             \
        __VA_ARGS__                                                                                          \
        return (vf)(result);                                                                                 \
    }                                                                                                        \
    static void row_##name(elem *dst, const elem *s0, const elem *s1, const elem *s2, const row_args *a)     \
    {                                                                                                        \
        const int64_t step0 = a->step[0], step1 = a->step[1], step2 = a->step[2], last = a->last,            \
                      second = LNT_VL < 16 ? 0 : a->second;                                                  \
        const vf P = a->P, Q = a->Q,                                                                         \
                 end = lanes_##name(s0 + last * step0, s1 + last * step1, s2 + last * step2, P, Q);          \
        elem *const stop = dst + last;                                                                       \
        if (LNT_VL >= 16)                                                                                    \
            v_store(dst, lanes_##name(s0, s1, s2, P, Q));                                                    \
        dst += second, s0 += second * step0, s1 += second * step1, s2 += second * step2;                     \
        for (; dst < stop; dst += LNT_VL, s0 += step0 * LNT_VL, s1 += step1 * LNT_VL, s2 += step2 * LNT_VL)  \
            v_store(dst, lanes_##name(s0, s1, s2, P, Q));                                                    \
        v_store(stop, end);                                                                                  \
    }                                                                                                        \
    static void instr_##name(const lnt_instr_args *a)                                                        \
    {                                                                                                        \
        run_rows(a, row_##name);                                                                             \
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
