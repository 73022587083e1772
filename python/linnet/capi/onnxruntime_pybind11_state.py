"""The exceptions, where scripts for onnxruntime import them from."""

from .._errors import *  # noqa: F403
from .._errors import __all__  # noqa: F401
