"""Tensors and what is bound to a session, under the names that users of onnxruntime know."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import LinnetError
from ._native import MAX_RANK, Tensor, address

if TYPE_CHECKING:
    from ._session import InferenceSession

_TYPES = {  # ONNX number: (name, numpy type)
    1: ("float", np.float32),
    2: ("uint8", np.uint8),
    3: ("int8", np.int8),
    4: ("uint16", np.uint16),
    5: ("int16", np.int16),
    6: ("int32", np.int32),
    7: ("int64", np.int64),
    8: ("string", np.object_),
    9: ("bool", np.bool_),
    10: ("float16", np.float16),
    11: ("double", np.float64),
    12: ("uint32", np.uint32),
    13: ("uint64", np.uint64),
    16: ("bfloat16", np.uint16),
    17: ("float8e4m3fn", np.uint8),
    18: ("float8e4m3fnuz", np.uint8),
    19: ("float8e5m2", np.uint8),
    20: ("float8e5m2fnuz", np.uint8),
    21: ("uint4", np.uint8),
    22: ("int4", np.int8),
    23: ("float4e2m1", np.uint8),
    24: ("float8e8m0", np.uint8),
    25: ("uint2", np.uint8),
    26: ("int2", np.int8),
}
TEXT = 8
_NUMBER_OF = {np.dtype(t): n for n, (_, t) in _TYPES.items() if n < 16 and n != TEXT}
_ML_DTYPES = {  # the package's names
    "bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20, "uint4": 21, "int4": 22,
    "float4_e2m1fn": 23, "float8_e8m0fnu": 24, "uint2": 25, "int2": 26,
}


def type_name(number: int) -> str:
    """0: an output whose type is not known before a run, as behind an operator of the host's."""
    return f"tensor({_TYPES[number][0]})" if number else "tensor(undefined)"


def numpy_type(number: int) -> np.dtype:
    """bfloat16 has none of its own: its bits as uint16. Nor have small types: the codes of floats as uint8, integers as
    int8 or uint8; a view as a type of ml_dtypes reads the former."""
    return np.dtype(_TYPES[number][1])


def type_number(element_type: Any, wanted: int | None = None) -> int:
    """The ONNX number of a type of numpy or ml_dtypes, or of a number itself; wanted decides what a type stands for that
    others are kept in."""
    if isinstance(element_type, (int, np.integer)):
        number = int(element_type) if element_type in _TYPES and element_type != TEXT else None
    else:
        found = np.dtype(element_type).newbyteorder("=")
        number = _NUMBER_OF.get(found, _ML_DTYPES.get(found.name))
        if number and number < 16 <= (wanted or 0) and numpy_type(wanted) == found:
            number = wanted
    if number is None:
        raise LinnetError(6, f"element type {element_type} has no counterpart")
    return number


def as_stored(array: np.ndarray, number: int) -> np.ndarray:
    """An array of ml_dtypes as what numpy_type says of its number: floats without a copy. Others as they are."""
    if array.dtype.name not in _ML_DTYPES:
        return array
    stored = numpy_type(number)
    return array.astype(stored) if "int" in array.dtype.name else array.view(stored)


def text_array(value: Any) -> np.ndarray:
    """Text as bytes with their ends, in an array of objects."""
    array = np.asarray(value)
    if array.dtype.kind not in "OUS" or not all(isinstance(word, (str, bytes)) for word in array.flat):
        raise LinnetError(6, f"an input of text takes str, not {array.dtype}")
    words = np.empty(array.shape, np.object_)
    words.flat = [word if isinstance(word, bytes) else word.encode(errors="surrogateescape") for word in array.flat]
    if any(b"\0" in word for word in words.flat):
        raise LinnetError(7, "a word with a NUL character in it cannot be given")
    return words


def taken_text(tensor: Tensor) -> np.ndarray:
    """The words of a native tensor of text, as str; bytes that are no UTF-8 by surrogateescape."""
    words = np.empty(tuple(tensor.dims[: tensor.rank]), np.object_)
    pointers = c.cast(tensor.data, c.POINTER(c.c_char_p))
    words.flat = [pointers[i].decode(errors="surrogateescape") for i in range(words.size)]
    return words


def fill_tensor(tensor: Tensor, array: np.ndarray) -> None:
    """Points a native tensor at a contiguous array, which must outlive it."""
    if array.ndim > MAX_RANK:
        raise LinnetError(4, f"rank {array.ndim}, at most {MAX_RANK} supported")
    tensor.dtype, tensor.rank, tensor.bytes = type_number(array.dtype), array.ndim, array.nbytes
    tensor.dims[: array.ndim] = array.shape
    tensor.data = address(array)


def _only_cpu(device_type: str) -> None:
    if device_type.lower() != "cpu":
        raise LinnetError(4, f"there is no device {device_type!r}, only 'cpu'")


def _at_address(device_type: str, element_type: Any, shape: Sequence[int] | None, address: int) -> OrtValue:
    """The tensor at an address, which does not own its memory."""
    _only_cpu(device_type)
    if element_type is None or shape is None:
        raise LinnetError(1, "memory given by its address needs element_type and shape")
    number = type_number(element_type)
    size = int(np.prod(shape, dtype=np.int64)) * numpy_type(number).itemsize
    memory = (c.c_char * size).from_address(address) if size else bytearray()
    return OrtValue(np.frombuffer(memory, numpy_type(number)).reshape(shape), number)


class OrtDevice:
    """Where a tensor lies; there is one device, the CPU."""

    def __init__(self, name: str = "cpu", device_id: int = 0) -> None:
        _only_cpu(name)
        self._id = int(device_id)

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """The device "cpu". Raises NotImplemented for any other."""
        return OrtDevice(ort_device_name, device_id)

    def device_id(self) -> int:
        """As it was given."""
        return self._id

    def device_type(self) -> int:
        """onnxruntime's number of the CPU."""
        return 0

    def device_mem_type(self) -> int:
        """onnxruntime's number of a device's own memory."""
        return 0

    def device_vendor_id(self) -> int:
        """onnxruntime's number for no vendor."""
        return 0


class OrtValue:
    """A tensor in memory. Made from an array it is that array, if contiguous."""

    def __init__(self, array: np.ndarray, number: int) -> None:
        self._array, self._number = array, number

    @classmethod
    def ortvalue_from_numpy(cls, array: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """The array itself, or a copy in C order where it is not contiguous. Raises NotImplemented for other devices."""
        _only_cpu(device_type)
        number = type_number(array.dtype)
        return cls(as_stored(np.asarray(array, order="C"), number), number)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, array: np.ndarray, onnx_element_type: int) -> OrtValue:
        """The bits of an array as a type of the same size that numpy lacks: bfloat16, or one of 8 bits and fewer."""
        array = np.asarray(array, order="C")
        return cls(array.view(numpy_type(type_number(onnx_element_type))), onnx_element_type)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                     device_id: int = 0) -> OrtValue:
        """New memory that holds anything. element_type: a numpy type or an ONNX number; InvalidArgument for what is neither."""
        _only_cpu(device_type)
        number = type_number(element_type)
        return cls(np.empty(tuple(shape), numpy_type(number)), number)

    @classmethod
    def from_dlpack(cls, data: Any, is_bool_tensor: bool = False) -> OrtValue:
        """The tensor of another library, without a copy. is_bool_tensor: its bytes are truth values."""
        array = np.from_dlpack(data)
        return cls.ortvalue_from_numpy(array.view(np.bool_) if is_bool_tensor else array)

    def numpy(self) -> np.ndarray:
        """The tensor itself, not a copy."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype) if copy else np.asarray(self._array, dtype)

    def __dlpack__(self, **how: Any) -> Any:
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def update_inplace(self, data: np.ndarray) -> None:
        """Copies data, of the same type and a shape that fits, into the tensor; TypeError or ValueError otherwise."""
        np.copyto(self._array, data, casting="no")

    def shape(self) -> list[int]:
        """The extents."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """As "tensor(float)"."""
        return type_name(self._number)

    def element_type(self) -> int:
        """ONNX's number."""
        return self._number

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._array.ctypes.data

    def tensor_size_in_bytes(self) -> int:
        """Of all elements."""
        return self._array.nbytes

    def device_name(self) -> str:
        """Always "cpu"."""
        return "cpu"

    def has_value(self) -> bool:
        """Always."""
        return True

    def is_tensor(self) -> bool:
        """Always."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Never."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Never."""
        return False


class IOBinding:
    """Inputs and outputs of a session, named once for many runs. Arrays and addresses are used as they are at each
    run; who gives an address keeps the memory. An output bound without memory gets new memory at each run."""

    def __init__(self, session: InferenceSession) -> None:
        self._known = {"input": [a.name for a in session.get_inputs()], "output": [a.name for a in session.get_outputs()]}
        self._inputs: dict[str, Any] = {}  # arrays or OrtValues
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def _bind(self, what: str, name: str, value: Any) -> None:
        known = self._known[what]
        if name not in known:
            raise LinnetError(14, f"the model has no {what} {name!r}; it has {', '.join(known)}")
        (self._inputs if what == "input" else self._outputs)[name] = value

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """The array is read at each run. Raises InvalidArgument for a name that is no input's, as all that bind do."""
        self._bind("input", name, arr_on_cpu)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """The memory at an address, of this type and shape, is read at each run. Raises NotImplemented for other devices."""
        self._bind("input", name, _at_address(device_type, element_type, shape, buffer_ptr))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """The value's tensor is read at each run."""
        self._bind("input", name, ortvalue)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Written to the memory at an address, of this type and shape; without an address to new memory at each run."""
        _only_cpu(device_type)
        self._bind("output", name, _at_address(device_type, element_type, shape, buffer_ptr) if buffer_ptr is not None else None)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Written into the value's tensor."""
        self._bind("output", name, ortvalue)

    def get_outputs(self) -> list[OrtValue]:
        """Of the last run, in the order they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """The same as arrays of their own."""
        return [value.numpy().copy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        """No input is bound any more."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """No output is bound any more."""
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """There is nothing to wait for."""

    def synchronize_outputs(self) -> None:
        """There is nothing to wait for."""
