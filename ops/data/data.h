/* data.h — what the operators that move data share. */
#ifndef LNT_OPS_DATA_DATA_H
#define LNT_OPS_DATA_DATA_H

#include "ops/copy.h"
#include "ops/element.h"
#include "ops/op.h"

#include <string.h>

/* Output out is all of input 0: no data moves. */
lnt_status lnt_bind_as_view(lnt_site *site);

/* Output 0 has the given rank and no known extents, because the contents of an input are not known yet. */
lnt_status lnt_shape_of_rank(lnt_site *site, unsigned rank);

/* Elements of the 1-D input i, which holds shapes or axes; fails above LNT_MAX_RANK. LNT_UNKNOWN if even that
 * is not known. A skipped input has 0. */
lnt_status lnt_value_length(const lnt_site *site, unsigned i, unsigned *n);

/* A scalar or one-element integer input: its value, or LNT_UNKNOWN; otherwise, if it is skipped. */
lnt_status lnt_value_int(const lnt_site *site, unsigned i, int64_t otherwise, int64_t *out);

/* The whole work of a bind function: output 0 is *c of input 0 from byte offset on, a view where that moves
 * nothing. */
lnt_status lnt_bind_copy(lnt_site *site, const lnt_copy *c, int64_t offset);

/* Fails naming the first of n indices outside [-extent, extent). */
lnt_status lnt_check_indices(lnt_kernel *k, const void *indices, bool wide, int64_t n, int64_t extent);
/* Element `element` of indices is out of range. */
lnt_status lnt_index_error(lnt_kernel *k, int64_t element, int64_t index, int64_t extent);

static inline size_t lnt_element_size(const lnt_operand *o)
{
    return lnt_dtype_size((lnt_dtype)o->dtype);
}

static inline bool lnt_rank_known(const lnt_operand *o)
{
    return o && o->rank <= LNT_MAX_RANK;
}

/* Product of o's extents from axis begin to before axis end; LNT_DIM_UNKNOWN if one is, or if it overflows. */
int64_t lnt_extent(const lnt_operand *o, unsigned begin, unsigned end);

static inline bool lnt_is_index_type(const lnt_operand *o)
{
    return o->dtype == LNT_INT64 || o->dtype == LNT_INT32;
}

/* Element i of a tensor of int64 (wide) or int32. */
static inline int64_t lnt_index_at(const void *indices, bool wide, int64_t i)
{
    return wide ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

/* Brings an index into [0, extent); false if it is out of range. */
static inline bool lnt_wrap_index(int64_t *index, int64_t extent)
{
    if (*index < 0)
        *index += extent;
    return *index >= 0 && *index < extent;
}

/* Copies what is often one element by one instruction. */
static inline void lnt_move_slice(char *dst, const char *src, int64_t bytes)
{
    switch (bytes) {
    case 1: *dst = *src; break;
    case 2: memcpy(dst, src, 2); break;
    case 4: memcpy(dst, src, 4); break;
    case 8: memcpy(dst, src, 8); break;
    default: memcpy(dst, src, (size_t)bytes);
    }
}

/* Items of `bytes` each that make a slice of work worth a thread. */
static inline int64_t lnt_grain(int64_t bytes)
{
    const int64_t slice = 64 * 1024;
    return bytes >= slice ? 1 : slice / (bytes > 0 ? bytes : 1);
}

#endif
