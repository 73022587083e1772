"""Attention as exporters spell it becomes one operator, and agrees with onnxruntime however it is spelled."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness import check_against, check_against_reference, linnet
from builder import Builder

FAR = float(np.finfo(np.float32).min)
WAYS = [["--opt", "all"], ["--opt", "all", "--level", "scalar"], ["--opt", "all", "--threads", "2"]]


class Spelling:
    """One way to write attention of `heads` heads of 16 channels over `kv` key heads."""

    def __init__(self, scale="div", mask=None, keys="columns", heads=3, kv=None, guard=False, past=0, merge=True, flat=True):
        self.scale, self.mask, self.keys, self.heads, self.kv = scale, mask, keys, heads, kv or heads
        self.guard, self.past, self.merge, self.flat = guard, past, merge, flat

    def split(self, b, x, heads, perm):
        shape = [0, 0, heads, 16] if self.flat else b.concat_dims(-1, b.dim(x, 1), heads, 16)
        return b.op("Transpose", b.op("Reshape", x, shape), perm=perm)

    def repeated(self, b, x):
        if self.kv == self.heads:
            return x
        n = self.heads // self.kv
        wide = b.op("Expand", b.op("Unsqueeze", x, [2]), np.array([1, 1, n, 1, 1], np.int64))
        return b.op("Reshape", wide, np.array([0, self.heads, -1, 16], np.int64))

    def operands(self, b):
        q, k, v = (b.input(n, TensorProto.FLOAT, ["batch", "queries" if n == "q" else "keys", h * 16])
                   for n, h in (("q", self.heads), ("k", self.kv), ("v", self.kv)))
        q = self.split(b, q, self.heads, [0, 2, 1, 3])
        v = self.split(b, v, self.kv, [0, 2, 1, 3])
        if self.keys == "columns" and not self.past and self.kv == self.heads:
            return q, self.split(b, k, self.kv, [0, 2, 3, 1]), v
        k = self.split(b, k, self.kv, [0, 2, 1, 3])
        if self.past:
            pasts = [b.input(n, TensorProto.FLOAT, ["batch", self.kv, "past", 16]) for n in ("past_k", "past_v")]
            k, v = (b.op("Concat", p, x, axis=2) for p, x in zip(pasts, (k, v)))
            b.output(k, "present_k", ["batch", self.kv, "total", 16])
            b.output(v, "present_v", ["batch", self.kv, "total", 16])
        return q, b.op("Transpose", self.repeated(b, k), perm=[0, 1, 3, 2]), self.repeated(b, v)

    def logits(self, b, q, k):
        if self.scale == "both":
            return b.op("MatMul", b.op("Mul", q, 0.5), b.op("Mul", k, 0.5))
        if self.scale == "query":
            return b.op("MatMul", b.op("Mul", q, 0.25), k)
        s = b.op("MatMul", q, k)
        return b.op("Div", s, 4.0) if self.scale == "div" else b.op("Mul", 0.25, s) if self.scale == "mul" else s

    def masked(self, b, s):
        if self.mask in ("padding", "both"):
            m = b.input("m", TensorProto.FLOAT, ["batch", 1, 1, "total"])
            s = b.op("Add", s, m) if self.mask == "padding" else b.op("Add", m, s)
        if self.mask in ("where", "both"):
            s = b.op("Where", b.input("open", TensorProto.BOOL, ["queries", "total"]), s, FAR)
        if self.mask == "where_not":
            s = b.op("Where", b.input("open", TensorProto.BOOL, [1, 1, "queries", "total"]), float("-inf"), s)
        if self.mask == "expanded":
            m = b.input("m", TensorProto.FLOAT, ["batch", 1, 1, "keys"])
            s = b.op("Add", s, b.op("Expand", m, b.op("Shape", s)))
        return s

    def model(self):
        b = Builder(1)
        q, k, v = self.operands(b)
        p = b.op("Softmax", self.masked(b, self.logits(b, q, k)), axis=-1)
        if self.guard:
            p = b.op("Where", b.op("IsNaN", p), 0.0, p)
        y = b.op("MatMul", p, v)
        if self.merge:
            y = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), [0, 0, self.heads * 16])
        n = self.heads
        b.output(y, "y", ["batch", "queries", n * 16] if self.merge else ["batch", n, "queries", 16])
        return b.model("attention")

    def inputs(self, batch, queries, keys):
        rng, total = np.random.default_rng(7), keys + self.past
        real = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
        feed = {"q": real(batch, queries, self.heads * 16), "k": real(batch, keys, self.kv * 16),
                "v": real(batch, keys, self.kv * 16)}
        if self.past:
            feed |= {n: real(batch, self.kv, self.past, 16) for n in ("past_k", "past_v")}
        if self.mask in ("padding", "both", "expanded"):
            feed["m"] = np.where(rng.random((batch, 1, 1, total)) < 0.3, FAR, 0).astype(np.float32)
        if self.mask in ("where", "both"):
            feed["open"] = rng.random((queries, total)) < 0.7
            feed["open"][:, 0] = True
        if self.mask == "where_not":
            feed["open"] = rng.random((1, 1, queries, total)) < 0.3
            feed["open"][..., 0] = self.guard  # a row without any key is 0 with the guard
        return feed


SPELLINGS = {
    "bert": Spelling(mask="padding"),
    "mul": Spelling(scale="mul"),
    "scaled_query": Spelling(scale="query", mask="padding"),
    "torch_sdpa": Spelling(scale="both", mask="padding", keys="rows"),
    "unscaled": Spelling(scale=None, keys="rows"),
    "causal": Spelling(mask="where", keys="rows"),
    "gpt": Spelling(mask="both", keys="rows", past=5),
    "inverted": Spelling(mask="where_not"),
    "expanded": Spelling(mask="expanded"),
    "guarded": Spelling(mask="where_not", guard=True, scale="both"),
    "grouped": Spelling(heads=6, kv=2, keys="rows"),
    "heads_apart": Spelling(merge=False),
    "unknown_batch": Spelling(flat=False, keys="rows"),
}


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 5, 9), (1, 16, 16), (1, 19, 40), (2, 33, 300)], ids=str)
@pytest.mark.parametrize("name", SPELLINGS)
def test_spelling(tmp_path, name, shape):
    spelling = SPELLINGS[name]
    check_against_reference(tmp_path, spelling.model(), spelling.inputs(*shape), "--max-rel", "1e-5", ways=WAYS)


def passes(folder, model):
    """What the passes did, and how often, as pairs."""
    onnx.save(model, folder / "m.onnx")
    done = linnet("convert", folder / "m.onnx", "-o", folder / "m.lnt", "--json")
    assert done.returncode == 0, done.stderr
    return {line["what"]: line["count"] for line in json.loads(done.stdout)["passes"]}.items()


@pytest.mark.parametrize("name", SPELLINGS)
def test_becomes_one_operator(tmp_path, name):
    assert ("Attention", 1) in passes(tmp_path, SPELLINGS[name].model())


@pytest.mark.parametrize("parts", ["gather", "split"])
def test_stacked_projection(tmp_path, parts):
    """Vision transformers: one product for queries, keys and values, stacked along an axis of their own."""
    b, n, heads = Builder(2), 192, 6
    x = b.input("x", TensorProto.FLOAT, ["batch", "rows", n])
    stack = b.op("Add", b.op("MatMul", x, b.weight(n, 3 * n, scale=n**-0.5)), b.weight(3 * n))
    stack = b.op("Transpose", b.op("Reshape", stack, [0, 0, 3, heads, n // heads]), perm=[2, 0, 3, 1, 4])
    if parts == "gather":
        q, k, v = (b.op("Gather", stack, i, axis=0) for i in range(3))
    else:
        q, k, v = (b.op("Squeeze", part, [0]) for part in b.op("Split", stack, [1, 1, 1], outputs=3, axis=0))
    p = b.op("Softmax", b.op("MatMul", b.op("Mul", q, 0.25), b.op("Transpose", k, perm=[0, 1, 3, 2])), axis=-1)
    y = b.op("Transpose", b.op("MatMul", p, v), perm=[0, 2, 1, 3])
    b.output(b.op("Reshape", y, [0, 0, n]), "y", ["batch", "rows", n])
    model, feed = b.model("stacked"), {"x": np.random.default_rng(3).standard_normal((2, 19, n)).astype(np.float32)}
    check_against_reference(tmp_path, model, feed, "--max-rel", "1e-5", ways=WAYS)
    assert passes(tmp_path, model) >= {"Attention": 1, "products split where their slices part": 1}.items()


@pytest.mark.parametrize("name", ["bert", "gpt", "grouped"])
def test_same_bits_for_any_number_of_threads(tmp_path, name):
    onnx.save(SPELLINGS[name].model(), tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    given = []
    for key, value in SPELLINGS[name].inputs(2, 70, 300).items():
        np.save(tmp_path / f"{key}.npy", value)
        given += ["--input", f"{key}={tmp_path / key}.npy"]
    results = set()
    for threads in (1, 2, 3, 8):
        done = linnet("run", tmp_path / "m.lnt", *given, "--output", f"y={tmp_path}/y.npy", "--threads", threads)
        assert done.returncode == 0, done.stderr
        results.add((tmp_path / "y.npy").read_bytes())
    assert len(results) == 1


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_halves_are_rotated_as_floats(tmp_path, kind, interleaved):
    """More pairs than are turned at once, and channels that are not."""
    dtype, rng = helper.tensor_dtype_to_np_dtype(kind), np.random.default_rng(3)
    x = rng.standard_normal([2, 3, 5, 206]).astype(dtype)
    angle = rng.uniform(-3, 3, [2, 5, 95])
    cosine, sine = np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)
    first, second = (x[..., :190:2], x[..., 1:190:2]) if interleaved else (x[..., :95], x[..., 95:190])
    a, b, c, s = (v.astype(np.float32) for v in (first, second, cosine[:, None], sine[:, None]))
    turned = [c * a - s * b, s * a + c * b]
    y = x.copy()
    y[..., :190] = (np.stack(turned, -1).reshape(2, 3, 5, 190) if interleaved else np.concatenate(turned, -1)).astype(dtype)
    node = helper.make_node("RotaryEmbedding", ["x", "c", "s"], ["y"], interleaved=interleaved, rotary_embedding_dim=190)
    infos = [helper.make_tensor_value_info(n, kind, v.shape) for n, v in (("x", x), ("c", cosine), ("s", sine), ("y", y))]
    model = helper.make_model(helper.make_graph([node], "rotary", infos[:3], infos[3:]), opset_imports=[helper.make_opsetid("", 23)])
    check_against(tmp_path, model, {"x": x, "c": cosine, "s": sine}, [y], ways=WAYS)


@pytest.mark.parametrize("kind", ["float", "bool"])
def test_keys_that_are_masked_weigh_nothing(tmp_path, kind):
    """Whole blocks of them, too: values as large as there are leave no trace."""
    rng = np.random.default_rng(8)
    q, k, v = (rng.standard_normal((2, 3, n, 16)).astype(np.float32) for n in (40, 300, 300))
    v[1, :, 100:] = 3e38
    seen = np.ones((2, 1, 40, 300), bool)
    seen[1, :, :, 100:] = False
    mask = seen if kind == "bool" else np.where(seen, np.float32(0), np.float32(-np.inf))
    inputs = {"q": q, "k": k, "v": v, "m": mask}
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in inputs.items()]
    node = helper.make_node("Attention", list("qkvm"), ["y"])
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, q.shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    logits = np.einsum("bhid,bhjd->bhij", q, k) / 4
    weights = np.where(seen, np.exp(logits - logits.max(-1, keepdims=True)), 0)
    want = np.einsum("bhij,bhjd->bhid", weights / weights.sum(-1, keepdims=True), np.where(v < 1e38, v, 0))
    check_against(tmp_path, model, inputs, [want.astype(np.float32)], ways=WAYS)
