"""A small language-model decoder with a key/value cache and seeded weights.

Rotary positions, causal attention over past and present, RMS norm, a gated feed-forward, embeddings tied to the output.
past_K (of 0 or more positions) goes in, present_K comes out: with `--state present_0=past_0 …` the runtime carries it.
"""

import numpy as np
import onnx
from builder import Builder
from onnx import TensorProto

VOCABULARY, HIDDEN, HEADS, LAYERS, LONGEST = 96, 64, 4, 2, 256
DK = HIDDEN // HEADS
STATES = [(f"present_{kind}_{i}", f"past_{kind}_{i}") for i in range(LAYERS) for kind in ("key", "value")]


def rms_norm(b, x):
    mean = b.op("ReduceMean", b.op("Mul", x, x), axes=[-1])
    scale = b.constant(1 + b.rng.standard_normal(HIDDEN) / 10, np.float32)
    return b.op("Mul", b.op("Div", x, b.op("Sqrt", b.op("Add", mean, 1e-6))), scale)


def rotate(b, x, cos, sin):
    """Rotary embedding of [1, h, S, dk]: halves turned against each other."""
    a, c = b.op("Split", x, [DK // 2, DK // 2], outputs=2, axis=-1)
    turned = b.op("Concat", b.op("Neg", c), a, axis=-1)
    return b.op("Add", b.op("Mul", x, cos), b.op("Mul", turned, sin))


def tables():
    angle = np.arange(LONGEST)[:, None] * 100.0 ** (-np.arange(DK // 2) / (DK // 2))
    angle = np.concatenate([angle, angle], axis=1)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def heads(b, x, length):
    """[1, S, H] to [1, h, S, dk]."""
    return b.op("Transpose", b.op("Reshape", x, b.concat_dims(1, length, HEADS, DK)), perm=[0, 2, 1, 3])


def linear(b, x, n_in, n_out):
    return b.op("MatMul", x, b.constant(b.rng.standard_normal((n_in, n_out)) / np.sqrt(n_in), np.float32))


def attention(b, x, past, positions, mask, length, turns):
    cos, sin = turns
    q, k, v = (heads(b, linear(b, x, HIDDEN, HIDDEN), length) for _ in range(3))
    q, k = rotate(b, q, cos, sin), rotate(b, k, cos, sin)
    keys, values = b.op("Concat", past[0], k, axis=2), b.op("Concat", past[1], v, axis=2)
    scores = b.op("Div", b.op("MatMul", q, b.op("Transpose", keys, perm=[0, 1, 3, 2])), float(np.sqrt(DK)))
    weights = b.op("Softmax", b.op("Where", mask, scores, np.array(-1e9, np.float32)), axis=-1)
    out = b.op("Transpose", b.op("MatMul", weights, values), perm=[0, 2, 1, 3])
    return linear(b, b.op("Reshape", out, b.concat_dims(1, length, HIDDEN)), HIDDEN, HIDDEN), keys, values


def build(seed=5):
    b = Builder(seed)
    ids = b.input("ids", TensorProto.INT64, [1, "new"])
    pasts = [(b.input(f"past_key_{i}", TensorProto.FLOAT, [1, HEADS, "past", DK]),
              b.input(f"past_value_{i}", TensorProto.FLOAT, [1, HEADS, "past", DK])) for i in range(LAYERS)]
    length, before = b.dim(ids, 1), b.dim(pasts[0][0], 2)
    total = b.op("Add", length, before)
    scalar = [b.op("Squeeze", x, [0]) for x in (before, total)]
    one = b.constant(1, np.int64)
    positions = b.op("Range", scalar[0], scalar[1], one)
    every = b.op("Range", b.constant(0, np.int64), scalar[1], one)
    mask = b.op("LessOrEqual", every, b.op("Unsqueeze", positions, [1]))  # [S, P + S]
    turns = [b.op("Gather", table, positions) for table in tables()]
    table = b.weight(VOCABULARY, HIDDEN, scale=0.3)
    x = b.op("Gather", table, ids)
    for i, past in enumerate(pasts):
        mixed, key, value = attention(b, rms_norm(b, x), past, positions, mask, length, turns)
        x = b.op("Add", x, mixed)
        y = rms_norm(b, x)
        gate = linear(b, y, HIDDEN, 2 * HIDDEN)
        inner = b.op("Mul", b.op("Mul", gate, b.op("Sigmoid", gate)), linear(b, y, HIDDEN, 2 * HIDDEN))
        x = b.op("Add", x, linear(b, inner, 2 * HIDDEN, HIDDEN))
        b.output(key, f"present_key_{i}", [1, HEADS, "total", DK])
        b.output(value, f"present_value_{i}", [1, HEADS, "total", DK])
    b.output(b.op("MatMul", rms_norm(b, x), b.op("Transpose", table, perm=[1, 0])), "logits", [1, "new", VOCABULARY])
    return b.model("decoder")


def inputs(new, past, seed=0):
    rng = np.random.default_rng(seed)
    feeds = {"ids": rng.integers(0, VOCABULARY, (1, new))}
    for _, name in STATES:
        feeds[name] = rng.standard_normal((1, HEADS, past, DK)).astype(np.float32)
    return feeds


def save(path):
    onnx.save(build(), path)
