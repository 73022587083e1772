"""Conv between images in ONNX order: of one tap the weights times the planes (ops/conv/conv_matrix.c), depthwise each plane of
another one (conv_planes.c)."""

import json

import numpy as np
import pytest
from onnx import TensorProto

from builder import Builder
from harness import check_against_reference, levels, linnet

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", 3), ("--opt", "all", "--level", "scalar"))
# image, features, groups
SHAPES = [([1, 64, 9, 13], 40, 1), ([3, 33, 17, 19], 45, 1), ([1, 192, 200], 390, 1), ([2, 8, 3, 6, 7], 200, 1), ([1, 5, 31, 41], 1, 1),
          ([2, 24, 7, 9], 30, 3), ([1, 600, 8, 8], 20, 1), ([1, 16, 1, 17], 12, 1), ([1, 20, 5, 3], 7, 1), ([1, 6, 4000], 3, 1),
          ([2, 8, 5, 5], 32, 1)]


def pointwise(shape, features, groups, bias=True, behind=(), declared=None, constant=True, **attributes):
    b = Builder(7)
    x = b.input("x", TensorProto.FLOAT, declared or shape)
    extents = [features, shape[1] // groups] + [1] * (len(shape) - 2)
    w = b.weight(*extents) if constant else b.input("w", TensorProto.FLOAT, extents)
    y = b.op("Conv", x, w, *([b.weight(features)] if bias else []), group=groups, **attributes)
    for op in behind:
        y = b.op(op, y, b.input("r", TensorProto.FLOAT, [shape[0], features, *shape[2:]])) if op == "Add" else b.op(op, y)
    b.output(y, "y", [None] * len(shape))
    rng = np.random.default_rng(5)
    feeds = {"x": rng.standard_normal(shape).astype(np.float32)}
    if not constant:
        feeds["w"] = rng.standard_normal(extents).astype(np.float32)
    if "Add" in behind:
        feeds["r"] = rng.standard_normal([shape[0], features, *shape[2:]]).astype(np.float32)
    return b.model("pointwise"), feeds


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape, features, groups", SHAPES)
def test_weights_times_planes(tmp_path, shape, features, groups, bias):
    model, feeds = pointwise(shape, features, groups, bias)
    check_against_reference(tmp_path, model, feeds, "--max-rel", "2e-5", ways=WAYS)


@pytest.mark.parametrize("behind", [("Relu",), ("Sigmoid",), ("Add", "Relu"), ("Relu", "Add")])
@pytest.mark.parametrize("shape, features, groups", SHAPES[:3])
def test_what_comes_behind(tmp_path, shape, features, groups, behind):
    model, feeds = pointwise(shape, features, groups, behind=behind)
    check_against_reference(tmp_path, model, feeds, "--max-rel", "2e-5", ways=WAYS)


@pytest.mark.parametrize("attributes", [{"pads": [1, 0, 2, 1]}, {"strides": [2, 1]}, {"auto_pad": "SAME_UPPER"}])
@pytest.mark.parametrize("declared", [None, [1, 64, "height", "width"]])
def test_pixels_that_are_not_the_inputs(tmp_path, attributes, declared):
    model, feeds = pointwise([1, 64, 9, 13], 40, 1, declared=declared, **attributes)
    check_against_reference(tmp_path, model, feeds, "--max-rel", "2e-5", ways=WAYS)


@pytest.mark.parametrize("pixels", [[9, 13], [1, 1], [2, 3], [1, 16]])
def test_open_extents(tmp_path, pixels):
    """May be fewer pixels than tiles are wide."""
    model, feeds = pointwise([2, 64, *pixels], 40, 1, declared=["batch", 64, "height", "width"])
    check_against_reference(tmp_path, model, feeds, "--max-rel", "2e-5", ways=WAYS)


def test_weights_that_are_given(tmp_path):
    model, feeds = pointwise([2, 64, 9, 13], 40, 1, constant=False)
    check_against_reference(tmp_path, model, feeds, "--max-rel", "2e-5", ways=WAYS)


@pytest.mark.parametrize("shape, features, groups", [s for s in SHAPES if s[1] > 8])
def test_no_image_is_brought_into_another_order(tmp_path, shape, features, groups):
    model, _ = pointwise(shape, features, groups, behind=("Sigmoid",))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", "--json")
    assert json.loads(done.stdout)["relayouts"] == 0


# channels, lines and pixels, kernel, attributes, features of a channel
DEPTHWISE = [(5, (30, 47), (3, 3), {"pads": [1] * 4}, 1), (3, (17, 93), (5, 3), {"pads": [0, 2, 3, 1]}, 2),
             (4, (64, 64), (7, 7), {}, 1), (6, (41, 16), (3, 3), {"pads": [2] * 4, "dilations": [2, 2]}, 1),
             (2, (33, 61), (4, 5), {"pads": [3, 1, 2, 4], "dilations": [3, 2]}, 1), (7, (300,), (31,), {"pads": [15, 15]}, 1),
             (3, (1000,), (3,), {"dilations": [9], "pads": [9, 9]}, 3), (2, (70, 129), (1, 9), {}, 1), (3, (129, 112), (1, 1), {}, 2),
             (2, (20, 15), (19, 3), {"pads": [9, 1, 9, 1]}, 1), (1, (5, 4000), (2, 64), {}, 4),
             (5, (100, 3), (1, 1), {}, 1), (3, (7, 7), (1, 1), {}, 4), (6, (11, 13, 5), (1, 1, 1), {}, 1), (2, (131, 263), (1, 1), {}, 1)]


def depthwise(case, bias=True, behind=(), batch=2, declared=None):
    channels, image, kernel, attributes, times = case
    b, shape = Builder(9), [batch, channels, *image]
    x = b.input("x", TensorProto.FLOAT, declared or shape)
    more = [b.weight(channels * times)] if bias else []
    y = b.op("Conv", x, b.weight(channels * times, 1, *kernel), *more, group=channels, **attributes)
    for op in behind:
        y = b.op(op, y)
    b.output(y, "y", [None] * len(shape))
    return b.model("depthwise"), {"x": np.random.default_rng(6).standard_normal(shape).astype(np.float32)}


@pytest.mark.parametrize("behind", [(), ("Relu",), ("Tanh",)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", DEPTHWISE)
def test_planes_of_planes(tmp_path, case, bias, behind):
    model, feeds = depthwise(case, bias, behind)
    check_against_reference(tmp_path, model, feeds, "--max-rel", "2e-5", ways=WAYS)


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("case, behind", [(DEPTHWISE[1], ()), (DEPTHWISE[-2], ()), (DEPTHWISE[-2], ("Relu",))])
def test_planes_at_every_level(tmp_path, case, behind, level):
    model, feeds = depthwise(case, behind=behind)
    check_against_reference(tmp_path, model, feeds, "--max-rel", "2e-5", ways=[("--level", level)])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_stays_where_the_kernel_meets_it(tmp_path, value):
    model, feeds = depthwise(DEPTHWISE[0], batch=1)
    feeds["x"][0, 2, 7, 11] = value
    check_against_reference(tmp_path, model, feeds, "--max-rel", "2e-5", ways=WAYS)


def test_a_kernel_too_large_for_any_memory_is_an_error(tmp_path):
    model, feeds = depthwise((2, (20, 32), (2, 2), {"dilations": [2 ** 31, 2 ** 31], "pads": [0, 0, 2 ** 31, 2 ** 31]}, 1))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    done = linnet("run", tmp_path / "m.onnx")
    assert done.returncode == 2 and done.stderr.startswith("linnet run: ")


@pytest.mark.parametrize("case", DEPTHWISE[:3] + DEPTHWISE[-4:])
def test_no_plane_is_brought_into_another_order(tmp_path, case):
    model, _ = depthwise(case)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", "--json")
    assert json.loads(done.stdout)["relayouts"] == 0


@pytest.mark.parametrize("shape", [[2, 24, 7, 9], [1, 8, 2, 4], [1, 37, 13, 11], [3, 130, 70], [1, 16, 3, 5, 8], [1, 9, 1, 7],
                                   [0, 9, 5, 5]])
def test_halves_are_brought_into_order_as_they_are_cast(tmp_path, shape):
    """ops/elementwise/cast_order.c: a Conv of more than one tap reads pixels."""
    b = Builder(8)
    x = b.op("Cast", b.input("x", TensorProto.FLOAT16, shape), to=TensorProto.FLOAT)
    taps = [3] * (len(shape) - 2)
    y = b.op("Conv", x, b.weight(20, shape[1], *taps), pads=[1] * 2 * len(taps))
    b.output(y, "y", [None] * len(shape))
    feeds = {"x": np.random.default_rng(6).standard_normal(shape).astype(np.float16)}
    check_against_reference(tmp_path, b.model("halves"), feeds, "--max-rel", "2e-5", ways=WAYS)
