"""A little syntax for building ONNX graphs: nodes return the names of their outputs, numpy arrays become
initializers."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    def __init__(self, seed):
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []
        self.rng = np.random.default_rng(seed)
        self.count = 0

    def name(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def constant(self, value, dtype=None):
        name = self.name("c")
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape, scale=None):
        """Seeded normal weights; by default scaled so that sums over all but the first axis keep their size."""
        scale = scale if scale is not None else 1 / np.sqrt(max(1, np.prod(shape[1:])))
        return self.constant(self.rng.standard_normal(shape) * scale, np.float32)

    def op(self, kind, *inputs, outputs=1, **attributes):
        """Inputs: names, or lists and numbers (int64 or float constants), or arrays."""
        names = [x if isinstance(x, str) else self.constant(x) if isinstance(x, np.ndarray) else
                 self.constant(x, np.float32 if isinstance(x, float) else np.int64) for x in inputs]
        out = [self.name(kind) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, names, out, name=out[0], **attributes))
        return out[0] if outputs == 1 else out

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, name, shape, dtype=TensorProto.FLOAT):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def dim(self, x, axis):
        """Extent of x along axis, as exporters write it: a list of one."""
        return self.op("Gather", self.op("Shape", x), [axis])

    def concat_dims(self, *parts):
        return self.op("Concat", *[p if isinstance(p, str) else [p] for p in parts], axis=0)

    def conv1d(self, x, c_in, c_out, k, dilation=1, groups=1, bias=True):
        weights = [self.weight(c_out, c_in // groups, k)] + ([self.weight(c_out, scale=0.1)] if bias else [])
        pad = (k - 1) * dilation // 2
        return self.op("Conv", x, *weights, dilations=[dilation], group=groups, pads=[pad, k * dilation - dilation - pad])

    def model(self, name):
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model
