"""Every version since opset 7 of every T1 operator, on generated cases, against onnxruntime.

The versions come from onnx.defs: one without cases, or without enough that can be judged, fails. Where
onnxruntime does not know a version yet the reference implementation of the onnx package judges."""

import importlib
import os

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"

import subprocess
import sys

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from differential_cases import GENERATORS, Draw
from harness import ROOT

CASES = 30
TRIES = 200
NEWEST_OF_ONNXRUNTIME = 26


def versions():
    """(operator, since_version): all from opset 7 on, and the one in force at opset 7."""
    found = {}
    for s in onnx.defs.get_all_schemas_with_history():
        if s.domain == "" and s.name in GENERATORS and not s.deprecated:
            found.setdefault(s.name, set()).add(s.since_version)
    for name, since in sorted(found.items()):
        at_seven = max((v for v in since if v <= 7), default=0)
        for v in sorted(since):
            if v >= at_seven:
                yield name, v


@pytest.fixture(scope="module")
def linnet():
    subprocess.run(["make", "-s", "-C", str(ROOT), "python"], check=True)
    os.environ["LINNET_LIBRARY"] = str(ROOT / "build" / "liblinnet_python.so")
    sys.path.insert(0, str(ROOT / "python"))
    return importlib.import_module("linnet")


def model_of(name, case, opset):
    names = ["" if x is None else f"x{i}" for i, x in enumerate(case.inputs)]
    used = names[:2] if name == "If" else names
    outputs = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(name, used[:1] if name == "If" else used, outputs, **case.attributes)
    fed, constants = [], []
    for i, x in enumerate(case.inputs):
        if x is None:
            continue
        if i in case.constant:
            constants.append(numpy_helper.from_array(x, names[i]))
        else:
            fed.append(helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
    results = [helper.make_empty_tensor_value_info(o) for o in outputs]
    graph = helper.make_graph([node], name, fed, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=min(10, max(3, helper.find_min_ir_version_for(
                                 [helper.make_opsetid("", opset)], True))))


def feed_of(case):
    return {f"x{i}": x for i, x in enumerate(case.inputs) if x is not None and i not in case.constant}


def by_reference(model, feed):
    """The reference implementation's outputs, or None where it fails."""
    try:
        return onnx.reference.ReferenceEvaluator(model).run(None, feed)
    except Exception:
        return None


def by_onnxruntime(model, feed):
    """onnxruntime's outputs, or None where it has no kernel for the case."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return session.run(None, feed)
    except Exception:  # onnxruntime raises many kinds: the case is then no judge
        return None


def tolerance(dtype):
    return {np.dtype(np.float16): 4e-3, np.dtype(np.float64): 1e-6}.get(dtype, 1e-4)


def difference(ours, theirs):
    """None, or what is different."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{list(ours.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
    if theirs.dtype.kind != "f":
        return None if np.array_equal(ours, theirs) else f"{ours.ravel()[:8]} instead of {theirs.ravel()[:8]}"
    finite = np.isfinite(theirs)
    if not np.array_equal(finite, np.isfinite(ours)) or not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return "other elements are finite"
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        return "other infinities"
    a, b = ours[finite].astype(np.float64), theirs[finite].astype(np.float64)
    worst = np.abs(a - b).max(initial=0.0)
    allowed = tolerance(theirs.dtype) * max(np.abs(b).max(initial=0.0), 1e-3)
    return None if worst <= allowed else f"off by {worst:g}, allowed {allowed:g}"


def describe(case, seed):
    shapes = [None if x is None else f"{x.dtype}{list(x.shape)}" for x in case.inputs]
    return f"seed {seed}: {shapes} {case.attributes}"


VERSIONS = list(versions())


def test_every_t1_operator_has_a_generator():
    assert len(GENERATORS) == 119


@pytest.mark.parametrize("name,since", VERSIONS, ids=[f"{n}-{v}" for n, v in VERSIONS])
def test_operator(linnet, name, since):
    judged, faults = 0, []
    judge = by_onnxruntime if since <= NEWEST_OF_ONNXRUNTIME else by_reference
    options = linnet.SessionOptions()
    options.intra_op_num_threads = 1
    for seed in range(TRIES):
        if judged == CASES:
            break
        case = GENERATORS[name](Draw(seed), since)
        model = model_of(name, case, max(since, 7)).SerializeToString()
        feed = feed_of(case)
        theirs = judge(model, feed)
        if theirs is None:
            continue
        judged += 1
        options.graph_optimization_level = linnet.GraphOptimizationLevel(99 if seed % 2 else 0)
        try:
            ours = linnet.InferenceSession(model, options).run(None, feed)
        except linnet.LinnetError as e:
            faults.append(f"{describe(case, seed)}: {e}")
            continue
        for o, t in zip(ours, theirs):
            wrong = difference(o, np.asarray(t))
            if wrong:
                faults.append(f"{describe(case, seed)}: {wrong}")
    assert not faults, f"{len(faults)} of {judged} cases differ\n" + "\n".join(faults[:6])
    assert judged == CASES, f"{judged} cases could be judged only"
