"""bench --trace counts the multiply-adds of a run: against what is counted by hand."""

import json

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from harness import linnet


def weights(name, *dims):
    return numpy_helper.from_array(np.ones(dims, np.float32), name)


CASES = {  # operator: (inputs, weights, attributes, multiply-adds)
    "MatMul": ([[2, 3, 5]], [weights("w", 5, 7)], {}, 2 * 3 * 5 * 7),
    "Gemm": ([[5, 3]], [weights("w", 7, 5)], {"transA": 1, "transB": 1}, 3 * 5 * 7),
    "Conv": ([[1, 6, 9, 9]], [weights("w", 8, 3, 3, 3)], {"group": 2, "strides": [2, 2]}, 4 * 4 * 8 * 3 * 9),
    "ConvTranspose": ([[1, 6, 5, 5]], [weights("w", 6, 4, 2, 2)], {"strides": [2, 2]}, 25 * 6 * 4 * 4),
    "LSTM": ([[4, 2, 3]], [weights("w", 2, 20, 3), weights("r", 2, 20, 5)],
             {"hidden_size": 5, "direction": "bidirectional"}, 4 * 2 * 2 * 20 * (3 + 5)),
    "Attention": ([[1, 2, 6, 4], [1, 2, 9, 4], [1, 2, 9, 8]], [], {}, 2 * 6 * 9 * (4 + 8)),
    "Relu": ([[3, 4]], [], {}, 0),
}


@pytest.mark.parametrize("op", CASES)
def test_multiply_adds(op, tmp_path):
    inputs, initializers, attributes, expected = CASES[op]
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names + [w.name for w in initializers], ["y"], **attributes)
    graph = helper.make_graph([node], op,
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n, dims in zip(names, inputs)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    save(model, tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    done = linnet("bench", tmp_path / "m.lnt", "--runs", 2, "--trace", "--json")
    assert json.loads(done.stdout)["multiply_adds"] == expected
