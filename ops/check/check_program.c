/* check_program.c — elementwise programs: every instruction against libm in double, and whole programs, with
 * every class of operand, against the same instructions applied to one element at a time.
 *
 * Numbers are drawn from moderate values, from all bit patterns and from the special ones. A result may be
 * off by the units in the last place that ops/simd/vmath.h states; masks and exact operations must be right. Of half
 * arithmetic the bound is that of ops/simd/vmath_half.h, and programs are of its instructions alone. */
#include "ops/check/check.h"
#include "ops/check/judge.h"

#include "base/half.h"
#include "base/memory.h"
#include "ops/elementwise/program_run.h"
#include "ops/half_kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- data ---- */

static unsigned below(uint64_t *random, unsigned n)
{
    return (unsigned)((lnt_check_random(random) >> 33) % n);
}

/* Any bits; NaNs are quiet ones, for libm answers others in its own way. */
static float draw_bits(uint64_t *random)
{
    const float x = lnt_bits_float((uint32_t)(lnt_check_random(random) >> 32));
    return isnan(x) ? NAN : x;
}

static float draw_any(uint64_t *random)
{
    static const float special[] = {0.0f,
                                    -0.0f,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    1.0f,
                                    -1.0f,
                                    0.5f,
                                    1e-40f,
                                    -1e-45f,
                                    FLT_MAX,
                                    -FLT_MAX,
                                    0x1p-126f,
                                    88.73f,
                                    -87.34f,
                                    -103.98f,
                                    __builtin_nanf("0x7fffff")};
    switch (below(random, 8)) {
    case 0: return special[below(random, sizeof special / sizeof special[0])];
    case 1: return draw_bits(random);
    case 2: return lnt_check_float(random) * 100;
    default: return lnt_check_float(random) * 8;
    }
}

static float draw(uint64_t *random)
{
    const float x = draw_any(random);
    return LNT_FLUSHES && fabsf(x) < 0x1p-126f ? 0 : x;
}

static float draw_of(uint64_t *random, char kind)
{
    return kind == 'm' ? lnt_bits_float(below(random, 2) ? UINT32_MAX : 0) : draw(random);
}

/* A register's lane as the judge sees it. */
static double as_number(float lane, char kind)
{
    return kind == 'm' ? lnt_float_bits(lane) != 0 : (double)lane;
}

/* ---- one instruction ---- */

enum { LANES = 64, ROUNDS = 200 };

typedef struct trial {
    lnt_check_report *report;
    const char *level;
    uint64_t seed, random;
    const lnt_program_kernels *kernels;
    bool half;       /* registers hold halves */
    unsigned halves; /* programs that were computed so */
} trial;

static float lane(const trial *t, const float *reg, int64_t i)
{
    uint16_t half;
    memcpy(&half, (const uint8_t *)reg + 2 * i, sizeof half);
    return t->half ? lnt_f16_to_float(half) : reg[i];
}

static void set_lane(const trial *t, float *reg, int64_t i, float x)
{
    const uint16_t half = lnt_float_to_f16(x);
    if (t->half)
        memcpy((uint8_t *)reg + 2 * i, &half, sizeof half);
    else
        reg[i] = x;
}

/* Numbers of half arithmetic: infinity is what it takes for larger ones. */
static float draw_half(uint64_t *random)
{
    const float x = lnt_f16_to_float((uint16_t)lnt_check_random(random));
    const unsigned kind = below(random, 8);
    return kind == 0 && !isinf(x) ? x : lnt_check_float(random) * (kind == 1 ? 100 : 8);
}

static float draw_lane(trial *t, char kind)
{
    return t->half ? draw_half(&t->random) : draw_of(&t->random, kind);
}

/* In half arithmetic: within 4 units in the last place, or 2^-9, or 2^-15 of a large x, whose gate 1 / (1 + e**-t) is 0
 * where e**-t is no half. What is larger than halves is infinity. */
static bool is_near_half(float got, double want, double x)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (fabs(want) > (double)LNT_F16_MAX * (1 - 0x1p-8))
        return (double)got * want > 0 && fabs((double)got) > (double)LNT_F16_MAX * (1 - 0x1p-7);
    return fabs((double)got - want) <= fmax(fmax(0x1p-9, fabs(x) * 0x1p-15), 4 * fabs(want) * 0x1p-10);
}

static void judge_lane(trial *t, unsigned op, float got, const float *src, const float *imm)
{
    const char *kinds = lnt_judged_instrs[op].sources;
    double s[3] = {0};
    for (unsigned j = 0; kinds[j]; j++)
        s[j] = as_number(src[j], kinds[j]);
    const lnt_wide exact = lnt_judged_instrs[op].judge(s[0], s[1], s[2], (double)imm[0], (double)imm[1]);
    const double want = (double)exact;
    if (t->half) {
        if (!is_near_half(got, want, s[0]))
            lnt_check_fail(t->report, "%s in halves at %s: (%a, %a, %a; %g, %g) gives %a, not %a, seed %llu",
                           lnt_judged_instrs[op].name, t->level, s[0], s[1], s[2], (double)imm[0], (double)imm[1],
                           (double)got, want, (unsigned long long)t->seed);
        return;
    }
    if (lnt_judged_instrs[op].result == 'm') {
        const uint32_t mask = want != 0 ? UINT32_MAX : 0;
        if (lnt_float_bits(got) != mask)
            lnt_check_fail(t->report, "%s at %s: mask of (%g, %g) is %#x, seed %llu",
                           lnt_judged_instrs[op].name, t->level, s[0], s[1], lnt_float_bits(got),
                           (unsigned long long)t->seed);
        return;
    }
    const lnt_bound limit = lnt_bound_of(op, s[0], (double)imm[0], (double)imm[1]);
    const double ulps = lnt_ulps_between(got, exact), off = ulps == 0 ? 0 : ulps / limit.ulps;
    if (off <= 1) {
        if (limit.ulps >= 1 && off > t->report->worst)
            t->report->worst = off;
        return;
    }
    if (!(fabs((double)got - want) <= limit.tiny))
        lnt_check_fail(t->report, "%s at %s: (%a, %a, %a; %g, %g) gives %a, not %a: %.3g ulp, seed %llu",
                       lnt_judged_instrs[op].name, t->level, s[0], s[1], s[2], (double)imm[0], (double)imm[1],
                       (double)got, want, ulps, (unsigned long long)t->seed);
}

/* Sources that advance or stand still, the result in a place of its own or in a source's. */
static void check_instr(trial *t, unsigned op)
{
    enum { GUARDED = 4 /* bytes before and behind */ };
    _Alignas(64) float src[3][LANES], dst[LANES + 2];
    float saved[3][LANES];
    const float imm[2] = {lnt_check_float(&t->random) * 2, 1 + lnt_check_float(&t->random)};
    const int64_t width = t->kernels->width, vectors = 1 + below(&t->random, (unsigned)(LANES / width));
    const bool shares = t->kernels->takes_rows && LNT_TAKES_ROWS(op) && vectors > 1 && below(&t->random, 2);
    const int64_t n = vectors * width - (shares ? below(&t->random, (unsigned)width) : 0);
    const char *kinds = lnt_judged_instrs[op].sources;
    uint8_t *const behind = (uint8_t *)(dst + 1) + n * (t->half ? 2 : 4);
    lnt_instr_args a = {.dst = dst + 1, .imm = imm, .n = n};
    for (unsigned j = 0; kinds[j]; j++) {
        a.src[j] = src[j];
        a.step[j] = below(&t->random, 4) != 0;
        for (unsigned i = 0; i < LANES; i++) {
            set_lane(t, src[j], i, a.step[j] || i == 0 ? draw_lane(t, kinds[j]) : lane(t, src[j], 0));
            saved[j][i] = lane(t, src[j], i);
        }
    }
    memset(dst, 0x5a, sizeof dst);
    if (a.step[0] && below(&t->random, 2))
        a.dst = src[0];
    t->kernels->instr[op](&a);
    for (int64_t i = 0; i < n; i++)
        judge_lane(t, op, lane(t, a.dst, i), (const float[3]){saved[0][i], saved[1][i], saved[2][i]}, imm);
    bool touched = false;
    for (unsigned i = 0; i < GUARDED; i++)
        touched |= ((uint8_t *)dst)[i] != 0x5a || behind[i] != 0x5a;
    if (touched)
        lnt_check_fail(t->report, "%s at %s writes outside its lanes", lnt_judged_instrs[op].name, t->level);
    t->report->cases += (uint64_t)n;
}

/* ---- between memory and registers ---- */

static const uint8_t cell_bytes[LNT_CELL_COUNT] = {4, 2, 2, 1, 1, 1, 2, 2, 4, 8};

static float cell_value(lnt_cell cell, const void *p)
{
    union {
        float real;
        int64_t i64;
        int32_t i32;
        uint16_t u16;
        int16_t i16;
        uint8_t u8;
        int8_t i8;
    } x;
    memcpy(&x, p, cell_bytes[cell]);
    switch (cell) {
    case LNT_CELL_F16: return lnt_f16_to_float(x.u16);
    case LNT_CELL_BF16: return lnt_bf16_to_float(x.u16);
    case LNT_CELL_BOOL: return lnt_bits_float(x.u8 ? UINT32_MAX : 0);
    case LNT_CELL_U8: return x.u8;
    case LNT_CELL_I8: return x.i8;
    case LNT_CELL_U16: return x.u16;
    case LNT_CELL_I16: return x.i16;
    case LNT_CELL_I32: return (float)x.i32;
    case LNT_CELL_I64: return (float)x.i64;
    default: return x.real;
    }
}

static void set_cell(lnt_cell cell, void *p, float lane)
{
    const int32_t whole = lane > -0x1p31f && lane < 0x1p31f ? (int32_t)lane : INT32_MIN;
    const uint16_t half = cell == LNT_CELL_F16    ? lnt_float_to_f16(lane)
                          : cell == LNT_CELL_BF16 ? lnt_float_to_bf16(lane)
                                                  : (uint16_t)whole;
    const uint8_t byte = cell == LNT_CELL_BOOL ? lnt_float_bits(lane) & 1 : (uint8_t)whole;
    const int64_t wide = lane >= -0x1p63f && lane < 0x1p63f ? (int64_t)lane : INT64_MIN;
    if (cell == LNT_CELL_F32)
        memcpy(p, &lane, sizeof lane);
    else if (cell == LNT_CELL_I64)
        memcpy(p, &wide, sizeof wide);
    else if (cell == LNT_CELL_I32)
        memcpy(p, &whole, sizeof whole);
    else if (cell_bytes[cell] == 2)
        memcpy(p, &half, sizeof half);
    else
        memcpy(p, &byte, sizeof byte);
}

/* The same bits, or both NaN. */
static bool same(float a, float b)
{
    return lnt_float_bits(a) == lnt_float_bits(b) || (isnan(a) && isnan(b));
}

/* Every half there is, and as many floats to round. */
static void check_cells(trial *t, lnt_cell cell)
{
    enum { MANY = 65536, AT_ONCE = 60 };
    for (unsigned first = 0; first < MANY; first += AT_ONCE) {
        _Alignas(8) uint8_t memory[AT_ONCE * 8 + 8], expected[8];
        float lanes[AT_ONCE + LNT_VECTOR_MAX];
        const int64_t n = 1 + below(&t->random, AT_ONCE);
        for (unsigned i = 0; i < AT_ONCE; i++) {
            const uint16_t half = (uint16_t)(first + i);
            if (cell_bytes[cell] == 2)
                memcpy(memory + 2 * i, &half, sizeof half);
            else
                set_cell(cell, memory + i * cell_bytes[cell],
                         draw_of(&t->random, cell == LNT_CELL_BOOL ? 'm' : 'f'));
        }
        t->kernels->cells->load[cell](lanes, memory, 1, n);
        for (int64_t i = 0; i < n; i++)
            if (!same(lanes[i], cell_value(cell, memory + i * cell_bytes[cell])))
                lnt_check_fail(t->report, "load of cell %d at %s: element %u", (int)cell, t->level,
                               first + (unsigned)i);
        for (unsigned i = 0; i < AT_ONCE; i++)
            lanes[i] = draw_of(&t->random, cell == LNT_CELL_BOOL ? 'm' : 'f');
        memset(memory, 0xa5, sizeof memory);
        t->kernels->cells->store[cell](lanes, memory, 1, n);
        for (int64_t i = 0; i < n; i++) {
            set_cell(cell, expected, lanes[i]);
            if (!same(cell_value(cell, expected), cell_value(cell, memory + i * cell_bytes[cell])))
                lnt_check_fail(t->report, "store of cell %d at %s: %a", (int)cell, t->level,
                               (double)lanes[i]);
        }
        if (memory[n * cell_bytes[cell]] != 0xa5)
            lnt_check_fail(t->report, "store of cell %d at %s writes too far", (int)cell, t->level);
        t->report->cases += (uint64_t)n;
    }
}

/* ---- programs over tensors ---- */

enum {
    MAX_IN = 5,
    MAX_OUT = 3,
    MAX_ELEMENTS = 3000,
    SPARE_REGS = 4,
    MAX_INSTRS = 12,
    GUARD = 64,
    MAP_ROUNDS = 1500
};

typedef struct tensor {
    lnt_operand info;
    uint8_t bytes[MAX_ELEMENTS * 4 + 2 * GUARD];
} tensor;

/* One program, its operands and results; too large for a stack. */
typedef struct scene {
    lnt_program program;
    lnt_instr instr[MAX_INSTRS];
    tensor in[MAX_IN], out[MAX_OUT];
    float tile[MAX_ELEMENTS * 2]; /* or halves */
    float expected[MAX_OUT][MAX_ELEMENTS];
    int64_t elements, rows, cols, ld;
    bool in_place;
} scene;

static void make_program(trial *t, scene *s)
{
    lnt_program *p = &s->program;
    char kind[LNT_PROGRAM_MAX_REGS] = {0};
    *p = (lnt_program){.instr = s->instr, .epilogue = below(&t->random, 3) == 0};
    p->n_in = (uint8_t)(1 + below(&t->random, MAX_IN));
    p->n_out = (uint8_t)(p->epilogue ? 1 : 1 + below(&t->random, MAX_OUT));
    const unsigned operands = p->n_in + (p->epilogue ? 1u : 0u);
    p->n_regs = (uint8_t)(operands + SPARE_REGS);
    for (unsigned i = 0; i < operands; i++)
        kind[i] = t->half || (p->epilogue && i == 0) || below(&t->random, 4) ? 'f' : 'm';
    const unsigned wanted = 1 + below(&t->random, MAX_INSTRS);
    for (unsigned attempt = 0; attempt < 400 && p->n_instr < wanted; attempt++) {
        lnt_instr in = {.op = (uint8_t)below(&t->random, lnt_judged_count)};
        const char *sources = lnt_judged_instrs[in.op].sources;
        bool fits = sources && in.op != LNT_I_MOD && (!t->half || t->kernels->instr[in.op]);
        for (unsigned j = 0; fits && sources[j]; j++) {
            in.src[j] = (uint8_t)below(&t->random, p->n_regs);
            fits = kind[in.src[j]] == sources[j];
        }
        if (!fits)
            continue;
        in.imm[0] = -(float)below(&t->random, 3) * 0.5f;
        in.imm[1] = 1;
        in.dst = (uint8_t)below(&t->random, p->n_regs);
        if (p->epilogue && in.dst == 0 && lnt_judged_instrs[in.op].result == 'm')
            continue; /* one register stays fit to be the result */
        kind[in.dst] = lnt_judged_instrs[in.op].result;
        s->instr[p->n_instr++] = in;
    }
    for (unsigned i = 0; i < p->n_out; i++)
        do
            p->out[i] = (uint8_t)below(&t->random, p->n_regs);
        while (!kind[p->out[i]] || (p->epilogue && kind[p->out[i]] != 'f'));
}

static void shape_of_results(trial *t, scene *s, lnt_operand *o)
{
    static const uint8_t extents[] = {1, 2, 3, 4, 7, 16, 17, 33};
    o->rank = (uint8_t)below(&t->random, 6);
    s->elements = 1;
    for (unsigned d = 0; d < o->rank; d++) {
        o->dims[d] = extents[below(&t->random, sizeof extents)];
        if (below(&t->random, 8) == 0)
            o->dims[d] = 1 + below(&t->random, 1500);
        if (s->elements * o->dims[d] > MAX_ELEMENTS)
            o->dims[d] = 1;
        s->elements *= o->dims[d];
    }
    o->order = o->rank >= 3 && below(&t->random, 2) ? LNT_ORDER_CHANNELS_LAST : LNT_ORDER_PLAIN;
    s->cols = o->rank == 0 ? 1 : o->dims[o->order == LNT_ORDER_CHANNELS_LAST ? 1 : o->rank - 1];
    s->rows = s->elements / s->cols;
}

static void shape_of_operand(trial *t, const lnt_operand *result, lnt_operand *o)
{
    o->rank = (uint8_t)(below(&t->random, 3) ? result->rank : below(&t->random, result->rank + 1u));
    const bool full = below(&t->random, 3) == 0;
    for (unsigned d = 0; d < o->rank; d++)
        o->dims[d] = full || below(&t->random, 2) ? result->dims[d + result->rank - o->rank] : 1;
    o->order = o->rank >= 3 && below(&t->random, 2) ? LNT_ORDER_CHANNELS_LAST : LNT_ORDER_PLAIN;
}

static lnt_cell cell_of(unsigned dtype)
{
    return dtype == LNT_FLOAT16    ? LNT_CELL_F16
           : dtype == LNT_BFLOAT16 ? LNT_CELL_BF16
           : dtype == LNT_BOOL     ? LNT_CELL_BOOL
           : dtype == LNT_UINT8    ? LNT_CELL_U8
           : dtype == LNT_INT16    ? LNT_CELL_I16
           : dtype == LNT_INT32    ? LNT_CELL_I32
                                   : LNT_CELL_F32;
}

/* First byte of a tensor: element-aligned, no more. */
static char *data_of(tensor *x)
{
    return (char *)x->bytes + GUARD - 4;
}

static void fill_tensor(trial *t, tensor *x)
{
    const lnt_cell cell = cell_of(x->info.dtype);
    memset(x->bytes, 0x5a, sizeof x->bytes);
    for (int64_t i = 0; i < lnt_operand_count(&x->info); i++)
        set_cell(cell, data_of(x) + i * cell_bytes[cell],
                 draw_of(&t->random, cell == LNT_CELL_BOOL ? 'm' : 'f'));
}

/* Where the element at these indices of the result is in a broadcast operand. */
static int64_t offset_in(const lnt_operand *o, const lnt_operand *result, const int64_t *index)
{
    int64_t strides[LNT_MAX_RANK], offset = 0;
    lnt_operand_strides(o, strides);
    for (unsigned d = 0; d < o->rank; d++)
        offset += o->dims[d] == 1 ? 0 : index[d + result->rank - o->rank] * strides[d];
    return offset;
}

/* Element by element with the level's own instructions, so that the results must agree to the bit. */
static void expect(const trial *t, scene *s)
{
    const lnt_program *p = &s->program;
    const lnt_operand *result = &s->out[0].info;
    const unsigned tile = p->epilogue ? 1 : 0;
    float reg[LNT_PROGRAM_MAX_REGS][LNT_VECTOR_MAX];
    for (int64_t e = 0; e < s->elements; e++) {
        int64_t index[LNT_MAX_RANK], rest = e;
        for (unsigned d = result->rank; d-- > 0;) {
            index[d] = rest % result->dims[d];
            rest /= result->dims[d];
        }
        const int64_t at = offset_in(result, result, index);
        for (unsigned i = 0; i < p->n_in + tile; i++) {
            float x = lane(t, s->tile, at / s->cols * s->ld + at % s->cols);
            if (i >= tile) {
                tensor *in = &s->in[i - tile];
                const lnt_cell cell = cell_of(in->info.dtype);
                x = cell_value(cell, data_of(in) + offset_in(&in->info, result, index) * cell_bytes[cell]);
            }
            for (unsigned l = 0; l < LNT_VECTOR_MAX; l++)
                set_lane(t, reg[i], l, x);
        }
        for (unsigned k = 0; k < p->n_instr; k++) {
            const lnt_instr *in = &p->instr[k];
            lnt_instr_args a = {.dst = reg[in->dst], .imm = in->imm, .n = t->kernels->width};
            for (unsigned j = 0; j < 3; j++)
                a.src[j] = reg[in->src[j] < p->n_regs ? in->src[j] : 0];
            if (in->op != LNT_I_CONST)
                t->kernels->instr[in->op](&a);
            for (unsigned l = 0; in->op == LNT_I_CONST && l < LNT_VECTOR_MAX; l++)
                set_lane(t, reg[in->dst], l, in->imm[0]);
        }
        for (unsigned o = 0; o < p->n_out; o++) {
            /* Results are written in their own type: read back, that is what is expected. */
            _Alignas(8) uint8_t cell[8];
            const lnt_cell kind = p->epilogue ? LNT_CELL_F32 : cell_of(s->out[o].info.dtype);
            set_cell(kind, cell, lane(t, reg[p->out[o]], 0));
            s->expected[o][offset_in(&s->out[o].info, result, index)] = cell_value(kind, cell);
        }
    }
}

static void make_scene(trial *t, scene *s)
{
    static const uint8_t reals[] = {LNT_FLOAT,    LNT_FLOAT, LNT_FLOAT, LNT_FLOAT16,
                                    LNT_BFLOAT16, LNT_UINT8, LNT_INT16, LNT_INT32};
    make_program(t, s);
    shape_of_results(t, s, &s->out[0].info);
    const lnt_program_types types = lnt_program_types_of(&s->program);
    for (unsigned i = 0; i < s->program.n_out; i++) {
        lnt_operand *o = &s->out[i].info;
        *o = s->out[0].info;
        o->dtype = t->half ? LNT_FLOAT16 : types.result[i];
        if (i > 0 && o->rank >= 3)
            o->order = (uint8_t)below(&t->random, 2);
        fill_tensor(t, &s->out[i]);
    }
    for (unsigned i = 0; i < s->program.n_in; i++) {
        lnt_operand *o = &s->in[i].info;
        *o = (lnt_operand){.dtype = types.mask[i] ? LNT_BOOL
                                    : t->half     ? LNT_FLOAT16
                                                  : reals[below(&t->random, sizeof reals)]};
        shape_of_operand(t, &s->out[0].info, o);
        fill_tensor(t, &s->in[i]);
    }
    s->ld = s->cols + (int64_t)below(&t->random, 3);
    if (s->rows * s->ld > MAX_ELEMENTS * 2)
        s->ld = s->cols;
    for (int64_t i = 0; i < s->rows * s->ld; i++)
        set_lane(t, s->tile, i, draw_lane(t, 'f'));
    const lnt_operand *a = &s->in[0].info, *b = &s->out[0].info;
    s->in_place = !s->program.epilogue && a->dtype == b->dtype && a->rank == b->rank &&
                  a->order == b->order && lnt_operand_count(a) == s->elements && below(&t->random, 2);
}

/* In pieces of rows and columns, as threads would. */
static void run_pieces(trial *t, scene *s, const lnt_map *m)
{
    char *base[LNT_VIEW_MAX];
    const unsigned tile = s->program.epilogue ? 1 : 0;
    const int64_t rows = 1 + below(&t->random, (unsigned)m->rows),
                  cols = 1 + below(&t->random, (unsigned)m->cols);
    for (unsigned i = 0; i < s->program.n_in; i++)
        base[tile + i] = data_of(i == 0 && s->in_place ? &s->out[0] : &s->in[i]);
    for (unsigned i = 0; i < s->program.n_out; i++)
        base[m->n_in + i] = data_of(&s->out[i]);
    for (int64_t r = 0; r < m->rows; r += rows)
        for (int64_t c = 0; c < m->cols; c += cols) {
            if (tile)
                base[0] = base[m->n_in] = (char *)lnt_moved(s->tile, r * s->ld + c, t->half ? 2 : 4);
            lnt_map_run(m, base, s->ld, r, m->rows - r < rows ? m->rows - r : rows, c,
                        m->cols - c < cols ? m->cols - c : cols);
        }
}

static void judge_scene(trial *t, scene *s)
{
    for (unsigned o = 0; o < s->program.n_out; o++) {
        const lnt_cell cell = s->program.epilogue ? LNT_CELL_F32 : cell_of(s->out[o].info.dtype);
        const char *first = data_of(&s->out[o]);
        for (int64_t i = 0; i < s->elements; i++) {
            const float got = s->program.epilogue ? lane(t, s->tile, i / s->cols * s->ld + i % s->cols)
                                                  : cell_value(cell, first + i * cell_bytes[cell]);
            if (same(got, s->expected[o][i]))
                continue;
            lnt_check_fail(
                t->report,
                "a program of %u instructions at %s: result %u, element %lld of %lld is %a, not %a, "
                "seed %llu",
                s->program.n_instr, t->level, o, (long long)i, (long long)s->elements, (double)got,
                (double)s->expected[o][i], (unsigned long long)t->seed);
            return;
        }
        if (!s->program.epilogue && (first[-1] != 0x5a || first[s->elements * cell_bytes[cell]] != 0x5a))
            lnt_check_fail(t->report, "a program at %s writes outside its result", t->level);
    }
    t->report->cases += (uint64_t)s->elements;
}

static lnt_status check_map(trial *t, scene *s, lnt_bump *memory, lnt_level level)
{
    lnt_error err = {.code = LNT_OK};
    lnt_site site = {
        .err = &err, .memory = memory, .level = level, .kernels = lnt_kernels_of(level), .half = t->half};
    const lnt_operand *in[MAX_IN], *out[MAX_OUT];
    lnt_map m;
    make_scene(t, s);
    for (unsigned i = 0; i < MAX_IN; i++)
        in[i] = &s->in[i].info;
    for (unsigned i = 0; i < MAX_OUT; i++)
        out[i] = &s->out[i].info;
    const char *wrong = lnt_program_check(&s->program);
    if (wrong) {
        lnt_check_fail(t->report, "a sound program is refused: %s", wrong);
        return LNT_OK;
    }
    LNT_TRY(lnt_map_make(&site, &s->program, in, out, &m));
    if (t->half && !lnt_code_is_half(m.code)) {
        lnt_bump_reset(memory);
        return LNT_OK;
    }
    t->halves += t->half;
    if (s->in_place)
        memcpy(s->out[0].bytes, s->in[0].bytes, sizeof s->in[0].bytes);
    expect(t, s);
    run_pieces(t, s, &m);
    judge_scene(t, s);
    lnt_bump_reset(memory);
    return LNT_OK;
}

static lnt_status check_maps(trial *t, lnt_level level)
{
    lnt_bump memory;
    scene *s = lnt_alloc_zero(&lnt_malloc_allocator, 1, sizeof *s, NULL);
    lnt_status status = s ? LNT_OK : LNT_E_MEMORY;
    lnt_bump_init(&memory, &lnt_malloc_allocator);
    for (unsigned i = 0; i < MAP_ROUNDS && status == LNT_OK; i++)
        status = check_map(t, s, &memory, level);
    lnt_bump_free(&memory);
    lnt_free(&lnt_malloc_allocator, s);
    return status;
}

/* Instructions that the table has, and programs of them. In half arithmetic there are no masks to judge. */
static lnt_status check_table(trial *t, lnt_level level)
{
    for (unsigned op = 0; op < lnt_judged_count; op++) {
        const lnt_judged *judged = &lnt_judged_instrs[op];
        const bool there = judged->judge && t->kernels->instr[op] && !(t->half && strchr(judged->sources, 'm'));
        for (unsigned i = 0; there && i < ROUNDS; i++)
            check_instr(t, op);
    }
    return check_maps(t, level);
}

lnt_status lnt_check_program(lnt_level level, uint64_t seed, lnt_check_report *r)
{
    const lnt_kernels *k = lnt_kernels_of(level);
    trial t = {.report = r,
               .level = lnt_level_text(level),
               .seed = seed,
               .random = seed * 2 + 1,
               .kernels = k->program};
    for (unsigned cell = 0; cell < LNT_CELL_COUNT; cell++)
        check_cells(&t, (lnt_cell)cell);
    LNT_TRY(check_table(&t, level));
    if (k->half->program) {
        t.half = true;
        t.kernels = k->half->program;
        LNT_TRY(check_table(&t, level));
        if (t.halves < MAP_ROUNDS / 20)
            lnt_check_fail(r, "only %u programs are computed in halves at %s", t.halves, t.level);
    }
    return r->failures ? LNT_E_INTERNAL : LNT_OK;
}
