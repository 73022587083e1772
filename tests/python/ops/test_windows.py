"""Convolutions and pooling as they stand inside networks: channels-last behind another convolution, or on a
picture in planes, with what follows fused; every level and several threads against onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import linnet
from linnet_ctypes import check_every_level

FAMILIES = ["stem", "depthwise", "grouped", "wide", "transposed", "MaxPool", "AveragePool", "shared", "tall"]
CHANNELS = {"stem": (1, 4), "depthwise": (2, 150), "grouped": (1, 8), "wide": (5, 70), "transposed": (5, 40), "tall": (2, 150)}
DEPTHWISE = ("depthwise", "tall")


class Net:
    def __init__(self, family, seed):
        self.rng = np.random.default_rng([FAMILIES.index(family), seed])
        self.nodes, self.weights = [], []
        axes = self.draw(1, 2) if family == "stem" else self.draw(1, 3)
        self.batch, self.space = self.draw(1, 2), [self.draw(8, {1: 700, 2: 50, 3: 10}[axes]) for _ in range(axes)]
        if family == "tall":  # columns are longer than rows
            axes, self.space = max(axes, 2), [self.space[0], 7] if axes < 3 else [*self.space[:2], 7]
        self.groups = {"grouped": self.draw(2, 8), "shared": self.draw(2, 30)}.get(family, 1)
        self.channels = self.groups * self.draw(*CHANNELS.get(family, (1, 80)))
        if family == "shared":  # few channels to a group, and as many features or more
            power = self.draw(0, 3)
            self.channels, more = self.groups << power, 1 << self.draw(0, 3 - power) if power else self.draw(1, 15)
        x = "x"
        if family != "stem":
            x = self.conv(x, self.channels, self.channels, [1] * axes)
        features = self.channels
        if family in ("MaxPool", "AveragePool"):
            x = self.node(family, [x], **self.window(axes, pool=True))
        else:
            features = self.channels if family in DEPTHWISE else self.groups * self.draw(1, 80 // self.groups)
            features = self.channels * more if family == "shared" else features
            x = self.window_conv(family, x, features, axes)
        if self.draw(0, 1):
            x = self.node("Mul", [x, self.node("Sigmoid", [x])])
        if self.draw(0, 1):  # a sum that may be computed in x's memory
            kernel = [self.draw(1, 2) for _ in range(axes)]
            padding = {"pads": [0] * axes + [k - 1 for k in kernel]}
            few = self.node("Conv", [x, self.weight(8, features, *kernel)], **padding)
            x = self.node("Add", [self.conv(few, 8, features, [1] * axes), x])
        y = self.conv(x, features, 8, [1] * axes)
        dims = [self.batch, self.channels, *self.space]
        graph = helper.make_graph(self.nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                                  [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)], self.weights)
        self.model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])
        self.x, self.y = self.rng.standard_normal(dims, np.float32), y

    def draw(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def node(self, op, inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def weight(self, *dims):
        values = self.rng.standard_normal(dims, np.float32) / np.float32(np.sqrt(np.prod(dims[1:])))
        self.weights.append(numpy_helper.from_array(values, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def conv(self, x, channels, features, kernel):
        return self.node("Conv", [x, self.weight(features, channels, *kernel)])

    def window(self, axes, pool=False):
        kernel, strides = [self.draw(1, 5) for _ in range(axes)], [self.draw(1, 3) for _ in range(axes)]
        spread = [self.draw(1, 1 if pool or k > 3 else 3) for k in kernel]
        pads = [self.draw(0, (k - 1) * s) for k, s in zip(kernel * 2, spread * 2)]
        return {"kernel_shape": kernel, "strides": strides, "dilations": spread, "pads": pads}

    def window_conv(self, family, x, features, axes):
        window = self.window(axes)
        groups = self.channels if family in DEPTHWISE else self.groups
        kernel = window["kernel_shape"]
        if family == "transposed":
            window["pads"] = [0] * (2 * axes)
            return self.node("ConvTranspose", [x, self.weight(self.channels, features, *kernel)], **window)
        weight = self.weight(features, self.channels // groups, *kernel)
        return self.node("Conv", [x, weight, self.weight(features)], group=groups, **window)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", FAMILIES)
def test_windows(tmp_path, family, seed):
    net = Net(family, seed)
    onnx.save(net.model, tmp_path / "net.onnx")
    want = onnxruntime.InferenceSession(net.model.SerializeToString()).run(None, {"x": net.x})[0]
    done = linnet("convert", tmp_path / "net.onnx", "-o", tmp_path / "net.lnt")
    assert done.returncode == 0, done.stderr
    check_every_level(tmp_path / "net.lnt", net.x, want, net.y, rtol=1e-3, atol=2e-5 * max(1, np.abs(want).max()))


def pool_of(op, x, kernel, stride, dilation, pads):
    """Along the last axis, by numpy; the average leaves padding out."""
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), pads], constant_values=np.nan)
    starts = range(0, padded.shape[-1] - (kernel - 1) * dilation, stride)
    taps = np.stack([padded[..., s:s + (kernel - 1) * dilation + 1:dilation] for s in starts], -2)
    if op == "MaxPool":
        return np.where(np.isnan(taps), -np.inf, taps).max(-1)
    if op == "LpPool":
        return np.sqrt(np.nansum(taps**2, -1))
    return np.nansum(taps, -1) / np.maximum(1, (~np.isnan(taps)).sum(-1))


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("length, kernel, stride, dilation, pads", [
    (5, 300, 1, 1, (200, 199)),  # most of each window is padding
    (9, 40, 3, 2, (100, 3)),
    (9, 40, 2, 3, (2, 150)),
    (4, 3, 4, 5, (60, 60)),      # some windows hold nothing else
    (1, 1000, 7, 1, (999, 0)),
    (5000, 1000, 1, 1, (7, 0)),  # rows are cut into parts
])
def test_windows_wider_than_the_input(tmp_path, op, length, kernel, stride, dilation, pads):
    x = np.random.default_rng(length).standard_normal((1, 2, length), np.float32)
    pool = helper.make_node(op, ["x"], ["y"], kernel_shape=[kernel], strides=[stride], dilations=[dilation], pads=pads)
    graph = helper.make_graph([pool], "pool", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)]), tmp_path / "p.onnx")
    done = linnet("convert", tmp_path / "p.onnx", "-o", tmp_path / "p.lnt")
    assert done.returncode == 0, done.stderr
    want = pool_of(op, x, kernel, stride, dilation, pads)
    check_every_level(tmp_path / "p.lnt", x, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("extents, kernel, dilation, pads", [
    ((20, 20), (5, 5), (1, 1), (2, 2, 2, 2)),
    ((7, 9), (3, 1), (1, 2), (0, 0, 0, 0)),
    ((6, 17), (2, 4), (3, 2), (1, 5, 4, 2)),
    ((1, 1), (3, 3), (1, 1), (1, 1, 1, 1)),
    ((3, 5), (4, 28), (1, 1), (1, 30, 2, 0)),  # some windows hold nothing but padding
    ((2, 40), (2, 3), (4, 1), (2, 1, 3, 1)),   # nor any line
])
def test_small_images_with_their_padding(tmp_path, kind, extents, kernel, dilation, pads):
    x = np.random.default_rng(3).standard_normal((2, 9, *extents)).astype(kind)
    x[1, 4, extents[0] // 2, extents[1] // 2] = np.nan
    pool = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=kernel, dilations=dilation, pads=pads)
    of_type = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph([pool], "pool", [helper.make_tensor_value_info("x", of_type, x.shape)],
                              [helper.make_tensor_value_info("y", of_type, None)])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)]), tmp_path / "p.onnx")
    done = linnet("convert", tmp_path / "p.onnx", "-o", tmp_path / "p.lnt")
    assert done.returncode == 0, done.stderr
    padded = np.pad(x, [(0, 0), (0, 0), pads[::2], pads[1::2]], constant_values=-np.inf)
    rows, columns = (padded.shape[2 + a] - (kernel[a] - 1) * dilation[a] for a in (0, 1))
    want = np.max([padded[..., i * dilation[0]:, j * dilation[1]:][..., :rows, :columns]
                   for i in range(kernel[0]) for j in range(kernel[1])], 0)
    check_every_level(tmp_path / "p.lnt", x, want, rtol=0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("channels, extents, kernel, strides, dilations, pads, ceil", [
    (7, (6, 6, 6), (3, 3, 3), (2, 2, 2), (1, 1, 1), (1,) * 6, 0),
    (5, (9, 7, 9), (5, 3, 5), (1, 1, 1), (1, 1, 1), (2, 1, 2) * 2, 0),
    (3, (7, 9, 13), (2, 3, 2), (3, 2, 3), (2, 1, 2), (1, 0, 1, 0, 1, 0), 1),  # windows that reach behind the padding
    (2, (5, 14, 24), (2, 2, 3), (2, 1, 1), (1, 2, 1), (0,) * 6, 0),          # planes without padding
    (1, (40, 6, 5), (37, 2, 2), (1, 2, 1), (1, 1, 1), (0, 1, 1, 3, 0, 0), 0),  # more planes to join than fit
    (1, (4, 9, 60), (3, 5, 5), (2, 1, 2), (1, 1, 1), (1, 2, 2) * 2, 0),      # one channel: its rows
    (4, (1, 11, 15), (1, 3, 3), (1, 3, 2), (1, 1, 1), (0, 1, 1) * 2, 1),
    (1, (1, 41, 700), (1, 3, 2), (1, 2, 3), (1, 1, 1), (0, 1, 0) * 2, 0),    # rows too long to be joined together
    (6, (1, 23, 90), (1, 4, 3), (1, 2, 1), (1, 1, 2), (0, 1, 2) * 2, 1),     # together, the last of them fewer
    (9, (1, 7, 101), (1, 3, 3), (1, 2, 2), (1, 1, 1), (0, 1, 1) * 2, 0),     # and those of some planes
    (5, (3, 4, 20), (2, 3, 3), (1, 2, 1), (1, 1, 2), (1, 1, 1) * 2, 1),
    (3, (1, 29, 12), (1, 3, 3), (1, 2, 2), (1, 1, 1), (0, 1, 1) * 2, 0),     # rows of a vector
    (5, (1, 21, 31), (1, 7, 7), (1, 2, 2), (1, 1, 1), (0, 3, 3) * 2, 0),     # of two
    (2, (1, 9, 16), (1, 2, 3), (1, 1, 1), (1, 3, 2), (0, 1, 2) * 2, 0),
    (3, (1, 5, 17), (1, 5, 2), (1, 3, 2), (1, 2, 1), (0, 4, 0, 0, 4, 1), 1),
])
def test_small_volumes(tmp_path, kind, channels, extents, kernel, strides, dilations, pads, ceil):
    x = np.random.default_rng(channels).standard_normal((2, channels, *extents)).astype(kind)
    of_type = helper.np_dtype_to_tensor_dtype(x.dtype)
    more = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads, "ceil_mode": ceil}
    nodes = [helper.make_node("MaxPool", ["x"], ["most"], **more), helper.make_node("AveragePool", ["x"], ["mean"], **more),
             helper.make_node("AveragePool", ["x"], ["padded mean"], count_include_pad=1, **more)]

    def model(nodes, of_type):
        graph = helper.make_graph(nodes, "pools", [helper.make_tensor_value_info("x", of_type, x.shape)],
                                  [helper.make_tensor_value_info(name, of_type, None) for node in nodes for name in node.output])
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])

    onnx.save(model(nodes, of_type), tmp_path / "p.onnx")
    done = linnet("convert", tmp_path / "p.onnx", "-o", tmp_path / "p.lnt")
    assert done.returncode == 0, done.stderr
    session = onnxruntime.InferenceSession(model(nodes, TensorProto.FLOAT).SerializeToString())
    for node, want in zip(nodes, session.run(None, {"x": x.astype(np.float32)})):
        check_every_level(tmp_path / "p.lnt", x, want.astype(kind), node.output[0], rtol=1e-5, atol=1e-6)


def taps_of(x, kernel, strides, dilations, pads):
    """What each window of planes x holds, [..., rows, columns, taps], and where in its plane that is; NaN and -1 in padding."""
    at = np.arange(x.shape[-2] * x.shape[-1]).reshape(x.shape[-2:])
    parts = []
    for image, fill in ((x.astype(np.float64), np.nan), (np.broadcast_to(at, x.shape), -1)):
        padded = np.pad(image, [(0, 0), (0, 0), pads[::2], pads[1::2]], constant_values=fill)
        whole = np.lib.stride_tricks.sliding_window_view(padded, [(k - 1) * d + 1 for k, d in zip(kernel, dilations)], (2, 3))
        part = whole[..., ::strides[0], ::strides[1], ::dilations[0], ::dilations[1]]
        parts.append(part.reshape(*part.shape[:4], -1))
    return parts


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("extents, kernel, strides, dilations, pads", [
    ((12, 61), (2, 2), (2, 2), (1, 1), (0, 0, 0, 0)),
    ((11, 37), (3, 3), (2, 2), (1, 1), (1, 1, 1, 1)),
    ((9, 45), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((13, 10), (5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),  # planes with their padding
    ((9, 76), (3, 3), (3, 3), (1, 1), (0, 1, 1, 0)),
    ((8, 131), (1, 4), (2, 4), (1, 1), (0, 3, 0, 2)),
    ((10, 90), (2, 3), (3, 5), (2, 3), (1, 2, 1, 4)),
    ((6, 5), (6, 5), (1, 1), (1, 1), (0, 0, 0, 0)),    # all of the image
])
def test_planes(tmp_path, kind, extents, kernel, strides, dilations, pads):
    """Of plain images: largest elements, the first of those where they are equal, and averages with and without padding."""
    x = np.random.default_rng(extents[1]).integers(-9, 9, (2, 3, *extents)).astype(kind)
    x[1, 1, extents[0] // 2, extents[1] // 2] = np.nan
    of_type = helper.np_dtype_to_tensor_dtype(x.dtype)
    more = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
    nodes = [helper.make_node("MaxPool", ["x"], ["most"], **more), helper.make_node("MaxPool", ["x"], ["most of two", "at"], **more),
             helper.make_node("AveragePool", ["x"], ["mean"], **more),
             helper.make_node("AveragePool", ["x"], ["padded mean"], count_include_pad=1, **more)]
    outputs = [helper.make_tensor_value_info(name, TensorProto.INT64 if name == "at" else of_type, None)
               for node in nodes for name in node.output]
    graph = helper.make_graph(nodes, "pools", [helper.make_tensor_value_info("x", of_type, x.shape)], outputs)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])
    onnx.save(model, tmp_path / "p.onnx")
    done = linnet("convert", tmp_path / "p.onnx", "-o", tmp_path / "p.lnt")
    assert done.returncode == 0, done.stderr
    taps, at = taps_of(x, kernel, strides, dilations, pads)
    largest = np.where(at < 0, -np.inf, np.where(np.isnan(taps), np.inf, taps)).argmax(-1)[..., None]
    most = np.take_along_axis(taps, largest, -1)[..., 0]
    planes = np.arange(6).reshape(2, 3, 1, 1) * np.prod(extents)
    total = np.where(at < 0, 0, taps).sum(-1)
    want = {"most": most, "most of two": most, "at": np.take_along_axis(at, largest, -1)[..., 0] + planes,
            "mean": total / (at >= 0).sum(-1), "padded mean": total / np.prod(kernel)}
    for name, expected in want.items():
        check_every_level(tmp_path / "p.lnt", x, expected, name, rtol=1e-5, atol=1e-6)


def check_beside_onnxruntime(tmp_path, nodes, x, weights, **tolerance):
    """Nodes from x to y, whose value onnxruntime gives."""
    graph = helper.make_graph(nodes, "windows", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])
    onnx.save(model, tmp_path / "w.onnx")
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    done = linnet("convert", tmp_path / "w.onnx", "-o", tmp_path / "w.lnt")
    assert done.returncode == 0, done.stderr
    check_every_level(tmp_path / "w.lnt", x, want, **tolerance)
    return want


@pytest.mark.parametrize("dims, features, kernel, more, then", [
    ([1, 1, 6000], 40, [10], {"strides": [5]}, None),  # more than one run of pixels
    ([2, 3, 35, 61], 21, [7, 7], {"strides": [2, 2], "pads": [3] * 4}, "Relu"),
    ([2, 2, 19, 16], 7, [3, 3], {"pads": [1] * 4}, "Sigmoid"),
    ([1, 4, 20, 700], 19, [3, 5], {"strides": [1, 3], "dilations": [2, 2], "pads": [1, 4, 0, 7]}, None),
    ([1, 1, 9, 50], 16, [1, 1], {}, "Add"),
    ([1, 3, 12, 20], 8, [3, 3], {"strides": [1, 2]}, None),  # rows too short for vectors of pixels
])
def test_few_channels_to_planes(tmp_path, dims, features, kernel, more, then):
    """What reads the output wants it in ONNX order: the convolution writes it so."""
    rng = np.random.default_rng(features)
    x = rng.standard_normal(dims, np.float32)
    weights = [numpy_helper.from_array(rng.standard_normal(shape, np.float32) / 4, name) for name, shape in (
        ("w", (features, dims[1], *kernel)), ("b", (features,)), ("row", (1, 1, 1, 1)))]
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **more),
             helper.make_node(then or "Identity", ["c", "row"] if then == "Add" else ["c"], ["y"])]
    want = check_beside_onnxruntime(tmp_path, nodes, x, weights, rtol=1e-3, atol=1e-4)
    assert ("Relayout" in linnet("info", tmp_path / "w.lnt").stdout) == (want.shape[-1] < 16)


@pytest.mark.parametrize("batch, rows, width, channels, kernel, stride, dilation", [
    (1, 14, 14, 576, 3, 1, 1),
    (2, 9, 11, 420, 5, 1, 2),  # a last slice of some vectors and some lanes, bands of rows that end early
    (1, 21, 40, 320, 5, 2, 1),
    (1, 3, 200, 330, 5, 1, 1),
    (1, 14, 14, 330, 7, 1, 1),
    (2, 5, 4, 150, 7, 1, 1),  # taps that no pixel of a row meets
    (1, 9, 61, 41, 7, 1, 1),
])
def test_depthwise_of_many_channels(tmp_path, batch, rows, width, channels, kernel, stride, dilation):
    """Rows go by with some of the channels at a time."""
    rng, pad = np.random.default_rng(channels), kernel // 2 * dilation
    x = rng.standard_normal((batch, 8, rows, width), np.float32)
    weights = [numpy_helper.from_array(rng.standard_normal(shape, np.float32) / 4, name) for name, shape in (
        ("u", (channels, 8, 1, 1)), ("w", (channels, 1, kernel, kernel)), ("b", (channels,)))]
    nodes = [helper.make_node("Conv", ["x", "u"], ["x1"]),
             helper.make_node("Conv", ["x1", "w", "b"], ["x2"], group=channels, pads=[pad] * 4, strides=[stride] * 2,
                              dilations=[dilation] * 2),
             helper.make_node("Relu", ["x2"], ["y"])]
    check_beside_onnxruntime(tmp_path, nodes, x, weights, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("shape, kernel, pads", [([48, 32, 6], [7, 6], [0, 0, 0, 0]), ([7, 40, 3], [5, 3], [2, 0, 1, 0]),
                                                 ([3, 60, 4], [9, 5], [0, 1, 0, 1]), ([5, 50, 5], [11, 4], [3, 0, 5, 1]),
                                                 ([24, 24], [3], [1, 1]), ([7, 1, 19], [1, 4], [0, 2, 0, 1])])
def test_narrow_planes_and_lines(tmp_path, op, shape, kernel, pads):
    x = np.random.default_rng(9).standard_normal((1, *shape), np.float32)
    pool = helper.make_node(op, ["x"], ["y"], kernel_shape=kernel, pads=pads)
    check_beside_onnxruntime(tmp_path, [pool], x, [], rtol=1e-4, atol=1e-5)
