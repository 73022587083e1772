"""Max and Min with constants, which limit what they are given: NaN on either side stays NaN, and a constant of more axes
gives them to the result."""

import numpy as np
import onnx.parser
import pytest

from harness import check_against_reference

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
X = np.float32([[np.nan, -np.inf, -2, -0.4, 0.25, np.inf]])

GRAPHS = {
    "larger": ("float[1,6] y", "float l = {-0.4}", "y = Max (x, l)"),
    "smaller": ("float[1,6] y", "float[1,1] l = {0.25}", "y = Min (l, x)"),
    "both, of three": ("float[1,6] y", "float l = {-1}, float h = {0.25}", "a = Max (l, x, l)  y = Min (a, h, x)"),
    "beyond each other": ("float[1,6] y", "float l = {1}, float h = {-1}", "a = Max (x, l)  y = Min (a, h)"),
    "more axes": ("float[1,1,6] y", "float[1,1,1] l = {0}", "y = Max (x, l)"),
    "one for each": ("float[1,6] y", "float[6] l = {0, 1, 0, 1, 0, 1}", "y = Max (x, l)"),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_limits(tmp_path, name):
    out, constants, nodes = GRAPHS[name]
    model = onnx.parser.parse_model(f"{HEAD}f (float[1,6] x) => ({out}) <{constants}> {{ {nodes} }}")
    check_against_reference(tmp_path, model, {"x": X})


def test_nan_is_no_limit(tmp_path):
    model = onnx.parser.parse_model(f"{HEAD}f (float[1,6] x, float l) => (float[1,6] y) {{ y = Max (x, l) }}")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(np.nan), "l"))
    del model.graph.input[1]
    check_against_reference(tmp_path, model, {"x": X})
