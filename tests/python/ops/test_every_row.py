"""Every row of ops/list.h has a case: in the ONNX suite, among the generated cases, in another test, or here."""

import json
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import differential_cases
import microsoft_cases
from harness import ROOT, check_against_reference, linnet, reference, write_case
from small_int8 import model_of

ROW = re.compile(r'^(?:OP|PRODUCT)\(\d+, \d+, \w+, (\w+), "([^"]+)"', re.M)
DOMAINS = {"": "ONNX", "com.microsoft": "MICROSOFT", "ai.onnx.ml": "ML"}
F, I64 = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(8)


def rows():
    return set(ROW.findall((ROOT / "ops/list.h").read_text()))


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g)


def in_suite(folder):
    models = (onnx.load(path, load_external_data=False) for path in folder.glob("*/*/model.onnx"))
    return {(DOMAINS.get(node.domain), node.op_type) for model in models for node in nodes_of(model.graph)}


def in_tests():
    """Names in quotes or as operators of ONNX's text form."""
    sources = [p for p in (ROOT / "tests").rglob("*") if p.suffix in (".py", ".c", ".h")]
    return set(re.findall(r'"(\w+)"|= (\w+) ?[<(]', "\n".join(p.read_text() for p in sources)))


def test_every_row_has_a_case(suite_folder):
    covered = in_suite(suite_folder) | {("ONNX", name) for name in differential_cases.GENERATORS}
    covered |= {("MICROSOFT", name) for name in microsoft_cases.GENERATORS}
    named = {name for pair in in_tests() for name in pair}
    assert sorted(name for domain, name in rows() if (domain, name) not in covered and name not in named) == []


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("shape", [[2, 5, 7, 9], [1, 3, 11]])
def test_global_lp_pool(tmp_path, p, shape):
    x = RNG.standard_normal(shape).astype(np.float32)
    model = model_of([helper.make_node("GlobalLpPool", ["x"], ["y"], p=p)], [("x", F, shape)], [("y", F, None)], {})
    check_against_reference(tmp_path, model, {"x": x})


@pytest.mark.parametrize("axis", [-1, 1])
def test_simplified_layer_normalization(tmp_path, axis):
    """onnxruntime's own, in ONNX's domain."""
    x, scale = RNG.standard_normal([3, 4, 6]).astype(np.float32), RNG.standard_normal([4, 6][axis:]).astype(np.float32)
    node = helper.make_node("SimplifiedLayerNormalization", ["x", "scale"], ["y"], axis=axis, epsilon=1e-5)
    model = model_of([node], [("x", F, x.shape)], [("y", F, x.shape)], {"scale": scale})
    check_against_reference(tmp_path, model, {"x": x})


def recurrent(op, gates):
    w = {"w": (1, gates * 48, 40), "r": (1, gates * 48, 48), "b": (1, 2 * gates * 48)}
    constants = {name: RNG.uniform(-0.2, 0.2, shape).astype(np.float32) for name, shape in w.items()}
    node = helper.make_node(op, ["x", "w", "r", "b"], ["y"], hidden_size=48)
    x = RNG.standard_normal([6, 2, 40]).astype(np.float32)
    return model_of([node], [("x", F, x.shape)], [("y", F, None)], constants), x


def embedding():
    table = RNG.standard_normal([300, 64]).astype(np.float32)
    model = model_of([helper.make_node("Gather", ["table", "x"], ["y"])], [("x", I64, [2, 9])], [("y", F, None)],
                     {"table": table})
    return model, RNG.integers(0, 300, [2, 9])


@pytest.mark.parametrize("name, made", [("DynamicLSTM", recurrent("LSTM", 4)), ("DynamicGRU", recurrent("GRU", 3)),
                                        ("DynamicGather", embedding())])
def test_int8_forms(tmp_path, name, made):
    """Operators that --int8 dynamic puts in: they are there, and their outputs keep 30 dB."""
    model, x = made
    want = reference(model, {"x": x})[0]
    case = write_case(tmp_path, model, {"x": x}, [want])
    lnt = tmp_path / "m.lnt"
    done = linnet("convert", case / "model.onnx", "-o", lnt, "--int8", "dynamic", "--min-snr", "0")
    assert done.returncode == 0, done.stderr
    assert json.loads(linnet("info", lnt, "--json").stdout)["operators"][name] == 1
    np.save(tmp_path / "x.npy", x)
    done = linnet("run", lnt, "--input", f"x={tmp_path}/x.npy", "--output", f"y={tmp_path}/y.npy")
    assert done.returncode == 0, done.stderr
    error = np.load(tmp_path / "y.npy").astype(np.float64) - want
    assert 10 * np.log10(np.sum(np.square(want, dtype=np.float64)) / np.sum(error**2)) >= 30
