/* conv_algorithm.c — how a convolution in float is computed. Decided here: for the converter, which lays images out by
 * it, and for bind, which prepares the kernels (conv.c, where pixels of one tap are a product at levels without
 * vectors). Those of int8 choose in ops/quant/qconv_image.c.
 *
 * Winograd's algorithm is an operator of its own (WinogradConv): what becomes one is decided in
 * convert/passes/winograd.c, for good. */
#include "ops/conv/conv.h"
#include "ops/gemm/gemm.h"

/* Unknown extents may be as long as one wants. */
static bool at_least(int64_t extent, int64_t least)
{
    return extent < 0 || extent >= least;
}

bool lnt_conv_is_depthwise(const lnt_conv *c)
{
    return LNT_HAS_DEPTHWISE && c->groups > 1 && lnt_depthwise_takes(c->channels, c->features) &&
           (!c->transposed || (c->channels == 1 && c->features == 1)) &&
           c->w.kernel[0] * c->w.kernel[1] <= LNT_DEPTHWISE_LINES;
}

bool lnt_conv_sums_in_half(const lnt_conv *c)
{
    return c->channels * lnt_volume(c->w.kernel) <= LNT_HALF_RUN;
}

/* Few channels in kernels of a few taps side by side. */
static bool has_few_channels(const lnt_conv *c)
{
    return lnt_conv_few_channels(c->channels) && c->w.kernel[2] <= LNT_STEM_RUN_MAX / c->channels &&
           lnt_volume(c->w.kernel) <= LNT_STEM_DEPTH_MAX / c->channels &&
           c->features >= LNT_STEM_FEATURES_MIN;
}

/* Fewer columns than a vector has lanes waste some of it; sums along K (LNT_NARROW_COLUMNS) waste their ends. */
static bool has_few_features(const lnt_conv *c)
{
    const int64_t depth = c->channels * lnt_volume(c->w.kernel);
    return c->features <= LNT_FEW_FEATURES && depth <= LNT_FEW_FEATURES_DEPTH &&
           (c->features > LNT_NARROW_COLUMNS || 2 * c->features * (depth / 16 + 8) > depth);
}

static bool has_one_tap(const lnt_window *w)
{
    bool one = true;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++)
        one &= w->kernel[a] == 1 && w->stride[a] == 1 && w->before[a] == 0 && w->in[a] == w->out[a];
    return one;
}

bool lnt_conv_scales_planes(const lnt_conv *c)
{
    return !LNT_TRIMMED && c->channels == 1 && !c->transposed && has_one_tap(&c->w);
}

bool lnt_conv_spreads(const lnt_conv *c)
{
    const lnt_window *w = &c->w;
    bool spreads = true;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++)
        spreads &= w->in[a] != 0 && w->kernel[a] == w->stride[a] && (w->kernel[a] == 1 || w->dilation[a] == 1) &&
                   w->before[a] == 0 && w->out[a] == lnt_dim_mul(w->in[a], w->stride[a]);
    return spreads;
}

/* One tap of pixels that are contiguous: all of them are one line. */
static bool is_points(const lnt_conv *c, lnt_order in)
{
    int64_t pixels = c->batch;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++)
        pixels = lnt_dim_mul(pixels, c->w.out[a]);
    return in == LNT_ORDER_CHANNELS_LAST && has_one_tap(&c->w) && c->channels <= LNT_POINTS_MAX &&
           c->features <= LNT_POINTS_MAX && at_least(pixels, LNT_STEM_PIXELS);
}

/* Is each plane by itself an image? */
static bool is_plane_by_plane(const lnt_window *w)
{
    return w->kernel[0] == 1 && w->stride[0] == 1 && w->before[0] == 0 && w->after[0] == 0 &&
           w->in[0] == w->out[0] && w->in[0] != 0;
}

/* Images of two axes at most, of `least` pixels; vectors of LNT_PANEL hold as many of them as `lanes`. Planes that
 * are scaled are a line each. */
static bool has_planes(const lnt_conv *c, int64_t least, int64_t lanes)
{
    const int64_t width = c->w.out[2], pixels = lnt_dim_mul(c->w.out[1], width);
    if (lnt_conv_scales_planes(c))
        return at_least(lnt_dim_mul(c->w.out[0], pixels), LNT_PLANE_SCALED);
    if (width > 0 && LNT_PANEL * width < lanes * (int64_t)lnt_round_up((size_t)width, LNT_PANEL))
        return false;
    return !c->transposed && is_plane_by_plane(&c->w) && c->w.in[0] == 1 && at_least(pixels, least);
}

bool lnt_meets_phases(const lnt_window *w)
{
    return w->kernel[2] == 1 || w->dilation[2] <= (w->stride[2] - 1) / (w->kernel[2] - 1);
}

bool lnt_conv_joins_lines(const lnt_conv *c)
{
    enum { COPIED = 12 /* lanes that multiply in the time of an element of a longer line */ };
    const lnt_window *w = &c->w;
    const int64_t width = w->out[2], empty = -width & (LNT_PANEL - 1);
    return !LNT_TRIMMED && width > 0 && width < 2 * LNT_STEM_SHORT_LINE && empty > 0 && w->out[1] != 1 &&
           (lnt_meets_phases(w) ||
            (w->stride[1] == 1 &&
             (width < LNT_STEM_SHORT_LINE || empty * c->features * w->kernel[1] > COPIED * width))) &&
           c->features >= LNT_PANEL && !has_one_tap(w);
}

static bool is_met_whole(const lnt_window *w)
{
    return w->stride[1] == 1 && w->stride[2] == 1;
}

/* At longer strides rows share next to no lines: more taps are loaded slower than a pixel's channels are. Single lines
 * are brought into order sooner. */
static bool is_met_by_halves(const lnt_window *w)
{
    return w->out[1] != 1 && w->stride[2] == 2 && w->stride[1] <= 2 && w->kernel[2] <= LNT_PLANE_TAPS &&
           w->kernel[1] <= LNT_PLANE_TAPS;
}

/* Few features, of groups or of all channels, leave most of a product's lanes empty; rows of planes fewer, and a row's
 * lines of all channels stay in a cache. Without groups, products of long sums hide that. */
static bool has_group_rows(const lnt_conv *c)
{
    const int64_t width = c->w.out[2], features = c->features;
    const bool skips = lnt_volume(c->w.kernel) == 1 && is_met_by_halves(&c->w) && 2 * features <= LNT_PANEL;
    const bool few = c->groups > 1
                         ? features <= LNT_PANEL && !lnt_depthwise_widens(c->channels, features) &&
                               (is_met_whole(&c->w) || skips) && has_planes(c, LNT_GROUP_ROWS_MIN, features)
                         : features <= LNT_GROUP_ROWS_FEATURES && is_met_whole(&c->w) &&
                               has_planes(c, LNT_PLANE_MIN, 3 * features) &&
                               c->channels * lnt_volume(c->w.kernel) <= LNT_FEW_FEATURES_DEPTH;
    return few && width > 0 && lnt_dim_mul(c->channels * c->w.kernel[1], width) <= LNT_GROUP_ROWS_FLOATS;
}

/* Images of lines long enough for the kernels; of three axes, where each plane by itself is an image. */
static bool has_lines(const lnt_conv *c)
{
    return is_plane_by_plane(&c->w) && at_least(c->w.out[2], LNT_STEM_PIXELS) && c->w.out[1] != 0 &&
           c->batch != 0;
}

/* The same of planes. */
static bool has_runs(const lnt_conv *c)
{
    const lnt_window *w = &c->w;
    const int64_t run = lnt_conv_joins_lines(c) ? lnt_dim_mul(w->out[1], w->out[2]) : w->out[2];
    return is_plane_by_plane(w) && at_least(run, LNT_PLANE_PIXELS) && w->out[1] != 0 && c->batch != 0;
}

/* Few features of images of two axes at most, of small kernels: products of whole lines leave no lanes empty. Of few
 * channels it takes less to multiply than to add up. */
static bool folds_taps(const lnt_conv *c)
{
    const lnt_window *w = &c->w;
    return LNT_HAS_FOLDS && c->features <= LNT_PANEL && c->channels >= LNT_FOLD_CHANNELS &&
           c->channels >= c->features && is_plane_by_plane(w) && w->in[0] == 1 &&
           w->dilation[1] * w->dilation[2] == 1 && w->kernel[1] <= LNT_FOLD_TAPS &&
           w->kernel[2] <= LNT_FOLD_WIDE && w->before[2] <= LNT_FOLD_WIDE && w->in[1] != 0 &&
           w->out[1] != 0 && at_least(w->in[2], LNT_FOLD_TAPS) &&
           lnt_dim_mul(c->features * lnt_volume(w->kernel), w->in[2]) <= LNT_FOLD_LINE;
}

/* Some channels, of groups or of all: neither image is brought into another order, but lines are copied, those too that
 * no tap meets. */
static bool makes_planes(const lnt_conv *c)
{
    const int64_t taps = lnt_volume(c->w.kernel);
    return LNT_HAS_PLANES && !has_one_tap(&c->w) && c->channels * taps <= LNT_SOME_DEPTH &&
           c->w.kernel[1] >= c->w.stride[1] && (taps > 1 || c->channels <= LNT_STEM_RUN_MAX) &&
           c->features >= LNT_STEM_FEATURES_MIN && has_runs(c) &&
           !(c->groups > 1 && lnt_depthwise_widens(c->channels, c->features));
}

lnt_conv_kind lnt_conv_algorithm(const lnt_conv *c, lnt_order in, bool writes_pixels, bool adds)
{
    const bool planes = LNT_HAS_PLAIN_CONV && in == LNT_ORDER_PLAIN && !writes_pixels;
    const bool rows = LNT_HAS_PLANES && planes && !adds && !has_one_tap(&c->w) && has_group_rows(c);
    if (lnt_conv_is_depthwise(c) && !(rows && c->channels > 1))
        return planes && c->channels == 1 && (is_met_whole(&c->w) || is_met_by_halves(&c->w)) &&
                       has_planes(c, LNT_PLANE_MIN,
                                  is_met_whole(&c->w) ? LNT_PLANE_LANES : LNT_PLANE_HALVES_LANES)
                   ? LNT_CONV_EACH
                   : LNT_CONV_DEPTHWISE;
    if (c->channels < 1 || c->features < 1)
        return LNT_CONV_PRODUCT;
    if (rows)
        return LNT_CONV_EACH;
    if (c->transposed)
        return !LNT_TRIMMED && planes && (lnt_conv_spreads(c) || folds_taps(c)) ? LNT_CONV_MATRIX
                                                                                : LNT_CONV_PRODUCT;
    if (planes && !adds && makes_planes(c))
        return LNT_CONV_PLANES;
    const lnt_conv_kind product = planes && has_one_tap(&c->w) ? LNT_CONV_MATRIX : LNT_CONV_PRODUCT;
    if (c->groups != 1 || adds)
        return product;
    const bool few_channels = has_few_channels(c) && has_lines(c), few_features = has_few_features(c);
    if (!writes_pixels)
        return has_few_channels(c) && has_runs(c) && lnt_conv_in_planes(c, in) ? LNT_CONV_PLANES : product;
    const bool points = is_points(c, in);
    const bool copies = in == LNT_ORDER_CHANNELS_LAST || lnt_conv_few_channels(c->channels);
    if (few_channels || (few_features && has_lines(c) && copies && !has_one_tap(&c->w)) ||
        (points && (few_features || c->features > LNT_NARROW_COLUMNS)))
        return points ? LNT_CONV_POINTS : LNT_CONV_STEM;
    return LNT_CONV_PRODUCT;
}
