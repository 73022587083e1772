"""The "light" models have real topologies and one number for all weights; here they get weights of their own.

Seeded. Convolutions keep the variance of what goes through them, batch normalization has means and variances of a
trained network's kind, and the last product is scaled so that a softmax behind it is not saturated."""

import numpy as np
import onnx
from onnx import numpy_helper


def _roles(graph):
    """value -> (operator, number of the operand) of the node that reads it, seen through Unsqueeze."""
    roles = {}
    for node in reversed(graph.node):
        for k, name in enumerate(node.input):
            roles[name] = roles.get(node.output[0]) if node.op_type == "Unsqueeze" else (node.op_type, k)
    return roles


def _weights(rng, role, shape):
    op, operand = role
    if op == "BatchNormalization":
        low, high = {1: (0.2, 0.6), 2: (-0.2, 0.2), 3: (-0.2, 0.2), 4: (0.5, 1.5)}[operand]
        return rng.uniform(low, high, shape)
    if len(shape) < 2:
        return rng.uniform(0.5, 1.5, shape) if op == "Mul" else rng.uniform(-0.1, 0.1, shape)
    fan_in = np.prod(shape[1:])
    return rng.standard_normal(shape) * np.sqrt((2 if op == "Conv" else 1) / fan_in)


def randomize(model, seed):
    """Puts initializers in the place of every ConstantOfShape of a constant shape that holds floats."""
    rng, graph = np.random.default_rng(seed), model.graph
    constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    roles, kept, made = _roles(graph), [], []
    for node in graph.node:
        shape = constants.get(node.input[0]) if node.op_type == "ConstantOfShape" else None
        if shape is None or node.output[0] not in roles:
            kept.append(node)
            continue
        value = _weights(rng, roles[node.output[0]], tuple(int(d) for d in shape)).astype(np.float32)
        made.append(numpy_helper.from_array(value, node.output[0]))
    assert made
    del graph.node[:]
    graph.node.extend(kept)
    graph.initializer.extend(made)
    model.ir_version = 8
    return onnx.shape_inference.infer_shapes(model)
