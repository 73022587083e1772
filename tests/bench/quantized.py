"""The bench's models as onnxruntime's own tools quantize them."""

import logging
import pathlib
import shutil

import numpy as np
import onnx
import onnx.version_converter

# form: (format or dynamic, activations, weights, per channel)
FORMS = {
    "qdq": ("QDQ", "QInt8", "QInt8", True),  # what quantize_static does unless told otherwise, but per channel
    "qoperator": ("QOperator", "QUInt8", "QInt8", True),
    "u8u8": ("QOperator", "QUInt8", "QUInt8", False),  # also for opsets below 13, which know no scales per channel
    "dynamic": (None, None, "QInt8", True),
}


def session(source, **settings):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    for name, value in settings.items():
        setattr(options, name, value)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def prepare(model, path):
    """Writes the float model as the tools want it: of an opset that knows scales per channel, where it can be brought
    there, no initializers among the inputs, normalizations folded."""
    constants = {t.name for t in model.graph.initializer}
    fed = [i for i in model.graph.input if i.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(fed)
    try:
        if model.opset_import[0].version < 13:
            model = onnx.version_converter.convert_version(model, 13)
    except onnx.version_converter.ConvertError:
        pass
    model.ir_version = max(model.ir_version, 8)
    session(model.SerializeToString(), optimized_model_filepath=str(path))


def samples(feeds):
    """A calibration reader over feeds."""
    from onnxruntime.quantization import CalibrationDataReader

    class Samples(CalibrationDataReader):
        left = iter(feeds)

        def get_next(self):
            return next(self.left, None)

    return Samples()


def quantize(source, path, form, feeds=(), **more):
    """Quantizes the float model at source; feeds calibrate the static forms."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    logging.getLogger().setLevel(logging.ERROR)
    layout, activations, weights, per_channel = form
    if layout is None:
        quantize_dynamic(source, path, weight_type=QuantType[weights], per_channel=per_channel, **more)
    else:
        quantize_static(source, path, samples(feeds), quant_format=QuantFormat[layout], per_channel=per_channel,
                        activation_type=QuantType[activations], weight_type=QuantType[weights], **more)


# ---- the bench's list ----

def recorded(case, names):
    """The inputs of a case and two more of their kind."""
    values = [onnx.numpy_helper.to_array(onnx.load_tensor(case / f"input_{k}.pb")) for k in range(len(names))]
    random = np.random.default_rng(1)

    def vary(value, by):
        noise = random.standard_normal(value.shape) * by * max(float(np.abs(value).max(initial=0)), 1e-3)
        return (value + noise).astype(value.dtype) if value.dtype == np.float32 else value

    return [dict(zip(names, (vary(v, by) for v in values))) for by in (0.0, 0.05, 0.2)]


def make(source, form, label, made):
    """Folder `made` holds the model of folder `source` in a form afterwards, and its cases; case `label` calibrates."""
    model = made / "model.onnx"
    written = [(source / "model.onnx").stat().st_mtime, pathlib.Path(__file__).stat().st_mtime]
    if model.exists() and model.stat().st_mtime > max(written):
        return
    made.mkdir(parents=True, exist_ok=True)
    for case in source.glob("test_data_set_*"):
        shutil.copytree(case, made / case.name, dirs_exist_ok=True)
    prepared = made / "float.onnx"
    prepare(onnx.load(source / "model.onnx"), prepared)
    names = [i.name for i in session(str(prepared)).get_inputs()]
    quantize(prepared, model, FORMS[form], recorded(source / f"test_data_set_{label}", names))
    prepared.unlink()
