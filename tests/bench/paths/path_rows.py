"""The rows of vector-paths: those of grid.py in the families that this instrument holds to vectors, in every element type that
ONNX lets the operator have, of a size at which a call costs nothing beside its elements."""

import copy
import math
import pathlib
import sys

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ops"))

import grid  # noqa: E402
from grid import BOOL, F16, F32, I8, I32, I64, U8, Input, fixed  # noqa: E402

TYPES = (F32, F16, I8, U8, I32, I64)
FAMILIES = {"elementwise": "elementwise", "elementwise, integer": "elementwise", "compare and select": "compare and select",
            "cast": "cast", "reduce": "reduce", "arg, cumulative, sort": "arg and cumulative", "pool": "pool", "norm": "norm",
            "softmax": "softmax", "move": "move", "gather and scatter": "gather"}
LEFT = {"TopK", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "NonZero", "Compress", "OneHot", "Unique", "Range",
        "ConstantOfShape", "EyeLike", "ReverseSequence"}  # sorts, positions one by one, and what has no elements to read
FEWEST, MOST = 4000, 250_000  # elements
WIDENED = 4  # bytes of what halves are computed with as


class PathRow:
    """A row of the grid in one element type: `key` says operator and path, without the type."""

    def __init__(self, row, dtype, label):
        self.row, self.dtype, self.family, self.op, self.label = row, dtype, FAMILIES[row.family], row.op, label
        self.key = f"{row.op} {label}".strip()
        self.name = f"{self.key} {dtype}"

    def width(self):
        """Bytes of an element of the widest operand that has the elements of a vector; halves are computed with as floats."""
        kinds = {i.dtype for i in self.row.inputs if i is not None and not i.constant and i.value is None}
        kinds |= {self.row.attributes["to"]} if self.op == "Cast" else set()
        sizes = [np.dtype(k if isinstance(k, str) else onnx.helper.tensor_dtype_to_np_dtype(k)).itemsize for k in kinds]
        return max([*sizes, WIDENED if self.halves() else 1])

    def halves(self):
        """Operands that are halves where the row computes with them, its result one of them."""
        computes = self.dtype == F16 and self.family not in ("move", "gather")
        return 1 + sum(i is not None and i.dtype == F16 for i in self.row.inputs) if computes else 0

    def elements(self, inputs, outputs):
        """What instructions are divided by: the larger side, but for what picks some elements out of many, or reads them often."""
        if self.op in ("Gather", "Slice"):
            return sum(outputs)
        if "kernel_shape" in self.row.attributes:
            return outputs[0] * math.prod(self.row.attributes["kernel_shape"])
        return max(*inputs, sum(outputs))

    def input_counts(self):
        return [math.prod(np.shape(i.value) if i.value is not None else i.shape) for i in self.row.inputs if i is not None]


def without_type(row, dtype):
    """The path: what tells a row of its operator from others; of two operands how their extents meet."""
    words = row.name.removeprefix(row.op).replace(f" {dtype}", "", 1).strip(" ,").split(" ")
    return words[0] if words[0] in grid.FORMS else " ".join(words)


def main_type(row):
    """Of the operands that the row is about: the first that is neither a condition nor positions."""
    kinds = [i.dtype for i in row.inputs if i is not None and i.value is None]
    return next((k for k in kinds if k != BOOL), BOOL)


def allowed(row):
    """Element types that ONNX lets the main operand have."""
    if row.domain:
        return {main_type(row)}
    schema = onnx.defs.get_schema(row.op, grid.OPSET)
    position = next(k for k, i in enumerate(row.inputs) if i is not None and i.value is None and i.dtype == main_type(row))
    formal = schema.inputs[min(position, len(schema.inputs) - 1)]
    names = {"float": F32}
    return {names.get(t[7:-1], t[7:-1]) for t in formal.types}


def retyped(row, old, new):
    """The row with each operand of its main type in another; values that are fixed become that type, too."""
    made = copy.copy(row)
    made.inputs = [None if i is None else retyped_input(i, old, new) for i in row.inputs]
    made.name = f"{row.op} {new} {without_type(row, old)}"
    return made


def retyped_input(given, old, new):
    if given.value is not None:
        same = str(given.value.dtype) == old and given.value.dtype != np.int64
        return fixed(np.asarray(given.value).astype(new), new) if same else given
    if given.dtype != old:
        return given
    low, high = (given.low, given.high) if (old[0] == "f") == (new[0] == "f") else grid.usual_range(new)
    if new[0] != "f":
        low, high = max(low, 1) if given.low > 0 else low, max(high, 1)
    return Input(given.shape, new, low, high, constant=given.constant)


def size(row):
    return max(math.prod(np.shape(i.value) if i.value is not None else i.shape) for i in row.inputs if i is not None)


def taken(row):
    if row.family not in FAMILIES or row.op in LEFT:
        return False
    return FEWEST <= size(row) <= MOST


def variants(row):
    """The row in each type; casts name two types of their own."""
    old = main_type(row)
    if row.op == "Cast":
        to = str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(row.attributes["to"])))
        return [PathRow(row, old, f"to {to}")] if old in (*TYPES, BOOL) and to in (*TYPES, BOOL) and size(row) == 100_000 else []
    if old not in (*TYPES, BOOL):
        return []
    label = without_type(row, old)
    if old == BOOL:
        return [PathRow(row, BOOL, label)]
    return [PathRow(retyped(row, old, new), new, label) for new in TYPES if new in allowed(row)]


def more(g):
    """What the grid has only larger: rows of a table, and elements of one."""
    rng = np.random.default_rng(5)
    for dtype in TYPES:
        for label, shape, n, axis in (("rows of 384", [500, 384], 128, 0), ("rows of 16", [5000, 16], 2000, 0),
                                      ("elements", [20000], 5000, 0)):
            g.add("gather and scatter", "Gather", f"{dtype} {label}", Input(shape, dtype),
                  Input([], value=rng.integers(0, shape[axis], n)), axis=axis)


def rows():
    """One for each path and type."""
    extra = grid.Grid()
    more(extra)
    found = {}
    for row in grid.rows() + extra.rows:
        if taken(row):
            for variant in variants(row):
                found.setdefault(variant.name, variant)
    return list(found.values())


def sample(rows):
    """One for each operator, in the types whose kernels are different programs."""
    found = {}
    for row in rows:
        if row.dtype in (F32, F16, I8, I64, BOOL):
            found.setdefault((row.op, row.dtype), row)
    return list(found.values())
