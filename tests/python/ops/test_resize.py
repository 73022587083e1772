"""Resize by nearest where sources lie on an element, or between two, but for the rounding of their coordinates."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from harness import check_against_reference, linnet
from builder import Builder
from linnet_ctypes import check_every_level

TRANSFORMS = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize"]
UNROUNDED = ("align_corners", "tf_crop_and_resize")  # go by the width of scales before it is rounded down; onnxruntime's is rounded


@pytest.mark.parametrize("given", ["scales", "sizes"])
@pytest.mark.parametrize("nearest", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.UINT8])
def test_nearest(tmp_path, dtype, transform, nearest, given):
    if transform == "half_pixel_symmetric" and nearest in ("floor", "ceil"):
        pytest.skip("onnxruntime adds up in double what it divides in float")
    shape, b = [2, 1, 23, 100], Builder(19)
    x = b.input("x", dtype, shape)
    roi = b.constant(np.array([0, 0, 0.1, 0.1, 1, 1, 0.9, 0.9], np.float32))
    for i, scale in enumerate((1.7, 0.6, 1.3, 2.5, 3.1, 0.33, 3)):
        scales = np.array([1, 1, scale, scale], np.float32)
        sizes = (shape * scales).astype(np.int64)
        if given == "scales" and transform in UNROUNDED and (sizes != shape * scales).any():
            continue
        by = [b.constant(scales)] if given == "scales" else ["", b.constant(sizes)]
        b.output(b.op("Resize", x, roi, *by, mode="nearest", nearest_mode=nearest, coordinate_transformation_mode=transform),
                 f"y{i}", [None] * 4, dtype)
    feeds = {"x": np.arange(4600).reshape(shape).astype(np.uint8 if dtype == TensorProto.UINT8 else np.float32)}
    model = b.model("nearest")
    model.opset_import[0].version = 19
    check_against_reference(tmp_path, model, feeds, "--max-rel", "0")


@pytest.mark.parametrize("high", [1, 2])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 48, 49, 97])
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.UINT8, TensorProto.DOUBLE])
def test_doubled(tmp_path, dtype, n, high):
    b = Builder(19)
    x = b.input("x", dtype, [2, 3, n])
    scales = b.constant(np.array([1, high, 2], np.float32))
    b.output(b.op("Resize", x, "", scales, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric"), "y",
             [2, 3 * high, 2 * n], dtype)
    model = b.model("doubled")
    model.opset_import[0].version = 19
    feed = np.arange(6 * n).reshape(2, 3, n).astype(helper.tensor_dtype_to_np_dtype(dtype))
    onnx.save(model, tmp_path / "d.onnx")
    done = linnet("convert", tmp_path / "d.onnx", "-o", tmp_path / "d.lnt")
    assert done.returncode == 0, done.stderr
    check_every_level(tmp_path / "d.lnt", feed, feed.repeat(high, axis=1).repeat(2, axis=2), "y", rtol=0)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("transform", ["half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("shape, to", [([2, 64, 10, 7], [5, 3]), ([1, 70, 9, 10], [23, 17]), ([3, 50, 14], [21]),
                                       ([1, 8, 40, 10], [80, 30]), ([2, 3, 9, 33], [30, 60])])
def test_planes_side_by_side(tmp_path, shape, to, transform, mode):
    """Short rows of many planes are sums over taps; groups and lists of them end within a plane, too."""
    if mode == "cubic" and len(to) != 2:
        pytest.skip("onnxruntime has cubic for images alone")
    b = Builder(19)
    x = b.input("x", TensorProto.FLOAT, shape)
    sizes = b.constant(np.array(shape[:2] + to, np.int64))
    b.output(b.op("Resize", x, "", "", sizes, mode=mode, coordinate_transformation_mode=transform), "y", [None] * len(shape))
    model = b.model("planes")
    model.opset_import[0].version = 19
    check_against_reference(tmp_path, model, {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)})


@pytest.mark.parametrize("shape, to", [([1, 2, 6, 9, 5], [9, 5, 10]), ([1, 2, 6, 5, 5], [9, 20, 10]), ([2, 8, 6, 7, 8], [3, 9, 12])])
def test_volumes(tmp_path, shape, to):
    """Rows of inputs are kept where the next rows along the last outer axis use them, and else are mixed first."""
    b = Builder(19)
    x = b.input("x", TensorProto.FLOAT, shape)
    sizes = b.constant(np.array(shape[:2] + to, np.int64))
    b.output(b.op("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel"), "y", [None] * 5)
    model = b.model("volumes")
    model.opset_import[0].version = 19
    check_against_reference(tmp_path, model, {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)})


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16])
def test_integers_round_and_saturate(tmp_path, kind):
    """Cubic sums of exact binary fractions: half to even, and beyond the type its limits."""
    b, limits, shape = Builder(19), np.iinfo(kind), [1, 3, 7, 61]
    rng = np.random.default_rng(5)
    x = np.where(rng.random(shape) < 0.5, rng.choice([limits.min, limits.max], shape), rng.integers(0, 9, shape)).astype(kind)
    of_type = helper.np_dtype_to_tensor_dtype(x.dtype)

    def resize(b, dtype):
        scales = b.constant(np.array([1, 1, 1, 2], np.float32))
        b.output(b.op("Resize", b.input("x", dtype, shape), "", scales, mode="cubic", coordinate_transformation_mode="asymmetric"),
                 "y", [None] * 4, dtype)
        model = b.model("integers")
        model.opset_import[0].version = 19
        return model

    onnx.save(resize(b, of_type), tmp_path / "r.onnx")
    done = linnet("convert", tmp_path / "r.onnx", "-o", tmp_path / "r.lnt")
    assert done.returncode == 0, done.stderr
    session = onnxruntime.InferenceSession(resize(Builder(19), TensorProto.FLOAT).SerializeToString())
    sums = session.run(None, {"x": x.astype(np.float32)})[0]
    assert (sums < limits.min).any() and (sums > limits.max).any() and (sums % 1 == 0.5).any()
    check_every_level(tmp_path / "r.lnt", x, np.clip(np.rint(sums), limits.min, limits.max).astype(kind), "y", rtol=0)
