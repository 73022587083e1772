"""The decoder with a key/value cache: against onnxruntime at many lengths, streamed with states, and its memory."""

import json

import numpy as np
import pytest

from harness import linnet, reference, write_case
import decoder
from linnet_ctypes import E_LIMIT, E_MEMORY, CountingHost, LinnetError, Model, Session


@pytest.fixture(scope="module")
def onnx_model():
    return decoder.build()


@pytest.fixture(scope="module")
def folder(onnx_model, tmp_path_factory):
    """decoder.lnt with its cache as inputs and outputs, streaming.lnt with it declared as states."""
    folder = tmp_path_factory.mktemp("decoder")
    decoder.save(folder / "model.onnx")
    states = [w for out, into in decoder.STATES for w in ("--state", f"{out}={into}")]
    for name, options in (("decoder", []), ("streaming", states)):
        done = linnet("convert", folder / "model.onnx", "-o", folder / f"{name}.lnt", *options)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("new, past", [(1, 0), (5, 0), (1, 1), (1, 16), (3, 63), (1, 127), (17, 100), (1, 200)])
@pytest.mark.parametrize("opt", ["none", "all"])
@pytest.mark.parametrize("threads, level", [(1, None), (2, None), (1, "scalar")])
def test_agrees_with_onnxruntime(onnx_model, tmp_path, new, past, opt, threads, level):
    feeds = decoder.inputs(new, past)
    case = write_case(tmp_path, onnx_model, feeds, reference(onnx_model, feeds))
    done = linnet("verify", case / "model.onnx", "--opt", opt, "--threads", threads, "--max-rel", "1e-4", "--json",
                  *(["--level", level] if level else []))
    assert done.returncode == 0, done.stdout + done.stderr
    for output in json.loads(done.stdout)["outputs"]:
        assert output["cosine"] >= 0.999999 and output["same_argmax"], output


def close(got, want):
    np.testing.assert_allclose(got, want, atol=1e-4 * np.abs(want).max())


def stream(onnx_model, session, steps):
    """A prompt of 5, then one at a time: each step's logits against onnxruntime's with the cache passed by hand."""
    feeds = decoder.inputs(5, 0)
    for step in range(steps):
        *cache, logits = reference(onnx_model, feeds)
        session.run(ids=feeds["ids"])
        close(session.get("logits"), logits)
        names = [o.name for o in onnx_model.graph.output]
        given = dict(zip(names, cache))
        feeds = {into: given[out] for out, into in decoder.STATES}
        feeds["ids"] = np.array([[(7 * step + 3) % decoder.VOCABULARY]])
    return given


def test_states_carry_the_cache(onnx_model, folder):
    session = Session(Model(folder / "streaming.lnt"))
    cache = stream(onnx_model, session, 20)
    for name, want in cache.items():
        close(session.get(name), want)


def test_states_begin_again_after_reset(onnx_model, folder):
    session = Session(Model(folder / "streaming.lnt"))
    stream(onnx_model, session, 3)
    session.reset_states()
    stream(onnx_model, session, 3)


def test_rebinding_for_longer_pasts_allocates_nothing_after_the_largest(folder):
    host = CountingHost()
    session = Session(Model(folder / "decoder.lnt", host))
    session.run(**decoder.inputs(1, 200))
    before = host.calls
    for past in [*range(1, 201), 200, 1, 100]:
        session.run(**decoder.inputs(1, past))
    assert host.calls == before


def test_run_allocates_nothing(folder):
    host = CountingHost()
    session = Session(Model(folder / "decoder.lnt", host)).set(**decoder.inputs(2, 30)).bind()
    before = host.calls
    for _ in range(5):
        session.run()
    assert host.calls == before


def test_bounds_cover_every_shorter_past(onnx_model, folder):
    model, bounds = Model(folder / "decoder.lnt"), {"past": 60, "new": 1}
    need = Session(model, bounds=bounds).set(**decoder.inputs(1, 60)).bind().info().arena_bytes
    session = Session(model, bounds=bounds, arena=need)
    for past in (0, 1, 30, 60, 7):
        feeds = decoder.inputs(1, past)
        session.run(**feeds)
        close(session.get("logits"), reference(onnx_model, feeds)[-1])
        assert session.guard_is_whole()
    with pytest.raises(LinnetError) as refused:
        session.run(**decoder.inputs(1, 61))
    assert refused.value.code == E_LIMIT


def test_one_byte_less_is_refused(folder):
    model, feeds = Model(folder / "decoder.lnt"), decoder.inputs(1, 33)
    need = Session(model).set(**feeds).bind().info().arena_bytes
    printed = json.loads(linnet("info", folder / "decoder.lnt", "--dim", "past=33", "--dim", "new=1", "--json").stdout)
    assert printed["arena_bytes"] == need
    session = Session(model, arena=need).run(**feeds)
    assert session.guard_is_whole()
    with pytest.raises(LinnetError) as refused:
        Session(model, arena=need - 1).run(**feeds)
    assert refused.value.code in (E_MEMORY, E_LIMIT) and str(need) in str(refused.value)
