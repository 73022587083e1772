/* fold_nibbles.c — MatMul by dequantized constants of 4 bits or fewer becomes MatMulNBits: the file holds them packed,
 * and its kernels multiply them. Runs before constants are folded. */
#include "base/checked.h"
#include "base/lnt_assert.h"
#include "convert/graph/edit.h"
#include "convert/passes/passes.h"

#include <string.h>

enum { LEAST_BLOCK = 16, MOST_BLOCK = 256, BITS = 4, NIBBLE = 15, MIDDLE = 8 };

/* Weights [K, N] and what is the same for a block of them along K. */
typedef struct nibbles {
    const uint8_t *weights; /* as numbers 0 to 15 once `shift` is added */
    const float *scales;    /* [rows of scales, N], or one for each column, or one */
    const uint8_t *zeros;   /* as scales; or NULL */
    int64_t K, N, block, blocks, row_step, column_step; /* between scales */
    unsigned shift;
} nibbles;

/* Constant input i of n, with as many elements as `like`; NULL where it is another. */
static const void *parameters(const lnt_graph *g, const lnt_gnode *n, unsigned i, lnt_dtype type,
                              int64_t count)
{
    const uint32_t v = lnt_in_value(n, i);
    const bool fits = lnt_is_constant(g, v) && g->value[v].info.dtype == type &&
                      lnt_operand_count(&g->value[v].info) == count;
    return fits ? g->value[v].info.data : NULL;
}

/* Where the scales of dq stand; false where blocks are of another kind. */
static bool read_blocks(const lnt_graph *g, const lnt_gnode *dq, nibbles *p)
{
    const lnt_operand *scale = lnt_ginfo(g, lnt_in_value(dq, 1));
    const int64_t size = lnt_gnode_int(dq, "block_size", 0), given = lnt_gnode_int(dq, "axis", 1);
    const int64_t axis = given < 0 ? given + 2 : given, count = scale ? lnt_operand_count(scale) : -1;
    if (size && (size < LEAST_BLOCK || size > MOST_BLOCK || (size & (size - 1)) != 0))
        return false;
    for (p->block = size ? size : LEAST_BLOCK; !size && p->block < MOST_BLOCK && p->block < p->K;)
        p->block *= 2;
    p->row_step = size ? p->N : 0;
    p->column_step = size || count > 1;
    p->blocks = (p->K + p->block - 1) / p->block;
    return size ? axis == 0 && scale->rank == 2 && count == p->blocks * p->N
                : count == 1 || (axis == 1 && count == p->N);
}

static bool read_nibbles(const lnt_graph *g, const lnt_gnode *dq, nibbles *p)
{
    const lnt_gvalue *w = dq && lnt_is(dq, DequantizeLinear) ? &g->value[dq->in[0]] : NULL;
    if (!w || !w->small || !lnt_is_constant(g, dq->in[0]) || w->info.rank != 2 ||
        (w->info.dtype != LNT_INT8 && w->info.dtype != LNT_UINT8) ||
        lnt_ginfo(g, dq->out[0])->dtype != LNT_FLOAT || w->info.dims[0] < 1 || w->info.dims[1] < 1)
        return false;
    *p = (nibbles){.weights = w->info.data,
                   .K = w->info.dims[0],
                   .N = w->info.dims[1],
                   .shift = w->info.dtype == LNT_INT8 ? MIDDLE : 0};
    if (p->K > INT32_MAX / 2 || p->N > INT32_MAX / 2 || !read_blocks(g, dq, p))
        return false;
    size_t packed; /* numbers, with those that fill the last blocks */
    if (!lnt_mul_size((size_t)p->N, (size_t)(p->blocks * p->block), &packed))
        return false;
    const int64_t count = lnt_operand_count(lnt_ginfo(g, dq->in[1]));
    p->scales = parameters(g, dq, 1, LNT_FLOAT, count);
    p->zeros = parameters(g, dq, 2, (lnt_dtype)w->info.dtype, count);
    if (!p->scales || (lnt_in_value(dq, 2) != LNT_NONE && !p->zeros))
        return false;
    for (int64_t i = 0; p->zeros && i < count; i++)
        if ((uint8_t)(p->zeros[i] + p->shift) > NIBBLE)
            return false;
    return true;
}

/* Element i of the numbers of 4 bits at `to`, which was 0. */
static void put_nibble(uint8_t *to, int64_t i, unsigned v)
{
    LNT_ASSERT(v <= NIBBLE);
    to[i / 2] |= (uint8_t)(v << (i % 2 * BITS));
}

/* The operands of MatMulNBits; those of column n stand together. */
static lnt_status pack(lnt_graph *g, const char *name, const nibbles *p, uint32_t in[4])
{
    const int64_t bytes = p->block / 2, zero_bytes = (p->blocks + 1) / 2, row = p->blocks * bytes;
    const int64_t dims[] = {p->N, p->blocks, bytes}, pairs = p->N * p->blocks,
                  zero_dims[] = {p->N, zero_bytes};
    uint8_t *weights = lnt_bump_alloc(&g->memory, (size_t)(p->N * row), g->err);
    uint8_t *zeros = lnt_bump_alloc(&g->memory, (size_t)(p->N * zero_bytes), g->err);
    float *scales = lnt_bump_alloc(&g->memory, (size_t)pairs * sizeof *scales, g->err);
    if (!weights || !zeros || !scales)
        return LNT_E_MEMORY;
    memset(weights, 0, (size_t)(p->N * row));
    memset(zeros, 0, (size_t)(p->N * zero_bytes));
    for (int64_t n = 0; n < p->N; n++) {
        for (int64_t k = 0; k < p->K; k++)
            put_nibble(weights + n * row, k, (uint8_t)(p->weights[k * p->N + n] + p->shift));
        for (int64_t b = 0; b < p->blocks; b++) {
            const int64_t at = b * p->row_step + n * p->column_step;
            scales[n * p->blocks + b] = p->scales[at];
            put_nibble(zeros + n * zero_bytes, b, (uint8_t)((p->zeros ? p->zeros[at] : 0) + p->shift));
        }
    }
    in[1] = lnt_graph_add_constant(g, name, LNT_UINT8, 3, dims, weights, (size_t)(p->N * row));
    in[2] = lnt_graph_add_constant(g, name, LNT_FLOAT, 1, &pairs, scales, (size_t)pairs * sizeof *scales);
    in[3] = lnt_graph_add_constant(g, name, LNT_UINT8, 2, zero_dims, zeros, (size_t)(p->N * zero_bytes));
    return in[1] == LNT_NONE || in[2] == LNT_NONE || in[3] == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
}

static lnt_status visit(lnt_edit *e, lnt_gnode *n)
{
    lnt_graph *g = e->g;
    nibbles p;
    if (!lnt_is(n, MatMul) || !read_nibbles(g, lnt_producer(g, n, 1), &p))
        return LNT_OK;
    const lnt_operand *a = lnt_ginfo(g, n->in[0]);
    if (a->dtype != LNT_FLOAT || a->rank == LNT_RANK_UNKNOWN || a->rank < 2)
        return LNT_OK;
    uint32_t in[4] = {n->in[0]};
    LNT_TRY(pack(g, n->name, &p, in));
    /* Where it is left out it is in the middle. */
    lnt_gnode *made =
        lnt_edit_substitute(e, n, lnt_op_by_id(LNT_ID_MatMulNBits), in, p.zeros || !p.shift ? 4 : 3);
    if (!made)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_gnode_set_int(g, made, "K", p.K));
    LNT_TRY(lnt_gnode_set_int(g, made, "N", p.N));
    LNT_TRY(lnt_gnode_set_int(g, made, "bits", BITS));
    LNT_TRY(lnt_gnode_set_int(g, made, "block_size", p.block));
    return lnt_edit_count(e, "MatMul of 4-bit weights");
}

lnt_status lnt_pass_fold_nibbles(lnt_graph *g, lnt_report *report)
{
    lnt_edit e;
    LNT_TRY(lnt_edit_begin(&e, g, report, "fold_nibbles"));
    return lnt_edit_each(&e, visit);
}
