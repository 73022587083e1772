"""The file stays compact: what padding, folding and records may add to a model."""

import json

import numpy as np
import pytest
from onnx import TensorProto

from builder import Builder
from harness import linnet, reference, write_case


def convert(folder, model, inputs, *options):
    """Bytes of the ONNX file and of the .lnt, what `info` says of that; it has to compute what onnxruntime does."""
    case = write_case(folder, model, inputs, reference(model, inputs))
    done = linnet("convert", case / "model.onnx", "-o", case / "model.lnt", "--winograd-budget", "0", *options)
    assert done.returncode == 0, done.stderr
    for made in ("model.onnx", "model.lnt"):  # by the recorded case, by golden vectors
        done = linnet("verify", case / made, "--max-rel", "1e-4")
        assert done.returncode == 0, done.stdout + done.stderr
    info = json.loads(linnet("info", case / "model.lnt", "--check", "--json").stdout)
    return (case / "model.onnx").stat().st_size, (case / "model.lnt").stat().st_size, info


def detector(heads, channels, depthwise=False):
    """Convolutions over one image, and heads of so many features."""
    b = Builder(1)
    x = b.input("x", TensorProto.FLOAT, [1, channels, 9, 9])
    trunk = b.op("Relu", b.op("Conv", x, b.weight(channels, channels, 3, 3), b.weight(channels), pads=[1, 1, 1, 1]))
    for k, features in enumerate(heads):
        y = b.op("Conv", trunk, b.weight(features, channels, 1, 1), b.weight(features))
        if depthwise:
            y = b.op("Conv", y, b.weight(features, 1, 3, 3), b.weight(features), group=features, pads=[1, 1, 1, 1])
        b.output(y, f"y{k}", [1, features, 9, 9])
    return b.model("detector"), {"x": b.rng.standard_normal((1, channels, 9, 9)).astype(np.float32)}


@pytest.mark.parametrize("depthwise", [False, True])
def test_narrow_heads(tmp_path, depthwise):
    """A panel of one column is one sixteenth full: so many of them are made when the file is loaded."""
    onnx_bytes, lnt_bytes, info = convert(tmp_path, *detector([1, 1, 4, 10] * 3, 192, depthwise))
    assert lnt_bytes <= 1.02 * onnx_bytes
    assert 0 < info["restored_bytes"] <= 12 * (192 * 64 + 64 * 9)


def test_wide_layers_are_used_in_place(tmp_path):
    """One narrow head beside much that has no padding does not make a file too large."""
    onnx_bytes, lnt_bytes, info = convert(tmp_path, *detector([1], channels=256))
    assert lnt_bytes <= 1.02 * onnx_bytes
    assert info["restored_bytes"] == 0


def test_columns_of_a_wide_matrix(tmp_path):
    """257 columns are 272 in panels: a filter bank of one channel, its taps in a line."""
    b = Builder(2)
    x = b.input("x", TensorProto.FLOAT, [1, 1, 900])
    b.output(b.op("Conv", x, b.weight(257, 1, 512), strides=[160]), "y", [1, 257, 3])
    onnx_bytes, lnt_bytes, info = convert(tmp_path, b.model("bank"),
                                          {"x": b.rng.standard_normal((1, 1, 900)).astype(np.float32)})
    assert lnt_bytes <= 1.02 * onnx_bytes
    assert info["restored_bytes"] == 512 * 272 * 4
