#!/usr/bin/env python3
"""first_sound.py: from a text to the first sample, by pieces and as a whole, of a voice of Piper's medium size (seeded weights), one
thread, warm; what pieces cost; and how long the voice of the program takes from its start to the first byte. Medians of RUNS."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python" / part) for part in (".", "builders")]
import voice  # noqa: E402
from harness import LINNET, linnet  # noqa: E402

IDS = (20, 80, 300, 2000)
RUNS = 7
RATE = 16000
TEXTS = ("Your tea is ready.",
         "The train to the coast leaves from platform four, in eleven minutes. Please keep your luggage with you. Thank you for traveling "
         "with us, and mind the gap.",
         "The train to the coast leaves from platform four in eleven minutes and everybody who wants to travel with us should keep their "
         "luggage close and mind the gap between the train and the platform")


CLAUSE = 60  # symbols of one, at most


def lines(n_ids, folder, count):
    """Texts of phonemes, as JSON: so many ids with pauses between and around them, in clauses."""
    clause = ("həlˈoʊwɜːld " * CLAUSE)[:CLAUSE - 2] + ", "
    text = f"[[{(clause * (n_ids // CLAUSE + 1))[:(n_ids - 3) // 2]}]]"
    return "".join(json.dumps({"text": text, "output_file": str(folder / f"{k}.wav")}) + "\n" for k in range(count))


def said(model, text, *options):
    """What --json tells of each text, and seconds of the processor."""
    words = [LINNET, "say", "-m", str(model), "--json-input", "--json", "--threads", "1", "--noise_scale", "0", "--noise_w", "0", *options]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(text)
    process.stdin.close()
    told = json.loads(process.stdout.read())["texts"]
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return told, used.ru_utime + used.ru_stime


def row(model, n_ids, folder):
    """In turns; the first text of each process warms it up."""
    first, whole, cost = [], [], []
    for _ in range(RUNS):
        used = []
        for stream in ("auto", "off"):
            alone = said(model, lines(n_ids, folder, 1), "--stream", stream)[1]
            told, all_three = said(model, lines(n_ids, folder, 3), "--stream", stream)
            used.append((all_three - alone) / 2)
            (first if stream == "auto" else whole).extend(t["first_us"] / 1e3 for t in told[1:])
        cost.append(used[0] / used[1])
    seconds = told[1]["samples"] / RATE
    print(f"{n_ids:8}{seconds:10.2f}{statistics.median(first):14.1f}{statistics.median(whole):12.1f}"
          f"{statistics.median(cost):18.2f}", flush=True)


def first_byte(text):
    """Milliseconds from exec to the first byte of the program's own voice."""
    times = []
    for _ in range(4 * RUNS):
        begun = time.perf_counter()
        with subprocess.Popen([LINNET, "say", "--threads", "1", "--output_raw", text], stdout=subprocess.PIPE) as process:
            process.stdout.read(1)
            times.append((time.perf_counter() - begun) * 1e3)
            process.stdout.read()
    return times


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        onnx.save(voice.build_piper(voice.MEDIUM), folder / "medium.onnx")
        (folder / "medium.onnx.json").write_text(json.dumps(voice.piper_config()))
        done = linnet("convert", folder / "medium.onnx", "--config", folder / "medium.onnx.json", "-o", folder / "medium.lnt")
        assert done.returncode == 0, done.stderr
        print(f"{'ids':>8}{'seconds':>10}{'first, ms':>14}{'whole, ms':>12}{'cost of pieces':>18}")
        for n_ids in IDS:
            row(folder / "medium.lnt", n_ids, folder)
    for text in TEXTS:
        times = first_byte(text)
        print(f"own voice, from exec to the first byte: {statistics.median(times):.1f} ms (fastest {min(times):.1f}), {text[:40]!r}")


main()
