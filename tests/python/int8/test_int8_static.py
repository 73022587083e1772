"""--int8 static: activations in bytes over ranges found on recorded inputs."""

import json
import wave

import numpy as np
import onnx
import pytest
from onnx import helper

from harness import linnet, reference
from small_int8 import model_of
from test_int8 import F, convert, run, snr


def normal(rng, *shape):
    return rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)


def cnn(rng):
    """One of everything that stays in bytes from end to end."""
    def node(op, inputs, output, **attributes):
        return helper.make_node(op, inputs.split(), [output], **attributes)

    nodes = [node("Conv", "image f1 b1", "c1", pads=[1, 1, 1, 1], strides=[2, 2]),
             node("Clip", "c1 zero six", "r1"),
             node("Conv", "r1 f2 b2", "c2", pads=[1, 1, 1, 1], group=16),  # depthwise
             node("HardSwish", "c2", "h2"),
             node("Conv", "h2 f3 b3", "c3"),
             node("Add", "c3 r1", "sum"),
             node("Relu", "sum", "r3"),
             node("MaxPool", "r3", "small", kernel_shape=[2, 2], strides=[2, 2]),
             node("Conv", "small f4 b4", "c4", pads=[1, 1, 1, 1]),
             node("LeakyRelu", "c4", "l4", alpha=0.1),
             node("Resize", "l4  scales", "big", mode="nearest"),
             node("AveragePool", "r3", "means", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             node("Concat", "big means r3", "all", axis=1),
             node("Conv", "all f5 b5", "c5"),
             node("PRelu", "c5 slopes", "p5"),
             node("GlobalAveragePool", "p5", "pooled"),
             node("Conv", "pooled f6 b6", "c6"),
             node("Sigmoid", "c6", "gate"),
             node("Mul", "p5 gate", "gated"),
             node("Transpose", "gated", "turned", perm=[0, 2, 3, 1]),
             node("MatMul", "turned m", "product"),
             node("Add", "product mb", "biased"),
             node("Tanh", "biased", "t"),
             node("Flatten", "t", "flat"),
             node("Gemm", "flat g gb", "y", transB=1, alpha=0.5, beta=2.0)]
    nodes[10].input[:] = ["l4", "", "scales"]
    constants = {"f1": normal(rng, 16, 3, 3, 3), "b1": normal(rng, 16), "f2": normal(rng, 16, 1, 3, 3), "b2": normal(rng, 16),
                 "f3": normal(rng, 16, 16, 1, 1), "b3": normal(rng, 16), "f4": normal(rng, 16, 16, 3, 3), "b4": normal(rng, 16),
                 "f5": normal(rng, 24, 48, 1, 1), "b5": normal(rng, 24), "f6": normal(rng, 24, 24, 1, 1), "b6": normal(rng, 24),
                 "zero": np.float32(0), "six": np.float32(6), "scales": np.float32([1, 1, 2, 2]),
                 "slopes": rng.uniform(0, 0.5, (24, 1, 1)).astype(np.float32), "m": normal(rng, 20, 24).T.copy(),
                 "mb": normal(rng, 20), "g": normal(rng, 10, 1280), "gb": normal(rng, 10)}
    return model_of(nodes, [("image", F, ["N", 3, 16, 16])], [("y", F, None)], constants)


def record(rng, folder, n, name="image", shape=(1, 3, 16, 16)):
    folder.mkdir()
    for i in range(n):
        np.savez(folder / f"{i}.npz", **{name: rng.normal(0, 1, shape).astype(np.float32)})
    return folder


def operators(lnt):
    return json.loads(linnet("info", lnt, "--json").stdout)["operators"]


@pytest.mark.parametrize("opt", ["none", "all"])
@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy", "mse"])
def test_stays_in_bytes(tmp_path, opt, method):
    rng = np.random.default_rng(1)
    model = cnn(rng)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    report = convert(path, "--opt", opt, "--int8", "static", "--calibrate", record(rng, tmp_path / "samples", 12),
                     "--calibration", method)["int8"]
    assert (report["inputs_calibrated"], report["inputs_measured"]) == (9, 3)
    assert report["multiplications_in_int8"] == 1 and report["outputs"][0]["snr_db"] > 30
    weights = [x for x in report["layers"] if x["bytes_before"]]
    assert len(weights) == 8 and all(x["int8"] and x["snr_db"] > 20 for x in weights)
    assert all(x["bytes_after"] * 4 == x["bytes_before"] for x in weights)
    found = operators(path.with_suffix(".lnt"))
    # Only what comes in becomes bytes, and only the last product gives floats.
    assert found["QuantizeLinear"] == 1 and "DequantizeLinear" not in found
    assert found["QLinearConv"] == 6 and found["MatMulIntegerToFloat"] == 1 and found["QLinearGemm"] == 1
    assert found["LookupTable"] == 3 and "Relu" not in found and "Clip" not in found
    image = rng.normal(0, 1, (3, 3, 16, 16)).astype(np.float32)
    got = [run(path.with_suffix(".lnt"), {"image": image}, ["y"], tmp_path, *way)["y"]
           for way in (["--threads", 1], ["--threads", 3], ["--level", "scalar"])]
    assert snr(reference(model, {"image": image})[0], got[0]) > 26
    assert np.array_equal(got[0], got[1]) and snr(got[0], got[2]) > 40
    assert linnet("verify", path.with_suffix(".lnt")).returncode == 0


def test_float_between_bytes(tmp_path):
    """What has no operator on bytes takes and gives floats; kept values and outputs are there as floats."""
    rng = np.random.default_rng(2)
    nodes = [helper.make_node("Conv", ["x", "f"], ["c"]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("Softmax", ["r"], ["s"], axis=1), helper.make_node("Conv", ["s", "f"], ["d"]),
             helper.make_node("Conv", ["r", "f"], ["e"]), helper.make_node("Add", ["d", "e"], ["y"])]
    model = model_of(nodes, [("x", F, [1, 8, 6, 6])], [("y", F, None), ("r", F, None)], {"f": normal(rng, 8, 8, 1, 1)})
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    report = convert(path, "--int8", "static", "--calibrate", record(rng, tmp_path / "s", 40, "x", (1, 8, 6, 6)),
                     "--keep", "c")
    assert [o["snr_db"] > 30 for o in report["int8"]["outputs"]] == [True, True], report["int8"]["outputs"]
    x = rng.normal(0, 1, (1, 8, 6, 6)).astype(np.float32)
    got = run(path.with_suffix(".lnt"), {"x": x}, ["y", "r"], tmp_path, "--fetch", f"c={tmp_path / 'c.npy'}")
    want = reference(model, {"x": x})
    assert snr(want[0], got["y"]) > 25 and snr(want[1], got["r"]) > 30
    assert np.array_equal(np.maximum(np.load(tmp_path / "c.npy"), 0) > 0, got["r"] > 0)


@pytest.mark.parametrize("group, between", [(1, "Relu"), (4, "Relu"), (16, "Relu"), (1, "LeakyRelu"), (4, "LeakyRelu")])
def test_channels_of_unlike_size(tmp_path, group, between):
    """Channels from 0.003 to 1 that count the same in what reads them; with a bend at 0 and a least value in between."""
    rng = np.random.default_rng(11)
    sizes = np.float32(10) ** rng.uniform(-2.5, 0, 16).astype(np.float32)
    f, g = normal(rng, 16, 8, 1, 1) * sizes[:, None, None, None], normal(rng, 16, 16 // group, 3, 3)
    channel = np.arange(16)[:, None] // (16 // group) * (16 // group) + np.arange(16 // group)
    g /= sizes[channel][:, :, None, None]
    behind = {"Relu": [helper.make_node("Relu", ["c"], ["r"])],
              "LeakyRelu": [helper.make_node("LeakyRelu", ["c"], ["l"], alpha=0.3), helper.make_node("Max", ["l", "least"], ["r"])]}
    nodes = [helper.make_node("Conv", ["x", "f"], ["c"]), *behind[between], helper.make_node("Conv", ["r", "g"], ["y"], group=group)]
    constants = {"f": f, "g": g, "least": np.float32(-0.05)}
    model = model_of(nodes, [("x", F, [1, 8, 20, 20])], [("y", F, None)], constants)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    report = convert(path, "--int8", "static", "--calibrate", record(rng, tmp_path / "s", 8, "x", (1, 8, 20, 20)), "--keep", "r")
    assert report["int8"]["outputs"][0]["snr_db"] > 30 and report["int8"]["multiplications_in_int8"] == 1
    assert "LookupTable" not in operators(path.with_suffix(".lnt"))
    x = rng.normal(0, 1, (1, 8, 20, 20)).astype(np.float32)
    run(path.with_suffix(".lnt"), {"x": x}, [], tmp_path, "--fetch", f"r={tmp_path / 'r.npy'}")
    onnx.save(model_of(nodes[:-1], [("x", F, [1, 8, 20, 20])], [("r", F, None)], constants), path)
    want, got = reference(path, {"x": x})[0], np.load(tmp_path / "r.npy")
    assert all(snr(want[:, c], got[:, c]) > 25 for c in range(16))


@pytest.mark.parametrize("op", ["HardSwish", "Tanh", "Gelu"])
def test_ranges_end_where_functions_do(tmp_path, op):
    """Outliers on the flat side of a function take no quantization levels from the rest: 41 in 256 steps would leave 16 dB."""
    rng = np.random.default_rng(16)
    nodes = [helper.make_node("Conv", ["x", "f"], ["c"]), helper.make_node(op, ["c"], ["h"]), helper.make_node("Conv", ["h", "f"], ["y"])]
    path, folder = tmp_path / "m.onnx", tmp_path / "samples"
    onnx.save(model_of(nodes, [("x", F, [1, 16, 12, 12])], [("y", F, None)], {"f": np.eye(16, dtype=np.float32)[:, :, None, None]}), path)
    folder.mkdir()
    for i in range(8):
        x = rng.uniform(-1, 1, (1, 16, 12, 12)).astype(np.float32)
        x[:, :, ::4, ::4] = -40
        np.savez(folder / f"{i}.npz", x=x)
    report = convert(path, "--int8", "static", "--calibrate", folder, "--calibration", "minmax", "--min-snr", 0)["int8"]
    assert next(q["snr_db"] for q in report["layers"] if q["op"] == op) > 35


@pytest.mark.parametrize("kind, mode", [("Conv", "static"), ("Conv", "dynamic"), ("depthwise", "static"), ("MatMul", "static"),
                                        ("MatMul", "dynamic"), ("Gemm", "static"), ("Gemm", "dynamic")])
def test_weights_are_rounded_for_what_they_meet(tmp_path, kind, mode):
    """Inputs that resemble each other: recorded ones let errors of weights cancel, noise does not."""
    rng = np.random.default_rng(15)
    mix = rng.normal(0, 1, (3, 32)).astype(np.float32)
    if kind in ("Conv", "depthwise"):
        node = helper.make_node("Conv", ["x", "w"], ["y"], group=32 if kind == "depthwise" else 1, pads=[2, 2, 2, 2])
        shape, weights = [1, 32, 12, 12], rng.normal(0, 1, (32, 1 if kind == "depthwise" else 32, 5, 5))
        weights[:, :, 0, 0] *= 15  # one large weight: steps are wide
    else:
        node = helper.make_node(kind, ["x", "w"], ["y"], **({"transB": 1, "alpha": -0.5} if kind == "Gemm" else {}))
        shape, weights = [64, 32], rng.normal(0, 1, (48, 32))
        weights[:, 0] *= 15
        weights = weights if kind == "Gemm" else weights.T.copy()

    def alike():
        if len(shape) == 4:  # smooth
            return np.repeat(np.repeat(rng.choice([-1, -0.5, 0.3, 0.9], (1, 32, 2, 2)), 6, axis=2), 6, axis=3)
        return rng.choice([-1, 1], (64, 3)) @ mix

    path, found = tmp_path / "m.onnx", {}
    onnx.save(model_of([node], [("x", F, shape)], [("y", F, None)], {"w": weights.astype(np.float32)}), path)
    for name in ("noise", "alike"):
        (tmp_path / name).mkdir()
        for i in range(8):  # measured on every fourth
            x = alike() if i % 4 == 3 or name == "alike" else rng.choice([-1, 1], shape) * np.abs(alike()).max()
            np.savez(tmp_path / name / f"{i}.npz", x=x.astype(np.float32))
        report = convert(path, "--int8", mode, "--calibrate", tmp_path / name, "--min-snr", 0)["int8"]
        found[name] = report["outputs"][0]["snr_db"]
    assert found["alike"] > found["noise"] + 3, found


@pytest.mark.parametrize("method", ["percentile", "entropy"])
def test_outliers_are_cut_off(tmp_path, method):
    """One element in a hundred thousand is large: ranges that leave it out hold the others better."""
    rng = np.random.default_rng(3)
    path, folder = tmp_path / "m.onnx", tmp_path / "samples"
    onnx.save(model_of([helper.make_node("Conv", ["x", "f"], ["y"])], [("x", F, [1, 8, 100, 100])], [("y", F, None)],
                       {"f": normal(rng, 8, 8, 1, 1)}), path)
    folder.mkdir()
    for i in range(3):
        x = rng.normal(0, 1, (1, 8, 100, 100)).astype(np.float32)
        if i < 2:
            x[0, 0, 0, 0] = 300
        np.savez(folder / f"{i}.npz", x=x)
    found = {m: convert(path, "--int8", "static", "--calibrate", folder, "--calibration", m,
                            "--min-snr", 0)["int8"]["outputs"][0]["snr_db"] for m in ("minmax", method)}
    assert found[method] > found["minmax"] + 15


def test_bound_keeps_layers_in_float(tmp_path):
    rng = np.random.default_rng(4)
    path = tmp_path / "m.onnx"
    onnx.save(cnn(rng), path)
    samples = record(rng, tmp_path / "samples", 8)
    free = convert(path, "--int8", "static", "--calibrate", samples, "--min-snr", 0)["int8"]
    reached = free["outputs"][0]["snr_db"]
    bound = convert(path, "--int8", "static", "--calibrate", samples, "--min-snr", f"{reached + 3:.2f}")["int8"]
    kept = [x for x in bound["layers"] if x["why"] == "the outputs' SNR"]
    assert bound["outputs"][0]["snr_db"] >= reached + 3 and 0 < len(kept) < 8
    assert bound["multiplications_in_int8"] > 0.3
    everything = convert(path, "--int8", "static", "--calibrate", samples, "--min-snr", "190")["int8"]
    assert not any(x["int8"] for x in everything["layers"])


def test_bound_unless_told_otherwise(tmp_path):
    """A long chain that bytes alone do not carry far enough: what stays in float is told, and how exact it would be."""
    rng = np.random.default_rng(13)
    nodes = [helper.make_node("Conv", [f"x{i}", f"f{i}"], [f"x{i + 1}"]) for i in range(16)]
    path = tmp_path / "m.onnx"
    onnx.save(model_of(nodes, [("x0", F, [1, 16, 9, 9])], [("x16", F, None)],
                       {f"f{i}": normal(rng, 16, 16, 1, 1) for i in range(16)}), path)
    folder = record(rng, tmp_path / "s", 8, "x0", (1, 16, 9, 9))
    free, bound = (convert(path, "--int8", "static", "--calibrate", folder, *options)["int8"]
                   for options in (["--min-snr", 0], []))
    assert free["outputs"][0]["snr_db"] < 30 <= bound["outputs"][0]["snr_db"]
    assert free["multiplications_in_int8"] == 1
    kept = [x for x in bound["layers"] if not x["int8"]]
    assert 0 < len(kept) < 16 and all(x["why"] == "the outputs' SNR" and x["snr_db"] > 0 for x in kept)
    # Noise that nobody recorded is no reason.
    assert convert(path, "--int8", "dynamic")["int8"]["multiplications_in_int8"] == 1


@pytest.mark.parametrize("bias, weights", [(0.3, 0), (5.0, 1e-20), (1e-3, 1e-9), (-2.0, 1e4)])
def test_extreme_columns(tmp_path, bias, weights):
    """A column of zeros or of next to nothing keeps its bias, and leaves the others alone."""
    rng = np.random.default_rng(5)
    f = normal(rng, 8, 8, 3, 3)
    f[3] = weights * np.sign(f[3])
    nodes = [helper.make_node("Conv", ["x", "f", "b"], ["c"]), helper.make_node("Conv", ["c", "g"], ["y"])]
    model = model_of(nodes, [("x", F, [1, 8, 9, 9])], [("y", F, None)],
                     {"f": f, "b": np.full(8, bias, np.float32), "g": normal(rng, 8, 8, 1, 1)})
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    report = convert(path, "--int8", "static", "--calibrate", record(rng, tmp_path / "s", 8, "x", (1, 8, 9, 9)))
    assert report["int8"]["outputs"][0]["snr_db"] > 30


@pytest.mark.parametrize("value", [0.0, 1e-30, 3.0, -2.0])
def test_constant_activations(tmp_path, value):
    rng = np.random.default_rng(6)
    model = cnn(rng)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    image = np.full((1, 3, 16, 16), value, np.float32)
    np.savez(tmp_path / "s.npz", image=image)
    convert(path, "--int8", "static", "--calibrate", tmp_path / "s.npz")
    got = run(path.with_suffix(".lnt"), {"image": image}, ["y"], tmp_path)["y"]
    assert snr(reference(model, {"image": image})[0], got) > 25


def test_values_that_are_not_finite(tmp_path):
    """A Log that meets 0: its neighbors stay in float, the others do not."""
    rng = np.random.default_rng(7)
    nodes = [helper.make_node("Conv", ["x", "f"], ["c"]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("Conv", ["r", "f"], ["d"]), helper.make_node("Relu", ["d"], ["e"]),
             helper.make_node("Log", ["e"], ["l"]), helper.make_node("Clip", ["l", "low", "high"], ["n"]),
             helper.make_node("Conv", ["n", "f"], ["y"]), helper.make_node("Conv", ["l", "f"], ["z"])]
    model = model_of(nodes, [("x", F, [1, 8, 6, 6])], [("y", F, None), ("z", F, None)],
                     {"f": np.abs(normal(rng, 8, 8, 1, 1)), "low": np.float32(-3), "high": np.float32(3)})
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    report = convert(path, "--int8", "static", "--calibrate", record(rng, tmp_path / "s", 8, "x", (1, 8, 6, 6)),
                     "--min-snr", 0)["int8"]
    layers = [x for x in report["layers"] if x["op"] == "Conv"]
    assert [x["int8"] for x in layers] == [True, True, True, False]
    assert layers[-1]["why"] == "values that are not finite"
    assert report["outputs"][0]["snr_db"] > 30


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_sound_in_frames(tmp_path, mode):
    """A sound is cut into what the input holds; a declared state goes from frame to frame."""
    rng = np.random.default_rng(12)
    nodes = [helper.make_node("Concat", ["state", "x"], ["both"], axis=1),
             helper.make_node("MatMul", ["both", "w"], ["h"]), helper.make_node("Tanh", ["h"], ["next"]),
             helper.make_node("MatMul", ["next", "v"], ["y"])]
    path, sound = tmp_path / "m.onnx", tmp_path / "s.wav"
    onnx.save(model_of(nodes, [("x", F, [1, 160]), ("state", F, [1, 32])], [("y", F, None), ("next", F, None)],
                       {"w": normal(rng, 32, 192).T.copy(), "v": normal(rng, 24, 32).T.copy()}), path)
    with wave.open(str(sound), "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(16000)
        w.writeframes((rng.normal(0, 8000, 160 * 20 + 7)).clip(-32768, 32767).astype(np.int16).tobytes())
    report = convert(path, "--int8", mode, "--calibrate", sound, "--state", "next=state")["int8"]
    assert (report["inputs_calibrated"], report["inputs_measured"]) == (15, 5)
    assert report["outputs"][0]["snr_db"] > 25
    with wave.open(str(sound), "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(16000)
        w.writeframes(bytes(300))
    done = linnet("convert", path, "--int8", mode, "--calibrate", sound, "--state", "next=state")
    assert done.returncode != 0 and "shorter than the 160 of input 'x'" in done.stderr


def test_one_input_does_for_both(tmp_path):
    rng = np.random.default_rng(8)
    path = tmp_path / "m.onnx"
    onnx.save(cnn(rng), path)
    report = convert(path, "--int8", "static", "--calibrate", record(rng, tmp_path / "s", 1))["int8"]
    assert report["measured_on"] == "the input that was calibrated on"
    report = convert(path, "--int8", "static", "--calibrate", record(rng, tmp_path / "t", 2))["int8"]
    assert report["measured_on"] == "recorded inputs that were not calibrated on"
    assert (report["inputs_calibrated"], report["inputs_measured"]) == (1, 1)


def test_needs_samples(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(cnn(np.random.default_rng(9)), path)
    (tmp_path / "nothing").mkdir()
    np.savez(tmp_path / "nan.npz", image=np.full((1, 3, 16, 16), np.nan, np.float32))
    np.savez(tmp_path / "small.npz", image=np.zeros((1, 3, 8, 16), np.float32))
    np.savez(tmp_path / "empty.npz", image=np.zeros((0, 3, 16, 16), np.float32))
    for options, message in (([], "--calibrate FILE|DIR"), (["--calibrate", tmp_path / "nothing"], "there is no .npz"),
                             (["--calibrate", tmp_path / "missing.npz"], "missing.npz"),
                             (["--calibrate", tmp_path / "nan.npz"], "is nan"),
                             (["--calibrate", tmp_path / "small.npz"], "does not fit input 'image'"),
                             (["--calibrate", tmp_path / "empty.npz"], "is empty")):
        done = linnet("convert", path, "--int8", "static", *options)
        assert done.returncode != 0 and message in done.stderr, done.stderr
        assert not path.with_suffix(".lnt").exists()
    assert "--int8 static" in linnet("convert", path, "--int8", "dynamic", "--calibration", "entropy").stderr
