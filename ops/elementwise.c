/* elementwise.c — operators that take each element by itself: shape rules, bind functions, the parallel walk.
 *
 * A node that translates into instructions runs as a program; every other type and operator as a sequence of
 * typed loops. Operands may come in any storage order. */
#include "ops/op.h"
#include "ops/program.h"
#include "ops/program_run.h"
#include "ops/typed.h"

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

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Calls each for pieces [begin, end), several at a time where they are neighbours in every operand. */
typedef lnt_status (*piece_fn)(void *arg, int64_t row, int64_t rows, int64_t col, int64_t cols);
static lnt_status for_pieces(const lnt_map *m, const pieces *p, int64_t begin, int64_t end, piece_fn each, void *arg)
{
    if (p->across == 1) {
        const int64_t row = begin * p->rows;
        return each(arg, row, least(end * p->rows, m->rows) - row, 0, m->cols);
    }
    if (m->rows == 1) {
        const int64_t col = begin * p->cols;
        return each(arg, 0, 1, col, least(end * p->cols, m->cols) - col);
    }
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / p->across * p->rows, col = i % p->across * p->cols;
        LNT_TRY(each(arg, row, least(p->rows, m->rows - row), col, least(p->cols, m->cols - col)));
    }
    return LNT_OK;
}

/* An output may take the memory of an input that lies exactly as it does. */
static void allow_in_place(lnt_site *site, const lnt_map *m, unsigned out, unsigned in)
{
    const lnt_map_operand *a = &m->operand[in], *b = &m->operand[m->n_in + out];
    if (a->size == b->size && memcmp(a->stride, b->stride, m->rank * sizeof *a->stride) == 0)
        lnt_bind_in_place(site, out, in);
}

/* ---- programs ---- */

typedef struct program_params {
    lnt_map map;
    pieces pieces;
} program_params;

typedef struct program_run {
    const program_params *params;
    char *base[LNT_VIEW_MAX];
} program_run;

static lnt_status program_piece(void *arg, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const program_run *r = arg;
    lnt_map_run(&r->params->map, r->base, 0, row, rows, col, cols);
    return LNT_OK;
}

static lnt_status program_task(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    (void)k, (void)thread;
    const program_run *r = arg;
    return for_pieces(&r->params->map, &r->params->pieces, begin, end, program_piece, arg);
}

static lnt_status run_program(lnt_kernel *k, const lnt_step *s)
{
    const program_params *p = s->params;
    program_run r = {.params = p};
    for (unsigned i = 0; i < p->map.n_in; i++)
        r.base[i] = (char *)(uintptr_t)lnt_in(k, s, i);
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
                           op == LNT_I_ELU || (op >= LNT_I_GELU && op <= LNT_I_MISH);
        cost += heavy ? 4 : i % 4 == 3;
    }
    return cost;
}

static lnt_status bind_program(lnt_site *site, const lnt_program *program)
{
    program_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return site->err->code;
    LNT_TRY(lnt_map_make(site, program, (const lnt_operand *const *)site->in,
                         (const lnt_operand *const *)site->out, &p->map));
    cut(&p->map, program_cost(program), &p->pieces);
    for (unsigned o = 0; o < program->n_out; o++)
        for (unsigned i = 0; i < program->n_in; i++)
            allow_in_place(site, &p->map, o, i);
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
    return bind_program(site, p);
}

/* Results broadcast all operands; masks are bool, floats the type attribute "to" names. */
lnt_status lnt_shape_program(lnt_site *site)
{
    const lnt_program *p = site->node->program;
    if (!p || p->n_in != site->n_in || site->n_out > p->n_out)
        return LNT_SITE_FAIL(site, LNT_E_FILE, "an elementwise program does not fit its node");
    const lnt_dtype real = (lnt_dtype)lnt_attr_i(site->node, "to", LNT_FLOAT);
    unsigned rank = 0;
    int64_t dims[LNT_MAX_RANK];
    for (unsigned i = 0; i < site->n_out; i++)
        lnt_set_type(site, i, lnt_program_result_kind(p, i) == 'm' ? LNT_BOOL : real);
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

/* The node's instructions as a program whose operand i is input i: input numbers become registers as they
 * are, temporaries follow. The last rounding to half is left to the store. */
static lnt_status bind_node_program(lnt_site *site, lnt_node_instrs *n)
{
    const unsigned last = n->instr[n->n - 1].op;
    if (n->n > 1 && (last == LNT_I_TO_F16 || last == LNT_I_TO_BF16))
        n->n--;
    for (unsigned i = 0; i < n->n; i++) {
        n->instr[i].dst = (uint8_t)(n->instr[i].dst - LNT_NODE_TEMP + site->n_in);
        for (unsigned j = 0; j < 3; j++)
            if (n->instr[i].src[j] >= LNT_NODE_TEMP)
                n->instr[i].src[j] = (uint8_t)(n->instr[i].src[j] - LNT_NODE_TEMP + site->n_in);
    }
    const lnt_program p = {.instr = n->instr,
                           .n_instr = (uint16_t)n->n,
                           .n_in = (uint8_t)site->n_in,
                           .n_out = 1,
                           .n_regs = (uint8_t)(site->n_in + n->temps),
                           .out = {n->instr[n->n - 1].dst}};
    return bind_program(site, &p);
}
