"""Operators that move, pick and make data, against onnxruntime (or onnx's reference, where onnxruntime lacks a
type): random shapes of rank 0 to 6, empty tensors, negative axes and indices, every element type.

A test makes many one-node cases from its seed and checks them as one model, whose outputs are theirs."""

import math

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from harness import check_against, linnet, reference, write_case
from linnet_ctypes import Model, Session

OPSET = 21
FLOATS = [np.float32, np.float64, np.float16]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
NUMBERS = FLOATS + INTEGERS
ANY = NUMBERS + [np.bool_]


# ---- random pieces ----

def pick(rng, values):
    return values[rng.integers(len(values))]


def shape_of(rng, low=0, high=6, largest=5, empty=0.05):
    """Extents of a random rank in [low, high]; sometimes one is 0, often one is 1."""
    dims = [int(rng.integers(1, largest + 1)) for _ in range(rng.integers(low, high + 1))]
    if dims and rng.random() < empty:
        dims[rng.integers(len(dims))] = 0
    return dims


def tensor(rng, dims, dtype):
    if dtype == np.bool_:
        return rng.random(dims) < 0.5
    if np.issubdtype(dtype, np.floating):
        return np.asarray(rng.integers(-8, 9, dims) / 4).astype(dtype)
    low = 0 if np.issubdtype(dtype, np.unsignedinteger) else -9
    return np.asarray(rng.integers(low, 10, dims)).astype(dtype)


def signed_axis(rng, axis, rank):
    return int(axis) - (rank if rng.random() < 0.5 else 0)


def ints(values):
    return np.array(values, np.int64)


class Case:
    def __init__(self, op, inputs, outputs=1, **attributes):
        self.op, self.inputs, self.outputs, self.attributes = op, inputs, outputs, attributes

    def node(self, name):
        ins = [f"{name}_i{k}" if x is not None else "" for k, x in enumerate(self.inputs)]
        outs = [f"{name}_o{k}" for k in range(self.outputs)]
        return helper.make_node(self.op, ins, outs, name, **self.attributes)

    def feeds(self, name):
        return {f"{name}_i{k}": x for k, x in enumerate(self.inputs) if x is not None}


def model_of(nodes, feeds, outputs):
    """outputs: (name, element type or 0)"""
    given = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
             for n, x in feeds.items()]
    wanted = [helper.make_tensor_value_info(n, t, None) if t else helper.make_empty_tensor_value_info(n)
              for n, t in outputs]
    graph = helper.make_graph(nodes, "g", given, wanted)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def expected_of(case, name):
    """Outputs by onnxruntime, or by onnx's reference if that has no kernel for the type."""
    node, feeds = case.node(name), case.feeds(name)
    model = model_of([node], feeds, [(o, 0) for o in node.output])
    try:
        return reference(model, feeds)
    except Exception:
        return ReferenceEvaluator(model).run(None, feeds)


def check_cases(tmp_path, cases):
    nodes, feeds, expected = [], {}, []
    for k, case in enumerate(cases):
        name = f"n{k}"
        nodes.append(case.node(name))
        feeds.update(case.feeds(name))
        expected += list(zip(nodes[-1].output, expected_of(case, name)))
    outputs = [(n, helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype)) for n, x in expected]
    folder = write_case(tmp_path, model_of(nodes, feeds, outputs), feeds, [x for _, x in expected])
    for way in ((), ("--threads", "2"), ("--bake", "rest")):
        done = linnet("verify", folder / "model.onnx", *way)
        assert done.returncode == 0, f"verify {' '.join(way)}\n{done.stdout}{done.stderr}"


# ---- one generator per operator ----

def gen_transpose(rng):
    dims = shape_of(rng, largest=pick(rng, [4, 20]), high=4)
    perm = {"perm": [int(p) for p in rng.permutation(len(dims))]} if dims and rng.random() < 0.9 else {}
    return Case("Transpose", [tensor(rng, dims, pick(rng, ANY))], **perm)


def gen_large_copies(rng):
    """Long lines and many tiles: work is cut into pieces and shared."""
    dims = pick(rng, [[3, 5000], [5000, 3], [70, 90], [9, 40, 50], [300, 7, 20], [21, 57, 6], [20000], [130, 130]])
    x = tensor(rng, dims, pick(rng, ANY))
    axis = int(rng.integers(len(dims)))
    step = pick(rng, [-1, 2, 3])
    return pick(rng, [
        Case("Transpose", [x], perm=[int(p) for p in rng.permutation(len(dims))]),
        Case("Slice", [x, ints([-1 if step < 0 else 1]), ints([-2**63 if step < 0 else 2**62]), ints([axis]),
                       ints([step])]),
        Case("Expand", [x, ints([3] + [1] * len(dims))]),
        Case("Tile", [x, ints(rng.integers(1, 3, len(dims)))]),
        Case("Concat", [x, x], axis=axis),
        Case("Expand", [x[..., :1], ints([1] * (len(dims) - 1) + [700])])])


def gen_short_lines(rng):
    """Many lines of a few bytes, parts of the output that are alike, and axes of one element."""
    dims = [int(rng.integers(4, 12)), int(rng.integers(12, 60)), int(rng.integers(1, 41))]
    x = tensor(rng, dims, pick(rng, ANY))
    mode = pick(rng, ["constant", "reflect", "edge", "wrap"])
    small = tensor(rng, [3, int(rng.integers(1, 200)), int(rng.integers(1, 9)), int(rng.integers(1, 20))], x.dtype)
    return pick(rng, [
        Case("Concat", [x, x, x[:, :, :7]], axis=2),
        Case("Split", [x, ints([dims[2] // 3, dims[2] - dims[2] // 3])], 2, axis=2),
        Case("Tile", [x, ints(rng.integers(1, 12, 3))]),
        Case("Pad", [x, ints(rng.integers(0, 4, 6)), tensor(rng, [], x.dtype) if mode == "constant" else None,
                     ints([0, 1, 2])] if dims[2] > 4 else [x, ints([2, 0, 3, 0]), None, ints([0, 1])], mode=mode),
        Case("Trilu", [small, np.array(int(rng.integers(-4, 5)))], upper=int(rng.integers(2))),
        Case("TopK", [np.abs(x.astype(np.float32))[:1], ints([1])], 2, axis=0)])


def gen_slice(rng):
    dims = shape_of(rng, low=1, largest=pick(rng, [4, 12]))
    axes = rng.permutation(len(dims))[:rng.integers(1, len(dims) + 1)]
    far = 2**63 - 1
    starts = [int(pick(rng, [rng.integers(-14, 15), 0, -far, far])) for _ in axes]
    steps = [int(pick(rng, [1, 1, 2, -1, -3, far])) for _ in axes]
    # Backwards, onnxruntime takes INT_MAX for "no end"; the specification clamps it like any other.
    ends = [int(pick(rng, [rng.integers(-14, 15), -far, far if s > 0 else -far])) for s in steps]
    index = pick(rng, [np.int64, np.int32])
    clamp = lambda v: np.clip(v, np.iinfo(index).min + 1, np.iinfo(index).max).astype(index)
    inputs = [tensor(rng, dims, pick(rng, ANY)), clamp(starts), clamp(ends),
              np.array([signed_axis(rng, a, len(dims)) for a in axes], index)]
    return Case("Slice", inputs + [clamp(steps)] if rng.random() < 0.8 else inputs)


def gen_concat(rng):
    dims = shape_of(rng, low=1, high=5)
    axis, dtype = rng.integers(len(dims)), pick(rng, ANY)
    parts = []
    for _ in range(rng.integers(1, 5)):
        dims[axis] = int(rng.integers(0, 5))
        parts.append(tensor(rng, dims, dtype))
    return Case("Concat", parts, axis=signed_axis(rng, axis, len(dims)))


def gen_split(rng):
    dims = shape_of(rng, low=1, high=5, largest=7, empty=0)
    axis, n = rng.integers(len(dims)), int(rng.integers(1, 4))
    x = tensor(rng, dims, pick(rng, ANY))
    if rng.random() < 0.5:
        cuts = np.sort(rng.integers(0, dims[axis] + 1, n - 1))
        parts = np.diff(np.concatenate([[0], cuts, [dims[axis]]]))
        return Case("Split", [x, ints(parts)], n, axis=signed_axis(rng, axis, len(dims)))
    n = min(n, dims[axis])
    while -(-dims[axis] // n) * (n - 1) >= dims[axis] and n > 1:
        n -= 1
    return Case("Split", [x], n, axis=signed_axis(rng, axis, len(dims)), num_outputs=n)


def gen_pad(rng):
    dims = shape_of(rng, low=1, high=4, largest=pick(rng, [4, 20]), empty=0)
    mode = pick(rng, ["constant", "reflect", "edge", "wrap"])
    axes = rng.permutation(len(dims))[:rng.integers(1, len(dims) + 1)]
    low = [-dims[a] // 2 + 1 if mode == "constant" else 0 for a in axes] * 2
    high = [dims[a] if mode in ("reflect", "wrap") else 4 for a in axes] * 2
    pads = [int(rng.integers(min(a, b - 1), b)) for a, b in zip(low, high)]
    # onnx's reference takes no negative pads: then onnxruntime must have the type
    x = tensor(rng, dims, pick(rng, ANY if min(pads) >= 0 else [np.float32, np.float64, np.int32, np.int64, np.uint8]))
    value = tensor(rng, [], x.dtype) if mode == "constant" and rng.random() < 0.7 else None
    named = ints([signed_axis(rng, a, len(dims)) for a in axes])
    return Case("Pad", [x, ints(pads), value, named], mode=mode)


def gen_expand(rng):
    dims = shape_of(rng, high=5)
    wide = [int(rng.integers(1, 4)) for _ in range(rng.integers(0, 2))] if len(dims) < 6 else []
    dims = [1 if rng.random() < 0.4 else d for d in dims]
    shape = wide + [pick(rng, [0, 1, 2, 3, 4]) if d == 1 else pick(rng, [1, d]) for d in dims]
    return Case("Expand", [tensor(rng, dims, pick(rng, ANY)), ints(shape)])


def gen_tile(rng):
    dims = shape_of(rng, high=4)
    repeats = rng.integers(0 if rng.random() < 0.1 else 1, 4, len(dims))
    return Case("Tile", [tensor(rng, dims, pick(rng, ANY)), ints(repeats)])


def gen_gather(rng):
    dims = shape_of(rng, low=1, high=4, empty=0)
    axis = rng.integers(len(dims))
    indices = rng.integers(-dims[axis], dims[axis], shape_of(rng, high=3)).astype(pick(rng, [np.int64, np.int32]))
    return Case("Gather", [tensor(rng, dims, pick(rng, ANY)), np.asarray(indices)],
                axis=signed_axis(rng, axis, len(dims)))


def element_indices(rng, dims, axis):
    wanted = [int(rng.integers(1, d + 1)) for d in dims]
    wanted[axis] = int(rng.integers(1, 6))
    return rng.integers(-dims[axis], dims[axis], wanted).astype(pick(rng, [np.int64, np.int32]))


def gen_gather_elements(rng):
    dims = shape_of(rng, low=1, high=4, empty=0)
    axis = rng.integers(len(dims))
    return Case("GatherElements", [tensor(rng, dims, pick(rng, ANY)), element_indices(rng, dims, axis)],
                axis=signed_axis(rng, axis, len(dims)))


def tuples(rng, dims, outer):
    depth = int(rng.integers(1, len(dims) + 1))
    columns = [rng.integers(-d, d, outer + [1]) for d in dims[:depth]]
    return np.concatenate(columns, -1).astype(np.int64)


def gen_gather_nd(rng):
    dims = shape_of(rng, low=1, high=5, empty=0)
    batch = int(rng.integers(0, len(dims)))
    index = tuples(rng, dims[batch:], dims[:batch] + shape_of(rng, high=2, empty=0))
    return Case("GatherND", [tensor(rng, dims, pick(rng, ANY)), index], batch_dims=batch)


def gen_scatter_elements(rng):
    dims = shape_of(rng, low=1, high=4, empty=0)
    axis, reduction = rng.integers(len(dims)), pick(rng, ["none", "add", "mul", "min", "max"])
    summed = [np.float32, np.float64, np.int32, np.int64, np.uint8, np.int8]
    dtype = pick(rng, ANY if reduction == "none" else summed)
    indices = element_indices(rng, dims, axis)
    return Case("ScatterElements", [tensor(rng, dims, dtype), indices, tensor(rng, indices.shape, dtype)],
                axis=signed_axis(rng, axis, len(dims)), reduction=reduction)


def gen_scatter_nd(rng):
    dims = shape_of(rng, low=1, high=4, empty=0)
    reduction = pick(rng, ["none", "add", "mul", "min", "max"])
    dtype = pick(rng, ANY if reduction == "none" else [np.float32, np.float64, np.int32, np.int64])
    index = tuples(rng, dims, shape_of(rng, high=2, empty=0))
    updates = tensor(rng, list(index.shape[:-1]) + dims[index.shape[-1]:], dtype)
    return Case("ScatterND", [tensor(rng, dims, dtype), index, updates], reduction=reduction)


def gen_reshape(rng):
    dims = shape_of(rng, high=5)
    flat = int(np.prod(dims))
    shape = pick(rng, [[flat], [1, flat, 1], [-1] if flat else [flat], dims, dims[::-1], [0] * len(dims)])
    allow = {"allowzero": 1} if 0 in dims and -1 not in shape else {}
    return Case("Reshape", [tensor(rng, dims, pick(rng, ANY)), ints(dims if allow else shape)], **allow)


def gen_squeeze(rng):
    dims = [pick(rng, [1, 1, 3]) for _ in range(rng.integers(0, 6))]
    ones = [signed_axis(rng, a, len(dims)) for a, d in enumerate(dims) if d == 1 and rng.random() < 0.7]
    x = tensor(rng, dims, pick(rng, ANY))
    return Case("Squeeze", [x, ints(ones)] if ones else [x])


def gen_unsqueeze(rng):
    dims, n = shape_of(rng, high=4), int(rng.integers(1, 3))
    axes = [signed_axis(rng, a, len(dims) + n) for a in rng.permutation(len(dims) + n)[:n]]
    return Case("Unsqueeze", [tensor(rng, dims, pick(rng, ANY)), ints(axes)])


def gen_flatten(rng):
    dims = shape_of(rng, high=5)
    return Case("Flatten", [tensor(rng, dims, pick(rng, ANY))], axis=int(rng.integers(-len(dims), len(dims) + 1)))


def gen_shape(rng):
    bounds = {k: int(rng.integers(-6, 7)) for k in ("start", "end") if rng.random() < 0.6}
    return Case("Shape", [tensor(rng, shape_of(rng), pick(rng, ANY))], **bounds)


def gen_size(rng):
    return Case("Size", [tensor(rng, shape_of(rng), pick(rng, ANY))])


def gen_constant_of_shape(rng):
    value = {"value": numpy_helper.from_array(tensor(rng, [1], pick(rng, ANY)))} if rng.random() < 0.8 else {}
    return Case("ConstantOfShape", [ints(shape_of(rng, high=4))], **value)


def gen_range(rng):
    dtype = pick(rng, [np.float32, np.float64, np.int16, np.int32, np.int64])
    start, limit = rng.integers(-20, 20, 2)
    delta = pick(rng, [-7, -2, -1, 1, 2, 3]) * (0.25 if np.issubdtype(dtype, np.floating) else 1)
    return Case("Range", [np.array(v, dtype) for v in (start, limit, delta)])


def gen_one_hot(rng):
    dims, depth = shape_of(rng, high=3), int(rng.integers(1, 6))
    indices = tensor(rng, dims, pick(rng, [np.int64, np.int32, np.float32]))
    if indices.dtype == np.float32:
        indices = np.round(indices)
    values = tensor(rng, [2], pick(rng, [np.float32, np.int64, np.int32]))
    return Case("OneHot", [indices, np.array(depth, np.int64), values], axis=int(rng.integers(-len(dims) - 1, len(dims) + 1)))


def gen_non_zero(rng):
    dtype = pick(rng, [np.float32, np.int32, np.int64, np.bool_, np.uint8])
    return Case("NonZero", [tensor(rng, shape_of(rng, low=1), dtype)])


def gen_compress(rng):
    dims = shape_of(rng, low=1, high=4, empty=0)
    axis = rng.integers(len(dims))
    axes = {"axis": signed_axis(rng, axis, len(dims))} if rng.random() < 0.6 else {}
    n = dims[axis] if axes else int(np.prod(dims))
    return Case("Compress", [tensor(rng, dims, pick(rng, ANY)), rng.random(rng.integers(1, n + 1)) < 0.6], **axes)


def gen_trilu(rng):
    dims = shape_of(rng, low=2, high=4)
    k = ints(rng.integers(-5, 6)) if rng.random() < 0.7 else None
    return Case("Trilu", [tensor(rng, dims, pick(rng, ANY)), np.array(k) if k is not None else None],
                upper=int(rng.integers(2)))


def gen_eye_like(rng):
    kind = {"dtype": helper.np_dtype_to_tensor_dtype(np.dtype(pick(rng, [np.float32, np.int32, np.int64, np.uint64])))}
    return Case("EyeLike", [tensor(rng, shape_of(rng, 2, 2), np.float32)], k=int(rng.integers(-4, 5)),
                **(kind if rng.random() < 0.7 else {}))


def gen_depth_to_space(rng):
    b, n, c, h, w = (int(v) for v in rng.integers(1, 4, 5))
    w *= int(rng.integers(1, 15))  # rows of what is mixed in vectors
    return Case("DepthToSpace", [tensor(rng, [n, c * b * b, h, w], pick(rng, [np.float32, np.float64, np.uint8]))],
                blocksize=b, mode=pick(rng, ["DCR", "CRD"]))


def gen_space_to_depth(rng):
    b, n, c, h, w = (int(v) for v in rng.integers(1, 4, 5))
    return Case("SpaceToDepth", [tensor(rng, [n, c, h * b, w * b], pick(rng, [np.float32, np.float64]))], blocksize=b)


def gen_reverse_sequence(rng):
    dims, batch = shape_of(rng, low=2, high=4, empty=0), int(rng.integers(2))
    lengths = ints(rng.integers(1, dims[1 - batch] + 1, dims[batch]))
    return Case("ReverseSequence", [tensor(rng, dims, pick(rng, ANY)), lengths],
                batch_axis=batch, time_axis=1 - batch)


def gen_cum_sum(rng):
    dims = shape_of(rng, low=1, high=3, largest=pick(rng, [4, 4, 70]))
    axis = rng.integers(len(dims))
    return Case("CumSum", [tensor(rng, dims, pick(rng, [np.float32, np.float64, np.int32, np.int64])),
                           np.array(signed_axis(rng, axis, len(dims)), pick(rng, [np.int64, np.int32]))],
                exclusive=int(rng.integers(2)), reverse=int(rng.integers(2)))


def gen_top_k(rng):
    dims = shape_of(rng, low=1, high=4, largest=9, empty=0)
    axis = rng.integers(len(dims))
    return Case("TopK", [tensor(rng, dims, pick(rng, NUMBERS)), ints([rng.integers(1, dims[axis] + 1)])], 2,
                axis=signed_axis(rng, axis, len(dims)), largest=int(rng.integers(2)))


def gen_unique(rng):
    dims = shape_of(rng, low=1, high=3, empty=0)
    axis = {"axis": signed_axis(rng, rng.integers(len(dims)), len(dims))} if rng.random() < 0.6 else {}
    return Case("Unique", [tensor(rng, dims, pick(rng, [np.float32, np.float64, np.int64, np.int8]))], 4,
                sorted=int(rng.integers(2)) if not axis else 1, **axis)


def gen_long_axes(rng):
    """Long rows are searched, sorted and picked from in blocks; drawn from few numbers, they are full of ties."""
    dims = pick(rng, [[2, 700], [600, 3], [3, 1500, 2], [5000], [7, 300], [2500, 1, 2]])
    axis = int(np.argmax(dims))
    x = tensor(rng, dims, pick(rng, NUMBERS))
    if np.issubdtype(x.dtype, np.floating) and rng.random() < 0.5:
        x = rng.standard_normal(dims).astype(x.dtype)
    wanted = list(dims)
    wanted[axis] = int(rng.integers(60, 200))
    below = int(pick(rng, [0, 0, -dims[axis]]))
    indices = rng.integers(below, dims[axis], wanted).astype(pick(rng, [np.int64, np.int32]))
    k = int(pick(rng, [1, 5, 8, 9, 40, 200, dims[axis] // 2, dims[axis]]))
    y = x.T.copy() if rng.random() < 0.5 else x
    return pick(rng, [
        Case("TopK", [x, ints([min(k, dims[axis])])], 2, axis=axis, largest=int(rng.integers(2))),
        Case("GatherElements", [x, indices], axis=axis),
        Case("Gather", [x, indices.reshape(-1)[:300]], axis=axis),
        Case("Unique", [x.astype(pick(rng, [np.float32, np.float64, np.int64, np.int8]))], 4, sorted=int(rng.integers(2))),
        Case("CumSum", [y.astype(pick(rng, [np.float64, np.int32, np.int64])), np.array(int(rng.integers(y.ndim)))],
             exclusive=int(rng.integers(2)), reverse=int(rng.integers(2)))])


EQUATIONS = ["ij,jk->ik", "ij,jk", "...ij,...jk->...ik", "bhid,bhjd->bhij", "ij->ji", "ii->i", "ii", "i,i->",
             "i,j->ij", "ij,j", "...i->...", "bij,bjk,bkl->bil", "ij,ik,il->jkl", "b...->...b", "abc->b", "iji->j",
             "ij,ji->", "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "ij,jk->ki", "ijk,kl->ijl", "ikj,kl->lij",
             "bijk,bljk->bil", "ijk,il->jkl", "bij,jk->bki", "iij,jk->ik"]


def gen_einsum(rng):
    equation = pick(rng, EQUATIONS)
    extent = {c: int(rng.integers(1, pick(rng, [6, 12, 20]))) for c in "abcdhijklq"}
    dots = [int(v) for v in rng.integers(1, 4, rng.integers(0, 3))]
    inputs, dtype = [], pick(rng, [np.float32, np.float64, np.int32, np.int64])
    for term in equation.split("->")[0].split(","):
        dims = []
        for piece in term.replace("...", "."):
            dims += dots if piece == "." else [extent[piece]]
        inputs.append(tensor(rng, dims, dtype))
    return Case("Einsum", inputs, equation=equation)


def gen_col2im(rng):
    """Floats along other than two axes, which onnxruntime adds up in other places than onnx's reference, are left out."""
    n = int(rng.integers(1, 4))
    image, block = [int(v) for v in rng.integers(4, 9, n)], [int(v) for v in rng.integers(1, 4, n)]
    strides, dilations = ([int(v) for v in rng.integers(1, 3, n)] for _ in range(2))
    pads = [int(v) for v in rng.integers(0, 3, 2 * n)]
    blocks = [(image[i] + pads[i] + pads[i + n] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(n)]
    if min(blocks) < 1:
        return gen_col2im(rng)
    x = tensor(rng, [2, 3 * math.prod(block), math.prod(blocks)], pick(rng, NUMBERS if n == 2 else INTEGERS))
    return Case("Col2Im", [x, ints(image), ints(block)], pads=pads, strides=strides, dilations=dilations)


def gen_every_second(rng):
    x = tensor(rng, [2, int(rng.integers(2, 80))], pick(rng, NUMBERS))
    return Case("Slice", [x, ints([rng.integers(2)]), ints([99]), ints([1]), ints([2])])


def gen_center_crop_pad(rng):
    dims = shape_of(rng, low=1, high=4, largest=8, empty=0)
    axes = rng.permutation(len(dims))[:rng.integers(1, len(dims) + 1)]
    return Case("CenterCropPad", [tensor(rng, dims, np.float32), ints(rng.integers(1, 12, len(axes)))],
                axes=[signed_axis(rng, a, len(dims)) for a in axes])


def gen_non_max_suppression(rng):
    batch, classes, n = int(rng.integers(1, 5)), int(rng.integers(1, 5)), int(rng.integers(1, pick(rng, [12, 90, 200])))
    corners = rng.random((batch, n, 2, 2)).astype(np.float32)
    boxes = np.concatenate([corners[:, :, 0], corners[:, :, 0] + corners[:, :, 1]], -1)
    scores = (rng.permutation(batch * classes * n).astype(np.float32) / 8).reshape(batch, classes, n)
    most = pick(rng, [-2**63, *rng.integers(0, 60, 9), *rng.integers(0, 6, 9)])
    values = [ints([most]), np.array([rng.random()], np.float32), np.array([n / 16], np.float32)]
    return Case("NonMaxSuppression", [boxes, scores] + values[:rng.integers(1, 4)], center_point_box=int(rng.integers(2)))


def gen_det(rng):
    n = int(rng.integers(1, 6))
    x = tensor(rng, shape_of(rng, high=2) + [n, n], np.float32)
    return Case("Det", [x + 9 * np.eye(n, dtype=np.float32)])


def gen_window(rng):
    kind = pick(rng, ["HannWindow", "HammingWindow", "BlackmanWindow"])
    return Case(kind, [np.array(rng.integers(2, 40), np.int64)], periodic=int(rng.integers(2)))


GENERATORS = {name[4:]: f for name, f in list(globals().items()) if name.startswith("gen_")}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("op", sorted(GENERATORS))
def test_random_cases(tmp_path, op, seed):
    rng = np.random.default_rng([seed, *op.encode()])
    check_cases(tmp_path, [GENERATORS[op](rng) for _ in range(24)])


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
def test_channels_taken_apart(tmp_path, dtype):
    """Pixels of two and three channels, whole vectors of them and what is left."""
    rng = np.random.default_rng(5)
    check_cases(tmp_path, [Case("Transpose", [tensor(rng, [2, n, c], dtype)], perm=[0, 2, 1])
                           for c in (2, 3) for n in (1, 3, 4, 7, 8, 15, 16, 17, 37, 1400)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_of_three(tmp_path, dtype):
    """Columns that take turns, taken apart where lines are long."""
    rng = np.random.default_rng(5)
    check_cases(tmp_path, [Case("SpaceToDepth", [tensor(rng, [2, 2, 6, 3 * w], dtype)], blocksize=3)
                           for w in (1, 5, 15, 16, 17, 32, 301, 1501)])


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float32, np.float64])
def test_long_ranges(tmp_path, dtype):
    """Numbers counted a vector at a time, up and down, and what is left."""
    check_cases(tmp_path, [Case("Range", [np.array(v, dtype) for v in (start, start + n * delta, delta)])
                           for start, delta in ((-7, 3), (500, -2)) for n in (1, 2, 3, 5, 8, 9, 16, 23, 1001)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int16, np.int64])
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_of_long_rows(tmp_path, dtype, reduction, axis):
    """Rows of more elements than a block; along the last axis many of them meet in one element."""
    rng = np.random.default_rng(axis)
    x, updates = (rng.integers(-1, 2, shape).astype(dtype) for shape in ([7, 600], [5, 577]))
    rows, columns = np.meshgrid(range(5), range(577), indexing="ij")
    indices = rng.integers(-7, 7, (5, 577)) if axis == 0 else rng.integers(0, 30, (5, 577))
    if reduction == "none":  # the order of what meets is not defined
        indices = np.argsort(rng.random((7, 577)), 0)[:5] if axis == 0 else np.argsort(rng.random((5, 600)), 1)[:, :577]
    where = (indices, columns) if axis == 0 else (rows, indices)
    want = x.copy()
    ways = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
    if reduction == "none":
        want[where] = updates
    else:
        ways[reduction].at(want, where, updates)
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=axis, reduction=reduction)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", kind, x.shape)],
                              [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(indices.astype(np.int64), "i"), numpy_helper.from_array(updates, "u")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    check_against(tmp_path, model, {"x": x}, [want], ways=(("--opt", "all"),))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int8, np.uint64])
@pytest.mark.parametrize("n, k", [(100, 10), (100, 45), (40, 40), (70, 70), (3, 2), (900, 17), (5000, 3)])
def test_top_k_of_columns(tmp_path, dtype, n, k):
    """Columns that are turned into rows, or are too long for that; whole blocks of them and what is left."""
    x = np.random.default_rng(n).integers(0, 120, (2, n, 21)).astype(dtype)
    order = np.argsort(-x.astype(np.float64), axis=1, kind="stable")[:, :k]
    graph = helper.make_graph([helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=1)], "g",
                              [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), x.shape)],
                              [helper.make_empty_tensor_value_info("v"), helper.make_empty_tensor_value_info("i")],
                              [numpy_helper.from_array(np.array([k], np.int64), "k")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    check_against(tmp_path, model, {"x": x}, [np.take_along_axis(x, order, 1), order], ways=(("--opt", "all"),))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int8])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("k", [1, 3, 8, 9, 33, 40])
def test_top_k_of_equals(tmp_path, dtype, largest, k):
    """Of equal elements the one with the lowest index comes first, wherever better ones come later."""
    x = np.random.default_rng(k).integers(-60, 61, (50, 300)).astype(dtype)
    order = np.argsort(-x.astype(np.float64) if largest else x, axis=1, kind="stable")[:, :k]
    graph = helper.make_graph([helper.make_node("TopK", ["x", "k"], ["v", "i"], largest=largest)], "g",
                              [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), x.shape)],
                              [helper.make_empty_tensor_value_info("v"), helper.make_empty_tensor_value_info("i")],
                              [numpy_helper.from_array(np.array([k], np.int64), "k")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    check_against(tmp_path, model, {"x": x}, [np.take_along_axis(x, order, 1), order], ways=(("--opt", "all"),))


@pytest.mark.parametrize("dims,axis", [([2, 60, 43], 1), ([70, 45], 1), ([64, 64], 0), ([40, 31], 1), ([3, 700], 1), ([50, 9, 3], 1),
                                       ([7, 33, 15], 1), ([2, 40, 300], 1), ([700, 2], 1), ([2, 5000], 1)])
@pytest.mark.parametrize("k", [1, 2, 7, 17, 38, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_of_extremes(tmp_path, dims, axis, k, dtype, largest):
    """Columns, few ones of several images, and short rows that are looked at together, counted or sorted: ties, zeros of both
    signs, NaN and the extreme numbers."""
    rng, is_float, k = np.random.default_rng(3), np.issubdtype(dtype, np.floating), min(k, dims[axis])
    x = rng.integers(0 if dtype == np.uint8 else -9, 10, dims).astype(dtype)
    limits = np.finfo(dtype) if is_float else np.iinfo(dtype)
    odd = [limits.min, limits.max] + ([np.nan, -np.nan, np.inf, -np.inf, -0.0] if is_float else [])
    places = rng.random(dims) < 0.2
    x[places] = rng.choice(np.array(odd, dtype), np.count_nonzero(places))
    rank = np.unique(x, return_inverse=True)[1].reshape(dims)  # NaN is the largest
    order = np.argsort(-rank if largest else rank, axis=axis, kind="stable").take(range(k), axis)
    graph = helper.make_graph([helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)], "g",
                              [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), x.shape)],
                              [helper.make_empty_tensor_value_info("v"), helper.make_empty_tensor_value_info("i")],
                              [numpy_helper.from_array(np.array([k], np.int64), "k")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    check_against(tmp_path, model, {"x": x}, [np.take_along_axis(x, order, axis), order], ways=(("--opt", "all"),))


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_extremes_of_doubles(tmp_path, op, last):
    """Side by side, as short rows and long ones: of equal elements the first or the last, of which NaN is the most extreme."""
    rng, arg = np.random.default_rng(7), np.argmax if op == "ArgMax" else np.argmin
    values = np.array([-1.5, -0.0, 0.0, 2.0, 2.5, np.nan, np.inf, -np.inf])
    for k, (shape, axis) in enumerate((([90, 7], 1), ([3, 9, 70], 1), ([5, 80], 1), ([5, 300], 1))):
        x = values[rng.integers(0, 6 + 2 * (k > 0), shape)]
        want = shape[axis] - 1 - arg(np.flip(x, axis), axis) if last else arg(x, axis)
        node = helper.make_node(op, ["x"], ["y"], axis=axis, keepdims=0, select_last_index=last)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.DOUBLE, shape)],
                                  [helper.make_empty_tensor_value_info("y")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        check_against(tmp_path, model, {"x": x}, [want], ways=(("--opt", "all"), ("--opt", "all", "--level", "scalar")))


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.float16, np.float32, np.float64])
def test_extremes_of_narrow_images(tmp_path, dtype, op, last):
    """Few elements behind the axis: images side by side, or their columns as rows."""
    rng, arg = np.random.default_rng(8), np.argmax if op == "ArgMax" else np.argmin
    for shape in ((70, 5, 4), (5, 64, 15), (130, 1, 3), (3, 65, 7), (2, 3000, 2), (1, 4100, 3), (67, 9, 1)):
        x = rng.integers(0, 60, shape).astype(dtype)
        want = shape[1] - 1 - arg(np.flip(x, 1), 1) if last else arg(x, 1)
        node = helper.make_node(op, ["x"], ["y"], axis=1, keepdims=0, select_last_index=last)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", kind, shape)],
                                  [helper.make_empty_tensor_value_info("y")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        check_against(tmp_path, model, {"x": x}, [want], ways=(("--opt", "all"), ("--opt", "all", "--level", "scalar")))


@pytest.mark.parametrize("computed", [False, True])
def test_boxes_are_selected_anew_in_each_run(tmp_path, computed):
    """What the shape rule selects is kept for the run, but not for the next one, be the boxes an input or computed."""
    rng = np.random.default_rng(3)
    nodes = [helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["y"])]
    if computed:
        nodes.insert(0, helper.make_node("Relu", ["given"], ["boxes"]))
    name = "given" if computed else "boxes"
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 60, 4]),
                     helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 3, 60])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, ["n", 3])],
        [numpy_helper.from_array(np.array(8), "most"), numpy_helper.from_array(np.array(0.4, np.float32), "overlap")])
    model = tmp_path / "m.onnx"
    model.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString())
    done = linnet("convert", model, "-o", tmp_path / "m.lnt")
    assert done.returncode == 0, done.stderr
    session = Session(Model(tmp_path / "m.lnt"))
    for _ in range(4):
        fed = {name: rng.random((1, 60, 4), np.float32), "scores": rng.random((1, 3, 60), np.float32)}
        got = session.set(**fed).run().get("y")
        assert np.array_equal(got, reference(model, fed)[0])
