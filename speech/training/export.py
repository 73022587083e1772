"""export.py DIR -o VOICE.onnx: the voice in DIR/voice.npz (train.py) as a model with the interface of Piper's voices, and VOICE.onnx.json
beside it. Other than Piper's it also has `durations`, int64 [1, ids], in frames. Runs without torch."""
import argparse
import json
import pathlib
import sys

import numpy as np
import onnx
from features import HOP, KNOTS, RATE, SIZE, STRIDE, knots_to_bins
from onnx import TensorProto, helper, numpy_helper
from phoneme_ids import ID, TABLE

BINS = SIZE // 2 + 1
PADS = (SIZE - STRIDE) // 2
ALL = np.iinfo(np.int64).max


class Builder:
    """Nodes in order; what they write has their name."""

    def __init__(self, weights):
        self.weights, self.nodes, self.constants = weights, [], {}

    def constant(self, value, name=None):
        value = np.asarray(value)
        value = value.astype(np.float32) if value.dtype == np.float64 else value
        name = name or f"constant_{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(np.array(value, order="C"), name)
        return name

    def op(self, kind, *inputs, name=None, **attributes):
        inputs = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        name = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def weight(self, name, transposed=False):
        w = self.weights[name]
        return self.constant(w.T if transposed else w, name)

    def linear(self, x, name):
        return self.op("Add", self.op("MatMul", x, self.weight(f"{name}.weight", True), name=name), self.weight(f"{name}.bias"))

    def along_time(self, x, name, **attributes):
        """A convolution of [1, T, C]."""
        width = self.weights[f"{name}.weight"].shape[2]
        y = self.op("Conv", self.op("Transpose", x, perm=[0, 2, 1]), self.weight(f"{name}.weight"), self.weight(f"{name}.bias"),
                    name=name, pads=[width // 2] * 2, kernel_shape=[width], **attributes)
        return self.op("Transpose", y, perm=[0, 2, 1])

    def norm(self, x, name):
        return self.op("LayerNormalization", x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), axis=-1, epsilon=1e-5)

    def block(self, x, name):
        y = self.norm(self.along_time(x, f"{name}.depthwise", group=self.weights[f"{name}.depthwise.weight"].shape[0]), f"{name}.norm")
        return self.op("Add", x, self.linear(self.op("Relu", self.linear(y, f"{name}.widen")), f"{name}.narrow"))

    def blocks(self, x, name):
        for k in range(1 + max(int(w.split(".")[1]) for w in self.weights if w.startswith(name + "."))):
            x = self.block(x, f"{name}.{k}")
        return x

    def predictor(self, x, name):
        return self.linear(self.op("Relu", self.along_time(x, f"{name}.look")), f"{name}.tell")

    def floats(self, x):
        return self.op("Cast", x, to=TensorProto.FLOAT)

    def integers(self, x):
        return self.op("Cast", x, to=TensorProto.INT64)

    def range(self, n):
        """0 … n - 1, n [1] int64."""
        return self.op("Range", np.int64(0), self.op("Squeeze", n, np.array([0])), np.int64(1))

    def slice(self, x, begin, end, axis=0, step=1):
        ints = [np.array([i]) if isinstance(i, int) else i for i in (begin, end, axis, step)]
        return self.op("Slice", x, *ints)

    def columns(self, *x):
        """Vectors [N] as columns [1, N, ...]."""
        return self.op("Unsqueeze", self.op("Concat", *(self.op("Unsqueeze", v, np.array([1])) for v in x), axis=1), np.array([0]))


def encode(b):
    """ids → hidden [1, T, C], logarithms of 1 + frames [T]"""
    ids = b.slice("input", 0, "input_lengths", 1, 2)
    n = b.slice(b.op("Shape", ids), 1, 2)
    k, count = b.floats(b.range(n)), b.floats(n)
    left = b.op("Sub", b.op("Sub", count, 1.0), k)
    place = b.columns(b.op("Div", k, count), b.op("Div", 1.0, b.op("Add", b.op("Mul", left, 0.125), 1.0)))
    x = b.op("Concat", b.op("Gather", b.weight("embedding.weight"), ids), place, axis=2)
    x = b.blocks(b.linear(x, "enter"), "encoder")
    return x, b.op("Reshape", b.predictor(x, "durations"), np.array([-1]))


def lengthen(b, logs):
    """Frames of each id → their sum N [1], of each frame the id it belongs to [N] and its places [1, N, 4]."""
    length = b.slice("scales", 1, 2)
    frames = b.op("Mul", b.op("Max", b.op("Sub", b.op("Exp", logs), 1.0), 0.0), length)
    end = b.op("Round", b.op("CumSum", frames, np.int64(0)))
    before = b.op("Concat", np.zeros(1, np.float32), b.slice(end, 0, -1), axis=0)
    own = b.op("Sub", end, before, name="frames")
    n = b.integers(b.op("Max", b.op("Gather", end, np.array([-1])), 1.0))
    begins = b.integers(b.slice(end, 0, -1))
    steps = b.op("ScatterElements", b.op("Expand", np.zeros(1, np.int64), b.op("Add", n, np.array([1]))), begins,
                 b.op("Expand", np.ones(1, np.int64), b.op("Shape", begins)), axis=0, reduction="add")
    owner = b.op("CumSum", b.slice(steps, 0, n), np.int64(0), name="owner")
    t, count = b.floats(b.range(n)), b.floats(n)
    had, span = b.op("Gather", before, owner), b.op("Max", b.op("Gather", own, owner), 1.0)
    place = b.columns(b.op("Div", b.op("Sub", b.op("Add", t, 0.5), had), span), b.op("Div", b.op("Log", b.op("Add", span, 1.0)), 3.0),
                      b.op("Div", t, count), b.op("Mul", b.op("Min", b.op("Sub", count, t), 100.0), 0.01))
    return n, owner, place, own


def spread_durations(b, own):
    """Pads have none: [1, ids]."""
    both = b.op("Reshape", b.integers(b.columns(own, b.op("Mul", own, 0.0))), np.array([1, -1]))
    b.op("Slice", both, np.array([0]), np.array([-1]), np.array([1]), name="durations")


def decode(b, hidden, owner, place):
    """[1, N, C] → filters [1, N, 4 * KNOTS], Hz and whether there is pitch [N]"""
    x = b.op("Concat", b.op("Gather", hidden, owner, axis=1), place, axis=2)
    x = b.norm(b.blocks(b.linear(x, "between"), "decoder"), "norm")
    pitch = b.op("Reshape", b.predictor(x, "pitch"), np.array([-1, 2]))
    logs, there = (b.op("Reshape", b.slice(pitch, k, k + 1, 1), np.array([-1])) for k in (0, 1))
    return (b.linear(x, "filters"), b.op("Exp", b.op("Add", logs, float(b.weights["usual"]))),
            b.floats(b.op("Greater", there, 0.0)))


def around(b, x):
    """Of each of [N] the one before, itself, the one behind [N, 3]; at the ends itself."""
    padded = b.op("Pad", x, np.array([1, 1]), mode="edge")
    return b.op("Concat", *(b.op("Unsqueeze", b.slice(padded, k, k - 2 if k < 2 else ALL), np.array([1])) for k in range(3)), axis=1)


def pulses(b, hz, there):
    """Pulses with all harmonics [N, HOP], as Vocoder.pulses in networks.py."""
    at = (np.arange(HOP) + 0.5) / HOP - 0.5
    between = np.stack([np.maximum(-at, 0), 1 - np.abs(at), np.maximum(at, 0)])
    hz = b.op("Where", b.op("Greater", there, 0.0), hz, 150.0)
    line = b.constant(between, "between_frames")
    near, voiced = around(b, hz), b.op("MatMul", around(b, there), line)
    smooth, turns = b.op("MatMul", near, line), b.op("MatMul", near, b.constant(np.cumsum(between, 1) / RATE, "turns"))
    whole = b.op("Mod", b.slice(turns, -1, ALL, 1), 1.0, fmod=1)
    turn = b.op("Add", b.op("CumSum", whole, np.int64(0), exclusive=1), turns)
    angle = b.op("Mul", b.op("Sub", b.op("Sub", turn, b.op("Floor", turn)), 0.5), np.pi)
    harmonics = b.op("Floor", b.op("Div", 0.48 * RATE, smooth))
    low = b.op("Sin", angle)
    tiny = b.op("Less", b.op("Abs", low), 1e-4)
    kernel = b.op("Div", b.op("Sin", b.op("Mul", b.op("Add", b.op("Mul", harmonics, 2.0), 1.0), angle)), b.op("Where", tiny, 1.0, low))
    wave = b.op("Where", tiny, harmonics, b.op("Mul", b.op("Sub", kernel, 1.0), 0.5))
    return b.op("Mul", b.op("Mul", wave, b.op("Sqrt", b.op("Div", 2.0, harmonics))), voiced)


def gains(b, filters):
    """[1, N, 4 * KNOTS] → of harmonics and noise, for real and imaginary part, [2, 2 * N, 2 * BINS]"""
    logs = b.op("Transpose", b.op("Reshape", filters, np.array([-1, 2, KNOTS])), perm=[1, 0, 2])
    return b.op("Exp", b.op("MatMul", logs, b.constant(np.repeat(knots_to_bins(), 2, 1), "knots_to_bins"), name="spectrum"))


def sound(b, wave, filters, n):
    """Filters pulses and noise, and adds their frames."""
    line = b.op("Reshape", wave, np.array([1, -1]))
    noise = b.op("Mul", b.op("RandomNormalLike", line, name="noise", seed=1.0), b.op("Div", b.slice("scales", 0, 1), 0.667))
    both = b.op("Pad", b.op("Concat", line, noise, axis=0), np.array([0, PADS, 0, PADS]))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(SIZE) / SIZE)
    spectra = b.op("STFT", b.op("Unsqueeze", both, np.array([2])), np.int64(STRIDE), b.constant(window, "window"), np.int64(SIZE))
    filtered = b.op("Mul", b.op("Reshape", spectra, np.array([2, -1, 2 * BINS])), gains(b, filters))
    filtered = b.op("Reshape", b.op("ReduceSum", filtered, np.array([0]), keepdims=0), np.array([-1, BINS, 2]))
    frames = b.op("DFT", filtered, np.int64(SIZE), np.int64(1), inverse=1, onesided=1)
    real = b.op("Reshape", frames, np.array([-1, SIZE // STRIDE, STRIDE]))
    real = b.op("Mul", real, (window / 1.5).reshape(1, -1, STRIDE))
    parts = [b.op("Pad", b.op("Squeeze", b.slice(real, k, k + 1, 1), np.array([1])), np.array([k, 0, SIZE // STRIDE - 1 - k, 0]))
             for k in range(SIZE // STRIDE)]
    total = parts[0]
    for part in parts[1:]:
        total = b.op("Add", total, part)
    samples = b.slice(b.op("Reshape", total, np.array([-1])), PADS, b.op("Add", b.op("Mul", n, np.array([HOP])), np.array([PADS])))
    b.op("Reshape", samples, np.array([1, 1, 1, -1]), name="output")


def model(weights):
    b = Builder(weights)
    hidden, logs = encode(b)
    n, owner, place, own = lengthen(b, logs)
    spread_durations(b, own)
    filters, hz, there = decode(b, hidden, owner, place)
    sound(b, pulses(b, hz, there), filters, n)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        b.nodes, "voice",
        [value("input", TensorProto.INT64, [1, "ids"]), value("input_lengths", TensorProto.INT64, [1]),
         value("scales", TensorProto.FLOAT, [3])],
        [value("output", TensorProto.FLOAT, [1, 1, 1, "samples"]), value("durations", TensorProto.INT64, [1, "ids"])],
        list(b.constants.values()))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], producer_name="linnet", ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


def config():
    return {"audio": {"sample_rate": RATE, "quality": "default"}, "phoneme_type": "arpabet", "num_symbols": len(TABLE), "num_speakers": 1,
            "inference": {"noise_scale": 0.667, "length_scale": 1, "noise_w": 0}, "hop_length": HOP,
            "phoneme_id_map": {character: [k] for character, k in ID.items()}, "language": {"code": "en_US"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    onnx.save(model(dict(np.load(arguments.folder / "voice.npz"))), arguments.output)
    with open(f"{arguments.output}.json", "w", encoding="utf-8") as f:
        json.dump(config(), f, ensure_ascii=False, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
