"""Operators that Python functions compute."""

from __future__ import annotations

import ctypes as c
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._errors import LinnetError
from ._log import Log
from ._native import (
    MAX_RANK,
    Attribute,
    CustomCall,
    CustomFunction,
    CustomOperator,
    Host,
    LogFunction,
    ModelOptions,
    Tensor,
    lib,
)
from ._value import numpy_type, type_number

_E_VALUE = 7
_OWN_ATTRIBUTES = {"custom_domain", "custom_name"}


class TensorSpec(NamedTuple):
    """What a `shape` function is told of an input: its extents, its numpy type and, if `values` asked for them, its elements."""

    shape: tuple[int, ...]
    dtype: np.dtype
    value: np.ndarray | None


class _Operator(NamedTuple):
    domain: str
    name: str
    fn: Callable[..., Any]
    shape: Callable[..., Any]
    values: int  # bit i: of input i


_registered: dict[str, _Operator] = {}
_lock = threading.Lock()


def _like_the_first(*inputs: TensorSpec | None, **_: Any) -> tuple[tuple[int, ...], np.dtype]:
    first = inputs[0] if inputs else None
    if first is None:
        raise ValueError("register() was given no shape function, and the node's first input is skipped")
    return first.shape, first.dtype


def _split(name: str) -> tuple[str, str]:
    domain, _, op = name.rpartition("::" if "::" in name else ".")
    if not domain or not op:
        raise ValueError(f"{name!r}: an operator's name is DOMAIN::NAME, as in 'acme::Blur'")
    return "" if domain == "ai.onnx" else domain, op


def register(name: str, fn: Callable[..., Any], shape: Callable[..., Any] | None = None, values: Iterable[int] = ()) -> None:
    """Has sessions that are made from now on compute the nodes of a custom operator in Python.

    name: "DOMAIN::NAME" (or "DOMAIN.NAME"), as the ONNX model has it; "ai.onnx::ImageDecoder" is ONNX's own. fn(*inputs, **attributes)
    is given numpy arrays of its own, None for a skipped input, and returns the output, or a tuple of them, of the shapes and types
    that `shape` told. shape(*inputs, **attributes) is given a TensorSpec of each input, and returns (extents, numpy type) of the
    output, or a list of them; by default the one output is as the first input. values: numbers of inputs whose elements `shape` needs.

    Both may be called from any thread, one at a time. What they raise ends the run (or the making of the session) in a LinnetError that
    names the node; the exception is its __cause__. Raises ValueError for a name without a domain. A name registered again is replaced;
    sessions keep what they were made with."""
    domain, op = _split(name)
    if not callable(fn) or not (shape is None or callable(shape)):
        raise TypeError("fn and shape are functions")
    bits = 0
    for i in values:
        if not 0 <= i < 32:
            raise ValueError(f"values: input {i} is not one of the first 32")
        bits |= 1 << i
    with _lock:
        _registered[f"{domain}.{op}"] = _Operator(domain, op, fn, shape or _like_the_first, bits)


def unregister(name: str) -> None:
    """Sessions made from now on do without the operator; KeyError if it is not registered."""
    with _lock:
        del _registered[".".join(_split(name))]


def registered() -> list[str]:
    """The names, as DOMAIN.NAME."""
    with _lock:
        return list(_registered)


def _array(tensor: Tensor) -> np.ndarray:
    """A copy: the memory serves another value once the step is done."""
    array = np.empty(tuple(tensor.dims[: tensor.rank]), numpy_type(tensor.dtype))
    if array.nbytes:
        c.memmove(array.ctypes.data, tensor.data, array.nbytes)
    return array


def _spec(tensor: Tensor, wanted: bool) -> TensorSpec | None:
    if not tensor.dtype:
        return None
    shape = tuple(tensor.dims[: tensor.rank])
    return TensorSpec(shape, numpy_type(tensor.dtype), _array(tensor) if wanted else None)


def _attribute(a: Attribute) -> Any:
    if a.kind in (1, 4):
        values = [int(v) for v in c.cast(a.data, c.POINTER(c.c_int64))[: a.count]]
        return values[0] if a.kind == 1 else values
    if a.kind in (2, 5):
        values = [float(v) for v in c.cast(a.data, c.POINTER(c.c_float))[: a.count]]
        return values[0] if a.kind == 2 else values
    if a.kind == 3:
        return c.string_at(a.data, a.count).decode(errors="replace")
    if a.kind == 6:
        return [v.decode(errors="replace") for v in c.cast(a.data, c.POINTER(c.c_char_p))[: a.count]]
    return _array(a.tensor)


def _attributes(call: CustomCall) -> dict[str, Any]:
    found, a, k = {}, Attribute(), 0
    while lib.lnt_python_attribute(call.node, k, c.byref(a)):
        name = a.name.decode(errors="replace")
        if name not in _OWN_ATTRIBUTES and a.kind:
            found[name] = _attribute(a)
        k += 1
    return found


def _of_each_output(found: Sequence[Any], n: int, what: str) -> Sequence[Any]:
    if len(found) != n:
        raise ValueError(f"{what} {len(found)} outputs, the node has {n}")
    return found


def _tell_shapes(op: _Operator, call: CustomCall) -> None:
    inputs = [_spec(call.input[i], bool(op.values >> i & 1)) for i in range(call.n_in)]
    told = op.shape(*inputs, **_attributes(call))
    told = _of_each_output(told if isinstance(told, list) else [told], call.n_out, "shape() told of")
    for i, (shape, dtype) in enumerate(told):
        if len(shape) > MAX_RANK or min(shape, default=0) < 0:
            raise ValueError(f"output {i} cannot have the extents {list(shape)}; at most {MAX_RANK}, none negative")
        call.output[i].dtype, call.output[i].rank = type_number(dtype), len(shape)
        call.output[i].dims[: len(shape)] = [int(d) for d in shape]


def _compute(op: _Operator, call: CustomCall) -> None:
    inputs = [_array(call.input[i]) if call.input[i].dtype else None for i in range(call.n_in)]
    results = op.fn(*inputs, **_attributes(call))
    results = results if isinstance(results, tuple) else (results,)
    for i, value in enumerate(_of_each_output(results, call.n_out, "the function returned")):
        out = call.output[i]
        if not out.dtype:
            continue
        shape, dtype = tuple(out.dims[: out.rank]), numpy_type(out.dtype)
        array = np.asarray(value, None if isinstance(value, (np.ndarray, np.generic)) else dtype, order="C")
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(f"output {i} is {array.dtype} of shape {list(array.shape)}, shape() told {dtype} of {list(shape)}")
        if array.nbytes:
            c.memmove(out.data, array.ctypes.data, array.nbytes)


class HostOf:
    """What a session brings to its model: operators of Python's and the log. failure: what an operator raised."""

    def __init__(self, log: Log) -> None:
        self.failure: BaseException | None = None
        with _lock:
            mine = list(_registered.values())
        self._log = LogFunction(lambda _, severity, text: log(severity, text.decode(errors="replace")))
        self._host = Host(struct_bytes=c.sizeof(Host), log=self._log)
        self._operators = (CustomOperator * len(mine))(*[self._operator(op) for op in mine])
        self.options = ModelOptions(struct_bytes=c.sizeof(ModelOptions), host=c.pointer(self._host), custom=self._operators,
                                    n_custom=len(mine))

    def _operator(self, op: _Operator) -> CustomOperator:
        return CustomOperator(op.domain.encode(), op.name.encode(), op.values, self._caught(_tell_shapes, op),
                              self._caught(_compute, op), None)

    def _caught(self, work: Callable[[_Operator, CustomCall], None], op: _Operator) -> Any:
        def called(pointer: Any) -> int:
            call = pointer.contents
            try:
                work(op, call)
                return 0
            except BaseException as e:
                self.failure = self.failure or e
                code = e.code if isinstance(e, LinnetError) else _E_VALUE
                text = f"{op.domain}.{op.name}: {type(e).__name__}: {e}".encode()
                if call.error:
                    call.error.contents.code, call.error.contents.message = code, text[:507]
                return code

        return CustomFunction(called)

    def take_failure(self) -> BaseException | None:
        """What an operator raised since this was asked last."""
        failure, self.failure = self.failure, None
        return failure
