#!/usr/bin/env python3
"""board.py: a cross-built program under emulation. Models and a slice of the ONNX suite are converted on this machine; the
board's program checks itself (doctor), verifies the models with the golden vectors in their files at every level it has, and
computes what this machine's scalar kernels compute: floats within ULP units in the last place of their tensor's largest
magnitude, everything else, and models in INT8, bit for bit. What a program maps of a file stays the file's (tests/python/pages.py).

With --refuses (big-endian hosts) a file must be refused or verify, and nothing else."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "tests" / "python" / "builders")]

import harness  # noqa: E402
import pages  # noqa: E402
import small_net  # noqa: E402
import onnx  # noqa: E402

FOLDER = ROOT / "build" / "board-models"
# Small enough for an emulator, and between them most kernels: matrix products, convolutions, LSTM, control flow.
MODELS = ["mnist12", "onnx2c_mnist_pt", "dtln_1", "silero_vad_v6", "tiny_transformer", "tiny_lfm2", "tract_qlstm"]
# In INT8; of the first ones nothing between the products rounds otherwise at another level. The last one's depthwise
# layer computes in float, with weights that the file holds as bytes.
EXACT_INT8_MODELS = ["mnist12", "onnx2c_mnist_pt"]
INT8_MODELS = [*EXACT_INT8_MODELS, "made"]
# Every so-many-th case of the suite that computes, and all that work on bytes.
SLICE = 41
BYTES = ("quantize", "qlinear", "integer")
IN_ORDER = {"cortex-a53": True, "cortex-a72": False, "cortex-a76": False}
MAX_REL = "1e-4"
ULP = 32


def sh(words, **options):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=900, **options)


class Case:
    """A converted model, its inputs, and what this machine's scalar kernels make of them; kept from board to board."""

    def __init__(self, name, model, data, *options, golden=False, exact=False):
        self.name, self.folder = name, FOLDER / name
        self.exact = exact or any(word in name for word in BYTES)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lnt = self.folder / "model.lnt"
        self.inputs, self.worst = [], 0.0
        stamp, program = self.folder / "made-by", str(pathlib.Path(harness.LINNET).stat().st_mtime_ns)
        fed = harness.fed_inputs(onnx.load(model, load_external_data=False))
        for k, value in enumerate(fed):
            path = data / f"input_{k}.pb"
            if path.is_file():
                self.inputs += ["--input", f"{value}={path}"]
        if stamp.is_file() and stamp.read_text() == program:
            self.expected = self.outputs("here")
            return
        done = sh([harness.LINNET, "convert", model, "-o", self.lnt, *(["--golden", data] if golden else []), *options])
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        self.expected = self.run([harness.LINNET], "scalar", "here")
        if isinstance(self.expected, dict):
            stamp.write_text(program)

    def outputs(self, where):
        return {p.stem: np.load(p) for p in (self.folder / where).glob("*.npy")}

    def run(self, command, level, where, env=None):
        """Outputs by name, or the finished process where it failed."""
        folder = self.folder / where
        for old in folder.glob("*.npy"):
            old.unlink()
        done = sh([*command, "run", self.lnt, *self.inputs, "--output-dir", folder, "--level", level, "--threads", "1"],
                  env=env)
        return self.outputs(where) if done.returncode == 0 else done

    def differs(self, got):
        """What is wrong with outputs, or None. The largest error in ULP so far stays in self.worst."""
        if not isinstance(got, dict):
            return got.stderr[-500:]
        for name, want in self.expected.items():
            x = got.get(name)
            if x is None or x.shape != want.shape or x.dtype != want.dtype:
                return f"{name} is missing, or of another type or shape"
            if self.exact or want.dtype != np.float32:
                if x.tobytes() != want.tobytes():
                    return f"{name} is not the same"
                continue
            finite = np.isfinite(want)
            if not (np.array_equal(np.isfinite(x), finite) and np.array_equal(x[~finite], want[~finite], equal_nan=True)):
                return f"{name}: other elements are not finite"
            if finite.any():
                unit = np.spacing(np.abs(want[finite]).max())
                off = np.abs(x[finite].astype(np.float64) - want[finite]).max() / unit
                self.worst = max(self.worst, off)
                if off > ULP:
                    return f"{name} is off by {off:.0f} ULP"
        return None


def made_model():
    """A small convolution net with random weights, and inputs for it."""
    model = small_net.build()
    fed = {"x": np.random.default_rng(1).standard_normal((1, 3, 20, 20)).astype(np.float32)}
    return harness.write_case(FOLDER / "made-case", model, fed, harness.reference(model, fed))


def takes_numbers(path):
    """Are all inputs and outputs of the model tensors of numbers, which .npy files can hold?"""
    graph = onnx.load(path, load_external_data=False).graph
    return all(v.type.HasField("tensor_type") and v.type.tensor_type.elem_type != onnx.TensorProto.STRING
               for v in (*graph.input, *graph.output))


def suite_slice():
    """Folders of suite cases: models of a few nodes that are expected to pass."""
    passing = set((ROOT / "tests" / "expected_pass.txt").read_text().split("\n"))
    folders = [p.parent for p in sorted(harness.suite().glob("*/*/model.onnx"))
               if p.parent.name in passing and not p.parent.name.startswith("light_")]
    chosen = folders[::SLICE] + [p for p in folders if any(word in p.name for word in BYTES)]
    return [p for p in dict.fromkeys(chosen)
            if (p / "test_data_set_0" / "output_0.pb").is_file() and takes_numbers(p / "model.onnx")]


def cases():
    """(real models, with golden vectors), (all cases that can be compared)."""
    made = made_model()
    sources = {name: harness.SHARED / "models" / name for name in MODELS} | {"made": made}
    sources = {name: path for name, path in sources.items() if (path / "model.onnx").is_file()}
    models = [Case(name, path / "model.onnx", path / "test_data_set_0", golden=True) for name, path in sources.items()]
    int8 = [Case(f"{name}-int8", sources[name] / "model.onnx", sources[name] / "test_data_set_0", "--int8", "dynamic",
                 exact=name in EXACT_INT8_MODELS) for name in INT8_MODELS if name in sources]
    suite = [Case(p.name, p / "model.onnx", p / "test_data_set_0") for p in suite_slice()]
    return models, [case for case in [*models, *int8, *suite] if isinstance(case.expected, dict)]


WINE = "wine"  # this machine's CPU, and no process of Linux's whose pages could be looked at


class Board:
    """A program on one CPU, the machine's own or an emulator's."""

    def __init__(self, program, emulator, cpu):
        self.command = [program] if cpu == "native" else [*shlex.split(emulator), *(["-cpu", cpu] if cpu != WINE else []), program]
        self.env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
        self.env["OPENBLAS_NUM_THREADS"] = "1"  # its threads, begun while it is loaded, crash emulated ARM
        self.passed = self.failed = 0

    def run(self, *words, **env):
        return sh([*self.command, *words], env={**self.env, **env})

    def judge(self, what, good, why):
        print(f"{'pass' if good else 'FAIL'} {what}", flush=True)
        self.passed += good
        self.failed += not good
        if not good:
            print(why)

    def levels(self, best, *options):
        """The levels doctor finds and has checked; best is the one it must choose, if that is known."""
        done = self.run("doctor", "--json", *options)
        found = json.loads(done.stdout)["levels"] if done.returncode == 0 else []
        self.judge(f"doctor: {' '.join(found)}", bool(found) and best in ("", found[-1]), done.stdout[-2000:] + done.stderr[-2000:])
        return found

    def check_order(self, in_order):
        """Tiles for cores that run in order are chosen where all do, and where one says so."""
        for asked, wanted in (({}, in_order), ({"LINNET_IN_ORDER": "0"}, False), ({"LINNET_IN_ORDER": "1"}, True)):
            done = self.run("doctor", "--json", "--quick", **asked)
            good = done.returncode == 0 and json.loads(done.stdout)["in_order"] == wanted
            self.judge(f"doctor: in order {wanted} {' '.join(asked.values())}", good, done.stdout[-2000:] + done.stderr[-2000:])

    def check_models(self, models, levels):
        for case in models:
            for level in levels:
                done = self.run("verify", case.lnt, "--level", level, "--max-rel", MAX_REL)
                self.judge(f"{case.name} at {level}", done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:])

    def compare(self, all_cases, level):
        """Everything at the level chosen, against this machine's scalar kernels."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(lambda case: case.differs(case.run(self.command, level, "there", self.env)), all_cases)
            for case, why in zip(all_cases, found):
                self.judge(f"{case.name} as here", why is None, why)

    def check_pages(self):
        """The mapped file is run in place; once a board, for this does not depend on the CPU."""
        why = pages.fault(self.command, FOLDER, self.env)
        self.judge("the file's pages stay clean and shared", why is None, why)

    def check_refusal(self, models):
        for case in models:
            done = self.run("verify", case.lnt)
            refused = done.returncode in (3, 4) and "endian" in done.stderr
            self.judge(f"{case.name}: refused, or right", refused or done.returncode == 0, done.stderr)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", required=True)
    options.add_argument("--emulator", default="", help="command that runs it, to which -cpu is added")
    options.add_argument("--cpus", default="native", help="CPU=LEVEL ...: the level to be chosen on each; native; wine")
    options.add_argument("--refuses", action="store_true")
    given = options.parse_args()
    models, compared = cases()
    passed = failed = 0
    words = given.cpus.split()
    for word in words:
        cpu, _, best = word.rpartition("=") if "=" in word else (word, "", "")
        print(f"-- {cpu}")
        board = Board(ROOT / given.program, given.emulator, cpu)
        if given.refuses:
            board.check_refusal(models)
        else:
            # A CPU between the first and the last chooses among kernels that these have, too.
            levels = board.levels(best, *([] if word in (words[0], words[-1]) else ["--quick"]))
            if cpu in IN_ORDER:
                board.check_order(IN_ORDER[cpu])
            board.check_models(models, levels)
            if word == words[0] and cpu != WINE:
                board.check_pages()
            board.compare(compared, levels[-1] if levels else "scalar")
        passed += board.passed
        failed += board.failed
    worst = max(compared, key=lambda case: case.worst)
    print(f"floats: at most {worst.worst:.1f} ULP of the largest magnitude ({worst.name})")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
