#!/usr/bin/env python3
"""board.py: a cross-built program under emulation. Converts models on this machine (with golden vectors), then lets the
board's program check itself (doctor), the files and what it computes from them at every level it has.

With --refuses (big-endian hosts) a file must be refused or verify, and nothing else."""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("LINNET_SHARED", ROOT.parent / "shared"))
HOST = ROOT / "build" / "linnet"
FOLDER = ROOT / "build" / "board-models"
# Small enough for an emulator, and between them most kernels: matrix products, convolutions, LSTM, control flow.
MODELS = ["mnist12", "onnx2c_mnist_pt", "dtln_1", "silero_vad_v6", "tiny_transformer", "tiny_lfm2", "tract_qlstm"]
MAX_REL = "1e-4"


def sh(words, **options):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=900, **options)


def made_model():
    """A small convolution net with random weights: what there is where the shared models are absent."""
    path = FOLDER / "made.onnx"
    code = "import sys; sys.path.insert(0, 'tests/python/models'); import small_net; small_net.save(sys.argv[1])"
    done = sh([sys.executable, "-c", code, path], cwd=ROOT)
    return path if done.returncode == 0 else sys.exit(done.stderr)


def convert():
    """(name, .lnt) of each model, with golden vectors in it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    sources = [(name, SHARED / "models" / name / "model.onnx") for name in MODELS]
    sources = [(name, path) for name, path in sources if path.is_file()] + [("made", made_model())]
    for name, path in sources:
        target = FOLDER / f"{name}.lnt"
        case = path.parent / "test_data_set_0"
        done = sh([HOST, "convert", path, "-o", target, *(["--golden", case] if case.is_dir() else [])])
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        yield name, target


class Board:
    """A program on one CPU, the machine's own or an emulator's."""

    def __init__(self, program, emulator, cpu):
        self.command = [program] if cpu == "native" else [*shlex.split(emulator), "-cpu", cpu, program]
        self.passed = self.failed = 0

    def run(self, *words):
        return sh([*self.command, *words], env={k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"})

    def judge(self, what, good, done):
        print(f"{'pass' if good else 'FAIL'} {what}")
        self.passed += good
        self.failed += not good
        if not good:
            print(done.stdout[-2000:] + done.stderr[-2000:])

    def levels(self, best):
        """The levels doctor finds and has checked; best is the one it must choose, if that is known."""
        done = self.run("doctor", "--json")
        found = json.loads(done.stdout)["levels"] if done.returncode == 0 else []
        self.judge(f"doctor: {' '.join(found)}", found and best in ("", found[-1]), done)
        return found

    def check_models(self, models, levels):
        for name, path in models:
            for level in levels:
                done = self.run("verify", path, "--level", level, "--max-rel", MAX_REL)
                self.judge(f"{name} at {level}", done.returncode == 0, done)

    def check_refusal(self, models):
        for name, path in models:
            done = self.run("verify", path)
            refused = done.returncode in (3, 4) and "endian" in done.stderr
            self.judge(f"{name}: refused, or right", refused or done.returncode == 0, done)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", required=True)
    options.add_argument("--emulator", default="", help="command that runs it, to which -cpu is added")
    options.add_argument("--cpus", default="native", help="CPU=LEVEL ...: the level to be chosen on each; native")
    options.add_argument("--refuses", action="store_true")
    given = options.parse_args()
    models = list(convert())
    passed = failed = 0
    for word in given.cpus.split():
        cpu, _, best = word.rpartition("=") if "=" in word else (word, "", "")
        print(f"-- {cpu}")
        board = Board(ROOT / given.program, given.emulator, cpu)
        if given.refuses:
            board.check_refusal(models)
        else:
            board.check_models(models, board.levels(best))
        passed += board.passed
        failed += board.failed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
