"""Grouped convolutions: groups of few features, whose lanes pick their channels; products by groups, whose images lie one
after the other where the rows of all would push each other out of the cache."""

import numpy as np
import onnx
import pytest

from harness import check_against_reference, levels, linnet
from builder import Builder
from linnet_ctypes import check_every_level
from onnx import TensorProto, helper, numpy_helper

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


def int8_parts(shape, extents, kernel, x_type, w_type, seed):
    channels, features, groups = shape
    rng = np.random.default_rng(seed)

    def some(of_type, *dims):
        limits = np.iinfo(of_type)
        return rng.integers(limits.min, limits.max, dims, of_type, endpoint=True)

    return some(x_type, 2, channels * groups, *extents), some(w_type, features * groups, channels, *kernel)


def model_of(op, x, out_type, constants, **more):
    inputs = ["x", *constants]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], **more)], "groups",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info("y", out_type, [None] * x.ndim)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


# Of each number some become one, or none; then kernels with more taps than those of one channel have.
INT8 = [(*shape, (3, 3)) for shape in FEW] + [
    (10, 2, 8, (1, 1)), (5, 1, 32, (1, 1)), (1, 1, 6, (9, 8)), (1, 1, 6, (3, 3)), (3, 3, 7, (2, 1)),
    (5, 12, 3, (2, 2)), (7, 9, 2, (3, 1)), (35, 9, 2, (1, 3)), (10, 20, 2, (1, 1))]  # channels of which each group has some more than quads


@pytest.mark.parametrize("x_type, w_type", [(np.uint8, np.int8), (np.int8, np.uint8)])
@pytest.mark.parametrize("channels, features, groups, kernel", INT8)
def test_int8_groups_of_few_features(tmp_path, channels, features, groups, kernel, x_type, w_type):
    """Sums of integers are exact, with a zero point for each filter, too."""
    x, w = int8_parts((channels, features, groups), (11, 10), kernel, x_type, w_type, groups)
    zero, points = x_type(7), np.random.default_rng(1).integers(0, 100, features * groups).astype(w_type)
    onnx.save(model_of("ConvInteger", x, TensorProto.INT32, {"w": w, "x zero": np.array(zero), "w zero": points}, group=groups),
              tmp_path / "c.onnx")
    done = linnet("convert", tmp_path / "c.onnx", "-o", tmp_path / "c.lnt")
    assert done.returncode == 0, done.stderr
    merges = any(groups % n == 0 and n * features <= 16 for n in range(2, groups + 1))
    merges &= channels * features > 1 or w[0].size > 64
    assert ("merge_groups" in done.stdout) == merges
    centered = w.astype(np.int32) - points.astype(np.int32).reshape(-1, 1, 1, 1)
    fields = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32) - int(zero), kernel, (2, 3))
    fields = fields.reshape(2, groups, channels, *fields.shape[2:])
    want = np.einsum("ngcyxij,gfcij->ngfyx", fields, centered.reshape(groups, features, channels, *kernel))
    check_every_level(tmp_path / "c.lnt", x, want.reshape(2, features * groups, *want.shape[3:]).astype(np.int32), rtol=0)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("channels, features, groups, kernel", INT8)
def test_requantized_groups_of_few_features(tmp_path, channels, features, groups, kernel, kind):
    x, w = int8_parts((channels, features, groups), (11, 10), kernel, kind, np.int8, groups)
    scales = np.random.default_rng(1).uniform(1e-3, 2e-3, len(w)).astype(np.float32)
    constants = {"x scale": np.float32(0.02), "x zero": kind(120), "w": w, "w scale": scales, "w zero": np.zeros(len(w), np.int8),
                 "y scale": np.float32(0.3), "y zero": kind(100), "bias": np.arange(len(w), dtype=np.int32) * 50}
    constants = {name: np.asarray(value) for name, value in constants.items()}
    model = model_of("QLinearConv", x, helper.np_dtype_to_tensor_dtype(x.dtype), constants,
                     group=groups, pads=[k // 2 for k in kernel] * 2, strides=[2, 1])
    ways = [("--opt", "all", "--level", level) for level in levels()] + [("--opt", "none"), ("--opt", "all", "--threads", 2)]
    check_against_reference(tmp_path, model, {"x": x}, ways=ways)
