"""Functions of double that have loops of their own: every level against the C library, up to both ends of their range; and
doubles cut to integers."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness import linnet
from linnet_ctypes import check_every_level

ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 710, 709.78, -745.1, -746, -708.5, 1e-310, -1e-310, 1e-9, 20, 19, -20, 1e300, -1e300, 0.5]


def convert(folder, node, x, dtype):
    graph = helper.make_graph([node], "line",
                              [helper.make_tensor_value_info("x", TensorProto.DOUBLE, x.shape)],
                              [helper.make_tensor_value_info("y", dtype, x.shape)])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), folder / "d.onnx")
    done = linnet("convert", folder / "d.onnx", "-o", folder / "d.lnt")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("op, function", [("Exp", np.exp), ("Tanh", np.tanh), ("Sqrt", np.sqrt)])
def test_doubles(tmp_path, op, function):
    x = np.concatenate([ENDS, np.random.default_rng(4).uniform(-40, 40, 1000)]).reshape(1, -1)
    convert(tmp_path, helper.make_node(op, ["x"], ["y"]), x, TensorProto.DOUBLE)
    with np.errstate(all="ignore"):
        check_every_level(tmp_path / "d.lnt", x, function(x), rtol=1e-15, atol=0)


@pytest.mark.parametrize("to", ["int8", "uint8", "int16", "uint16", "int32", "int64"])
def test_cut_to_integers(tmp_path, to):
    """What the type does not hold, as far as int32 does, is its last bits."""
    wide = np.random.default_rng(5).uniform(-2**31, 2**31, 1001)
    x = np.concatenate([[0.0, -0.9, 0.9, 127.9, -128.9, 255.5, 65535.9, -32768.9, 2147483647.9, -2147483648.9], wide, wide / 2**20])
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    convert(tmp_path, helper.make_node("Cast", ["x"], ["y"], to=dtype), x.reshape(1, -1), dtype)
    check_every_level(tmp_path / "d.lnt", x.reshape(1, -1), x.astype(np.int64).astype(to).reshape(1, -1), rtol=0, atol=0)
