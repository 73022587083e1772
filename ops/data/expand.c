/* expand.c — Expand and Tile: elements repeated along axes. */
#include "ops/data/data.h"

/* ---- Expand ---- */

lnt_status lnt_shape_expand(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    lnt_operand shape = {0};
    unsigned rank;
    LNT_TRY(lnt_value_length(site, 1, &rank));
    const lnt_status status = lnt_value_ints(site, 1, shape.dims, &rank, NULL);
    if (status == LNT_UNKNOWN) {
        LNT_TRY(lnt_value_length(site, 1, &rank));
        return lnt_shape_of_rank(site, rank > in->rank ? rank : in->rank);
    }
    LNT_TRY(status);
    shape.rank = (uint8_t)rank;
    for (unsigned i = 0; i < rank; i++)
        if (shape.dims[i] < 0)
            return LNT_SITE_FAIL(site, LNT_E_VALUE, "extent %lld of axis %u in the shape",
                                 (long long)shape.dims[i], i);
    int64_t dims[LNT_MAX_RANK] = {0};
    unsigned out_rank = in->rank;
    for (unsigned i = 0; i < in->rank; i++)
        dims[i] = in->dims[i];
    LNT_TRY(lnt_broadcast_dims(site, &out_rank, dims, &shape));
    lnt_set_dims(site, 0, out_rank, dims);
    return LNT_OK;
}

lnt_status lnt_bind_expand(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *out = site->out[0];
    if (lnt_operand_count(in) == lnt_operand_count(out))
        return lnt_bind_as_view(site);
    int64_t from[LNT_MAX_RANK], src[LNT_MAX_RANK] = {0}, dst[LNT_MAX_RANK];
    lnt_copy c;
    lnt_operand_strides(in, from);
    lnt_operand_strides(out, dst);
    const unsigned added = out->rank - in->rank;
    for (unsigned i = 0; i < in->rank; i++)
        src[i + added] = in->dims[i] == 1 ? 0 : from[i];
    lnt_copy_box(&c, lnt_element_size(in), out->rank, out->dims, dst, src);
    return lnt_bind_copy(site, &c, 0);
}

/* ---- Tile ---- */

lnt_status lnt_shape_tile(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    int64_t repeats[LNT_MAX_RANK], dims[LNT_MAX_RANK];
    unsigned n = LNT_MAX_RANK;
    const lnt_status status = lnt_value_ints(site, 1, repeats, &n, NULL);
    if (status == LNT_UNKNOWN)
        return lnt_shape_of_rank(site, in->rank);
    LNT_TRY(status);
    if (n != in->rank)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "%u repeats for a tensor of rank %u", n, in->rank);
    for (unsigned i = 0; i < n; i++) {
        if (repeats[i] < 0)
            return LNT_SITE_FAIL(site, LNT_E_VALUE, "%lld repeats along axis %u", (long long)repeats[i], i);
        dims[i] = lnt_dim_mul(in->dims[i], repeats[i]);
    }
    lnt_set_dims(site, 0, n, dims);
    return LNT_OK;
}

lnt_status lnt_bind_tile(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *out = site->out[0];
    if (lnt_operand_count(in) == lnt_operand_count(out))
        return lnt_bind_as_view(site);
    const int64_t size = (int64_t)lnt_element_size(in);
    int64_t src[LNT_MAX_RANK], dst[LNT_MAX_RANK];
    lnt_copy c;
    lnt_operand_strides(in, src);
    lnt_operand_strides(out, dst);
    lnt_copy_begin(&c, (size_t)size);
    for (unsigned i = 0; i < in->rank; i++) {
        const int64_t repeats = in->dims[i] ? out->dims[i] / in->dims[i] : 0;
        lnt_copy_axis(&c, repeats, in->dims[i] * dst[i] * size, 0);
        lnt_copy_axis(&c, in->dims[i], dst[i] * size, src[i] * size);
    }
    lnt_copy_settle(&c);
    return lnt_bind_copy(site, &c, 0);
}
