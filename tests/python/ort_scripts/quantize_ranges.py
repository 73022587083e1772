"""Static quantization of a model of pictures with a reader of calibration data."""

import numpy as np
import onnxruntime as rt
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quant_pre_process, quantize_static


def pictures(n, seed):
    return np.random.default_rng(seed).random((n, 3, 16, 16), np.float32)


class Pictures(CalibrationDataReader):
    def __init__(self, path, n):
        session = rt.InferenceSession(path, None, providers=["CPUExecutionProvider"])
        self.name, self.n = session.get_inputs()[0].name, n
        self.enumerated = None

    def get_next(self):
        if self.enumerated is None:
            self.enumerated = iter([{self.name: picture[None]} for picture in pictures(self.n, 1)])
        return next(self.enumerated, None)

    def rewind(self):
        self.enumerated = None


def main(folder):
    plain, clean, small = (str(folder / name) for name in ("pictures.onnx", "pictures.clean.onnx", "pictures.static.onnx"))
    quant_pre_process(plain, clean, skip_symbolic_shape=True)
    reader = Pictures(plain, 24)
    quantize_static(clean, small, reader, quant_format=QuantFormat.QDQ, per_channel=True, weight_type=QuantType.QInt8,
                    activation_type=QuantType.QInt8, calibrate_method=CalibrationMethod.MinMax)
    sessions = [rt.InferenceSession(path, providers=["CPUExecutionProvider"]) for path in (plain, clean, small)]
    outputs = [session.run(None, {"x": pictures(8, 2)})[0] for session in sessions]
    noise = np.linalg.norm(outputs[0] - outputs[2]) / np.linalg.norm(outputs[0])
    return {"float": outputs[0], "clean": outputs[1], "close": np.array(0 < noise < 0.05)}
