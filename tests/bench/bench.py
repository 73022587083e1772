#!/usr/bin/env python3
"""bench.py [--quick] [--threads N ...] [--reuse | --render] [NAME ...]: Linnet against ONNX Runtime on all models of
models.tsv (or those named), then BENCHMARKS.md and docs/bench.svg from what was found.

What was measured is kept in build/bench/results.json: naming models renews their rows only, --reuse measures what is
missing, --render nothing. --quick takes fewer rounds and says so in the tables. Rows with a form are models that
onnxruntime's tools have quantized (quantized.py); those converted with --winograd are called so. A model's rows end up in
the tables as they were found, whoever was faster.
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHARED = pathlib.Path(os.environ.get("LINNET_SHARED", ROOT.parent / "shared"))
OUT = ROOT / "build/bench"
RESULTS = OUT / "results.json"
LINNET = ROOT / "build/linnet"
DEVICE = ROOT / "build/device/linnet"
FULL = {"rounds": 31, "processes": 3, "starts": 5}
QUICK = {"rounds": 11, "processes": 2, "starts": 1}
QUANTIZED_MAX_REL = 0.1  # a byte that falls to the other side in one layer is another byte in the next
LONG_RUN = 0.25  # seconds: slower models get fewer rounds when in a hurry
WEIGHT_BOUND = "weights_20mb"  # of the table of starts; it is in no class


def rows(models=HERE / "models.tsv"):
    """The lines of a list of models as dictionaries, with `key` added."""
    with open(models, newline="") as f:
        found = [dict(row) for row in csv.DictReader(f, delimiter="\t", restval="")]
    for row in found:
        row["source"] = row["name"]
        if row["form"]:
            row["name"] += f"_{row['form']}"
        if "--winograd" in row["convert"]:
            row["name"] += "_winograd"
        if "--precision" in row["convert"]:
            row["name"] += "_float16"
        row["key"] = f"{row['name']}/{row['set']}"
    return found


def folder(row):
    source = (SHARED / "models" if row["where"] == "shared" else ROOT / "build/zoo") / row["source"]
    if not row["form"]:
        return source
    import quantized
    made = ROOT / "build/quantized" / row["name"]
    quantized.make(source, row["form"], row["set"], made)
    return made


def shape_text(row):
    """What the model is given: the zoo's label, or the extents of the first input."""
    if row["where"] == "zoo":
        return row["set"].replace("_", " ")
    import onnx
    tensor = onnx.load_tensor(folder(row) / f"test_data_set_{row['set']}" / "input_0.pb")
    return "x".join(map(str, tensor.dims)) or "scalar"


def linnet(*words, program=None):
    done = subprocess.run([program or LINNET, *map(str, words)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def convert(row):
    lnt = OUT / f"{row['name']}.lnt"
    model = folder(row) / "model.onnx"
    if not lnt.exists() or lnt.stat().st_mtime < max(model.stat().st_mtime, LINNET.stat().st_mtime):
        linnet("convert", model, "-o", lnt, *(row["convert"] or "").split())
    return lnt, model


def effort(how):
    return [word for name, value in how.items() for word in (f"--{name}", value)]


def measure(row, threads, how):
    lnt, model = convert(row)
    data = ["--data", folder(row) / f"test_data_set_{row['set']}"]
    once = json.loads(linnet("bench", lnt, *data, "--runs", 1, "--warmup", 0, "--trust", "--trace", "--threads", threads, "--json"))
    if how is not FULL:
        how = how | ({"rounds": 5, "processes": 1} if once["min_us"] > LONG_RUN * 1e6 else {})
    close = ["--max-rel", QUANTIZED_MAX_REL] if row["form"] else []
    found = json.loads(linnet("bench", lnt, "--vs", "onnxruntime", "--onnx", model, *data, "--threads", threads, *close,
                              *effort(how), "--json"))
    return found | {"shape": shape_text(row), "multiply_adds": once["multiply_adds"], "peak_gflops": once["peak_gflops"]}


# ---- starting: 20 MB of weights, each read once ----

def weight_bound(path):
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save
    side, layers = 1024, 5
    random = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for i in range(layers):
        weights.append(numpy_helper.from_array(random.standard_normal((side, side)).astype(np.float32) / side ** 0.5, f"w{i}"))
        nodes += [helper.make_node("MatMul", [value, f"w{i}"], [f"p{i}"]), helper.make_node("Tanh", [f"p{i}"], [f"y{i}"])]
        value = f"y{i}"
    graph = helper.make_graph(nodes, WEIGHT_BOUND, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, side])],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, [1, side])], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def measure_start(how):
    """Under the device program, which is what starts on a device: no converter, no libraries of its own."""
    model, lnt = OUT / f"{WEIGHT_BOUND}.onnx", OUT / f"{WEIGHT_BOUND}.lnt"
    weight_bound(model)
    linnet("convert", model, "-o", lnt)
    clean = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
    subprocess.run(["make", "-s", "-j2", "BUILD=build/device", "CONVERTER=", "AUDIO=", "build/device/linnet",
                    "build/device/liblinnet.so"], cwd=ROOT, check=True, env=clean, stdout=subprocess.DEVNULL)
    found = json.loads(linnet("bench", lnt, "--vs", "onnxruntime", "--onnx", model, *effort(how | {"starts": 15}), "--json",
                              program=DEVICE))
    stripped = OUT / "liblinnet.so"
    subprocess.run(["strip", "-o", stripped, ROOT / "build/device/liblinnet.so"], check=True)
    found["linnet"]["library_file_bytes"] = stripped.stat().st_size
    found["onnxruntime"]["library_file_bytes"] = next(
        (ROOT / ".deps/venv/lib").glob("python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*")).stat().st_size
    return found


# ---- the machine ----

def machine():
    import platform
    info = pathlib.Path("/proc/cpuinfo").read_text()
    cpu = next((line.split(":")[1].strip() for line in info.split("\n") if line.startswith(("model name", "Model"))), "?")
    memory = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) // 1024 ** 2
    doctor = json.loads(linnet("doctor", "--quick", "--json"))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_gib": memory, "kernel": platform.release(),
            "levels": doctor["levels"], "chosen": doctor["chosen"], "linnet": doctor["version"], "commit": commit,
            "date": time.strftime("%Y-%m-%d"), "load": os.getloadavg()[0]}


def save(results):
    scratch = RESULTS.with_suffix(".new")
    scratch.write_text(json.dumps(results, indent=1))
    scratch.replace(RESULTS)


def work_through(given, results):
    wanted = [r for r in rows() if not given.names or r["name"] in given.names]
    how = QUICK if given.quick else FULL
    for row in wanted:
        for threads in given.threads:
            key = f"{row['key']}/{threads}"
            if given.reuse and key in results["duels"]:
                continue
            try:
                found = measure(row, threads, how)
            except RuntimeError as error:
                found = {"error": str(error)}
            results["duels"][key] = found
            save(results)
            told = found.get("error") or f"{found['ratio']:6.2f}  [{found['ratio_low']:.2f}, {found['ratio_high']:.2f}]" + \
                f"  processor {found['cpu_ratio']:.2f}" + ("" if found["agree"] else "  outputs differ")
            print(f"{row['key']:36} {threads} threads  {told}", flush=True)
    if not given.names and not (given.reuse and results.get("start")):
        results["start"] = measure_start(how)
    results["machine"] = machine()
    save(results)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--quick", action="store_true", help="fewer rounds")
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    options.add_argument("--reuse", action="store_true", help="keep what was measured before")
    options.add_argument("--render", action="store_true", help="measure nothing")
    given = options.parse_args()
    unknown = set(given.names) - {r["name"] for r in rows()}
    if unknown:
        options.error(f"no model {', '.join(sorted(unknown))} in {HERE / 'models.tsv'}")
    OUT.mkdir(parents=True, exist_ok=True)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"duels": {}}
    if not given.render:
        work_through(given, results)
    import report
    report.write(rows(), results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
