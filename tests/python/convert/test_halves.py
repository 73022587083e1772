"""Models that are float16 or bfloat16 already: computed in float between their inputs and outputs, weights as they are."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import levels, linnet, reference
from linnet_ctypes import Model, Session
from test_precision import rounded

F, H, B, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT64
node = helper.make_node


def model_of(nodes, inputs, outputs, tensors):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*given) for given in inputs],
                              [helper.make_tensor_value_info(*given) for given in outputs], tensors)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])


def to_float16(proto, keep=(), ports=True):
    """As exporters' tools do it: every tensor becomes float16, but nodes of the operators `keep` compute in float between
    Casts; with ports, inputs and outputs are float16, too."""
    half = onnx.ModelProto()
    half.CopyFrom(proto)
    graph, nodes = half.graph, []
    for tensor in graph.initializer:
        if tensor.data_type == F:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    floats = {value.name for value in [*graph.input, *graph.output] if value.type.tensor_type.elem_type == F} if not ports else set()
    for value in [*graph.input, *graph.output]:
        if ports and value.type.tensor_type.elem_type == F:
            value.type.tensor_type.elem_type = H
    inside = {value.name: value.name + "_half" for value in graph.input if value.name in floats}
    nodes += [node("Cast", [name], [other], to=H) for name, other in inside.items()]
    whole = {value.name for value in graph.input if value.type.tensor_type.elem_type == I64}
    for n in graph.node:
        n.input[:] = [inside.get(name, name) for name in n.input]
        behind = [node("Cast", [name + "_half"], [name], to=F) for name in n.output if name in floats]
        n.output[:] = [name + "_half" if name in floats else name for name in n.output]
        if n.op_type in keep:
            for i, name in enumerate(n.input):
                if name and name not in whole:
                    nodes.append(node("Cast", [name], [f"{name}_{n.output[0]}_float"], to=F))
                    n.input[i] = f"{name}_{n.output[0]}_float"
            behind = [node("Cast", [name + "_float"], [name], to=H) for name in n.output] + behind
            n.output[:] = [name + "_float" for name in n.output]
        nodes += [n, *behind]
    copies = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    onnx.checker.check_model(half)
    return half


def tensors(rng, **shapes):
    return [numpy_helper.from_array((rng.standard_normal(shape) * scale).astype(np.float32), name)
            for name, (shape, scale) in shapes.items()]


def transformer(rng, rows=50, width=96, heads=4):
    """Patches, two blocks with attention and GELU, a classifier: a small ViT."""
    nodes, constants = [node("MatMul", ["x", "patch"], ["e"]), node("Add", ["e", "place"], ["h0"])], dict(
        patch=((192, width), 192**-0.5), place=((1, rows, width), 0.2))
    initializers = [numpy_helper.from_array(np.array(value, np.int64), name)
                    for name, value in {"split": [1, rows, heads, width // heads], "join": [1, rows, width]}.items()]
    initializers += [numpy_helper.from_array(np.float32(value), name)
                     for name, value in {"scale": (width / heads)**-0.5, "half": 0.5, "one": 1, "root": 2**-0.5}.items()]
    for i, h in ((1, "h0"), (2, "h1")):
        def t(name, i=i):
            return f"{name}{i}"
        constants |= {t("q"): ((width, width), width**-0.5), t("k"): ((width, width), width**-0.5), t("v"): ((width, width), width**-0.5),
                      t("o"): ((width, width), width**-0.5), t("up"): ((width, 4 * width), width**-0.5),
                      t("down"): ((4 * width, width), (4 * width)**-0.5), t("bu"): ((4 * width,), 0.1),
                      t("g"): ((width,), 0.3), t("b"): ((width,), 0.3), t("g_"): ((width,), 0.3), t("b_"): ((width,), 0.3)}
        nodes.append(node("LayerNormalization", [h, t("g"), t("b")], [t("n")]))
        for c, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            nodes += [node("MatMul", [t("n"), t(c)], [t("x" + c)]), node("Reshape", [t("x" + c), "split"], [t("r" + c)]),
                      node("Transpose", [t("r" + c)], [t("t" + c)], perm=perm)]
        nodes += [node("MatMul", [t("tq"), t("tk")], [t("s")]), node("Mul", [t("s"), "scale"], [t("ss")]),
                  node("Softmax", [t("ss")], [t("p")]),
                  node("MatMul", [t("p"), t("tv")], [t("a")]), node("Transpose", [t("a")], [t("ta")], perm=[0, 2, 1, 3]),
                  node("Reshape", [t("ta"), "join"], [t("j")]), node("MatMul", [t("j"), t("o")], [t("oo")]),
                  node("Add", [h, t("oo")], [t("m")]),
                  node("LayerNormalization", [t("m"), t("g_"), t("b_")], [t("n_")]), node("MatMul", [t("n_"), t("up")], [t("u")]),
                  node("Add", [t("u"), t("bu")], [t("ub")]), node("Mul", [t("ub"), "root"], [t("er")]), node("Erf", [t("er")], [t("e")]),
                  node("Add", [t("e"), "one"], [t("e1")]), node("Mul", [t("ub"), t("e1")], [t("ue")]),
                  node("Mul", [t("ue"), "half"], [t("ge")]),
                  node("MatMul", [t("ge"), t("down")], [t("d")]), node("Add", [t("m"), t("d")], [f"h{i}"])]
    constants["class"] = ((width, 100), width**-0.5)
    nodes.append(node("MatMul", ["h2", "class"], ["y"]))
    return model_of(nodes, [("x", F, [1, rows, 192])], [("y", F, [1, rows, 100])], tensors(rng, **constants) + initializers)


def convolutions(rng, normalized=True):
    """Residual blocks, with batch normalization or biases, and a classifier."""
    constants, nodes, at = {"stem": ((32, 3, 3, 3), 0.2)}, [node("Conv", ["x", "stem"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1])], "c"
    initializers = []
    for i in range(3):
        for j in range(2):
            name = f"{i}{j}"
            constants |= {"w" + name: ((32, 32, 3, 3), 288**-0.5), "b" + name: ((32,), 0.2), "m" + name: ((32,), 0.2)}
            initializers += [numpy_helper.from_array(rng.uniform(0.5, 1.5, 32).astype(np.float32), kind + name) for kind in ("s", "v")]
            before = at if j == 0 else f"r{i}0"
            nodes += [node("Conv", [before, "w" + name], ["c" + name], pads=[1, 1, 1, 1]),
                      node("BatchNormalization", [x + name for x in "csbmv"], ["n" + name])] if normalized else [
                          node("Conv", [before, "w" + name, "b" + name], ["n" + name], pads=[1, 1, 1, 1])]
            if j == 0:
                nodes.append(node("Relu", ["n" + name], ["r" + name]))
        nodes += [node("Add", [at, f"n{i}1"], [f"a{i}"]), node("Relu", [f"a{i}"], [f"o{i}"])]
        at = f"o{i}"
    constants["class"] = ((32, 50), 0.2)
    nodes += [node("GlobalAveragePool", [at], ["p"]), node("Flatten", ["p"], ["f"]), node("MatMul", ["f", "class"], ["y"])]
    return model_of(nodes, [("x", F, [1, 3, 48, 48])], [("y", F, [1, 50])], tensors(rng, **constants) + initializers)


def convert(folder, proto, *options, name="m"):
    onnx.save(proto, folder / f"{name}.onnx")
    done = linnet("convert", folder / f"{name}.onnx", "-o", folder / f"{name}.lnt", "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run(path, level=None, **feed):
    return Session(Model(path), level=level).set(**feed).run().get("y")


def distance(got, want):
    """Of the largest magnitude."""
    return np.abs(got.astype(np.float64) - want).max() / np.abs(want).max()


@pytest.mark.parametrize("keep", [(), ("LayerNormalization", "Softmax", "BatchNormalization")])
@pytest.mark.parametrize("ports", [False, True])
@pytest.mark.parametrize("build", [transformer, convolutions])
def test_no_further_from_the_source_than_onnxruntime(tmp_path, build, ports, keep):
    """The float model that the float16 one was made from says what is right."""
    rng = np.random.default_rng(len(build.__name__) + len(keep))
    source = build(rng)
    half = to_float16(source, keep, ports)
    shape = [d.dim_value for d in source.graph.input[0].type.tensor_type.shape.dim]
    x = rng.standard_normal(shape).astype(np.float16)
    want = reference(source, {"x": x.astype(np.float32)})[0].astype(np.float64)
    feed = {"x": x if ports else x.astype(np.float32)}
    theirs = distance(reference(half, feed)[0], want)
    convert(tmp_path, half)
    for level in levels():
        got = run(tmp_path / "m.lnt", level, **feed)
        assert got.dtype == (np.float16 if ports else np.float32)
        assert distance(got, want) <= theirs + 1e-6, level  # sums of float in another order
    verified = linnet("verify", tmp_path / "m.lnt")
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize("build", [transformer, lambda rng: convolutions(rng, False)])
def test_weights_stay_in_sixteen_bits(tmp_path, build):
    """The file is half of that of the float source, and the operators between are the same."""
    source = build(np.random.default_rng(3))
    wide, narrow = convert(tmp_path, source, name="wide"), convert(tmp_path, to_float16(source))
    assert narrow["precision"]["type"] == "float16"
    assert all(layer["weights"] == "float16" for layer in narrow["precision"]["layers"])
    assert narrow["precision"]["outputs"] == []  # nothing was rounded
    assert narrow["constant_bytes"] <= 0.55 * wide["constant_bytes"]
    wide, narrow = (json.loads(linnet("info", tmp_path / name, "--json").stdout)["operators"] for name in ("wide.lnt", "m.lnt"))
    assert {op: n for op, n in narrow.items() if op not in ("Cast", "Elementwise")} == {
        op: n for op, n in wide.items() if op not in ("Cast", "Elementwise")}
    kept = convert(tmp_path, to_float16(source), "--precision", "float32")
    assert "precision" not in kept and kept["constant_bytes"] > 1.8 * convert(tmp_path, to_float16(source))["constant_bytes"]


def test_weights_that_a_pass_has_changed_are_floats(tmp_path):
    """Unless the option says otherwise, the converter rounds nothing that the model has not."""
    half = to_float16(convolutions(np.random.default_rng(4)))
    layers = convert(tmp_path, half)["precision"]["layers"]
    assert {layer["weights"] for layer in layers if layer["why"]} == {"float"}
    assert {layer["weights"] for layer in layers} == {"float", "float16"}
    assert {layer["weights"] for layer in convert(tmp_path, half, "--precision", "float16")["precision"]["layers"]} == {"float16"}


def test_bfloat16(tmp_path):
    rng = np.random.default_rng(5)
    w, v = (rounded(rng.standard_normal(shape).astype(np.float32) / 9, "bfloat16") for shape in ((80, 70), (70, 60)))
    made = [helper.make_tensor(name, B, value.shape, (value.view(np.uint32) >> 16).astype(np.uint16).tobytes(), raw=True)
            for name, value in (("w", w), ("v", v))]
    proto = model_of([node("Cast", ["x"], ["b"], to=B), node("MatMul", ["b", "w"], ["h"]), node("Tanh", ["h"], ["t"]),
                      node("MatMul", ["t", "v"], ["p"]), node("Cast", ["p"], ["y"], to=F)],
                     [("x", F, [3, 80])], [("y", F, [3, 60])], made)
    report = convert(tmp_path, proto)
    assert report["precision"]["type"] == "bfloat16"
    x = rng.standard_normal((3, 80)).astype(np.float32)
    want = np.tanh(x.astype(np.float64) @ w) @ v
    for level in levels():
        assert distance(run(tmp_path / "m.lnt", level, x=x), want) < 1e-5


def test_rounding_on_purpose_stays(tmp_path):
    """A Cast to float16 and back rounds; so does one whose result is an output."""
    rng = np.random.default_rng(6)
    nodes = [node("Cast", ["x"], ["h"], to=H), node("Cast", ["h"], ["r"], to=F), node("Mul", ["r", "r"], ["y"]),
             node("Cast", ["y"], ["z"], to=H)]
    proto = model_of(nodes, [("x", F, [64])], [("y", F, [64]), ("z", H, [64])], [])
    convert(tmp_path, proto)
    x = rng.standard_normal(64).astype(np.float32)
    done = Session(Model(tmp_path / "m.lnt")).set(x=x).run()
    want = x.astype(np.float16).astype(np.float32)**2
    assert np.array_equal(done.get("y"), want) and np.array_equal(done.get("z"), want.astype(np.float16))


def test_bodies_and_outputs_of_several_uses(tmp_path):
    """Branches, a loop that carries float16, outputs that are read again, kept values and constants that are outputs."""
    rng = np.random.default_rng(7)
    body = helper.make_graph([node("MatMul", ["s", "w"], ["p"]), node("Tanh", ["p"], ["s_out"]), node("Identity", ["go"], ["go_out"])],
                             "body",
                             [helper.make_tensor_value_info(*i) for i in (("n", I64, []), ("go", TensorProto.BOOL, []), ("s", H, [4, 8]))],
                             [helper.make_tensor_value_info(*i) for i in (("go_out", TensorProto.BOOL, []), ("s_out", H, [4, 8]))])
    branches = {name: helper.make_graph([node(op, ["x", "half"], [name])], name, [], [helper.make_tensor_value_info(name, H, [4, 8])])
                for name, op in (("then", "Add"), ("other", "Mul"))}
    nodes = [node("If", ["which"], ["x1"], then_branch=branches["then"], else_branch=branches["other"]),
             node("Loop", ["times", "", "x1"], ["y"], body=body), node("Exp", ["y"], ["again"]), node("Neg", ["c"], ["z"])]
    initializers = [numpy_helper.from_array(rng.standard_normal((8, 8)).astype(np.float16), "w"),
                    numpy_helper.from_array(np.float16(0.5), "half"),
                    numpy_helper.from_array(np.int64(3), "times"), numpy_helper.from_array(rng.standard_normal(5).astype(np.float16), "c")]
    proto = model_of(nodes, [("x", H, [4, 8]), ("which", TensorProto.BOOL, [])],
                     [("y", H, [4, 8]), ("again", H, [4, 8]), ("c", H, [5]), ("z", H, [5])], initializers)
    x = rng.standard_normal((4, 8)).astype(np.float16)
    for options in ((), ("--keep", "x1"), ("--keep", "all")):
        convert(tmp_path, proto, *options)
        for which in (True, False):
            feed = {"x": x, "which": np.array(which)}
            done = Session(Model(tmp_path / "m.lnt")).set(**feed).run()
            for name, want in zip(("y", "again", "c", "z"), reference(proto, feed)):
                assert done.get(name).dtype == np.float16
                assert np.abs(done.get(name).astype(np.float32) - want.astype(np.float32)).max() <= 4e-3 * np.abs(want).max(), name
