"""Reductions of many short rows, which are worked on as columns, of long rows and of columns, in every element type, running
sums, sums that an Einsum is, and normalization of short rows and over few columns: every level and several
threads against numpy, sums of floats within an error of their length."""

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
    ([40, 3, 5], [1]), ([2, 70, 2, 21], [0, 2]), ([150, 2, 2], [1]), ([3, 6, 7, 5, 4], [0, 2, 4]), ([2, 37, 9, 32], [1, 3]),
    ([3, 1, 50], [1]), ([5, 40, 70], [0, 2]), ([5, 18, 16], [1]), ([2, 23, 21], [1]), ([3, 2, 11, 90], [0, 2]),
    ([6, 3, 5, 16], [1, 3]), ([3, 4, 7, 100], [0, 3]), ([2, 3, 11, 250], [1, 3]),
    ([5, 333, 2], [1]), ([3, 7, 2], [1]), ([2, 18, 2], [0, 1]),
    ([90, 15], [1]), ([90, 16], [1]), ([5, 700], [1]), ([3, 2100], [1]), ([2, 40, 16], [0, 2]),
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
@pytest.mark.parametrize("shape, axis", [([37, 200], 1), ([16, 64], 1), ([2, 20, 65], 2), ([15, 3], 1),
                                         ([50, 1], 1), ([4, 9, 40], 1), ([4, 9, 8], 1)])
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


def check_node(folder, node, x, want, constants):
    dtype = element_type(x.dtype)
    model = model_of([node], [("x", dtype, x.shape)], [("y", dtype, None)], constants, microsoft=node.domain != "")
    case = write_case(folder, model, {"x": x}, [want.astype(x.dtype)])
    assert linnet("convert", case / "model.onnx", "-o", folder / "m.lnt").returncode == 0
    check_every_level(folder / "m.lnt", x, want.astype(x.dtype), rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [[3, 65, 7], [130, 1], [40, 24], [9, 25], [64, 4], [2, 3, 300], [70, 50]])
@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization", "SkipLayerNormalization"])
def test_layers(tmp_path, op, shape, dtype):
    rng = np.random.default_rng(1)
    x, skip = (rng.uniform(-3, 3, s).astype(dtype) for s in (shape, shape[1 if len(shape) > 2 else 0:]))
    if op == "SkipLayerNormalization" and len(shape) < 3:
        skip = rng.uniform(-3, 3, shape).astype(dtype)
    scale, bias, more = (rng.uniform(-1, 1, shape[-1:]).astype(dtype) for _ in range(3))
    t, names, constants = x.astype(np.float64), ["x", "scale", "bias"], {"scale": scale, "bias": bias}
    attributes = {"epsilon": 1e-3} if op == "SkipLayerNormalization" else {"epsilon": 1e-3, "axis": -1}
    if op == "SkipLayerNormalization":
        t = t + skip + more
        names, attributes["domain"] = ["x", "skip", "scale", "bias", "more"], "com.microsoft"
        constants |= {"skip": skip, "more": more}
    if op == "RMSNormalization":
        names, bias = names[:2], 0
        del constants["bias"]
    else:
        t = t - t.mean(-1, keepdims=True)
    want = t / np.sqrt(np.square(t).mean(-1, keepdims=True) + 1e-3) * scale + bias
    check_node(tmp_path, helper.make_node(op, names, ["y"], **attributes), x, want, constants)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [[3, 40, 2], [2, 5, 3, 1], [2, 30, 3, 4]])
def test_largest_of_small_images(tmp_path, shape, dtype):
    rng = np.random.default_rng(2)
    x = rng.uniform(-3, 3, shape)
    x[rng.random(shape) < 0.1] = np.nan
    x[0, 0] = -np.inf
    want = x.max(axis=tuple(range(2, x.ndim)), keepdims=True)
    check_node(tmp_path, helper.make_node("GlobalMaxPool", ["x"], ["y"]), x.astype(dtype), want, {})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape, axis", [([5, 301, 2], 1), ([3, 40, 7], 1), ([2, 9, 300], 1), ([70, 3, 1], 2), ([4, 130], 1),
                                         ([131, 6], 1), ([70, 16, 15], 1)])
@pytest.mark.parametrize("p", [1, 2])
def test_lengths(tmp_path, p, shape, axis, dtype):
    x = np.random.default_rng(2).uniform(-3, 3, shape).astype(dtype)
    x[:1] = 0
    length = np.linalg.norm(x.astype(np.float64), p, axis, keepdims=True)
    want = np.divide(x, length, out=np.zeros(shape), where=length != 0)
    check_node(tmp_path, helper.make_node("LpNormalization", ["x"], ["y"], p=p, axis=axis), x, want, {})


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("equation", ["bij->bi", "bij->bj", "bij->ij", "bij->jb", "bij->", "bij->b"])
def test_sums(tmp_path, equation, dtype):
    x = np.random.default_rng(3).integers(-9, 9, [20, 3, 17]).astype(dtype)
    check_node(tmp_path, helper.make_node("Einsum", ["x"], ["y"], equation=equation), x, np.einsum(equation, x), {})


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("equation, a, b", [
    ("bi,bj->bij", [9, 700], [9, 1]), ("bi,bj->bij", [9, 300], [9, 2]), ("bi,bj->bij", [70, 3], [70, 2]),
    ("bi,bj->ibj", [3, 1], [3, 40]), ("bq,kb->bqk", [2, 33], [3, 2]), ("ij,j->i", [700, 3], [3]),
    ("ij,j->i", [70, 31], [31]), ("bqhd,bkhd->bhqk", [5, 1, 8, 3], [5, 16, 8, 3]),
    ("abi,ia->ba", [2, 9, 5], [5, 2]), ("i,j->", [1], [1])])
def test_products_that_are_loops(tmp_path, equation, a, b, dtype):
    rng = np.random.default_rng(4)
    x, y = (rng.integers(-9, 9, shape).astype(dtype) for shape in (a, b))
    want = np.asarray(np.einsum(equation, x, y), dtype)
    check_node(tmp_path, helper.make_node("Einsum", ["x", "b"], ["y"], equation=equation), x, want, {"b": y})
