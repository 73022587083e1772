"""`bench --vs onnxruntime`: what it prints, what it compares, and what it says where there is no onnxruntime."""

import importlib.util
import json
import pathlib
import platform
import shutil
import subprocess
import xml.etree.ElementTree

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import LINNET, linnet
from test_cli import documented, keys_of

FEW = ["--rounds", 2, "--processes", 1, "--starts", 1, "--json"]


def library():
    package = importlib.util.find_spec("onnxruntime")
    if not package:
        pytest.skip("onnxruntime is not installed")
    return next(pathlib.Path(package.origin).parent.glob("capi/libonnxruntime.so.*"))


def product(path, scale=1.0):
    """y = relu(x w), some of it not 0: N x 8 by 8 x 4."""
    w = (np.arange(32, dtype=np.float32).reshape(8, 4) % 7 - 3) * scale
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])], "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
        [numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return path


def counter(path):
    """total' = total + x, with the state total."""
    shape = [1, 4]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "total"], ["sum"]), helper.make_node("Identity", ["sum"], ["next"])], "counter",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "total")],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("sum", "next")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return path


def convert(model, *words):
    lnt = model.with_suffix(".lnt")
    done = linnet("convert", model, "-o", lnt, *words)
    assert done.returncode == 0, done.stderr
    return lnt


def duel(lnt, model, *words):
    return linnet("bench", lnt, "--vs", "onnxruntime", "--onnx", model, "--ort-lib", library(), *words)


@pytest.mark.parametrize("threads", [1, 2])
def test_figures_of_both_sides(tmp_path, threads):
    model = product(tmp_path / "m.onnx")
    done = duel(convert(model), model, "--dim", "N=3", "--threads", threads, *FEW)
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert keys_of(value) <= documented("bench")
    assert value["ratio_low"] <= value["ratio"] <= value["ratio_high"]
    assert value["agree"] and [o["output"] for o in value["outputs"]] == ["y"]
    assert (value["threads"], value["rounds"], value["processes"]) == (threads, 2, 1)
    for side in (value["linnet"], value["onnxruntime"]):
        assert side["cpu_us"] > 0 and 0 < side["min_us"] <= side["p50_us"] <= side["p95_us"]
        assert 0 < side["load_us"] < side["start_us"] and side["first_us"] > 0 and side["start_cold_us"] > 0
        assert 0 < side["base_kib"] <= side["rss_kib"] and side["library_bytes"] > 0
    assert value["onnxruntime"]["model_bytes"] == model.stat().st_size
    assert value["onnxruntime"]["library_bytes"] > value["linnet"]["library_bytes"]


def test_table_has_a_verdict(tmp_path):
    model = product(tmp_path / "m.onnx")
    done = duel(convert(model), model, "--dim", "N=3", *FEW[:-1])
    assert done.returncode == 0 and "95 % interval" in done.stdout and "start to output" in done.stdout


def test_it_is_kept(tmp_path):
    """The name of the model stands in the chart, whatever is in it."""
    model = product(tmp_path / "a<b>&.onnx")
    lnt, chart, figures = convert(model), tmp_path / "r.svg", tmp_path / "r.json"
    done = duel(lnt, model, "--dim", "N=3", *FEW, "--save", chart, "--save", figures)
    assert done.returncode == 0, done.stderr
    assert json.loads(figures.read_text()) == json.loads(done.stdout)
    texts = [e.text or "" for e in xml.etree.ElementTree.fromstring(chart.read_text()).iter()]
    assert any(str(model) in text for text in texts) and {"model", "median", "peak memory", "1", "10"} <= set(texts)
    done = duel(lnt, model, "--dim", "N=3", *FEW, "--save", tmp_path / "r.csv")
    assert done.returncode == 2 and ".json or .svg" in done.stderr
    done = duel(lnt, model, "--dim", "N=3", *FEW, "--save", model)
    assert done.returncode == 2


def test_states_are_carried_by_both(tmp_path):
    model = counter(tmp_path / "m.onnx")
    lnt = convert(model, "--state", "next=total")
    x = tmp_path / "x.npy"
    np.save(x, np.full((1, 4), 0.5, np.float32))
    done = duel(lnt, model, "--input", f"x={x}", *FEW)
    assert done.returncode == 0, done.stderr
    assert {o["output"] for o in json.loads(done.stdout)["outputs"]} == {"sum", "next"}


def test_without_starts(tmp_path):
    model = product(tmp_path / "m.onnx")
    how = ["--dim", "N=3", "--rounds", 2, "--processes", 1, "--starts", 0]
    lnt = convert(model)
    value = json.loads(duel(lnt, model, *how, "--json").stdout)
    assert value["agree"] and value["ratio"] > 0 and value["level"] and value["onnxruntime"]["p50_us"] > 0
    table = duel(lnt, model, *how).stdout
    assert "median" in table and "first run" not in table and "peak memory" not in table


def test_outputs_that_differ_are_reported(tmp_path):
    model, other = product(tmp_path / "m.onnx"), product(tmp_path / "other.onnx", 1.001)
    lnt = convert(model)
    done = duel(lnt, other, "--dim", "N=3", *FEW)
    assert done.returncode == 1
    value = json.loads(done.stdout)
    assert not value["agree"] and value["outputs"][0]["plain"]["max_rel"] > 1e-4 and value["outputs"][0]["plain"]["reason"]
    assert duel(lnt, other, "--dim", "N=3", "--max-rel", 0.5, *FEW).returncode == 0
    assert duel(lnt, other, "--dim", "N=3", "--trust", *FEW).returncode == 0


def quantized(path, scale):
    """y = x w of uint8 by int8, as a node of ONNX."""
    w = (np.arange(32).reshape(8, 4) % 7 - 3).astype(np.int8)
    graph = helper.make_graph(
        [helper.make_node("QLinearMatMul", ["x", "s", "x0", "w", "s", "w0", "t", "x0"], ["y"])], "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, ["N", 8])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, ["N", 4])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.int8(0), "w0"), numpy_helper.from_array(np.uint8(128), "x0"),
         numpy_helper.from_array(np.float32(0.3), "s"), numpy_helper.from_array(np.float32(scale), "t")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return path


def test_a_cpu_without_vnni_is_named(tmp_path):
    """Where outputs of a quantized model differ on a CPU on which onnxruntime saturates (here one that is emulated; the
    processes of both sides run on this one)."""
    emulator = shutil.which("qemu-x86_64")
    if not emulator or platform.machine() != "x86_64":
        pytest.skip("needs qemu-x86_64 on x86-64")
    models = {name: make(tmp_path / f"{name}.onnx", scale) for name, make, scale in
              [("int8", quantized, 0.7), ("other int8", quantized, 0.9), ("float", product, 1), ("other float", product, 2)]}

    x = tmp_path / "x.npy"

    def stderr_of(lnt, other, code, *machine):
        np.save(x, np.arange(24, dtype=np.float32 if lnt == "float" else np.uint8).reshape(3, 8))
        done = subprocess.run([*machine, LINNET, "bench", convert(models[lnt]), "--vs", "onnxruntime", "--onnx", models[other],
                               "--ort-lib", library(), "--input", f"x={x}", *map(str, FEW)], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stderr

    old = [emulator, "-cpu", "Haswell"]
    assert "no VNNI" in stderr_of("int8", "other int8", 1, *old)
    assert "no VNNI" not in stderr_of("int8", "int8", 0, *old)
    assert "no VNNI" not in stderr_of("float", "other float", 1, *old)
    if "vnni" in pathlib.Path("/proc/cpuinfo").read_text():
        assert "no VNNI" not in stderr_of("int8", "other int8", 1)


def test_without_onnxruntime(tmp_path):
    model = product(tmp_path / "m.onnx")
    lnt = convert(model)
    words = ["bench", lnt, "--vs", "onnxruntime", "--dim", "N=3"]
    done = linnet(*words, "--onnx", model, "--ort-lib", tmp_path / "none.so")
    assert done.returncode == 2 and "not installed" in done.stderr and "--ort-lib" in done.stderr
    done = linnet(*words)
    assert done.returncode == 2 and "--onnx" in done.stderr
    libc = linnet(*words, "--onnx", model, "--ort-lib", "libc.so.6")
    assert libc.returncode == 4 and "OrtGetApiBase" in libc.stderr
    wrong = linnet("bench", lnt, "--vs", "tensorflow")
    assert wrong.returncode == 2 and "onnxruntime" in wrong.stderr


def test_models_that_do_not_belong_together(tmp_path):
    lnt = convert(product(tmp_path / "m.onnx"))
    done = duel(lnt, counter(tmp_path / "c.onnx"), "--dim", "N=3", *FEW)
    assert done.returncode != 0 and "no input total" in done.stderr
