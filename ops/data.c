/* data.c — what the operators that move data share. */
#include "ops/data.h"

lnt_status lnt_bind_as_view(lnt_site *site)
{
    if (!lnt_bind_view(site, 0, 0, 0))
        return LNT_SITE_FAIL(site, LNT_E_INTERNAL, "a packed constant cannot be reshaped");
    return LNT_OK;
}

lnt_status lnt_shape_of_rank(lnt_site *site, unsigned rank)
{
    int64_t dims[LNT_MAX_RANK];
    for (unsigned i = 0; i < LNT_MAX_RANK; i++)
        dims[i] = LNT_DIM_UNKNOWN;
    lnt_set_dims(site, 0, rank, dims);
    return LNT_UNKNOWN;
}

lnt_status lnt_value_length(const lnt_site *site, unsigned i, unsigned *n)
{
    const lnt_operand *o = lnt_input(site, i);
    *n = 0;
    if (!o)
        return LNT_OK;
    const int64_t count = lnt_operand_count(o);
    if (count < 0)
        return LNT_UNKNOWN;
    if (count > LNT_MAX_RANK)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "input %u names %lld axes, at most %d are supported", i,
                             (long long)count, LNT_MAX_RANK);
    *n = (unsigned)count;
    return LNT_OK;
}

lnt_status lnt_value_int(const lnt_site *site, unsigned i, int64_t otherwise, int64_t *out)
{
    unsigned n = 1;
    bool given;
    LNT_TRY(lnt_value_ints(site, i, out, &n, &given));
    if (!given)
        *out = otherwise;
    else if (n != 1)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "input %u must hold one value", i);
    return LNT_OK;
}
