"""What data operators say of values that are out of range: the lowest offender, whatever the threads."""

import numpy as np
import onnx.parser
import pytest

from harness import linnet

HEAD = '<ir_version: 8, opset_import: ["" : 24]>\n'


def message_of(tmp_path, text, inputs, *options):
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode == 0, done.stderr
    feeds = []
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        feeds += ["--input", f"{name}={tmp_path / name}.npy"]
    done = linnet("run", tmp_path / "m.lnt", *feeds, *options)
    assert done.returncode != 0, done.stdout
    return done.stderr


def with_bad(shape, extent, *bad):
    """Valid random indices but for (position, value) pairs."""
    indices = np.random.default_rng(3).integers(-extent, extent, shape)
    for at, value in bad:
        indices.flat[at] = value
    return indices.astype(np.int64)


GATHERS = {
    "Gather": ("f (float[N, M] x, int64[K] i) => (float[K, M] y) { y = Gather (x, i) }", (300000,)),
    "Gather of elements": ("f (float[N, M] x, int64[K] i) => (float[K] y) { a = Constant <value_ints = [1]> ()\n"
                           "m = ReduceMax <keepdims = 0> (x, a) y = Gather (m, i) }", (300000,)),
    "GatherElements": ("f (float[N, M] x, int64[K, M] i) => (float[K, M] y) { y = GatherElements (x, i) }", (50000, 6)),
    "GatherND": ("f (float[N, M] x, int64[K, D] i) => (float[K, M] y) { y = GatherND (x, i) }", (300000, 1)),
}


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("op", GATHERS)
def test_gather_names_the_lowest_bad_index(tmp_path, op, threads):
    text, shape = GATHERS[op]
    x = np.zeros((7, 6), np.float32)
    for first, last in (((2, 7), (299999, -8)), ((250001, -9), (250002, 99))):
        message = message_of(tmp_path, text, {"x": x, "i": with_bad(shape, 7, last, first)}, "--threads", threads)
        assert f"element {first[0]} of indices is {first[1]}" in message and "extent 7" in message and op.split()[0] in message


def test_scatter_writes_nothing_when_an_index_is_bad(tmp_path):
    text = "f (float[N] x, int64[K] i, float[K] u) => (float[N] y) { y = ScatterElements (x, i, u) }"
    inputs = {"x": np.zeros(5, np.float32), "i": np.array([0, 1, -6, 9]), "u": np.ones(4, np.float32)}
    assert "element 2 of indices is -6" in message_of(tmp_path, text, inputs)


@pytest.mark.parametrize("text, inputs, words", [
    ("f (float[N] x, int64[K] s) => (float[A, B] y) { y = Reshape (x, s) }",
     {"x": np.zeros(6, np.float32), "s": np.array([4, -1])}, "6 elements"),
    ("f (float[N] x, int64[K] s) => (float[A, B] y) { y = Reshape (x, s) }",
     {"x": np.zeros(6, np.float32), "s": np.array([2, -2])}, "extent -2"),
    ("f (float[N] x, int64[1] k) => (float[K] y, int64[K] i) { y, i = TopK (x, k) }",
     {"x": np.zeros(6, np.float32), "k": np.array([7])}, "K is 7"),
    ("f (float[A, B, C] x, int64[B] n) => (float[A, B, C] y) { y = ReverseSequence (x, n) }",
     {"x": np.zeros((2, 2, 2), np.float32), "n": np.array([1, 3])}, "element 1 of sequence_lens is 3"),
    ("f (float[N] x, int64 a) => (float[N] y) { y = CumSum (x, a) }",
     {"x": np.zeros(6, np.float32), "a": np.array(1)}, "axis 1"),
    ("f (float[A, B] x, int64[1] s, int64[1] e, int64[1] a, int64[1] t) => (float[C, D] y) { y = Slice (x, s, e, a, t) }",
     {"x": np.zeros((2, 2), np.float32), "s": np.array([0]), "e": np.array([1]), "a": np.array([2]), "t": np.array([1])},
     "axis 2"),
    ("f (int64 a, int64 b, int64 c) => (int64[N] y) { y = Range (a, b, c) }",
     {"a": np.array(1), "b": np.array(5), "c": np.array(0)}, "delta is 0"),
    ("f (float[A, B, C] x, float[A, D, C] u, int64[A] w) => (float[A, B, C] y) { y = TensorScatter (x, u, w) }",
     {"x": np.zeros((2, 4, 3), np.float32), "u": np.zeros((2, 2, 3), np.float32), "w": np.array([2, 3])},
     "element 1 of write_indices is 3"),
])
def test_messages(tmp_path, text, inputs, words):
    assert words in message_of(tmp_path, text, inputs)
