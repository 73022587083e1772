"""The program from outside: help, exit codes, files that are written or not, documented JSON."""

import json
import os
import re
import shutil
import subprocess
import sys
import wave

import numpy as np
import onnx
import onnx.parser
import pytest

from harness import LINNET, ROOT, linnet, write_case

VERBS = ["convert", "info", "run", "verify", "bench", "doctor"]
MODEL = """<ir_version: 8, opset_import: ["" : 18]>
f (float[N, 4] x) => (float[N, 3] y, float[N, 3] z)
<float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>
{ y = MatMul (x, w)  z = Tanh (y) }"""


@pytest.fixture
def case(tmp_path):
    """A model with one recorded case beside it."""
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    y = x @ np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    return write_case(tmp_path / "case", onnx.parser.parse_model(MODEL), {"x": x}, [y, np.tanh(y)])


@pytest.fixture
def lnt(case):
    done = linnet("convert", case / "model.onnx", "-o", case / "m.lnt", "--golden", case / "test_data_set_0")
    assert done.returncode == 0, done.stderr
    return case / "m.lnt"


def keys_of(value):
    if isinstance(value, dict):
        return set(value) | set().union(*map(keys_of, value.values()), set())
    return set().union(*map(keys_of, value), set()) if isinstance(value, list) else set()


def documented(verb):
    section = re.search(rf"^## {verb}\n(.*?)(?=^## |\Z)", (ROOT / "docs/cli.md").read_text(), re.S | re.M)[1]
    return set(re.findall(r"`([a-z0-9_]+)`", section))


# ---- help and usage ----

def test_help_and_version():
    done = linnet("--help")
    assert done.returncode == 0 and all(verb in done.stdout for verb in VERBS)
    assert re.fullmatch(r"linnet \d+\.\d+\.\d+\n", linnet("--version").stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_verb_teaches(verb):
    done = linnet(verb, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"linnet {verb} ")
    assert "Options:" in done.stdout and "Examples:" in done.stdout
    assert len(done.stdout.split("Examples:")[1].strip().split("\n")) >= 3
    assert max(map(len, done.stdout.split("\n"))) <= 120


@pytest.mark.parametrize("words", [
    [], ["bake"], ["info"], ["info", "a", "b"], ["info", "m.lnt", "--color"], ["verify"], ["convert"],
    ["bench", "m.lnt", "--runs"], ["bench", "m.lnt", "--runs", "many"], ["bench", "m.lnt", "--runs", "0"],
    ["bench", "m.lnt", "--runs", "100000001"],
    ["convert", "m.onnx", "--opt", "some"], ["convert", "m.onnx", "--dim", "N"], ["doctor", "now"],
    ["info", "m.lnt", "--json=yes"], ["verify", "--suite", "/nonexistent"],
])
def test_wrong_usage_is_2(words):
    done = linnet(*words)
    assert done.returncode == 2 and done.stderr and not done.stdout


# ---- exit codes ----

def test_verify_onnx_and_lnt(case, lnt):
    assert linnet("verify", case / "model.onnx").returncode == 0
    assert linnet("verify", lnt).returncode == 0
    assert linnet("verify", lnt, case / "test_data_set_0").returncode == 0


def spoil(case, change, k=0):
    path = case / "test_data_set_0" / f"output_{k}.pb"
    tensor = onnx.load_tensor(str(path))
    value = onnx.numpy_helper.to_array(tensor).copy()
    change(value)
    onnx.save_tensor(onnx.numpy_helper.from_array(value, tensor.name), str(path))


def test_mismatch_is_1_and_named(case):
    def change(value):
        value[1, 2] *= 1.01
    spoil(case, change)
    done = linnet("verify", case / "model.onnx", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["pass"] is False
    y, z = report["outputs"]
    assert (y["output"], y["pass"], y["wrong"], y["worst_element"]) == ("y", False, 1, 5)
    assert y["max_abs"] == pytest.approx(abs(y["worst_got"]) * 0.01, rel=1e-3)
    assert z["pass"] and z["wrong"] == 0
    assert linnet("verify", case / "model.onnx", "--max-rel", "1e-1").returncode == 0
    assert linnet("verify", case / "model.onnx", "--rtol", "2e-2").returncode == 0
    assert linnet("verify", case / "model.onnx", "--rtol", "0", "--atol", "10").returncode == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_values_match_only_themselves(case, value):
    def change(array):
        array[0, 0] = value
    spoil(case, change)
    assert linnet("verify", case / "model.onnx", "--max-rel", "1e9").returncode == 1


def test_shape_and_type_have_to_agree(case):
    path = case / "test_data_set_0" / "output_1.pb"
    value = onnx.numpy_helper.to_array(onnx.load_tensor(str(path)))
    for wrong in (value.reshape(3, 2), value.astype(np.float64), value[:1]):
        onnx.save_tensor(onnx.numpy_helper.from_array(wrong, "z"), str(path))
        assert linnet("verify", case / "model.onnx").returncode == 1


def test_nothing_to_compare_with_is_2(case, tmp_path):
    (case / "test_data_set_0" / "output_1.pb").unlink()
    assert linnet("verify", case / "model.onnx").returncode == 2
    shutil.copy(case / "model.onnx", tmp_path / "alone.onnx")
    assert linnet("verify", tmp_path / "alone.onnx").returncode == 2


def test_bad_file_is_3(case, lnt, tmp_path):
    assert linnet("info", tmp_path / "absent.lnt").returncode == 3
    assert linnet("convert", tmp_path / "absent.onnx").returncode == 3
    (tmp_path / "text.onnx").write_text("this is no model")
    assert linnet("convert", tmp_path / "text.onnx").returncode == 3
    broken = bytearray(lnt.read_bytes())
    broken[len(broken) // 2] ^= 1
    (tmp_path / "broken.lnt").write_bytes(broken)
    done = linnet("info", tmp_path / "broken.lnt", "--check")
    assert done.returncode == 3 and "broken.lnt" in done.stderr


def test_unsupported_is_4_and_lists_all(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 18, "com.acme" : 1]>
    f (float[N] x) => (float[N] y) { a = com.acme.First (x)  b = Relu (a)  y = com.acme.Second (b) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", "--report", tmp_path / "r.json")
    assert done.returncode == 4
    assert "First" in done.stderr and "Second" in done.stderr
    assert not (tmp_path / "m.lnt").exists()
    assert [u["op"] for u in json.loads((tmp_path / "r.json").read_text())["unsupported"]] == ["First", "Second"]


def test_deadline_is_5(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 18]>
    f (float[N, N] x) => (float[N, N] y) { a = MatMul (x, x)  b = MatMul (a, a)  y = MatMul (b, b) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.zeros((1500, 1500), np.float32))
    done = linnet("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/x.npy", "--level", "scalar", "--deadline", "1")
    assert done.returncode == 5, done.stderr


# ---- files ----

def test_run_reads_and_writes_files(case, lnt, tmp_path):
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    expected = x @ np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", a=x, b=x + 1)
    x.tofile(tmp_path / "x.raw")
    onnx.save_tensor(onnx.numpy_helper.from_array(x, "x"), str(tmp_path / "x.pb"))
    for name in ("x.npy", "x.npz:a", "x.raw", "x.pb"):
        done = linnet("run", lnt, "--input", f"x={tmp_path / name}", "--output", f"y={tmp_path}/y.npy",
                      "--output-dir", tmp_path / "out")
        assert done.returncode == 0, done.stderr
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-5)
        np.testing.assert_allclose(np.load(tmp_path / "out" / "z.npy"), np.tanh(expected), rtol=1e-5)
    for wrong in (["--input", "q=x.npy"], ["--input", f"x={tmp_path}/x.npy", "--output", "q=q.npy"], []):
        assert linnet("run", lnt, *wrong).returncode == 2


def test_run_reads_and_writes_sound(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 18]>
    f (float[1, T] x) => (float[1, T] y) <float half = {0.5}> { y = Mul (x, half) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    samples = (8000 * np.sin(np.arange(1600) / 9)).astype(np.int16)
    with wave.open(str(tmp_path / "a.wav"), "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(8000)
        w.writeframes(samples.tobytes())
    done = linnet("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/a.wav", "--output", f"y={tmp_path}/b.wav")
    assert done.returncode == 0, done.stderr
    with wave.open(str(tmp_path / "b.wav")) as w:
        assert (w.getframerate(), w.getnchannels(), w.getnframes()) == (8000, 1, 1600)
        heard = np.frombuffer(w.readframes(1600), np.int16)
    assert np.abs(heard - samples / 2).max() <= 1
    done = linnet("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/a.wav", "--rate", "16000", "--json")
    assert json.loads(done.stdout)["outputs"][0]["dims"] == [1, 3200]


def test_fetch_needs_keep(case, tmp_path):
    x = tmp_path / "x.npy"
    np.save(x, np.ones((1, 4), np.float32))
    text = MODEL.replace("z = Tanh (y)", "t = Tanh (y)  z = Exp (t)")
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "k.lnt", "--keep", "t").returncode == 0
    done = linnet("run", tmp_path / "k.lnt", "--input", f"x={x}", "--fetch", f"t={tmp_path}/t.npy")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "t.npy"), np.tanh([[22, 26, 30]]), rtol=1e-5)
    assert linnet("run", tmp_path / "k.lnt", "--input", f"x={x}", "--fetch", f"q={tmp_path}/q.npy").returncode == 2


# ---- the suite runner ----

def test_an_output_of_nothing_has_no_range(tmp_path):
    onnx.save(onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]> g (float[N] x) => (float[N] y) { y = Neg (x) }'),
              tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.zeros(0, np.float32))
    run = ["run", tmp_path / "m.onnx", "--input", f"x={tmp_path / 'x.npy'}"]
    assert linnet(*run).stdout.splitlines()[1].split() == ["y", "float", "0", "-", "-", "-"]
    told, = json.loads(linnet(*run, "--json").stdout)["outputs"]
    assert told == {"name": "y", "dtype": "float", "dims": [0], "min": None, "mean": None, "max": None}


def test_suite_lines_and_codes(case, tmp_path):
    root = tmp_path / "suite"
    shutil.copytree(case, root / "good")
    done = linnet("verify", "--suite", root)
    assert done.returncode == 0 and done.stdout == "pass good\n1 passed, 0 failed, 0 skipped\n"
    text = '<ir_version: 8, opset_import: ["" : 18, "com.acme" : 1]> f (float[N] x) => (float[N] y) { y = com.acme.Odd (x) }'
    write_case(root / "odd", onnx.parser.parse_model(text), {"x": np.ones(2, np.float32)}, [np.ones(2, np.float32)])
    done = linnet("verify", "--suite", root)
    assert done.returncode == 4 and done.stdout.endswith("1 passed, 0 failed, 1 skipped\n")
    assert re.search(r"^unsupported odd .*Odd", done.stdout, re.M)
    shutil.copytree(case, root / "wrong")
    spoil(root / "wrong", lambda value: value.fill(3))
    done = linnet("verify", "--suite", root, "--jobs", "3")
    assert done.returncode == 1 and done.stdout.endswith("1 passed, 1 failed, 1 skipped\n")
    (tmp_path / "names").write_text("# only these\ngood\nodd\n")
    assert linnet("verify", "--suite", root, "--names", tmp_path / "names").returncode == 4
    for bake in ("rest", "all"):
        done = linnet("verify", "--suite", root, "--bake", bake)
        assert done.stdout.endswith("1 passed, 1 failed, 1 skipped\n"), done.stdout


# ---- JSON ----

def test_json_keys_are_documented(case, lnt, tmp_path):
    x = case / "test_data_set_0" / "input_0.pb"
    printed = {
        "convert": ["convert", case / "model.onnx", "-o", tmp_path / "m.lnt", "--json"],
        "info": ["info", lnt, "--dim", "N=3", "--json"],
        "run": ["run", lnt, "--input", f"x={x}", "--json"],
        "verify": ["verify", lnt, "--json"],
        "bench": ["bench", lnt, "--runs", "3", "--json"],
        "doctor": ["doctor", "--quick", "--json"],
    }
    for verb, words in printed.items():
        done = linnet(*words)
        assert done.returncode == 0, done.stderr
        value = json.loads(done.stdout)
        operators = set(value.get("operators", ()))
        assert set(value) <= documented(verb), verb
        for named in ("operators", "metadata", "packed_types", "packed_layouts"):  # keys are names of the model's
            value.pop(named, None)
        assert keys_of(value) <= documented(verb), verb
        assert verb != "info" or operators


def test_bench_json_is_one_flat_object(lnt):
    value = json.loads(linnet("bench", lnt, "--runs", "5", "--warmup", "1", "--json").stdout)
    assert set(value) == set("load_us bind_us first_us min_us p50_us p95_us mean_us std_us rss_kib arena_bytes threads "
                             "level".split())
    assert value["min_us"] <= value["p50_us"] <= value["p95_us"]


def test_bench_kernels_reports_rates_and_limits():
    rows = json.loads(linnet("bench", "--kernels", "1x64x28x28", "--level", "scalar", "--json").stdout)
    assert rows and keys_of(rows) <= documented("bench")
    assert all("1x64x28x28" in r["inputs"] and r["level"] == "scalar" for r in rows)
    assert all(r["rate"] > 0 and r["limit"] > 0 and r["us"] > 0 for r in rows)
    rows = json.loads(linnet("bench", "--kernels", "int8", "--json").stdout)
    assert {"QLinearConv", "DynamicMatMul", "QLinearAdd"} <= {r["operator"] for r in rows}
    assert {r["unit"] for r in rows} == {"GOP/s", "GB/s"} and all(r["rate"] > 0 and r["limit"] > 0 for r in rows)
    assert json.loads(linnet("bench", "--kernels", "no such kernel", "--json").stdout) == []
    done = linnet("bench", "--kernels", "--level", "sse9")
    assert done.returncode == 2 and "no level" in done.stderr


def test_a_model_cut_in_two_on_disk_gives_the_same_bits(shared, tmp_path):
    """Stopped at a value in one process, resumed from its file in another, which is given no input where all of it
    goes through that value."""
    path = shared / "models" / "mnist12"
    image = tmp_path / "m.lnt"
    done = linnet("convert", path / "model.onnx", "-o", image, "--keep", "all")
    assert done.returncode == 0, done.stderr
    feed = ["--input", f"Input3={path}/test_data_set_0/input_0.pb"]
    whole = linnet("run", image, *feed, "--output-dir", tmp_path / "whole", "--json")
    assert whole.returncode == 0, whole.stderr
    output = json.loads(whole.stdout)["outputs"][0]["name"]
    values = [line.split('"')[1].split("\\n")[0] for line in linnet("info", image, "--dot").stdout.splitlines() if "ellipse" in line]
    alone = 0
    for name in values:
        if name in ("Input3", output):
            continue
        done = linnet("run", image, *feed, "--only", "--fetch", f"{name}={tmp_path}/cut.npy", "--json")
        if done.returncode == 2 and "constant" in done.stderr:
            continue
        assert done.returncode == 0 and json.loads(done.stdout)["outputs"] == [], done.stderr
        rest = ["--resume", f"{name}={tmp_path}/cut.npy", "--output-dir", tmp_path / "half"]
        done = linnet("run", image, *rest)
        if done.returncode == 2 and "Input3" in done.stderr:
            done = linnet("run", image, *rest, *feed)
        else:
            alone += 1
        assert done.returncode == 0, done.stderr
        for made in (tmp_path / "whole").iterdir():
            assert made.read_bytes() == (tmp_path / "half" / made.name).read_bytes(), name
    assert alone >= 5
    done = linnet("run", image, "--only", "--output", f"{output}={tmp_path}/y.npy")
    assert done.returncode == 2 and "Input3" in done.stderr, done.stderr


def test_info_names_open_extents(lnt):
    value = json.loads(linnet("info", lnt, "--json").stdout)
    assert value["inputs"] == [{"name": "x", "dtype": "float", "dims": [-1, 4], "dim_names": ["N", None], "state": False}]
    assert value["arena_bytes"] is None and "N" in value["arena_unknown_because"]
    assert json.loads(linnet("info", lnt, "--dim", "N=7", "--json").stdout)["arena_bytes"] >= 0
    assert linnet("info", lnt, "--dot").stdout.startswith("digraph")


def test_bundle(lnt, tmp_path):
    """A program with a model behind it: the verbs find their model in it, and so does whoever opens the file."""
    bundle = tmp_path / "bundle"
    done = subprocess.run([sys.executable, ROOT / "boards" / "bundle.py", LINNET, lnt, "-o", bundle], capture_output=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([bundle, "verify"], capture_output=True, text=True)
    assert done.returncode == 0 and "pass" in done.stdout, done.stderr
    assert linnet("verify", bundle).returncode == 0
    # A model that would reach past the end: the file is then no bundle, and no model.
    damaged = bytearray(bundle.read_bytes())
    damaged[-16:-8] = (1 << 40).to_bytes(8, "little")
    bundle.write_bytes(damaged)
    assert linnet("verify", bundle).returncode == 3


def test_library_is_small(tmp_path):
    """Every operator and level: what is installed is stripped."""
    library = ROOT / "build" / "liblinnet.so"
    subprocess.run(["strip", "-o", tmp_path / "liblinnet.so", library], check=True)
    assert (tmp_path / "liblinnet.so").stat().st_size <= 1_200_000


def test_functions_are_held_to_their_bounds():
    """Few floats of all; `make test-long` takes every one."""
    done = linnet("doctor", "--floats", "100003", "--json")
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    rows = {(r["function"], r["level"]): r for r in found["functions"]}
    assert found["pass"] and all(r["pass"] and r["cases"] > 40000 for r in rows.values())
    for name, most in {"EXP": 2, "LOG": 2, "SIN": 2, "COS": 2, "TANH": 4, "SIGMOID": 4, "ERF": 4, "POW": 16}.items():
        assert all(0.3 < r["worst"] <= r["allowed"] <= most for (f, _), r in rows.items() if f == name)
        assert (name, "scalar") in rows


def test_what_is_said_of_functions_does_not_depend_on_threads():
    """How many threads there are the processors allowed say."""
    words = (LINNET, "doctor", "--floats", "50021", "--json")
    every = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    alone = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    one = json.loads(subprocess.run([*alone, *words], capture_output=True, check=True).stdout)
    assert one["threads"] == 1 and one["functions"] == every["functions"]


@pytest.mark.parametrize("words", [("--floats", "1", "--function", "ADD"), ("--floats", "99999999999")])
def test_functions_that_are_not_there(words):
    done = linnet("doctor", *words)
    assert done.returncode == 2 and words[-1] in done.stderr
