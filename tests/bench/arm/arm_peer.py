"""arm_peer.py ENGINE FOLDER RUNS [OUTPUTS.npz]: runs a model so many times by an engine, on one thread, to be counted from
outside: after one run to warm up, between two calls of getppid; and writes its outputs. On this machine or under emulation,
with nothing but the engine's package and numpy.

FOLDER is what arm_peers.py prepares: inputs.npz and names.json, and model.onnx, model.ncnn.param and .bin, or model.mnn.
ENGINE: ort, ncnn, mnn, and with -fp16 the last two in half precision where they have it."""

import json
import os
import sys

import numpy as np


def ort(folder, feeds, names, half):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(folder + "/model.onnx", options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for name in names:
        binding.bind_output(name)
    return lambda: session.run_with_iobinding(binding), binding.copy_outputs_to_cpu


def ncnn(folder, feeds, names, half):
    import ncnn as engine
    net = engine.Net()
    net.opt.num_threads = 1
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = half
    net.opt.use_bf16_storage = False
    if net.load_param(folder + "/model.ncnn.param") or net.load_model(folder + "/model.ncnn.bin"):
        raise RuntimeError("an operator it has no layer for")
    given = [(f"in{k}", engine.Mat(np.ascontiguousarray(v[0]))) for k, v in enumerate(feeds.values())]
    found = []

    def run():
        extractor = net.create_extractor()
        for name, value in given:
            extractor.input(name, value)
        found[:] = [extractor.extract(f"out{k}") for k in range(len(names))]
        if any(code for code, _ in found):
            raise RuntimeError("extract fails")
    return run, lambda: [np.array(value) for _, value in found]


def mnn(folder, feeds, names, half):
    import MNN
    runtime = MNN.nn.create_runtime_manager(({"backend": "CPU", "precision": "low" if half else "high", "numThread": 1},))
    net = MNN.nn.load_module_from_file(folder + "/model.mnn", list(feeds), names, runtime_manager=runtime)
    dtypes = {"float32": MNN.expr.float, "int32": MNN.expr.int, "int64": MNN.expr.int}
    given = []
    for value in feeds.values():
        placeholder = MNN.expr.placeholder(value.shape or (1,), MNN.expr.NCHW, dtypes[str(value.dtype)])
        placeholder.write(value.astype(np.int32).tolist() if value.dtype == np.int64 else value)
        given.append(placeholder)
    found = []

    def run():
        found[:] = [MNN.expr.convert(out, MNN.expr.NCHW) for out in net.forward(given)]
        for out in found:
            out.read()
    return run, lambda: [out.read() for out in found]


def main():
    engine, folder, runs, *outputs = sys.argv[1:]
    name, _, half = engine.partition("-")
    with np.load(folder + "/inputs.npz") as stored:
        feeds = {key: stored[key] for key in stored.files}
    with open(folder + "/names.json") as f:
        names = json.load(f)
    run, read = {"ort": ort, "ncnn": ncnn, "mnn": mnn}[name](folder, feeds, names, half == "fp16")
    run()
    os.getppid()
    for _ in range(int(runs)):
        run()
    os.getppid()
    if outputs:
        np.savez(outputs[0], *map(np.asarray, read()))


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        said = (str(error).strip() or "no reason given").splitlines()[0]
        sys.exit(said if type(error) is RuntimeError else f"{type(error).__name__}: {said}")
