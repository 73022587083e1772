"""MatMul and Gemm of double and integers, and of halves that are not constant: every level, few rows and many, columns that
fill no panel, matrices of B that several entries of a batch share."""

import numpy as np
import pytest
from onnx import helper

from harness import linnet, write_case
from linnet_ctypes import check_every_level
from small_int8 import element_type, model_of

RNG = np.random.default_rng(3)


def numbers(dtype, *shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return RNG.uniform(-1, 1, shape).astype(dtype)
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype)


def converted(folder, op, x, constants, want, **attributes):
    dtype = element_type(x.dtype)
    model = model_of([helper.make_node(op, ["x", *constants], ["y"], **attributes)], [("x", dtype, x.shape)], [("y", dtype, None)],
                     constants)
    case = write_case(folder, model, {"x": x}, [want])
    assert linnet("convert", case / "model.onnx", "-o", folder / "m.lnt").returncode == 0
    return folder / "m.lnt"


def close(dtype):
    return {"float64": {"rtol": 1e-12, "atol": 1e-12}, "float16": {"rtol": 2e-3, "atol": 2e-2}}.get(str(np.dtype(dtype)),
                                                                                                  {"rtol": 0, "atol": 0})


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64, np.uint32, np.uint64, np.float16])
@pytest.mark.parametrize("m, k, n", [(1, 40, 7), (3, 129, 33), (4, 64, 64), (21, 57, 65), (50, 300, 16), (17, 1, 1), (2, 0, 5),
                                     (199, 520, 37), (7, 1030, 9), (40, 600, 31), (20, 900, 5), (3, 2, 3), (70, 1, 300)])
def test_matmul(tmp_path, dtype, m, k, n):
    x, b = numbers(dtype, m, k), numbers(dtype, k, n)
    with np.errstate(over="ignore"):
        want = (x.astype(np.float32) @ b.astype(np.float32)).astype(dtype) if dtype == np.float16 else x @ b
    check_every_level(converted(tmp_path, "MatMul", x, {"b": b}, want), x, want, **close(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
@pytest.mark.parametrize("left, right", [([4, 20, 30], [30, 9]), ([2, 3, 5, 30], [3, 30, 17]), ([30], [3, 30, 8]), ([3, 19, 30], [30])])
def test_batches(tmp_path, dtype, left, right):
    x, b = numbers(dtype, *left), numbers(dtype, *right)
    want = np.matmul(x, b)
    check_every_level(converted(tmp_path, "MatMul", x, {"b": b}, want), x, want, **close(dtype))


@pytest.mark.parametrize("m", [2, 40])
@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("c", [[], [23], [1, 23], None])
def test_gemm(tmp_path, m, trans_a, trans_b, c):
    x, b = numbers(np.float64, m, 31), numbers(np.float64, 31, 23)
    constants = {"b": b.T.copy() if trans_b else b}
    want = 0.5 * (x @ b)
    if c is not None:
        constants["c"] = numbers(np.float64, *c)
        want = want + 2 * constants["c"]
    x = x.T.copy() if trans_a else x
    lnt = converted(tmp_path, "Gemm", x, constants, want, transA=trans_a, transB=trans_b, alpha=0.5, beta=2.0)
    check_every_level(lnt, x, want, **close(np.float64))
