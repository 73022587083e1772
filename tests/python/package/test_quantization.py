"""linnet.quantization under onnxruntime's names, and what linnet.convert tells of quantized models."""

import numpy as np
import onnx
import onnxruntime
import onnxruntime.quantization as theirs
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import import_package

linnet = import_package()
ours = linnet.quantization


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """y = Gemm(Relu(Conv(x))), as a file."""
    rng = np.random.default_rng(1)

    def weights(name, *shape):
        return numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32), name)

    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c"], ["r"], "relu"),
             helper.make_node("Flatten", ["r"], ["f"], "flat"),
             helper.make_node("Gemm", ["f", "v", "d"], ["y"], "gemm", transB=1)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "net", [info("x", TensorProto.FLOAT, ["N", 8, 6, 6])], [info("y", TensorProto.FLOAT, ["N", 10])],
                              [weights("w", 16, 8, 3, 3), weights("b", 16), weights("v", 10, 576), weights("d", 10)])
    path = tmp_path_factory.mktemp("quantization") / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def frames(n):
    rng = np.random.default_rng(2)
    return [{"x": rng.standard_normal((1, 8, 6, 6)).astype(np.float32)} for _ in range(n)]


def reader(base):
    class Recorded(base):
        def __init__(self):
            self.left = iter(frames(16))

        def get_next(self):
            return next(self.left, None)

    return Recorded()


def decibels(got, want):
    return 10 * np.log10((want ** 2).sum() / ((got - want) ** 2).sum())


def outputs(runtime, path):
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, feed)[0] for feed in frames(24)[16:]])


@pytest.mark.parametrize("how", ["dynamic", "static"])
def test_a_script_for_onnxruntime(model, tmp_path, how):
    """The same calls on both: the outputs of ours are as close to float as theirs."""
    want, snr = outputs(onnxruntime, model), {}
    for name, runtime, module in (("theirs", onnxruntime, theirs), ("ours", linnet, ours)):
        path = tmp_path / f"{name}.onnx"
        if how == "dynamic":
            module.quantize_dynamic(str(model), str(path), weight_type=module.QuantType.QInt8)
        else:
            module.quantize_static(str(model), str(path), reader(module.CalibrationDataReader), quant_format=module.QuantFormat.QDQ,
                                   per_channel=True, weight_type=module.QuantType.QInt8,
                                   calibrate_method=module.CalibrationMethod.MinMax)
        snr[name] = decibels(outputs(runtime, path), want)
        assert path.stat().st_size < model.stat().st_size
    assert snr["ours"] > 25 and snr["ours"] > snr["theirs"] - 3, snr


def test_layers_by_type_and_by_name(model, tmp_path):
    def size(**how):
        ours.quantize_dynamic(model, tmp_path / "m.lnt", **how)
        return (tmp_path / "m.lnt").stat().st_size

    all_of_it, gemm = size(), size(op_types_to_quantize=["Gemm"])
    assert all_of_it < gemm == size(nodes_to_exclude=["conv", "relu", "of another model"]) == size(nodes_to_quantize=["gemm"])


def test_what_it_does_not_do_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match="int4=32"):
        ours.quantize_dynamic(model, tmp_path / "m.lnt", weight_type=ours.QuantType.QInt4)
    with pytest.raises(ValueError, match="no inputs"):
        ours.quantize_static(model, tmp_path / "m.lnt", iter([]))
    with pytest.raises(TypeError):
        ours.quantize_dynamic(model, tmp_path / "m.lnt", per_chanel=True)
    with pytest.raises(linnet.LinnetError, match="off|dynamic|auto|static"):
        linnet.convert(model, int8="sometimes")
    with pytest.raises(linnet.LinnetError, match="no input z"):
        linnet.convert(model, int8="static", calibrate=[{"z": np.zeros(1, np.float32)}])
    with pytest.raises(ValueError, match="same inputs"):
        linnet.convert(model, int8="static", calibrate=[{"x": np.zeros(1, np.float32)}, {}])
    assert not (tmp_path / "m.lnt").exists()


def test_the_report(model):
    report = linnet.Report()
    linnet.convert(model, int8="static", calibrate=frames(16), report=report)
    assert [(node, op, kind) for node, op, kind, _ in report] == [("conv", "Conv", "int8"), ("gemm", "Gemm", "int8")]
    assert report.outputs["y"] > 25
    linnet.convert(model, int8="static", calibrate=frames(16), float_layers=["g*"], report=report)
    assert [(kind, why) for _, _, kind, why in report] == [("int8", ""), ("float", "--float")]
    linnet.convert(model, int4=32, report=report)
    assert [kind for _, _, kind, _ in report] == ["float", "int4"]
