"""Sequences at the edges of a model are lists in Python."""

import threading

import numpy as np
import onnx.parser
import pytest

from harness import import_package

linnet = import_package()

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
f (seq(float[N]) s, float[2] x, optional(seq(float[2])) o) => (seq(float) none, float[2] y, seq(float) t, bool has, seq(float) none2) {
    none = SequenceEmpty ()
    none2 = SequenceEmpty ()
    y = Neg (x)
    t = SequenceInsert (s, y)
    has = OptionalHasElement (o)
}"""


def bytes_of(text=TEXT):
    model = onnx.parser.parse_model(text)
    for output in model.graph.output:
        if output.type.HasField("sequence_type"):
            output.type.sequence_type.elem_type.tensor_type.ClearField("shape")
    return model.SerializeToString()


def feed(n):
    return {"s": [np.full(k + 1, k, np.float32) for k in range(n)], "x": np.array([1, 2], np.float32)}


@pytest.mark.parametrize("n", [0, 1, 3])
def test_lists_go_in_and_come_out(n):
    session = linnet.InferenceSession(bytes_of(), lengths={"s": n, "o": None})
    given = feed(n)
    for _ in range(2):
        none, y, t, has, none2 = session.run(None, given | {"o": None})
        assert none == none2 == [] and not has
        np.testing.assert_array_equal(y, [-1, -2])
        assert len(t) == n + 1
        for got, want in zip(t, [*given["s"], y]):
            np.testing.assert_array_equal(got, want)
    t, y = session.run(["t", "y"], given)
    assert len(t) == n + 1 and y.shape == (2,)
    last, = session.run([f"t.{n}"], given)
    np.testing.assert_array_equal(last, y)


def test_what_they_are_called():
    session = linnet.InferenceSession(bytes_of(), lengths={"s": 2, "o": None})
    assert [(a.name, a.type) for a in session.get_inputs()] == [("s", "seq(tensor(float))"), ("x", "tensor(float)")]
    assert [(a.name, a.type) for a in session.get_outputs()] == [
        ("none", "seq(tensor(undefined))"), ("y", "tensor(float)"), ("t", "seq(tensor(float))"), ("has", "tensor(bool)"),
        ("none2", "seq(tensor(undefined))")]
    assert session.get_modelmeta().custom_metadata_map["sequence.s"] == "2"


def test_another_thread_gets_lists_too():
    session = linnet.InferenceSession(bytes_of(), lengths={"s": 2, "o": None})
    done, seen = threading.Event(), []
    session.run_async(["t"], feed(2), lambda results, data, text: (seen.append((results, text)), done.set()), None)
    assert done.wait(60)
    assert seen[0][1] == "" and len(seen[0][0][0]) == 3


@pytest.mark.parametrize("change, message", [
    ({"s": [np.zeros(1, np.float32)]}, "is a sequence of 2, is given 1: its length is fixed"),
    ({"s": np.zeros((2, 2), np.float32)}, "is a sequence: give a list of 2 arrays, not ndarray"),
    ({"s": [np.zeros(1, np.float32), np.zeros(1, np.int64)]}, "s.1"),
    ({"o": [np.zeros(2, np.float32)]}, "input 'o' holds nothing"),
    ({"q": 1}, "the model has no input 'q'"),
])
def test_what_does_not_fit_is_refused(change, message):
    session = linnet.InferenceSession(bytes_of(), lengths={"s": 2, "o": None})
    with pytest.raises(linnet.LinnetError, match=message.replace("(", r"\(")):
        session.run(None, feed(2) | change)


def test_lengths_have_to_be_known():
    with pytest.raises(linnet.UnsupportedModel, match="'s' is a sequence: fix its length"):
        linnet.InferenceSession(bytes_of())
    with pytest.raises(linnet.LinnetError, match="'s' cannot have -1 elements"):
        linnet.convert(bytes_of(), lengths={"s": -1})
    with pytest.raises(linnet.LinnetError, match="no input 'r'"):
        linnet.convert(bytes_of(), lengths={"r": 1, "s": 1, "o": None})


def test_metadata_of_others_is_no_sequence():
    """A file that claims sequences without their elements has none."""
    text = '<ir_version: 8, opset_import: ["" : 18]> f (float[2] x) => (float[2] y) { y = Neg (x) }'
    claims = {"sequence.x": "2", "sequence.y": "1", "sequence_output.y": "0", "sequence_output.z": "-7", "sequence.z": "x"}
    image = linnet.convert(bytes_of(text), metadata=claims)
    session = linnet.InferenceSession(image)
    y, = session.run(None, {"x": np.array([1, 2], np.float32)})
    np.testing.assert_array_equal(y, [-1, -2])
    assert [a.name for a in session.get_inputs()] == ["x"]
