"""Generated cases of every operator of tier T1, for any version of it since opset 7.

GENERATORS[operator](r, version) gives one Case: `r` draws shapes, types and numbers, `version` is the since_version
under test, whose form (attributes or inputs) the case takes."""

import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32 = (np.float32,)
FLOATS = (np.float32, np.float32, np.float64, np.float16)
SIGNED = (np.float32, np.float64, np.float16, np.int32, np.int64, np.int8)
NUMBERS = (np.float32, np.float64, np.int32, np.int64, np.uint8)
ANY = (np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.int8, np.bool_)
INDICES = (np.int64, np.int32)


class Case:
    """One node: inputs (None where skipped) by position, attributes, number of outputs."""

    def __init__(self, inputs, outputs=1, constant=(), scale=1.0, **attributes):
        self.inputs, self.outputs, self.attributes = inputs, outputs, attributes
        self.constant = constant  # inputs that must be initializers for onnxruntime
        self.scale = scale  # of the tolerance, where a long sum of products loses digits


class Draw:
    """Random shapes, types and arrays from a seed."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def pick(self, *items):
        return items[self.int(0, len(items) - 1)]

    def chance(self, p=0.5):
        return self.rng.random() < p

    def shape(self, low=0, high=5, most=6, zero=True):
        dims = [self.int(1, most) for _ in range(self.int(low, high))]
        if zero and dims and self.chance(0.05):
            dims[self.int(0, len(dims) - 1)] = 0
        return dims

    def array(self, shape, dtype=np.float32, low=-3.0, high=3.0):
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return self.rng.random(shape) < 0.5
        if dtype.kind in "iu":
            return self.rng.integers(max(int(low * 5), np.iinfo(dtype).min), int(high * 5) + 1, shape).astype(dtype)
        return self.rng.uniform(low, high, shape).astype(dtype)

    def broadcastable(self, shape):
        """A shape that broadcasts to `shape`, perhaps of lower rank."""
        kept = shape[self.int(0, len(shape)) :] if shape and self.chance(0.4) else list(shape)
        return [1 if d != 0 and self.chance(0.3) else d for d in kept]

    def pair(self, dtypes, low=-3.0, high=3.0):
        shape, dtype = self.shape(), self.pick(*dtypes)
        a, b = self.broadcastable(shape), self.broadcastable(shape)
        return self.array(a, dtype, low, high), self.array(b, dtype, low, high)

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def axes(self, rank, least=0):
        chosen = self.rng.permutation(rank)[: self.int(least, rank)]
        return [int(a) - (rank if self.chance(0.3) else 0) for a in chosen]


def ints(*values):
    return np.array(values, np.int64)


# ---- elementwise ----


def unary(dtypes=FLOATS, low=-3.0, high=3.0, **attributes):
    def make(r, version):
        dtype = r.pick(*dtypes)
        values = {k: v(r) for k, v in attributes.items() if r.chance(0.8)}
        return Case([r.array(r.shape(), dtype, low, high)], **values)

    return make


def binary(dtypes, low=-3.0, high=3.0):
    return lambda r, version: Case(list(r.pair(dtypes, low, high)))


def divide(r, version):
    a, b = r.pair((np.float32, np.float64, np.int32, np.int64))
    return Case([a, np.where(b == 0, 1, b).astype(b.dtype)])


def power(r, version):
    a, b = r.pair((np.float32, np.float64), 0.1, 3.0)
    if version >= 12 and r.chance(0.3):
        b = r.array(b.shape, r.pick(np.int32, np.int64), 0.0, 0.6)
    return Case([a, b])


def modulo(r, version):
    a, b = r.pair((np.float32, np.int32, np.int64, np.int8))
    b = np.where(b == 0, 1, b).astype(b.dtype)
    return Case([a, b], fmod=1 if a.dtype.kind == "f" or r.chance() else 0)


def variadic(dtypes):
    def make(r, version):
        shape = r.shape()
        dtype = r.pick(*(dtypes if version >= 8 else F32))
        count = r.int(1, 4)
        shapes = [r.broadcastable(shape) if version >= 8 else shape for _ in range(count)]
        return Case([r.array(s, dtype) for s in shapes])

    return make


def is_inf(r, version):
    x = r.array(r.shape(), r.pick(np.float32, np.float64))
    return Case([np.where(r.array(x.shape, np.bool_), np.copysign(np.inf, x), x).astype(x.dtype)],
                detect_negative=r.int(0, 1), detect_positive=r.int(0, 1))


def is_nan(r, version):
    x = r.array(r.shape(), r.pick(np.float32, np.float16))
    return Case([np.where(r.array(x.shape, np.bool_), np.nan, x).astype(x.dtype)])


def clip(r, version):
    x = r.array(r.shape(), r.pick(*(F32 if version < 12 else NUMBERS)))
    low, high = np.array(-1 if x.dtype.kind != "u" else 1, x.dtype), np.array(2, x.dtype)
    if version < 11:
        return Case([x], **({"min": float(low)} if r.chance() else {}), **({"max": float(high)} if r.chance() else {}))
    return Case([x, low if r.chance() else None, high if r.chance() else None])


def p_relu(r, version):
    shape = r.shape(1)
    slope = shape if r.chance(0.3) else [d if r.chance() else 1 for d in shape[1:]]
    return Case([r.array(shape), r.array(slope)])


def where(r, version):
    shape, dtype = r.shape(), r.pick(np.float32, np.int64, np.uint8)
    return Case([r.array(r.broadcastable(shape), np.bool_), r.array(r.broadcastable(shape), dtype),
                 r.array(r.broadcastable(shape), dtype)])


def cast(r, version):
    x = r.array(r.shape(), r.pick(*ANY), 0.0, 20.0)
    return Case([x], to=helper.np_dtype_to_tensor_dtype(np.dtype(r.pick(*ANY))))


def cast_like(r, version):
    return Case([r.array(r.shape(), r.pick(*ANY), 0.0, 20.0), r.array(r.shape(), r.pick(*ANY))])


def dropout(r, version):
    x = r.array(r.shape(1))
    if version < 12:
        return Case([x], ratio=float(r.rng.random()))
    return Case([x, np.array(r.rng.random(), np.float32) if r.chance() else None], outputs=r.int(1, 2))


def constant(r, version):
    value = r.array(r.shape(), r.pick(np.float32, np.int64, np.float64, np.uint8, np.bool_))
    return Case([], value=numpy_helper.from_array(value))


# ---- moving data ----


def transpose(r, version):
    shape = r.shape(1, 6)
    attributes = {"perm": [int(a) for a in r.rng.permutation(len(shape))]} if r.chance(0.8) else {}
    return Case([r.array(shape, r.pick(*ANY))], **attributes)


def reshape(r, version):
    shape = r.shape(1, zero=False)
    target = list(shape)
    while len(target) > 1 and r.chance(0.6):
        i = r.int(0, len(target) - 2)
        target[i : i + 2] = [target[i] * target[i + 1]]
    if r.chance():
        target[r.int(0, len(target) - 1)] = -1
    elif target[0] == shape[0] and r.chance():
        target[0] = 0
    return Case([r.array(shape, r.pick(*ANY)), ints(*target)])


def flatten(r, version):
    shape = r.shape(1)
    low = 0 if version < 11 else -len(shape)
    return Case([r.array(shape, r.pick(*(F32 if version < 9 else ANY)))], axis=r.int(low, len(shape)))


def squeeze(r, version):
    shape = r.shape(1, 4, zero=False)
    axes = sorted({r.int(0, len(shape) - 1) for _ in range(2)})
    for a in axes:
        shape[a] = 1
    x = r.array(shape, r.pick(*ANY))
    if r.chance(0.2):
        return Case([x])
    return Case([x], axes=axes) if version < 13 else Case([x, ints(*axes)])


def unsqueeze(r, version):
    shape = r.shape(0, 4)
    rank = len(shape) + 2
    axes = sorted(int(a) for a in r.rng.permutation(rank)[:2])
    x = r.array(shape, r.pick(*ANY))
    return Case([x], axes=axes) if version < 13 else Case([x, ints(*[a - rank if r.chance() else a for a in axes])])


def expand(r, version):
    shape = r.shape()
    return Case([r.array(r.broadcastable(shape), r.pick(*ANY)), ints(*shape)])


def tile(r, version):
    shape = r.shape(1, 4)
    return Case([r.array(shape, r.pick(np.float32, np.int64, np.uint8)), ints(*[r.int(0, 3) for _ in shape])])


def concat(r, version):
    shape = r.shape(1)
    axis = r.axis(len(shape)) if version >= 11 else r.int(0, len(shape) - 1)
    parts = []
    dtype = r.pick(*ANY)
    for _ in range(r.int(1, 4)):
        s = list(shape)
        s[axis] = r.int(0, 4)
        parts.append(r.array(s, dtype))
    return Case(parts, axis=axis)


def split(r, version):
    shape = r.shape(1, zero=False)
    axis = r.axis(len(shape)) if version >= 11 else r.int(0, len(shape) - 1)
    n = r.int(1, 3)
    sizes = [r.int(0 if version >= 11 else 1, 3) for _ in range(n)]
    form = r.pick("sizes", "equal")
    dtype = r.pick(np.float32, np.int32, np.int64)
    shape[axis] = sum(sizes) if form == "sizes" else n * r.int(1, 3)
    x = r.array(shape, dtype)
    if form == "sizes" and version < 13:
        return Case([x], n, axis=axis, split=sizes)
    if form == "sizes":
        return Case([x, ints(*sizes)], n, axis=axis)
    if version >= 18:
        if shape[axis] > n and r.chance():
            x = r.array(shape[:axis % len(shape)] + [shape[axis] - 1] + shape[axis % len(shape) + 1 :], dtype)
        return Case([x], n, axis=axis, num_outputs=n)
    return Case([x], n, axis=axis)


def slice_(r, version):
    shape = r.shape(1)
    axes = [a % len(shape) for a in r.axes(len(shape), 1)]
    starts = [r.int(-8, 8) for _ in axes]
    steps = [r.pick(1, 1, 2, *([-1, -2] if version >= 10 else [])) for _ in axes]
    far = [2**31 - 1 if step > 0 else -(2**31) + 1 for step in steps]  # "to the end", as the standard recommends
    ends = [r.pick(r.int(-8, 8), e) for e in far]
    x = r.array(shape, r.pick(np.float32, np.int64, np.float64))
    if version < 10:
        return Case([x], axes=axes, starts=starts, ends=ends)
    kind = r.pick(*INDICES)
    given = 5 if min(steps) < 0 or r.chance(0.7) else 4
    return Case([x, *(np.array(v, kind) for v in (starts, ends, axes, steps))][:given])


def pad(r, version):
    shape = r.shape(1, 4, zero=False)
    mode = r.pick("constant", "reflect", "edge", *(["wrap"] if version >= 19 else []))
    most = [min(2, d - 1) if mode == "reflect" else min(2, d) for d in shape]
    pads = [r.int(-1 if mode == "constant" and d > 3 else 0, m) for _ in range(2) for m, d in zip(most, shape)]
    dtype = r.pick(np.float32, np.float64) if version < 13 else r.pick(np.float32, np.float64, np.int64, np.int32)
    x = r.array(shape, dtype)
    if version < 11:
        return Case([r.array(shape)], mode=mode, pads=pads, value=1.5)
    return Case([x, ints(*pads), *([np.array(2, dtype)] if mode == "constant" and r.chance() else [])], mode=mode)


def gather(r, version):
    shape = r.shape(1, 4, zero=False)
    axis = r.axis(len(shape))
    low = -shape[axis] if version >= 11 else 0
    indices = r.rng.integers(low, shape[axis], r.shape(0, 3)).astype(r.pick(*INDICES))
    return Case([r.array(shape, r.pick(*ANY)), indices], axis=axis)


def gather_elements(r, version):
    shape = r.shape(1, 4, zero=False)
    axis = r.axis(len(shape))
    out = [r.int(1, d) for d in shape]
    out[axis] = r.int(0, 5)
    indices = r.rng.integers(-shape[axis], shape[axis], out).astype(r.pick(*INDICES))
    return Case([r.array(shape, r.pick(*ANY)), indices], axis=axis)


def gather_nd(r, version):
    shape = r.shape(2, 4, zero=False)
    batch = r.int(0, 1) if version >= 12 else 0
    depth = r.int(1, len(shape) - batch)
    lead = shape[:batch] + r.shape(1, 2, zero=False)
    columns = [r.rng.integers(-d, d, lead) for d in shape[batch : batch + depth]]
    indices = np.stack(columns, -1).astype(np.int64)
    return Case([r.array(shape, r.pick(np.float32, np.int64, np.bool_)), indices],
                **({"batch_dims": batch} if batch else {}))


def scatter_elements(r, version):
    shape = r.shape(1, 3, zero=False)
    axis = r.axis(len(shape))
    out = [r.int(1, d) for d in shape]
    order = np.argsort(r.rng.random([*out[: axis % len(shape)], shape[axis], *out[axis % len(shape) + 1 :]]), axis)
    indices = np.take(order, range(out[axis]), axis)
    dtype = r.pick(np.float32, np.int64)
    reduction = {16: ["none", "add", "mul"], 18: ["none", "add", "mul", "min", "max"]}.get(version)
    if reduction and r.chance(0.7):
        indices = r.rng.integers(-shape[axis], shape[axis], out)
        kind = r.pick(*reduction[1:])
        return Case([r.array(shape, dtype), indices.astype(np.int64), r.array(out, dtype)], axis=axis, reduction=kind)
    return Case([r.array(shape, dtype), indices.astype(r.pick(*INDICES)), r.array(out, dtype)], axis=axis)


def scatter_nd(r, version):
    shape = r.shape(1, 4, zero=False)
    depth = r.int(1, len(shape))
    cells = math.prod(shape[:depth])
    n = r.int(1, cells)
    flat = r.rng.permutation(cells)[:n]
    dtype = r.pick(np.float32, np.int64)
    attributes = {}
    if version >= 16 and r.chance(0.7):
        flat = r.rng.integers(0, cells, n)
        attributes["reduction"] = r.pick("add", "mul", *(["min", "max"] if version >= 18 else []))
    indices = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
    return Case([r.array(shape, dtype), indices, r.array([n, *shape[depth:]], dtype)], **attributes)


def shape_of(r, version):
    shape = r.shape(0, 5)
    attributes = {"start": r.int(-6, 6), "end": r.int(-6, 6)} if version >= 15 and r.chance() else {}
    return Case([r.array(shape, r.pick(*ANY))], **attributes)


def constant_of_shape(r, version):
    value = r.array([1], r.pick(np.float32, np.int64, np.bool_, np.uint8))
    return Case([ints(*r.shape())], **({"value": numpy_helper.from_array(value)} if r.chance(0.8) else {}))


def range_(r, version):
    dtype = r.pick(np.float32, np.float64, np.int64, np.int32)
    start, count, step = r.int(-5, 5), r.int(0, 9), r.pick(1, 2, -1, -3)
    return Case([np.array(v, dtype) for v in (start, start + count * step, step)])


def one_hot(r, version):
    depth = r.int(1, 6)
    low = -depth - 2 if version >= 11 else 0
    shape = r.shape(1, 3)
    indices = r.rng.integers(low, depth + 2, shape).astype(np.int64)
    return Case([indices, np.array(depth, np.int64), r.array([2])], axis=r.int(-len(shape) - 1, len(shape)))


def trilu(r, version):
    x = r.array(r.shape(2, 4), r.pick(np.float32, np.int64, np.float64))
    return Case([x, np.array(r.int(-4, 4), np.int64)] if r.chance() else [x], upper=r.int(0, 1))


def depth_space(to_depth):
    def make(r, version):
        b = r.int(1, 3)
        n, c, h, w = (r.int(1, 3) for _ in range(4))
        if to_depth:
            return Case([r.array([n, c, h * b, w * b])], blocksize=b)
        mode = {"mode": r.pick("DCR", "CRD")} if version >= 11 else {}
        return Case([r.array([n, c * b * b, h, w])], blocksize=b, **mode)

    return make


def reverse_sequence(r, version):
    time_axis = r.int(0, 1)
    shape = r.shape(2, 4, zero=False)
    lengths = r.rng.integers(1, shape[time_axis] + 1, shape[1 - time_axis]).astype(np.int64)
    return Case([r.array(shape), lengths], time_axis=time_axis, batch_axis=1 - time_axis)


def cum_sum(r, version):
    shape = r.shape(1, 4)
    x = r.array(shape, r.pick(np.float32, np.float64, np.int32, np.int64))
    return Case([x, np.array(r.axis(len(shape)), r.pick(*INDICES))], exclusive=r.int(0, 1), reverse=r.int(0, 1))


def top_k(r, version):
    shape = r.shape(1, 4, zero=False)
    axis = r.axis(len(shape)) if version >= 11 else r.int(0, len(shape) - 1)
    x = r.rng.permutation(math.prod(shape)).reshape(shape).astype(
        r.pick(np.float32, np.int64) if version >= 11 else np.float32)
    k = r.int(1, shape[axis])
    if version < 10:
        return Case([x], 2, axis=axis, k=k)
    return Case([x, ints(k)], 2, axis=axis, **({"largest": r.int(0, 1)} if version >= 11 else {}))


def nonzero(r, version):
    x = r.array(r.shape(1, 4), r.pick(np.float32, np.int64, np.bool_, np.uint8))
    return Case([x * r.array(x.shape, np.bool_)])


def einsum(r, version):
    equation = r.pick("ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "i,i->", "...ij,...jk->...ik", "ijk,ik->j",
                      "bhid,bhjd->bhij", "ij,ij->", "i,j->ij")
    extents = {}
    inputs = []
    lead = r.shape(0, 1, zero=False)
    for term in equation.split("->")[0].split(","):
        shape = [*lead] if term.startswith("...") else []
        shape += [extents.setdefault(c, r.int(1, 5)) for c in term.replace("...", "")]
        inputs.append(r.array(shape, np.float32))
    return Case(inputs, equation=equation)


# ---- reductions, norms, windows ----


def reduce_(r, version, attribute_until, dtypes):
    shape = r.shape(0 if version >= 13 else 1, 4, zero=False)
    axes = r.axes(len(shape), 1) if shape else []
    if version < 11:
        axes = [a % len(shape) for a in axes]
    x = r.array(shape, r.pick(*dtypes), 0.3, 2.0)
    keep = {"keepdims": r.int(0, 1)}
    if not axes or r.chance(0.2):
        return Case([x], **keep)
    if version < attribute_until:
        return Case([x], axes=sorted(axes), **keep)
    if r.chance(0.2):
        return Case([x, ints()], noop_with_empty_axes=r.int(0, 1), **keep)
    return Case([x, ints(*axes)], **keep)


def reduction(attribute_until=18, dtypes=(np.float32, np.float32, np.int32, np.float64)):
    return lambda r, version: reduce_(r, version, attribute_until, dtypes)


def arg_reduction(r, version):
    shape = r.shape(1, 4, zero=False)
    axis = r.axis(len(shape)) if version >= 11 else r.int(0, len(shape) - 1)
    x = r.rng.integers(-3, 4, shape).astype(r.pick(np.float32, np.int32))
    last = {"select_last_index": r.int(0, 1)} if version >= 12 else {}
    return Case([x], axis=axis, keepdims=r.int(0, 1), **last)


def softmax(r, version):
    shape = r.shape(1, 4, zero=False)
    axis = r.axis(len(shape)) if version >= 11 else r.int(0, len(shape) - 1)
    return Case([r.array(shape, r.pick(*(np.float32, np.float64)))], axis=axis)


def layer_norm(r, version):
    shape = r.shape(1, 4, zero=False)
    axis = r.axis(len(shape))
    tail = shape[axis % len(shape) :]
    return Case([r.array(shape), r.array(tail), *([r.array(tail)] if r.chance() else [])], axis=axis, epsilon=1e-3)


def image(r, low=1, high=3, channels=None, least=1, most=7):
    return [r.int(1, 2), channels or r.int(1, 4), *[r.int(least, most) for _ in range(r.int(low, high))]]


def batch_norm(r, version):
    shape = [r.int(1, 3), r.int(1, 5), *r.shape(0, 3, zero=False)]
    c = shape[1]
    return Case([r.array(shape), r.array([c]), r.array([c]), r.array([c]), r.array([c], low=0.5)], epsilon=1e-3)


def instance_norm(r, version):
    shape = image(r)
    return Case([r.array(shape), r.array([shape[1]]), r.array([shape[1]])], epsilon=1e-2)


def group_norm(r, version):
    groups = r.int(1, 3)
    shape = image(r, channels=groups * r.int(1, 3))
    n = groups if version < 21 else shape[1]
    return Case([r.array(shape), r.array([n]), r.array([n])], num_groups=groups, epsilon=1e-2)


def lrn(r, version):
    return Case([r.array(image(r, 2, 2))], size=r.pick(1, 3, 5), alpha=0.01, beta=0.6, bias=1.5)


def global_pool(r, version):
    return Case([r.array(image(r), r.pick(*F32))])


def window(r, n, extents, dilate):
    kernel = [r.int(1, min(3, e)) for e in extents]
    attributes = {"kernel_shape": kernel, "strides": [r.int(1, 2) for _ in range(n)]}
    if dilate and r.chance(0.3):
        attributes["dilations"] = [r.int(1, 2) if (k - 1) * 2 < e else 1 for k, e in zip(kernel, extents)]
    if r.chance(0.25):
        attributes["auto_pad"] = r.pick("SAME_UPPER", "SAME_LOWER", "VALID")
        attributes.pop("dilations", None)
    else:
        attributes["pads"] = [r.int(0, k - 1) for _ in range(2) for k in kernel]
    return attributes


def max_pool(r, version):
    shape = image(r, least=3)
    attributes = window(r, len(shape) - 2, shape[2:], version >= 10)
    if version >= 10 and "auto_pad" not in attributes:
        attributes["ceil_mode"] = r.int(0, 1)
    # Two outputs need no ties.
    x = r.rng.permutation(math.prod(shape)).reshape(shape).astype(np.float32)
    return Case([x], r.int(1, 2) if version >= 8 else 1, **attributes)


def average_pool(r, version):
    shape = image(r, least=3)
    attributes = window(r, len(shape) - 2, shape[2:], version >= 19)
    if version >= 10 and "auto_pad" not in attributes and version >= 19:
        attributes["ceil_mode"] = r.int(0, 1)
    return Case([r.array(shape)], count_include_pad=r.int(0, 1), **attributes)


def resize(r, version):
    shape = [1, r.int(1, 3), r.int(2, 6), r.int(2, 6)]
    scales = np.array([1, 1, r.pick(0.5, 2.0, 1.5, 3.0), r.pick(0.5, 2.0, 1.5)], np.float32)
    x = r.array(shape)
    mode = r.pick("nearest", "linear")
    if version == 10:
        return Case([x, np.maximum(scales, 1)], constant=(1,), mode=mode)
    attributes = {"mode": mode, "coordinate_transformation_mode": r.pick("half_pixel", "asymmetric", "align_corners",
                                                                         "pytorch_half_pixel")}
    if mode == "nearest":
        attributes["nearest_mode"] = r.pick("round_prefer_floor", "floor", "ceil", "round_prefer_ceil")
    if r.chance():
        sizes = ints(1, shape[1], r.int(1, 8), r.int(1, 8))
        return Case([x, None if version >= 13 else np.zeros(0, np.float32),
                     None if version >= 13 else np.zeros(0, np.float32), sizes], constant=(3,), **attributes)
    return Case([x, None if version >= 13 else np.zeros(0, np.float32), scales], constant=(2,), **attributes)


def upsample(r, version):
    x = r.array([1, r.int(1, 3), r.int(1, 5), r.int(1, 5)])
    scales = [1.0, 1.0, r.pick(1.0, 2.0, 3.0), r.pick(1.0, 2.0)]
    mode = r.pick("nearest", "linear")
    if version < 9:
        return Case([x], scales=scales, mode=mode)
    return Case([x, np.array(scales, np.float32)], constant=(1,), mode=mode)


# ---- products ----


def mat_mul(r, version):
    dtype = r.pick(*(F32 if version < 9 else (np.float32, np.float32, np.float64, np.int32)))
    m, k, n = r.int(1, 20), r.int(1, 40), r.int(1, 40)
    lead = r.shape(0, 2, zero=False)
    a, b = [*r.broadcastable(lead), m, k], [*r.broadcastable(lead), k, n]
    a, b = (a[-1:] if r.chance(0.1) else a), (b[-2:-1] if r.chance(0.1) else b)
    return Case([r.array(a, dtype, -1, 1), r.array(b, dtype, -1, 1)])


def gemm(r, version):
    m, k, n = r.int(1, 20), r.int(1, 40), r.int(1, 40)
    ta, tb = r.int(0, 1), r.int(0, 1)
    dtype = r.pick(*(F32 if version < 9 else (np.float32, np.float32, np.float64)))
    c = r.pick([m, n], [n], [1, n], [m, 1], [1], [])
    inputs = [r.array([k, m] if ta else [m, k], dtype, -1, 1), r.array([n, k] if tb else [k, n], dtype, -1, 1)]
    if version < 11 or r.chance(0.8):
        inputs.append(r.array(c, dtype))
    return Case(inputs, transA=ta, transB=tb, alpha=r.pick(1.0, 0.5), beta=r.pick(1.0, 2.0))


def conv_shapes(r, transposed=False):
    n = r.int(1, 3)
    group = r.pick(1, 1, 2, 3)
    c_in, c_out = group * r.int(1, 4), group * r.int(1, 5)
    if r.chance(0.2):
        group, c_out = c_in, c_in * r.int(1, 2)
    extents = [r.int(3, 8 if n < 3 else 5) for _ in range(n)]
    kernel = [r.int(1, 3) for _ in range(n)]
    weights = [c_in, c_out // group, *kernel] if transposed else [c_out, c_in // group, *kernel]
    return n, group, c_in, c_out, extents, kernel, weights


def conv(r, version):
    n, group, c_in, c_out, extents, kernel, weights = conv_shapes(r)
    attributes = {"group": group, "strides": [r.int(1, 2) for _ in range(n)]}
    if r.chance(0.3):
        attributes["auto_pad"] = r.pick("SAME_UPPER", "SAME_LOWER", "VALID")
    elif r.chance(0.2):  # taps that reach across the whole image
        dilations = [r.int(1, e + 2) for e in extents]
        begins = [r.int(0, d * (k - 1)) for d, k in zip(dilations, kernel)]
        ends = [d * (k - 1) - p + r.int(0, 2) for d, k, p in zip(dilations, kernel, begins)]
        attributes |= {"dilations": dilations, "pads": begins + ends}
    else:
        attributes["pads"] = [r.int(0, 2) for _ in range(2 * n)]
        if r.chance(0.3):
            attributes["dilations"] = [r.int(1, 2) if (k - 1) * 2 < e else 1 for k, e in zip(kernel, extents)]
    return Case([r.array([r.int(1, 2), c_in, *extents]), r.array(weights, low=-1, high=1),
                 *([r.array([c_out])] if r.chance() else [])], **attributes)


def conv_transpose(r, version):
    n, group, c_in, c_out, extents, kernel, weights = conv_shapes(r, True)
    strides = [r.int(1, 3) for _ in range(n)]
    attributes = {"group": group, "strides": strides, "dilations": [r.int(1, 2) for _ in range(n)]}
    if r.chance(0.3):
        attributes["output_padding"] = [r.int(0, s - 1) for s in strides]
    attributes["pads"] = [r.int(0, k - 1) for _ in range(2) for k in kernel]
    return Case([r.array([r.int(1, 2), c_in, *extents]), r.array(weights, low=-1, high=1),
                 *([r.array([c_out])] if r.chance() else [])], **attributes)


def recurrent(gates, states):
    def make(r, version):
        t, n, i, h = r.int(1, 5), r.int(1, 3), r.int(1, 9), r.int(1, 20)
        direction = r.pick("forward", "reverse", "bidirectional")
        d = 2 if direction == "bidirectional" else 1
        inputs = [r.array([t, n, i]), r.array([d, gates * h, i], low=-0.5, high=0.5),
                  r.array([d, gates * h, h], low=-0.5, high=0.5)]
        bias, lengths, state = r.chance(), r.chance(0.3), r.chance()
        inputs += [r.array([d, 2 * gates * h]) if bias else None,
                   r.rng.integers(1, t + 1, n).astype(np.int32) if lengths else None]
        inputs += [r.array([d, n, h]) if state else None for _ in range(states)]
        if gates == 4 and r.chance(0.3):
            inputs.append(r.array([d, 3 * h]))
        attributes = {"hidden_size": h, "direction": direction}
        if gates == 3:
            attributes["linear_before_reset"] = r.int(0, 1)
        if r.chance(0.2):
            attributes["clip"] = 1.0
        return Case(inputs, 1 + states, **attributes)

    return make


# ---- quantized ----


def quantize(r, version):
    shape = r.shape(1, 4, zero=False)
    dtype = r.pick(np.uint8, np.int8)
    axis = r.axis(len(shape)) if version >= 13 and r.chance() else None
    n = [shape[axis]] if axis is not None else []
    zero = r.rng.integers(0, 20, n).astype(dtype)
    return Case([r.array(shape, high=20.0), r.array(n, low=0.05, high=0.3), *([zero] if r.chance(0.8) else [])],
                **({"axis": axis} if axis is not None else {}))


def dequantize(r, version):
    shape = r.shape(1, 4, zero=False)
    dtype = r.pick(np.uint8, np.int8, np.int32)
    axis = r.axis(len(shape)) if version >= 13 and r.chance() else None
    n = [shape[axis]] if axis is not None else []
    inputs = [r.array(shape, dtype, 0.0, 20.0), r.array(n, low=0.05, high=0.3)]
    if dtype != np.int32 and r.chance(0.8):
        inputs.append(r.rng.integers(0, 20, n).astype(dtype))
    return Case(inputs, **({"axis": axis} if axis is not None else {}))


def whole(r, shape, dtype):
    i = np.iinfo(dtype)
    return r.rng.integers(i.min, i.max + 1, shape).astype(dtype)


def mat_mul_integer(r, version):
    a, b = r.pick((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    m, k, n = r.int(1, 9), r.int(1, 30), r.int(1, 20)
    return Case([whole(r, [m, k], a), whole(r, [k, n], b), np.array(r.int(0, 100), a), np.array(r.int(0, 100), b)])


def q_linear_mat_mul(r, version):
    m, k, n = r.int(1, 9), r.int(1, 30), r.int(1, 20)
    scale = lambda: np.array(r.rng.uniform(0.01, 0.02), np.float32)
    zero = lambda: np.array(r.int(90, 150), np.uint8)
    weights, weight_zero = r.pick((np.uint8, zero()), (np.int8, np.array(r.int(-20, 20), np.int8)))
    return Case([whole(r, [m, k], np.uint8), scale(), zero(), whole(r, [k, n], weights), scale(), weight_zero,
                 np.array(0.2, np.float32), zero()])


def integer_conv(r):
    n, group, c_in, c_out, extents, kernel, weights = conv_shapes(r)
    while n > 2:
        n, group, c_in, c_out, extents, kernel, weights = conv_shapes(r)
    attributes = {"group": group, "strides": [r.int(1, 2) for _ in range(n)], "pads": [r.int(0, 1) for _ in range(2 * n)]}
    return [1, c_in, *extents], weights, c_out, attributes


def conv_integer(r, version):
    x, w, c_out, attributes = integer_conv(r)
    a, b = (r.pick(np.uint8, np.int8) for _ in range(2))
    return Case([whole(r, x, a), whole(r, w, b), np.array(r.int(0, 100), a), np.array(r.int(0, 100), b)], **attributes)


def q_linear_conv(r, version):
    x, w, c_out, attributes = integer_conv(r)
    channels = [c_out] if r.chance() else []
    inputs = [whole(r, x, np.uint8), np.array(0.02, np.float32), np.array(r.int(90, 150), np.uint8),
              whole(r, w, np.int8), r.array(channels, low=0.01, high=0.02), np.zeros(channels, np.int8),
              np.array(0.3, np.float32), np.array(128, np.uint8)]
    if r.chance():
        inputs.append(r.rng.integers(-500, 500, c_out).astype(np.int32))
    return Case(inputs, **attributes, constant=(3, 4, 5))


# ---- control flow ----


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def if_(r, version):
    x = r.array(r.shape(1, 3))
    n = helper.make_tensor_value_info("o", TensorProto.FLOAT, None)
    branch = lambda op: helper.make_graph([helper.make_node(op, ["x1"], ["o"])], op, [], [n])
    ops = r.pick(("Neg", "Exp"), ("Abs", "Tanh"), ("Relu", "Sigmoid"))
    return Case([np.array(r.chance()), x], then_branch=branch(ops[0]), else_branch=branch(ops[1]))


def loop(r, version):
    shape = r.shape(1, 2, zero=False)
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "v"], ["w"]), helper.make_node("Identity", ["c"], ["c2"]),
         helper.make_node("Neg", ["w"], ["s"])],
        "body", [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("v", 1, shape)],
        [value("c2", TensorProto.BOOL, []), value("w", 1, shape), value("s", 1, shape)])
    return Case([np.array(r.int(0, 5), np.int64), np.array(True), r.array(shape)], 2, body=body)


def scan(r, version):
    t, n = r.int(1, 5), r.int(1, 4)
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Mul", ["c", "b"], ["d"])],
        "body", [value("a", 1, [n]), value("b", 1, [n])], [value("c", 1, [n]), value("d", 1, [n])])
    if version < 9:
        b = r.int(1, 2)
        return Case([None, r.array([b, n]), r.array([b, t, n])], 2, body=body, num_scan_inputs=1)
    return Case([r.array([n]), r.array([t, n])], 2, body=body, num_scan_inputs=1,
                scan_input_directions=[r.int(0, 1)], scan_output_directions=[r.int(0, 1)])


COMPARE = (np.float32, np.float64, np.int32, np.int64)
alpha = lambda r: float(r.rng.uniform(0.1, 1.5))

GENERATORS = {
    "Abs": unary((np.float32, np.float64, np.int32, np.int64, np.int8)), "Add": binary(NUMBERS[:4]),
    "And": binary((np.bool_,)), "ArgMax": arg_reduction, "ArgMin": arg_reduction, "AveragePool": average_pool,
    "BatchNormalization": batch_norm, "Cast": cast, "CastLike": cast_like, "Ceil": unary(), "Clip": clip,
    "Concat": concat, "Constant": constant, "ConstantOfShape": constant_of_shape, "Conv": conv,
    "ConvInteger": conv_integer, "ConvTranspose": conv_transpose, "Cos": unary(F32, -20.0, 20.0), "CumSum": cum_sum,
    "DepthToSpace": depth_space(False), "DequantizeLinear": dequantize, "Div": divide, "Dropout": dropout,
    "DynamicQuantizeLinear": lambda r, version: Case([r.array(r.shape(1, 3, zero=False))], 3), "Einsum": einsum,
    "Elu": unary(F32, alpha=alpha), "Equal": binary((*COMPARE, np.bool_)), "Erf": unary(F32),
    "Exp": unary((np.float32, np.float64)), "Expand": expand, "Flatten": flatten, "Floor": unary(),
    "GRU": recurrent(3, 1), "Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd,
    "Gelu": unary(F32, approximate=lambda r: r.pick("none", "tanh")), "Gemm": gemm,
    "GlobalAveragePool": global_pool, "GlobalMaxPool": global_pool, "Greater": binary(COMPARE),
    "GreaterOrEqual": binary(COMPARE), "GroupNormalization": group_norm,
    "HardSigmoid": unary(F32, alpha=alpha, beta=alpha), "HardSwish": unary(F32, -5.0, 5.0),
    "Identity": unary(ANY), "If": if_, "InstanceNormalization": instance_norm, "IsInf": is_inf, "IsNaN": is_nan,
    "LRN": lrn, "LSTM": recurrent(4, 2), "LayerNormalization": layer_norm,
    "LeakyRelu": unary(F32, alpha=alpha), "Less": binary(COMPARE), "LessOrEqual": binary(COMPARE),
    "Log": unary((np.float32, np.float64), 0.01, 9.0), "LogSoftmax": softmax, "Loop": loop, "MatMul": mat_mul,
    "MatMulInteger": mat_mul_integer, "Max": variadic(NUMBERS[:4]), "MaxPool": max_pool, "Min": variadic(NUMBERS[:4]),
    "Mish": unary(F32), "Mod": modulo, "Mul": binary(NUMBERS[:4]),
    "Neg": unary((np.float32, np.float64, np.int32, np.int64, np.int8)), "NonZero": nonzero,
    "Not": unary((np.bool_,)), "OneHot": one_hot, "Or": binary((np.bool_,)), "PRelu": p_relu, "Pad": pad,
    "Pow": power, "QLinearConv": q_linear_conv, "QLinearMatMul": q_linear_mat_mul, "QuantizeLinear": quantize,
    "RNN": recurrent(1, 1), "Range": range_, "Reciprocal": unary((np.float32, np.float64), 0.1, 3.0),
    "ReduceL2": reduction(), "ReduceMax": reduction(), "ReduceMean": reduction(dtypes=(np.float32, np.float64)),
    "ReduceMin": reduction(), "ReduceProd": reduction(dtypes=(np.float32, np.float64)),
    "ReduceSum": reduction(13), "Relu": unary((np.float32, np.float64)), "Reshape": reshape, "Resize": resize,
    "ReverseSequence": reverse_sequence, "Round": unary(FLOATS), "Scatter": scatter_elements,
    "ScatterElements": scatter_elements, "ScatterND": scatter_nd, "Shape": shape_of,
    "Sigmoid": unary((np.float32, np.float64)), "Sign": unary((np.float32, np.float64, np.int32, np.int64)),
    "Sin": unary((np.float32, np.float64), -20.0, 20.0), "Size": unary(ANY), "Slice": slice_, "Softmax": softmax,
    "Softplus": unary(F32), "SpaceToDepth": depth_space(True), "Split": split,
    "Sqrt": unary((np.float32, np.float64), 0.0, 9.0), "Squeeze": squeeze, "Sub": binary(NUMBERS[:4]),
    "Sum": variadic((np.float32, np.float64)), "Tanh": unary((np.float32, np.float64)), "Tile": tile, "TopK": top_k,
    "Transpose": transpose, "Trilu": trilu, "Unsqueeze": unsqueeze, "Upsample": upsample, "Where": where,
    "Xor": binary((np.bool_,)), "Scan": scan,
}
