#!/usr/bin/env python3
"""bench_ops.py [--threads N ...] [--new | --reuse | --render] [--random SEED COUNT] [--list] [PATTERN ...]: single operators
against ONNX Runtime.

Rows are those of grid.py, or those whose "family: name" holds a PATTERN (a regular expression). Each runs in turns with
onnxruntime's, its outputs compared; what comes out slower is measured again at length. What was measured is kept in
build/bench-ops/results.json: --reuse measures what is missing, --new besides that what the sources of its operator have
changed under. docs/operators-speed.md is written from it.

--random measures rows that random_rows.py draws from a seed instead: shapes, axes and attributes that no kernel was looked at
with. They are kept in build/bench-ops/random-SEED.json, and what is slower is printed."""

import argparse
import functools
import hashlib
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import onnx
from onnx import numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import bench  # noqa: E402
import grid  # noqa: E402
import ops_report  # noqa: E402
import random_rows  # noqa: E402

ROOT = HERE.parents[2]
OUT = ROOT / "build/bench-ops"
RESULTS = OUT / "results.json"
BRIEF = ["--rounds", 9, "--processes", 1, "--starts", 0]
LENGTHY = ["--rounds", 21, "--processes", 3, "--starts", 0]
BIND = re.compile(r'^(?:OP|PRODUCT)\(\d+, \d+, \w+, \w+, "([^"]+)", \d+, \d+, \d+, \d+, \w+, \w+, (\w+),', re.M)


@functools.cache
def rooms():
    """Folder of ops/ that holds each operator's kernels."""
    binds = {}
    for path in (ROOT / "ops").rglob("*.c"):
        for name in re.findall(r"^lnt_status lnt_bind_(\w+)\(", path.read_text(), re.M):
            binds[name] = path.parent
    return {op: binds[bind] for op, bind in BIND.findall((ROOT / "ops/list.h").read_text()) if bind in binds}


@functools.cache
def digest(folder):
    found = hashlib.sha256()
    for path in sorted(folder.glob("*.[ch]")) + sorted((ROOT / "ops/simd").glob("*.h")):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def sources(row):
    return digest(rooms().get(row.op, ROOT / "ops"))


def size_of(value):
    tensor = value.type.tensor_type
    if not tensor.elem_type:  # a sequence
        return 0
    return math.prod(d.dim_value for d in tensor.shape.dim) * onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize


def bytes_moved(model, data):
    """Of inputs, weights and those outputs whose extents the model tells."""
    outputs = onnx.shape_inference.infer_shapes(model).graph.output
    return sum(path.stat().st_size for path in data.iterdir()) + sum(map(size_of, outputs)) + sum(
        numpy_helper.to_array(w).nbytes for w in model.graph.initializer)


def write(row, folder):
    model, feeds = row.make()
    data = folder / "data"
    data.mkdir()
    for k, (name, value) in enumerate(feeds.items()):
        (data / f"input_{k}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx", data


def duel(row, lnt, model, data, threads, how):
    return json.loads(bench.linnet("bench", lnt, "--vs", "onnxruntime", "--onnx", model, "--data", data, "--threads", threads,
                                   "--max-rel", row.tolerance(), *how, "--json"))


def measure(row, threads):
    with tempfile.TemporaryDirectory(dir=OUT) as name:
        folder = pathlib.Path(name)
        model, data = write(row, folder)
        lnt = folder / "model.lnt"
        bench.linnet("convert", model, "-o", lnt)
        found = duel(row, lnt, model, data, threads, BRIEF)
        if found["ratio_low"] < 1:
            found = duel(row, lnt, model, data, threads, LENGTHY)
        once = json.loads(bench.linnet("bench", lnt, "--data", data, "--runs", 5, "--trust", "--trace", "--threads", threads,
                                       "--json"))
        moved = bytes_moved(onnx.load(model), data)
    return {"ratio": found["ratio"], "low": found["ratio_low"], "high": found["ratio_high"], "cpu_ratio": found["cpu_ratio"],
            "us": found["linnet"]["p50_us"], "ort_us": found["onnxruntime"]["p50_us"], "agree": found["agree"],
            "relayout": min(1, once["relayout_us"] / once["p50_us"]), "multiply_adds": once["multiply_adds"],
            "peak_gflops": once["peak_gflops"], "bytes": moved, "level": found["level"], "sources": sources(row)}


def attempt(row, threads):
    try:
        return measure(row, threads)
    except RuntimeError as error:
        return {"error": str(error).splitlines()[-1] if str(error) else "?", "sources": sources(row)}


def is_due(given, row, known):
    """Is it to be measured?"""
    if given.new:
        return not known or known["sources"] != sources(row)
    return not (given.reuse and known)


def tell(key, found, done, of, start):
    left = (time.monotonic() - start) / done * (of - done)
    bar = f"\r\x1b[K[{done}/{of}, {left / 60:.0f} min left] " if sys.stderr.isatty() else ""
    if "error" in found:
        print(f"{bar}{key:70} {found['error']}", flush=True)
    else:
        print(f"{bar}{key:70} {found['ratio']:6.2f} [{found['low']:.2f}, {found['high']:.2f}]  {found['us']:9.1f} us"
              + ("" if found["agree"] else "  outputs differ"), flush=True)


def work_through(given, wanted, results, path):
    due = [(row, threads) for threads in given.threads for row in wanted
           if is_due(given, row, results["rows"].get(f"{row.name}/{threads}"))]
    start = time.monotonic()
    for done, (row, threads) in enumerate(due, 1):
        key = f"{row.name}/{threads}"
        results["rows"][key] = attempt(row, threads)
        tell(key, results["rows"][key], done, len(due), start)
        if done % 20 == 0 or done == len(due):
            save(results, path)
    if due:
        results["machine"] = bench.machine()
        save(results, path)


def save(results, path):
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(results, indent=0))
    scratch.replace(path)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("patterns", nargs="*", metavar="PATTERN")
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    how = options.add_mutually_exclusive_group()
    how.add_argument("--new", action="store_true", help="what is missing, or has other sources now")
    how.add_argument("--reuse", action="store_true", help="what is missing")
    how.add_argument("--render", action="store_true", help="measure nothing")
    options.add_argument("--random", type=int, nargs=2, metavar=("SEED", "COUNT"), help="rows drawn from a seed")
    options.add_argument("--list", action="store_true", help="print the rows")
    given = options.parse_args()
    everything = random_rows.rows(*given.random) if given.random else grid.rows()
    wanted = [r for r in everything if not given.patterns or any(re.search(p, f"{r.family}: {r.name}") for p in given.patterns)]
    if not wanted:
        options.error("no row is called so (--list)")
    if given.list:
        print("\n".join(f"{r.family}: {r.name}" for r in wanted))
        return
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"random-{given.random[0]}.json" if given.random else RESULTS
    results = json.loads(path.read_text()) if path.exists() else {"rows": {}}
    if not given.render:
        work_through(given, wanted, results, path)
    if given.random:
        ops_report.tell_slow(wanted, results)
    else:
        ops_report.write(everything, results)


if __name__ == "__main__":
    main()
