"""Other engines on the same models: their Python packages for 64-bit ARM under emulation, below .deps/arm (make
deps-arm-peers). Models are converted on this machine, and what to expect of a model is what the same version of the engine
computes here."""

import json
import pathlib
import re
import subprocess

import agreement
import bench
import emulation
import numpy as np
import onnx
import peer
from emulation import HERE, OUT, ROOT
from onnx import numpy_helper

DEPS = (ROOT / ".deps/arm").resolve()
PYTHON = DEPS / "x86/bin/python"  # with the engines' packages for this machine
PINS = HERE / "arm_peers.txt"
# engine: what it is called
ENGINES = {"ort": "onnxruntime", "ncnn": "ncnn", "mnn": "MNN", "ncnn-fp16": "ncnn, FP16", "mnn-fp16": "MNN, FP16"}
RUNS = 2
PNNX_TYPES = {"float32": "f32", "int64": "i64", "int32": "i32"}


def installed():
    """Raises where the engines are not there or not of the pinned versions."""
    for ready in (DEPS / "root/ready", DEPS / "x86/ready"):
        if not ready.exists() or ready.stat().st_mtime < PINS.stat().st_mtime:
            raise emulation.MissingTool("other engines are not installed: make deps-arm-peers")


def version(engine):
    package = {"ort": "onnxruntime"}.get(engine.split("-")[0], engine.split("-")[0])
    return re.search(rf"^{package}==(.*)$", PINS.read_text(), re.M)[1]


def root(core):
    """What the emulated program finds below /: the Debian packages, and a processor of this kind."""
    made = OUT / "roots" / core.name
    (made / "proc").mkdir(parents=True, exist_ok=True)
    for name in ("etc", "lib", "usr"):
        link, target = made / name, (DEPS / "root" / name).resolve()
        if link.resolve() != target:
            link.unlink(missing_ok=True)
            link.symlink_to(target)
    (made / "proc/cpuinfo").write_text(
        f"processor\t: 0\nBogoMIPS\t: 108.00\nFeatures\t: {core.features}\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
        f"CPU variant\t: 0x0\nCPU part\t: {core.part}\nCPU revision\t: 3\n\n")
    return made


class PeerRun:
    """A model by another engine."""

    def __init__(self, row, engine):
        installed()
        self.row, self.engine = row, engine
        self.folder, files = prepared(row, engine)
        self.depends = (PINS, HERE / "arm_peer.py", self.folder / "inputs.npz", self.folder / "names.json", *files)
        self.computed_here = self.folder / f"{engine}.npz"
        if not self.computed_here.exists():
            run_here(PYTHON, HERE / "arm_peer.py", engine, self.folder, 1, self.computed_here)

    def command(self, runs):
        return [DEPS / "root/usr/bin/python3.11", "-s", HERE / "arm_peer.py", self.engine, self.folder, runs]

    def around(self, core):
        """Words for the emulator."""
        return ["-L", root(core), "-E", f"PYTHONPATH={DEPS / 'root/peers'}", "-E", "PYTHONHASHSEED=0"]

    def profile(self, core):
        blocks, self.computed = emulation.profile_between(core, self.command(RUNS), self.depends, RUNS, self.around(core))
        return blocks

    def traffic(self, core):
        return emulation.traffic_between(core, self.command(RUNS), self.depends, RUNS, self.around(core))

    def symbols(self):
        return NoSymbols()

    def difference(self, core):
        """Of the outputs of the run that was counted to those computed here, and the largest that is taken for the same."""
        return agreement.difference(read_outputs(self.computed_here), read_outputs(self.computed)), self.tolerance()

    def tolerance(self):
        if self.engine.endswith("fp16"):
            return agreement.HALF_MAX_REL
        return max(agreement.tolerance(self.row), agreement.WINOGRAD_MAX_REL)


class NoSymbols:
    """Packages are stripped: a piece of code goes by its address."""

    def at(self, address):
        return f"{address:x}", ""


def read_outputs(path):
    with np.load(path) as found:
        return [found[name] for name in found.files]


def run_here(*words, cwd=None):
    done = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True, errors="replace")
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        name = pathlib.Path(words[0]).name
        raise RuntimeError(f"{'' if name == 'python' else name + ': '}{said[-1] if said else done.returncode}")


# ---- preparing a model ----

def prepared(row, engine):
    """A folder with a model's inputs and names, and the files of it that the engine reads."""
    model = bench.folder(row) / "model.onnx"
    case = bench.folder(row) / f"test_data_set_{row['set']}"
    stored = sorted(case.glob("input_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    folder = OUT / "peers" / f"{row['name']}-{row['set']}-{emulation.digest([model, PINS, *stored])}"
    graph = onnx.load(model).graph
    constants = {t.name for t in graph.initializer}
    names = [i.name for i in graph.input if i.name not in constants]
    feeds = {name: numpy_helper.to_array(onnx.load_tensor(str(path))) for name, path in zip(names, stored)}
    if not (folder / "names.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "inputs.npz", **feeds)
        (folder / "names.json").write_text(json.dumps([o.name for o in graph.output]))
    return folder, {"ort": for_ort, "ncnn": for_ncnn, "mnn": for_mnn}[engine.split("-")[0]](row, model, feeds, folder)


def for_ort(row, model, feeds, folder):
    (folder / "model.onnx").write_bytes(model.read_bytes())
    return [folder / "model.onnx"]


def plain_float(row):
    if row["form"]:
        raise RuntimeError("reads no quantized ONNX")


def for_ncnn(row, model, feeds, folder):
    """By pnnx; networks of one batch, for ncnn's tensors have none."""
    plain_float(row)
    made = [folder / "model.ncnn.param", folder / "model.ncnn.bin"]
    if not all(path.exists() for path in made):
        shapes = ",".join(str(list(v.shape)).replace(" ", "") + PNNX_TYPES[str(v.dtype)] for v in feeds.values())
        work = folder / "pnnx"
        work.mkdir(exist_ok=True)
        peer.fixed(model, feeds, work / "model.onnx")
        # The program itself: its Python module asks for PyTorch, which ONNX files do not need.
        run_here(next(DEPS.glob("x86/lib/python3*/site-packages/pnnx/pnnx")), "model.onnx", f"inputshape={shapes}",
                 "fp16=0", cwd=work)
        for path in made:
            if not (work / path.name).exists():
                raise RuntimeError("pnnx cannot convert it")
            (work / path.name).rename(path)
    return made


def for_mnn(row, model, feeds, folder):
    """The script mnnconvert would report to its makers and install what that takes: this is what it calls."""
    plain_float(row)
    made = folder / "model.mnn"
    if not made.exists():
        run_here(PYTHON, "-c", "import sys, MNN, _tools; _tools.mnnconvert(sys.argv)", "-f", "ONNX", "--modelFile",
                 peer.fixed(model, feeds, folder / "fixed.onnx"), "--MNNModel", made, "--bizCode", "linnet")
        if not made.exists():
            raise RuntimeError("mnnconvert cannot convert it")
    return [made]
