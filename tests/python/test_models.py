"""Real models against their recorded outputs: unoptimised and optimised, one thread and two, scalar and best level."""

import json

import pytest

from harness import SHARED, linnet

FOLDER = SHARED / "models"
MODELS = sorted(p.name for p in FOLDER.iterdir() if p.is_dir()) if FOLDER.is_dir() else ["none"]
WAYS = [(opt, threads, level) for opt in ("none", "all") for threads in (1, 2) for level in ("scalar", None)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("opt, threads, level", WAYS)
def test_model(shared, model, opt, threads, level):
    options = ["--opt", opt, "--threads", threads, "--max-rel", "1e-4", "--json"]
    if level:
        options += ["--level", level]
    done = linnet("verify", FOLDER / model / "model.onnx", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = json.loads(done.stdout)["outputs"]
    assert outputs
    for output in outputs:
        assert output["cosine"] >= 0.999999, output
        assert output["same_argmax"], output
