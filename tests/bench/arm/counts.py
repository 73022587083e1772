"""Recorded numbers of instructions: counts.tsv, which tests/python/models/test_bench_arm.py holds the tree to, and
`bench_arm.py --record` writes anew."""

import csv
import shutil
import subprocess

import emulation
from emulation import CORES, HERE

FILE = HERE / "counts.tsv"
NAMES = ("silero_vad_v6", "dtln_1", "mnist12", "ds_cnn", "dtln_1_dynamic", "ds_cnn_qdq")
RECORDED_CORES = ("a53", "a76", "armv7", "armv6")
TOLERANCE = 0.03
COMPILERS = {"generic-arm64": "aarch64-linux-gnu-gcc", "generic-armhf": "arm-linux-gnueabihf-gcc", "rpi-zero": "arm-linux-gnueabi-gcc"}
HEAD = """# Instructions of one run of a model on a core. Written by
#     .deps/venv/bin/python tests/bench/arm/bench_arm.py --record
"""


def tools(core):
    """The versions of compiler and emulator that a count is of; raises MissingTool where one is absent."""
    compiler = COMPILERS[core.board]
    if not shutil.which(compiler):
        raise emulation.MissingTool(f"no {compiler}: make BOARD={core.board} deps")
    version = subprocess.run([compiler, "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return f"gcc {version}, QEMU {emulation.qemu_version(core.emulator).split()[0]}"


def read():
    """Rows with model, core, instructions and tools."""
    with open(FILE, newline="") as f:
        return list(csv.DictReader((line for line in f if line[0] != "#"), delimiter="\t"))


def write(rows):
    """Of (model, core, instructions)."""
    with open(FILE, "w", newline="") as f:
        f.write(HEAD)
        table = csv.writer(f, delimiter="\t", lineterminator="\n")
        table.writerow(("model", "core", "instructions", "tools"))
        table.writerows((model, core, round(n), tools(CORES[core])) for model, core, n in rows)
