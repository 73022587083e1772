"""What goes wrong, under onnxruntime's names (onnxruntime.capi.onnxruntime_pybind11_state has them too)."""

from __future__ import annotations

import errno
import os

__all__ = [
    "EPFail", "EngineError", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "LinnetError", "ModelLoaded", "NoModel",
    "NoSuchFile", "NotImplemented", "RuntimeException",
]


class LinnetError(RuntimeError):
    """A failed call; `code` is the lnt_status. LinnetError(code, message) makes the class that the code stands for."""

    code: int

    def __new__(cls, code: int, message: str) -> LinnetError:
        made = _BY_STATUS.get(code, cls) if cls is LinnetError else cls
        return super().__new__(made, message)

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple:
        return type(self), (self.code, str(self))


class Fail(LinnetError):
    """A run that was cancelled or ran out of time, a file that could not be written."""


class InvalidArgument(LinnetError, ValueError):
    """A name, shape or type that does not fit; a ValueError, as onnxruntime has it where an input is missing."""


class NoSuchFile(LinnetError, FileNotFoundError):
    """There is no model under this path."""

    def __init__(self, code: int, message: str, filename: str | None = None) -> None:
        super().__init__(code, message)
        self.errno, self.strerror, self.filename = errno.ENOENT, os.strerror(errno.ENOENT), filename

    def __new__(cls, code: int, message: str, filename: str | None = None) -> NoSuchFile:
        return FileNotFoundError.__new__(cls, message)

    def __str__(self) -> str:
        return self.args[0]


class InvalidProtobuf(LinnetError):
    """The file is neither ONNX nor .lnt, or it is damaged."""


class InvalidGraph(InvalidProtobuf):
    """The file is not a model that makes sense; bytes of any other kind, where they happen to be fields of a message, end here, too."""


class NotImplemented(LinnetError):
    """What this library cannot do."""


class RuntimeException(LinnetError):
    """Memory or a stated limit does not suffice, or a session is in use elsewhere."""


class NoModel(LinnetError):
    """For scripts that catch it; never raised."""


class ModelLoaded(LinnetError):
    """For scripts that catch it; never raised."""


class EngineError(LinnetError):
    """For scripts that catch it; never raised."""


class EPFail(LinnetError):
    """For scripts that catch it; never raised: there is no other execution provider than the CPU's."""


_BY_STATUS: dict[int, type[LinnetError]] = {
    1: InvalidArgument, 2: InvalidProtobuf, 3: InvalidGraph, 4: NotImplemented, 5: InvalidArgument, 6: InvalidArgument,
    7: InvalidArgument, 8: RuntimeException, 9: RuntimeException, 10: RuntimeException, 11: Fail, 12: Fail, 13: Fail,
    14: InvalidArgument, 15: RuntimeException,
}
