/* program_kernels_fp16.c — elementwise programs in half arithmetic: registers of halves, and the instructions that
 * have a form for these (ops/half_kernels.h). */
#define LNT_SIMD_FP16
#include "ops/simd/simd.h"

#include "ops/elementwise/program_loops.inc.h"
#include "ops/simd/vmath_half.h"

UNARY(TANH, v_tanh(A))
UNARY(SIGMOID, v_sigmoid(A))
UNARY(GELU, v_gelu(A))
UNARY(GELU_TANH, v_gelu_tanh(A))
UNARY(SILU, A *v_sigmoid_exp2(P *v_splat_float(-LNT_HALF_LOG2E) * A))
UNARY(MISH, v_mish(A))

static void move(elem *q, int64_t step_q, const elem *p, int64_t step_p, int64_t n)
{
    int64_t i = 0;
    if (step_p == 1 && step_q == 1)
        for (; i + LNT_VL <= n; i += LNT_VL)
            v_store(q + i, v_load(p + i));
    for (; i < n; i++)
        q[i * step_q] = p[i * step_p];
}

static void load_f16(float *reg, const void *memory, int64_t stride, int64_t n)
{
    move(ELEMS_OUT(reg), 1, memory, stride, n);
}

static void load_f32(float *reg, const void *memory, int64_t stride, int64_t n)
{
    const float *p = memory;
    elem *q = ELEMS_OUT(reg);
    int64_t i = 0;
    if (stride == 1)
        for (; i + LNT_VL <= n; i += LNT_VL)
            v_store(q + i, v_load_floats(p + i, LNT_VL));
    for (; i < n; i++)
        q[i] = (elem)p[i * stride];
}

static void store_f16(const float *reg, void *memory, int64_t stride, int64_t n)
{
    move(memory, stride, ELEMS(reg), 1, n);
}

/* Instructions without a form are NULL: a program that has one is computed in float. */
static const lnt_cells half_cells = {
    .load = {[LNT_CELL_F32] = load_f32, [LNT_CELL_F16] = load_f16},
    .store = {[LNT_CELL_F16] = store_f16},
};

const lnt_program_kernels lnt_program_fp16 = {
    .width = LNT_VL,
    .cell = LNT_CELL_F16,
    .instr =
        {
            [LNT_I_ADD] = instr_ADD,
            [LNT_I_SUB] = instr_SUB,
            [LNT_I_MUL] = instr_MUL,
            [LNT_I_MIN] = instr_MIN,
            [LNT_I_MAX] = instr_MAX,
            [LNT_I_PRELU] = instr_PRELU,
            [LNT_I_ABS] = instr_ABS,
            [LNT_I_NEG] = instr_NEG,
            [LNT_I_TANH] = instr_TANH,
            [LNT_I_SIGMOID] = instr_SIGMOID,
            [LNT_I_RELU] = instr_RELU,
            [LNT_I_CLIP] = instr_CLIP,
            [LNT_I_LEAKY_RELU] = instr_LEAKY_RELU,
            [LNT_I_HARD_SIGMOID] = instr_HARD_SIGMOID,
            [LNT_I_HARD_SWISH] = instr_HARD_SWISH,
            [LNT_I_GELU] = instr_GELU,
            [LNT_I_GELU_TANH] = instr_GELU_TANH,
            [LNT_I_SILU] = instr_SILU,
            [LNT_I_MISH] = instr_MISH,
            [LNT_I_OR] = instr_OR,
            [LNT_I_SQUARE] = instr_SQUARE,
            [LNT_C_MUL_ADD] = instr_MUL_ADD,
            [LNT_C_ADD_CLIP] = instr_ADD_CLIP,
            [LNT_C_MUL_CLIP] = instr_MUL_CLIP,
            [LNT_C_MUL_ADD_CLIP] = instr_MUL_ADD_CLIP,
        },
    .cells = &half_cells,
};
