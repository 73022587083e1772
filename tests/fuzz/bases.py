"""bases.py: small models for fuzzing that the tests' own do not show: control flow in control flow, elements of other types
in branches, empty scans, states of several kinds, chains of every fusion, and what is larger than a page of cache."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, DOUBLE, INT64, BOOL = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.BOOL
rng = np.random.default_rng(1)


def value(name, dims=None, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def const(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def weights(name, *dims):
    return const(name, rng.standard_normal(dims).astype(np.float32) / 4)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(" ") if inputs else [], outputs.split(), **attributes)


def model(nodes, inputs, outputs, constants=(), opset=18, domains=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8 if opset < 21 else 11)


def branches(source):
    """Both give what source is, each by a node of its own that could give another type."""
    then = helper.make_graph([node("Cast", source, "t", to=FLOAT)], "then", [], [value("t")])
    other = helper.make_graph([node("Neg", source, "n"), node("Cast", "n", "e", to=FLOAT)], "else", [], [value("e")])
    return {"then_branch": then, "else_branch": other}


def loop_if_carried():
    """An If whose output is carried to the next turn, and one that reads it."""
    body = helper.make_graph(
        [node("Equal", "i zero", "first"), node("If", "first", "y", **branches("c")), node("Identity", "go", "on"),
         node("Identity", "y", "slice")], "body",
        [value("i", [], INT64), value("go", [], BOOL), value("c", ["N"])],
        [value("on", [], BOOL), value("y", ["N"]), value("slice", ["N"])])
    return model([node("Loop", "n  x", "last ys", body=body)], [value("x", ["N"])], [value("last"), value("ys")],
                 [const("zero", np.int64(0)), const("n", np.int64(3))])


def scan_empty():
    """Turns times slice: of a constant without elements the first extent may be anything."""
    body = helper.make_graph([node("Identity", "w", "y")], "body", [value("b", [0], BOOL)], [value("y", [24], DOUBLE)])
    return model([node("Scan", "bs", "ys", body=body, num_scan_inputs=1)], [value("w", [24], DOUBLE)],
                 [value("ys", None, DOUBLE)], [const("bs", np.zeros((2, 0), bool))])


def scan_axes():
    """Along other axes, backwards, with a state that is carried."""
    body = helper.make_graph([node("Add", "s v", "s2"), node("Concat", "v u", "y", axis=0)], "body",
                             [value("s", [3]), value("v", [3]), value("u", [2])], [value("s2", [3]), value("y", [5])])
    return model([node("Scan", "s0 v u", "last ys", body=body, num_scan_inputs=2, scan_input_axes=[1, 0],
                       scan_input_directions=[0, 1], scan_output_axes=[1], scan_output_directions=[1])],
                 [value("s0", [3]), value("v", [3, "T"]), value("u", ["T", 2])], [value("last", [3]), value("ys")])


def scan_in_loop():
    cell = helper.make_graph([node("Add", "a v", "a2"), node("Mul", "a2 v", "y")], "cell", [value("a", []), value("v", [])],
                             [value("a2", []), value("y", [])])
    body = helper.make_graph(
        [node("Scan", "zero c", "sum ys", body=cell, num_scan_inputs=1), node("Less", "i two", "on"),
         node("Concat", "ys sum1", "c2", axis=0), node("Reshape", "sum one", "sum1")], "body",
        [value("i", [], INT64), value("go", [], BOOL), value("c", None)], [value("on", [], BOOL), value("c2")])
    body.node.insert(2, body.node.pop())  # the Reshape before who reads it
    return model([node("Loop", "  x", "y", body=body)], [value("x", ["N"])], [value("y")],
                 [const("zero", np.float32(0)), const("two", np.int64(2)), const("one", np.array([1]))], opset=18)


def loop_in_if():
    """A Loop in a branch, and the branch by what is fed."""
    body = helper.make_graph([node("Identity", "go", "on"), node("Mul", "c c", "c2"), node("Identity", "i", "n2")], "body",
                             [value("i", [], INT64), value("go", [], BOOL), value("c", [2])],
                             [value("on", [], BOOL), value("c2", [2]), value("n2", [], INT64)])
    then = helper.make_graph([node("Loop", "n  x", "t numbers", body=body)], "then", [], [value("t", [2])])
    other = helper.make_graph([node("Abs", "x", "e")], "else", [], [value("e", [2])])
    return model([node("If", "flag", "y", then_branch=then, else_branch=other), node("Relu", "y", "z")],
                 [value("flag", [], BOOL), value("n", [], INT64), value("x", [2])], [value("z", [2])])


def states():
    """One cast to another type, one that grows, one of integers, one that is not computed."""
    return model([node("Cast", "x", "wide", to=DOUBLE), node("Add", "s wide", "s2"), node("ReduceSum", "s", "r", keepdims=0),
                  node("Concat", "tail x", "tail2", axis=0), node("Add", "count one", "count2"),
                  node("Identity", "held", "held2")],
                 [value("x", [16]), value("s", [16], DOUBLE), value("tail", ["T"]), value("count", [1], INT64),
                  value("held", [2])],
                 [value("r", [], DOUBLE), value("s2", [16], DOUBLE), value("tail2", ["U"]), value("count2", [1], INT64),
                  value("held2", [2])], [const("one", np.array([1]))])


def numbers():
    """Extents out of data: NonZero, Range, Where, Compress, Split, with symbols to be bounded."""
    return model([node("NonZero", "x", "nz"), node("Shape", "nz", "s"), node("Gather", "s one", "k"),
                  node("Squeeze", "k axes", "n"), node("Range", "zero n one1", "r"), node("Cast", "r", "f", to=FLOAT),
                  node("Expand", "x1 wide", "w"), node("Compress", "f mask", "c", axis=0), node("TopK", "f k", "v i"),
                  node("Tile", "c twice", "y"), node("Slice", "f begin k axes", "z")],
                 [value("x", ["N"]), value("mask", ["M"], BOOL), value("wide", [2], INT64), value("x1", [1])],
                 [value("y"), value("v"), value("i", None, INT64), value("w"), value("z")],
                 [const("one", np.array([1])), const("axes", np.array([0])), const("zero", np.int64(0)),
                  const("one1", np.int64(1)), const("twice", np.array([2])), const("begin", np.array([0]))])


def lines():
    """Channels-last convolutions that feed one another line by line, with programs on their tiles."""
    nodes, constants, last = [], [], "x"
    shapes = [(8, 3, 3, 1), (8, 1, 3, 8), (16, 8, 1, 1), (16, 1, 3, 16), (8, 16, 1, 1)]
    for i, (to, each, taps, group) in enumerate(shapes):
        constants += [weights(f"w{i}", to, each, taps, taps), weights(f"b{i}", to)]
        nodes += [node("Conv", f"{last} w{i} b{i}", f"c{i}", pads=[taps // 2] * 4, group=group),
                  node("Sigmoid" if i % 2 else "Relu", f"c{i}", f"r{i}")]
        last = f"r{i}"
    nodes += [node("Add", "r4 r0", "sum"), node("AveragePool", "sum", "p", kernel_shape=[2, 2], strides=[2, 2]),
              node("Resize", "p  scales", "z", mode="nearest"), node("Concat", "z r2", "y", axis=1)]
    constants.append(const("scales", np.array([1, 1, 2, 2], np.float32)))
    return model(nodes, [value("x", [1, 3, "h", 8])], [value("y")], constants)


def streams():
    """A convolution that makes much of little, and a depthwise one that reads it line by line."""
    return model([node("Conv", "x w b", "c"), node("Clip", "c low high", "r"),
                  node("Conv", "r v a", "y", group=70, pads=[1, 1, 1, 1])], [value("x", [1, 10, 72, 41])], [value("y")],
                 [weights("w", 70, 10, 1, 1), weights("b", 70), weights("v", 70, 1, 3, 3), weights("a", 70),
                  const("low", np.float32(-1)), const("high", np.float32(2))])


def skips():
    """Outputs that nobody wants, of loops and of what is evaluated early."""
    body = helper.make_graph([node("Identity", "go", "on"), node("Mul", "c d", "c2"), node("Add", "d d", "d2"),
                              node("Neg", "c2", "e"), node("Abs", "c2", "f")], "body",
                             [value("i", [], INT64), value("go", [], BOOL), value("c", [2]), value("d", [2])],
                             [value(name, dims, dtype) for name, dims, dtype in
                              (("on", [], BOOL), ("c2", [2], FLOAT), ("d2", [2], FLOAT), ("e", [2], FLOAT), ("f", [2], FLOAT))])
    cell = helper.make_graph([node("Add", "a v", "a2"), node("Sub", "a v", "g"), node("Exp", "v", "h")], "cell",
                             [value("a", [2]), value("v", [2])], [value("a2", [2]), value("g", [2]), value("h", [2])])
    return model([helper.make_node("Loop", ["n", "", "x", "x"], ["last", "", "", "ys"], body=body),
                  helper.make_node("Scan", ["x", "ys"], ["sum", "", "hs"], body=cell, num_scan_inputs=1),
                  node("Shape", "hs", "s"), helper.make_node("Split", ["s", "parts"], ["rows", "columns"], axis=0),
                  node("ConstantOfShape", "rows", "zeros"), helper.make_node("TopK", ["last", "one"], ["top", "at"])],
                 [value("n", [], INT64), value("x", [2])], [value("hs"), value("zeros"), value("at", None, INT64)],
                 [const("parts", np.array([1, 1])), const("one", np.array([1]))])


def numbers32():
    """A length that is computed in 32 bits, to be bounded; more parts than views are told of."""
    parts = [f"p{i}" for i in range(70)]
    return model([node("ReduceSum", "x", "t", keepdims=0), node("Cast", "t", "n", to=TensorProto.INT32),
                  node("Range", "zero n one", "r"), node("Cast", "r", "f", to=FLOAT), node("Expand", "f wide", "w"),
                  helper.make_node("Split", ["z"], parts, axis=0, num_outputs=70), node("Concat", " ".join(parts), "y", axis=1)],
                 [value("x", ["N"]), value("wide", [2], INT64), value("z", [70, 1])], [value("w"), value("y")],
                 [const("zero", np.int32(0)), const("one", np.int32(1))])


def elementwise():
    """A program of many instructions with several results, masks, halves, and products with epilogues."""
    return model([node("MatMul", "x w", "m"), node("Add", "m b", "a"), node("Erf", "a", "e"), node("Mul", "e a", "g"),
                  node("Clip", "g low high", "c"), node("Sub", "c x", "d"), node("Exp", "d", "p"), node("Div", "p a", "q"),
                  node("Greater", "q a", "k"), node("Where", "k p q", "o"), node("Cast", "o", "h", to=TensorProto.FLOAT16),
                  node("Not", "k", "k2"), node("Softmax", "o", "y", axis=-1), node("LayerNormalization", "o b", "l"),
                  node("Gemm", "l w b", "z", alpha=0.5, transB=1), node("Tanh", "z", "t")],
                 [value("x", ["N", 16])], [value("y"), value("h", None, TensorProto.FLOAT16), value("k2", None, BOOL),
                                           value("t")],
                 [weights("w", 16, 16), weights("b", 16), const("low", np.float32(-1)), const("high", np.float32(1))])


def quantized():
    """Integer operators as other quantizers write them."""
    byte = TensorProto.UINT8
    return model([node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"),
                  node("DynamicQuantizeLinear", "d", "u us uz"), node("MatMulInteger", "u w uz", "i"),
                  node("Cast", "i", "f", to=FLOAT), node("Mul", "f us", "y"),
                  node("QLinearMatMul", "q s z w s wz s z", "r")],
                 [value("x", ["N", 8])], [value("y"), value("r", None, byte)],
                 [const("s", np.float32(0.1)), const("z", np.uint8(128)), const("wz", np.int8(0)),
                  const("w", rng.integers(-127, 127, (8, 8)).astype(np.int8))])


def halves():
    """A model of float16, with every layer whose weights are read in 16 bits, and values that stay float16."""
    half = TensorProto.FLOAT16
    constants = [const(t.name, numpy_helper.to_array(t).astype(np.float16)) for t in (
        weights("table", 70, 16), weights("w", 16, 16), weights("f", 20, 16, 3), weights("d", 20, 1, 3), weights("u", 20, 4, 2),
        weights("gates", 1, 16, 4), weights("again", 1, 16, 4))]
    return model([node("Gather", "table i", "rows"), node("MatMul", "rows w", "m"), node("Transpose", "m", "image", perm=[0, 2, 1]),
                  node("Conv", "image f", "c", pads=[1, 1]), node("Conv", "c d", "e", group=20, pads=[1, 1]),
                  node("ConvTranspose", "e u", "t", strides=[2]), node("Transpose", "t", "x", perm=[2, 0, 1]),
                  node("LSTM", "x gates again", "y", hidden_size=4), node("Cast", "p", "r", to=half), node("Cast", "r", "s", to=FLOAT)],
                 [value("i", ["N", "T"], INT64), value("p", ["N"])], [value("y", None, half), value("s")], constants)


def large():
    """Weights of 110 KB."""
    return model([node("MatMul", "x w", "m"), node("Relu", "m", "r"), node("MatMul", "r v", "y")], [value("x", ["N", 128])],
                 [value("y")], [weights("w", 128, 128), weights("v", 128, 96)])


def text():
    """Names that JSON, C and a terminal would rather not see."""
    return model([node("Add", 'x\n"y\\ \x1b[31m {b}'.replace(" ", "_") + " z", "out\u00e9\u4e2d")],
                 [value('x\n"y\\_\x1b[31m_{b}', ['N"', "\\"]), value("z", [1])], [value("out\u00e9\u4e2d")])


def sequences():
    """A sequence that is built, changed and read; another of nothing but what is put in; one stacked."""
    return model([node("SequenceConstruct", "x y", "s"), node("SequenceInsert", "s z at", "t"), node("SequenceErase", "t first", "u"),
                  node("SequenceAt", "u last", "a"), node("SequenceLength", "u", "n"), node("SequenceEmpty", "", "e"),
                  node("SequenceInsert", "e a", "f"), node("SequenceInsert", "f z", "h"),
                  node("ConcatFromSequence", "t", "c", axis=0), node("ConcatFromSequence", "h", "k", axis=-1, new_axis=1)],
                 [value(name, ["N", 2]) for name in "xyz"], [value("a"), value("n", [], INT64), value("c"), value("k")],
                 [const("at", np.int64(1)), const("first", np.int64(0)), const("last", np.int32(-1))])


def small():
    """Types of 8 bits and fewer, packed and not, from outside and in control flow."""
    f8, i4, f4, u2, power = (getattr(TensorProto, name) for name in ("FLOAT8E4M3FN", "INT4", "FLOAT4E2M1", "UINT2", "FLOAT8E8M0"))
    packed = helper.make_tensor("w", i4, [3, 5], list(range(-7, 8)))
    body = helper.make_graph([node("Identity", "go", "on"), node("Transpose", "c", "d", perm=[0])], "body",
                             [value("i", [], INT64), value("go", [], BOOL), value("c", ["N"], f8)],
                             [value("on", [], BOOL), value("d", ["N"], f8)])
    return model([node("Cast", "x", "q", to=f8, saturate=0), node("Loop", "n  q", "l", body=body), node("Cast", "l", "y", to=FLOAT),
                  node("QuantizeLinear", "x s", "k", output_dtype=f4), node("DequantizeLinear", "k s", "d"),
                  node("QuantizeLinear", "x s z", "j"), node("Cast", "j", "m", to=u2), node("Cast", "m", "o", to=INT64),
                  node("DequantizeLinear", "w s", "v"), node("Cast", "x", "e", to=power, round_mode="nearest"),
                  node("Concat", "g e", "h", axis=0), node("Cast", "w", "t", to=f4), node("Reshape", "t flat", "r")],
                 [value("x", ["N"]), value("g", ["M"], power)],
                 [value("y"), value("d"), value("o", None, INT64), value("v"), value("h", None, power), value("r", None, f4)],
                 [const("n", np.int64(2)), const("s", np.float32(0.5)), packed, helper.make_tensor("z", i4, [], [1]),
                  const("flat", np.array([-1]))], opset=25)


def split_and_map():
    """Cut evenly, by lengths, into rows; mapped beside a tensor, one map in another; optionals of what there is and is not."""
    cell = helper.make_graph([node("Mul", "c most", "d"), node("Add", "d outer", "t")], "cell", [value("c", [1])], [value("t")])
    row = helper.make_graph(
        [node("ReduceMax", "r", "most", keepdims=0), node("SplitToSequence", "r", "cells"), node("SequenceMap", "cells", "ts", body=cell),
         node("ConcatFromSequence", "ts", "joined", axis=0), node("Add", "r b", "sum")], "row",
        [value("r", [3]), value("b", [3])], [value("joined"), value("sum")], [const("unused", np.float32(1))])
    return model([node("SplitToSequence", "x", "rows", keepdims=0), node("SequenceMap", "rows w", "js sums", body=row),
                  node("ConcatFromSequence", "js", "y", axis=0, new_axis=1), node("SplitToSequence", "x two", "halves", axis=1),
                  node("SplitToSequence", "x lengths", "parts", axis=-1), node("SequenceAt", "parts one", "part"),
                  node("Optional", "halves", "held"), node("OptionalGetElement", "held", "got"),
                  node("SequenceLength", "got", "n"), node("Optional", "", "nothing", type=helper.make_tensor_type_proto(FLOAT, [2])),
                  node("OptionalHasElement", "nothing", "has"), node("SequenceAt", "sums one", "z")],
                 [value("x", [2, 3]),
                  helper.make_value_info("w", helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [3])))],
                 [value("y"), value("part"), value("n", [], INT64), value("has", [], BOOL), value("z")],
                 [const("two", np.int64(2)), const("one", np.int64(1)), const("lengths", np.array([1, 2])),
                  const("outer", np.float32(0.25))])


def sequences_in_control():
    """Through an If that is not known, one that is, and a Loop of known turns; an optional that only one branch may take."""
    then = helper.make_graph([node("SplitToSequence", "x", "s"), node("Optional", "x", "o")], "then", [], [value("s"), value("o")])
    other = helper.make_graph([node("Neg", "x", "n"), node("SequenceConstruct", "x n", "s2"), node("Optional", "n", "p")], "else",
                              [], [value("s2"), value("p")])
    get = helper.make_graph([node("OptionalGetElement", "nothing", "g")], "get", [], [value("g")])
    keep = helper.make_graph([node("SequenceAt", "s one", "k")], "keep", [], [value("k")])
    body = helper.make_graph(
        [node("SequenceInsert", "t a", "u"), node("Add", "a w", "b"), node("Less", "i one", "on"), node("Neg", "a", "row")], "body",
        [value("i", [], INT64), value("c", [], BOOL), value("t"), value("a")],
        [value("on", [], BOOL), value("u"), value("b"), value("row")], [const("w", np.float32(0.5))])
    return model([node("If", "c", "s o", then_branch=then, else_branch=other), node("Optional", "", "nothing"),
                  node("OptionalHasElement", "nothing", "has"), node("If", "has", "k", then_branch=get, else_branch=keep),
                  node("Loop", "three  s k", "t a rows", body=body), node("ConcatFromSequence", "t", "y", axis=0)],
                 [value("c", [], BOOL), value("x", [2, 3])], [value("y"), value("a"), value("rows"), value("o")],
                 [const("one", np.int64(1)), const("three", np.int64(3))])


def flex_attention():
    """Shared heads; a subgraph with constants of its own, and one that reads from outside."""
    score = helper.make_graph([node("Mul", "s slope", "t"), node("Tanh", "t", "u")], "score", [value("s", ["B", "H", "L", "S"])],
                              [value("u", ["B", "H", "L", "S"])], [const("slope", np.float32(0.5))])
    prob = helper.make_graph([node("Add", "s outer", "u")], "prob", [value("s", ["B", "H", "L", "S"])],
                             [value("u", ["B", "H", "L", "S"])])
    return model([node("FlexAttention", "q k v", "y", domain="ai.onnx.preview", score_mod=score, prob_mod=prob),
                  node("FlexAttention", "y k v", "z", domain="ai.onnx.preview", scale=0.5)],
                 [value("q", [1, 4, "L", 4]), value("k", [1, 2, "S", 4]), value("v", [1, 2, "S", 4])], [value("z")],
                 [const("outer", np.float32(0.25))], opset=26, domains=("ai.onnx.preview",))


def sequences_at_edges():
    """Sequences and optionals come in and go out; loops that carry them, and branches that give them, open and known."""
    rows = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, ["R", 2]))
    nothing, edge = helper.make_optional_type_proto(rows), helper.make_value_info
    turn = helper.make_graph([node("Identity", "go", "on"), node("SequenceAt", "s i", "e"), node("SequenceInsert", "u e", "v"),
                              node("ReduceSum", "e", "sum", keepdims=0)], "turn",
                             [value("i", [], INT64), value("go", [], BOOL), edge("u", rows)],
                             [value("on", [], BOOL), edge("v", rows), value("sum")])
    pair = helper.make_graph([node("SequenceConstruct", "x x", "p")], "pair", [], [edge("p", rows)])
    same = helper.make_graph([node("SequenceInsert", "one x", "q")], "same", [], [edge("q", rows)])
    got = helper.make_graph([node("OptionalGetElement", "o", "g")], "got", [], [edge("g", rows)])
    none = helper.make_graph([node("SequenceEmpty", "", "h")], "none", [], [edge("h", rows)])
    return model([node("SequenceLength", "s", "n"), node("SequenceEmpty", "", "empty"), node("Loop", "n yes empty", "t sums", body=turn),
                  node("SequenceConstruct", "x", "one"), node("If", "c", "f", then_branch=pair, else_branch=same),
                  node("OptionalHasElement", "o", "has"), node("If", "has", "k", then_branch=got, else_branch=none),
                  node("Identity", "e", "same")],
                 [edge("s", rows), edge("e", rows), edge("o", nothing), value("x", [1, 2]), value("c", [], BOOL)],
                 [edge("t", rows), edge("f", rows), edge("k", rows), edge("same", rows), value("sums"), value("n", [], INT64)],
                 [const("yes", np.bool_(True))])


def words():
    """Text that is moved, joined, cut, normalized, matched, looked up, carried in a loop; the model's words beside those that are fed."""
    string = TensorProto.STRING
    ml = {"domain": "ai.onnx.ml"}
    body = helper.make_graph([node("StringConcat", "c tail", "c2"), node("Identity", "go", "on")], "body",
                             [value("i", [], INT64), value("go", [], BOOL), value("c", ["N"], string)],
                             [value("on", [], BOOL), value("c2", ["N"], string)])
    return model([node("Concat", "x known", "j", axis=0), node("Equal", "j one", "e"), node("Where", "e tail j", "w"),
                  node("StringSplit", "w", "p n", delimiter=","), node("StringSplit", "w", "q"),
                  node("StringNormalizer", "j", "z", case_change_action="UPPER", stopwords=["monday", "a b"]),
                  node("RegexFullMatch", "z", "m", pattern=r"(\w+\.?)*|[^,]{2,}$"), node("Loop", "turns  x", "last", body=body),
                  node("Cast", "n", "nt", to=string), node("Cast", "nt", "nn", to=FLOAT),
                  node("LabelEncoder", "j", "l", keys_strings=["Monday", ""], values_strings=["", "new"], **ml),
                  node("OneHotEncoder", "j", "h", cats_strings=["Monday", "a b"], **ml),
                  node("TfIdfVectorizer", "j", "t", mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=1,
                       pool_strings=["", "Monday", "a b", "a b", ""], ngram_counts=[0, 1], ngram_indexes=[2, 0, 1])],
                 [value("x", ["N"], string)],
                 [value("p", None, string), value("n", None, INT64), value("q", None, string), value("m", None, BOOL),
                  value("last", None, string), value("l", None, string), value("h"), value("t"), value("nn")],
                 [const("known", np.array(["Monday", "b,,c"], object)), const("one", np.array(["Monday"], object)),
                  const("tail", np.array(["é"], object)), const("turns", np.int64(3))], opset=21, domains=("ai.onnx.ml",))


BASES = [loop_if_carried, scan_empty, scan_axes, scan_in_loop, loop_in_if, states, numbers, numbers32, skips, lines,
         streams, elementwise, quantized, halves, large, text, sequences, split_and_map, sequences_in_control,
         sequences_at_edges, flex_attention, small, words]
# Options of `linnet convert` that some are converted with, besides what all are.
OPTIONS = {"sequences_at_edges": ["--length", "s=2", "--length", "e=0", "--length", "o=none"],
           "states": ["--state", "s2=s", "--state", "tail2=tail", "--state", "count2=count", "--state", "held2=held"]}
