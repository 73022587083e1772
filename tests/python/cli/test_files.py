"""What is no regular file is neither waited for nor replaced; mapped files that are cut short; disks that are full."""

import fcntl
import os
import socket
import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import LINNET, ROOT, import_package, linnet
from test_system_faults import SANITIZED, external_model

SIDE = 256  # of the weights: many pages
FILE = 3  # the exit code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """y = x w, converted, and an input."""
    folder = tmp_path_factory.mktemp("files")
    w = np.random.default_rng(1).standard_normal((SIDE, SIDE)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", SIDE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", SIDE])], [numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    assert linnet("convert", folder / "m.onnx", "-o", folder / "m.lnt").returncode == 0
    np.save(folder / "x.npy", np.ones((1, SIDE), np.float32))
    return folder


def make_fifo(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))


KINDS = {"a FIFO": make_fifo, "a folder": os.mkdir, "a device": lambda path: os.symlink("/dev/null", path)}
READ = {
    "convert": ["convert", "{odd}", "-o", "{out}"],
    "info": ["info", "{odd}"],
    "verify": ["verify", "{odd}"],
    "bench": ["bench", "{odd}", "--dim", "N=1"],
    "run": ["run", "{odd}"],
    **{f"run, {end}": ["run", "{m}", "--input", "x={odd}" + end] for end in (".npy", ".npz", ".pb", ".wav", ".raw")},
    "board": ["convert", "{onnx}", "-o", "{out}", "--int8", "auto", "--board", "{odd}"],
    "calibrate": ["convert", "{onnx}", "-o", "{out}", "--int8", "static", "--calibrate", "{odd}.npz"],
    "names": ["verify", "--suite", "{folder}", "--names", "{odd}"],
    "library": ["bench", "{m}", "--vs", "onnxruntime", "--onnx", "{onnx}", "--dim", "N=1", "--ort-lib", "{odd}"],
    "other side": ["bench", "{m}", "--vs", "onnxruntime", "--onnx", "{odd}", "--dim", "N=1"],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use", READ)
def test_what_is_no_file_is_not_read(folder, tmp_path, use, kind):
    words = READ[use]
    end = next((w.split("{odd}")[1] for w in words if "{odd}" in w), "")
    odd = tmp_path / "odd"
    KINDS[kind](tmp_path / f"odd{end}")
    if use == "calibrate" and kind == "a folder":
        return  # of samples
    names = {"odd": odd, "out": tmp_path / "out.lnt", "m": folder / "m.lnt", "onnx": folder / "m.onnx", "folder": folder}
    done = linnet(*[w.format(**names) for w in words], timeout=30)
    assert 2 <= done.returncode <= 5, done.stdout + done.stderr
    assert use == "board" or f"not a regular file but {kind}" in done.stderr, done.stderr
    assert not (tmp_path / "out.lnt").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_external_data_that_is_no_file(tmp_path, kind):
    (tmp_path / "m.onnx").write_bytes(external_model())
    KINDS[kind](tmp_path / "w.bin")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", timeout=30)
    assert done.returncode == FILE
    assert ("leads out" if kind == "a device" else f"not a regular file but {kind}") in done.stderr
    assert not (tmp_path / "m.lnt").exists()


@pytest.mark.parametrize("kind, make, word", [
    ("FIFO", make_fifo, "is a FIFO that nobody reads"),
    ("folder", os.mkdir, "is a folder: it is not replaced"),
    ("socket", make_socket, "is a socket: it is not replaced"),
    ("full", lambda path: os.symlink("/dev/full", path), "No space left"),
])
@pytest.mark.parametrize("words", [["convert", "{}/m.onnx", "-o", "{to}"],
                                   ["convert", "{}/m.onnx", "-o", "{to}.lnt", "--report", "{to}"],
                                   ["run", "{}/m.lnt", "--input", "x={}/x.npy", "--output", "y={to}"]])
def test_targets_that_are_no_files(folder, tmp_path, words, kind, make, word):
    to = tmp_path / "to"
    make(to)
    before = os.lstat(to)
    done = linnet(*[w.format(folder, to=to) for w in words], timeout=30)
    assert done.returncode == FILE and word in done.stderr, done.stderr
    after = os.lstat(to)
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert {p.name for p in tmp_path.iterdir()} <= {"to", "to.lnt"}


def test_pipes_and_null_are_written_to(folder, tmp_path):
    x = f"x={folder}/x.npy"
    assert linnet("run", folder / "m.lnt", "--input", x, "--output", "y=/dev/null").returncode == 0
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as cat:
        while True:  # until cat has opened it
            done = linnet("run", folder / "m.lnt", "--input", x, "--output", f"y={tmp_path}/pipe")
            if "nobody reads" not in done.stderr:
                break
        assert done.returncode == 0, done.stderr
        assert len(cat.stdout.read()) == SIDE * 4
    image = subprocess.run([LINNET, "run", folder / "m.lnt", "--input", "x=/dev/stdin", "--output", "y=/dev/null"],
                           stdin=open(folder / "x.npy", "rb"), capture_output=True)
    assert image.returncode == 2  # read as raw elements: the file, header and all, has too many


@pytest.mark.parametrize("words", [["info", "{}/m.lnt"], ["info", "{}/m.lnt", "--json"], ["convert", "{}/m.onnx", "-o", "/dev/null"]])
def test_output_that_does_not_arrive_is_an_error(folder, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([LINNET, *[w.format(folder) for w in words]], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == FILE and "cannot write the output: No space left" in done.stderr


def test_a_full_disk(folder, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        (disk / "m.bin").write_bytes(b"old")
        for words in (["convert", folder / "m.onnx", "-o", disk / "m.bin"],
                      ["run", folder / "m.lnt", "--dim", "N=100", "--input", f"x={tmp_path}/x.npy",
                       "--output", f"y={disk}/m.bin"]):
            np.save(tmp_path / "x.npy", np.ones((100, SIDE), np.float32))
            done = linnet(*words)
            assert done.returncode == FILE and "No space left" in done.stderr, done.stderr
            assert os.listdir(disk) == ["m.bin"] and (disk / "m.bin").read_bytes() == b"old"
    finally:
        subprocess.run(["umount", disk], check=True)


# ---- mapped files that change ----

def cut_at_a_run(program, model):
    """A program that runs once for each line: after a run the model's file is cut short."""
    with subprocess.Popen([*program, model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as p:
        p.stdin.write("\n")
        p.stdin.flush()
        assert p.stdout.readline() == "a run\n"
        os.truncate(model, 4096)
        out, err = p.communicate("\n\n", timeout=60)
        return p.returncode, out, err


def test_a_host_survives_a_file_that_is_cut_short(folder, tmp_path):
    build = os.path.dirname(os.path.abspath(LINNET))
    if SANITIZED:
        pytest.skip("the handler is tested without a sanitizer's")
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/runtime", f"-I{ROOT}/base",
                    ROOT / "examples/sigbus/sigbus.c", f"{build}/liblinnet.a", "-lm", "-pthread", "-o", tmp_path / "sigbus"],
                   check=True)
    (tmp_path / "m.lnt").write_bytes((folder / "m.lnt").read_bytes())
    code, out, err = cut_at_a_run([tmp_path / "sigbus"], tmp_path / "m.lnt")
    assert code == 3 and out == "" and "became shorter" in err


def test_the_program_says_that_a_file_was_cut_short(folder, tmp_path):
    (tmp_path / "m.lnt").write_bytes((folder / "m.lnt").read_bytes())
    bench = subprocess.Popen([LINNET, "bench", tmp_path / "m.lnt", "--dim", "N=64", "--runs", "1000000"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    maps = f"/proc/{bench.pid}/maps"
    while "m.lnt" not in open(maps).read():
        assert bench.poll() is None
    time.sleep(0.5)
    os.truncate(tmp_path / "m.lnt", 0)
    assert "a file became shorter while it was mapped" in bench.communicate(timeout=60)[1]
    assert bench.returncode == FILE


def test_a_replaced_file_stays_whole_for_who_has_it_open(folder, tmp_path):
    package = import_package()
    (tmp_path / "m.bin").write_bytes((folder / "m.lnt").read_bytes())
    x = np.ones((1, SIDE), np.float32)
    session = package.InferenceSession(tmp_path / "m.bin")
    before = session.run(None, {"x": x})[0]
    assert linnet("run", folder / "m.lnt", "--input", f"x={folder}/x.npy", "--output", f"y={tmp_path}/m.bin").returncode == 0
    assert (session.run(None, {"x": x})[0] == before).all()


def test_a_sealed_file_in_memory_is_a_model_that_nobody_changes(folder):
    package = import_package()
    fd = os.memfd_create("model", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(fd, (folder / "m.lnt").read_bytes())
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    session = package.InferenceSession(f"/proc/self/fd/{fd}")
    with pytest.raises(OSError):
        os.ftruncate(fd, 0)
    with pytest.raises(OSError):
        os.write(fd, b"x")
    os.close(fd)
    y = session.run(None, {"x": np.ones((1, SIDE), np.float32)})[0]
    assert np.isfinite(y).all()


# ---- the package ----

def test_the_package_does_not_wait_for_a_fifo(tmp_path):
    package = import_package()
    os.mkfifo(tmp_path / "m.lnt")
    for use in (package.InferenceSession, package.convert):
        with pytest.raises(package.LinnetError, match="not a regular file but a FIFO"):
            use(tmp_path / "m.lnt")


def test_the_package_does_not_replace_a_device(folder, tmp_path):
    package = import_package()
    os.mkfifo(tmp_path / "to")
    with pytest.raises(package.LinnetError, match="a FIFO that nobody reads"):
        package.convert(folder / "m.onnx", tmp_path / "to")
    assert os.listdir(tmp_path) == ["to"]
