#!/usr/bin/env python3
"""verdicts.py [--out FILE] [--folder DIR] [NAME ...]: runs every export of `make zoo-torch` in linnet and writes
tests/exports.tsv: of each its nodes, its opset, whether it passes without optimization and with all, and why not.
With NAMEs (of architectures or exports) the other rows stay as they are; without, what the zoo names and nobody has made
is told as such. Runs under .deps/venv."""

import argparse
import ast
import contextlib
import csv
import json
import pathlib
import re
import subprocess

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = ("export", "nodes", "opset", "none", "all", "cause")
TOLERANCE = {"f16": "1e-2", "dynamic8": "2e-2", "static8": "2e-2"}  # by variant; else as for float32
PLAIN = "1e-4"
UNMADE = "not made: run tests/zoo/from_torch.py"
# Of exports that fail without a fault of ours: why, as first_difference.py shows it.
CAUSES = {
    "hf_rt_detr.dynamo": "not ours: TopK of eight from scores that are equal in onnxruntime to the last bit, of which ours differ in it",
    "hf_rt_detr.script": "not ours: TopK of eight from scores that are equal in onnxruntime to the last bit, of which ours differ in it",
    "informer_sparse.dynamo": "not ours: it draws which keys it looks at, and no two engines draw alike",
    "vocoder.static8": "not ours: one element of 5120 is 27.5000000 steps before it is quantized, and residual blocks amplify its step",
    "wav2vec2.static8": "not ours: none of its nodes differs by itself; fused, onnxruntime's own result is 0.038 from its own unfused one",
}


def names():
    """The zoo's exports, read from its files: running them would take torch."""
    here = pathlib.Path(__file__).parent
    architectures = [key.value for source in ast.literal_eval(constant(here / "from_torch.py", "SOURCES"))
                     for key in constant(here / f"{source}.py", "ZOO").keys]
    some, kinds = (ast.literal_eval(constant(here / "torch_variants.py", name)) for name in ("SOME", "KINDS"))
    return [f"{name}.{kind}" for name in architectures for kind in ("script", "dynamo", *(kinds if name in some else ()))]


def constant(path, name):
    """What a file gives that name at its top."""
    for part in ast.parse(path.read_text()).body:
        if isinstance(part, ast.Assign) and getattr(part.targets[0], "id", None) == name:
            return part.value
    raise AssertionError(f"{path} has no {name}")


def tolerance(export):
    """The share of an output's largest magnitude that this export's results may be off by."""
    return TOLERANCE.get(export.split(".")[1], PLAIN)


def verify(path, opt, share):
    """"pass", or "fail" with what was said."""
    command = [ROOT / "build/linnet", "verify", path, "--opt", opt, "--max-rel", share, "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return "fail", "more than ten minutes"
    if done.returncode == 0:
        return "pass", ""
    said = done.stderr.strip().split("\n")[-1]
    with contextlib.suppress(ValueError, KeyError):
        outputs = json.loads(done.stdout)["outputs"]
        said = said or "; ".join(f"{o['output']}: {o['reason']}" for o in outputs if not o["pass"])
    return "fail", re.sub(r"\s+", " ", said or f"exit {done.returncode}").replace(str(ROOT) + "/", "")[:300]


def verdict(folder):
    """The row of one export."""
    row = dict.fromkeys(COLUMNS, "") | {"export": folder.name}
    refused = folder / "refused.txt"
    if refused.exists():
        said = re.sub(r"\s+", " ", refused.read_text()).strip()
        by = "onnxruntime" if "ONNXRuntimeError" in said else "torch" if folder.suffix in (".script", ".dynamo") else "its tool"
        said = re.sub(r"\[ONNXRuntimeError\] : \d+ : ", "", re.sub(r"\s*Please feel free.*|/onnxruntime_src\S* ", "", said))
        return row | {"cause": f"refused by {by}: {said[:160]}"}
    if not (folder / "model.onnx").exists():
        return row | {"cause": UNMADE}
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    row["nodes"] = str(len(model.graph.node))
    row["opset"] = str(next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), ""))
    for opt in ("none", "all"):
        row[opt], said = verify(folder / "model.onnx", opt, tolerance(folder.name))
        row["cause"] = row["cause"] or said
    if row["cause"]:
        row["cause"] = CAUSES.get(folder.name, row["cause"])
    return row


def read(path):
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {row["export"]: row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}


def write(path, rows):
    with path.open("w", newline="") as file:
        lines = [COLUMNS, *([row[c] for c in COLUMNS] for row in rows.values())]
        file.write("".join("\t".join(line) + "\n" for line in lines))


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/zoo-torch", metavar="DIR")
    options.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/exports.tsv", metavar="FILE")
    given = options.parse_args()
    rows = read(given.out) if given.names else {}
    for name in names():
        if given.names and not {name, name.split(".")[0]} & set(given.names):
            continue
        row = rows[name] = verdict(given.folder / name)
        if row["cause"]:
            print(f"  {name}: none {row['none'] or '-'}, all {row['all'] or '-'}: {row['cause']}", flush=True)
    write(given.out, dict(sorted(rows.items())))
    passed = [row for row in rows.values() if row["none"] == row["all"] == "pass"]
    print(f"{len(passed)} of {len(rows)} exports pass, of {len({row['export'].split('.')[0] for row in passed})} architectures")


if __name__ == "__main__":
    main()
