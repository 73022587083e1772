/* conv_kernels.inc.h — the micro-kernels of convolutions, written once over ops/simd/simd.h and compiled per level. The
 * including file says which. */
#include "ops/conv/conv_kernels.h"
#include "ops/op.h"
#include "ops/simd/simd.h"
#include "ops/simd/simd_lanes.h"

#include "ops/conv/depthwise.inc.h"
#include "ops/conv/stem.inc.h"
#include "ops/conv/winograd.inc.h"
#include "ops/conv/winograd_line.inc.h"

const lnt_conv_kernels LNT_SIMD_NAME(lnt_conv) = {
    .depthwise = depthwise,
    .stem = stem,
    .stem_planes = stem_planes,
    .winograd_in = LNT_HAS_WinogradConv ? winograd_in : NULL,
    .winograd_out = LNT_HAS_WinogradConv ? winograd_out : NULL,
    .winograd_line_in = LNT_HAS_WinogradConv ? winograd_line_in : NULL,
    .winograd_line_out = LNT_HAS_WinogradConv ? winograd_line_out : NULL,
};
