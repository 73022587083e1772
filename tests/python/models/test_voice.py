"""The VITS-shaped voice: against onnxruntime, and its memory where the length of the sound depends on data."""

import json

import numpy as np
import pytest

from harness import linnet, reference, write_case
import voice
from linnet_ctypes import E_LIMIT, E_MEMORY, LinnetError, Model, Session

STRIDE = int(np.prod([s for _, s in voice.Size.upsampling]))


@pytest.fixture(scope="module")
def onnx_model():
    return voice.build()


@pytest.fixture(scope="module")
def lnt(onnx_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("voice")
    case = write_case(folder, onnx_model, voice.inputs(3), reference(onnx_model, voice.inputs(3)))
    done = linnet("convert", case / "model.onnx", "-o", folder / "voice.lnt")
    assert done.returncode == 0, done.stderr
    return folder / "voice.lnt"


@pytest.mark.parametrize("phonemes", [1, 2, 5, 12, 40])
@pytest.mark.parametrize("opt", ["none", "all"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("level", ["scalar", None])
def test_agrees_with_onnxruntime(onnx_model, tmp_path, phonemes, opt, threads, level):
    feeds = voice.inputs(phonemes, length=1.3)
    case = write_case(tmp_path, onnx_model, feeds, reference(onnx_model, feeds))
    done = linnet("verify", case / "model.onnx", "--opt", opt, "--threads", threads, "--max-rel", "1e-4", "--json",
                  *(["--level", level] if level else []))
    assert done.returncode == 0, done.stdout + done.stderr
    for output in json.loads(done.stdout)["outputs"]:
        assert output["cosine"] >= 0.999999 and output["same_argmax"], output


def test_noise_follows_the_seed(lnt):
    model = Model(lnt)
    feeds = voice.inputs(9, noise=0.7)
    sound = [Session(model, seed=seed, threads=threads).run(**feeds).get("audio")
             for seed, threads in ((1, 1), (1, 2), (2, 1))]
    assert sound[0].shape[2] > 0 and np.isfinite(sound[0]).all()
    np.testing.assert_array_equal(sound[0], sound[1])
    assert not np.array_equal(sound[0], sound[2])
    quiet = Session(model, seed=1).run(**voice.inputs(9)).get("audio")
    assert not np.array_equal(sound[0], quiet)


def test_lengths_may_change(lnt, onnx_model):
    session = Session(Model(lnt))
    for phonemes in (3, 30, 1, 12, 30):
        feeds = voice.inputs(phonemes, seed=phonemes)
        audio, frames = reference(onnx_model, feeds)
        session.run(**feeds)
        np.testing.assert_array_equal(session.get("frames"), frames)
        assert audio.shape[2] == STRIDE * frames.sum()
        np.testing.assert_allclose(session.get("audio"), audio, atol=1e-4 * np.abs(audio).max())


def symbols(lnt):
    return json.loads(linnet("info", lnt, "--json").stdout)["symbols"]


def bounds_for(lnt, phonemes, frames):
    """A bound for every extent that depends on data."""
    return {s["name"]: frames if s["kind"] else phonemes for s in symbols(lnt)}


def test_info_names_what_is_unbounded(lnt):
    value = json.loads(linnet("info", lnt, "--dim", "phonemes=12", "--json").stdout)
    assert value["unbounded"] in [s["name"] for s in value["symbols"] if s["kind"]]
    assert f"unbounded: {value['unbounded']}" in linnet("info", lnt, "--dim", "phonemes=12").stdout


def test_with_bounds_the_arena_is_exact(lnt, onnx_model):
    model, feeds = Model(lnt), voice.inputs(12)
    audio, frames = reference(onnx_model, feeds)
    bounds = bounds_for(lnt, 12, int(frames.sum()))
    need = Session(model, bounds=bounds).set(**feeds).bind().info()
    assert need.unbounded is None
    session = Session(model, bounds=bounds, arena=need.arena_bytes).run(**feeds)
    np.testing.assert_allclose(session.get("audio"), audio, atol=1e-4 * np.abs(audio).max())
    assert session.guard_is_whole()
    assert session.info().arena_bytes == need.arena_bytes
    with pytest.raises(LinnetError) as refused:
        Session(model, bounds=bounds, arena=need.arena_bytes - 1).set(**feeds).bind()
    assert refused.value.code in (E_MEMORY, E_LIMIT) and str(need.arena_bytes) in str(refused.value)


def test_over_the_bound_is_refused(lnt, onnx_model):
    feeds = voice.inputs(12)
    frames = int(reference(onnx_model, feeds)[1].sum())
    with pytest.raises(LinnetError) as refused:
        Session(Model(lnt), bounds=bounds_for(lnt, 12, frames - 1)).run(**feeds)
    assert refused.value.code == E_LIMIT


def test_without_bounds_a_callers_arena_may_be_too_small(lnt, onnx_model):
    model, feeds = Model(lnt), voice.inputs(12)
    audio = reference(onnx_model, feeds)[0]
    free = Session(model).run(**feeds)
    enough = free.info().arena_bytes
    session = Session(model, arena=enough).run(**feeds)
    np.testing.assert_allclose(session.get("audio"), audio, atol=1e-4 * np.abs(audio).max())
    assert session.guard_is_whole()
    with pytest.raises(LinnetError) as refused:
        Session(model, arena=enough - 1).run(**feeds)
    assert refused.value.code in (E_MEMORY, E_LIMIT)
