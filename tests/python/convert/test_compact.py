"""The file stays compact: what padding, folding and records may add to a model."""

import json

import numpy as np
import pytest
from onnx import TensorProto

from builder import Builder
from harness import SHARED, linnet, reference, write_case


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
    x = b.input("x", TensorProto.FLOAT, [1, 1, "samples"])
    b.output(b.op("Conv", x, b.weight(257, 1, 512), strides=[160]), "y", [1, 257, "frames"])
    onnx_bytes, lnt_bytes, info = convert(tmp_path, b.model("bank"),
                                          {"x": b.rng.standard_normal((1, 1, 900)).astype(np.float32)})
    assert lnt_bytes <= 1.02 * onnx_bytes
    assert info["restored_bytes"] == 512 * 272 * 4
    assert "544.0 KB for constants that are packed when the file is loaded" in linnet("info", tmp_path / "model.lnt").stdout


def enhancer(frames=(2, 4, 10)):
    """A frame of a spectrum, as streaming enhancers are exported: bands by a filter bank, dilated depthwise convolutions
    over caches whose slices are assigned by ScatterND, a GRU, and back. Indices are worked out by Range and Expand."""
    b = Builder(3)
    x = b.input("x", TensorProto.FLOAT, [1, 1, 257])
    caches = [b.input(f"cache{k}", TensorProto.FLOAT, [1, 8, 16, 33]) for k in range(len(frames))]
    bands = b.op("MatMul", x, b.weight(257, 33))
    y = b.op("Conv", b.op("Reshape", bands, [1, 1, 1, 33]), b.weight(8, 1, 1, 3), pads=[0, 1, 0, 1])
    for k, n in enumerate(frames):
        begin, axes = 16 - n, (1, 8, n, 33)
        ranges = [b.op("Unsqueeze", b.op("Reshape", b.op("Range", *([np.array(c) for c in (first, first + extent, 1)])),
                                         [extent if j == i else 1 for j in range(4)]), [-1])
                  for i, (extent, first) in enumerate(zip(axes, (0, 0, begin, 0)))]
        indices = b.op("Concat", *[b.op("Expand", r, [*axes, 1]) for r in ranges], axis=-1)
        rows = b.op("Expand", y, [1, 8, n, 33])
        cache = b.op("ScatterND", caches[k], indices, rows)
        b.output(cache, f"next{k}", [1, 8, 16, 33])
        deep = b.op("Conv", cache, b.weight(8, 1, 3, 3), group=8, dilations=[n // 2, 1], pads=[0, 1, 0, 1])
        y = b.op("Relu", b.op("Slice", deep, [0], [1], [2]))
    flat = b.op("Reshape", y, [1, 1, 8 * 33])
    hidden, _ = b.op("GRU", flat, b.weight(1, 96, 264), b.weight(1, 96, 32), outputs=2, hidden_size=32)
    b.output(b.op("MatMul", b.op("Reshape", hidden, [1, 1, 32]), b.weight(32, 257)), "y", [1, 1, 257])
    fed = {"x": b.rng.standard_normal((1, 1, 257)).astype(np.float32)}
    fed |= {c: b.rng.standard_normal((1, 8, 16, 33)).astype(np.float32) for c in caches}
    return b.model("enhancer"), fed


def test_assigned_slices(tmp_path):
    """What indices of slices say is in the places of the slices: no table of theirs is left."""
    onnx_bytes, lnt_bytes, info = convert(tmp_path, *enhancer())
    assert "ScatterND" not in info["operators"]
    assert lnt_bytes <= 1.02 * onnx_bytes


# Models that hold their weights; the light ones make theirs by ConstantOfShape.
SHARED_MODELS = [p.parent for p in sorted((SHARED / "models").glob("*/model.onnx")) if not p.parent.name.startswith("light_")]


@pytest.mark.parametrize("folder", SHARED_MODELS, ids=lambda p: p.name)
def test_real_models(tmp_path, folder):
    """Without Winograd's transform a file is about as large as its model."""
    done = linnet("convert", folder / "model.onnx", "-o", tmp_path / "m.lnt", "--winograd-budget", "0")
    assert done.returncode == 0, done.stderr
    onnx_bytes = (folder / "model.onnx").stat().st_size
    assert (tmp_path / "m.lnt").stat().st_size <= (1.02 if onnx_bytes > 100_000 else 1.2) * onnx_bytes


@pytest.mark.parametrize("folder", SHARED_MODELS, ids=lambda p: p.name)
def test_winograd_within_its_budget(tmp_path, folder):
    """What it makes a file grow by is at most what it may."""
    size = {}
    for percent in (0, 15):
        done = linnet("convert", folder / "model.onnx", "-o", tmp_path / "m.lnt", "--winograd-budget", percent)
        assert done.returncode == 0, done.stderr
        size[percent] = (tmp_path / "m.lnt").stat().st_size
    assert size[15] <= 1.15 * size[0]
