/* elementwise.c — operators that take each element by itself: shape rules, bind functions, the parallel walk.
 *
 * A node that translates into instructions runs as a program; every other type and operator as a sequence of
 * typed loops. Operands may come in any storage order. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/copy.h"
#include "ops/element.h"
#include "ops/op.h"
#include "ops/elementwise/program.h"
#include "ops/elementwise/program_run.h"
#include "ops/elementwise/typed.h"

#include <math.h>
#include <string.h>

/* ---- cutting the work ---- */

/* The rows x cols of a map, cut into pieces that fit a cache; numbered row by row. */
typedef struct pieces {
    int64_t rows, cols; /* of a piece */
    int64_t across;     /* pieces side by side */
    int64_t count;
    int64_t grain;
} pieces;

enum { PIECE = 8192, /* elements */ GRAIN = 4 };

static void cut(const lnt_map *m, unsigned cost, pieces *p)
{
    p->cols = m->cols < PIECE ? m->cols : PIECE;
    p->rows = p->cols > 0 ? PIECE / p->cols : 1;
    p->across = p->cols > 0 ? (m->cols + p->cols - 1) / p->cols : 0;
    p->count = p->across * ((m->rows + p->rows - 1) / p->rows);
    p->grain = cost >= GRAIN ? 1 : GRAIN / cost;
}

/* Calls each for pieces [begin, end), several at a time where they are neighbors in every operand. */
typedef lnt_status (*piece_fn)(void *arg, int64_t row, int64_t rows, int64_t col, int64_t cols);
static lnt_status for_pieces(const lnt_map *m, const pieces *p, int64_t begin, int64_t end, piece_fn each,
                             void *arg)
{
    if (p->across == 1) {
        const int64_t row = begin * p->rows;
        return each(arg, row, lnt_least(end * p->rows, m->rows) - row, 0, m->cols);
    }
    if (m->rows == 1) {
        const int64_t col = begin * p->cols;
        return each(arg, 0, 1, col, lnt_least(end * p->cols, m->cols) - col);
    }
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / p->across * p->rows, col = i % p->across * p->cols;
        LNT_TRY(each(arg, row, lnt_least(p->rows, m->rows - row), col, lnt_least(p->cols, m->cols - col)));
    }
    return LNT_OK;
}

/* An output may take the memory of an input with exactly its extents and strides. */
static void allow_in_place(lnt_site *site, const lnt_map *m, unsigned out, unsigned operand, unsigned in)
{
    const lnt_map_operand *a = &m->operand[operand], *b = &m->operand[m->n_in + out];
    if (a->size == b->size && memcmp(a->stride, b->stride, m->rank * sizeof *a->stride) == 0)
        lnt_bind_in_place(site, out, in);
}

/* ---- programs ---- */

typedef struct program_params {
    lnt_map map;
    pieces pieces;
    uint8_t in[LNT_PROGRAM_MAX_IN]; /* input of the step that is operand i */
} program_params;

typedef struct program_run {
    const lnt_map *map;
    const pieces *pieces;
    char *base[LNT_VIEW_MAX];
} program_run;

static lnt_status program_piece(void *arg, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const program_run *r = arg;
    lnt_map_run(r->map, r->base, 0, row, rows, col, cols);
    return LNT_OK;
}

static lnt_status program_task(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k, (void)thread;
    const program_run *r = arg;
    return for_pieces(r->map, r->pieces, begin, end, program_piece, arg);
}

/* Rows of the map that are rows of its operand o may have a pitch. */
static bool has_rows(const lnt_map *m, unsigned operand, const lnt_operand *o)
{
    const int64_t *stride = m->operand[operand].stride;
    return m->rank == 2 && o->rank > 0 && m->cols == lnt_operand_pitch(o) && stride[0] == m->cols &&
           stride[1] == 1;
}

/* The map with the pitches that operands have been given since bind: itself, or *own. */
static const lnt_map *with_pitches(const program_params *p, const lnt_step *s, lnt_map *own)
{
    const lnt_map *m = &p->map;
    for (unsigned i = 0; i < m->n_in + m->n_out; i++) {
        const int64_t pitch = (i < m->n_in ? s->in[p->in[i]] : s->out[i - m->n_in])->pitch;
        if (!pitch)
            continue;
        if (m == &p->map)
            *own = p->map;
        m = own;
        own->operand[i].stride[0] = pitch;
    }
    return m;
}

static lnt_status run_program(lnt_kernel *k, const lnt_step *s)
{
    const program_params *p = s->params;
    lnt_map own;
    program_run r = {.map = with_pitches(p, s, &own), .pieces = &p->pieces};
    for (unsigned i = 0; i < p->map.n_in; i++)
        r.base[i] = (char *)(uintptr_t)lnt_in(k, s, p->in[i]);
    for (unsigned i = 0; i < p->map.n_out; i++)
        r.base[p->map.n_in + i] = lnt_out(k, s, i);
    return lnt_parallel(k, p->pieces.count, p->pieces.grain, program_task, &r);
}

/* Rough cost of an element, 1 for work that waits for memory. */
static unsigned program_cost(const lnt_program *p)
{
    unsigned cost = 1;
    for (unsigned i = 0; i < p->n_instr; i++) {
        const unsigned op = p->instr[i].op;
        const bool heavy = op == LNT_I_POW || op == LNT_I_MOD || (op >= LNT_I_EXP && op <= LNT_I_SOFTPLUS) ||
                           op == LNT_I_ELU || (op >= LNT_I_GELU && op <= LNT_I_MISH) ||
                           (op >= LNT_I_TAN && op <= LNT_I_ATANH);
        cost += heavy ? 4 : i % 4 == 3;
    }
    return cost;
}

/* in[]: inputs of the site that are the program's operands, none skipped. */
static lnt_status bind_program(lnt_site *site, const lnt_program *program, const uint8_t *in)
{
    const lnt_operand *operand[LNT_PROGRAM_MAX_IN];
    program_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return site->err->code;
    for (unsigned i = 0; i < program->n_in; i++) {
        p->in[i] = in[i];
        operand[i] = site->in[in[i]];
    }
    LNT_TRY(lnt_map_make(site, program, operand, (const lnt_operand *const *)site->out, &p->map));
    cut(&p->map, program_cost(program), &p->pieces);
    for (unsigned o = 0; o < program->n_out; o++)
        for (unsigned i = 0; i < program->n_in; i++)
            allow_in_place(site, &p->map, o, i, in[i]);
    for (unsigned i = 0; i < program->n_in; i++)
        if (has_rows(&p->map, i, operand[i]))
            lnt_bind_pitched_input(site, in[i]);
    if (has_rows(&p->map, p->map.n_in, site->out[0]))
        lnt_bind_pitched(site);
    site->step->run = run_program;
    return LNT_OK;
}

lnt_status lnt_bind_program(lnt_site *site)
{
    const lnt_program *p = site->node->program;
    if (!p || p->epilogue || p->n_in != site->n_in || p->n_out != site->n_out)
        return LNT_SITE_FAIL(site, LNT_E_FILE, "an elementwise program does not fit its node");
    for (unsigned o = 0; o < site->n_out; o++)
        if (!site->out[o])
            return LNT_SITE_FAIL(site, LNT_E_FILE, "an elementwise program has a result no one names");
    uint8_t in[LNT_PROGRAM_MAX_IN];
    for (unsigned i = 0; i < p->n_in; i++)
        in[i] = (uint8_t)i;
    return bind_program(site, p, in);
}

/* Results broadcast all operands. */
lnt_status lnt_shape_program(lnt_site *site)
{
    const lnt_program *p = site->node->program;
    if (!p || p->n_in != site->n_in || site->n_out > p->n_out)
        return LNT_SITE_FAIL(site, LNT_E_FILE, "an elementwise program does not fit its node");
    unsigned rank = 0;
    int64_t dims[LNT_MAX_RANK];
    const lnt_program_types types = lnt_program_types_of(p);
    for (unsigned i = 0; i < site->n_out; i++)
        lnt_set_type(site, i, (lnt_dtype)types.result[i]);
    for (unsigned i = 0; i < site->n_in; i++) {
        if (!site->in[i])
            return LNT_SITE_FAIL(site, LNT_E_FILE, "an operand of an elementwise program is missing");
        if (site->in[i]->rank == LNT_RANK_UNKNOWN)
            return LNT_UNKNOWN;
        LNT_TRY(lnt_broadcast_dims(site, &rank, dims, site->in[i]));
    }
    for (unsigned i = 0; i < site->n_out; i++)
        lnt_set_dims(site, i, rank, dims);
    return LNT_OK;
}

/* Registers of a node's instructions as a program's: inputs that are read first, then temporaries. */
typedef struct renumbering {
    uint8_t in[LNT_PROGRAM_MAX_IN]; /* input number of register i */
    unsigned n_in;
    uint8_t of_input[LNT_NODE_TEMP]; /* register of an input, 255: not read */
} renumbering;

static bool number_inputs(const lnt_node_instrs *n, renumbering *r)
{
    r->n_in = 0;
    memset(r->of_input, 255, sizeof r->of_input);
    for (unsigned i = 0; i < n->n; i++)
        for (unsigned j = 0; j < lnt_instr_sources(n->instr[i].op); j++) {
            const uint8_t input = n->instr[i].src[j];
            if (input >= LNT_NODE_TEMP || r->of_input[input] != 255)
                continue;
            if (r->n_in == LNT_PROGRAM_MAX_IN)
                return false;
            r->of_input[input] = (uint8_t)r->n_in;
            r->in[r->n_in++] = input;
        }
    return true;
}

static uint8_t new_register(const renumbering *r, uint8_t old)
{
    return old >= LNT_NODE_TEMP ? (uint8_t)(old - LNT_NODE_TEMP + r->n_in) : r->of_input[old];
}

/* A last instruction that the store of the result does anyway. */
static bool left_to_store(const lnt_instr *last)
{
    return last->op == LNT_I_TO_F16 || last->op == LNT_I_TO_BF16 ||
           (last->op == LNT_I_CLIP && last->imm[0] == -INFINITY && last->imm[1] == INFINITY);
}

/* Binds the node as a program of its own; false in *done if it is none. */
static lnt_status try_node_program(lnt_site *site, bool *done)
{
    lnt_node_instrs n;
    renumbering r;
    *done = lnt_node_instrs_of(site->node, (const lnt_operand *const *)site->in, site->out[0], &n) &&
            number_inputs(&n, &r);
    if (!*done)
        return LNT_OK;
    const lnt_instr *last = &n.instr[n.n - 1];
    const bool idle = left_to_store(last);
    const uint8_t result = new_register(&r, idle ? last->src[0] : last->dst);
    n.n -= idle;
    for (unsigned i = 0; i < n.n; i++) {
        n.instr[i].dst = new_register(&r, n.instr[i].dst);
        for (unsigned j = 0; j < lnt_instr_sources(n.instr[i].op); j++)
            n.instr[i].src[j] = new_register(&r, n.instr[i].src[j]);
    }
    const lnt_program p = {.instr = n.instr,
                           .n_instr = (uint16_t)n.n,
                           .n_in = (uint8_t)r.n_in,
                           .n_out = 1,
                           .n_regs = (uint8_t)(r.n_in + n.temps),
                           .out = {result}};
    return bind_program(site, &p, r.in);
}

/* ---- typed loops ---- */

enum { FROM_RESULT = -1, MAX_OPERANDS = 3, LONG_BOOLS = 512 };

/* One pass over the result; its operands are inputs, or what the passes before left in the result. */
typedef struct pass {
    lnt_map map;
    pieces pieces;
    lnt_typed_fn loop;
    const lnt_kernels *kernels;
    double param[LNT_TYPED_PARAMS];
    uint8_t dtype[2];
    int16_t in[MAX_OPERANDS];
    bool chooses_rows; /* Where with one condition for a whole row */
    bool one;          /* operand 1 is one element for a whole row, and the loop takes it so */
} pass;

typedef struct typed_params {
    unsigned n, capacity;
    pass pass[];
} typed_params;

typedef struct pass_run {
    const pass *pass;
    char *base[MAX_OPERANDS + 1]; /* operands, then the result */
} pass_run;

/* Bytes of an operand that is brought together for a loop: of short rows, where what many of them repeat shall fit; of
 * one row; and of one that each row repeats anew. */
enum { GATHERED = LNT_LONG_VECTORS ? 16384 : 4096, OF_ROW = 4096, REPEATED = 1024 };

/* Elements of an operand that do not lie side by side, as if they did. */
typedef struct gathered {
    _Alignas(16) char bytes[GATHERED];
    const char *repeated; /* what it holds n elements of over and over, if anything: this element, or what */
    unsigned axis;        /* lies along the axes behind this one */
    int64_t n;
} gathered;

/* n elements of this size into dst, from places `stride` bytes apart. */
static void gather(char *dst, const char *src, int64_t stride, unsigned size, int64_t n)
{
#define GATHER(type)                                                                                         \
    case sizeof(type):                                                                                       \
        for (int64_t i = 0; i < n; i++)                                                                      \
            ((type *)(void *)dst)[i] = *(const type *)(const void *)(src + i * stride);                      \
        break;
    switch (size) {
        GATHER(uint8_t)
        GATHER(uint16_t)
        GATHER(uint32_t)
        GATHER(uint64_t)
    default: break;
    }
#undef GATHER
}

/* n elements of an operand along an axis. */
static __attribute__((noinline)) void copy_row(char *dst, const char *src, const lnt_map_operand *o,
                                               unsigned axis, int64_t n)
{
    if (o->stride[axis] == 1)
        memmove(dst, src, (size_t)(n * o->size));
    else if (o->stride[axis] == 0)
        lnt_fill(dst, n, src, o->size);
    else
        gather(dst, src, o->stride[axis] * o->size, o->size, n);
}

static const char *side_by_side(gathered *g, const char *at, const lnt_map_operand *o, unsigned axis,
                                int64_t n)
{
    const int64_t stride = o->stride[axis];
    const unsigned none = LNT_MAX_RANK;
    if (stride == 1 || n == 1)
        return at;
    if (stride == 0 && g->repeated == at && g->axis == none && g->n >= n)
        return g->bytes;
    copy_row(g->bytes, at, o, axis, n);
    g->repeated = stride == 0 ? at : NULL;
    g->axis = none;
    g->n = n;
    return g->bytes;
}

/* Elements that a loop takes at once: all, or what can be brought together of its operands. */
static int64_t elements_at_once(const lnt_map *m, int64_t cols)
{
    const unsigned last = m->rank - 1;
    int64_t n = cols;
    for (unsigned o = 0; o < m->n_in; o++) {
        const int64_t *stride = m->operand[o].stride;
        const bool anew = stride[last] == 0 && stride[last - 1] != 0;
        if (stride[last] != 1)
            n = lnt_least(n, (anew ? REPEATED : OF_ROW) / m->operand[o].size);
    }
    return n;
}

/* Elements of a long row before the first one of the result that x86's vectors are aligned at: stores across lines of
 * the cache take twice as long. */
static int64_t before_vectors(const char *result, unsigned size, int64_t n)
{
    enum { VECTOR = 32, LONG = 1024 /* bytes */ };
    return LNT_LONG_VECTORS && n * size >= LONG ? (int64_t)(-(uintptr_t)result % VECTOR / size) : 0;
}

/* cols elements of a row; at: the first of each operand and of the result. */
static bool pass_row(const pass *p, char *const *at, int64_t cols, gathered *g)
{
    const lnt_map *m = &p->map;
    const unsigned last = m->rank - 1, size = m->operand[m->n_in].size;
    const int64_t step = p->one ? cols : elements_at_once(m, cols);
    int64_t n = before_vectors(at[m->n_in], size, cols);
    LNT_ASSERT(m->operand[m->n_in].stride[last] == 1 || cols <= 1);
    if (p->chooses_rows) {
        const unsigned chosen = *at[0] ? 1 : 2;
        copy_row(at[m->n_in], at[chosen], &m->operand[chosen], last, cols);
        return true;
    }
    for (int64_t i = 0; i < cols; i += n, n = 0) {
        n = n ? n : lnt_least(step, cols - i);
        lnt_typed_args a = {.n = n,
                            .one = p->one,
                            .param = p->param,
                            .kernels = p->kernels,
                            .dtype = {p->dtype[0], p->dtype[1]}};
        for (unsigned o = 0; o < m->n_in; o++) {
            const lnt_map_operand *from = &m->operand[o];
            const char *first = at[o] + i * from->stride[last] * from->size;
            a.in[o] = p->one && o == 1 ? first : side_by_side(&g[o], first, from, last, n);
        }
        a.out = at[m->n_in] + i * size;
        if (!p->loop(&a))
            return false;
    }
    return true;
}

/* n steps along an axis of an operand, each with all of the axes behind, one after the other; where they end. */
static char *lay(char *dst, const char *src, const lnt_map *m, const lnt_map_operand *o, unsigned axis,
                 int64_t n)
{
    const unsigned next = axis + 1;
    const int64_t step = o->stride[axis] * o->size;
    if (next == m->rank) {
        copy_row(dst, src, o, axis, n);
        return dst + n * o->size;
    }
    if (next + 1 == m->rank && o->stride[next] == 0) {
        lnt_repeat_each(dst, src, step, n, m->dims[next], o->size);
        return dst + n * m->dims[next] * o->size;
    }
    char *end = lay(dst, src, m, o, next, m->dims[next]);
    if (step == 0) {
        lnt_repeat_bytes(dst, dst, end - dst, n);
        return dst + n * (end - dst);
    }
    for (int64_t i = 1; i < n; i++)
        end = lay(end, src + i * step, m, o, next, m->dims[next]);
    return end;
}

/* The same, n elements in all, where they lie or in g. */
static const char *rows_side_by_side(gathered *g, const char *at, const lnt_map *m, const lnt_map_operand *o,
                                     unsigned axis, int64_t steps, int64_t n)
{
    unsigned dense = m->rank - 1;
    if (o->stride[dense] == 1)
        while (dense > axis && o->stride[dense - 1] == o->stride[dense] * m->dims[dense])
            dense--;
    if (dense == axis)
        return at;
    if (g->repeated == at && g->axis == axis && g->n >= n)
        return g->bytes;
    lay(g->bytes, at, m, o, axis, steps);
    g->repeated = o->stride[axis] == 0 ? at : NULL;
    g->axis = axis;
    g->n = n;
    return g->bytes;
}

/* Rows that a loop takes at once: where they are short and the result has them one behind the other. */
static int64_t rows_at_once(const pass *p, int64_t cols)
{
    enum { SHORT_ROW = 128 }; /* elements; of all operands as many are brought together */
    const lnt_map *m = &p->map;
    const unsigned last = m->rank - 1;
    const int64_t *result = m->operand[m->n_in].stride;
    int64_t size = 1;
    if (cols == 0 || cols > SHORT_ROW || (p->one && cols >= SHORT_ROW / 4) || p->chooses_rows ||
        result[last] != 1 || result[last - 1] != cols)
        return 1;
    for (unsigned o = 0; o < m->n_in; o++)
        size = m->operand[o].size > size ? m->operand[o].size : size;
    return GATHERED / size / cols;
}

/* `steps` along an axis of n elements in all. */
static bool pass_rows(const pass *p, char *const *at, unsigned axis, int64_t steps, int64_t n, gathered *g)
{
    const lnt_map *m = &p->map;
    lnt_typed_args a = {.out = at[m->n_in],
                        .n = n,
                        .param = p->param,
                        .kernels = p->kernels,
                        .dtype = {p->dtype[0], p->dtype[1]}};
    for (unsigned o = 0; o < m->n_in; o++)
        a.in[o] = rows_side_by_side(&g[o], at[o], m, &m->operand[o], axis, steps, n);
    return p->loop(&a);
}

/* The axis along which at most `most` rows from an index on are taken together, those of all axes behind it at each
 * of its steps; *rows: how many these are. */
static unsigned axis_of_rows(const lnt_map *m, const int64_t *index, int64_t most, int64_t *rows)
{
    const int64_t *result = m->operand[m->n_in].stride;
    unsigned axis = m->rank - 2;
    for (*rows = 1; axis > 0 && index[axis] == 0 && *rows * m->dims[axis] <= most &&
                    result[axis - 1] == result[axis] * m->dims[axis];
         axis--)
        *rows *= m->dims[axis];
    return axis;
}

static lnt_status pass_piece(void *arg, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const pass_run *r = arg;
    const lnt_map *m = &r->pass->map;
    const unsigned last = m->rank - 1;
    const int64_t at_once = rows_at_once(r->pass, cols), end = row + rows;
    int64_t index[LNT_MAX_RANK], each, n;
    gathered g[MAX_OPERANDS];
    for (unsigned o = 0; o < MAX_OPERANDS; o++)
        g[o].repeated = NULL;
    for (int64_t i = row; i < end; i += n * each) {
        char *at[MAX_OPERANDS + 1];
        lnt_map_split_row(m, i, index);
        const unsigned axis = axis_of_rows(m, index, lnt_least(at_once, end - i), &each);
        n = lnt_least(m->dims[axis] - index[axis], (end - i) / each);
        for (unsigned o = 0; o <= m->n_in; o++) {
            const lnt_map_operand *operand = &m->operand[o];
            int64_t offset = col * operand->stride[last];
            for (unsigned d = 0; d < last; d++)
                offset += index[d] * operand->stride[d];
            at[o] = r->base[o] + offset * operand->size;
        }
        for (int64_t j = 0, some; j < n; j += some) {
            some = lnt_least(at_once / each, n - j);
            if (!(some * each > 1 ? pass_rows(r->pass, at, axis, some, some * each * cols, g)
                                  : pass_row(r->pass, at, cols, g)))
                return LNT_E_VALUE;
            for (unsigned o = 0; o <= m->n_in; o++)
                at[o] += some * m->operand[o].stride[axis] * m->operand[o].size;
        }
    }
    return LNT_OK;
}

static lnt_status pass_task(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)thread;
    const pass_run *r = arg;
    LNT_REQUIRE(for_pieces(&r->pass->map, &r->pass->pieces, begin, end, pass_piece, arg) == LNT_OK, k->err,
                LNT_E_VALUE, "integer division by zero, or of the smallest integer by -1");
    return LNT_OK;
}

static lnt_status run_typed(lnt_kernel *k, const lnt_step *s)
{
    const typed_params *p = s->params;
    for (unsigned i = 0; i < p->n; i++) {
        pass_run r = {.pass = &p->pass[i]};
        char *const result = lnt_out(k, s, 0);
        const unsigned n_in = r.pass->map.n_in;
        for (unsigned o = 0; o < n_in; o++)
            r.base[o] = r.pass->in[o] == FROM_RESULT
                            ? result
                            : (char *)(uintptr_t)lnt_in(k, s, (unsigned)r.pass->in[o]);
        r.base[n_in] = result;
        LNT_TRY(lnt_parallel(k, r.pass->pieces.count, r.pass->pieces.grain, pass_task, &r));
    }
    return LNT_OK;
}

static typed_params *begin_passes(lnt_site *site, unsigned capacity)
{
    typed_params *p = lnt_bind_params(site, sizeof *p + capacity * sizeof p->pass[0]);
    if (p)
        p->capacity = capacity;
    site->step->run = run_typed;
    return p;
}

/* Adds a pass of n operands; NULL loop: the type is not for this operator. */
static lnt_status add_pass(lnt_site *site, typed_params *t, lnt_typed_fn loop, const int *in, unsigned n)
{
    const lnt_operand *operand[MAX_OPERANDS];
    for (unsigned i = 0; i < n; i++)
        operand[i] = in[i] == FROM_RESULT ? site->out[0] : site->in[in[i]];
    if (!loop)
        return lnt_bind_unsupported_type(site, operand[0]->dtype);
    for (unsigned i = 0; i < n; i++) /* Clip's shape rule does not look at its bounds */
        if (!lnt_map_fits(operand[i], site->out[0], false))
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "input %d does not fit the result", in[i]);
    pass *p = &t->pass[t->n++];
    lnt_map_extents(&p->map, operand, n, (const lnt_operand *const *)site->out, 1, false);
    cut(&p->map, 4, &p->pieces);
    p->loop = loop;
    p->kernels = site->kernels;
    for (unsigned i = 0; i < n; i++) {
        p->in[i] = (int16_t)in[i];
        if (i < 2)
            p->dtype[i] = operand[i]->dtype;
        if (t->capacity == 1 && i < 2)
            allow_in_place(site, &p->map, 0, i, (unsigned)in[i]);
    }
    return LNT_OK;
}

/* All inputs from first on, but skipped ones, must have one type. */
static lnt_status require_same_types(lnt_site *site, unsigned first)
{
    for (unsigned i = first + 1; i < site->n_in; i++)
        if (site->in[i] && site->in[i]->dtype != site->in[first]->dtype)
            return LNT_SITE_FAIL(site, LNT_E_TYPE, "inputs %u and %u are %s and %s", first, i,
                                 lnt_dtype_text(site->in[first]->dtype), lnt_dtype_text(site->in[i]->dtype));
    return LNT_OK;
}

/* Both bounds: the second one while the elements are at hand. */
static bool loop_clip(const lnt_typed_args *a)
{
    const lnt_typed_kernels *typed = a->kernels->typed;
    const lnt_typed_args upper = {.out = a->out, .in = {a->out, a->in[2]}, .n = a->n};
    return typed->loop[LNT_TYPED_Max][a->dtype[0]](a) && typed->loop[LNT_TYPED_Min][a->dtype[0]](&upper);
}

typedef struct bytes_job {
    const lnt_typed_kernels *typed;
    const uint8_t *x, *low, *high;
    uint8_t *y, flip;
} bytes_job;

/* Bytes lie as the result's do, and bounds are one number each: no rows of them are made. */
static lnt_status clip_bytes(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const bytes_job *j = arg;
    (void)k, (void)thread;
    j->typed->clip_bytes(j->y + begin, j->x + begin, *j->low, *j->high, j->flip, end - begin);
    return LNT_OK;
}

static lnt_status run_clip_bytes(lnt_kernel *k, const lnt_step *s)
{
    const lnt_kernels *const *kernels = s->params;
    bytes_job job = {(*kernels)->typed, lnt_in(k, s, 0),  lnt_in(k, s, 1),
                     lnt_in(k, s, 2),   lnt_out(k, s, 0), s->in[0]->dtype == LNT_INT8 ? 0x80 : 0};
    return lnt_parallel(k, lnt_operand_count(s->in[0]), 4 * PIECE, clip_bytes, &job);
}

static lnt_status bind_clip_bytes(lnt_site *site)
{
    const lnt_kernels **kernels = lnt_bind_params(site, sizeof *kernels);
    if (!kernels)
        return LNT_E_MEMORY;
    *kernels = site->kernels;
    site->step->run = run_clip_bytes;
    lnt_bind_in_place(site, 0, 0);
    return LNT_OK;
}

static lnt_status bind_typed_clip(lnt_site *site)
{
    const bool low = lnt_input(site, 1) != NULL, high = lnt_input(site, 2) != NULL;
    if (!low && !high)
        return lnt_bind_identity(site);
    LNT_TRY(require_same_types(site, 0));
    if (low && high && (site->in[0]->dtype == LNT_UINT8 || site->in[0]->dtype == LNT_INT8) &&
        site->in[0]->order == site->out[0]->order && lnt_operand_count(site->in[1]) == 1 &&
        lnt_operand_count(site->in[2]) == 1)
        return bind_clip_bytes(site);
    typed_params *t = begin_passes(site, 1);
    if (!t)
        return site->err->code;
    const lnt_typed_fn bound = lnt_typed_bound(site, high, site->in[0]->dtype);
    return add_pass(site, t, low && high && bound ? loop_clip : bound, (const int[]){0, low ? 1 : 2, 2},
                    1u + low + high);
}

static lnt_status bind_typed_where(lnt_site *site)
{
    typed_params *t = begin_passes(site, 1);
    if (!t)
        return site->err->code;
    if (site->in[0]->dtype != LNT_BOOL)
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "the condition is %s, not bool",
                             lnt_dtype_text(site->in[0]->dtype));
    LNT_TRY(require_same_types(site, 1));
    const lnt_typed_fn loop = lnt_typed_where(site->kernels->typed, lnt_dtype_size(site->in[1]->dtype));
    if (!loop)
        return lnt_bind_unsupported_type(site, site->in[1]->dtype);
    LNT_TRY(add_pass(site, t, loop, (const int[]){0, 1, 2}, 3));
    const lnt_map *m = &t->pass[0].map;
    t->pass[0].chooses_rows = m->operand[0].stride[m->rank - 1] == 0;
    return LNT_OK;
}

static lnt_status bind_typed_unary(lnt_site *site)
{
    typed_params *t = begin_passes(site, 1);
    return t ? add_pass(site, t, lnt_typed_unary(site, site->in[0]->dtype, t->pass[0].param),
                        (const int[]){0}, 1)
             : site->err->code;
}

/* One element of either operand for a whole row of the other is the second one, where that makes no difference. Bools
 * are decided by it or not, a guess for each row: long ones only. */
static void take_one(const lnt_site *site, pass *p, lnt_dtype dtype)
{
    const unsigned last = p->map.rank - 1, id = site->node->op->id;
    lnt_map_operand *o = p->map.operand;
    if (!lnt_typed_takes_one(site, dtype) || (dtype == LNT_BOOL && p->map.cols < LONG_BOOLS))
        return;
    if (o[0].stride[last] == 0 && id != LNT_ID_Sub && id != LNT_ID_Div) {
        const lnt_map_operand second = o[1];
        const int16_t in = p->in[1];
        o[1] = o[0];
        o[0] = second;
        p->in[1] = p->in[0];
        p->in[0] = in;
    }
    p->one = o[0].stride[last] == 1 && o[1].stride[last] == 0;
}

/* Pairs, and chains of pairs for Sum, Mean, Min and Max. */
static lnt_status bind_typed_chain(lnt_site *site)
{
    const lnt_dtype dtype = site->in[0]->dtype;
    const bool mean = site->node->op->id == LNT_ID_Mean;
    if (site->node->op->id != LNT_ID_Pow)
        LNT_TRY(require_same_types(site, 0));
    typed_params *t = begin_passes(site, site->n_in - 1 + mean);
    if (!t)
        return site->err->code;
    const bool turned = lnt_typed_is_turned(site->node);
    for (unsigned i = 1; i < site->n_in; i++) {
        const int in[] = {i == 1 ? 0 : FROM_RESULT, (int)i};
        LNT_TRY(add_pass(site, t, lnt_typed_binary(site, dtype), (const int[]){in[turned], in[!turned]}, 2));
        take_one(site, &t->pass[t->n - 1], dtype);
    }
    if (mean)
        return add_pass(site, t, lnt_typed_real(site->node, dtype, t->pass[t->n].param),
                        (const int[]){FROM_RESULT}, 1);
    return LNT_OK;
}

lnt_status lnt_bind_elementwise(lnt_site *site)
{
    bool done;
    for (unsigned i = 0; i < site->n_in; i++)
        if (!site->in[i] && site->node->op->id != LNT_ID_Clip)
            return LNT_SITE_FAIL(site, LNT_E_MODEL, "input %u is missing", i);
    /* Bools alone stay the bytes they are, and what is chosen of one type, where registers would be wider. */
    const bool as_stored = site->node->op->id == LNT_ID_Where ? site->in[1]->dtype == site->in[2]->dtype &&
                                                                    site->in[1]->dtype == site->out[0]->dtype
                                                              : site->in[0] && site->in[0]->dtype == LNT_BOOL;
    done = false;
    if (!as_stored)
        LNT_TRY(try_node_program(site, &done));
    if (done)
        return LNT_OK;
    switch (site->node->op->id) {
    case LNT_ID_Clip: return bind_typed_clip(site);
    case LNT_ID_Where: return bind_typed_where(site);
    case LNT_ID_Sum:
    case LNT_ID_Mean:
    case LNT_ID_Min:
    case LNT_ID_Max:
        if (site->n_in == 1)
            return lnt_bind_identity(site);
        break;
    default: break;
    }
    return site->n_in == 1 ? bind_typed_unary(site) : bind_typed_chain(site);
}

/* ---- conversion ---- */

static bool loop_cast(const lnt_typed_args *a)
{
    lnt_cast(a->kernels, a->in[0], a->dtype[0], a->out, (lnt_dtype)a->param[0], a->n);
    return true;
}

/* param: the type, whether to saturate, lnt_small_round. */
static bool loop_cast_small(const lnt_typed_args *a)
{
    const lnt_small_rounding how = {a->param[1] != 0, (lnt_small_round)a->param[2]};
    lnt_cast_small(a->kernels, a->in[0], a->dtype[0], a->out, (lnt_dtype)a->param[0], a->n, how);
    return true;
}

static lnt_status bind_cast_small(lnt_site *site)
{
    static const char *const rounding[] = {"up", "down", "nearest"};
    typed_params *t = begin_passes(site, 1);
    if (!t)
        return site->err->code;
    double *param = t->pass[0].param;
    const int round = lnt_attr_choice(site->node, "round_mode", rounding, 3);
    LNT_REQUIRE(round >= 0, site->err, LNT_E_MODEL, "round_mode is none of up, down and nearest");
    param[0] = site->out[0]->dtype;
    param[1] = lnt_attr_i(site->node, "saturate", 1) != 0;
    param[2] = round;
    return add_pass(site, t, loop_cast_small, (const int[]){0}, 1);
}

lnt_status lnt_shape_cast(lnt_site *site)
{
    const lnt_dtype to = (lnt_dtype)lnt_attr_i(site->node, "to", LNT_UNDEFINED);
    if (lnt_dtype_size(to) == 0)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "there is no conversion to element type %d (%s)",
                             (int)to, lnt_dtype_text(to));
    lnt_set_type(site, 0, to);
    return lnt_shape_same(site);
}

/* By cells alone: floats and halves to one another, cut to integers by the store, and from integers that a float holds
 * or rounds once; to bfloat16 it would be twice. */
static bool casts_in_cells(lnt_dtype from, lnt_dtype to)
{
    const bool narrow = lnt_is_integer(from) && lnt_dtype_size(from) <= 2;
    switch (to) {
    case LNT_UINT8:
    case LNT_INT8:
    case LNT_UINT16:
    case LNT_INT16:
    case LNT_INT32:
    case LNT_INT64: return lnt_is_floating(from) && from != LNT_DOUBLE;
    case LNT_FLOAT:
    case LNT_FLOAT16:
        return narrow || from == LNT_INT32 || from == LNT_INT64 ||
               (lnt_is_floating(from) && from != LNT_DOUBLE);
    case LNT_BFLOAT16: return narrow || from == LNT_FLOAT || from == LNT_FLOAT16;
    default: return false;
    }
}

/* A cast of elements that are brought into the output's order first: one by one they would be converted one by one. */
typedef struct ordered_cast {
    lnt_copy copy;
    size_t at; /* bytes into the scratch memory */
    lnt_operand in;
    lnt_run_fn run;
    const void *params;
} ordered_cast;

static lnt_status run_ordered_cast(lnt_kernel *k, const lnt_step *s)
{
    const ordered_cast *p = s->params;
    LNT_TRY(lnt_copy_run(k, &p->copy, (char *)lnt_scratch(k, s) + p->at, lnt_in(k, s, 0)));
    lnt_operand in = p->in, *const operands[1] = {&in};
    in.storage = s->scratch_slot;
    in.offset = p->at;
    lnt_step inner = *s;
    inner.run = p->run;
    inner.params = p->params;
    inner.in = operands;
    return p->run(k, &inner);
}

static lnt_status bind_cast_in_order(lnt_site *site, const lnt_program *program)
{
    const lnt_operand *in = site->in[0], *out = site->out[0];
    lnt_operand *const *given = site->in;
    int64_t from[LNT_MAX_RANK], to[LNT_MAX_RANK];
    size_t bytes = site->step->scratch_bytes;
    ordered_cast *p = lnt_bump_alloc(site->memory, sizeof *p, site->err);
    if (!p)
        return LNT_E_MEMORY;
    p->in = *in;
    p->in.order = out->order;
    lnt_operand_strides(in, from);
    lnt_operand_strides(&p->in, to);
    lnt_copy_box(&p->copy, lnt_dtype_size(in->dtype), in->rank, in->dims, to, from);
    LNT_REQUIRE(lnt_reserve(&bytes, lnt_operand_count(in), lnt_dtype_size(in->dtype), &p->at), site->err,
                LNT_E_LIMIT, "the input is too large");
    site->in = (lnt_operand *const[1]){&p->in};
    const lnt_status status = bind_program(site, program, (const uint8_t[1]){0});
    site->in = given;
    p->run = site->step->run;
    p->params = site->step->params;
    site->step->run = run_ordered_cast;
    site->step->params = p;
    site->step->in_place = 0;
    site->step->pitched_in = 0; /* the copy takes rows without a pitch */
    lnt_bind_scratch(site, bytes);
    return status;
}

lnt_status lnt_bind_cast(lnt_site *site)
{
    static const lnt_program only_cells = {.n_in = 1, .n_out = 1, .n_regs = 1};
    const lnt_dtype from = site->in[0]->dtype, to = site->out[0]->dtype;
    const lnt_dtype as_byte = lnt_small_as_byte(from);
    if (from == to || as_byte == to ||
        (lnt_is_integer(from) && lnt_is_integer(to) && lnt_dtype_size(from) == lnt_dtype_size(to)))
        return lnt_bind_identity(site);
    if ((lnt_is_small(from) || lnt_can_cast(from)) && (lnt_is_small(to) || lnt_can_cast(to)) &&
        (lnt_is_small(from) || lnt_is_small(to)))
        return bind_cast_small(site);
    if (!lnt_can_cast(from) || !lnt_can_cast(to))
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "there is no conversion from %s to %s",
                             lnt_dtype_text(from), lnt_dtype_text(to));
    if (casts_in_cells(from, to)) {
        if (site->in[0]->order == site->out[0]->order || lnt_order_free(site->in[0]))
            return bind_program(site, &only_cells, (const uint8_t[1]){0});
        return LNT_HAS_CAST_ORDER && lnt_bind_cast_order(site) ? LNT_OK
                                                               : bind_cast_in_order(site, &only_cells);
    }
    typed_params *t = begin_passes(site, 1);
    if (!t)
        return site->err->code;
    t->pass[0].param[0] = to;
    return add_pass(site, t, loop_cast, (const int[]){0}, 1);
}

/* ---- copies ---- */

static lnt_status run_copy(lnt_kernel *k, const lnt_step *s)
{
    return lnt_copy_run(k, s->params, lnt_out(k, s, 0), lnt_in(k, s, 0));
}

/* Output 0 is input 0, in the output's storage order. *same: the bytes need not change. */
static lnt_status bind_reordering(lnt_site *site, bool *same)
{
    const lnt_operand *in = site->in[0], *out = site->out[0];
    int64_t from[LNT_MAX_RANK], to[LNT_MAX_RANK];
    lnt_copy *c = lnt_bind_params(site, sizeof *c);
    if (!c)
        return site->err->code;
    lnt_operand_strides(in, from);
    lnt_operand_strides(out, to);
    lnt_copy_box(c, lnt_dtype_size(in->dtype), in->rank, in->dims, to, from);
    *same = lnt_copy_is_plain(c);
    site->step->run = run_copy;
    return LNT_OK;
}

lnt_status lnt_bind_identity(lnt_site *site)
{
    bool same;
    LNT_TRY(bind_reordering(site, &same));
    if (same)
        lnt_bind_view(site, 0, 0, 0);
    return LNT_OK;
}

/* ---- Dropout, as inference runs it: nothing is dropped ---- */

lnt_status lnt_shape_dropout(lnt_site *site)
{
    lnt_set_type(site, 0, (lnt_dtype)site->in[0]->dtype);
    lnt_set_type(site, 1, LNT_BOOL);
    return lnt_shape_same(site);
}

/* A kernel runs where there is a mask to write, or a training mode to look at. */
static lnt_status run_dropout(lnt_kernel *k, const lnt_step *s)
{
    const uint8_t *training = lnt_in(k, s, 2); /* any byte may come */
    double ratio = 0.5;
    if (lnt_in(k, s, 1))
        lnt_elements_to_double(s->in[1]->dtype, lnt_in(k, s, 1), &ratio, 1);
    LNT_REQUIRE(!training || !*training || !(ratio > 0), k->err, LNT_E_UNSUPPORTED,
                "training_mode is set: random dropping belongs to training");
    if (lnt_out(k, s, 1))
        memset(lnt_out(k, s, 1), 1, (size_t)lnt_operand_count(s->out[1]));
    return lnt_out(k, s, 0) ? run_copy(k, s) : LNT_OK;
}

lnt_status lnt_bind_dropout(lnt_site *site)
{
    if (lnt_input(site, 2) && site->in[2]->dtype != LNT_BOOL)
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "training_mode is %s, not bool",
                             lnt_dtype_text(site->in[2]->dtype));
    for (unsigned i = 1; i < site->n_in; i++)
        if (lnt_input(site, i) && lnt_operand_count(site->in[i]) != 1)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "input %u must hold one element", i);
    if (lnt_output(site, 0)) {
        bool same;
        LNT_TRY(bind_reordering(site, &same));
        if (same && !lnt_input(site, 2) && !lnt_output(site, 1))
            lnt_bind_view(site, 0, 0, 0);
    }
    site->step->run = run_dropout;
    return LNT_OK;
}
