"""INT8: bytes packed in the file, agreement with onnxruntime."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import check_against_reference, linnet

F, I32 = TensorProto.FLOAT, TensorProto.INT32


def model_of(nodes, inputs, outputs, constants, opset=21, microsoft=False):
    def info(name, dtype, shape):
        return helper.make_tensor_value_info(name, dtype, shape)

    graph = helper.make_graph(nodes, "int8", [info(*i) for i in inputs], [info(*o) for o in outputs],
                              [numpy_helper.from_array(v, n) for n, v in constants.items()])
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid("com.microsoft", 1)] * microsoft
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def element_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def bytes_of(rng, dtype, *shape):
    """Random bytes, the least and the largest among them."""
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
    x.flat[0], x.flat[-1] = info.min, info.max
    return x


@pytest.mark.parametrize("a", [np.uint8, np.int8])
@pytest.mark.parametrize("b", [np.uint8, np.int8])
def test_constant_bytes_are_packed(tmp_path, a, b):
    rng = np.random.default_rng(1)
    weights = bytes_of(rng, b, 3, 37, 21)
    filters = bytes_of(rng, b, 12, 5, 3, 3)
    model = model_of(
        [helper.make_node("MatMulInteger", ["x", "w", "za", "zb"], ["y"]),
         helper.make_node("ConvInteger", ["image", "f", "za", "zf"], ["z"], group=2, pads=[1, 0, 1, 2])],
        [("x", element_type(a), ["N", 7, 37]), ("image", element_type(a), [2, 10, 9, 11])],
        [("y", I32, None), ("z", I32, None)],
        {"w": weights, "f": filters, "za": np.array(-5 if a is np.int8 else 130, a),
         "zb": np.array(3, b), "zf": np.array(-7 if b is np.int8 else 129, b)})
    feed = {"x": bytes_of(rng, a, 3, 7, 37), "image": bytes_of(rng, a, 2, 10, 9, 11)}
    check_against_reference(tmp_path, model, feed)
    report = json.loads(linnet("convert", tmp_path / "model.onnx", "-o", tmp_path / "m.lnt", "--json").stdout)
    assert report["packed_bytes"] >= weights.size + filters.size
    assert report["constant_bytes"] - report["packed_bytes"] < 16
    fetched = linnet("verify", tmp_path / "m.lnt")
    assert fetched.returncode == 0, fetched.stderr
