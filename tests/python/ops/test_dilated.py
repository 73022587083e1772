"""Convolutions whose taps reach into the padding, near or far: those that meet nothing else are left out. So are pixels that
no tap meets."""


import numpy as np
import pytest

from harness import check_against_reference
from builder import Builder
from onnx import TensorProto

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", 2), ("--opt", "all", "--level", "scalar"))


@pytest.mark.parametrize("extents", [(21,), (7, 21), (21, 7), (5, 6, 7)])
@pytest.mark.parametrize("dilation", [1, 3, 4, 6, 9, 24])
@pytest.mark.parametrize("batch, groups, stride", [(1, 1, 1), (2, 2, 1), (1, 1, 2)])
def test_far_taps(tmp_path, extents, dilation, batch, groups, stride):
    b, n, c = Builder(7), len(extents), 20
    x = b.input("x", TensorProto.FLOAT, [batch, c, *extents])
    y = b.op("Relu", b.op("Conv", x, b.weight(c, c // groups, *[1] * n), group=groups))
    far = b.op("Conv", y, b.weight(c, c // groups, *[3] * n), b.weight(c), group=groups, pads=[dilation] * 2 * n,
               dilations=[dilation] * n, strides=[stride] * n)
    if stride == 1:
        far = b.op("Add", far, y)
    b.output(b.op("Mul", far, b.op("Sigmoid", far)), "y", [batch, c, *(f"n{i}" for i in range(n))])
    model, feeds = b.model("far"), {"x": np.random.default_rng(1).standard_normal((batch, c, *extents)).astype(np.float32)}
    check_against_reference(tmp_path, model, feeds, "--max-rel", "1e-5", ways=WAYS)


@pytest.mark.parametrize("extents, strides", [((17,), (3,)), ((9, 12), (2, 2)), ((8, 7), (1, 3)), ((5, 6, 7), (2, 1, 3))])
@pytest.mark.parametrize("channels, features, groups", [(24, 40, 1), (160, 3, 1), (20, 12, 4), (3, 64, 1)])
def test_skipped_pixels(tmp_path, extents, strides, channels, features, groups):
    b, n = Builder(5), len(extents)
    x = b.input("x", TensorProto.FLOAT, [2, channels, *extents])
    y = b.op("Conv", x, b.weight(features, channels // groups, *[1] * n), b.weight(features), group=groups, strides=strides)
    b.output(y, "y", [2, features, *(f"n{i}" for i in range(n))])
    feeds = {"x": np.random.default_rng(1).standard_normal((2, channels, *extents)).astype(np.float32)}
    check_against_reference(tmp_path, b.model("skipped"), feeds, "--max-rel", "1e-5", ways=WAYS)
