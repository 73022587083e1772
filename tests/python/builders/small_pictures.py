"""Models of pictures, 0..255, whose answers follow from the picture: bright squares are faces, colors are classes."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import linnet

STRIDES = (8, 16, 32)


def _save(path, nodes, inputs, outputs, constants):
    info = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ports] for ports in (inputs, outputs)]
    graph = helper.make_graph(nodes, "small", *info, [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    linnet.convert(model.SerializeToString(), str(path))
    return path


def faces(path):
    """YuNet's outputs for a picture of any size: a cell of 8 x 8 pixels scores its brightness, and is a face as large as
    itself with its five points in the middle. The cells of 16 and 32 pixels are empty."""
    make, nodes, outputs = helper.make_node, [], []
    constants = {"full": np.float32(255), "rows": np.array([0, -1, 1], np.int64), "none": np.float32(0),
                 "box": np.array([0.5, 0.5, 0, 0], np.float32), "points": np.full(10, 0.5, np.float32)}
    for s in STRIDES:
        nodes += [
            make("AveragePool", ["input"], [f"mean{s}"], kernel_shape=[s, s], strides=[s, s]),
            make("ReduceMean", [f"mean{s}"], [f"gray{s}"], axes=[1]),
            make("Div", [f"gray{s}", "full"], [f"bright{s}"]),
            make("Reshape", [f"bright{s}", "rows"], [f"cell{s}"]),
            make("Mul", [f"cell{s}", "none"], [f"empty{s}"]),
            make("Add", [f"empty{s}", "box"], [f"bbox_{s}"]),
            make("Add", [f"empty{s}", "points"], [f"kps_{s}"]),
            *[make("Identity", [f"cell{s}" if s == 8 else f"empty{s}"], [f"{what}_{s}"]) for what in ("cls", "obj")],
        ]
        outputs += [(f"{what}_{s}", ["N", None, n]) for what, n in (("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10))]
    return _save(path, nodes, [("input", ["N", 3, "H", "W"])], outputs, constants)


def colors(path):
    """The mean of red, green and blue as the scores of three classes."""
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["mean"]), helper.make_node("Flatten", ["mean"], ["scores"])]
    return _save(path, nodes, [("x", ["N", 3, 32, 32])], [("scores", ["N", 3])], {})


def areas(path):
    """Scores by pixel of background, red, green and blue: what is above 128."""
    weights = np.concatenate([np.zeros((1, 3)), np.eye(3)]).astype(np.float32).reshape(4, 3, 1, 1)
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["scores"])]
    return _save(path, nodes, [("x", ["N", 3, "H", "W"])], [("scores", ["N", 4, "H", "W"])],
                 {"w": weights, "b": np.array([0, -128, -128, -128], np.float32)})
