#!/usr/bin/env python3
"""peers.py [--threads N ...] [--rounds N] [--reuse | --render] [NAME ...]: Linnet beside the engines that PyPI has, on
some of the bench's models: the table "Peers" of BENCHMARKS.md. `make peers` installs them below .deps and runs this.

Each engine has a process of its own (peer.py) and is asked through its Python package, as its users do; they take turns,
round by round, and the one that is not asked waits. What a peer computes is held against onnxruntime's outputs. What was
measured is kept in build/bench/peers.json: naming models renews their rows only, --reuse measures what is missing."""

import argparse
import importlib.metadata
import json
import pathlib
import statistics
import subprocess
import sys
import threading
import time

import bench
import numpy as np
import report

ROOT = bench.ROOT
RESULTS = bench.OUT / "peers.json"
MODELS = ("resnet50/224x224", "mobilenet_v2/224x224", "efficientnet_b0/224x224", "yunet_n_dynamic/0", "minilm_l6/1x128",
          "silero_vad_v6/0", "dtln_1/0", "vocoder/12_characters", "ds_cnn/49x10", "mnist12/0")
# What peer.py calls them: (what they are called, their package)
ENGINES = {"linnet": ("Linnet", None), "onnxruntime": ("onnxruntime", "onnxruntime"), "openvino": ("OpenVINO", "openvino"),
           "mnn": ("MNN", "mnn"), "ncnn": ("ncnn", "ncnn"), "litert": ("LiteRT", "ai-edge-litert"),
           "torch": ("torch.compile", "torch")}
MAX_REL = 1e-3  # of the largest magnitude; some count on Winograd's convolutions
PREPARE = 900  # seconds to convert, load and run once
TURN, PAUSE = 0.3, 0.1  # seconds; threads that spin after a run are parked by then


class Peer:
    """An engine's process: prepared once, then asked for times."""

    def __init__(self, engine, model, case, threads, folder):
        self.engine, self.folder = engine, folder
        words = [sys.executable, pathlib.Path(__file__).with_name("peer.py"), engine, model, case, threads, folder]
        folder.mkdir(parents=True, exist_ok=True)
        self.log = open(folder / f"{engine}.log", "w+")
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        late = threading.Timer(PREPARE, self.process.kill)
        late.start()
        ready = self.process.stdout.readline()
        late.cancel()
        self.error = None if ready else self.reason()

    def reason(self):
        code = self.process.wait()
        self.log.seek(0)
        lines = [line.strip() for line in self.log if line.strip()]
        return f"crashes (signal {-code})" if code < 0 and code != -9 else f"not ready after {PREPARE} s" if code < 0 else lines[-1][:200]

    def ask(self):
        """A run's median, microseconds; None where it ended."""
        try:
            print(TURN, file=self.process.stdin, flush=True)
            return float(self.process.stdout.readline())
        except (OSError, ValueError):
            self.error = self.reason()
            return None

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.log.close()


def outputs(folder, engine):
    with np.load(folder / f"{engine}.npz") as found:
        return [found[name] for name in found.files]


def difference(folder, engine):
    """To onnxruntime's outputs, over their largest magnitude; channels may have come last. Why not, where they do not fit."""
    worst = 0.0
    want, got = outputs(folder, "onnxruntime"), outputs(folder, engine)
    if len(want) != len(got):
        return f"{len(got)} outputs, not {len(want)}"
    for a, b in zip(want, got):
        if a.size != b.size:
            return f"an output of {b.size} numbers, not {a.size}"
        if a.shape != b.shape and b.ndim == a.ndim > 2 and np.moveaxis(b, -1, 1).shape == a.shape:
            b = np.moveaxis(b, -1, 1)
        top = float(np.abs(a).max(initial=0)) or 1.0
        worst = max(worst, float(np.abs(a.astype(np.float64).ravel() - b.astype(np.float64).ravel()).max(initial=0)) / top)
    return worst if worst <= MAX_REL else f"outputs differ by {worst:.1g} of the largest"


def measure(row, threads, rounds):
    folder = ROOT / "build/peers" / f"{row['name']}_{row['set']}"
    source = bench.folder(row)
    peers = [Peer(engine, source / "model.onnx", source / f"test_data_set_{row['set']}", threads, folder) for engine in ENGINES]
    times = {p.engine: [] for p in peers}
    for turn in range(rounds + 1):  # the first is to warm up
        for p in peers if turn % 2 else reversed(peers):
            if not p.error:
                time.sleep(PAUSE)
                us = p.ask()
                if turn and us:
                    times[p.engine].append(us)
    found = {}
    for p in peers:
        if p.error:
            found[p.engine] = {"error": p.error}
            continue
        off = difference(folder, p.engine)
        ratios = [a / b for a, b in zip(times[p.engine], times["linnet"])]
        found[p.engine] = {"error": off} if isinstance(off, str) else {
            "us": statistics.median(times[p.engine]), "ratio": statistics.median(ratios), "max_rel": off}
    for p in peers:
        p.close()
    return found


def engines():
    return {key: {"name": name, "version": importlib.metadata.version(package) if package else None}
            for key, (name, package) in ENGINES.items()}


def save(results):
    scratch = RESULTS.with_suffix(".new")
    scratch.write_text(json.dumps(results, indent=1))
    scratch.replace(RESULTS)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    options.add_argument("--rounds", type=int, default=11, metavar="N")
    options.add_argument("--reuse", action="store_true", help="keep what was measured before")
    options.add_argument("--render", action="store_true", help="measure nothing")
    given = options.parse_args()
    rows = {r["key"]: r for r in bench.rows() if not r["form"]}
    wanted = [rows[key] for key in MODELS if not given.names or rows[key]["name"] in given.names]
    unknown = set(given.names) - {r["name"] for r in wanted}
    if unknown:
        options.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(key.split('/')[0] for key in MODELS)}")
    bench.OUT.mkdir(parents=True, exist_ok=True)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": {}}
    for row in [] if given.render else wanted:
        for threads in given.threads:
            key = f"{row['key']}/{threads}"
            if given.reuse and key in results["rows"]:
                continue
            found = measure(row, threads, given.rounds)
            results["rows"][key] = found
            results |= {"machine": bench.machine(), "engines": engines(), "rounds": given.rounds}
            save(results)
            print(f"{key:32}", *(f"{engine} {d['ratio']:.2f}" if "ratio" in d else f"{engine} –" for engine, d in found.items()),
                  flush=True)
    report.write_peers(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
