/* program.c — checking elementwise programs, and making them ready to run. */
#include "ops/elementwise/program.h"

#include "base/checked.h"
#include "base/half.h"
#include "base/lnt_assert.h"
#include "formats/packed.h"
#include "ops/copy.h"
#include "ops/elementwise/program_run.h"
#include "ops/half_kernels.h"

#include <math.h>
#include <string.h>

static const struct {
    char sources[4]; /* kinds of the registers read */
    char result;     /* 0: no such instruction */
} forms[LNT_I_END] = {
#define INSTR(number, name, src, dst, text) [number] = {src, dst},
#include "ops/elementwise/program_list.h"
#undef INSTR
};

unsigned lnt_instr_sources(unsigned op)
{
    return op < LNT_I_END ? (unsigned)strlen(forms[op].sources) : 0;
}

static unsigned operand_count(const lnt_program *p)
{
    return p->n_in + (p->epilogue ? 1u : 0u);
}

/* ---- checking ---- */

/* What is known of registers while walking a program. A kind is 'f', 'm', '?' (an operand no one has read
 * yet) or 0 (nothing there). */
typedef struct walk {
    char kind[LNT_PROGRAM_MAX_REGS];
    uint8_t operand[LNT_PROGRAM_MAX_REGS];     /* operand that is in the register, or NOT_OPERAND */
    char operand_kind[LNT_PROGRAM_MAX_IN + 1]; /* how it was read first */
} walk;

enum { NOT_OPERAND = 255 };

static const char *read_register(walk *w, const lnt_program *p, unsigned r, char wanted)
{
    if (r >= p->n_regs || !w->kind[r])
        return "a register is read before it is written";
    if (w->kind[r] == '?') {
        char *kind = &w->operand_kind[w->operand[r]];
        if (*kind == '?')
            *kind = wanted;
        w->kind[r] = *kind;
    }
    return w->kind[r] == wanted ? NULL : "a register is read as another kind than it is";
}

static const char *walk_instr(walk *w, const lnt_program *p, const lnt_instr *in)
{
    const char *sources = forms[in->op].sources;
    if (!forms[in->op].result)
        return "unknown instruction";
    for (unsigned j = 0; sources[j]; j++) {
        const char *wrong = read_register(w, p, in->src[j], sources[j]);
        if (wrong)
            return wrong;
    }
    if (in->dst >= p->n_regs)
        return "a register number is out of range";
    w->kind[in->dst] = forms[in->op].result;
    w->operand[in->dst] = NOT_OPERAND;
    return NULL;
}

static const char *walk_program(walk *w, const lnt_program *p)
{
    memset(w, 0, sizeof *w);
    const unsigned n_in = operand_count(p);
    if (p->n_in > LNT_PROGRAM_MAX_IN || p->n_regs > LNT_PROGRAM_MAX_REGS || n_in > p->n_regs)
        return "too many operands or registers";
    if (p->n_instr > LNT_PROGRAM_MAX_INSTR)
        return "too many instructions";
    if (p->n_out < 1 || p->n_out > LNT_PROGRAM_MAX_OUT || (p->epilogue && p->n_out != 1))
        return "the number of results is out of range";
    for (unsigned i = 0; i < n_in; i++) {
        w->operand[i] = (uint8_t)i;
        w->kind[i] = w->operand_kind[i] = '?';
    }
    if (p->epilogue)
        w->kind[0] = w->operand_kind[0] = 'f';
    for (unsigned i = 0; i < p->n_instr; i++) {
        const char *wrong = walk_instr(w, p, &p->instr[i]);
        if (wrong)
            return wrong;
    }
    for (unsigned i = 0; i < p->n_out; i++)
        if (p->out[i] >= p->n_regs || !w->kind[p->out[i]])
            return "a result is never written";
    return p->epilogue && w->kind[p->out[0]] == 'm' ? "an epilogue must give floats" : NULL;
}

const char *lnt_program_check(const lnt_program *p)
{
    walk w;
    return walk_program(&w, p);
}

static lnt_dtype result_type(const walk *w, const lnt_program *p, unsigned reg)
{
    if (w->kind[reg] == 'm')
        return LNT_BOOL;
    for (unsigned k = p->n_instr; k-- > 0;)
        if (p->instr[k].dst == reg)
            return p->instr[k].op == LNT_I_TO_F16    ? LNT_FLOAT16
                   : p->instr[k].op == LNT_I_TO_BF16 ? LNT_BFLOAT16
                                                     : LNT_FLOAT;
    return LNT_FLOAT;
}

lnt_program_types lnt_program_types_of(const lnt_program *p)
{
    walk w;
    lnt_program_types types;
    walk_program(&w, p);
    for (unsigned i = 0; i < p->n_in; i++)
        types.mask[i] = w.operand_kind[i + (p->epilogue ? 1u : 0u)] == 'm';
    for (unsigned i = 0; i < p->n_out; i++)
        types.result[i] = (uint8_t)result_type(&w, p, p->out[i]);
    return types;
}

/* ---- making code ---- */

enum {
    MAX_OPERANDS = LNT_PROGRAM_MAX_IN + 1,
    MAX_WORK = LNT_PROGRAM_MAX_INSTR + LNT_PROGRAM_MAX_OUT,
    /* Values while a program is rewritten: operands, constants, results of instructions. */
    FIRST_CONSTANT = MAX_OPERANDS,
    FIRST_RESULT = FIRST_CONSTANT + LNT_PROGRAM_MAX_INSTR,
    MAX_VALUES = FIRST_RESULT + MAX_WORK,
    NOT_PLACED = 255
};

/* The program with every value written once. */
typedef struct work {
    struct {
        uint8_t op, value, src[3], n_src; /* op 0: gone */
        float imm[2];
    } instr[MAX_WORK];
    unsigned n;
    uint8_t uses[MAX_VALUES];
    float constant[LNT_PROGRAM_MAX_INSTR];
    unsigned n_constants;
    uint8_t out[LNT_PROGRAM_MAX_OUT];
} work;

static void append(work *w, const lnt_instr *in, const uint8_t *value_of)
{
    const unsigned i = w->n++;
    w->instr[i].op = in->op;
    w->instr[i].value = (uint8_t)(FIRST_RESULT + i);
    memcpy(w->instr[i].imm, in->imm, sizeof in->imm);
    w->instr[i].n_src = (uint8_t)lnt_instr_sources(in->op);
    for (unsigned j = 0; j < w->instr[i].n_src; j++)
        w->uses[w->instr[i].src[j] = value_of[in->src[j]]]++;
}

/* A result that is its source. */
static bool is_copy(const lnt_instr *in)
{
    return in->op == LNT_I_CLIP && in->imm[0] == -INFINITY && in->imm[1] == INFINITY;
}

static void number_values(work *w, const lnt_program *p)
{
    uint8_t value_of[LNT_PROGRAM_MAX_REGS];
    w->n = w->n_constants = 0;
    memset(w->uses, 0, sizeof w->uses);
    for (unsigned i = 0; i < operand_count(p); i++)
        value_of[i] = (uint8_t)i;
    for (unsigned i = 0; i < p->n_instr; i++) {
        const lnt_instr *in = &p->instr[i];
        if (in->op == LNT_I_CONST) {
            w->constant[w->n_constants] = in->imm[0];
            value_of[in->dst] = (uint8_t)(FIRST_CONSTANT + w->n_constants++);
        } else if (is_copy(in)) {
            value_of[in->dst] = value_of[in->src[0]];
        } else {
            append(w, in, value_of);
            value_of[in->dst] = (uint8_t)(FIRST_RESULT + w->n - 1);
        }
    }
    for (unsigned i = 0; i < p->n_out; i++) {
        uint8_t value = value_of[p->out[i]];
        /* A copy of what has no memory of its own, or might be where another result goes. */
        if (value < FIRST_RESULT && (value >= FIRST_CONSTANT || p->n_out > 1)) {
            append(w, &(lnt_instr){.op = LNT_I_OR, .src = {p->out[i], p->out[i]}}, value_of);
            value = (uint8_t)(FIRST_RESULT + w->n - 1);
        }
        w->uses[w->out[i] = value]++;
    }
}

/* The instruction whose only use is source j of instruction i and which is one of ops; -1 if there is none. */
static int sole_source(const work *w, unsigned i, unsigned j, unsigned op)
{
    const unsigned value = w->instr[i].src[j];
    if (value < FIRST_RESULT || w->uses[value] != 1)
        return -1;
    const unsigned made_by = value - FIRST_RESULT;
    return w->instr[made_by].op == op ? (int)made_by : -1;
}

/* t = a * b; y = t + c becomes one instruction. */
static void join_mul_add(work *w, unsigned i)
{
    for (unsigned j = 0; j < 2; j++) {
        const int mul = sole_source(w, i, j, LNT_I_MUL);
        if (mul < 0)
            continue;
        w->instr[i].src[2] = w->instr[i].src[1 - j];
        memcpy(w->instr[i].src, w->instr[mul].src, 2);
        w->instr[i].n_src = 3;
        w->instr[i].op = LNT_C_MUL_ADD;
        w->instr[mul].op = 0;
        return;
    }
}

/* A sum or product that is clamped next becomes one instruction. */
static void join_clip(work *w, unsigned i)
{
    static const struct {
        uint8_t op, clipped;
    } pairs[] = {
        {LNT_I_ADD, LNT_C_ADD_CLIP}, {LNT_I_MUL, LNT_C_MUL_CLIP}, {LNT_C_MUL_ADD, LNT_C_MUL_ADD_CLIP}};
    for (unsigned k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
        const int made_by = sole_source(w, i, 0, pairs[k].op);
        if (made_by < 0)
            continue;
        if (w->instr[i].op == LNT_I_RELU) {
            w->instr[i].imm[0] = 0;
            w->instr[i].imm[1] = INFINITY;
        }
        memcpy(w->instr[i].src, w->instr[made_by].src, 3);
        w->instr[i].n_src = w->instr[made_by].n_src;
        w->instr[i].op = pairs[k].clipped;
        w->instr[made_by].op = 0;
        return;
    }
}

static void join_not_equal(work *w, unsigned i)
{
    const int made_by = sole_source(w, i, 0, LNT_I_EQUAL);
    if (made_by < 0)
        return;
    memcpy(w->instr[i].src, w->instr[made_by].src, 2);
    w->instr[i].n_src = 2;
    w->instr[i].op = LNT_C_NOT_EQUAL;
    w->instr[made_by].op = 0;
}

/* a where it is above b, else something else. */
static void join_above_or(work *w, unsigned i)
{
    const int made_by = sole_source(w, i, 0, LNT_I_GREATER);
    if (made_by < 0 || w->instr[made_by].src[0] != w->instr[i].src[1])
        return;
    w->uses[w->instr[i].src[1]]--;
    memcpy(w->instr[i].src, w->instr[made_by].src, 2);
    w->instr[i].op = LNT_C_ABOVE_OR;
    w->instr[made_by].op = 0;
}

static void join_softsign(work *w, unsigned i)
{
    const int sum = sole_source(w, i, 1, LNT_I_ADD),
              abs = sum < 0 ? -1 : sole_source(w, (unsigned)sum, 0, LNT_I_ABS);
    if (abs < 0 || w->instr[abs].src[0] != w->instr[i].src[0])
        return;
    w->uses[w->instr[i].src[0]]--;
    w->instr[i].src[1] = w->instr[sum].src[1];
    w->instr[i].op = LNT_C_SOFTSIGN;
    w->instr[sum].op = w->instr[abs].op = 0;
}

static void join_neighbors(work *w)
{
    for (unsigned i = 0; i < w->n; i++) {
        if (w->instr[i].op == LNT_I_ADD)
            join_mul_add(w, i);
        else if (w->instr[i].op == LNT_I_RELU || w->instr[i].op == LNT_I_CLIP)
            join_clip(w, i);
        else if (w->instr[i].op == LNT_I_NOT)
            join_not_equal(w, i);
        else if (LNT_LONG_VECTORS && w->instr[i].op == LNT_I_WHERE)
            join_above_or(w, i);
        else if (LNT_LONG_VECTORS && w->instr[i].op == LNT_I_DIV)
            join_softsign(w, i);
    }
}

/* Results that are rounded to 16 bits: their store rounds, too. What number_values copies stays a value of its own. */
static void leave_rounding_to_stores(work *w, const lnt_operand *const *out, unsigned n_out)
{
    for (unsigned o = 0; o < n_out; o++) {
        const unsigned value = w->out[o], i = value - FIRST_RESULT;
        if (value < FIRST_RESULT || w->uses[value] != 1)
            continue;
        const unsigned op = w->instr[i].op, dtype = out[o]->dtype;
        if (w->instr[i].src[0] < FIRST_RESULT && (w->instr[i].src[0] >= FIRST_CONSTANT || n_out > 1))
            continue;
        if ((op != LNT_I_TO_F16 || dtype != LNT_FLOAT16) && (op != LNT_I_TO_BF16 || dtype != LNT_BFLOAT16))
            continue;
        w->out[o] = w->instr[i].src[0];
        w->instr[i].op = 0;
    }
}

/* ---- half arithmetic ---- */

static bool is_normal_half(float x)
{
    return x == 0 || (fabsf(x) >= 0x1p-14f && fabsf(x) <= LNT_F16_MAX);
}

/* What may multiply an operand that comes no nearer to the largest half than an eighth (docs/accuracy.md). */
static bool is_small(float x)
{
    return fabsf(x) <= 8;
}

/* Is the instruction's result small, whatever its sources are? */
static bool is_bounded(unsigned op, const float *imm)
{
    const bool clips = op == LNT_I_CLIP || (op >= LNT_C_ADD_CLIP && op <= LNT_C_MUL_ADD_CLIP);
    return op == LNT_I_SIGMOID || op == LNT_I_TANH || op == LNT_I_HARD_SIGMOID ||
           (clips && is_small(imm[0]) && is_small(imm[1]));
}

/* How many operands' magnitudes multiply to that of a result; degree[]: of values. */
static unsigned degree_of(const work *w, unsigned i, const uint8_t *degree)
{
    const unsigned op = w->instr[i].op;
    const uint8_t *src = w->instr[i].src;
    unsigned most = 0;
    for (unsigned j = 0; j < w->instr[i].n_src; j++)
        most = degree[src[j]] > most ? degree[src[j]] : most;
    if (is_bounded(op, w->instr[i].imm))
        return 0;
    if (op == LNT_I_SQUARE)
        return 2 * most;
    if (op == LNT_I_MUL || op == LNT_I_PRELU || op == LNT_C_MUL_ADD || op == LNT_C_MUL_CLIP ||
        op == LNT_C_MUL_ADD_CLIP) {
        const unsigned product = degree[src[0]] + degree[src[1]];
        return product > most ? product : most;
    }
    return most;
}

/* Are the instruction's immediates halves? Bounds of a clip may be infinite, and are where they are larger. */
static bool has_half_immediates(const work *w, unsigned i)
{
    const unsigned op = w->instr[i].op;
    if (op == LNT_I_CLIP || (op >= LNT_C_ADD_CLIP && op <= LNT_C_MUL_ADD_CLIP))
        return true;
    return is_normal_half(w->instr[i].imm[0]) && is_normal_half(w->instr[i].imm[1]);
}

/* Has all of it a form in half arithmetic, and does no value on the way multiply two operands? Of a result that does,
 * the halves in memory are as large as what is computed. */
static bool computes_in_halves(const work *w, unsigned n_in, unsigned n_out, const lnt_program_kernels *k)
{
    uint8_t degree[MAX_VALUES] = {0};
    memset(degree, 1, n_in);
    for (unsigned i = 0; i < w->n_constants; i++) {
        if (!is_normal_half(w->constant[i]))
            return false;
        degree[FIRST_CONSTANT + i] = !is_small(w->constant[i]);
    }
    for (unsigned i = 0; i < w->n; i++) {
        if (!w->instr[i].op)
            continue;
        if (!k->instr[w->instr[i].op] || !has_half_immediates(w, i))
            return false;
        const unsigned found = degree_of(w, i, degree), value = w->instr[i].value;
        bool result = false;
        for (unsigned o = 0; o < n_out; o++)
            result |= w->out[o] == value && w->uses[value] == 1;
        if (found > (result ? 2 : 1))
            return false;
        degree[value] = (uint8_t)found;
    }
    return true;
}

/* Slots: the operands', then temporaries, then constants. */
typedef struct code_instr {
    lnt_instr_fn run;
    uint8_t dst, src[3], n_src;
    bool takes_rows;
    float imm[2];
} code_instr;

struct lnt_code {
    const lnt_program_kernels *kernels;
    unsigned n_in, n_out, n_instr;
    unsigned n_slots;     /* with memory: operands and temporaries */
    unsigned n_constants; /* slots behind those */
    int64_t block;        /* elements of a slot */
    uint8_t out[LNT_PROGRAM_MAX_OUT];
    /* The last instruction gives result 0 and nothing else: it may write to the result's memory. */
    bool direct;
    code_instr instr[MAX_WORK];
    float constant[][LNT_VECTOR_MAX];
};

/* Gives every value a slot: a temporary's is free again after its last use. */
static void place_values(const work *w, lnt_code *c, uint8_t *slot)
{
    uint8_t left[MAX_VALUES], free_slot[MAX_WORK];
    unsigned n_free = 0;
    memcpy(left, w->uses, sizeof left);
    c->n_slots = c->n_in;
    for (unsigned i = 0; i < w->n; i++) {
        if (!w->instr[i].op)
            continue;
        for (unsigned j = 0; j < w->instr[i].n_src; j++) {
            const unsigned value = w->instr[i].src[j];
            if (value >= FIRST_RESULT && --left[value] == 0)
                free_slot[n_free++] = slot[value];
        }
        const unsigned value = w->instr[i].value;
        slot[value] = n_free ? free_slot[--n_free] : (uint8_t)c->n_slots++;
        if (left[value] == 0)
            free_slot[n_free++] = slot[value];
    }
    for (unsigned i = 0; i < c->n_in; i++)
        slot[i] = (uint8_t)i;
    for (unsigned i = 0; i < w->n_constants; i++)
        slot[FIRST_CONSTANT + i] = (uint8_t)(c->n_slots + i);
}

static void emit(const work *w, lnt_code *c, const uint8_t *slot)
{
    for (unsigned i = 0; i < w->n; i++) {
        if (!w->instr[i].op)
            continue;
        code_instr *e = &c->instr[c->n_instr++];
        e->run = c->kernels->instr[w->instr[i].op];
        e->takes_rows = c->kernels->takes_rows && LNT_TAKES_ROWS(w->instr[i].op);
        e->dst = slot[w->instr[i].value];
        e->n_src = w->instr[i].n_src;
        for (unsigned j = 0; j < e->n_src; j++)
            e->src[j] = slot[w->instr[i].src[j]];
        memcpy(e->imm, w->instr[i].imm, sizeof e->imm);
    }
    for (unsigned i = 0; i < c->n_out; i++)
        c->out[i] = slot[w->out[i]];
    for (unsigned i = 0; i < w->n_constants; i++)
        c->kernels->cells->load[LNT_CELL_F32](c->constant[i], &w->constant[i], 0, LNT_VECTOR_MAX);
}

enum {
    SLOT_MEMORY = 6144, /* floats of all slots together: half an L1 cache */
    LARGEST_BLOCK = 512,
    MAX_SLOTS = MAX_OPERANDS + MAX_WORK
};

const lnt_code *lnt_code_make(lnt_site *site, const lnt_program *p, const lnt_operand *const *out,
                              bool halves)
{
    work w;
    uint8_t slot[MAX_VALUES];
    memset(slot, NOT_PLACED, sizeof slot);
    number_values(&w, p);
    lnt_code *c = lnt_bump_alloc(site->memory, sizeof *c + w.n_constants * sizeof *c->constant, site->err);
    if (!c)
        return NULL;
    c->n_in = operand_count(p);
    c->n_out = p->n_out;
    c->n_constants = w.n_constants;
    join_neighbors(&w);
    const lnt_program_kernels *half = LNT_HAS_HALVES && halves ? site->kernels->half->program : NULL;
    c->kernels = half && computes_in_halves(&w, c->n_in, c->n_out, half) ? half : site->kernels->program;
    if (!p->epilogue && c->kernels == site->kernels->program)
        leave_rounding_to_stores(&w, out, c->n_out);
    place_values(&w, c, slot);
    emit(&w, c, slot);
    const int64_t fitting = SLOT_MEMORY / c->n_slots / 64 * 64;
    c->block = fitting < LARGEST_BLOCK ? fitting : LARGEST_BLOCK;
    c->direct = c->n_instr > 0 && c->instr[c->n_instr - 1].dst == c->out[0];
    for (unsigned i = 1; i < c->n_out; i++)
        c->direct = c->direct && c->out[i] != c->out[0];
    return c;
}

bool lnt_code_is_half(const lnt_code *c)
{
    return LNT_HAS_HALVES && c->kernels->cell == LNT_CELL_F16;
}

/* ---- running ---- */

/* A run's slots, and where each is found at the moment. */
typedef struct frame {
    const lnt_code *code;
    const lnt_view *view;
    const float *at[MAX_SLOTS + LNT_PROGRAM_MAX_INSTR];
    int64_t step[MAX_SLOTS + LNT_PROGRAM_MAX_INSTR]; /* lnt_instr_args.step */
    bool loaded[MAX_OPERANDS];                       /* holds what is the same for all rows */
    bool has_whole_rows;                             /* parts do */
    _Alignas(64) float scalar[MAX_OPERANDS][LNT_VECTOR_MAX];
    _Alignas(64) float memory[SLOT_MEMORY];
} frame;

_Static_assert(SLOT_MEMORY / MAX_SLOTS >= 64, "every program has a block of at least 64");

/* Rows [row, row + rows) x columns [col, col + cols), no more elements than a block. */
typedef struct part {
    int64_t row, rows, col, cols;
} part;

/* Lanes of a register from lane i on; of halves, which are handed around as floats, half as far. */
static float *lanes(const lnt_code *c, const float *reg, int64_t i)
{
    return lnt_moved(reg, i, lnt_code_is_half(c) ? sizeof(uint16_t) : sizeof(float));
}

static float *slot_memory(frame *f, unsigned slot)
{
    return f->memory + (int64_t)slot * f->code->block;
}

static bool lies_dense(const lnt_code *c, const lnt_view *v, const part *b)
{
    const lnt_cell lane = lnt_code_is_half(c) ? LNT_CELL_F16 : LNT_CELL_F32;
    return v->cell == lane && v->col_stride == 1 && (b->rows == 1 || v->row_stride == b->cols);
}

static size_t cell_bytes(lnt_cell cell)
{
    static const uint8_t bytes[LNT_CELL_COUNT] = {4, 2, 2, 1, 1, 1, 2, 2, 4, 8};
    return bytes[cell];
}

static char *element(const lnt_view *v, int64_t row, int64_t col)
{
    return v->data + (row * v->row_stride + col * v->col_stride) * (int64_t)cell_bytes(v->cell);
}

static int64_t row_bytes(const lnt_view *v)
{
    return v->row_stride * (int64_t)cell_bytes(v->cell);
}

/* An element for each row, in all lanes of the row. */
static void load_columns(const lnt_code *c, float *reg, const lnt_view *v, const part *b)
{
    enum { AT_ONCE = 64 };
    const size_t lane = lnt_code_is_half(c) ? sizeof(uint16_t) : sizeof(float);
    float some[AT_ONCE];
    for (int64_t r = 0; r < b->rows; r += AT_ONCE) {
        const int64_t rows = lnt_least(AT_ONCE, b->rows - r);
        c->kernels->cells->load[v->cell](some, element(v, b->row + r, b->col), v->row_stride, rows);
        lnt_repeat_each(lanes(c, reg, r * b->cols), some, (int64_t)lane, rows, b->cols, lane);
    }
}

/* Rows of a part that the view has one behind the other, as one of its lines has them. */
static int64_t rows_together(const lnt_view *v, const part *b)
{
    return !LNT_TRIMMED && v->col_stride == 1 && v->row_stride == b->cols ? b->rows : 1;
}

/* Rows of elements; one that is the same for all is loaded once. */
static void load_rows(const lnt_code *c, float *reg, const lnt_view *v, const part *b)
{
    const int64_t together = rows_together(v, b), step = row_bytes(v);
    const bool repeats = !LNT_TRIMMED && step == 0;
    const char *from = element(v, b->row, b->col);
    for (int64_t r = 0; r < (repeats ? 1 : b->rows); r += together, from += step)
        c->kernels->cells->load[v->cell](lanes(c, reg, r * b->cols), from, v->col_stride, together * b->cols);
    if (repeats)
        lnt_repeat_bytes(reg, reg, (const char *)lanes(c, reg, b->cols) - (const char *)reg, b->rows);
}

static void load_operand(frame *f, unsigned i, const part *b, bool whole_vectors)
{
    const lnt_view *v = &f->view[i];
    if (v->col_stride == 0 && (b->rows == 1 || v->row_stride == 0)) {
        if (!f->loaded[i])
            f->code->kernels->cells->load[v->cell](f->scalar[i], element(v, b->row, b->col), 0,
                                                   LNT_VECTOR_MAX);
        f->at[i] = f->scalar[i];
        f->step[i] = 0;
        f->loaded[i] = v->row_stride == 0;
        return;
    }
    f->step[i] = 1;
    if (whole_vectors && lies_dense(f->code, v, b)) {
        f->at[i] = (const float *)(const void *)element(v, b->row, b->col);
        return;
    }
    float *reg = slot_memory(f, i);
    f->at[i] = reg;
    if (f->loaded[i])
        return;
    if (v->col_stride == 0) {
        load_columns(f->code, reg, v, b);
    } else {
        load_rows(f->code, reg, v, b);
    }
    f->loaded[i] = v->row_stride == 0 && f->has_whole_rows;
}

static void run_instrs(frame *f, int64_t n, float *last_dst)
{
    LNT_ASSERT(n > 0 && n % f->code->kernels->width == 0);
    const lnt_code *c = f->code;
    lnt_instr_args args = {.n = n};
    for (unsigned i = 0; i < c->n_instr; i++) {
        const code_instr *e = &c->instr[i];
        for (unsigned j = 0; j < e->n_src; j++) {
            args.src[j] = f->at[e->src[j]];
            args.step[j] = f->step[e->src[j]];
        }
        args.imm = e->imm;
        args.dst = last_dst && i + 1 == c->n_instr ? last_dst : slot_memory(f, e->dst);
        e->run(&args);
        f->at[e->dst] = args.dst;
        f->step[e->dst] = 1;
    }
}

/* n lanes of a slot: an operand that is the same in all of them is written out. */
static const float *spread(frame *f, unsigned slot, int64_t n)
{
    if (f->step[slot])
        return f->at[slot];
    f->code->kernels->cells->load[f->code->kernels->cell](slot_memory(f, slot), f->at[slot], 0, n);
    return slot_memory(f, slot);
}

static __attribute__((noinline)) void run_part(frame *f, const part *b)
{
    const lnt_code *c = f->code;
    const int64_t n = b->rows * b->cols, width = c->kernels->width, padded = (n + width - 1) / width * width;
    for (unsigned i = 0; i < c->n_in; i++)
        load_operand(f, i, b, n == padded);
    const lnt_view *result = f->view + c->n_in;
    const bool direct = c->direct && n == padded && lies_dense(c, result, b);
    run_instrs(f, padded, direct ? (float *)(void *)element(result, b->row, b->col) : NULL);
    for (unsigned o = direct; o < c->n_out; o++) {
        const float *reg = spread(f, c->out[o], padded);
        const lnt_view *v = &result[o];
        const int64_t step = row_bytes(v), together = rows_together(v, b);
        char *to = element(v, b->row, b->col);
        for (int64_t r = 0; r < b->rows; r += together, to += step, reg = lanes(c, reg, b->cols))
            c->kernels->cells->store[v->cell](reg, to, v->col_stride, together * b->cols);
    }
}

/* Rows of a block: where they can, as many as fill whole vectors, which are then read and written where they
 * lie. */
static int64_t rows_at_once(const lnt_code *c, int64_t cols)
{
    const int64_t most = cols * 2 > c->block ? 1 : c->block / cols, both = cols | c->kernels->width;
    const int64_t whole = c->kernels->width / (both & -both);
    return most > whole ? most - most % whole : most;
}

static bool takes_rows(const lnt_code *c)
{
    return LNT_LONG_VECTORS && c->instr[0].takes_rows;
}

/* Nothing goes through a slot but what is the same in a whole row, or a result that is converted: rows of whole vectors
 * or more need not be cut to blocks. Every call of an instruction costs the processor its look ahead. */
static bool runs_in_place(const lnt_code *c, const lnt_view *view, int64_t cols)
{
    const part row = {.rows = 1, .cols = cols};
    bool in_place = c->direct && c->n_instr == 1 && cols >= c->kernels->width &&
                    (lies_dense(c, &view[c->n_in], &row) || takes_rows(c));
    for (unsigned i = 0; i < c->n_in; i++)
        in_place = in_place && (view[i].col_stride == 0 || lies_dense(c, &view[i], &row));
    return in_place;
}

enum { SLOT_LANES = 2048, ROWS_AT_ONCE = 16, LANES_AT_ONCE = ROWS_AT_ONCE * LNT_VECTOR_MAX };

/* Points the sources at rows [row, row + rows). scalar[j]: lanes, or where rows are not taken vectors, of a source that
 * is the same in all of a row. */
static void enter_rows(const lnt_code *c, const lnt_view *view, int64_t row, int64_t rows,
                       float scalar[][LANES_AT_ONCE], lnt_instr_args *args)
{
    const int64_t width = takes_rows(c) ? 1 : c->kernels->width;
    for (unsigned j = 0; j < c->instr[0].n_src; j++) {
        const unsigned slot = c->instr[0].src[j];
        if (slot >= c->n_slots) {
            args->src[j] = c->constant[slot - c->n_slots];
            continue;
        }
        const lnt_view *v = &view[slot];
        args->step[j] = v->col_stride;
        args->pitch[j] = v->row_stride && !v->col_stride ? width : v->row_stride;
        args->src[j] = v->col_stride ? (const float *)(const void *)element(v, row, 0) : scalar[j];
        if (v->col_stride != 0 || (row > 0 && v->row_stride == 0))
            continue;
        if (takes_rows(c))
            c->kernels->cells->load[v->cell](scalar[j], element(v, row, 0), v->row_stride, rows);
        else
            load_columns(c, scalar[j], v, &(part){row, rows, 0, width});
    }
    args->dst = (float *)(void *)element(&view[c->n_in], row, 0);
    args->more = rows - 1;
}

/* Whole vectors, and the last one: it comes first, to be stored last, over lanes that it shares with the others, for
 * the result may be an operand's memory. */
static void run_each_row(const lnt_code *c, lnt_instr_args *args, int64_t cols)
{
    const int64_t width = c->kernels->width, lane = (int64_t)cell_bytes(c->kernels->cell), last = cols - width;
    const bool whole = cols % width == 0;
    _Alignas(64) float tail[LNT_VECTOR_MAX];
    lnt_instr_args end = {.imm = args->imm, .n = width, .dst = tail};
    args->n = cols - cols % width;
    for (; args->more >= 0; args->more--) {
        for (unsigned j = 0; j < 3 && !whole; j++) {
            end.step[j] = args->step[j];
            end.src[j] = lnt_moved(args->src[j], last * args->step[j], (size_t)lane);
        }
        if (!whole)
            c->instr[0].run(&end);
        c->instr[0].run(args);
        if (!whole)
            memcpy(lanes(c, args->dst, last), tail, (size_t)(width * lane));
        for (unsigned j = 0; j < 3; j++)
            args->src[j] = lnt_moved(args->src[j], args->pitch[j], (size_t)lane);
        args->dst = lanes(c, args->dst, args->pitch[3]);
    }
}

/* Rows whose results are converted: one row of any length, or as many as a slot has room for. */
static void run_through_slot(const lnt_code *c, const lnt_instr_args *args, const lnt_view *result,
                             int64_t row, int64_t cols)
{
    _Alignas(64) float slot[SLOT_LANES];
    const int64_t rows = args->more + 1, width = c->kernels->width;
    lnt_instr_args some = *args;
    LNT_ASSERT(rows == 1 || rows * cols <= SLOT_LANES);
    some.dst = slot;
    for (int64_t col = 0, n; col < cols; col += n) {
        n = lnt_least(SLOT_LANES, cols - col);
        if (n < width)
            col = cols - (n = width);
        for (unsigned j = 0; j < 3; j++)
            some.src[j] = args->src[j] + col * args->step[j];
        some.n = some.pitch[3] = n;
        c->instr[0].run(&some);
        const int64_t together = rows == 1 || (result->col_stride == 1 && result->row_stride == n) ? rows : 1;
        for (int64_t r = 0; r < rows; r += together)
            c->kernels->cells->store[result->cell](slot + r * n, element(result, row + r, col),
                                                   result->col_stride, together * n);
    }
}

static void run_in_place(const lnt_code *c, const lnt_view *view, int64_t rows, int64_t cols)
{
    _Alignas(64) float scalar[3][LANES_AT_ONCE];
    const lnt_view *result = &view[c->n_in];
    lnt_instr_args args = {.imm = c->instr[0].imm, .n = cols, .pitch[3] = result->row_stride};
    const bool dense = lies_dense(c, result, &(part){.rows = 1, .cols = cols});
    const int64_t at_once = !takes_rows(c)       ? ROWS_AT_ONCE
                            : dense              ? LANES_AT_ONCE
                            : cols >= SLOT_LANES ? 1
                                                 : SLOT_LANES / cols;
    LNT_ASSERT(cols >= c->kernels->width);
    for (int64_t row = 0; row < rows; row += at_once) {
        enter_rows(c, view, row, lnt_least(at_once, rows - row), scalar, &args);
        if (!takes_rows(c))
            run_each_row(c, &args, cols);
        else if (dense)
            c->instr[0].run(&args);
        else
            run_through_slot(c, &args, result, row, cols);
    }
}

enum { LONG_ROW = 64 };

/* A row that is loaded, into the result itself where its elements are as wide, and stored. */
static void convert_row(const lnt_code *c, const lnt_view *from, const lnt_view *to, int64_t row,
                        int64_t cols)
{
    _Alignas(64) float block[LARGEST_BLOCK];
    const bool as_wide = to->cell == LNT_CELL_I32 && to->col_stride == 1;
    LNT_ASSERT(!lnt_code_is_half(c) && cols > 0);
    for (int64_t i = 0, n; i < cols; i += n) {
        char *at = element(to, row, i);
        float *reg = as_wide ? (float *)(void *)at : block;
        n = lnt_least(LARGEST_BLOCK, cols - i);
        c->kernels->cells->load[from->cell](reg, element(from, row, i), from->col_stride, n);
        c->kernels->cells->store[to->cell](reg, at, to->col_stride, n);
    }
}

/* A program without instructions: one step where memory is a register on one side, else two for a long row. */
static bool run_conversion(const lnt_code *c, const lnt_view *view, int64_t rows, int64_t cols)
{
    const lnt_view *from = view, *to = view + 1;
    const lnt_cells *cells = c->kernels->cells;
    if (c->n_instr > 0 || c->n_in != 1 || c->n_out != 1)
        return false;
    const part row = {.rows = 1, .cols = cols};
    const bool load = lies_dense(c, to, &row), store = lies_dense(c, from, &row),
               both = cols >= LONG_ROW && !lnt_code_is_half(c);
    for (int64_t r = 0; r < rows && (load || store || both); r++)
        if (load)
            cells->load[from->cell]((float *)(void *)element(to, r, 0), element(from, r, 0), from->col_stride,
                                    cols);
        else if (store)
            cells->store[to->cell]((const float *)(const void *)element(from, r, 0), element(to, r, 0),
                                   to->col_stride, cols);
        else
            convert_row(c, from, to, r, cols);
    return load || store || both;
}

/* Do the rows of all operands and results follow one another? */
static bool is_one_row(const lnt_code *c, const lnt_view *view, int64_t cols)
{
    bool one = true;
    for (unsigned i = 0; i < c->n_in + c->n_out; i++) {
        const bool same = i < c->n_in && view[i].col_stride == 0 && view[i].row_stride == 0;
        one = one && (same || (view[i].col_stride == 1 && view[i].row_stride == cols));
    }
    return one;
}

/* Is an operand one number for each row? To be read in blocks it were to be written as often as the row is long. */
static bool has_numbers(const lnt_code *c, const lnt_view *view)
{
    for (unsigned i = 0; i < c->n_in; i++)
        if (view[i].col_stride == 0 && view[i].row_stride != 0)
            return true;
    return false;
}

/* Blocks hold several whole rows where rows are short. Padding lanes hold old register contents: any
 * instruction takes any bits. */
void lnt_code_run(const lnt_code *c, const lnt_view *view, int64_t rows, int64_t cols)
{
    LNT_ASSERT(c->block > 0 && c->block % c->kernels->width == 0);
    if (!LNT_TRIMMED && rows > 1 && is_one_row(c, view, cols)) {
        cols *= rows;
        rows = 1;
    }
    if (run_conversion(c, view, rows, cols))
        return;
    const int64_t at_once = rows_at_once(c, cols);
    const int64_t rest =
        at_once * cols & (c->kernels->width - 1); /* a block that is no whole vectors is copied */
    const bool by_rows =
        rows == 1 || cols >= LONG_ROW || at_once == 1 || rest || (takes_rows(c) && has_numbers(c, view));
    if (by_rows && runs_in_place(c, view, cols)) {
        run_in_place(c, view, rows, cols);
        return;
    }
    frame f;
    f.code = c;
    f.view = view;
    f.has_whole_rows = cols <= c->block;
    memset(f.loaded, 0, sizeof f.loaded);
    for (unsigned i = 0; i < c->n_constants; i++) {
        f.at[c->n_slots + i] = c->constant[i];
        f.step[c->n_slots + i] = 0;
    }
    for (int64_t row = 0; row < rows; row += at_once)
        for (int64_t col = 0; col < cols; col += c->block) {
            const int64_t r = rows - row < at_once ? rows - row : at_once;
            const int64_t n = cols - col < c->block ? cols - col : c->block;
            run_part(&f, &(part){row, r, col, n});
        }
}
