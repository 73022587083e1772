/* pattern_scatter.c — ScatterND that writes a box, as assignments to slices are exported:
 *
 *     ScatterND(data, indices of all elements of data[.., begin : end, ..], updates)
 *     → Concat(data[.., : begin, ..], updates, data[.., end :, ..])
 *
 * The table of indices, often many times the size of what it places, is no longer needed. */
#include "convert/passes/patterns.h"

#include <string.h>

enum { LEAST_INDICES = 128 /* numbers; with fewer, one step is sooner than three */ };

typedef struct box {
    unsigned axes; /* that the indices are along */
    int64_t begin[LNT_MAX_RANK], end[LNT_MAX_RANK];
} box;

/* A number of a tuple, counted from the front of its axis. */
static int64_t place(int64_t index, int64_t extent)
{
    return index < 0 ? index + extent : index;
}

/* Do the tuples count through a box of data in row-major order, each place once? */
static bool box_of(const lnt_operand *data, const lnt_operand *indices, box *b)
{
    const int64_t *tuple = indices->data, count = lnt_operand_count(indices);
    b->axes = indices->rank ? (unsigned)indices->dims[indices->rank - 1] : 0;
    if (b->axes < 1 || b->axes > data->rank || count < LEAST_INDICES)
        return false;
    const int64_t n = count / b->axes, *last = tuple + (n - 1) * b->axes;
    int64_t at[LNT_MAX_RANK], places = 1;
    for (unsigned i = 0; i < b->axes; i++) {
        at[i] = b->begin[i] = place(tuple[i], data->dims[i]);
        b->end[i] = place(last[i], data->dims[i]) + 1;
        if (b->begin[i] < 0 || b->begin[i] >= b->end[i] || b->end[i] > data->dims[i])
            return false;
        places *= b->end[i] - b->begin[i];
    }
    for (int64_t k = 0; places == n && k < n; k++, tuple += b->axes) {
        for (unsigned i = 0; i < b->axes; i++)
            if (place(tuple[i], data->dims[i]) != at[i])
                return false;
        for (unsigned i = b->axes; i-- > 0 && ++at[i] == b->end[i];)
            at[i] = b->begin[i];
    }
    return places == n;
}

/* The one axis that the box is only a part of, or the first; false if there are several. */
static bool axis_of(const box *b, const lnt_operand *data, unsigned *axis)
{
    unsigned parts = 0;
    *axis = 0;
    for (unsigned i = 0; i < b->axes; i++)
        if (b->begin[i] > 0 || b->end[i] < data->dims[i]) {
            *axis = i;
            parts++;
        }
    return parts <= 1;
}

/* Elements of data in the box. */
static int64_t volume(const box *b, const lnt_operand *data)
{
    int64_t n = 1;
    for (unsigned i = 0; i < data->rank; i++)
        n *= i < b->axes ? b->end[i] - b->begin[i] : data->dims[i];
    return n;
}

/* data[begin : end] along the axis, before n; LNT_NONE when memory is short. */
static uint32_t slice(lnt_edit *e, lnt_gnode *n, unsigned axis, int64_t begin, int64_t end)
{
    const int64_t along = axis;
    uint32_t in[4] = {n->in[0], lnt_add_ints(e->g, "begin", 1, &begin), lnt_add_ints(e->g, "end", 1, &end),
                      lnt_add_ints(e->g, "axis", 1, &along)};
    uint32_t made = LNT_NONE;
    for (unsigned i = 1; i < 4; i++)
        if (in[i] == LNT_NONE)
            return LNT_NONE;
    return lnt_edit_insert(e, n, lnt_op_by_id(LNT_ID_Slice), in, 4, LNT_NONE, &made) ? made : LNT_NONE;
}

/* The updates in the extents of the box, before n; LNT_NONE when memory is short. */
static uint32_t reshaped(lnt_edit *e, lnt_gnode *n, const box *b, const lnt_operand *data)
{
    int64_t dims[LNT_MAX_RANK];
    for (unsigned i = 0; i < data->rank; i++)
        dims[i] = i < b->axes ? b->end[i] - b->begin[i] : data->dims[i];
    if (lnt_dims_equal(lnt_ginfo(e->g, n->in[2]), data->rank, dims))
        return n->in[2];
    uint32_t in[2] = {n->in[2], lnt_add_ints(e->g, "box", data->rank, dims)}, made = LNT_NONE;
    if (in[1] == LNT_NONE || !lnt_edit_insert(e, n, lnt_op_by_id(LNT_ID_Reshape), in, 2, LNT_NONE, &made))
        return LNT_NONE;
    return made;
}

static lnt_status replace(lnt_edit *e, lnt_gnode *n, const box *b, const lnt_operand *data, unsigned axis)
{
    uint32_t part[3];
    unsigned parts = 0;
    if (b->begin[axis] > 0)
        part[parts++] = slice(e, n, axis, 0, b->begin[axis]);
    part[parts++] = reshaped(e, n, b, data);
    if (b->end[axis] < data->dims[axis])
        part[parts++] = slice(e, n, axis, b->end[axis], data->dims[axis]);
    for (unsigned i = 0; i < parts; i++)
        if (part[i] == LNT_NONE)
            return e->g->err->code;
    lnt_gnode *whole = lnt_edit_substitute(e, n, lnt_op_by_id(LNT_ID_Concat), part, parts);
    if (!whole)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_gnode_set_int(e->g, whole, "axis", axis));
    return lnt_edit_count(e, "ScatterND of a box as Concat");
}

lnt_status lnt_scatter_box(lnt_edit *e, lnt_gnode *n)
{
    box b;
    unsigned axis;
    if (!lnt_is(n, ScatterND) || !lnt_is_constant(e->g, n->in[1]) ||
        strcmp(lnt_gnode_string(n, "reduction", "none"), "none") != 0)
        return LNT_OK;
    const lnt_operand data = *lnt_ginfo(e->g, n->in[0]), *indices = lnt_ginfo(e->g, n->in[1]);
    const lnt_operand *updates = lnt_ginfo(e->g, n->in[2]);
    if (data.rank > LNT_MAX_RANK || data.rank < 1 || lnt_operand_count(&data) <= 0 ||
        indices->dtype != LNT_INT64 || updates->rank > LNT_MAX_RANK || updates->dtype != data.dtype ||
        !box_of(&data, indices, &b) || !axis_of(&b, &data, &axis) ||
        lnt_operand_count(updates) != volume(&b, &data))
        return LNT_OK;
    return replace(e, n, &b, &data, axis);
}
