"""Scripts written for onnxruntime (tests/python/ort_scripts), with their import as it is and with Linnet's instead."""

import re
import shutil

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from harness import ROOT, import_package

import_package()
SCRIPTS = ROOT / "tests" / "python" / "ort_scripts"
SILERO, OWW = ROOT / ".deps" / "silero_vad.onnx", ROOT / ".deps" / "wakeword" / "openwakeword" / "resources" / "models"
HEAD = '<ir_version: 8, opset_import: ["" : 17], producer_name: "tests">\n'
MODELS = {
    "batches": """batches (float[N, 8] x) => (float[N, 4] y) { p = MatMul (x, w1) q = Add (p, b1) y = Tanh (q) }""",
    "decay": """decay (float[N, 3] h) => (float[N, 3] next) { half = Constant <value_float = 0.5> () next = Mul (h, half) }""",
    "positions": """positions (float[M, N] x) => (int64[2, K] found) { found = NonZero (x) }""",
    "layers": """layers (float[N, 128] x) => (float[N, 16] y) {
        a = MatMul (x, w2) b = Relu (a) c = MatMul (b, w3) d = Relu (c) y = MatMul (d, w4) }""",
    "pictures": """pictures (float[N, 3, 16, 16] x) => (float[N, 10] y) {
        a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, k1) b = Relu (a) c = Conv <pads = [1, 1, 1, 1]> (b, k2) d = Relu (c)
        e = GlobalAveragePool (d) f = Flatten (e) y = MatMul (f, w5) }""",
    "sentences": """sentences (int64[batch, length] input_ids, int64[batch, length] attention_mask)
            => (float[batch, length, 32] last_hidden_state) {
        e = Gather (words, input_ids) q = MatMul (e, w6) t = Transpose <perm = [0, 2, 1]> (e) s = MatMul (q, t)
        m = Cast <to = 1> (attention_mask) axis = Constant <value_ints = [1]> () u = Unsqueeze (m, axis)
        one = Constant <value_float = 1.0> () n = Sub (u, one) big = Constant <value_float = 10000.0> () bias = Mul (n, big)
        z = Add (s, bias) p = Softmax <axis = -1> (z) v = MatMul (p, e) last_hidden_state = Add (v, e) }""",
    "lengths": """lengths (float[batch, 4, length] x) => (float[batch, 6, length] y) {
        a = Conv <pads = [1, 1]> (x, k3) b = Sigmoid (a) y = Mul (a, b) }""",
}
WEIGHTS = {"w1": (8, 4), "b1": (4,), "w2": (128, 128), "w3": (128, 64), "w4": (64, 16), "w5": (16, 10), "w6": (32, 32),
           "words": (20, 32), "k1": (16, 3, 3, 3), "k2": (16, 16, 3, 3), "k3": (6, 4, 3)}
NEEDS = {"vad_wrapper": SILERO, "wake_features": OWW}


def write_models(folder):
    rng = np.random.default_rng(1)
    weights = {n: rng.standard_normal(s).astype(np.float32) / np.float32(np.sqrt(np.prod(s[1:]) or 1)) for n, s in WEIGHTS.items()}
    for name, text in MODELS.items():
        model = onnx.parser.parse_model(HEAD + text)
        used = {i for node in model.graph.node for i in node.input}
        model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in weights.items() if k in used)
        onnx.save(model, folder / f"{name}.onnx")
    for source, name in ((SILERO, "vad"), (OWW / "melspectrogram.onnx", "mels"), (OWW / "embedding_model.onnx", "embedding"),
                         (OWW / "hey_mycroft_v0.1.onnx", "word")):
        if source.is_file():
            shutil.copy(source, folder / f"{name}.onnx")


def given_by(script, module, folder):
    """What the script gives when it imports this module."""
    folder.mkdir()
    write_models(folder)
    text = re.sub(r"^(import|from) onnxruntime\b", rf"\1 {module}", script.read_text(), flags=re.M)
    assert (module == "onnxruntime") == ("onnxruntime as rt" in text)
    scope = {"__name__": script.stem}
    exec(compile(text, str(script), "exec"), scope)
    return scope["main"](folder)


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*.py")))
def test_script(tmp_path, name):
    if name in NEEDS and not NEEDS[name].exists():
        pytest.skip(f"no {NEEDS[name].name}: run make deps-test")
    ours, theirs = (given_by(SCRIPTS / f"{name}.py", module, tmp_path / module) for module in ("linnet", "onnxruntime"))
    assert list(ours) == list(theirs) and ours
    for key, want in theirs.items():
        got = np.asarray(ours[key])
        assert got.shape == want.shape and got.dtype == want.dtype, key
        if want.dtype == np.float32:
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * max(1, np.abs(want).max()), err_msg=key)
        else:
            np.testing.assert_array_equal(got, want, err_msg=key)
