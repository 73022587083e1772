"""Quantized models under onnxruntime.quantization's names: a script written for it runs with the import changed.

    from linnet.quantization import CalibrationDataReader, quantize_dynamic, quantize_static

What is written is an .lnt, whatever the name's ending; linnet.InferenceSession opens it by its contents. Which layers become
INT8, and how exact the outputs stay, is Linnet's to decide (docs/int8.md): weights have a scale for each channel in any case,
so that per_channel, reduce_range and the element types need no thought."""

from __future__ import annotations

import enum
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ._convert import Report, Source, convert

__all__ = [
    "CalibrationDataReader", "CalibrationMethod", "QuantFormat", "QuantType", "quant_pre_process", "quantize_dynamic", "quantize_static",
]


class QuantType(enum.Enum):
    """Element types; weights and activations are of 8 bits, whichever is named."""

    QInt8 = 0
    QUInt8 = 1
    QInt16 = 4
    QUInt16 = 5
    QInt4 = 6
    QUInt4 = 7


class QuantFormat(enum.Enum):
    """Accepted and not looked at: an .lnt has a form of its own."""

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

    def get_next(self) -> dict[str, np.ndarray] | None:
        """To be overridden."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        return iter(self.get_next, None)


def quant_pre_process(input_model: Source, output_model_path: str | os.PathLike[str], *_: Any, **__: Any) -> None:
    """Copies the model to output_model_path, for scripts that call it: what it would do is done when the model is converted."""
    onnx = input_model if isinstance(input_model, (bytes, bytearray, memoryview)) else pathlib.Path(input_model).read_bytes()
    pathlib.Path(output_model_path).write_bytes(onnx)


def _check_types(**types: QuantType | None) -> None:
    for name, given in types.items():
        if given not in (None, QuantType.QInt8, QuantType.QUInt8):
            raise ValueError(f"{name}={given}: activations and weights have 8 bits; for weights of 4 there is linnet.convert(int4=32)")


def _quantize(model: Source, output: Any, op_types: Any, nodes: Any, excluded: Any, settings: dict[str, Any]) -> None:
    """Layers that are excluded stay in float and, where types or nodes are named, all others."""
    in_float, layers = [], Report()
    if op_types or nodes or excluded:
        convert(model, report=layers, int8="dynamic")
        in_float = [node for node, op, *_ in layers
                    if node in (excluded or ()) or (op_types and op not in op_types) or (nodes and node not in nodes)]
    convert(model, output, float_layers=in_float, **settings)


def quantize_dynamic(model_input: Source, model_output: str | os.PathLike[str], op_types_to_quantize: Iterable[str] | None = None,
                     per_channel: bool = False, reduce_range: bool = False, weight_type: QuantType = QuantType.QInt8,
                     nodes_to_quantize: Iterable[str] | None = None, nodes_to_exclude: Iterable[str] | None = None,
                     use_external_data_format: bool = False, extra_options: Mapping[str, Any] | None = None) -> None:
    """Writes model_input (a path, or the bytes of an ONNX model) to model_output with INT8 weights; activations are quantized
    in each run. op_types_to_quantize, nodes_to_quantize, nodes_to_exclude: which layers; the rest is accepted. Raises ValueError
    for types that are not of 8 bits, and what linnet.convert raises."""
    _check_types(weight_type=weight_type)
    _quantize(model_input, model_output, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, {"int8": "dynamic"})


def quantize_static(model_input: Source, model_output: str | os.PathLike[str],
                    calibration_data_reader: Iterable[Mapping[str, Any]], quant_format: QuantFormat = QuantFormat.QDQ,
                    op_types_to_quantize: Iterable[str] | None = None, per_channel: bool = False, reduce_range: bool = False,
                    activation_type: QuantType = QuantType.QInt8, weight_type: QuantType = QuantType.QInt8,
                    nodes_to_quantize: Iterable[str] | None = None, nodes_to_exclude: Iterable[str] | None = None,
                    use_external_data_format: bool = False, calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
                    calibration_providers: Iterable[str] | None = None, extra_options: Mapping[str, Any] | None = None) -> None:
    """The same with ranges of activations from recorded inputs, so that bytes go from layer to layer. Raises
    ValueError where there are none, or the inputs of one are not those of the others."""
    _check_types(weight_type=weight_type, activation_type=activation_type)
    samples = list(calibration_data_reader)
    if not samples:
        raise ValueError("calibration_data_reader gave no inputs")
    settings = {"int8": "static", "calibrate": samples, "calibration": CalibrationMethod(calibrate_method).value}
    _quantize(model_input, model_output, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude, settings)
