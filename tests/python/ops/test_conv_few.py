"""Convolutions of few channels or to few features, for each group or in all: groups of more channels than features, one feature between
planes, small images with much padding, and transposed ones whose taps never meet, as onnxruntime has them."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import check_against_reference

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", 3))
CASES = {
    "groups of two": ("Conv", 70, 35, (9, 21), 3, 1, 3, 35),
    "groups of four": ("Conv", 68, 17, (7, 9), 3, 2, 1, 17),
    "groups of four to two": ("Conv", 44, 22, (6, 5, 7), 3, 1, 1, 11),
    "groups of eight to four": ("Conv", 40, 20, (8, 19), 5, 1, 1, 5),
    "one feature of one tap": ("Conv", 24, 1, (9, 11), 1, 1, 1, 1),
    "one feature of one tap, three axes": ("Conv", 24, 1, (4, 5, 6), 1, 1, 1, 1),
    "much padding": ("Conv", 12, 1, (5, 5, 5), 3, 1, 2, 1),
    "spread along three axes": ("ConvTranspose", 16, 3, (3, 4, 5), 3, 3, 1, 1),
    "spread along three axes to one": ("ConvTranspose", 16, 1, (5, 9, 33), 2, 2, 1, 1),
    "short rows of three channels": ("Conv", 3, 34, (9, 21), 7, 1, 1, 1),
    "short rows, strides": ("Conv", 4, 32, (19, 35), 5, 2, 1, 1),
    "lines to three": ("Conv", 36, 9, (350,), 3, 1, 1, 3),
    "rows to two": ("Conv", 20, 8, (7, 61), 5, 1, 2, 4),
    "short rows to one": ("Conv", 35, 7, (11, 9), 3, 1, 1, 7),
    "short rows to three": ("Conv", 10, 6, (9, 22), 3, 1, 3, 2),
    "rows of many channels to fifteen": ("Conv", 48, 30, (5, 46), 3, 1, 1, 2),
    "short lines to one": ("Conv", 50, 10, (37,), 3, 1, 1, 10),
    "planes to one": ("Conv", 3, 1, (70, 71), 5, 1, 1, 1),
    "planes to four": ("Conv", 16, 4, (41, 100), 3, 1, 2, 1),
    "a plane to two": ("Conv", 1, 2, (23, 19), 3, 1, 1, 1),
    "a line to one": ("Conv", 1, 1, (700,), 31, 1, 1, 1),
    "planes times factors": ("Conv", 20, 20, (67, 64), 1, 1, 3, 20),
    "planes times two factors": ("Conv", 6, 12, (17, 16), 1, 1, 2, 6),
    "planes, stride of two": ("Conv", 9, 9, (57, 56), 3, 2, 1, 9),
    "planes, stride of two, dilated": ("Conv", 6, 6, (64, 63), 3, 2, 2, 6),
    "planes, stride of two, of three each": ("Conv", 4, 12, (41, 61), 2, 2, 1, 4),
    "planes, every fourth": ("Conv", 10, 10, (40, 64), 1, 2, 1, 10),
    "planes, every fourth, bands": ("Conv", 8, 8, (401, 64), 1, 2, 1, 8),
    "narrow planes, stride of two": ("Conv", 6, 6, (70, 27), 4, 2, 1, 6),
    "planes, half a vector left": ("Conv", 6, 6, (21, 56), 7, 1, 1, 6),
    "planes, a few lanes left": ("Conv", 6, 6, (19, 51), 5, 1, 2, 6),
    "planes, a kernel of two lines": ("Conv", 6, 6, (17, 40), 2, 1, 1, 6),
    "planes of five": ("Conv", 5, 20, (33, 50), 3, 1, 1, 1),
    "planes of groups of three": ("Conv", 12, 40, (19, 61), 3, 2, 1, 4),
    "planes of groups of eight, dilated": ("Conv", 16, 38, (17, 48), 3, 1, 3, 2),
    "joined lines": ("Conv", 2, 33, (41, 10), 3, 1, 1, 1),
    "joined lines of groups, dilated": ("Conv", 6, 64, (57, 17), 5, 1, 2, 2),
    "joined lines of two": ("Conv", 1, 128, (29, 2), 3, 1, 1, 1),
    "joined lines of many features": ("Conv", 2, 60, (11, 97), 5, 1, 1, 1),
    "joined lines, a stride apart": ("Conv", 3, 33, (41, 75), 4, 4, 1, 1),
    "joined lines of groups, three apart": ("Conv", 6, 64, (70, 61), 3, 3, 1, 2),
    "joined lines of one tap in two, dilated": ("Conv", 4, 17, (95, 98), 2, 5, 3, 1),
    "lines of many features": ("Conv", 8, 165, (701,), 3, 2, 1, 1),
    "lines of groups": ("Conv", 42, 56, (160,), 5, 1, 1, 2),
    "planes of groups of four": ("Conv", 32, 32, (13, 23), 3, 1, 1, 8),
    "planes of groups of four, every fourth": ("Conv", 24, 36, (31, 45), 1, 2, 1, 6),
    "narrower planes, stride of two": ("Conv", 6, 6, (70, 41), 3, 2, 1, 6),
    "points, transposed": ("ConvTranspose", 16, 5, (9, 33), 1, 1, 1, 1),
    "spread to one": ("ConvTranspose", 16, 1, (40, 41), 2, 2, 1, 1),
    "spread, short lines": ("ConvTranspose", 20, 40, (300, 9), 3, 3, 1, 1),
    "spread, a long line": ("ConvTranspose", 16, 7, (2100,), 2, 2, 1, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_few(tmp_path, case):
    op, channels, features, extents, taps, stride, dilation, group = CASES[case]
    rng, n, turned = np.random.default_rng(5), len(extents), op == "ConvTranspose"
    pads = [0 if turned else dilation * (taps - 1) // 2] * 2 * n
    sizes = (channels, features) if turned else (features, channels // group)
    weights = {name: rng.standard_normal(shape).astype(np.float32)
               for name, shape in (("w", sizes + (taps,) * n), ("bias", (features,)))}
    x = rng.standard_normal((2, channels, *extents)).astype(np.float32)
    node = helper.make_node(op, ["x", "w", "bias"], ["y"], strides=[stride] * n, dilations=[dilation] * n, pads=pads,
                            group=group)
    out = [e * stride if turned else (e - 1) // stride + 1 for e in extents]
    graph = helper.make_graph(
        [node], "few", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, features, *out))],
        [numpy_helper.from_array(value, name) for name, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    model.ir_version = 8
    check_against_reference(tmp_path, model, {"x": x}, "--max-rel", "1e-4", ways=WAYS)
