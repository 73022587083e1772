"""Rows of quantized numbers to the bit, at every length that leaves a rest: sums and products of two, one of which may be a
single number on either side; int32 with zero points, which floats may not hold."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from harness import check_against

WAYS = [("--opt", "none")] + [("--opt", "all", "--level", level) for level in ("scalar", "avx2")]
SCALES = {"usual": (0.02, 0.03, 0.05), "beyond int32": (3e7, 2e8, 1e-5), "cancelling": (1e7, 1e7, 1)}


def check(folder, nodes, given, constants, want):
    infos = [[helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in values.items()]
             for values in (given, want)]
    graph = helper.make_graph(nodes, "rows", *infos, [numpy_helper.from_array(v, n) for n, v in constants.items()])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    check_against(folder, model, given, list(want.values()), "--max-rel", "0", ways=WAYS)


def pairs(rng, dtype):
    """Operands of rows of 1 to 200 numbers, of long ones, and one number for many on either side."""
    whole = np.iinfo(dtype)
    shapes = [([n], [n]) for n in (*range(1, 200, 3), 1000)] + [([n], [1]) for n in range(1, 200, 7)]
    shapes += [([1], [n]) for n in range(2, 200, 9)] + [([2, 3, 77], [3, 1]), ([3, 1], [2, 3, 77]), ([5, 4], [4])]
    shapes += [([1500], [1]), ([2, 1100], [2, 1])]
    shapes += [([2, 9, 29], [9, 1]), ([9, 1], [3, 9, 29]), ([300, 5], [300, 1]), ([4, 7, 1], [4, 1, 1]), ([2, 3, 513], [3, 1])]
    return [[rng.integers(whole.min, whole.max + 1, s).astype(dtype) for s in two] for two in shapes]


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_two_rows(tmp_path, op, dtype, scales):
    f32, whole = np.float32, np.iinfo(dtype)
    constants = {f"s{k}": f32(s) for k, s in enumerate(SCALES[scales])} | {f"z{k}": dtype(z) for k, z in enumerate((7, 30, 11))}
    sa, sb, sc = (constants[f"s{k}"] for k in range(3))
    nodes, given, want = [], {}, {}
    for k, (a, b) in enumerate(pairs(np.random.default_rng(3), dtype)):
        given |= {f"a{k}": a, f"b{k}": b}
        x, y = a.astype(f32) - f32(7), b.astype(f32) - f32(30)
        real = x * y * f32(sa * sb / sc) if op == "QLinearMul" else x * f32(sa / sc) + y * f32(sb / sc)
        want[f"c{k}"] = np.clip(np.rint(real.astype(np.float64)) + 11, whole.min, whole.max).astype(dtype)
        nodes.append(helper.make_node(op, [f"a{k}", "s0", "z0", f"b{k}", "s1", "z1", "s2", "z2"], [f"c{k}"],
                                      domain="com.microsoft"))
    check(tmp_path, nodes, given, constants, want)


@pytest.mark.parametrize("zeros", [None, 0, 123456789])
@pytest.mark.parametrize("axis", [0, 1])
def test_int32_to_floats(tmp_path, axis, zeros):
    rng = np.random.default_rng(4)
    x = rng.integers(-2**31, 2**31, (3, 1300)).astype(np.int32)
    scale = rng.uniform(0.5, 2, x.shape[axis]).astype(np.float32)
    constants = {"s": scale} | ({} if zeros is None else {"z": np.full(scale.shape, zeros, np.int32)})
    along = (lambda v: v[:, None]) if axis == 0 else (lambda v: v[None])
    want = (x.astype(np.int64) - (zeros or 0)).astype(np.float32) * along(scale)
    check(tmp_path, [helper.make_node("DequantizeLinear", ["x", *constants], ["y"], axis=axis)], {"x": x}, constants, {"y": want})


@pytest.mark.parametrize("inner", [(1,), (3,), (5, 2), (16,), (33,), (70,)])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16])
@pytest.mark.parametrize("rows", [7, 96])  # of many, several are one
def test_a_scale_for_each_of_few(tmp_path, rows, dtype, inner):
    rng = np.random.default_rng(5)
    whole = np.iinfo(dtype)
    x = rng.integers(whole.min, whole.max + 1, (rows, 11, *inner)).astype(dtype)
    along = (1, 11, *(1 for _ in inner))
    for zeros in (np.zeros(11, dtype), rng.integers(0, 100, 11).astype(dtype)):
        constants = {"s": 2.0 ** rng.integers(-3, 3, 11).astype(np.float32), "z": zeros}
        real = (x.astype(np.float32) - zeros.reshape(along)) * constants["s"].reshape(along)
        check(tmp_path, [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=1)], {"x": x}, constants,
              {"y": real.astype(np.float32)})
        check(tmp_path, [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], axis=1)], {"x": real.astype(np.float32)},
              constants, {"y": x})


@pytest.mark.parametrize("scale", [0.0123, 1 / 3, 0.7, 1, 3.1e-5, 77.7])
@pytest.mark.parametrize("zero", [0, 128, 200])
def test_middles_between_integers(tmp_path, scale, zero):
    """Quotients next to where rounding turns, up to beyond what a byte holds, and what is not finite."""
    rng = np.random.default_rng(6)
    s = np.float32(scale)
    middles = (np.repeat(np.arange(-300, 560), 40) + 0.5) * float(s)
    x = (middles.astype(np.float32).view(np.int32) + rng.integers(-600, 600, middles.size).astype(np.int32)).view(np.float32)
    x[::97], x[::89] = np.inf, -np.inf
    want = np.clip(np.rint(x / s).astype(np.float64) + zero, 0, 255).astype(np.uint8)
    constants = {"s": np.array(s), "z": np.array(zero, np.uint8)}
    check(tmp_path, [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])], {"x": x}, constants, {"y": want})
