/* window.c — sliding windows: attributes to geometry. */
#include "ops/window.h"

#include "base/lnt_assert.h"

#include <string.h>

enum { NOTSET, VALID, SAME_UPPER, SAME_LOWER };

/* Output extent of axis a; sets the padding where auto_pad asks for it. */
static int64_t out_extent(lnt_window *w, unsigned a, int auto_pad, bool ceil_mode)
{
    const int64_t reach = (w->kernel[a] - 1) * w->dilation[a] + 1, stride = w->stride[a], in = w->in[a];
    if (in < 0 || w->kernel[a] < 0) {
        const bool keeps = auto_pad >= SAME_UPPER || w->before[a] + w->after[a] == reach - 1;
        return stride == 1 && w->kernel[a] > 0 && keeps ? in : LNT_DIM_UNKNOWN;
    }
    if (auto_pad >= SAME_UPPER) {
        const int64_t out = (in + stride - 1) / stride, missing = (out - 1) * stride + reach - in;
        const int64_t total = missing > 0 ? missing : 0;
        w->before[a] = auto_pad == SAME_LOWER ? total - total / 2 : total / 2;
        w->after[a] = total - w->before[a];
        return out;
    }
    const int64_t room = in + w->before[a] + w->after[a] - reach;
    const int64_t covered = room + (ceil_mode ? stride - 1 : 0);
    if (covered < 0)
        return 0;
    int64_t out = covered / stride + 1;
    /* A window that would start in the padding behind the input is dropped. */
    if (ceil_mode && (out - 1) * stride >= in + w->before[a])
        out--;
    return out;
}

lnt_status lnt_window_of(const lnt_site *site, lnt_window *w)
{
    const unsigned rank = site->in[0]->rank;
    int64_t kernel[LNT_MAX_RANK];
    LNT_TRY(lnt_attr_ints(site, "kernel_shape", kernel, rank < 3 ? 0 : rank - 2, 0));
    for (unsigned i = 0; i + 2 < rank; i++)
        LNT_REQUIRE(kernel[i] > 0, site->err, LNT_E_ARGUMENT, "kernel_shape is missing or below 1");
    return lnt_window_with(site, kernel, w);
}

lnt_status lnt_window_kernel(const lnt_site *site, const int64_t *kernel, unsigned n, lnt_window *w)
{
    LNT_ASSERT(n <= LNT_WINDOW_AXES);
    const int64_t limit = INT32_MAX;
    int64_t stride[LNT_WINDOW_AXES], dilation[LNT_WINDOW_AXES];
    LNT_TRY(lnt_attr_ints(site, "strides", stride, n, 1));
    LNT_TRY(lnt_attr_ints(site, "dilations", dilation, n, 1));
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++) {
        w->in[a] = w->out[a] = w->kernel[a] = w->stride[a] = w->dilation[a] = 1;
        w->before[a] = w->after[a] = 0;
    }
    for (unsigned i = 0; i < n; i++) {
        const unsigned a = LNT_WINDOW_AXES - n + i;
        LNT_REQUIRE(kernel[i] != 0 && kernel[i] <= limit && stride[i] > 0 && stride[i] <= limit &&
                        dilation[i] > 0 && dilation[i] <= limit,
                    site->err, LNT_E_ARGUMENT, "kernel_shape, strides or dilations out of range");
        w->kernel[a] = kernel[i];
        w->stride[a] = stride[i];
        w->dilation[a] = dilation[i];
    }
    return LNT_OK;
}

lnt_status lnt_window_with(const lnt_site *site, const int64_t *kernel, lnt_window *w)
{
    LNT_ASSERT(site->in[0]->rank <= LNT_MAX_RANK);
    static const char *const auto_pads[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    const lnt_operand *x = site->in[0];
    const unsigned n = x->rank < 3 ? 0 : x->rank - 2u, first = LNT_WINDOW_AXES - n;
    int64_t pads[2 * LNT_WINDOW_AXES];
    const int auto_pad = lnt_attr_choice(site->node, "auto_pad", auto_pads, 4);
    const bool padded = auto_pad == NOTSET, ceil_mode = lnt_attr_i(site->node, "ceil_mode", 0) != 0;
    LNT_REQUIRE(n >= 1 && n <= LNT_WINDOW_AXES, site->err, LNT_E_UNSUPPORTED,
                "%s is implemented for 1 to 3 spatial axes, the input has rank %u",
                lnt_op_name(site->node->op), x->rank);
    LNT_TRY(lnt_window_kernel(site, kernel, n, w));
    LNT_TRY(lnt_attr_ints(site, "pads", pads, 2 * n, 0));
    for (unsigned i = 0; i < n; i++) {
        const unsigned a = first + i;
        LNT_REQUIRE(pads[i] >= 0 && pads[i] <= INT32_MAX && pads[n + i] >= 0 && pads[n + i] <= INT32_MAX,
                    site->err, LNT_E_ARGUMENT, "pads below 0 or out of range");
        /* Neither what strides spread nor what is around it overflows. */
        LNT_REQUIRE(x->dims[2 + i] <= INT64_MAX / 4 / w->stride[a], site->err, LNT_E_LIMIT,
                    "an image of %lld positions is too large", (long long)x->dims[2 + i]);
        w->in[a] = x->dims[2 + i];
        w->before[a] = padded ? pads[i] : 0;
        w->after[a] = padded ? pads[n + i] : 0;
        w->out[a] = out_extent(w, a, auto_pad, ceil_mode);
    }
    return LNT_OK;
}

static bool goes_into(int64_t groups, int64_t extent)
{
    return extent < 0 || extent % groups == 0;
}

lnt_status lnt_window_check_groups(const lnt_site *site, const lnt_operand *weights, bool transposed)
{
    const int64_t groups = lnt_attr_i(site->node, "group", 1), channels = site->in[0]->dims[1],
                  first = weights->dims[0], second = weights->dims[1];
    bool fits = groups > 0 && goes_into(groups, channels) && goes_into(groups, first) &&
                (groups == 1 || first != 0 || (!transposed && channels != 0));
    if (fits && channels >= 0 && transposed)
        fits = first < 0 || first == channels;
    else if (fits && channels >= 0)
        fits = second < 0 || second == channels / groups;
    LNT_REQUIRE(fits, site->err, LNT_E_SHAPE,
                "%lld channels do not fit weights of %lld x %lld in %lld groups (attribute group)",
                (long long)channels, (long long)first, (long long)second, (long long)groups);
    return LNT_OK;
}

void lnt_window_taps(const lnt_window *w, unsigned a, int64_t o, int64_t *first, int64_t *end)
{
    const int64_t start = o * w->stride[a] - w->before[a], d = w->dilation[a];
    const int64_t room = w->in[a] - start; /* taps at start + t * d < in */
    *first = start < 0 ? (-start + d - 1) / d : 0;
    if (room > (w->kernel[a] - 1) * d) /* most windows, without a division */
        *end = w->kernel[a];
    else
        *end = room <= 0 ? 0 : (room + d - 1) / d;
    if (*first > *end)
        *first = *end;
}
