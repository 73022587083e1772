/* window.h — the geometry of a window that slides over up to three spatial axes. */
#ifndef LNT_OPS_WINDOW_H
#define LNT_OPS_WINDOW_H

#include "ops/op.h"

enum { LNT_WINDOW_AXES = 3 };

/* Axes are numbered from the left and padded with extents of 1 on the left: a 1-D window has axis 2 only. */
typedef struct lnt_window {
    int64_t in[LNT_WINDOW_AXES], out[LNT_WINDOW_AXES];
    int64_t kernel[LNT_WINDOW_AXES], stride[LNT_WINDOW_AXES], dilation[LNT_WINDOW_AXES];
    int64_t before[LNT_WINDOW_AXES], after[LNT_WINDOW_AXES]; /* padding */
} lnt_window;

/* Fills *w from the node's kernel_shape, strides, dilations, pads, auto_pad and ceil_mode and from input 0's
 * spatial extents; unknown extents (negative) give unknown output extents. */
lnt_status lnt_window_of(const lnt_site *site, lnt_window *w);
/* The same where the kernel's extents [rank - 2] are known otherwise; negative if they are not yet known. */
lnt_status lnt_window_with(const lnt_site *site, const int64_t *kernel, lnt_window *w);

/* What needs no input: the kernel's n extents, and strides and dilations of site->node; in and out are 1, without
 * padding. */
lnt_status lnt_window_kernel(const lnt_site *site, const int64_t *kernel, unsigned n, lnt_window *w);

static inline int64_t lnt_volume(const int64_t e[LNT_WINDOW_AXES])
{
    return e[0] * e[1] * e[2];
}

/* Taps of axis a that lie inside the input when the window stands at output position o: taps [*first, *end). */
void lnt_window_taps(const lnt_window *w, unsigned a, int64_t o, int64_t *first, int64_t *end);

/* Input position of tap t along axis a when the window stands at output position o. */
static inline int64_t lnt_window_at(const lnt_window *w, unsigned a, int64_t o, int64_t t)
{
    return o * w->stride[a] - w->before[a] + t * w->dilation[a];
}

/* Taps of axis a that lie inside the padded input. */
static inline int64_t lnt_window_padded_taps(const lnt_window *w, unsigned a, int64_t o)
{
    const int64_t room = w->in[a] + w->after[a] - (o * w->stride[a] - w->before[a]);
    const int64_t taps = room <= 0 ? 0 : (room + w->dilation[a] - 1) / w->dilation[a];
    return taps < w->kernel[a] ? taps : w->kernel[a];
}

/* Fails where attribute group does not split input 0 and weights, as far as their extents are known: no group
 * is without a channel or feature of its own, unless there is but one. */
lnt_status lnt_window_check_groups(const lnt_site *site, const lnt_operand *weights, bool transposed);

#endif
