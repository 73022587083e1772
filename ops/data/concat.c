/* concat.c — Concat: tensors laid side by side along an axis.
 *
 * Inputs that were computed in their places within the output (runtime/join.c) have nothing left to be
 * copied. */
#include "ops/data/data.h"

#include "base/lnt_assert.h"

lnt_status lnt_shape_concat(lnt_site *site)
{
    const lnt_operand *first = site->in[0];
    int64_t dims[LNT_MAX_RANK];
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), first->rank, &axis));
    for (unsigned d = 0; d < first->rank; d++)
        dims[d] = first->dims[d];
    for (unsigned i = 1; i < site->n_in; i++) {
        const lnt_operand *in = site->in[i];
        if (!in || in->rank != first->rank)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "input %u has rank %u, input 0 rank %u", i,
                                 in ? in->rank : 0, first->rank);
        if (in->dtype != first->dtype)
            return LNT_SITE_FAIL(site, LNT_E_TYPE, "input %u is %s, input 0 %s", i,
                                 lnt_dtype_text((lnt_dtype)in->dtype),
                                 lnt_dtype_text((lnt_dtype)first->dtype));
        for (unsigned d = 0; d < first->rank; d++) {
            if (d == axis)
                dims[d] = lnt_dim_add(dims[d], in->dims[d]);
            else if (dims[d] >= 0 && in->dims[d] >= 0 && dims[d] != in->dims[d])
                return LNT_SITE_FAIL(site, LNT_E_SHAPE, "axis %u of input %u has extent %lld, not %lld", d, i,
                                     (long long)in->dims[d], (long long)dims[d]);
            else if (in->dims[d] >= 0 || dims[d] == LNT_DIM_UNKNOWN)
                dims[d] = in->dims[d];
        }
    }
    lnt_set_dims(site, 0, first->rank, dims);
    return LNT_OK;
}

typedef struct concat_part {
    lnt_copy copy;  /* where nothing has a pitch */
    int64_t offset; /* bytes to its first element in the output */
} concat_part;

/* Both may have a pitch. */
static void find_copy(const lnt_operand *in, const lnt_operand *out, lnt_copy *copy)
{
    int64_t src[LNT_MAX_RANK], dst[LNT_MAX_RANK];
    lnt_operand_strides(in, src);
    lnt_operand_strides(out, dst);
    lnt_copy_box(copy, lnt_element_size(out), in->rank, in->dims, dst, src);
}

static lnt_status run_concat(lnt_kernel *k, const lnt_step *s)
{
    LNT_ASSERT(s->out[0]->rank > 0);
    const concat_part *p = s->params;
    char *dst = lnt_out(k, s, 0);
    for (unsigned i = 0; i < s->n_in; i++) {
        const lnt_copy *copy = &p[i].copy;
        lnt_copy pitched;
        if (lnt_in(k, s, i) == dst + p[i].offset)
            continue;
        if (s->in[i]->pitch || s->out[0]->pitch) {
            find_copy(s->in[i], s->out[0], &pitched);
            copy = &pitched;
        }
        LNT_TRY(lnt_copy_run(k, copy, dst + p[i].offset, lnt_in(k, s, i)));
    }
    return LNT_OK;
}

/* The only input that has elements, if it has the output's storage order; else -1. */
static int only_input(const lnt_site *site, const concat_part *p)
{
    int found = -1;
    for (unsigned i = 0; i < site->n_in; i++) {
        if (p[i].copy.kind == LNT_COPY_NOTHING)
            continue;
        if (found >= 0 || !lnt_copy_is_plain(&p[i].copy))
            return -1;
        found = (int)i;
    }
    return found;
}

/* Is the axis the last one of o in memory? */
static bool is_in_row(const lnt_operand *o, unsigned axis)
{
    return axis == (o->order == LNT_ORDER_CHANNELS_LAST ? 1u : o->rank - 1u);
}

/* The place of an input in the output: a run of bytes, or row by row. */
static lnt_join join_of(const lnt_operand *in, const lnt_operand *out, unsigned axis, const concat_part *part)
{
    const bool rows = in->order == out->order && is_in_row(out, axis);
    const bool run = lnt_copy_is_plain(&part->copy);
    return (lnt_join){.fits = part->copy.kind != LNT_COPY_NOTHING && (run || rows),
                      .offset = (size_t)part->offset,
                      .pitch = run ? 0 : lnt_operand_pitch(out)};
}

lnt_status lnt_bind_concat(lnt_site *site)
{
    const lnt_operand *out = site->out[0];
    const size_t size = lnt_element_size(out);
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), out->rank, &axis));
    concat_part *p = lnt_bind_params(site, site->n_in * sizeof *p);
    lnt_join *join = lnt_bump_alloc(site->memory, site->n_in * sizeof *join, site->err);
    if (!p || !join)
        return LNT_E_MEMORY;
    int64_t dst[LNT_MAX_RANK], first = 0;
    lnt_operand_strides(out, dst);
    for (unsigned i = 0; i < site->n_in; i++) {
        const lnt_operand *in = site->in[i];
        find_copy(in, out, &p[i].copy);
        lnt_bind_pitched_input(site, i);
        p[i].offset = first * dst[axis] * (int64_t)size;
        join[i] = join_of(in, out, axis, &p[i]);
        first += in->dims[axis];
    }
    const int only = only_input(site, p);
    if (only >= 0 && lnt_bind_view(site, 0, (unsigned)only, 0))
        return LNT_OK;
    lnt_bind_join(site, join);
    if (is_in_row(out, axis))
        lnt_bind_pitched(site);
    site->step->run = run_concat;
    return LNT_OK;
}
