/* conv_kernels.h — micro-kernels of convolutions that are no matrix product: depthwise ones and small groups, those
 * of few channels ("stems"), and the transforms of Winograd's algorithm.
 *
 * All images are channels-last; a kernel gets one run of pixels of one line, and pointers that its caller has moved to
 * where the lines start, so that neither padding nor the layout of the whole image is known here.
 *
 * In the table of half arithmetic floats are halves, but for the bias; of Winograd's it has small tiles alone. */
#ifndef LNT_OPS_CONV_CONV_KERNELS_H
#define LNT_OPS_CONV_CONV_KERNELS_H

#include "formats/packed.h"
#include "ops/conv/winograd.h"
#include "ops/kernels.h"

#include <stdbool.h>
#include <stddef.h>

/* 0: a library trimmed to files without weights of depthwise convolutions (boards/trim.py): what is one all the same
 * is computed as products of groups. */
#ifndef LNT_HAS_DEPTHWISE
#define LNT_HAS_DEPTHWISE 1
#endif

/* 1: there are kernels of planes (lnt_plane). Elsewhere there is no room for them. */
#if defined(__x86_64__) || defined(__i386__)
#define LNT_HAS_PLANES LNT_HAS_PLAIN_CONV
#else
#define LNT_HAS_PLANES 0
#endif

/* 1: there is a way for transposed convolutions whose taps meet (lnt_fold). Elsewhere there is no room for it. */
#ifdef __x86_64__
#define LNT_HAS_FOLDS !LNT_TRIMMED
#else
#define LNT_HAS_FOLDS 0
#endif

/* 1: groups may have more channels than features (lnt_depthwise_widens). */
#if defined(__x86_64__) || defined(__i386__)
#define LNT_HAS_WIDE_GROUPS LNT_HAS_DEPTHWISE
#else
#define LNT_HAS_WIDE_GROUPS 0
#endif

enum { LNT_WIDE_GROUP_LANES = 8 /* of a vector, at least: levels of fewer go without */ };

/* A run of pixels of a depthwise convolution, some of its channels. Pixel i takes taps t of each of the
 * kernel's lines (its extent along x, or y) from pixel first + i * stride + t * spacing of an image's line,
 * as far as that lies in [0, width):
 *
 *     c[i * pixel + n] = clamp(sum over l, t of line[l][that * in_pixel + n] * w[l][t * w_tap + n]
 *                              + bias[n] + residual[i * pixel + n], low, high)
 *
 * In groups of `features` that share group_channels channels of the image, it is the sum over these, too: of
 * line[l][that * in_pixel + n / features * group_channels + k] * w[l][t * w_tap + k * w_channel + n]. See
 * lnt_depthwise_takes and lnt_depthwise_widens for what groups there may be.
 *
 * Of a pair of rows, one channel per group, the second takes line[l + stride] for line[l] and is `row` floats behind
 * the first. Lines that lie outside the image are NULL. */
typedef struct lnt_depthwise {
    const float *const *line; /* [lines], pixel 0 */
    const float *const *w;    /* [lines], readable up to channels rounded up to 16; of a pair all as far apart */
    size_t lines, taps;
    ptrdiff_t first, width, stride, spacing;
    size_t in_pixel, pixel; /* floats from pixel to pixel, of the image and of the result */
    ptrdiff_t w_tap;        /* below 0: the first tap is the last one of w */
    size_t pixels, channels;
    size_t features, group_channels, w_channel; /* features 0: one channel per group */
    size_t row; /* of a pair: floats from the first's result to the second's */
    float *c;
    const float *residual; /* with c's strides, or NULL */
    const float *bias;     /* [channels] or NULL */
    float low, high;
} lnt_depthwise;

enum { LNT_GROUP_FEATURES = 16 }; /* more go as products */

/* Groups whose channels, wherever a vector of features begins, lie in one vector: one channel, or powers of
 * two and no more channels than features. */
static inline bool lnt_depthwise_takes(int64_t group_channels, int64_t features)
{
    const bool powers = (group_channels & (group_channels - 1)) == 0 && (features & (features - 1)) == 0;
    return group_channels >= 1 && features >= 1 && features < LNT_GROUP_FEATURES &&
           (group_channels == 1 || (group_channels <= features && powers));
}

/* The same of groups of more channels than features, which are a few vectors for each one of features: as long as
 * that is not much more work. Files have panels of these weights, as for products. */
static inline bool lnt_depthwise_widens(int64_t group_channels, int64_t features)
{
    enum { PICKS = 16 /* for each vector of features and tap */ };
    return LNT_HAS_WIDE_GROUPS && features >= 1 && group_channels > features && group_channels <= PICKS &&
           group_channels * group_channels <= PICKS * features &&
           (group_channels & (group_channels - 1)) == 0 && (features & (features - 1)) == 0;
}

/* Kernels and steps that rows are computed in pairs for, where the level has a kernel for them. */
static inline bool lnt_depthwise_pairs(size_t lines, size_t taps, ptrdiff_t stride, ptrdiff_t spacing)
{
    return lines == taps && (taps == 3 || taps == 5) && (stride == 1 || stride == 2) && spacing == 1;
}

/* A run of pixels of a convolution of few channels: c[i * c_step + n] = clamp(sum over k < depth of
 * x[i * step + offset[k]] * B[k][n] + bias[n], low, high). Where features are planes it is c[n * c_step + i],
 * step is 1 and there are LNT_PLANE_PIXELS or more. */
typedef struct lnt_stem {
    const float *x;
    size_t step;
    const uint32_t *offset; /* [depth] */
    size_t depth;
    const float *b; /* panels, b_panel floats apart */
    size_t b_panel;
    const float *bias;      /* [columns] or NULL */
    size_t pixels, columns; /* pixels: LNT_STEM_PIXELS or more */
    float *c;
    size_t c_step;
    float low, high;
} lnt_stem;

/* Rows of a plane that is made of another one, or of some: c[r * c_row + i] = clamp(sum over k < channels, l < lines,
 * t < taps of x[k * x_channel + r * x_row + i + tap[l * taps + t]] * w[(k * lines + l) * taps + t] + bias, low, high).
 * With x_line, rows are as far apart as lines of the kernel: x_row is x_line, tap[l * taps + t] l * x_line + t *
 * spacing. As many lines more can be read as LNT_PLANE_ROWS more rows have, and LNT_PLANE_SLACK more floats. */
typedef struct lnt_plane {
    const float *x;
    size_t x_channel, x_row;
    const size_t *tap;      /* [lines * taps] */
    size_t x_line, spacing; /* x_line: or 0 */
    const float *w;
    size_t channels, lines, taps;
    size_t rows, pixels;
    float *c;
    size_t c_row;
    float bias, low, high;
} lnt_plane;

enum { LNT_PLANE_ROWS = 8, LNT_PLANE_SLACK = 64 };

/* A line of outputs of a transposed convolution, in phases: c[p * phase + i] = clamp(bias + sum over l < lines, taps
 * t = p + d * stride, d <= i < d + width of x[t * tap + l * line + i - d], low, high). Before and behind those floats
 * as many can be read as there are pixels and LNT_FOLD_SLACK more; as many more can be written behind a phase. */
typedef struct lnt_fold {
    const float *x;
    size_t tap;
    ptrdiff_t line;
    size_t lines, taps, stride, width, pixels;
    float *c;
    size_t phase;
    float bias, low, high;
} lnt_fold;

enum { LNT_FOLD_SLACK = 64 };
void lnt_conv_fold_avx2(const lnt_fold *f);
__attribute__((cold)) void lnt_conv_fold_scalar(const lnt_fold *f);

/* Winograd's transforms (ops/conv/winograd.h) of tiles side by side, LNT_WINOGRAD_RUN or fewer. */
enum { LNT_WINOGRAD_RUN = 8 };

/* Patches of an image: element (i, j) of B' d B for tile t and channel n goes to
 * v[(6 i + j) * v_point + t * v_tile + n]; of small tiles, whose patches have 4 lines and columns, 4 i + j. Column x of
 * the first patch is pixel first + x of a line; those outside [0, width) are 0. There are LNT_WINOGRAD_FEWEST channels
 * or more. */
typedef struct lnt_winograd_in {
    const float *line[LNT_WINOGRAD_PATCH]; /* pixel 0 */
    size_t pixel[LNT_WINOGRAD_PATCH];      /* floats from pixel to pixel of that line; 0: a line of zeros */
    ptrdiff_t first, width;
    size_t tiles, channels;
    float *v; /* rows of tiles writable up to channels rounded up to 16 */
    size_t v_tile, v_point;
} lnt_winograd_in;

/* Pixels from products, which are stored as v is: line i, pixel x, column n goes to
 * c[i * line + x * pixel + n] = clamp(A' m A + bias[n] + residual there, low, high). */
typedef struct lnt_winograd_out {
    const float *m; /* rows of tiles readable up to columns rounded up to 16 */
    size_t m_tile, m_point;
    size_t tiles, columns;
    size_t lines, width; /* of the tiles' that there are: lines 1 to 4, pixels of all of them together */
    float *c;
    const float *residual; /* with c's strides, or NULL; c only where columns are whole panels */
    size_t line, pixel;
    const float *bias; /* [columns] or NULL; columns: LNT_WINOGRAD_FEWEST_OUT or more */
    float low, high;
} lnt_winograd_out;

/* The transforms of a line whose taps stand `apart` pixels from each other. A tile of `tile` (4 or 6) outputs
 * of each of so many neighbors is as many rows, r = t * apart + p. Point j of B' d for channel n goes to
 * v[j * v_point + r * v_row + n], where input i of the row is pixel first + (t * tile + i) * apart + p; those
 * outside [0, width) are 0. There are LNT_WINOGRAD_FEWEST channels or more. */
typedef struct lnt_winograd_line_in {
    const float *x;     /* pixel 0, channels floats each */
    const float *zeros; /* [channels] */
    ptrdiff_t first, width, apart, tile, rows;
    size_t channels, points; /* points: 8, or 7 without infinity */
    float *v;                /* rows writable up to channels rounded up to 16 */
    size_t v_row, v_point;
} lnt_winograd_line_in;

/* Output i of row r is pixel (t * tile + i) * apart + p, if that is below width: column n of pixel x goes to
 * c[x * pixel + n] = clamp(A' m + bias[n] + residual there, low, high). */
typedef struct lnt_winograd_line_out {
    const float *m; /* stored as v is */
    size_t m_row, m_point;
    ptrdiff_t width, apart, tile, rows;
    size_t columns, points;
    float *c;
    const float *residual; /* with c's strides, or NULL; c only where columns are whole panels */
    size_t pixel;
    const float *bias; /* [columns] or NULL; columns: LNT_WINOGRAD_FEWEST or more */
    float low, high;
} lnt_winograd_line_out;

/* Taps g (i, j) of n filters, at w[(3 i + j) * w_tap + filter], to the points of G g G': (i, j) goes to
 * u[(6 i + j) * u_point + filter]; in half arithmetic, of small tiles, 4 i + j. Filters are whole panels of
 * LNT_PANEL. */
typedef struct lnt_winograd_taps {
    const float *w;
    size_t w_tap;
    float *u;
    size_t u_point, n;
} lnt_winograd_taps;

enum { LNT_STEM_PIXELS = 14, LNT_PLANE_PIXELS = 16 };

typedef void (*lnt_depthwise_fn)(const lnt_depthwise *d);

/* Those behind the first three are NULL in half arithmetic. */
typedef struct lnt_winograd_kernels {
    void (*small_in)(const lnt_winograd_in *w);
    void (*small_out)(const lnt_winograd_out *w);
    void (*taps)(const lnt_winograd_taps *w);
    void (*in)(const lnt_winograd_in *w);
    void (*out)(const lnt_winograd_out *w);
    void (*line_in)(const lnt_winograd_line_in *w);
    void (*line_out)(const lnt_winograd_line_out *w);
} lnt_winograd_kernels;

typedef struct lnt_conv_kernels {
    lnt_depthwise_fn depthwise, depthwise_pair; /* the latter of a pair of rows; NULL: singly */
    void (*stem)(const lnt_stem *s);            /* columns of a pixel side by side */
    void (*stem_planes)(const lnt_stem *s);     /* pixels of a feature side by side */
    void (*plane)(const lnt_plane *p);          /* NULL but at x86's levels with vectors */
    /* even[l * line + i] = x[l * n + 2 * i], odd[l * line + i] = x[l * n + 2 * i + 1], of n elements of each line
     * together; without odd, even[l * line + i] = x[l * n + i]; where there is `plane` */
    void (*plane_copy)(const float *x, size_t n, size_t lines, float *even, float *odd, size_t line);
    void (*fold)(const lnt_fold *f);            /* where LNT_HAS_FOLDS */
    const lnt_winograd_kernels *winograd;       /* NULL in a trimmed library without WinogradConv */
} lnt_conv_kernels;

extern const lnt_conv_kernels lnt_conv_avx2;

#endif
