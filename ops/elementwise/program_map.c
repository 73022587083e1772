/* program_map.c — programs over tensors: broadcasting in any mix of storage orders, epilogues. */
#include "ops/elementwise/program_run.h"

#include "base/half.h"
#include "base/lnt_assert.h"
#include "formats/packed.h"
#include "ops/elementwise/epilogue.h"
#include "ops/half_kernels.h"

#include <math.h>
#include <string.h>

/* ---- making a map ---- */

/* Axes of out in storage order. */
static void storage_axes(const lnt_operand *out, unsigned axes[LNT_MAX_RANK])
{
    unsigned n = 0;
    for (unsigned a = 0; a < out->rank; a++)
        if (out->order != LNT_ORDER_CHANNELS_LAST || a != 1)
            axes[n++] = a;
    if (out->order == LNT_ORDER_CHANNELS_LAST)
        axes[n] = 1;
}

/* Strides of o along the axes of out; 0 where it is repeated. */
static void broadcast_strides(const lnt_operand *o, const lnt_operand *out, const unsigned *axes,
                              int64_t stride[LNT_MAX_RANK])
{
    int64_t own[LNT_MAX_RANK];
    lnt_operand_strides(o, own);
    for (unsigned d = 0; d < out->rank; d++) {
        const int a = (int)axes[d] - (int)(out->rank - o->rank);
        stride[d] = a < 0 || o->dims[a] == 1 ? 0 : own[a];
    }
}

static lnt_status choose_cell(lnt_site *site, const lnt_operand *o, bool mask, lnt_cell *cell)
{
    static const uint8_t cells[LNT_DTYPE_COUNT] = {
        [LNT_FLOAT] = LNT_CELL_F32 + 1,  [LNT_FLOAT16] = LNT_CELL_F16 + 1, [LNT_BFLOAT16] = LNT_CELL_BF16 + 1,
        [LNT_BOOL] = LNT_CELL_BOOL + 1,  [LNT_UINT8] = LNT_CELL_U8 + 1,    [LNT_INT8] = LNT_CELL_I8 + 1,
        [LNT_UINT16] = LNT_CELL_U16 + 1, [LNT_INT16] = LNT_CELL_I16 + 1,   [LNT_INT32] = LNT_CELL_I32 + 1,
        [LNT_INT64] = LNT_CELL_I64 + 1};
    const unsigned found = o->dtype < LNT_DTYPE_COUNT ? cells[o->dtype] : 0;
    if (!found || mask != (o->dtype == LNT_BOOL))
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "an operand of an elementwise program is %s, not %s",
                             lnt_dtype_text(o->dtype), mask ? "bool" : "a number that registers take");
    *cell = (lnt_cell)(found - 1);
    return LNT_OK;
}

/* Operand i of the map: the tile has the extents of the result. */
static const lnt_operand *operand_of(const lnt_map *m, unsigned i, const lnt_operand *const *in,
                                     const lnt_operand *const *out)
{
    if (i >= m->n_in)
        return out[i - m->n_in];
    return m->tile ? (i == 0 ? out[0] : in[i - 1]) : in[i];
}

static bool may_merge(const lnt_map *m, unsigned operands, unsigned outer, unsigned inner)
{
    for (unsigned i = 0; i < operands; i++) {
        const int64_t *s = m->operand[i].stride;
        if (s[outer] != s[inner] * m->dims[inner])
            return false;
    }
    return true;
}

static void move_axis(lnt_map *m, unsigned operands, unsigned to, unsigned from)
{
    m->dims[to] = m->dims[from];
    for (unsigned i = 0; i < operands; i++)
        m->operand[i].stride[to] = m->operand[i].stride[from];
}

/* Drops axes of extent 1 and merges neighbors that every operand walks as one. The last axis of a matrix
 * (columns of an epilogue) stays itself. */
static void collapse(lnt_map *m, unsigned operands, bool keep_columns)
{
    unsigned n = 0;
    for (unsigned d = 0; d < m->rank; d++) {
        const bool fixed = keep_columns && d + 1 == m->rank;
        if (m->dims[d] == 1 && !fixed)
            continue;
        if (n > 0 && !fixed && may_merge(m, operands, n - 1, d)) {
            const int64_t extent = m->dims[n - 1] * m->dims[d];
            move_axis(m, operands, n - 1, d);
            m->dims[n - 1] = extent;
        } else {
            move_axis(m, operands, n++, d);
        }
    }
    m->rank = n;
}

/* Puts axes of extent 1 before the others until there are two. */
static void pad_rank(lnt_map *m, unsigned operands)
{
    while (m->rank < 2) {
        if (m->rank == 1)
            move_axis(m, operands, 1, 0);
        m->dims[0] = 1;
        for (unsigned i = 0; i < operands; i++)
            m->operand[i].stride[0] = 0;
        m->rank++;
    }
}

/* Short rows are gathered into blocks along one axis only: the longest shall be the one next to the columns. */
static void order_rows(lnt_map *m, unsigned operands)
{
    enum { SHORT_ROW = 16, FEW_ROWS = 16 };
    const unsigned inner = m->rank - 2;
    unsigned longest = inner;
    for (unsigned d = 0; d < inner; d++)
        if (m->dims[d] > m->dims[longest])
            longest = d;
    if (m->dims[m->rank - 1] >= SHORT_ROW || m->dims[inner] >= FEW_ROWS || longest == inner)
        return;
    const int64_t extent = m->dims[inner];
    m->dims[inner] = m->dims[longest];
    m->dims[longest] = extent;
    for (unsigned i = 0; i < operands; i++) {
        int64_t *s = m->operand[i].stride, stride = s[inner];
        s[inner] = s[longest];
        s[longest] = stride;
    }
}

void lnt_map_extents(lnt_map *m, const lnt_operand *const *in, unsigned n_in, const lnt_operand *const *out,
                     unsigned n_out, bool tile)
{
    unsigned axes[LNT_MAX_RANK];
    memset(m, 0, sizeof *m);
    m->tile = tile;
    m->n_in = n_in + (tile ? 1 : 0);
    m->n_out = n_out;
    m->rank = out[0]->rank;
    storage_axes(out[0], axes);
    for (unsigned d = 0; d < m->rank; d++)
        m->dims[d] = out[0]->dims[axes[d]];
    const unsigned operands = m->n_in + n_out;
    for (unsigned i = 0; i < operands; i++) {
        const lnt_operand *o = operand_of(m, i, in, out);
        broadcast_strides(o, out[0], axes, m->operand[i].stride);
        m->operand[i].size = (uint8_t)lnt_dtype_size(o->dtype);
    }
    collapse(m, operands, tile);
    pad_rank(m, operands);
    m->cols = m->dims[m->rank - 1];
    m->rows = 1;
    for (unsigned d = 0; d + 1 < m->rank; d++)
        m->rows *= m->dims[d];
}

bool lnt_map_fits(const lnt_operand *o, const lnt_operand *out, bool result)
{
    if (o->rank > out->rank || (result && o->rank != out->rank))
        return false;
    for (unsigned d = 0, missing = out->rank - o->rank; d < o->rank; d++)
        if (o->dims[d] != out->dims[d + missing] && (result || o->dims[d] != 1))
            return false;
    return true;
}

/* No shape rule has seen an epilogue's operands: whether they fit the result is found here. */
static lnt_status check_operands(lnt_site *site, const lnt_program *p, const lnt_operand *const *in,
                                 const lnt_operand *const *out)
{
    for (unsigned i = 0; i < (unsigned)p->n_in + p->n_out; i++)
        if (!lnt_map_fits(i < p->n_in ? in[i] : out[i - p->n_in], out[0], i >= p->n_in))
            return LNT_SITE_FAIL(site, LNT_E_SHAPE,
                                 "operand %u of its elementwise program does not fit the result", i);
    return LNT_OK;
}

static bool is_tile(const lnt_map *m, unsigned i)
{
    return m->tile && (i == 0 || i == m->n_in);
}

/* A tile is what its kernel computes, whatever the type of the output. */
static void set_tile(const lnt_site *site, lnt_map_operand *tile)
{
    tile->cell = site->half ? LNT_CELL_F16 : LNT_CELL_F32;
    tile->size = (uint8_t)lnt_site_element(site);
}

enum { CONSTANTS_SEEN = 4096 };

/* Is o a constant of a few floats that are halves but for their last digits? */
static bool rounds_to_halves(const lnt_operand *o)
{
    const int64_t n = lnt_operand_count(o);
    bool small = o->constant && o->data && !o->packed && n >= 0 && n <= CONSTANTS_SEEN;
    for (int64_t i = 0; small && i < n; i++)
        small = fabsf(((const float *)o->data)[i]) <= LNT_F16_MAX;
    return small;
}

/* Floats at run time may be larger than halves are. */
static bool halves_alone(const lnt_map *m, const lnt_operand *const *in, const lnt_operand *const *out)
{
    for (unsigned i = 0; i < m->n_in + m->n_out; i++)
        if (m->operand[i].cell != LNT_CELL_F16 &&
            (m->operand[i].cell != LNT_CELL_F32 || is_tile(m, i) || i >= m->n_in ||
             !rounds_to_halves(operand_of(m, i, in, out))))
            return false;
    return true;
}

lnt_status lnt_map_make(lnt_site *site, const lnt_program *p, const lnt_operand *const *in,
                        const lnt_operand *const *out, lnt_map *m)
{
    const unsigned tile = p->epilogue ? 1 : 0;
    const lnt_program_types types = lnt_program_types_of(p);
    LNT_TRY(check_operands(site, p, in, out));
    lnt_map_extents(m, in, p->n_in, out, p->n_out, p->epilogue);
    if (!m->tile)
        order_rows(m, m->n_in + m->n_out);
    for (unsigned i = 0; i < m->n_in + m->n_out; i++) {
        const bool mask =
            i >= m->n_in ? types.result[i - m->n_in] == LNT_BOOL : i >= tile && types.mask[i - tile];
        LNT_TRY(choose_cell(site, operand_of(m, i, in, out), mask, &m->operand[i].cell));
        if (is_tile(m, i))
            set_tile(site, &m->operand[i]);
    }
    m->code = lnt_code_make(site, p, out, LNT_HAS_HALVES && site->half && halves_alone(m, in, out));
    return m->code ? LNT_OK : site->err->code;
}

/* ---- running ---- */

/* View of operand i from row (spread over index[]) and column on. */
static lnt_view view_of(const lnt_map *m, unsigned i, char *base, const int64_t *index, int64_t col)
{
    const lnt_map_operand *o = &m->operand[i];
    int64_t offset = col * o->stride[m->rank - 1];
    for (unsigned d = 0; d + 1 < m->rank; d++)
        offset += index[d] * o->stride[d];
    return (lnt_view){base + offset * o->size, o->stride[m->rank - 2], o->stride[m->rank - 1], o->cell};
}

void lnt_map_split_row(const lnt_map *m, int64_t row, int64_t *index)
{
    for (unsigned d = m->rank - 1; d-- > 0;) {
        index[d] = row % m->dims[d];
        row /= m->dims[d];
    }
}

void lnt_map_run(const lnt_map *m, char *const *base, int64_t ld, int64_t row, int64_t rows, int64_t col,
                 int64_t cols)
{
    LNT_ASSERT(m->rank >= 2 && m->rank <= LNT_MAX_RANK && m->n_in + m->n_out <= LNT_VIEW_MAX);
    LNT_ASSERT(col >= 0 && col + cols <= m->dims[m->rank - 1]);
    int64_t index[LNT_MAX_RANK];
    lnt_view view[LNT_VIEW_MAX];
    const unsigned inner = m->rank - 2;
    int64_t n;
    for (int64_t done = 0; done < rows && cols > 0; done += n) {
        lnt_map_split_row(m, row + done, index);
        n = m->dims[inner] - index[inner];
        n = n < rows - done ? n : rows - done;
        for (unsigned i = 0; i < m->n_in + m->n_out; i++)
            view[i] = is_tile(m, i)
                          ? (lnt_view){base[i] + done * ld * m->operand[i].size, ld, 1, m->operand[i].cell}
                          : view_of(m, i, base[i], index, col);
        lnt_code_run(m->code, view, n, cols);
    }
}

/* ---- epilogues ---- */

struct lnt_epilogue {
    lnt_map map;
    unsigned first_in; /* input of the step that is operand 1 of the map */
};

lnt_status lnt_bind_epilogue(lnt_site *site, const lnt_epilogue **out)
{
    const lnt_node *node = site->node;
    *out = NULL;
    if (!node->program)
        return LNT_OK;
    lnt_epilogue *e = lnt_bump_alloc(site->memory, sizeof *e, site->err);
    if (!e)
        return site->err->code;
    e->first_in = site->n_in - node->n_program_in;
    LNT_TRY(lnt_map_make(site, node->program, (const lnt_operand *const *)site->in + e->first_in,
                         (const lnt_operand *const *)site->out, &e->map));
    *out = e;
    return LNT_OK;
}

void lnt_epilogue_run(const lnt_epilogue *e, const lnt_kernel *k, const lnt_step *s, float *tile, int64_t ld,
                      int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    LNT_ASSERT(e->map.tile && e->first_in + e->map.n_in - 1 == s->n_in);
    char *base[LNT_VIEW_MAX];
    base[0] = base[e->map.n_in] = (char *)tile;
    for (unsigned i = 1; i < e->map.n_in; i++)
        base[i] = (char *)(uintptr_t)lnt_in(k, s, e->first_in + i - 1);
    lnt_map_run(&e->map, base, ld, row, rows, col, cols);
}
