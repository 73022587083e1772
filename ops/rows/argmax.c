/* argmax.c — ArgMax and ArgMin: where along an axis the extreme element is. NaN is more extreme than any
 * number; of equal elements the first counts, or the last. */
#include "ops/op.h"

#include "ops/element.h"
#include "ops/rows/row.h"

#include <string.h>

enum { BLOCK = 256 }; /* columns searched at a time */

typedef struct argmax {
    const lnt_row_kernels *row;
    lnt_dtype dtype;
    int64_t outer, n, inner; /* extents before, along and behind the axis */
    bool least, last;
} argmax;

typedef struct argmax_job {
    const argmax *p;
    const void *x;
    int64_t *y;
} argmax_job;

/* One row [columns] against the best so far. wins: a beats b; ties: a is as good. */
#define SEARCH(R, name)                                                                                      \
    static void name(const argmax *p, const R *x, int64_t index, int64_t columns, R *best, int64_t *at)      \
    {                                                                                                        \
        for (int64_t j = 0; j < columns; j++) {                                                              \
            const R a = x[j], b = best[j];                                                                   \
            const bool same = a == b || (a != a && b != b);                                                  \
            const bool beyond = b == b && (a != a || (p->least ? a < b : a > b));                            \
            if (index > 0 && !beyond && !(same && p->last))                                                  \
                continue;                                                                                    \
            best[j] = a;                                                                                     \
            at[j] = index;                                                                                   \
        }                                                                                                    \
    }

SEARCH(double, search_double)
SEARCH(int64_t, search_int)
SEARCH(uint64_t, search_unsigned)

typedef union row_buffer {
    double real[BLOCK];
    int64_t integer[BLOCK];
    uint64_t natural[BLOCK];
} row_buffer;

/* Columns [0, columns) of the n rows that start at element `first`. */
static void search_columns(const argmax *p, const void *x, int64_t first, int64_t columns, int64_t *at)
{
    row_buffer row, best;
    for (int64_t i = 0; i < p->n; i++) {
        const void *src = lnt_element_at(x, p->dtype, first + i * p->inner);
        if (lnt_is_floating(p->dtype)) {
            lnt_elements_to_double(p->dtype, src, row.real, columns);
            search_double(p, row.real, i, columns, best.real, at);
            continue;
        }
        lnt_elements_to_int64(p->dtype, src, row.integer, columns);
        if (p->dtype == LNT_UINT64)
            search_unsigned(p, row.natural, i, columns, best.natural, at);
        else
            search_int(p, row.integer, i, columns, best.integer, at);
    }
}

/* The same for float, with vectors. */
static void search_float(const argmax *p, const float *x, int64_t columns, int64_t *at)
{
    float best[BLOCK];
    int32_t index[BLOCK] = {0};
    memcpy(best, x, (size_t)columns * sizeof *best);
    for (int64_t i = 1; i < p->n; i++)
        p->row->pick_max(best, index, x + i * p->inner, (int32_t)i, p->least, p->last, columns);
    for (int64_t c = 0; c < columns; c++)
        at[c] = index[c];
}

static lnt_status find_extremes(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const argmax_job *j = arg;
    const argmax *p = j->p;
    const int64_t blocks = (p->inner + BLOCK - 1) / BLOCK;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t o = item / blocks, column = item % blocks * BLOCK;
        const int64_t columns = p->inner - column < BLOCK ? p->inner - column : BLOCK;
        int64_t *at = j->y + o * p->inner + column;
        if (p->inner == 1 && p->dtype == LNT_FLOAT)
            *at = (p->least ? p->row->argmin : p->row->argmax)((const float *)j->x + o * p->n, p->n, p->last);
        else if (p->dtype == LNT_FLOAT && p->n <= INT32_MAX)
            search_float(p, (const float *)j->x + o * p->n * p->inner + column, columns, at);
        else
            search_columns(p, j->x, o * p->n * p->inner + column, columns, at);
    }
    return LNT_OK;
}

static lnt_status run_argmax(lnt_kernel *k, const lnt_step *s)
{
    const argmax *p = s->params;
    argmax_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0)};
    const int64_t columns = p->inner < BLOCK ? p->inner : BLOCK;
    return lnt_parallel(k, p->outer * ((p->inner + BLOCK - 1) / BLOCK), 1 + 16384 / (p->n * columns + 1),
                        find_extremes, &job);
}

lnt_status lnt_shape_argmax(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    const bool keep = lnt_attr_i(site->node, "keepdims", 1) != 0;
    int64_t dims[LNT_MAX_RANK];
    unsigned axis, rank = 0;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), x->rank, &axis));
    for (unsigned d = 0; d < x->rank; d++)
        if (d != axis || keep)
            dims[rank++] = d == axis ? 1 : x->dims[d];
    lnt_set_dims(site, 0, rank, dims);
    return LNT_OK;
}

lnt_status lnt_bind_argmax(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    unsigned axis;
    argmax *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    if (!lnt_is_floating(x->dtype) && !lnt_is_integer(x->dtype))
        return lnt_bind_unsupported_type(site, x->dtype);
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), x->rank, &axis));
    *p = (argmax){site->kernels->row,
                  x->dtype,
                  1,
                  x->dims[axis],
                  1,
                  site->node->op->id == LNT_ID_ArgMin,
                  lnt_attr_i(site->node, "select_last_index", 0) != 0};
    for (unsigned d = 0; d < x->rank; d++) {
        if (d != axis)
            *(d < axis ? &p->outer : &p->inner) *= x->dims[d];
    }
    LNT_REQUIRE(p->n > 0 || p->outer * p->inner == 0, site->err, LNT_E_SHAPE,
                "axis %u is empty: there is nothing to choose from", axis);
    site->step->run = run_argmax;
    return LNT_OK;
}
