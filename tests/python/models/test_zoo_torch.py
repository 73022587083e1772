"""The architectures of torch, torchvision, timm and transformers as torch's own exporters write them, and as other tools
change that (`make zoo-torch`), against onnxruntime. Exports are made where .deps/peers has torch, and skipped where it
has not; LINNET_ZOO=full takes all of them, else a few. tests/exports.tsv says of all how they fared."""

import csv
import functools
import json
import os
import re
import subprocess
import sys

import pytest

from harness import ROOT, linnet

PYTHON = ROOT / ".deps/peers/bin/python"
ZOO = ROOT / "tests/zoo"
OUT = ROOT / "build/zoo-torch"
sys.path.append(str(ZOO))
import verdicts  # noqa: E402

ALL = verdicts.names()
FEW = ["voice.script", "voice.dynamo", "bert.script", "ssd.script", "timm_beit.dynamo", "gpt2.ort", "unet.static8"]
EXPORTS = ALL if os.environ.get("LINNET_ZOO") == "full" else FEW
ROWS = verdicts.read(ROOT / "tests/exports.tsv")

made_here = pytest.mark.skipif(not (ROOT / ".deps/peers/ready").exists(), reason="no torch: make zoo-torch installs it")


@pytest.fixture(scope="module")
def exported():
    """Of an export's name: its folder; made, if it is not there."""
    @functools.cache
    def folder(name):
        plain = re.sub(r"\.\w+$", ".script", name)
        done = subprocess.run([PYTHON, ZOO / "from_torch.py", plain, name], capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stderr[-2000:]
        return OUT / name
    return folder


@made_here
@pytest.mark.parametrize("opt", ["none", "all"])
@pytest.mark.parametrize("name", EXPORTS)
def test_agrees_with_onnxruntime(exported, name, opt):
    folder, row = exported(name), ROWS[name]
    if (folder / "refused.txt").exists():
        assert not row["nodes"], (folder / "refused.txt").read_text()
        pytest.skip(row["cause"])
    assert row[opt], f"{name} is no longer refused: run tests/zoo/verdicts.py {name}"
    if row[opt] == "fail":
        pytest.skip(row["cause"])
    done = linnet("verify", folder / "model.onnx", "--opt", opt, "--max-rel", verdicts.tolerance(name), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    if verdicts.tolerance(name) == verdicts.PLAIN:
        for output in json.loads(done.stdout)["outputs"]:
            assert output["cosine"] >= 0.999999, output


def test_every_export_has_a_verdict():
    assert sorted(ROWS) == sorted(ALL)
    assert len(set(ALL)) == len(ALL)


def test_failures_have_causes():
    for row in ROWS.values():
        refused = row["cause"].startswith(("refused by torch: ", "refused by onnxruntime: ", "refused by its tool: "))
        assert refused == (row["nodes"] == ""), row
        assert {row["none"], row["all"]} <= ({""} if refused else {"pass", "fail"}), row
        assert bool(row["cause"]) == (not row["none"] == row["all"] == "pass"), row


def test_enough_exports_pass():
    """Of networks in float32 within 1e-4 of what onnxruntime gives without its optimizations."""
    passed = [name for name, row in ROWS.items()
              if row["none"] == row["all"] == "pass" and verdicts.tolerance(name) == verdicts.PLAIN]
    assert len(passed) >= 200
    assert len({name.split(".")[0] for name in passed}) >= 150


def test_table_reads_as_csv():
    with (ROOT / "tests/exports.tsv").open(newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert lines[0] == list(verdicts.COLUMNS) and {len(line) for line in lines} == {len(verdicts.COLUMNS)}
