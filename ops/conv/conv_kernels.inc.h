/* conv_kernels.inc.h — the micro-kernels of convolutions, written once over ops/simd/simd.h and compiled per level. The
 * including file says which. */
#include "ops/conv/conv_kernels.h"
#include "ops/op.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"

#include "ops/conv/depthwise.inc.h"
#include "ops/conv/stem.inc.h"
#if defined(LNT_SIMD_NEON) && defined(__aarch64__)
#include "ops/simd/simd_ordered.h"

#include "ops/conv/depthwise_pairs.inc.h"
#include "ops/conv/stem_in_order.inc.h"
#define DEPTHWISE_PAIR depthwise_pair
#else
#define DEPTHWISE_PAIR NULL /* 16 registers are too few */
#endif
/* Small tiles and taps are sums in one order, however wide vectors are: wider ones take those of another level that is
 * always there. On 64-bit ARM, where vectors always are, nothing of Winograd's has a second form. */
#if defined(LNT_SIMD_AVX512)
#define COMMON(name) lnt_winograd_##name##_avx2
#elif defined(LNT_SIMD_SINGLE) && defined(__aarch64__)
#define COMMON(name) lnt_winograd_##name##_neon
#define LARGE COMMON
#else
#define COMMON(name) LNT_SIMD_NAME(lnt_winograd_##name)
#define HAS_COMMON
#endif
#if !defined(LARGE)
#define LARGE(name) LNT_SIMD_NAME(lnt_winograd_##name)
#define HAS_LARGE
#endif
void COMMON(small_in)(const lnt_winograd_in *w);
void COMMON(small_out)(const lnt_winograd_out *w);
void COMMON(taps)(const lnt_winograd_taps *w);
void LARGE(in)(const lnt_winograd_in *w);
void LARGE(out)(const lnt_winograd_out *w);
void LARGE(line_in)(const lnt_winograd_line_in *w);
void LARGE(line_out)(const lnt_winograd_line_out *w);
#ifdef HAS_COMMON
#include "ops/conv/winograd_small.inc.h"
#include "ops/conv/winograd_taps.inc.h"
#endif
#if defined(LNT_SIMD_FP16) /* whose digits are too few for others */
static const lnt_winograd_kernels winograd_kernels = {
    .small_in = COMMON(small_in), .small_out = COMMON(small_out), .taps = COMMON(taps)};
#else
#ifdef HAS_LARGE
#include "ops/conv/winograd.inc.h"
#include "ops/conv/winograd_line.inc.h"
#endif
static const lnt_winograd_kernels winograd_kernels = {.small_in = COMMON(small_in),
                                                      .small_out = COMMON(small_out),
                                                      .taps = COMMON(taps),
                                                      .in = LARGE(in),
                                                      .out = LARGE(out),
                                                      .line_in = LARGE(line_in),
                                                      .line_out = LARGE(line_out)};
#endif

#if LNT_HAS_PLANES && (defined(LNT_SIMD_AVX2) || defined(LNT_SIMD_AVX512))
#include "ops/conv/plane.inc.h"
#define PLANE .plane = plane, .plane_copy = lnt_conv_plane_copy
#else
#define PLANE .plane = NULL
#endif

#if LNT_HAS_FOLDS && defined(LNT_SIMD_AVX512)
#define FOLD lnt_conv_fold_avx2 /* most lines are short */
#elif LNT_HAS_FOLDS
#include "ops/conv/fold.inc.h"
#define FOLD LNT_SIMD_NAME(lnt_conv_fold)
#else
#define FOLD NULL
#endif

#define CONV_KERNELS(pair, columns)                                                                          \
    {                                                                                                        \
        .depthwise = LNT_HAS_DEPTHWISE ? depthwise : NULL,                                                   \
        .depthwise_pair = LNT_HAS_DEPTHWISE ? pair : NULL, .stem = columns, .stem_planes = stem_planes,      \
        PLANE, .fold = FOLD, .winograd = LNT_HAS_WinogradConv ? &winograd_kernels : NULL,                    \
    }

const lnt_conv_kernels LNT_SIMD_NAME(lnt_conv) = CONV_KERNELS(DEPTHWISE_PAIR, stem);
#if defined(LNT_SIMD_NEON) && defined(__aarch64__)
const lnt_conv_kernels lnt_conv_neon_in_order = CONV_KERNELS(depthwise_pair_in_order, stem_in_order);
#endif
