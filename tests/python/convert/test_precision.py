"""Weights of 16 bits (`convert --precision`): every operator that reads them computes what the rounded weights stand for."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import levels, linnet, reference
from linnet_ctypes import Model, Session

F, I64 = TensorProto.FLOAT, TensorProto.INT64
TYPES = {"float16": 10, "bfloat16": 16}


def rounded(x, precision):
    """The nearest elements of the type, ties to even, as float32."""
    if precision == "float16":
        return x.astype(np.float16).astype(np.float32)
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def model_of(nodes, inputs, constants, outputs=("y",)):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, kind, dims) for name, kind, dims in inputs],
                              [helper.make_tensor_value_info(name, F, None) for name in outputs],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])


def convert(folder, proto, *options):
    onnx.save(proto, folder / "m.onnx")
    done = linnet("convert", folder / "m.onnx", "-o", folder / "m.lnt", "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(folder, nodes, inputs, constants, feed, precision, outputs=("y",), tolerance=1e-5):
    """At every level, on any number of threads, what onnxruntime computes with the rounded weights."""
    rng = np.random.default_rng(len(constants))
    weights = {name: value if value.dtype != np.float32 or name == "exact" else
               value * np.exp(rng.normal(0, 0.5, value.shape)).astype(np.float32) for name, value in constants.items()}
    report = convert(folder, model_of(nodes, inputs, weights, outputs), "--precision", precision, "--min-snr", "0")
    layers = report["precision"]["layers"]
    assert layers and all(layer["weights"] == precision and 2 * layer["bytes_after"] == layer["bytes_before"] for layer in layers)
    read = linnet("verify", folder / "m.lnt")
    assert read.returncode == 0 or "golden" in read.stderr, read.stdout + read.stderr
    halves = {name: value if value.dtype != np.float32 or value.ndim < 2 else rounded(value, precision)
              for name, value in weights.items()}
    want = reference(model_of(nodes, inputs, halves, outputs), feed)
    model = Model(folder / "m.lnt")
    for level in levels():
        first, *others = ([Session(model, level=level, threads=threads).set(**feed).run().get(name) for name in outputs]
                          for threads in (1, 2, 3))
        for got, right in zip(first, want):
            right = right.astype(np.float64)
            assert got.shape == right.shape
            assert np.abs(got - right).max() <= tolerance * max(np.abs(right).max(), 1e-3), level
        assert all(np.array_equal(a, b) for other in others for a, b in zip(first, other)), level
    return report


def normal(rng, *dims):
    return rng.standard_normal(dims).astype(np.float32)


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("m, k, n", [(1, 40, 17), (1, 900, 130), (1, 3000, 400), (2, 70, 64), (3, 1000, 33), (6, 513, 80), (7, 300, 100),
                                     (13, 900, 65), (64, 2100, 50), (20, 500, 3), (200, 64, 48), (41, 0x400, 257)])
def test_products(tmp_path, precision, m, k, n):
    rng = np.random.default_rng(m + k + n)
    turned = (m + k) % 2
    nodes = [helper.make_node("Gemm", ["x", "w", "c"], ["y"], transB=1, alpha=0.5 if m % 3 else 1.0)] if turned else [
        helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "c"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    constants = {"w": normal(rng, n, k) if turned else normal(rng, k, n), "c": normal(rng, n)}
    check(tmp_path, nodes, [("x", F, [m, k])], constants, {"x": normal(rng, m, k)}, precision)


@pytest.mark.parametrize("precision", TYPES)
def test_a_batch_of_products(tmp_path, precision):
    rng = np.random.default_rng(5)
    check(tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, [3, 9, 70])], {"w": normal(rng, 3, 70, 37)},
          {"x": normal(rng, 3, 9, 70)}, precision)


CONVOLUTIONS = {  # dims of x and w, attributes
    "square": ([2, 24, 13, 11], [40, 24, 3, 3], {"pads": [1, 1, 1, 1]}),
    "strided": ([1, 64, 17, 17], [96, 64, 3, 3], {"strides": [2, 2], "pads": [0, 1, 1, 0]}),
    "deep": ([1, 300, 7, 7], [65, 300, 3, 3], {"pads": [1, 1, 1, 1]}),
    "point": ([1, 80, 1, 1], [130, 80, 1, 1], {}),
    "points": ([1, 48, 20, 20], [33, 48, 1, 1], {}),
    "groups": ([1, 60, 9, 9], [90, 20, 3, 3], {"group": 3}),
    "line": ([1, 40, 200], [24, 40, 9], {"dilations": [3]}),
    "volume": ([1, 20, 5, 6, 7], [18, 20, 2, 3, 2], {}),
    "stem": ([1, 3, 40, 40], [17, 3, 3, 3], {"strides": [2, 2]}),
    "one feature": ([1, 32, 12, 12], [1, 32, 3, 3], {}),
    "depthwise": ([1, 50, 15, 15], [50, 1, 3, 3], {"group": 50, "pads": [1, 1, 1, 1]}),
    "few to a group": ([1, 32, 15, 15], [64, 2, 3, 3], {"group": 16}),
    "padding alone": ([1, 32, 1, 1], [48, 32, 3, 3], {"pads": [1, 1, 1, 1]}),
}


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(tmp_path, precision, name):
    dims, filters, attributes = CONVOLUTIONS[name]
    rng = np.random.default_rng(sum(filters))
    constants = {"w": normal(rng, *filters) / 12, "b": normal(rng, filters[0])}
    check(tmp_path, [helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)], [("x", F, dims)], constants,
          {"x": normal(rng, *dims)}, precision)


@pytest.mark.parametrize("precision", TYPES)
def test_lines_that_stay_in_the_cache(tmp_path, precision):
    """A stem and a convolution compute lines for a depthwise one behind them."""
    rng = np.random.default_rng(3)
    nodes = [helper.make_node("Conv", ["x", "a"], ["p"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["p"], ["q"]),
             helper.make_node("Conv", ["q", "d"], ["r"], group=32, pads=[1, 1, 1, 1]),
             helper.make_node("Conv", ["r", "e"], ["s"]),
             helper.make_node("Conv", ["s", "f"], ["y"], group=96, strides=[2, 2], pads=[1, 1, 1, 1])]
    constants = {"a": normal(rng, 32, 3, 3, 3) / 5, "d": normal(rng, 32, 1, 3, 3) / 3, "e": normal(rng, 96, 32, 1, 1) / 6,
                 "f": normal(rng, 96, 1, 3, 3) / 3}
    check(tmp_path, nodes, [("x", F, [1, 3, 160, 160])], constants, {"x": normal(rng, 1, 3, 160, 160)}, precision)


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("dims, filters, attributes", [
    ([1, 40, 9, 8], [40, 33, 4, 4], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ([1, 64, 50], [64, 20, 8], {"strides": [4]}),
    ([1, 24, 7, 7], [24, 10, 3, 3], {"group": 2, "dilations": [2, 2]}),
])
def test_transposed_convolutions(tmp_path, precision, dims, filters, attributes):
    rng = np.random.default_rng(sum(filters))
    check(tmp_path, [helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)], [("x", F, dims)],
          {"w": normal(rng, *filters) / 12}, {"x": normal(rng, *dims)}, precision)


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("op, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("steps, batch, hidden, directions", [(1, 1, 40, 1), (12, 1, 40, 2), (9, 3, 33, 1), (2, 1, 300, 2), (5, 8, 20, 1)])
def test_recurrent_layers(tmp_path, precision, op, gates, steps, batch, hidden, directions):
    rng = np.random.default_rng(steps + batch + hidden)
    width = 37
    constants = {"w": normal(rng, directions, gates * hidden, width) / 9, "r": normal(rng, directions, gates * hidden, hidden) / 9,
                 "exact": normal(rng, directions, 2 * gates * hidden) / 9}
    constants["exact"] = np.round(constants["exact"] * 64) / 64
    nodes = [helper.make_node(op, ["x", "w", "r", "exact"], ["y"], hidden_size=hidden,
                              direction="bidirectional" if directions == 2 else "forward")]
    check(tmp_path, nodes, [("x", F, [steps, batch, width])], constants, {"x": normal(rng, steps, batch, width)}, precision)


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("tied", [False, True])
def test_tables(tmp_path, precision, tied):
    """Rows of a table are read out of panels: its own, or those of the product that it is tied to."""
    rng = np.random.default_rng(8)
    table = normal(rng, 333, 70)
    nodes = [helper.make_node("Gather", ["table", "i"], ["rows"]), helper.make_node("MatMul", ["rows", "w"], ["h"])]
    nodes += [helper.make_node("Transpose", ["table"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["h", "t"], ["y"])] if tied else [
        helper.make_node("Tanh", ["h"], ["y"])]
    report = check(tmp_path, nodes, [("i", I64, [2, 5])], {"table": table, "w": normal(rng, 70, 70) / 9},
                   {"i": rng.integers(-333, 333, (2, 5))}, precision)
    assert report["duplicated_bytes"] == 0


@pytest.mark.parametrize("precision", TYPES)
def test_constants_that_no_product_reads(tmp_path, precision):
    """Many floats are stored in 16 bits and made floats when the file is loaded; few stay what they are."""
    rng = np.random.default_rng(2)
    many, few = normal(rng, 40, 64), normal(rng, 64)
    report = check(tmp_path, [helper.make_node("Add", ["x", "many"], ["s"]), helper.make_node("Mul", ["s", "few"], ["y"])],
                   [("x", F, [3, 40, 64])], {"many": many, "few": few}, {"x": normal(rng, 3, 40, 64)}, precision)
    assert report["constant_bytes"] == 2 * many.size + 4 * few.size


def test_winograd_weights(tmp_path):
    rng = np.random.default_rng(4)
    x, w = normal(rng, 1, 64, 30, 30), normal(rng, 64, 64, 3, 3) / 24
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])]
    report = convert(tmp_path, model_of(nodes, [("x", F, [1, 64, 30, 30])], {"w": w}), "--winograd", "--precision", "float16")
    (layer,) = report["precision"]["layers"]
    assert layer["op"] == "WinogradConv" and layer["weights"] == "float16" and layer["bytes_after"] == 2 * 16 * 64 * 64
    want = reference(model_of(nodes, [("x", F, [1, 64, 30, 30])], {"w": w}), {"x": x})[0]
    for level in levels():
        got = Session(Model(tmp_path / "m.lnt"), level=level).set(x=x).run().get("y")
        assert 1e-6 < np.abs(got - want).max() / np.abs(want).max() < 2e-3


def test_layers_that_cost_too_much_stay(tmp_path):
    """The bound on the outputs keeps the layer in float whose weights take rounding badly, and the report says which."""
    rng = np.random.default_rng(6)
    harsh = normal(rng, 64, 64) * np.float32(1e-9)  # below what float16 has
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "harsh"], ["s"]),
             helper.make_node("Mul", ["s", "much"], ["y"])]
    proto = model_of(nodes, [("x", F, [4, 64]), ("much", F, [1])], {"w": normal(rng, 64, 64), "harsh": harsh})
    layers = convert(tmp_path, proto, "--precision", "float16")["precision"]["layers"]
    assert [(layer["weights"], layer["why"]) for layer in layers] == [("float16", ""), ("float", "the outputs' SNR")]
    report = convert(tmp_path, proto, "--precision", "bfloat16")
    assert [layer["weights"] for layer in report["precision"]["layers"]] == ["bfloat16"] * 2
    assert report["precision"]["outputs"][0]["snr_db"] > 40


def test_what_the_type_cannot_hold_stays(tmp_path):
    rng = np.random.default_rng(9)
    w = normal(rng, 64, 64)
    w[3, 5] = 1e6
    report = convert(tmp_path, model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, [4, 64])], {"w": w}),
                     "--precision", "float16")
    assert [layer["weights"] for layer in report["precision"]["layers"]] == ["float"]


def test_auto_takes_what_it_is_worth(tmp_path):
    rng = np.random.default_rng(10)
    nodes = [helper.make_node("MatMul", ["x", "large"], ["h"]), helper.make_node("MatMul", ["h", "small"], ["y"])]
    proto = model_of(nodes, [("x", F, [4, 64])], {"large": normal(rng, 64, 32), "small": normal(rng, 32, 8)})
    report = convert(tmp_path, proto, "--precision", "auto")
    assert [(layer["weights"], layer["bytes_before"]) for layer in report["precision"]["layers"]] == [("float16", 4 * 64 * 32)]
    assert convert(tmp_path, proto, "--precision", "float32").get("precision") is None


def test_options_that_exclude_each_other(tmp_path):
    rng = np.random.default_rng(11)
    proto = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, [4, 64])], {"w": normal(rng, 64, 64)})
    onnx.save(proto, tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "--precision", "float16", "--int8", "dynamic")
    assert done.returncode == 2 and "--int8" in done.stderr
