"""Dynamic quantization of a model, and what it costs in size and accuracy."""

import os

import numpy as np
import onnxruntime as rt
from onnxruntime.quantization import QuantType, quantize_dynamic


def main(folder):
    plain, small = folder / "layers.onnx", folder / "layers.dynamic.onnx"
    quantize_dynamic(str(plain), str(small), weight_type=QuantType.QInt8, per_channel=True)
    x = np.random.default_rng(4).standard_normal((32, 128)).astype(np.float32)
    outputs = [rt.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0] for path in (plain, small)]
    error = np.linalg.norm(outputs[0] - outputs[1]) / np.linalg.norm(outputs[0])
    return {"float": outputs[0], "close": np.array(0 < error < 0.05), "labels": outputs[0].argmax(axis=1),
            "smaller": np.array(os.path.getsize(small) < 0.4 * os.path.getsize(plain))}
