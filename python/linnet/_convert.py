"""ONNX to .lnt."""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np

from ._custom import registered
from ._errors import LinnetError, NotImplemented
from ._native import Error, Samples, Tensor, check, lib
from ._value import fill_tensor


class UnsupportedModel(NotImplemented):
    """Some nodes cannot be converted; `nodes` lists all of them as (node, domain, operator, opset, reason)."""

    def __new__(cls, code: int, message: str, nodes: Sequence[tuple[str, ...]]) -> UnsupportedModel:
        return RuntimeError.__new__(cls, message)

    def __init__(self, code: int, message: str, nodes: Sequence[tuple[str, ...]]) -> None:
        self._head = message
        super().__init__(code, message + "".join(f"\n  {n[0]} ({n[2]}): {n[4]}" for n in nodes))
        self.nodes = nodes

    def __reduce__(self) -> tuple:
        return type(self), (self.code, self._head, self.nodes)


def _budget(winograd: float) -> float | str:
    """Percent as the library takes it, where 0 would be its default."""
    if isinstance(winograd, bool):
        return "inf" if winograd else -1
    return winograd or -1


def _length(name: str, length: int | None) -> int | str:
    if length is not None and int(length) < 0:
        raise LinnetError(1, f"lengths: {name!r} cannot have {length} elements")
    return "none" if length is None else int(length)


def _settings(opt: str, dims: Any, lengths: Any, states: Any, keep: Any, overridable: Any, custom: Any, metadata: Any, winograd: Any,
              precision: Any, memory_limit: Any, int8: Any, int4: Any, min_snr: Any, calibration: Any, float_layers: Any,
              measure: Any) -> bytes:
    lines = [f"opt {opt}"]
    lines += [f"dim {name}={extent}" for name, extent in (dims or {}).items()]
    lines += [f"length {name}={_length(name, length)}" for name, length in (lengths or {}).items()]
    lines += [f"state {output}={name}" for output, name in (states or {}).items()]
    lines += ["keep_all 1"] if keep == "all" else [f"keep {name}" for name in keep]
    lines += [f"winograd_budget {_budget(winograd)}"] if winograd is not None else []
    single = {"precision": precision, "memory_limit": memory_limit, "int8": int8, "int4": int4, "min_snr": min_snr,
              "calibration": calibration}
    lines += [f"{key} {value}" for key, value in single.items() if value is not None]
    lines += [f"overridable {name}" for name in overridable]
    lines += [f"custom {name}" for name in dict.fromkeys([*custom, *registered()])]
    lines += [f"float {name}" for name in float_layers]
    lines += [f"measure {name}" for name in measure]
    lines += [f"meta {key}={text}" for key, text in (metadata or {}).items()]
    return "\n".join(lines).encode()


def _samples(calibrate: Iterable[Mapping[str, Any]]) -> tuple[Samples | None, list[dict[str, np.ndarray]]]:
    """Feeds as the library takes them, with the arrays that they point to."""
    feeds = [{name: np.asarray(value, order="C") for name, value in feed.items()} for feed in calibrate]
    if not feeds:
        return None, feeds
    names = list(feeds[0])
    if any(set(feed) != set(names) for feed in feeds):
        raise ValueError("calibrate: all samples must have the same inputs")
    tensors = (Tensor * (len(feeds) * len(names)))()
    for i, feed in enumerate(feeds):
        for k, name in enumerate(names):
            fill_tensor(tensors[i * len(names) + k], feed[name])
    return Samples(len(feeds), len(names), (c.c_char_p * len(names))(*[name.encode() for name in names]), tensors), feeds


Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]


class Report(list):
    """What a conversion told of the layers that it could quantize: [(node, operator, "int8", "int4" or "float", why)];
    `outputs` of the quantized model: {name: dB against the float one, or in words why that is not known}."""

    def __init__(self, layers: Iterable[tuple[str, ...]] = (), outputs: Any = ()) -> None:
        super().__init__(layers)
        self.outputs: dict[str, float | str] = dict(outputs)


def _decibels(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def convert(model: Source, output: str | os.PathLike[str] | None = None, *, opt: str = "all",
            dims: Mapping[str, int] | None = None, states: Mapping[str, str] | None = None, keep: Iterable[str] | str = (),
            lengths: Mapping[str, int | None] | None = None, overridable: Iterable[str] = (), custom: Iterable[str] = (),
            metadata: Mapping[str, str] | None = None,
            winograd: float | None = None, precision: str | None = None, memory_limit: int | None = None,
            int8: str | None = None, int4: int | None = None, calibrate: Iterable[Mapping[str, Any]] = (),
            calibration: str | None = None, min_snr: float | None = None, float_layers: Iterable[str] = (),
            measure: Iterable[str] = (), report: Report | None = None) -> bytes:
    """Converts an ONNX model (a path, or its bytes) and returns the .lnt file's bytes, also written to `output`.

    opt: "none", "basic" or "all". dims fixes extents, {"batch": 1}. states pairs outputs with the inputs they
    feed in the next run, {"stateN": "state"}. lengths: how many tensors inputs have that are sequences, {"frames": 3}; None: an
    optional holds nothing; an integer or a bool of one element is this number in all runs. keep names values that stay fetchable,
    or is "all". custom: operators of the
    host's, as DOMAIN.NAME, besides those that linnet.register was told of. winograd:
    percent that the file may grow by for convolutions of 3x3 taps, or of 3 to 16 in a line, by Winograd's
    transform, whose weights are up to four times as large; None: 15, False: 0, True: all that are sooner so. 3x3 taps
    without room are transformed in each run, but not with False or 0.
    precision: what the file holds weights in, "float32", "float16", "bfloat16" or "auto", where every output keeps a
    signal-to-noise ratio of 40 dB on seeded inputs; None: what the model's are, as far as nothing is rounded.
    memory_limit: bytes that the conversion may take; by default half of what is free.

    int8: "dynamic", "static" or "auto"; int4: weights of products in blocks of so many numbers of 4 bits (32). calibrate:
    recorded inputs, [{"x": array}, ...], for the ranges of "static" and to measure on; calibration: how the ranges are
    found, "minmax", "percentile", "entropy", "mse" or "best". min_snr: dB that every output must keep, or layers stay in
    float; by default 31 (int4: 15) where there are recorded inputs. float_layers: patterns of names that stay in float in
    any case. measure: inner values to measure on instead of the outputs. report: a linnet.Report that is filled in.
    Raises UnsupportedModel with every node at fault."""
    if int8 is not None and int4 is not None:
        raise ValueError("int8 and int4 exclude each other")
    image, size, told, error = c.c_void_p(), c.c_size_t(), c.c_void_p(), Error()
    samples, arrays = _samples(calibrate)
    settings = _settings(opt, dims, lengths, states, keep, overridable, custom, metadata, winograd, precision, memory_limit, int8, int4,
                         min_snr, calibration, float_layers, measure)
    path, data = (None, bytes(model)) if isinstance(model, (bytes, bytearray, memoryview)) else (model, None)
    status = lib.lnt_python_convert(os.fsencode(path) if path is not None else None, data, len(data or b""), settings,
                                    c.byref(samples) if samples else None, c.byref(image), c.byref(size), c.byref(told),
                                    c.byref(error))
    del arrays
    lines = []
    if told:
        text = c.string_at(told).decode(errors="replace")
        lib.lnt_python_free_text(told)
        lines = [tuple(line.split("\t")) for line in text.splitlines()]
    nodes = [line[1:] for line in lines if line[0] == "unsupported"]
    if nodes and status:
        raise UnsupportedModel(status, error.message.decode(errors="replace"), nodes)
    check(status, error)
    if report is not None:
        report[:] = [line[1:] for line in lines if line[0] == "layer"]
        report.outputs = {line[1]: _decibels(line[2]) for line in lines if line[0] == "output"}
    try:
        if output is not None:
            check(lib.lnt_python_write(os.fsencode(output), image, size, c.byref(error)), error)
        return c.string_at(image, size.value)
    finally:
        lib.lnt_python_free(image)
