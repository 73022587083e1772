"""The grid of bench-ops: models of one operator each, of every kind of path that its shape, type and attributes take.

rows() gives them all. A row is made only when it is measured; its numbers come from a seed that its name gives."""

import math
import zlib

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, F16, F64 = "float32", "float16", "float64"
I8, U8, I32, I64, BOOL = "int8", "uint8", "int32", "int64", "bool"
TYPES = {name: helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in
         (F32, F16, F64, I8, U8, "int16", "uint16", I32, I64, "uint32", "uint64", BOOL)} | {"bfloat16": TensorProto.BFLOAT16}
MS = "com.microsoft"
OPSET, MICROSOFT, IR = 23, 1, 10


class Input:
    """What an operand is filled with: numbers of `low` to `high`, or these values; constants are initializers."""

    def __init__(self, shape, dtype=F32, low=None, high=None, value=None, constant=False):
        self.shape, self.dtype, self.value, self.constant = list(shape), dtype, value, constant
        self.low, self.high = (low, high) if low is not None else usual_range(dtype)

    def make(self, rng):
        if self.value is not None:
            return np.asarray(self.value)
        if self.dtype == BOOL:
            return rng.random(self.shape) < 0.5
        if self.dtype == "bfloat16":
            return rng.uniform(self.low, self.high, self.shape).astype(ml_dtypes.bfloat16)
        dtype = np.dtype(self.dtype)
        if dtype.kind in "iu":
            bounds = np.iinfo(dtype)
            low, high = max(int(self.low), bounds.min), min(int(self.high), bounds.max)
            return rng.integers(low, high, self.shape, endpoint=True).astype(dtype)
        return rng.uniform(self.low, self.high, self.shape).astype(dtype)


def usual_range(dtype):
    return (-1, 1) if "float" in dtype else (-128, 255) if dtype in (I8, U8) else (-100, 100)


def const(*args, **kinds):
    return Input(*args, constant=True, **kinds)


def fixed(value, dtype=I64):
    """An initializer of these values."""
    return Input([], value=np.array(value, np.dtype(dtype)), constant=True)


class Row:
    def __init__(self, family, op, label, inputs, outputs, domain, attributes):
        self.family, self.op, self.inputs, self.outputs = family, op, inputs, outputs
        self.domain, self.attributes = domain, attributes
        self.name = f"{op} {label}"

    def tolerance(self):
        """Of the outputs' largest magnitude: halves round; a quantized output may fall to the other side."""
        kinds = {i.dtype for i in self.inputs if i is not None}
        if "Quantize" in self.op or "QLinear" in self.op or self.attributes.get("accuracy_level", 0) == 4:
            return 0.02
        return 0.005 if F16 in kinds else 1e-4

    def make(self):
        """The model, and what its inputs are given."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        names = ["" if given is None else f"i{k}" for k, given in enumerate(self.inputs)]
        values = {n: (g, g.make(rng)) for n, g in zip(names, self.inputs) if g is not None}
        feeds = {n: v for n, (g, v) in values.items() if not g.constant}
        node = helper.make_node(self.op, names, [f"o{k}" for k in range(self.outputs)], domain=self.domain, **self.attributes)
        infos = [helper.make_tensor_value_info(n, element_type(v), v.shape) for n, v in feeds.items()]
        constants = [numpy_helper.from_array(v, n) for n, (g, v) in values.items() if g.constant]
        outputs = [helper.ValueInfoProto(name=o) for o in node.output]
        graph = helper.make_graph([node], "row", infos, outputs, constants)
        opsets = [helper.make_opsetid("", OPSET)] + [helper.make_opsetid(MS, MICROSOFT)] * (self.domain == MS)
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR), feeds


def element_type(value):
    return TYPES[str(value.dtype)]


class Grid:
    def __init__(self):
        self.rows = []

    def add(self, family, op, label, *inputs, outputs=1, domain="", **attributes):
        self.rows.append(Row(family, op, label, list(inputs), outputs, domain, attributes))


def text(shape):
    return "x".join(map(str, shape)) or "scalar"


# ---- elementwise ----

UNARY = ["Abs", "Neg", "Floor", "Ceil", "Round", "Sign", "Exp", "Sin", "Cos", "Tanh", "Sigmoid", "Erf", "Relu", "LeakyRelu",
         "Elu", "Selu", "Celu", "ThresholdedRelu", "HardSigmoid", "HardSwish", "Gelu", "Mish", "Softplus", "Softsign", "Atan",
         "Sinh", "Cosh", "Tan", "Asinh", "Shrink"]
POSITIVE = {"Sqrt": (0, 9), "Log": (0.01, 9), "Reciprocal": (0.1, 3), "Acosh": (1.1, 9)}
UNIT = ["Asin", "Acos", "Atanh"]
HALF_UNARY = ["Abs", "Neg", "Floor", "Exp", "Tanh", "Sigmoid", "Erf", "Relu", "LeakyRelu", "Gelu", "HardSwish", "Softplus"]
DOUBLE_UNARY = ["Abs", "Neg", "Floor", "Ceil", "Round", "Exp", "Tanh", "Sigmoid", "Relu", "Erf"]
SIZES = ([64], [31, 33], [100, 1000], [1000003])


def unary(g):
    for op in UNARY + list(POSITIVE) + UNIT:
        low, high = POSITIVE.get(op, (-0.9, 0.9) if op in UNIT else (-4, 4))
        for shape in SIZES:
            g.add("elementwise", op, f"float32 {text(shape)}", Input(shape, F32, low, high))
    for dtype, ops in ((F16, HALF_UNARY), (F64, DOUBLE_UNARY)):
        for op in ops:
            g.add("elementwise", op, f"{dtype} 100x1000", Input([100, 1000], dtype, -4, 4))
    for op in ("Abs", "Neg", "Sign"):
        for dtype in (I8, I32, I64):
            g.add("elementwise, integer", op, f"{dtype} 100x1000", Input([100, 1000], dtype))
    g.add("elementwise", "Not", "100x1000", Input([100, 1000], BOOL))
    g.add("elementwise", "IsNaN", "100x1000", Input([100, 1000]))
    g.add("elementwise", "IsInf", "100x1000", Input([100, 1000]))
    for dtype in (F32, F16, I8, U8, I32, I64):
        low, high = (np.array(v, dtype) for v in ((-1, 1) if dtype[0] == "f" else (2, 50)))
        g.add("elementwise", "Clip", f"{dtype} 100x1000", Input([100, 1000], dtype, -3, 3), fixed(low, dtype), fixed(high, dtype))


FORMS = {"same": ([64, 1001], [64, 1001]), "scalar": ([64, 1001], []), "row": ([64, 1001], [1001]),
         "column": ([64, 1001], [64, 1]), "channel": ([2, 32, 28, 28], [32, 1, 1]), "outer": ([300, 1], [1, 301]),
         "middle": ([8, 1, 65, 33], [8, 12, 1, 33]), "tiny": ([7], [7]), "large": ([1000, 1000], [1000, 1000])}
INTEGER_FORMS = ("same", "scalar", "row", "column")


def operands(op, dtype, a, b):
    divisor = {"low": 1, "high": 9} if op in ("Div", "Mod", "Pow") else {}
    first = {"low": 0.1, "high": 3} if op == "Pow" else {}
    return Input(a, dtype, **first), Input(b, dtype, **divisor)


def binary(g):
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu"):
        for form, (a, b) in FORMS.items():
            if op == "PRelu" and len(b) > len(a) or form in ("outer", "middle") and op == "PRelu":
                continue
            g.add("elementwise", op, f"float32 {form} {text(a)} {text(b)}", *operands(op, F32, a, b))
    for dtype, family in ((F16, "elementwise"), (F64, "elementwise"), (I8, "elementwise, integer"), (U8, "elementwise, integer"),
                          (I32, "elementwise, integer"), (I64, "elementwise, integer")):
        for op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
            for form in INTEGER_FORMS:
                a, b = FORMS[form]
                g.add(family, op, f"{dtype} {form}", *operands(op, dtype, a, b))
    for op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
        for dtype in (F32, F16, F64, I8, U8, I32, I64):
            for form in ("same", "scalar") + (("row", "outer") if dtype == F32 else ()):
                g.add("compare and select", op, f"{dtype} {form}", *operands(op, dtype, *FORMS[form]))
    for op in ("And", "Or", "Xor"):
        for form in ("same", "row"):
            g.add("compare and select", op, form, *operands(op, BOOL, *FORMS[form]))
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        for dtype in (U8, I32, I64):
            g.add("elementwise, integer", op, dtype, *operands(op, dtype, *FORMS["same"]))
    for dtype in (U8, "uint32", "uint64"):
        g.add("elementwise, integer", "BitShift", dtype, Input([64, 1001], dtype), Input([64, 1001], dtype, 0, 3), direction="LEFT")
    for dtype in (I32, I64):
        g.add("elementwise, integer", "Mod", dtype, *operands("Mod", dtype, *FORMS["same"]))
    for dtype in (F32, F16, F64, U8, I32, I64):
        for form in ("same", "scalar", "row", "outer"):
            a, b = FORMS[form]
            g.add("compare and select", "Where", f"{dtype} {form}", Input(a, BOOL), Input(a, dtype), Input(b, dtype))
    for op in ("Sum", "Max", "Min", "Mean"):
        g.add("elementwise", op, "of 4, float32", *(Input([64, 1001]) for _ in range(4)))


def casts(g):
    kinds = [F32, F16, F64, I8, U8, "int16", "uint16", I32, I64, "uint32", "uint64", BOOL, "bfloat16"]
    for a in kinds:
        for b in kinds:
            if a != b:
                g.add("cast", "Cast", f"{a} to {b}", Input([100, 1000], a, 0, 100), to=TYPES[b])
    for a, b in ((F32, I64), (F32, F16), (I64, F32), (I64, I32), (F16, F32)):
        for n in (50, 2000000):
            g.add("cast", "Cast", f"{a} to {b}, {n}", Input([n], a, 0, 100), to=TYPES[b])


# ---- rows ----

REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
              "ReduceLogSumExp", "ReduceSumSquare"]
REDUCED = {"last axis": ([128, 768], [1]), "short last axis": ([5000, 12], [1]), "first axis": ([128, 768], [0]),
           "middle axis": ([8, 64, 100], [1]), "plane": ([2, 96, 28, 28], [2, 3]), "channels": ([2, 96, 28, 28], [1]),
           "two apart": ([16, 32, 24, 20], [0, 2]), "all": ([128, 768], None), "tiny": ([1, 10], [1])}


def reduce(g, op, dtype, how, label):
    shape, axes = REDUCED[how]
    inputs = [Input(shape, dtype, 0.1, 1.5 if dtype[0] == "f" else 40)]
    if axes is not None:
        inputs.append(fixed(axes))
    g.add("reduce", op, f"{dtype} {label}", *inputs)


def reductions(g):
    for op in REDUCTIONS:
        for how in REDUCED:
            reduce(g, op, F32, how, how)
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"):
        for dtype in (F16, F64, I32, I64) + ((I8, U8) if op in ("ReduceMax", "ReduceMin") else ()):
            for how in ("last axis", "first axis", "plane"):
                reduce(g, op, dtype, how, how)
    for op in ("ArgMax", "ArgMin"):
        for label, shape, axis in (("last axis", [128, 1000], 1), ("first axis", [128, 1000], 0), ("classes", [1, 21, 64, 64], 1),
                                   ("one row", [1, 32000], 1), ("short rows", [4000, 10], 1)):
            for dtype in (F32,) if label == "one row" else (F32, F16, F64, I8, U8, I32):
                for last in (0, 1) if dtype == F32 else (0,):
                    g.add("arg, cumulative, sort", op, f"{dtype} {label}{' last' * last}", Input(shape, dtype, -100, 100),
                          axis=axis, select_last_index=last)
    for op in ("CumSum",):
        for dtype in (F32, F64, I32, I64):
            for axis, shape in ((0, [100, 768]), (1, [100, 768]), (1, [8, 64, 100])):
                for reverse in (0, 1):
                    g.add("arg, cumulative, sort", op, f"{dtype} {text(shape)} axis {axis}{' reverse' * reverse}",
                          Input(shape, dtype), fixed(axis), reverse=reverse)
    for k, shape, axis in ((1, [64, 1000], 1), (5, [64, 1000], 1), (5, [1, 32000], 1), (300, [1, 8400], 1), (100, [1, 20000], 1),
                           (1000, [1, 100000], 1), (10, [100, 64], 0), (64, [64, 64], 1)):
        for dtype in (F32, F64, I32, I64) if k in (5, 10) else (F32,):
            g.add("arg, cumulative, sort", "TopK", f"{dtype} {k} of {text(shape)} axis {axis}",
                  Input(shape, dtype, -1000, 1000), fixed([k]), outputs=2, axis=axis)
    g.add("arg, cumulative, sort", "TopK", "float32 smallest 20 of 64x1000", Input([64, 1000]), fixed([20]), outputs=2, largest=0)


def softmaxes(g):
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for shape, axis in (([1, 10], 1), ([1, 1000], 1), ([128, 128], 1), ([12, 128, 128], 2), ([64, 4096], 1), ([5000, 7], 1),
                            ([2, 21, 64, 64], 1), ([64, 100], 0), ([8, 400, 4, 9], 1)):
            g.add("softmax", op, f"float32 {text(shape)} axis {axis}", Input(shape, F32, -5, 5), axis=axis)
        for dtype in (F16, F64):
            for axis in (2, 1):
                g.add("softmax", op, f"{dtype} 12x128x128 axis {axis}", Input([12, 128, 128], dtype, -5, 5), axis=axis)


def norms(g):
    for shape in ([1, 64], [128, 384], [128, 768], [512, 100], [4, 1000, 80]):
        for dtype in (F32, F16) if shape == [128, 768] else (F32,):
            n = shape[-1:]
            g.add("norm", "LayerNormalization", f"{dtype} {text(shape)}", Input(shape, dtype), const(n, dtype), const(n, dtype))
            g.add("norm", "RMSNormalization", f"{dtype} {text(shape)}", Input(shape, dtype), const(n, dtype))
            if dtype == F32:
                g.add("norm", "SkipLayerNormalization", text(shape), *(Input(shape) for _ in range(2)), const(n), const(n), const(n),
                      domain=MS)
    g.add("norm", "LayerNormalization", "two axes 2x64x7x7", Input([2, 64, 7, 7]), const([7, 7]), const([7, 7]), axis=2)
    for shape in ([1, 1, 16384], [1, 3, 224, 224], [1, 64, 56, 56], [2, 256, 14, 14], [1, 512, 100], [1, 16, 8, 16, 16]):
        c = [shape[1]]
        for op, more in (("InstanceNormalization", {}), ("GroupNormalization", {"num_groups": math.gcd(c[0], 32)})):
            g.add("norm", op, f"float32 {text(shape)}", Input(shape), const(c), const(c), **more)
        g.add("norm", "BatchNormalization", f"float32 {text(shape)}", Input(shape), const(c), const(c), const(c), const(c, F32, 0.5, 2))
    for dtype in (F16, F64):
        shape = [1, 64, 56, 56]
        g.add("norm", "InstanceNormalization", f"{dtype} {text(shape)}", Input(shape, dtype), const([64], dtype), const([64], dtype))
    for p in (1, 2):
        for axis in (1, -1):
            g.add("norm", "LpNormalization", f"float32 p {p} axis {axis}", Input([64, 128, 50]), axis=axis, p=p)
    for size in (3, 5):
        g.add("norm", "LRN", f"float32 size {size}", Input([1, 64, 55, 55]), size=size)
    g.add("norm", "MeanVarianceNormalization", "float32 2x64x28x28", Input([2, 64, 28, 28]))


# ---- windows ----

def pools(g):
    for op in ("MaxPool", "AveragePool", "LpPool"):
        for shape, kernel, stride, pad, label in (
                ([1, 64, 56, 56], 2, 2, 0, ""), ([1, 64, 56, 56], 3, 2, 1, ""), ([1, 64, 56, 56], 3, 1, 1, ""),
                ([1, 3, 224, 224], 3, 2, 1, ""), ([1, 256, 13, 13], 5, 1, 2, ""), ([4, 32, 35, 35], 3, 3, 0, ""),
                ([1, 128, 400], 3, 2, 1, ""), ([1, 128, 400], 4, 4, 0, ""), ([1, 16, 16, 28, 28], 2, 2, 0, ""),
                ([1, 512, 7, 7], 7, 1, 0, "")):
            rank = len(shape) - 2
            g.add("pool", op, f"float32 {text(shape)} kernel {kernel} stride {stride}", Input(shape), kernel_shape=[kernel] * rank,
                  strides=[stride] * rank, pads=[pad] * 2 * rank)
    for dtype in (F64, I8, U8):
        g.add("pool", "MaxPool", f"{dtype} 3/2", Input([1, 64, 56, 56], dtype), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for dtype in (F16,):
        for op in ("MaxPool", "AveragePool"):
            g.add("pool", op, f"{dtype} 3/2", Input([1, 64, 56, 56], dtype), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    g.add("pool", "MaxPool", "float32 with indices", Input([1, 64, 56, 56]), outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    g.add("pool", "MaxPool", "float32 dilated", Input([1, 64, 56, 56]), kernel_shape=[3, 3], dilations=[2, 2], pads=[2] * 4)
    g.add("pool", "MaxPool", "float32 ceil", Input([1, 64, 55, 55]), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    g.add("pool", "AveragePool", "float32 counts padding", Input([1, 64, 56, 56]), kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        for shape in ([1, 512, 7, 7], [1, 1280, 7, 7], [1, 64, 112, 112], [8, 128, 400]):
            g.add("pool", op, f"float32 {text(shape)}", Input(shape))


def resizes(g):
    for shape, scale in (([1, 32, 40, 40], 2.0), ([1, 3, 224, 224], 0.5), ([1, 256, 20, 20], 2.0), ([1, 3, 100, 130], 2.3)):
        for mode, more in (("nearest", {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
                           ("linear", {"coordinate_transformation_mode": "half_pixel"}),
                           ("linear", {"coordinate_transformation_mode": "align_corners"}), ("cubic", {})):
            label = f"float32 {text(shape)} by {scale} {mode} {more.get('coordinate_transformation_mode', '')}"
            g.add("image", "Resize", label, Input(shape), None, fixed([1, 1, scale, scale], F32), mode=mode, **more)
    g.add("image", "Resize", "uint8 1x3x224x224 by 2 nearest", Input([1, 3, 224, 224], U8), None, fixed([1, 1, 2, 2], F32),
          mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border"):
            g.add("image", "GridSample", f"float32 {mode} {padding}", Input([1, 32, 64, 64]), Input([1, 64, 64, 2]), mode=mode,
                  padding_mode=padding)
    boxes = np.stack([np.zeros(100), np.zeros(100), np.full(100, 30.5), np.full(100, 25.0)], 1).astype(np.float32)
    for mode in ("avg", "max"):
        g.add("image", "RoiAlign", f"float32 {mode}", Input([1, 64, 50, 50]), Input([], value=boxes), fixed(np.zeros(100), I64),
              mode=mode, output_height=7, output_width=7, sampling_ratio=2)
    g.add("image", "AffineGrid", "float32 64x64", Input([1, 2, 3]), fixed([1, 3, 64, 64]))
    for block in (2, 4):
        g.add("image", "DepthToSpace", f"float32 block {block}", Input([1, 64, 40, 40]), blocksize=block, mode="CRD")
        g.add("image", "DepthToSpace", f"float32 block {block} DCR", Input([1, 64, 40, 40]), blocksize=block)
        g.add("image", "SpaceToDepth", f"float32 block {block}", Input([1, 16, 80, 80]), blocksize=block)
    g.add("image", "Col2Im", "float32", Input([1, 32 * 9, 30 * 30]), fixed([32, 32]), fixed([3, 3]))
    corners = np.random.default_rng(1).uniform(0, 300, (1, 1000, 4)).astype(np.float32)
    g.add("image", "NonMaxSuppression", "1000 boxes", Input([], value=corners), Input([1, 4, 1000], F32, 0, 1), fixed(50),
          fixed([0.5], F32), fixed([0.3], F32), center_point_box=1)


# ---- convolutions ----

# label: images, weights, and attributes
CONVOLUTIONS = {
    "1x1": ([1, 64, 56, 56], [128, 64, 1, 1], {}), "1x1 narrow": ([1, 256, 14, 14], [16, 256, 1, 1], {}),
    "1x1 of batch 8": ([8, 128, 14, 14], [128, 128, 1, 1], {}), "1x1/2": ([1, 128, 28, 28], [256, 128, 1, 1], {"strides": [2, 2]}),
    "1x1 odd": ([1, 33, 17, 19], [45, 33, 1, 1], {}),
    "3x3": ([1, 64, 56, 56], [64, 64, 3, 3], {"pads": [1] * 4}), "3x3 deep": ([1, 512, 7, 7], [512, 512, 3, 3], {"pads": [1] * 4}),
    "3x3 tiny": ([1, 8, 9, 9], [8, 8, 3, 3], {}), "3x3/2": ([1, 64, 56, 56], [128, 64, 3, 3], {"strides": [2, 2], "pads": [1] * 4}),
    "3x3/2 image": ([1, 3, 224, 224], [32, 3, 3, 3], {"strides": [2, 2], "pads": [1] * 4}),
    "7x7/2 image": ([1, 3, 224, 224], [64, 3, 7, 7], {"strides": [2, 2], "pads": [3] * 4}),
    "4x4/4 patches": ([1, 3, 224, 224], [96, 3, 4, 4], {"strides": [4, 4]}),
    "16x16/16 patches": ([1, 3, 224, 224], [192, 3, 16, 16], {"strides": [16, 16]}),
    "3x3 gray": ([1, 1, 64, 64], [16, 1, 3, 3], {"pads": [1] * 4}), "5x5": ([1, 32, 28, 28], [64, 32, 5, 5], {"pads": [2] * 4}),
    "3x3 dilated": ([1, 64, 32, 32], [64, 64, 3, 3], {"pads": [2] * 4, "dilations": [2, 2]}),
    "1x9": ([1, 32, 40, 40], [32, 32, 1, 9], {"pads": [0, 4, 0, 4]}), "9x1": ([1, 32, 40, 40], [32, 32, 9, 1], {"pads": [4, 0, 4, 0]}),
    "3x3 groups of 4": ([1, 64, 28, 28], [64, 16, 3, 3], {"pads": [1] * 4, "group": 4}),
    "3x3 in 32 groups": ([1, 128, 28, 28], [128, 4, 3, 3], {"pads": [1] * 4, "group": 32}),
    "1x1 in 4 groups": ([1, 128, 28, 28], [128, 32, 1, 1], {"group": 4}),
    "depthwise 3x3": ([1, 96, 56, 56], [96, 1, 3, 3], {"pads": [1] * 4, "group": 96}),
    "depthwise 3x3/2": ([1, 96, 56, 56], [96, 1, 3, 3], {"pads": [1] * 4, "group": 96, "strides": [2, 2]}),
    "depthwise 5x5": ([1, 96, 28, 28], [96, 1, 5, 5], {"pads": [2] * 4, "group": 96}),
    "depthwise 7x7": ([1, 96, 56, 56], [96, 1, 7, 7], {"pads": [3] * 4, "group": 96}),
    "depthwise 5x5 dilated": ([1, 96, 28, 28], [96, 1, 5, 5], {"pads": [4] * 4, "group": 96, "dilations": [2, 2]}),
    "depthwise of 2": ([1, 32, 28, 28], [64, 1, 3, 3], {"pads": [1] * 4, "group": 32}),
    "1-D 3": ([1, 64, 400], [64, 64, 3], {"pads": [1] * 2}), "1-D 7": ([1, 80, 500], [256, 80, 7], {"pads": [3] * 2}),
    "1-D 1": ([1, 192, 200], [384, 192, 1], {}), "1-D 10/5": ([1, 1, 16000], [128, 1, 10], {"strides": [5]}),
    "1-D dilated": ([1, 64, 400], [64, 64, 3], {"pads": [9] * 2, "dilations": [9]}),
    "1-D depthwise 31": ([1, 144, 300], [144, 1, 31], {"pads": [15] * 2, "group": 144}),
    "1-D depthwise 3": ([1, 256, 100], [256, 1, 3], {"pads": [1] * 2, "group": 256}),
    "3-D 3": ([1, 16, 8, 28, 28], [32, 16, 3, 3, 3], {"pads": [1] * 6}),
    "3-D 1x7x7 of one": ([1, 1, 8, 64, 64], [16, 1, 1, 7, 7], {"pads": [0, 3, 3, 0, 3, 3]}),
    "3-D 1": ([1, 32, 8, 14, 14], [64, 32, 1, 1, 1], {}),
    "3-D depthwise": ([1, 32, 8, 28, 28], [32, 1, 3, 3, 3], {"pads": [1] * 6, "group": 32}),
}
TRANSPOSED = {
    "2x2/2": ([1, 64, 28, 28], [64, 32, 2, 2], {"strides": [2, 2]}),
    "4x4/2": ([1, 64, 28, 28], [64, 32, 4, 4], {"strides": [2, 2], "pads": [1] * 4}),
    "3x3/2": ([1, 64, 28, 28], [64, 32, 3, 3], {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
    "3x3": ([1, 64, 28, 28], [64, 32, 3, 3], {"pads": [1] * 4}),
    "depthwise 3x3/2": ([1, 64, 28, 28], [64, 1, 3, 3], {"strides": [2, 2], "pads": [1] * 4, "group": 64}),
    "depthwise 1x3/1x2": ([1, 64, 50, 16], [64, 1, 1, 3], {"strides": [1, 2], "pads": [0, 1, 0, 1], "group": 64}),
    "in 8 groups": ([1, 64, 28, 28], [64, 4, 4, 4], {"strides": [2, 2], "pads": [1] * 4, "group": 8}),
    "1-D 16/8": ([1, 128, 100], [128, 64, 16], {"strides": [8], "pads": [4] * 2}),
    "1-D 4/2": ([1, 64, 400], [64, 32, 4], {"strides": [2], "pads": [1] * 2}),
    "3-D 2/2": ([1, 32, 4, 14, 14], [32, 16, 2, 2, 2], {"strides": [2, 2, 2]}),
}


def convolutions(g):
    for label, (x, w, attributes) in CONVOLUTIONS.items():
        for bias in (True, False):
            more = [const(w[:1])] if bias else []
            g.add("convolution", "Conv", f"float32 {label}{'' if bias else ' without bias'}", Input(x), const(w), *more, **attributes)
        g.add("convolution", "Conv", f"float16 {label}", Input(x, F16), const(w, F16), const(w[:1], F16), **attributes)
        if len(x) == 4:
            g.add("int8 convolution", "QLinearConv", f"uint8 {label}", Input(x, U8), fixed(0.02, F32), fixed(128, U8), const(w, I8),
                  const(w[:1], F32, 0.001, 0.002), fixed(np.zeros(w[0]), I8), fixed(0.05, F32), fixed(120, U8),
                  const(w[:1], I32, -500, 500), **attributes)
            if "group" not in attributes:
                g.add("int8 convolution", "ConvInteger", f"uint8 {label}", Input(x, U8), const(w, U8), fixed(120, U8), fixed(128, U8),
                      **attributes)
    for label in ("1x1", "3x3", "depthwise 3x3", "1-D 3"):
        x, w, attributes = CONVOLUTIONS[label]
        g.add("convolution", "Conv", f"float32 {label}, weights not constant", Input(x), Input(w), **attributes)
        g.add("convolution", "Conv", f"float64 {label}", Input(x, F64), const(w, F64), **attributes)
    for label, (x, w, attributes) in TRANSPOSED.items():
        g.add("transposed convolution", "ConvTranspose", f"float32 {label}", Input(x), const(w), **attributes)


# ---- products ----

PRODUCTS = [(1, 64, 64), (1, 1024, 1024), (1, 768, 3072), (4, 512, 512), (8, 1000, 1000), (16, 16, 16), (64, 512, 512),
            (100, 100, 100), (128, 768, 768), (128, 64, 128), (512, 512, 512), (1000, 16, 16), (1000, 3, 64), (33, 257, 65),
            (7, 4096, 12), (3, 10, 1)]
BATCHED = [([12, 128, 64], [12, 64, 128]), ([12, 128, 128], [12, 128, 64]), ([2, 8, 50, 32], [2, 8, 32, 50]), ([32, 1, 64], [32, 64, 1]),
           ([16, 4, 4], [16, 4, 4]), ([8, 1, 100], [8, 100, 100]), ([4, 60, 70], [70, 80]), ([100], [100, 50]), ([30, 100], [100])]


def products(g):
    for m, k, n in PRODUCTS:
        for constant in (True, False):
            b = const if constant else Input
            g.add("product", "MatMul", f"float32 {m}x{k}x{n}{'' if constant else ' not constant'}", Input([m, k]), b([k, n]))
        g.add("product", "MatMul", f"float16 {m}x{k}x{n}", Input([m, k], F16), const([k, n], F16))
        g.add("product", "Gemm", f"float32 {m}x{k}x{n} transposed", Input([m, k]), const([n, k]), const([n]), transB=1)
        for kind in (I8, U8):
            g.add("int8 product", "MatMulInteger", f"uint8 by {kind} {m}x{k}x{n}", Input([m, k], U8), const([k, n], kind), fixed(120, U8),
                  fixed(3, kind))
        g.add("int8 product", "QLinearMatMul", f"uint8 {m}x{k}x{n}", Input([m, k], U8), fixed(0.02, F32), fixed(128, U8), const([k, n], U8),
              fixed(0.01, F32), fixed(120, U8), fixed(0.05, F32), fixed(128, U8))
        g.add("int8 product", "DynamicQuantizeMatMul", f"{m}x{k}x{n}", Input([m, k]), const([k, n], I8), fixed(0.01, F32), domain=MS)
    for m, k, n in ((1, 512, 512), (64, 512, 512), (100, 100, 100), (33, 257, 65)):
        g.add("product", "MatMul", f"float64 {m}x{k}x{n}", Input([m, k], F64), Input([k, n], F64))
        for dtype in (I32, I64, "uint32"):
            g.add("product", "MatMul", f"{dtype} {m}x{k}x{n}", Input([m, k], dtype), Input([k, n], dtype))
        for ta, tb in ((1, 0), (1, 1), (0, 1)):
            a, b = ([k, m] if ta else [m, k]), ([n, k] if tb else [k, n])
            g.add("product", "Gemm", f"float32 {m}x{k}x{n} transA {ta} transB {tb} not constant", Input(a), Input(b), Input([m, n]),
                  transA=ta, transB=tb, alpha=0.5)
    for a, b in BATCHED:
        g.add("product", "MatMul", f"float32 {text(a)} {text(b)}", Input(a), Input(b))
    for equation, *shapes in (("bij,bjk->bik", [8, 60, 70], [8, 70, 50]), ("bhid,bhjd->bhij", [1, 8, 64, 32], [1, 8, 64, 32]),
                              ("ij,j->i", [300, 200], [200]), ("bc,bc->b", [64, 512], [64, 512]), ("ij->ji", [300, 200]),
                              ("bchw,hkc->bkhw", [1, 32, 16, 16], [16, 16, 32])):
        g.add("product", "Einsum", f"float32 {equation}", *map(Input, shapes), equation=equation)
    for m in (1, 8, 64):
        for k, n, block in ((1024, 1024, 32), (2048, 512, 128), (512, 2048, 64), (4096, 4096, 32)):
            if m * k > 64 * 2048:
                continue
            for zeros in (False, True):
                nbits(g, m, k, n, block, 4, zeros)
            nbits(g, m, k, n, block, 8, False)
    nbits(g, 1, 1024, 1024, 32, 4, False, accuracy_level=1)
    for m, k, n, block, zeros in ((1, 1024, 1024, 32, False), (1, 4096, 4096, 32, False), (1, 4096, 4096, 32, True),
                                  (1, 2048, 512, 128, True), (8, 1024, 1024, 32, False), (8, 4096, 4096, 32, True),
                                  (64, 1024, 1024, 32, False), (64, 512, 2048, 64, True)):
        nbits(g, m, k, n, block, 4, zeros, accuracy_level=4)


def nbits(g, m, k, n, block, bits, zeros, **more):
    blocks = k // block
    inputs = [Input([m, k]), const([n, blocks, block * bits // 8], U8), const([n * blocks], F32, 0.01, 0.02)]
    if zeros:
        inputs.append(const([n * ((blocks * bits + 7) // 8)], U8))
    label = f"{bits} bits {m}x{k}x{n} block {block}{' zero points' * zeros}"
    label += "".join(f" {key} {value}" for key, value in more.items())
    g.add("packed weights", "MatMulNBits", label, *inputs, domain=MS, K=k, N=n, bits=bits, block_size=block, **more)


def recurrent(g):
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for t, batch, i, h, direction in ((1, 1, 64, 64, "forward"), (50, 1, 80, 128, "forward"), (50, 1, 80, 128, "bidirectional"),
                                          (20, 8, 64, 256, "forward"), (100, 1, 16, 32, "reverse")):
            d = 1 + (direction == "bidirectional")
            more = {"linear_before_reset": 1} if op == "GRU" else {}
            spread = h**-0.5  # steps bring states nearer to each other: else every rounding grows from one to the next
            g.add("recurrent", op, f"{t} steps of {batch}x{i} to {h} {direction}", Input([t, batch, i]),
                  const([d, gates * h, i], F32, -0.3, 0.3), const([d, gates * h, h], F32, -spread, spread), const([d, 2 * gates * h]),
                  outputs=2, hidden_size=h, direction=direction, **more)


def attention(g):
    for q, kv, heads, kv_heads, size in ((128, 128, 12, 12, 64), (64, 64, 4, 4, 16), (1, 256, 8, 8, 64), (196, 196, 3, 3, 64),
                                         (256, 256, 8, 2, 32), (512, 512, 4, 4, 64), (49, 49, 6, 6, 32)):
        for causal in (0, 1) if q == kv else (0,):
            g.add("attention", "Attention", f"{q} of {kv}, {heads} heads ({kv_heads}) of {size}{' causal' * causal}",
                  Input([1, heads, q, size]), Input([1, kv_heads, kv, size]), Input([1, kv_heads, kv, size]), is_causal=causal)
    for heads, size in ((12, 64), (4, 32)):
        cos = const([1, 100, size // 2])
        g.add("attention", "RotaryEmbedding", f"100 of {heads} heads of {size}", Input([1, heads, 100, size]), cos, cos)
        g.add("attention", "RotaryEmbedding", f"100 of {heads} heads of {size} interleaved", Input([1, heads, 100, size]), cos, cos,
              interleaved=1)


# ---- quantization ----

def quantization(g):
    shape = [1, 64, 56, 56]
    for kind in (U8, I8):
        for label, n, axis in (("tensor", [], 1), ("axis 1", [64], 1), ("last axis", [56], 3)):
            scale, zero = const(n, F32, 0.05, 0.1), Input([], value=np.full(n, 3, kind), constant=True)
            g.add("quantize", "QuantizeLinear", f"{kind} {label}", Input(shape), scale, zero, axis=axis)
            g.add("quantize", "DequantizeLinear", f"{kind} {label}", Input(shape, kind), scale, zero, axis=axis)
    g.add("quantize", "DequantizeLinear", "int32 axis 1", Input(shape, I32), const([64], F32, 0.05, 0.1), axis=1)
    for size in ([1, 384], [128, 384], [1, 3, 224, 224]):
        g.add("quantize", "DynamicQuantizeLinear", text(size), Input(size), outputs=3)
    scale, zero = fixed(0.02, F32), fixed(128, U8)
    for op in ("QLinearAdd", "QLinearMul"):
        for b in (shape, [1, 64, 1, 1], []):
            g.add("quantize", op, f"uint8 {text(shape)} {text(b)}", Input(shape, U8), scale, zero, Input(b, U8), scale, zero,
                  fixed(0.05, F32), zero, domain=MS)
    g.add("quantize", "QLinearSigmoid", "uint8", Input(shape, U8), scale, zero, fixed(1 / 256, F32), fixed(0, U8), domain=MS)
    g.add("quantize", "QLinearLeakyRelu", "uint8", Input(shape, U8), scale, zero, scale, zero, domain=MS, alpha=0.1)
    g.add("quantize", "QLinearGlobalAveragePool", "uint8", Input([1, 512, 7, 7], U8), scale, zero, scale, zero, domain=MS)
    g.add("quantize", "QLinearAveragePool", "uint8 3x3/2", Input(shape, U8), scale, zero, scale, zero, domain=MS, kernel_shape=[3, 3],
          strides=[2, 2])
    g.add("quantize", "QLinearSoftmax", "uint8", Input([12, 128, 128], U8), scale, zero, fixed(1 / 256, F32), fixed(0, U8), domain=MS,
          axis=-1, opset=13)
    g.add("quantize", "QLinearConcat", "uint8", scale, zero, Input(shape, U8), scale, zero, Input(shape, U8), fixed(0.03, F32), zero,
          domain=MS, axis=1)


# ---- data ----

ANY = (F32, F16, I8, I32, I64, BOOL)


def moves(g):
    for shape, perm in (([300, 400], [1, 0]), ([1, 64, 56, 56], [0, 2, 3, 1]), ([1, 56, 56, 64], [0, 3, 1, 2]),
                        ([1, 3, 224, 224], [0, 2, 3, 1]), ([1, 224, 224, 3], [0, 3, 1, 2]), ([1, 128, 12, 64], [0, 2, 1, 3]),
                        ([1, 12, 128, 64], [0, 1, 3, 2]), ([20, 30, 40, 10], [3, 2, 1, 0]), ([50, 4, 200], [1, 0, 2]),
                        ([2, 8, 4, 7, 4, 7], [0, 2, 4, 3, 5, 1]), ([9, 7], [1, 0])):
        for dtype in (F32, F16, U8, I64) if len(shape) in (2, 4) else (F32,):
            g.add("move", "Transpose", f"{dtype} {text(shape)} to {''.join(map(str, perm))}", Input(shape, dtype), perm=perm)
    for dtype in ANY:
        for label, shapes, axis in (("axis 1", [[1, 32, 40, 40], [1, 64, 40, 40]], 1), ("last axis", [[500, 30], [500, 34]], 1),
                                    ("narrow last axis", [[5000, 1], [5000, 2]], 1), ("axis 0", [[50, 300], [70, 300]], 0),
                                    ("8 parts", [[100, 16]] * 8, 1)):
            g.add("move", "Concat", f"{dtype} {label}", *(Input(s, dtype) for s in shapes), axis=axis)
    for dtype in (F32, U8, I64):
        for axis in (0, 1, 2):
            g.add("move", "Split", f"{dtype} 3 parts axis {axis}", Input([30, 60, 90], dtype), outputs=3, axis=axis, num_outputs=3)
        for label, start, end, axes, step in (("rows", [5], [90], [0], [1]), ("columns", [3], [200], [1], [1]),
                                              ("every second", [0], [300], [1], [2]),
                                              ("reversed", [-1], [-400], [1], [-1]), ("both", [2, 2], [90, 250], [0, 1], [1, 1])):
            g.add("move", "Slice", f"{dtype} {label}", Input([100, 300], dtype), fixed(start), fixed(end), fixed(axes), fixed(step))
        for mode in ("constant", "reflect", "edge", "wrap"):
            for shape, pads in (([1, 32, 40, 40], [0, 0, 1, 1, 0, 0, 1, 1]), ([1, 64, 500], [0, 0, 3, 0, 0, 3]),
                                ([200, 300], [0, 5, 0, 7])):
                g.add("move", "Pad", f"{dtype} {mode} {text(shape)}", Input(shape, dtype), fixed(pads), mode=mode)
        for shape, repeats in (([100, 300], [2, 3]), ([1, 64, 1], [1, 1, 100]), ([1, 1000], [50, 1])):
            g.add("move", "Tile", f"{dtype} {text(shape)} by {text(repeats)}", Input(shape, dtype), fixed(repeats))
        for shape, to in (([1, 300], [100, 300]), ([100, 1], [100, 300]), ([4, 1, 64], [4, 50, 64]), ([1], [100, 300])):
            g.add("move", "Expand", f"{dtype} {text(shape)} to {text(to)}", Input(shape, dtype), fixed(to))
        for upper in (0, 1):
            for k in (0, 3):
                g.add("move", "Trilu", f"{dtype} upper {upper} k {k}", Input([12, 128, 128], dtype), fixed(k), upper=upper)
        g.add("move", "ReverseSequence", dtype, Input([100, 8, 64], dtype), fixed([100, 90, 80, 70, 60, 50, 40, 30]), time_axis=0,
              batch_axis=1)


def picks(g):
    rng = np.random.default_rng(2)
    for dtype in (F32, F16, U8, I64):
        for label, shape, n, axis in (("rows", [30000, 384], 128, 0), ("one row", [30000, 384], 1, 0), ("columns", [300, 400], 100, 1),
                                      ("elements", [100000], 5000, 0), ("middle", [8, 100, 64], 50, 1)):
            indices = rng.integers(0, shape[axis], n)
            g.add("gather and scatter", "Gather", f"{dtype} {label}", Input(shape, dtype), Input([], value=indices), axis=axis)
        indices = rng.integers(0, 300, (200, 400))
        g.add("gather and scatter", "GatherElements", f"{dtype} axis 0", Input([300, 400], dtype), Input([], value=indices), axis=0)
        g.add("gather and scatter", "GatherElements", f"{dtype} axis 1", Input([200, 300], dtype), Input([], value=indices), axis=1)
        g.add("gather and scatter", "GatherND", f"{dtype}", Input([100, 50, 64], dtype), Input([], value=rng.integers(0, 50, (300, 2))))
    for dtype in (F32, I64):
        for reduction in ("none", "add", "max"):
            indices = rng.integers(0, 300, (100, 400))
            order = np.argsort(rng.random((300, 400)), 0)[:100]
            g.add("gather and scatter", "ScatterElements", f"{dtype} {reduction}", Input([300, 400], dtype),
                  Input([], value=order if reduction == "none" else indices), Input([100, 400], dtype), axis=0, reduction=reduction)
            g.add("gather and scatter", "ScatterND", f"{dtype} {reduction}", Input([300, 400], dtype),
                  Input([], value=rng.permutation(300)[:100, None]), Input([100, 400], dtype), reduction=reduction)
    mask = np.random.default_rng(3).random((100, 300)) < 0.3
    for dtype in (F32, I64, BOOL):
        g.add("gather and scatter", "NonZero", dtype, Input([], value=mask.astype(dtype)))
    g.add("gather and scatter", "Compress", "float32 rows", Input([300, 400]), Input([], value=mask[0]), axis=0)
    g.add("gather and scatter", "OneHot", "float32 1000 of 64", Input([], value=rng.integers(0, 64, 1000)), fixed(64), fixed([0, 1], F32))
    g.add("gather and scatter", "Unique", "float32 5000", Input([5000], F32), outputs=1, sorted=1)
    g.add("gather and scatter", "Range", "int64 to 10000", fixed(0), Input([], value=np.array(10000)), fixed(1))
    g.add("gather and scatter", "ConstantOfShape", "float32 300x400", Input([], value=np.array([300, 400])))
    g.add("gather and scatter", "EyeLike", "float32 200x200", Input([200, 200]))
    for n in (256, 400, 512):
        g.add("signal", "DFT", f"float32 {n}", Input([1, 100, n, 1]), None, fixed(2), onesided=1)
    g.add("signal", "DFT", "float32 512 inverse", Input([1, 100, 512, 2]), None, fixed(2), inverse=1)
    g.add("signal", "STFT", "float32 512", Input([1, 16000, 1]), fixed(160), const([512]), fixed(512))


PARTS = (unary, binary, casts, reductions, softmaxes, norms, pools, resizes, convolutions, products, recurrent, attention, quantization,
         moves, picks)


def rows():
    g = Grid()
    for part in PARTS:
        part(g)
    names = [row.name for row in g.rows]
    assert len(set(names)) == len(names), sorted({n for n in names if names.count(n) > 1})
    return g.rows
