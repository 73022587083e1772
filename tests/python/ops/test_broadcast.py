"""Elementwise operators whose operands are repeated along rows, columns or both, of rows that are no whole vectors, and
results that take an operand's memory."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from builder import Builder
from harness import check_against_reference

FORMS = {"same": ([6, 301], [6, 301]), "outer": ([9, 1], [1, 301]), "column": ([5, 1027], [5, 1]), "row": ([5, 1027], [1027]),
         "line": ([1003], [1003]), "middle": ([3, 1, 4, 259], [3, 5, 1, 259]), "long columns": ([3, 8500], [3, 1]),
         "narrow": ([300, 3], [300, 1]), "short planes": ([5, 33, 1, 7], [33, 1, 1]), "short rows": ([7, 65, 13], [7, 1, 13]),
         "short outer": ([4, 67, 1], [4, 1, 9]), "blocks": ([6, 130, 2, 20], [2, 1]), "blocks of both": ([70, 1, 5, 3], [1, 2, 5, 3]),
         "planes in turns": ([23, 3, 5, 2], [23, 1, 5, 1]), "threes": ([301, 3, 4], [301, 1, 4]), "nothing": ([0, 301], [1, 301])}
NUMBERS = ["float32", "float16", "uint8", "int64"]


def filled(rng, shape, dtype):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    low, high = (0, 9) if dtype[0] == "u" else (-9, 9)
    return rng.integers(low, high, shape).astype(dtype)


def operands(b, shapes, dtypes):
    """Inputs that are computed first, so that a result may take their memory."""
    values = {f"x{i}": filled(b.rng, shape, dtype) for i, (shape, dtype) in enumerate(zip(shapes, dtypes))}
    names = [b.input(name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for name, v in values.items()]
    return [b.op("Transpose", b.op("Transpose", n, perm=p[::-1]), perm=np.argsort(p[::-1]).tolist())
            for n, v in zip(names, values.values()) for p in [list(range(v.ndim))]], values


def check(folder, b, result, dtype, values):
    shape = list(np.broadcast_shapes(*(v.shape for v in values.values())))
    b.output(result, "y", shape, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    check_against_reference(folder, b.model("broadcast"), values)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("form", FORMS)
def test_both_orders(tmp_path, form, dtype):
    b = Builder(3)
    names, values = operands(b, FORMS[form], [dtype] * 2)
    check(tmp_path, b, b.op("Sub", *names), dtype, values)
    b = Builder(4)
    names, values = operands(b, FORMS[form][::-1], [dtype] * 2)
    check(tmp_path, b, b.op("Mul", *names), dtype, values)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("form", FORMS)
def test_where(tmp_path, form, dtype):
    a, c = FORMS[form]
    for shapes in ((a, a, c), (c, a, c), (a, c, c)):
        b = Builder(5)
        names, values = operands(b, shapes, ["bool", dtype, dtype])
        check(tmp_path, b, b.op("Where", *names), dtype, values)


@pytest.mark.parametrize("op", ["Exp", "Abs", "Sigmoid", "Softplus"])
@pytest.mark.parametrize("n", [7, 8, 9, 511, 520, 1003])
def test_a_line(tmp_path, op, n):
    b = Builder(6)
    names, values = operands(b, [[n]], ["float32"])
    b.output(b.op("Add", b.op(op, names[0]), 1.0), "y", [n])
    check_against_reference(tmp_path, b.model("line"), values)
    b = Builder(7)
    names, values = operands(b, [[n]], ["float32"])
    b.output(b.op(op, names[0]), "y", [n])
    check_against_reference(tmp_path, b.model("line"), values)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize("shape, repeats", [([2, 9, 16, 7], [4, 1, 2, 3]), ([5, 48, 1], [6, 1, 20]), ([3, 4, 70], [3, 5, 1]),
                                            ([3, 700, 5], [4, 3, 2]), ([3, 900, 25], [2, 1, 3]), ([901, 100], [3, 4]),
                                            ([1, 10, 33], [60, 3, 2]), ([42, 4, 100], [1, 10, 3]), ([300, 33], [40, 2])])
def test_tiles(tmp_path, shape, repeats, dtype):
    b = Builder(8)
    names, values = operands(b, [shape], [dtype])
    b.output(b.op("Tile", names[0], np.array(repeats, np.int64)), "y", [n * r for n, r in zip(shape, repeats)],
             helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    check_against_reference(tmp_path, b.model("tiles"), values)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
@pytest.mark.parametrize("rows", [4, 5, 8, 16, 24, 77])
@pytest.mark.parametrize("columns", [2, 4, 7, 8, 16, 77])
def test_small_matrices_turned(tmp_path, rows, columns, dtype):
    b = Builder(9)
    values = {"x": filled(b.rng, [37, columns, rows], dtype)}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    b.output(b.op("Transpose", b.input("x", kind, [37, columns, rows]), perm=[0, 2, 1]), "y", [37, rows, columns], kind)
    check_against_reference(tmp_path, b.model("turned"), values)


@pytest.mark.parametrize("lines", [2, 3, 5])
@pytest.mark.parametrize("columns", [3, 12, 20, 37, 64, 70])
def test_short_lines_take_turns(tmp_path, lines, columns):
    b = Builder(10)
    values = {"x": filled(b.rng, [lines, 600, columns], "uint8")}
    b.output(b.op("Transpose", b.input("x", TensorProto.UINT8, [lines, 600, columns]), perm=[1, 0, 2]), "y", [600, lines, columns],
             TensorProto.UINT8)
    check_against_reference(tmp_path, b.model("lines"), values)


@pytest.mark.parametrize("op", ["And", "Or"])
@pytest.mark.parametrize("shapes", [([6, 700], [6, 1]), ([1, 1], [6, 700]), ([6, 1], [2, 6, 600]), ([1], [1])])
def test_bools_by_one(tmp_path, op, shapes):
    b = Builder(11)
    names, values = operands(b, shapes, ["bool", "bool"])
    b.output(b.op(op, *names), "y", list(np.broadcast_shapes(*shapes)), TensorProto.BOOL)
    check_against_reference(tmp_path, b.model("bools"), values)
