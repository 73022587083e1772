"""Weights of 4 bits (`convert --int4`): what they stand for, which layers stay in float and why, the report, sizes."""

import json

import numpy as np
import onnx
import pytest
from decoder import Size, build
from onnx import TensorProto, helper, numpy_helper

from harness import levels, linnet, reference
from linnet_ctypes import Model, Session

F = TensorProto.FLOAT


def model_of(nodes, inputs, constants, outputs=("y",)):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, F, dims) for name, dims in inputs],
                              [helper.make_tensor_value_info(name, F, None) for name in outputs],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])


def convert(folder, proto, *options):
    onnx.save(proto, folder / "m.onnx")
    done = linnet("convert", folder / "m.onnx", "-o", folder / "m.lnt", "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def normal(rng, *dims):
    return rng.standard_normal(dims).astype(np.float32)


def rounded_to_nearest(w, block):
    """[K, N] by the range of each block along K: scale (high - low) / 15."""
    k, n = w.shape
    blocks = np.pad(w, ((0, -k % block), (0, 0))).reshape(-1, block, n)
    low, high = np.minimum(blocks.min(1, keepdims=True), 0), np.maximum(blocks.max(1, keepdims=True), 0)
    scale = np.maximum(high - low, 1e-30) / 15
    zero = np.round(-low / scale)
    return ((np.clip(np.round(blocks / scale) + zero, 0, 15) - zero) * scale).reshape(-1, n)[:k]


@pytest.mark.parametrize("block", [16, 32, 64, 128, 256])
@pytest.mark.parametrize("k, n", [(256, 33), (300, 20), (517, 7)])
@pytest.mark.parametrize("kind", ["MatMul", "Gemm", "turned"])
def test_weights(tmp_path, block, k, n, kind):
    """The product with a unit matrix is the weights: 16 steps a block, nearer to the floats than their range would have it."""
    rng = np.random.default_rng(block + k + n)
    w = normal(rng, k, n) * np.exp(normal(rng, 1, n)) + 0.3 * normal(rng, 1, n)
    bias, alpha = normal(rng, n), 1 if kind == "MatMul" else -0.5
    constants = {"w": np.ascontiguousarray(w.T) if kind == "turned" else w} | ({} if kind == "MatMul" else {"b": bias})
    node = helper.make_node("MatMul", ["x", "w"], ["y"]) if kind == "MatMul" else helper.make_node(
        "Gemm", ["x", "w", "b"], ["y"], alpha=alpha, transB=int(kind == "turned"))
    report = convert(tmp_path, model_of([node], [("x", ["rows", k])], constants), "--int4", "--block", str(block))
    (layer,) = report["int4"]["layers"]
    assert layer["bits"] == 4 and not layer["why"] and layer["snr_db"] > 12
    blocks = -(-k // block)
    most = n * (blocks * (block // 2 + 2) + (blocks + 1) // 2)
    assert most - n * (blocks + 1) // 2 <= layer["bytes_after"] <= most and layer["bytes_before"] == 4 * k * n
    model = Model(tmp_path / "m.lnt")
    for level in levels():
        got = Session(model, level=level).set(x=np.eye(k, dtype=np.float32)).run().get("y") - (0 if kind == "MatMul" else bias)
        got = got.astype(np.float64) / alpha
        error = np.square(got - w).sum()
        assert error < 0.97 * np.square(rounded_to_nearest(w, block) - w).sum(), level
        for at in range(0, k, block):  # equal ones to the error of sums
            part = np.sort(got[at:at + block], axis=0)
            assert np.all(np.sum(np.diff(part, axis=0) > 1e-3 * np.ptp(part, axis=0), axis=0) < 16)
    assert linnet("verify", tmp_path / "m.lnt").returncode == 0


@pytest.mark.parametrize("weights", ["zero", "positive", "negative", "one large", "tiny"])
def test_blocks_of_all_kinds(tmp_path, weights):
    rng = np.random.default_rng(2)
    w = {"zero": np.zeros((64, 8)), "positive": rng.uniform(1, 2, (64, 8)), "negative": rng.uniform(-2, -1, (64, 8)),
         "one large": np.where(np.arange(64)[:, None] % 32 == 5, 1000, 0) * np.ones((1, 8)),
         "tiny": rng.uniform(-1, 1, (64, 8)) * 1e-30}[weights]
    w = w.astype(np.float32)
    convert(tmp_path, model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", ["rows", 64])], {"w": w}), "--int4")
    got = Session(Model(tmp_path / "m.lnt")).set(x=np.eye(64, dtype=np.float32)).run().get("y")
    assert np.abs(got - w).max() <= np.abs(w).max() / 8


def test_one_constant_of_two_readers_is_stored_once(tmp_path):
    rng = np.random.default_rng(3)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Tanh", ["h"], ["t"]),
             helper.make_node("MatMul", ["t", "w"], ["y"])]
    report = convert(tmp_path, model_of(nodes, [("x", [2, 128])], {"w": normal(rng, 128, 128) / 11}), "--int4")
    assert [layer["bits"] for layer in report["int4"]["layers"]] == [4, 4]
    assert report["constant_bytes"] < 1.1 * 128 * 128 * 4.625 / 8


def test_what_stays_in_float(tmp_path):
    rng = np.random.default_rng(4)
    bad = normal(rng, 64, 64)
    bad[5, 5] = np.inf
    nodes = [helper.make_node("Conv", ["x", "c"], ["a"], name="conv"), helper.make_node("MatMul", ["a", "few"], ["b"], name="few"),
             helper.make_node("MatMul", ["b", "good"], ["d"], name="good"), helper.make_node("MatMul", ["b", "bad"], ["e"], name="bad"),
             helper.make_node("MatMul", ["d", "e"], ["y"], name="both")]
    constants = {"c": normal(rng, 4, 4, 1, 1), "few": normal(rng, 20, 64), "good": normal(rng, 64, 64), "bad": bad}
    report = convert(tmp_path, model_of(nodes, [("x", [1, 4, 64, 20])], constants), "--int4")
    layers = {layer["node"]: layer for layer in report["int4"]["layers"]}
    assert {name: layer["bits"] for name, layer in layers.items()} == {"conv": 32, "few": 32, "good": 4, "bad": 32, "both": 32}
    assert "constant" in layers["both"]["why"] and all("block" in layers[name]["why"] for name in ("conv", "few", "bad"))
    assert all(layer["bytes_after"] == layer["bytes_before"] for layer in layers.values() if layer["bits"] == 32)


def test_the_bound_keeps_layers_in_float(tmp_path):
    rng = np.random.default_rng(6)
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"], name="first"), helper.make_node("MatMul", ["h", "b"], ["y"], name="second")]
    proto = model_of(nodes, [("x", [4, 64])], {"a": normal(rng, 64, 64), "b": np.eye(64, dtype=np.float32)})
    report = convert(tmp_path, proto, "--int4", "--min-snr", "30")
    first, second = report["int4"]["layers"]
    assert (first["bits"], first["why"], second["bits"]) == (32, "the outputs' SNR", 4)
    assert report["int4"]["outputs"][0]["snr_db"] > 30
    free = convert(tmp_path, proto, "--int4")["int4"]
    assert [layer["bits"] for layer in free["layers"]] == [4, 4] and 15 < free["outputs"][0]["snr_db"] < 30


def test_recorded_inputs_set_a_bound(tmp_path):
    """Outputs keep 15 dB where inputs were recorded: the difference of two nearly equal products has less."""
    rng = np.random.default_rng(7)
    a = normal(rng, 64, 64)
    nodes = [helper.make_node("MatMul", ["x", "a"], ["p"]), helper.make_node("MatMul", ["x", "b"], ["q"]),
             helper.make_node("Sub", ["p", "q"], ["y"])]
    proto = model_of(nodes, [("x", [4, 64])], {"a": a, "b": a + 0.05 * normal(rng, 64, 64)})
    np.savez(tmp_path / "recorded.npz", x=normal(rng, 4, 64))
    report = convert(tmp_path, proto, "--int4", "--calibrate", tmp_path / "recorded.npz")["int4"]
    assert any(layer["why"] == "the outputs' SNR" for layer in report["layers"]) and report["outputs"][0]["snr_db"] >= 15
    free = convert(tmp_path, proto, "--int4", "--calibrate", tmp_path / "recorded.npz", "--min-snr", "0")["int4"]
    assert [layer["bits"] for layer in free["layers"]] == [4, 4] and free["outputs"][0]["snr_db"] < 15


def test_a_decoder(tmp_path):
    """Sizes where products are what there is; every level says the same, and the file twice the same bytes."""
    size = Size(vocabulary=64, hidden=192, heads=4, layers=3, wide=512)
    proto = build(size)
    report = convert(tmp_path, proto, "--int4")
    image = (tmp_path / "m.lnt").read_bytes()
    plain = convert(tmp_path, proto)
    assert report["lnt_bytes"] <= 0.17 * plain["lnt_bytes"]
    assert sum(layer["bits"] == 4 for layer in report["int4"]["layers"]) == 7 * size.layers + 1
    convert(tmp_path, proto, "--int4")
    assert (tmp_path / "m.lnt").read_bytes() == image
    feeds = {"ids": np.arange(5)[None] * 3} | {name: np.zeros((1, size.heads, 0, size.dk), np.float32) for _, name in size.states}
    want = reference(proto, feeds)[-1]
    got = [Session(Model(tmp_path / "m.lnt"), level=level).set(**feeds).run().get("logits") for level in levels()]
    for logits in got:
        assert np.square(logits - want).sum() < 0.15 * np.square(want).sum()
        assert np.abs(logits - got[0]).max() < 0.02 * np.abs(want).max()


@pytest.mark.parametrize("options, says", [
    (["--int4", "--int8", "dynamic"], "--int8"), (["--int4", "--block", "48"], "--block"), (["--block", "32"], "--int4"),
    (["--int4", "--block", "512"], "--block"), (["--int4", "--precision", "float16"], "--precision"),
    (["--int4", "--block", "0"], "--block")])
def test_options_that_exclude_each_other(tmp_path, options, says):
    rng = np.random.default_rng(11)
    proto = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", [4, 64])], {"w": normal(rng, 64, 64)})
    onnx.save(proto, tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", *options)
    assert done.returncode == 2 and says in done.stderr and not (tmp_path / "m.lnt").exists()
