"""What a session tells of itself: lines on standard error, from a severity on."""

from __future__ import annotations

import sys
import time

_LETTERS = "VIWEF"
_WARNING = 2
_severity = _WARNING


def default_severity() -> int:
    """Of sessions whose options do not say it."""
    return _severity


def set_default_logger_severity(severity: int) -> None:
    """The least severity that sessions without one of their own print to standard error: 0 verbose, 1 info, 2 warning (the default),
    3 error, 4 fatal. Raises RuntimeError for any other."""
    global _severity
    if severity not in range(len(_LETTERS)):
        raise RuntimeError(f"severity is 0 to {len(_LETTERS) - 1}, not {severity}")
    _severity = int(severity)


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted for scripts that call it: there is one verbosity."""


class Log:
    """Where one session's lines go; severity: the least that is printed."""

    def __init__(self, severity: int, logid: str) -> None:
        self.severity, self.logid = severity, logid

    def __call__(self, severity: int, text: str) -> None:
        if severity >= self.severity:
            letter = _LETTERS[min(max(severity, 0), len(_LETTERS) - 1)]
            print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} [{letter}:linnet:{self.logid}] {text}", file=sys.stderr, flush=True)
