"""Networks over sequences: text by attention, sound and lines of text by recurrence."""

import numpy as np
from layers import Net
from onnx import TensorProto

VOCABULARY, HIDDEN, HEADS = 30522, 384, 12


def layer_norm(b, x, n=HIDDEN):
    centered = b.op("Sub", x, b.op("ReduceMean", x, axes=[-1]))
    variance = b.op("ReduceMean", b.op("Pow", centered, 2.0), axes=[-1])
    normal = b.op("Div", centered, b.op("Sqrt", b.op("Add", variance, 1e-12)))
    return b.op("Add", b.op("Mul", normal, b.near(1, n)), b.near(0, n))


def heads(b, x, perm):
    """[N, T, hidden] to a permutation of [N, T, heads, hidden / heads], with the shape read as exporters do."""
    split = b.concat_dims(b.dim(x, 0), b.dim(x, 1), HEADS, HIDDEN // HEADS)
    return b.op("Transpose", b.op("Reshape", x, split), perm=perm)


def attention(b, x, mask):
    q, k, v = (heads(b, b.linear(x, HIDDEN, HIDDEN), perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    scores = b.op("Add", b.op("Div", b.op("MatMul", q, k), float(np.sqrt(HIDDEN // HEADS))), mask)
    mixed = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    merged = b.op("Reshape", mixed, b.concat_dims(b.dim(mixed, 0), b.dim(mixed, 1), HIDDEN))
    return b.linear(merged, HIDDEN, HIDDEN)


def gelu(b, x):
    return b.op("Mul", b.op("Mul", x, b.op("Add", b.op("Erf", b.op("Div", x, float(np.sqrt(2)))), 1.0)), 0.5)


def minilm(layers=6, vocabulary=VOCABULARY):
    """Sentence embeddings, before pooling; batch and length are open, everything is spelled out."""
    b = Net(31)
    ids, mask, types = (b.input(n, TensorProto.INT64, ["batch", "sequence"])
                        for n in ("input_ids", "attention_mask", "token_type_ids"))
    positions = b.op("Slice", np.arange(512)[None, :], [0], b.dim(ids, 1), [1])
    x = b.op("Add", b.op("Gather", b.weight(vocabulary, HIDDEN, scale=0.5), ids),
             b.op("Gather", b.weight(2, HIDDEN, scale=0.1), types))
    x = layer_norm(b, b.op("Add", x, b.op("Gather", b.weight(512, HIDDEN, scale=0.1), positions)))
    wide = b.op("Cast", b.op("Unsqueeze", b.op("Unsqueeze", mask, [1]), [2]), to=TensorProto.FLOAT)
    bias = b.op("Mul", b.op("Sub", 1.0, wide), float(np.finfo(np.float32).min))
    for _ in range(layers):
        x = layer_norm(b, b.op("Add", attention(b, x, bias), x))
        inner = b.linear(gelu(b, b.linear(x, HIDDEN, 4 * HIDDEN)), 4 * HIDDEN, HIDDEN)
        x = layer_norm(b, b.op("Add", inner, x))
    b.output(x, "last_hidden_state", ["batch", "sequence", HIDDEN])
    return b.model("minilm")


def minilm_inputs(batch, sequence, vocabulary=VOCABULARY):
    rng = np.random.default_rng(0)
    whole = np.ones((batch, sequence), np.int64)
    return {"input_ids": rng.integers(0, vocabulary, (batch, sequence)), "attention_mask": whole, "token_type_ids": 0 * whole}


def recurrent(b, kind, x, n_in, hidden, directions=1):
    """torch's layer over [T, N, n_in]: zero states of a size read from x, directions side by side in the output."""
    gates = {"LSTM": 4, "GRU": 3}[kind]
    weights = [b.weight(directions, gates * hidden, n, scale=hidden**-0.5) for n in (n_in, hidden)]
    bias = b.weight(directions, 2 * gates * hidden, scale=0.1)
    zeros = b.op("Expand", 0.0, b.concat_dims(directions, b.dim(x, 1), hidden))
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    direction = "bidirectional" if directions == 2 else "forward"
    outputs = b.op(kind, x, *weights, bias, "", *[zeros] * (2 if kind == "LSTM" else 1), outputs=2, hidden_size=hidden,
                   direction=direction, **more)
    if directions == 1:
        return b.op("Squeeze", outputs[0], [1])
    return b.op("Reshape", b.op("Transpose", outputs[0], perm=[0, 2, 1, 3]), [0, 0, -1])


def recurrent_stack(kind, layers, hidden, directions, features=80, classes=40):
    """Frames of a spectrum to scores of a sound unit each."""
    b = Net(32)
    x, n = b.input("frames", TensorProto.FLOAT, ["time", 1, features]), features
    for _ in range(layers):
        x = recurrent(b, kind, x, n, hidden, directions)
        n = hidden * directions
    b.output(b.op("LogSoftmax", b.linear(x, n, classes), axis=-1), "scores", ["time", 1, classes])
    return b.model(f"{kind.lower()}_stack")


def crnn(width="width", classes=37):
    """Text of a line 32 pixels high: convolutions, two bidirectional LSTMs."""
    b = Net(33)
    x = b.image(1, 32, width)
    pools = {0: (2, 2, 0), 1: (2, 2, 0), 3: ((2, 2), (2, 1), (0, 1)), 5: ((2, 2), (2, 1), (0, 1))}
    for i, out in enumerate((64, 128, 256, 256, 512, 512)):
        x = b.conv(x, out, 3)
        if i in pools:
            x = b.max_pool(x, *pools[i])
    x = b.op("Squeeze", b.conv(x, 512, 2, pads=[0] * 4), [2])
    x = b.op("Transpose", x, perm=[2, 0, 1])
    for n_in in (512, 256):
        x = recurrent(b, "LSTM", x, n_in, 256, directions=2)
        x = b.linear(x, 512, 256 if n_in == 512 else classes)
    b.output(x, "scores", ["steps", 1, classes])
    return b.model("crnn")
