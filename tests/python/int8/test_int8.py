"""INT8: bytes packed in the file, agreement with onnxruntime."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import check_against_reference, levels, linnet, reference
from small_int8 import bytes_of, element_type, model_of

F, I32 = TensorProto.FLOAT, TensorProto.INT32


@pytest.mark.parametrize("a", [np.uint8, np.int8])
@pytest.mark.parametrize("b", [np.uint8, np.int8])
def test_constant_bytes_are_packed(tmp_path, a, b):
    rng = np.random.default_rng(1)
    weights = bytes_of(rng, b, 3, 37, 21)
    filters = bytes_of(rng, b, 12, 5, 3, 3)
    model = model_of(
        [helper.make_node("MatMulInteger", ["x", "w", "za", "zb"], ["y"]),
         helper.make_node("ConvInteger", ["image", "f", "za", "zf"], ["z"], group=2, pads=[1, 0, 1, 2])],
        [("x", element_type(a), ["N", 7, 37]), ("image", element_type(a), [2, 10, 9, 11])],
        [("y", I32, None), ("z", I32, None)],
        {"w": weights, "f": filters, "za": np.array(-5 if a is np.int8 else 130, a),
         "zb": np.array(3, b), "zf": np.array(-7 if b is np.int8 else 129, b)})
    feed = {"x": bytes_of(rng, a, 3, 7, 37), "image": bytes_of(rng, a, 2, 10, 9, 11)}
    check_against_reference(tmp_path, model, feed)
    report = json.loads(linnet("convert", tmp_path / "model.onnx", "-o", tmp_path / "m.lnt", "--json").stdout)
    assert report["packed_bytes"] >= weights.size + filters.size
    assert report["constant_bytes"] - report["packed_bytes"] < 16
    fetched = linnet("verify", tmp_path / "m.lnt")
    assert fetched.returncode == 0, fetched.stderr


@pytest.mark.parametrize("seed", range(12))
def test_levels_agree_bit_for_bit(tmp_path, seed):
    """Convolutions of bytes of random shapes, in groups, depthwise, with strides; and a product behind one."""
    rng = np.random.default_rng(100 + seed)
    a, b, y = (rng.choice([np.uint8, np.int8]) for _ in range(3))
    groups = int(rng.choice([1, 1, 2, 5]))
    depth, columns = (1, 1) if seed % 3 == 0 else rng.integers(1, 20, 2)
    axes = int(rng.integers(1, 3))
    kernel, sizes = rng.integers(1, 4, axes), rng.integers(8, 40, axes)
    filters = int(groups * columns)
    constants = {"w": bytes_of(rng, b, filters, depth, *kernel), "sx": np.float32(0.02), "sy": np.float32(0.9),
                 "sw": rng.uniform(0.001, 0.02, filters).astype(np.float32), "zx": np.array(rng.integers(0, 100), a),
                 "zw": bytes_of(rng, b, filters) if seed % 2 else np.zeros(filters, b), "zy": np.array(3, y),
                 "bias": rng.integers(-5000, 5000, filters).astype(np.int32)}
    if seed % 4 == 1:  # a bias that nearly overflows the sums
        constants["bias"][0] = 2**31 - 5
    node = helper.make_node("QLinearConv", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "bias"], ["y"], group=groups,
                            strides=[int(s) for s in rng.integers(1, 4, axes)], pads=[int(p) for p in rng.integers(0, 2, 2 * axes)],
                            dilations=[int(d) for d in rng.integers(1, 3, axes)])
    model = model_of([node], [("x", element_type(a), [2, groups * int(depth), *map(int, sizes)])],
                     [("y", element_type(y), None)], constants)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    convert(path)
    x = bytes_of(rng, a, 2, groups * int(depth), *sizes)
    ran = [run(path.with_suffix(".lnt"), {"x": x}, ["y"], tmp_path, *way)["y"]
           for way in (*(("--level", level) for level in levels()), ("--threads", "3"))]
    assert all(np.array_equal(ran[0], other) for other in ran[1:])


@pytest.mark.parametrize("zeros", ["", "one", "each"])
@pytest.mark.parametrize("rows, depth, columns", [(32, 64, 32), (77, 128, 96), (64, 192, 160), (96, 64, 80), (64, 100, 64)])
def test_products_of_whole_tiles(tmp_path, rows, depth, columns, zeros):
    """Results that tiles store themselves, beside those of tiles that are not whole; of a batch, and with threads."""
    rng = np.random.default_rng(rows + depth)
    w, zb = bytes_of(rng, np.int8, depth, columns), bytes_of(rng, np.int8, columns) if zeros == "each" else np.array(9, np.int8)
    node = helper.make_node("MatMulInteger", ["x", "w", "za"] + ["zb"] * (zeros != ""), ["y"])
    model = model_of([node], [("x", TensorProto.UINT8, [2, rows, depth])], [("y", I32, None)],
                     {"w": w, "za": np.array(131, np.uint8), "zb": zb})
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    convert(path)
    x = bytes_of(rng, np.uint8, 2, rows, depth)
    right = (x.astype(np.int32) - 131) @ (w.astype(np.int32) - (zb.astype(np.int32) if zeros else 0))
    for way in (*(("--level", level) for level in levels()), ("--threads", "3")):
        assert np.array_equal(run(path.with_suffix(".lnt"), {"x": x}, ["y"], tmp_path, *way)["y"], right)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("kernel", [[5], [16], [3, 3], [7, 7], [2, 3, 4]])
def test_few_channels(tmp_path, kernel, depth):
    """Their taps along the last axis are padded together; zero points of both sides, padding, an image that ends there."""
    rng = np.random.default_rng(depth)
    axes, (a, b) = len(kernel), rng.choice([np.uint8, np.int8], 2)
    constants = {"w": bytes_of(rng, b, 17, depth, *kernel), "zx": np.array(rng.integers(0, 100), a), "zw": np.array(5, b)}
    node = helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], strides=[1] * (axes - 1) + [2],
                            pads=[0] * axes + [1] * (depth % 2) * axes + [0] * (1 - depth % 2) * axes)
    extents = [int(k) + 6 for k in kernel]
    model = model_of([node], [("x", element_type(a), [2, depth, *extents])], [("y", I32, None)], constants)
    feed = {"x": bytes_of(rng, a, 2, depth, *extents)}
    check_against_reference(tmp_path, model, feed)
    path = tmp_path / "lines.onnx"
    onnx.save(model, path)
    convert(path)
    line = kernel[-1] * depth
    panels = 32 * (int(np.prod(kernel[:-1])) * -(-line // 4) * 4 + 4)
    found = json.loads(linnet("info", path.with_suffix(".lnt"), "--json").stdout)
    assert panels in (found["packed_bytes"], found["restored_bytes"]), "as kernels read them: in the file, or when it is loaded"
    ran = [run(path.with_suffix(".lnt"), feed, ["y"], tmp_path, "--level", level)["y"] for level in levels()]
    assert all(np.array_equal(ran[0], other) for other in ran[1:])


# ---- --int8 dynamic ----


def small_network(rng):
    """Convolutions in groups and with an odd number of channels, a Gemm with everything, a MatMul."""
    def normal(*shape):
        return rng.normal(0, 0.3, shape).astype(np.float32)

    nodes = [helper.make_node("Conv", ["image", "f1", "b1"], ["c1"], pads=[1, 2, 0, 1], strides=[2, 1]),
             helper.make_node("Relu", ["c1"], ["r1"]),
             helper.make_node("Conv", ["r1", "f2"], ["c2"], group=2, dilations=[1, 2], pads=[0, 2, 0, 2]),
             helper.make_node("Conv", ["c2", "f3", "b3"], ["c3"]),
             helper.make_node("Add", ["c3", "c2"], ["sum"]),
             helper.make_node("GlobalAveragePool", ["sum"], ["pool"]),
             helper.make_node("Flatten", ["pool"], ["flat"]),
             helper.make_node("Gemm", ["flat", "g", "gb"], ["h"], alpha=0.5, beta=2.0, transB=1),
             helper.make_node("Tanh", ["h"], ["t"]),
             helper.make_node("MatMul", ["t", "m"], ["y"])]
    constants = {"f1": normal(24, 3, 3, 3), "b1": normal(24), "f2": normal(18, 12, 1, 3), "f3": normal(18, 18, 1, 1),
                 "b3": normal(18), "g": normal(40, 18), "gb": normal(40), "m": normal(40, 7)}
    return model_of(nodes, [("image", F, ["N", 3, 13, 17])], [("y", F, None)], constants)


def convert(path, *options):
    done = linnet("convert", path, "-o", path.with_suffix(".lnt"), "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run(lnt, inputs, outputs, folder, *options):
    """The outputs of a model on inputs, both by name."""
    words = []
    for name, value in inputs.items():
        np.save(folder / f"in_{name}.npy", value)
        words += ["--input", f"{name}={folder / f'in_{name}.npy'}"]
    for name in outputs:
        words += ["--output", f"{name}={folder / f'out_{name}.npy'}"]
    done = linnet("run", lnt, *words, *options)
    assert done.returncode == 0, done.stderr
    return {name: np.load(folder / f"out_{name}.npy") for name in outputs}


def snr(want, got):
    noise = np.sum((want.astype(np.float64) - got) ** 2)
    return np.inf if noise == 0 else 10 * np.log10(np.sum(want.astype(np.float64) ** 2) / noise)


@pytest.mark.parametrize("opt", ["none", "all"])
def test_dynamic(tmp_path, opt):
    rng = np.random.default_rng(2)
    model = small_network(rng)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    report = convert(path, "--opt", opt, "--int8", "dynamic")
    layers = report["int8"]["layers"]
    assert len(layers) == 5 and all(x["int8"] and x["snr_db"] > 30 for x in layers)
    assert all(x["bytes_after"] * 4 == x["bytes_before"] for x in layers)
    image = rng.normal(0, 1, (2, 3, 13, 17)).astype(np.float32)
    want = reference(model, {"image": image})[0]
    got = [run(path.with_suffix(".lnt"), {"image": image}, ["y"], tmp_path, "--threads", threads)["y"]
           for threads in (1, 3)]
    assert snr(want, got[0]) > 30
    assert np.array_equal(*got)
    assert linnet("verify", path.with_suffix(".lnt")).returncode == 0


def test_levels_agree(tmp_path):
    """Sums are exact: what remains is the rounding of floats."""
    rng = np.random.default_rng(3)
    path = tmp_path / "m.onnx"
    onnx.save(small_network(rng), path)
    convert(path, "--int8", "dynamic")
    image = rng.normal(0, 1, (1, 3, 13, 17)).astype(np.float32)
    scalar = run(path.with_suffix(".lnt"), {"image": image}, ["y"], tmp_path, "--level", "scalar")["y"]
    best = run(path.with_suffix(".lnt"), {"image": image}, ["y"], tmp_path)["y"]
    assert snr(scalar, best) > 45  # a float that rounds to the neighboring byte


def test_bound_keeps_layers_in_float(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(small_network(np.random.default_rng(4)), path)
    free = convert(path, "--int8", "dynamic")["int8"]
    reached = free["outputs"][0]["snr_db"]
    bound = convert(path, "--int8", "dynamic", "--min-snr", f"{reached + 3:.2f}")["int8"]
    kept = [x for x in bound["layers"] if not x["int8"]]
    assert bound["outputs"][0]["snr_db"] >= reached + 3
    assert 0 < len(kept) < 5 and all(x["why"] == "the outputs' SNR" for x in kept)
    everything = convert(path, "--int8", "dynamic", "--min-snr", "190")["int8"]
    assert not any(x["int8"] for x in everything["layers"])


def test_auto_takes_what_is_faster(tmp_path):
    """Of layers, and of whole models: what was measured says what was taken."""
    rng = np.random.default_rng(5)
    path = tmp_path / "m.onnx"
    onnx.save(small_network(rng), path)
    samples = tmp_path / "samples"
    samples.mkdir()
    for i in range(4):
        np.savez(samples / f"{i}.npz", image=rng.normal(0, 1, (1, 3, 13, 17)).astype(np.float32))
    for options, tried in (([], ["float", "dynamic", "dynamic, where it gains most"]),
                           (["--calibrate", samples], ["float", "dynamic", "dynamic, where it gains most", "static"])):
        report = convert(path, "--int8", "auto", *options)["int8"]
        forms = {form["form"]: form for form in report["forms"]}
        assert list(forms) == tried
        worst = {name: max(form[team] / forms["float"][team] for team in ("one_thread_us", "all_threads_us"))
                 for name, form in forms.items()}
        best = min(worst, key=worst.get)
        taken = [form["form"] for form in report["forms"] if form["chosen"]]
        assert taken == [best if worst[best] < 0.95 else "float"]
        if taken != ["static"]:
            assert all(x["int8_us"] <= x["float_us"] for x in report["layers"] if x["int8"])
        if taken == ["float"]:
            assert not any(x["int8"] for x in report["layers"])
        found = json.loads(linnet("info", path.with_suffix(".lnt"), "--json").stdout)["operators"]
        assert any(name.startswith(("Dynamic", "QLinear")) for name in found) == any(x["int8"] for x in report["layers"])


def test_recorded_inputs(tmp_path):
    rng = np.random.default_rng(6)
    path = tmp_path / "m.onnx"
    onnx.save(small_network(rng), path)
    samples = tmp_path / "samples"
    samples.mkdir()
    for i in range(3):
        np.savez(samples / f"{i}.npz", image=rng.normal(0, 1, (1 + i, 3, 13, 17)).astype(np.float32))
    report = convert(path, "--int8", "dynamic", "--calibrate", samples)["int8"]
    assert report["measured_on"] == "recorded inputs that were not calibrated on"
    assert (report["inputs_calibrated"], report["inputs_measured"]) == (2, 1) and report["outputs"][0]["snr_db"] > 30


@pytest.mark.parametrize("kernel, stride, pads, more, extents", [
    ([16], 8, [4, 4], 0, [20]), ([7], 3, [1, 2], 1, [11]), ([3], 4, [0, 0], 1, [9]), ([4], 1, [3, 2], 0, [9]),
    ([5], 2, [6, 3], 0, [9]), ([2, 2], 2, [0, 0, 0, 0], 0, [9, 7]), ([3, 4], 2, [1, 0, 1, 1], 1, [6, 5])])
@pytest.mark.parametrize("mode", ["dynamic", "static"])
def test_transposed_convolution(tmp_path, kernel, stride, pads, more, extents, mode):
    """It becomes a convolution, whose outputs are put in rows and cut off."""
    rng = np.random.default_rng(12)
    constants = {"w": rng.normal(0, 0.1, (64, 32, *kernel)).astype(np.float32), "b": rng.normal(0, 1, 32).astype(np.float32)}
    node = helper.make_node("ConvTranspose", ["x", "w"] + ["b"] * (stride > 1), ["y"], strides=[stride] * len(kernel), pads=pads,
                            output_padding=[more] + [0] * (len(kernel) - 1))
    model = model_of([node], [("x", F, ["N", 64, *["HW"[i] for i in range(len(kernel))]])], [("y", F, None)],
                     constants if stride > 1 else {"w": constants["w"]})
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    x = rng.normal(0, 1, (2, 64, *extents)).astype(np.float32)
    np.savez(tmp_path / "s.npz", x=x)
    layers = convert(path, "--int8", mode, "--calibrate", tmp_path / "s.npz")["int8"]["layers"]
    assert [(q["op"], q["int8"]) for q in layers if q["bytes_before"]] == [("Conv", True)]
    got = run(path.with_suffix(".lnt"), {"x": x}, ["y"], tmp_path)["y"]
    want = reference(model, {"x": x})[0]
    assert got.shape == want.shape and snr(want, got) > 35


@pytest.mark.parametrize("op, hidden", [("LSTM", 48), ("GRU", 48), ("GRU", 21), ("LSTM", 37)])
@pytest.mark.parametrize("variant", range(4))
def test_recurrent_layers(tmp_path, op, hidden, variant):
    """Both directions, unequal lengths, initial states, GRU's two ways to reset, and a row of more than one tile."""
    rng = np.random.default_rng(variant)
    gates, batch, both = (4 if op == "LSTM" else 3), (1, 3, 17, 2)[variant], variant % 2
    directions = 1 + both
    attributes = {"hidden_size": hidden, "direction": ["forward", "bidirectional"][both]}
    if op == "GRU":
        attributes["linear_before_reset"] = variant // 2
    constants = {"w": rng.normal(0, 0.3, (directions, gates * hidden, 19)), "r": rng.normal(0, 0.2, (directions, gates * hidden, hidden)),
                 "b": rng.normal(0, 0.2, (directions, 2 * gates * hidden)), "h": rng.normal(0, 1, (directions, batch, hidden))}
    constants = {k: v.astype(np.float32) for k, v in constants.items()}
    constants["lengths"] = rng.integers(1, 7, batch).astype(np.int32)
    model = model_of([helper.make_node(op, ["x", "w", "r", "b", "lengths" if variant else "", "h"], ["y", "last"], **attributes)],
                     [("x", F, [7, batch, 19])], [("y", F, None), ("last", F, None)], constants)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    layers = convert(path, "--int8", "dynamic")["int8"]["layers"]
    assert [x["int8"] for x in layers] == [True] and layers[0]["bytes_after"] * 4 == layers[0]["bytes_before"]
    x = rng.normal(0, 1, (7, batch, 19)).astype(np.float32)
    want = reference(model, {"x": x})
    got = run(path.with_suffix(".lnt"), {"x": x}, ["y", "last"], tmp_path)
    assert snr(want[0], got["y"]) > 30 and snr(want[1], got["last"]) > 30


def test_embeddings(tmp_path):
    """A table that is also an output projection is stored once."""
    rng = np.random.default_rng(11)
    table = rng.normal(0, 1, (300, 50)).astype(np.float32)
    model = model_of([helper.make_node("Gather", ["table", "ids"], ["x"]), helper.make_node("Tanh", ["x"], ["t"]),
                      helper.make_node("Gemm", ["t", "table"], ["y"], transB=1)],
                     [("ids", TensorProto.INT64, ["N"])], [("y", F, None), ("x", F, None)], {"table": table})
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    report = convert(path, "--int8", "dynamic")
    assert report["constant_bytes"] < table.size * 1.3  # padding, sums and scales
    ids = np.array([0, 299, 17, -1, 16], np.int64)
    got = run(path.with_suffix(".lnt"), {"ids": ids}, ["x", "y"], tmp_path)
    assert np.abs(got["x"] - table[ids]).max() <= np.abs(table).max() / 127
    assert snr(reference(model, {"ids": ids})[0], got["y"]) > 30


@pytest.mark.parametrize("kernel, channels", [([3], 8), ([3, 3], 16), ([3, 3], 45), ([5, 5], 100), ([3, 3, 3], 70), ([9], 24)])
def test_depthwise(tmp_path, kernel, channels):
    """Depthwise convolutions of integers, and of floats as quantize_dynamic writes them: what onnxruntime gives, at all
    levels and for all numbers of threads the same bits."""
    rng = np.random.default_rng(channels)
    axes, extents = len(kernel), [11, 9, 7][:len(kernel)]
    window = {"group": channels, "strides": [1] * (axes - 1) + [2], "pads": [k // 2 for k in kernel] * 2}
    a, b = rng.choice([np.uint8, np.int8], 2)
    nodes = [helper.make_node("ConvInteger", ["q", "w", "zx", "zw"], ["sums"], **window)]
    constants = {"w": bytes_of(rng, b, channels, 1, *kernel), "zx": np.array(rng.integers(0, 100), a), "zw": np.array(5, b)}
    for i, (x, y) in enumerate([("x", "r"), ("r", "y")]):
        nodes += [helper.make_node("DynamicQuantizeLinear", [x], [f"q{i}", f"s{i}", f"z{i}"]),
                  helper.make_node("ConvInteger", [f"q{i}", f"w{i}", f"z{i}"], [f"i{i}"], **window),
                  helper.make_node("Cast", [f"i{i}"], [f"f{i}"], to=F), helper.make_node("Mul", [f"s{i}", f"ws{i}"], [f"ss{i}"]),
                  helper.make_node("Mul", [f"f{i}", f"ss{i}"], [f"m{i}"]), helper.make_node("Add", [f"m{i}", f"b{i}"], [f"c{i}"]),
                  helper.make_node("Relu" if i == 0 else "HardSwish", [f"c{i}"], [y])]
        constants |= {f"w{i}": bytes_of(rng, np.int8, channels, 1, *kernel), f"ws{i}": np.float32(0.01),
                      f"b{i}": rng.normal(0, 1, (1, channels) + (1,) * axes).astype(np.float32)}
    model = model_of(nodes, [("q", element_type(a), [2, channels, *extents]), ("x", F, [1, channels, *extents])],
                     [("sums", I32, None), ("y", F, None)], constants, opset=14)
    path, lnt = tmp_path / "m.onnx", tmp_path / "m.lnt"
    onnx.save(model, path)
    convert(path)
    assert json.loads(linnet("info", lnt, "--json").stdout)["operators"]["DynamicConv"] == 2
    feed = {"q": bytes_of(rng, a, 2, channels, *extents), "x": rng.normal(0, 1, (1, channels, *extents)).astype(np.float32)}
    want = reference(model, feed)
    ran = [run(lnt, feed, ["sums", "y"], tmp_path, *way)
           for way in (*(("--level", level) for level in levels()), ("--threads", "3"))]
    assert np.array_equal(ran[0]["sums"], want[0]) and snr(want[1], ran[0]["y"]) > 45
    for other in ran[1:]:
        assert all(np.array_equal(ran[0][name], other[name]) for name in other)
    feed["x"][0, 0] = np.nan
    assert np.isnan(run(lnt, feed, ["y"], tmp_path)["y"]).all()


@pytest.mark.parametrize("calibrated", [False, True])
def test_depthwise_weights_are_bytes(tmp_path, calibrated):
    """A depthwise layer of --int8 dynamic computes in float, with weights that the file holds as bytes."""
    rng = np.random.default_rng(19)
    filters = (rng.normal(0, 1, (64, 1, 5, 5)) * np.exp(rng.normal(0, 1, (64, 1, 1, 1)))).astype(np.float32)
    model = model_of([helper.make_node("Conv", ["x", "w", "b"], ["y"], group=64, pads=[2, 2, 2, 2])],
                     [("x", F, ["N", 64, 12, 9])], [("y", F, None)], {"w": filters, "b": np.ones(64, np.float32)})
    path, lnt = tmp_path / "m.onnx", tmp_path / "m.lnt"
    onnx.save(model, path)
    x = np.repeat(rng.normal(0, 1, (5, 64, 6, 9)), 2, axis=2).astype(np.float32)
    for i in range(5):
        np.savez(tmp_path / f"{i}.npz", x=x[i:i + 1])
    for opt in ("none", "all"):
        report = convert(path, "--opt", opt, "--int8", "dynamic", "--min-snr", "0", *["--calibrate", tmp_path] * calibrated)
        (layer,) = report["int8"]["layers"]
        assert not layer["int8"] and layer["bytes_after"] == 64 * 25 and layer["bytes_before"] == 4 * 64 * 25
        assert report["constant_bytes"] == 64 * 25 + 64 * 4 + 64 * 2  # bytes, their scales, the bias
        assert report["int8"]["multiplications_in_int8"] == 0
        assert json.loads(linnet("info", lnt, "--json").stdout)["restored_bytes"] == 4 * 64 * 25 + 4 * 64
        want, got = reference(model, {"x": x[4:]})[0], run(lnt, {"x": x[4:]}, ["y"], tmp_path)["y"]
        assert 40 < snr(want, got) < 100 and report["int8"]["outputs"][0]["snr_db"] == pytest.approx(snr(want, got), abs=3)


@pytest.mark.parametrize("min_snr, kept", [(0, False), (90, True)])
def test_floats_beside_weights_are_halves(tmp_path, min_snr, kept):
    """Floats in rows are float16 in the file, whole numbers past 2048 and small ones are not; --min-snr may forbid it."""
    rng = np.random.default_rng(23)
    constants = {"w": rng.normal(0, 1, (16, 256)).astype(np.float32), "t": rng.uniform(1, 2, 256).astype(np.float32),
                 "whole": np.arange(2000, 2256, dtype=np.float32), "tiny": np.full(256, 1e-6, np.float32)}
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Mul", ["x1", "t"], ["z"]),
                      helper.make_node("Add", ["x1", "whole"], ["v"]), helper.make_node("Mul", ["x1", "tiny"], ["u"])],
                     [("x", F, [3, 16]), ("x1", F, [3, 256])], [(name, F, None) for name in "yzvu"], constants)
    path, lnt = tmp_path / "m.onnx", tmp_path / "m.lnt"
    onnx.save(model, path)
    convert(path, "--int8", "dynamic", "--min-snr", str(min_snr))
    x1 = np.ones((3, 256), np.float32)
    got = run(lnt, {"x": np.ones((3, 16), np.float32), "x1": x1}, list("zvu"), tmp_path)
    assert np.array_equal(got["z"], x1 * (constants["t"] if kept else constants["t"].astype(np.float16)))
    assert np.array_equal(got["v"], x1 + constants["whole"]) and np.array_equal(got["u"], x1 * constants["tiny"])


def test_few_columns_are_packed_when_loaded(tmp_path):
    """Five filters are stored as five, and compute what they compute among sixteen."""
    rng = np.random.default_rng(17)
    filters = rng.normal(0, 1, (16, 512, 3, 3)).astype(np.float32)
    model = model_of([helper.make_node("Conv", ["x", "few"], ["y"]), helper.make_node("Conv", ["x", "many"], ["z"])],
                     [("x", F, [1, 512, 9, 7])], [("y", F, None), ("z", F, None)], {"few": filters[:5], "many": filters})
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    report, lnt = convert(path, "--int8", "dynamic"), path.with_suffix(".lnt")
    scales, sums = 4 * (5 + 16), 4 * 16
    assert report["constant_bytes"] == (5 + 16) * 4608 + scales + sums
    assert json.loads(linnet("info", lnt, "--json").stdout)["restored_bytes"] == 16 * 4608 + sums
    got = run(lnt, {"x": rng.normal(0, 1, (1, 512, 9, 7)).astype(np.float32)}, ["y", "z"], tmp_path)
    assert np.array_equal(got["y"], got["z"][:, :5])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_functions_of_bytes_are_tables(tmp_path, op, dtype):
    """What is the same in every run is done once, with the same bytes."""
    rng = np.random.default_rng(13)
    constants = {"xs": np.float32(0.05), "xz": np.array(7, dtype), "ys": np.float32(0.01), "yz": np.array(-3 % 128, dtype)}
    node = helper.make_node(op, ["x", "xs", "xz", "ys", "yz"], ["y"], domain="com.microsoft",
                            **({"alpha": 0.1} if op == "QLinearLeakyRelu" else {}))
    number = element_type(dtype)
    model = model_of([node], [("x", number, ["N", 40])], [("y", number, None)], constants, microsoft=True)
    path, x, ran = tmp_path / "m.onnx", bytes_of(rng, dtype, 30, 40), {}
    onnx.save(model, path)
    for opt in ("none", "all"):
        convert(path, "--opt", opt)
        ran[opt] = run(path.with_suffix(".lnt"), {"x": x}, ["y"], tmp_path)["y"]
        found = json.loads(linnet("info", path.with_suffix(".lnt"), "--json").stdout)["operators"]
        assert found == {op if opt == "none" else "LookupTable": 1}
    assert np.array_equal(ran["none"], ran["all"])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_functions_of_one_byte_are_one_table(tmp_path, dtype):
    """x * sigmoid(x) + x, quantized at every step: one table, with the bytes that the operators make."""
    rng, number = np.random.default_rng(14), element_type(dtype)
    zeros = {"xz": 7, "sz": -3 % 128, "mz": 1, "yz": 20}
    constants = {"xs": np.float32(0.05), "ss": np.float32(0.004), "ms": np.float32(0.03), "ys": np.float32(0.06)}
    constants |= {name: np.array(zero, dtype) for name, zero in zeros.items()}
    nodes = [helper.make_node("QLinearSigmoid", ["x", "xs", "xz", "ss", "sz"], ["s"], domain="com.microsoft"),
             helper.make_node("QLinearMul", ["x", "xs", "xz", "s", "ss", "sz", "ms", "mz"], ["m"], domain="com.microsoft"),
             helper.make_node("QLinearAdd", ["m", "ms", "mz", "x", "xs", "xz", "ys", "yz"], ["y"], domain="com.microsoft")]
    path, x, ran = tmp_path / "m.onnx", np.arange(256).astype(np.uint8).view(dtype).reshape(8, 32), {}
    for outputs, tables in ((["y"], 1), (["y", "s"], 2)):
        onnx.save(model_of(nodes, [("x", number, ["N", 32])], [(name, number, None) for name in outputs], constants,
                           microsoft=True), path)
        for opt in ("none", "all"):
            convert(path, "--opt", opt)
            ran[opt] = run(path.with_suffix(".lnt"), {"x": x}, outputs, tmp_path)
            found = json.loads(linnet("info", path.with_suffix(".lnt"), "--json").stdout)["operators"]
            assert opt == "none" or found == {"LookupTable": tables}
        for name in outputs:
            assert np.array_equal(ran["none"][name], ran["all"][name])
    other = [nodes[0], helper.make_node("QLinearMul", ["s", "ss", "sz", "z", "xs", "xz", "ms", "mz"], ["y"],
                                        domain="com.microsoft")]
    onnx.save(model_of(other, [("x", number, ["N", 32]), ("z", number, ["N", 32])], [("y", number, None)], constants,
                       microsoft=True), path)
    convert(path)
    found = json.loads(linnet("info", path.with_suffix(".lnt"), "--json").stdout)["operators"]
    assert found == {"LookupTable": 1, "QLinearMul": 1}


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shapes", [([2, 19, 23, 24], [24]), ([3, 17, 40, 40], [3, 1, 1, 40]), ([2, 300, 7], [300, 7]),
                                    ([4, 90, 300], [4, 1, 300]), ([2, 3, 5, 600], [600]), ([2, 0, 5, 8], [8])])
def test_shared_rows_of_bytes(tmp_path, op, threads, shapes):
    """An operand that is broadcast makes the bytes that it makes written out, on either side."""
    rng, number = np.random.default_rng(21), element_type(np.uint8)
    constants = {"s0": np.float32(0.02), "z0": np.uint8(100), "s1": np.float32(0.03), "z1": np.uint8(128),
                 "ys": np.float32(0.7 if op == "QLinearMul" else 0.04), "yz": np.uint8(120)}
    large, small = (rng.integers(0, 256, shape).astype(np.uint8) for shape in shapes)
    ran = []
    for a, b in ((large, small), (large, np.broadcast_to(small, large.shape)), (small, large)):
        node = helper.make_node(op, ["a", "s0", "z0", "b", "s1", "z1", "ys", "yz"], ["y"], domain="com.microsoft")
        scales = constants if a is large else constants | {"s0": constants["s1"], "z0": constants["z1"],
                                                           "s1": constants["s0"], "z1": constants["z0"]}
        path = tmp_path / "m.onnx"
        onnx.save(model_of([node], [("a", number, list(a.shape)), ("b", number, list(b.shape))], [("y", number, None)],
                           scales, microsoft=True), path)
        convert(path)
        ran.append(run(path.with_suffix(".lnt"), {"a": a, "b": np.ascontiguousarray(b)}, ["y"], tmp_path,
                       "--threads", threads)["y"])
    assert np.array_equal(ran[0], ran[1]) and np.array_equal(ran[0], ran[2])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_concat_of_bytes(tmp_path, dtype):
    """Scales and zero points that are known before the run, or come with it: the same bytes."""
    rng, number = np.random.default_rng(18), element_type(dtype)
    meanings = {"ys": np.float32(0.03), "yz": np.array(5, dtype)}
    for i in range(3):
        meanings |= {f"s{i}": np.float32(0.02 * i + 0.01), f"z{i}": np.array(5 - 2 * i, dtype)}  # x1 means the same as y
    feed = {f"x{i}": bytes_of(rng, dtype, 2, 3 + i, 5) for i in range(3)}
    node = helper.make_node("QLinearConcat", ["ys", "yz"] + [f"{kind}{i}" for i in range(3) for kind in "xsz"], ["y"],
                            domain="com.microsoft", axis=1)
    tensors = [(name, number, list(x.shape)) for name, x in feed.items()]
    scalars = [(name, F if x.dtype == np.float32 else number, []) for name, x in meanings.items()]
    ran = []
    for inputs, constants, fed in ((tensors, meanings, feed), (tensors + scalars, {}, feed | meanings)):
        path = tmp_path / "m.onnx"
        onnx.save(model_of([node], inputs, [("y", number, None)], constants, microsoft=True), path)
        convert(path)
        ran.append(run(path.with_suffix(".lnt"), fed, ["y"], tmp_path)["y"])
    real = [np.float32(meanings[f"s{i}"]) * (feed[f"x{i}"].astype(np.float32) - meanings[f"z{i}"]) for i in range(3)]
    limits = np.iinfo(dtype)
    want = np.clip(np.rint(np.concatenate(real, axis=1) / meanings["ys"]) + 5, limits.min, limits.max)
    assert np.array_equal(ran[0], ran[1]) and np.abs(ran[0].astype(int) - want).max() <= 1


def test_seeded_inputs_give_something(tmp_path):
    """A window of 100 over 16 samples gives nothing that could be measured: longer ones are tried."""
    rng = np.random.default_rng(17)
    model = model_of([helper.make_node("Conv", ["x", "w"], ["y"], strides=[50])], [("x", F, ["N", 1, "L"])], [("y", F, None)],
                     {"w": rng.normal(0, 1, (32, 1, 100)).astype(np.float32)})
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    report = convert(path, "--int8", "dynamic")["int8"]
    assert report["layers"][0]["multiplications"] == 32 * 100 and 30 < report["outputs"][0]["snr_db"] < 100


def test_products_without_a_form_in_bytes_are_told(tmp_path):
    """The share of multiplications is that of all: 16 * 18 of pairs of channels, 16 * 16 of pointwise taps."""
    rng = np.random.default_rng(14)
    nodes = [helper.make_node("Conv", ["x", "d"], ["c"], group=8, pads=[1, 1, 1, 1]), helper.make_node("Conv", ["c", "p"], ["y"])]
    model = model_of(nodes, [("x", F, [1, 16, 8, 8])], [("y", F, None)],
                     {"d": rng.normal(0, 0.3, (16, 2, 3, 3)).astype(np.float32),
                      "p": rng.normal(0, 0.3, (16, 16, 1, 1)).astype(np.float32)})
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    report = convert(path, "--int8", "dynamic")["int8"]
    assert [(x["int8"], x["why"]) for x in report["layers"]] == [(False, "there is no such operator in INT8"), (True, "")]
    assert report["multiplications_in_int8"] == pytest.approx(256 / (256 + 288))


def bad_image(kind):
    image = np.zeros((1, 3, 13, 17), np.float32)
    if kind in ("nan", "inf"):
        image[0, 1, 2, 3] = float(kind)
    return {"shape": image[:, :2], "type": image.astype(np.float64), "empty": image[:0]}.get(kind, image)


@pytest.mark.parametrize("kind, message", [("nan", "is nan"), ("inf", "is inf"), ("shape", "does not fit input"),
                                           ("type", "does not fit input"), ("empty", "is empty")])
def test_bad_samples(tmp_path, kind, message):
    path = tmp_path / "m.onnx"
    onnx.save(small_network(np.random.default_rng(7)), path)
    np.savez(tmp_path / "s.npz", image=bad_image(kind))
    done = linnet("convert", path, "--int8", "dynamic", "--calibrate", tmp_path / "s.npz")
    assert done.returncode != 0 and message in done.stderr
    assert not path.with_suffix(".lnt").exists()


def test_no_samples(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(small_network(np.random.default_rng(8)), path)
    (tmp_path / "nothing").mkdir()
    for where, message in (("nothing", "there is no .npz"), ("missing.npz", "missing.npz")):
        done = linnet("convert", path, "--int8", "dynamic", "--calibrate", tmp_path / where)
        assert done.returncode != 0 and message in done.stderr
    np.savez(tmp_path / "other.npz", picture=bad_image("zeros"))
    done = linnet("convert", path, "--int8", "dynamic", "--calibrate", tmp_path / "other.npz")
    assert done.returncode != 0 and "image" in done.stderr
    assert linnet("convert", path, "--min-snr", "30").returncode == 2


@pytest.mark.parametrize("value", [0.0, 1e-30, 3.0, -2.0])
def test_constant_activations(tmp_path, value):
    model = small_network(np.random.default_rng(9))
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    convert(path, "--int8", "dynamic")
    image = np.full((1, 3, 13, 17), value, np.float32)
    got = run(path.with_suffix(".lnt"), {"image": image}, ["y"], tmp_path)["y"]
    assert snr(reference(model, {"image": image})[0], got) > 25


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(tmp_path, bad):
    rng = np.random.default_rng(10)
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", F, [3, 64])], [("y", F, None)],
                     {"w": rng.normal(0, 1, (64, 20)).astype(np.float32)})
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    convert(path, "--int8", "dynamic")
    x = rng.normal(0, 1, (3, 64)).astype(np.float32)
    x[1, 5] = bad
    got = run(path.with_suffix(".lnt"), {"x": x}, ["y"], tmp_path)["y"]
    assert not np.isfinite(got[1]).any() and np.isfinite(got[[0, 2]]).all()
