#!/usr/bin/env python3
"""real_time.py: what a second of sound costs on ARM, of the program's own voice and of one of Piper's medium size (seeded
weights): instructions, modelled cycles, and the share of a core's time at the boards' clocks. Some minutes; docs/say.md."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / part) for part in ("tests/bench", "tests/python", "tests/python/builders", "tests/zoo")]
import emulation  # noqa: E402
import linnet_arm  # noqa: E402
import voice  # noqa: E402
from bench_arm import MEMORY, cycles  # noqa: E402

RATE = 16000
TEXT = "The water temperature is too high."
BOARDS = {"a53": ("Zero 2 W", 1.0), "a72": ("Pi 4", 1.5), "a76": ("Pi 5", 2.4)}  # GHz
FOLDER = emulation.OUT / "voices"


class Speaking(linnet_arm.Run):
    """A voice on ids of phonemes, without noise: each run has as many frames."""

    def __init__(self, program, lnt, ids):
        self.program, self.lnt, self.level = program, lnt, []
        given = {"input": np.array([ids]), "input_lengths": np.array([len(ids)]), "scales": np.float32([0, 1, 0])}
        paths = {name: FOLDER / f"{lnt.stem}_{name}.npy" for name in given}
        for name, path in paths.items():
            np.save(path, given[name])
        self.fed = [word for name, path in paths.items() for word in ("--input", f"{name}={path}")]
        self.depends = (program, lnt, *paths.values())

    def seconds(self):
        done = subprocess.run([str(word) for word in self.outputs_command(linnet_arm.ours_converter(), FOLDER)] + ["--json"],
                              check=True, capture_output=True, text=True)
        return max(np.prod(o["dims"]) for o in json.loads(done.stdout)["outputs"]) / RATE


def medium(linnet):
    onnx.save(voice.build_piper(voice.MEDIUM), FOLDER / "medium.onnx")
    subprocess.run([linnet, "convert", FOLDER / "medium.onnx", "-o", FOLDER / "medium.lnt"], check=True, capture_output=True)
    return FOLDER / "medium.lnt"


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    linnet = linnet_arm.ours_converter()
    said = subprocess.run([linnet, "say", "--print", "ids", TEXT], check=True, capture_output=True, text=True).stdout
    ids = [int(word) for word in said.split()]
    print(f"{'voice':<10}{'core':<16}{'seconds':>8}{'instructions':>14}{'cycles':>10}{'of a core':>11}   (millions, a second of sound)")
    for path in (ROOT / "speech/voices/robin.lnt", medium(linnet)):
        for name, (board, clock) in BOARDS.items():
            core = emulation.CORES[name]
            run = Speaking(linnet_arm.ours(core, None), path, ids)
            blocks, seconds = run.profile(core), run.seconds()
            modelled = cycles.model(core, blocks, MEMORY)[1] / seconds
            count = sum(b.instructions for b in blocks) / seconds
            print(f"{path.stem:<10}{f'{name}, {board}':<16}{seconds:>8.2f}{count / 1e6:>14.0f}{modelled / 1e6:>10.0f}"
                  f"{modelled / clock / 1e9:>10.1%}", flush=True)


if __name__ == "__main__":
    main()
