"""Real models: against their recorded outputs, and the same bits on any number of threads; networks with weights of
our own against onnxruntime. LINNET_LONG=1: every level, one thread to eight, optimized and not."""

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness import LONG, SHARED, levels, linnet, reference
from linnet_ctypes import Model, Session

import random_weights

FOLDER = SHARED / "models"
MODELS = sorted(p.name for p in FOLDER.iterdir() if p.is_dir()) if FOLDER.is_dir() else ["none"]
LIGHT = [name for name in MODELS if name.startswith("light_")] or ["none"]
THREADS = range(1, 9) if LONG else (1, 2)
LEVELS = levels() if LONG else ["scalar", None]
WAYS = [(opt, threads, level) for opt in ("none", "all") for threads in THREADS for level in LEVELS]


def check(path, opt, threads, level):
    options = ["--opt", opt, "--threads", threads, "--max-rel", "1e-4", "--json"]
    if level:
        options += ["--level", level]
    done = linnet("verify", path, *options, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = json.loads(done.stdout)["outputs"]
    assert outputs
    for output in outputs:
        assert output["cosine"] >= 0.999999, output
        assert output["same_argmax"], output


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("opt, threads, level", WAYS)
def test_model(shared, model, opt, threads, level):
    check(FOLDER / model / "model.onnx", opt, threads, level)


def recorded_inputs(path):
    """--input NAME=FILE for the first case beside a model."""
    graph = onnx.load(path, load_external_data=False).graph
    constants = {t.name for t in graph.initializer}
    names = [i.name for i in graph.input if i.name not in constants]
    return [word for k, name in enumerate(names)
            for word in ("--input", f"{name}={path.parent}/test_data_set_0/input_{k}.pb")]


@pytest.mark.parametrize("model", MODELS)
def test_arena_is_little_more_than_what_lives_at_once(shared, tmp_path, model):
    path, lnt = FOLDER / model / "model.onnx", tmp_path / "m.lnt"
    assert linnet("convert", path, "-o", lnt).returncode == 0
    info = Session(Model(lnt)).set(**recorded_feeds(path)).bind().info()
    assert info.alive_bytes <= info.arena_bytes <= 1.06 * info.alive_bytes


def recorded_feeds(path):
    """Inputs of the first case beside a model, by name."""
    files = [word.split("=", 1) for word in recorded_inputs(path)[1::2]]
    return {name: numpy_helper.to_array(onnx.load_tensor(file)) for name, file in files}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("opt", ["none", "all"] if LONG else ["all"])
def test_bits_depend_on_shapes_and_level_alone(shared, tmp_path, model, opt):
    """Not on the number of threads, nor on whether steps run one after another or side by side."""
    path, lnt = FOLDER / model / "model.onnx", tmp_path / "m.lnt"
    assert linnet("convert", path, "-o", lnt, "--opt", opt).returncode == 0
    feeds, outputs, packed = recorded_feeds(path), [o.name for o in onnx.load(path).graph.output], Model(lnt)
    for level in levels() if LONG else [None]:
        results = [[Session(packed, threads=threads, level=level, parallel=parallel).run(**feeds).get(name).tobytes()
                    for name in outputs] for threads in (1, 2, 3, 5, 8) for parallel in (False, True)]
        assert results[0] and all(r == results[0] for r in results), level


@pytest.mark.parametrize("model", LIGHT)
@pytest.mark.parametrize("opt", ["none", "all"])
def test_topology_with_random_weights(shared, tmp_path, model, opt):
    made = random_weights.randomize(onnx.load(FOLDER / model / "model.onnx"), 7)
    constants = {t.name for t in made.graph.initializer}
    (name,) = [i.name for i in made.graph.input if i.name not in constants]
    feeds = {name: np.random.default_rng(8).standard_normal((1, 3, 224, 224)).astype(np.float32)}
    want = reference(made, feeds, optimize=True)[0].astype(np.float64)
    onnx.save(made, tmp_path / "m.onnx")
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", "--opt", opt, timeout=600)
    assert done.returncode == 0, done.stderr
    packed = Model(tmp_path / "m.lnt")
    for level in LEVELS if LONG else [None]:
        runs = (Session(packed, level=level, threads=threads).set(**feeds).run() for threads in THREADS)
        first, *others = (run.get(made.graph.output[0].name) for run in runs)
        assert np.abs(first - want).max() <= 1e-4 * np.abs(want).max(), level
        assert (first * want).sum() >= 0.999999 * np.linalg.norm(first) * np.linalg.norm(want), level
        assert first.argmax() == want.argmax(), level
        assert all(np.array_equal(first, other) for other in others), level
