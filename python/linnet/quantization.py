"""Quantized models under onnxruntime.quantization's names: a script written for it runs with the import changed.

    from linnet.quantization import CalibrationDataReader, quantize_dynamic, quantize_static

What is written is an .lnt, whatever the name's ending; linnet.InferenceSession opens it by its contents. Which layers become
INT8, and how exact the outputs stay, is Linnet's to decide (docs/int8.md): weights have a scale for each channel in any case,
so that per_channel, reduce_range and the element types need no thought."""

import enum

from ._convert import Report, convert

__all__ = ["CalibrationDataReader", "CalibrationMethod", "QuantFormat", "QuantType", "quantize_dynamic", "quantize_static"]


class QuantType(enum.Enum):
    QInt8 = 0
    QUInt8 = 1
    QInt16 = 4
    QUInt16 = 5
    QInt4 = 6
    QUInt4 = 7


class QuantFormat(enum.Enum):
    QOperator = 0
    QDQ = 1


class CalibrationMethod(enum.Enum):
    """How the ranges of activations are found; Best: by what serves the outputs best."""

    MinMax = "minmax"
    Entropy = "entropy"
    Percentile = "percentile"
    Distribution = "mse"
    Best = "best"


class CalibrationDataReader:
    """Recorded inputs: get_next() gives {"x": array} of one run after the other, and None at the end."""

    def get_next(self):
        raise NotImplementedError

    def __iter__(self):
        return iter(self.get_next, None)


def _check_types(**types):
    for name, given in types.items():
        if given not in (None, QuantType.QInt8, QuantType.QUInt8):
            raise ValueError(f"{name}={given}: activations and weights have 8 bits; for weights of 4 there is linnet.convert(int4=32)")


def _quantize(model, output, op_types, nodes, excluded, settings):
    """Layers that are excluded stay in float and, where types or nodes are named, all others."""
    in_float, layers = [], Report()
    if op_types or nodes or excluded:
        convert(model, report=layers, int8="dynamic")
        in_float = [node for node, op, *_ in layers
                    if node in (excluded or ()) or (op_types and op not in op_types) or (nodes and node not in nodes)]
    convert(model, output, float_layers=in_float, **settings)


def quantize_dynamic(model_input, model_output, op_types_to_quantize=None, per_channel=False, reduce_range=False,
                     weight_type=QuantType.QInt8, nodes_to_quantize=None, nodes_to_exclude=None,
                     use_external_data_format=False, extra_options=None):
    """Writes model_input (a path, or the bytes of an ONNX model) to model_output with INT8 weights; activations are quantized
    in each run. op_types_to_quantize, nodes_to_quantize, nodes_to_exclude: which layers; the rest is accepted."""
    _check_types(weight_type=weight_type)
    _quantize(model_input, model_output, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, {"int8": "dynamic"})


def quantize_static(model_input, model_output, calibration_data_reader, quant_format=QuantFormat.QDQ,
                    op_types_to_quantize=None, per_channel=False, reduce_range=False, activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8, nodes_to_quantize=None, nodes_to_exclude=None,
                    use_external_data_format=False, calibrate_method=CalibrationMethod.MinMax, calibration_providers=None,
                    extra_options=None):
    """The same with ranges of activations from recorded inputs, so that bytes go from layer to layer."""
    _check_types(weight_type=weight_type, activation_type=activation_type)
    samples = list(calibration_data_reader)
    if not samples:
        raise ValueError("calibration_data_reader gave no inputs")
    settings = {"int8": "static", "calibrate": samples, "calibration": CalibrationMethod(calibrate_method).value}
    _quantize(model_input, model_output, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, settings)
