"""What a board has to carry: the stripped sizes of library and program, and of a library trimmed to one model, which must
still compute that model and refuse others."""

import os
import subprocess

import numpy as np
import onnx
import pytest

from harness import ROOT, linnet, reference, write_case
import small_net

BOARD = "generic-arm64"
FOLDER = ROOT / "build" / BOARD
SILERO = ROOT / ".deps" / "silero_vad.onnx"
MB, KB = 1_000_000, 1_000
CROSS = "aarch64-linux-gnu-"
# What runs this must not lend its flags and variables to the makes below.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}


def make(*words):
    words = ["flock", f"{FOLDER}.lock", "make", "-s", f"-j{os.cpu_count()}", f"BOARD={BOARD}", *map(str, words)]
    done = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr


def stripped(path, tmp_path):
    subprocess.run([CROSS + "strip", "-o", tmp_path / "stripped", path], check=True)
    return (tmp_path / "stripped").stat().st_size


def test_library(tmp_path):
    make(FOLDER.relative_to(ROOT) / "liblinnet.so")
    assert stripped(FOLDER / "liblinnet.so", tmp_path) <= 1.0 * MB


def test_static_program(tmp_path):
    make("STATIC=1", FOLDER.relative_to(ROOT) / "linnet")
    assert stripped(FOLDER / "linnet", tmp_path) <= 2.4 * MB


@pytest.mark.skipif(not SILERO.is_file(), reason="no silero_vad.onnx: run make deps-test")
def test_trimmed(tmp_path):
    rng = np.random.default_rng(1)
    fed = {"input": rng.standard_normal((1, 576), np.float32), "state": np.zeros((2, 1, 128), np.float32),
           "sr": np.array(16000, np.int64)}
    case = write_case(tmp_path / "vad", onnx.load(SILERO), fed, reference(SILERO, fed))
    lnt, other = tmp_path / "vad.lnt", tmp_path / "other.lnt"
    small_net.save(tmp_path / "other.onnx")
    for words in ([SILERO, "-o", lnt, "--golden", case / "test_data_set_0"], [tmp_path / "other.onnx", "-o", other]):
        done = linnet("convert", *words)
        assert done.returncode == 0, done.stderr

    trimmed = FOLDER / "trimmed"
    make(f"OPS_FROM={lnt}", trimmed.relative_to(ROOT) / "liblinnet.so", trimmed.relative_to(ROOT) / "linnet")
    assert stripped(trimmed / "liblinnet.so", tmp_path) <= 300 * KB

    def run(*words):
        return subprocess.run(["qemu-aarch64", "-cpu", "cortex-a53", "-L", "/usr/aarch64-linux-gnu", trimmed / "linnet",
                               *words], capture_output=True, text=True, timeout=300)
    done = run("verify", lnt)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run("verify", other)
    assert done.returncode != 0 and "operator" in done.stderr, done.stdout + done.stderr
    done = run("doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
