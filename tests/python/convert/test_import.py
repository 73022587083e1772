"""What the converter makes of ONNX files: functions, scopes, external data, options, reports, damaged models."""

import json
import os
import random

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import check_against_reference, linnet, reference, write_case

HEAD = '<ir_version: 9, opset_import: ["" : 18, "own" : 1]>\n'
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def parse(text, head=HEAD):
    return onnx.parser.parse_model(head + text)


def convert(tmp_path, model, *options, name="model.onnx"):
    """Converts; returns the finished process and the paths of the image and its report."""
    path = tmp_path / name
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    image, report = tmp_path / "m.lnt", tmp_path / "r.json"
    return linnet("convert", path, "-o", image, "--report", report, *options), image, report


def refused(tmp_path, model, *words, options=()):
    """The model is refused with a message that holds all words, and no image is written."""
    done, image, _ = convert(tmp_path, model, *options)
    assert 2 <= done.returncode <= 5, done.stdout + done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert not image.exists()


def info(image):
    return json.loads(linnet("info", image, "--json").stdout)


def names(values):
    return [v["name"] for v in values]


# ---- functions ----


def test_functions_nest_and_pass_attributes_on(tmp_path):
    text = """
    f (float[N,3] x) => (float[N,3] y, float[N,3] z) {
        y = own.scale_twice <k: float = 3.0> (x)
        z = own.scale (y)
    }
    <domain: "own", opset_import: ["" : 18, "own" : 1]>
    scale <k: float = 0.5> (a) => (b) {
        f = Constant <value_float: float = @k> ()
        b = Mul (a, f)
    }
    <domain: "own", opset_import: ["" : 18, "own" : 1]>
    scale_twice <k> (a) => (c) {
        b = own.scale <k: float = @k> (a)
        c = own.scale <k: float = @k> (b)
    }"""
    model = parse(text)
    assert len(model.functions) == 2
    case = write_case(tmp_path, model, {"x": X}, [X * 9, X * 4.5])
    for opt in ("none", "all"):
        done = linnet("verify", case / "model.onnx", "--opt", opt)
        assert done.returncode == 0, done.stdout + done.stderr


def test_function_with_a_subgraph_a_skipped_input_and_an_input_passed_through(tmp_path):
    text = """
    f (float[N,3] x, bool c) => (float[N,3] y, float[N,3] same) {
        y, same = own.choose (x, , c)
    }
    <domain: "own", opset_import: ["" : 18]>
    choose (a, unused, c) => (b, a) {
        one = Constant <value_float: float = 1.0> ()
        b = If (c) <
            then_branch = t () => (p) { p = Add (a, one) },
            else_branch = e () => (q) { q = Sub (a, one) }
        >
    }"""
    for flag in (True, False):
        case = write_case(tmp_path, parse(text), {"x": X, "c": np.array(flag)}, [X + (1 if flag else -1), X])
        done = linnet("verify", case / "model.onnx")
        assert done.returncode == 0, done.stdout + done.stderr


def test_function_of_an_older_opset(tmp_path):
    text = """
    f (float[N,3] x) => (float[N] y) { y = own.total (x) }
    <domain: "own", opset_import: ["" : 11]>
    total (a) => (b) { b = ReduceSum <axes = [1], keepdims = 0> (a) }"""
    case = write_case(tmp_path, parse(text), {"x": X}, [X.sum(1)])
    assert linnet("verify", case / "model.onnx").returncode == 0


def test_recursion_is_refused(tmp_path):
    text = """
    f (float[N] x) => (float[N] y) { y = own.a (x) }
    <domain: "own", opset_import: ["" : 18, "own" : 1]>
    a (x) => (y) { y = own.b (x) }
    <domain: "own", opset_import: ["" : 18, "own" : 1]>
    b (x) => (y) { y = own.a (x) }"""
    refused(tmp_path, parse(text), "function 'a' calls itself")


def test_functions_that_explode_are_refused(tmp_path):
    """Each of 40 functions calls the next twice."""
    text = "f (float[N] x) => (float[N] y) { y = own.f0 (x) }\n"
    for i in range(40):
        text += f'<domain: "own", opset_import: ["" : 18, "own" : 1]>\nf{i} (x) => (y)'
        text += f" {{ t = own.f{i + 1} (x)  y = own.f{i + 1} (t) }}\n"
    text += '<domain: "own", opset_import: ["" : 18]>\nf40 (x) => (y) { y = Neg (x) }'
    refused(tmp_path, parse(text), "with which the model has more than")


# ---- graphs ----


def test_nodes_in_any_order(tmp_path):
    text = """
    f (float[2,3] x, bool c) => (float[2,3] y) {
        y = Add (b, d)
        d = If (c) < then_branch = t () => (p) { p = Neg (b) }, else_branch = e () => (q) { q = Exp (b) } >
        b = Mul (a, a)
        a = Abs (x)
    }"""
    case = write_case(tmp_path, parse(text), {"x": X, "c": np.array(True)}, [X * 0])
    assert linnet("verify", case / "model.onnx").returncode == 0


def test_inner_names_may_repeat_in_sibling_graphs(tmp_path):
    text = """
    f (float[2,3] x, bool c) => (float[2,3] y, float[2,3] z) {
        y = If (c) < then_branch = t () => (r) { p = Neg (x)  r = Exp (p) },
                     else_branch = e () => (r) { p = Abs (x)  r = Exp (p) } >
        z = If (c) < then_branch = t2 () => (r) { p = Neg (x)  r = Neg (p) },
                     else_branch = e2 () => (r) { r = Neg (x) } >
    }"""
    check_against_reference(tmp_path, parse(text), {"x": X, "c": np.array(False)})


def test_outer_names_win_over_those_of_subgraphs(tmp_path):
    """Some exporters name a branch's output like the node's: the model's outputs keep their names."""
    text = """
    f (float[2,3] x, bool c) => (float[2,3] y, float[2,3] z) {
        y = If (c) < then_branch = t () => (y) { z = Neg (x)  y = Exp (z) }, else_branch = e () => (y) { y = Abs (x) } >
        z = Neg (y)
    }"""
    case = write_case(tmp_path, parse(text), {"x": X, "c": np.array(True)}, [np.exp(-X), -np.exp(-X)])
    assert linnet("verify", case / "model.onnx").returncode == 0
    _, image, _ = convert(tmp_path, parse(text))
    assert names(info(image)["outputs"]) == ["y", "z"]


def test_outputs_may_be_inputs_constants_and_repeated(tmp_path):
    text = """
    f (float[2,3] x) => (float[2,3] x, float[2] k, float[2,3] y, float[2,3] y) {
        k = Constant <value = float[2] {3.0, 4.0}> ()
        y = Neg (x)
    }"""
    model = parse(text)
    case = write_case(tmp_path, model, {"x": X}, [X, np.float32([3, 4]), -X, -X])
    for opt in ("none", "all"):
        done = linnet("verify", case / "model.onnx", "--opt", opt)
        assert done.returncode == 0, done.stdout + done.stderr


def constant_nodes():
    f32 = numpy_helper.from_array(np.float32([[1, 2]]))
    yield "tensor", {"value": f32}, np.float32([[1, 2]])
    yield "int", {"value_int": 7}, np.array(7)
    yield "ints", {"value_ints": [1, -2, 3]}, np.array([1, -2, 3])
    yield "float", {"value_float": 0.5}, np.float32(0.5)
    yield "floats", {"value_floats": [0.5, -1.5]}, np.float32([0.5, -1.5])


@pytest.mark.parametrize("attribute, value", [c[1:] for c in constant_nodes()], ids=[c[0] for c in constant_nodes()])
def test_forms_of_constants(tmp_path, attribute, value):
    kind = helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype)
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["y"], **attribute)],
        "g",
        [],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    case = write_case(tmp_path, model, {}, [value])
    done = linnet("verify", case / "model.onnx")
    assert done.returncode == 0, done.stdout + done.stderr


def tensor_forms():
    """One tensor stored in raw bytes and in the typed fields."""
    for kind, dtype in ((1, np.float32), (2, np.uint8), (3, np.int8), (6, np.int32), (7, np.int64), (9, np.bool_)):
        yield kind, np.array([1, 0, 3]).astype(dtype)
    for kind, dtype in ((10, np.float16), (11, np.float64), (12, np.uint32), (13, np.uint64)):
        yield kind, np.array([1, 0, 3]).astype(dtype)


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("kind, value", list(tensor_forms()), ids=[str(v.dtype) for _, v in tensor_forms()])
def test_forms_of_initializers(tmp_path, kind, value, raw):
    stored = value.view(np.uint16) if kind == 10 else value.astype(np.int64) if kind == 9 else value
    data = value.tobytes() if raw else stored.tolist()
    tensor = TensorProto(name="k", data_type=kind, dims=[3])
    if raw:
        tensor.raw_data = data
    else:
        field = {1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data"}
        getattr(tensor, field.get(kind, "int32_data")).extend(data)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["k"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", kind, [3])],
        [tensor],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    case = write_case(tmp_path, model, {}, [value])
    done = linnet("verify", case / "model.onnx")
    assert done.returncode == 0, done.stdout + done.stderr


# ---- external data ----


def external_model(location, offset=None, length=None, count=6):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[count])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    graph = helper.make_graph(
        [helper.make_node("Neg", ["w"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [count])],
        [tensor],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


W = np.arange(6, dtype=np.float32)


@pytest.mark.parametrize("offset, length", [(None, None), (0, 24), (16, 24), (16, None)])
def test_external_data(tmp_path, offset, length):
    folder = tmp_path / "in"
    (folder / "weights").mkdir(parents=True)
    (folder / "weights" / "w.bin").write_bytes(bytes(offset or 0) + W.tobytes() + b"more")
    model = external_model("weights/w.bin", offset, length)
    data = folder / "test_data_set_0"
    data.mkdir()
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (data / "output_0.pb").write_bytes(numpy_helper.from_array(-W, "y").SerializeToString())
    done = linnet("verify", folder / "model.onnx")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "location, offset, length, word",
    [
        ("../out.bin", 0, 24, "inside the model's folder"),
        ("sub/../../out.bin", 0, 24, "inside the model's folder"),
        ("{root}/out.bin", 0, 24, "inside the model's folder"),
        ("link.bin", 0, 24, "leads out of the model's folder"),
        ("door/out.bin", 0, 24, "leads out of the model's folder"),
        ("missing.bin", 0, 24, "no file 'missing.bin'"),
        ("", 0, 24, "inside the model's folder"),
        (None, 0, 24, "without a location"),
        ("sub", 0, 24, "not a regular file but a folder"),
        ("short.bin", 0, 24, "not inside 'short.bin'"),
        ("w.bin", 4, 24, "not inside 'w.bin'"),
        ("w.bin", 9223372036854775807, 24, "not inside 'w.bin'"),
        ("w.bin", -4, 24, "is no size"),
        ("w.bin", 0, 20, "24 bytes"),
        ("w.bin", "x", 24, "is no size"),
    ],
)
def test_external_data_that_is_refused(tmp_path, location, offset, length, word):
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "out.bin").write_bytes(W.tobytes())
    (folder / "w.bin").write_bytes(W.tobytes())
    (folder / "short.bin").write_bytes(W.tobytes()[:-1])
    os.symlink(tmp_path / "out.bin", folder / "link.bin")
    os.symlink(tmp_path, folder / "door")
    if location:
        location = location.format(root=tmp_path)
    refused(folder, external_model(location, offset, length), word)


# ---- options ----

TWO_DIMS = "f (float[N,3,?] x, float[N] y) => (float[N,3,?] z) { z = Neg (x) }"


def dims(image):
    i = info(image)["inputs"][0]
    return i["dims"], i["dim_names"]


def test_names_of_extents(tmp_path):
    _, image, _ = convert(tmp_path, parse(TWO_DIMS))
    assert dims(image)[1] == ["N", None, "x:2"]
    assert dims(image)[0][1] == 3


@pytest.mark.parametrize("options, wanted", [(["N=4"], [4, 3, None]), (["x:2=5", "N=2"], [2, 3, 5]), (["x:1=3"], None)])
def test_fixed_extents(tmp_path, options, wanted):
    done, image, _ = convert(tmp_path, parse(TWO_DIMS), *[w for o in options for w in ("--dim", o)])
    assert done.returncode == 0, done.stderr
    for got, want in zip(dims(image)[0], wanted or []):
        assert want is None or got == want


def test_extents_that_contradict_or_do_not_exist(tmp_path):
    refused(tmp_path, parse(TWO_DIMS), "the model fixes that extent at 3", options=("--dim", "x:1=4"))
    refused(tmp_path, parse(TWO_DIMS), "--dim", "nonsense", options=("--dim", "nonsense=4"))


STATEFUL = """f (float[2] x, float[2] h, int64[2] k) => (float[2] y, float[2] h2, float[2,2] wide) {
    h2 = Add (x, h)  y = Neg (h2)  wide = Expand (x, k)
}"""


def test_states(tmp_path):
    done, image, _ = convert(tmp_path, parse(STATEFUL), "--state", "h2=h")
    assert done.returncode == 0, done.stderr
    assert [i["state"] for i in info(image)["inputs"]] == [False, True, False]
    assert [o["state"] for o in info(image)["outputs"]] == [False, True, False]


@pytest.mark.parametrize(
    "states, words",
    [
        (["none=h"], ["no output 'none'"]),
        (["h2=none"], ["no input 'none'"]),
        (["h2=k"], ["float", "int64"]),
        (["wide=h"], ["rank"]),
        (["h2=h", "y=h"], ["already"]),
        (["h2=h", "h2=x"], ["already"]),
    ],
)
def test_states_that_are_refused(tmp_path, states, words):
    refused(tmp_path, parse(STATEFUL), *words, options=[w for s in states for w in ("--state", s)])


def with_default(ir_version=3):
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "k"], ["y"])],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("x", "k")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        [numpy_helper.from_array(np.float32([1, 2]), "k")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=ir_version)


def test_initializers_are_constants_unless_overridable(tmp_path):
    _, image, _ = convert(tmp_path, with_default())
    assert names(info(image)["inputs"]) == ["x"]
    _, image, _ = convert(tmp_path, with_default(), "--overridable", "k")
    assert names(info(image)["inputs"]) == ["x", "k"]
    image.unlink()
    refused(tmp_path, with_default(), "no initializer 'nothing'", options=("--overridable", "nothing"))


def test_initializers_that_are_no_graph_inputs_are_overridable(tmp_path):
    """As PyTorch writes them: inputs of their own type and extents behind the model's, which every run is given."""
    model = parse("""f (float[1, 2, 5] x) => (float[1, 3, 4] y)
        <float[3, 2, 2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[3] bias = {1, 2, 3}, int64[3] shape = {1, 3, 4}> {
        c = Conv (x, w, bias)
        y = Reshape (c, shape)
    }""")
    refused(tmp_path, model, "no initializer 'bais'; did you mean 'bias'?", options=("--overridable", "bais"))
    done, image, _ = convert(tmp_path, model, "--overridable", "bias", "--overridable", "w")
    assert done.returncode == 0, done.stderr
    assert [(i["name"], i["dtype"], i["dims"]) for i in info(image)["inputs"]] == [
        ("x", "float", [1, 2, 5]), ("w", "float", [3, 2, 2]), ("bias", "float", [3])]
    rng = np.random.default_rng(1)
    feed = {"x": rng.normal(size=(1, 2, 5)), "w": rng.normal(size=(3, 2, 2)), "bias": rng.normal(size=3)}
    words = []
    for name, value in feed.items():
        np.save(tmp_path / f"{name}.npy", value.astype(np.float32))
        words += ["--input", f"{name}={tmp_path / name}.npy"]
    ran = linnet("run", image, *words, "--output", f"y={tmp_path}/y.npy")
    assert ran.returncode == 0, ran.stderr
    want = sum(np.einsum("fc,bcp->bfp", feed["w"][:, :, k], feed["x"][:, :, k:k + 4]) for k in range(2)) + feed["bias"][None, :, None]
    assert np.allclose(np.load(tmp_path / "y.npy"), want, atol=1e-5)


def test_metadata(tmp_path):
    model = parse("f (float[2] x) => (float[2] y) { y = Neg (x) }")
    model.producer_name, model.producer_version = "maker", "1.2"
    helper.set_model_props(model, {"rate": "16000", "kept": "äö"})
    done, image, _ = convert(tmp_path, model, "--meta", "rate=8000", "--meta", "mine=yes")
    assert done.returncode == 0, done.stderr
    text = json.dumps(info(image)["metadata"], ensure_ascii=False)
    for part in ("maker 1.2", "onnx.opset.ai.onnx", "8000", "äö", "mine"):
        assert part in text, text
    assert "16000" not in text


def test_kept_values_can_be_fetched(tmp_path):
    model = parse("f (float[2,3] x) => (float[2,3] y) { a = Exp (x)  b = Neg (a)  y = Abs (b) }")
    _, image, _ = convert(tmp_path, model, "--keep", "a")
    np.save(tmp_path / "x.npy", X)
    done = linnet("run", image, "--input", f"x={tmp_path}/x.npy", "--fetch", f"a={tmp_path}/a.npy")
    assert done.returncode == 0, done.stderr
    assert np.allclose(np.load(tmp_path / "a.npy"), np.exp(X), rtol=1e-5)
    image.unlink()
    refused(tmp_path, model, "no value 'zz'", options=("--keep", "zz"))


# ---- golden vectors ----


def test_golden_vectors_are_recorded_and_prove_the_file(tmp_path):
    model = parse("f (float[N,3] x) => (float[N,3] y) { a = Exp (x)  y = Neg (a) }")
    case = write_case(tmp_path / "case", model, {"x": X}, reference(model, {"x": X}))
    for options in ((), ("--golden", case / "test_data_set_0")):
        done, image, _ = convert(tmp_path, model, *options)
        assert done.returncode == 0, done.stderr
        assert linnet("verify", image).returncode == 0
    wrong = write_case(tmp_path / "wrong", model, {"x": X}, [X])
    done, image, _ = convert(tmp_path, model, "--golden", wrong / "test_data_set_0")
    assert done.returncode == 0, done.stderr
    assert linnet("verify", image).returncode == 1


def test_large_golden_vectors_are_seeded_and_sampled(tmp_path):
    model = parse("f (float[200,300] x) => (float[200,300] y) { y = Exp (x) }")
    done, image, _ = convert(tmp_path, model)
    assert done.returncode == 0, done.stderr
    assert image.stat().st_size < 80000
    assert linnet("verify", image).returncode == 0
    big = np.zeros((200, 300), np.float32)
    case = write_case(tmp_path / "case", model, {"x": big}, [big])
    image.unlink()
    done, image, _ = convert(tmp_path, model, "--golden", case / "test_data_set_0")
    assert done.returncode == 0 and image.stat().st_size > big.nbytes, done.stderr
    assert linnet("verify", image).returncode == 1  # exp(0) is 1


# ---- what cannot be converted ----


def test_all_faults_are_listed_at_once(tmp_path):
    text = """
    f (float[2,3] x) => (float[2,3] y) {
        [first] a = NoSuchThing (x)
        [second] b = vendor.Other (a)
        [third] c = Add (b)
        [fourth] y = Neg (c)
    }"""
    head = '<ir_version: 9, opset_import: ["" : 18, "vendor" : 3]>\n'
    done, image, report = convert(tmp_path, parse(text, head))
    assert done.returncode == 4 and not image.exists()
    listed = json.loads(report.read_text())["unsupported"] if report.exists() else []
    for word in ("NoSuchThing", "vendor.Other", "first", "second", "third"):
        assert word in done.stderr, done.stderr
    assert "fourth" not in done.stderr
    if listed:
        by_node = {u["node"]: u for u in listed}
        assert by_node["second"]["domain"] == "vendor" and by_node["second"]["opset"] == 3


def test_attributes_that_an_operator_does_not_have(tmp_path):
    """Clip of opset 11 takes its bounds as inputs: the attributes of opset 6 would be lost."""
    text = "f (float[2] x) => (float[2] y) { y = Clip <min: float = 0.0> (x) }"
    refused(tmp_path, parse(text), "no attribute 'min'")


def test_custom_operators_are_converted_on_request(tmp_path):
    text = "f (float[2] x) => (float[2] y) { a = own.Thing <k = 3> (x)  y = Neg (a) }"
    refused(tmp_path, parse(text), "own.Thing", "--custom")
    done, image, _ = convert(tmp_path, parse(text), "--custom", "own.Thing")
    assert done.returncode == 0, done.stderr
    np.save(tmp_path / "x.npy", np.float32([1, 2]))
    done = linnet("run", image, "--input", f"x={tmp_path}/x.npy")
    assert done.returncode == 4 and "own.Thing" in done.stderr, done.stderr


def test_a_custom_operator_goes_before_a_function_or_an_operator_of_its_name(tmp_path):
    """What the host brings is meant to be used, whatever the model has under that name."""
    text = """
    f (float[2] x) => (float[2] y) { a = own.Thing (x)  y = com.microsoft.Gelu (a) }
    <opset_import: ["" : 18], domain: "own"> Thing (p) => (q) { q = Neg (p) }"""
    head = '<ir_version: 9, opset_import: ["" : 18, "own" : 1, "com.microsoft" : 1]>\n'
    for names in ((), ("own.Thing",), ("com.microsoft.Gelu",)):
        done, image, _ = convert(tmp_path, parse(text, head), *[w for name in names for w in ("--custom", name)])
        assert done.returncode == 0, done.stderr
        done = linnet("info", image)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("(custom)") == len(names) and all(f"{n} (custom) 1" in done.stdout for n in names)
        assert ("host program" in done.stdout) == bool(names)


def test_opsets_and_versions_that_are_unknown(tmp_path):
    model = parse("f (float[2] x) => (float[2] y) { y = Neg (x) }")
    model.opset_import[0].version = 99
    refused(tmp_path, model, "opset 99")
    model.opset_import[0].version = 18
    model.ir_version = 2
    refused(tmp_path, model, "IR version 2")


def test_sparse_initializers_are_refused(tmp_path):
    model = with_default(ir_version=8)
    sparse = model.graph.sparse_initializer.add()
    sparse.dims.extend([2])
    sparse.values.CopyFrom(numpy_helper.from_array(np.float32([1]), "s"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([0]), ""))
    refused(tmp_path, model, "sparse initializers")


# ---- malformed models ----


def edited(change):
    model = with_default(ir_version=8)
    change(model)
    return model


def drop_graph(m):
    m.ClearField("graph")


def duplicate_output(m):
    m.graph.node.add(op_type="Neg", input=["x"], output=["y"])


def wrong_initializer(m):
    m.graph.initializer[0].dims[0] = 5


def huge_initializer(m):
    m.graph.initializer[0].dims[:] = [1 << 40, 1 << 40]


def unknown_input(m):
    m.graph.node[0].input[0] = "nowhere"


def cycle(m):
    m.graph.node[0].input[0] = "z"
    m.graph.node.add(op_type="Neg", input=["y"], output=["z"])


def missing_output(m):
    m.graph.output[0].name = "nowhere"


def no_operator(m):
    m.graph.node[0].ClearField("op_type")


def shapes_apart(m):
    m.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3


def types_apart(m):
    m.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE


@pytest.mark.parametrize(
    "change, word",
    [
        (drop_graph, "no graph"),
        (duplicate_output, "'y' is defined twice"),
        (wrong_initializer, "initializer 'k'"),
        (huge_initializer, "initializer 'k'"),
        (unknown_input, "reads 'nowhere'"),
        (cycle, "reads 'z'"),
        (missing_output, "'nowhere' of graph"),
        (no_operator, "no operator"),
        (shapes_apart, "do not broadcast"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_malformed_models(tmp_path, change, word):
    refused(tmp_path, edited(change), word)


def test_bytes_that_are_no_model(tmp_path):
    for data in (b"hello", b"\x00" * 100, b"\x08\x08", b"\x3a\x7f"):
        refused(tmp_path, data, "ONNX")


def test_a_bomb_of_nested_graphs(tmp_path):
    """100,000 graphs inside each other: refused by the scan, before anything recurses."""

    def field(number, body):
        size, n = b"", len(body)
        while n > 127:
            size, n = size + bytes([n & 127 | 128]), n >> 7
        return bytes([number << 3 | 2]) + size + bytes([n]) + body

    graph = b""
    for _ in range(2000):
        graph = field(1, field(5, field(6, graph)))
    refused(tmp_path, b"\x08\x08" + field(7, graph), "nested deeper")


def test_deeply_nested_subgraphs(tmp_path):
    def nested(depth):
        text = f"y{depth} = Neg (x)"
        for k in range(depth, 0, -1):
            text = (
                f"y{k - 1} = If (c) < then_branch = t{k} () => (y{k}) {{ {text} }}, "
                f"else_branch = e{k} () => (q{k}) {{ q{k} = Abs (x) }} >"
            )
        return parse(f"f (float[2,3] x, bool c) => (float[2,3] y0) {{ {text} }}")

    case = write_case(tmp_path, nested(24), {"x": X, "c": np.array(True)}, [-X])
    done = linnet("verify", case / "model.onnx")
    assert done.returncode == 0, done.stdout + done.stderr


def test_damaged_models_never_crash(tmp_path):
    """Random bytes of real models changed: refused or converted, never a crash."""
    text = """
    f (float[N,3] x, bool c) => (float[N,3] y) {
        k = Constant <value = float[3] {1.0, 2.0, 3.0}> ()
        a = own.twice (x)
        y = If (c) < then_branch = t () => (p) { p = Add (a, k) }, else_branch = e () => (q) { q = Clip (a) } >
    }
    <domain: "own", opset_import: ["" : 18]>
    twice (a) => (b) { b = Add (a, a) }"""
    seeds = [parse(text).SerializeToString(), with_default().SerializeToString()]
    rng = random.Random(1)
    path, image = tmp_path / "m.onnx", tmp_path / "m.lnt"
    for _ in range(int(os.environ.get("LINNET_FUZZ", "300"))):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        path.write_bytes(data)
        done = linnet("convert", path, "-o", image)
        assert 0 <= done.returncode <= 5, f"{done.returncode}: {bytes(data)!r}"
