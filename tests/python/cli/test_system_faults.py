"""A system that fails: the n-th open, read, write, map, sync, rename, thread or piece of memory, for every n until a run
meets no fault. Each run ends by itself, with a documented exit code and a line that says why; nothing is left beside
its target, which is as it was or wholly new. LINNET_LONG=1 tries every n, otherwise few of many."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import wave

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto

from harness import LINNET, LONG, ROOT, import_package, linnet, write_case

PROGRAM = pathlib.Path(LINNET).absolute()
SANITIZED = b"__asan_init" in PROGRAM.read_bytes()
MODEL = """<ir_version: 8, opset_import: ["" : 18]>
f (float[N, 4] x) => (float[N, 3] y)
<float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>
{ m = MatMul (x, w)  y = Tanh (m) }"""
K = 64  # a product of fewer is left in float
OLD = b"what was there before"
# Calls that are made again: the run ends as if nothing had happened.
HARMLESS = [("read", "short"), ("read", "again"), ("write", "short"), ("write", "again"), ("open", "again"),
            ("sync", "again"), ("close", "again")]
HARMFUL = [("open", "fail"), ("read", "fail"), ("write", "fail"), ("write", "full"), ("stat", "fail"), ("map", "fail"),
           ("sync", "fail"), ("close", "fail"), ("rename", "fail"), ("thread", "fail"), ("process", "fail"),
           ("memory", "fail"), ("memory", "full")]
EVERY = 1 << 30 if LONG else 5 if SANITIZED else 12  # as many n are tried, then every second for as long, every third ...
VERBS = {
    "convert": ["convert", "m.onnx", "-o", "out/target", "--report", "out/report.json"],
    "convert, bytes": ["convert", "wide.onnx", "-o", "out/target", "--int8", "dynamic"],
    "convert, bytes throughout": ["convert", "wide.onnx", "-o", "out/target", "--int8", "static", "--calibrate", "wide.npz"],
    "convert, bytes where a board gains": ["convert", "wide.onnx", "-o", "out/target", "--int8", "auto", "--board", "board",
                                           "--calibrate", "samples"],
    "convert, bytes where this machine gains": ["convert", "wide.onnx", "-o", "out/target", "--int8", "auto"],
    "convert, external data": ["convert", "external.onnx", "-o", "out/target"],
    "convert, a recorded case": ["convert", "m.onnx", "-o", "out/target", "--golden", "case/test_data_set_0"],
    "info": ["info", "m.lnt", "--check"],
    "run": ["run", "m.lnt", "--input", "x=x.npy", "--output", "y=out/target", "--threads", "2"],
    "run, .npz": ["run", "m.lnt", "--input", "x=x.npz", "--output", "y=out/target"],
    "run, .pb": ["run", "m.lnt", "--input", "x=case/test_data_set_0/input_0.pb", "--output", "y=out/target"],
    "run, sound": ["run", "s.lnt", "--input", "x=x.wav", "--output", "y=out/target.wav", "--rate", "16000"],
    "verify": ["verify", "m.lnt"],
    "verify, a case": ["verify", "m.lnt", "case/test_data_set_0"],
    "verify, a suite": ["verify", "--suite", "suite", "--jobs", "2"],
    "bench": ["bench", "m.lnt", "--dim", "N=2", "--runs", "2"],
    "bench, a duel": ["bench", "m.lnt", "--vs", "onnxruntime", "--onnx", "m.onnx", "--ort-lib", "./libonnxruntime.so", "--dim", "N=5000",
                      "--rounds", "1", "--processes", "1", "--starts", "1"],
}
MEASURED = "convert, bytes where this machine gains"  # what it writes depends on how long things took
SLOW = "bench, a duel"  # half a second


def wide_model():
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
    f (float[N, {K}] x) => (float[N, {K}] y) {{ m = MatMul (x, w)  y = Tanh (m) }}""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.sin(np.arange(K * K, dtype=np.float32)).reshape(K, K), "w"))
    return model


def external_model():
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 3], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "0"), ("length", "48")):
        w.external_data.add(key=key, value=value)
    model = onnx.parser.parse_model(MODEL)
    model.graph.initializer[0].CopyFrom(w)
    return model.SerializeToString()


@pytest.fixture(scope="module")
def shim():
    """The library that makes calls fail, of the build that is tested."""
    build = PROGRAM.parent
    subprocess.run(["make", "-s", "-C", ROOT, f"BUILD={build}", "faults"], check=True)
    return build / "tests" / "fault.so"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with all that the verbs above read."""
    folder = tmp_path_factory.mktemp("faults")
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    y = np.tanh(x @ np.arange(1, 13, dtype=np.float32).reshape(4, 3))
    model = onnx.parser.parse_model(MODEL)
    write_case(folder / "case", model, {"x": x}, [y])
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    (folder / "s.onnx").write_bytes(onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> f (float[1, N] x) => (float[1, N] y) { y = Neg (x) }'
    ).SerializeToString())
    (folder / "external.onnx").write_bytes(external_model())
    (folder / "w.bin").write_bytes(np.arange(1, 13, dtype=np.float32).tobytes())
    np.save(folder / "x.npy", x)
    np.savez(folder / "x.npz", x=x)
    with wave.open(str(folder / "x.wav"), "wb") as w:
        w.setparams((1, 2, 16000, 0, "NONE", ""))
        w.writeframes(bytes(range(200)) * 4)
    for name in "ab":
        write_case(folder / "suite" / name, model, {"x": x}, [y])
    onnx.save(wide_model(), folder / "wide.onnx")
    wide = np.cos(np.arange(4 * K, dtype=np.float32)).reshape(4, K)
    (folder / "samples").mkdir()
    np.save(folder / "samples" / "x.npy", wide)
    np.savez(folder / "wide.npz", x=wide)
    shutil.copy(ROOT / "boards/costs/rpi5", folder / "board")
    package = pathlib.Path(importlib.util.find_spec("onnxruntime").origin).parent
    (folder / "libonnxruntime.so").symlink_to(next(package.glob("capi/libonnxruntime.so.*")))
    for name in "ms":
        assert linnet("convert", folder / f"{name}.onnx", "-o", folder / f"{name}.lnt").returncode == 0
    return folder


def environment(shim, fault, n, log, verb):
    """Sanitizers and onnxruntime have calls of their own that must not fail; libsndfile crashes where memory does. The
    duel's processes are called by no path."""
    calls = {"FAULT_CALLER": "/linnet"} if SANITIZED else {"FAULT_SPARED": "libsndfile"}
    if verb == SLOW:
        calls = {"FAULT_CALLER": "linnet", "FAULT_SPARED": "libonnxruntime"}
    options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return {**os.environ, "LD_PRELOAD": str(shim), "FAULT": f"{fault[0]} {fault[1]} {n}", "FAULT_LOG": str(log),
            "ASAN_OPTIONS": options, **calls}


def numbers(verb):
    """Of the slow verb's few, unless every one is asked for."""
    n = 1
    for tried in range(1 << 30):
        yield n
        n += 1 + (n if verb == SLOW and not LONG else tried // EVERY)


def prepare(folder):
    """An output folder with nothing but an old target in it."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    for path in out.iterdir():
        path.unlink()
    for name in ("target", "target.wav"):
        (out / name).write_bytes(OLD)
    return out


def contents(out):
    return {path.name: path.read_bytes() for path in out.iterdir()}


def attempts(shim, folder, verb, fault):
    """What became of the command with each fault: (n, finished process, files)."""
    log = folder / "log"
    for n in numbers(verb):
        out = prepare(folder)
        log.unlink(missing_ok=True)
        done = subprocess.run([PROGRAM, *VERBS[verb]], cwd=folder, env=environment(shim, fault, n, log, verb),
                              capture_output=True, text=True, errors="replace", timeout=120)
        if not log.exists():
            assert done.returncode == 0, done.stderr
            return
        yield n, done, contents(out)


def whole(folder, words):
    """The files of a run without faults."""
    out = prepare(folder)
    done = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return contents(out)


def is_new(folder, verb, found, good):
    """Are the files those of a run without faults? What a run decides by the clock must be a model that computes right."""
    if verb != MEASURED or found == good:
        return found == good
    return found.keys() == good.keys() and linnet("verify", folder / "out" / "target").returncode == 0


def check_files(folder, verb, found, good, where):
    for name, data in found.items():
        assert name in good, f"{where}: {name} was left behind"
        if data not in (OLD, good[name]):
            assert is_new(folder, verb, found, good), f"{where}: {name} is neither the old file nor the new one"


def check_words(verb, done, where):
    """A line says why; processes of the duel have a line each. A case of a suite has its own, and is not skipped."""
    if verb == "verify, a suite" and done.returncode == 1:
        assert "fail" in done.stdout and " 0 skipped" in done.stdout, where + done.stdout
        return
    lines = done.stderr.splitlines()
    assert lines and all(line.startswith("linnet") for line in lines), where
    assert len(lines) == 1 or verb == SLOW, where
    assert done.returncode in (2, 3, 4, 5), where


@pytest.mark.parametrize("verb", VERBS)
def test_a_failing_system_is_reported(shim, files, verb):
    good = whole(files, VERBS[verb])
    tried = 0
    for fault in HARMFUL:
        for n, done, found in attempts(shim, files, verb, fault):
            where = f"{verb}, {' '.join(fault)} {n}: exit {done.returncode}\n{done.stderr}"
            if done.returncode:
                check_words(verb, done, where)
            elif fault != ("memory", "full"):
                assert is_new(files, verb, found, good), where
            check_files(files, verb, found, good, where)
            tried += 1
    assert tried > 10


@pytest.mark.parametrize("verb", VERBS)
def test_short_and_interrupted_calls_are_made_again(shim, files, verb):
    good = whole(files, VERBS[verb])
    for fault in HARMLESS:
        for n, done, found in attempts(shim, files, verb, fault):
            where = f"{verb}, {' '.join(fault)} {n}: exit {done.returncode}\n{done.stderr}"
            assert done.returncode == 0, where
            assert is_new(files, verb, found, good), where


@pytest.mark.skipif(SANITIZED, reason="the package is of the plain build")
def test_the_package_reports_a_failing_system(shim, files):
    import_package()
    (files / "out").mkdir(exist_ok=True)
    # Python's own calls do not fail.
    more = {"FAULT_CALLER": "liblinnet", "LD_PRELOAD": str(shim), "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, ROOT / "tests/python/cli/package_faults.py", files], env={**os.environ, **more},
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 50
