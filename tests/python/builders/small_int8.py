"""Small models of int8 operators, and values for them."""

import numpy as np
from onnx import helper, numpy_helper


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
