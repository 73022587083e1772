"""Writes models/*.onnx: small models that between them use every part of the runtime, for tests in C.

    python3 tests/data/make_models.py        (needs numpy and onnx)
"""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent / "models"
OPSET = 17
rng = np.random.default_rng(1)


def const(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def weights(name, *dims):
    return const(name, rng.standard_normal(dims).astype(np.float32))


def ints(name, *values):
    return const(name, np.array(values, np.int64))


def floats(name, dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(" "), outputs.split(), name=f"{op}_{outputs.split()[0]}", **attributes)


def save(name, nodes, inputs, outputs, constants):
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, FOLDER / f"{name}.onnx")


def image():
    """Convolutions of every kind, pooling, normalization, resize."""
    save("image", [
        node("Conv", "x w1 b1", "a", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", "a", "a1"),
        node("Conv", "a1 wd", "d", group=8, pads=[1, 1, 1, 1]),
        node("BatchNormalization", "d g1 b2 m1 v1", "n"),
        node("Clip", "n low high", "c"),
        node("Conv", "c w2", "e"),
        node("Add", "e a1", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("ConvTranspose", "p wt", "t", strides=[2, 2]),
        node("Resize", "t roi scales", "z", mode="linear"),
        node("GlobalAveragePool", "z", "q"),
        node("Flatten", "q", "f"),
        node("Gemm", "f wg bg", "h", transB=1),
        node("Softmax", "h", "y"),
    ], [floats("x", [1, 3, 8, 8])], [floats("y", [1, 5])], [
        weights("w1", 8, 3, 3, 3), weights("b1", 8), weights("wd", 8, 1, 3, 3), weights("g1", 8), weights("b2", 8),
        weights("m1", 8), const("v1", np.full(8, 0.5, np.float32)), const("low", np.float32(0)),
        const("high", np.float32(6)), weights("w2", 8, 8, 1, 1), weights("wt", 8, 4, 2, 2),
        const("roi", np.zeros(0, np.float32)), const("scales", np.array([1, 1, 2, 2], np.float32)),
        weights("wg", 5, 4), weights("bg", 5)])


def sequence():
    """Recurrent cells over a length that is not known, and a state."""
    save("sequence", [
        node("LSTM", "x wl rl bl", "s h c", hidden_size=4),
        node("Squeeze", "s one", "s1"),
        node("GRU", "s1 wg rg", "g", hidden_size=3, direction="reverse", linear_before_reset=1),
        node("Squeeze", "g one", "g1"),
        node("Add", "state g1", "u"),
        node("ReduceMean", "u", "next", axes=[0], keepdims=1),
        node("LayerNormalization", "u scale", "y"),
    ], [floats("x", ["T", 1, 2]), floats("state", [1, 1, 3])], [floats("y", ["T", 1, 3]), floats("next", [1, 1, 3])], [
        weights("wl", 1, 16, 2), weights("rl", 1, 16, 4), weights("bl", 1, 32), weights("wg", 1, 9, 4),
        weights("rg", 1, 9, 3), weights("scale", 3), ints("one", 1)])


def shapes():
    """Extents computed from extents, data movement, values that decide shapes."""
    save("shapes", [
        node("Shape", "x", "dims"),
        node("Gather", "dims zero", "t", axis=0),
        node("Concat", "t minus", "target", axis=0),
        node("Reshape", "x target", "flat"),
        node("Transpose", "flat", "turned", perm=[1, 0]),
        node("Slice", "turned start end axis step", "part"),
        node("Pad", "part pads", "padded", mode="reflect"),
        node("Split", "padded", "left right", axis=0),
        node("Where", "mask left right", "chosen"),
        node("Greater", "chosen limit", "big"),
        node("NonZero", "big", "where"),
        node("Transpose", "where", "rows"),
        node("GatherND", "chosen rows", "picked"),
        node("TopK", "picked k", "top order", axis=0),
        node("ScatterElements", "chosen zeros updates", "scattered", axis=1),
        node("Expand", "top wide", "y"),
        node("Tile", "scattered twice", "z"),
    ], [floats("x", ["N", 2, 3])], [floats("y", [4, 1]), floats("z", [3, "Z"])], [
        ints("zero", 0), ints("minus", -1), ints("start", -1), ints("end", -(2 ** 63)), ints("axis", 0),
        ints("step", -1), ints("pads", 0, 1, 0, 1), const("mask", np.array([[True], [False], [True]])),
        const("limit", np.float32(-100)), ints("k", 1), const("zeros", np.zeros((3, 1), np.int64)),
        weights("updates", 3, 1), ints("wide", 4, 1), ints("twice", 1, 2)])


def control():
    """If in If, Loop that grows, Scan; all reading outer values."""
    yes = helper.make_graph([node("Mul", "x two", "a")], "yes", [], [floats("a", None)])
    no_yes = helper.make_graph([node("Neg", "x", "c")], "no_yes", [], [floats("c", None)])
    no_no = helper.make_graph([node("Abs", "x", "d")], "no_no", [], [floats("d", None)])
    no = helper.make_graph([node("Not", "flag", "f"), node("If", "f", "b", then_branch=no_yes, else_branch=no_no)],
                           "no", [], [floats("b", None)])
    scalar = {name: helper.make_tensor_value_info(name, type_, []) for name, type_ in (
        ("i", TensorProto.INT64), ("go", TensorProto.BOOL), ("go_on", TensorProto.BOOL))}
    body = helper.make_graph([
        node("Add", "carried chosen", "carried_next"), node("Identity", "go", "go_on"),
        node("ReduceSum", "carried_next", "total", keepdims=0),
    ], "body", [scalar["i"], scalar["go"], floats("carried", [3])],
        [scalar["go_on"], floats("carried_next", [3]), floats("total", [])])
    cell = helper.make_graph([node("Add", "sum item", "sum_next"), node("Exp", "sum_next", "e")], "cell",
                             [floats("sum", []), floats("item", [])], [floats("sum_next", []), floats("e", [])])
    save("control", [
        node("ReduceSum", "x", "s", keepdims=0),
        node("Greater", "s zero", "flag"),
        node("If", "flag", "chosen", then_branch=yes, else_branch=no),
        node("Loop", "trips  x", "last totals", body=body),
        node("Scan", "zero totals", "sum y", body=cell, num_scan_inputs=1),
    ], [floats("x", [3])], [floats("y", [4]), floats("last", [3])],
        [const("zero", np.float32(0)), const("two", np.float32(2)), const("trips", np.int64(4))])


def attention():
    """What a transformer's layer is made of."""
    save("attention", [
        node("Gather", "table ids", "e", axis=0),
        node("MatMul", "e wq", "q"), node("MatMul", "e wk", "k"), node("MatMul", "e wv", "v"),
        node("Reshape", "q heads", "q1"), node("Transpose", "q1", "q2", perm=[0, 2, 1, 3]),
        node("Reshape", "k heads", "k1"), node("Transpose", "k1", "k2", perm=[0, 2, 3, 1]),
        node("Reshape", "v heads", "v1"), node("Transpose", "v1", "v2", perm=[0, 2, 1, 3]),
        node("MatMul", "q2 k2", "s"), node("Mul", "s scale", "s1"), node("Softmax", "s1", "p", axis=-1),
        node("MatMul", "p v2", "o"), node("Transpose", "o", "o1", perm=[0, 2, 1, 3]),
        node("Reshape", "o1 joined", "o2"), node("Add", "o2 e", "r"),
        node("Pow", "r two", "r2"), node("ReduceMean", "r2", "m", axes=[-1]), node("Sqrt", "m", "m1"),
        node("Div", "r m1", "n"), node("Erf", "n", "f"), node("Tanh", "f", "y"),
        node("ArgMax", "y", "best", axis=-1), node("CumSum", "best last", "z"),
    ], [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "L"])],
        [floats("y", [1, "L", 4]), helper.make_tensor_value_info("z", TensorProto.INT64, [1, "L", 1])], [
        weights("table", 7, 4), weights("wq", 4, 4), weights("wk", 4, 4), weights("wv", 4, 4),
        ints("heads", 1, -1, 2, 2), ints("joined", 1, -1, 4), const("scale", np.float32(0.7)),
        const("two", np.float32(2)), const("last", np.int64(1))])


def cache():
    """Keys and values of the past, and new ones behind them."""
    heads = [1, 2, "n", 4]
    save("cache", [
        node("Concat", "past_k k", "present_k", axis=2), node("Concat", "past_v v", "present_v", axis=2),
        node("Transpose", "present_k", "t", perm=[0, 1, 3, 2]), node("MatMul", "q t", "s"),
        node("Softmax", "s", "p", axis=-1), node("MatMul", "p present_v", "y"),
    ], [*(floats(name, heads) for name in "qkv"), *(floats(name, [1, 2, "past", 4]) for name in ("past_k", "past_v"))],
        [floats("y", heads), *(floats(name, [1, 2, "all", 4]) for name in ("present_k", "present_v"))], [])


def lengths():
    """How many elements come out is a number computed on the way."""
    save("lengths", [
        node("Abs", "x", "d"), node("Ceil", "d", "c"), node("Cast", "c", "each", to=TensorProto.INT64),
        node("ReduceSum", "each", "n", keepdims=0), node("Range", "zero n one", "r"),
        node("Cast", "r", "f", to=TensorProto.FLOAT), node("Sin", "f", "y"),
    ], [floats("x", ["N"])], [floats("y", ["M"])], [const("zero", np.int64(0)), const("one", np.int64(1))])


def tiles():
    """A residual block and a convolution along lines that Winograd's transform is worth."""
    pixels = [1, 16, "h", 13]
    save("tiles", [node("Conv", "x w b", "a", pads=[1, 1, 1, 1]), node("Add", "a x", "r"), node("Relu", "r", "l"),
                   node("Conv", "l v", "y", pads=[0, 2, 0, 3])],
         [floats("x", pixels)], [floats("y", pixels)],
         [weights("w", 16, 16, 3, 3), weights("b", 16), weights("v", 16, 16, 1, 6)])


def value(name, dtype, dims):
    return helper.make_tensor_value_info(name, dtype, dims)


def branches(source, dims):
    """What an If takes: a value as double, or its negative."""
    double = TensorProto.DOUBLE
    return {"then_branch": helper.make_graph([node("Cast", source, "t", to=double)], "then", [], [value("t", double, dims)]),
            "else_branch": helper.make_graph([node("Neg", source, "less"), node("Cast", "less", "e", to=double)], "else", [],
                                             [value("e", double, dims)])}


def scan_turns():
    """More turns than elements of a slice can be multiplied with, over an input without elements."""
    body = helper.make_graph([node("Identity", "w", "y")], "body", [value("b", TensorProto.BOOL, [0])],
                             [value("y", TensorProto.DOUBLE, [24])])
    save("scan_turns", [node("Scan", "bs", "ys", body=body, num_scan_inputs=1)],
         [value("bs", TensorProto.BOOL, ["turns", 0]), value("w", TensorProto.DOUBLE, [24])],
         [value("ys", TensorProto.DOUBLE, ["turns", 24])], [])


def loop_branches():
    """A stacked output that an If computes: one branch in the first turn, the other from then on."""
    body = helper.make_graph([node("Equal", "i zero", "first"), node("If", "first", "y", **branches("x", [4096])),
                              node("Identity", "c", "go")], "body",
                             [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, [])],
                             [value("go", TensorProto.BOOL, []), value("y", TensorProto.DOUBLE, [4096])])
    save("loop_branches", [node("Loop", "n yes", "ys", body=body), node("Concat", "ys ys", "zs", axis=1)],
         [value("n", TensorProto.INT64, []), floats("x", [4096])], [value("zs", TensorProto.DOUBLE, ["turns", 8192])],
         [const("zero", np.int64(0)), const("yes", np.array(True))])


def scan_branches():
    """The same in a Scan whose slices choose."""
    body = helper.make_graph([node("If", "b", "y", **branches("x", [4096]))], "body",
                             [value("b", TensorProto.BOOL, [])], [value("y", TensorProto.DOUBLE, [4096])])
    save("scan_branches", [node("Scan", "bs", "ys", body=body, num_scan_inputs=1), node("Concat", "ys ys", "zs", axis=1)],
         [value("bs", TensorProto.BOOL, ["turns"]), floats("x", [4096])], [value("zs", TensorProto.DOUBLE, ["turns", 8192])],
         [])


def state_type():
    """A state that is cast from an input."""
    save("state_type", [node("Cast", "x", "next", to=TensorProto.DOUBLE), node("Concat", "state state", "y", axis=1)],
         [floats("x", [1, 4096]), value("state", TensorProto.DOUBLE, [1, 4096])],
         [value("y", TensorProto.DOUBLE, [1, 8192]), value("next", TensorProto.DOUBLE, [1, 4096])], [])


def hooks():
    """Operators of the host's around products that threads share, and a state: for tests of what happens when."""
    inputs = [floats("x", [96, 96]), floats("state", [96, 96])]
    nodes = [node("EyeLike", "x", "w", k=1),
             helper.make_node("Hook", ["x"], ["a"], name="first", domain="host"), node("MatMul", "a w", "b"),
             helper.make_node("Hook", ["b"], ["c"], name="second", domain="host"), node("Add", "state w", "next"),
             node("MatMul", "c next", "d"), helper.make_node("Hook", ["d"], ["y"], name="third", domain="host")]
    outputs = [floats("y", [96, 96]), floats("next", [96, 96])]
    graph = helper.make_graph(nodes, "hooks", inputs, outputs)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("host", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), FOLDER.parent / "hooks.onnx")


FOLDER.mkdir(exist_ok=True)
for make in (image, sequence, shapes, control, attention, cache, lengths, tiles, scan_turns, loop_branches, scan_branches,
             state_type, hooks):
    make()
