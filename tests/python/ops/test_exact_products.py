"""The models that onnxruntime judges products of bytes by: their sums are exact on every CPU, and they give the bits of
the models they were made of, where those cannot saturate."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import differential_cases
import exact_products
import microsoft_cases
from harness import import_package, reference
from small_int8 import bytes_of, element_type, model_of as graph_of
from test_differential import by_onnxruntime, feed_of, model_of

DOMAINS = {"": differential_cases.GENERATORS, "com.microsoft": microsoft_cases.GENERATORS}
OPERATORS = [(domain, name) for domain, known in DOMAINS.items() for name in exact_products.PRODUCTS
             if name in known and name != "DequantizeLinear"]


def generated(domain, name, seed):
    draw = differential_cases.Draw(seed)
    return DOMAINS[domain][name](draw) if domain else DOMAINS[domain][name](draw, 10)


@pytest.mark.parametrize("optimise", [False, True])
@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("a", [np.uint8, np.int8])
@pytest.mark.parametrize("b", [np.uint8, np.int8])
def test_sums_are_exact(a, b, fed, optimise):
    """The largest bytes beside each other; with zero points and without; weights that are constant, that come with the
    run, or that are computed."""
    rng = np.random.default_rng(5)
    x, w = (np.where(rng.random(shape) < 0.9, np.iinfo(t).max, bytes_of(rng, t, *shape)).astype(t)
            for t, shape in ((a, (7, 40)), (b, (40, 21))))
    zeros = {"za": np.array(3, a), "zb": np.array(7, b)}
    nodes = [helper.make_node("Identity", ["w"], ["copy"]), helper.make_node("MatMulInteger", ["x", "w", "za", "zb"], ["y"]),
             helper.make_node("MatMulInteger", ["x", "copy"], ["z"]),
             helper.make_node("Reshape", ["x", "image"], ["i"]), helper.make_node("Reshape", ["w", "kernel"], ["f"]),
             helper.make_node("ConvInteger", ["i", "f", "za", "zb"], ["c"])]
    shapes = {"image": np.array([7, 40, 1, 1]), "kernel": np.array([21, 40, 1, 1])}
    constants = zeros | shapes if fed else zeros | shapes | {"w": w}
    feed = {"x": x, "w": w} if fed else {"x": x}
    model = graph_of(nodes, [(n, element_type(v.dtype), v.shape) for n, v in feed.items()],
                     [(n, TensorProto.INT32, None) for n in "yzc"], constants)
    y, z, c = reference(model, feed, optimise)
    x, w = x.astype(np.int32), w.astype(np.int32)
    assert np.array_equal(y, (x - 3) @ (w - 7)) and np.array_equal(z, x @ w)
    assert np.array_equal(c[:, :, 0, 0], (x - 3) @ (w.reshape(21, 40).T - 7))


@pytest.mark.parametrize("optimise", [False, True])
def test_sums_between_q_and_dq_are_exact(optimise):
    """Optimised, a Conv between DequantizeLinear and QuantizeLinear is computed on bytes."""
    rng = np.random.default_rng(6)
    x = rng.choice(np.array([0, 254, 255], np.uint8), (1, 40, 9, 1))
    w = rng.choice(np.array([-128, 126, 127], np.int8), (21, 40, 1, 1))
    nodes = [helper.make_node("DequantizeLinear", ["x", "one", "zx"], ["a"]),
             helper.make_node("DequantizeLinear", ["w", "ones", "zw"], ["b"], axis=0), helper.make_node("Conv", ["a", "b"], ["c"]),
             helper.make_node("QuantizeLinear", ["c", "scale", "zy"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "scale", "zy"], ["y"])]
    constants = {"one": np.float32(1), "zx": np.uint8(100), "w": w, "ones": np.ones(21, np.float32), "zw": np.zeros(21, np.int8),
                 "scale": np.float32(8192), "zy": np.uint8(120)}
    model = graph_of(nodes, [("x", TensorProto.UINT8, x.shape)], [("y", TensorProto.FLOAT, None)], constants)
    sums = np.einsum("nchw,kc->nkhw", x.astype(np.int32) - 100, w[:, :, 0, 0].astype(np.int32))
    want = np.clip(np.rint(sums / 8192) + 120, 0, 255) - 120
    assert np.array_equal(reference(model, {"x": x}, optimise)[0], want * 8192)


@pytest.mark.parametrize("domain, name", OPERATORS)
def test_same_bits(domain, name):
    """Signed bytes of 7 bits: no pair of products saturates, and onnxruntime needs no help."""
    same = changed = 0
    for seed in range(60):
        case = generated(domain, name, seed)
        case.inputs = [np.asarray(x >> 1) if x is not None and x.dtype == np.int8 else x for x in case.inputs]
        model = model_of(name, case, 17, domain).SerializeToString()
        want = alone(model, feed_of(case))
        if want is None:
            continue
        got = by_onnxruntime(model, feed_of(case))
        assert all(w.dtype == g.dtype and w.tobytes() == g.tobytes() for w, g in zip(want, got, strict=True)), seed
        same += 1
        changed += exact_products.source(model) != model
    assert same >= 15 and changed >= 5, (same, changed)


def alone(model, feed):
    """What onnxruntime makes of the model as it is, or None."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feed)
    except Exception:  # of many kinds
        return None


@pytest.mark.parametrize("a", [np.uint8, np.int8])
@pytest.mark.parametrize("b", [np.uint8, np.int8])
@pytest.mark.parametrize("rows, depth, columns", [(4, 3, 1), (24, 1, 16), (29, 16, 15), (70, 70, 40), (150, 101, 200), (1000, 64, 16),
                                                  (33, 128, 33), (40, 129, 20), (513, 5, 70), (96, 150, 64), (70, 200, 128), (64, 129, 96),
                                                  (77, 2, 512), (65, 1, 256), (130, 3, 256), (91, 5, 512), (1, 50, 1500), (3, 100, 2100),
                                                  (8, 128, 1040), (9, 128, 1040), (2, 7, 1025)])
def test_short_rows_are_exact(a, b, rows, depth, columns):
    """Zero points of each column, the extremes among them; the same weights for a batch, and weights of its own."""
    rng, linnet = np.random.default_rng(7), import_package()
    x, w, v = bytes_of(rng, a, 2, rows, depth), bytes_of(rng, b, depth, columns), bytes_of(rng, b, 2, depth, columns)
    info = np.iinfo(b)
    zeros = rng.choice(np.array([info.min, info.min + 1, 3, info.max], b), columns)
    constants = {"w": w, "v": v, "za": np.array(77, a), "zb": zeros, "least": np.array(info.min, b)}
    nodes = [helper.make_node("MatMulInteger", ["x", "w", "za", "zb"], ["y"]),
             helper.make_node("MatMulInteger", ["x", "v", "za", "least"], ["z"])]
    model = graph_of(nodes, [("x", element_type(x.dtype), x.shape)], [(n, TensorProto.INT32, None) for n in "yz"], constants)
    options = linnet.SessionOptions()
    for options.intra_op_num_threads in (1, 3):
        y, z = linnet.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
        wide = x.astype(np.int32) - 77
        assert np.array_equal(y, wide @ (w.astype(np.int32) - zeros)) and np.array_equal(z, wide @ (v.astype(np.int32) - info.min))


@pytest.mark.parametrize("a", [np.uint8, np.int8])
@pytest.mark.parametrize("b", [np.uint8, np.int8])
@pytest.mark.parametrize("rows, depth, columns", [(1, 4, 16), (5, 7, 33), (64, 101, 48), (30, 402, 17), (40, 1, 64), (2, 2000, 16),
                                                  (9, 300, 3), (6, 3, 8), (20, 41, 29), (3, 130, 1), (7, 2, 70), (33, 6, 512),
                                                  (3, 9, 130), (9, 131, 65)])
def test_weights_that_are_given_are_exact(a, b, rows, depth, columns):
    rng, linnet = np.random.default_rng(9), import_package()
    x, w = bytes_of(rng, a, rows, depth), bytes_of(rng, b, 2, depth, columns)
    w[0] = np.iinfo(b).min  # the largest sums
    constants = {"za": np.array(3, a), "zb": np.array(99, b)}
    model = graph_of([helper.make_node("MatMulInteger", ["x", "w", "za", "zb"], ["y"])],
                     [("x", element_type(x.dtype), x.shape), ("w", element_type(w.dtype), w.shape)],
                     [("y", TensorProto.INT32, None)], constants)
    (y,) = linnet.InferenceSession(model.SerializeToString()).run(None, {"x": x, "w": w})
    assert np.array_equal(y, (x.astype(np.int32) - 3) @ (w.astype(np.int32) - 99))


@pytest.mark.parametrize("end", [None, "Relu", "Add"])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("rows, depth, columns", [(3, 8, 40), (4, 3, 1), (11, 16, 33), (70, 70, 40), (13, 256, 16), (65, 257, 96),
                                                  (29, 130, 15)])
def test_short_rows_become_floats(rows, depth, columns, biased, end):
    """Scales and zero points of each column; a clamp and a residual behind them."""
    rng, linnet = np.random.default_rng(3), import_package()
    x, w = bytes_of(rng, np.uint8, rows, depth), bytes_of(rng, np.int8, depth, columns)
    zeros = rng.choice(np.array([-128, -1, 3, 127], np.int8), columns)
    scales, bias = rng.uniform(0.01, 0.1, columns).astype(np.float32), rng.normal(0, 9, columns).astype(np.float32)
    constants = {"w": w, "sa": np.float32(0.5), "sb": scales, "za": np.uint8(77), "zb": zeros}
    constants |= {"bias": bias} if biased else {}
    inputs = ["x", "w", "sa", "sb", "za", "zb"] + ["bias"] * biased
    nodes = [helper.make_node("MatMulIntegerToFloat", inputs, ["y" if end is None else "m"], domain="com.microsoft")]
    if end:
        nodes.append(helper.make_node(end, ["m", "r"] if end == "Add" else ["m"], ["y"]))
    r = rng.normal(0, 9, (rows, columns)).astype(np.float32)
    given = [("x", TensorProto.UINT8, x.shape), ("r", TensorProto.FLOAT, r.shape)]
    model = graph_of(nodes, given, [("y", TensorProto.FLOAT, None)], constants)
    sums = (x.astype(np.int32) - 77) @ (w.astype(np.int32) - zeros)
    want = sums * (np.float32(0.5) * scales) + (bias if biased else 0)
    want = np.maximum(want, 0) if end == "Relu" else want + r if end == "Add" else want
    options = linnet.SessionOptions()
    for options.intra_op_num_threads in (1, 3):
        (y,) = linnet.InferenceSession(model.SerializeToString(), options).run(None, {"x": x, "r": r})
        np.testing.assert_allclose(y, want, rtol=2e-6, atol=2e-4)


def image_sums(x, w, groups, stride, dilation, pad):
    """Of images and weights that are real numbers already."""
    (n, _, height, width), (filters, depth, kh, kw) = x.shape, w.shape
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows = (height + 2 * pad - (kh - 1) * dilation - 1) // stride + 1
    columns = (width + 2 * pad - (kw - 1) * dilation - 1) // stride + 1
    y = np.zeros((n, groups, filters // groups, rows, columns), np.int32)
    for i in range(kh):
        for j in range(kw):
            part = padded[:, :, i * dilation:, j * dilation:][:, :, :(rows - 1) * stride + 1:stride, :(columns - 1) * stride + 1:stride]
            part = part.reshape(n, groups, depth, rows, columns)
            y += np.einsum("ngdhw,gfd->ngfhw", part, w[:, :, i, j].reshape(groups, filters // groups, depth))
    return y.reshape(n, filters, rows, columns)


@pytest.mark.parametrize("a", [np.uint8, np.int8])
@pytest.mark.parametrize("b", [np.uint8, np.int8])
@pytest.mark.parametrize("image, kernel, groups, stride, dilation, pad", [
    ((1, 1, 64, 64), (16, 1, 3, 3), 1, 1, 1, 1), ((2, 3, 21, 13), (33, 3, 3, 3), 1, 2, 1, 1), ((1, 3, 12, 20), (96, 3, 4, 4), 1, 4, 1, 0),
    ((2, 60, 5, 13), (62, 60, 1, 1), 1, 1, 1, 0), ((1, 64, 4, 4), (36, 16, 1, 1), 4, 1, 1, 0), ((3, 2, 9, 17), (19, 2, 2, 2), 1, 1, 3, 2),
    ((1, 128, 8, 8), (64, 128, 1, 1), 1, 1, 1, 0), ((1, 8, 3, 5), (40, 8, 3, 3), 1, 1, 1, 1),
    ((1, 1, 50, 71), (16, 1, 5, 5), 1, 2, 1, 2), ((2, 3, 19, 37), (24, 3, 3, 3), 1, 1, 1, 1), ((1, 2, 40, 70), (20, 2, 3, 3), 1, 2, 1, 0),
    ((1, 1, 70, 90), (32, 1, 4, 4), 1, 4, 2, 1)])
def test_images_are_exact(a, b, image, kernel, groups, stride, dilation, pad):
    """Few elements to a pixel's sum, that are computed by planes, and some more; zero points of each filter."""
    rng, linnet = np.random.default_rng(8), import_package()
    x, w = bytes_of(rng, a, *image), bytes_of(rng, b, *kernel)
    info = np.iinfo(b)
    zeros = rng.choice(np.array([info.min, 3, info.max], b), kernel[0])
    attributes = {"group": groups, "strides": [stride] * 2, "dilations": [dilation] * 2, "pads": [pad] * 4}
    nodes = [helper.make_node("ConvInteger", ["x", "w", "za", "zb"], ["y"], **attributes),
             helper.make_node("ConvInteger", ["x", "w", "za", "same"], ["z"], **attributes)]
    same = np.array(0 if b == np.int8 else 128, b)  # stored as 0
    constants = {"w": w, "za": np.array(77, a), "zb": zeros, "same": same}
    model = graph_of(nodes, [("x", element_type(x.dtype), x.shape)], [(n, TensorProto.INT32, None) for n in "yz"], constants)
    wide, w = x.astype(np.int32) - 77, w.astype(np.int32)
    want = [image_sums(wide, w - z, groups, stride, dilation, pad) for z in (zeros.astype(np.int32)[:, None, None, None], int(same))]
    options = linnet.SessionOptions()
    for options.intra_op_num_threads in (1, 3):
        got = linnet.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
        assert all(np.array_equal(g, v) for g, v in zip(got, want, strict=True))
