"""A system that fails: the n-th open, read, write, map, sync, rename, thread or piece of memory, for every n until a run
meets no fault. Each run ends by itself, with a documented exit code and a line that says why; nothing is left beside
its target, which is as it was or wholly new. LINNET_LONG=1 tries every n, otherwise few of many."""

import os
import pathlib
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
OLD = b"what was there before"
# Calls that are made again: the run ends as if nothing had happened.
HARMLESS = [("read", "short"), ("read", "again"), ("write", "short"), ("write", "again"), ("open", "again"),
            ("sync", "again"), ("close", "again")]
HARMFUL = [("open", "fail"), ("read", "fail"), ("write", "fail"), ("write", "full"), ("stat", "fail"), ("map", "fail"),
           ("sync", "fail"), ("close", "fail"), ("rename", "fail"), ("thread", "fail"), ("memory", "fail"),
           ("memory", "full")]
EVERY = 1 << 30 if LONG else 5 if SANITIZED else 12  # as many n are tried, then every second for as long, every third ...
VERBS = {
    "convert": ["convert", "m.onnx", "-o", "out/target", "--report", "out/report.json"],
    "convert, bytes": ["convert", "m.onnx", "-o", "out/target", "--int8", "dynamic"],
    "convert, bytes throughout": ["convert", "m.onnx", "-o", "out/target", "--int8", "static", "--calibrate", "x.npz"],
    "convert, external data": ["convert", "external.onnx", "-o", "out/target"],
    "convert, a recorded case": ["convert", "m.onnx", "-o", "out/target", "--golden", "case/test_data_set_0"],
    "info": ["info", "m.lnt", "--check"],
    "run": ["run", "m.lnt", "--input", "x=x.npy", "--output", "y=out/target", "--threads", "2"],
    "run, .npz": ["run", "m.lnt", "--input", "x=x.npz", "--output", "y=out/target"],
    "run, .pb": ["run", "m.lnt", "--input", "x=case/test_data_set_0/input_0.pb", "--output", "y=out/target"],
    "run, sound": ["run", "s.lnt", "--input", "x=x.wav", "--output", "y=out/target.wav"],
    "verify": ["verify", "m.lnt"],
    "verify, a case": ["verify", "m.lnt", "case/test_data_set_0"],
    "bench": ["bench", "m.lnt", "--dim", "N=2", "--runs", "2"],
}


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
    for name in "ms":
        assert linnet("convert", folder / f"{name}.onnx", "-o", folder / f"{name}.lnt").returncode == 0
    return folder


def environment(shim, fault, n, log):
    """Sanitizers have calls of their own that must not fail; libsndfile crashes where memory does."""
    calls = {"FAULT_CALLER": "/linnet"} if SANITIZED else {"FAULT_SPARED": "libsndfile"}
    options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return {**os.environ, "LD_PRELOAD": str(shim), "FAULT": f"{fault[0]} {fault[1]} {n}", "FAULT_LOG": str(log),
            "ASAN_OPTIONS": options, **calls}


def numbers():
    n = 1
    for tried in range(1 << 30):
        yield n
        n += 1 + tried // EVERY


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


def attempts(shim, folder, words, fault):
    """What became of the command with each fault: (n, finished process, files)."""
    log = folder / "log"
    for n in numbers():
        out = prepare(folder)
        log.unlink(missing_ok=True)
        done = subprocess.run([PROGRAM, *words], cwd=folder, env=environment(shim, fault, n, log), capture_output=True,
                              text=True, errors="replace", timeout=120)
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


def check_files(found, good, where):
    for name, data in found.items():
        assert name in good, f"{where}: {name} was left behind"
        assert data in (OLD, good[name]), f"{where}: {name} is neither the old file nor the new one"


@pytest.mark.parametrize("verb", VERBS)
def test_a_failing_system_is_reported(shim, files, verb):
    good = whole(files, VERBS[verb])
    tried = 0
    for fault in HARMFUL:
        for n, done, found in attempts(shim, files, VERBS[verb], fault):
            where = f"{verb}, {' '.join(fault)} {n}: exit {done.returncode}\n{done.stderr}"
            assert done.returncode in (0, 2, 3, 4, 5), where
            if done.returncode:
                assert done.stderr.startswith("linnet") and len(done.stderr.splitlines()) == 1, where
            elif fault != ("memory", "full"):
                assert found == good, where
            check_files(found, good, where)
            tried += 1
    assert tried > 10


@pytest.mark.parametrize("verb", VERBS)
def test_short_and_interrupted_calls_are_made_again(shim, files, verb):
    good = whole(files, VERBS[verb])
    for fault in HARMLESS:
        for n, done, found in attempts(shim, files, VERBS[verb], fault):
            where = f"{verb}, {' '.join(fault)} {n}: exit {done.returncode}\n{done.stderr}"
            assert done.returncode == 0, where
            assert found == good, where


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
