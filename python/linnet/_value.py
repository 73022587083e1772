"""Tensors and what is bound to a session, under the names that users of onnxruntime know."""

import ctypes as c

import numpy as np

from ._native import MAX_RANK, LinnetError, address

_TYPES = {  # ONNX number: (name, numpy type)
    1: ("float", np.float32),
    2: ("uint8", np.uint8),
    3: ("int8", np.int8),
    4: ("uint16", np.uint16),
    5: ("int16", np.int16),
    6: ("int32", np.int32),
    7: ("int64", np.int64),
    9: ("bool", np.bool_),
    10: ("float16", np.float16),
    11: ("double", np.float64),
    12: ("uint32", np.uint32),
    13: ("uint64", np.uint64),
    16: ("bfloat16", np.uint16),
}
_NUMBER_OF = {np.dtype(t): n for n, (_, t) in _TYPES.items() if n != 16}


def type_name(number):
    return f"tensor({_TYPES[number][0]})"


def numpy_type(number):
    """bfloat16 has none of its own: its bits as uint16."""
    return np.dtype(_TYPES[number][1])


def type_number(element_type, wanted=None):
    """The ONNX number of a numpy type, or of a number itself; wanted decides what uint16 stands for."""
    if isinstance(element_type, (int, np.integer)):
        number = int(element_type) if element_type in _TYPES else None
    else:
        number = _NUMBER_OF.get(np.dtype(element_type).newbyteorder("="))
        number = 16 if number == 4 and wanted == 16 else number
    if number is None:
        raise LinnetError(6, f"element type {element_type} has no counterpart")
    return number


def fill_tensor(tensor, array):
    """Points a native tensor at a contiguous array, which must outlive it."""
    if array.ndim > MAX_RANK:
        raise LinnetError(4, f"rank {array.ndim}, at most {MAX_RANK} supported")
    tensor.dtype, tensor.rank, tensor.bytes = type_number(array.dtype), array.ndim, array.nbytes
    tensor.dims[: array.ndim] = array.shape
    tensor.data = address(array)


def _only_cpu(device_type):
    if device_type.lower() != "cpu":
        raise LinnetError(4, f"there is no device {device_type!r}, only 'cpu'")


def _at_address(device_type, element_type, shape, address):
    """The tensor at an address, which does not own its memory."""
    _only_cpu(device_type)
    if element_type is None or shape is None:
        raise LinnetError(1, "memory given by its address needs element_type and shape")
    number = type_number(element_type)
    size = int(np.prod(shape, dtype=np.int64)) * numpy_type(number).itemsize
    memory = (c.c_char * size).from_address(address) if size else bytearray()
    return OrtValue(np.frombuffer(memory, numpy_type(number)).reshape(shape), number)


class OrtValue:
    """A tensor in memory. Made from an array it is that array, if contiguous."""

    def __init__(self, array, number):
        self._array, self._number = array, number

    @classmethod
    def ortvalue_from_numpy(cls, array, device_type="cpu", device_id=0):
        _only_cpu(device_type)
        return cls(np.asarray(array, order="C"), type_number(array.dtype))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, array, onnx_element_type):
        """The bits of an array as a type of the same size that numpy lacks, bfloat16."""
        array = np.asarray(array, order="C")
        return cls(array.view(numpy_type(type_number(onnx_element_type))), onnx_element_type)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape, element_type, device_type="cpu", device_id=0):
        _only_cpu(device_type)
        number = type_number(element_type)
        return cls(np.empty(tuple(shape), numpy_type(number)), number)

    def numpy(self):
        """The tensor itself, not a copy."""
        return self._array

    def __array__(self, dtype=None, copy=None):
        return np.array(self._array, dtype) if copy else np.asarray(self._array, dtype)

    def __dlpack__(self, **how):
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def update_inplace(self, data):
        np.copyto(self._array, data, casting="no")

    def shape(self):
        return list(self._array.shape)

    def data_type(self):
        return type_name(self._number)

    def element_type(self):
        return self._number

    def data_ptr(self):
        return self._array.ctypes.data

    def tensor_size_in_bytes(self):
        return self._array.nbytes

    def device_name(self):
        return "cpu"

    def has_value(self):
        return True

    def is_tensor(self):
        return True

    def is_sparse_tensor(self):
        return False

    def is_tensor_sequence(self):
        return False


class IOBinding:
    """Inputs and outputs of a session, named once for many runs. Arrays and addresses are used as they are at each
    run; who gives an address keeps the memory. An output bound without memory gets new memory at each run."""

    def __init__(self, session):
        self._known = {"input": [a.name for a in session.get_inputs()], "output": [a.name for a in session.get_outputs()]}
        self._inputs, self._outputs = {}, {}  # name: array or OrtValue; OrtValue or None
        self._results = []

    def _bind(self, what, name, value):
        known = self._known[what]
        if name not in known:
            raise LinnetError(14, f"the model has no {what} {name!r}; it has {', '.join(known)}")
        (self._inputs if what == "input" else self._outputs)[name] = value

    def bind_cpu_input(self, name, arr_on_cpu):
        self._bind("input", name, arr_on_cpu)

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        self._bind("input", name, _at_address(device_type, element_type, shape, buffer_ptr))

    def bind_ortvalue_input(self, name, ortvalue):
        self._bind("input", name, ortvalue)

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        _only_cpu(device_type)
        self._bind("output", name, _at_address(device_type, element_type, shape, buffer_ptr) if buffer_ptr is not None else None)

    def bind_ortvalue_output(self, name, ortvalue):
        self._bind("output", name, ortvalue)

    def get_outputs(self):
        """Of the last run, in the order they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self):
        """The same as arrays of their own."""
        return [value.numpy().copy() for value in self._results]

    def clear_binding_inputs(self):
        self._inputs.clear()

    def clear_binding_outputs(self):
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self):
        """There is nothing to wait for."""

    def synchronize_outputs(self):
        """There is nothing to wait for."""
