"""Models for onnxruntime to compute integer products of exactly, whatever the CPU.

On x86 CPUs with AVX2 or AVX-512 but without VNNI onnxruntime adds pairs of products of an unsigned and a signed byte in
16 bits, which saturate; where both are unsigned, or both signed, it adds in 32 bits. So weights take on the type of what
they meet: they and their zero points become 128 more or less, which leaves every sum as it is."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INT8, UINT8 = TensorProto.INT8, TensorProto.UINT8

# An input of the activations' type (float: onnxruntime makes unsigned bytes of them), one of weights, and their zero point.
PRODUCTS = {
    "MatMulInteger": [(0, 1, 3)], "ConvInteger": [(0, 1, 3)], "QLinearMatMul": [(2, 3, 5)], "QLinearConv": [(2, 3, 5)],
    "QGemm": [(2, 3, 5)], "MatMulIntegerToFloat": [(0, 1, 5)], "DynamicQuantizeMatMul": [(0, 1, 3)],
    "QAttention": [(0, 1, 7)], "DynamicQuantizeLSTM": [(0, 1, 9), (0, 2, 11)],
    "DequantizeLinear": [(1, 0, 2)],  # of constants: optimised, it may become part of a product
}


def source(model):
    """What onnxruntime is to load for a model (ModelProto, bytes or path)."""
    if isinstance(model, onnx.ModelProto):
        proto, given = model, None
    elif isinstance(model, bytes):
        proto, given = onnx.load_from_string(model), model
    else:
        proto, given = onnx.load(model), str(model)
    products = any(n.op_type in PRODUCTS for n in proto.graph.node)
    return rewritten(proto).SerializeToString() if products else given or proto.SerializeToString()


def rewritten(model):
    """A copy whose weights have the activations' type."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph, types = result.graph, types_of(model)
    constants, nodes, made = {t.name: t for t in graph.initializer}, [], set()

    def shifted(name, to):
        """The name of the tensor of type `to` that is 128 more or less than this one; an absent one is 0."""
        other = f"{name}_as_type_{to}"
        if other not in made:
            made.add(other)
            if name in constants or not name:
                value = numpy_helper.to_array(constants[name]) if name else np.int8(0)
                value = np.bitwise_xor(np.asarray(value).view(np.uint8), np.uint8(128))
                graph.initializer.append(numpy_helper.from_array(value.view(helper.tensor_dtype_to_np_dtype(to)), other))
            else:
                nodes.extend(computed(name, to, other))
        return other

    for node in [*graph.node]:
        for activations, weights, zero in PRODUCTS.get(node.op_type, ()):
            if node.op_type == "DequantizeLinear" and node.input[weights] not in constants:
                continue
            to = INT8 if types.get(node.input[activations]) == INT8 else UINT8
            if {types[node.input[weights]], to} == {INT8, UINT8}:
                node.input.extend([""] * (zero + 1 - len(node.input)))
                node.input[weights], node.input[zero] = shifted(node.input[weights], to), shifted(node.input[zero], to)
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    return result


def computed(name, to, other):
    """Nodes that shift what is no constant."""
    step = np.int32(128 if to == UINT8 else -128)
    return [helper.make_node("Constant", [], [f"{other}_step"], value=numpy_helper.from_array(np.asarray(step))),
            helper.make_node("Cast", [name], [f"{other}_wide"], to=TensorProto.INT32),
            helper.make_node("Add", [f"{other}_wide", f"{other}_step"], [f"{other}_sum"]),
            helper.make_node("Cast", [f"{other}_sum"], [other], to=to)]


def types_of(model):
    """Element types by name, as far as they can be inferred."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    types = {v.name: v.type.tensor_type.elem_type for v in (*graph.value_info, *graph.input, *graph.output)}
    return types | {t.name: t.data_type for t in graph.initializer}
