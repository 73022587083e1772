"""The zoo's architectures as torch's own exporters write them (`make zoo-torch`), against onnxruntime. Exports are made
where .deps/peers has torch, and skipped where it has not; LINNET_ZOO=full takes all of them, else one."""

import functools
import json
import os
import re
import subprocess

import pytest

from harness import ROOT, linnet

PYTHON = ROOT / ".deps/peers/bin/python"
SCRIPT = ROOT / "tests/zoo/from_torch.py"
OUT = ROOT / "build/zoo-torch"
NAMES = re.findall(r'^    "(\w+)": ', SCRIPT.read_text().partition("\nZOO = {")[2].partition("\n}")[0], re.M)
FEW = ("voice",)
EXPORTS = [f"{name}.{exporter}" for name in (NAMES if os.environ.get("LINNET_ZOO") == "full" else FEW)
           for exporter in ("script", "dynamo")]

pytestmark = pytest.mark.skipif(not (ROOT / ".deps/peers/ready").exists(), reason="no torch: make zoo-torch installs it")


@pytest.fixture(scope="module")
def exported():
    """Of an export's name: its folder; made, if it is not there."""
    @functools.cache
    def folder(name):
        done = subprocess.run([PYTHON, SCRIPT, name.split(".")[0]], capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stderr[-2000:]
        return OUT / name
    return folder


@pytest.mark.parametrize("opt", ["none", "all"])
@pytest.mark.parametrize("name", EXPORTS)
def test_agrees_with_onnxruntime(exported, name, opt):
    folder = exported(name)
    if (folder / "refused.txt").exists():
        pytest.skip((folder / "refused.txt").read_text().strip())
    done = linnet("verify", folder / "model.onnx", "--opt", opt, "--max-rel", "1e-4", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    for output in json.loads(done.stdout)["outputs"]:
        assert output["cosine"] >= 0.999999, output


def test_refusals_are_torchs_and_known(exported):
    """An exporter that learns to write a model makes it be tested."""
    refused = {name for name in EXPORTS if (exported(name) / "refused.txt").exists()}
    assert refused <= {"voice.dynamo"}
