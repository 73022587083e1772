"""Models that onnxruntime's tools have quantised agree with onnxruntime within a step of the output.

onnxruntime itself computes QDQ models in two ways: in float between Q and DQ, and, optimised, on bytes. Sums that fall
between two bytes come out differently, and the layers behind see another byte; either way is right, and it is enough to
agree with one of them."""

import json
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness import ROOT, linnet, reference

sys.path.append(str(ROOT / "tests/bench"))
import quantised  # noqa: E402

STEP = 1.05 / 127  # a step of a tensor of both signs, of its largest magnitude, where the output has none of its own
# Steps where everything is computed in float: sums that fall between two bytes hang on the order of additions.
STEPS = {("ultraface_rfb_320", "QDQ", "none"): 2}
S8, U8 = "QInt8", "QUInt8"

DYNAMIC = {"mnist12": (U8, False), "ultraface_rfb_320": (S8, True), "oww_embedding": (U8, True),
           "tiny_transformer": (S8, False), "light_squeezenet": (U8, False), "dtln_1": (S8, True)}
STATIC = {"mnist12": ("QDQ", S8, S8, False), "ultraface_rfb_320": ("QDQ", U8, S8, True),
          "oww_embedding": ("QDQ", S8, S8, True), "tiny_transformer": ("QDQ", U8, U8, False),
          "light_squeezenet": ("QOperator", U8, U8, False), "dtln_1": ("QOperator", U8, S8, True)}


@pytest.fixture
def source(request, shared, tmp_path):
    """The float model, of an opset that knows scales per channel, where it can be brought there."""
    path = tmp_path / "float.onnx"
    quantised.prepare(onnx.load(shared / "models" / request.param / "model.onnx"), path)
    return request.param, path


def feed(path, seed):
    rng = np.random.default_rng(seed)
    inputs = quantised.session(str(path)).get_inputs()
    return {i.name: rng.normal(0, 1, [d if isinstance(d, int) else 1 for d in i.shape]).astype(np.float32)
            for i in inputs}


def step_of(model, name):
    """The scale an output was dequantised with, or the sum of those of all tensors it was made of; 0 without any."""
    made = {o: n for n in model.graph.node for o in n.output}
    scales = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    waiting, seen, step = [name], set(), 0.0
    while waiting:
        value = waiting.pop()
        node = made.get(value)
        if value in seen or node is None:
            continue
        seen.add(value)
        if node.op_type == "DequantizeLinear":
            step += float(scales[node.input[1]].max()) if node.input[1] in scales else 0
        elif node.op_type.startswith(("QLinear", "DynamicQ")) or "Integer" in node.op_type:
            continue
        else:
            waiting += node.input
    return step


def check(path, tmp_path, opt, steps=1):
    """Converts and runs the model; returns the report."""
    inputs = feed(path, 99)
    plain, optimised = reference(path, inputs), reference(path, inputs, optimise=True)
    lnt = tmp_path / "m.lnt"
    done = linnet("convert", path, "-o", lnt, "--opt", opt, "--json")
    assert done.returncode == 0, done.stderr
    words = []
    for i, (name, value) in enumerate(inputs.items()):
        np.save(tmp_path / f"in{i}.npy", value)
        words += ["--input", f"{name}={tmp_path / f'in{i}.npy'}"]
    model = onnx.load(path)
    names = [o.name for o in model.graph.output]
    for i, name in enumerate(names):
        words += ["--output", f"{name}={tmp_path / f'out{i}.npy'}"]
    ran = linnet("run", lnt, *words)
    assert ran.returncode == 0, ran.stderr
    for i, name in enumerate(names):
        got = np.load(tmp_path / f"out{i}.npy")
        allowed = steps * (1.01 * step_of(model, name) or STEP * np.abs(plain[i]).max())
        error = min(np.abs(got - plain[i]).max(), np.abs(got - optimised[i]).max())
        assert error <= allowed, f"output {name}: off by {error:g}, allowed {allowed:g}"
    return json.loads(done.stdout)


@pytest.mark.parametrize("opt", ["none", "all"])
@pytest.mark.parametrize("source", DYNAMIC, indirect=True)
def test_quantize_dynamic(source, tmp_path, opt):
    name, path = source
    weights, per_channel = DYNAMIC[name]
    made = tmp_path / "quantised.onnx"
    # LSTM is left out: onnxruntime rounds its state in each step, Linnet takes the weights for what they mean.
    quantised.quantise(path, made, (None, None, weights, per_channel), op_types_to_quantize=["MatMul", "Gemm", "Conv", "Gather"])
    check(made, tmp_path, opt)


@pytest.mark.parametrize("opt", ["none", "all"])
@pytest.mark.parametrize("source", STATIC, indirect=True)
def test_quantize_static(source, tmp_path, opt):
    name, path = source
    made = tmp_path / "quantised.onnx"
    quantised.quantise(path, made, STATIC[name], [feed(path, seed) for seed in range(3)])
    report = check(made, tmp_path, opt, STEPS.get((name, STATIC[name][0], opt), 1))
    if opt == "all" and name not in ("dtln_1", "tiny_transformer", "mnist12"):  # whose weights are not all bytes
        assert report["constant_bytes"] < 1.3 * made.stat().st_size
    if opt == "all" and STATIC[name][0] == "QDQ":
        assert sum(p["count"] for p in report["passes"] if p["pass"] == "fold_qdq") > 0
