"""peer.py ENGINE MODEL.onnx CASE THREADS FOLDER: one engine in a process of its own, for peers.py.

Converts the model into FOLDER where the engine wants a file of its own, runs the case once, writes the outputs to
FOLDER/ENGINE.npz and prints a line of JSON. Then, for every line "SECONDS" on standard input, runs for about as long and
prints the median of a run, giving it its inputs included, in microseconds. What goes wrong ends it with the reason on the
last line of standard error."""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
FEWEST_RUNS = 3


def fixed(model, feeds, path):
    """The model with the shapes of these inputs written into it, as engines with static shapes want it."""
    made = onnx.load(model)
    for tensor in made.graph.input:
        if tensor.name in feeds:
            dims = tensor.type.tensor_type.shape.dim
            for dim, extent in zip(dims, feeds[tensor.name].shape):
                dim.dim_value = extent
    del made.graph.value_info[:]
    onnx.save(onnx.shape_inference.infer_shapes(made), path)
    return path


def tool(*words, cwd=None, programs=pathlib.Path(sys.executable).parent):
    """A converter of the engine's; its last words where it fails."""
    path = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run([programs / words[0], *map(str, words[1:])], cwd=cwd, capture_output=True, text=True, errors="replace",
                          env=os.environ | {"PATH": path})
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).split("\n") if line.strip()]
        raise RuntimeError(f"{words[0]}: {said[-1] if said else done.returncode}")


# ---- the engines: (model, feeds, threads, folder) gives a function that runs, and returns the outputs in graph order ----

def linnet(model, feeds, threads, folder):
    sys.path.insert(0, str(HERE.parents[1] / "python"))
    os.environ.setdefault("LINNET_LIBRARY", str(HERE.parents[1] / "build/liblinnet_python.so"))
    import linnet as engine
    return onnx_session(engine, model, feeds, threads)


def onnxruntime(model, feeds, threads, folder):
    import onnxruntime as engine
    return onnx_session(engine, model, feeds, threads)


def onnx_session(engine, model, feeds, threads):
    options = engine.SessionOptions()
    options.intra_op_num_threads = threads
    session = engine.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def openvino(model, feeds, threads, folder):
    """Its default on processors with AMX is bfloat16: here float, as all others compute."""
    import openvino as ov
    core = ov.Core()
    net = core.read_model(model)
    net.reshape({name: list(value.shape) for name, value in feeds.items()})
    compiled = core.compile_model(net, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                               "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    return lambda: list(request.infer(feeds, share_inputs=True, share_outputs=True).values())


def mnn(model, feeds, threads, folder):
    import MNN
    converted = folder / "model.mnn"
    # The script mnnconvert would report to its makers and install what that takes: this is what it calls.
    tool("python", "-c", "import sys, MNN, _tools; _tools.mnnconvert(sys.argv)", "-f", "ONNX", "--modelFile",
         fixed(model, feeds, folder / "fixed.onnx"), "--MNNModel", converted, "--bizCode", "linnet")
    names = [o.name for o in onnx.load(model).graph.output]
    runtime = MNN.nn.create_runtime_manager(({"backend": "CPU", "precision": "high", "numThread": threads},))
    net = MNN.nn.load_module_from_file(str(converted), list(feeds), names, runtime_manager=runtime)
    dtypes = {"float32": MNN.expr.float, "int32": MNN.expr.int, "int64": MNN.expr.int}
    given = []
    for value in feeds.values():
        placeholder = MNN.expr.placeholder(value.shape or (1,), MNN.expr.NCHW, dtypes[str(value.dtype)])
        given.append((placeholder, value.astype(np.int32).tolist() if value.dtype == np.int64 else value))

    def run():
        for placeholder, value in given:
            placeholder.write(value)
        return [MNN.expr.convert(out, MNN.expr.NCHW).read() for out in net.forward([g for g, _ in given])]
    return run


def ncnn(model, feeds, threads, folder):
    """Images, and what else has one batch: ncnn's tensors have no batch of their own."""
    import ncnn as engine
    shapes = ",".join(str(list(v.shape)).replace(" ", "") + {"float32": "f32", "int64": "i64", "int32": "i32"}[str(v.dtype)]
                      for v in feeds.values())
    fixed(model, feeds, folder / "fixed.onnx")
    tool("pnnx", "fixed.onnx", f"inputshape={shapes}", "fp16=0", cwd=folder)
    net = engine.Net()
    net.opt.num_threads = threads
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = False
    if net.load_param(str(folder / "fixed.ncnn.param")) or net.load_model(str(folder / "fixed.ncnn.bin")):
        raise RuntimeError("an operator it has no layer for")
    given = [(f"in{i}", engine.Mat(np.ascontiguousarray(v[0]))) for i, v in enumerate(feeds.values())]
    outputs = len(onnx.load(model).graph.output)

    def run():
        extractor = net.create_extractor()
        for name, value in given:
            extractor.input(name, value)
        found = []
        for i in range(outputs):
            code, out = extractor.extract(f"out{i}")
            if code:
                raise RuntimeError(f"extract gives {code}")
            found.append(np.array(out)[None])
        return found
    return run


def litert(model, feeds, threads, folder):
    from ai_edge_litert.interpreter import Interpreter
    made = folder / "tf/fixed_float32.tflite"
    if not made.exists():
        # Pictures it tries its result on, which it would fetch from elsewhere: any will do.
        pictures = np.random.default_rng(0).random((20, 128, 128, 3), np.float32)
        np.save(folder / "calibration_image_sample_data_20x128x128x3_float32.npy", pictures)
        tool("onnx2tf", "-i", fixed(model, feeds, folder / "fixed.onnx"), "-o", folder / "tf", "-n", "-rtpo", "Erf", cwd=folder,
             programs=HERE.parents[1] / ".deps/peers-tf/bin")
    engine = Interpreter(str(made), num_threads=threads)
    engine.allocate_tensors()
    signature = engine.get_signature_runner()
    given = []
    for detail, value in zip(of_names(signature.get_input_details(), feeds), feeds.values()):
        if tuple(detail["shape"]) != value.shape:  # its images have their channels last
            value = np.ascontiguousarray(np.moveaxis(value, 1, -1))
        given.append((detail["index"], value.astype(detail["dtype"])))
    outputs = of_names(signature.get_output_details(), [o.name for o in onnx.load(model).graph.output])

    def run():
        for index, value in given:
            engine.set_tensor(index, value)
        engine.invoke()
        return [engine.get_tensor(o["index"]) for o in outputs]
    return run


def of_names(details, names):
    """In the order of these names, of which the converter may have changed what is no letter."""
    plain = {re.sub(r"\W", "_", name): detail for name, detail in details.items()}
    return [plain[re.sub(r"\W", "_", name)] for name in names]


def torch(model, feeds, threads, folder):
    os.environ["TORCHINDUCTOR_FREEZING"] = "1"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    import torch as engine
    from onnx2torch import convert
    engine.set_num_threads(threads)
    net = engine.compile(convert(onnx.load(fixed(model, feeds, folder / "fixed.onnx"))).eval())
    given = [engine.from_numpy(v) for v in feeds.values()]

    def run():
        with engine.inference_mode():
            found = net(*given)
        return [t.numpy() for t in (found if isinstance(found, (tuple, list)) else [found])]
    return run


ENGINES = {f.__name__: f for f in (linnet, onnxruntime, openvino, mnn, ncnn, litert, torch)}


def runs_of(run, seconds):
    times, end = [], time.perf_counter() + seconds
    while len(times) < FEWEST_RUNS or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def main():
    name, model, case, threads, folder = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [i for i in onnx.load(model).graph.input]
    stored = sorted(pathlib.Path(case).glob("input_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    feeds = {i.name: numpy_helper.to_array(onnx.load_tensor(str(p))).copy() for i, p in zip(inputs, stored)}
    said = os.dup(1)
    os.dup2(2, 1)  # engines talk on standard output
    run = ENGINES[name](pathlib.Path(model), feeds, int(threads), folder)
    outputs = [np.asarray(o) for o in run()]
    np.savez(folder / f"{name}.npz", *outputs)
    with os.fdopen(said, "w") as out:
        print(json.dumps({"ready": True}), file=out, flush=True)
        for line in sys.stdin:
            print(runs_of(run, float(line)), file=out, flush=True)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        sys.exit(f"\n{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}")
