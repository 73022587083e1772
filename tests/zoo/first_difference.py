#!/usr/bin/env python3
"""first_difference.py EXPORT [--opt none|all] [--share X] [--kind OP]: where linnet and onnxruntime first differ inside an
export of `make zoo-torch`: the first values, in the order of its nodes, that are further apart than X of their largest
magnitude (0: integers that differ), and what onnxruntime's own levels of optimization make of its outputs. With --kind
only the outputs of that operator are looked at; of QuantizeLinear it tells how near its input was to a tie."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/python"))
import exact_products  # noqa: E402
from harness import write_case  # noqa: E402

LEVELS = ("DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_ALL")
TYPES = {f"tensor({name})": onnx.TensorProto.DataType.Value(name.upper()) for name in
         ("float", "float16", "double", "uint8", "int8", "int32", "int64", "bool")}


def session(model, level="DISABLE_ALL"):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
    return onnxruntime.InferenceSession(exact_products.source(model), options, providers=["CPUExecutionProvider"])


def levels(model, feeds):
    """How far onnxruntime's levels are from the lowest, by output."""
    first = session(model).run(None, feeds)
    for level in LEVELS[1:]:
        found = session(model, level).run(None, feeds)
        far = [float(np.max(np.abs(a.astype(float) - b.astype(float))) / max(np.max(np.abs(a.astype(float))), 1e-30))
               if a.shape == b.shape and a.size else a.shape == b.shape for a, b in zip(first, found)]
        print(f"onnxruntime, {level}: {far}")


def opened(model, feeds, kind):
    """The model with what its nodes compute as outputs, and their values."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    names = [o for n in model.graph.node if kind in (None, n.op_type) for o in n.output if o]
    names += [n.input[0] for n in model.graph.node if kind == n.op_type == "QuantizeLinear"]
    known = {o.name for o in model.graph.output} | {t.name for t in model.graph.initializer} | set(feeds)
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names) if name not in known)
    asked = session(whole)
    typed = [o for o in asked.get_outputs() if o.type in TYPES]
    del whole.graph.output[:]
    whole.graph.output.extend(onnx.helper.make_tensor_value_info(o.name, TYPES[o.type], None) for o in typed)
    return whole, dict(zip([o.name for o in typed], asked.run([o.name for o in typed], feeds)))


def main():
    options = argparse.ArgumentParser(description=__doc__.split(":")[0])
    options.add_argument("export")
    options.add_argument("--opt", default="none")
    options.add_argument("--share", default="1e-6")
    options.add_argument("--kind")
    options.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/zoo-torch")
    given = options.parse_args()
    folder = given.folder / given.export
    model = onnx.load(folder / "model.onnx")
    tensors = [onnx.load_tensor(path) for path in (folder / "test_data_set_0").glob("input_*.pb")]
    feeds = {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
    levels(model, feeds)
    whole, values = opened(model, feeds, given.kind)
    with tempfile.TemporaryDirectory() as case:
        write_case(case, whole, feeds, list(values.values()))
        command = [ROOT / "build/linnet", "verify", f"{case}/model.onnx", "--opt", given.opt, "--max-rel", given.share, "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    bad = {o["output"]: o for o in json.loads(done.stdout)["outputs"] if not o["pass"]}
    weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        for name in (name for name in node.output if name in bad and given.kind in (None, node.op_type)):
            print(f"{node.op_type} {name}: {bad[name]['reason']}")
            if node.op_type == "QuantizeLinear" and weights.get(node.input[1], np.zeros(2)).size == 1:
                at = bad[name]["worst_element"]
                print(f"  of {values[node.input[0]].flat[at] / weights[node.input[1]].item():.7f} steps")
            if given.kind:
                return


if __name__ == "__main__":
    main()
