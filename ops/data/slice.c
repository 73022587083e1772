/* slice.c — Slice and Split: boxes cut out of a tensor. */
#include "ops/data/data.h"

#include "base/lnt_assert.h"

/* ---- Slice ---- */

typedef struct cut {
    int64_t start, step, n; /* n is LNT_DIM_UNKNOWN where it depends on something not known */
} cut;

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

/* start..end by step along an axis of the given extent, as ONNX clamps it. */
static cut clamp_cut(int64_t extent, int64_t start, int64_t end, int64_t step)
{
    if (extent < 0) {
        const bool whole = start == 0 && step == 1 && end >= INT32_MAX;
        return (cut){0, step, whole ? extent : LNT_DIM_UNKNOWN};
    }
    if (extent == 0)
        return (cut){0, step, 0};
    const int64_t most = step > 0 ? extent : extent - 1;
    start = clamp(start < 0 ? start + extent : start, 0, most);
    end = clamp(end < 0 ? end + extent : end, step > 0 ? 0 : -1, most);
    const uint64_t distance = step > 0 ? (uint64_t)(end - start) : (uint64_t)(start - end);
    const uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const bool any = step > 0 ? end > start : start > end;
    return (cut){start, step, any ? (int64_t)((distance - 1) / stride + 1) : 0};
}

/* Integers of input i, with *known false (not a failure) if they are not known. */
static lnt_status read_known(const lnt_site *site, unsigned i, int64_t *out, unsigned *n, bool *known)
{
    *n = LNT_MAX_RANK;
    const lnt_status status = lnt_value_ints(site, i, out, n, NULL);
    *known = status != LNT_UNKNOWN;
    return *known ? status : LNT_OK;
}

/* One cut for each axis of the input; LNT_UNKNOWN if some are not known (those have n unknown). */
static lnt_status read_cuts(lnt_site *site, cut cuts[LNT_MAX_RANK])
{
    const lnt_operand *in = site->in[0];
    int64_t bounds[4][LNT_MAX_RANK]; /* starts, ends, axes, steps */
    unsigned n[4];
    bool known[4], all = true;
    for (unsigned i = 0; i < in->rank; i++)
        cuts[i] = (cut){0, 1, in->dims[i]};
    for (unsigned i = 0; i < 4; i++) {
        LNT_TRY(read_known(site, i + 1, bounds[i], &n[i], &known[i]));
        all = all && known[i];
    }
    if (!known[2]) {
        for (unsigned i = 0; i < in->rank; i++)
            cuts[i].n = LNT_DIM_UNKNOWN;
        return LNT_UNKNOWN;
    }
    unsigned count;
    LNT_TRY(lnt_value_length(site, 1, &count));
    if ((known[0] && known[1] && n[0] != n[1]) || (lnt_input(site, 3) && n[2] != count) ||
        (lnt_input(site, 4) && known[3] && n[3] != count))
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "starts, ends, axes and steps differ in number");
    for (unsigned i = 0; i < count; i++) {
        unsigned axis;
        LNT_TRY(lnt_axis(site, lnt_input(site, 3) ? bounds[2][i] : i, in->rank, &axis));
        const int64_t step = lnt_input(site, 4) && known[3] ? bounds[3][i] : 1;
        if (step == 0)
            return LNT_SITE_FAIL(site, LNT_E_VALUE, "step 0 along axis %u", axis);
        if (all)
            cuts[axis] = clamp_cut(in->dims[axis], bounds[0][i], bounds[1][i], step);
        else
            cuts[axis].n = LNT_DIM_UNKNOWN;
    }
    return all ? LNT_OK : LNT_UNKNOWN;
}

lnt_status lnt_shape_slice(lnt_site *site)
{
    cut cuts[LNT_MAX_RANK];
    int64_t dims[LNT_MAX_RANK];
    const unsigned rank = site->in[0]->rank;
    const lnt_status status = read_cuts(site, cuts);
    if (status != LNT_OK && status != LNT_UNKNOWN)
        return status;
    for (unsigned i = 0; i < rank; i++)
        dims[i] = cuts[i].n;
    lnt_set_dims(site, 0, rank, dims);
    return status;
}

lnt_status lnt_bind_slice(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *out = site->out[0];
    cut cuts[LNT_MAX_RANK];
    int64_t src[LNT_MAX_RANK], dst[LNT_MAX_RANK], first = 0;
    LNT_TRY(read_cuts(site, cuts));
    lnt_operand_strides(in, src);
    lnt_operand_strides(out, dst);
    for (unsigned i = 0; i < in->rank; i++) {
        if (cuts[i].n > 0)
            first += cuts[i].start * src[i];
        src[i] = cuts[i].n > 1 ? src[i] * cuts[i].step : 0;
    }
    lnt_copy c;
    lnt_copy_box(&c, lnt_element_size(in), in->rank, out->dims, dst, src);
    return lnt_bind_copy(site, &c, first * (int64_t)lnt_element_size(in));
}

/* ---- Split ---- */

/* Extent of part i when an extent is split into n parts of one size but the last. */
static int64_t even_part(int64_t extent, unsigned n, unsigned i)
{
    if (extent < 0)
        return LNT_DIM_UNKNOWN;
    const int64_t size = extent / n + (extent % n != 0), begin = size * i, left = extent - begin;
    return left < 0 ? 0 : left < size ? left : size;
}

/* Extent of part i of n, from input 1 if there is one: unknown as long as that is. */
static int64_t part_extent(const lnt_operand *parts, int64_t extent, unsigned n, unsigned i)
{
    if (!parts)
        return even_part(extent, n, i);
    return parts->data ? lnt_index_at(parts->data, parts->dtype == LNT_INT64, i) : LNT_DIM_UNKNOWN;
}

/* Fails unless the parts in input 1 fill the axis; parts beyond capacity are not expected: one per output. */
static lnt_status check_parts(const lnt_site *site, const lnt_operand *parts, int64_t extent)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < site->n_out; i++) {
        const int64_t part = part_extent(parts, extent, site->n_out, i);
        if (part < 0 || __builtin_add_overflow(sum, part, &sum))
            return LNT_SITE_FAIL(site, LNT_E_VALUE, "part %u has extent %lld", i, (long long)part);
    }
    if (extent >= 0 && sum != extent)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "parts of %lld in all do not fill the extent %lld",
                             (long long)sum, (long long)extent);
    return LNT_OK;
}

lnt_status lnt_shape_split(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *parts = lnt_input(site, 1);
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), in->rank, &axis));
    if (parts && parts->data) {
        if (!lnt_is_index_type(parts) || lnt_operand_count(parts) != site->n_out)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "split must hold one integer for each of %u outputs",
                                 site->n_out);
        LNT_TRY(check_parts(site, parts, in->dims[axis]));
    }
    int64_t dims[LNT_MAX_RANK];
    for (unsigned d = 0; d < in->rank; d++)
        dims[d] = in->dims[d];
    for (unsigned i = 0; i < site->n_out; i++) {
        dims[axis] = part_extent(parts, in->dims[axis], site->n_out, i);
        lnt_set_dims(site, i, in->rank, dims);
    }
    return parts && !parts->data ? LNT_UNKNOWN : LNT_OK;
}

typedef struct split_part {
    lnt_copy copy;
    int64_t offset; /* bytes to its first element in the source */
} split_part;

static lnt_status run_split(lnt_kernel *k, const lnt_step *s)
{
    LNT_ASSERT(s->n_out > 0);
    const split_part *p = s->params;
    const char *src = lnt_in(k, s, 0);
    for (unsigned i = 0; i < s->n_out; i++)
        if (s->out[i])
            LNT_TRY(lnt_copy_run(k, &p[i].copy, lnt_out(k, s, i), src + p[i].offset));
    return LNT_OK;
}

lnt_status lnt_bind_split(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *parts = lnt_input(site, 1);
    const size_t size = lnt_element_size(in);
    unsigned axis;
    LNT_TRY(lnt_axis(site, lnt_attr_i(site->node, "axis", 0), in->rank, &axis));
    split_part *p = lnt_bind_params(site, site->n_out * sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    int64_t src[LNT_MAX_RANK], dst[LNT_MAX_RANK], first = 0;
    lnt_operand_strides(in, src);
    for (unsigned i = 0; i < site->n_out; i++) {
        const lnt_operand *out = site->out[i];
        const int64_t part = part_extent(parts, in->dims[axis], site->n_out, i);
        p[i].offset = first * src[axis] * (int64_t)size;
        if (part >= 0) /* else bounds stand in for the extents, to plan by, not to run */
            first += part;
        if (!out)
            continue;
        lnt_operand_strides(out, dst);
        lnt_copy_box(&p[i].copy, size, in->rank, out->dims, dst, src);
        if (p[i].copy.kind == LNT_COPY_NOTHING)
            p[i].offset = 0;
        if (lnt_copy_is_plain(&p[i].copy) && lnt_bind_view(site, i, 0, (size_t)p[i].offset))
            p[i].copy.kind = LNT_COPY_NOTHING;
        else
            site->step->run = run_split;
    }
    return LNT_OK;
}
