/* argmax.c — ArgMax and ArgMin: where along an axis the extreme element is. NaN is more extreme than any
 * number; of equal elements the first counts, or the last. */
#include "ops/op.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/cells.h"
#include "ops/copy.h"
#include "ops/element.h"
#include "ops/elementwise/program_kernels.h"
#include "ops/elementwise/typed_kernels.h"
#include "ops/rows/row.h"

#include <string.h>

enum {
    BLOCK = 256,              /* columns searched at a time */
    SHORT_ROW = 64,           /* rows up to that are turned into columns, of double those twice as long, */
    TURNED = 64,              /* at most so many at a time */
    NARROW = 16,              /* columns that are fewer are put side by side, or made rows, */
    ROOM = SHORT_ROW * TURNED /* of so many elements */
};

typedef struct argmax {
    const lnt_row_kernels *row;
    const lnt_typed_kernels *typed;
    const lnt_cells *cells;
    lnt_dtype dtype;
    int64_t outer, n, inner; /* extents before, along and behind the axis */
    int64_t turned; /* short rows, or images of narrow ones, that become columns together; 0: none do */
    bool least, last, half;
} argmax;

typedef struct argmax_job {
    const argmax *p;
    const void *x;
    int64_t *y;
} argmax_job;

/* out = row(a, b) over n elements of the type. */
static void apply(const argmax *p, lnt_typed_row row, lnt_dtype dtype, void *out, const void *a,
                  const void *b, int64_t n)
{
    p->typed->loop[row][dtype](&(lnt_typed_args){.out = out, .in = {a, b}, .n = n});
}

/* ---- columns: n rows, `step` elements apart, searched side by side ---- */

/* Which of x are to take the place of the best so far, as bytes of 0 or 1. */
static void beats(const argmax *p, const void *x, const void *best, uint8_t *mask, int64_t n)
{
    const void *pair[] = {x, best};
    apply(p, p->last ? LNT_TYPED_LessOrEqual : LNT_TYPED_Less, p->dtype, mask, pair[!p->least],
          pair[p->least], n);
}

/* Rows of a span are numbered in 32 bits: -1 where none of them is the best so far. */
enum { SPAN = 1 << 30 };

static void settle(const int32_t *found, int64_t base, int64_t columns, int64_t *at)
{
    for (int64_t c = 0; c < columns; c++)
        if (found[c] >= 0)
            at[c] = base + found[c];
}

static void begin_span(int64_t base, int32_t *found, int64_t columns)
{
    for (int64_t c = 0; c < columns; c++)
        found[c] = base ? -1 : 0;
}

static void search_typed(const argmax *p, const void *x, int64_t step, int64_t columns, int64_t *at)
{
    const size_t size = lnt_dtype_size(p->dtype);
    const lnt_typed_fn where = lnt_typed_where(p->typed, size),
                       number = lnt_typed_where(p->typed, sizeof(int32_t));
    _Alignas(16) char best[BLOCK * sizeof(int64_t)];
    uint8_t mask[BLOCK];
    int32_t found[BLOCK], index[BLOCK];
    memcpy(best, x, (size_t)columns * size);
    for (int64_t base = 0; base < p->n; base += SPAN) {
        begin_span(base, found, columns);
        for (int64_t i = base ? base : 1; i < p->n && i - base < SPAN; i++) {
            const void *row = lnt_element_at(x, p->dtype, i * step);
            beats(p, row, best, mask, columns);
            lnt_fill(index, columns, &(int32_t){(int32_t)(i - base)}, sizeof *index);
            where(&(lnt_typed_args){.out = best, .in = {mask, row, best}, .n = columns});
            number(&(lnt_typed_args){.out = found, .in = {mask, index, found}, .n = columns});
        }
        settle(found, base, columns, at);
    }
}

/* The same for float and what is converted to it, of which NaN may beat all. */
static void search_float(const argmax *p, const void *x, int64_t step, int64_t columns, int64_t *at)
{
    float best[BLOCK], row[BLOCK];
    int32_t found[BLOCK];
    lnt_cells_to_float(p->cells, p->dtype, x, best, columns);
    for (int64_t base = 0; base < p->n; base += SPAN) {
        begin_span(base, found, columns);
        for (int64_t i = base ? base : 1; i < p->n && i - base < SPAN; i++) {
            const void *from = lnt_element_at(x, p->dtype, i * step);
            if (p->half)
                lnt_cells_to_float(p->cells, p->dtype, from, row, columns);
            p->row->pick_max(best, found, p->half ? row : from, (int32_t)(i - base), p->least, p->last,
                             columns);
        }
        settle(found, base, columns, at);
    }
}

/* The same for double. */
static void search_double(const argmax *p, const void *x, int64_t step, int64_t columns, int64_t *at)
{
    double best[BLOCK];
    const double *row = x;
    memcpy(best, row, (size_t)columns * sizeof *best);
    memset(at, 0, (size_t)columns * sizeof *at);
    for (int64_t i = 1; i < p->n; i++)
        p->typed->pick_double(best, at, row + i * step, i, p->least ? -1 : 1, p->last, columns);
}

static void search_columns(const argmax *p, const void *x, int64_t step, int64_t columns, int64_t *at)
{
    const bool floats = p->dtype == LNT_FLOAT || p->half;
    if (p->n == 1) {
        memset(at, 0, (size_t)columns * sizeof *at);
        return;
    }
    (floats ? search_float : p->dtype == LNT_DOUBLE ? search_double : search_typed)(p, x, step, columns, at);
}

/* Short rows, or narrow images of them, as columns [n][inner][images]. */
static void search_short_rows(const argmax *p, const void *x, int64_t images, int64_t *at)
{
    _Alignas(16) char turned[ROOM * sizeof(int64_t)];
    int64_t found[BLOCK];
    const int64_t line = p->n * p->inner, columns = images * p->inner;
    LNT_ASSERT(line * images <= ROOM && columns <= BLOCK);
    if (p->n > 1)
        lnt_turn(turned, images, x, line, images, line, lnt_dtype_size(p->dtype));
    search_columns(p, turned, columns, columns, found);
    lnt_turn(at, p->inner, found, images, p->inner, images, sizeof *at);
}

/* ---- a long row ---- */

/* Where best is, which is there, or a NaN, which only a row has whose best it is. */
static int64_t find_double(const double *x, int64_t n, double best, bool last)
{
    const int64_t step = last ? -1 : 1;
    int64_t at = last ? n - 1 : 0;
    while (x[at] != best && x[at] == x[at])
        at += step;
    return at;
}

/* Where the extreme element is that was found. */
static int64_t search_typed_row(const argmax *p, const char *x)
{
    const int64_t size = (int64_t)lnt_dtype_size(p->dtype);
    _Alignas(16) char best[BLOCK * sizeof(int64_t)];
    uint8_t mask[BLOCK];
    int64_t at = 0;
    p->typed->along[p->least ? LNT_ALONG_Min : LNT_ALONG_Max][p->dtype](best, x, 1, p->n, 1);
    if (p->dtype == LNT_DOUBLE)
        return find_double((const double *)(const void *)x, p->n, *(double *)(void *)best, p->last);
    lnt_fill(best + size, lnt_least(BLOCK, p->n) - 1, best, (size_t)size);
    for (int64_t i = 0; i < p->n; i += BLOCK) {
        const int64_t n = lnt_least(BLOCK, p->n - i);
        apply(p, LNT_TYPED_Equal, p->dtype, mask, x + i * size, best, n);
        const uint8_t *hit = p->last ? memrchr(mask, 1, (size_t)n) : memchr(mask, 1, (size_t)n);
        if (!hit)
            continue;
        at = i + (hit - mask);
        if (!p->last)
            break;
    }
    return at;
}

/* Halves, a block of floats at a time. */
static int64_t search_half_row(const argmax *p, const char *x)
{
    float block[BLOCK], best = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < p->n; i += BLOCK) {
        const int64_t n = lnt_least(BLOCK, p->n - i);
        lnt_cells_to_float(p->cells, p->dtype, lnt_element_at(x, p->dtype, i), block, n);
        const int64_t here = (p->least ? p->row->argmin : p->row->argmax)(block, n, p->last);
        const float found = block[here];
        const bool same = found == best || (found != found && best != best);
        const bool beyond = best == best && (found != found || (p->least ? found < best : found > best));
        if (i == 0 || beyond || (same && p->last)) {
            best = found;
            at = i + here;
        }
    }
    return at;
}

static int64_t search_row(const argmax *p, const void *x)
{
    if (p->dtype == LNT_FLOAT)
        return (p->least ? p->row->argmin : p->row->argmax)(x, p->n, p->last);
    return p->half ? search_half_row(p, x) : search_typed_row(p, x);
}

/* Few columns, as rows: where vectors are long, and a library has room. */
static void search_narrow(const argmax *p, const void *x, int64_t *at)
{
    _Alignas(16) char turned[ROOM * sizeof(int64_t)];
    const size_t size = lnt_dtype_size(p->dtype);
    for (int64_t c = 0, w; c < p->inner; c += w) {
        w = lnt_least(p->inner - c, ROOM / p->n);
        lnt_turn(turned, p->n, lnt_element_at(x, p->dtype, c), p->inner, p->n, w, size);
        for (int64_t i = 0; i < w; i++)
            at[c + i] = search_row(p, lnt_element_at(turned, p->dtype, i * p->n));
    }
}

/* ---- items: blocks of columns, of short rows, or rows ---- */

static int64_t width_of(const argmax *p)
{
    return p->turned ? p->turned : p->inner > 1 ? BLOCK : 1;
}

static int64_t items_of(const argmax *p)
{
    const int64_t width = width_of(p);
    return p->turned ? (p->outer + width - 1) / width : p->outer * ((p->inner + width - 1) / width);
}

static lnt_status find_extremes(lnt_kernel *k, void *arg, int64_t begin, int64_t end, unsigned thread)
{
    const argmax_job *j = arg;
    const argmax *p = j->p;
    const int64_t width = width_of(p), blocks = (p->inner + width - 1) / width;
    (void)k, (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t o = p->turned ? item * width : item / blocks,
                      column = p->turned ? 0 : item % blocks * width;
        const void *x = lnt_element_at(j->x, p->dtype, o * p->n * p->inner + column);
        int64_t *y = j->y + o * p->inner + column;
        if (p->turned)
            search_short_rows(p, x, lnt_least(width, p->outer - o), y);
        else if (p->inner == 1)
            *y = search_row(p, x);
        else if (LNT_LONG_VECTORS && p->inner < NARROW && p->n > SHORT_ROW && p->n <= ROOM)
            search_narrow(p, x, y);
        else
            search_columns(p, x, p->inner, lnt_least(width, p->inner - column), y);
    }
    return LNT_OK;
}

static lnt_status run_argmax(lnt_kernel *k, const lnt_step *s)
{
    const argmax *p = s->params;
    argmax_job job = {p, lnt_in(k, s, 0), lnt_out(k, s, 0)};
    if (p->outer * p->inner == 0)
        return LNT_OK;
    return lnt_parallel(k, items_of(p), 1 + 16384 / (p->n * lnt_least(width_of(p), p->outer * p->inner) + 1),
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
    *p = (argmax){.row = site->kernels->row,
                  .typed = site->kernels->typed,
                  .cells = site->kernels->cells,
                  .dtype = x->dtype,
                  .outer = 1,
                  .n = x->dims[axis],
                  .inner = 1,
                  .least = site->node->op->id == LNT_ID_ArgMin,
                  .last = lnt_attr_i(site->node, "select_last_index", 0) != 0,
                  .half = x->dtype == LNT_FLOAT16 || x->dtype == LNT_BFLOAT16};
    for (unsigned d = 0; d < x->rank; d++) {
        if (d != axis)
            *(d < axis ? &p->outer : &p->inner) *= x->dims[d];
    }
    LNT_REQUIRE(p->n > 0 || p->outer * p->inner == 0, site->err, LNT_E_SHAPE,
                "axis %u is empty: there is nothing to choose from", axis);
    if (p->n > 0 && p->n <= SHORT_ROW << (p->dtype == LNT_DOUBLE) && p->inner < NARROW && p->inner > 0)
        p->turned = lnt_least(TURNED, lnt_least(BLOCK, ROOM / p->n) / p->inner);
    site->step->run = run_argmax;
    return LNT_OK;
}
