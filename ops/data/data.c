/* data.c — what the operators that move data share. */
#include "ops/data/data.h"

#include "base/lnt_assert.h"

int64_t lnt_extent(const lnt_operand *o, unsigned begin, unsigned end)
{
    int64_t n = 1;
    for (unsigned i = begin; i < end; i++)
        n = lnt_dim_mul(n, o->dims[i]);
    return n;
}

lnt_status lnt_bind_as_view(lnt_site *site)
{
    if (!lnt_bind_view(site, 0, 0, 0))
        return LNT_SITE_FAIL(site, LNT_E_FILE, "a packed constant cannot be reshaped");
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

typedef struct copy_params {
    lnt_copy copy;
    int64_t offset; /* bytes to the first element in the source */
} copy_params;

static lnt_status run_copy(lnt_kernel *k, const lnt_step *s)
{
    const copy_params *p = s->params;
    return lnt_copy_run(k, &p->copy, lnt_out(k, s, 0), (const char *)lnt_in(k, s, 0) + p->offset);
}

lnt_status lnt_bind_copy(lnt_site *site, const lnt_copy *c, int64_t offset)
{
    if (c->kind == LNT_COPY_NOTHING)
        offset = 0;
    if (lnt_copy_is_plain(c) && lnt_bind_view(site, 0, 0, (size_t)offset))
        return LNT_OK;
    copy_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    *p = (copy_params){*c, offset};
    site->step->run = run_copy;
    return LNT_OK;
}

lnt_status lnt_index_error(lnt_kernel *k, int64_t element, int64_t index, int64_t extent)
{
    return lnt_fail(k->err, LNT_E_VALUE, "element %lld of indices is %lld, outside an axis of extent %lld",
                    (long long)element, (long long)index, (long long)extent);
}

lnt_status lnt_check_indices(lnt_kernel *k, const void *indices, bool wide, int64_t n, int64_t extent)
{
    LNT_ASSERT(n >= 0 && extent >= 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t index = lnt_index_at(indices, wide, i);
        if (!lnt_wrap_index(&index, extent))
            return lnt_index_error(k, i, lnt_index_at(indices, wide, i), extent);
    }
    return LNT_OK;
}
