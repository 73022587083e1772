"""oip.py — the Open Inference Protocol (v2, REST) over models of Linnet: what KServe's and Triton's clients speak, with its
extension for binary tensors. https://github.com/kserve/open-inference-protocol"""

import json
import math
import zlib

import numpy as np
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool

import linnet

# (datatype of the protocol, numpy's little-endian) by the type of an input or output. bfloat16 is its bits; types of 8 bits and
# fewer are the bytes that Linnet keeps them in.
DATATYPES = {
    "bool": ("BOOL", "?"), "uint8": ("UINT8", "u1"), "uint16": ("UINT16", "<u2"), "uint32": ("UINT32", "<u4"),
    "uint64": ("UINT64", "<u8"), "int8": ("INT8", "i1"), "int16": ("INT16", "<i2"), "int32": ("INT32", "<i4"),
    "int64": ("INT64", "<i8"), "float16": ("FP16", "<f2"), "float": ("FP32", "<f4"), "double": ("FP64", "<f8"),
    "bfloat16": ("BF16", "<u2"), "int4": ("INT8", "i1"), "int2": ("INT8", "i1"),
}
DATATYPES |= {name: ("UINT8", "u1") for name in ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0",
                                                 "float4e2m1", "uint4", "uint2")}
HEADER = "Inference-Header-Content-Length"
VERSION = "1"
SERVERS_OWN = (8, 15)  # codes of failures that a request cannot help: memory, an error within


def refuse(why, status=400):
    raise HTTPException(status, why)


def datatype(port):
    return DATATYPES[port.type.removeprefix("tensor(").removesuffix(")")]


def port_metadata(port):
    return {"name": port.name, "datatype": datatype(port)[0],
            "shape": [extent if isinstance(extent, int) else -1 for extent in port.shape]}


def object_of(value, what):
    if not isinstance(value, dict):
        refuse(f"{what} is to be a JSON object")
    return value


def list_of(value, what):
    if not isinstance(value, list):
        refuse(f"{what} is to be a list")
    return value


def unpacked(body, encoding, most):
    """The body without its Content-Encoding, of `most` bytes at most."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "deflate"):
        refuse(f"Content-Encoding {encoding}: gzip and deflate are known", 415)
    try:
        stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
        plain = stream.decompress(body, most)
    except zlib.error as why:
        refuse(f"the body is not {encoding}: {why}")
    if stream.unconsumed_tail or (len(plain) == most and not stream.eof):
        refuse(f"the body unpacks to more than {most} bytes", 413)
    if not stream.eof:
        refuse(f"the body is not {encoding}: cut short")
    return plain


def split(body, header):
    """The request's JSON, and the binary data behind it."""
    if header is not None and not (header.isascii() and header.isdigit() and int(header) <= len(body)):
        refuse(f"{HEADER} is {header!r}, the body has {len(body)} bytes")
    end = len(body) if header is None else int(header)
    try:
        return object_of(json.loads(body[:end]), "a request"), memoryview(body)[end:]
    except (ValueError, RecursionError) as why:
        refuse(f"the request is not JSON: {why}")


def shape_of(tensor, port):
    """The shape of a request's input, which is one that the model's has."""
    shape, name = list_of(tensor.get("shape"), f"shape of input {port.name!r}"), port.name
    if not all(type(extent) is int and 0 <= extent < 1 << 62 for extent in shape):
        refuse(f"input {name!r}: the shape {shape} is to be of integers from 0 on")
    wanted = port_metadata(port)["shape"]
    if wanted and (len(shape) != len(wanted) or any(w not in (-1, s) for w, s in zip(wanted, shape))):
        refuse(f"input {name!r} has the shape {shape}, the model takes {wanted}")
    return shape


def from_json(data, shape, name, numpy_type, code):
    """The elements of a JSON list, flat or nested as the shape is. Integers outside of the type's range, and numbers of another
    kind than the type's, are refused."""
    if code == "BF16":
        refuse(f"input {name!r}: BF16 is taken as binary data only")
    try:
        array = np.array(list_of(data, f"data of input {name!r}"))
    except (ValueError, OverflowError):
        refuse(f"input {name!r}: its data are neither a flat list nor one nested as the shape is")
    whole, kinds = code.startswith(("INT", "UINT")), "b" if code == "BOOL" else "iuf" if code.startswith("FP") else "iu"
    if whole and array.dtype.kind in "fO":  # numpy's way with small numbers beside those of UINT64's upper half
        array = np.array(data, object)
    exact = whole and array.dtype == object and all(type(number) is int for number in array.ravel())
    if array.size and array.dtype.kind not in kinds and not exact:
        refuse(f"input {name!r}: its data are not of {code}")
    if array.shape not in ((math.prod(shape),), tuple(shape)):
        refuse(f"input {name!r}: data of shape {list(array.shape)}, its shape is {shape}")
    if whole and array.size:
        limits = np.iinfo(numpy_type)
        if array.min() < limits.min or array.max() > limits.max:
            refuse(f"input {name!r}: a number is outside of {code}")
    return array.astype(numpy_type).reshape(shape)


def take_input(tensor, port, binary):
    """An input as an array, and the rest of the binary data."""
    code, numpy_type = datatype(port)
    if tensor.get("datatype") != code:
        refuse(f"input {port.name!r} has the datatype {tensor.get('datatype')}, the model takes {code}")
    shape = shape_of(tensor, port)
    size = object_of(tensor.get("parameters", {}), "parameters").get("binary_data_size")
    if (size is None) == ("data" not in tensor):
        refuse(f"input {port.name!r} needs either data or binary_data_size")
    if size is None:
        return from_json(tensor["data"], shape, port.name, numpy_type, code), binary
    needed = math.prod(shape) * np.dtype(numpy_type).itemsize
    if type(size) is not int or size != needed:
        refuse(f"input {port.name!r}: binary_data_size is {size}, {code} of shape {shape} takes {needed} bytes")
    if size > len(binary):
        refuse(f"input {port.name!r}: {size} bytes of binary data are announced, {len(binary)} are left of the body")
    return np.frombuffer(binary[:size], numpy_type).reshape(shape), binary[size:]


def take_inputs(request, session, binary):
    ports, feed = {port.name: port for port in session.get_inputs()}, {}
    for tensor in list_of(request.get("inputs"), "inputs"):
        name = object_of(tensor, "an input").get("name")
        if not isinstance(name, str) or name not in ports:
            refuse(f"the model has no input {name!r}; it has {', '.join(ports)}")
        if name in feed:
            refuse(f"input {name!r} is given twice")
        feed[name], binary = take_input(tensor, ports[name], binary)
    missing = [name for name in ports if name not in feed]
    if missing:
        refuse(f"input {missing[0]!r} is missing")
    if binary:
        refuse(f"{len(binary)} bytes are left behind the last input's binary data")
    return feed


def asked_outputs(request, session):
    """Names of the outputs asked for, each with whether it is sent as binary data."""
    known = [port.name for port in session.get_outputs()]
    binary = bool(object_of(request.get("parameters", {}), "parameters").get("binary_data_output", False))
    asked = {}
    for output in list_of(request.get("outputs") or [], "outputs"):
        name, how = object_of(output, "an output").get("name"), object_of(output.get("parameters", {}), "parameters")
        if name not in known:
            refuse(f"the model has no output {name!r}; it has {', '.join(known)}")
        if "classification" in how:
            refuse("the classification extension is not offered")
        asked[name] = bool(how.get("binary_data", binary))
    return asked or dict.fromkeys(known, binary)


def answer(name, request, session, asked, arrays):
    """The response: JSON, with the tensors that are sent as binary data behind it."""
    ports, outputs, blobs = {port.name: port for port in session.get_outputs()}, [], []
    for (output, binary), array in zip(asked.items(), arrays):
        code, numpy_type = datatype(ports[output])
        tensor = {"name": output, "datatype": code, "shape": list(array.shape)}
        if binary:
            blobs.append(np.ascontiguousarray(array, numpy_type).tobytes())
            tensor["parameters"] = {"binary_data_size": len(blobs[-1])}
        elif code == "BF16" or (code.startswith("FP") and not np.isfinite(array).all()):
            refuse(f"output {output!r} has what JSON cannot say, {'BF16' if code == 'BF16' else 'infinity or NaN'}: "
                   "ask for binary data")
        else:
            tensor["data"] = array.ravel().tolist()
        outputs.append(tensor)
    head = {"model_name": name, "model_version": VERSION, "outputs": outputs}
    text = json.dumps(head | ({"id": request["id"]} if "id" in request else {})).encode()
    if not blobs:
        return Response(text, media_type="application/json")
    return Response(text + b"".join(blobs), media_type="application/octet-stream", headers={HEADER: str(len(text))})


def infer(name, session, body, headers, most):
    request, binary = split(unpacked(body, headers.get("Content-Encoding", ""), most), headers.get(HEADER))
    asked = asked_outputs(request, session)
    feed = take_inputs(request, session, binary)
    try:
        arrays = session.run(list(asked), feed)
    except linnet.LinnetError as why:
        refuse(str(why), 500 if why.code in SERVERS_OWN else 400)
    return answer(name, request, session, asked, arrays)


def router(sessions, read_body, most):
    """The protocol's routes. sessions: by the models' names; read_body: of a request, `most` bytes or less."""
    routes = APIRouter(prefix="/v2")

    def session_of(name, version=VERSION):
        if name not in sessions or version != VERSION:
            refuse(f"there is no model {name!r} of version {version}; there are {', '.join(sessions)}, version {VERSION}", 404)
        return sessions[name]

    def metadata(name, session):
        return {"name": name, "versions": [VERSION], "platform": "linnet_lnt",
                "inputs": [port_metadata(port) for port in session.get_inputs()],
                "outputs": [port_metadata(port) for port in session.get_outputs()]}

    @routes.get("")
    def server():
        return {"name": "linnet", "version": linnet.__version__, "extensions": ["binary_tensor_data"]}

    @routes.get("/health/live")
    def live():
        return {"live": True}

    @routes.get("/health/ready")
    def ready():
        return {"ready": True}

    for path in ("/models/{name}", "/models/{name}/versions/{version}"):

        @routes.get(path)
        def model(name: str, version: str = VERSION):
            return metadata(name, session_of(name, version))

        @routes.get(path + "/ready")
        def model_ready(name: str, version: str = VERSION):
            session_of(name, version)
            return {"name": name, "ready": True}

        @routes.post(path + "/infer")
        async def model_infer(request: Request, name: str, version: str = VERSION):
            session = session_of(name, version)
            body = await read_body(request)
            return await run_in_threadpool(infer, name, session, body, request.headers, most)

    return routes
