"""Half arithmetic (the level fp16, on an emulated Cortex-A76): what of a file of float16 weights computes with halves, and that
a CPU without them computes what this machine does."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import ROOT, linnet

sys.path[:0] = [str(ROOT / "tests/bench/arm"), str(ROOT / "tests/bench")]

import counts  # noqa: E402
import emulation  # noqa: E402
import linnet_arm  # noqa: E402

F = TensorProto.FLOAT
HALF, PLAIN = "cortex-a76", "cortex-a72"
SNR = 48  # dB, of these few layers; halves alone are good for 66


@pytest.fixture(scope="module")
def program():
    try:
        counts.tools(emulation.CORES["a76"])
    except emulation.MissingTool as missing:
        pytest.skip(str(missing))
    return linnet_arm.built(ROOT, "generic-arm64")


class Net:
    """Nodes and seeded weights."""

    def __init__(self, seed=1):
        self.nodes, self.constants, self.rng = [], [], np.random.default_rng(seed)

    def constant(self, x):
        self.constants.append(numpy_helper.from_array(np.asarray(x), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, op, *inputs, name=None, **attributes):
        name = name or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def conv(self, x, features, channels, *kernel, name=None, **attributes):
        fan = channels * int(np.prod(kernel))
        w = self.rng.standard_normal((features, channels, *kernel)) / np.sqrt(fan)
        b = self.rng.standard_normal(features) / 4
        return self.add("Conv", x, self.constant(w.astype(np.float32)), self.constant(b.astype(np.float32)), name=name, **attributes)

    def save(self, folder, dims, output, *options):
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", F, dims)],
                                  [helper.make_tensor_value_info(output, F, None)], self.constants)
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)]), folder / "m.onnx")
        done = linnet("convert", folder / "m.onnx", "-o", folder / "m.lnt", "--precision", "float16", "--min-snr", 0, *options)
        assert done.returncode == 0, done.stderr
        np.save(folder / "x.npy", np.random.default_rng(7).standard_normal(dims).astype(np.float32))


def outputs(folder, command, *options, threads=1):
    done = subprocess.run([*map(str, command), "run", folder / "m.lnt", "--input", f"x={folder / 'x.npy'}", "--output-dir", folder / "out",
                           "--threads", str(threads), *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.load(next((folder / "out").glob("*.npy")))


def emulated(program, cpu):
    return ["qemu-aarch64", "-cpu", cpu, program]


def snr(got, want):
    noise = np.square(got.astype(np.float64) - want).sum()
    return np.inf if noise == 0 else 10 * np.log10(np.square(want.astype(np.float64)).sum() / noise)


def check(folder, program, computes_halves=True):
    want = outputs(folder, [ROOT / "build/linnet"])
    plain = outputs(folder, emulated(program, PLAIN))
    assert plain.dtype == np.float32 and np.abs(plain - want).max(initial=0) <= 1e-5 * np.abs(want).max(initial=0)
    first, second = (outputs(folder, emulated(program, HALF), threads=threads) for threads in (1, 3))
    assert first.dtype == np.float32 and np.array_equal(first, second)
    assert snr(first, want) >= SNR
    assert (snr(first, want) < 90) == computes_halves
    return want


def test_residuals_and_depthwise(tmp_path, program):
    net = Net()
    x = net.add("Relu", net.conv("x", 24, 3, 3, 3, strides=[2, 2], pads=[1, 1, 1, 1]))
    y = net.add("Clip", net.conv(x, 72, 24, 1, 1), net.constant(np.float32(0)), net.constant(np.float32(6)))
    y = net.add("Relu", net.conv(y, 72, 1, 3, 3, group=72, pads=[1, 1, 1, 1]))
    y = net.add("Add", net.conv(y, 24, 72, 1, 1), x)
    net.conv(y, 20, 24, 3, 3, name="y", pads=[1, 1, 1, 1])
    net.save(tmp_path, [1, 3, 37, 41], "y")
    check(tmp_path, program)


def test_lines_of_a_ring(tmp_path, program):
    """A stem and a point convolution compute lines for the depthwise one behind them."""
    net = Net()
    x = net.add("Relu", net.conv("x", 32, 3, 3, 3, pads=[1, 1, 1, 1]))
    x = net.add("Relu", net.conv(x, 32, 1, 3, 3, group=32, pads=[1, 1, 1, 1]))
    x = net.conv(x, 96, 32, 1, 1)
    x = net.add("Relu", net.conv(x, 96, 1, 3, 3, group=96, pads=[1, 1, 1, 1]))
    net.conv(x, 8, 96, 1, 1, name="y")
    net.save(tmp_path, [1, 3, 112, 112], "y")
    check(tmp_path, program)


def test_pools_concatenation_and_slices(tmp_path, program):
    net = Net()
    x = net.conv("x", 40, 3, 5, 5)
    a = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    b = net.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    both = net.add("Concat", a, b, axis=1)
    cut = net.add("Slice", both, *(net.constant(np.array([v], np.int64)) for v in (10, 70, 1)))
    net.conv(cut, 17, 60, 3, 3, name="y")
    net.save(tmp_path, [2, 3, 32, 28], "y")
    check(tmp_path, program)


def test_a_gate_of_each_channel(tmp_path, program):
    net = Net()
    x = net.conv("x", 48, 16, 1, 1)
    x = net.add("Mul", x, net.add("Sigmoid", x))
    gate = net.conv(net.add("GlobalAveragePool", x), 12, 48, 1, 1)
    gate = net.add("Sigmoid", net.conv(net.add("Relu", gate), 48, 12, 1, 1))
    net.conv(net.add("Mul", x, gate), 10, 48, 1, 1, name="y")
    net.save(tmp_path, [1, 16, 15, 13], "y")
    check(tmp_path, program)


@pytest.mark.parametrize("op, attributes", [
    ("Sigmoid", {}), ("Tanh", {}), ("Mish", {}), ("Gelu", {}), ("Gelu", {"approximate": "tanh"}), ("HardSwish", {}), ("HardSigmoid", {}),
    ("LeakyRelu", {"alpha": 0.1}), ("Abs", {}), ("Softplus", {})], ids=str)
def test_a_function_behind_a_product_and_alone(tmp_path, program, op, attributes):
    net = Net()
    x = net.conv("x", 40, 16, 1, 1)
    y = net.add(op, x, **attributes)
    z = net.conv(net.add("Mul", y, x), 40, 40, 1, 1)
    net.conv(net.add("Concat", net.add(op, net.add("Add", z, x), **attributes), y, axis=1), 12, 80, 1, 1, name="y")
    net.save(tmp_path, [1, 16, 15, 13], "y")
    check(tmp_path, program)


def test_what_is_larger_than_halves_on_the_way(tmp_path, program):
    """Constants and powers that no half holds, though what comes of them is small again."""
    net = Net()
    x = net.conv("x", 24, 16, 1, 1)
    a = net.add("Mul", net.add("Mul", x, net.constant(np.float32(3e5))), net.constant(np.float32(3e-6)))
    big = net.add("Mul", net.conv(x, 24, 24, 1, 1), net.constant(np.float32(60)))
    cube = net.add("Mul", net.add("Mul", net.add("Mul", big, big), big), net.constant(np.float32(1e-6)))
    scale = net.constant(np.linspace(1e5, 2e5, 24, dtype=np.float32).reshape(24, 1, 1))
    back = net.constant(np.float32(1e-5))
    c = net.add("Mul", net.add("Mul", net.conv(x, 24, 24, 1, 1), scale), back)
    d = net.add("Mul", net.add("Mul", big, net.constant(np.float32(3000))), net.constant(np.float32(1e-3)))
    e = net.add("Mul", net.add("Relu", net.add("Mul", big, net.add("Mul", x, net.constant(np.float32(500))))),
                net.constant(np.float32(1e-3)))
    net.conv(net.add("Concat", a, cube, c, d, e, axis=1), 12, 120, 1, 1, name="y")
    net.save(tmp_path, [1, 16, 9, 11], "y")
    check(tmp_path, program)


def test_values_that_no_half_holds(tmp_path, program):
    """A trunk with values of 1e6 is scaled, so that it is halves behind its first layer; what reads it gets them as they were."""
    net = Net()
    x = net.add("Relu", net.conv(net.add("Mul", "x", net.constant(np.float32(1e6))), 24, 16, 3, 3, pads=[1, 1, 1, 1]))
    x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    y = net.add("Relu", net.conv(x, 24, 24, 3, 3, pads=[1, 1, 1, 1]))
    x = net.add("Add", net.conv(net.add("Relu", net.conv(y, 24, 1, 3, 3, group=24, pads=[1, 1, 1, 1])), 24, 24, 1, 1), x)
    x = net.add("Mul", net.add("Concat", x, y, axis=1), net.constant(np.float32(1e-6)))
    net.conv(x, 12, 48, 1, 1, name="y")
    net.save(tmp_path, [1, 16, 30, 26], "y")
    told = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "again.lnt", "--precision", "float16", "--min-snr", 0).stdout
    assert "outputs scaled for float16" in told and told.count("largest half") == 1
    check(tmp_path, program)


def test_operators_that_stay_float_stand_between(tmp_path, program):
    net = Net()
    x = net.conv("x", 30, 8, 3, 3)
    x = net.add("Softmax", x, axis=1)
    x = net.add("Mul", net.conv(x, 30, 30, 1, 1), x)
    x = net.add("Transpose", x, perm=[0, 2, 3, 1])
    net.add("LayerNormalization", x, net.constant(np.ones(30, np.float32)), name="y")
    net.save(tmp_path, [1, 8, 14, 14], "y")
    check(tmp_path, program)


@pytest.mark.parametrize("channels, features, kernel, group", [
    (200, 33, (3, 3), 1), (3, 7, (7, 7), 1), (1, 12, (5, 5), 1), (65, 4, (1, 1), 1), (24, 24, (9, 9), 24), (24, 24, (7, 7), 24),
    (60, 90, (3, 3), 3), (32, 64, (3, 3), 16), (130, 130, (1, 5), 1)])
def test_sums_of_every_length(tmp_path, program, channels, features, kernel, group):
    """Beyond LNT_HALF_RUN products they are carried to float; what cannot carry computes in float."""
    net = Net(channels)
    x = net.conv("x", channels, 5, 1, 1)
    x = net.conv(x, features, channels // group, *kernel, group=group)
    net.conv(x, 6, features, 1, 1, name="y")
    net.save(tmp_path, [1, 5, 20, 19], "y")
    check(tmp_path, program)


@pytest.mark.parametrize("dims, features", [
    ([1, 16, 9, 11], 16), ([2, 37, 18, 21], 41), ([1, 300, 13, 12], 24), ([1, 48, 30, 64], 192), ([1, 64, 9, 11], 256)])
@pytest.mark.parametrize("padding", [0, 1])
def test_small_tiles(tmp_path, program, dims, features, padding):
    """3x3 taps transformed for tiles of 2x2, with a residual, a clamp, or a function behind."""
    net, pads = Net(features), [padding] * 4
    x = net.conv("x", dims[1], dims[1], 1, 1)
    y = net.add("Relu", net.conv(x, features, dims[1], 3, 3, pads=pads))
    z = net.add("Relu", net.add("Add", net.conv(y, features, features, 3, 3, pads=[1] * 4), y))
    z = net.add("Add", net.add("HardSwish", net.conv(z, features, features, 3, 3, pads=[1] * 4)), y)
    net.conv(z, 6, features, 1, 1, name="y")
    net.save(tmp_path, dims, "y", "--winograd")
    shown = json.loads(linnet("info", tmp_path / "m.lnt", "--json").stdout)
    assert shown["operators"]["WinogradConv"] == 3
    check(tmp_path, program)


def test_lines_by_transform_stay_float(tmp_path, program):
    net = Net()
    net.conv(net.conv("x", 32, 20, 5, pads=[2, 2]), 20, 32, 3, name="y")
    net.save(tmp_path, [1, 20, 200], "y", "--winograd")
    check(tmp_path, program, computes_halves=False)


def test_transposed(tmp_path, program):
    net = Net()
    x = net.conv("x", 33, 5, 1, 1)
    w = (net.rng.standard_normal((33, 20, 4, 3)) / 9).astype(np.float32)
    x = net.add("ConvTranspose", x, net.constant(w), strides=[2, 3], pads=[1, 0, 0, 1])
    net.conv(net.add("LeakyRelu", x, alpha=0.1), 6, 20, 1, 1, name="y")
    net.save(tmp_path, [1, 5, 11, 9], "y")
    check(tmp_path, program)


# Of matrices: rows, K, columns of B, transA, transB, alpha, beta, extents of C.
@pytest.mark.parametrize("rows, K, N, turned, alpha, beta, c", [
    (1, 300, 40, (0, 0), 1.0, 1.0, None), (1, 64, 17, (0, 1), 1.0, 1.0, (17,)), (7, 90, 33, (0, 0), 0.5, 2.0, (33,)),
    (13, 257, 48, (1, 1), 1.0, 1.0, (13, 48)), (40, 128, 31, (1, 0), 1.0, 0.5, (40, 31)), (29, 70, 24, (0, 1), 2.0, 1.0, (29, 1)),
    (64, 2048, 20, (0, 0), 1.0, 1.0, (1, 1)), (5, 1, 9, (0, 0), 1.0, 1.0, (9,)), (3, 33, 1, (0, 1), 1.0, 1.0, (3, 1))])
def test_gemm(tmp_path, program, rows, K, N, turned, alpha, beta, c):
    net = Net(rows)
    transA, transB = turned
    w = (net.rng.standard_normal((N, K) if transB else (K, N)) / np.sqrt(K)).astype(np.float32)
    extra = [] if c is None else [net.constant(net.rng.standard_normal(c).astype(np.float32))]
    net.add("Gemm", "x", net.constant(w), *extra, transA=transA, transB=transB, alpha=alpha, beta=beta, name="y")
    net.save(tmp_path, [K, rows] if transA else [rows, K], "y")
    check(tmp_path, program, computes_halves=N > 1)  # rows are summed in float along with one column


@pytest.mark.parametrize("dims, b", [([2, 3, 17, 40], [40, 33]), ([3, 9, 128], [3, 128, 64]), ([5, 64], [2, 64, 24]),
                                     ([100], [100, 16]), ([4, 30], [30]), ([0, 24], [24, 9]), ([2, 1, 6, 32], [3, 32, 10])])
def test_matmul_of_any_rank(tmp_path, program, dims, b):
    net = Net(len(dims))
    w = (net.rng.standard_normal(b) / 5).astype(np.float32)
    net.add("MatMul", "x", net.constant(w), name="y")
    net.save(tmp_path, dims, "y")
    check(tmp_path, program, computes_halves=0 not in dims and len(b) > 1)


def test_a_transformer_block(tmp_path, program):
    """Projections, attention, GELU behind a product, residuals and norms."""
    net = Net()
    size, heads = 48, 4

    def dense(x, inputs, to):
        w = (net.rng.standard_normal((inputs, to)) / np.sqrt(inputs)).astype(np.float32)
        b = (net.rng.standard_normal(to) / 8).astype(np.float32)
        return net.add("Add", net.add("MatMul", x, net.constant(w)), net.constant(b))

    def of_heads(x):
        shaped = net.add("Reshape", x, net.constant(np.array([0, 0, heads, size // heads], np.int64)))
        return net.add("Transpose", shaped, perm=[0, 2, 1, 3])

    def norm(x, name=None):
        return net.add("LayerNormalization", x, net.constant(np.ones(size, np.float32)), name=name)

    q, k, v = (of_heads(dense("x", size, size)) for _ in range(3))
    scores = net.add("MatMul", q, net.add("Transpose", k, perm=[0, 1, 3, 2]))
    shares = net.add("Softmax", net.add("Mul", scores, net.constant(np.float32(0.3))), axis=-1)
    seen = net.add("Transpose", net.add("MatMul", shares, v), perm=[0, 2, 1, 3])
    seen = net.add("Reshape", seen, net.constant(np.array([0, 0, size], np.int64)))
    x = norm(net.add("Add", dense(seen, size, size), "x"))
    wide = net.add("Gelu", dense(x, size, 3 * size), approximate="tanh")
    norm(net.add("Add", dense(wide, 3 * size, size), x), name="y")
    net.save(tmp_path, [2, 19, size], "y")
    check(tmp_path, program)


def test_a_bias_that_is_computed(tmp_path, program):
    """It is read as floats, though its own producer computes with halves."""
    net = Net()
    w = net.constant((net.rng.standard_normal((20, 20)) / 5).astype(np.float32))
    bias = net.add("MatMul", "x", w)
    net.add("Gemm", "x", w, bias, name="y")
    net.save(tmp_path, [1, 20], "y")
    check(tmp_path, program)


def test_values_beyond_halves_stay_float(tmp_path, program):
    """Between layers that compute with halves two whose values no half holds; and programs in between."""
    net = Net()
    x = net.add("Relu", net.conv("x", 16, 6, 3, 3))
    w = (net.rng.standard_normal((16, 16, 1, 1)) * 1e5).astype(np.float32)
    x = net.add("Conv", x, net.constant(w))
    x = net.add("Mul", net.add("Abs", x), net.constant(np.float32(40)))
    x = net.add("Mul", x, net.add("Sigmoid", net.add("Neg", x)))
    x = net.add("Conv", net.add("Add", net.add("Conv", net.add("Clip", x), net.constant((w / 1e10).astype(np.float32))), x),
                net.constant((w / 1e10).astype(np.float32)))
    net.conv(x, 8, 16, 3, 3, name="y")
    net.save(tmp_path, [1, 6, 12, 11], "y")
    assert np.isfinite(check(tmp_path, program)).all()


def test_what_is_kept_is_float(tmp_path, program):
    net = Net()
    x = net.conv("x", 24, 6, 1, 1, name="kept")
    net.conv(x, 24, 24, 1, 1, name="y")
    net.save(tmp_path, [1, 6, 9, 9], "y", "--keep", "kept")
    check(tmp_path, program)
    kept = tmp_path / "kept.npy"
    whole = outputs(tmp_path, emulated(program, HALF), "--fetch", f"kept={kept}")
    assert np.load(kept).dtype == np.float32 and np.load(kept).shape == (1, 24, 9, 9)
    assert np.isfinite(whole).all()


def test_a_branch_reads_floats(tmp_path, program):
    net = Net()
    x = net.conv("x", 16, 4, 1, 1)
    then = helper.make_graph([helper.make_node("Relu", [x], ["t"])], "then", [], [helper.make_tensor_value_info("t", F, None)])
    otherwise = helper.make_graph([helper.make_node("Neg", [x], ["e"])], "else", [], [helper.make_tensor_value_info("e", F, None)])
    positive = net.add("Greater", net.add("ReduceSum", "x", keepdims=0), net.constant(np.float32(0)))
    branch = net.add("If", positive, then_branch=then, else_branch=otherwise)
    net.conv(branch, 5, 16, 1, 1, name="y")
    net.save(tmp_path, [1, 4, 8, 8], "y")
    check(tmp_path, program)


def test_files_of_floats_stay_as_they_are(tmp_path, program):
    net = Net()
    net.conv(net.conv("x", 24, 6, 3, 3), 24, 24, 1, 1, name="y")
    net.save(tmp_path, [1, 6, 19, 19], "y", "--precision", "float32")
    check(tmp_path, program, computes_halves=False)
