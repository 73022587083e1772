"""What is no model, no tensor, or more than the machine has: every verb says so, by code and in words, at once."""

import json
import resource
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import harness
from harness import LINNET, ROOT

SANITIZED = "asan" in LINNET
SOON = 20 if SANITIZED else 2  # seconds of the program's own time: the machine may be busy
USAGE, FILE, UNSUPPORTED, RESOURCE = 2, 3, 4, 5


def floats(name, *dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"my_{op}", **attributes)


def model(nodes, inputs, outputs, constants=(), opset=18):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def damaged(dims, data=b"", location=None):
    """x + w where w is a float tensor that says it has dims."""
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=data)
    if location:
        w.ClearField("raw_data")
        w.data_location = TensorProto.EXTERNAL
        w.external_data.add(key="location", value=location)
    return model([node("Add", "x w", "y")], [floats("x", 4)], [floats("y", 4)], [w])


# ---- protobuf by hand: what Python's own would take too long for, or refuse ----

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def wrap(graph):
    return varint(1 << 3) + varint(8) + field(7, graph) + field(8, helper.make_opsetid("", 18).SerializeToString())


def two_million_nodes():
    ends = field(11, floats("x", 2).SerializeToString()) + field(12, floats("y", 2).SerializeToString())
    return wrap(field(1, field(1, b"x") + field(2, b"y") + field(4, b"Neg")) * 2_000_000 + ends)


def nested_subgraphs(depth):
    graph = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Neg"))
    for _ in range(depth):
        branch = field(1, b"then_branch") + varint(20 << 3) + varint(5) + field(6, graph)
        graph = field(1, field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, branch))
    return wrap(graph + field(11, floats("x", 2).SerializeToString()))


def doubling(times, constants=()):
    """x joined to itself so many times."""
    nodes = [helper.make_node("Concat", [f"v{i}"] * 2, [f"v{i + 1}"], axis=0) for i in range(times)]
    return model(nodes, [] if constants else [floats("v0", 1)], [floats(f"v{times}", None)], constants)


def calling(depth, width):
    """Functions each of which calls the next so many times."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    functions = [helper.make_function("own", f"F{d}", ["x"], ["y"], [
        helper.make_node("Sin" if d + 1 == depth else f"F{d + 1}", ["x" if k == 0 else f"t{k}"],
                         ["y" if k + 1 == width else f"t{k + 1}"], domain="" if d + 1 == depth else "own")
        for k in range(width)], opsets) for d in range(depth)]
    graph = helper.make_graph([helper.make_node("F0", ["x"], ["y"], name="call", domain="own")], "g", *map(lambda v: [v], ONE))
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=8).SerializeToString()


def grouped(op, groups, channels=1):
    """A convolution of a few bytes that says it has so many groups."""
    kind = TensorProto.UINT8 if op == "ConvInteger" else TensorProto.FLOAT
    weights = np.ones((channels, 1, 3, 3), helper.tensor_dtype_to_np_dtype(kind))
    result = TensorProto.INT32 if op == "ConvInteger" else kind
    return model([node(op, "x w", "y", group=groups)],
                 [helper.make_tensor_value_info("x", kind, [1, channels, 8, 8])],
                 [helper.make_tensor_value_info("y", result, None)], [constant("w", weights)])


def branching():
    """A Scan whose body gives x, a float, or as many doubles."""
    then = helper.make_graph([node("Identity", "x", "t")], "then", [], [floats("t", None)])
    other = helper.make_graph([node("Cast", "x", "e", to=TensorProto.DOUBLE)], "other", [],
                              [helper.make_tensor_value_info("e", TensorProto.DOUBLE, None)])
    body = helper.make_graph([node("If", "b", "y", then_branch=then, else_branch=other)], "body",
                             [helper.make_tensor_value_info("b", TensorProto.BOOL, [])], [floats("y", None)])
    return model([node("Scan", "bs", "ys", body=body, num_scan_inputs=1)],
                 [helper.make_tensor_value_info("bs", TensorProto.BOOL, [2]), floats("x", 4096)], [floats("ys", None)])


def recurrent(hidden):
    return model([node("LSTM", "x w r", "y", hidden_size=hidden)], [floats("x", "T", "B", 3)], [floats("y", None)],
                 [constant("w", np.ones((1, 8, 3), np.float32)), constant("r", np.ones((1, 8, 2), np.float32))])


def packed_product(**numbers):
    """y = x w, the weights of 8 bits unless numbers say otherwise."""
    numbers = dict(K=4, N=3, bits=8, block_size=16) | numbers
    graph = helper.make_graph(
        [helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], name="my_MatMulNBits", domain="com.microsoft", **numbers)], "g",
        [floats("x", 2, 4)], [floats("y", 2, None)],
        [constant("w", np.zeros((3, 1, 8), np.uint8)), constant("s", np.ones(3, np.float32))])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


ONE = floats("x", 4), floats("y", 4)
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01" + bytes(range(256)) * 8

# What convert is given, what it answers with, words of the message.
MODELS = {
    "empty": (lambda: b"", FILE, ["is empty"]),
    "text": (lambda: b"this is no model\n" * 9, FILE, ["not an ONNX model"]),
    "jpeg": (lambda: JPEG, FILE, ["not an ONNX model"]),
    "truncated": (lambda: model([node("Relu", "x", "y")], [ONE[0]], [ONE[1]])[:-9], FILE, ["not an ONNX model"]),
    "no_outputs": (lambda: model([], [], []), FILE, ["no outputs"]),
    "unknown_operators": (lambda: model([node("NoSuch", "x", "a"), node("NorThis", "a", "y")], [ONE[0]], [ONE[1]]),
                          UNSUPPORTED, ["NoSuch", "NorThis"]),
    "cycle": (lambda: model([node("Add", "x b", "a"), node("Relu", "a", "b")], [ONE[0]], [floats("b", 4)]),
              FILE, ["my_Add", "'b'", "nothing before it computes"]),
    "feeds_itself": (lambda: model([node("Add", "x y", "y")], [ONE[0]], [ONE[1]]), FILE, ["my_Add", "'y'"]),
    "unknown_input": (lambda: model([node("Relu", "q", "y")], [ONE[0]], [ONE[1]]), FILE, ["my_Relu", "'q'"]),
    "defined_twice": (lambda: model([node("Relu", "x", "y"), node("Neg", "x", "y")], [ONE[0]], [ONE[1]]),
                      FILE, ["'y' is defined twice"]),
    "output_of_nothing": (lambda: model([node("Relu", "x", "a")], [ONE[0]], [ONE[1]]), FILE,
                          ["'y'", "never computed"]),
    "shapes_that_do_not_fit": (lambda: model([node("Add", "x w", "y")], [floats("x", 3)], [floats("y", 3)],
                                             [constant("w", np.ones(4, np.float32))]), USAGE, ["my_Add", "3 and 4"]),
    "strings": (lambda: model([node("Neg", "x", "y")],
                              [helper.make_tensor_value_info("x", TensorProto.STRING, [3])],
                              [helper.make_tensor_value_info("y", TensorProto.STRING, [3])]), UNSUPPORTED, ["Neg", "reads text"]),
    "asks_for_strings": (lambda: model([node("EyeLike", "x", "y", dtype=TensorProto.STRING)], [floats("x", 2, 2)],
                                       [helper.make_tensor_value_info("y", TensorProto.STRING, [2, 2])]),
                         UNSUPPORTED, ["my_EyeLike", "element type number 8 (string)"]),
    "asks_for_float8": (lambda: model([node("RandomNormalLike", "x", "y", dtype=17)], [ONE[0]], [ONE[1]]),
                        UNSUPPORTED, ["my_RandomNormalLike", "element type number 17"]),
    "gives_strings": (lambda: model([node("Relu", "x", "y")], [ONE[0]],
                                    [ONE[1], helper.make_tensor_value_info("x", TensorProto.STRING, [4])]),
                      UNSUPPORTED, ["'x'", "graph output", "(string)", "export the model without this output"]),
    "nine_axes": (lambda: model([node("Relu", "x", "y")], [floats("x", *[1] * 9)], [floats("y", *[1] * 9)]),
                  UNSUPPORTED, ["rank 9"]),
    "opset_to_come": (lambda: model([node("Relu", "x", "y")], [ONE[0]], [ONE[1]], opset=99), UNSUPPORTED,
                      ["opset 99"]),
    "huge_input": (lambda: model([node("Relu", "x", "y")], [floats("x", 2**62)], [floats("y", 2**62)]), RESOURCE,
                   ["'x'", "address space"]),
    "huge_fill": (lambda: model([node("ConstantOfShape", "s", "y")], [], [floats("y", None, None)],
                                [constant("s", np.array([2**31, 2**31]))]), RESOURCE, ["'y'", "address space"]),
    "huge_initializer": (lambda: damaged([2**31, 2**31, 4], b"1234"), FILE, ["'w'", "not what its extents say"]),
    "negative_initializer": (lambda: damaged([-4], b"1234" * 4), UNSUPPORTED, ["negative extent"]),
    "file_outside": (lambda: damaged([4], location="../../../etc/passwd"), FILE, ["'w'", "inside the model's folder"]),
    "file_that_is_not_there": (lambda: damaged([4], location="weights.bin"), FILE, ["'w'", "weights.bin"]),
    "doubling": (lambda: doubling(61), RESOURCE, ["address space"]),
    "doubling_a_constant": (lambda: doubling(61, [constant("v0", np.ones(1, np.float32))]), RESOURCE,
                            ["address space"]),
    **{f"groups_{op}": (lambda op=op: grouped(op, 1 << 27), USAGE, [f"my_{op}", "1 channels", "1 x 1", "134217728 groups"])
       for op in ("Conv", "ConvTranspose", "ConvInteger")},
    "branches_of_two_types": (branching, USAGE, ["my_If", "float, but double in the else branch"]),
    "groups_of_no_channels": (lambda: grouped("ConvTranspose", 1 << 27, channels=0), USAGE, ["0 channels", "groups"]),
    "groups_none": (lambda: grouped("Conv", 0), USAGE, ["in 0 groups"]),
    **{f"hidden_size_{n}": (lambda n=n: recurrent(n), USAGE, ["my_LSTM", f"hidden_size is {n}"]) for n in (-1, -2, -2**63)},
    "negative_columns": (lambda: packed_product(N=-2), USAGE, ["my_MatMulNBits", "N is -2"]),
    "negative_block": (lambda: model([node("SpaceToDepth", "x", "y", blocksize=-2)], [floats("x", 1, 3, 8, 8)], [floats("y", None)]),
                       USAGE, ["my_SpaceToDepth"]),
    "functions_doubling": (lambda: calling(25, 2), RESOURCE, ["'call'", "'F0'", "more than"]),
    "functions_of_functions": (lambda: calling(60, 4), RESOURCE, ["'F0'", "nodes"]),
    "functions_too_deep": (lambda: calling(500, 1), RESOURCE, ["nested deeper than 64"]),
    "two_million_nodes": (two_million_nodes, RESOURCE, ["more than 1048576 nodes"]),
    "five_thousand_subgraphs": (lambda: nested_subgraphs(5000), RESOURCE, ["nested deeper"]),
}


def linnet(*words):
    """Runs the program, which has to answer soon."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = harness.linnet(*words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert took < SOON, f"{took:.1f} s\n{done.stdout}{done.stderr}"
    return done


def refused(done, code, words):
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert not [word for word in words if word not in done.stderr], done.stderr
    assert done.stderr.startswith("linnet ") or code == UNSUPPORTED


@pytest.mark.parametrize("name", MODELS)
def test_models_that_cannot_be_converted(tmp_path, name):
    make, code, words = MODELS[name]
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(make())
    refused(linnet("convert", path, "-o", tmp_path / "m.lnt"), code, words)
    assert not (tmp_path / "m.lnt").exists()
    for verb in ("info", "run", "bench", "verify"):
        refused(linnet(verb, path), code, words)


@pytest.mark.parametrize("name, value", [
    ("K", 2**63 - 1), ("K", 0), ("N", 0), ("bits", 2**62), ("bits", 3), ("block_size", 2**62), ("block_size", 2**63 - 1),
    ("block_size", 2**31 - 1), ("block_size", -1),
])
def test_numbers_of_packed_weights(tmp_path, name, value):
    """They come from attributes and are multiplied with one another: each is held to its limits before."""
    (tmp_path / "m.onnx").write_bytes(packed_product(**{name: value}))
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    code, words = (UNSUPPORTED, "2, 4 and 8 bits") if name == "bits" else (USAGE, "from 1 to 2147483646")
    refused(linnet("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/x.npy"), code, ["my_MatMulNBits", words])


def test_types_that_do_not_fit(tmp_path):
    """Found by the reference run, which no other verb makes; those that run the model find it themselves."""
    (tmp_path / "m.onnx").write_bytes(model([node("Add", "x w", "y")], [ONE[0]], [ONE[1]],
                                            [constant("w", np.ones(4, np.int64))]))
    np.save(tmp_path / "x.npy", np.ones(4, np.float32))
    for words in (["convert"], ["bench"], ["run", "--input", f"x={tmp_path}/x.npy"]):
        refused(linnet(*words, tmp_path / "m.onnx"), USAGE, ["my_Add", "float and int64"])


def test_a_constant_is_not_blown_up(tmp_path):
    """Sixteen gigabytes that a few bytes could be folded into stay operators; running them is refused."""
    path = tmp_path / "m.onnx"
    path.write_bytes(doubling(40, [constant("v0", np.ones(1, np.float32))]))
    assert linnet("convert", path, "-o", tmp_path / "m.lnt").returncode == 0
    assert (tmp_path / "m.lnt").stat().st_size < 1 << 20
    refused(linnet("run", tmp_path / "m.lnt"), RESOURCE, ["bytes", "free on this machine"])


def test_more_than_the_process_may_have(tmp_path):
    """A limit of the process counts like the machine's own memory: refused, not tried."""
    if SANITIZED:
        pytest.skip("the sanitizer needs the whole address space")
    path = tmp_path / "m.onnx"
    path.write_bytes(doubling(28, [constant("v0", np.ones(1, np.float32))]))  # 1 GB
    most = 512 << 20
    done = subprocess.run([LINNET, "run", path], capture_output=True, text=True, timeout=300,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)))
    refused(done, RESOURCE, ["free on this machine"])


# ---- what takes long if passes look at every node for every node ----

LINKS = {
    "Identity": {},
    "Cast": {"to": TensorProto.FLOAT},
    "Transpose": {"perm": [1, 0]},
    "Add": {},
    "MatMul": {},
}


def seconds_to_convert(tmp_path, op, count):
    second = " w" if op in ("Add", "MatMul") else ""
    names = ["x", *(f"v{i}" for i in range(count - 1)), "y"]
    nodes = [helper.make_node("Sigmoid" if op == "MatMul" and i % 2 else op,
                              (names[i] + ("" if op == "MatMul" and i % 2 else second)).split(), [names[i + 1]],
                              **LINKS[op]) for i in range(count)]
    constants = [constant("w", np.eye(4, dtype=np.float32))] if second else []
    (tmp_path / "m.onnx").write_bytes(model(nodes, [floats("x", 4, 4)], [floats("y", 4, 4)], constants))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = harness.linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode, done.stderr) == (0, "")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("op", LINKS)
def test_long_chains_take_as_long_as_they_are(tmp_path, op):
    """Nodes that vanish, or join the one before them; products change places with those behind. Four times as many
    must not take sixteen times as long."""
    few, many = (seconds_to_convert(tmp_path, op, count) for count in (2_500, 10_000))
    assert many < 9 * few + 0.3


# ---- what never ends ----

def endless(trips):
    """x is negated so many times; the condition stays true."""
    truth = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    turn = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    done = helper.make_tensor_value_info("d", TensorProto.BOOL, [])
    body = helper.make_graph([node("Identity", "c", "d"), node("Neg", "s", "t")], "body",
                             [turn, truth, floats("s", 4)], [done, floats("t", 4)])
    return model([node("Loop", "trips go x", "y", body=body)], [ONE[0]], [ONE[1]],
                 [constant("trips", np.array(trips)), constant("go", np.array(True))])


@pytest.mark.parametrize("options", [[], ["--opt", "none"], ["--int8", "dynamic"]])
def test_endless_loops_do_not_hold_the_converter(tmp_path, options):
    """The reference run is given up, with a word on why; the file is good, and a run's deadline ends it."""
    (tmp_path / "m.onnx").write_bytes(endless(2**62))
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", *options, "--json")
    assert done.returncode == 0, done.stderr
    for word in ("warning", "no golden vectors", "more than 1 s", "my_Loop", "--golden"):
        assert word in done.stderr, done.stderr
    assert "my_Loop" in json.loads(done.stdout)["no_golden_vectors"]
    refused(linnet("verify", tmp_path / "m.lnt"), USAGE, ["no golden vectors"])
    np.save(tmp_path / "x.npy", np.ones(4, np.float32))
    refused(linnet("run", tmp_path / "m.lnt", "--input", f"x={tmp_path}/x.npy", "--deadline", "50"), RESOURCE,
            ["my_Loop", "deadline"])


def test_loops_that_end_have_golden_vectors(tmp_path):
    (tmp_path / "m.onnx").write_bytes(endless(1000))
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", "--json")
    assert (done.returncode, done.stderr) == (0, "") and json.loads(done.stdout)["no_golden_vectors"] is None
    assert linnet("verify", tmp_path / "m.lnt").returncode == 0


def test_inputs_of_gigabytes_are_not_made_up(tmp_path):
    """The model is converted, for a larger machine; what would need its memory is left out, with a word on it."""
    (tmp_path / "m.onnx").write_bytes(model([node("ReduceMax", "x", "y", keepdims=0)], [floats("x", 2**16, 2**16)],
                                            [floats("y")]))
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode == 0 and "input 'x' has 4294967296 elements" in done.stderr, done.stderr
    assert linnet("info", tmp_path / "m.lnt").returncode == 0


# ---- files that are no .lnt ----

LNT_FILES = {
    "missing": (None, ["No such file"]),
    "empty": (lambda good: b"", ["is empty"]),
    "text": (lambda good: b"this is no model\n" * 9, ["not a .lnt file"]),
    "jpeg": (lambda good: JPEG, ["not a .lnt file"]),
    "short": (lambda good: good[:10], ["too few"]),
    "truncated": (lambda good: good[:-64], ["truncated"]),
    "longer": (lambda good: good + bytes(64), ["appended"]),
    "flipped": (lambda good: good[:300] + bytes([good[300] ^ 1]) + good[301:], ["hash"]),
}


@pytest.fixture
def good(tmp_path):
    """y = relu(x), x of [N, 4]."""
    path = tmp_path / "good.onnx"
    path.write_bytes(model([node("Relu", "x", "y")], [floats("x", "N", 4)], [floats("y", "N", 4)]))
    assert linnet("convert", path, "-o", tmp_path / "good.lnt").returncode == 0
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    return tmp_path


@pytest.mark.parametrize("verb", ["info", "run", "verify", "bench"])
@pytest.mark.parametrize("name", LNT_FILES)
def test_files_that_are_no_lnt(good, verb, name):
    make, words = LNT_FILES[name]
    path = good / f"{name}.lnt"
    if make:
        path.write_bytes(make((good / "good.lnt").read_bytes()))
    refused(linnet(verb, path), FILE, [*words, f"{name}.lnt"])


@pytest.mark.parametrize("verb", ["convert", "info", "run", "verify", "bench"])
def test_a_folder_is_no_model(good, verb):
    for name in ("folder.onnx", "folder.lnt"):
        (good / name).mkdir()
        if verb != "convert" or name.endswith("onnx"):
            refused(linnet(verb, good / name), FILE, [name, "not a regular file"])


# ---- tensors and names ----

def npy(shape, data=b"1234" * 8, descr="<f4"):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (117 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


FEEDS = {
    "wrong_rank": (lambda: npy("(8,)"), USAGE, ["x takes float Nx4, not float 8"]),
    "wrong_extent": (lambda: npy("(1, 8)"), USAGE, ["x takes float Nx4, not float 1x8"]),
    "wrong_type": (lambda: npy("(2, 4)", b"12345678" * 8, "<f8"), USAGE, ["x takes float, not double"]),
    "strings": (lambda: npy("(2, 4)", b"1234" * 8, "<U1"), UNSUPPORTED, ["<U1"]),
    "nan_extent": (lambda: npy("(nan, 4)"), FILE, ["bad number in the shape"]),
    "negative_extent": (lambda: npy("(-2, 4)"), FILE, ["bad number in the shape"]),
    "huge_extent": (lambda: npy("(4611686018427387904, 4)"), FILE, ["overflows"]),
    "short": (lambda: npy("(2, 4)", b"1234" * 7), FILE, ["x.npy"]),
    "empty": (lambda: b"", FILE, ["empty"]),
    "text": (lambda: b"hello", FILE, ["x.npy"]),
    "jpeg": (lambda: JPEG, FILE, ["x.npy"]),
}


@pytest.mark.parametrize("name", FEEDS)
def test_tensors_that_do_not_fit(good, name):
    make, code, words = FEEDS[name]
    (good / "x.npy").write_bytes(make())
    refused(linnet("run", good / "good.lnt", "--input", f"x={good}/x.npy"), code, words)


OPTIONS = [
    ("run", [], USAGE, "input x is missing"),
    ("run", ["--input", "q={}/x.npy"], USAGE, "no input called q"),
    ("run", ["--input", "x={}/none.npy"], FILE, "none.npy"),
    ("run", ["--input", "x={}"], FILE, "not a regular file"),
    ("run", ["--input", "x"], USAGE, "NAME=FILE"),
    ("run", ["--input", "=x"], USAGE, "NAME=FILE"),
    ("run", ["--input", "x={}/x.npy", "--output", "q={}/y.npy"], USAGE, "no output called q"),
    ("run", ["--input", "x={}/x.npy", "--output", "y={}/none/y.npy"], FILE, "none/y.npy"),
    ("run", ["--input", "x={}/x.npy", "--fetch", "q={}/q.npy"], USAGE, "--keep q"),
    ("run", ["--input", "x={}/x.npy", "--level", "mmx"], USAGE, "no level mmx"),
    ("run", ["--input", "x={}/x.npy", "--threads", "-1"], USAGE, "--threads"),
    ("run", ["--input", "x={}/x.npy", "--threads", "99999999999999999999"], USAGE, "--threads"),
    ("run", ["--input", "x={}/x.npy", "--dim", "N=nan"], USAGE, "N=nan"),
    ("run", ["--input", "x={}/x.npy", "--dim", "N=-1"], USAGE, "N=-1"),
    ("run", ["--input", "x={}/x.npy", "--dim", "N=1"], RESOURCE, "N is 2"),
    ("run", ["--input", "x={}/x.npy", "--dim", "Q=1"], USAGE, "called Q"),
    ("run", ["--input", "x={}/x.npy", "--deadline", "soon"], USAGE, "--deadline"),
    ("info", ["--dim", "N=99999999999999999999"], USAGE, "N=9999"),
    ("bench", ["--dim", "N=4611686018427387904"], RESOURCE, "too large"),
    ("bench", ["--dim", "N=2", "--runs", "-1"], USAGE, "--runs"),
    ("bench", ["--dim", "N=2", "--level", "mmx"], USAGE, "no level mmx"),
    ("verify", ["{}/none"], USAGE, "none: no input_K.pb"),
    ("verify", ["{}/x.npy"], USAGE, "x.npy: no input_K.pb"),
    ("verify", ["--max-rel", "nan"], USAGE, "--max-rel"),
    ("convert", ["--state", "y=q"], USAGE, "'q'"),
    ("convert", ["--state", "y"], USAGE, "y"),
    ("convert", ["--dim", "Q=1"], USAGE, "'Q'"),
    ("convert", ["--keep", "q"], USAGE, "q"),
    ("convert", ["-o", "{}/none/m.lnt"], FILE, "none/m.lnt"),
    ("convert", ["--golden", "{}/none"], USAGE, "none: there is no output_0.pb"),
]


@pytest.mark.parametrize("verb, words, code, message", OPTIONS)
def test_options_that_do_not_fit(good, verb, words, code, message):
    path = good / ("good.onnx" if verb == "convert" else "good.lnt")
    refused(linnet(verb, path, *(w.format(good) for w in words)), code, [message])


def test_a_layer_larger_than_the_addresses(tmp_path):
    """Y would still fit them; the gates are 16 at least."""
    weights = [constant(name, np.zeros((1, 4, n), np.float32)) for name, n in (("W", 0), ("R", 1))]
    net = model([node("LSTM", "x W R", "y", hidden_size=1)], [floats("x", 1, "N", 0)],
                [floats("y", 1, 1, "N", 1)], weights)
    onnx.save(net, tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    refused(linnet("bench", tmp_path / "m.lnt", "--dim", f"N={2 ** 57}"), RESOURCE, ["LSTM", "too many"])


def test_bounds_reach_through_sums():
    """The length is the sum of numbers that are bounded: so is the arena."""
    path = ROOT / "tests/data/models/lengths.onnx"
    open_ended, bounded = (linnet("info", path, "--dim", "N=4", *more).stdout for more in ([], ["--dim", "each=9"]))
    assert "unbounded: each (give --dim each=N for an exact arena)" in open_ended
    assert "arena " in bounded and "unbounded" not in bounded
