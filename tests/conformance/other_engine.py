"""other_engine.py: onnxruntime on cases of the suite, in a process of its own, which is begun anew where a case ends it."""

import ctypes
import os
import pathlib
import subprocess
import sys

import numpy as np

RTOL, ATOL, SHARE = 1e-3, 1e-7, 2.0**-24  # as cli/data/compare.h has them


class Engine:
    """verdict(folder): pass, wrong, refused (not converted, or not run), or crash."""

    def __enter__(self):
        self.process = None
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.stdin.close()
            self.process.wait()

    def verdict(self, folder):
        if not self.process or self.process.poll() is not None:
            self.process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True,
                                            env={**os.environ, "ALLOW_RELEASED_ONNX_OPSET_ONLY": "0"})
        self.process.stdin.write(f"{folder}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            self.process.wait()
        return answer or "crash"


# ---- the process ----

def tensor(proto):
    from onnx import numpy_helper
    return numpy_helper.to_array(proto)


def is_cut(proto, declared):
    """Is it bfloat16 as the old suites keep it: codes as uint16, cut from floats instead of rounded?"""
    return (proto.data_type, declared.tensor_type.elem_type) == (proto.UINT16, proto.BFLOAT16)


def read(path, declared):
    """A value of a case, of the type that the model declares: an array, a list of such, or None."""
    import onnx
    data = path.read_bytes()
    kind = declared.WhichOneof("value")
    if kind == "sequence_type":
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    proto = onnx.TensorProto.FromString(data)
    if not is_cut(proto, declared):
        return tensor(proto)
    return tensor(proto).view(onnx.helper.tensor_dtype_to_np_dtype(proto.BFLOAT16))


def cut_judge(path, declared):
    """same(), and for what was cut: or one more in the last place."""
    import onnx
    if declared.WhichOneof("value") != "tensor_type" or not is_cut(onnx.TensorProto.FromString(path.read_bytes()), declared):
        return same
    one_more = lambda g, w: np.isfinite(g.astype(np.float32)) & (g.view(np.uint16) == w.view(np.uint16) + 1)  # noqa: E731
    return lambda g, w: g.shape == w.shape and g.dtype == w.dtype and same(np.where(one_more(g, w), w, g), w)


def is_of_numpy(value):
    return not isinstance(value, np.ndarray) or value.dtype.isbuiltin == 1


def same(got, want):
    if isinstance(want, list) or isinstance(got, list):
        return isinstance(got, list) and isinstance(want, list) and len(got) == len(want) and all(map(same, got, want))
    if want is None or got is None:
        return got is None and want is None
    if got.shape != want.shape:
        return False
    if want.dtype.kind in "OSU":
        text = lambda x: x.decode() if isinstance(x, bytes) else str(x)  # noqa: E731
        return [text(x) for x in got.ravel()] == [text(x) for x in want.ravel()]
    if got.dtype != want.dtype:
        return False
    if want.dtype.kind not in "fcV":
        return bool((got == want).all())
    g, w = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(w[np.isfinite(w)])
    near = np.maximum(ATOL + RTOL * np.abs(w), SHARE * finite.max(initial=0))
    with np.errstate(invalid="ignore"):
        return bool(((g == w) | (np.isnan(g) & np.isnan(w)) | (np.abs(g - w) <= near)).all())


def array(value):
    """Of an OrtValue of a tensor, whatever its type, by its bytes as ONNX packs them."""
    import onnx
    kind = value.element_type()
    if onnx.helper.tensor_dtype_to_np_dtype(kind).isbuiltin == 1:
        return value.numpy()
    return onnx.numpy_helper.to_array(onnx.TensorProto(dims=value.shape(), data_type=kind, raw_data=ctypes.string_at(
        value.data_ptr(), value.tensor_size_in_bytes())))


def is_other_form(data, declared):
    """Has the case other extents than the model declares?"""
    dims = declared.tensor_type.shape.dim if declared.tensor_type.HasField("shape") else None
    if dims is None or not isinstance(data, np.ndarray):
        return False
    return len(dims) != data.ndim or any(d.HasField("dim_value") and d.dim_value != n for d, n in zip(dims, data.shape))


def bake(model, inputs, values):
    """Inputs become initializers that are of types that numpy has not, as Python cannot feed them, or of other extents."""
    import onnx
    for value, data in zip(inputs, values):
        if data is not None and (not is_of_numpy(data) or is_other_form(data, value.type)):
            model.graph.initializer.append(onnx.numpy_helper.from_array(data, value.name))
            model.graph.input.remove(value)


def run_set(model, data):
    """A set of data: does the model compute its outputs?"""
    import onnxruntime
    constants = {x.name for x in model.graph.initializer}
    inputs, outputs = [v for v in model.graph.input if v.name not in constants], list(model.graph.output)
    values = [read(path, value.type) if (path := data / f"input_{k}.pb").is_file() else None
              for k, value in enumerate(inputs)]
    bake(model, inputs, values)
    fed = {v.name for v in model.graph.input}
    feeds = {v.name: x for v, x in zip(inputs, values) if x is not None and v.name in fed}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in outputs]
    paths = [data / f"output_{k}.pb" for k in range(len(outputs))]
    wanted = [read(path, value.type) for path, value in zip(paths, outputs)]
    if all(is_of_numpy(w) for w in wanted):
        got = session.run(names, feeds)
    else:
        got = map(array, session.run_with_ort_values(names, {k: onnxruntime.OrtValue.ortvalue_from_numpy(v) for k, v in feeds.items()}))
    return all(cut_judge(path, v.type)(g, w) for g, w, path, v in zip(got, wanted, paths, outputs))


def run_case(folder):
    import onnx
    try:
        right = all([run_set(onnx.load(folder / "model.onnx"), data) for data in sorted(folder.glob("test_data_set_*"))])
    except Exception:  # every engine's own kinds
        return "refused"
    return "pass" if right else "wrong"


if __name__ == "__main__":
    for line in sys.stdin:
        print(run_case(pathlib.Path(line.strip())), flush=True)
