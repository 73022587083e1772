"""Sequences whose length is known at conversion, against onnxruntime; and what is said of others."""

import numpy as np
import onnx
import onnx.parser
import pytest

from harness import check_against_reference, linnet

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
BODY = """
f (float[2, 3] a, float[2, 3] b) => (%s) {
    first = Constant <value = int64 {0}> ()
    last = Constant <value = int64 {-1}> ()
    far = Constant <value = int64 {%d}> ()
    empty = SequenceEmpty ()
    one = SequenceInsert (empty, a)
    two = SequenceInsert (one, b, first)
    three = SequenceInsert (two, a, last)
    pair = SequenceConstruct (a, b)
    left = SequenceErase (three, far)
    dropped = SequenceErase (three)
    y = ConcatFromSequence <axis = 1> (left)
    z = ConcatFromSequence <axis = -1, new_axis = 1> (three)
    w = ConcatFromSequence <axis = 0> (dropped)
    v = SequenceAt (pair, last)
    n = SequenceLength (left)
}"""


def model(outputs, far=1):
    return onnx.parser.parse_model(HEAD + BODY % (outputs, far))


def test_known_sequences(tmp_path):
    rng = np.random.default_rng(1)
    inputs = {name: rng.standard_normal((2, 3)).astype(np.float32) for name in "ab"}
    outputs = "float[2, M] y, float[2, 3, K] z, float[P, 3] w, float[2, 3] v, int64 n"
    check_against_reference(tmp_path, model(outputs), inputs)


@pytest.mark.parametrize("outputs, far, message", [
    ("float[2, M] y", 3, "position is outside of the sequence"),
    ("float[2, M] y", -4, "position is outside of the sequence"),
    ("seq(float[2, 3]) pair", 1, "is a sequence, which is not supported"),
])
def test_mistakes(tmp_path, outputs, far, message):
    onnx.save(model(outputs, far), tmp_path / "m.onnx")
    result = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert result.returncode != 0 and message in result.stderr
    assert not (tmp_path / "m.lnt").exists()
