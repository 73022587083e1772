"""Profiles of sessions: every step of every run, as a Chrome trace with onnxruntime's categories and names."""

from __future__ import annotations

import ctypes as c
import json
import os
import time
from typing import Any

from ._native import TraceStep, check, lib

_MOST = 1_000_000  # events; what comes later is counted, not kept


class Profile:
    """Of one session, from when it was made."""

    def __init__(self) -> None:
        self.begun = time.perf_counter_ns()
        self.start_ns = time.time_ns()
        self._events: list[dict[str, Any]] = []
        self._dropped = 0

    def note(self, category: str, name: str, begin: int, end: int, **args: Any) -> None:
        """begin, end: of time.perf_counter_ns."""
        if len(self._events) == _MOST:
            self._dropped += 1
            return
        self._events.append({"cat": category, "pid": os.getpid(), "tid": 0, "ts": (begin - self.begun) / 1000,
                             "dur": (end - begin) / 1000, "ph": "X", "name": name, "args": args})

    def note_run(self, session: c.c_void_p, begin: int) -> None:
        """The steps of the run that has just ended."""
        end, step = time.perf_counter_ns(), TraceStep()
        self.note("Session", "model_run", begin, end)
        for i in range(lib.lnt_trace_count(session)):
            if lib.lnt_trace_get(session, i, c.byref(step)) == 0:
                start = begin + step.start_ns
                self.note("Node", f"{step.node.decode(errors='replace')}_kernel_time", start, start + step.duration_ns,
                          op_name=step.op.decode(), provider="CPUExecutionProvider", node_index=str(i),
                          output_size=str(step.out_bytes), multiply_adds=str(step.multiply_adds))

    def write(self, prefix: str, error: Any) -> str:
        """Writes all of it or nothing; returns the file's name."""
        if self._dropped:
            self._events[-1]["args"]["dropped_events"] = str(self._dropped)
        now = time.time()
        path = f"{prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S', time.localtime(now))}_{int(now * 1000) % 1000:03}.json"
        text = ("[\n" + ",\n".join(map(json.dumps, self._events)) + "\n]\n").encode()
        check(lib.lnt_python_write(os.fsencode(path), text, len(text), c.byref(error)), error)
        return path
