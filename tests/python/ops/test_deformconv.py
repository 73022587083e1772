"""DeformConv as onnxruntime has it: groups of channels and of offsets, masks, offsets that lead beyond the image, more
taps than one piece of work has, any number of threads."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from harness import check_against_reference

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", 3))


def check(folder, channels, extents, kernel, offset_groups=1, group=1, mask=True, element=TensorProto.FLOAT):
    images, filters, taps = 2, 4, kernel[0] * kernel[1]
    rng, of = np.random.default_rng(3), helper.tensor_dtype_to_np_dtype(element)
    shapes = {"x": (images, channels, *extents), "w": (filters, channels // group, *kernel),
              "offset": (images, offset_groups * taps * 2, *extents), "bias": (filters,)}
    if mask:
        shapes["mask"] = (images, offset_groups * taps, *extents)
    feeds = {name: rng.standard_normal(shape).astype(of) for name, shape in shapes.items()}
    node = helper.make_node("DeformConv", list(shapes), ["y"], pads=[(k - 1) // 2 for k in kernel] * 2, group=group,
                            offset_group=offset_groups)
    graph = helper.make_graph(
        [node], "deformed", [helper.make_tensor_value_info(name, element, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", element, (images, filters, *extents))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    model.ir_version = 8
    check_against_reference(folder, model, feeds, "--max-rel", "1e-4", ways=WAYS)


@pytest.mark.parametrize("groups", [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("mask", [False, True])
def test_groups(tmp_path, groups, mask):
    check(tmp_path, 10, (6, 9), (3, 3), *groups, mask=mask)


def test_more_taps_than_a_piece_has(tmp_path):
    check(tmp_path, 3, (5, 4), (23, 25))


def test_of_doubles(tmp_path):
    check(tmp_path, 6, (6, 9), (3, 3), 2, element=TensorProto.DOUBLE)
