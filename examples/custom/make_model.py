#!/usr/bin/env python3
"""make_model.py OUT.onnx: y = acme.Hysteresis(x / 10), on at 0.7, off below 0.3."""

import sys

import onnx
from onnx import TensorProto, helper, numpy_helper
import numpy as np

graph = helper.make_graph(
    [helper.make_node("Div", ["x", "ten"], ["scaled"]),
     helper.make_node("Hysteresis", ["scaled"], ["y"], domain="acme", low=0.3, high=0.7)],
    "switch", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N"])], [numpy_helper.from_array(np.float32(10), "ten")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)], ir_version=8)
onnx.save(model, sys.argv[1])
