"""What other tools make of a script export: in half precision, optimized by onnxruntime, slimmed, quantized. Each takes
the folder of the plain export and a path to write to, and gives the inputs its model takes."""

import contextlib
import io
import pathlib
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

KINDS = ("f16", "ort", "slim", "dynamic8", "static8")
# Of each family one or two: every tool meets convolutions, attention, recurrence, detection and what surrounds them.
SOME = ("unet", "crnn", "lstm_stack", "vocoder", "mobilenet_v2", "resnet18", "densenet121", "shufflenet_v2_x1_0", "efficientnet_b0",
        "convnext", "swin_t", "deeplab_v3", "ssd", "r3d", "timm_vit", "timm_mobilevit", "timm_mixer", "timm_ghostnet", "timm_nfnet",
        "bert", "deberta_v2", "gpt2", "llama", "qwen3", "t5", "whisper", "wav2vec2", "hf_segformer", "hf_detr", "clip",
        "time_series_transformer")
VARIANTS = dict.fromkeys(SOME, KINDS)


def inputs_of(plain):
    tensors = [onnx.load_tensor(p) for p in sorted((plain / "test_data_set_0").glob("input_*.pb"))]
    return {t.name: numpy_helper.to_array(t) for t in tensors}


def f16(plain, path, feeds):
    from onnxruntime.transformers.float16 import convert_float_to_float16
    onnx.save(convert_float_to_float16(onnx.load(plain / "model.onnx"), disable_shape_infer=True), path)
    return {name: value.astype(np.float16) if value.dtype == np.float32 else value for name, value in feeds.items()}


def ort(plain, path, feeds):
    """Fused as far as that is good for every CPU."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(str(plain / "model.onnx"), options, providers=["CPUExecutionProvider"])
    return feeds


def slim(plain, path, feeds):
    import onnxslim
    onnxslim.slim(str(plain / "model.onnx"), str(path))
    return feeds


def prepared(plain, folder):
    """With the shapes that quantization wants, where they can be found."""
    from onnxruntime.quantization.shape_inference import quant_pre_process
    with contextlib.suppress(Exception):
        quant_pre_process(str(plain / "model.onnx"), str(folder / "prepared.onnx"), skip_symbolic_shape=True)
        return folder / "prepared.onnx"
    return plain / "model.onnx"


def dynamic8(plain, path, feeds):
    from onnxruntime.quantization import quantize_dynamic
    with tempfile.TemporaryDirectory() as folder:
        quantize_dynamic(prepared(plain, pathlib.Path(folder)), path)
    return feeds


def static8(plain, path, feeds):
    """Weights and activations, with the range that the inputs of the case lead to."""
    from onnxruntime.quantization import CalibrationDataReader, quantize_static

    class Reader(CalibrationDataReader):
        left = [feeds]

        def get_next(self):
            return self.left.pop() if self.left else None

    with tempfile.TemporaryDirectory() as folder:
        quantize_static(prepared(plain, pathlib.Path(folder)), path, Reader(), per_channel=True)
    return feeds


def make(kind, plain, path):
    if not (plain / "model.onnx").exists():
        raise ValueError(f"there is no {plain.name}")
    with contextlib.redirect_stdout(io.StringIO()):
        return globals()[kind](plain, path, inputs_of(plain))
