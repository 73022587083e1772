"""Pow of every pair of types, with one exponent for all numbers and with one for each."""

import numpy as np
import pytest
from onnx import helper

from builder import Builder
from harness import check_against_reference

EXPONENTS = {"none": 0, "one": 1, "square": 2, "cube": 3, "fifth": 5, "inverse": -1, "mixed": None}


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("base, kind", [("int32", "int32"), ("int64", "int32"), ("float32", "int64"), ("float64", "float64"),
                                        ("float16", "int32"), ("int32", "float32"), ("float64", "int64")])
def test_powers(tmp_path, base, kind, exponent):
    b = Builder(9)
    power = EXPONENTS[exponent]
    shape = [3, 517]
    powers = b.rng.integers(-2 if "float" in base else 0, 6, shape) if power is None else np.full([1], power)
    x = b.rng.choice([-1, 1], shape) if power == -1 else b.rng.integers(-7, 8, shape)
    x = np.where(x == 0, 3, x)
    feeds = {"x": x.astype(base), "p": powers.astype(kind)}
    names = [b.input(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()]
    b.output(b.op("Pow", *names), "y", shape, helper.np_dtype_to_tensor_dtype(np.dtype(base)))
    check_against_reference(tmp_path, b.model("power"), feeds, "--max-rel", "1e-3" if base == "float16" else "1e-6")
