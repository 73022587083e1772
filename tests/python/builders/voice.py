"""A VITS-shaped voice with seeded weights: phoneme ids in, a waveform out.

Text encoder (embedding, attention with relative positions, convolutions), a duration predictor whose sum is the number
of frames, the prior with seeded noise, a flow of gated dilated convolutions, a HiFi-GAN decoder. What is hard about the
real ones is here: lengths that depend on data (CumSum, Range, NonZero), transposed, dilated and grouped convolutions,
shape arithmetic as exporters write it. scales is (noise, length), with a stochastic duration predictor (noise, length,
noise of the durations) as Piper's are: without noise it is deterministic.
"""

from dataclasses import dataclass

import durations as stochastic
import numpy as np
import onnx
from builder import Builder
from onnx import TensorProto


@dataclass
class Size:
    vocabulary: int = 40
    hidden: int = 32
    heads: int = 2
    layers: int = 2
    window: int = 4  # of relative positions, to each side
    flows: int = 2
    gates: tuple = (1, 2)  # dilations of a flow's gated convolutions
    first: int = 64  # channels of the decoder; halved by each upsampling
    upsampling: tuple = ((16, 8), (8, 4), (4, 2))  # (kernel, stride)
    blocks: tuple = ((3, (1, 3, 5)), (7, (1, 3, 5)))  # residual blocks after an upsampling: (kernel, dilations)
    twice: bool = True  # each dilated convolution is followed by a plain one
    groups: tuple = (1, 4, 1)  # of the plain ones, by upsampling
    stochastic: bool = False  # durations by spline flows


# Piper's "medium" quality.
MEDIUM = Size(vocabulary=256, hidden=192, layers=6, flows=4, gates=(1, 1, 1, 1), first=256,
              upsampling=((16, 8), (16, 8), (8, 4)), blocks=((3, (1, 2)), (5, (2, 6)), (7, (3, 12))), twice=False, stochastic=True)

# Small, with its scales.
PIPER = Size(vocabulary=166, stochastic=True)


def layer_norm(b, x, channels):
    """Over axis 1, the long way: transpose, mean, variance."""
    t = b.op("Transpose", x, perm=[0, 2, 1])
    centered = b.op("Sub", t, b.op("ReduceMean", t, axes=[-1]))
    variance = b.op("ReduceMean", b.op("Pow", centered, 2.0), axes=[-1])
    normal = b.op("Div", centered, b.op("Sqrt", b.op("Add", variance, 1e-5)))
    scaled = b.op("Add", b.op("Mul", normal, b.constant(1 + b.rng.standard_normal(channels) / 10, np.float32)),
                  b.weight(channels, scale=0.1))
    return b.op("Transpose", scaled, perm=[0, 2, 1])


def relative_table(b, size, length):
    """[1, 2T - 1, dk]: embeddings of the distances -(T-1)..T-1, zero beyond the window."""
    dk, w = size.hidden // size.heads, size.window
    table = b.weight(1, 2 * w + 1, dk)
    pad = b.op("Max", b.op("Sub", length, [w + 1]), [0])
    start = b.op("Max", b.op("Sub", [w + 1], length), [0])
    end = b.op("Add", start, b.op("Sub", b.op("Mul", length, [2]), [1]))
    padded = b.op("Pad", table, b.op("Concat", [0], pad, [0], [0], pad, [0], axis=0))
    return b.op("Slice", padded, start, end, [1])


def relative_to_absolute(b, x, size, length):
    """[1, h, T, 2T - 1] by distance to [1, h, T, T] by position."""
    twice = b.op("Mul", length, [2])
    x = b.op("Pad", x, [0, 0, 0, 0, 0, 0, 0, 1])
    flat = b.op("Reshape", x, b.concat_dims(1, size.heads, b.op("Mul", length, twice)))
    flat = b.op("Pad", flat, b.op("Concat", [0, 0, 0, 0, 0], b.op("Sub", length, [1]), axis=0))
    x = b.op("Reshape", flat, b.concat_dims(1, size.heads, b.op("Add", length, [1]), b.op("Sub", twice, [1])))
    x = b.op("Slice", x, [0], length, [2])
    return b.op("Slice", x, b.op("Sub", length, [1]), [2**62], [3])


def absolute_to_relative(b, x, size, length):
    """[1, h, T, T] by position to [1, h, T, 2T - 1] by distance."""
    less = b.op("Sub", length, [1])
    twice = b.op("Mul", length, [2])
    x = b.op("Pad", x, b.op("Concat", [0, 0, 0, 0, 0, 0, 0], less, axis=0))
    flat = b.op("Reshape", x, b.concat_dims(1, size.heads, b.op("Mul", length, b.op("Sub", twice, [1]))))
    flat = b.op("Pad", flat, b.op("Concat", [0, 0], length, [0, 0, 0], axis=0))
    x = b.op("Reshape", flat, b.concat_dims(1, size.heads, length, twice))
    return b.op("Slice", x, [1], [2**62], [3])


def attention(b, x, size, length):
    dk = size.hidden // size.heads
    split = b.concat_dims(1, size.heads, dk, length)
    q, k, v = (b.op("Transpose", b.op("Reshape", b.conv1d(x, size.hidden, size.hidden, 1), split), perm=[0, 1, 3, 2])
               for _ in range(3))
    q = b.op("Div", q, float(np.sqrt(dk)))
    keys = b.op("Transpose", b.op("Unsqueeze", relative_table(b, size, length), [0]), perm=[0, 1, 3, 2])
    scores = b.op("Add", b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2])),
                  relative_to_absolute(b, b.op("MatMul", q, keys), size, length))
    weights = b.op("Softmax", scores, axis=-1)
    values = b.op("Unsqueeze", relative_table(b, size, length), [0])
    out = b.op("Add", b.op("MatMul", weights, v),
               b.op("MatMul", absolute_to_relative(b, weights, size, length), values))
    merged = b.op("Reshape", b.op("Transpose", out, perm=[0, 1, 3, 2]), b.concat_dims(1, size.hidden, length))
    return b.conv1d(merged, size.hidden, size.hidden, 1)


def encoder(b, ids, size, length):
    """[1, T] ids to [1, H, T]."""
    x = b.op("Gather", b.weight(size.vocabulary, size.hidden, scale=size.hidden**-0.5), ids)
    x = b.op("Transpose", b.op("Mul", x, float(np.sqrt(size.hidden))), perm=[0, 2, 1])
    for _ in range(size.layers):
        x = layer_norm(b, b.op("Add", x, attention(b, x, size, length)), size.hidden)
        wide = b.op("Relu", b.conv1d(x, size.hidden, 4 * size.hidden, 3))
        x = layer_norm(b, b.op("Add", x, b.conv1d(wide, 4 * size.hidden, size.hidden, 3)), size.hidden)
    return x


def durations(b, x, size, scale, noise):
    """[1, T] whole numbers of frames, at least one each."""
    if size.stochastic:
        logarithm = stochastic.log_durations(b, x, size.hidden, noise, layer_norm)
        return b.op("Squeeze", b.op("Ceil", b.op("Mul", b.op("Exp", logarithm), scale)), [1])
    y = layer_norm(b, b.op("Relu", b.conv1d(x, size.hidden, size.hidden, 3)), size.hidden)
    spread = b.conv1d(y, size.hidden, 1, 1)
    frames = b.op("Mul", b.op("Softplus", b.op("Add", b.op("Mul", spread, 3.0), 1.0)), scale)
    return b.op("Squeeze", b.op("Ceil", b.op("Add", frames, 0.3)), [1])


def expand(b, stats, frames):
    """[1, C, T] to [1, C, Y]: column t repeated frames[t] times, through a path matrix and NonZero."""
    ends = b.op("CumSum", frames, b.constant(1, np.int64))
    total = b.op("Cast", b.op("ReduceSum", frames, keepdims=0), to=TensorProto.INT64)
    at = b.op("Cast", b.op("Range", b.constant(0, np.int64), total, b.constant(1, np.int64)), to=TensorProto.FLOAT)
    at = b.op("Unsqueeze", at, [1])  # [Y, 1] against [1, T]
    begins = b.op("Sub", ends, frames)
    path = b.op("And", b.op("GreaterOrEqual", at, begins), b.op("Less", at, ends))
    column = b.op("Gather", b.op("NonZero", path), b.constant(1, np.int64), axis=0)
    return b.op("Gather", stats, column, axis=2)


def flow(b, z, size):
    """Coupling layers, run backwards: one half moves the other."""
    half, h = size.hidden // 2, size.hidden
    for i in range(size.flows):
        z = b.op("Slice", z, [-1], [-2**62], [1], [-1])  # flip the channels
        fixed, moved = b.op("Split", z, [half, half], outputs=2, axis=1)
        x, skipped = b.conv1d(fixed, half, h, 1), None
        for j, dilation in enumerate(size.gates):
            last = j + 1 == len(size.gates)
            gate = b.conv1d(x, h, 2 * h, 5, dilation=dilation)
            a, g = b.op("Split", gate, [h, h], outputs=2, axis=1)
            out = b.conv1d(b.op("Mul", b.op("Tanh", a), b.op("Sigmoid", g)), h, h if last else 2 * h, 1)
            if not last:
                onward, out = b.op("Split", out, [h, h], outputs=2, axis=1)
                x = b.op("Add", x, onward)
            skipped = out if skipped is None else b.op("Add", skipped, out)
        z = b.op("Concat", fixed, b.op("Sub", moved, b.conv1d(skipped, h, half, 1)), axis=1)
    return z


def hifigan(b, z, size):
    """[1, H, Y] to [1, 1, Y * product of the strides]."""
    channels = size.first
    x = b.conv1d(z, size.hidden, channels, 7)
    for stage, (kernel, stride) in enumerate(size.upsampling):
        pad = (kernel - stride) // 2
        x = b.op("ConvTranspose", b.op("LeakyRelu", x, alpha=0.1), b.weight(channels, channels // 2, kernel, scale=(
            channels * kernel / stride) ** -0.5), b.weight(channels // 2, scale=0.1), strides=[stride], pads=[pad, pad])
        channels //= 2
        total = None
        for kernel_size, dilations in size.blocks:
            y = x
            for dilation in dilations:
                t = b.conv1d(b.op("LeakyRelu", y, alpha=0.1), channels, channels, kernel_size, dilation=dilation)
                if size.twice:
                    t = b.conv1d(b.op("LeakyRelu", t, alpha=0.1), channels, channels, kernel_size, groups=size.groups[stage])
                y = b.op("Add", t, y)
            total = y if total is None else b.op("Add", total, y)
        x = b.op("Div", total, float(len(size.blocks)))
    return b.op("Tanh", b.conv1d(b.op("LeakyRelu", x, alpha=0.01), channels, 1, 7, bias=False))


def latent(b, x, scales, size):
    """Encoded phonemes [1, H, T] to what the decoder speaks, [1, H, Y], and frames [1, T]."""
    noise, length_scale, *duration_noise = (b.op("Slice", scales, [i], [i + 1], [0]) for i in range(2 + size.stochastic))
    frames = durations(b, x, size, length_scale, *duration_noise or [None])
    stats = expand(b, b.conv1d(x, size.hidden, 2 * size.hidden, 1), frames)
    mean, log_scale = b.op("Split", stats, [size.hidden, size.hidden], outputs=2, axis=1)
    random = b.op("RandomNormalLike", mean, seed=1.0)
    z = b.op("Add", mean, b.op("Mul", b.op("Mul", random, b.op("Exp", log_scale)), noise))
    return flow(b, z, size), frames


def speak(b, x, scales, size):
    """Encoded phonemes [1, H, T] to sound [1, 1, N] and frames [1, T]."""
    z, frames = latent(b, x, scales, size)
    return hifigan(b, z, size), frames


def phonemes_and_scales(b, size):
    ids = b.input("ids", TensorProto.INT64, [1, "phonemes"])
    scales = b.input("scales", TensorProto.FLOAT, [3 if size.stochastic else 2])
    return encoder(b, ids, size, b.dim(ids, 1)), scales


def build(size=Size(), seed=3):
    b = Builder(seed)
    audio, frames = speak(b, *phonemes_and_scales(b, size), size)
    b.output(audio, "audio", [1, 1, "samples"])
    b.output(frames, "frames", [1, "phonemes"])
    return b.model("voice")


def build_encoder(size=MEDIUM, seed=3):
    """All before the decoder: phoneme ids to frames of the hidden representation."""
    b = Builder(seed)
    z, frames = latent(b, *phonemes_and_scales(b, size), size)
    b.output(z, "z", [1, size.hidden, "samples"])
    b.output(frames, "frames", [1, "phonemes"])
    return b.model("voice_encoder")


def build_piper(size=PIPER, seed=5, speakers=1):
    """The same with the interface of Piper's exports."""
    b = Builder(seed)
    ids = b.input("input", TensorProto.INT64, [1, "phonemes"])
    lengths = b.input("input_lengths", TensorProto.INT64, [1])
    scales = b.input("scales", TensorProto.FLOAT, [3])
    x = encoder(b, ids, size, b.dim(ids, 1))
    places = b.op("Range", b.constant(0, np.int64), b.op("Gather", b.op("Shape", ids), b.constant(1, np.int64)),
                  b.constant(1, np.int64))
    mask = b.op("Cast", b.op("Less", places, lengths), to=TensorProto.FLOAT)
    if speakers > 1:
        sid = b.input("sid", TensorProto.INT64, [1])
        x = b.op("Add", x, b.op("Unsqueeze", b.op("Gather", b.weight(speakers, size.hidden), sid), [2]))
    audio, _ = speak(b, b.op("Mul", x, mask), scales, size)
    b.output(b.op("Unsqueeze", audio, [1]), "output", [1, 1, 1, "samples"])
    return b.model("piper")


# What English voices of Piper's have ids for, the ids in this order.
SYMBOLS = ("_^$ !'(),-.:;?abcdefhijklmnopqrstuvwxyzæçðøħŋœǀǁǂǃ"
           "ɐɑɒɓɔɕɖɗɘəɚɛɜɞɟɠɡɢɣɤɥɦɧɨɪɫɬɭɮɯɰɱɲɳɴɵɶɸɹɺɻɽɾʀʁʂʃʄʈʉʊʋʌʍʎʏʐʑʒʔʕʘʙʛʜʝʟʡʢʲˈˌːˑ˞βθχᵻⱱ")


def piper_config(speakers=(), rate=16000, **more):
    """The .onnx.json that belongs to such a model."""
    return {"audio": {"sample_rate": rate, "quality": "low"}, "espeak": {"voice": "en-us"},
            "inference": {"noise_scale": 0.667, "length_scale": 1, "noise_w": 0.8}, "phoneme_type": "espeak", "phoneme_map": {},
            "phoneme_id_map": {symbol: [k] for k, symbol in enumerate(SYMBOLS)}, "num_symbols": PIPER.vocabulary,
            "num_speakers": max(1, len(speakers)), "speaker_id_map": {name: k for k, name in enumerate(speakers)}, **more}


def build_vocoder(size=MEDIUM, seed=4):
    """The decoder alone: frames of the hidden representation to sound."""
    b = Builder(seed)
    z = b.input("z", TensorProto.FLOAT, [1, size.hidden, "frames"])
    b.output(hifigan(b, z, size), "audio", [1, 1, "samples"])
    return b.model("vocoder")


def inputs(phonemes, noise=0.0, length=1.0, seed=0, size=Size(), duration_noise=0.0):
    rng = np.random.default_rng(seed)
    scales = [noise, length] + [duration_noise] * size.stochastic
    return {"ids": rng.integers(0, size.vocabulary, (1, phonemes)), "scales": np.array(scales, np.float32)}


def save(path, size=Size()):
    onnx.save(build(size), path)
