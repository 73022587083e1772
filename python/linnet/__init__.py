"""Linnet: ONNX models on a CPU, from one mmappable file.

    import linnet
    session = linnet.InferenceSession("model.onnx")      # or a converted "model.lnt"
    outputs = session.run(None, {"input": array})

The names are onnxruntime's, so that a script written for it runs with `import linnet as onnxruntime`.
"""

from ._convert import UnsupportedModel, convert
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
)

__version__ = _lib.lnt_version().decode()


def get_available_providers():
    return ["CPUExecutionProvider"]


def get_device():
    return "CPU"


__all__ = [
    "ExecutionMode", "GraphOptimizationLevel", "InferenceSession", "LinnetError", "ModelMetadata", "NodeArg",
    "RunOptions", "SessionOptions", "UnsupportedModel", "bench", "convert", "get_available_providers", "get_device",
]
