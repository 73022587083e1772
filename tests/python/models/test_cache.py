"""Caches of keys and values that are states: they grow in place, whoever looks at them and whenever."""

import json

import numpy as np
import onnx
import onnx.parser
import pytest

from harness import linnet
from linnet_ctypes import CountingHost, LinnetError, Model, Session

HEADS, KV_HEADS, WIDTH = 4, 2, 8
CACHES = ("past_k", "present_k"), ("past_v", "present_v")
HEAD = f"""<ir_version: 10, opset_import: ["" : 23]>
m (TYPE[b,{HEADS},n,{WIDTH}] q, TYPE[b,{KV_HEADS},n,{WIDTH}] k, TYPE[b,{KV_HEADS},n,{WIDTH}] v,
   TYPE[b,{KV_HEADS},past,{WIDTH}] past_k, TYPE[b,{KV_HEADS},past,{WIDTH}] past_v)
=> (TYPE[b,{HEADS},n,{WIDTH}] y, TYPE[b,{KV_HEADS},all,{WIDTH}] present_k, TYPE[b,{KV_HEADS},all,{WIDTH}] present_v)
"""
FORMS = {
    "operator": "{ y, present_k, present_v = Attention (q, k, v, , past_k, past_v) }",
    "concat": """{
        present_k = Concat <axis = 2> (past_k, k)
        present_v = Concat <axis = -2> (past_v, v)
        y = Attention (q, present_k, present_v)
    }""",
    # Attention is not the only reader: nothing may be appended behind the other one's back.
    "read": """{
        present_k = Concat <axis = 2> (past_k, k)
        present_v = Concat <axis = 2> (past_v, v)
        a = Attention (q, present_k, present_v)
        last = Shape <start = 2, end = 3> (present_k)
        one = Constant <value_ints = [1]> ()
        two = Constant <value_ints = [2]> ()
        before = Sub (last, one)
        newest = Slice (present_k, before, last, two)
        zero = Constant <value_float = 0.0> ()
        z = CastLike (zero, q)
        nothing = Mul (newest, z)
        axes = Constant <value_ints = [1]> ()
        none = ReduceSum <keepdims = 1> (nothing, axes)
        y = Add (a, none)
    }""",
}


@pytest.fixture(scope="module", params=[*FORMS, "float16"])
def lnt(request, tmp_path_factory):
    name, folder = request.param, tmp_path_factory.mktemp("cache")
    text = HEAD.replace("TYPE", "float16" if name == "float16" else "float") + FORMS.get(name, FORMS["operator"])
    onnx.save(onnx.parser.parse_model(text), folder / "m.onnx")
    states = [w for past, present in CACHES for w in ("--state", f"{present}={past}")]
    done = linnet("convert", folder / "m.onnx", "-o", folder / f"{name}.lnt", "--json", *states)
    assert done.returncode == 0, done.stderr
    joined = [line for line in json.loads(done.stdout)["passes"] if "extends its cache" in line["what"]]
    assert len(joined) == (name == "concat")
    return folder / f"{name}.lnt"


def attention(q, k, v):
    """softmax(q k^T / sqrt(d)) v with groups of query heads for each head of k and v."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1).astype(np.float64) for x in (k, v))
    logits = q.astype(np.float64) @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    p = np.exp(logits - logits.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


class Story:
    """What a session is given step by step, and what it must know by then."""

    def __init__(self, lnt, batch=2, seed=7):
        self.type = np.float16 if lnt.stem == "float16" else np.float32
        self.rng, self.batch = np.random.default_rng(seed), batch
        self.k = self.v = np.zeros((batch, KV_HEADS, 0, WIDTH), self.type)

    def draw(self, heads, n):
        return self.rng.standard_normal((self.batch, heads, n, WIDTH)).astype(self.type)

    def step(self, session, n):
        q, k, v = self.draw(HEADS, n), self.draw(KV_HEADS, n), self.draw(KV_HEADS, n)
        self.k, self.v = np.concatenate([self.k, k], axis=2), np.concatenate([self.v, v], axis=2)
        session.run(q=q, k=k, v=v)
        tolerance = 4e-3 if self.type == np.float16 else 1e-5
        np.testing.assert_allclose(session.get("y"), attention(q, self.k, self.v), atol=tolerance)

    def check_caches(self, session):
        assert session.get("present_k").tobytes() == self.k.tobytes()
        assert session.get("present_v").tobytes() == self.v.tobytes()


STEPS = 3, 1, 1, 2, 1, 1, 1, 5, *[1] * 30, 17, 1, 1


@pytest.mark.parametrize("threads, batch", [(1, 1), (1, 2), (3, 2)])
def test_a_cache_grows(lnt, threads, batch):
    story, session = Story(lnt, batch), Session(Model(lnt), threads=threads)
    for n in STEPS:
        story.step(session, n)
    story.check_caches(session)
    story.check_caches(session)


def test_a_cache_is_read_now_and_then(lnt):
    story, session = Story(lnt), Session(Model(lnt))
    for i, n in enumerate(STEPS):
        story.step(session, n)
        if i % 3 == 0:
            story.check_caches(session)


def test_a_cache_begins_again(lnt):
    session = Session(Model(lnt))
    for steps in STEPS, STEPS[5:], STEPS[:20]:
        story = Story(lnt, seed=len(steps))
        for n in steps:
            story.step(session, n)
        story.check_caches(session)
        session.reset_states()


def test_a_cache_goes_on_in_another_session(lnt):
    story, model = Story(lnt), Model(lnt)
    session = Session(model)
    for i, n in enumerate(STEPS):
        story.step(session, n)
        if i % 7 == 0:
            cache = {past: session.get(present) for past, present in CACHES}
            session = Session(model).set(**cache)


def test_one_session_takes_turns(lnt):
    """Two streams on one session, each saved and loaded around its steps."""
    session, stories = Session(Model(lnt)), [Story(lnt, seed=s) for s in (1, 2)]
    for n in STEPS:
        for story in stories:
            session.set(past_k=story.k, past_v=story.v)
            story.step(session, n)


@pytest.mark.parametrize("name", ["past_k", "present_v"])
def test_a_cache_is_fetched_by_name(lnt, name):
    story, session = Story(lnt), Session(Model(lnt))
    for i, n in enumerate(STEPS):
        if i == 9:
            session.fetch(name)
        past_k = story.k
        story.step(session, n)
        if i >= 9:
            want = past_k if name == "past_k" else story.v
            assert session.value(name).tobytes() == want.tobytes()


def test_a_bounded_cache_is_given_all_its_room_at_once(lnt):
    host, story = CountingHost(), Story(lnt)
    session = Session(Model(lnt, host), bounds={"past": sum(STEPS), "n": max(STEPS), "b": 2})
    for n in STEPS[:2]:
        story.step(session, n)
    before = host.calls
    for n in STEPS[2:7]:
        story.step(session, n)
    if lnt.stem in ("operator", "concat"):
        assert host.calls == before
    story.check_caches(session)


def test_a_cache_is_cut_short(lnt):
    """A run that fails before it appends leaves the cache as it was."""
    story, session = Story(lnt), Session(Model(lnt))
    for n in STEPS[:12]:
        story.step(session, n)
    k = story.draw(KV_HEADS, 1)
    with pytest.raises(LinnetError):
        session.run(q=story.draw(HEADS, 1), k=k, v=np.concatenate([k, k], axis=2))
    for n in STEPS[12:]:
        story.step(session, n)
    story.check_caches(session)


def test_a_run_fails_behind_its_append(tmp_path):
    """What it appended is not there: neither for the next run nor for a reader."""
    text = HEAD.replace("TYPE", "float").replace(" past_v)", " past_v, int64[1] head)")
    picks = "{ a, present_k, present_v = Attention (q, k, v, , past_k, past_v) y = Gather <axis = 1> (a, head) }"
    onnx.save(onnx.parser.parse_model(text.replace(f"[b,{HEADS},n,{WIDTH}] y", f"[b,1,n,{WIDTH}] y") + picks),
              tmp_path / "m.onnx")
    states = [w for past, present in CACHES for w in ("--state", f"{present}={past}")]
    done = linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt", *states)
    assert done.returncode == 0, done.stderr
    model, rng = Model(tmp_path / "m.lnt"), np.random.default_rng(1)
    session, spared = Session(model), Session(model)
    for i in range(40):
        fed = {name: rng.standard_normal((1, heads, 1, WIDTH)).astype(np.float32)
               for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS))}
        if i % 3 == 2:
            with pytest.raises(LinnetError, match="Gather"):
                session.run(**{name: -x for name, x in fed.items()}, head=np.array([HEADS]))
        for s in session, spared:
            s.run(**fed, head=np.array([i % HEADS]))
        assert session.get("y").tobytes() == spared.get("y").tobytes()
        if i % 9 == 2:
            assert session.get("present_k").tobytes() == spared.get("present_k").tobytes()
    assert session.get("present_v").tobytes() == spared.get("present_v").tobytes()
