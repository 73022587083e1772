"""bench --sweep: every combination of extents, as table, JSON, CSV and chart; --range; traces to files."""

import csv
import io
import itertools
import json
import re
import xml.etree.ElementTree

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from harness import linnet

USAGE, FILE = 2, 3
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
m (int64[batch, length] ids, float[batch, length, 8] x) => (float[batch, length, 8] y) {
    e = Gather (words, ids)  s = Add (e, x)  y = MatMul (s, w) }"""
FAST = ["--runs", 3, "--warmup", 1, "--range", "ids=0:100"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model whose ids are refused from 100 on."""
    path, rng = tmp_path_factory.mktemp("sweep") / "m.onnx", np.random.default_rng(1)
    proto = onnx.parser.parse_model(MODEL)
    for name, shape in (("words", (100, 8)), ("w", (8, 8))):
        proto.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name))
    onnx.save(proto, path)
    done = linnet("convert", path)
    assert done.returncode == 0, done.stderr
    return path.with_suffix(".lnt")


def test_every_combination_is_measured(model, tmp_path):
    files = [tmp_path / f"r.{ending}" for ending in ("csv", "json", "svg")]
    done = linnet("bench", model, "--sweep", "batch=1,2,4", "--sweep", "length=3,16", *FAST,
                  *itertools.chain(*[("--save", path) for path in files]))
    assert done.returncode == 0 and not done.stderr, done.stderr
    wanted = [(b, t) for b in (1, 2, 4) for t in (3, 16)]
    head, *rows = done.stdout.splitlines()
    assert re.split(" {2,}", head.strip()) == ["batch", "length", "rows/s", "mean", "deviation", "median", "fastest", "arena"]
    assert [tuple(map(int, row.split()[:2])) for row in rows] == wanted

    found = json.loads(files[1].read_text())
    assert [(r["extents"]["batch"], r["extents"]["length"]) for r in found] == wanted
    for r in found:
        times = r["linnet"]
        assert r["error"] is None and r["rows"] == r["extents"]["batch"] and "ratio" not in r and r["arena_bytes"] > 0
        assert 0 < times["min_us"] <= times["p50_us"] and times["min_us"] <= times["mean_us"] and times["std_us"] >= 0
        assert times["rows_per_second"] == pytest.approx(r["rows"] / times["mean_us"] * 1e6, rel=1e-6)

    listed = list(csv.DictReader(io.StringIO(files[0].read_text(), newline="")))
    assert [(int(r["batch"]), int(r["length"])) for r in listed] == wanted and not any(r["error"] for r in listed)
    for a, b in zip(listed, found):
        assert float(a["mean_us"]) == pytest.approx(b["linnet"]["mean_us"]) and int(a["rows"]) == b["rows"]
        assert float(a["rows_per_second"]) == pytest.approx(b["linnet"]["rows_per_second"])

    root = xml.etree.ElementTree.fromstring(files[2].read_text())
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}circle")) == 6 and len([p for p in root.findall(f"{space}path") if p.get("d").count("L")]) == 3
    words = [t.text for t in root.findall(f"{space}text")]
    assert {"batch 1", "batch 2", "batch 4", "length", "3", "16"} <= set(words)


def test_with_the_other_runtime(model, tmp_path):
    path = tmp_path / "v.csv"
    done = linnet("bench", model, "--vs", "onnxruntime", "--onnx", model.with_suffix(".onnx"), "--sweep", "length=4,16", "--dim",
                  "batch=2", "--range", "ids=0:100", "--rounds", 3, "--processes", 1, "--starts", 0, "--save", path, "--json", "--save",
                  tmp_path / "v.svg")
    if "libonnxruntime" in done.stderr:
        pytest.skip("no onnxruntime library")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [r["extents"] for r in found] == [{"length": 4}, {"length": 16}]
    for r in found:
        assert r["agree"] and r["rows"] == 2 and r["ratio_low"] <= r["ratio"] <= r["ratio_high"]
        assert r["linnet"]["mean_us"] > 0 and r["onnxruntime"]["mean_us"] > 0 and r["onnxruntime"]["std_us"] >= 0
    listed = list(csv.DictReader(io.StringIO(path.read_text(), newline="")))
    assert [float(r["ratio"]) for r in listed] == pytest.approx([r["ratio"] for r in found], rel=1e-4)
    assert "onnxruntime" in (tmp_path / "v.svg").read_text()


def test_one_that_cannot_be_measured_does_not_end_the_others(tmp_path):
    onnx.save(onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        m (float[a, 3] x, float[2, 3] w) => (float[c, 3] y) { y = Add (x, w) }"""), tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx").returncode == 0
    done = linnet("bench", tmp_path / "m.lnt", "--sweep", "a=1,3,2", "--runs", 2, "--json", "--save", tmp_path / "r.csv", "--save",
                  tmp_path / "r.svg")
    assert done.returncode == USAGE and done.stderr.count("\n") == 1 and "a=3: shapes do not fit" in done.stderr
    found = json.loads(done.stdout)
    assert [bool(r["error"]) for r in found] == [False, True, False] and "linnet" not in found[1]
    listed = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text(), newline="")))
    assert listed[1]["error"] == found[1]["error"] and not listed[1]["mean_us"] and listed[2]["mean_us"]
    svg = (tmp_path / "r.svg").read_text()
    assert "nan" not in svg and "inf" not in svg and svg.count("<circle") == 2


def test_names_are_quoted(tmp_path):
    proto = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> m (float[N, 3] x) => (float[N, 3] y) { y = Neg (x) }')
    for port in (proto.graph.input[0], proto.graph.output[0]):
        port.type.tensor_type.shape.dim[0].dim_param = 'a,"<b>&'
    onnx.save(proto, tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx").returncode == 0
    done = linnet("bench", tmp_path / "m.lnt", "--sweep", 'a,"<b>&=1,0', "--runs", 2, "--save", tmp_path / "r.csv", "--save",
                  tmp_path / "r.svg", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[1]["extents"] == {'a,"<b>&': 0}
    assert next(csv.reader(io.StringIO((tmp_path / "r.csv").read_text(), newline="")))[0] == 'a,"<b>&'
    assert 'a,"<b>&' in [e.text for e in xml.etree.ElementTree.fromstring((tmp_path / "r.svg").read_text()).iter()]


@pytest.mark.parametrize("words, says", [
    (["--sweep", "bath=1,2", "--dim", "batch=1", "--range", "ids=0:9"], ["no variable extent called bath"]),
    (["--sweep", "batch"], ["--sweep NAME=N,N,...", "'batch'"]),
    (["--sweep", "batch=1,,2"], ["--sweep NAME=N,N,..."]),
    (["--sweep", "batch=1,x"], ["--sweep NAME=N,N,..."]),
    (["--sweep", "batch=-1"], ["--sweep NAME=N,N,..."]),
    (["--sweep", "batch=1,2,"], ["--sweep NAME=N,N,..."]),
    (["--sweep", "batch=99999999999999999999"], ["--sweep NAME=N,N,..."]),
    (["--sweep", "batch=1", "--sweep", "batch=2"], ["batch is there twice"]),
    (["--sweep", "batch=1", "--save", "r.png"], ["r.png", ".csv, .json or .svg"]),
    (["--save", "r.csv"], ["--save belongs to --vs and --sweep"]),
    (["--sweep", "batch=1", "--trace"], ["exclude"]),
    (["--sweep", "batch=1", "--data", "here"], ["exclude"]),
    (["--sweep", "batch=1", "--range", "ids=5:5"], ["--range NAME=LOW:HIGH", "ids=5:5"]),
    (["--sweep", "batch=1", "--range", "ids=0.5:5"], ["int64", "whole numbers"]),
    (["--sweep", "batch=1", "--range", "idz=0:5"], ["no input called idz", "did you mean ids?"]),
    (["--dim", "batch=1"], ["--range ids=LOW:HIGH"]),
])
def test_what_it_refuses(model, words, says):
    before = sorted(model.parent.iterdir())
    done = linnet("bench", model, "--dim", "length=3", "--runs", 2, *words)
    assert done.returncode == USAGE and not [text for text in says if text not in done.stderr], done.stderr
    assert sorted(model.parent.iterdir()) == before


@pytest.mark.parametrize("code, low, high", [("uint8", 0, 256), ("int8", -128, 3), ("bool", 0, 2), ("int32", -5, 5), ("int64", 7, 8),
                                             ("float", -0.5, 4), ("uint16", 60000, 65536)])
def test_elements_lie_in_their_range(tmp_path, code, low, high):
    """The model ends its run where an element is outside: a Gather from a table of one."""
    onnx.save(onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        m ({code}[n] x) => (int64[n] y) {{
            f = Cast <to = 1> (x)
            low = Constant <value_float = {float(low)}> () high = Constant <value_float = {float(high)}> ()
            under = Less (f, low) over = GreaterOrEqual (f, high) bad = Or (under, over) at = Cast <to = 7> (bad)
            table = Constant <value_ints = [0]> () y = Gather (table, at) }}"""), tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx").returncode == 0
    words = ["bench", tmp_path / "m.lnt", "--dim", "n=1000", "--runs", 1]
    done = linnet(*words, "--range", f"x={low}:{high}")
    assert done.returncode == 0, done.stderr
    if code not in ("bool", "uint8", "uint16"):
        assert linnet(*words, "--range", f"x={low - 2}:{high}").returncode != 0  # the model does notice
    limits = {"uint8": "0 to below 256", "bool": "0 to below 2", "uint16": "0 to below 65536"}
    if code in limits:
        done = linnet(*words, "--range", f"x={low}:{high + 1}")
        assert done.returncode == USAGE and limits[code] in done.stderr


def test_a_trace_is_written(model, tmp_path):
    words = ["bench", model, "--dim", "batch=2", "--dim", "length=3", *FAST]
    for named in (["--trace", tmp_path / "a.json"], [f"--trace={tmp_path / 'b.trace'}"]):
        done = linnet(*words, *named)
        assert done.returncode == 0 and "GFLOP/s" in done.stdout, done.stderr
    for name in ("a.json", "b.trace"):
        assert sorted(e["name"] for e in json.loads((tmp_path / name).read_text())) == ["Add", "Gather", "MatMul"]
    assert json.loads(linnet(*words, "--trace", "--json").stdout)["multiply_adds"] == 2 * 3 * 8 * 8
    done = linnet(*words, f"--trace={model}")
    assert done.returncode == USAGE and "another name" in done.stderr
    assert linnet(*words, "--trace", tmp_path / "no" / "a.json").returncode == FILE
