"""INT8 and 16 bits: layers that are named stay in float, inner values are measured, and what cannot be measured is said in words."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness import linnet
from small_int8 import model_of
from test_int8 import convert, run, snr

F = TensorProto.FLOAT


def dense(rng, *dims):
    return rng.normal(0, 1 / np.sqrt(dims[0]), dims).astype(np.float32)


def small_net(path, tail=(), output="y"):
    """Two products, 'net/first' and 'net/second', of 64 numbers, and what `tail` makes of them."""
    rng = np.random.default_rng(1)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="net/first"),
             helper.make_node("Relu", ["h"], ["r"], name="net/relu"),
             helper.make_node("MatMul", ["r", "v"], ["y"], name="net/second"), *tail]
    onnx.save(model_of(nodes, [("x", F, [8, 64])], [(output, F, None)],
                       {"w": dense(rng, 64, 64), "v": dense(rng, 64, 64), "none": np.float32(0)}), path)


def record(folder, n=8):
    folder.mkdir()
    for i in range(n):
        np.save(folder / f"{i}.npy", np.random.default_rng(i).normal(0, 1, (8, 64)).astype(np.float32))
    return folder


def by_name(layers):
    return {layer["node"]: layer for layer in layers}


@pytest.mark.parametrize("mode", ["dynamic", "static"])
@pytest.mark.parametrize("pattern, floats", [("net/first", {"net/first"}), ("*sec*", {"net/second"}),
                                             ("net/*", {"net/first", "net/second"})])
def test_named_layers_stay_in_float(tmp_path, mode, pattern, floats):
    path = tmp_path / "m.onnx"
    small_net(path)
    report = convert(path, "--int8", mode, "--calibrate", record(tmp_path / "in"), "--float", pattern)["int8"]
    layers = by_name(report["layers"])
    for name in ("net/first", "net/second"):
        assert layers[name]["int8"] == (name not in floats)
        assert layers[name]["why"] == ("--float" if name in floats else "")
    assert report["multiplications_in_int8"] == pytest.approx(1 - len(floats) / 2)
    x = np.load(tmp_path / "in" / "3.npy")
    got = run(path.with_suffix(".lnt"), {"x": x}, ["y"], tmp_path)["y"]
    convert(path)
    ratio = snr(run(path.with_suffix(".lnt"), {"x": x}, ["y"], tmp_path)["y"], got)
    assert ratio > 60 if len(floats) == 2 else 25 < ratio < 60


def test_named_layers_keep_float32(tmp_path):
    path = tmp_path / "m.onnx"
    small_net(path)
    layers = by_name(convert(path, "--precision", "float16", "--float", "net/second")["precision"]["layers"])
    assert (layers["net/first"]["weights"], layers["net/second"]["weights"]) == ("float16", "float")
    assert layers["net/second"]["why"] == "--float" and layers["net/second"]["bytes_after"] == 64 * 64 * 4


@pytest.mark.parametrize("options, message", [
    (["--float", "net/secnd"], "no layer is called 'net/secnd'; did you mean 'net/second'?"),
    (["--float", "net/first", "--float", "nothing/*"], "no layer is called 'nothing/*'"),
    (["--measure", "H"], "no value 'H'; did you mean 'h'?")])
def test_names_that_nothing_has(tmp_path, options, message):
    path = tmp_path / "m.onnx"
    small_net(path)
    for form in (["--int8", "dynamic"], ["--precision", "float16"]):
        done = linnet("convert", path, "-o", tmp_path / "none.lnt", *form, *options)
        assert done.returncode == 2 and message in done.stderr and not (tmp_path / "none.lnt").exists()
    done = linnet("convert", path, "-o", tmp_path / "none.lnt", *options)
    assert done.returncode == 2 and "belong to --int8, --int4 and --precision" in done.stderr


# ---- what is measured ----

NOISE = [helper.make_node("RandomNormalLike", ["y"], ["n"], name="noise"), helper.make_node("Mul", ["y", "n"], ["z"])]
TAILS = {"noise": (NOISE, "is noise, other random numbers with each seed"),
         "nan": ([helper.make_node("Neg", ["r"], ["m"]), helper.make_node("Log", ["m"], ["g"]), helper.make_node("Mul", ["g", "y"], ["z"])],
                 "holds NaN"),
         "zero": ([helper.make_node("Mul", ["y", "none"], ["o"]), helper.make_node("Abs", ["o"], ["z"])], "is all zero"),
         "constant": ([helper.make_node("Mul", ["y", "none"], ["o"]), helper.make_node("Cos", ["o"], ["z"])], "is constant")}


@pytest.mark.parametrize("form, key", [(["--int8", "dynamic"], "int8"), (["--precision", "float16"], "precision")])
@pytest.mark.parametrize("kind", TAILS)
def test_what_cannot_be_measured_is_said(tmp_path, kind, form, key):
    path = tmp_path / "m.onnx"
    tail, words = TAILS[kind]
    small_net(path, tail, "z")
    told, = convert(path, *form)[key]["outputs"]
    assert told["output"] == "z" and told["not_measurable"] == words and told["snr_db"] is None and told["max_error"] is None
    done = linnet("convert", path, "-o", tmp_path / "m.lnt", *form)
    assert f"output z {words}: not measurable" in done.stdout and "--measure" in done.stdout and "nan" not in done.stdout
    told, = convert(path, *form, "--measure", "y")[key]["outputs"]
    assert told["output"] == "y" and told["not_measurable"] is None and 30 < told["snr_db"] < 120
    printed = linnet("convert", path, "-o", tmp_path / "m.lnt", *form, "--measure", "y").stdout
    assert "value y: SNR" in printed and "not measurable" not in printed


def test_seeds_make_noise_measurable(tmp_path):
    """Both forms of the model draw the same numbers."""
    path = tmp_path / "m.onnx"
    seeded = [helper.make_node("RandomNormalLike", ["y"], ["n"], seed=3.0), NOISE[1]]
    small_net(path, seeded, "z")
    told, = convert(path, "--int8", "dynamic")["int8"]["outputs"]
    assert told["not_measurable"] is None and 30 < told["snr_db"] < 60
    assert linnet("verify", path.with_suffix(".lnt")).returncode == 0


def test_bounds_need_something_that_can_be_measured(tmp_path):
    path = tmp_path / "m.onnx"
    small_net(path, NOISE, "z")
    samples = ["--calibrate", record(tmp_path / "in")]
    done = linnet("convert", path, "-o", tmp_path / "m.lnt", "--int8", "dynamic", "--min-snr", "30", *samples)
    assert done.returncode == 2 and "--measure" in done.stderr and not (tmp_path / "m.lnt").exists()
    free = convert(path, "--int8", "dynamic", *samples)["int8"]
    assert all(layer["int8"] for layer in free["layers"])
    reached = convert(path, "--int8", "dynamic", "--min-snr", "0", "--measure", "y", *samples)["int8"]["outputs"][0]["snr_db"]
    bound = convert(path, "--int8", "dynamic", "--min-snr", str(reached + 2), "--measure", "y", *samples)["int8"]
    assert bound["outputs"][0]["snr_db"] >= reached + 2 and not all(layer["int8"] for layer in bound["layers"])


@pytest.mark.parametrize("mode", ["dynamic", "static"])
def test_inner_values_are_measured(tmp_path, mode):
    """Against the values themselves, which the file does not go on keeping."""
    path = tmp_path / "m.onnx"
    small_net(path)
    samples = record(tmp_path / "in", 4)
    told = convert(path, "--int8", mode, "--calibrate", samples, "--min-snr", "0", "--measure", "r", "--measure", "h")["int8"]["outputs"]
    assert [o["output"] for o in told] == ["h", "r"]
    x, fetched = {"x": np.load(samples / "3.npy")}, tmp_path / "h.npy"
    if mode == "dynamic":
        operators = json.loads(linnet("info", path.with_suffix(".lnt"), "--json").stdout)["operators"]
        assert operators == {"DynamicMatMul": 2}
        convert(path, "--keep", "h")
        run(path.with_suffix(".lnt"), x, ["y"], tmp_path, "--fetch", f"h={fetched}")
        want = np.load(fetched)
        convert(path, "--int8", mode, "--calibrate", samples, "--min-snr", "0", "--keep", "h")
        run(path.with_suffix(".lnt"), x, ["y"], tmp_path, "--fetch", f"h={fetched}")
        assert told[0]["snr_db"] == pytest.approx(snr(want, np.load(fetched)), abs=0.5)
    assert all(20 < o["snr_db"] < 60 for o in told)


# ---- transforms ----


def fourier_basis(n, window, parts="both"):
    """[rows, n]: cosines and negative sines of n samples in their window."""
    turn = 2 * np.pi * np.arange(n // 2 + 1)[:, None] * np.arange(n)[None] / n
    rows = {"both": [np.cos(turn), -np.sin(turn)], "cosines": [np.cos(turn)]}[parts]
    return (np.concatenate(rows) * window).astype(np.float32)


@pytest.mark.parametrize("n", [128, 256, 400])
@pytest.mark.parametrize("kind", ["analysis", "cosines", "synthesis", "matrix"])
def test_transforms_stay_in_float(tmp_path, kind, n):
    """A DFT by constant weights, as a convolution with a window, back again, or as a matrix, where the output shows nothing of
    what it costs; the layer beside it does not."""
    path = tmp_path / "m.onnx"
    basis = fourier_basis(n, 1 if kind == "matrix" else np.hanning(n + 1)[:-1], "cosines" if kind == "cosines" else "both")
    constants = {"b": basis.T.copy() if kind == "matrix" else basis[:, None]}
    rows, dims = len(basis), [1, len(basis), 6] if kind == "synthesis" else [1, 1, 4 * n]
    product = {"synthesis": helper.make_node("ConvTranspose", ["x", "b"], ["h"], name="basis", strides=[n // 4]),
               "matrix": helper.make_node("MatMul", ["x", "b"], ["h"], name="basis")}.get(
        kind, helper.make_node("Conv", ["x", "b"], ["h"], name="basis", strides=[n // 4]))
    nodes = [product, helper.make_node("Reshape", ["h", "flat"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"], name="dense")]
    columns = 16
    constants |= {"w": dense(np.random.default_rng(2), columns, 64), "flat": np.array([-1, columns])}
    if kind == "matrix":
        dims = [8, n]
    count = {"synthesis": 6 * n // 4 + 3 * n // 4, "matrix": 8 * rows}.get(kind, rows * 13)
    pad = -count % columns
    nodes[1:2] = [helper.make_node("Reshape", ["h", "all"], ["a"]), helper.make_node("Pad", ["a", "pads"], ["p"]),
                  helper.make_node("Reshape", ["p", "flat"], ["f"])]
    constants |= {"all": np.array([-1]), "pads": np.array([0, pad])}
    onnx.save(model_of([*nodes, *NOISE], [("x", F, dims)], [("z", F, None)], constants), path)
    layers = by_name(convert(path, "--int8", "dynamic")["int8"]["layers"])
    assert layers["dense"]["int8"] and not layers["basis"]["int8"] and layers["basis"]["why"] == "a fixed transform"
    for options in (["--min-snr", "0"], ["--measure", "y"]):
        layers = by_name(convert(path, "--int8", "dynamic", *options)["int8"]["layers"])
        assert layers["basis"]["int8"]


@pytest.mark.parametrize("kind", ["random", "wide", "moves"])
def test_what_was_trained_is_no_transform(tmp_path, kind):
    rng = np.random.default_rng(3)
    weights = {"random": dense(rng, 256, 256), "wide": dense(rng, 32, 2048),
               "moves": np.eye(128, dtype=np.float32)[rng.permutation(128)]}[kind]
    path = tmp_path / "m.onnx"
    onnx.save(model_of([helper.make_node("MatMul", ["x", "w"], ["y"], name="layer"), *NOISE], [("x", F, [4, len(weights)])],
                       [("z", F, None)], {"w": weights}), path)
    assert convert(path, "--int8", "dynamic")["int8"]["layers"][0]["int8"]
