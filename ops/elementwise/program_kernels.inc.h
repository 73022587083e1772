/* program_kernels.inc.h — the instruction loops and the way between memory and registers, for the level whose
 * file includes this. */
#include "ops/elementwise/program_loops.inc.h"
#include "ops/simd/simd_narrow.h"
#include "ops/simd/vmath.h"
#include "ops/simd/vmath_arc.h"

/* Functions with a short way for nearly all lanes: `near` is right for those that is_near tells, `any` for all.
 * With registers enough, and where size does not matter more, vectors go the short way side by side, without a
 * call in the loop: constants stay in registers, and no sum waits for the one before it. */
#if !defined(LNT_SIMD_NEON) || !defined(__aarch64__) || defined(__OPTIMIZE_SIZE__)
#define NEAR(name, is_near, near, any) HEAVY(name, any)
#else
enum { SIDE_BY_SIDE = 4, GROUP = SIDE_BY_SIDE * LNT_VL };
#define NEAR(name, is_near, near, any)                                                                       \
    /* Lanes [i, n) up to the first group that is not near: returns where that begins. */                    \
    LNT_INLINE int64_t near_##name(const lnt_instr_args *a, const vf P, const vf Q, int64_t i)               \
    {                                                                                                        \
        const int64_t n = a->n, step0 = a->step[0];                                                          \
        const float *const s0 = a->src[0];                                                                   \
        float *const dst = a->dst;                                                                           \
        (void)P, (void)Q;                                                                                    \
        for (; i + GROUP <= n; i += GROUP) {                                                                 \
            vf x[SIDE_BY_SIDE];                                                                              \
            vi all = vi_splat(-1);                                                                           \
            ASK_AHEAD                                                                                        \
            UNROLL_FOR(4, unsigned k = 0; k < SIDE_BY_SIDE; k++)                                             \
            {                                                                                                \
                const vf A = x[k] = v_load(s0 + (i + k * LNT_VL) * step0);                                   \
                (void)A;                                                                                     \
                all &= is_near;                                                                              \
            }                                                                                                \
            if (__builtin_expect(vi_any(~all), 0))                                                           \
                break;                                                                                       \
            UNROLL_FOR(4, unsigned k = 0; k < SIDE_BY_SIDE; k++)                                             \
            {                                                                                                \
                const vf A = x[k];                                                                           \
                x[k] = near;                                                                                 \
            }                                                                                                \
            UNROLL_FOR(4, unsigned k = 0; k < SIDE_BY_SIDE; k++)                                             \
            v_store(dst + i + k * LNT_VL, x[k]);                                                             \
        }                                                                                                    \
        return i;                                                                                            \
    }                                                                                                        \
    static void instr_##name(const lnt_instr_args *a)                                                        \
    {                                                                                                        \
        const int64_t n = a->n, step0 = a->step[0];                                                          \
        const vf P = v_splat(a->imm[0]), Q = v_splat(a->imm[1]);                                             \
        for (int64_t i = 0; i < n;) {                                                                        \
            i = near_##name(a, P, Q, i);                                                                     \
            for (const int64_t end = n - i < GROUP ? n : i + GROUP; i < end; i += LNT_VL) {                  \
                const vf A = v_load(a->src[0] + i * step0);                                                  \
                v_store(a->dst + i, any);                                                                    \
            }                                                                                                \
        }                                                                                                    \
    }
#endif
/* Vectors side by side, where a function is permutations and multiply-adds that wait for each other: the processor does
 * not look far enough ahead to mix several vectors' itself. */
#ifdef LNT_SIMD_AVX512
#define BESIDE(name, result)                                                                                 \
    static void instr_##name(const lnt_instr_args *a)                                                        \
    {                                                                                                        \
        enum { BESIDE = 8 };                                                                                 \
        ARGUMENTS                                                                                            \
        for (int64_t first = 0, some; first < n; first += some) {                                            \
            some = n - first < BESIDE * LNT_VL ? LNT_VL : BESIDE * LNT_VL;                                   \
            vf x[BESIDE];                                                                                    \
            if (some == LNT_VL) {                                                                            \
                const vf A = v_load(s0 + first * step0);                                                     \
                v_store(dst + first, result);                                                                \
                continue;                                                                                    \
            }                                                                                                \
            UNROLL_FOR(8, unsigned k = 0; k < BESIDE; k++) {                                                 \
                const int64_t i = first + k * LNT_VL;                                                        \
                const vf A = v_load(s0 + i * step0);                                                         \
                ASK_AHEAD                                                                                    \
                x[k] = result;                                                                               \
            }                                                                                                \
            UNROLL_FOR(8, unsigned k = 0; k < BESIDE; k++)                                                   \
                v_store(dst + first + k * LNT_VL, x[k]);                                                     \
        }                                                                                                    \
    }
#else
#define BESIDE(name, result) ONE_WAY(name, result)
#endif
/* Those with one way for all lanes. */
#define ONE_WAY(name, result) NEAR(name, vi_splat(-1), result, result)

LNT_INLINE vf sign(vf x)
{
    const vf zero = v_splat(0), one = v_splat(1);
    return v_select(x > zero, one, v_select(x < zero, -one, x));
}

BINARY_ROWS(DIV, A / B)
BINARY(POW, v_pow(A, B))
BINARY(MOD, v_fmod(A, B))
UNARY(SQRT, v_sqrt(A))
UNARY(RECIPROCAL, v_splat(1) / A)
UNARY(FLOOR, v_floor(A))
UNARY(CEIL, v_ceil(A))
UNARY(ROUND, v_round(A))
UNARY(SIGN, sign(A))
NEAR(EXP, v_within(A, 87), v_exp_narrow(A), v_exp(A))
NEAR(LOG, v_log_is_narrow(A), v_log_narrow(A), v_log(A))
HEAVY(SIN, v_sin(A))
HEAVY(COS, v_cos(A))
BESIDE(TANH, v_tanh(A))
NEAR(SIGMOID, v_within(A, 80), v_sigmoid_narrow(A), v_sigmoid(A))
ONE_WAY(ERF, v_erf(A))
NEAR(SOFTPLUS, v_within(A, 87), v_softplus_narrow(A), v_softplus(A))
ONE_WAY(ELU, v_elu(A, P, Q))
ONE_WAY(GELU, v_gelu(A))
ONE_WAY(GELU_TANH, v_gelu_tanh(A))
NEAR(SILU, v_within(-P *A, 80), v_gate_narrow(A, -P *A), v_gate(A, -P *A))
NEAR(MISH, v_within(v_mish_exponent(A), 87), v_mish_narrow(A), v_mish(A))
BINARY_ROWS(EQUAL, A == B)
BINARY_ROWS(LESS, A < B)
BINARY_ROWS(LESS_EQUAL, A <= B)
BINARY(GREATER, A > B)
BINARY(GREATER_EQUAL, A >= B)
BINARY(AND, (vi)A &(vi)B)
BINARY(XOR, (vi)A ^ (vi)B)
UNARY(NOT, ~(vi)A)
TERNARY(WHERE, v_select((vi)A, B, C))
UNARY(IS_NAN, v_is_nan(A))
UNARY(IS_INF, v_abs(A) == v_splat(INFINITY))
UNARY(TO_FLOAT, (vi)A &(vi)v_splat(1))
UNARY(TO_F16, v_round_f16(A))
UNARY(TO_BF16, v_round_bf16(A))
HEAVY(TAN, v_tan(A))
HEAVY(ASIN, v_asin(A))
HEAVY(ACOS, v_acos(A))
HEAVY(ATAN, v_atan(A))
HEAVY(SINH, v_sinh(A))
HEAVY(COSH, v_cosh(A))
HEAVY(ASINH, v_asinh(A))
HEAVY(ACOSH, v_acosh(A))
HEAVY(ATANH, v_atanh(A))
BINARY_ROWS(NOT_EQUAL, A != B)
TERNARY_ROWS(ABOVE_OR, v_select(A > B, A, C))
BINARY_ROWS(SOFTSIGN, A / (v_abs(A) + B))

/* ---- memory to registers and back ---- */

/* LOADER: vector is a vf of the elements at p, lane the float of the element e. STORER: the reverse, from the
 * vector v to p, and the element of the lane f. */
#define LOADER(cell, type, vector, lane)                                                                     \
    static void load_##cell(float *reg, const void *memory, int64_t stride, int64_t n)                       \
    {                                                                                                        \
        const type *p = memory;                                                                              \
        int64_t i = 0;                                                                                       \
        if (stride == 1)                                                                                     \
            for (; i + LNT_VL <= n; i += LNT_VL, p += LNT_VL)                                                \
                v_store(reg + i, (vf)(vector));                                                              \
        for (; i < n; i++, p += stride) {                                                                    \
            const type e = *p;                                                                               \
            reg[i] = lane;                                                                                   \
        }                                                                                                    \
    }
#define STORER(cell, type, vector, lane)                                                                     \
    static void store_##cell(const float *reg, void *memory, int64_t stride, int64_t n)                      \
    {                                                                                                        \
        type *p = memory;                                                                                    \
        int64_t i = 0;                                                                                       \
        if (stride == 1)                                                                                     \
            for (; i + LNT_VL <= n; i += LNT_VL, p += LNT_VL) {                                              \
                const vf v = v_load(reg + i);                                                                \
                vector;                                                                                      \
            }                                                                                                \
        for (; i < n; i++, p += stride) {                                                                    \
            const float f = reg[i];                                                                          \
            *p = (type)(lane);                                                                               \
        }                                                                                                    \
    }

LOADER(F32, float, v_load(p), e)
LOADER(F16, uint16_t, v_load_f16(p), lnt_f16_to_float(e))
LOADER(BF16, uint16_t, v_load_bf16(p), lnt_bf16_to_float(e))
LOADER(BOOL, uint8_t, vi_load_u8(p) != vi_splat(0), lnt_bits_float(e ? UINT32_MAX : 0))
LOADER(U8, uint8_t, vi_float(vi_load_u8(p)), e)
LOADER(I8, int8_t, vi_float(vi_load_i8(p)), e)
LOADER(U16, uint16_t, vi_float(vi_load_u16(p)), e)
LOADER(I16, int16_t, vi_float(vi_load_i16(p)), e)
LOADER(I32, int32_t, vi_float(vi_load(p)), (float)e)
LOADER(I64, int64_t, v_load_i64(p), (float)e)
STORER(F32, float, v_store(p, v), f)
STORER(F16, uint16_t, v_store_f16(p, v), lnt_float_to_f16(f))
STORER(BF16, uint16_t, v_store_bf16(p, v), lnt_float_to_bf16(f))
STORER(8, uint8_t, vi_store_8(p, v_cut_int(v)), lnt_cut_int(f))
STORER(16, uint16_t, vi_store_16(p, v_cut_int(v)), lnt_cut_int(f))
STORER(I32, int32_t, vi_store(p, v_cut_int(v)), lnt_cut_int(f))
STORER(I64, int64_t, v_cut_i64(p, v), lnt_cut_i64(f))

LNT_INLINE void store_bools(const float *reg, uint8_t *p)
{
    vi_store_8(p, (vi)v_load(reg) & vi_splat(1));
}

/* The last vector may share lanes with the one before. */
static void store_BOOL(const float *reg, void *memory, int64_t stride, int64_t n)
{
    uint8_t *p = memory;
    int64_t i = 0;
    if (stride == 1 && n >= LNT_VL) {
        for (; i + LNT_VL <= n; i += LNT_VL)
            store_bools(reg + i, p + i);
        store_bools(reg + n - LNT_VL, p + n - LNT_VL);
        return;
    }
    for (; i < n; i++)
        p[i * stride] = lnt_float_bits(reg[i]) & 1;
}

const lnt_cells LNT_SIMD_NAME(lnt_cells) = {
    .load = {load_F32, load_F16, load_BF16, load_BOOL, load_U8, load_I8, load_U16, load_I16, load_I32,
             load_I64},
    .store = {store_F32, store_F16, store_BF16, store_BOOL, store_8, store_8, store_16, store_16, store_I32,
              store_I64},
};

const lnt_program_kernels LNT_SIMD_NAME(lnt_program) = {
    .width = LNT_VL,
    .takes_rows = LNT_LONG_VECTORS && LNT_VL >= 8,
    .cell = LNT_CELL_F32,
    .instr =
        {
#define INSTR(number, name, sources, result, text) [number] = instr_##name,
#define instr_CONST NULL
#include "ops/elementwise/program_list.h"
#undef instr_CONST
#undef INSTR
            [LNT_C_MUL_ADD] = instr_MUL_ADD,
            [LNT_C_ADD_CLIP] = instr_ADD_CLIP,
            [LNT_C_MUL_CLIP] = instr_MUL_CLIP,
            [LNT_C_MUL_ADD_CLIP] = instr_MUL_ADD_CLIP,
            [LNT_C_NOT_EQUAL] = instr_NOT_EQUAL,
            [LNT_C_ABOVE_OR] = LNT_LONG_VECTORS ? instr_ABOVE_OR : NULL,
            [LNT_C_SOFTSIGN] = LNT_LONG_VECTORS ? instr_SOFTSIGN : NULL,
        },
    .cells = &LNT_SIMD_NAME(lnt_cells),
};
