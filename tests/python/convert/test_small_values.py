"""Values of 2, 4 and 8 bits that a model takes, moves, casts, quantizes and gives, against the types of ml_dtypes and ONNX's
reference evaluator, bit by bit."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops.op_cast import cast_to

from harness import check_against, import_package, linnet

FLOATS = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1", "FLOAT8E8M0"]
INTEGERS = {"INT4": (-8, 7), "UINT4": (0, 15), "INT2": (-2, 1), "UINT2": (0, 3)}
SMALL = [*FLOATS, *INTEGERS]
PLAIN = ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "BOOL"]
SATURATE = FLOATS[:4]
WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--level", "scalar", "--threads", "2"))
EXACT = ("--rtol", 0, "--atol", 0)


def numpy_of(kind):
    return helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind))


def all_of(kind):
    """Every value of a small type."""
    if kind in INTEGERS:
        low, high = INTEGERS[kind]
        return np.arange(low, high + 1).astype(numpy_of(kind))
    return np.arange(16 if kind == "FLOAT4E2M1" else 256).astype(np.uint8).view(numpy_of(kind))


def model_of(nodes, inputs, outputs, constants=(), opset=26):
    """inputs: arrays by name; outputs: kinds by name."""
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in inputs.items()]
    given = [helper.make_tensor_value_info(name, getattr(TensorProto, kind), None) for name, kind in outputs.items()]
    tensors = [numpy_helper.from_array(np.asarray(x), name) for name, x in dict(constants).items()]
    graph = helper.make_graph(nodes, "g", infos, given, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


def sources(kind):
    """Numbers around all there are in the small types; of integer kinds none that they cannot hold."""
    rng = np.random.default_rng(1)
    edges = [0, -0.0, 1e-9, 448, 464, 57344, 61440, 6, 7, 0.25]
    real = np.concatenate([rng.normal(0, 1, 400) * np.exp2(rng.integers(-20, 18, 400)), edges])
    if kind in SMALL:
        return all_of(kind)
    if kind == "BOOL":
        return np.array([False, True])
    dtype = numpy_of(kind)
    if np.dtype(dtype).kind in "iu":
        bounds = np.iinfo(dtype)
        return np.unique(np.clip(real, max(bounds.min, -1e6), min(bounds.max, 1e6)).astype(dtype))
    with np.errstate(all="ignore"):
        return np.concatenate([real, [np.inf, -np.inf, np.nan]]).astype(dtype)


def targets_of(kind, x):
    """What x can be cast to, with the result; of NaN and infinity no integer is made, and what has the type stays."""
    found = {}
    for to in SMALL + (PLAIN if kind in SMALL else []):
        if to == kind or to in INTEGERS and kind not in INTEGERS or to in PLAIN and np.dtype(numpy_of(to)).kind in "iu" and kind in FLOATS:
            continue
        with np.errstate(all="ignore"):
            number = x.astype(np.float64 if kind == "DOUBLE" else np.float32)
            if to in INTEGERS:
                found[to] = (x.astype(np.int32) & (15 if "4" in to else 3)).astype(np.uint8).view(numpy_of(to))
            else:
                found[to] = cast_to(number if to in FLOATS else x, getattr(TensorProto, to), True)
    return found


@pytest.mark.parametrize("kind", SMALL + PLAIN)
def test_cast_from(tmp_path, kind):
    x = sources(kind)
    want = targets_of(kind, x)
    nodes = [helper.make_node("Cast", ["x"], [to], to=getattr(TensorProto, to)) for to in want]
    check_against(tmp_path, model_of(nodes, {"x": x}, {to: to for to in want}), {"x": x}, list(want.values()), *EXACT, ways=WAYS)


@pytest.mark.parametrize("kind", ["FLOAT", "FLOAT16", "INT32", "INT64", "UINT8"])
def test_cast_to_small_integers(tmp_path, kind):
    """Of what they cannot hold, cut to int32, the low bits."""
    x = np.array([-300, -17, -9, -8, -3, -1, 0, 1, 2, 3, 7, 8, 15, 16, 255, 1000]).astype(numpy_of(kind))
    x = x + np.array(0.75, x.dtype) if x.dtype.kind == "f" else x
    want = {to: x.astype(np.int32).astype(np.int8 if to[0] == "I" else np.uint8).astype(numpy_of(to)) for to in INTEGERS}
    nodes = [helper.make_node("Cast", ["x"], [to], to=getattr(TensorProto, to)) for to in want]
    check_against(tmp_path, model_of(nodes, {"x": x}, {to: to for to in want}), {"x": x}, list(want.values()), *EXACT, ways=WAYS)


@pytest.mark.parametrize("like", [False, True])
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_attributes_of_cast(tmp_path, like, saturate, mode):
    x = sources("FLOAT")
    kinds = [*SATURATE, "FLOAT8E8M0"]
    nodes, constants = [], {}
    for to in kinds:
        if like:
            constants[f"like {to}"] = np.zeros(1, numpy_of(to))
            nodes.append(helper.make_node("CastLike", ["x", f"like {to}"], [to], saturate=saturate, round_mode=mode))
        else:
            nodes.append(helper.make_node("Cast", ["x"], [to], to=getattr(TensorProto, to), saturate=saturate, round_mode=mode))
    with np.errstate(all="ignore"):
        want = [cast_to(x, getattr(TensorProto, to), saturate, mode) for to in kinds]
    check_against(tmp_path, model_of(nodes, {"x": x}, {to: to for to in kinds}, constants), {"x": x}, want, *EXACT, ways=WAYS)


FORMS = {  # extents of the scales of [6, 8], attributes
    "tensor": ((), {}),
    "first": ((6,), {"axis": 0}),
    "last": ((8,), {"axis": -1}),
    "blocks": ((3, 8), {"axis": 0, "block_size": 2}),
    "rows": ((6, 3), {"axis": 1, "block_size": 3}),
}


def quantization(kind, form, zero):
    rng = np.random.default_rng(2)
    extents, attributes = FORMS[form]
    constants = {"s": rng.uniform(0.2, 2, extents).astype(np.float32)}
    if zero:
        values = all_of(kind).astype(np.float32)
        chosen = rng.choice(values, extents) if kind in INTEGERS or kind == "FLOAT4E2M1" else np.zeros(extents)
        constants["z"] = chosen.astype(numpy_of(kind))
    return constants, attributes


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [k for k in SMALL if k != "FLOAT8E8M0"])
def test_quantized(tmp_path, kind, form, zero):
    constants, attributes = quantization(kind, form, zero)
    x = (np.random.default_rng(3).normal(0, 4, (6, 8))).astype(np.float32)
    node = helper.make_node("QuantizeLinear", ["x", *constants], ["y"], output_dtype=getattr(TensorProto, kind), **attributes)
    model = model_of([node], {"x": x}, {"y": kind}, constants)
    check_against(tmp_path, model, {"x": x}, ReferenceEvaluator(model).run(None, {"x": x}), *EXACT, ways=WAYS)


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [k for k in SMALL if k != "FLOAT8E8M0"])
def test_dequantized(tmp_path, kind, form, zero):
    constants, attributes = quantization(kind, form, zero and kind != "FLOAT4E2M1")
    values = all_of(kind)
    x = np.random.default_rng(4).choice(values[np.isfinite(values.astype(np.float32))], (6, 8))
    model = model_of([helper.make_node("DequantizeLinear", ["x", *constants], ["y"], **attributes)], {"x": x}, {"y": "FLOAT"}, constants)
    check_against(tmp_path, model, {"x": x}, ReferenceEvaluator(model).run(None, {"x": x}), *EXACT, ways=WAYS)


def test_scales_that_are_powers_of_two(tmp_path):
    """Blocks of float4e2m1 with a scale of float8e8m0, as the Microscaling formats have them."""
    x = np.random.default_rng(5).choice(all_of("FLOAT4E2M1"), (2, 64))
    s = np.array([[120, 127], [130, 128]], np.uint8).view(ml_dtypes.float8_e8m0fnu)
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], axis=1, block_size=32, output_dtype=TensorProto.FLOAT)
    model = model_of([node], {"x": x, "s": s}, {"y": "FLOAT"}, opset=28)
    want = x.astype(np.float32) * np.repeat(s.astype(np.float32), 32, 1)
    check_against(tmp_path, model, {"x": x, "s": s}, [want], *EXACT, ways=WAYS)


def body(nodes, inputs, outputs, name):
    return helper.make_graph(nodes, name, inputs, outputs)


@pytest.mark.parametrize("kind", SMALL)
def test_moved(tmp_path, kind):
    """Through what moves elements, branches, loops and scans."""
    number = getattr(TensorProto, kind)
    x = np.random.default_rng(6).choice(all_of(kind), (4, 6))
    info = lambda name, dims: helper.make_tensor_value_info(name, number, dims)
    then = body([helper.make_node("Transpose", ["x"], ["t"])], [], [info("t", None)], "then")
    other = body([helper.make_node("Identity", ["x"], ["e"])], [], [info("e", None)], "other")
    turn = body([helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Transpose", ["v"], ["w"], perm=[0, 1])],
                [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []),
                 info("v", [4, 6])], [helper.make_tensor_value_info("c2", TensorProto.BOOL, []), info("w", [4, 6])], "turn")
    row = body([helper.make_node("Reshape", ["r", "half"], ["h"])], [info("r", [6])], [info("h", [2, 3])], "row")
    nodes = [helper.make_node("If", ["yes"], ["flipped"], then_branch=then, else_branch=other),
             helper.make_node("Loop", ["two", "", "x"], ["turned"], body=turn),
             helper.make_node("Scan", ["x"], ["scanned"], body=row, num_scan_inputs=1),
             helper.make_node("Pad", ["x", "pads", "fill"], ["padded"]),
             helper.make_node("Slice", ["x", "from", "to"], ["cut"]), helper.make_node("Concat", ["cut", "cut"], ["both"], axis=0),
             helper.make_node("Gather", ["x", "rows"], ["taken"]), helper.make_node("Where", ["mask", "x", "taken"], ["chosen"]),
             helper.make_node("Shape", ["x"], ["extents"])]
    mask = np.arange(24).reshape(4, 6) % 3 == 0
    rows, fill = np.array([3, 1, 0, 2]), all_of(kind)[1]
    constants = {"yes": np.array(True), "two": np.int64(2), "half": np.array([2, 3]), "pads": np.array([1, 0, 0, 2]), "fill": fill,
                 "from": np.array([1, 2]), "to": np.array([3, 6]), "rows": rows, "mask": mask}
    want = {"flipped": x.T, "turned": x, "scanned": x.reshape(4, 2, 3), "padded": np.full((5, 8), fill),
            "both": np.tile(x[1:3, 2:6], (2, 1)), "chosen": np.where(mask, x, x[rows]), "extents": np.array([4, 6])}
    want["padded"][1:, :6] = x
    kinds = {name: kind if name != "extents" else "INT64" for name in want}
    check_against(tmp_path, model_of(nodes, {"x": x}, kinds, constants), {"x": x}, list(want.values()), *EXACT, ways=WAYS)


@pytest.mark.parametrize("kind", SMALL)
def test_in_files_and_by_hand(tmp_path, kind):
    """Packed in .pb, a byte each in .npy, and typed."""
    x = all_of(kind).reshape(1, -1)
    onnx.save(model_of([helper.make_node("Transpose", ["x"], ["y"])], {"x": x}, {"y": kind}), tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
    done = linnet("run", tmp_path / "m.lnt", "--input", f"x={tmp_path}/x.pb", "--output", f"y={tmp_path}/y.pb")
    assert done.returncode == 0, done.stderr
    y = onnx.load_tensor(tmp_path / "y.pb")
    assert y.data_type == getattr(TensorProto, kind) and numpy_helper.to_array(y).tobytes() == x.T.tobytes()
    assert len(y.raw_data) == -(-x.size * (8 if "FLOAT8" in kind else 2 if "INT2" in kind else 4) // 8)
    done = linnet("run", tmp_path / "m.lnt", "--input", f"x={tmp_path}/x.pb", "--output", f"y={tmp_path}/y.npy")
    assert done.returncode == 0, done.stderr
    stored = np.load(tmp_path / "y.npy")
    assert np.array_equal(stored, x.T.astype(stored.dtype) if kind in INTEGERS else x.T.view(np.uint8))
    np.save(tmp_path / "x.npy", stored.T)
    done = linnet("run", tmp_path / "m.lnt", "--input", f"x={tmp_path}/x.npy", "--output", f"y={tmp_path}/y.pb")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", SMALL)
def test_typed_and_random(tmp_path, kind):
    x = all_of(kind)[:2]
    onnx.save(model_of([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], {"x": x}, {"y": "FLOAT"}), tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    given = ["--output", f"y={tmp_path}/y.npy"]
    done = linnet("run", tmp_path / "m.lnt", "--input", "x=[1, 1]", *given)
    assert done.returncode == 0 and np.load(tmp_path / "y.npy").tolist() == [1, 1], done.stderr
    done = linnet("run", tmp_path / "m.lnt", "--input", "x=[1, 99]")
    assert (done.returncode == 0) == (kind in FLOATS), done.stderr
    done = linnet("bench", tmp_path / "m.lnt", "--range", "x=0:2", "--runs", 1)
    assert done.returncode == 0, done.stderr


def test_in_python():
    package = import_package()
    x = np.array([-8, -1, 0, 7]).astype(ml_dtypes.int4)
    f = np.array([0.5, -448, 3, 1]).astype(ml_dtypes.float8_e4m3fn)
    model = model_of([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT), helper.make_node("Identity", ["x"], ["z"]),
                      helper.make_node("Identity", ["f"], ["g"])], {"x": x, "f": f}, {"y": "FLOAT", "z": "INT4", "g": "FLOAT8E4M3FN"})
    session = package.InferenceSession(model.SerializeToString())
    assert [i.type for i in session.get_inputs()] == ["tensor(int4)", "tensor(float8e4m3fn)"]
    for fed in ({"x": x, "f": f}, {"x": x.astype(np.int8), "f": f.view(np.uint8)}):
        y, z, g = session.run(None, fed)
        assert y.tolist() == [-8, -1, 0, 7] and z.dtype == np.int8 and z.tolist() == [-8, -1, 0, 7]
        assert g.view(ml_dtypes.float8_e4m3fn).tolist() == f.tolist()
    value = package.OrtValue.ortvalue_from_numpy(x)
    assert value.data_type() == "tensor(int4)" and value.element_type() == TensorProto.INT4
    with pytest.raises(package.LinnetError):
        session.run(None, {"x": x.astype(np.int16), "f": f})
