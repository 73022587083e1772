"""Softmax, LogSoftmax and Hardmax of many short rows, which are worked on as columns: every level and several threads against
numpy in double precision."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness import linnet
from linnet_ctypes import check_every_level

TOLERANCE = {TensorProto.FLOAT: 4e-6, TensorProto.DOUBLE: 1e-14, TensorProto.FLOAT16: 2e-3}


def rows_of(rows, n, kind):
    x = np.random.default_rng(rows * 100 + n).standard_normal((rows, n)) * 5
    x[0, 0], x[-1, -1], x[1, 0] = 80, -80, -np.inf if n > 1 else 0
    return x.astype(helper.tensor_dtype_to_np_dtype(kind))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("rows, n", [(64, 1), (4420, 2), (65, 3), (1000, 16), (1000, 17), (63, 5)])
def test_short_rows(tmp_path, op, kind, rows, n):
    x = rows_of(rows, n, kind)
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], axis=-1)], "rows",
                              [helper.make_tensor_value_info("x", kind, x.shape)],
                              [helper.make_tensor_value_info("y", kind, x.shape)])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "s.onnx")
    done = linnet("convert", tmp_path / "s.onnx", "-o", tmp_path / "s.lnt")
    assert done.returncode == 0, done.stderr
    shifted = x.astype(np.float64) - x.max(1, keepdims=True)
    want = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    want = np.exp(want) if op == "Softmax" else want
    check_every_level(tmp_path / "s.lnt", x, want, rtol=TOLERANCE[kind], atol=TOLERANCE[kind])


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("shape, axis", [([65, 3], 1), ([1000, 16], 1), ([9, 130], 1), ([2, 21, 67], 1), ([5, 300], 0), ([3, 1, 7], 1),
                                         ([70, 3, 2], 1), ([33, 16, 15], 1), ([2, 300, 15], 1), ([5000, 2], 0), ([300, 33], 1),
                                         ([70, 40, 3], 1)])
def test_hardmax(tmp_path, kind, shape, axis):
    """1 where the first of the largest is, or the first NaN."""
    rng = np.random.default_rng(len(shape))
    x = rng.integers(-4, 5, shape).astype(helper.tensor_dtype_to_np_dtype(kind))
    x[rng.random(shape) < 0.1] = -np.inf
    x[rng.random(shape) < 0.02] = np.nan
    graph = helper.make_graph([helper.make_node("Hardmax", ["x"], ["y"], axis=axis)], "rows",
                              [helper.make_tensor_value_info("x", kind, x.shape)],
                              [helper.make_tensor_value_info("y", kind, x.shape)])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "s.onnx")
    done = linnet("convert", tmp_path / "s.onnx", "-o", tmp_path / "s.lnt")
    assert done.returncode == 0, done.stderr
    at = np.expand_dims(x.argmax(axis), axis)  # of numpy, too, NaN is larger than any number
    want = np.zeros_like(x)
    np.put_along_axis(want, at, 1, axis)
    check_every_level(tmp_path / "s.lnt", x, want, rtol=0, atol=0)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("shape", [(70, 3, 2), (33, 16, 15), (9, 5, 8), (3, 17, 5), (2, 300, 15), (2, 2, 700), (3, 50, 33), (2, 27, 100),
                                   (4, 13, 129)])
def test_narrow_columns(tmp_path, op, kind, shape):
    """Few elements behind the axis: images side by side, their columns as rows, or rows several as one."""
    x = np.random.default_rng(shape[1]).standard_normal(shape) * 5
    x[0, 0, 0], x[0, -1, -1] = 80, -np.inf
    x = x.astype(helper.tensor_dtype_to_np_dtype(kind))
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], axis=1)], "columns",
                              [helper.make_tensor_value_info("x", kind, shape)],
                              [helper.make_tensor_value_info("y", kind, shape)])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "s.onnx")
    done = linnet("convert", tmp_path / "s.onnx", "-o", tmp_path / "s.lnt")
    assert done.returncode == 0, done.stderr
    shifted = x.astype(np.float64) - x.max(1, keepdims=True)
    want = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    want = np.exp(want) if op == "Softmax" else want
    check_every_level(tmp_path / "s.lnt", x, want, rtol=TOLERANCE[kind], atol=TOLERANCE[kind])
