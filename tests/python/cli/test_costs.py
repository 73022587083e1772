"""Cost tables: one for each board, one measured here, and INT8 decided by them instead of by this machine's clock."""

import json
import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import ROOT, linnet

BOARDS = sorted(path.stem for path in (ROOT / "boards").glob("*.mk"))
KEYS = ["origin", "cpu", "clock_mhz", "governor", "temperature_c", "throttled", "level", "memory", "quantize_ns", "wake_us",
        "handover_us", "grain_percent"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A product whose weights are read once (one row), and one that multiplies them often (256 rows)."""
    rng = np.random.default_rng(5)
    weights = [numpy_helper.from_array(rng.standard_normal((256, 256)).astype(np.float32) / 16, f"w{i}") for i in range(2)]
    nodes = [helper.make_node("MatMul", ["one", "w0"], ["a"], name="one_row"),
             helper.make_node("MatMul", ["many", "w1"], ["b"], name="many_rows")]
    floats = TensorProto.FLOAT
    graph = helper.make_graph(nodes, "costs", [helper.make_tensor_value_info("one", floats, [1, 256]),
                                               helper.make_tensor_value_info("many", floats, [256, 256])],
                              [helper.make_tensor_value_info(name, floats, None) for name in "ab"], weights)
    path = tmp_path_factory.mktemp("costs") / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def table(**changes):
    given = {"origin": "made up", "cpu": "none", "clock_mhz": 1000, "governor": "unknown", "temperature_c": "unknown",
             "throttled": "unknown", "level": "neon 8 16", "memory": "0 4", "quantize_ns": 1, "wake_us": 1, "handover_us": 1,
             "grain_percent": 100, **changes}
    return "".join(f"{key} {value}  # {key}\n" for key, value in given.items() if value is not None)


def layers(model, board, tmp_path):
    done = linnet("convert", model, "-o", tmp_path / "m.lnt", "--int8", "auto", "--board", board, "--json")
    assert done.returncode == 0, done.stderr
    return {x["node"]: x for x in json.loads(done.stdout)["int8"]["layers"]}


def by_table(model, text, tmp_path):
    (tmp_path / "board.costs").write_text(text)
    return layers(model, tmp_path / "board.costs", tmp_path)


def test_figures(model, tmp_path):
    """The estimates are those of formats/costs.h, by hand."""
    found = by_table(model, table(), tmp_path)
    many, one = found["many_rows"], found["one_row"]
    n = 256 * 256
    assert many["float_us"] == pytest.approx(2 * 256 * n / 8e3, rel=1e-3)
    assert many["int8_us"] == pytest.approx(2 * 256 * n / 16e3 + n / 1e3, rel=1e-3)
    assert one["float_us"] == pytest.approx(4 * n / 4e3, rel=1e-3)  # reading the weights
    assert one["int8_us"] == pytest.approx(one["bytes_after"] / 4e3 + 256 / 1e3, rel=1e-3)
    assert many["int8"] and one["int8"]


def test_decision(model, tmp_path):
    slow_bytes = by_table(model, table(level="neon 8 4"), tmp_path)
    assert not slow_bytes["many_rows"]["int8"] and slow_bytes["many_rows"]["why"] == "slower there"
    assert slow_bytes["one_row"]["int8"]
    slow_rounding = by_table(model, table(quantize_ns=10000), tmp_path)
    assert not any(x["int8"] for x in slow_rounding.values())
    # Weights that a cache holds come from it.
    cached = by_table(model, table(memory="4096 1000\nmemory 0 4", level="neon 8000 2"), tmp_path)
    assert not any(x["int8"] for x in cached.values())


@pytest.mark.parametrize("board", BOARDS)
def test_boards(model, board, tmp_path):
    assert len(layers(model, board, tmp_path)) == 2
    said = (ROOT / "boards" / "costs" / board).read_text()
    assert "static analysis" in said or "measured" in said


def test_calibrate(model, tmp_path):
    done = linnet("doctor", "--calibrate")
    assert done.returncode == 0, done.stderr
    assert sorted({line.split()[0] for line in done.stdout.splitlines()}, key=KEYS.index) == KEYS
    assert "origin          measured" in done.stdout
    levels = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("level")]
    assert json.loads(linnet("doctor", "--quick", "--json").stdout)["levels"] == [level[0] for level in levels]
    assert all(float(floats) > 0 and float(byte) > 0 for _, floats, byte in levels)
    assert len(by_table(model, done.stdout, tmp_path)) == 2


@pytest.mark.parametrize("text, word", [
    (table(cpu=None), "cpu is missing"), (table(level=None), "level is missing"), (table(memory="32 4"), "must end with size 0"),
    (table(wake_us="soon"), "wake_us soon"), (table() + "wake_us 1\n", "line 13"), (table() + "speed 9\n", "speed 9"),
    (table(level="neon 0 1"), "level"), (table(level="neon 1"), "level"), (table(cpu="x" * 300), "too long"),
    (table(memory="0 4\n" + "memory 1 1\n" * 9), "memory"), (table(quantize_ns="nan"), "quantize_ns")])
def test_damaged(model, tmp_path, text, word):
    (tmp_path / "board.costs").write_text(text)
    done = linnet("convert", model, "-o", tmp_path / "m.lnt", "--int8", "auto", "--board", tmp_path / "board.costs")
    assert done.returncode == 3 and word in done.stderr, done.stderr
    assert not os.path.exists(tmp_path / "m.lnt")


def test_misuse(model, tmp_path):
    done = linnet("convert", model, "-o", tmp_path / "m.lnt", "--int8", "auto", "--board", "rpi9")
    assert done.returncode != 0 and "rpi9" in done.stderr
    assert linnet("convert", model, "-o", tmp_path / "m.lnt", "--board", "rpi4").returncode == 2
    assert linnet("doctor", "--calibrate", "--json").returncode == 2
