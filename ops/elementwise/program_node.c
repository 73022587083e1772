/* program_node.c — ONNX nodes as program instructions. */
#include "ops/elementwise/program.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

/* A translation under way. */
typedef struct build {
    const lnt_node *node;
    const lnt_operand *const *in;
    lnt_node_instrs *result;
    bool failed; /* too long, or an operand of a wrong type */
} build;

static uint8_t emit3(build *b, lnt_instr_op op, const uint8_t src[3], float imm0, float imm1)
{
    lnt_node_instrs *r = b->result;
    if (r->n == LNT_NODE_MAX_INSTR) {
        b->failed = true;
        return LNT_NODE_TEMP;
    }
    const uint8_t dst = (uint8_t)(LNT_NODE_TEMP + r->temps++);
    r->instr[r->n++] =
        (lnt_instr){.op = (uint8_t)op, .dst = dst, .src = {src[0], src[1], src[2]}, .imm = {imm0, imm1}};
    return dst;
}

static uint8_t emit_imm(build *b, lnt_instr_op op, uint8_t a, float imm0, float imm1)
{
    return emit3(b, op, (const uint8_t[3]){a, 0, 0}, imm0, imm1);
}

static uint8_t emit1(build *b, lnt_instr_op op, uint8_t a)
{
    return emit_imm(b, op, a, 0, 0);
}

static uint8_t emit2(build *b, lnt_instr_op op, uint8_t a, uint8_t c)
{
    return emit3(b, op, (const uint8_t[3]){a, c, 0}, 0, 0);
}

static uint8_t constant(build *b, float value)
{
    return emit_imm(b, LNT_I_CONST, 0, value, 0);
}

static uint8_t where(build *b, uint8_t mask, uint8_t yes, uint8_t no)
{
    return emit3(b, LNT_I_WHERE, (const uint8_t[3]){mask, yes, no}, 0, 0);
}

static float attr(const build *b, const char *name, float otherwise)
{
    return lnt_attr_f(b->node, name, otherwise);
}

static bool is_float(unsigned dtype)
{
    return dtype == LNT_FLOAT || dtype == LNT_FLOAT16 || dtype == LNT_BFLOAT16;
}

/* Types that a register holds exactly. */
static bool fits_register(unsigned dtype)
{
    return is_float(dtype) || dtype == LNT_UINT8 || dtype == LNT_INT8 || dtype == LNT_UINT16 ||
           dtype == LNT_INT16;
}

static bool given(const build *b, unsigned i)
{
    return i < b->node->n_in && b->in[i];
}

/* The number in a constant of one element, of any type. */
static bool scalar_constant(const lnt_operand *o, double *value)
{
    if (!o->constant || !o->data || o->packed || lnt_operand_count(o) != 1)
        return false;
    switch (o->dtype) {
    case LNT_FLOAT: *value = (double)*(const float *)o->data; return true;
    case LNT_FLOAT16: *value = (double)lnt_f16_to_float(*(const uint16_t *)o->data); return true;
    case LNT_BFLOAT16: *value = (double)lnt_bf16_to_float(*(const uint16_t *)o->data); return true;
    case LNT_DOUBLE: *value = *(const double *)o->data; return true;
    case LNT_INT32: *value = *(const int32_t *)o->data; return true;
    case LNT_INT64: *value = (double)*(const int64_t *)o->data; return true;
    default: return false;
    }
}

/* A constant may become an immediate where the result has its extents from another input. */
static bool may_vanish(const build *b, unsigned i)
{
    double value;
    for (unsigned j = 0; j < b->node->n_in; j++)
        if (j != i && given(b, j) && b->in[j]->rank != LNT_RANK_UNKNOWN && b->in[j]->rank >= b->in[i]->rank &&
            !scalar_constant(b->in[j], &value))
            return true;
    return false;
}

/* The register of float input i: its own, or that of its value. */
static uint8_t input(build *b, unsigned i)
{
    double value;
    if (!given(b, i) || !is_float(b->in[i]->dtype)) {
        b->failed = true;
        return 0;
    }
    return scalar_constant(b->in[i], &value) && may_vanish(b, i) ? constant(b, (float)value) : (uint8_t)i;
}

/* ---- operators of several instructions ---- */

static uint8_t softsign(build *b, uint8_t x)
{
    const uint8_t below = emit2(b, LNT_I_ADD, emit1(b, LNT_I_ABS, x), constant(b, 1));
    return emit2(b, LNT_I_DIV, x, below);
}

static uint8_t selu(build *b, uint8_t x)
{
    const float alpha = attr(b, "alpha", 1.67326319217681884765625f);
    const float gamma = attr(b, "gamma", 1.05070102214813232421875f);
    return emit2(b, LNT_I_MUL, emit_imm(b, LNT_I_ELU, x, alpha, 1), constant(b, gamma));
}

static uint8_t thresholded_relu(build *b, uint8_t x)
{
    const uint8_t passes = emit2(b, LNT_I_GREATER, x, constant(b, attr(b, "alpha", 1)));
    return where(b, passes, x, constant(b, 0));
}

static uint8_t shrink(build *b, uint8_t x)
{
    const float lambda = attr(b, "lambd", 0.5f);
    const uint8_t bias = constant(b, attr(b, "bias", 0));
    const uint8_t low = emit2(b, LNT_I_LESS, x, constant(b, -lambda));
    const uint8_t high = emit2(b, LNT_I_GREATER, x, constant(b, lambda));
    const uint8_t above = where(b, high, emit2(b, LNT_I_SUB, x, bias), constant(b, 0));
    return where(b, low, emit2(b, LNT_I_ADD, x, bias), above);
}

static uint8_t gelu(build *b, uint8_t x)
{
    const bool approximate = strcmp(lnt_attr_s(b->node, "approximate", "none"), "tanh") == 0;
    return emit1(b, approximate ? LNT_I_GELU_TANH : LNT_I_GELU, x);
}

static uint8_t is_inf(build *b, uint8_t x)
{
    const bool negative = lnt_attr_i(b->node, "detect_negative", 1) != 0;
    const bool positive = lnt_attr_i(b->node, "detect_positive", 1) != 0;
    if (negative && positive)
        return emit1(b, LNT_I_IS_INF, x);
    if (negative || positive)
        return emit2(b, LNT_I_EQUAL, x, constant(b, positive ? INFINITY : -INFINITY));
    return emit2(b, LNT_I_LESS, x, x);
}

static uint8_t clip(build *b, uint8_t x)
{
    double low = -INFINITY, high = INFINITY;
    const bool low_known = !given(b, 1) || scalar_constant(b->in[1], &low);
    const bool high_known = !given(b, 2) || scalar_constant(b->in[2], &high);
    if (low_known && high_known)
        return emit_imm(b, LNT_I_CLIP, x, (float)low, (float)high);
    if (given(b, 1))
        x = emit2(b, LNT_I_MAX, x, input(b, 1));
    return given(b, 2) ? emit2(b, LNT_I_MIN, x, input(b, 2)) : x;
}

/* Small exponents multiply: exact where pow is, and many times faster. */
static uint8_t power(build *b, uint8_t x)
{
    double exponent;
    if (!scalar_constant(b->in[1], &exponent) || !may_vanish(b, 1))
        return emit2(b, LNT_I_POW, x, input(b, 1));
    if (exponent == 1)
        return emit_imm(b, LNT_I_CLIP, x, -INFINITY, INFINITY);
    if (exponent == 2)
        return emit1(b, LNT_I_SQUARE, x);
    if (exponent == 3)
        return emit2(b, LNT_I_MUL, emit1(b, LNT_I_SQUARE, x), x);
    if (exponent == -1)
        return emit1(b, LNT_I_RECIPROCAL, x);
    return emit2(b, LNT_I_POW, x, constant(b, (float)exponent));
}

/* x and input i; the larger or the smaller of a number and a constant is a limit. */
static uint8_t combined(build *b, lnt_instr_op op, uint8_t x, unsigned i)
{
    double limit;
    const bool limits = (op == LNT_I_MAX || op == LNT_I_MIN) && is_float(b->in[i]->dtype) &&
                        scalar_constant(b->in[i], &limit) && !isnan(limit) && may_vanish(b, i);
    if (!limits)
        return emit2(b, op, x, input(b, i));
    return emit_imm(b, LNT_I_CLIP, x, op == LNT_I_MAX ? (float)limit : -INFINITY,
                    op == LNT_I_MIN ? (float)limit : INFINITY);
}

/* Sum, Mean, Min, Max. */
static uint8_t variadic(build *b, lnt_instr_op op, uint8_t x)
{
    for (unsigned i = 1; i < b->node->n_in && !b->failed; i++)
        x = given(b, i) ? combined(b, op, x, i) : x;
    if (b->node->n_in == 1)
        x = emit_imm(b, LNT_I_CLIP, x, -INFINITY, INFINITY);
    return x;
}

static uint8_t mean(build *b, uint8_t x)
{
    const uint8_t sum = variadic(b, LNT_I_ADD, x);
    return b->node->n_in > 1 ? emit2(b, LNT_I_DIV, sum, constant(b, b->node->n_in)) : sum;
}

static uint8_t biased(build *b, lnt_instr_op op, uint8_t x)
{
    return emit1(b, op, given(b, 1) ? emit2(b, LNT_I_ADD, x, input(b, 1)) : x);
}

/* ---- the translation ---- */

/* Operators that are one instruction without immediates; two sources the other way around are TURNED. */
enum { TURNED = 3 };
static const struct {
    uint16_t id;
    uint8_t instr, sources;
} direct[] = {
    {LNT_ID_Abs, LNT_I_ABS, 1},
    {LNT_ID_Neg, LNT_I_NEG, 1},
    {LNT_ID_Sqrt, LNT_I_SQRT, 1},
    {LNT_ID_Reciprocal, LNT_I_RECIPROCAL, 1},
    {LNT_ID_Floor, LNT_I_FLOOR, 1},
    {LNT_ID_Ceil, LNT_I_CEIL, 1},
    {LNT_ID_Round, LNT_I_ROUND, 1},
    {LNT_ID_Sign, LNT_I_SIGN, 1},
    {LNT_ID_Exp, LNT_I_EXP, 1},
    {LNT_ID_Log, LNT_I_LOG, 1},
    {LNT_ID_Sin, LNT_I_SIN, 1},
    {LNT_ID_Cos, LNT_I_COS, 1},
    {LNT_ID_Tanh, LNT_I_TANH, 1},
    {LNT_ID_Sigmoid, LNT_I_SIGMOID, 1},
    {LNT_ID_Erf, LNT_I_ERF, 1},
    {LNT_ID_Softplus, LNT_I_SOFTPLUS, 1},
    {LNT_ID_Relu, LNT_I_RELU, 1},
    {LNT_ID_HardSwish, LNT_I_HARD_SWISH, 1},
    {LNT_ID_Mish, LNT_I_MISH, 1},
    {LNT_ID_IsNaN, LNT_I_IS_NAN, 1},
    {LNT_ID_Tan, LNT_I_TAN, 1},
    {LNT_ID_Asin, LNT_I_ASIN, 1},
    {LNT_ID_Acos, LNT_I_ACOS, 1},
    {LNT_ID_Atan, LNT_I_ATAN, 1},
    {LNT_ID_Sinh, LNT_I_SINH, 1},
    {LNT_ID_Cosh, LNT_I_COSH, 1},
    {LNT_ID_Asinh, LNT_I_ASINH, 1},
    {LNT_ID_Acosh, LNT_I_ACOSH, 1},
    {LNT_ID_Atanh, LNT_I_ATANH, 1},
    {LNT_ID_MsGelu, LNT_I_GELU, 1},
    {LNT_ID_PRelu, LNT_I_PRELU, 2},
    {LNT_ID_Add, LNT_I_ADD, 2},
    {LNT_ID_Sub, LNT_I_SUB, 2},
    {LNT_ID_Mul, LNT_I_MUL, 2},
    {LNT_ID_Div, LNT_I_DIV, 2},
    {LNT_ID_Mod, LNT_I_MOD, 2},
    {LNT_ID_Equal, LNT_I_EQUAL, 2},
    {LNT_ID_Less, LNT_I_LESS, 2},
    {LNT_ID_LessOrEqual, LNT_I_LESS_EQUAL, 2},
    {LNT_ID_Greater, LNT_I_LESS, TURNED},
    {LNT_ID_GreaterOrEqual, LNT_I_LESS_EQUAL, TURNED},
};

static uint8_t translate_float(build *b)
{
    const uint8_t x = input(b, 0);
    const unsigned id = b->node->op->id;
    b->failed |= id == LNT_ID_Mod && !lnt_attr_i(b->node, "fmod", 0);
    for (unsigned i = 0; i < sizeof direct / sizeof direct[0]; i++)
        if (direct[i].id == id)
            return direct[i].sources == 1        ? emit1(b, direct[i].instr, x)
                   : direct[i].sources == TURNED ? emit2(b, direct[i].instr, input(b, 1), x)
                                                 : emit2(b, direct[i].instr, x, input(b, 1));
    switch (id) {
    case LNT_ID_LeakyRelu: return emit_imm(b, LNT_I_LEAKY_RELU, x, attr(b, "alpha", 0.01f), 0);
    case LNT_ID_Elu: return emit_imm(b, LNT_I_ELU, x, attr(b, "alpha", 1), 1);
    case LNT_ID_Celu: return emit_imm(b, LNT_I_ELU, x, attr(b, "alpha", 1), 1 / attr(b, "alpha", 1));
    case LNT_ID_HardSigmoid:
        return emit_imm(b, LNT_I_HARD_SIGMOID, x, attr(b, "alpha", 0.2f), attr(b, "beta", 0.5f));
    case LNT_ID_Swish: return emit_imm(b, LNT_I_SILU, x, attr(b, "alpha", 1), 0);
    case LNT_ID_QuickGelu: return emit_imm(b, LNT_I_SILU, x, attr(b, "alpha", 1.702f), 0);
    case LNT_ID_Softsign: return softsign(b, x);
    case LNT_ID_Selu: return selu(b, x);
    case LNT_ID_ThresholdedRelu: return thresholded_relu(b, x);
    case LNT_ID_Shrink: return shrink(b, x);
    case LNT_ID_Gelu: return gelu(b, x);
    case LNT_ID_IsInf: return is_inf(b, x);
    case LNT_ID_Clip: return clip(b, x);
    case LNT_ID_Pow: return power(b, x);
    case LNT_ID_Min: return variadic(b, LNT_I_MIN, x);
    case LNT_ID_Max: return variadic(b, LNT_I_MAX, x);
    case LNT_ID_Sum: return variadic(b, LNT_I_ADD, x);
    case LNT_ID_Mean: return mean(b, x);
    case LNT_ID_FastGelu: return biased(b, LNT_I_GELU_TANH, x);
    case LNT_ID_BiasGelu: return biased(b, LNT_I_GELU, x);
    default: b->failed = true; return x;
    }
}

static uint8_t translate_bool(build *b, unsigned out_dtype)
{
    switch (b->node->op->id) {
    case LNT_ID_And: return emit2(b, LNT_I_AND, 0, 1);
    case LNT_ID_Or: return emit2(b, LNT_I_OR, 0, 1);
    case LNT_ID_Xor: return emit2(b, LNT_I_XOR, 0, 1);
    case LNT_ID_Not: return emit1(b, LNT_I_NOT, 0);
    case LNT_ID_Where:
        b->failed = !is_float(out_dtype);
        return b->failed ? 0 : where(b, 0, input(b, 1), input(b, 2));
    case LNT_ID_Cast:
    case LNT_ID_CastLike: b->failed = !is_float(out_dtype); return emit1(b, LNT_I_TO_FLOAT, 0);
    default: b->failed = true; return 0;
    }
}

static uint8_t translate_cast(build *b, unsigned out_dtype)
{
    if (out_dtype == LNT_BOOL)
        return emit1(b, LNT_I_NOT, emit2(b, LNT_I_EQUAL, 0, constant(b, 0)));
    b->failed = !is_float(out_dtype);
    return 0;
}

/* Programs compute in float: a half result is rounded as ONNX would round it here. */
static void round_result(build *b, uint8_t x, unsigned out_dtype)
{
    if (out_dtype == LNT_FLOAT16)
        emit1(b, LNT_I_TO_F16, x);
    else if (out_dtype == LNT_BFLOAT16)
        emit1(b, LNT_I_TO_BF16, x);
    else if (b->result->n == 0 || b->result->instr[b->result->n - 1].dst != x)
        emit_imm(b, LNT_I_CLIP, x, -INFINITY, INFINITY);
}

bool lnt_node_instrs_of(const lnt_node *node, const lnt_operand *const *in, const lnt_operand *out,
                        lnt_node_instrs *result)
{
    if (!(node->op->flags & LNT_OP_ELEMENTWISE) || node->program || node->n_in == 0 || !in[0])
        return false;
    build b = {.node = node, .in = in, .result = result};
    result->n = result->temps = 0;
    const bool cast = node->op->id == LNT_ID_Cast || node->op->id == LNT_ID_CastLike;
    uint8_t x;
    if (in[0]->dtype == LNT_BOOL)
        x = translate_bool(&b, out->dtype);
    else if (cast && (fits_register(in[0]->dtype) || (in[0]->dtype == LNT_INT32 && out->dtype == LNT_FLOAT)))
        x = translate_cast(&b, out->dtype);
    else
        x = translate_float(&b);
    if (!b.failed)
        round_result(&b, x, out->dtype);
    return !b.failed;
}
