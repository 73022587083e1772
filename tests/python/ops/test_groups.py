"""Grouped convolutions: groups of few features, whose lanes pick their channels; products by groups, whose images lie one
after the other where the rows of all would push each other out of the cache."""

import numpy as np
import pytest

from harness import check_against_reference, levels
from builder import Builder
from onnx import TensorProto

# channels of a group, its features, groups
FEW = [(2, 2, 20), (4, 4, 7), (8, 8, 9), (1, 5, 6), (2, 8, 5), (4, 8, 3), (1, 15, 3)]
PRODUCTS = [(16, 16, 64), (32, 32, 32), (16, 8, 64), (24, 40, 3), (64, 64, 16)]


def check(folder, shape, extents, batch, stride, kernel=3):
    channels, features, groups = shape
    b, n = Builder(3), len(extents)
    x = b.input("x", TensorProto.FLOAT, [batch, channels * groups, *extents])
    y = x
    for _ in range(2 if channels == features else 1):  # the second's input is not in ONNX order
        y = b.op("Relu", b.op("Conv", y, b.weight(features * groups, channels, *[kernel] * n), b.weight(features * groups),
                              group=groups, pads=[kernel // 2] * 2 * n, strides=[stride] * n))
    b.output(y, "y", [batch, features * groups, *(f"n{i}" for i in range(n))])
    feeds = {"x": np.random.default_rng(1).standard_normal((batch, channels * groups, *extents)).astype(np.float32)}
    ways = [("--opt", "all", "--level", level) for level in levels()] + [("--opt", "none"), ("--opt", "all", "--threads", 2)]
    check_against_reference(folder, b.model("groups"), feeds, "--max-rel", "1e-5", ways=ways)


@pytest.mark.parametrize("shape", FEW, ids=str)
@pytest.mark.parametrize("extents, batch, stride", [((16, 16), 1, 1), ((9, 7), 2, 2), ((3,), 1, 1), ((33,), 2, 1), ((2, 5, 3), 1, 1)])
def test_groups_of_few_features(tmp_path, shape, extents, batch, stride):
    check(tmp_path, shape, extents, batch, stride)


@pytest.mark.parametrize("shape", PRODUCTS, ids=str)
@pytest.mark.parametrize("extents, batch, stride", [((8, 8), 1, 2), ((7, 7), 2, 1), ((29,), 1, 1), ((3, 4, 5), 1, 1)])
def test_groups_that_are_products(tmp_path, shape, extents, batch, stride):
    check(tmp_path, shape, extents, batch, stride)


def test_long_kernel(tmp_path):
    """As the positions of wav2vec 2.0 are made."""
    check(tmp_path, (64, 64, 16), (60,), 1, 1, kernel=31)
