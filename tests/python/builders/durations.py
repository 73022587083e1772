"""VITS's stochastic duration predictor, as Piper's exports have it: noise goes backwards through spline flows.

Each flow moves one of two channels along a rational-quadratic spline whose bins a network of dilated depthwise
convolutions chooses for every phoneme. What torch writes for it is here: a mask by NonZero, GatherND and ScatterND,
bin edges by Softmax and CumSum, the search in them as a sum of comparisons, GatherElements to pick the bin.
"""

import numpy as np
from onnx import TensorProto

BINS, BOUND, FLOWS, LAYERS, KERNEL = 10, 5.0, 4, 3, 3
MIN_SIZE, MIN_SLOPE = 1e-3, 1e-3
# Of the last flow, an affine one: mean and spread of the logarithm of a duration.
LOG_MEAN, LOG_SPREAD = 0.9, 0.35


def gelu(b, x):
    return b.op("Mul", b.op("Mul", x, 0.5), b.op("Add", b.op("Erf", b.op("Div", x, float(np.sqrt(2)))), 1.0))


def separable(b, x, channels, layer_norm):
    """Dilated depthwise convolutions, each followed by one over the channels; all with what came in added."""
    for i in range(LAYERS):
        y = b.conv1d(x, channels, channels, KERNEL, dilation=KERNEL**i, groups=channels)
        y = gelu(b, layer_norm(b, y, channels))
        y = gelu(b, layer_norm(b, b.conv1d(y, channels, channels, 1), channels))
        x = b.op("Add", x, y)
    return x


def slice_last(b, x, begin, end):
    return b.op("Slice", x, [begin], [end], [-1])


def edges(b, sizes):
    """[n, BINS] of any size to their [n, BINS + 1] edges in [-BOUND, BOUND], and the sizes those give."""
    share = b.op("Add", b.op("Mul", b.op("Softmax", sizes, axis=-1), 1 - MIN_SIZE * BINS), MIN_SIZE)
    ends = b.op("CumSum", share, b.constant(-1, np.int64))
    ends = b.op("Add", b.op("Mul", b.op("Pad", ends, [0, 1, 0, 0], 0.0), 2 * BOUND), -BOUND)
    border = b.op("Mul", slice_last(b, ends, 0, 1), 0.0)
    inner = slice_last(b, ends, 1, BINS)
    ends = b.op("Concat", b.op("Add", border, -BOUND), inner, b.op("Add", border, BOUND), axis=-1)
    return ends, b.op("Sub", slice_last(b, ends, 1, BINS + 1), slice_last(b, ends, 0, BINS))


def spline(b, y, widths, heights, slopes):
    """What the spline of each row takes to y: [n] against [n, BINS], [n, BINS], [n, BINS - 1]."""
    lefts, widths = edges(b, widths)
    bottoms, heights = edges(b, heights)
    outside = float(np.log(np.exp(1 - MIN_SLOPE) - 1))
    slopes = b.op("Add", b.op("Softplus", b.op("Pad", slopes, [0, 1, 0, 1], outside)), MIN_SLOPE)

    at = b.op("Unsqueeze", y, [1])
    past = b.op("Cast", b.op("GreaterOrEqual", at, bottoms), to=TensorProto.INT64)
    found = b.op("Sub", b.op("ReduceSum", past, [-1], keepdims=1), [1])
    bin_ = b.op("Min", found, [BINS - 1])

    def pick(table):
        return b.op("Squeeze", b.op("GatherElements", table, bin_, axis=-1), [1])

    left, width, bottom, height = (pick(t) for t in (lefts, widths, bottoms, heights))
    slope, next_slope = pick(slopes), pick(slice_last(b, slopes, 1, BINS + 1))
    mean = pick(b.op("Div", heights, widths))
    above = b.op("Sub", y, bottom)
    bend = b.op("Mul", above, b.op("Sub", b.op("Add", slope, next_slope), b.op("Mul", mean, 2.0)))
    qa = b.op("Add", bend, b.op("Mul", height, b.op("Sub", mean, slope)))
    qb = b.op("Sub", b.op("Mul", height, slope), bend)
    qc = b.op("Neg", b.op("Mul", mean, above))
    inside = b.op("Sub", b.op("Pow", qb, 2.0), b.op("Mul", b.op("Mul", qa, 4.0), qc))
    root = b.op("Div", b.op("Mul", qc, 2.0), b.op("Sub", b.op("Neg", qb), b.op("Sqrt", inside)))
    return b.op("Add", b.op("Mul", root, width), left)


def coupling(b, z, condition, channels, layer_norm):
    """[1, 2, T]: the first channel says how the second is moved."""
    fixed, moved = b.op("Split", z, [1, 1], outputs=2, axis=1)
    h = b.op("Add", b.conv1d(fixed, 1, channels, 1), condition)
    h = b.conv1d(separable(b, h, channels, layer_norm), channels, 3 * BINS - 1, 1)
    h = b.op("Unsqueeze", b.op("Transpose", h, perm=[0, 2, 1]), [1])  # [1, 1, T, 3 BINS - 1]
    inside = b.op("And", b.op("GreaterOrEqual", moved, -BOUND), b.op("LessOrEqual", moved, BOUND))
    where = b.op("Transpose", b.op("NonZero", inside), perm=[1, 0])
    rows = b.op("GatherND", h, where)
    root = float(np.sqrt(channels))
    result = spline(b, b.op("GatherND", moved, where), b.op("Div", slice_last(b, rows, 0, BINS), root),
                    b.op("Div", slice_last(b, rows, BINS, 2 * BINS), root), slice_last(b, rows, 2 * BINS, 3 * BINS - 1))
    return b.op("Concat", fixed, b.op("ScatterND", moved, where, result), axis=1)


def log_durations(b, x, channels, noise, layer_norm):
    """[1, C, T] encoded phonemes to [1, 1, T]; noise scales what is drawn, 0 makes it certain."""
    x = b.conv1d(separable(b, b.conv1d(x, channels, channels, 1), channels, layer_norm), channels, channels, 1)
    like = b.op("Slice", x, [0], [2], [1])
    z = b.op("Mul", b.op("RandomNormalLike", like, seed=2.0), noise)
    for _ in range(FLOWS - 1):  # the one nearest to the durations is left out, as VITS does
        z = coupling(b, b.op("Slice", z, [-1], [-2**62], [1], [-1]), x, channels, layer_norm)
    z = b.op("Slice", z, [-1], [-2**62], [1], [-1])
    mean, log_spread = (b.constant(np.full((2, 1), v), np.float32) for v in (-LOG_MEAN / LOG_SPREAD, -np.log(LOG_SPREAD)))
    z = b.op("Mul", b.op("Sub", z, mean), b.op("Exp", b.op("Neg", log_spread)))
    return b.op("Slice", z, [0], [1], [1])
