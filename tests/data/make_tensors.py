"""Writes npy.npz and pb.npz: the files that tests/c/test_tensors.c reads.

    python3 tests/data/make_tensors.py        (needs numpy and onnx)

npy.npz has one array per element type and layout. pb.npz has serialized TensorProto messages (and a few
messages that are none) as arrays of bytes. Arrays are 2 x 3 and hold what values() gives.
"""
import io
import pathlib
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent


def values(dtype):
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.array([[0, 1, 1], [0, 1, 0]], dtype)
    if dtype.kind == "f":
        return np.array([[-1.5, 0, 0.5], [1, 2, np.inf]], dtype)
    info = np.iinfo(dtype)
    middle = [-1, 0, 1, 2] if info.min < 0 else [1, 2, 3, info.max - 1]
    return np.array([info.min, *middle, info.max], dtype).reshape(2, 3)


NUMPY_TYPES = "float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()


def npy_bytes(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def write_zip(name, members):
    with zipfile.ZipFile(FOLDER / name, "w", zipfile.ZIP_STORED) as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member + ".npy"), data)


def npy_members():
    members = {}
    for name in NUMPY_TYPES:
        array = values(name)
        members[name] = npy_bytes(array)
        members[name + "_fortran"] = npy_bytes(np.asfortranarray(array))
        members[name + "_big"] = npy_bytes(array.astype(array.dtype.newbyteorder(">")))
    members["version_2"] = npy_bytes(values("float32"), (2, 0))
    members["version_3"] = npy_bytes(values("float32"), (3, 0))
    members["scalar"] = npy_bytes(np.float32(7))
    members["vector"] = npy_bytes(np.arange(5, dtype=np.int32))
    members["empty"] = npy_bytes(np.zeros((2, 0, 3), np.float32))
    members["cube_fortran"] = npy_bytes(np.asfortranarray(np.arange(24, dtype=np.int32).reshape(2, 3, 4)))
    members["complex"] = npy_bytes(np.zeros(2, np.complex64))
    members["text"] = npy_bytes(np.array(["ab", "c"]))
    members["structured"] = npy_bytes(np.zeros(2, [("a", "<f4"), ("b", "<i4")]))
    return members


def typed(data_type, array):
    """The values in the typed field for data_type, packed as onnx writes them."""
    flat = array.ravel()
    return helper.make_tensor("typed", data_type, array.shape, flat)


def unpacked(field, wire_type, data_type, encoded):
    """A message with dims 2, 3 behind the data and one field for each element."""
    head = bytes([field << 3 | wire_type])
    return b"".join(head + e for e in encoded) + bytes([0x08, 2, 0x08, 3, 0x10, data_type])


def pb_members():
    messages = {}
    for name in NUMPY_TYPES:
        array = values(name)
        data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        messages[name] = numpy_helper.from_array(array, "raw").SerializeToString()
        messages[name + "_typed"] = typed(data_type, array).SerializeToString()
    bfloat16 = helper.make_tensor("typed", TensorProto.BFLOAT16, (2, 3), values("float32").ravel())
    messages["bfloat16_typed"] = bfloat16.SerializeToString()
    floats = values("float32").astype("<f4").ravel()
    messages["float32_unpacked"] = unpacked(4, 5, TensorProto.FLOAT, [f.tobytes() for f in floats])
    messages["int32_unpacked"] = unpacked(
        5, 0, TensorProto.INT32,
        [b"\x80\x80\x80\x80\xf8\xff\xff\xff\xff\x01", b"\xff" * 9 + b"\x01", b"\0", b"\x01", b"\x02",
         b"\xff\xff\xff\xff\x07"])
    messages["scalar"] = numpy_helper.from_array(np.array(7, np.float32), "s").SerializeToString()
    messages["empty"] = numpy_helper.from_array(np.zeros((2, 0, 3), np.float32), "e").SerializeToString()
    messages["strings"] = helper.make_tensor("t", TensorProto.STRING, (1,), [b"x"]).SerializeToString()
    messages["float8"] = helper.make_tensor("t", TensorProto.FLOAT8E4M3FN, (1,), [1.0]).SerializeToString()
    external = numpy_helper.from_array(values("float32"), "x")
    external.ClearField("raw_data")
    external.data_location = TensorProto.EXTERNAL
    external.external_data.add(key="location", value="weights.bin")
    messages["external"] = external.SerializeToString()
    sequence = numpy_helper.from_list([values("float32")] * 2, "sequence")
    messages["sequence"] = sequence.SerializeToString()
    messages["empty_sequence"] = numpy_helper.from_list([], "s", onnx.SequenceProto.TENSOR).SerializeToString()
    optional = onnx.OptionalProto(name="optional", elem_type=onnx.OptionalProto.TENSOR)
    optional.tensor_value.CopyFrom(numpy_helper.from_array(values("float32"), "v"))
    messages["optional"] = optional.SerializeToString()
    messages["nothing"] = onnx.OptionalProto(name="nothing", elem_type=0).SerializeToString()
    return {name: npy_bytes(np.frombuffer(message, np.uint8)) for name, message in messages.items()}


write_zip("npy.npz", npy_members())
write_zip("pb.npz", pb_members())
with zipfile.ZipFile(FOLDER / "deflated.npz", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr(zipfile.ZipInfo("x.npy"), npy_bytes(values("float32")), zipfile.ZIP_DEFLATED)
