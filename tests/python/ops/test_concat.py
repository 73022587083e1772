"""Inputs of a Concat are computed in its output where they can be: the numbers are onnxruntime's and those of a plan
that lets no value share memory, on any number of threads, and the trace tells what had to be copied."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from harness import check_against_reference, import_package, linnet, reference
from builder import Builder

WAYS = (("--opt", "none"), ("--opt", "all"), ("--opt", "all", "--threads", 3), ("--opt", "all", "--level", "scalar"),
        ("--opt", "all", "--level", "avx2"))
CHANNELS = 24


@pytest.fixture(scope="module")
def package():
    return import_package()


class Net(Builder):
    """Convolutions that read t, an image of CHANNELS channels that is stored channels-last. It takes a lot of memory to make
    t, unless that shall be scarce."""

    def __init__(self, batch, extents, scarce=False):
        super().__init__(3)
        self.extents, self.shape = extents, (batch, CHANNELS, *extents)
        x = self.input("x", TensorProto.FLOAT, self.shape)
        wide = CHANNELS if scarce else 1000
        self.t = self.op("Relu", self.conv(self.conv(x, CHANNELS, wide, 1), wide, CHANNELS, 1 if scarce else 3))
        self.feeds = {"x": np.random.default_rng(5).standard_normal(self.shape).astype(np.float32)}

    def conv(self, x, c_in, c_out, kernel, groups=1, dilation=1):
        n = len(self.extents)
        return self.op("Conv", x, self.weight(c_out, c_in // groups, *[kernel] * n), self.weight(c_out, scale=0.1),
                       group=groups, pads=[kernel // 2 * dilation] * 2 * n, dilations=[dilation] * n)

    def branch(self, kind):
        """A value made from t, and how many channels it has."""
        t = self.t
        if kind == "pointwise":
            return self.op("Relu", self.conv(t, CHANNELS, 40, 1)), 40
        if kind == "wide":
            return self.op("Clip", self.conv(t, CHANNELS, 17, 3), 0.0, 6.0), 17
        if kind == "few":
            return self.conv(t, CHANNELS, 3, 3), 3
        if kind == "grouped":
            return self.conv(t, CHANNELS, 32, 3, groups=2), 32
        if kind == "depthwise":
            return self.op("Relu", self.conv(t, CHANNELS, CHANNELS, 3, groups=CHANNELS)), CHANNELS
        if kind == "shared":
            return self.conv(t, CHANNELS, 2 * CHANNELS, 3, groups=CHANNELS), 2 * CHANNELS
        if kind == "far":
            y = self.conv(t, CHANNELS, 20, 3, dilation=8)
            return self.op("Mul", y, self.op("Sigmoid", y)), 20
        if kind == "silu":
            y = self.conv(t, CHANNELS, 21, 3)
            return self.op("Mul", y, self.op("Sigmoid", y)), 21
        if kind == "transposed":
            n = len(self.extents)
            half = self.op("MaxPool", t, kernel_shape=[2] * n, strides=[2] * n)
            return self.op("ConvTranspose", half, self.weight(CHANNELS, 18, *[2] * n), strides=[2] * n), 18
        if kind in ("MaxPool", "AveragePool", "LpPool"):
            n = len(self.extents)
            return self.op(kind, t, kernel_shape=[3] * n, pads=[1] * 2 * n), CHANNELS
        if kind == "residual":
            return self.op("Add", self.conv(t, CHANNELS, CHANNELS, 3), t), CHANNELS
        raise ValueError(kind)

    def end(self, joined, channels):
        """The model: what it gives is made from the channels that were joined."""
        self.output(self.conv(joined, channels, 8, 1), "y", [self.shape[0], 8, *self.extents])
        return self.model("concat")


def run(package, model, feeds, threads=1, opt="all", share=True, **options):
    """The outputs, and the bytes that each Concat had to copy."""
    o = package.SessionOptions()
    o.intra_op_num_threads, o.enable_profiling, o.enable_mem_pattern = threads, True, share
    for name, value in options.items():
        setattr(o, name, value)
    session = package.InferenceSession(model.SerializeToString(), o, opt=opt)
    y = session.run(None, feeds)
    path = session.end_profiling()
    with open(path) as f:
        return y, [int(step["args"]["output_size"]) for step in json.load(f) if step["args"].get("op_name") == "Concat"]


def check(package, folder, net, model, copied):
    """copied: bytes of each Concat."""
    check_against_reference(folder, model, net.feeds, "--max-rel", "1e-5", ways=WAYS)
    apart, _ = run(package, model, net.feeds, share=False)
    for threads in (1, 2, 3):
        y, bytes_copied = run(package, model, net.feeds, threads)
        assert bytes_copied == copied
        assert all(np.array_equal(a, b) for a, b in zip(y, apart))


def size(net, channels):
    return 4 * net.shape[0] * channels * int(np.prod(net.extents))


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where profiles go


@pytest.mark.parametrize("batch, extents", [(1, (24,)), (1, (10, 18)), (2, (16, 12)), (2, (6, 4, 8))])
def test_convolutions_side_by_side(package, tmp_path, batch, extents):
    net = Net(batch, extents)
    kinds = ["wide", "few", "pointwise", "grouped", "depthwise", "shared", "far", "silu", "transposed",
             "MaxPool", "AveragePool", "LpPool"]
    branches, channels = zip(*map(net.branch, kinds))
    model = net.end(net.op("Concat", *branches, axis=1), sum(channels))
    check(package, tmp_path, net, model, [0])


def test_others_are_copied(package, tmp_path):
    """What has two readers, is read twice, comes from a step that knows no pitch, or is an output, too."""
    net = Net(2, (12, 10))
    wide, few, far, residual = (net.branch(kind) for kind in ("wide", "few", "far", "residual"))
    once = net.op("Concat", wide[0], few[0], net.branch("pointwise")[0], few[0], axis=1)
    twice = net.op("Concat", once, net.conv(wide[0], 17, 19, 1), far[0], residual[0], axis=1)
    net.output(far[0], "far", [2, 20, 12, 10])
    model = net.end(twice, 17 + 3 + 40 + 3 + 19 + 20 + CHANNELS)
    check(package, tmp_path, net, model, [size(net, 17 + 3 + 3), size(net, 20 + CHANNELS)])


def dense_block(net, layers, first):
    """Each layer reads what all before it have made, as DenseNet does; channels with which it ends."""
    value, channels = first
    for _ in range(layers):
        scale, shift = (net.constant(net.rng.standard_normal((channels, *[1] * len(net.extents))), np.float32) for _ in "ab")
        y = net.op("Relu", net.op("Add", net.op("Mul", value, scale), shift))
        y = net.conv(net.op("Relu", net.conv(y, channels, 32, 1)), 32, 12, 3)
        value, channels = net.op("Concat", value, y, axis=1), channels + 12
    return value, channels


@pytest.mark.parametrize("batch, extents", [(1, (14, 10)), (2, (7, 9)), (2, (30,))])
def test_concats_of_concats(package, tmp_path, batch, extents):
    """What begins the block comes from a step that knows no pitch: it is copied into rows of the last output."""
    net = Net(batch, extents)
    begin = net.op("InstanceNormalization", net.t, net.weight(CHANNELS), net.weight(CHANNELS))
    model = net.end(*dense_block(net, 4, (begin, CHANNELS)))
    check(package, tmp_path, net, model, [size(net, CHANNELS), 0, 0, 0])


def test_concats_that_others_read(package, tmp_path):
    """A convolution reads contiguous rows only: that Concat's output is not joined to another."""
    net = Net(2, (12, 9))
    middle, m = dense_block(net, 2, net.branch("wide"))
    aside = net.conv(middle, m, 16, 3)
    last, n = dense_block(net, 1, (middle, m))
    model = net.end(net.op("Concat", net.op("Relu", last), aside, axis=1), n + 16)
    check(package, tmp_path, net, model, [0, 0, size(net, m), size(net, n)])


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "LpPool"])
def test_pooled_and_joined_later(package, tmp_path, kind):
    """As in a U-Net: rows of the Concat's output are pooled, on the way to its other input."""
    net = Net(2, (12, 8))
    a, m = net.branch("grouped")
    pooled = net.op(kind, a, kernel_shape=[2, 2], strides=[2, 2])
    up = net.op("ConvTranspose", net.conv(pooled, m, 30, 3), net.weight(30, 13, 2, 2), strides=[2, 2])
    check(package, tmp_path, net, net.end(net.op("Concat", up, a, axis=1), 13 + m), [0])


def test_no_memory_for_it(package, tmp_path):
    """Within the output the first input would keep more alive than there is room for."""
    net = Net(1, (12, 9), scarce=True)
    early, m = net.branch("pointwise")
    late = net.conv(net.conv(net.conv(net.t, CHANNELS, 100, 1), 100, 100, 1), 100, 50, 1)
    model = net.end(net.op("Concat", early, late, axis=1), m + 50)
    check(package, tmp_path, net, model, [size(net, m)])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_runs_of_bytes(package, tmp_path, axis):
    """Whoever computes them and whoever reads them, Concats of Concats and views among them."""
    b = Builder(2)
    x = b.input("x", TensorProto.FLOAT, [1, 1, 1, 60])
    shape = [1] * axis + [3, 20]
    parts = [b.op("Reshape", b.op("Softmax", b.op("Mul", x, float(i))), shape) for i in range(4)]
    inner = b.op("Concat", parts[0], parts[1], axis=axis)
    outer = b.op("Concat", parts[2], inner, b.op("Exp", parts[0]), b.op("CumSum", parts[3], axis), axis=axis)
    shape[axis] = 15
    b.output(b.op("Neg", outer), "y", shape)
    model, feeds = b.model("runs"), {"x": np.random.default_rng(5).standard_normal((1, 1, 1, 60)).astype(np.float32)}
    check_against_reference(tmp_path, model, feeds, ways=WAYS)
    for opt in ("none", "all"):
        apart, all_bytes = run(package, model, feeds, opt=opt, share=False)
        assert all_bytes == [480, 1200]
        y, copied = run(package, model, feeds, opt=opt)
        assert np.array_equal(y[0], apart[0])
        assert copied == [240, 0]  # parts[0] is read by others after its Concat
        side_by_side = package.ExecutionMode.ORT_PARALLEL
        assert np.array_equal(run(package, model, feeds, 2, opt, execution_mode=side_by_side)[0][0], apart[0])


def test_values_are_fetched_and_put_back(tmp_path):
    """An input of a Concat has memory of its own where it is fetched, or set."""
    net = Net(2, (9, 7))
    kinds = ["wide", "grouped", "depthwise"]
    branches, channels = zip(*map(net.branch, kinds))
    model = net.end(net.op("Concat", *branches, axis=1), sum(channels))
    onnx.save(model, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", net.feeds["x"])
    whole, part = str(tmp_path / "whole.npy"), str(tmp_path / "part.npy")

    def program(*args):
        done = linnet(*args)
        assert done.returncode == 0, done.stderr

    for name in branches:
        program("convert", tmp_path / "m.onnx", "--keep", name, "-o", tmp_path / "m.lnt")
        program("run", tmp_path / "m.lnt", "--input", f"x={tmp_path / 'x.npy'}", "--output", f"y={whole}", "--fetch",
                f"{name}={part}")
        want = onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        alone = onnx.ModelProto()
        alone.CopyFrom(model)
        alone.graph.output.append(want)
        y, value = reference(alone, net.feeds)
        np.testing.assert_allclose(np.load(part), value, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.load(whole), y, rtol=1e-4, atol=1e-5)
        np.save(part, 2 * value)
        program("run", tmp_path / "m.lnt", "--input", f"x={tmp_path / 'x.npy'}", "--resume", f"{name}={part}",
                "--output", f"y={whole}")
        assert not np.allclose(np.load(whole), y, rtol=1e-2)


def test_shapes_may_change(package):
    """Another binding of the session may join other inputs."""
    net = Net(1, (8, 8))
    a, m = net.branch("wide")
    model = net.end(net.op("Concat", a, net.op("Abs", net.t), axis=1), m + CHANNELS)
    for info in (*model.graph.input, *model.graph.output):
        for axis, name in ((0, "N"), (2, "H"), (3, "W")):
            info.type.tensor_type.shape.dim[axis].dim_param = name
    session = package.InferenceSession(model.SerializeToString())
    for shape in ((1, 8, 8), (3, 5, 9), (1, 1, 1), (2, 1, 1), (1, 30, 30), (0, 4, 4)):
        x = np.random.default_rng(1).standard_normal((shape[0], CHANNELS, *shape[1:])).astype(np.float32)
        for _ in range(2):
            y = session.run(None, {"x": x})[0]
        if x.size:
            np.testing.assert_allclose(y, reference(model, {"x": x})[0], rtol=1e-4, atol=1e-5)
