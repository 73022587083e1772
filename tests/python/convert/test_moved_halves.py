"""Halves that a model only moves are moved as they are; what something computes with is float from its input on."""

import json

import numpy as np
import pytest
from onnx import TensorProto, helper

from harness import check_against_reference, linnet, write_case
from small_int8 import model_of

HALF = TensorProto.FLOAT16
X = np.random.default_rng(4).standard_normal((2, 6, 4)).astype(np.float16)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def picked(op, indices, **attributes):
    value = helper.make_tensor("i", TensorProto.INT64, np.shape(indices), np.ravel(indices))
    return [node("Constant", [], ["i"], value=value), node(op, ["x", "i"], ["y"], **attributes)]


# nodes, and whether anything is computed
MODELS = {
    "one": ([node("Transpose", ["x"], ["y"], perm=[1, 0, 2])], False),
    "some": ([node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), node("Concat", ["t", "t"], ["y"], axis=2)], False),
    "surrounded": ([node("Pad", ["x", "two", "", ""], ["t"], mode="reflect"), node("Pad", ["t", "two", "half"], ["y"])], False),
    "triangles": ([node("Trilu", ["x"], ["t"]), node("ReverseSequence", ["t", "lengths"], ["y"], time_axis=1, batch_axis=0)], False),
    "cropped": ([node("CenterCropPad", ["x", "extents"], ["y"])], False),
    "rows of a table": (picked("Gather", [5, 0, 3], axis=1), False),
    "elements": (picked("GatherElements", [[[1, 0, 1, 1]] * 6], axis=0), False),
    "parts": (picked("GatherND", [[1, 5], [0, 2], [1, 1]]), False),
    "rows of a table that are computed with": (picked("Gather", [1, 0], axis=0)[:1] +
                                               [node("Gather", ["x", "i"], ["t"]), node("Exp", ["t"], ["y"])], True),
    "beside a product of another input": ([node("Transpose", ["x"], ["y"], perm=[1, 0, 2]), node("Mul", ["z", "z"], ["w"])], True),
    "before something that computes": ([node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), node("Exp", ["t"], ["y"])], True),
    "and computed with, too": ([node("Transpose", ["x"], ["y"], perm=[1, 0, 2]), node("Exp", ["x"], ["w"])], True),
}
CONSTANTS = {"two": np.array([0, 1, 1, 0, 0, 1]), "half": np.array(0.5, np.float16),
             "lengths": np.array([3, 6]), "extents": np.array([2, 9, 2])}


@pytest.mark.parametrize("name", MODELS)
def test_moves(tmp_path, name):
    nodes, computes = MODELS[name]
    made = {o for n in nodes for o in n.output}
    inputs = [i for i in ("x", "z") if any(i in n.input for n in nodes)]
    outputs = [o for o in ("y", "w") if o in made]
    constants = {c: value for c, value in CONSTANTS.items() if any(c in n.input for n in nodes)}
    model = model_of(nodes, [(i, HALF, X.shape) for i in inputs], [(o, HALF, None) for o in outputs], constants)
    feeds = {i: X for i in inputs}
    case = write_case(tmp_path, model, feeds, [])
    lnt = tmp_path / "m.lnt"
    assert linnet("convert", case / "model.onnx", "-o", lnt).returncode == 0
    operators = json.dumps(json.loads(linnet("info", lnt, "--json").stdout)["operators"])
    assert ("Cast" in operators or "Elementwise" in operators) == computes
    check_against_reference(tmp_path / "checked", model, feeds, "--max-rel", "1e-3")
