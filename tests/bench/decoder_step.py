#!/usr/bin/env python3
"""decoder_step.py [--rounds N]: a decoder of Llama's shape with seeded weights, 100 million, converted with --int4: size, time of a
step for one token, and how fast the step reads its weights beside a plain copy of memory, on one thread and on two.

A copy counts what it reads and what it writes; a step the bytes of its weights in the file alone. Steps and copies take turns,
and of each the fastest counts.
"""

import argparse
import json
import pathlib
import sys
import threading
import time

import numpy as np
import onnx
from bench import OUT, linnet

sys.path.extend(str(pathlib.Path(__file__).parents[1] / "python" / folder) for folder in (".", "builders"))

from decoder import Size, build, inputs  # noqa: E402

from linnet_ctypes import Model, Session  # noqa: E402

SIZE = Size(vocabulary=8192, hidden=768, heads=12, layers=12, wide=2048, longest=1024)
PAST, COPIED = 64, 1 << 27


def convert():
    """The file, and what --int4 reports."""
    model, lnt, plain, report = (OUT / f"decoder_step{end}" for end in (".onnx", ".lnt", ".float.lnt", ".json"))
    if not report.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        onnx.save(build(SIZE), model)
        linnet("convert", model, "-o", plain)
        linnet("convert", model, "-o", lnt, "--int4", "--report", report)
    return lnt, json.loads(report.read_text()), lnt.stat().st_size / plain.stat().st_size


def copy(threads, source, target):
    """Seconds."""
    parts = [threading.Thread(target=np.copyto, args=(to, of)) for to, of in zip(np.split(target, threads), np.split(source, threads))]
    begin = time.perf_counter()
    for part in parts:
        part.start()
    for part in parts:
        part.join()
    return time.perf_counter() - begin


def step(session):
    begin = time.perf_counter()
    session.run()
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    lnt, report, share = convert()
    layers = report["int4"]["layers"]
    read = sum(layer["bytes_after"] for layer in layers if layer["bits"] == 4)
    print(f"{lnt.stat().st_size / 1e6:.1f} MB, {share:.3f} of the float file; weights of 4 bits: {read / 1e6:.1f} MB; lowest SNR of "
          f"{len(report['int4']['outputs'])} outputs {min(o['snr_db'] for o in report['int4']['outputs']):.1f} dB on seeded weights")
    source, target = np.ones(COPIED, np.uint8), np.zeros(COPIED, np.uint8)
    for threads in (1, 2):
        session = Session(Model(lnt), threads=threads).set(**inputs(1, PAST, size=SIZE))
        session.run()
        steps, copies = zip(*((step(session), copy(threads, source, target)) for _ in range(rounds)))
        speed, plain = read / min(steps) / 1e9, 2 * COPIED / min(copies) / 1e9
        print(f"{threads} thread{'s' * (threads > 1)}: {min(steps) * 1e3:.2f} ms a token, {speed:.1f} GB/s of weights; "
              f"a copy {plain:.1f} GB/s: {speed / plain:.0%}")


if __name__ == "__main__":
    main()
