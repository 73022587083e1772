/* reshape.c — Reshape, Flatten, Squeeze, Unsqueeze, BitCast: the same bytes seen with other extents. */
#include "base/small.h"
#include "ops/data/data.h"

/* ---- Reshape ---- */

/* The extent that -1 stands for. Axes below `copied`'s bits were taken over from the input one by one and
 * cancel; what is left must be all known, or one extent alone. */
static lnt_status infer_extent(lnt_site *site, const int64_t *dims, unsigned rank, uint32_t copied,
                               int64_t *out)
{
    const lnt_operand *in = site->in[0];
    int64_t total = 1, rest = 1, unknown = 0;
    unsigned n_unknown = 0;
    *out = LNT_DIM_UNKNOWN;
    if (!lnt_rank_known(in))
        return LNT_OK;
    for (unsigned i = 0; i < in->rank; i++) {
        if (copied & 1u << i)
            continue;
        if (in->dims[i] < 0) {
            unknown = in->dims[i];
            n_unknown++;
        } else {
            total = lnt_dim_mul(total, in->dims[i]);
        }
    }
    for (unsigned i = 0; i < rank; i++)
        if (!(copied & 1u << i) && dims[i] >= 0)
            rest = lnt_dim_mul(rest, dims[i]);
    if (n_unknown == 1 && total == rest)
        *out = unknown;
    if (n_unknown > 0)
        return LNT_OK;
    /* An extent of 0 taken over from the input leaves nothing to divide: -1 is then what makes both sides
     * fit. */
    if (rest == 0 || total % rest != 0)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "%lld elements cannot be divided by extents of product %lld",
                             (long long)total, (long long)rest);
    *out = total / rest;
    return LNT_OK;
}

lnt_status lnt_shape_reshape(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    const bool allow_zero = lnt_attr_i(site->node, "allowzero", 0) != 0;
    int64_t dims[LNT_MAX_RANK];
    unsigned rank, infer = LNT_MAX_RANK;
    uint32_t copied = 0;
    LNT_TRY(lnt_value_length(site, 1, &rank));
    if (lnt_value_ints(site, 1, dims, &(unsigned){LNT_MAX_RANK}, NULL) == LNT_UNKNOWN)
        return lnt_shape_of_rank(site, rank);
    LNT_TRY(lnt_value_ints(site, 1, dims, &rank, NULL));
    for (unsigned i = 0; i < rank; i++) {
        if (dims[i] == -1 && infer == LNT_MAX_RANK) {
            infer = i;
        } else if (dims[i] < 0) {
            return LNT_SITE_FAIL(site, LNT_E_VALUE, "extent %lld of axis %u in the shape", (long long)dims[i],
                                 i);
        } else if (dims[i] == 0 && !allow_zero) {
            if (lnt_rank_known(in) && i >= in->rank)
                return LNT_SITE_FAIL(site, LNT_E_SHAPE, "0 for axis %u, which the input does not have", i);
            dims[i] = lnt_rank_known(in) ? in->dims[i] : LNT_DIM_UNKNOWN;
            copied |= 1u << i;
        }
    }
    if (infer < LNT_MAX_RANK)
        LNT_TRY(infer_extent(site, dims, rank, copied, &dims[infer]));
    lnt_set_dims(site, 0, rank, dims);
    int64_t count = 1;
    for (unsigned i = 0; i < rank; i++)
        count = lnt_dim_mul(count, dims[i]);
    const int64_t have = lnt_operand_count(in);
    if (count >= 0 && have >= 0 && count != have)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "%lld elements do not fill a shape of %lld", (long long)have,
                             (long long)count);
    return LNT_OK;
}

lnt_status lnt_bind_reshape(lnt_site *site)
{
    return lnt_bind_as_view(site);
}

/* ---- Flatten ---- */

lnt_status lnt_shape_flatten(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    int64_t axis = lnt_attr_i(site->node, "axis", 1), dims[2] = {1, 1};
    if (axis < 0)
        axis += in->rank;
    if (axis < 0 || axis > in->rank)
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "axis is outside a tensor of rank %u", in->rank);
    for (unsigned i = 0; i < in->rank; i++)
        dims[i >= axis] = lnt_dim_mul(dims[i >= axis], in->dims[i]);
    lnt_set_dims(site, 0, 2, dims);
    return LNT_OK;
}

/* ---- Squeeze, Unsqueeze ---- */

/* Axes in input 1 as bits, for a tensor of the given rank. */
static lnt_status read_axes(lnt_site *site, unsigned rank, uint32_t *axes, bool *given)
{
    int64_t values[LNT_MAX_RANK];
    unsigned n = LNT_MAX_RANK;
    *axes = 0;
    LNT_TRY(lnt_value_ints(site, 1, values, &n, given));
    for (unsigned i = 0; i < n; i++) {
        unsigned axis;
        LNT_TRY(lnt_axis(site, values[i], rank, &axis));
        if (*axes & 1u << axis)
            return LNT_SITE_FAIL(site, LNT_E_VALUE, "axis %u is named twice", axis);
        *axes |= 1u << axis;
    }
    return LNT_OK;
}

lnt_status lnt_shape_squeeze(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    int64_t dims[LNT_MAX_RANK];
    uint32_t axes;
    bool given;
    unsigned n, rank = 0;
    const lnt_status status = read_axes(site, in->rank, &axes, &given);
    if (status == LNT_UNKNOWN) {
        LNT_TRY(lnt_value_length(site, 1, &n));
        return n <= in->rank ? lnt_shape_of_rank(site, in->rank - n) : LNT_UNKNOWN;
    }
    LNT_TRY(status);
    for (unsigned i = 0; i < in->rank; i++) {
        if (!given && in->dims[i] < 0)
            return LNT_UNKNOWN;
        const bool drop = given ? (axes & 1u << i) != 0 : in->dims[i] == 1;
        if (drop && in->dims[i] >= 0 && in->dims[i] != 1)
            return LNT_SITE_FAIL(site, LNT_E_SHAPE, "axis %u has extent %lld, not 1", i,
                                 (long long)in->dims[i]);
        if (!drop)
            dims[rank++] = in->dims[i];
    }
    lnt_set_dims(site, 0, rank, dims);
    return LNT_OK;
}

lnt_status lnt_shape_unsqueeze(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    int64_t dims[LNT_MAX_RANK];
    uint32_t axes;
    unsigned n, from = 0;
    LNT_TRY(lnt_value_length(site, 1, &n));
    const unsigned rank = in->rank + n;
    if (rank > LNT_MAX_RANK)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "rank %u: at most %d is supported", rank, LNT_MAX_RANK);
    const lnt_status status = read_axes(site, rank, &axes, NULL);
    if (status == LNT_UNKNOWN)
        return lnt_shape_of_rank(site, rank);
    LNT_TRY(status);
    for (unsigned i = 0; i < rank; i++)
        dims[i] = axes & 1u << i ? 1 : in->dims[from++];
    lnt_set_dims(site, 0, rank, dims);
    return LNT_OK;
}

/* ---- BitCast ---- */

lnt_status lnt_shape_bit_cast(lnt_site *site)
{
    const lnt_dtype to = (lnt_dtype)lnt_attr_i(site->node, "to", 0);
    lnt_set_type(site, 0, to);
    lnt_operand *out = lnt_output(site, 0);
    if (out)
        out->rank = LNT_RANK_UNKNOWN;
    if (!lnt_rank_known(site->in[0]))
        return LNT_UNKNOWN;
    lnt_set_dims_like(site, 0, site->in[0]);
    return LNT_OK;
}

/* Where ONNX packs elements. */
static size_t bits_of(lnt_dtype t)
{
    return lnt_is_small(t) ? lnt_small_bits(t) : 8 * lnt_dtype_size(t);
}

lnt_status lnt_bind_bit_cast(lnt_site *site)
{
    const lnt_dtype from = (lnt_dtype)site->in[0]->dtype, to = (lnt_dtype)site->out[0]->dtype;
    if (lnt_dtype_size(to) == 0 || bits_of(from) != bits_of(to))
        return LNT_SITE_FAIL(site, LNT_E_TYPE, "%s has not as many bits as %s", lnt_dtype_text(from),
                             lnt_dtype_text(to));
    return lnt_bind_as_view(site);
}
