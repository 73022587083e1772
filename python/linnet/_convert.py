"""ONNX to .lnt."""

import ctypes as c
import os

from ._native import Error, LinnetError, check, lib


class UnsupportedModel(LinnetError):
    """Some nodes cannot be converted; `nodes` lists all of them as (node, domain, operator, opset, reason)."""

    def __init__(self, code, message, nodes):
        super().__init__(code, message + "".join(f"\n  {n[0]} ({n[2]}): {n[4]}" for n in nodes))
        self.nodes = nodes


def _budget(winograd):
    """Percent as the library takes it, where 0 would be its default."""
    if isinstance(winograd, bool):
        return "inf" if winograd else -1
    return winograd or -1


def _settings(opt, dims, states, keep, overridable, custom, metadata, winograd, precision, memory_limit):
    lines = [f"opt {opt}"]
    lines += [f"dim {name}={extent}" for name, extent in (dims or {}).items()]
    lines += [f"state {output}={name}" for output, name in (states or {}).items()]
    lines += ["keep_all 1"] if keep == "all" else [f"keep {name}" for name in keep]
    lines += [f"winograd_budget {_budget(winograd)}"] if winograd is not None else []
    lines += [f"precision {precision}"] if precision is not None else []
    lines += [f"memory_limit {memory_limit}"] if memory_limit is not None else []
    lines += [f"overridable {name}" for name in overridable]
    lines += [f"custom {name}" for name in custom]
    lines += [f"meta {key}={text}" for key, text in (metadata or {}).items()]
    return "\n".join(lines).encode()


def convert(model, output=None, *, opt="all", dims=None, states=None, keep=(), overridable=(), custom=(),
            metadata=None, winograd=None, precision=None, memory_limit=None):
    """Converts an ONNX model (a path, or its bytes) and returns the .lnt file's bytes, also written to `output`.

    opt: "none", "basic" or "all". dims fixes extents, {"batch": 1}. states pairs outputs with the inputs they
    feed in the next run, {"stateN": "state"}. keep names values that stay fetchable, or is "all". winograd:
    percent that the file may grow by for convolutions of 3x3 taps, or of 3 to 16 in a line, by Winograd's
    transform, whose weights are up to four times as large; None: 15, False: 0, True: all that are sooner so.
    precision: what the file holds weights in, "float32", "float16", "bfloat16" or "auto", where every output keeps a
    signal-to-noise ratio of 40 dB on seeded inputs; None: what the model's are, as far as nothing is rounded.
    memory_limit: bytes that the conversion may take; by default half of what is free.
    Raises UnsupportedModel with every node at fault."""
    image, size, unsupported, error = c.c_void_p(), c.c_size_t(), c.c_void_p(), Error()
    settings = _settings(opt, dims, states, keep, overridable, custom, metadata, winograd, precision, memory_limit)
    path, data = (None, bytes(model)) if isinstance(model, (bytes, bytearray, memoryview)) else (model, None)
    status = lib.lnt_python_convert(os.fsencode(path) if path is not None else None, data, len(data or b""),
                                    settings, c.byref(image), c.byref(size), c.byref(unsupported), c.byref(error))
    nodes = []
    if unsupported:
        text = c.string_at(unsupported).decode(errors="replace")
        lib.lnt_python_free_text(unsupported)
        nodes = [tuple(line.split("\t")) for line in text.splitlines()]
    if nodes and status:
        raise UnsupportedModel(status, error.message.decode(errors="replace"), nodes)
    check(status, error)
    try:
        if output is not None:
            check(lib.lnt_python_write(os.fsencode(output), image, size, c.byref(error)), error)
        return c.string_at(image, size.value)
    finally:
        lib.lnt_python_free(image)
