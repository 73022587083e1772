"""A small language-model decoder with a key/value cache and seeded weights.

Rotary positions, causal attention over past and present, RMS norm, a gated feed-forward, embeddings tied to the output.
past_K (of 0 or more positions) goes in, present_K comes out: with `--state present_0=past_0 …` the runtime carries it.
"""

from dataclasses import dataclass

import numpy as np
import onnx
from builder import Builder
from onnx import TensorProto


@dataclass
class Size:
    vocabulary: int = 96
    hidden: int = 64
    heads: int = 4
    layers: int = 2
    wide: int = 128
    longest: int = 256

    @property
    def dk(self):
        return self.hidden // self.heads

    @property
    def states(self):
        return [(f"present_{kind}_{i}", f"past_{kind}_{i}") for i in range(self.layers) for kind in ("key", "value")]


STORIES = Size(vocabulary=32000, hidden=288, heads=6, layers=6, wide=768)  # the 15 M parameters of stories15M
VOCABULARY, STATES = Size.vocabulary, Size().states


def rms_norm(b, x, hidden):
    mean = b.op("ReduceMean", b.op("Mul", x, x), axes=[-1])
    scale = b.constant(1 + b.rng.standard_normal(hidden) / 10, np.float32)
    return b.op("Mul", b.op("Div", x, b.op("Sqrt", b.op("Add", mean, 1e-6))), scale)


def rotate(b, x, dk, cos, sin):
    """Rotary embedding of [1, h, S, dk]: halves turned against each other."""
    a, c = b.op("Split", x, [dk // 2, dk // 2], outputs=2, axis=-1)
    turned = b.op("Concat", b.op("Neg", c), a, axis=-1)
    return b.op("Add", b.op("Mul", x, cos), b.op("Mul", turned, sin))


def tables(size):
    angle = np.arange(size.longest)[:, None] * 100.0 ** (-np.arange(size.dk // 2) / (size.dk // 2))
    angle = np.concatenate([angle, angle], axis=1)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def heads(b, x, length, size):
    """[1, S, H] to [1, h, S, dk]."""
    return b.op("Transpose", b.op("Reshape", x, b.concat_dims(1, length, size.heads, size.dk)), perm=[0, 2, 1, 3])


def linear(b, x, n_in, n_out):
    return b.op("MatMul", x, b.constant(b.rng.standard_normal((n_in, n_out)) / np.sqrt(n_in), np.float32))


def attention(b, x, past, mask, length, turns, size):
    n = size.hidden
    q, k, v = (heads(b, linear(b, x, n, n), length, size) for _ in range(3))
    q, k = rotate(b, q, size.dk, *turns), rotate(b, k, size.dk, *turns)
    keys, values = b.op("Concat", past[0], k, axis=2), b.op("Concat", past[1], v, axis=2)
    scores = b.op("Div", b.op("MatMul", q, b.op("Transpose", keys, perm=[0, 1, 3, 2])), float(np.sqrt(size.dk)))
    weights = b.op("Softmax", b.op("Where", mask, scores, np.array(-1e9, np.float32)), axis=-1)
    out = b.op("Transpose", b.op("MatMul", weights, values), perm=[0, 2, 1, 3])
    return linear(b, b.op("Reshape", out, b.concat_dims(1, length, n)), n, n), keys, values


def build(size=Size(), seed=5):
    b, n = Builder(seed), size.hidden
    cache_shape = lambda length: [1, size.heads, length, size.dk]  # noqa: E731
    ids = b.input("ids", TensorProto.INT64, [1, "new"])
    pasts = [(b.input(f"past_key_{i}", TensorProto.FLOAT, cache_shape("past")),
              b.input(f"past_value_{i}", TensorProto.FLOAT, cache_shape("past"))) for i in range(size.layers)]
    length, before = b.dim(ids, 1), b.dim(pasts[0][0], 2)
    total = b.op("Add", length, before)
    scalar = [b.op("Squeeze", x, [0]) for x in (before, total)]
    one = b.constant(1, np.int64)
    positions = b.op("Range", scalar[0], scalar[1], one)
    every = b.op("Range", b.constant(0, np.int64), scalar[1], one)
    mask = b.op("LessOrEqual", every, b.op("Unsqueeze", positions, [1]))  # [S, P + S]
    turns = [b.op("Gather", table, positions) for table in tables(size)]
    table = b.weight(size.vocabulary, n, scale=0.3)
    x = b.op("Gather", table, ids)
    for i, past in enumerate(pasts):
        mixed, key, value = attention(b, rms_norm(b, x, n), past, mask, length, turns, size)
        x = b.op("Add", x, mixed)
        y = rms_norm(b, x, n)
        gate = linear(b, y, n, size.wide)
        inner = b.op("Mul", b.op("Mul", gate, b.op("Sigmoid", gate)), linear(b, y, n, size.wide))
        x = b.op("Add", x, linear(b, inner, size.wide, n))
        b.output(key, f"present_key_{i}", cache_shape("total"))
        b.output(value, f"present_value_{i}", cache_shape("total"))
    b.output(b.op("MatMul", rms_norm(b, x, n), b.op("Transpose", table, perm=[1, 0])), "logits", [1, "new", size.vocabulary])
    return b.model("decoder")


def inputs(new, past, seed=0, size=Size()):
    rng = np.random.default_rng(seed)
    feeds = {"ids": rng.integers(0, size.vocabulary, (1, new))}
    for _, name in size.states:
        feeds[name] = rng.standard_normal((1, size.heads, past, size.dk)).astype(np.float32)
    return feeds


def save(path):
    onnx.save(build(), path)
