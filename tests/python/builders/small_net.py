"""A small convolution net with seeded weights: strided, grouped and depthwise convolutions, pooling, a matrix product."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def build(seed=1):
    rng = np.random.default_rng(seed)
    weights = {
        "w1": (8, 3, 3, 3), "b1": (8,),
        "w2": (8, 1, 3, 3), "b2": (8,),
        "w3": (24, 4, 1, 1), "b3": (24,),
        "w4": (24, 10), "b4": (10,),
    }
    initializers = [numpy_helper.from_array((rng.standard_normal(shape) / 3).astype(np.float32), name)
                    for name, shape in weights.items()]
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"]),
        node("Conv", ["r1", "w2", "b2"], ["c2"], group=8, pads=[1, 1, 1, 1]),
        node("Add", ["c2", "r1"], ["s2"]),
        node("Conv", ["s2", "w3", "b3"], ["c3"], group=2),
        node("HardSwish", ["c3"], ["h3"]),
        node("GlobalAveragePool", ["h3"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w4", "b4"], ["l"]),
        node("Softmax", ["l"], ["y"], axis=1),
    ]
    graph = helper.make_graph(nodes, "small_net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 20, 20])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def save(path):
    onnx.save(build(), path)
