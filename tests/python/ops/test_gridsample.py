"""GridSample as onnxruntime has it: every mode, padding and alignment at points in, at the border of and far beyond the
image, few and many channels, more points than one piece of work has, any number of threads."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from harness import check_against_reference

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", 3))


def check(folder, channels, extents, points, opset=20, element=TensorProto.FLOAT, reach=1.2, **attributes):
    images = 2
    rng, of = np.random.default_rng(3), helper.tensor_dtype_to_np_dtype(element)
    feeds = {"x": rng.standard_normal((images, channels, *extents)).astype(of),
             "grid": rng.uniform(-reach, reach, (images, *points, len(extents))).astype(of)}
    corners = [[a, b] + [a] * (len(extents) - 2) for a in (-1, 0, 1) for b in (-1, 1)]
    feeds["grid"].reshape(images, -1, len(extents))[:, :6] = corners
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], **attributes)
    graph = helper.make_graph(
        [node], "samples",
        [helper.make_tensor_value_info(name, element, x.shape) for name, x in feeds.items()],
        [helper.make_tensor_value_info("y", element, (images, channels, *points))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    check_against_reference(folder, model, feeds, "--max-rel", "1e-4", ways=WAYS)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_modes(tmp_path, mode, padding, align):
    check(tmp_path, 3, (9, 14), (7, 5), mode=mode, padding_mode=padding, align_corners=align)


@pytest.mark.parametrize("channels", [1, 2, 4, 5, 7, 8])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_channels(tmp_path, channels, mode):
    check(tmp_path, channels, (6, 5), (4, 4), mode=mode)


@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("channels", [1, 3])
def test_nearest_in_pieces(tmp_path, padding, channels):
    check(tmp_path, channels, (9, 30), (40, 31), mode="nearest", padding_mode=padding, reach=2)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_more_points_than_a_piece_has(tmp_path, mode):
    check(tmp_path, 5, (11, 13), (37, 41), mode=mode)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_volumes(tmp_path, mode, padding):
    check(tmp_path, 6, (4, 7, 5), (9, 8, 9), mode=mode, padding_mode=padding)


@pytest.mark.parametrize("extents", [(1, 1), (1, 6), (6, 1), (2, 2)])
def test_few_elements(tmp_path, extents):
    check(tmp_path, 3, extents, (5, 5), mode="linear", reach=3)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_of_doubles(tmp_path, mode):
    check(tmp_path, 5, (9, 14), (7, 5), element=TensorProto.DOUBLE, mode=mode)


def test_first_version(tmp_path):
    check(tmp_path, 3, (9, 14), (7, 5), opset=16, mode="bilinear")
