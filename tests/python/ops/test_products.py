"""Products and recurrent layers large enough to be shared: the same bits on any number of threads, equal columns
alike wherever they are stored, the numbers of onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import import_package, levels


@pytest.fixture(scope="module")
def linnet():
    return import_package()


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def model(op, inputs, constants, **attributes):
    names = [f"x{i}" for i in range(len(inputs) + len(constants))]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attributes)], "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in zip(names, inputs)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(a, n) for n, a in zip(names[len(inputs):], constants)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), dict(zip(names, inputs))


def outcomes(linnet, m, feed, threads):
    options = linnet.SessionOptions()
    options.intra_op_num_threads = threads
    return linnet.InferenceSession(m.SerializeToString(), options).run(None, feed)[0]


CASES = {
    "one row, B beyond a cache": ("MatMul", [floats(1, 700)], [floats(700, 1500)], {}),
    "rows and columns in blocks": ("MatMul", [floats(400, 500)], [floats(500, 333)], {}),
    "more columns than rows": ("MatMul", [floats(30, 500)], [floats(500, 2001)], {}),
    "few columns, a row left over": ("MatMul", [floats(781, 200)], [floats(200, 24)], {}),
    "few columns, sums along K": ("MatMul", [floats(783, 300)], [floats(300, 3)], {}),
    "few columns, B not constant": ("MatMul", [floats(783, 300), floats(300, 3)], [], {}),
    "a batch of columns": ("MatMul", [floats(6, 150, 97), floats(6, 97, 1)], [], {}),
    "few columns, B not constant, transposed": ("Gemm", [floats(205, 331), floats(7, 331), floats(7)], [], {"transB": 1}),
    "few rows, many columns": ("MatMul", [floats(49, 96)], [floats(96, 580)], {}),
    "a batch, B in place": ("MatMul", [floats(12, 128, 32), floats(12, 32, 128)], [], {}),
    "a row, B not constant, beyond a cache": ("MatMul", [floats(1, 700), floats(700, 1501)], [], {}),
    "two rows, B not constant": ("MatMul", [floats(2, 61), floats(61, 35)], [], {}),
    "a batch of rows": ("MatMul", [floats(5, 3, 90), floats(5, 90, 1070)], [], {}),
    "a batch of rows, vectors that overlap": ("MatMul", [floats(6, 1, 90), floats(6, 90, 50)], [], {}),
    "a batch of dot products": ("MatMul", [floats(9, 1, 64), floats(9, 64, 1)], [], {}),
    "a row, B not constant, transposed, C in each column": (
        "Gemm", [floats(300, 1), floats(1100, 300), floats(1, 1100)], [], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 3.0}),
    "rows, B not constant, transposed, C in each row": ("Gemm", [floats(3, 77), floats(600, 77), floats(3, 1)], [],
                                                        {"transB": 1, "beta": -2.0}),
    "rows, B not constant, C a number": ("Gemm", [floats(3, 77), floats(77, 40), floats(1)], [], {"alpha": 2.0}),
    "a row, B not constant, transposed, short": ("Gemm", [floats(1, 4), floats(701, 4), floats(701)], [],
                                                 {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    "one product each": ("MatMul", [floats(310, 1), floats(1, 700)], [], {}),
    "one product each, B constant, of a batch": ("MatMul", [floats(2, 3, 40, 1)], [floats(3, 1, 521)], {}),
    "one product each, transposed, C in each row": ("Gemm", [floats(1, 90), floats(301, 1), floats(90, 1)], [],
                                                    {"transA": 1, "transB": 1, "alpha": 0.5, "beta": -2.0}),
    "a column by a number": ("MatMul", [floats(5000, 1), floats(1, 1)], [], {}),
    "columns of A by one of B": ("Gemm", [floats(16, 2100), floats(1, 16), floats(2100, 1)], [],
                                 {"transA": 1, "transB": 1, "beta": 0.5}),
    "columns of A by one of B, C a number": ("Gemm", [floats(70, 3), floats(70, 1), floats(1)], [], {"transA": 1}),
    "rows by one column, C of each": ("Gemm", [floats(1003, 25), floats(25, 1), floats(1003, 1)], [], {"alpha": 2.0, "beta": 0.5}),
    "rows by one constant column, C of each": ("Gemm", [floats(1003, 25)], [floats(25, 1), floats(1003, 1)],
                                               {"alpha": 2.0, "beta": 0.5}),
    "columns of A by a constant one of B": ("Gemm", [floats(16, 700)], [floats(1, 16), floats(1)], {"transA": 1, "transB": 1}),
    "a batch of rows by one constant column": ("MatMul", [floats(3, 50, 9)], [floats(9, 1)], {}),
    "a batch of rows by one column": ("MatMul", [floats(3, 50, 9), floats(9, 1)], [], {}),
    "short rows by one column": ("MatMul", [floats(77, 5), floats(5, 1)], [], {}),
    "short rows, C in each row": ("Gemm", [floats(1003, 4), floats(5, 4), floats(1003, 1)], [], {"transB": 1, "alpha": 0.5}),
    "short rows, a batch, few columns, B not constant": ("MatMul", [floats(6, 203, 64), floats(6, 64, 7)], [], {}),
    "short rows, many columns, C in each row": ("Gemm", [floats(1003, 3)], [floats(3, 333), floats(1003, 1)], {"alpha": 0.5}),
    "K in blocks, C in each row": ("Gemm", [floats(401, 1500), floats(1500, 333), floats(401, 1)], [], {"beta": -2.0}),
    "short rows, C of each number": ("Gemm", [floats(1003, 9), floats(9, 20), floats(1003, 20)], [], {"beta": -2.0}),
    "matrices packed at run": ("MatMul", [floats(3, 205, 40), floats(3, 40, 205)], [], {}),
    "B of rows, transposed, packed at run": ("Gemm", [floats(301, 70), floats(203, 70), floats(203)], [], {"transB": 1}),
    "rows of nothing by columns": ("MatMul", [floats(2, 205, 0), floats(2, 0, 300)], [], {}),
    "an outer product": ("MatMul", [floats(4, 77, 1), floats(4, 1, 100)], [], {}),
    "short rows, many columns": ("Gemm", [floats(205, 96)], [floats(96, 581), floats(581)], {"alpha": 0.5}),
    "short rows, two columns": ("MatMul", [floats(801, 33), floats(33, 2)], [], {}),
    "short rows, half a vector behind others": ("Gemm", [floats(403, 50), floats(50, 24), floats(403, 24)], [], {"alpha": 2.0}),
    "rows along a column": ("Einsum", [floats(701, 33), floats(33)], [], {"equation": "ij,j->i"}),
    "a row times a matrix": ("Einsum", [floats(300), floats(300, 1200)], [], {"equation": "i,ij->j"}),
    "a batch of matrices along a column each": ("Einsum", [floats(5, 60, 7, 9), floats(5, 7, 9)], [],
                                                {"equation": "bmij,bij->bm"}),
    "a column whose batch lies elsewhere": ("Einsum", [floats(60, 5, 33), floats(33, 5)], [], {"equation": "mbk,kb->mb"}),
    "A turned, K in blocks": ("Gemm", [floats(1300, 405), floats(1300, 200), floats(405, 1)], [], {"transA": 1}),
    "A turned, more columns than rows": ("Gemm", [floats(1024, 205), floats(300, 1024)], [], {"transA": 1, "transB": 1}),
    "A turned, few columns": ("Gemm", [floats(512, 505)], [floats(512, 5), floats(5)], {"transA": 1}),
    "A turned, short rows": ("Gemm", [floats(40, 505)], [floats(40, 50)], {"transA": 1}),
    "rows of nothing by one column": ("MatMul", [floats(9, 0), floats(0, 1)], [], {}),
    "few rows and columns, B not constant, transposed": ("Gemm", [floats(7, 601), floats(9, 601), floats(9)], [], {"transB": 1}),
    "few rows, few columns behind a quad": ("MatMul", [floats(3, 7, 50), floats(3, 50, 7)], [], {}),
    "few rows 4 KB apart, few columns": ("MatMul", [floats(7, 2048)], [floats(2048, 12)], {}),
    "more rows 4 KB apart, few columns": ("MatMul", [floats(10, 2048)], [floats(2048, 20)], {}),
    "a row, rows of B 4 KB apart": ("MatMul", [floats(1, 333), floats(333, 1024)], [], {}),
    "few rows, three columns": ("MatMul", [floats(3, 7, 50), floats(3, 50, 3)], [], {}),
    "both transposed": ("Gemm", [floats(201, 77), floats(99, 201)], [floats(99)], {"transA": 1, "transB": 1}),
    "flat images, taps above and below": ("Conv", [floats(3, 48, 4, 37)], [floats(100, 48, 3, 3)],
                                          {"pads": [1, 1, 1, 1]}),
    "small images, K in blocks": ("Conv", [floats(2, 320, 7, 7)], [floats(130, 320, 3, 3)], {"pads": [1, 1, 1, 1]}),
    "far taps, few filters": ("Conv", [floats(1, 40, 23, 29)], [floats(9, 40, 3, 3)],
                              {"pads": [9, 9, 9, 9], "dilations": [9, 9]}),
    "lstm": ("LSTM", [floats(7, 1, 40)], [floats(1, 1056, 40) / 9, floats(1, 1056, 264) / 9, floats(1, 2112)],
             {"hidden_size": 264}),
    "gru": ("GRU", [floats(7, 2, 40)], [floats(1, 792, 40) / 9, floats(1, 792, 264) / 9, floats(1, 1584)],
            {"hidden_size": 264}),
    "gru, linear before reset": ("GRU", [floats(5, 1, 40)],
                                 [floats(1, 792, 40) / 9, floats(1, 792, 264) / 9, floats(1, 1584)],
                                 {"hidden_size": 264, "linear_before_reset": 1}),
}


@pytest.mark.parametrize("name", CASES)
def test_same_bits_on_any_number_of_threads(linnet, name):
    import onnxruntime

    op, inputs, constants, attributes = CASES[name]
    m, feed = model(op, inputs, constants, **attributes)
    one = outcomes(linnet, m, feed, 1)
    for threads in (2, 3, 5):
        assert np.array_equal(one, outcomes(linnet, m, feed, threads))
    want = onnxruntime.InferenceSession(m.SerializeToString()).run(None, feed)[0]
    np.testing.assert_allclose(one, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("columns", [40, 64, 345])
def test_few_rows_by_halves(linnet, level, columns):
    """Tiles of few rows widen B themselves; K in blocks; C added last; the same bits on two threads."""
    options = linnet.SessionOptions()
    options.level = level
    for rows in range(1, 14):
        for depth in (150, 331, 1300):
            a, b, c = (x.astype(np.float16) for x in (floats(rows, depth) / 8, floats(depth, columns), floats(rows, columns)))
            m, feed = model("Gemm", [a], [b, c], alpha=0.5)
            m.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT16
            found = []
            for options.intra_op_num_threads in (1, 2):
                found += linnet.InferenceSession(m.SerializeToString(), options).run(None, feed)
            np.testing.assert_allclose(found[0], (a.astype(np.float64) @ b) * 0.5 + c, rtol=4e-3, atol=4e-3)
            assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 20])
def test_equal_columns_give_equal_results(linnet, rows):
    """Whatever becomes of rounding: a column's sum does not depend on its place in a panel or a part."""
    column = floats(301, 1) * 1000
    m, feed = model("Gemm", [floats(rows, 301)], [np.repeat(column, 1000, axis=1), np.full(1000, 7, np.float32)])
    y = outcomes(linnet, m, feed, 2)
    assert (y == y[:, :1]).all()


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("depth", [16, 1300])
def test_columns_change_no_sum(linnet, level, depth):
    """What is beside a column has no part in it: a sound's windows have the bits of the whole. Rows of every rest of a tile."""
    options = linnet.SessionOptions()
    options.level, options.intra_op_num_threads = level, 1
    for rows in (*range(3, 24), 27, 32, 33, 64, 97, 190, 193, 197, 379, 385):
        graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, depth, "n"])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, rows, "n"])],
                                  [numpy_helper.from_array(floats(rows, depth, 1), "w")])
        m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        session, x = linnet.InferenceSession(m.SerializeToString(), options), floats(1, depth, 100)
        whole, = session.run(None, {"x": x})
        for columns in (13, 17, 31, 32, 33, 64):
            found, = session.run(None, {"x": x[:, :, :columns].copy()})
            assert found.tobytes() == whole[:, :, :columns].tobytes(), (rows, columns)


@pytest.mark.parametrize("height, width, channels", [(7, 7, 576), (14, 14, 240), (24, 32, 64), (9, 5, 130)])
def test_same_bits_through_a_block_that_squeezes(linnet, height, width, channels):
    """Pixels that stay where they are from step to step: 1x1, depthwise, global pool, product, 1x1 to a few."""
    import onnxruntime

    weights = {"w": floats(channels, 24, 1, 1) / 5, "d": floats(channels, 1, 5, 5) / 5,
               "s": floats(channels, channels, 1, 1) / 20, "p": floats(3, channels, 1, 1) / 20}
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]),
             helper.make_node("Conv", ["a", "d"], ["b"], group=channels, pads=[2] * 4),
             helper.make_node("GlobalAveragePool", ["b"], ["mean"]),
             helper.make_node("Conv", ["mean", "s"], ["squeezed"]),
             helper.make_node("Sigmoid", ["squeezed"], ["gate"]),
             helper.make_node("Mul", ["b", "gate"], ["scaled"]),
             helper.make_node("Conv", ["scaled", "p"], ["y"])]
    feed = {"x": floats(1, 24, height, width)}
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, feed["x"].shape)],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "mean")],
                              [numpy_helper.from_array(a, n) for n, a in weights.items()])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    one = outcomes(linnet, m, feed, 1)
    for threads in (2, 3, 5):
        assert np.array_equal(one, outcomes(linnet, m, feed, threads))
    want = onnxruntime.InferenceSession(m.SerializeToString()).run(None, feed)[0]
    np.testing.assert_allclose(one, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())
