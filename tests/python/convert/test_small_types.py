"""Constants of 2, 4 and 8 bits: what they stand for, dequantized, and as weights of MatMulNBits."""

import json

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import check_against, check_against_reference, linnet

F = TensorProto.FLOAT
FLOATS = {"FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "FLOAT8E5M2": ml_dtypes.float8_e5m2,
          "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "FLOAT4E2M1": ml_dtypes.float4_e2m1fn, "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu}
INTEGERS = {"INT4": (-8, 7), "UINT4": (0, 15), "INT2": (-2, 1), "UINT2": (0, 3)}
WAYS = (("--opt", "none"), ("--opt", "basic"), ("--opt", "all"), ("--opt", "all", "--level", "scalar"))
NEAR = ("--rtol", "1e-4", "--atol", "1e-4")


def model_of(nodes, x, constants, opset=23):
    """x -> y."""
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", F, x.shape)], [helper.make_tensor_value_info("y", F, None)],
                              [t if isinstance(t, TensorProto) else numpy_helper.from_array(t, name) for name, t in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def small(name, kind, values, dims=None, raw=False):
    values = np.asarray(values)
    dtype = getattr(TensorProto, kind)
    t = helper.make_tensor(name, dtype, values.shape, values.ravel().tolist())
    if dims is not None:
        t.dims[:] = dims
    if raw:
        data = bytes(int(v) & 255 for v in t.int32_data)
        del t.int32_data[:]
        t.raw_data = data
    return t


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("kind", FLOATS)
def test_every_float(tmp_path, kind, raw):
    bits = 4 if "4E" in kind[5:8] else 8
    codes = np.arange(1 << bits, dtype=np.uint8).view(FLOATS[kind])
    t = TensorProto(name="c", dims=[len(codes)], data_type=getattr(TensorProto, kind))
    data = codes.view(np.uint8)
    data = data if bits == 8 else data[::2] | data[1::2] << 4
    if raw:
        t.raw_data = data.tobytes()
    else:
        t.int32_data.extend(data.tolist())
    x = np.zeros(len(codes), np.float32)
    model = model_of([helper.make_node("Cast", ["c"], ["f"], to=F), helper.make_node("Add", ["x", "f"], ["y"])], x, {"c": t})
    with np.errstate(all="ignore"):
        want = codes.astype(np.float32) + 0
    check_against(tmp_path, model, {"x": x}, [want], "--rtol", 0, "--atol", 0, ways=WAYS)


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("kind", INTEGERS)
def test_every_integer(tmp_path, kind, raw):
    """An odd number of them, moved before they are dequantized."""
    low, high = INTEGERS[kind]
    values = np.array([*range(low, high + 1), low, high, 1]).reshape(1, -1)
    if kind.endswith("2"):
        data = np.pad(values.ravel() & 3, (0, -values.size % 4)).reshape(-1, 4)
        t = TensorProto(name="c", dims=values.shape, data_type=getattr(TensorProto, kind),
                        raw_data=(data << np.array([0, 2, 4, 6])).sum(1).astype(np.uint8).tobytes())
    else:
        t = small("c", kind, values, raw=raw)
    x = np.zeros(values.T.shape, np.float32)
    model = model_of([helper.make_node("Transpose", ["c"], ["t"]), helper.make_node("DequantizeLinear", ["t", "s"], ["f"]),
                      helper.make_node("Add", ["x", "f"], ["y"])], x, {"c": t, "s": np.float32(0.5)}, 25)
    check_against(tmp_path, model, {"x": x}, [values.T.astype(np.float32) / 2], "--rtol", 0, "--atol", 0, ways=WAYS)


@pytest.mark.parametrize("kind", list(FLOATS)[:4])
@pytest.mark.parametrize("scale", [np.float32(0.25), np.float32([0.5, 2, 3])])
def test_dequantized_floats(tmp_path, kind, scale):
    values = np.random.default_rng(1).normal(0, 2, (4, 3)).astype(FLOATS[kind])
    t = TensorProto(name="c", dims=values.shape, data_type=getattr(TensorProto, kind), raw_data=values.tobytes())
    x = np.float32([[1, 2, 3, 4], [0.5, 0, -1, 3]])
    model = model_of([helper.make_node("DequantizeLinear", ["c", "s"], ["f"], axis=-1), helper.make_node("MatMul", ["x", "f"], ["y"])], x,
                     {"c": t, "s": scale})
    check_against_reference(tmp_path, model, {"x": x}, *NEAR, ways=WAYS)


# kind, zero points, extents of the scales, attributes; weights are [70, 5]
FORMS = [
    ("INT4", False, (), {}),
    ("UINT4", True, (), {}),
    ("INT4", True, (5,), {"axis": 1}),
    ("UINT4", False, (5,), {"axis": -1}),
    ("INT4", False, (5, 5), {"axis": 0, "block_size": 16}),
    ("INT4", True, (3, 5), {"axis": 0, "block_size": 32}),
    ("UINT4", True, (3, 5), {"axis": 0, "block_size": 32}),
    ("UINT4", True, (2, 5), {"axis": -2, "block_size": 64}),
    ("UINT4", True, (1, 5), {"axis": 0, "block_size": 128}),
]


def weights_of(kind, zero, dims, attributes):
    rng = np.random.default_rng(3)
    low, high = INTEGERS[kind]
    constants = {"w": small("w", kind, rng.integers(low, high + 1, (70, 5))), "s": rng.uniform(0.05, 0.2, dims).astype(np.float32)}
    if zero:
        constants["z"] = small("z", kind, rng.integers(low, high + 1, dims))
    return helper.make_node("DequantizeLinear", list(constants), ["f"], **attributes), constants


@pytest.mark.parametrize("kind, zero, dims, attributes", FORMS)
def test_weights_stay_four_bits(tmp_path, kind, zero, dims, attributes):
    dequantize, constants = weights_of(kind, zero, dims, attributes)
    for lead in ((1,), (2, 3)):
        x = np.random.default_rng(4).normal(size=(*lead, 70)).astype(np.float32)
        model = model_of([dequantize, helper.make_node("MatMul", ["x", "f"], ["y"])], x, constants)
        check_against_reference(tmp_path, model, {"x": x}, *NEAR, ways=WAYS)
    done = linnet("convert", tmp_path / "model.onnx", "-o", tmp_path / "m.lnt", "--json")
    assert {"pass": "fold_nibbles", "what": "MatMul of 4-bit weights", "count": 1} in json.loads(done.stdout)["passes"]
    assert json.loads(linnet("info", tmp_path / "m.lnt", "--json").stdout)["operators"] == {"MatMulNBits": 1}


@pytest.mark.parametrize("kind, zero, dims, attributes, op", [
    ("INT4", True, (70, 1), {"axis": 1, "block_size": 5}, "MatMul"),
    ("INT4", True, (70,), {"axis": 0}, "MatMul"),
    ("UINT4", True, (9, 5), {"axis": 0, "block_size": 8}, "MatMul"),
    ("UINT4", True, (1, 5), {"axis": 0, "block_size": 2**20}, "MatMul"),
    ("INT4", True, (5,), {"axis": 1}, "Gemm"),
])
def test_what_is_folded_to_floats(tmp_path, kind, zero, dims, attributes, op):
    dequantize, constants = weights_of(kind, zero, dims, attributes)
    x = np.random.default_rng(4).normal(size=(3, 70)).astype(np.float32)
    model = model_of([dequantize, helper.make_node(op, ["x", "f"], ["y"])], x, constants)
    check_against_reference(tmp_path, model, {"x": x}, *NEAR, ways=WAYS)
    linnet("convert", tmp_path / "model.onnx", "-o", tmp_path / "m.lnt")
    assert "MatMulNBits" not in linnet("info", tmp_path / "m.lnt", "--json").stdout


def test_beside_the_model_and_small(tmp_path):
    """Contents in a file; half a megabyte of floats is 70 KB."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1, 512)).astype(np.float32)
    constants = {"w": small("w", "INT4", rng.integers(-8, 8, (512, 256)), raw=True),
                 "s": rng.uniform(0.05, 0.2, (16, 256)).astype(np.float32)}
    model = model_of([helper.make_node("DequantizeLinear", ["w", "s"], ["f"], axis=0, block_size=32),
                      helper.make_node("MatMul", ["x", "f"], ["y"])], x, constants)
    check_against_reference(tmp_path, model, {"x": x}, *NEAR, ways=WAYS)
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=64)
    done = linnet("verify", tmp_path / "model.onnx", *NEAR)
    assert done.returncode == 0, done.stdout + done.stderr
    assert linnet("convert", tmp_path / "model.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    assert (tmp_path / "m.lnt").stat().st_size < 110_000
    (tmp_path / "weights.bin").write_bytes(b"1234")
    done = linnet("convert", tmp_path / "model.onnx", "-o", tmp_path / "m2.lnt")
    assert done.returncode not in (0, -6, -11) and "weights.bin" in done.stderr, done.stderr


W = [[1, -2], [3, -4]]
X = np.ones((2, 2), np.float32)


@pytest.mark.parametrize("nodes, constants, word", [
    ([("Add", ["w", "w"], ["y"])], {"w": small("w", "INT4", W)}, "it reads int4"),
    ([("MatMul", ["x", "w"], ["y"])], {"w": small("w", "FLOAT8E5M2", W)}, "it reads float8e5m2"),
    ([("DequantizeLinear", ["w", "s"], ["y"])], {"w": small("w", "INT4", W, (3, 3)), "s": np.float32(1)}, "extents"),
    ([("DequantizeLinear", ["w", "s"], ["y"])], {"w": small("w", "INT4", W, (2**40, 2)), "s": np.float32(1)}, "extents"),
    ([("BitCast", ["w"], ["y"])], {"w": small("w", "INT4", W)}, "bits"),
])
def test_what_is_refused(tmp_path, nodes, constants, word):
    model = model_of([helper.make_node(*node) for node in nodes], X, constants, 26)
    if nodes[0][0] == "BitCast":
        model.graph.node[0].attribute.append(helper.make_attribute("to", TensorProto.INT8))
        model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT8
    onnx.save(model, tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode not in (0, -6, -11) and word in done.stderr, done.stderr
    assert not (tmp_path / "m.lnt").exists()


@pytest.mark.parametrize("block", [2**63 - 1, -(2**63), -16])
def test_hostile_blocks(tmp_path, block):
    dequantize, constants = weights_of("INT4", False, (1, 5), {"axis": 0, "block_size": block})
    onnx.save(model_of([dequantize, helper.make_node("MatMul", ["x", "f"], ["y"])], np.ones((1, 70), np.float32), constants),
              tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode >= 0 and ("block_size" in done.stderr) == (block < 0), done.stderr  # told of the run that it refuses
    assert "MatMulNBits" not in done.stdout
