"""Conv over three axes whose kernel has one tap along the first: each plane by itself is an image."""

import numpy as np
import pytest
from onnx import TensorProto

from harness import check_against_reference
from builder import Builder

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", 3), ("--opt", "all", "--level", "scalar"))


@pytest.mark.parametrize("attributes", [{"pads": [0, 3, 3, 0, 3, 3]}, {"strides": [1, 2, 2], "pads": [0, 1, 2, 0, 3, 0]},
                                        {"dilations": [2, 1, 2]}])
@pytest.mark.parametrize("channels, behind", [(1, None), (3, None), (1, "conv"), (3, "conv")])
def test_planes_of_three_axes(tmp_path, channels, behind, attributes):
    b = Builder(5)
    shape = [2, channels, 3, 17, 53]
    x = b.input("x", TensorProto.FLOAT, shape)
    y = b.op("Relu", b.op("Conv", x, b.weight(12, channels, 1, 7, 7), b.weight(12), **attributes))
    b.output(b.op("Conv", y, b.weight(8, 12, 2, 3, 3)) if behind else y, "y", [None] * 5)
    feeds = {"x": np.random.default_rng(3).standard_normal(shape).astype(np.float32)}
    check_against_reference(tmp_path, b.model("planes"), feeds, "--max-rel", "1e-5", ways=WAYS)


@pytest.mark.parametrize("attributes", [{"pads": [4, 2, 0, 3, 1, 0]}, {"strides": [2, 1, 1], "dilations": [1, 2, 1]},
                                        {"strides": [1, 2, 1]}, {"pads": [0, 0, 1, 0, 0, 1]}])
@pytest.mark.parametrize("features, behind", [(16, None), (3, None), (16, "conv"), (1, "conv")])
def test_one_tap_along_the_last_axis(tmp_path, features, behind, attributes):
    """Of one channel: what is a line apart may as well be that many pixels apart."""
    b = Builder(6)
    shape = [2, 1, 11, 13, 7]
    x = b.input("x", TensorProto.FLOAT, shape)
    y = b.op("Relu", b.op("Conv", x, b.weight(features, 1, 4, 3, 1), b.weight(features), **attributes))
    b.output(b.op("Conv", y, b.weight(8, features, 2, 3, 3)) if behind else y, "y", [None] * 5)
    feeds = {"x": np.random.default_rng(4).standard_normal(shape).astype(np.float32)}
    check_against_reference(tmp_path, b.model("lines"), feeds, "--max-rel", "1e-5", ways=WAYS)


@pytest.mark.parametrize("channels", [4, 20])
@pytest.mark.parametrize("extents, kernel", [((1500,), (3,)), ((40, 40), (3, 3)), ((30, 9), (1, 1)), ((40, 40), (5, 5))])
def test_halves_computed_in_float(tmp_path, extents, kernel, channels):
    """Planes that are large enough are copied beside the widened operands."""
    b, rng, shape = Builder(7), np.random.default_rng(7), [2, channels, *extents]
    x = b.input("x", TensorProto.FLOAT16, shape)
    weights, bias = (b.constant(rng.standard_normal(dims).astype(np.float16)) for dims in ((channels, 1, *kernel), (channels,)))
    b.output(b.op("Conv", x, weights, bias, group=channels), "y", [None] * len(shape), TensorProto.FLOAT16)
    feeds = {"x": rng.standard_normal(shape).astype(np.float16)}
    check_against_reference(tmp_path, b.model("halves"), feeds, ways=WAYS)
