/* axes.h — a walk over some of a tensor's axes. */
#ifndef LNT_OPS_AXES_H
#define LNT_OPS_AXES_H

#include "base/linnet_types.h"

/* Item i of the walk lies lnt_axes_offset(axes, i) elements from its start; the last axis runs fastest. */
typedef struct lnt_axes {
    unsigned n;
    int64_t extent[LNT_MAX_RANK], stride[LNT_MAX_RANK];
} lnt_axes;

static inline void lnt_axes_push(lnt_axes *a, int64_t extent, int64_t stride)
{
    a->extent[a->n] = extent;
    a->stride[a->n++] = stride;
}

static inline int64_t lnt_axes_items(const lnt_axes *a)
{
    int64_t n = 1;
    for (unsigned i = 0; i < a->n; i++)
        n *= a->extent[i];
    return n;
}

static inline int64_t lnt_axes_offset(const lnt_axes *a, int64_t item)
{
    int64_t at = 0;
    if (a->n == 1)
        return item * a->stride[0];
    for (unsigned i = a->n; i-- > 0; item /= a->extent[i])
        at += item % a->extent[i] * a->stride[i];
    return at;
}

#endif
