"""Resize by nearest where sources lie on an element, or between two, but for the rounding of their coordinates."""

import numpy as np
import pytest
from onnx import TensorProto

from harness import check_against_reference
from builder import Builder

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
