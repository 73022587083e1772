"""Mod of floats is C's fmod to the bit: near multiples of the divisor, with quotients that fit a float's digits and
quotients that do not, of every sign and size. Bytes divide as integers do. Shifts
by as many bits as a type has, or more, leave nothing."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from harness import check_against, check_against_reference

WAYS = (("--opt", "none"), ("--opt", "all", "--level", "scalar"), ("--opt", "all", "--level", "avx2"))


def operands():
    rng = np.random.default_rng(5)
    sizes = np.float32(2) ** rng.integers(-149, 100, 20000)
    b = (sizes * rng.uniform(1, 2, sizes.size)).astype(np.float32)
    a = (b * rng.integers(0, 2 ** rng.integers(1, 24, b.size)).astype(np.float32)).astype(np.float32)
    a = (a.view(np.int32) + rng.integers(-1, 2, a.size).astype(np.int32) * (a > 0)).view(np.float32)
    special = np.array([0, 1, 1e-45, 1e-40, 3e38, np.inf, 0.1, 7.5], np.float32)
    a = np.concatenate([a, np.repeat(special, 8), rng.uniform(0, 90, 32), [1e30] * 32]).astype(np.float32)
    b = np.concatenate([b, np.tile(special, 8), [np.inf] * 32, rng.uniform(1, 9, 32)]).astype(np.float32)
    return a * rng.choice([-1, 1], a.size).astype(np.float32), b * rng.choice([-1, 1], b.size).astype(np.float32)


def test_mod_of_floats(tmp_path):
    a, b = operands()
    nodes = [helper.make_node("Mod", ["a", "b"], ["y"], fmod=1), helper.make_node("Reciprocal", ["y"], ["sign"])]
    graph = helper.make_graph(
        nodes, "remainders", [helper.make_tensor_value_info(name, TensorProto.FLOAT, a.shape) for name in "ab"],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, a.shape) for name in ("y", "sign")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    check_against_reference(tmp_path, model, {"a": a, "b": b}, "--max-rel", "0", ways=WAYS)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_all_quotients_of_bytes(tmp_path, dtype):
    whole = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    a, b = (x.ravel() for x in np.meshgrid(whole, whole))
    fits = (b != 0) & ((a != -128) | (b != -1))
    a, b = a[fits], b[fits]
    nodes = [helper.make_node("Div", ["a", "b"], ["q"]), helper.make_node("Mod", ["a", "b"], ["m"]),
             helper.make_node("Mod", ["a", "b"], ["f"], fmod=1)]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(nodes, "quotients", [helper.make_tensor_value_info(name, kind, a.shape) for name in "ab"],
                              [helper.make_tensor_value_info(name, kind, a.shape) for name in "qmf"])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    model.ir_version = 8
    want = [np.trunc(a / b), np.mod(a, b), np.fmod(a, b)]
    check_against(tmp_path, model, {"a": a.astype(dtype), "b": b.astype(dtype)}, [x.astype(dtype) for x in want], ways=WAYS)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("divisor", [None, 1, -1, 3, -7, 10, 46341, 2**31 - 1, -(2**31)])
def test_quotients_at_every_bound(tmp_path, dtype, divisor):
    """Multiples of the divisor and their neighbors, of every size: numbers that doubles hold, and others."""
    rng, whole = np.random.default_rng(6), np.iinfo(dtype)
    for top in (2**20, 2**31, 2**53 - 9, whole.max):
        top = min(top, whole.max)
        b = rng.integers(1, int(rng.integers(2, top)), 3000) * rng.choice([-1, 1], 3000) if divisor is None else np.full(3000, divisor)
        near = rng.integers(-1, 2, 3000)
        a = [int(y) * int(k) + int(d) for y, k, d in zip(b, (rng.uniform(-1, 1, 3000) * top / np.abs(b)).astype(np.int64), near)]
        a = np.clip(np.array(a, object), max(-top, whole.min + 1), top).astype(dtype)
        want = [(abs(int(x)) // abs(int(y))) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b)]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        graph = helper.make_graph([helper.make_node("Div", ["a", "b"], ["q"])], "quotients",
                                  [helper.make_tensor_value_info(name, kind, a.shape) for name in "ab"],
                                  [helper.make_tensor_value_info("q", kind, a.shape)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
        check_against(tmp_path, model, {"a": a, "b": b.astype(dtype)}, [np.array(want, dtype)], ways=WAYS)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_shifts(tmp_path, dtype, direction):
    rng, bits = np.random.default_rng(6), np.iinfo(dtype).bits
    a = rng.integers(0, np.iinfo(dtype).max, 203, dtype, endpoint=True)
    b = rng.choice(np.array([*range(bits + 2), np.iinfo(dtype).max], dtype), a.size)
    inside = np.minimum(b, bits - 1).astype(dtype)
    want = np.where(b < bits, np.left_shift(a, inside) if direction == "LEFT" else np.right_shift(a, inside), 0).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(a.dtype)
    graph = helper.make_graph([helper.make_node("BitShift", ["a", "b"], ["y"], direction=direction)], "shifts",
                              [helper.make_tensor_value_info(name, kind, a.shape) for name in "ab"],
                              [helper.make_tensor_value_info("y", kind, a.shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    check_against(tmp_path, model, {"a": a, "b": b}, [want], ways=WAYS)
