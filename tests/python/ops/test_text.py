"""Operators on words against onnxruntime: n-grams of integers, text that is moved, joined, cut, matched, looked up; text at the
edges of a session and of the program."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import check_against, check_against_reference, import_package, linnet

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", "3"))
TYPES = {np.int32: TensorProto.INT32, np.int64: TensorProto.INT64}
POOL = {"ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
        "weights": [0.5, 2, 3, 1.5, 4, 0.25, 7]}


def tfidf_model(x, **attributes):
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TYPES[x.dtype.type], [None] * x.ndim)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_tfidf(tmp_path, mode, dtype):
    x = np.random.default_rng(3).integers(2, 9, (5, 40)).astype(dtype)
    for i, (least, most, skip, x) in enumerate([(1, 2, 0, x), (1, 2, 5, x), (2, 2, 100, x), (1, 1, 3, x[0])]):
        model = tfidf_model(x, mode=mode, min_gram_length=least, max_gram_length=most, max_skip_count=skip, **POOL)
        check_against_reference(tmp_path / str(i), model, {"x": x}, ways=WAYS)


@pytest.mark.parametrize("changed, told", [
    ({"ngram_counts": [0, 5]}, "do not cut the pool"), ({"ngram_counts": [0, 11]}, "do not cut the pool"),
    ({"ngram_indexes": [0, 1, 2, 3, 4, 5]}, "as many ngram_indexes"), ({"ngram_indexes": [-1] * 7}, "must name columns"),
    ({"weights": [1.0]}, "as many ngram_indexes and weights"), ({"mode": "DF"}, "mode must be"),
    ({"min_gram_length": 0}, "n-grams of 0 to 2"), ({"max_gram_length": 0}, "n-grams of 1 to 0")])
def test_bad_pool(tmp_path, changed, told):
    attributes = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, **POOL, **changed}
    path = tmp_path / "bad.onnx"
    onnx.save(tfidf_model(np.zeros(3, np.int64), **attributes), path)
    done = linnet("run", path, "--input", "x=[1, 2, 3]")
    assert done.returncode > 0 and told in done.stdout + done.stderr


# ---- text ----

ML = "ai.onnx.ml"
WORDS = ["the quick brown fox", "", "  two  spaces ", "a,b,,c", "Äpfel ÉCOLE Привет", "www.onnx.ai", "x@yahoo.com", "Monday",
         "monday"]


def words(*shape, seed=0):
    return np.random.default_rng(seed).choice(np.array(WORDS, object), shape)


def element(array):
    return TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)


def text_model(nodes, inputs, outputs, opset=21, initializers=()):
    """inputs: name -> array; outputs: name -> element type."""
    ins = [helper.make_tensor_value_info(name, element(x), [None if n > 1 else n for n in x.shape])
           for name, x in inputs.items()]
    outs = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs.items()]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(ML, 4)]
    graph = helper.make_graph(nodes, "g", ins, outs, initializer=list(initializers))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def check(folder, nodes, inputs, outputs, initializers=()):
    check_against_reference(folder, text_model(nodes, inputs, outputs, initializers=initializers), inputs, ways=WAYS)


def text_constant(name, *list_of_words):
    return numpy_helper.from_array(np.array(list_of_words, object), name)


def test_concat(tmp_path):
    for i, (a, b) in enumerate([(words(3, 4), words(4)), (words(), words(2, 1)), (words(2, 1, 3), words(4, 1))]):
        check(tmp_path / str(i), [helper.make_node("StringConcat", ["a", "b"], ["y"])], {"a": a, "b": b}, {"y": TensorProto.STRING})


@pytest.mark.parametrize("attributes", [{}, {"delimiter": ","}, {"delimiter": ",", "maxsplit": 1}, {"delimiter": "o"}])
def test_split(tmp_path, attributes):
    node = helper.make_node("StringSplit", ["x"], ["y", "n"], **attributes)
    for i, x in enumerate([words(5), words(2, 3, seed=1)]):
        x = np.where(x == "", "-", x).astype(object)  # "".split(",") has one piece in ONNX's reference, none in onnxruntime
        check(tmp_path / str(i), [node], {"x": x}, {"y": TensorProto.STRING, "n": TensorProto.INT64})


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
def test_normalizer(tmp_path, action, sensitive):
    node = helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action=action, is_case_sensitive=sensitive,
                            stopwords=["monday", "x@yahoo.com"], locale="C")
    x = np.array(["Monday", "monday", "www.onnx.ai", "x@yahoo.com", "Tuesday"], object)
    for i, x in enumerate([x, x[None], np.array(["x@yahoo.com"], object)]):
        check(tmp_path / str(i), [node], {"x": x}, {"y": TensorProto.STRING})


@pytest.mark.parametrize("pattern", [
    r"www\.[\w.-]+\.ai", r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", r"[A-Z]?[a-z]+", r".*", r"", r"(?i)MONDAY", r"(a|b|,)+c",
    r"\s*\w+\s+\w+\s*", r"[^ ]+", r"(?:the|a)( \w+){3}", r".*\bfox\b", r"[[:alpha:],]{4,}|\d*", r"x{0}", r"[\d\W]*.?"])
def test_regex(tmp_path, pattern):
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    check(tmp_path, [node], {"x": np.array(WORDS, object)}, {"y": TensorProto.BOOL})


@pytest.mark.parametrize("pattern, told", [
    ("(a", "a ( without )"), ("a)", "a ) without ("), ("[a", "a [ without ]"), ("*a", "repetition of nothing"), ("a{2,1}", "backwards"),
    ("[b-a]", "runs backwards"), (r"\p{Greek}", "an escape that is not known"), ("(?P<x>a)", "a group that is none of"),
    ("a{2000}", "too many repetitions"), ("(((a{900}){900}){900}){900}", "too many characters"),
    ("(((){900}){900}){900}", "too much of it"), ("(" * 80 + ")" * 80, "nested too deep"),
    ("a\\", "an end where")])
def test_bad_regex(tmp_path, pattern, told):
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    onnx.save(text_model([node], {"x": words(1)}, {"y": TensorProto.BOOL}), tmp_path / "bad.onnx")
    done = linnet("run", tmp_path / "bad.onnx", "--input", "x=[a]")
    assert done.returncode > 0 and told in done.stdout + done.stderr


def test_moves(tmp_path):
    """Text is gathered, joined, compared, chosen and cut like numbers."""
    nodes = [helper.make_node("Gather", ["x", "i"], ["g"], axis=1), helper.make_node("Concat", ["g", "c"], ["j"], axis=1),
             helper.make_node("Equal", ["j", "w"], ["e"]), helper.make_node("Where", ["e", "v", "j"], ["y"]),
             helper.make_node("Slice", ["y", "one", "two", "one"], ["s"]), helper.make_node("Shape", ["s"], ["n"])]
    constants = [numpy_helper.from_array(np.array([2, 0, 0]), "i"), text_constant("w", "monday"), text_constant("v", "is monday"),
                 numpy_helper.from_array(np.array([["new"], [WORDS[0]]], object), "c"),
                 numpy_helper.from_array(np.array([1]), "one"), numpy_helper.from_array(np.array([2]), "two")]
    outputs = {"y": TensorProto.STRING, "e": TensorProto.BOOL, "s": TensorProto.STRING, "n": TensorProto.INT64}
    check(tmp_path, nodes, {"x": words(2, 3, seed=4)}, outputs, constants)


def test_control_flow(tmp_path):
    """A Loop that carries text and stacks it, an If that gives it."""
    def text(name, shape=None):
        return helper.make_tensor_value_info(name, TensorProto.STRING, shape)

    more = helper.make_graph([helper.make_node("StringConcat", ["c", "tail"], ["c2"]), helper.make_node("Identity", ["go"], ["on"]),
                              helper.make_node("StringSplit", ["c2"], ["parts", "n"], delimiter="o"),
                              helper.make_node("ReduceSum", ["n"], ["sum"], keepdims=0),
                              helper.make_node("Identity", ["c2"], ["row"])], "more",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                              helper.make_tensor_value_info("go", TensorProto.BOOL, []), text("c", ["N"])],
                             [helper.make_tensor_value_info("on", TensorProto.BOOL, []), text("c2", ["N"]), text("row", ["N"]),
                              helper.make_tensor_value_info("sum", TensorProto.INT64, [])])
    same = helper.make_graph([helper.make_node("Identity", ["last"], ["a"])], "same", [], [text("a")])
    joined = helper.make_graph([helper.make_node("StringConcat", ["last", "x"], ["b"])], "joined", [], [text("b")])
    nodes = [helper.make_node("Loop", ["turns", "", "x"], ["last", "rows", "sums"], body=more),
             helper.make_node("If", ["flag"], ["y"], then_branch=same, else_branch=joined)]
    outputs = {"rows": TensorProto.STRING, "sums": TensorProto.INT64, "y": TensorProto.STRING}
    constants = [text_constant("tail", " so"), numpy_helper.from_array(np.int64(4), "turns")]
    for flag in (False, True):
        check(tmp_path / str(flag), nodes, {"x": words(3), "flag": np.array(flag)}, outputs, constants)


def test_tables(tmp_path):
    x = np.array(WORDS, object)
    encoder = helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, keys_strings=WORDS[::2], values_int64s=[5, 4, 3, 2, 1],
                               default_int64=-7)
    check(tmp_path / "ints", [encoder], {"x": x}, {"y": TensorProto.INT64})
    encoder = helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, keys_strings=WORDS[::2], values_strings=["new"] + WORDS[:4],
                               default_string="none")
    check(tmp_path / "strings", [encoder], {"x": x}, {"y": TensorProto.STRING})
    encoder = helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, keys_strings=WORDS[::2], values_floats=[1.5, 2, 3, 4, 5],
                               default_float=0.25)
    check(tmp_path / "floats", [encoder], {"x": x}, {"y": TensorProto.FLOAT})
    one_hot = helper.make_node("OneHotEncoder", ["x"], ["y"], domain=ML, cats_strings=WORDS[1:5], zeros=1)
    check(tmp_path / "one_hot", [one_hot], {"x": x}, {"y": TensorProto.FLOAT})
    mapper = {"cats_strings": WORDS, "cats_int64s": list(range(3, 3 + len(WORDS))), "default_int64": -2, "default_string": "none"}
    mapped = helper.make_node("CategoryMapper", ["x"], ["y"], domain=ML, **mapper)
    check(tmp_path / "mapper", [mapped], {"x": np.append(x, "other")}, {"y": TensorProto.INT64})


def test_tfidf_of_words(tmp_path):
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], mode="TFIDF", min_gram_length=1, max_gram_length=2, max_skip_count=1,
                            pool_strings=WORDS[:3] + ["Monday", "monday", "", "Monday"], ngram_counts=[0, 3],
                            ngram_indexes=[0, 1, 2, 4, 3], weights=[1.0, 2.0, 3.0, 4.0, 5.0])
    check(tmp_path, [node], {"x": words(4, 9)}, {"y": TensorProto.FLOAT})


NUMBERS = ["0", "-12", " 7", "255", "3.25", "-1e-3", "1E8", "+INF", "-inf", "NaN", "1e400", "0.1", "16777217"]


@pytest.mark.parametrize("dtype, some", [(TensorProto.FLOAT, NUMBERS), (TensorProto.DOUBLE, NUMBERS), (TensorProto.INT64, NUMBERS[:4]),
                                         (TensorProto.INT32, NUMBERS[:4])])
def test_cast_from_text(tmp_path, dtype, some):
    x = np.array(some, object)
    want = np.array([float(v) for v in some]).astype(helper.tensor_dtype_to_np_dtype(dtype))
    for name, nodes in (("cast", [helper.make_node("Cast", ["x"], ["y"], to=dtype)]),
                        ("like", [helper.make_node("CastLike", ["x", "l"], ["y"])])):
        like = [] if name == "cast" else [numpy_helper.from_array(want[:1], "l")]
        check_against(tmp_path / name, text_model(nodes, {"x": x}, {"y": dtype}, initializers=like), {"x": x}, [want], ways=WAYS)


@pytest.mark.parametrize("word", ["", "x", "1x", "1.2.3", "--1", "1e", "300", "-1"])
def test_no_number(tmp_path, word):
    model = text_model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.UINT8)], {"x": words(2)}, {"y": TensorProto.UINT8})
    onnx.save(model, tmp_path / "m.onnx")
    done = linnet("run", tmp_path / "m.onnx", "--input", f'x=["{word}", "1"]')
    assert done.returncode > 0 and "is no uint8" in done.stderr, done.stderr


@pytest.mark.parametrize("op, x, to", [("NumberToText", np.array([5, 6]), TensorProto.STRING),
                                       ("TextToNumber", np.array(["5"], object), TensorProto.INT64)])
def test_rows_that_cast_is_made_into(tmp_path, op, x, to):
    onnx.save(text_model([helper.make_node("Cast", ["x"], ["y"], to=to)], {"x": x}, {"y": to}), tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    assert json.loads(linnet("info", tmp_path / "m.lnt", "--json").stdout)["operators"] == {op: 1}


def test_cast_to_text(tmp_path):
    rng = np.random.default_rng(5)
    for dtype in (np.float32, np.float64):
        x = (rng.standard_normal(400) * 10.0 ** rng.integers(-12, 22, 400)).astype(dtype)
        x[:12] = [0, 1, -1, 100, 0.5, 1e-4, 1e-5, 1e15, 1e16, 123456789, 2**-130, -0.0]
        size = np.abs(x)
        if dtype is np.float32:  # numpy's versions do not agree on where its digits are written out
            x = x[(size < 1e-5) | (size > 1e17) | ((size > 1e-3) & (size < 1e5))]
        check_against(tmp_path / dtype.__name__, text_model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)], {"x": x},
                                                           {"y": TensorProto.STRING}), {"x": x},
                      [np.array([str(v) for v in x], object)], ways=WAYS)
    x = np.array([5, -2**63, 2**63 - 1])
    check_against(tmp_path / "int", text_model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)], {"x": x},
                                               {"y": TensorProto.STRING}), {"x": x}, [np.array([str(v) for v in x], object)], ways=WAYS)
    x = np.array([np.nan, np.inf, -np.inf], np.float32)
    check_against(tmp_path / "odd", text_model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)], {"x": x},
                                               {"y": TensorProto.STRING}), {"x": x}, [np.array(["NaN", "INF", "-INF"], object)], ways=WAYS)


@pytest.mark.parametrize("op, inputs", [("Add", 2), ("Neg", 1), ("Unique", 1), ("ArgMax", 1), ("ReduceSum", 1)])
def test_no_arithmetic(tmp_path, op, inputs):
    model = text_model([helper.make_node(op, ["x"] * inputs, ["y"])], {"x": words(3)}, {"y": TensorProto.STRING})
    onnx.save(model, tmp_path / "bad.onnx")
    done = linnet("convert", tmp_path / "bad.onnx", "-o", tmp_path / "bad.lnt")
    assert done.returncode > 0 and "it reads text" in done.stdout + done.stderr


# ---- at the edges ----

def concat_session(linnet_package, **options):
    model = text_model([helper.make_node("StringConcat", ["a", "b"], ["y"])], {"a": words(2), "b": words(2)}, {"y": TensorProto.STRING})
    settings = linnet_package.SessionOptions()
    for name, value in options.items():
        setattr(settings, name, value)
    return linnet_package.InferenceSession(model.SerializeToString(), settings)


@pytest.mark.parametrize("threads, mode", [(1, 0), (4, 0), (4, 1)])
def test_python(threads, mode):
    package = import_package()
    mode = package.ExecutionMode.ORT_PARALLEL if mode else package.ExecutionMode.ORT_SEQUENTIAL
    session = concat_session(package, intra_op_num_threads=threads, execution_mode=mode)
    assert [a.type for a in session.get_inputs() + session.get_outputs()] == ["tensor(string)"] * 3
    for turn in range(300):
        a, b = words(50, seed=turn) + str(turn), np.array([f"é{turn}", "b"])
        got, = session.run(None, {"a": a, "b": b[:1]})
        assert got.dtype == object and (got == a + b[0]).all()
    got, = session.run(["y"], {"a": ["x", "y"], "b": np.array(["z"])})
    assert list(got) == ["xz", "yz"]
    got, = session.run(None, {"a": got, "b": np.array(["\udcff"], object)})
    assert list(got) == ["xz\udcff", "yz\udcff"]
    assert session.run(None, {"a": np.empty(0, object), "b": np.array([""])})[0].shape == (0,)


def test_python_refuses():
    package = import_package()
    session = concat_session(package)
    good = {"a": np.array(["a"]), "b": np.array(["b"])}
    for bad in ({"a": np.array([1])}, {"a": np.array([None])}, {"a": np.array(["x\0y"], object)}, {"a": np.array([["x"]])}):
        with pytest.raises(Exception):
            session.run(None, good | bad)
        assert session.run(None, good)[0][0] == "ab"


def test_program(tmp_path):
    model = text_model([helper.make_node("StringSplit", ["x"], ["y", "n"])], {"x": words(2)},
                       {"y": TensorProto.STRING, "n": TensorProto.INT64})
    onnx.save(model, tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    info = json.loads(linnet("info", tmp_path / "m.lnt", "--json").stdout)
    assert [p["dtype"] for p in info["inputs"] + info["outputs"]] == ["string", "string", "int64"]
    done = linnet("run", tmp_path / "m.lnt", "--input", 'x=[one word, "two"]', "--output", f"y={tmp_path}/y.pb", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outputs"][0]["words"] == ["one", "word", "two", ""]
    written = numpy_helper.to_array(onnx.TensorProto.FromString((tmp_path / "y.pb").read_bytes()))
    assert written.tolist() == [[b"one", b"word"], [b"two", b""]] or written.tolist() == [["one", "word"], ["two", ""]]
    done = linnet("run", tmp_path / "m.lnt", "--input", "x=[one word]", "--output", f"y={tmp_path}/y.npy")
    assert done.returncode > 0 and ".pb only" in done.stderr
    assert "'one'" in linnet("run", tmp_path / "m.lnt", "--input", "x=[one word]").stdout


@pytest.mark.parametrize("op, inputs", [("Where", ["c", "x", "f"]), ("Where", ["c", "f", "x"]), ("Concat", ["f", "x"])])
def test_text_beside_numbers(tmp_path, op, inputs):
    constants = [numpy_helper.from_array(np.ones(2, np.float32), "f"), numpy_helper.from_array(np.array([True, False]), "c")]
    node = helper.make_node(op, inputs, ["y"], **({"axis": 0} if op == "Concat" else {}))
    onnx.save(text_model([node], {"x": words(2)}, {"y": TensorProto.FLOAT}, initializers=constants), tmp_path / "m.onnx")
    done = linnet("run", tmp_path / "m.onnx", "--input", "x=[a, b]")
    assert done.returncode > 0 and "types do not fit" in done.stderr, done.stderr
