"""A convolution that makes much of little, and the depthwise one or the pooling behind it that alone reads it: they run
together, line by line, unless the value between them is wanted. The same bits either way, on any number of threads."""

import json

import numpy as np
import pytest

from harness import import_package, linnet
from builder import Builder
from onnx import TensorProto, save

PLAIN = {"kernel": 1, "stride": 1, "pads": 0}
CASES = {  # input, channels between, the first one's attributes, the second one's, activation
    "stride 1": ([1, 10, 72, 41], 70, PLAIN, {"kernel": 3, "pads": 1}, "clip"),
    "stride 2": ([1, 10, 145, 41], 70, PLAIN, {"kernel": 3, "pads": 1, "stride": 2}, "clip"),
    "program": ([1, 24, 150, 33], 100, PLAIN, {"kernel": 5, "pads": 2}, "silu"),
    "batch": ([3, 20, 66, 30], 72, PLAIN, {"kernel": 3, "pads": [0, 1, 1, 0]}, "clip"),
    "images that end between strides": ([2, 20, 71, 30], 72, PLAIN, {"kernel": 3, "pads": 0, "stride": 3}, "silu"),
    "stride past the kernel": ([2, 12, 131, 37], 72, PLAIN, {"kernel": [1, 4], "pads": 0, "stride": [2, 3]}, "clip"),
    "dilation": ([1, 12, 140, 40], 69, PLAIN, {"kernel": 3, "pads": 3, "dilations": [3, 2]}, "clip"),
    "padding past the image": ([1, 12, 90, 40], 69, PLAIN, {"kernel": 3, "pads": [4, 0, 5, 3]}, "clip"),
    "stem": ([2, 3, 146, 101], 34, {"kernel": 3, "stride": 2, "pads": 1}, {"kernel": 3, "pads": 1}, "silu"),
    "wide stem": ([1, 3, 90, 1100], 24, {"kernel": 3, "stride": 2, "pads": 1}, {"kernel": 3, "pads": 1}, "clip"),
    "few channels": ([1, 16, 70, 60], 48, PLAIN, {"kernel": 3, "pads": 1, "stride": 2}, "clip"),
    "whole neighborhoods": ([1, 9, 40, 130], 70, {"kernel": 3, "stride": 1, "pads": 1}, {"kernel": 3, "pads": 1}, "clip"),
    "MaxPool": ([1, 3, 160, 101], 64, {"kernel": 3, "stride": 2, "pads": 1}, {"kernel": 3, "stride": 2, "pads": 1}, "clip"),
    "MaxPool of a batch": ([3, 20, 67, 41], 70, PLAIN, {"kernel": [2, 3], "stride": [3, 1], "pads": [1, 0, 0, 2]}, "silu"),
    "MaxPool, dilated": ([1, 10, 145, 41], 70, PLAIN, {"kernel": 3, "pads": 2, "dilations": [2, 3]}, "clip"),
    "AveragePool": ([2, 10, 80, 41], 70, PLAIN, {"kernel": 3, "pads": 1, "count_include_pad": 1}, "clip"),
    "AveragePool, joined lines": ([1, 10, 151, 41], 70, PLAIN, {"kernel": 5, "stride": 2, "pads": [4, 1, 3, 2]}, "clip"),
    "sum": ([1, 10, 90, 41], 70, PLAIN, {"kernel": 3, "pads": 1}, "sum"),
}


def convolution(b, x, channels, features, group, kernel, stride=1, pads=0, dilations=(1, 1)):
    kernel, strides = np.broadcast_to(kernel, 2).tolist(), np.broadcast_to(stride, 2).tolist()
    return b.op("Conv", x, b.weight(features, channels // group, *kernel), b.weight(features), group=group, strides=strides,
                pads=np.broadcast_to(pads, 4).tolist(), dilations=list(dilations))


def pooling(b, kind, x, kernel, stride=1, pads=0, **more):
    kernel, strides = np.broadcast_to(kernel, 2).tolist(), np.broadcast_to(stride, 2).tolist()
    return b.op(kind, x, kernel_shape=kernel, strides=strides, pads=np.broadcast_to(pads, 4).tolist(), **more)


def activation(b, kind, x):
    if kind == "silu":
        return b.op("Mul", x, b.op("Sigmoid", x))
    return b.op("Clip", x, -1.0, 2.0)


def make(folder, name, *options):
    """Writes the model, converted, and its input; gives the name and bytes of the value between."""
    shape, features, first, second, kind = CASES[name]
    b = Builder(3)
    x = convolution(b, b.input("x", TensorProto.FLOAT, shape), shape[1], shape[1], 1, 1)
    beside = convolution(b, x, shape[1], features, 1, 1) if kind == "sum" else None
    between = activation(b, kind, convolution(b, x, shape[1], features, 1, **first))
    if "Pool" in name:
        y = pooling(b, name.split(" ")[0].strip(","), between, **second)
    else:
        y = convolution(b, between, features, features, features, **second)
    y = b.op("Add", y, beside) if beside else activation(b, kind, y)
    b.output(convolution(b, y, features, 8, 1, 1), "y", [shape[0], 8, "h", "w"])
    save(b.model("lines"), folder / "m.onnx")
    np.save(folder / "x.npy", np.random.default_rng(1).standard_normal(shape).astype(np.float32))
    done = linnet("convert", folder / "m.onnx", "-o", folder / "m.lnt", "--keep", between, *options)
    assert done.returncode == 0, done.stderr
    return between


def run(folder, level, threads, *options):
    done = linnet("run", folder / "m.lnt", "--input", f"x={folder / 'x.npy'}", "--output", f"y={folder / 'y.npy'}", "--threads",
                  threads, *(("--level", level) if level else ()), *options)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "y.npy")


@pytest.mark.parametrize("name", CASES)
def test_same_bits(tmp_path, name):
    between = make(tmp_path, name)
    traced = linnet("bench", tmp_path / "m.lnt", "--runs", 1, "--threads", 1, "--trace").stdout
    assert " + " in traced, "the two must run together, or nothing is compared"
    for level in (None, "scalar", "avx2"):
        apart = run(tmp_path, level, 1, "--fetch", f"{between}={tmp_path / 'between.npy'}")
        assert apart.size and np.isfinite(apart).all() and np.ptp(apart) > 1
        for threads in (1, 2, 3, 4):
            assert np.array_equal(run(tmp_path, level, threads), apart), (level, threads)


def test_no_memory_between(tmp_path):
    between = make(tmp_path, "stride 2")
    run(tmp_path, None, 1, "--fetch", f"{between}={tmp_path / 'between.npy'}")
    between_bytes = np.load(tmp_path / "between.npy").nbytes
    info = json.loads(linnet("info", tmp_path / "m.lnt", "--json").stdout)
    assert info["arena_bytes"] < between_bytes


def test_multiply_adds(tmp_path):
    """They are counted of both."""
    between = make(tmp_path, "stride 1")
    shape, features = CASES["stride 1"][:2]
    done = linnet("bench", tmp_path / "m.lnt", "--runs", 1, "--trace", "--json")
    pixels = shape[2] * shape[3]
    assert json.loads(done.stdout)["multiply_adds"] == pixels * (10 * 10 + 10 * features + 9 * features + features * 8)
    assert between


TURNED = {  # input, output channels, groups, attributes: a Relayout reads what a convolution makes, or the other way round
    "made": ([2, 50, 80, 35], 72, 1, {"kernel": 2}),
    "made, an odd line": ([1, 49, 145, 37], 63, 1, {"kernel": 2}),
    "made, few features": ([3, 12, 301, 34], 15, 1, {"kernel": 2}),
    "read": ([3, 72, 95, 33], 72, 72, {"kernel": 3, "stride": 2, "pads": 1}),
    "read, the ring's lines apart": ([1, 33, 371, 37], 33, 33, {"kernel": 5, "stride": 3, "pads": [0, 2, 4, 1]}),
}


@pytest.mark.parametrize("name", TURNED)
def test_relayout_beside_a_convolution(tmp_path, name):
    """Without memory patterns nothing runs line by line."""
    package = import_package()
    shape, features, group, how = TURNED[name]
    b = Builder(3)
    y = convolution(b, b.input("x", TensorProto.FLOAT, shape), shape[1], features, group, **how)
    b.output(y, "y", [shape[0], features, "h", "w"])
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    model = package.convert(b.model("turned").SerializeToString())
    (tmp_path / "m.lnt").write_bytes(model)
    np.save(tmp_path / "x.npy", x)
    traced = linnet("bench", tmp_path / "m.lnt", "--input", f"x={tmp_path / 'x.npy'}", "--runs", 1, "--threads", 4, "--trace").stdout
    assert " + " in traced, "the two must run together, or nothing is compared"
    for level in ("", "scalar", "avx2"):
        results = []
        for threads, together in ((1, False), (1, True), (2, True), (3, True), (4, True)):
            options = package.SessionOptions()
            options.level, options.intra_op_num_threads, options.enable_mem_pattern = level, threads, together
            session = package.InferenceSession(model, options)
            results.append(session.run(None, {"x": x})[0])
            np.testing.assert_array_equal(results[-1], results[0])
            results.append(session.run(None, {"x": x[..., ::-1]})[0])
            np.testing.assert_array_equal(results[-1], results[1])
        assert np.ptp(results[0]) > 1 and not np.array_equal(results[0], results[1])
