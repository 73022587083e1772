"""Conv of one tap between images in ONNX order: the weights times the planes (ops/conv/conv_matrix.c)."""

import json

import numpy as np
import pytest
from onnx import TensorProto

from builder import Builder
from harness import check_against_reference, linnet

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", 3), ("--opt", "all", "--level", "scalar"))
# image, features, groups
SHAPES = [([1, 64, 9, 13], 40, 1), ([3, 33, 17, 19], 45, 1), ([1, 192, 200], 390, 1), ([2, 8, 3, 6, 7], 200, 1), ([1, 5, 31, 41], 1, 1),
          ([2, 24, 7, 9], 30, 3), ([1, 600, 8, 8], 20, 1), ([1, 16, 1, 17], 12, 1), ([1, 20, 5, 3], 7, 1), ([1, 6, 4000], 3, 1)]


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

