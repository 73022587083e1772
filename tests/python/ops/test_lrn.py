"""LRN against its formula in double precision (onnxruntime's sums keep rounding errors of channels gone by, and it has
neither even sizes nor doubles): windows of every kind of size, planes that do and do not fill a piece of work, any
number of threads."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from harness import check_against

WAYS = (("--opt", "none"), ("--opt", "all", "--threads", 3), ("--opt", "all", "--level", "scalar"))


def formula(x, size, alpha, beta, bias):
    before, channels = (size - 1) // 2, x.shape[1]
    squares = np.pad(x.astype(np.float64) ** 2, ((0, 0), (before, size - 1 - before), (0, 0), (0, 0)))
    total = sum(squares[:, i:i + channels] for i in range(size))
    return (x / (np.float32(bias) + np.float64(np.float32(alpha)) / size * total) ** np.float64(np.float32(beta)))


def check(folder, shape, element=TensorProto.FLOAT, bound="1e-6", **attributes):
    of = helper.tensor_dtype_to_np_dtype(element)
    x = (np.random.default_rng(3).standard_normal(shape) * 3).astype(of)
    graph = helper.make_graph(
        [helper.make_node("LRN", ["x"], ["y"], **attributes)], "norm",
        [helper.make_tensor_value_info("x", element, shape)], [helper.make_tensor_value_info("y", element, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    check_against(folder, model, {"x": x}, [formula(x, **attributes).astype(of)], "--max-rel", bound, ways=WAYS)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 19])
@pytest.mark.parametrize("extents", [(1, 1), (3, 5), (15, 17), (16, 16), (1, 257), (20, 30)])
def test_extents(tmp_path, size, extents):
    check(tmp_path, (2, 7, *extents), size=size, alpha=0.1, beta=0.6, bias=1.5)


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.75, 1.0, 2.5, -0.5])
def test_powers(tmp_path, beta):
    check(tmp_path, (1, 6, 9, 11), size=3, alpha=0.5, beta=beta, bias=0.25)


@pytest.mark.parametrize("size", [3, 4])
def test_of_doubles(tmp_path, size):
    check(tmp_path, (2, 6, 9, 31), TensorProto.DOUBLE, "1e-12", size=size, alpha=0.1, beta=0.75, bias=1.0)
