"""What loading and running a model costs a process in pages of its own: nothing is converted or packed on the way.

A model whose weights are 36 MB runs until it has read all of them, twice at the same time: the file must be mapped
read-only, with no page of it changed, and shared by both processes; and what a process has written to besides, an
emulator's own pages included, must be less than half of the weights."""

import pathlib
import re
import subprocess
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness import LINNET, linnet

WIDTH = 3072
WEIGHTS = WIDTH * WIDTH * 4
PATIENCE = 120  # seconds
RUNS = 100000  # more than it lives to see


def make(folder):
    """The model as an .lnt, made if it is older than the program: a row times constant weights, then a function."""
    model, lnt = pathlib.Path(folder).resolve() / "pages.onnx", pathlib.Path(folder).resolve() / "pages.lnt"
    if lnt.is_file() and lnt.stat().st_mtime > pathlib.Path(LINNET).stat().st_mtime:
        return lnt
    weights = numpy_helper.from_array(np.random.default_rng(1).standard_normal((WIDTH, WIDTH)).astype(np.float32), "w")
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Tanh", ["p"], ["y"])], "pages",
                              [info("x", TensorProto.FLOAT, [1, WIDTH])], [info("y", TensorProto.FLOAT, [1, WIDTH])], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    done = linnet("convert", model, "-o", lnt)
    assert done.returncode == 0, done.stderr
    return lnt


def mappings(pid):
    """(permissions, path, bytes by kind) of each mapping."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().split("\n"):
        head = re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \S+ *(.*)", line)
        if head:
            found.append((head[1], head[2], {}))
        elif found and line.endswith(" kB"):
            key, value = line.split(":")
            found[-1][2][key] = int(value.split()[0]) * 1024
    return found


def of_file(pid, lnt):
    return [m for m in mappings(pid) if m[1] == str(lnt)]


def total(found, *kinds):
    return sum(sizes.get(kind, 0) for _, _, sizes in found for kind in kinds)


def start(command, env, lnt):
    """A process that runs the model, once it has read all of the file's weights."""
    running = subprocess.Popen([*command, "bench", lnt, "--runs", str(RUNS), "--warmup", "0"], env=env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE
    while total(of_file(running.pid, lnt), "Rss") < 0.9 * WEIGHTS:
        assert running.poll() is None, f"ended with {running.returncode}"
        assert time.monotonic() < end, "does not come to read its weights"
        time.sleep(0.05)
    time.sleep(0.2)
    return running


def fault(command, folder, env=None):
    """What is wrong, or None. command: the program, behind its emulator where it has one."""
    lnt = make(folder)
    processes = []
    try:
        processes = [start(command, env, lnt) for _ in range(2)]
        pid = processes[0].pid
        file, every = of_file(pid, lnt), mappings(pid)
        if any("w" in permissions for permissions, _, _ in file):
            return "the file is mapped writable"
        if total(file, "Private_Dirty", "Shared_Dirty", "Anonymous"):
            return f"pages of the file were changed: {file}"
        if total(file, "Shared_Clean") < 0.9 * WEIGHTS:
            return f"two processes do not share the weights: {file}"
        own = total(every, "Private_Dirty")
        if own > WEIGHTS / 2:
            return f"{own} bytes of its own"
    finally:
        for p in processes:
            p.kill()
            p.wait()
    return None
