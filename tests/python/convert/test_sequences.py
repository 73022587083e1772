"""Sequences whose length is known at conversion, and optionals, against onnxruntime; and what is said of others."""

import json

import numpy as np
import onnx
import onnx.parser
import pytest

from harness import check_against, check_against_reference, linnet, write_case

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
])
def test_mistakes(tmp_path, outputs, far, message):
    onnx.save(model(outputs, far), tmp_path / "m.onnx")
    result = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert result.returncode != 0 and message in result.stderr
    assert not (tmp_path / "m.lnt").exists()


def parsed(text):
    return onnx.parser.parse_model(HEAD + text)


def drawn(dims, names="x"):
    rng = np.random.default_rng(2)
    return {name: rng.standard_normal(dims).astype(np.float32) for name in names}


@pytest.mark.parametrize("axis, given, extents, at", [
    (0, "", (3, 4), 2), (-1, "", (3, 4), 3), (1, ", keepdims = 0", (3, 4), 2), (-2, ", keepdims = 0", (3, 4), 0),
    (0, "int64 {2}", (5, 4), 2), (1, "int32 {3}", (3, 6), 1), (1, "int64 {9}", (3, 6), 0), (0, "int64[3] {2, 0, 3}", (5, 4), 2),
    (1, "int32[2] {1, 4}", (3, 5), 1), (1, "int64[2] {1, 4}, keepdims = 0", (3, 5), 1),
])
def test_split(tmp_path, axis, given, extents, at):
    """Parts of one length, of the lengths given, and of length 1 with and without their axis."""
    values, _, rest = given.partition(", keepdims")
    constant = f"s = Constant <value = {values}> ()" if values else ""
    made = parsed(f"""f (float{list(extents)} x) => (float y, int64 n) {{
        {constant}
        parts = SplitToSequence <axis = {axis} {", keepdims" + rest if rest else ""}> (x {", s" if values else ""})
        at = Constant <value = int64 {{{at}}}> ()
        y = SequenceAt (parts, at)
        n = SequenceLength (parts)
    }}""")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    check_against_reference(tmp_path, made, drawn(extents))


def test_split_of_unknown_lengths(tmp_path):
    """How many there are is enough; of a tensor without elements there are none."""
    made = parsed("""f (float[N, 2] x, int64[3] lengths, float[2, 0] e) => (float[M, 2] y, int64 n) {
        parts = SplitToSequence (x, lengths)
        last = Constant <value = int64 {-1}> ()
        y = SequenceAt (parts, last)
        none = SplitToSequence <axis = 1> (e)
        n = SequenceLength (none)
    }""")
    inputs = drawn((6, 2)) | {"lengths": np.array([1, 3, 2]), "e": np.zeros((2, 0), np.float32)}
    check_against(tmp_path, made, inputs, [inputs["x"][4:], np.int64(0)], ways=(("--opt", "none"), ("--opt", "all")))


@pytest.mark.parametrize("at", [0, 2, -1, -3])
def test_place_of_the_run(tmp_path, at):
    """Of values with the same extents it need not be known."""
    made = parsed("""f (float[3, 2] x, int64 at) => (float[2] y) {
        rows = SplitToSequence <keepdims = 0> (x)
        y = SequenceAt (rows, at)
    }""")
    check_against_reference(tmp_path, made, drawn((3, 2)) | {"at": np.array(at)})


def test_place_of_the_turn(tmp_path):
    """A Loop whose turns are not known reads a sequence from outside."""
    made = parsed("""f (float[3, 2] x, int64 turns) => (float[2] y) <float[2] zero = {0, 0}> {
        rows = SplitToSequence <keepdims = 0> (x)
        y = Loop (turns, , zero) <body: graph = b (int64 i, bool c, float[2] a) => (bool d, float[2] e) {
            d = Identity (c) row = SequenceAt (rows, i) e = Add (a, row) } >
    }""")
    x = drawn((3, 2))["x"]
    check_against(tmp_path, made, {"x": x, "turns": np.array(2)}, [x[0] + x[1]], ways=(("--opt", "none"), ("--opt", "all")))


MAP = """
g (float[4, 3] x, float[2, 3] z) => (float[M, 3] y, float[3] first, int64[D] shape, float[2, 3] w) <float[3] outer = {1, 2, 3}> {
    parts = SplitToSequence (x)
    more = SplitToSequence <keepdims = 0> (x)
    a, shapes, b, same = SequenceMap (parts, more, z) <body: graph = each (float[1, 3] p, float[3] q, float[2, 3] r)
        => (float a, int64 s, float b, float r) <float two = {2}> {
        d = Mul (p, two) e = Add (d, q) a = Add (e, outer) s = Shape (a) b = Sub (q, outer) } >
    y = ConcatFromSequence <axis = 0> (a)
    at = Constant <value = int64 {0}> ()
    first = SequenceAt (b, at)
    shape = ConcatFromSequence <axis = 0> (shapes)
    w = SequenceAt (same, at)
}"""


def test_map(tmp_path):
    """Two sequences and a tensor, a value from outside, a constant of its own; outputs of every kind."""
    check_against_reference(tmp_path, parsed(MAP), drawn((4, 3)) | drawn((2, 3), "z"))


def test_map_in_map(tmp_path):
    """The inner one reads what the outer one computes."""
    made = parsed("""f (float[2, 3] x) => (float[2, 3] y) {
        rows = SplitToSequence <keepdims = 0> (x)
        mapped = SequenceMap (rows) <body: graph = row (float[3] r) => (float joined) {
            cells = SplitToSequence (r)
            most = ReduceMax <keepdims = 0> (r)
            tanh = SequenceMap (cells) <body: graph = cell (float[1] c) => (float t) { d = Mul (c, most) t = Tanh (d) } >
            joined = ConcatFromSequence <axis = 0> (tanh) } >
        s = Identity (mapped)
        y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
    }""")
    x = drawn((2, 3))["x"]
    check_against(tmp_path, made, {"x": x}, [np.tanh(x * x.max(axis=1, keepdims=True))], ways=(("--opt", "none"), ("--opt", "all")))


def test_optionals(tmp_path):
    """Of a tensor, of a sequence, of nothing; the model's own is given and handed out as a tensor."""
    outputs = "float[2, 3] y, float[K, 3] z, bool a, bool b, bool c, bool d, optional(float[2, 3]) o"
    made = parsed("f (optional(float[2, 3]) x) => (" + outputs + """) {
        y = OptionalGetElement (x)
        rows = SplitToSequence (y)
        held = Optional (rows)
        again = OptionalGetElement (held)
        z = ConcatFromSequence <axis = 0> (again)
        nothing = Optional <type: type_proto = float[2]> ()
        still = Identity (nothing)
        a = OptionalHasElement (x)
        b = OptionalHasElement (held)
        c = OptionalHasElement (still)
        d = OptionalHasElement ()
        o = Optional (y)
    }""")
    x = drawn((2, 3))["x"]
    yes, no = np.array(True), np.array(False)
    check_against(tmp_path, made, {"x": x}, [x, x, yes, yes, no, no, x], ways=(("--opt", "none"), ("--opt", "all")))


BRANCHES = """
f (float[2, 3] x, bool c) => (float y, float z, int64 n, bool h, float[2, 3] plain) {
    outer = SplitToSequence (x)
    s, plain, o, u = If (c) <
        then_branch: graph = t () => (seq(float) s, float[2, 3] d, optional(float) o, seq(float) u) {
            d = Neg (x) s = SplitToSequence (d) o = Optional <type: type_proto = float[2]> () u = Identity (outer) },
        else_branch: graph = e () => (seq(float) s, float[2, 3] x, optional(float) o, seq(float) u) {
            m = Neg (x) k = Mul (m, m) s = SequenceConstruct (x, k) o = Optional <type: type_proto = float[2]> ()
            u = SequenceConstruct (k, x) } >
    at = Constant <value = int64 {1}> ()
    y = SequenceAt (s, at)
    n = SequenceLength (s)
    h = OptionalHasElement (o)
    z = ConcatFromSequence <axis = 0> (u)
}"""


@pytest.mark.parametrize("taken", [True, False])
def test_branches(tmp_path, taken):
    """Sequences of one length, one made outside of the branch; nothing; and a tensor beside them."""
    made = parsed(BRANCHES)
    for output in made.graph.output[:2]:
        output.type.tensor_type.ClearField("shape")
    x = drawn((2, 3))["x"]
    y, z, plain = (-x[1:], x, -x) if taken else (x * x, np.concatenate([x * x, x]), x)
    outputs = [y, z, np.int64(2), np.array(False), plain]
    check_against(tmp_path, made, {"x": x, "c": np.array(taken)}, outputs, ways=(("--opt", "none"), ("--opt", "all")))


def test_known_branch(tmp_path):
    """The other is not looked at: it would take what is not there, and give another number of values."""
    made = parsed("""f (float[2, 3] x) => (float[2, 3] y, int64 n) {
        o = Optional <type: type_proto = float[2]> ()
        h = OptionalHasElement (o)
        y, s = If (h) <
            then_branch: graph = t () => (float d, seq(float) s) { d = OptionalGetElement (o) s = SequenceConstruct (d, d) },
            else_branch: graph = e () => (float d, seq(float) s) { d = Neg (x) s = SequenceConstruct (d) } >
        n = SequenceLength (s)
    }""")
    x = drawn((2, 3))["x"]
    check_against(tmp_path, made, {"x": x}, [-x, np.int64(1)], ways=(("--opt", "none"), ("--opt", "all")))


LOOP = """
f (float[4, 3] x) => (float[R, 3] y, float[T, 3] rows, int64 n, float[3] total) <float[3] zero = {0, 0, 0}, int64 three = {3}> {
    empty = SequenceEmpty ()
    %s
    parts = SplitToSequence <keepdims = 0> (x)
    s, total, rows = Loop (turns, on, empty, zero) <body: graph = b (int64 i, bool c, seq(float) s, float[3] a)
        => (bool d, seq(float) t, float[3] b, float[3] row) <int64 two = {2}> {
        row = SequenceAt (parts, i) b = Add (a, row) t = SequenceInsert (s, b)
        %s } >
    y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
    n = SequenceLength (s)
}"""


@pytest.mark.parametrize("head, tail, turns", [
    ("turns = Identity (three) on = Constant <value = bool {1}> ()", "d = Identity (c)", 3),
    ("shape = Shape <end = 1> (x) turns = Squeeze (shape)", "d = Identity (c)", 4),
    ("turns = Identity (three)", "d = Less (i, one)", 2),
])
def test_loop(tmp_path, head, tail, turns):
    """As often as a constant, an extent, or a condition on the turn says; beside the sequence a tensor and an output of each turn."""
    text = LOOP % (head, tail)
    text = text.replace("(turns, on,", "(turns, ,") if " on =" not in head else text
    made = parsed(text)
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(1), "one"))
    x = drawn((4, 3))["x"]
    sums = np.cumsum(x, axis=0, dtype=np.float32)[:turns]
    outputs = [sums, x[:turns], np.int64(turns), sums[-1]]
    check_against(tmp_path, made, {"x": x}, outputs, ways=(("--opt", "none"), ("--opt", "all")))


ONE = "f (%s x, int64 k, seq(float) t) => (float y) { %s }"


@pytest.mark.parametrize("kind, body, message", [
    ("float[N, 2]", "s = SplitToSequence (x) y = ConcatFromSequence <axis = 0> (s)", "fix the extent by --dim"),
    ("float[4]", "s = SplitToSequence (x, k) y = ConcatFromSequence <axis = 0> (s)", "input 1 must be known"),
    ("float[4]", "z = Constant <value = int64 {0}> () s = SplitToSequence (x, z) y = ConcatFromSequence <axis = 0> (s)",
     "its parts must have a length"),
    ("float[1025]", "s = SplitToSequence (x) y = ConcatFromSequence <axis = 0> (s)", "longer than 1024"),
    ("float[4]", "s = SplitToSequence <axis = 1> (x) y = ConcatFromSequence <axis = 0> (s)", "its axis is outside"),
    ("float[5]", "z = Constant <value = int64 {2}> () s = SplitToSequence (x, z) y = SequenceAt (s, k)", "its position must be known"),
    ("float[4]", "s = SplitToSequence (x) u = SequenceErase (s, k) y = SequenceAt (u, k)", "its position must be known"),
    ("float[4]", "o = Optional <type: type_proto = float[2]> () y = OptionalGetElement (o)", "its input holds nothing"),
    ("float[4]", "o = Optional <type: type_proto = float[2]> () y = Neg (o)", "an optional that holds nothing"),
    ("float[4]", "y = Optional <type: type_proto = float[2]> ()", "an optional that holds nothing"),
    ("float[4]", "s = SplitToSequence (x) y = SequenceMap (x) <body: graph = g (float[1] p) => (float q) { q = Neg (p) } >",
     "input 0 is no sequence"),
    ("float[4]", "s = SplitToSequence (x) e = SequenceEmpty () "
     "y = SequenceMap (s, e) <body: graph = g (float[1] p, float[1] r) => (float q) { q = Neg (p) } >", "differ in length"),
    ("float[4]", "s = SplitToSequence (x) m = SequenceMap (s) <body: graph = g (float[1] p) => (float q) { q = Adagrad (p) } > "
     "y = ConcatFromSequence <axis = 0> (m)", "1 of the model's parts cannot be converted, first 'm/0/q' (Adagrad)"),
    ("float[4]", "s = SplitToSequence (x) y = SequenceMap (s) <body: graph = g (float[1] p) => (float q) { q = Add (p, y) } >",
     "reads 'y', which nothing before it computes"),
    ("float[4]", "s = SequenceConstruct (x, , x) y = SequenceAt (s, k)", "an input of it is missing"),
    ("float[4]", "s = SplitToSequence (x) y = SequenceMap (s)", "attribute 'body' holds no graph"),
    ("optional(seq(float))", "y = OptionalGetElement (x)", "fix its length by --length x=N"),
    ("bool", "f = Cast <to = 1> (x) s = If (x) <then_branch: graph = a () => (seq(float) s) { s = SequenceConstruct (f, f) }, "
     "else_branch: graph = b () => (seq(float) t) { t = SequenceConstruct (f) }> y = ConcatFromSequence <axis = 0> (s)",
     "its branches give differently; where its condition is an input, fix it by --length"),
    ("float[4]", "e = SequenceEmpty () s = Loop (k, , e) <body: graph = b (int64 i, bool c, seq(float) s) => (bool c, seq(float) t) "
     "{ t = SequenceInsert (s, x) }> y = ConcatFromSequence <axis = 0> (s)", "how often it turns is not known"),
    ("float[4]", "n = Constant <value = int64 {2000}> () e = SequenceEmpty () s = Loop (n, , e) <body: graph = b (int64 i, bool c, "
     "seq(float) s) => (bool c, seq(float) t) { t = SequenceInsert (s, x) }> y = ConcatFromSequence <axis = 0> (s)", "1024 turns"),
    ("float[4]", "n = Constant <value = int64 {3}> () e = SequenceEmpty () s = Loop (n, , e) <body: graph = b (int64 i, bool c, "
     "seq(float) s) => (bool d, seq(float) t) { t = SequenceInsert (s, x) d = Equal (i, k) }> y = ConcatFromSequence <axis = 0> (s)",
     "whether it goes on is not known"),
])
def test_refused(tmp_path, kind, body, message):
    made = parsed(ONE % (kind, body))
    del made.graph.input[2]
    onnx.save(made, tmp_path / "m.onnx")
    result = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert result.returncode != 0 and message in result.stderr, result.stderr
    assert not (tmp_path / "m.lnt").exists()


def test_growth(tmp_path):
    """Maps in maps multiply: a small file does not become millions of nodes."""
    nodes = "y%d = Neg (x)"
    for depth in range(4):
        many = ", ".join(["x"] * 100)
        nodes = f"""c = Concat <axis = 0> ({many}) s = SplitToSequence (c)
            m = SequenceMap (s) <body: graph = each (float[1] x) => (float y{depth}) {{ {nodes.replace("%d", str(depth))} }} >
            y%d = ConcatFromSequence <axis = 0> (m)"""
    onnx.save(parsed("f (float[1] x) => (float y4) { %s }" % nodes.replace("%d", "4")), tmp_path / "m.onnx")
    result = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", timeout=60)
    assert result.returncode != 0 and "copies of its subgraph" in result.stderr, result.stderr


# ---- at the edges of a model ----

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--bake", "rest"), ("--opt", "all", "--bake", "all"))
EDGES = """f (seq(float[R, 3]) s, float[2, 3] x, optional(seq(float[R, 3])) o)
    => (seq(float) t, float[2, 3] y, seq(float) u, seq(float) v, int64 n) {
    y = Neg (x)
    t = SequenceInsert (s, y)
    u = OptionalGetElement (o)
    v = Identity (s)
    n = SequenceLength (s)
}"""


def edges(lengths):
    """EDGES, and inputs of so many elements, whose extents differ from one to the next."""
    made = parsed(EDGES)
    for output in made.graph.output:
        if output.type.HasField("sequence_type"):
            output.type.sequence_type.elem_type.tensor_type.ClearField("shape")
    rng = np.random.default_rng(3)
    lists = [[rng.standard_normal((k + 1, 3)).astype(np.float32) for k in range(n)] for n in lengths]
    return made, {"s": lists[0], "x": drawn((2, 3))["x"], "o": lists[1]}


def given(inputs):
    return [inputs["s"] + [-inputs["x"]], -inputs["x"], inputs["o"], inputs["s"], np.int64(len(inputs["s"]))]


@pytest.mark.parametrize("lengths", [(0, 1), (1, 0), (3, 2), (0, 0)])
def test_edges(tmp_path, lengths):
    """Sequences of all lengths come in and go out, with tensors between them."""
    made, inputs = edges(lengths)
    check_against(tmp_path, made, inputs, given(inputs), ways=WAYS)


def test_lengths_of_each_case(tmp_path):
    """Two cases of one model, of different lengths; and one whose output is longer than the model gives."""
    for k, lengths in enumerate([(3, 2), (1, 1)]):
        made, inputs = edges(lengths)
        outputs = given(inputs)
        if k == 1:
            outputs[2], outputs[3] = outputs[2] + outputs[3], []
        write_case(tmp_path / str(k), made, inputs, outputs)
    one, other = (tmp_path / str(k) / "test_data_set_0" for k in range(2))
    done = linnet("verify", tmp_path / "0" / "model.onnx", one, one)
    assert done.returncode == 0, done.stdout + done.stderr
    done = linnet("verify", tmp_path / "0" / "model.onnx", one, other)
    assert done.returncode != 0 and "element 1 of a sequence is expected, not output v.0" in done.stderr, done.stderr


def converted(folder, text, *options):
    made = parsed(text) if isinstance(text, str) else text
    onnx.save(made, folder / "m.onnx")
    return linnet("convert", folder / "m.onnx", "-o", folder / "m.lnt", *options)


def test_names_and_metadata(tmp_path):
    """Elements are named and fed like any tensor; each has extents of its own."""
    made, _ = edges((0, 0))
    done = converted(tmp_path, made, "--length", "s=2", "--length", "o=none", "--dim", "s.1:0=4")
    assert done.returncode != 0 and "its input holds nothing" in done.stderr, done.stderr
    done = converted(tmp_path, made, "--length", "s=2", "--length", "o=1", "--dim", "s.1:0=4")
    assert done.returncode == 0, done.stderr
    told = json.loads(linnet("info", tmp_path / "m.lnt", "--json").stdout)
    assert [i["name"] for i in told["inputs"]] == ["s.0", "s.1", "x", "o.0"]
    assert [o["name"] for o in told["outputs"]] == ["t.0", "t.1", "t.2", "y", "u.0", "v.0", "v.1", "n"]
    about = {k: v for k, v in told["metadata"].items() if k.startswith("sequence.")}
    assert about == {"sequence.s": "2", "sequence.o": "1", "sequence.t": "3", "sequence.u": "1", "sequence.v": "2"}
    places = {k: v for k, v in told["metadata"].items() if k.startswith("sequence_output.")}
    assert places == {"sequence_output.t": "0", "sequence_output.u": "2", "sequence_output.v": "3"}
    x = tmp_path / "x.npy"
    np.save(x, np.full((4, 3), 5, np.float32))
    np.save(tmp_path / "z.npy", np.zeros((2, 3), np.float32))
    fed = {"s.0": x, "s.1": x, "x": tmp_path / "z.npy", "o.0": x}
    done = linnet("run", tmp_path / "m.lnt", *[word for name in fed for word in ("--input", f"{name}={fed[name]}")],
                  "--output", f"v.1={tmp_path / 'y.npy'}")
    assert done.returncode == 0, done.stderr
    assert (np.load(tmp_path / "y.npy") == 5).all()


@pytest.mark.parametrize("options, message", [
    ([], "'s' is a sequence: fix its length by --length s=N"),
    (["s=2"], "'o' is a sequence: fix its length by --length o=N"),
    (["s=1025", "o=1"], "a sequence may have 1024 elements"),
    (["s=9223372036854775807", "o=1"], "a sequence may have 1024 elements"),
    (["s=none", "o=1"], "--length s=none: it is no optional"),
    (["s=1", "o=1", "x=3"], "--length x=3: the input is no sequence, and no integer or bool of one element"),
    (["s=1", "o=1", "si=3"], "--length: the model has no input 'si'; did you mean 's'?"),
    (["s=-1"], "--length NAME=N, not 's=-1'"),
    (["s"], "--length NAME=N, not 's'"),
])
def test_lengths_refused(tmp_path, options, message):
    done = converted(tmp_path, edges((0, 0))[0], *[word for o in options for word in ("--length", o)])
    assert done.returncode != 0 and message in done.stderr, done.stderr
    assert not (tmp_path / "m.lnt").exists()


@pytest.mark.parametrize("kind, body, options, message", [
    ("seq(seq(float))", "y = SequenceLength (x)", ["x=1"], "the input is no sequence, and no integer"),
    ("seq(seq(float))", "y = SequenceLength (x)", [], "sequences of other things than tensors are not supported"),
    ("optional(int64)", "y = OptionalGetElement (x)", ["x=1"], "the input is no sequence, and no integer"),
    ("seq(float[2])", "y = Identity (x)", ["x=0"], "all outputs are sequences without elements"),
    ("seq(float[2])", "x_0 = Neg (z) y = SequenceLength (x)", ["x=1"], "value 'x.0' is defined twice"),
    ("seq(float[2])", "y_0 = Neg (z) q = Exp (y_0) y = SequenceInsert (x, q)", ["x=0"], "the model has another value 'y.0'"),
    ("seq(float[2])", "y = SequenceConstruct (x, x)", ["x=1"], "is a sequence of other things than tensors"),
    ("bool", "y = Not (x)", ["x=2"], "the input is bool"),
    ("int32", "y = Neg (x)", ["x=2147483648"], "the input is int32"),
    ("int64[N]", "y = Neg (x)", ["x=2"], "no integer or bool of one element"),
])
def test_edges_refused(tmp_path, kind, body, options, message):
    made = parsed(f"f ({kind} x, float[2] z) => (float y) {{ {body} }}")
    for node in made.graph.node:  # names that the text form has no way to write
        for names in (node.input, node.output):
            names[:] = [name.replace("_", ".") for name in names]
    done = converted(tmp_path, made, *[w for o in options for w in ("--length", o)])
    assert done.returncode != 0 and message in done.stderr, done.stderr


@pytest.mark.parametrize("flag", [True, False])
def test_if_gives_sequences(tmp_path, flag):
    """Of one length: the condition may stay open. One branch passes on what comes from outside."""
    made = parsed("""f (bool c, float[4, 3] x) => (seq(float[2, 3]) s, float[4, 3] y, float[K, 3] z) {
        two = Constant <value = int64 {2}> ()
        halves = SplitToSequence (x, two)
        s, y = If (c) <
            then_branch = t () => (seq(float[2, 3]) a, float[4, 3] b) { a = Identity (halves) b = Neg (x) },
            else_branch = e () => (seq(float[2, 3]) d, float[4, 3] f) {
                zero = Constant <value = int64 {0}> () first = SequenceAt (halves, zero)
                d = SequenceConstruct (first, first) f = Exp (x) } >
        z = ConcatFromSequence <axis = 0> (s)
    }""")
    check_against_reference(tmp_path, made, {"c": np.array(flag)} | drawn((4, 3)))


@pytest.mark.parametrize("value", [0, 1])
def test_branch_of_known_condition(tmp_path, value):
    """Branches of different lengths, in a function of the shape: the one taken takes the place of the If."""
    made = parsed(f"""f (float[{value + 2}, 3] x) => (seq(float) s, int64 n) {{
        rows = SplitToSequence (x)
        three = Constant <value = int64 {{3}}> ()
        has = SequenceLength (rows)
        c = Equal (has, three)
        s = If (c) <
            then_branch = t () => (seq(float) a) {{ a = Identity (rows) }},
            else_branch = e () => (seq(float) b) {{ m = Neg (x) b = SequenceConstruct (m) }} >
        n = SequenceLength (s)
    }}""")
    made.graph.output[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    x = drawn((value + 2, 3))["x"]
    check_against(tmp_path, made, {"x": x}, [[x[:1], x[1:2], x[2:]] if value else [-x], np.int64(3 if value else 1)], ways=WAYS[:2])


SUMS = """f (seq(float[R, 3]) s, float[3] x) => (seq(float) t, float[K, 3] all, float[3] sum) {
    %s
    n = SequenceLength (s)
    yes = Constant <value = bool {1}> ()
    none = SequenceEmpty ()
    t, sum, all = Loop (n, %s, none, x) <
        body = b (int64 i, bool c, seq(float) u, float[3] v) => (bool c2, seq(float) u2, float[3] v2, float[3] each) {
            %s
            e = SequenceAt (s, i)
            u2 = SequenceInsert (u, e)
            each = ReduceSum <keepdims = 0> (e, axis)
            v2 = Add (v, each) } >
}"""


@pytest.mark.parametrize("go, stop, turns", [
    ("", "c2 = Identity (c)", 4), ("yes", "c2 = Identity (c)", 4), ("yes", "c2 = Less (i, two)", 3)])
def test_loop_of_sequences(tmp_path, go, stop, turns):
    """Unrolled: it carries a sequence and a tensor, stacks, reads its own number, and may end before its turns are over."""
    constants = "axis = Constant <value = int64[1] {0}> () two = Constant <value = int64 {2}> ()"
    made = parsed(SUMS % (constants, go or '""', stop) if go else SUMS.replace("%s, none", ", none") % (constants, stop))
    made.graph.output[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    rng = np.random.default_rng(4)
    s = [rng.standard_normal((k, 3)).astype(np.float32) for k in (1, 3, 2, 4)]
    x = drawn((3,))["x"]
    sums = np.stack([e.sum(axis=0) for e in s[:turns]])
    check_against(tmp_path, made, {"s": s, "x": x}, [s[:turns], sums, x + sums.sum(axis=0)], ways=WAYS)


def test_loop_reads_a_sequence(tmp_path):
    """It carries tensors alone, and reads a sequence from outside by its number; another stays a loop."""
    made = parsed("""f (float[4, 3] x, int64 k) => (float[1, 3] y, float[4, 3] z) {
        four = Constant <value = int64 {4}> ()
        yes = Constant <value = bool {1}> ()
        one = Constant <value = float[1, 3] {1, 1, 1}> ()
        rows = SplitToSequence (x)
        lengths = Constant <value = int64[2] {1, 3}> ()
        y = Loop (four, yes, one) <body = b (int64 i, bool c, float[1, 3] v) => (bool c2, float[1, 3] v2) {
            c2 = Identity (c) r = SequenceAt (rows, i) v2 = Mul (v, r) } >
        z = Loop (k, yes, x) <body = d (int64 j, bool g, float[4, 3] w) => (bool g2, float[4, 3] w2) {
            g2 = Identity (g) parts = SplitToSequence (w, lengths) w2 = ConcatFromSequence <axis = 0> (parts) } >
    }""")
    check_against_reference(tmp_path, made, drawn((4, 3)) | {"k": np.array(2)})


def test_uneven_place_of_the_turn(tmp_path):
    """A loop whose turns are known is unrolled where it reads one of values that differ in extents."""
    made = parsed("""f (seq(float[R, 3]) s) => (float[3] y, float[3] z) <float[3] zero = {0, 0, 0}, int64 two = {2}> {
        n = SequenceLength (s)
        y = Loop (n, , zero) <body: graph = b (int64 i, bool c, float[3] a) => (bool d, float[3] e) {
            d = Identity (c) row = SequenceAt (s, i) m = ReduceMax <keepdims = 0> (row, axes) e = Add (a, m) } >
        z = Loop (two, , zero) <body: graph = g (int64 j, bool h, float[3] o) => (bool k, float[3] q) {
            k = Identity (h) last = SequenceAt (s, j) u = ReduceMax <keepdims = 0> (last, axes) q = Sub (o, u) } >
    }""")
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axes"))
    s = [np.arange(3 * (k + 1), dtype=np.float32).reshape(-1, 3) for k in range(3)]
    most = np.stack([e.max(axis=0) for e in s])
    check_against(tmp_path, made, {"s": s}, [most.sum(axis=0), -most[:2].sum(axis=0)], ways=WAYS)


def test_text(tmp_path):
    """Elements that are words stay words, through a loop and an open branch, too."""
    made = parsed("""f (seq(string[N]) s, string[2] x, bool c) => (seq(string) t, string[K] y, string[L] z, string[2] u, seq(string) v) {
        t = SequenceInsert (s, x)
        n = SequenceLength (s)
        yes = Constant <value = bool {1}> ()
        zero = Constant <value = int64 {0}> ()
        none = SequenceEmpty ()
        r = Loop (n, yes, none) <body = b (int64 i, bool g, seq(string) p) => (bool h, seq(string) q) {
            h = Identity (g) e = SequenceAt (s, i) q = SequenceInsert (p, e, zero) } >
        y = ConcatFromSequence <axis = 0> (r)
        v, u = If (c) <then_branch = j () => (seq(string) a, string[2] d) { a = SequenceConstruct (x, x) d = Identity (x) },
                       else_branch = k () => (seq(string) m, string[2] o) { w = SequenceAt (s, zero) m = SequenceConstruct (w, x)
                                                                          o = StringConcat (x, x) } >
        z = SequenceAt (v, zero)
    }""")
    for i in (0, 4):
        made.graph.output[i].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    made.opset_import[0].version = 20
    s, x = [np.array(["a", "b"], object), np.array(["c"], object)], np.array(["d", "e"], object)
    y = np.array(["c", "a", "b"], object)
    for c, z, u in ((True, x, x), (False, s[0], x + x)):
        outputs = [[*s, x], y, z, u, [z, x]]
        check_against(tmp_path, made, {"s": s, "x": x, "c": np.array(c)}, outputs, ways=WAYS)


def test_branch_with_more_outputs(tmp_path):
    """The last of them is not asked for; the branch only passes on what comes from outside."""
    made = parsed("""f (seq(float[2]) s, seq(float[2]) t, float[2] x) => (seq(float[2]) y) {
        n = SequenceLength (t)
        c = Cast <to = 9> (n)
        y, unused = If (c) <then_branch: graph = a () => (seq(float[2]) p, float[2] q) { p = Identity (t) q = Neg (x) },
                            else_branch: graph = b () => (seq(float[2]) r, float[2] u) { r = Identity (s) u = Abs (x) } >
    }""")
    made.graph.node[-1].output[1] = ""
    x = drawn((2,))["x"]
    check_against(tmp_path, made, {"s": [x, -x], "t": [], "x": x}, [[x, -x]], ways=WAYS)


CARRIED = """f (int64 n, bool c, float[2] x) => (seq(float[2]) y) {{
    {} s = SequenceConstruct (x) y = Loop ({}, s) <body = b ({}) => ({}) {{ {} }} > }}"""
TURN = "int64 i, bool g, seq(float[2]) u", "bool g2, seq(float[2]) u2", "g2 = Identity (g) u2 = SequenceInsert (u, x)"


@pytest.mark.parametrize("before, counts, turn, options, message", [
    ("", "n, c", TURN, [], "how often it turns is not known; where an input says it, fix that by --length"),
    ("", "n, c", TURN, ["n=3"], "its condition is not known; where it is an input, fix it by --length"),
    ("", "n, c", TURN, ["n=1025", "c=1"], "more than 1024 turns"),
    ("", "n, c", TURN, ["n=1024", "c=1"], "longer than 1024"),
    ("", ", c", TURN, ["c=1"], "how often it turns is not known; where an input says it, fix that by --length"),
    ("k = Constant <value = int64 {9000000000000000000}> ()", "k, c", TURN, ["c=1"], "more than 1024 turns"),
    ("", "n, c", (TURN[0], TURN[1], "m = ReduceMax <keepdims = 0> (x) z = Constant <value = float {0}> () g2 = Less (m, z) "
                  "u2 = SequenceInsert (u, x)"), ["n=3", "c=1"], "whether it goes on is not known"),
    ("", "n, c", ("int64 i, seq(float[2]) u", *TURN[1:]), ["n=3", "c=1"], "its subgraph has 2 inputs and 2 outputs, not 3 and 2"),
    ("", "n, c", (TURN[0], "bool g2", "g2 = Identity (g)"), ["n=3", "c=1"], "its body's outputs are not those of the loop"),
    ("", "n, c", (TURN[0], TURN[1], "g2 = Identity (g) v = Adagrad (x) u2 = SequenceInsert (u, v)"), ["n=9", "c=1"],
     "1 of the model's parts"),
])
def test_loops_refused(tmp_path, before, counts, turn, options, message):
    done = converted(tmp_path, CARRIED.format(before, counts, *turn), *[w for o in options for w in ("--length", o)])
    assert done.returncode != 0 and message in done.stderr, done.stderr


def test_loops_multiply(tmp_path):
    """Loops in loops of a thousand turns each: refused soon."""
    body = "u%d = SequenceInsert (u, x)"
    for depth in range(3):
        body = f"""k = Constant <value = int64 {{1000}}> () g = Constant <value = bool {{1}}> ()
            u%d = Loop (k, g, u) <body = b (int64 i, bool h, seq(float[2]) u) => (bool h2, seq(float[2]) u{depth}) {{
                h2 = Identity (h) {body.replace("%d", str(depth))} }} >"""
    text = "f (float[2] x) => (seq(float[2]) u3) { u = SequenceEmpty () %s }" % body.replace("%d", "3")
    onnx.save(parsed(text), tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", timeout=60)
    assert done.returncode != 0, done.stdout
    assert "copies of its subgraph" in done.stderr or "longer than 1024" in done.stderr, done.stderr
