"""The C API (runtime/linnet.h) through ctypes."""

from __future__ import annotations

import ctypes as c
import os
import pathlib
from typing import Any

from ._errors import LinnetError

MAX_RANK = 8


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("message", c.c_char * 508)]


class Tensor(c.Structure):
    _fields_ = [
        ("dtype", c.c_int),
        ("rank", c.c_uint32),
        ("dims", c.c_int64 * MAX_RANK),
        ("data", c.c_void_p),
        ("bytes", c.c_size_t),
    ]


class Call(c.Structure):
    """lnt_python_call: what a run reads and writes."""

    _fields_ = [
        ("n_in", c.c_uint32),
        ("n_out", c.c_uint32),
        ("input", c.POINTER(c.c_uint32)),
        ("tensor", c.POINTER(Tensor)),
        ("output", c.POINTER(c.c_uint32)),
        ("memory", c.POINTER(c.c_void_p)),
        ("bytes", c.POINTER(c.c_size_t)),
    ]


class Samples(c.Structure):
    """lnt_python_samples: recorded inputs, tensor[i * n_inputs + k] is input name[k] of sample i."""

    _fields_ = [
        ("n", c.c_size_t),
        ("n_inputs", c.c_size_t),
        ("name", c.POINTER(c.c_char_p)),
        ("tensor", c.POINTER(Tensor)),
    ]


class ValueInfo(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("dtype", c.c_int),
        ("rank", c.c_uint32),
        ("dims", c.c_int64 * MAX_RANK),
        ("dim_names", c.c_char_p * MAX_RANK),
        ("is_state", c.c_bool),
    ]


class ConfigEntry(c.Structure):
    _fields_ = [("key", c.c_char_p), ("text", c.c_char_p)]


class SessionOptions(c.Structure):
    _fields_ = [
        ("struct_bytes", c.c_size_t),
        ("intra_op_num_threads", c.c_uint32),
        ("inter_op_num_threads", c.c_uint32),
        ("execution_mode", c.c_int),
        ("disable_mem_pattern", c.c_bool),
        ("enable_profiling", c.c_bool),
        ("log_severity_level", c.c_int),
        ("pool", c.c_void_p),
        ("level", c.c_char_p),
        ("seed", c.c_uint64),
        ("arena", c.c_void_p),
        ("arena_bytes", c.c_size_t),
        ("memory_limit", c.c_uint64),
        ("config", c.POINTER(ConfigEntry)),
        ("n_config", c.c_size_t),
    ]


LogFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)


class Host(c.Structure):
    _fields_ = [
        ("struct_bytes", c.c_size_t),
        ("allocate", c.c_void_p),
        ("release", c.c_void_p),
        ("log", LogFunction),
        ("user", c.c_void_p),
    ]


class CustomCall(c.Structure):
    _fields_ = [
        ("n_in", c.c_uint32),
        ("n_out", c.c_uint32),
        ("input", c.POINTER(Tensor)),
        ("output", c.POINTER(Tensor)),
        ("node", c.c_void_p),
        ("user", c.c_void_p),
        ("error", c.POINTER(Error)),
    ]


CustomFunction = c.CFUNCTYPE(c.c_int, c.POINTER(CustomCall))


class CustomOperator(c.Structure):
    _fields_ = [
        ("domain", c.c_char_p),
        ("name", c.c_char_p),
        ("value_inputs", c.c_uint32),
        ("shape", CustomFunction),
        ("run", CustomFunction),
        ("user", c.c_void_p),
    ]


class ModelOptions(c.Structure):
    _fields_ = [
        ("struct_bytes", c.c_size_t),
        ("flags", c.c_uint32),
        ("host", c.POINTER(Host)),
        ("custom", c.POINTER(CustomOperator)),
        ("n_custom", c.c_size_t),
    ]


class Attribute(c.Structure):
    """lnt_python_attribute_info: one of a custom operator's; kind 0 where it is a subgraph."""

    _fields_ = [
        ("name", c.c_char_p),
        ("kind", c.c_uint32),
        ("count", c.c_uint32),
        ("data", c.c_void_p),
        ("tensor", Tensor),
    ]


class TraceStep(c.Structure):
    _fields_ = [
        ("node", c.c_char_p),
        ("op", c.c_char_p),
        ("start_ns", c.c_uint64),
        ("duration_ns", c.c_uint64),
        ("out_bytes", c.c_uint64),
        ("multiply_adds", c.c_uint64),
    ]


def _load() -> c.CDLL:
    path = os.environ.get("LINNET_LIBRARY") or pathlib.Path(__file__).with_name("liblinnet_python.so")
    lib = c.CDLL(str(path))
    pointer, err = c.c_void_p, c.POINTER(Error)
    names = {
        "lnt_version": ([], c.c_char_p),
        "lnt_model_create": ([c.c_char_p, pointer, c.POINTER(pointer), err], c.c_int),
        "lnt_model_create_from_memory": ([pointer, c.c_size_t, pointer, c.POINTER(pointer), err], c.c_int),
        "lnt_model_destroy": ([c.POINTER(pointer)], None),
        "lnt_model_input_count": ([pointer], c.c_uint32),
        "lnt_model_output_count": ([pointer], c.c_uint32),
        "lnt_model_input": ([pointer, c.c_uint32, c.POINTER(ValueInfo)], c.c_int),
        "lnt_model_output": ([pointer, c.c_uint32, c.POINTER(ValueInfo)], c.c_int),
        "lnt_model_metadata_count": ([pointer], c.c_uint32),
        "lnt_model_metadata": ([pointer, c.c_uint32, c.POINTER(c.c_char_p), c.POINTER(c.c_char_p)], c.c_int),
        "lnt_session_create": ([pointer, c.POINTER(SessionOptions), c.POINTER(pointer), err], c.c_int),
        "lnt_session_destroy": ([c.POINTER(pointer)], None),
        "lnt_select_outputs": ([pointer, c.POINTER(c.c_uint32), c.c_uint32, err], c.c_int),
        "lnt_set_input": ([pointer, c.c_uint32, c.POINTER(Tensor), err], c.c_int),
        "lnt_set_output": ([pointer, c.c_uint32, pointer, c.c_size_t, err], c.c_int),
        "lnt_bind": ([pointer, err], c.c_int),
        "lnt_cancel": ([pointer], None),
        "lnt_python_run": ([pointer, c.POINTER(Call), err], c.c_int),
        "lnt_run": ([pointer, err], c.c_int),
        "lnt_get_output": ([pointer, c.c_uint32, c.POINTER(Tensor), err], c.c_int),
        "lnt_state_reset": ([pointer, err], c.c_int),
        "lnt_session_trim": ([pointer, err], c.c_int),
        "lnt_keep_value": ([pointer, c.c_char_p, err], c.c_int),
        "lnt_get_value": ([pointer, c.c_char_p, c.POINTER(Tensor), err], c.c_int),
        "lnt_trace_count": ([pointer], c.c_uint32),
        "lnt_trace_get": ([pointer, c.c_uint32, c.POINTER(TraceStep)], c.c_int),
        "lnt_python_attribute": ([pointer, c.c_uint32, c.POINTER(Attribute)], c.c_bool),
        "lnt_python_convert": (
            [c.c_char_p, c.c_char_p, c.c_size_t, c.c_char_p, c.POINTER(Samples), c.POINTER(pointer),
             c.POINTER(c.c_size_t), c.POINTER(pointer), err],
            c.c_int,
        ),
        "lnt_python_write": ([c.c_char_p, pointer, c.c_size_t, err], c.c_int),
        "lnt_python_free": ([pointer], None),
        "lnt_python_free_text": ([pointer], None),
    }
    for name, (arguments, result) in names.items():
        function = getattr(lib, name)
        function.argtypes, function.restype = arguments, result
    return lib


lib = _load()


def address(array: Any) -> int:
    """Where an array's elements are. ctypes gives it three times as fast, unless the array is empty or not writable."""
    if array.size and array.flags.writeable:
        return c.addressof(c.c_char.from_buffer(array))
    return array.ctypes.data


def check(status: int, error: Error) -> None:
    if status:
        raise LinnetError(status, error.message.decode(errors="replace"))
