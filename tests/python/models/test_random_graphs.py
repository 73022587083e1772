"""Random graphs of the operators that the converter's passes fold, fuse, merge and reorder, against onnxruntime:
without optimization, with it, and with some inner values kept and fetched. Extents of the input are open in half of them."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import linnet, reference, write_case

STEPS = 14


class Graph:
    """A model under construction. A value is its name and its extents as they are when the model runs."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.values = [], [], []
        self.readers = {}

    # ---- pieces ----

    def pick(self, items):
        return items[self.rng.integers(len(items))]

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(array), name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def weights(self, *dims):
        fan = int(np.prod(dims[1:])) if len(dims) > 1 else 1
        return self.constant((self.rng.standard_normal(dims) / np.sqrt(fan)).astype(np.float32))

    def number(self, x):
        return self.constant(np.float32(x))

    def node(self, op, inputs, dims, **attributes):
        name = f"v{len(self.nodes)}"
        for i in inputs:
            self.readers[i] = self.readers.get(i, 0) + 1
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        return name, list(dims)

    # ---- one step: each takes a value (name, dims) and gives one ----

    def same(self, op, v, *more, **attributes):
        return self.node(op, [v[0], *more], v[1], **attributes)

    def activation(self, v):
        kind = self.rng.integers(9)
        if kind < 4:
            return self.same(("Relu", "Sigmoid", "Tanh", "LeakyRelu")[kind], v)
        if kind == 4:  # SiLU
            return self.same("Mul", v, self.same("Sigmoid", v)[0])
        if kind == 5:  # HardSwish
            shifted = self.same("Add", v, self.number(3))
            clipped = self.same("Clip", shifted, self.number(0), self.number(6))
            return self.same("Mul", v, self.same("Div", clipped, self.number(6))[0])
        if kind == 6:  # GELU
            erf = self.same("Erf", self.same("Div", v, self.number(np.sqrt(2))))
            half = self.same("Mul", v, self.same("Add", erf, self.number(1))[0])
            return self.same("Mul", half, self.number(0.5))
        if kind == 7:
            return self.same("Clip", v, self.number(-1), self.number(1.5))
        return self.same("Mul", v, self.same("Tanh", self.same("Softplus", v))[0])

    def arithmetic(self, v):
        op, dims = self.pick(["Add", "Sub", "Mul"]), v[1]
        partners = [p for p in self.values if len(p[1]) == len(dims) and
                    all(a == b or a == 1 for a, b in zip(p[1], dims))]
        kind = self.rng.integers(4)
        if kind == 0:
            other = self.number(self.rng.uniform(0.5, 1.5))
        elif kind == 1 and len(dims) > 2:
            other = self.weights(dims[1], *[1] * (len(dims) - 2))
        elif kind == 2:
            other = self.weights(dims[-1])
        else:
            other = self.pick(partners)[0]
        return self.same(op, v, other) if self.rng.random() < 0.7 else self.same(op, (other, dims), v[0])

    def batch_norm(self, v):
        c = v[1][1]
        positive = lambda: self.constant(self.rng.uniform(0.5, 1.5, c).astype(np.float32))
        return self.same("BatchNormalization", v, positive(), self.weights(c), self.weights(c), positive())

    def conv(self, v):
        n, c, *space = v[1]
        k, stride, group = int(self.pick([1, 3])), int(self.pick([1, 1, 2])), int(self.pick([1, 1, c]))
        out = c if group == c else int(self.pick([3, 8, 16, 20]))
        pads = [k // 2] * (2 * len(space))
        w = self.weights(out, c // group, *[k] * len(space))
        bias = [self.weights(out)] if self.rng.random() < 0.5 else []
        dims = [n, out] + [(s - 1) // stride + 1 for s in space]
        return self.node("Conv", [v[0], w, *bias], dims, pads=pads, strides=[stride] * len(space), group=group)

    def conv_transpose(self, v):
        n, c, *space = v[1]
        w = self.weights(c, 6, *[2] * len(space))
        return self.node("ConvTranspose", [v[0], w], [n, 6] + [2 * s for s in space], strides=[2] * len(space))

    def pool(self, v):
        op = self.pick(["MaxPool", "AveragePool"])
        pads = [1] * (2 * len(v[1][2:]))
        return self.same(op, v, kernel_shape=[3] * len(v[1][2:]), pads=pads)

    def global_pool(self, v):
        return self.node("GlobalAveragePool", [v[0]], v[1][:2] + [1] * len(v[1][2:]))

    def pad(self, v):
        begin, end = [0, 0] + [1] * len(v[1][2:]), [0, 0] + [2] * len(v[1][2:])
        dims = v[1][:2] + [s + 3 for s in v[1][2:]]
        return self.node("Pad", [v[0], self.ints(*begin, *end)], dims)

    def concat(self, v):
        fit = [p for p in self.values if len(p[1]) == len(v[1]) and p[1][0] == v[1][0] and p[1][2:] == v[1][2:]]
        other = self.pick(fit)
        dims = [v[1][0], v[1][1] + other[1][1], *v[1][2:]]
        return self.node("Concat", [v[0], other[0]], dims, axis=1)

    def slice(self, v):
        half = (v[1][1] + 1) // 2
        dims = [v[1][0], half, *v[1][2:]]
        return self.node("Slice", [v[0], self.ints(0), self.ints(half), self.ints(1)], dims)

    def gate(self, v):
        """Halves of a convolution's channels on different ways, sometimes behind an activation."""
        c = self.node("Conv", [v[0], self.weights(36, v[1][1], *[1] * len(v[1][2:]))], [v[1][0], 36, *v[1][2:]])
        if self.rng.random() < 0.5:
            c = self.same("LeakyRelu", c)
        ends = [(0, 18), (18, 36)] if self.rng.random() < 0.5 else [(-18, 36), (0, 18)]
        a, b = [self.node("Slice", [c[0], self.ints(i), self.ints(j), self.ints(1)], [v[1][0], 18, *v[1][2:]])
                for i, j in ends]
        return self.same("Mul", self.same("Tanh", a), self.same("Sigmoid", b)[0])

    def transpose(self, v):
        rank = len(v[1])
        perm = [int(i) for i in self.rng.permutation(rank)]
        return self.node("Transpose", [v[0]], [v[1][i] for i in perm], perm=perm)

    def extent(self, v, axis):
        gathered = self.node("Gather", [self.node("Shape", [v[0]], [])[0], self.constant(np.int64(axis))], [])
        return self.node("Unsqueeze", [gathered[0], self.ints(0)], [1])[0]

    def flatten(self, v):
        """All axes behind the second into one, by a computed shape."""
        parts = [self.extent(v, 0), self.extent(v, 1), self.ints(-1)]
        shape = self.node("Concat", parts, [3], axis=0)[0]
        return self.node("Reshape", [v[0], shape], v[1][:2] + [int(np.prod(v[1][2:]))])

    def wrap(self, v):
        """An axis of extent 1, perhaps some work, and the axis gone again."""
        axis = int(self.rng.integers(len(v[1]) + 1))
        wide = self.node("Unsqueeze", [v[0], self.ints(axis)], v[1][:axis] + [1] + v[1][axis:])
        if self.rng.random() < 0.5:
            wide = self.activation(wide)
        return self.node("Squeeze", [wide[0], self.ints(axis)], v[1])

    def matmul(self, v):
        out = int(self.pick([4, 16, 24]))
        return self.node("MatMul", [v[0], self.weights(v[1][-1], out)], v[1][:-1] + [out])

    def scores(self, v):
        swapped = list(range(len(v[1])))
        swapped[-1], swapped[-2] = swapped[-2], swapped[-1]
        t = self.node("Transpose", [v[0]], [v[1][i] for i in swapped], perm=swapped)
        product = self.node("MatMul", [v[0], t[0]], v[1][:-1] + [v[1][-2]])
        return self.same("Softmax", self.same("Mul", product, self.number(0.1)), axis=-1)

    def layer_norm(self, v):
        axes, d = self.ints(-1), v[1][-1]
        mean = self.node("ReduceMean", [v[0], axes], v[1][:-1] + [1])
        centered = self.same("Sub", v, mean[0])
        variance = self.node("ReduceMean", [self.same("Pow", centered, self.number(2))[0], axes], v[1][:-1] + [1])
        deviation = self.same("Sqrt", self.same("Add", variance, self.number(1e-2)))
        y = self.same("Div", centered, deviation[0])
        return self.same("Add", self.same("Mul", y, self.weights(d)), self.weights(d))

    def identity(self, v):
        kind = self.rng.integers(4)
        if kind == 0:
            return self.same("Identity", v)
        if kind == 1:
            return self.same("Mul", v, self.number(1))
        if kind == 2:
            return self.same("Cast", v, to=TensorProto.FLOAT)
        return self.same("Slice", v, self.ints(0), self.ints(2**31 - 1), self.ints(0))

    def step(self):
        recent = self.values[-4:]
        v = self.pick(recent)
        any_rank = [self.activation, self.activation, self.arithmetic, self.arithmetic, self.wrap, self.identity,
                    self.matmul, self.transpose]
        images = [self.conv, self.conv, self.conv, self.batch_norm, self.pool, self.concat, self.slice, self.pad,
                  self.global_pool, self.conv_transpose, self.flatten, self.gate]
        sequences = [self.layer_norm, self.scores, self.conv, self.concat, self.slice, self.gate]
        kinds = any_rank + (images if len(v[1]) == 4 else []) + (sequences if len(v[1]) == 3 else [])
        made = self.pick(kinds)(v)
        if np.prod(made[1]) <= 40000:
            self.values.append(made)

    # ---- the whole model ----

    def model(self):
        dims = self.pick([[2, 4, 9, 7], [1, 3, 12, 12], [1, 16, 8, 8], [2, 10, 16], [1, 5, 24]])
        self.values.append(("x", dims))
        for _ in range(STEPS):
            self.step()
        names = ["batch", None, "height", "width"][:len(dims)]
        is_open = self.rng.random() < 0.5
        declared = [n if is_open and n else d for n, d in zip(names, dims)]
        made = [v for v in self.values[1:]]
        outputs = [v for v in made if v[0] not in self.readers]
        outputs += [v for v in made if v[0] in self.readers and self.rng.random() < 0.1]
        graph = helper.make_graph(
            self.nodes, "random", [helper.make_tensor_value_info("x", TensorProto.FLOAT, declared)],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * len(d)) for n, d in outputs],
            self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        inner = [v[0] for v in made if v not in outputs]
        kept = [n for n in inner if self.rng.random() < 0.3]
        return model, {"x": self.rng.standard_normal(dims).astype(np.float32)}, kept


def agree(case, image, *options):
    done = linnet("convert", case / "model.onnx", "-o", image, *options)
    assert done.returncode == 0, f"convert {' '.join(options)}\n{done.stdout}{done.stderr}"
    done = linnet("verify", image, case / "test_data_set_0", "--max-rel", "1e-4")
    assert done.returncode == 0, f"{' '.join(options)}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("seed", range(60))
def test_random_graph(tmp_path, seed):
    model, inputs, kept = Graph(seed).model()
    onnx.checker.check_model(model)
    case = write_case(tmp_path, model, inputs, reference(model, inputs))
    agree(case, tmp_path / "plain.lnt", "--opt", "none")
    agree(case, tmp_path / "fused.lnt", "--opt", "all")
    agree(case, tmp_path / "kept.lnt", *(word for name in kept for word in ("--keep", name)))
    fetch = [word for name in kept for word in ("--fetch", f"{name}={tmp_path / name}.npy")]
    done = linnet("run", tmp_path / "kept.lnt", "--input", f"x={case / 'test_data_set_0' / 'input_0.pb'}", *fetch)
    assert done.returncode == 0, done.stdout + done.stderr
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in kept)
    for name, expected in zip(kept, reference(model, inputs)[-len(kept):]):
        assert np.abs(np.load(f"{tmp_path / name}.npy") - expected).max() <= 1e-4 * np.abs(expected).max(), name
