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
    def __init__(self, program, emulator):
        self.command = [*shlex.split(emulator), program]
        self.passed = self.failed = 0

    def run(self, *words):
        return sh([*self.command, *words], env={k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"})

    def judge(self, what, good, done):
        print(f"{'pass' if good else 'FAIL'} {what}")
        self.passed += good
        self.failed += not good
        if not good:
            print(done.stdout[-2000:] + done.stderr[-2000:])

    def levels(self):
        done = self.run("doctor", "--json")
        self.judge("doctor", done.returncode == 0, done)
        found = json.loads(done.stdout)["levels"] if done.returncode == 0 else []
        print("levels: " + " ".join(found))
        return found


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", required=True)
    options.add_argument("--emulator", default="")
    options.add_argument("--refuses", action="store_true")
    given = options.parse_args()
    board = Board(ROOT / given.program, given.emulator)
    levels = [] if given.refuses else board.levels()
    for name, path in convert():
        if given.refuses:
            done = board.run("verify", path)
            refused = done.returncode in (3, 4) and "endian" in done.stderr
            board.judge(f"{name}: refused, or right", refused or done.returncode == 0, done)
        for level in levels:
            done = board.run("verify", path, "--level", level, "--max-rel", MAX_REL)
            board.judge(f"{name} at {level}", done.returncode == 0, done)
    print(f"{board.passed} passed, {board.failed} failed")
    return 1 if board.failed else 0


sys.exit(main())
