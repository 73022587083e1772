"""Where onnxruntime keeps the names of its native part."""

from . import onnxruntime_pybind11_state

__all__ = ["onnxruntime_pybind11_state"]
