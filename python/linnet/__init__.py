"""Linnet: ONNX models on a CPU, from one mmappable file.

    import linnet
    session = linnet.InferenceSession("model.onnx")      # or a converted "model.lnt"
    outputs = session.run(None, {"input": array})

The names are onnxruntime's, so that a script written for it runs with `import linnet as onnxruntime`.
"""

from . import quantization
from ._convert import Report, UnsupportedModel, convert
from ._native import LinnetError, lib as _lib
from ._session import (
    ExecutionMode,
    GraphOptimizationLevel,
    InferenceSession,
    ModelMetadata,
    NodeArg,
    RunOptions,
    SessionOptions,
    bench,
    set_seed,
)
from ._value import IOBinding, OrtValue

__version__ = _lib.lnt_version().decode()


def get_available_providers():
    return ["CPUExecutionProvider"]


def get_all_providers():
    return get_available_providers()


def get_device():
    return "CPU"


def get_version_string():
    return __version__


def set_default_logger_severity(severity):
    """Accepted for scripts that call it: nothing is ever printed."""


def set_default_logger_verbosity(verbosity):
    """Accepted for scripts that call it: nothing is ever printed."""


__all__ = [
    "ExecutionMode", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "LinnetError", "ModelMetadata", "NodeArg",
    "OrtValue", "Report", "RunOptions", "SessionOptions", "UnsupportedModel", "bench", "convert", "get_all_providers",
    "get_available_providers", "get_device", "get_version_string", "quantization", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_seed",
]
