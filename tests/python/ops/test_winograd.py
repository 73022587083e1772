"""Convolutions through transformed weights (`convert --winograd`, `--winograd-budget`), against onnxruntime without
optimizations."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import SHARED, import_package, levels, linnet, reference
from linnet_ctypes import Model, Session

FOLDER = SHARED / "models"
node = helper.make_node


def convolution(rng, dims, features, before=(), after=(), channels=None, kernel=(3, 3), **attributes):
    """x of these dims through the nodes before, a convolution from `inner` to `c`, and the nodes after, to y."""
    constants = {"w": rng.standard_normal((features, channels or dims[1], *kernel)) / 12, "b": rng.standard_normal(features)}
    one = (1,) * (len(dims) - 2)
    for name, shape in (("u", (channels or dims[1], dims[1], *one)), ("v", (features, features, *one)), ("row", (1, features, *one))):
        constants[name] = rng.standard_normal(shape) / 4
    nodes = [*(before or [node("Identity", ["x"], ["inner"])]), node("Conv", ["inner", "w", "b"], ["c"], **attributes),
             *(after or [node("Identity", ["c"], ["y"])])]
    used = {name for made in nodes for name in made.input}
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value.astype(np.float32), name) for name, value in constants.items()
                               if name in used])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])


def convert(folder, proto, *options):
    onnx.save(proto, folder / "m.onnx")
    done = linnet("convert", folder / "m.onnx", "-o", folder / "m.lnt", "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(folder, proto, x):
    """Every level agrees with the reference, and gives the same bits on any number of threads."""
    want = reference(proto, {"x": x})[0].astype(np.float64)
    model = Model(folder / "m.lnt")
    for level in levels():
        first, *others = (Session(model, level=level, threads=threads).set(x=x).run().get("y") for threads in (1, 2, 3))
        assert first.shape == want.shape
        assert np.abs(first - want).max() <= 1e-5 * np.abs(want).max(), level
        assert all(np.array_equal(first, other) for other in others), level


DEEP = [node("Conv", ["x", "u"], ["inner"])]  # input and output stay in the kernels' own order
DEEP_AFTER = [node("Conv", ["c", "v"], ["y"])]


SQUARES = [
    ([1, 16, 8, 8], 16, [1, 1, 1, 1]),
    ([3, 17, 9, 23], 33, [0, 0, 0, 0]),
    ([1, 64, 14, 14], 128, [1, 1, 1, 1]),   # few tiles: parts of the features
    ([1, 40, 13, 70], 64, [2, 0, 3, 5]),    # patches that lie outside
    ([2, 130, 12, 11], 16, [1, 1, 1, 1]),
    ([1, 300, 16, 12], 257, [1, 1, 1, 1]),  # sums in parts, an odd column
    ([1, 32, 121, 90], 24, [1, 1, 1, 1]),   # many blocks
]
SMALL = ["--precision", "float16", "--min-snr", "300"]  # tiles of float16, and no layer whose rounding may be seen
TILES = [pytest.param([], 36, id="large"), pytest.param(SMALL, 16, id="small")]


@pytest.mark.parametrize("dims, features, pads", SQUARES)
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("options, points", TILES)
def test_shapes(tmp_path, dims, features, pads, deep, options, points):
    rng = np.random.default_rng(features)
    proto = convolution(rng, dims, features, DEEP if deep else (), DEEP_AFTER if deep else (), pads=pads)
    report = convert(tmp_path, proto, "--winograd", *options)
    assert report["winograd_bytes"] == 4 * points * dims[1] * -(-features // 16) * 16
    check(tmp_path, proto, rng.standard_normal(dims, np.float32))


NO_ROOM = ["--winograd-budget", "0.001"]  # taps stay as they are and are transformed in each run


@pytest.mark.parametrize("dims, features, pads", [*SQUARES, ([1, 256, 28, 28], 320, [1, 1, 1, 1]), ([2, 512, 9, 9], 64, [0, 1, 1, 0]),
                                                  ([1, 1024, 13, 13], 48, [1, 1, 1, 1]), ([1, 1013, 12, 12], 16, [1, 1, 1, 1])])
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("options", [[], ["--precision", "bfloat16"], ["--precision", "float16"]])
def test_taps(tmp_path, dims, features, pads, deep, options):
    """The file is as small as without, but for the operator's name and its attribute; no thread's results differ."""
    rng = np.random.default_rng(features)
    proto = convolution(rng, dims, features, DEEP if deep else (), DEEP_AFTER if deep else (), pads=pads)
    for value in proto.graph.initializer:  # as they are rounded
        taps = numpy_helper.to_array(value).astype(np.float16)
        kept = taps if "float16" in options else (taps.astype(np.float32).view(np.uint32) & 0xffff0000).view(np.float32)
        value.CopyFrom(numpy_helper.from_array(kept.astype(np.float32), value.name))
    plain = convert(tmp_path, proto, "--winograd-budget", "0", *options)["lnt_bytes"]
    report = convert(tmp_path, proto, *NO_ROOM, *options)
    assert report["winograd_bytes"] == 0 and report["lnt_bytes"] <= plain + 512
    assert transformed(tmp_path) == (0 if "float16" in options and dims[1] < 20 else 1)  # small tiles save little of few channels
    check(tmp_path, proto, rng.standard_normal(dims, np.float32))


@pytest.mark.parametrize("features", [9, 10, 12, 15])
@pytest.mark.parametrize("dims", [[1, 32, 40, 37], [2, 100, 15, 30]])
@pytest.mark.parametrize("deep", [False, True])
def test_taps_of_fewer_features_than_a_panel_has(tmp_path, features, dims, deep):
    rng = np.random.default_rng(features)
    proto = convolution(rng, dims, features, DEEP if deep else (), DEEP_AFTER if deep else (), pads=[1] * 4)
    convert(tmp_path, proto)
    assert transformed(tmp_path) == 1
    check(tmp_path, proto, rng.standard_normal(dims, np.float32))


def test_taps_of_few_pixels(tmp_path):
    """The same file computes what is too small for tiles as a Conv does."""
    rng = np.random.default_rng(4)
    proto = convolution(rng, ["n", 32, "h", "w"], 48, [node("Relu", ["x"], ["inner"])], channels=32, pads=[1] * 4)
    convert(tmp_path, proto, *NO_ROOM)
    assert transformed(tmp_path) == 1
    for dims in ([1, 32, 40, 30], [1, 32, 1, 1], [2, 32, 2, 2], [1, 32, 4, 9], [3, 32, 33, 5]):
        check(tmp_path, proto, rng.standard_normal(dims, np.float32))


def test_taps_are_not_for_quantized(tmp_path):
    rng = np.random.default_rng(6)
    proto = convolution(rng, [1, 32, 20, 20], 32, [node("Relu", ["x"], ["inner"])], pads=[1] * 4)
    np.save(tmp_path / "x.npy", rng.standard_normal((1, 32, 20, 20), np.float32))
    convert(tmp_path, proto, "--int8", "dynamic")
    assert transformed(tmp_path) == 0


@pytest.mark.parametrize("dims, features, taps, dilation, pads, numbers", [
    ([1, 32, 200], 32, 3, 1, [1, 1], 8),         # tiles of 6
    ([2, 17, 131], 33, 3, 5, [0, 9], 8),         # a batch, odd channels, far padding
    ([1, 64, 333], 64, 4, 1, [0, 0], 7),         # infinity is of no use
    ([1, 40, 400], 24, 5, 6, [12, 12], 8),
    ([1, 32, 777], 48, 7, 12, [36, 36], 14),     # two groups
    ([1, 16, 90], 272, 9, 2, [8, 8], 16),        # two, the last one full; parts of the features
    ([1, 300, 129], 16, 11, 1, [5, 5], 21),      # three; sums in parts
    ([1, 16, 2000], 16, 16, 3, [0, 45], 28),     # four; many blocks
    ([3, 32, 5, 40], 32, 7, 1, [0, 3, 0, 3], 14)  # lines of an image
])
@pytest.mark.parametrize("deep", [False, True])
def test_lines(tmp_path, dims, features, taps, dilation, pads, numbers, deep):
    rng = np.random.default_rng(taps)
    rows = [1] * (len(dims) - 3)
    proto = convolution(rng, dims, features, DEEP if deep else (), DEEP_AFTER if deep else (), kernel=(*rows, taps), pads=pads,
                        dilations=[*rows, dilation])
    report = convert(tmp_path, proto, "--winograd")
    assert report["winograd_bytes"] == 4 * numbers * dims[1] * -(-features // 16) * 16
    check(tmp_path, proto, rng.standard_normal(dims, np.float32))


@pytest.mark.parametrize("dilation", [1, 3])
def test_what_follows_lines(tmp_path, dilation):
    """The residual blocks of a vocoder: programs and sums run over unbroken pieces of the lines."""
    rng, dims = np.random.default_rng(dilation), [2, 32, 301]
    after = [node("LeakyRelu", ["c"], ["s"], alpha=0.1), node("Add", ["s", "inner"], ["t"]),
             node("Conv", ["t", "w", "b"], ["d"], pads=[3, 3]), node("Add", ["d", "t"], ["y"])]
    proto = convolution(rng, dims, 32, [node("LeakyRelu", ["x"], ["inner"], alpha=0.1)], after, kernel=(7,),
                        pads=[3 * dilation] * 2, dilations=[dilation])
    assert convert(tmp_path, proto, "--winograd")["winograd_bytes"] == 4 * 14 * 32 * 32
    check(tmp_path, proto, rng.standard_normal(dims, np.float32))


def test_open_lines(tmp_path):
    """Such are taken to be long where weights hardly grow; short ones come out right, too."""
    for taps, features, transformed in ((5, 272, True), (3, 272, False), (3, 64, True)):
        rng = np.random.default_rng(taps)
        proto = convolution(rng, ["n", 64, "t"], features, [node("Relu", ["x"], ["inner"])], kernel=(taps,), channels=64,
                            pads=[taps - 1, 0])
        assert (convert(tmp_path, proto, "--winograd")["winograd_bytes"] > 0) == transformed
        for dims in ([1, 64, 1], [2, 64, 7], [1, 64, 500]):
            check(tmp_path, proto, rng.standard_normal(dims, np.float32))


def test_lines_that_grow(tmp_path):
    """Behind strides of 8 and 8 an open line is long: its taps are transformed within the budget, those before are not."""
    rng = np.random.default_rng(8)
    text = """<ir_version: 8, opset_import: ["" : 18]>
    f (float[1,64,T] x, float[64,64,7] u, float[64,32,16] v, float[32,32,16] w, float[32,32,7] k) => (float[1,32,S] y) {
        a = Conv <pads = [3, 3]> (x, u)
        b = ConvTranspose <strides = [8], pads = [4, 4]> (a, v)
        c = LeakyRelu <alpha = 0.1> (b)
        d = ConvTranspose <strides = [8], pads = [4, 4]> (c, w)
        e = LeakyRelu <alpha = 0.1> (d)
        g = Conv <pads = [3, 3]> (e, k)
        y = Add (g, d)
    }"""
    proto = onnx.parser.parse_model(text)
    for given in list(proto.graph.input)[1:]:
        dims = [d.dim_value for d in given.type.tensor_type.shape.dim]
        proto.graph.initializer.append(onnx.numpy_helper.from_array(rng.standard_normal(dims, np.float32) / 16, given.name))
        proto.graph.input.remove(given)
    assert convert(tmp_path, proto)["winograd_bytes"] == 4 * 14 * 32 * 32
    for length in (1, 5, 40):
        check(tmp_path, proto, rng.standard_normal([1, 64, length], np.float32))


@pytest.mark.parametrize("after", [
    [node("Relu", ["c"], ["y"])],
    [node("Add", ["c", "row"], ["s"]), node("Add", ["s", "inner"], ["t"]), node("Relu", ["t"], ["y"])],  # a residual block
    [node("Add", ["c", "inner"], ["y"])],
    [node("Sigmoid", ["c"], ["s"]), node("Mul", ["c", "s"], ["y"])],  # a program for every block
    [node("HardSwish", ["c"], ["s"]), node("Conv", ["s", "v"], ["y"])],
    [node("Relu", ["c"], ["s"]), node("Concat", ["s", "inner"], ["y"], axis=1)],  # side by side with another
])
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("channels", [48, 37])
@pytest.mark.parametrize("options, points", TILES)
def test_what_follows(tmp_path, after, deep, channels, options, points):
    rng, dims = np.random.default_rng(3), [2, channels, 19, 22]
    before = DEEP if deep else [node("Relu", ["x"], ["inner"])]
    proto = convolution(rng, dims, channels, before, after, pads=[1] * 4)
    assert convert(tmp_path, proto, "--winograd", *options)["winograd_bytes"] == 4 * points * channels * 48
    check(tmp_path, proto, rng.standard_normal(dims, np.float32))


@pytest.mark.parametrize("options, points", TILES)
def test_open_extents(tmp_path, options, points):
    rng = np.random.default_rng(4)
    proto = convolution(rng, ["n", 32, "h", "w"], 32, channels=32, pads=[1] * 4, before=[node("Relu", ["x"], ["inner"])])
    assert convert(tmp_path, proto, "--winograd", *options)["winograd_bytes"] == 4 * points * 32 * 32
    for dims in ([1, 32, 40, 30], [2, 32, 1, 1], [1, 32, 3, 50], [0, 32, 8, 8]):
        x = rng.standard_normal(dims, np.float32)
        if x.size:
            check(tmp_path, proto, x)
        else:
            assert Session(Model(tmp_path / "m.lnt")).set(x=x).run().get("y").shape == (0, 32, 8, 8)


@pytest.mark.parametrize("dims, features, more", [
    ([1, 32, 20, 20], 32, {"strides": [2, 2]}),
    ([1, 32, 20, 20], 32, {"dilations": [2, 2]}),
    ([1, 32, 20, 20], 32, {"group": 2, "channels": 16}),
    ([1, 32, 20, 20], 32, {"kernel": (3, 1)}),
    ([1, 32, 20, 20], 32, {"kernel": (1, 2)}),
    ([1, 32, 20, 40], 32, {"kernel": (1, 17)}),
    ([1, 32, 20, 20], 32, {"kernel": (1, 3), "strides": [1, 2]}),
    ([1, 32, 20, 20], 32, {"kernel": (1, 3), "pads": [1, 0, 0, 0]}),
    ([1, 32, 40], 32, {"kernel": (5,), "dilations": [6]}),  # one tile of six lines
    ([1, 32, 40], 32, {"kernel": (5,), "strides": [2]}),
    ([1, 32, "t"], 32, {"kernel": (5,), "dilations": [17]}),
    ([1, 256, 200, 12], 256, {"kernel": (1, 3)}),  # many lines, each of few tiles
    ([1, 32, 20, 20, 9], 32, {"kernel": (3, 3, 1)}),
    ([1, 8, 20, 20], 32, {}),
    ([1, 32, 20, 20], 8, {}),
    ([1, 512, 7, 7], 512, {}),  # weights by memory
])
def test_what_is_left_as_it_is(tmp_path, dims, features, more):
    rng = np.random.default_rng(5)
    before = [node("Relu", ["x"], ["inner"])]
    proto = convolution(rng, dims, features, before, **more)
    assert convert(tmp_path, proto, "--winograd")["winograd_bytes"] == 0
    same = (tmp_path / "m.lnt").read_bytes()
    convert(tmp_path, proto, "--winograd-budget", "0")
    assert (tmp_path / "m.lnt").read_bytes() == same


def test_only_where_weights_are_packed(tmp_path):
    onnx.save(convolution(np.random.default_rng(7), [1, 16, 16, 16], 16), tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "--winograd", "--opt", "basic")
    assert done.returncode == 2 and "--opt all" in done.stderr


def test_weights_of_several_readers(tmp_path):
    """They are transformed once, and counted once; a reader that cannot keeps them as they were."""
    rng = np.random.default_rng(8)
    again = [node("Conv", ["c", "w", "b"], ["d"], pads=[1] * 4), node("Conv", ["d", "w", "b"], ["e"], pads=[1] * 4),
             node("Conv", ["e", "w", "b"], ["y"], strides=[2, 2])]
    proto = convolution(rng, [1, 64, 20, 22], 64, DEEP, again, channels=64, pads=[1] * 4)
    report = convert(tmp_path, proto, "--winograd")
    assert report["winograd_bytes"] == 4 * 36 * 64 * 64
    assert report["packed_bytes"] == report["winograd_bytes"] + 4 * 9 * 64 * 64 + 4 * 64 * 64
    assert json.loads(linnet("info", tmp_path / "m.lnt", "--json").stdout)["operators"]["WinogradConv"] == 3
    check(tmp_path, proto, rng.standard_normal((1, 64, 20, 22), np.float32))


def test_from_python(tmp_path):
    proto = convolution(np.random.default_rng(9), [1, 16, 16, 16], 16, DEEP, channels=16)
    convert(tmp_path, proto, "--winograd")
    package, model = import_package(), proto.SerializeToString()
    x = np.random.default_rng(10).standard_normal((1, 16, 16, 16), np.float32)
    from_image = package.InferenceSession(package.convert(model, winograd=True)).run(None, {"x": x})[0]
    from_file = package.InferenceSession(str(tmp_path / "m.lnt")).run(None, {"x": x})[0]
    assert np.array_equal(from_image, from_file)
    sizes = [len(package.convert(model, winograd=budget)) for budget in (False, 0, None, 15, 400, True)]
    assert sizes[0] == sizes[1] < sizes[4] == sizes[5]
    assert sizes[2] == sizes[3] < sizes[0] + 512  # taps as they are
    assert not np.array_equal(from_image, package.InferenceSession(package.convert(model)).run(None, {"x": x})[0])
    with pytest.raises(package.LinnetError, match="--opt all"):
        package.convert(model, opt="none", winograd=True)
    with pytest.raises(package.LinnetError, match="a bool or a number"):
        package.convert(model, winograd="much")


def tower(rng, sizes, extent):
    """Convolutions of 3x3 taps one behind the other, each at half the extent of the one before; weights for a product at
    the end, which are most of the file."""
    weights = {f"w{i}": rng.standard_normal((n, before, 3, 3)) / 12 for i, (before, n) in enumerate(zip(sizes, sizes[1:]))}
    weights["last"] = rng.standard_normal((sizes[-1], 4000))
    nodes, at = [], "x"
    for name in list(weights)[:-1]:
        nodes += [node("Conv", [at, name], [f"c{name}"], pads=[1] * 4),
                  node("MaxPool", [f"c{name}"], [f"p{name}"], kernel_shape=[2, 2], strides=[2, 2])]
        at = f"p{name}"
    nodes += [node("GlobalAveragePool", [at], ["m"]), node("Flatten", ["m"], ["f"]), node("MatMul", ["f", "last"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, sizes[0], extent, extent])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])


def transformed(folder):
    return json.loads(linnet("info", folder / "m.lnt", "--json").stdout)["operators"].get("WinogradConv", 0)


def test_budget(tmp_path):
    """The file grows by no more than it may; what saves most time for a byte, in early layers of large images, comes first."""
    rng = np.random.default_rng(11)
    sizes = [32, 32, 64, 96, 128]
    proto = tower(rng, sizes, 64)
    before = convert(tmp_path, proto, "--winograd-budget", "0")["lnt_bytes"]
    assert transformed(tmp_path) == 0
    grown = []
    for percent in (1, 5, 15, 40, 100, None):
        report = convert(tmp_path, proto, *(["--winograd-budget", str(percent)] if percent else ["--winograd"]))
        grown.append(report["winograd_bytes"])
        assert percent is None or report["lnt_bytes"] <= before * (1 + percent / 100) + 4096
        assert transformed(tmp_path) == 4  # in the file or in each run
    every = sum(36 * a * b * 4 for a, b in zip(sizes, sizes[1:]))
    assert grown == sorted(grown) and grown[0] == 0 and grown[-1] == every and 36 * 32 * 32 * 4 <= grown[2] < every
    plain = convert(tmp_path, proto)
    assert transformed(tmp_path) == 4
    check(tmp_path, proto, rng.standard_normal((1, 32, 64, 64), np.float32))
    assert before < plain["lnt_bytes"] <= 1.15 * before + 4096


def test_a_file_that_is_to_be_small_does_not_grow(tmp_path):
    proto = tower(np.random.default_rng(12), [32, 32, 64], 32)
    quantized = convert(tmp_path, proto, "--int8", "dynamic")
    assert quantized["winograd_bytes"] == 0 and transformed(tmp_path) == 0


@pytest.mark.parametrize("dims, kernel, options", [
    ([1, 64, 40, 40], (3, 3), []), ([1, 64, 40, 40], (3, 3), SMALL), ([1, 48, 300], (3,), []), ([1, 32, 300], (11,), [])])
def test_error_bound(tmp_path, dims, kernel, options):
    """Errors stay below the bound of the report, with inputs that are as large as they may be, and are not far from it."""
    rng = np.random.default_rng(13)
    pads = [kernel[0] // 2] * 2 * len(kernel)
    proto = convolution(rng, dims, 32, [node("Identity", ["x"], ["inner"])], [node("Identity", ["c"], ["y"])], kernel=kernel, pads=pads)
    bound = convert(tmp_path, proto, "--winograd", *options)["winograd_error_bound"]
    weights = next(numpy_helper.to_array(t) for t in proto.graph.initializer if t.name == "w").astype(np.float64)
    x = np.sign(rng.standard_normal(dims)).astype(np.float32)
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *[(kernel[0] // 2,) * 2] * len(kernel)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=tuple(range(2, len(dims))))
    bias = next(numpy_helper.to_array(t) for t in proto.graph.initializer if t.name == "b").astype(np.float64)
    rank = len(kernel)
    want = np.tensordot(windows, weights, axes=([1, *range(2 + rank, 2 + 2 * rank)], [1, *range(2, 2 + rank)]))
    want = np.moveaxis(want, -1, 1) + bias.reshape(1, -1, *[1] * rank)
    error = np.abs(Session(Model(tmp_path / "m.lnt")).set(x=x).run().get("y") - want).max()
    largest = np.abs(weights).reshape(32, -1).sum(1).max()
    assert bound * largest / 1e5 < error < bound * largest
    assert bound < 1e-2


@pytest.mark.parametrize("model", ["superres", "light_densenet121"])
def test_recorded_models(tmp_path, model):
    """Recorded outputs."""
    if not FOLDER.is_dir():
        pytest.skip("no recorded models: LINNET_SHARED")
    done = linnet("convert", FOLDER / model / "model.onnx", "-o", tmp_path / "m.lnt", "--winograd", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["winograd_bytes"] > 0
    for level in levels():
        done = linnet("verify", tmp_path / "m.lnt", *sorted((FOLDER / model).glob("test_data_set_*")), "--max-rel", "1e-4",
                      "--level", level)
        assert done.returncode == 0, done.stdout + done.stderr
