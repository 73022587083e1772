"""Linnet: ONNX models on a CPU, from one mmappable file.

    import linnet
    session = linnet.InferenceSession("model.onnx")      # or a converted "model.lnt"
    outputs = session.run(None, {"input": array})

The names are onnxruntime's, so that a script written for it runs with `import linnet as onnxruntime`.
"""

from __future__ import annotations

from . import capi, quantization
from ._convert import Report, UnsupportedModel, convert
from ._custom import TensorSpec, register, unregister
from ._errors import LinnetError
from ._log import set_default_logger_severity, set_default_logger_verbosity
from ._native import lib as _lib
from ._options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions, set_seed
from ._session import InferenceSession, ModelMetadata, NodeArg, bench
from ._value import IOBinding, OrtDevice, OrtValue

SessionIOBinding = IOBinding
__version__: str = _lib.lnt_version().decode()


def get_available_providers() -> list[str]:
    """The CPU's."""
    return ["CPUExecutionProvider"]


def get_all_providers() -> list[str]:
    """The CPU's."""
    return get_available_providers()


def get_device() -> str:
    """Always "CPU"."""
    return "CPU"


def get_version_string() -> str:
    """As __version__."""
    return __version__


def get_build_info() -> str:
    """One line."""
    return f"Linnet {__version__}"


def disable_telemetry_events() -> None:
    """There are none."""


def enable_telemetry_events() -> None:
    """There are none, and there will not be."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Accepted for scripts that call it: there is nothing to load."""


__all__ = [
    "ExecutionMode", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "LinnetError", "ModelMetadata", "NodeArg",
    "OrtDevice", "OrtValue", "Report", "RunOptions", "SessionIOBinding", "SessionOptions", "TensorSpec", "UnsupportedModel", "bench",
    "capi", "convert", "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers",
    "get_build_info", "get_device", "get_version_string", "preload_dlls", "quantization", "register", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_seed", "unregister",
]
