"""Activations larger than halves: `convert --precision float16` scales them by powers of two, which changes no result."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import levels, linnet, reference
from linnet_ctypes import Model, Session

F = TensorProto.FLOAT
LARGE = 3e4  # what the first convolution gives for inputs of 1


class Net:
    def __init__(self):
        self.nodes, self.constants, self.rng = [], {}, np.random.default_rng(5)

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def add(self, op, *inputs, name=None, **attributes):
        name = name or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def weights(self, shape, fan, gain=1.0):
        return self.constant((self.rng.standard_normal(shape) * gain / np.sqrt(fan)).astype(np.float32))

    def conv(self, x, features, channels, kernel, gain=1.0, relu=True, **attributes):
        bias = self.constant((self.rng.standard_normal(features) * gain).astype(np.float32))
        y = self.add("Conv", x, self.weights((features, channels, kernel, kernel), channels * kernel**2, gain), bias,
                     pads=[kernel // 2] * 4, **attributes)
        return self.add("Relu", y) if relu else y

    def proto(self, outputs):
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", F, [1, 8, 20, 18])],
                                  [helper.make_tensor_value_info(name, F, None) for name in outputs],
                                  [numpy_helper.from_array(value, name) for name, value in self.constants.items()])
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])


def convert(folder, net, outputs, *options):
    proto = net.proto(outputs)
    onnx.save(proto, folder / "m.onnx")
    done = linnet("convert", folder / "m.onnx", "-o", folder / "m.lnt", "--json", "--precision", "float16", *options)
    assert done.returncode == 0, done.stderr
    layers = json.loads(done.stdout)["precision"]["layers"]
    feed = np.random.default_rng(9).standard_normal([1, 8, 20, 18]).astype(np.float32)
    for level in levels():
        session = Session(Model(folder / "m.lnt"), level=level).set(x=feed).run()
        for name, right in zip(outputs, reference(proto, {"x": feed})):
            assert np.abs(session.get(name) - right).max() <= 5e-3 * np.abs(right).max(), level
    return layers


def in_float(layers):
    return [layer for layer in layers if layer["weights"] != "float16"]


def trunk(net):
    """What lets a factor through, with values of 1e5."""
    x = net.conv("x", 24, 8, 3, LARGE)
    a = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    b = net.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    y = net.add("Concat", a, net.conv(b, 8, 24, 1), axis=1)
    z = net.conv(net.conv(y, 32, 1, 3, group=32, relu=False), 32, 32, 1, relu=False)
    y = net.add("LeakyRelu", net.add("Add", z, y), alpha=0.1)
    first, second = (net.add("Slice", y, *(net.constant(np.array([k])) for k in at)) for at in ((0, 16, 1), (16, 32, 1)))
    return net.add("Max", net.conv(first, 16, 16, 3), net.add("Sub", second, first))


def test_a_trunk_is_scaled_as_a_whole(tmp_path):
    net = Net()
    x = net.add("Flatten", net.add("GlobalAveragePool", trunk(net)))
    net.add("Gemm", x, net.weights((12, 16), 16, 1 / LARGE), net.constant(np.ones(12, np.float32)), name="y", transB=1)
    assert not in_float(convert(tmp_path, net, ["y"]))


@pytest.mark.parametrize("reader", ["Mul", "ReduceL2", "InstanceNormalization", "Resize", "Conv", "epilogue"])
def test_other_readers_get_values_as_they_were(tmp_path, reader):
    net = Net()
    x = trunk(net)
    if reader == "InstanceNormalization":
        net.add(reader, x, *(net.constant(np.full(16, k, np.float32)) for k in (2, 1)), name="y")
    elif reader == "Resize":
        x = net.add(reader, x, "", net.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest")
        net.add("Tanh", net.conv(x, 4, 16, 1, 1 / LARGE, relu=False), name="y")
    elif reader == "Conv":  # weights that are computed
        w = net.add("Mul", net.constant(np.full((4, 16, 1, 1), 1 / LARGE, np.float32)), net.add("ReduceMax", "x", keepdims=0))
        net.add("Tanh", net.add(reader, x, w), name="y")
    elif reader == "epilogue":  # of a layer whose input is scaled, and an operand that is
        a = net.add("Mul", net.conv(x, 16, 16, 1, 1 / LARGE, relu=False), x)
        net.add("Mul", a, net.constant(np.float32(1 / LARGE)), name="y")
    elif reader == "Mul":
        net.add(reader, x, net.constant((np.linspace(1, 2, 9) / LARGE).astype(np.float32)), name="y")
    else:
        net.add(reader, x, name="y")
    assert not in_float(convert(tmp_path, net, ["y"]))


def test_what_the_model_gives_stays_as_it_is(tmp_path):
    """An output, and what a constant is added to: their layers stay float, those between are scaled."""
    net = Net()
    x = net.conv("x", 16, 8, 3, LARGE)
    y = net.conv(x, 16, 16, 1)
    fixed = net.add("Relu", net.add("Add", net.conv(y, 16, 16, 1, relu=False), net.constant(np.linspace(1, 2, 18, dtype=np.float32))))
    net.add("Tanh", net.conv(fixed, 4, 16, 1, 1 / LARGE, relu=False), name="y")
    kept = in_float(convert(tmp_path, net, ["y", x]))
    assert kept and all("largest half" in layer["why"] for layer in kept)
    assert len(kept) == 4
    assert len(in_float(convert(tmp_path, net, ["y"]))) == 2


def test_values_that_are_asked_for_stay(tmp_path):
    net = Net()
    x = net.conv("x", 16, 8, 3, LARGE)
    net.add("Tanh", net.conv(x, 4, 16, 1, 1 / LARGE, relu=False), name="y")
    assert not in_float(convert(tmp_path, net, ["y"]))
    assert len(in_float(convert(tmp_path, net, ["y"], "--keep", x))) == 2
