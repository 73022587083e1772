"""Models as onnxruntime's optimizer and quantizer write them: an encoder, a decoder and a convolution net, converted and
held against onnxruntime."""

import logging
import sys

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest

from harness import ROOT, linnet, reference, write_case

sys.path.insert(0, str(ROOT / "tests/zoo"))
import decoder  # noqa: E402
import sequence  # noqa: E402
import small_net  # noqa: E402

Level = ort.GraphOptimizationLevel
LEVELS = {"extended": Level.ORT_ENABLE_EXTENDED, "all": Level.ORT_ENABLE_ALL}
OPTS = ["none", "all"]


def picture(seed):
    return {"x": np.random.default_rng(seed).standard_normal((1, 3, 20, 20)).astype(np.float32)}


MODELS = {
    "encoder": (lambda: sequence.minilm(2, 500), lambda: sequence.minilm_inputs(2, 9, 500)),
    "decoder": (decoder.build, lambda: decoder.inputs(3, 5)),
    "net": (small_net.build, lambda: picture(0)),
}


def make(folder, name):
    """The model's path, its inputs."""
    build, inputs = MODELS[name]
    path = folder / f"{name}.onnx"
    onnx.save(build(), path)
    return path, inputs()


def optimized(path, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(path.with_suffix(".optimized.onnx"))
    options.log_severity_level = 3
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return onnx.load(options.optimized_model_filepath)


def operators(model):
    return {n.op_type for n in model.graph.node if n.domain == "com.microsoft"}


def check(folder, model, feed, expected, tolerance):
    case = write_case(folder / "case", model, feed, expected)
    for opt in OPTS:
        done = linnet("verify", case / "model.onnx", "--opt", opt, "--max-rel", tolerance)
        assert done.returncode == 0, f"--opt {opt}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name, wanted", [("encoder", "BiasGelu"), ("decoder", "QuickGelu")])
def test_fused(tmp_path, name, wanted, level):
    path, feed = make(tmp_path, name)
    model = optimized(path, LEVELS[level])
    assert {wanted, "FusedMatMul"} <= operators(model)
    check(tmp_path, model, feed, reference(path, feed), "1e-4")


def test_fused_convolutions(tmp_path):
    path, feed = make(tmp_path, "net")
    model = optimized(path, Level.ORT_ENABLE_EXTENDED)
    assert "FusedConv" in operators(model)
    check(tmp_path, model, feed, reference(path, feed), "1e-4")


def test_weights_of_one_machine_are_refused(tmp_path):
    model = optimized(make(tmp_path, "net")[0], Level.ORT_ENABLE_ALL)
    if not any(n.domain == "com.microsoft.nchwc" for n in model.graph.node):
        pytest.skip("onnxruntime blocks no channels on this machine")
    onnx.save(model, tmp_path / "blocked.onnx")
    done = linnet("convert", tmp_path / "blocked.onnx", "-o", tmp_path / "m.lnt")
    assert done.returncode == 4 and "ORT_ENABLE_EXTENDED" in done.stderr, done.stderr
    assert not (tmp_path / "m.lnt").exists()


def test_fused_by_the_transformer_tool(tmp_path):
    pytest.importorskip("sympy")
    from onnxruntime.transformers import optimizer
    path, feed = make(tmp_path, "encoder")
    logging.disable(logging.CRITICAL)
    made = optimizer.optimize_model(str(path), model_type="bert", num_heads=sequence.HEADS, hidden_size=sequence.HIDDEN,
                                    opt_level=0)
    logging.disable(logging.NOTSET)
    made.save_model_to_file(str(tmp_path / "fused.onnx"))
    model = onnx.load(tmp_path / "fused.onnx")
    assert {"Attention", "SkipLayerNormalization", "BiasGelu"} <= operators(model)
    check(tmp_path, model, feed, reference(path, feed), "1e-4")


@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_dynamically_quantized(tmp_path, name):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    path, feed = make(tmp_path, name)
    quantized = tmp_path / "quantized.onnx"
    quantize_dynamic(path, quantized, weight_type=QuantType.QInt8)
    model = optimized(quantized, Level.ORT_ENABLE_EXTENDED)
    assert {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"} <= operators(model)
    check(tmp_path, model, feed, reference(quantized, feed, optimize=True), "1e-2")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("form", ["QOperator", "QDQ"])
def test_statically_quantized(tmp_path, form, level):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Pictures(CalibrationDataReader):
        left = 3

        def get_next(self):
            self.left -= 1
            return picture(self.left) if self.left >= 0 else None

    path, feed = make(tmp_path, "net")
    quantized = tmp_path / "quantized.onnx"
    quantize_static(path, quantized, Pictures(), quant_format=QuantFormat[form])
    model = optimized(quantized, LEVELS[level])
    assert {"QGemm", "QLinearSoftmax"} <= operators(model)
    check(tmp_path, model, feed, reference(quantized, feed, optimize=True), "1e-2")


def test_a_bias_that_is_too_short_is_refused(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        m (uint8[2,4] a, uint8[4,40] b, float scale, uint8 zero, float[3] bias) => (float[2,40] y) {
            y = com.microsoft.MatMulIntegerToFloat(a, b, scale, scale, zero, zero, bias) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    assert linnet("convert", tmp_path / "m.onnx", "-o", tmp_path / "m.lnt").returncode == 0
    given = []
    for name, value in (("a", np.zeros((2, 4), np.uint8)), ("b", np.zeros((4, 40), np.uint8)),
                        ("scale", np.float32(1)), ("zero", np.uint8(0)), ("bias", np.zeros(3, np.float32))):
        np.save(tmp_path / f"{name}.npy", value)
        given += ["--input", f"{name}={tmp_path / name}.npy"]
    done = linnet("run", tmp_path / "m.lnt", *given)
    assert done.returncode != 0 and "bias must hold 40 floats" in done.stderr, done.stdout + done.stderr
