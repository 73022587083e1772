"""Rows nobody chose: operators whose shapes, axes, types, operands' forms and attributes are drawn from a seed.

A sweep that kernels were never looked at with: rows(seed, count) are the same for the same seed. What they draw from is as
wide as what models bring, but for the time a row takes: a tensor has no more than ROOM elements, a product no more than WORK
multiply-adds."""

import inspect
import math

import numpy as np

from grid import (BOOL, DOUBLE_UNARY, F16, F32, F64, HALF_UNARY, I8, I32, I64, MS, POSITIVE, REDUCTIONS, TYPES, U8, UNARY, UNIT, Grid,
                  Input, const, fixed, nbits, operands, text)

ROOM = 1 << 21
WORK = 1 << 27
WHOLE = (I8, U8, I32, I64)
EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 21, 28, 33, 49, 56, 64, 77, 96, 100, 128, 197, 256, 300, 512, 768, 1000, 2048)


class Draw:
    """A grid, and what its rows are drawn with."""

    def __init__(self, rng):
        self.g, self.rng = Grid(), rng

    def one(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def flag(self, chance=0.5):
        return bool(self.rng.random() < chance)

    def number(self, low, high):
        """Log-uniform, both ends within."""
        return min(high, int(math.exp(self.rng.uniform(math.log(low), math.log(high + 1)))))

    def shape(self, low=1, high=4, room=ROOM // 4):
        """Of a random rank; the largest extent gives way where it has more than `room` elements."""
        found = [int(self.one(EXTENTS)) for _ in range(self.rng.integers(low, high + 1))]
        while math.prod(found) > room:
            at = found.index(max(found))
            found[at] = max(1, found[at] // 3)
        return found

    def image(self, channels=None):
        """[N, C, H, W] or a sequence [N, C, T]."""
        c = channels or int(self.one((1, 2, 3, 4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 384, 512)))
        spatial = [self.number(5, 120), self.number(5, 120)] if self.flag(0.75) else [self.number(16, 2000)]
        found = [int(self.one((1, 1, 1, 1, 2, 4))), c, *spatial]
        while math.prod(found) > ROOM:
            found = [found[0], found[1], *(max(5, e // 2) for e in found[2:])]
        return found

    def broadcast(self, a):
        """Extents of a second operand that broadcasts to `a`."""
        form = self.one(("same", "scalar", "last", "tail", "holes", "holes"))
        if form == "same":
            return list(a)
        if form == "scalar":
            return [1] * int(self.rng.integers(0, 2))
        if form == "last":
            return a[-1:]
        if form == "tail":
            return a[int(self.rng.integers(0, len(a))):]
        return [e if self.flag() else 1 for e in a]

    def axes(self, rank):
        kept = [k for k in range(rank) if self.flag(0.45)]
        return kept or [int(self.rng.integers(rank))]

    def add(self, family, op, label, *inputs, **more):
        self.g.add(family, op, f"{label} #{len(self.g.rows)}", *inputs, **more)


# ---- elementwise ----

def draw_unary(d):
    dtype = d.one((F32, F32, F32, F16, F64))
    op = d.one({F32: UNARY + list(POSITIVE) + UNIT, F16: HALF_UNARY, F64: DOUBLE_UNARY}[dtype])
    low, high = POSITIVE.get(op, (-0.9, 0.9) if op in UNIT else (-4, 4))
    shape = d.shape()
    d.add("elementwise", op, f"{dtype} {text(shape)}", Input(shape, dtype, low, high))


def pair(d, family, op, dtype, **more):
    a = d.shape()
    b = d.broadcast(a)
    if d.flag(0.3) and op != "PRelu":
        a, b = b, a
    d.add(family, op, f"{dtype} {text(a)} by {text(b)}", *operands(op, dtype, a, b), **more)


def draw_binary(d):
    pair(d, "elementwise", d.one(("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu")), F32)


def draw_typed_binary(d):
    pair(d, "elementwise, typed", d.one(("Add", "Sub", "Mul", "Div", "Max", "Min")), d.one((F16, F64, *WHOLE)))


def draw_bits(d):
    op = d.one(("And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "Mod"))
    dtype = BOOL if op in ("And", "Or", "Xor") else d.one((U8, "uint32")) if op == "BitShift" else d.one((I32, I64))
    a = d.shape()
    b = d.broadcast(a)
    shift = {"low": 0, "high": 3} if op == "BitShift" else {"low": 1, "high": 50} if op == "Mod" else {}
    d.add("compare and select", op, f"{dtype} {text(a)} by {text(b)}", Input(a, dtype), Input(b, dtype, **shift),
          **({"direction": "LEFT"} if op == "BitShift" else {}))


def draw_compare(d):
    pair(d, "compare and select", d.one(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")), d.one((F32, F16, F64, *WHOLE)))


def draw_where(d):
    dtype, a = d.one((F32, F32, F16, F64, U8, I32, I64)), d.shape()
    forms = [a, d.broadcast(a), d.broadcast(a)]
    c, x, y = (forms[k] for k in d.rng.permutation(3))
    d.add("compare and select", "Where", f"{dtype} {text(c)} {text(x)} {text(y)}", Input(c, BOOL), Input(x, dtype), Input(y, dtype))


def draw_cast(d):
    a, b = (d.one([k for k in TYPES if k != "bfloat16"]) for _ in range(2))
    shape = d.shape()
    if a != b:
        d.add("cast", "Cast", f"{a} to {b} {text(shape)}", Input(shape, a, 0, 100), to=TYPES[b])


def draw_clip(d):
    dtype, shape = d.one((F32, F16, *WHOLE)), d.shape()
    low, high = (-1, 1) if dtype[0] == "f" else (2, 50)
    d.add("elementwise", "Clip", f"{dtype} {text(shape)}", Input(shape, dtype, -3, 3), fixed(low, dtype), fixed(high, dtype))


def draw_several(d):
    shape, n = d.shape(), int(d.rng.integers(2, 6))
    d.add("elementwise", d.one(("Sum", "Max", "Min", "Mean")), f"of {n} {text(shape)}", *(Input(shape) for _ in range(n)))


# ---- rows ----

def draw_reduce(d):
    op, shape = d.one(REDUCTIONS), d.shape()
    types = (F32, F32, F32, F16, F64, I32, I64) + ((I8, U8) if op in ("ReduceMax", "ReduceMin") else ())
    dtype, axes = d.one(types if op in REDUCTIONS[:4] else (F32,)), d.axes(len(shape))
    high = min(1.5 if dtype[0] == "f" else 40, 1.05 if op == "ReduceProd" else 99)
    keep = int(d.flag())
    d.add("reduce", op, f"{dtype} {text(shape)} over {axes} keep {keep}", Input(shape, dtype, 0.9 if op == "ReduceProd" else 0.1, high),
          fixed(axes), keepdims=keep)


def axis_of(d, shape):
    return int(d.rng.integers(len(shape)))


def draw_arg(d):
    dtype, shape = d.one((F32, F32, F16, F64, I8, U8, I32)), d.shape()
    axis, last = axis_of(d, shape), int(d.flag(0.3))
    d.add("arg, cumulative, sort", d.one(("ArgMax", "ArgMin")), f"{dtype} {text(shape)} axis {axis}", Input(shape, dtype, -100, 100),
          axis=axis, keepdims=int(d.flag()), select_last_index=last)


def draw_cumsum(d):
    dtype, shape = d.one((F32, F64, I32, I64)), d.shape()
    axis = axis_of(d, shape)
    d.add("arg, cumulative, sort", "CumSum", f"{dtype} {text(shape)} axis {axis}", Input(shape, dtype), fixed(axis),
          reverse=int(d.flag(0.3)), exclusive=int(d.flag(0.3)))


def draw_topk(d):
    dtype, shape = d.one((F32, F32, F64, I32, I64)), d.shape()
    axis = axis_of(d, shape)
    k = d.number(1, shape[axis])
    d.add("arg, cumulative, sort", "TopK", f"{dtype} {k} of {text(shape)} axis {axis}", Input(shape, dtype, -1 << 20, 1 << 20), fixed([k]),
          outputs=2, axis=axis, largest=int(d.flag(0.8)))


def draw_softmax(d):
    dtype, shape = d.one((F32, F32, F32, F16, F64)), d.shape()
    axis = axis_of(d, shape)
    d.add("softmax", d.one(("Softmax", "Softmax", "LogSoftmax", "Hardmax")), f"{dtype} {text(shape)} axis {axis}",
          Input(shape, dtype, -5, 5), axis=axis)


def draw_layer_norm(d):
    op, shape = d.one(("LayerNormalization", "RMSNormalization", "SkipLayerNormalization")), d.shape(2, 3)
    n = shape[-1:]
    dtype = d.one((F32, F32, F16)) if op != "SkipLayerNormalization" else F32
    more = [const(n, dtype) for _ in range({"LayerNormalization": 2, "RMSNormalization": 1}.get(op, 3))]
    first = [Input(shape, dtype)] * (2 if op == "SkipLayerNormalization" else 1)
    d.add("norm", op, f"{dtype} {text(shape)}", *first, *more, **({"domain": MS} if op == "SkipLayerNormalization" else {}))


def draw_channel_norm(d):
    shape, op = d.image(), d.one(("InstanceNormalization", "GroupNormalization", "BatchNormalization", "LpNormalization", "LRN",
                                  "MeanVarianceNormalization"))
    if op == "MeanVarianceNormalization" and len(shape) != 4:
        return
    c = shape[1:2]
    more = {"InstanceNormalization": [const(c), const(c)], "GroupNormalization": [const(c), const(c)],
            "BatchNormalization": [const(c), const(c), const(c), const(c, F32, 0.5, 2)]}.get(op, [])
    attributes = {"GroupNormalization": {"num_groups": math.gcd(c[0], int(d.one((1, 4, 8, 32))))},
                  "LpNormalization": {"axis": axis_of(d, shape), "p": int(d.one((1, 2)))}, "LRN": {"size": int(d.one((3, 5, 7)))}}
    d.add("norm", op, text(shape), Input(shape), *more, **attributes.get(op, {}))


# ---- windows ----

def window(d, shape, kernels, strides=(1, 1, 1, 2)):
    """Kernel and attributes of a window over the image, and its dilations."""
    rank = len(shape) - 2
    kernel = [int(d.one(kernels))] * rank if d.flag(0.8) else [int(d.one(kernels)) for _ in range(rank)]
    kernel = [min(k, e) for k, e in zip(kernel, shape[2:])]
    stride = int(d.one(strides))
    pads = [k // 2 if d.flag(0.9) else 0 for k in kernel]
    return kernel, {"strides": [stride] * rank, "pads": pads * 2}


def draw_pool(d):
    shape, op, dtype = d.image(), d.one(("MaxPool", "AveragePool", "LpPool")), d.one((F32, F32, F32, F16, U8, I8))
    dtype = dtype if op == "MaxPool" or dtype == F16 and op == "AveragePool" else F32
    kernel, more = window(d, shape, (2, 2, 3, 3, 5, 7), (1, 2, 2, 3))
    more["pads"] = [min(p, (k - 1) // 2) for p, k in zip(more["pads"], kernel * 2)]
    if op == "AveragePool":
        more["count_include_pad"] = int(d.flag())
    d.add("pool", op, f"{dtype} {text(shape)} kernel {text(kernel)} stride {more['strides'][0]}", Input(shape, dtype), kernel_shape=kernel,
          **more)


def draw_global_pool(d):
    shape = d.image()
    d.add("pool", d.one(("GlobalAveragePool", "GlobalMaxPool")), text(shape), Input(shape))


def conv_shapes(d):
    """Image, weights [features, channels of a group, taps] and attributes within WORK."""
    shape = d.image()
    c = shape[1]
    kernel, more = window(d, shape, (1, 1, 3, 3, 3, 5, 7))
    if d.flag(0.15):
        more["dilations"] = [int(d.one((2, 3)))] * len(kernel)
        more["pads"] = [p * more["dilations"][0] for p in more["pads"]]
    how = d.one(("dense", "dense", "dense", "depthwise", "grouped"))
    group = c if how == "depthwise" else math.gcd(c, int(d.one((2, 4, 8, 32)))) if how == "grouped" else 1
    m = group * (1 if how == "depthwise" and d.flag(0.85) else max(1, int(d.one((8, 16, 24, 32, 45, 64, 96, 128, 256, 512))) // group))
    reach = [(k - 1) * more.get("dilations", [1])[0] + 1 for k in kernel]
    outs = [(e + 2 * p - r) // more["strides"][0] + 1 for e, p, r in zip(shape[2:], more["pads"], reach)]
    w = [m, c // group, *kernel]
    work = shape[0] * math.prod(outs) * math.prod(w)
    good = min(outs) > 0 and work <= WORK * 2 and shape[0] * m * math.prod(outs) <= ROOM
    return (shape, w, {"group": group, **more}) if good else None


def draw_conv(d):
    drawn = conv_shapes(d)
    if not drawn:
        return
    x, w, more = drawn
    dtype = d.one((F32,) * 6 + (F16,))
    bias = [const(w[:1], dtype)] if d.flag(0.7) else []
    d.add("convolution", "Conv", f"{dtype} {text(x)} by {text(w)} {more}", Input(x, dtype), const(w, dtype), *bias, **more)


def draw_int8_conv(d):
    drawn = conv_shapes(d)
    if not drawn:
        return
    x, w, more = drawn
    d.add("int8 convolution", "QLinearConv", f"uint8 {text(x)} by {text(w)} {more}", Input(x, U8), fixed(0.02, F32), fixed(128, U8),
          const(w, I8), const(w[:1], F32, 0.001, 0.002), fixed(np.zeros(w[0]), I8), fixed(0.05, F32), fixed(120, U8),
          const(w[:1], I32, -500, 500), **more)


def draw_conv_transpose(d):
    shape = d.image(int(d.one((8, 16, 32, 48, 64, 96, 128))))
    stride, c = int(d.one((1, 2, 2, 2, 4))), shape[1]
    k = stride * int(d.one((1, 2, 2))) + int(d.one((0, 0, 1)))
    group = int(d.one((1, 1, 1, c, math.gcd(c, 4))))
    w = [c, max(1, int(d.one((1, 3, 8, 16, 24, 32, 64))) // group), *[k] * (len(shape) - 2)]
    if math.prod(shape) * math.prod(w[1:]) > WORK or shape[0] * w[1] * group * math.prod(e * stride for e in shape[2:]) > ROOM:
        return
    more = {"strides": [stride] * (len(shape) - 2), "pads": [(k - stride) // 2] * 2 * (len(shape) - 2), "group": group}
    d.add("transposed convolution", "ConvTranspose", f"{text(shape)} by {text(w)} {more}", Input(shape), const(w), const([w[1] * group]),
          **more)


def draw_resize(d):
    shape = [int(d.one((1, 1, 2))), int(d.one((1, 3, 8, 32, 64, 128))), d.number(4, 100), d.number(4, 100)]
    scales = [float(d.one((0.5, 0.7, 1.5, 2, 2, 3))) for _ in range(2)] if d.flag(0.3) else [float(d.one((0.5, 2, 2, 2, 4)))] * 2
    if math.prod(shape) * scales[0] * scales[1] > ROOM:
        return
    mode, dtype = d.one(("nearest", "linear", "linear", "cubic")), d.one((F32, F32, F32, U8))
    dtype = F32 if mode == "cubic" else dtype
    how = d.one(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))
    d.add("image", "Resize", f"{dtype} {text(shape)} by {scales} {mode} {how}", Input(shape, dtype), None, fixed([1, 1, *scales], F32),
          mode=mode, coordinate_transformation_mode=how,
          **({"nearest_mode": d.one(("floor", "round_prefer_floor"))} if mode == "nearest" else {}))


def draw_blocks(d):
    op, block = d.one(("DepthToSpace", "SpaceToDepth")), int(d.one((2, 2, 3, 4)))
    c, h, w = int(d.one((1, 3, 8, 16, 32))), d.number(4, 60), d.number(4, 60)
    shape = [1, c * block * block, h, w] if op == "DepthToSpace" else [1, c, h * block, w * block]
    d.add("image", op, f"{text(shape)} block {block}", Input(shape), blocksize=block,
          **({"mode": d.one(("CRD", "DCR"))} if op == "DepthToSpace" else {}))


def draw_grid_sample(d):
    n, c, h, w = int(d.one((1, 2))), int(d.one((1, 3, 16, 64))), d.number(8, 80), d.number(8, 80)
    to = [d.number(4, 80), d.number(4, 80)]
    mode, padding = d.one(("linear", "nearest", "cubic")), d.one(("zeros", "border", "reflection"))
    d.add("image", "GridSample", f"{n}x{c}x{h}x{w} to {text(to)} {mode} {padding}", Input([n, c, h, w]), Input([n, *to, 2]), mode=mode,
          padding_mode=padding, align_corners=int(d.flag()))


# ---- products ----

def product_extents(d, work=WORK):
    ends = (1, 1, 2, 3, 4, 7, 8, 12, 16, 24, 33, 50, 64, 77, 100, 128, 197, 256, 300, 384, 512, 768, 1000, 1536, 2048)
    while True:
        m, k, n = (int(d.one(ends)) for _ in range(3))
        if m * k * n <= work and max(m * k, k * n, m * n) <= ROOM:
            return m, k, n


def draw_matmul(d):
    dtype = d.one((F32,) * 6 + (F16, F64))
    m, k, n = product_extents(d)
    b = const if d.flag(0.6) else Input
    label = "" if b is const else " not constant"
    d.add("product", "MatMul", f"{dtype} {m}x{k}x{n}{label}", Input([m, k], dtype), b([k, n], dtype))


def draw_batched(d):
    batch = [int(d.one((1, 2, 4, 8, 12))) for _ in range(d.rng.integers(1, 3))]
    m, k, n = product_extents(d, WORK // math.prod(batch))
    second = batch if d.flag(0.7) else [1] * len(batch) if d.flag() else []
    if math.prod(batch) * max(m * k, k * n, m * n) <= ROOM:
        a, b = [*batch, m, k], [*second, k, n]
        d.add("product", "MatMul", f"float32 {text(a)} by {text(b)}", Input(a), Input(b))


def draw_gemm(d):
    m, k, n = product_extents(d)
    ta, tb = int(d.flag(0.3)), int(d.flag())
    c = d.one(([n], [n], [m, 1], [1, n], [m, n], []))
    b = const if d.flag(0.6) else Input
    d.add("product", "Gemm", f"{m}x{k}x{n} transA {ta} transB {tb} C {text(c)}{'' if b is const else ' not constant'}",
          Input([k, m] if ta else [m, k]), b([n, k] if tb else [k, n]), const(c), transA=ta, transB=tb,
          alpha=float(d.one((1, 1, 0.5))), beta=float(d.one((1, 1, 0.5))))


def draw_int8_product(d):
    m, k, n = product_extents(d)
    kind, op = d.one((I8, U8)), d.one(("MatMulInteger", "QLinearMatMul", "DynamicQuantizeMatMul"))
    b = const if d.flag(0.75) else Input
    label = f"uint8 by {kind} {m}x{k}x{n}{'' if b is const else ' not constant'}"
    if op == "MatMulInteger":
        d.add("int8 product", op, label, Input([m, k], U8), b([k, n], kind), fixed(120, U8), fixed(3, kind))
    elif op == "QLinearMatMul":
        d.add("int8 product", op, label, Input([m, k], U8), fixed(0.02, F32), fixed(128, U8), b([k, n], kind), fixed(0.01, F32),
              fixed(12, kind), fixed(0.5, F32), fixed(128, U8))
    else:
        d.add("int8 product", op, label, Input([m, k]), const([k, n], kind), fixed(0.01, F32), domain=MS)


def draw_packed(d):
    block = int(d.one((16, 32, 32, 64, 128)))
    m, n = int(d.one((1, 1, 2, 8, 33, 64, 128))), int(d.one((1, 8, 64, 100, 256, 384, 1024, 2048)))
    k = block * d.number(1, 2048 // block)
    if m * k * n <= WORK:
        nbits(d, m, k, n, block, int(d.one((4, 4, 4, 8))), d.flag(), **({"accuracy_level": 4} if d.flag(0.4) else {}))


EQUATIONS = ("bij,bjk->bik", "bhid,bhjd->bhij", "bhij,bhjd->bhid", "ij,jk->ik", "ij,j->i", "bij->bi", "bi,bj->bij", "bik,jk->bij",
             "ij->ji", "bhwc,hkc->bhwk", "ii->i", "bij,bij->bi", "bqhd,bkhd->bhqk")


def draw_einsum(d):
    equation = d.one(EQUATIONS)
    sizes = {letter: int(d.one((1, 2, 4, 8, 16, 32, 49, 64, 100, 128))) for letter in "bijkhdwcq"}
    terms = equation.split("->")[0].split(",")
    shapes = [[sizes[letter] for letter in term] for term in terms]
    if math.prod(sizes[x] for x in {*equation} & {*sizes}) <= WORK // 4 and max(map(math.prod, shapes)) <= ROOM:
        d.add("product", "Einsum", f"{equation} {' '.join(map(text, shapes))}", *map(Input, shapes), equation=equation)


def draw_attention(d):
    heads, size, batch = int(d.one((1, 2, 3, 4, 8, 12))), int(d.one((8, 16, 24, 32, 40, 64, 80, 128))), int(d.one((1, 1, 2, 4)))
    keys = int(d.one((1, 7, 16, 49, 64, 100, 128, 197, 256, 400)))
    queries = keys if d.flag(0.6) else int(d.one((1, 4, 50)))
    kv = heads // 2 if heads % 2 == 0 and d.flag(0.3) else heads
    mask = [Input([queries, keys], F32, -2, 0)] if d.flag(0.3) else []
    causal = int(queries == keys and not mask and d.flag(0.4))
    d.add("attention", "Attention", f"{batch}: {queries} of {keys}, {heads} ({kv}) of {size}{' mask' * len(mask)}{' causal' * causal}",
          Input([batch, heads, queries, size]), Input([batch, kv, keys, size]), Input([batch, kv, keys, size]), *mask, is_causal=causal)


def draw_recurrent(d):
    op, gates = d.one((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    t, batch = int(d.one((1, 5, 20, 60))), int(d.one((1, 1, 2, 8)))
    i, h = int(d.one((4, 16, 40, 80, 128))), int(d.one((8, 20, 64, 100, 128, 256)))
    direction = d.one(("forward", "forward", "reverse", "bidirectional"))
    two, spread = 1 + (direction == "bidirectional"), h**-0.5
    more = {"linear_before_reset": int(d.flag(0.7))} if op == "GRU" else {}
    d.add("recurrent", op, f"{t} steps of {batch}x{i} to {h} {direction}", Input([t, batch, i]), const([two, gates * h, i], F32, -0.3, 0.3),
          const([two, gates * h, h], F32, -spread, spread), const([two, 2 * gates * h]), outputs=2, hidden_size=h,
          direction=direction, **more)


# ---- quantization ----

def draw_quantize(d):
    shape, kind = d.shape(1, 4), d.one((U8, I8))
    op = d.one(("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"))
    if op == "DynamicQuantizeLinear":
        d.add("quantize", op, text(shape), Input(shape), outputs=3)
        return
    axis, whole = axis_of(d, shape), d.flag()
    n = [] if whole else [shape[axis]]
    d.add("quantize", op, f"{kind} {text(shape)} {'tensor' if whole else f'axis {axis}'}",
          Input(shape, F32 if op == "QuantizeLinear" else kind), const(n, F32, 0.05, 0.1),
          Input([], value=np.full(n, 3, kind), constant=True), axis=axis)


def draw_qlinear(d):
    op, shape = d.one(("QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearGlobalAveragePool")), d.image()
    scale, zero = fixed(0.02, F32), fixed(128, U8)
    if op in ("QLinearAdd", "QLinearMul"):
        b = d.broadcast(shape)
        d.add("quantize", op, f"uint8 {text(shape)} {text(b)}", Input(shape, U8), scale, zero, Input(b, U8), scale, zero,
              fixed(0.05, F32), zero, domain=MS)
        return
    out = (fixed(1 / 256, F32), fixed(0, U8)) if op == "QLinearSigmoid" else (scale, zero)
    d.add("quantize", op, f"uint8 {text(shape)}", Input(shape, U8), scale, zero, *out, domain=MS,
          **({"alpha": 0.1} if op == "QLinearLeakyRelu" else {}))


# ---- data ----

ANY = (F32, F32, F16, U8, I32, I64, BOOL)


def draw_transpose(d):
    dtype, shape = d.one(ANY), d.shape(2, 5)
    perm = [int(k) for k in d.rng.permutation(len(shape))]
    d.add("move", "Transpose", f"{dtype} {text(shape)} to {''.join(map(str, perm))}", Input(shape, dtype), perm=perm)


def draw_concat(d):
    dtype, shape = d.one(ANY), d.shape(1, 4, ROOM // 16)
    axis, parts = axis_of(d, shape), int(d.rng.integers(2, 7))
    extents = [int(d.one((1, 2, 3, 8, 16, 33, 64))) if d.flag(0.3) else shape[axis] for _ in range(parts)]
    shapes = [[*shape[:axis], extent, *shape[axis + 1:]] for extent in extents]
    if sum(map(math.prod, shapes)) <= ROOM:
        d.add("move", "Concat", f"{dtype} {' '.join(map(text, shapes))} axis {axis}", *(Input(s, dtype) for s in shapes), axis=axis)


def draw_split(d):
    dtype, shape = d.one(ANY), d.shape(1, 4)
    axis, parts = axis_of(d, shape), int(d.rng.integers(2, 5))
    if shape[axis] >= 2 * parts:
        d.add("move", "Split", f"{dtype} {text(shape)} {parts} axis {axis}", Input(shape, dtype), outputs=parts, axis=axis,
              num_outputs=parts)


def draw_slice(d):
    dtype, shape = d.one(ANY), d.shape(1, 4)
    axes = d.axes(len(shape))
    starts, ends, steps = [], [], []
    for axis in axes:
        step = int(d.one((1, 1, 1, 2, 3, -1, -2)))
        low = int(d.rng.integers(0, max(1, shape[axis] // 3)))
        high = shape[axis] - int(d.rng.integers(0, max(1, shape[axis] // 3)))
        starts.append(high - 1 if step < 0 else low)
        ends.append((low - 1 if low else -shape[axis] - 1) if step < 0 else high)
        steps.append(step)
    d.add("move", "Slice", f"{dtype} {text(shape)} {starts} {ends} {axes} {steps}", Input(shape, dtype), fixed(starts), fixed(ends),
          fixed(axes), fixed(steps))


def draw_pad(d):
    dtype, shape = d.one((F32, F32, F16, U8, I64)), d.shape(1, 4, ROOM // 8)
    mode = d.one(("constant", "reflect", "edge", "wrap"))
    pads = [min(int(d.one((0, 0, 1, 2, 5))), e - 1) for e in shape * 2]
    d.add("move", "Pad", f"{dtype} {mode} {text(shape)} {pads}", Input(shape, dtype), fixed(pads), mode=mode)


def draw_repeat(d):
    dtype, shape, op = d.one(ANY), d.shape(1, 4, ROOM // 64), d.one(("Tile", "Expand"))
    times = [int(d.one((1, 1, 2, 3, 10))) for _ in shape]
    if op == "Tile":
        if math.prod(shape) * math.prod(times) <= ROOM:
            d.add("move", op, f"{dtype} {text(shape)} by {text(times)}", Input(shape, dtype), fixed(times))
        return
    kept = [1 if d.flag() else e for e in shape]
    d.add("move", op, f"{dtype} {text(kept)} to {text(shape)}", Input(kept, dtype), fixed(shape))


def draw_trilu(d):
    dtype, shape = d.one(ANY), d.shape(2, 4)
    d.add("move", "Trilu", f"{dtype} {text(shape)}", Input(shape, dtype), fixed(int(d.rng.integers(-3, 4))), upper=int(d.flag()))


def draw_gather(d):
    op, dtype, shape = d.one(("Gather", "Gather", "GatherElements", "GatherND")), d.one(ANY), d.shape(1, 4)
    axis = axis_of(d, shape)
    if op == "Gather":
        indices = d.rng.integers(0, shape[axis], d.number(1, 300))
        if math.prod(shape) // shape[axis] * len(indices) > ROOM:
            return
        d.add("gather and scatter", op, f"{dtype} {text(shape)} {len(indices)} axis {axis}", Input(shape, dtype),
              Input([], value=indices), axis=axis)
    elif op == "GatherElements":
        to = [*shape[:axis], d.number(1, shape[axis]), *shape[axis + 1:]]
        d.add("gather and scatter", op, f"{dtype} {text(shape)} {to[axis]} axis {axis}", Input(shape, dtype),
              Input([], value=d.rng.integers(0, shape[axis], to)), axis=axis)
    else:
        depth = int(d.rng.integers(1, len(shape) + 1))
        n = d.number(1, 1000)
        if n * math.prod(shape[depth:]) <= ROOM:
            indices = np.stack([d.rng.integers(0, e, n) for e in shape[:depth]], 1)
            d.add("gather and scatter", op, f"{dtype} {text(shape)} {n} of depth {depth}", Input(shape, dtype), Input([], value=indices))


def draw_scatter(d):
    dtype, shape, reduction = d.one((F32, F32, F16, I64)), d.shape(1, 4, ROOM // 16), d.one(("none", "add", "max"))
    if reduction != "none" and dtype == F16:
        return
    axis = axis_of(d, shape)
    if d.flag():
        to = [*shape[:axis], d.number(1, shape[axis]), *shape[axis + 1:]]
        order = np.argsort(d.rng.random(shape), axis).take(range(to[axis]), axis)
        d.add("gather and scatter", "ScatterElements", f"{dtype} {reduction} {text(shape)} {to[axis]} axis {axis}", Input(shape, dtype),
              Input([], value=order), Input(to, dtype), axis=axis, reduction=reduction)
    else:
        rows = d.rng.permutation(shape[0])[:d.number(1, shape[0]), None]
        d.add("gather and scatter", "ScatterND", f"{dtype} {reduction} {text(shape)} {len(rows)} rows", Input(shape, dtype),
              Input([], value=rows), Input([len(rows), *shape[1:]], dtype), reduction=reduction)


def draw_choices(d):
    op, shape = d.one(("NonZero", "Compress", "OneHot", "NonMaxSuppression", "EyeLike", "DFT")), d.shape(1, 3, ROOM // 16)
    family = "signal" if op == "DFT" else "image" if op == "NonMaxSuppression" else "gather and scatter"
    if op == "NonZero":
        d.add(family, op, text(shape), Input([], value=(d.rng.random(shape) < d.rng.random()).astype(d.one((F32, I64, BOOL)))))
    elif op == "Compress":
        axis = axis_of(d, shape)
        d.add(family, op, f"{text(shape)} axis {axis}", Input(shape), Input([], value=d.rng.random(shape[axis]) < 0.4), axis=axis)
    elif op == "OneHot":
        depth, n = d.number(2, 300), d.number(1, 2000)
        d.add(family, op, f"{n} of {depth}", Input([], value=d.rng.integers(0, depth, n)), fixed(depth), fixed([0, 1], F32),
              axis=int(d.one((-1, 0))))
    elif op == "NonMaxSuppression":
        n, classes = d.number(10, 3000), int(d.one((1, 4, 20)))
        at = d.rng.uniform(0, 300, (1, n, 2))
        boxes = np.concatenate([at, at + d.rng.uniform(5, 80, (1, n, 2))], 2).astype(np.float32)
        d.add(family, op, f"{n} boxes {classes} classes", Input([], value=boxes), Input([1, classes, n], F32, 0, 1),
              fixed(d.number(5, 200)), fixed([0.5], F32), fixed([float(d.one((0.05, 0.3, 0.6)))], F32))
    elif op == "EyeLike":
        shape = d.shape(2, 2, ROOM // 8)
        d.add(family, op, text(shape), Input(shape), k=int(d.rng.integers(-2, 3)))
    else:
        n = int(d.one((16, 50, 64, 100, 128, 240, 256, 320, 400, 512, 1024)))
        d.add(family, op, f"{n}", Input([1, d.number(1, 100), n, 1]), None, fixed(2), onesided=int(d.flag()))


KINDS = [function for name, function in sorted(globals().items()) if name.startswith("draw_") and inspect.isfunction(function)]
KINDS += [draw_conv, draw_conv, draw_int8_conv, draw_matmul, draw_batched, draw_gemm, draw_binary, draw_typed_binary, draw_reduce]


def rows(seed, count):
    """The commonest kinds more often, and what is larger than a row may be not at all."""
    d = Draw(np.random.default_rng(seed))
    while len(d.g.rows) < count:
        d.one(KINDS)(d)
    return d.g.rows
