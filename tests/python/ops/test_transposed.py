"""ConvTranspose of few features to a pixel, as vocoders and segmentation nets end: one Conv that gives all outputs between
two inputs at once. The numbers are onnxruntime's, whatever is cut off at the ends and wherever it stands."""

import json

import numpy as np
import pytest
from onnx import TensorProto

from harness import check_against_reference, linnet
from builder import Builder

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", 3), ("--opt", "all", "--level", "scalar"))


def check(folder, channels, features, kernel, extents, becomes_conv=True, behind=None, bias=True, opens=False, group=1,
          **attributes):
    """becomes_conv: nothing but Conv is left of it inside a network. Alone it may stay, from planes to planes."""
    b = Builder(7)
    n, axes = 2, len(extents)
    shape = [n, channels, *extents]
    x = b.input("x", TensorProto.FLOAT, [n, channels, *(["L"] if opens else [extents[0]]), *extents[1:]])
    t = b.op("Relu", b.op("Conv", x, b.weight(channels, channels, *[1] * axes))) if behind else x
    w = b.weight(channels, features, *kernel)
    bias = [b.weight(features * group, scale=0.5)] if bias else []
    y = b.op("ConvTranspose", t, w, *bias, group=group, **attributes)
    b.output(b.op(behind, y) if behind else y, "y", [None] * (axes + 2))
    model = b.model("transposed")
    feeds = {"x": np.random.default_rng(3).standard_normal(shape).astype(np.float32)}
    check_against_reference(folder, model, feeds, "--max-rel", "1e-5", ways=WAYS)
    if becomes_conv and not behind:
        check(folder, channels, features, kernel, extents, True, "Neg", bool(bias), opens, group, **attributes)
        return
    done = linnet("convert", folder / "model.onnx", "-o", folder / "model.lnt")
    assert done.returncode == 0, done.stderr
    operators = json.loads(linnet("info", folder / "model.lnt", "--json").stdout)["operators"]
    assert ("ConvTranspose" not in operators) == becomes_conv, operators


@pytest.mark.parametrize("kernel, stride", [(16, 4), (7, 3), (4, 4), (3, 2), (2, 5), (96, 24), (1024, 256)])
@pytest.mark.parametrize("features, pads", [(1, (0, 0)), (1, (2, 1)), (3, (0, 0)), (3, (1, 2))])
def test_rows(tmp_path, kernel, stride, features, pads):
    check(tmp_path, 96, features, [kernel], [37], strides=[stride], pads=pads)


@pytest.mark.parametrize("kernel, stride", [((2, 2), 2), ((4, 4), 2), ((3, 5), 3)])
@pytest.mark.parametrize("features, pads", [(1, (0, 0, 0, 0)), (2, (1, 0, 0, 1))])
def test_planes(tmp_path, kernel, stride, features, pads):
    check(tmp_path, 64, features, kernel, [9, 14], strides=[stride] * 2, pads=pads)


@pytest.mark.parametrize("behind", ["Sigmoid", "Tanh", "Neg"])
def test_inside_a_network(tmp_path, behind):
    check(tmp_path, 64, 1, [4, 4], [12, 10], strides=[2, 2], pads=[1] * 4, behind=behind)
    check(tmp_path, 64, 1, [16], [50], strides=[4], behind=behind, bias=False)


@pytest.mark.parametrize("group, features", [(24, 1), (24, 2), (6, 1), (3, 5)])
@pytest.mark.parametrize("kernel", [[4], [4, 4], [3, 3]])
def test_groups(tmp_path, group, features, kernel):
    """As images are enlarged channel by channel."""
    axes = len(kernel)
    check(tmp_path, 24, features, kernel, [11, 8][:axes], strides=[2] * axes, pads=[1] * 2 * axes, group=group,
          becomes_conv=group < 24 or features > 1)


@pytest.mark.parametrize("behind", [None, "Relu", "Sigmoid"])
@pytest.mark.parametrize("kernel, extents, attributes", [
    ([3], [30], {"strides": [2], "pads": [1, 1], "output_padding": [1]}),
    ([3], [30], {"strides": [5]}),
    ([5], [9], {"strides": [2], "dilations": [3], "pads": [4, 0]}),
    ([5], [1], {"strides": [4], "dilations": [2]}),
    ([1, 3], [5, 16], {"strides": [1, 2], "pads": [0, 1, 0, 1]}),
    ([4, 2], [6, 7], {"strides": [2, 3], "dilations": [3, 1], "pads": [2, 0, 1, 0]}),
    ([3, 3], [4, 33], {"pads": [1, 1, 1, 1]}),
    ([7, 7], [2, 2], {"strides": [2, 2], "pads": [3, 3, 2, 3]}),
    ([2, 3, 4], [3, 4, 5], {"strides": [2, 1, 3], "dilations": [1, 2, 1], "pads": [0, 1, 1, 0, 1, 2]})])
def test_channel_by_channel(tmp_path, kernel, extents, attributes, behind):
    """One channel per group: runs of a depthwise convolution, a stride apart."""
    check(tmp_path, 37, 1, kernel, extents, group=37, becomes_conv=False, behind=behind, bias=behind is None, **attributes)


def test_lengths_that_are_open(tmp_path):
    check(tmp_path, 64, 1, [16], [21], strides=[4], pads=[3, 2], opens=True)
    check(tmp_path, 64, 2, [8], [21], strides=[4], pads=[2, 2], opens=True, output_padding=[1])


def test_what_stays(tmp_path):
    """Enough features to fill panels, holes in the kernel, another step along each axis, an extent that was asked for."""
    check(tmp_path, 32, 48, [4], [30], strides=[2], becomes_conv=False)
    check(tmp_path, 64, 1, [4], [30], strides=[2], dilations=[2], becomes_conv=False)
    check(tmp_path, 64, 16, [4], [30], strides=[2], group=2, becomes_conv=False)
    check(tmp_path, 64, 1, [4, 4], [6, 7], strides=[2, 3], becomes_conv=False)
    check(tmp_path, 64, 1, [4], [30], strides=[4], output_shape=[123], becomes_conv=False)


@pytest.mark.parametrize("kernel, extents, group", [
    ([2, 2], [33, 35], 1), ([3, 3], [20, 19], 1), ([4, 4], [40, 13], 1), ([5, 3], [23, 29], 1), ([2, 1], [31, 37], 1),
    ([1, 2], [3, 700], 1), ([2], [1500], 1), ([8, 8], [40, 3], 1), ([2, 2, 2], [5, 14, 15], 1), ([3, 1, 2], [2, 40, 16], 1),
    ([1, 1], [16, 17], 1), ([2, 2], [34, 33], 2)])
@pytest.mark.parametrize("behind, bias", [(None, True), (None, False), ("Relu", True), ("Sigmoid", True)])
def test_taps_that_never_meet(tmp_path, kernel, extents, group, behind, bias):
    """From planes to planes: each tap is a feature, lines of taps make lines of outputs."""
    check(tmp_path, 16, 17, kernel, extents, strides=kernel, group=group, becomes_conv=max(kernel) == 1, behind=behind, bias=bias)


@pytest.mark.parametrize("attributes", [
    {"pads": [1, 0, 0, 1]}, {"pads": [0, 0, 1, 1]}, {"output_padding": [1, 0]}, {"auto_pad": "SAME_UPPER"},
    {"pads": [0, 0, 1, 1], "output_padding": [1, 1]}, {"output_shape": [50, 60]}, {"output_shape": [47, 61]},
    {"dilations": [2, 1]}])
def test_taps_that_never_meet_cut_off(tmp_path, attributes):
    check(tmp_path, 16, 17, [2, 2], [25, 30], strides=[2, 2], becomes_conv=False, **attributes)


def test_taps_that_never_meet_of_open_lengths(tmp_path):
    check(tmp_path, 16, 17, [2, 2], [25, 30], strides=[2, 2], becomes_conv=False, opens=True)
    check(tmp_path, 16, 17, [2, 2], [1, 3], strides=[2, 2], becomes_conv=False, opens=True)


@pytest.mark.parametrize("kernel, extents, attributes", [
    ([4], [300], {"strides": [2], "pads": [1, 1]}), ([3], [9], {"strides": [5], "output_padding": [4]}),
    ([64], [70], {"strides": [7], "pads": [30, 3]}), ([65], [70], {"strides": [7]}), ([2], [1400], {}),
    ([4, 4], [67, 10], {"strides": [2, 2], "pads": [1, 1, 1, 1]}), ([5, 3], [40, 33], {"strides": [3, 2], "output_padding": [2, 1]}),
    ([8, 5], [31, 29], {"strides": [1, 4], "pads": [7, 4, 6, 0]}), ([9, 3], [20, 20], {"strides": [2, 2]}),
    ([2, 3], [1, 300], {"strides": [4, 1], "pads": [0, 2, 1, 0]}), ([3, 3], [30, 9], {"strides": [2, 2], "output_shape": [60, 18]}),
    ([3, 3], [200, 150], {"strides": [2, 2], "auto_pad": "SAME_LOWER"}), ([1, 6], [17, 40], {"strides": [2, 3], "pads": [1, 0, 0, 2]})])
@pytest.mark.parametrize("channels, features, group", [(32, 3, 1), (40, 16, 1), (24, 5, 3)])
@pytest.mark.parametrize("fused, bias", [(None, True), ("Relu", False), ("Tanh", True)])
def test_taps_that_meet(tmp_path, kernel, extents, attributes, channels, features, group, fused, bias):
    """From planes to planes: what lines of taps come to is added up."""
    b = Builder(5)
    shape = [2, channels, *extents]
    y = b.op("ConvTranspose", b.input("x", TensorProto.FLOAT, shape), b.weight(channels, features, *kernel),
             *([b.weight(features * group, scale=0.5)] if bias else []), group=group, **attributes)
    b.output(b.op(fused, y) if fused else y, "y", [None] * len(shape))
    feeds = {"x": np.random.default_rng(4).standard_normal(shape).astype(np.float32)}
    check_against_reference(tmp_path, b.model("folded"), feeds, "--max-rel", "1e-5", ways=WAYS)


@pytest.mark.parametrize("channels, features, group", [(20, 24, 1), (32, 3, 1), (3, 40, 1), (12, 2, 4), (6, 1, 6)])
@pytest.mark.parametrize("kernel, pads, dilations", [([3], [1, 1], [1]), ([5], [0, 6], [1]), ([3, 3], [1, 0, 2, 1], [1, 1]),
                                                     ([4, 3], [0, 0, 0, 0], [2, 3]), ([1, 1], [0, 0, 0, 0], [1, 1])])
def test_stride_of_one(tmp_path, channels, features, group, kernel, pads, dilations):
    """A Conv whose kernel is turned around."""
    check(tmp_path, channels, features, kernel, [19, 13][:len(kernel)], group=group, pads=pads, dilations=dilations,
          becomes_conv=group < channels or features > 1)
