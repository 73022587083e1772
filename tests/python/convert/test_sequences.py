"""Sequences whose length is known at conversion, and optionals, against onnxruntime; and what is said of others."""

import numpy as np
import onnx
import onnx.parser
import pytest

from harness import check_against, check_against_reference, linnet

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
    ("float[4]", "s = SplitToSequence (x) y = SequenceMap (s)", "attribute 'body' holds no graph"),
    ("optional(seq(float))", "y = OptionalGetElement (x)", "is no tensor"),
    ("bool", "f = Cast <to = 1> (x) s = If (x) <then_branch: graph = a () => (seq(float) s) { s = SequenceConstruct (f, f) }, "
     "else_branch: graph = b () => (seq(float) t) { t = SequenceConstruct (f) }> y = ConcatFromSequence <axis = 0> (s)",
     "its branches give differently"),
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
