"""Functions of double that have loops of their own: every level against the C library, up to both ends of their range."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness import linnet
from linnet_ctypes import check_every_level

ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 710, 709.78, -745.1, -746, -708.5, 1e-310, -1e-310, 1e-9, 20, 19, -20, 1e300, -1e300, 0.5]


@pytest.mark.parametrize("op, function", [("Exp", np.exp), ("Tanh", np.tanh), ("Sqrt", np.sqrt)])
def test_doubles(tmp_path, op, function):
    x = np.concatenate([ENDS, np.random.default_rng(4).uniform(-40, 40, 1000)]).reshape(1, -1)
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "line",
                              [helper.make_tensor_value_info("x", TensorProto.DOUBLE, x.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.DOUBLE, x.shape)])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "d.onnx")
    done = linnet("convert", tmp_path / "d.onnx", "-o", tmp_path / "d.lnt")
    assert done.returncode == 0, done.stderr
    with np.errstate(all="ignore"):
        check_every_level(tmp_path / "d.lnt", x, function(x), rtol=1e-15, atol=0)
