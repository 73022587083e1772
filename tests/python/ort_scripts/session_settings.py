"""Every setting that scripts make, and what they ask of a session and a model."""

import os
import warnings

import numpy as np
import onnxruntime as rt
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, NoSuchFile


def refused(kind, work):
    try:
        work()
    except kind:
        return True
    return False


def main(folder):
    rt.set_default_logger_severity(3)
    rt.set_default_logger_verbosity(0)
    rt.set_seed(7)
    options = rt.SessionOptions()
    options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.execution_mode = rt.ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads, options.intra_op_num_threads = 2, 1
    options.enable_mem_pattern, options.enable_cpu_mem_arena, options.enable_mem_reuse = False, True, True
    options.log_severity_level, options.logid = 3, "settings"
    options.optimized_model_filepath = str(folder / "kept.onnx")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.add_session_config_entry("session.set_denormal_as_zero", "0")
    options.add_free_dimension_override_by_name("N", 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = rt.InferenceSession(str(folder / "batches.onnx"), sess_options=options,
                                      providers=[("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"])
    session.disable_fallback()
    how = rt.RunOptions()
    how.log_severity_level, how.logid = 4, "one run"
    how.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
    y = session.run(["y"], {"x": x}, run_options=how)[0]
    ended = rt.RunOptions()
    ended.terminate = True
    kept = rt.InferenceSession(options.optimized_model_filepath, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    port, meta = session.get_inputs()[0], session.get_modelmeta()
    entries = [options.get_session_config_entry("session.disable_prepacking"),
               how.get_run_config_entry("memory.enable_memory_arena_shrinkage")]
    told = [port.name, port.type, *map(str, port.shape), meta.graph_name, meta.producer_name, str(meta.version), *entries,
            rt.get_device(), *session.get_providers()]
    return {
        "y": y, "kept": kept, "told": np.array(told), "a file": np.array(os.path.getsize(options.optimized_model_filepath) > 0),
        "warned": np.array(any("CUDAExecutionProvider" in str(w.message) for w in caught)),
        "refused": np.array([
            refused(InvalidArgument, lambda: session.run(None, {"x": x[:, :3]})),
            refused(InvalidArgument, lambda: session.run(["z"], {"x": x})),
            refused(NoSuchFile, lambda: rt.InferenceSession(str(folder / "none.onnx"))),
            refused(Fail, lambda: session.run(None, {"x": x}, ended)),
            refused(AttributeError, lambda: setattr(options, "intra_op_threads", 1)),
            refused(ValueError, lambda: session.run(None, {})),
        ]),
    }
