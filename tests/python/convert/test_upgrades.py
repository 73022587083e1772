"""Older forms of operators: each is converted, run and compared with onnxruntime, or with numpy where the form is
older than what onnxruntime runs (opset 7). Ranks and extents are those where the older meaning differs."""

import numpy as np
import onnx.parser
import pytest
from harness import LINNET, check_against_reference, linnet, write_case
from onnx import TensorProto, helper, numpy_helper

X23 = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)
X234 = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
X2345 = np.sin(np.arange(120, dtype=np.float32)).reshape(2, 3, 4, 5)
TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(bool): TensorProto.BOOL,
    np.dtype(np.uint32): TensorProto.UINT32,
}


def model_of(op, opset, inputs, constants, attributes, outputs, out_types=None):
    """One node; dims of inputs are named so that nothing but ranks is known."""
    graph_inputs = [
        helper.make_tensor_value_info(n, TYPES[v.dtype], [f"{n}{i}" for i in range(v.ndim)]) for n, v in inputs.items()
    ]
    order = attributes.pop("inputs", [*inputs, *constants])
    out_types = out_types or [TensorProto.FLOAT] * len(outputs)
    graph = helper.make_graph(
        [helper.make_node(op, order, outputs, name="node", **attributes)],
        "older",
        graph_inputs,
        [helper.make_tensor_value_info(o, t, None) for o, t in zip(outputs, out_types)],
        [numpy_helper.from_array(v, n) for n, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)


def case(op, opset, inputs, attributes=None, constants=None, outputs=("y",), out_types=None, name=""):
    label = f"{op}-{opset}" + (f"-{name}" if name else "")
    return pytest.param(op, opset, inputs, constants or {}, attributes or {}, outputs, out_types, id=label)


I64 = [TensorProto.INT64]
SINCE_7 = [
    *[
        case(op, opset, {"x": x}, {} if axis is None else {"axis": axis}, name=f"rank{x.ndim}-axis{axis}")
        for op in ("Softmax", "LogSoftmax", "Hardmax")
        for opset in (7, 11)
        for x, axis in ((X23, None), (X234, None), (X234, 0), (X2345, 2), (X2345, 3))
    ],
    case("Softmax", 11, {"x": X2345}, {"axis": -2}, name="negative"),
    case("Clip", 7, {"x": X23}, {"min": -1.0, "max": 1.5}),
    case("Clip", 7, {"x": X23}, {"max": 1.5}, name="max"),
    case("Clip", 10, {"x": X23}, {"min": -1.0}, name="min"),
    case("Clip", 7, {"x": X23}, name="none"),
    case("Slice", 9, {"x": X234}, {"starts": [0, 1], "ends": [1, 1000], "axes": [0, 2]}),
    case("Slice", 7, {"x": X234}, {"starts": [0, 1, -3], "ends": [2, 3, -1]}, name="all-axes"),
    case("Squeeze", 11, {"x": X23.reshape(2, 1, 3, 1)}, {"axes": [1, 3]}),
    case("Squeeze", 7, {"x": X23.reshape(2, 1, 3, 1)}, name="all"),
    case("Unsqueeze", 11, {"x": X23}, {"axes": [0, 3]}),
    case("Unsqueeze", 11, {"x": X23}, {"axes": [-1]}, name="negative"),
    *[
        case(op, opset, {"x": np.abs(X234) + 0.5}, attributes, name="-".join(attributes) or "all")
        for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2")
        + ("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
        for opset in (7, 12)
        for attributes in ({}, {"axes": [1]}, {"axes": [0, 2], "keepdims": 0})
    ],
    case("ReduceMax", 13, {"x": X234}, {"axes": [-1]}),
    case("Split", 7, {"x": X234}, {"axis": 2, "split": [1, 3]}, outputs=("a", "b")),
    case("Split", 11, {"x": X234}, {"axis": -1}, outputs=("a", "b"), name="even"),
    case("Split", 13, {"x": X234}, {"axis": 1}, outputs=("a", "b", "c"), name="even"),
    case("Pad", 7, {"x": X23}, {"pads": [1, 0, 0, 2], "value": 1.5}),
    case("Pad", 10, {"x": X234}, {"pads": [0, 1, 1, 0, 1, 2], "mode": "reflect"}, name="reflect"),
    case("Pad", 10, {"x": X234}, {"pads": [0, -1, 0, 0, 0, -1]}, name="crop"),
    case("TopK", 7, {"x": X234[:, ::-1].copy()}, {"k": 2, "axis": 1}, outputs=("v", "i"), out_types=[1, 7]),
    case("TopK", 10, {"x": X234}, {"axis": -1}, {"k": np.array([3])}, outputs=("v", "i"), out_types=[1, 7]),
    case("Upsample", 7, {"x": X2345}, {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "nearest"}),
    case("Upsample", 9, {"x": X2345}, {"mode": "linear"}, {"s": np.array([1, 1, 2, 2], np.float32)}),
    case("Resize", 10, {"x": X2345}, {"mode": "nearest"}, {"s": np.array([1, 1, 2, 2], np.float32)}),
    case("Resize", 10, {"x": X2345}, {"mode": "nearest"}, {"s": np.array([1, 1, 0.5, 0.6], np.float32)}, name="down"),
    case("Resize", 10, {"x": X2345}, {"mode": "nearest"}, {"s": np.array([1, 1, 1.7, 0.6], np.float32)}, name="both"),
    case("Resize", 10, {"x": X2345, "s": np.array([1, 1, 0.6, 0.6], np.float32)}, {"mode": "nearest"}, name="fed"),
    case("Resize", 10, {"x": X2345, "s": np.array([1, 1, 2.5, 0.7], np.float32)}, {"mode": "nearest"}, name="fed-both"),
    *[case("Resize", opset, {"x": X2345}, {"mode": "nearest", "coordinate_transformation_mode": "tf_half_pixel_for_nn",
                                           "nearest_mode": rounding, "inputs": ["x", "r", "s"]},
           {"r": np.zeros(0, np.float32), "s": np.array([1, 1, 0.6, 1.6], np.float32)}, name=f"tf-{rounding}")
      for opset in (11, 13) for rounding in ("round_prefer_floor", "floor")],
    case("Upsample", 9, {"x": X2345, "s": np.array([1, 1, 1.3, 2], np.float32)}, {"mode": "nearest"}, name="fed"),
    case("AveragePool", 19, {"x": np.sin(np.arange(4096, dtype=np.float32)).reshape(1, 1, 16, 16, 16)},
         {"kernel_shape": [5] * 3, "strides": [3] * 3, "dilations": [2] * 3, "count_include_pad": 1, "ceil_mode": 1}),
    case("AveragePool", 19, {"x": X2345}, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1,
                                           "count_include_pad": 1}, name="pads"),
    case("AveragePool", 10, {"x": X2345}, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}),
    case("Resize", 10, {"x": X2345}, {"mode": "linear"}, {"s": np.array([1, 1, 1.5, 0.5], np.float32)}, name="linear"),
    case("Dropout", 7, {"x": X23}, {"ratio": 0.3}),
    case("Dropout", 10, {"x": X23}, {"ratio": 0.3}),
    case("BatchNormalization", 7, {"x": X2345}, constants={k: np.float32([1, 2, 0.5]) for k in "sbmv"}),
    case("BatchNormalization", 9, {"x": X234}, {"epsilon": 0.1}, {k: np.float32([1, 2, 0.5]) for k in "sbmv"}),
    case("PRelu", 7, {"x": X234, "s": np.float32([[0.1], [0.2], [0.3]])}),
    case("Gemm", 7, {"a": X23, "b": X23.T.copy(), "c": np.float32([1, 2])}, {"alpha": 0.5, "beta": 2.0}),
    case("Gemm", 9, {"a": X23.T.copy(), "b": X23, "c": np.float32([[1], [2], [3]])}, {"transB": 0}),
    case("Cast", 7, {"x": X23}, {"to": TensorProto.INT64}, out_types=I64),
    case("ArgMax", 7, {"x": X234}, {"axis": 1}, out_types=I64),
    case("Scatter", 9, {"x": X23, "i": np.array([[1, 0, 1]]), "u": np.float32([[9, 8, 7]])}, {"axis": 0}),
    case("AveragePool", 7, {"x": X2345}, {"kernel_shape": [2, 2], "pads": [0, 1, 0, 1]}),
    case("MaxPool", 8, {"x": X2345}, {"kernel_shape": [3, 3], "strides": [2, 2]}),
    case("GridSample", 16, {"x": X2345, "g": np.sin(np.arange(16, dtype=np.float32)).reshape(2, 2, 2, 2)}),
    case("Flatten", 7, {"x": X234}, {"axis": 2}),
    case("Sum", 7, {"a": X23, "b": X23}),
    case("Max", 7, {"a": X23, "b": -X23}),
    case("Mean", 8, {"a": X23, "b": X23[:1]}),
    *[case(op, opset, {"x": np.abs(X234) + 0.5}, {"axes": [0, -1], "keepdims": keep} if opset < 18 else {"keepdims": keep},
           {} if opset < 18 else {"a": np.array([0, 2])}, name=f"keep{keep}")
      for op in ("ReduceL1", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare") for opset in (11, 13, 18) for keep in (0, 1)],
    case("ReduceLogSumExp", 7, {"x": X234}, {"axes": [1]}),
    case("ReduceSumSquare", 7, {"x": X234}, name="all"),
    case("LpPool", 7, {"x": X2345}, {"kernel_shape": [2, 2], "p": 1, "strides": [2, 1]}),
    case("LpPool", 11, {"x": X2345}, {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}),
    case("GlobalLpPool", 7, {"x": X2345}, {"p": 3}),
    case("LpNormalization", 7, {"x": X234}, {"axis": 1, "p": 1}),
    *[case("RoiAlign", opset, {"x": X2345, "r": np.float32([[0, 0, 3, 3], [1, 0, 4, 2]]), "b": np.array([1, 0])},
           {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 0.75}) for opset in (10, 16)],
    *[case("NonMaxSuppression", opset, {"b": np.float32([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6]]]),
                                        "s": np.float32([[[0.9, 0.75, 0.6]]])}, {},
           {"m": np.array([3]), "i": np.float32([0.5]), "t": np.float32([0.0])}, out_types=I64) for opset in (10, 11)],
    case("DFT", 17, {"x": X2345[..., :1].copy()}, {"axis": 1}),
    case("DFT", 17, {"x": X2345[..., :2].copy()}, {"axis": 2, "inverse": 1}, name="inverse"),
    case("DFT", 17, {"x": X2345[..., :1].copy()}, {"axis": 1, "onesided": 1}, {"n": np.array(7)}, name="length"),
    case("Celu", 12, {"x": X23}, {"alpha": 2.0}),
    case("ThresholdedRelu", 10, {"x": X23}, {"alpha": 0.5}),
    case("Shrink", 9, {"x": X23}, {"bias": 0.5, "lambd": 1.0}),
    case("Selu", 7, {"x": X23}),
    case("MeanVarianceNormalization", 9, {"x": X2345}),
    case("Compress", 9, {"x": X23, "c": np.array([True, False, True])}, {"axis": 1}),
    case("Unique", 11, {"x": np.float32([2, 1, 1, 3])}, {"sorted": 0}, outputs=("y", "i", "j", "n"), out_types=[1, 7, 7, 7]),
    case("EyeLike", 9, {"x": X23}, {"k": 1}),
    case("MaxUnpool", 9, {"x": X23.reshape(1, 1, 2, 3), "i": np.arange(0, 12, 2).reshape(1, 1, 2, 3)},
         {"kernel_shape": [2, 2], "strides": [2, 2]}),
    *[case(op, opset, {"x": X234, "t": np.array([[0, 2, 1, 1], [2, 2, 0, 1]])}, {"reduction": "sum"}) for opset in (12, 13)
      for op in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")],
    *[case(op, opset, {"x": X234[:, :, [1, 1, 0, 1]].copy()}, {"axis": -1, "select_last_index": last, "keepdims": 0}, out_types=I64,
           name=f"last{last}") for op in ("ArgMax", "ArgMin") for opset in (12, 13) for last in (0, 1)],
    case("CumSum", 11, {"x": X234}, {"exclusive": 1, "reverse": 1}, {"a": np.array(-1)}),
    case("BitShift", 11, {"x": np.uint32([1, 6, 9]), "n": np.uint32([1, 2, 3])}, {"direction": "LEFT"}, out_types=[TensorProto.UINT32]),
    case("Dropout", 12, {"x": X23}, {}, {"r": np.float32(0.4)}),
    case("BatchNormalization", 14, {"x": X234}, {}, {k: np.float32([1, 2, 0.5]) for k in "sbmv"}),
    case("CenterCropPad", 18, {"x": X234}, {"axes": [1, 2]}, {"n": np.array([2, 6])}),
    case("Col2Im", 18, {"x": X234[:, :, :4].repeat(4, 1)}, {}, {"n": np.array([3, 3]), "k": np.array([2, 2])}),
    case("STFT", 17, {"x": X2345.reshape(2, 60, 1)}, {}, {"f": np.array(7), "w": np.hanning(16).astype(np.float32)}),
]


@pytest.mark.parametrize("op, opset, inputs, constants, attributes, outputs, out_types", SINCE_7)
def test_like_onnxruntime(tmp_path, op, opset, inputs, constants, attributes, outputs, out_types):
    model = model_of(op, opset, inputs, constants, dict(attributes), list(outputs), out_types)
    check_against_reference(tmp_path, model, inputs)


def softmax_matrix(x, axis):
    flat = x.reshape(int(np.prod(x.shape[:axis])), -1)
    e = np.exp(flat - flat.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).reshape(x.shape)


S3 = np.float32([10, 20, 30])
BEFORE_7 = [
    ("Add", 6, {"x": X2345, "b": S3}, {"broadcast": 1, "axis": 1}, lambda x, b: x + b[:, None, None]),
    ("Sub", 6, {"x": X2345, "b": X234[0]}, {"broadcast": 1, "axis": 1}, lambda x, b: x - b[..., None]),
    ("Mul", 6, {"x": X234, "b": np.float32([1, 2, 3, 4])}, {"broadcast": 1}, lambda x, b: x * b),
    ("Div", 1, {"x": X234, "b": np.float32([2, 4])}, {"broadcast": 1, "axis": -3}, lambda x, b: x / b[:, None, None]),
    ("Pow", 1, {"x": np.abs(X234), "b": S3 / 10}, {"broadcast": 1, "axis": 1}, lambda x, b: x ** b[:, None]),
    ("Greater", 1, {"x": X234, "b": S3 - 20}, {"broadcast": 1, "axis": 1}, lambda x, b: x > b[:, None]),
    ("PRelu", 6, {"x": X2345, "s": S3}, {}, lambda x, s: np.where(x < 0, x * s[:, None, None], x)),
    ("PRelu", 1, {"x": X234, "s": np.float32([0.5])}, {}, lambda x, s: np.where(x < 0, x * s, x)),
    ("Softmax", 1, {"x": X234}, {"axis": 1}, lambda x: softmax_matrix(x, 1)),
    ("Reshape", 1, {"x": X234}, {"shape": [4, -1]}, lambda x: x.reshape(4, -1)),
    ("Cast", 1, {"x": X23}, {"to": "INT32"}, lambda x: x.astype(np.int32)),
    ("Concat", 1, {"a": X23, "b": X23}, {}, lambda a, b: np.concatenate([a, b], 1)),
    ("Concat", 4, {"a": X23, "b": X23}, {"axis": 0}, lambda a, b: np.concatenate([a, b], 0)),
    ("Pad", 1, {"x": X23}, {"paddings": [1, 0, 0, 2], "value": 2.0}, None),
    ("Selu", 1, {"x": X23}, {}, lambda x: np.where(x > 0, 1.0507 * x, 1.0507 * 1.6732 * (np.exp(x) - 1))),
    ("Relu", 1, {"x": X23}, {"consumed_inputs": [0]}, lambda x: np.maximum(x, 0)),
    ("Clip", 1, {"x": X23}, {"min": 0.0, "consumed_inputs": [0]}, lambda x: np.maximum(x, 0)),
    ("Clip", 6, {"x": np.int32([-9, 0, 9])}, {"min": -1e12, "max": 5.0}, lambda x: np.minimum(x, 5)),
    ("Dropout", 6, {"x": X23}, {"is_test": 1, "ratio": 0.7}, lambda x: x),
    ("Gemm", 6, {"a": X23, "b": X23.T.copy(), "c": S3[:2]}, {"broadcast": 1}, lambda a, b, c: a @ b + c),
    ("Upsample", 1, {"x": X2345}, {"height_scale": 2.0, "width_scale": 1.0}, lambda x: x.repeat(2, axis=2)),
    ("LpPool", 1, {"x": X234}, {"p": 1.0, "kernel_shape": [4]}, lambda x: np.abs(x).sum(2, keepdims=True)),
    ("Sum", 6, {"a": X23, "b": X23}, {}, lambda a, b: a + b),
]


@pytest.mark.parametrize("op, opset, inputs, attributes, expected", BEFORE_7, ids=[f"{c[0]}-{c[1]}" for c in BEFORE_7])
def test_like_numpy(tmp_path, op, opset, inputs, attributes, expected):
    if expected is None:
        wanted = np.pad(inputs["x"], ((1, 0), (0, 2)), constant_values=2)
    else:
        wanted = np.asarray(expected(**inputs))
        wanted = wanted.astype(np.float32) if wanted.dtype == np.float64 else wanted
    model = model_of(op, opset, inputs, {}, dict(attributes), ["y"], [TYPES[wanted.dtype]])
    folder = write_case(tmp_path, model, inputs, [wanted])
    for opt in ("none", "all"):
        done = linnet("verify", folder / "model.onnx", "--opt", opt)
        assert done.returncode == 0, f"{LINNET} --opt {opt}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("axes", [None, [-1, 0]])
def test_dynamic_slice(tmp_path, axes):
    """Slice-10 without steps, as ONNX tried it first."""
    starts, ends = np.array([1, 0]), np.array([1000, -1])
    inputs = {"x": X234, "s": starts, "e": ends} | ({} if axes is None else {"a": np.array(axes)})
    wanted = X234[1:, :-1] if axes is None else X234[:-1, :, 1:]
    folder = write_case(tmp_path, model_of("DynamicSlice", 9, inputs, {}, {}, ["y"]), inputs, [wanted])
    for opt in ("none", "all"):
        done = linnet("verify", folder / "model.onnx", "--opt", opt)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("opset, kept", [(21, True), (23, True), (24, False)])
@pytest.mark.parametrize("kind", ["float", "double", "float16", "bfloat16"])
def test_cast_to_four_bits(tmp_path, opset, kept, kind):
    """Before 24 ONNX's reference keeps real numbers within an integer of 4 bits, since then it takes the lower bits."""
    x = np.float32([-100, -9, -8, -1.5, 0, 7, 8, 15, 16, 100])
    number = TensorProto.DataType.Value(kind.upper())
    text = f"""<ir_version: 10, opset_import: ["" : {opset}]> f (float[N] x) => (int8[N] i, uint8[N] u) {{
        r = Cast <to = {number}> (x)
        i4 = Cast <to = {TensorProto.INT4}> (r)
        u4 = Cast <to = {TensorProto.UINT4}> (r)
        i = Cast <to = {TensorProto.INT8}> (i4)
        u = Cast <to = {TensorProto.UINT8}> (u4)
    }}"""
    whole = np.trunc(x).astype(int)
    signed = np.clip(whole, -8, 7) if kept else (whole + 8) % 16 - 8
    folder = write_case(tmp_path, onnx.parser.parse_model(text), {"x": x},
                        [signed.astype(np.int8), (np.clip(whole, 0, 15) if kept else whole % 16).astype(np.uint8)])
    for opt in ("none", "all"):
        done = linnet("verify", folder / "model.onnx", "--opt", opt)
        assert done.returncode == 0, done.stdout + done.stderr


def test_tile_1(tmp_path):
    constants = {"tiles": np.array(3), "axis": np.array(1)}
    model = model_of("Tile", 1, {"x": X23}, constants, {}, ["y"])
    folder = write_case(tmp_path, model, {"x": X23}, [np.tile(X23, (1, 3))])
    done = linnet("verify", folder / "model.onnx")
    assert done.returncode == 0, done.stdout + done.stderr


def test_spatial_statistics(tmp_path):
    """BatchNormalization-7 with spatial = 0 has statistics of every place."""
    statistics = {n: np.random.default_rng(k).random((3, 4), np.float32) + 0.5 for k, n in enumerate("sbmv")}
    model = model_of("BatchNormalization", 7, {"x": X234}, statistics, {"spatial": 0}, ["y"])
    s, b, m, v = statistics.values()
    folder = write_case(tmp_path, model, {"x": X234}, [(X234 - m) / np.sqrt(v + np.float32(1e-5)) * s + b])
    done = linnet("verify", folder / "model.onnx")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("backwards", [0, 1])
def test_scan_8(tmp_path, backwards):
    """Scan of opset 8 ran over the entries of a batch."""
    text = """
    <ir_version: 3, opset_import: ["" : 8]>
    f (float[B,2] s, float[B,T,2] x) => (float[B,2] last, float[B,T,2] sums) {
        last, sums = Scan <
            num_scan_inputs = 1,
            directions = [BACKWARDS],
            body = add (float[2] a, float[2] v) => (float[2] b, float[2] c) {
                b = Add (a, v)
                c = Identity (b)
            }
        > (, s, x)
    }"""
    model = onnx.parser.parse_model(text.replace("BACKWARDS", str(backwards)))
    check_against_reference(tmp_path, model, {"s": X23[:, :2].copy(), "x": X234[:, :, :2].copy()})


@pytest.mark.parametrize("channels", [4, None])
def test_group_normalization_18(tmp_path, channels):
    """Scale and bias of opset 18 belong to groups, those of 21 to channels."""
    x = np.sin(np.arange(40, dtype=np.float32)).reshape(2, 4, 5)
    s, b = np.float32([2, 3]), np.float32([0.5, -0.5])
    model = model_of("GroupNormalization", 18, {"x": x, "s": s, "b": b}, {}, {"num_groups": 2}, ["y"])
    if channels:
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = channels
    g = x.reshape(2, 2, -1)
    n = (g - g.mean(2, keepdims=True)) / np.sqrt(g.var(2, keepdims=True) + 1e-5)
    wanted = n.reshape(x.shape) * s.repeat(2)[:, None] + b.repeat(2)[:, None]
    folder = write_case(tmp_path, model, {"x": x, "s": s, "b": b}, [wanted.astype(np.float32)])
    done = linnet("verify", folder / "model.onnx")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("way", [(), ("--bake", "all")])
def test_bfloat16_kept_as_uint16(tmp_path, way):
    """Cases of the suite from before numpy had the type."""
    bits = (np.float32([0.5, -2, 3, np.inf]).view(np.uint32) >> 16).astype(np.uint16)
    info = [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, [4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "kept", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    wanted = (np.float32([1, -4, 6, np.inf]).view(np.uint32) >> 16).astype(np.uint16)
    folder = write_case(tmp_path, model, {"x": bits}, [wanted])
    done = linnet("verify", folder / "model.onnx", *way)
    assert done.returncode == 0, done.stdout + done.stderr
    write_case(tmp_path, model, {"x": bits}, [wanted + np.uint16([0, 0, 1, 0])])
    assert linnet("verify", folder / "model.onnx", *way).returncode != 0
