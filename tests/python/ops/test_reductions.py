"""Reductions of many short rows, which are worked on as columns, of long rows and of columns, in every element type, and running
sums: every level and several threads against numpy, sums of floats within an error of their length."""

import numpy as np
import pytest
from onnx import helper

from harness import linnet, write_case
from linnet_ctypes import check_every_level
from small_int8 import element_type, model_of

SHAPES = [  # shape, axes
    ([16, 2], [1]), ([700, 3], [1]), ([333, 12], [1]), ([70, 31], [1]), ([70, 32], [1]), ([70, 33], [1]), ([15, 12], [1]),
    ([3, 5, 40, 7], [1, 3]), ([4, 17, 9], [0, 2]), ([5, 20, 6], [2]), ([3, 130], [1]), ([2, 1003], [1]), ([9, 784], [1]),
    ([7, 100, 8], [1]), ([60, 5], [0]), ([4, 3, 9, 130], [0, 2]), ([2, 40, 600], [1]),
]
NUMPY = {"Sum": np.sum, "Mean": np.mean, "Max": np.max, "Min": np.min, "Prod": np.prod,
         "L1": lambda x, **k: np.abs(x).sum(**k), "L2": lambda x, **k: np.sqrt(np.square(x).sum(**k)),
         "SumSquare": lambda x, **k: np.square(x).sum(**k), "LogSum": lambda x, **k: np.log(x.sum(**k)),
         "LogSumExp": lambda x, **k: np.log(np.exp(x).sum(**k))}
EXACT = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "SumSquare"]  # of integers
EPSILON = {"float64": 2e-16, "float16": 1e-3}  # float32's: 1.2e-7


def numbers(rng, kind, dtype, shape):
    """Floats whose reduction is one, too."""
    if kind == "Prod":
        return rng.uniform(0.9, 1.1, shape)
    x = rng.uniform(0.5, 1.5, shape) if kind == "LogSum" else rng.uniform(-3, 3, shape)
    return x / 32 if dtype == np.float16 else x


def reduced(folder, kind, x, axes):
    axes = tuple(axes)
    if x.dtype.kind == "f":
        want = NUMPY[kind](x.astype(np.longdouble), axis=axes, keepdims=True).astype(x.dtype)
    elif kind == "Mean":
        want = np.trunc(np.mean(x.astype(np.float64), axis=axes, keepdims=True)).astype(x.dtype)
    else:
        want = NUMPY[kind](x, axis=axes, keepdims=True).astype(x.dtype)
    dtype = element_type(x.dtype)
    node = helper.make_node(f"Reduce{kind}", ["x", "axes"], ["y"])
    model = model_of([node], [("x", dtype, x.shape)], [("y", dtype, None)], {"axes": np.array(axes, np.int64)})
    case = write_case(folder, model, {"x": x}, [want])
    assert linnet("convert", case / "model.onnx", "-o", folder / "m.lnt").returncode == 0
    return want


def check(folder, kind, x, axes):
    want = reduced(folder, kind, x, axes)
    count = x.size // want.size
    error = EPSILON.get(str(x.dtype), 1.2e-7) * 4 * count**0.5 if x.dtype.kind == "f" else 0
    check_every_level(folder / "m.lnt", x, want, rtol=error, atol=error)


@pytest.mark.parametrize("kind", NUMPY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_floats(tmp_path, kind, dtype):
    for k, (shape, axes) in enumerate(SHAPES):
        check(tmp_path, kind, numbers(np.random.default_rng(k), kind, dtype, shape).astype(dtype), axes)


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_integers(tmp_path, kind, dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    if kind == "Mean" and high > 2**40:  # numpy's mean is of doubles
        low, high = low >> 20, high >> 20
    for k, (shape, axes) in enumerate(SHAPES):
        check(tmp_path, kind, np.random.default_rng(k).integers(low, high, shape, dtype), axes)


@pytest.mark.parametrize("kind", ["Max", "Min"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_nan_and_infinity(tmp_path, kind, dtype):
    """A NaN anywhere in a row is its result; infinities are numbers."""
    for k, (shape, axes) in enumerate(SHAPES):
        rng = np.random.default_rng(k)
        x = rng.uniform(-3, 3, shape)
        x[rng.random(shape) < 0.05] = np.nan
        x[rng.random(shape) < 0.05] = -np.inf if kind == "Max" else np.inf
        check(tmp_path, kind, np.copysign(x, rng.uniform(-1, 1, shape)).astype(dtype), axes)


@pytest.mark.parametrize("kind", ["Max", "Min"])
def test_bools(tmp_path, kind):
    for k, (shape, axes) in enumerate(SHAPES):
        check(tmp_path, kind, np.random.default_rng(k).random(shape) < (0.05 if kind == "Max" else 0.95), axes)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int32, np.int64])
@pytest.mark.parametrize("shape, axis", [([37, 200], 1), ([16, 64], 1), ([2, 20, 65], 2), ([15, 3], 1), ([50, 1], 1), ([4, 9, 40], 1)])
def test_running_sums(tmp_path, dtype, shape, axis, reverse):
    """Along the last axis sixteen rows are turned into columns, in pieces."""
    x = np.random.default_rng(axis).integers(-4, 5, shape).astype(dtype)
    turned = np.flip(x, axis) if reverse else x
    want = np.cumsum(turned, axis, dtype=dtype)
    want = np.ascontiguousarray(np.flip(want, axis) if reverse else want)
    kind = element_type(x.dtype)
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], reverse=reverse)
    case = write_case(tmp_path, model_of([node], [("x", kind, shape)], [("y", kind, None)], {"axis": np.array(axis)}), {"x": x}, [want])
    assert linnet("convert", case / "model.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    check_every_level(tmp_path / "m.lnt", x, want, rtol=0, atol=0)
