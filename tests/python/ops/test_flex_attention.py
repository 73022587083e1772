"""FlexAttention of ai.onnx.preview, which onnxruntime has not, against its formula in numpy: with and without subgraphs, heads
that are shared, extents that are not known, every type; and what is said of models that cannot be."""

import ml_dtypes
import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from harness import check_against, linnet

HEAD = '<ir_version: 13, opset_import: ["" : 26, "ai.onnx.preview" : 1]>\n'
CAP = "<score_mod: graph = cap (%s[B, H, L, S] s) => (%s[B, H, L, S] t) { d = Div (s, limit) u = Tanh (d) t = Mul (u, limit) }"
HALVE = "prob_mod: graph = halve (%s[B, H, L, S] s) => (%s[B, H, L, S] u) <%s half = {0.5}> { u = Mul (s, half) }>"
KEEP = "<score_mod: graph = keep (%s[B, H, L, S] s) => (%s[B, H, L, S] s) { }>"
TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def model(extents, attributes, kind="float", within="float"):
    """Extents: those of query, key and value. `limit`, which a subgraph reads from outside, is 2."""
    inputs = ", ".join(f"{kind}[{', '.join(map(str, e))}] {name}" for name, e in zip("qkv", extents))
    made = onnx.parser.parse_model(f"{HEAD} f ({inputs}) => ({kind}[B, H, L, V] y) {{"
                                   f" y = ai.onnx.preview.FlexAttention (q, k, v) {attributes} }}")
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(2, TYPES[within]), "limit"))
    return made


def expected(q, k, v, scale=None, cap=None, factor=1.0):
    kind, (q, k, v) = q.dtype, (x.astype(np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    s = q @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[3]) if scale is None else scale)
    s = s if cap is None else cap * np.tanh(s / cap)
    e = np.exp(s - s.max(axis=-1, keepdims=True)) if s.size else s
    return (e / e.sum(axis=-1, keepdims=True) * factor @ v).astype(kind)


def check(tmp_path, made, given, outputs, tolerance="2e-5"):
    feeds = dict(zip("qkv", given))
    check_against(tmp_path, made, feeds, [outputs], "--max-rel", tolerance, ways=(("--opt", "none"), ("--opt", "all")))


def draw(extents, kind):
    rng = np.random.default_rng(3)
    return [rng.standard_normal(e).astype(TYPES[kind]) for e in extents]


@pytest.mark.parametrize("extents", [
    ((2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6)),
    ((2, 6, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6)),
    ((1, 2, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1)),
    ((2, 4, 0, 8), (2, 2, 5, 8), (2, 2, 5, 6)),
    ((0, 4, 3, 8), (0, 2, 5, 8), (0, 2, 5, 6)),
])
@pytest.mark.parametrize("known", [True, False])
def test_subgraphs(tmp_path, extents, known):
    """One reads a value from outside of it, one has constants of its own; both name a value `u`."""
    names = ("BHLE", "BGSE", "BGSV") if not known else extents
    made = model(names, CAP % ("float", "float") + ", " + HALVE % ("float", "float", "float"))
    given = draw(extents, "float")
    check(tmp_path, made, given, expected(*given, cap=2.0, factor=0.5))


@pytest.mark.parametrize("attributes, scale", [
    ("", None), ("<scale = 0.3>", 0.3), ("<scale = -0.3>", -0.3), (KEEP % ("float", "float"), None),
    (KEEP.replace("<", "<scale = -0.3, ", 1) % ("float", "float"), -0.3)])
def test_scale(tmp_path, attributes, scale):
    extents = (2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6)
    given = draw(extents, "float")
    check(tmp_path, model(extents, attributes), given, expected(*given, scale=scale))


@pytest.mark.parametrize("kind, within, attribute, tolerance", [
    ("double", "double", "", "1e-6"),
    ("double", "float", ", softmax_precision = 1", "2e-5"),
    ("float", "double", ", softmax_precision = 11", "2e-5"),
    ("float16", "float", "", "4e-3"),
    ("float16", "float16", ", softmax_precision = 10", "1e-2"),
    ("bfloat16", "float", "", "4e-2"),
])
def test_types(tmp_path, kind, within, attribute, tolerance):
    extents = (2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6)
    attributes = (CAP % (within, within) + attribute + ">") if attribute else CAP % (within, within) + ">"
    given = draw(extents, kind)
    check(tmp_path, model(extents, attributes, kind, within), given, expected(*given, cap=2.0), tolerance)


KNOWN = (2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6)


@pytest.mark.parametrize("extents, attributes, message", [
    (((4, 3, 8), (2, 5, 8), (2, 5, 6)), "", "query, key and value must have rank 4"),
    (((2, 5, 3, 8), *KNOWN[1:]), "", "heads must be a multiple of the key's"),
    (KNOWN, "<softmax_precision = 7>", "softmax_precision must be a floating-point type"),
    (KNOWN, "<score_mod: graph = g () => (float t) { t = Identity (limit) }>", "has 0 inputs and 1 outputs, not 1 and 1"),
    (KNOWN, "<score_mod: graph = g (float[B, H, L, S] s) => (float t) { u = Identity (s) }>", "'t' of its subgraph is never computed"),
    (KNOWN, "<score_mod: graph = g (float[B, H, L, S] s) => (float t) { t = Adagrad (s) }>", "unknown operator"),
    (KNOWN, "<score_mod: graph = g (float[B, H, L, S] s) => (float t) { t = SequenceConstruct (s) }>", "is no tensor of numbers"),
])
def test_mistakes(tmp_path, extents, attributes, message):
    onnx.save(model(extents, attributes), tmp_path / "m.onnx")
    result = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert result.returncode != 0 and message in result.stderr, result.stderr
    assert not (tmp_path / "m.lnt").exists()
