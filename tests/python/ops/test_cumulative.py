"""CumSum and CumProd along every axis, many sequences side by side and few, forward and in reverse, exclusive or not, in every
element type: every level and several threads against numpy."""

import numpy as np
import pytest
from onnx import helper

from harness import linnet, write_case
from linnet_ctypes import check_every_level
from small_int8 import element_type, model_of

SHAPES = [([70, 45], 1), ([16, 1], 1), ([15, 33], 1), ([129, 16], 1), ([3, 50, 17], 1), ([40, 300], 0), ([2, 9, 5], 1), ([33], 0),
          ([2, 3, 8, 19], -1), ([1, 700], 1), ([9, 1, 30], 1), ([3, 50, 7], 1), ([60, 13], 0), ([4, 20, 42], 1)]
FLOATS = {np.float32: 1e-5, np.float64: 1e-13, np.float16: 2e-3}
INTEGERS = [np.int8, np.uint16, np.int32, np.int64]


def cumulated(op, x, axis, exclusive, reverse):
    run = np.cumsum if op == "CumSum" else np.cumprod
    x = np.flip(x, axis) if reverse else x
    y = run(x, axis=axis, dtype=x.dtype)
    if exclusive:
        first = np.full_like(np.take(y, [0], axis), op == "CumProd")
        y = np.concatenate([first, np.delete(y, -1, axis)], axis)
    return np.flip(y, axis) if reverse else y


def check(folder, op, x, axis, exclusive, reverse, tolerance=0.0):
    wide = x.astype(np.float64) if x.dtype.kind == "f" else x
    want = cumulated(op, wide, axis, exclusive, reverse).astype(x.dtype)
    node = helper.make_node(op, ["x", "a"], ["y"], exclusive=exclusive, reverse=reverse)
    dtype = element_type(x.dtype)
    model = model_of([node], [("x", dtype, x.shape)], [("y", dtype, None)], {"a": np.array(axis)}, opset=26 if op == "CumProd" else 21)
    case = write_case(folder, model, {"x": x}, [want])
    assert linnet("convert", case / "model.onnx", "-o", folder / "m.lnt").returncode == 0
    check_every_level(folder / "m.lnt", x, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("exclusive, reverse", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_floats(tmp_path, op, exclusive, reverse):
    for dtype, tolerance in FLOATS.items():
        for k, (shape, axis) in enumerate(SHAPES):
            low, high = (-1, 1) if op == "CumSum" else (0.98, 1.02)
            x = np.random.default_rng(k).uniform(low, high, shape).astype(dtype)
            check(tmp_path, op, x, axis, exclusive, reverse, tolerance * 30)


@pytest.mark.parametrize("exclusive, reverse", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_integers_wrap(tmp_path, op, exclusive, reverse):
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        for k, (shape, axis) in enumerate(SHAPES):
            x = np.random.default_rng(k).integers(info.min, info.max, shape, dtype, endpoint=True)
            check(tmp_path, op, x, axis, exclusive, reverse)


@pytest.mark.parametrize("rows, columns", [(2, 20), (20, 20), (100, 20), (20, 7)])
def test_the_sign_of_zero_is_kept_in_any_number_of_sequences(tmp_path, rows, columns):
    x = np.full((rows, columns), -0.0, np.float32)
    node = helper.make_node("CumSum", ["x", "a"], ["y"])
    for axis in (0, 1):
        model = model_of([node], [("x", 1, x.shape)], [("y", 1, None)], {"a": np.array(axis)})
        case = write_case(tmp_path, model, {"x": x}, [x])
        assert linnet("convert", case / "model.onnx", "-o", tmp_path / "m.lnt").returncode == 0
        done = linnet("run", tmp_path / "m.lnt", "--input", f"x={case / 'test_data_set_0/input_0.pb'}", "--output-dir", tmp_path / "out")
        assert done.returncode == 0, done.stderr
        assert np.signbit(np.load(next((tmp_path / "out").glob("*.npy")))).all()
