"""Every version since opset 7 of every T1 operator, and the com.microsoft operators, on generated cases, against
onnxruntime.

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

import exact_products
import microsoft_cases
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


def model_of(name, case, opset, domain=""):
    names = ["" if x is None else f"x{i}" for i, x in enumerate(case.inputs)]
    used = names[:2] if name == "If" else names
    outputs = getattr(case, "names", [f"y{i}" for i in range(case.outputs)])
    node = helper.make_node(name, used[:1] if name == "If" else used, outputs, domain=domain, **case.attributes)
    fed, constants = [], []
    for i, x in enumerate(case.inputs):
        if x is None:
            continue
        if i in case.constant:
            constants.append(numpy_helper.from_array(x, names[i]))
        else:
            fed.append(helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
    results = [helper.make_empty_tensor_value_info(o) for o in outputs if o]
    graph = helper.make_graph([node], name, fed, results, constants)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=imports,
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
    """onnxruntime's outputs, products of bytes exact, or None where it has no kernel for the case."""
    model = exact_products.source(model)
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


def difference(ours, theirs, scale=1.0):
    """None, or what is different; scale is of the tolerance."""
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
    allowed = scale * tolerance(theirs.dtype) * max(np.abs(b).max(initial=0.0), 1e-3)
    return None if worst <= allowed else f"off by {worst:g}, allowed {allowed:g}"


def describe(case, seed):
    shapes = [None if x is None else f"{x.dtype}{list(x.shape)}" for x in case.inputs]
    return f"seed {seed}: {shapes} {case.attributes}"


VERSIONS = list(versions())


def test_every_t1_operator_has_a_generator():
    assert len(GENERATORS) == 119


def compare(linnet, count, cases, judge):
    """Fails unless `count` of the cases, (seed, case, model), can be judged and none of them differs."""
    judged, faults = 0, []
    options = linnet.SessionOptions()
    options.intra_op_num_threads = 1
    for seed, case, model in cases:
        if judged == count:
            break
        serialized, feed = model.SerializeToString(), feed_of(case)
        theirs = judge(serialized, feed)
        if theirs is None:
            continue
        judged += 1
        options.graph_optimization_level = linnet.GraphOptimizationLevel(99 if seed % 2 else 0)
        try:
            ours = linnet.InferenceSession(serialized, options).run(None, feed)
        except linnet.LinnetError as e:
            faults.append(f"{describe(case, seed)}: {e}")
            continue
        for i, (o, t) in enumerate(zip(ours, theirs)):
            wrong = difference(*chosen_rows(case, i, o, np.asarray(t)), case.scale)
            if wrong:
                faults.append(f"{describe(case, seed)}: output {i}: {wrong}")
    assert not faults, f"{len(faults)} of {judged} cases differ\n" + "\n".join(faults[:6])
    assert judged == count, f"{judged} cases could be judged only"


def chosen_rows(case, i, *outputs):
    """Output i of both: of a cache only the rows of each batch entry that are in use."""
    rows = getattr(case, "rows", {i: None})[i]
    if rows is None:
        return outputs
    return [np.concatenate([o[b, :, :n].ravel() for b, n in enumerate(rows)]) for o in outputs]


@pytest.mark.parametrize("name,since", VERSIONS, ids=[f"{n}-{v}" for n, v in VERSIONS])
def test_operator(linnet, name, since):
    cases = ((seed, GENERATORS[name](Draw(seed), since)) for seed in range(TRIES))
    models = ((seed, case, model_of(name, case, max(since, 7))) for seed, case in cases)
    compare(linnet, CASES, models, by_onnxruntime if since <= NEWEST_OF_ONNXRUNTIME else by_reference)


@pytest.mark.parametrize("name", sorted(microsoft_cases.GENERATORS))
def test_microsoft_operator(linnet, name):
    cases = ((seed, microsoft_cases.GENERATORS[name](Draw(seed))) for seed in range(TRIES))
    models = ((seed, case, model_of(name, case, 17, "com.microsoft")) for seed, case in cases)
    compare(linnet, CASES, models, by_onnxruntime)
