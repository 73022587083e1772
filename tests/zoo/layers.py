"""The layers that the zoo's networks are written in: a Builder that knows how many channels a value has.

Weights are seeded and scaled so that activations keep their size through any number of layers. Batch normalization is
folded into the convolution before it, as exporters do, or (Net(batchnorm=True)) a node of its own.
"""

import pathlib
import sys

import numpy as np
from onnx import TensorProto

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python/builders"))
from builder import Builder  # noqa: E402


def even(channels, divisor=8):
    """Channels rounded to a multiple, never down by more than a tenth, as the MobileNets do."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded


class Net(Builder):
    def __init__(self, seed, batchnorm=False):
        super().__init__(seed)
        self.batchnorm = batchnorm
        self.channels = {}

    def image(self, channels, height, width, name="image"):
        self.channels[name] = channels
        return self.input(name, TensorProto.FLOAT, [1, channels, height, width])

    def like(self, x, kind, *inputs, **attributes):
        """A node whose output has as many channels as x, its first input."""
        y = self.op(kind, x, *inputs, **attributes)
        self.channels[y] = self.channels[x]
        return y

    def act(self, x, kind):
        """Activations as torch exports them."""
        if kind is None:
            return x
        if kind == "silu":
            return self.like(x, "Mul", self.op("Sigmoid", x))
        if kind == "relu6":
            return self.like(x, "Clip", 0.0, 6.0)
        if kind == "hsigmoid":
            return self.like(x, "HardSigmoid", alpha=1 / 6, beta=0.5)
        return self.like(x, {"relu": "Relu", "hswish": "HardSwish", "sigmoid": "Sigmoid"}[kind])

    def conv(self, x, out, k=1, stride=1, act="relu", groups=1, dilation=1, pads=None, gain=None, norm=True):
        """Convolution, normalization, activation; k and stride are numbers or (height, width) pairs."""
        k, stride = ((v, v) if isinstance(v, int) else v for v in (k, stride))
        each = self.channels[x] // groups
        gain = gain or (1.0 if act is None else 1.4)
        weights = [self.weight(out, each, *k, scale=gain / np.sqrt(each * k[0] * k[1]))]
        pads = pads if pads is not None else [(n - 1) * dilation // 2 for n in k] * 2
        bias = [] if self.batchnorm and norm else [self.weight(out, scale=0.1)]
        y = self.op("Conv", x, *weights, *bias, kernel_shape=k, strides=stride, pads=pads, group=groups,
                    dilations=[dilation, dilation])
        if self.batchnorm and norm:
            y = self.norm(y, out)
        self.channels[y] = out
        return self.act(y, act)

    def near(self, mean, n, spread=0.1):
        return self.constant(mean + spread * self.rng.standard_normal(n), np.float32)

    def norm(self, x, n):
        variance = self.constant(self.rng.uniform(0.8, 1.2, n), np.float32)
        return self.op("BatchNormalization", x, self.near(1, n), self.near(0, n), self.near(0, n), variance, epsilon=1e-5)

    def depthwise(self, x, k=3, stride=1, act="relu", **more):
        return self.conv(x, self.channels[x], k, stride, act, groups=self.channels[x], **more)

    def add(self, x, y):
        return self.like(x, "Add", y)

    def concat(self, *parts):
        y = self.op("Concat", *parts, axis=1)
        self.channels[y] = sum(self.channels[p] for p in parts)
        return y

    def max_pool(self, x, k=3, stride=2, pad=1):
        k, stride, pad = ([v, v] if isinstance(v, int) else list(v) for v in (k, stride, pad))
        return self.like(x, "MaxPool", kernel_shape=k, strides=stride, pads=pad * 2)

    def pool(self, x):
        return self.like(x, "GlobalAveragePool")

    def squeeze_excite(self, x, narrow, inner="relu", gate="hsigmoid"):
        s = self.conv(self.pool(x), narrow, act=inner, norm=False)
        return self.like(x, "Mul", self.conv(s, self.channels[x], act=gate, norm=False))

    def inverted(self, x, wide, out, k=3, stride=1, act="relu6", narrow=0, inner="relu", gate="hsigmoid", dilation=1):
        """Widen, depthwise, perhaps squeeze and excite, narrow; with a short cut where the shapes allow."""
        y = self.conv(x, wide, act=act) if wide != self.channels[x] else x
        y = self.depthwise(y, k, stride, act, dilation=dilation)
        if narrow:
            y = self.squeeze_excite(y, narrow, inner, gate)
        y = self.conv(y, out, act=None, gain=0.7)
        return self.add(x, y) if stride == 1 and out == self.channels[x] else y

    def linear(self, x, n_in, n_out):
        """Of [..., n_in]: a MatMul and its bias, as torch exports Linear on sequences."""
        return self.op("Add", self.weight(n_out, scale=0.1), self.op("MatMul", x, self.weight(n_in, n_out, scale=n_in**-0.5)))

    def gemm(self, x, n_in, n_out):
        """Of [N, n_in], as torch exports Linear on rows."""
        return self.op("Gemm", x, self.weight(n_out, n_in), self.weight(n_out, scale=0.1), transB=1)

    def classify(self, x, classes=1000, hidden=0, act=None):
        """Mean over the picture, perhaps a hidden layer, one score a class."""
        flat, n = self.op("Flatten", self.pool(x), axis=1), self.channels[x]
        if hidden:
            flat = self.gemm(flat, n, hidden)
            self.channels[flat] = n = hidden
            flat = self.act(flat, act)
        self.output(self.gemm(flat, n, classes), "scores", [1, classes])

    def resize(self, x, size=None, scale=None):
        """Bilinear, as torch's interpolate(align_corners=False)."""
        target = [self.constant([1, 1, scale, scale], np.float32)] if scale else ["", self.sizes(x, size)]
        return self.like(x, "Resize", "", *target, mode="linear", coordinate_transformation_mode="half_pixel")

    def sizes(self, x, size):
        """[N, C of x] and a height and width, in the way exporters spell it."""
        return self.op("Concat", self.op("Slice", self.op("Shape", x), [0], [2], [0]), np.array(size, np.int64), axis=0)
