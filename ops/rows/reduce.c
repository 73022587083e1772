/* reduce.c — ReduceSum, ReduceMean, ... over any axes.
 *
 * Neighboring axes of one kind are joined, so that a tensor is a sequence of kept and reduced axes in turn.
 * If the innermost one is reduced, whole rows are reduced to a number each; if it is kept, rows are added up
 * into a block of columns, and so are many short rows, transposed. Either way memory is read once, in order. Nothing
 * is reduced where all those axes have an extent of 1. */
#include "ops/rows/reduce.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "formats/packed.h"
#include "ops/copy.h"
#include "ops/element.h"

#include <string.h>

enum {
    SHORT_ROW = 32,      /* rows up to that are turned where there are many */
    SHORT_BLOCK = 64,    /* and rows with what is kept behind them, up to that */
    JOINED_BYTES = 1024, /* of rows up to that others are joined with, */
    SUMMED_BYTES = 504,  /* which sums of 8 bytes are slower by */
    FEW_ROWS = 16,
    FOLDED = 256, /* elements of short rows that are taken as one, */
    BUNDLED = 8   /* but of floats not so many that fewer of those are left, which may be taken together */
};

static lnt_status run_reduce(lnt_kernel *k, const lnt_step *s)
{
    const lnt_reduce *p = s->params;
    LNT_ASSERT(p->task && p->block > 0);
    lnt_reduce_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0)};
    const int64_t work = p->count * lnt_least(p->columns, p->block);
    return lnt_parallel(k, p->n_kept * lnt_reduce_blocks(p), 1 + 32768 / (work + 1), p->task, &job);
}

void lnt_reduce_order(const lnt_reduce *p, void *y, int64_t n)
{
    char by_column[LNT_REDUCE_BLOCK * sizeof(int64_t)];
    const size_t size = lnt_dtype_size(p->dtype);
    if (LNT_TRIMMED || p->behind == 1)
        return;
    memcpy(by_column, y, (size_t)n * size);
    lnt_turn(y, p->behind, by_column, n / p->behind, p->behind, n / p->behind, size);
}

/* ---- bind ---- */

/* Float or halves: of reduce_float.c. */
static bool is_real(const lnt_reduce *p)
{
    return lnt_is_floating(p->dtype) && p->dtype != LNT_DOUBLE;
}

static bool is_extreme(const lnt_reduce *p)
{
    return p->kind == MAX || p->kind == MIN;
}

/* The longest rows that are turned where there are many: wider elements are soon reduced as quickly where they lie. */
__attribute__((cold)) static int64_t longest_turned(const lnt_reduce *p)
{
    const size_t size = lnt_dtype_size(p->wide);
    if (LNT_TRIMMED || is_real(p) || size < sizeof(int32_t) || p->kind == SUM_EXP)
        return SHORT_ROW;
    return size == sizeof(int32_t) || is_extreme(p) ? FEW_ROWS - 1 : 2;
}

/* Rows of p->inner elements, p->behind results each, are turned where `lines` of them are side by side. Where those are
 * few, so are as many of the `repeats` of them that are reduced as there is room for. */
__attribute__((cold)) static bool turn(lnt_reduce *p, int64_t lines, int64_t repeats)
{
    int64_t fold = 1;
    if (p->count == 0 || p->inner * lines == 0)
        return false;
    const int64_t most = lnt_least(LNT_REDUCE_BLOCK / p->behind, LNT_REDUCE_ROOM / p->inner);
    if (lines < FEW_ROWS)
        for (fold = lnt_least(most / lines, repeats); repeats % fold != 0;)
            fold--;
    if (lines * fold < FEW_ROWS)
        return false;
    p->way = TURNED;
    p->columns = lines * p->behind;
    p->block = fold > 1 ? p->columns : (most & -16) * p->behind;
    p->rows = p->inner / p->behind;
    p->fold = fold;
    return true;
}

/* Rows of p->inner elements that others are joined with, or that are prepared, `lines` of them side by side. */
__attribute__((cold)) static bool join_rows(lnt_reduce *p, int64_t lines)
{
    const int64_t size = (int64_t)lnt_dtype_size(p->wide);
    const int64_t longest = p->count == p->inner                               ? LNT_REDUCE_BLOCK
                            : is_extreme(p) || size < (int64_t)sizeof(int64_t) ? JOINED_BYTES / size
                                                                               : SUMMED_BYTES / size;
    if (LNT_TRIMMED || p->kind == SUM_EXP || p->count == 0 || lines == 0 || p->inner > longest)
        return false;
    p->rows = p->inner;
    p->columns = lines;
    p->block = lnt_least(LNT_REDUCE_BLOCK, LNT_REDUCE_ROOM / p->inner);
    return true;
}

/* How the innermost of these axes are reduced; the number of those before them, of which less may be left. */
__attribute__((cold)) static unsigned set_way(lnt_reduce *p, lnt_axes *joined, const bool *reduced)
{
    unsigned left = joined->n;
    p->inner = p->behind = p->rows = p->fold = p->columns = p->block = 1;
    p->way = ALONG;
    if (left == 0)
        return 0;
    p->inner = joined->extent[--left];
    if (reduced[left]) {
        if (p->inner > longest_turned(p) || left == 0 || (LNT_TRIMMED && left > 1) ||
            !turn(p, joined->extent[left - 1], left > 1 ? joined->extent[left - 2] : 1))
            return left > !lnt_reduce_is_prepared(p) && join_rows(p, joined->extent[left - 1]) ? left - 1
                                                                                               : left;
        if (left > 1 && p->fold > 1) {
            joined->extent[left - 2] /= p->fold;
            joined->stride[left - 2] *= p->fold;
        }
        return left - 1;
    }
    if (!LNT_TRIMMED && left > 1 && p->inner * joined->extent[left - 1] <= SHORT_BLOCK) {
        p->behind = p->inner;
        p->inner *= joined->extent[left - 1];
        if (turn(p, joined->extent[left - 2], 1))
            return left - 2;
        p->inner = p->behind;
        p->behind = 1;
    }
    p->way = ACROSS;
    p->columns = p->inner;
    p->block = LNT_REDUCE_BLOCK;
    if (left > 0)
        p->rows = joined->extent[--left];
    if (p->inner > 0 && p->inner <= LNT_REDUCE_BLOCK / 4 && p->rows > 0)
        p->fold =
            lnt_least(FOLDED / p->inner + 1,
                      p->dtype == LNT_FLOAT ? lnt_least(p->rows, (p->count - 1) / BUNDLED + 1) : p->rows);
    return left;
}

/* Splits the input's extents into p's axes; mask: bit d set where axis d is reduced. */
__attribute__((cold)) static void set_axes(lnt_reduce *p, const lnt_operand *x, uint32_t mask)
{
    lnt_axes joined = {0};
    bool kind[LNT_MAX_RANK] = {0};
    p->count = 1;
    for (unsigned d = 0; d < x->rank; d++) {
        const bool reduced = mask >> d & 1u;
        if (reduced)
            p->count *= x->dims[d];
        if (x->dims[d] == 1)
            continue;
        if (joined.n && kind[joined.n - 1] == reduced) {
            joined.extent[joined.n - 1] *= x->dims[d];
        } else {
            kind[joined.n] = reduced;
            lnt_axes_push(&joined, x->dims[d], 0);
        }
    }
    int64_t stride = 1;
    for (unsigned i = joined.n; i-- > 0; stride *= joined.extent[i])
        joined.stride[i] = stride;
    const unsigned left = set_way(p, &joined, kind);
    for (unsigned i = 0; i < left; i++)
        lnt_axes_push(kind[i] ? &p->reduced : &p->kept, joined.extent[i], joined.stride[i]);
    /* Rows of nothing may be billions. */
    p->n_outer_reduced = p->count ? lnt_axes_items(&p->reduced) : 0;
    p->n_kept = lnt_axes_items(&p->kept);
}

/* Axes to reduce, as a bit mask; LNT_UNKNOWN while they are not known. */
__attribute__((cold)) static lnt_status axes_mask(const lnt_site *site, uint32_t *mask)
{
    int64_t list[LNT_MAX_RANK];
    unsigned n = LNT_MAX_RANK, axis;
    const unsigned rank = site->in[0]->rank;
    bool given;
    *mask = 0;
    LNT_TRY(lnt_value_ints(site, 1, list, &n, &given));
    if (n == 0) {
        if (!lnt_attr_i(site->node, "noop_with_empty_axes", 0))
            *mask = (1u << rank) - 1;
        return LNT_OK;
    }
    for (unsigned i = 0; i < n; i++) {
        LNT_TRY(lnt_axis(site, list[i], rank, &axis));
        *mask |= 1u << axis;
    }
    return LNT_OK;
}

/* Axes of extent 1 are left out where they are reduced, unless kept. */
static void set_reduced_dims(lnt_site *site, unsigned out, uint32_t mask, bool keep)
{
    const lnt_operand *x = site->in[0];
    int64_t dims[LNT_MAX_RANK];
    unsigned rank = 0;
    for (unsigned d = 0; d < x->rank; d++) {
        if (!(mask >> d & 1u))
            dims[rank++] = x->dims[d];
        else if (keep)
            dims[rank++] = 1;
    }
    lnt_set_dims(site, out, rank, dims);
}

lnt_status lnt_shape_reduce(lnt_site *site)
{
    uint32_t mask;
    const bool keep = lnt_attr_i(site->node, "keepdims", 1) != 0;
    const lnt_status status = axes_mask(site, &mask);
    if (status == LNT_UNKNOWN && keep) {
        int64_t dims[LNT_MAX_RANK];
        for (unsigned d = 0; d < site->in[0]->rank; d++)
            dims[d] = site->in[0]->dims[d] == 1 ? 1 : LNT_DIM_UNKNOWN;
        lnt_set_dims(site, 0, site->in[0]->rank, dims);
        return LNT_UNKNOWN;
    }
    LNT_TRY(status);
    set_reduced_dims(site, 0, mask, keep);
    return LNT_OK;
}

/* The axes follow from the output's extents where their contents are no longer at hand. */
static lnt_status bind_mask(const lnt_site *site, uint32_t *mask)
{
    const lnt_status status = axes_mask(site, mask);
    return status == LNT_UNKNOWN
               ? LNT_SITE_FAIL(site, LNT_E_SHAPE, "axes are not known when the operator is bound")
               : status;
}

__attribute__((cold)) static lnt_status bind_axes(lnt_site *site, uint32_t mask, unsigned kind,
                                                  unsigned finish)
{
    const lnt_operand *x = site->in[0];
    const bool squares = kind == SUM_SQUARES || kind == SUM_ABS;
    lnt_reduce *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->kind = kind;
    p->finish = finish;
    p->dtype = (lnt_dtype)x->dtype;
    if (!lnt_is_floating(p->dtype) && !lnt_is_integer(p->dtype) && !(p->dtype == LNT_BOOL && is_extreme(p)))
        return lnt_bind_unsupported_type(site, p->dtype);
    p->row = site->kernels->row;
    p->cells = site->kernels->cells;
    p->kernels = site->kernels;
    p->wide = p->dtype;
    if (!is_real(p))
        lnt_reduce_set_typed(p);
    set_axes(p, x, mask);
    p->task = is_real(p) ? lnt_reduce_float(p) : lnt_reduce_typed(p);
    site->step->run = run_reduce;
    if (p->count == 1 && !squares && finish <= FINISH_MEAN && p->dtype != LNT_BOOL)
        lnt_bind_view(site, 0, 0, 0); /* if it can be one */
    return LNT_OK;
}

lnt_status lnt_bind_reduce_sum(lnt_site *site, uint32_t mask)
{
    return bind_axes(site, mask, SUM, FINISH_NONE);
}

lnt_status lnt_bind_reduce(lnt_site *site)
{
    static const struct {
        uint16_t id;
        uint8_t kind, finish;
    } table[] = {
        {LNT_ID_ReduceSum, SUM, FINISH_NONE},          {LNT_ID_ReduceMean, SUM, FINISH_MEAN},
        {LNT_ID_ReduceMax, MAX, FINISH_NONE},          {LNT_ID_ReduceMin, MIN, FINISH_NONE},
        {LNT_ID_ReduceProd, PRODUCT, FINISH_NONE},     {LNT_ID_ReduceL1, SUM_ABS, FINISH_NONE},
        {LNT_ID_ReduceL2, SUM_SQUARES, FINISH_SQRT},   {LNT_ID_ReduceLogSum, SUM, FINISH_LOG},
        {LNT_ID_ReduceLogSumExp, SUM_EXP, FINISH_LOG}, {LNT_ID_ReduceSumSquare, SUM_SQUARES, FINISH_NONE}};
    uint32_t mask;
    LNT_TRY(bind_mask(site, &mask));
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].id == site->node->op->id)
            return bind_axes(site, mask, table[i].kind, table[i].finish);
    return LNT_E_INTERNAL;
}
