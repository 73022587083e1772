"""Operators that Python functions compute: linnet.register."""

import threading

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

from harness import import_package

linnet = import_package()
HEAD = '<ir_version: 8, opset_import: ["" : 18, "acme" : 1]>\n'


def model(text):
    return onnx.parser.parse_model(HEAD + text)


CLIP = model("""clip (float[N, 3] x) => (float[N, 3] y) {
    d = Mul (x, x)
    c = acme.Clip <low = -1.5, steps = 3, name = "soft", sizes = [1, 2], levels = [0.5, 0.25], words = ["a", "b"]> (d)
    y = Neg (c)
}""")


@pytest.fixture(autouse=True)
def clean():
    yield
    for name in ("acme::Clip", "acme::Find", "acme::Split"):
        try:
            linnet.unregister(name)
        except KeyError:
            pass


def test_a_function_computes_a_node_with_its_attributes():
    seen = []

    def clip(x, low, **others):
        seen.append((x.shape, x.dtype, low, others))
        return np.minimum(x, -low)

    linnet.register("acme::Clip", clip)
    session = linnet.InferenceSession(CLIP.SerializeToString())
    for n in (2, 0, 4):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], -np.minimum(x * x, np.float32(1.5)))
    others = {"steps": 3, "name": "soft", "sizes": [1, 2], "levels": [0.5, 0.25], "words": ["a", "b"]}
    assert seen[0] == ((2, 3), np.float32, -1.5, others)


def test_a_picture_is_decoded_by_who_wants_to():
    """ImageDecoder, which the program has and the library has not."""
    data = np.arange(6, dtype=np.uint8)
    decoder = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 20]>
        decoder (uint8[N] data) => (uint8[H, W, C] image) { image = ImageDecoder <pixel_format = "BGR"> (data) }""")
    with pytest.raises(linnet.LinnetError, match="ImageDecoder"):
        linnet.InferenceSession(decoder.SerializeToString()).run(None, {"data": data})
    linnet.register("ai.onnx::ImageDecoder", lambda data, pixel_format: data.reshape(1, 2, 3), values=[0],
                    shape=lambda data, pixel_format: ((1, len(data.value) // 3, 3), np.uint8))
    np.testing.assert_array_equal(linnet.InferenceSession(decoder.SerializeToString()).run(None, {"data": data})[0],
                                  data.reshape(1, 2, 3))
    linnet.unregister("ai.onnx::ImageDecoder")


def test_a_file_converted_before_and_a_name_with_a_dot(tmp_path):
    linnet.register("acme.Clip", lambda x, **_: x + 1)
    linnet.convert(CLIP.SerializeToString(), tmp_path / "m.lnt")
    x = np.ones((1, 3), np.float32)
    np.testing.assert_array_equal(linnet.InferenceSession(tmp_path / "m.lnt").run(None, {"x": x})[0], -2 * x)
    linnet.register("acme.Clip", lambda x, **_: x + 2)
    np.testing.assert_array_equal(linnet.InferenceSession(tmp_path / "m.lnt").run(None, {"x": x})[0], -3 * x)
    linnet.unregister("acme.Clip")
    with pytest.raises(linnet.LinnetError, match="acme.Clip"):
        linnet.InferenceSession(tmp_path / "m.lnt")
    with pytest.raises(linnet.UnsupportedModel, match="Clip"):
        linnet.InferenceSession(CLIP.SerializeToString())


SPLIT = model("""split (float[N] x, int64 at, float[2] w) => (float[A] front, int32[B] back) {
    front, back = acme.Split (x, at, , w)
}""")


def test_shapes_of_several_outputs_that_depend_on_an_inputs_value():
    def shape(x, at, skipped, w):
        assert x.value is None and skipped is None and w.shape == (2,)
        return [((int(at.value),), np.float32), ((x.shape[0] - int(at.value),), np.int32)]

    def split(x, at, skipped, w):
        assert skipped is None
        return x[:int(at)] * w[0], x[int(at):].astype(np.int32)

    linnet.register("acme::Split", split, shape, values=[1])
    session = linnet.InferenceSession(SPLIT.SerializeToString())
    x = np.arange(6, dtype=np.float32)
    for at in (0, 2, 6, 3):
        front, back = session.run(None, {"x": x, "at": np.int64(at), "w": np.float32([2, 0])})
        np.testing.assert_array_equal(front, 2 * x[:at])
        np.testing.assert_array_equal(back, x[at:].astype(np.int32))


def test_a_tensor_attribute():
    proto = onnx.ModelProto()
    proto.CopyFrom(model("t (float[3] x) => (float[3] y) { y = acme.Find (x) }"))
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    proto.graph.node[0].attribute.append(helper.make_attribute("table", numpy_helper.from_array(table)))
    linnet.register("acme::Find", lambda x, table: x * table[1])
    y = linnet.InferenceSession(proto.SerializeToString()).run(None, {"x": np.float32([1, 2, 3])})[0]
    np.testing.assert_array_equal(y, [3, 8, 15])


NAMED = model("t (float[N] x) => (float[N] y) { y = acme.Find (x) }")
NAMED.graph.node[0].name = "the_search"


@pytest.mark.parametrize("fn, shape, says", [
    (lambda x: {}["gone"], None, "KeyError: 'gone'"),
    (lambda x: x[:1], None, r"float32 of shape \[1\], shape\(\) told float32 of \[3\]"),
    (lambda x: x.astype(np.float64), None, "float64"),
    (lambda x: (x, x), None, "returned 2 outputs, the node has 1"),
    (lambda x, y: x, None, "missing 1 required positional argument"),
    (lambda x: x, lambda x: ((-1,), np.float32), "cannot have the extents"),
    (lambda x: x, lambda x: ((1,) * 9, np.float32), "at most 8"),
    (lambda x: x, lambda x: ((1,), complex), "complex"),
    (lambda x: x, lambda x: [], "told of 0 outputs"),
    (lambda x: x, lambda x: None, "cannot unpack"),
])
def test_what_it_raises_ends_the_run_and_names_the_node(fn, shape, says):
    linnet.register("acme::Find", fn, shape)
    session = linnet.InferenceSession(NAMED.SerializeToString())
    with pytest.raises(linnet.LinnetError, match=f"the_search.*{says}") as caught:
        session.run(None, {"x": np.ones(3, np.float32)})
    assert isinstance(caught.value.__cause__, Exception)


def test_a_session_runs_again_after_its_operator_raised():
    linnet.register("acme::Find", lambda x: 1 / x[0] + x if x[0] else [][0])
    session = linnet.InferenceSession(NAMED.SerializeToString())
    with pytest.raises(linnet.LinnetError, match="IndexError"):
        session.run(None, {"x": np.zeros(1, np.float32)})
    assert session.run(None, {"x": np.ones(1, np.float32)})[0] == [2]


def test_an_interrupt_stays_one():
    def interrupted(x):
        raise KeyboardInterrupt

    linnet.register("acme::Find", interrupted)
    with pytest.raises(KeyboardInterrupt):
        linnet.InferenceSession(NAMED.SerializeToString()).run(None, {"x": np.ones(1, np.float32)})


def test_arrays_may_be_kept():
    kept = []
    linnet.register("acme::Clip", lambda x, **_: kept.append(x) or x)
    session = linnet.InferenceSession(CLIP.SerializeToString())
    for k in (1, 2):
        session.run(None, {"x": np.full((1, 3), k, np.float32)})
    del session
    assert [a[0, 0] for a in kept] == [1, 4]


def test_many_threads():
    """Sessions of their own, one that is shared, and runs in parallel order within one."""
    linnet.register("acme::Clip", lambda x, low, **_: x * low)
    options = linnet.SessionOptions()
    options.intra_op_num_threads, options.execution_mode = 3, linnet.ExecutionMode.ORT_PARALLEL
    shared, wrong = linnet.InferenceSession(CLIP.SerializeToString(), options), []

    def work(k):
        mine = linnet.InferenceSession(CLIP.SerializeToString(), options)
        for n in range(40):
            x = np.full((n % 3, 3), k, np.float32)
            for session in (mine, shared):
                if not np.array_equal(session.run(None, {"x": x})[0], x * x * np.float32(1.5)):
                    wrong.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert not wrong and not any(t.is_alive() for t in threads)


@pytest.mark.parametrize("name, fn, values, kind", [("Clip", abs, (), ValueError), ("acme::", abs, (), ValueError),
                                                    ("acme::Clip", 3, (), TypeError), ("acme::Clip", abs, (32,), ValueError)])
def test_what_cannot_be_registered(name, fn, values, kind):
    with pytest.raises(kind):
        linnet.register(name, fn, values=values)
    with pytest.raises(KeyError):
        linnet.unregister("acme::Clip")
