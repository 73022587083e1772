/* transpose.c — Transpose, DepthToSpace, SpaceToDepth: axes change places. */
#include "ops/data/data.h"

#include <string.h>

/* ---- Transpose ---- */

/* Input axis of each output axis; without the attribute the axes are reversed. */
static lnt_status read_perm(const lnt_site *site, unsigned rank, unsigned *perm)
{
    const lnt_attr *a = lnt_attr_find(site->node, "perm");
    uint32_t seen = 0;
    if (a && (a->type != LNT_ATTR_INTS || a->count != rank))
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "perm must name the %u axes of the input", rank);
    for (unsigned i = 0; i < rank; i++) {
        LNT_TRY(lnt_axis(site, a ? a->i[i] : rank - 1 - i, rank, &perm[i]));
        if (seen & 1u << perm[i])
            return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "perm names axis %u twice", perm[i]);
        seen |= 1u << perm[i];
    }
    return LNT_OK;
}

lnt_status lnt_shape_transpose(lnt_site *site)
{
    const lnt_operand *in = site->in[0];
    unsigned perm[LNT_MAX_RANK];
    int64_t dims[LNT_MAX_RANK];
    LNT_TRY(read_perm(site, in->rank, perm));
    for (unsigned i = 0; i < in->rank; i++)
        dims[i] = in->dims[perm[i]];
    lnt_set_dims(site, 0, in->rank, dims);
    return LNT_OK;
}

lnt_status lnt_bind_transpose(lnt_site *site)
{
    const lnt_operand *in = site->in[0], *out = site->out[0];
    unsigned perm[LNT_MAX_RANK];
    int64_t from[LNT_MAX_RANK], src[LNT_MAX_RANK], dst[LNT_MAX_RANK];
    LNT_TRY(read_perm(site, in->rank, perm));
    lnt_operand_strides(in, from);
    lnt_operand_strides(out, dst);
    for (unsigned i = 0; i < in->rank; i++)
        src[i] = from[perm[i]];
    lnt_copy c;
    lnt_copy_box(&c, lnt_element_size(in), out->rank, out->dims, dst, src);
    return lnt_bind_copy(site, &c, 0);
}

/* ---- DepthToSpace, SpaceToDepth ---- */

static lnt_status block_size(const lnt_site *site, int64_t *block)
{
    *block = lnt_attr_i(site->node, "blocksize", 0);
    if (*block < 1 || *block > INT16_MAX)
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "blocksize %lld", (long long)*block);
    if (site->in[0]->rank != 4)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "the input must have rank 4, has %u", site->in[0]->rank);
    return LNT_OK;
}

/* extent / by, which must leave no rest. */
static lnt_status divide_extent(const lnt_site *site, int64_t extent, int64_t by, int64_t *out)
{
    if (extent >= 0 && extent % by != 0)
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "extent %lld is no multiple of %lld", (long long)extent,
                             (long long)by);
    *out = extent < 0 ? LNT_DIM_UNKNOWN : extent / by;
    return LNT_OK;
}

lnt_status lnt_shape_depth_to_space(lnt_site *site)
{
    int64_t b, dims[4];
    LNT_TRY(block_size(site, &b));
    const int64_t *in = site->in[0]->dims;
    dims[0] = in[0];
    LNT_TRY(divide_extent(site, in[1], b * b, &dims[1]));
    dims[2] = lnt_dim_mul(in[2], b);
    dims[3] = lnt_dim_mul(in[3], b);
    lnt_set_dims(site, 0, 4, dims);
    return LNT_OK;
}

lnt_status lnt_shape_space_to_depth(lnt_site *site)
{
    int64_t b, dims[4];
    LNT_TRY(block_size(site, &b));
    const int64_t *in = site->in[0]->dims;
    dims[0] = in[0];
    dims[1] = lnt_dim_mul(in[1], b * b);
    LNT_TRY(divide_extent(site, in[2], b, &dims[2]));
    LNT_TRY(divide_extent(site, in[3], b, &dims[3]));
    lnt_set_dims(site, 0, 4, dims);
    return LNT_OK;
}

/* deep holds its blocks in the channels (by_column: as [block][block][C], else as [C][block][block]), wide in
 * rows and columns. Steps are given per axis of a loop over N, C, H, block row, W, block column. */
static void block_steps(const lnt_operand *deep, const lnt_operand *wide, int64_t b, bool blocks_first,
                        int64_t n[6], int64_t deep_step[6], int64_t wide_step[6])
{
    int64_t d[LNT_MAX_RANK], w[LNT_MAX_RANK];
    const int64_t channels = wide->dims[1], block = blocks_first ? channels : 1,
                  channel = blocks_first ? 1 : b * b;
    lnt_operand_strides(deep, d);
    lnt_operand_strides(wide, w);
    memcpy(n, (int64_t[]){deep->dims[0], channels, deep->dims[2], b, deep->dims[3], b}, 6 * sizeof *n);
    memcpy(deep_step, (int64_t[]){d[0], channel * d[1], d[2], b * block * d[1], d[3], block * d[1]},
           6 * sizeof *n);
    memcpy(wide_step, (int64_t[]){w[0], w[1], b * w[2], w[2], b * w[3], w[3]}, 6 * sizeof *n);
}

lnt_status lnt_bind_depth_to_space(lnt_site *site)
{
    int64_t b, n[6], src[6], dst[6];
    const char *mode = lnt_attr_s(site->node, "mode", "DCR");
    LNT_TRY(block_size(site, &b));
    if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0)
        return LNT_SITE_FAIL(site, LNT_E_ARGUMENT, "mode %s is neither DCR nor CRD", mode);
    block_steps(site->in[0], site->out[0], b, mode[0] == 'D', n, src, dst);
    lnt_copy c;
    lnt_copy_box(&c, lnt_element_size(site->in[0]), 6, n, dst, src);
    return lnt_bind_copy(site, &c, 0);
}

lnt_status lnt_bind_space_to_depth(lnt_site *site)
{
    int64_t b, n[6], src[6], dst[6];
    LNT_TRY(block_size(site, &b));
    block_steps(site->out[0], site->in[0], b, true, n, dst, src);
    lnt_copy c;
    lnt_copy_box(&c, lnt_element_size(site->in[0]), 6, n, dst, src);
    return lnt_bind_copy(site, &c, 0);
}
