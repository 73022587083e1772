"""Where the time of some runs goes: a profile, summed up by operator."""

import collections
import json

import numpy as np
import onnxruntime as rt


def main(folder):
    options = rt.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "steps")
    options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = rt.InferenceSession(str(folder / "batches.onnx"), sess_options=options, providers=["CPUExecutionProvider"])
    x = np.ones((3, 8), np.float32)
    runs = [session.run(None, {"x": x * k})[0] for k in range(4)]
    began = session.get_profiling_start_time_ns()
    path = session.end_profiling()
    with open(path) as file:
        events = json.load(file)
    spent = collections.defaultdict(list)
    for event in events:
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            assert event["args"]["provider"] == "CPUExecutionProvider" and event["dur"] >= 0
            spent[event["args"]["op_name"]].append(event["dur"])
    whole = [event for event in events if event["cat"] == "Session" and event["name"] == "model_run"]
    return {"outputs": np.stack(runs), "operators": np.array(sorted(spent)), "counts": np.array([len(spent[op]) for op in sorted(spent)]),
            "runs": np.array(len(whole)), "in order": np.array([a["ts"] <= b["ts"] for a, b in zip(whole, whole[1:])]),
            "named": np.array([path.startswith(str(folder / "steps")), path.endswith(".json"), began > 0])}
