"""What the Python tests share: the program under test, ONNX models as case folders, onnxruntime as the judge."""

import fcntl
import functools
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

import exact_products

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("LINNET_SHARED", ROOT.parent / "shared"))
LINNET = os.environ.get("LINNET", str(ROOT / "build" / "linnet"))
LONG = bool(os.environ.get("LINNET_LONG"))  # the whole matrix, not the part that shows most


def import_package():
    """The Python package of this checkout, its native part built."""
    subprocess.run(["make", "-s", "-C", str(ROOT), "python"], check=True, stdout=subprocess.DEVNULL)
    os.environ["LINNET_LIBRARY"] = str(ROOT / "build" / "liblinnet_python.so")
    if str(ROOT / "python") not in sys.path:
        sys.path.insert(0, str(ROOT / "python"))
    return importlib.import_module("linnet")


def linnet(*args, timeout=300):
    """Runs the program; returns the finished process with its text output."""
    return subprocess.run([LINNET, *map(str, args)], capture_output=True, text=True, errors="replace", timeout=timeout)


@functools.lru_cache
def levels():
    """Those this CPU has, the best last."""
    return json.loads(linnet("doctor", "--quick", "--json").stdout)["levels"]


def suite():
    """Folder of the ONNX backend suite, written by whoever comes first: the shared one unpacked, else what the onnx package
    holds and, as it has none of the nodes' cases as files, what it makes of them."""
    archive = SHARED / "onnx-suite" / "onnx-backend-suite.tar.xz"
    folder = ROOT / "build" / ("onnx-suite" if archive.is_file() else "onnx-suite-package")
    stamp = folder / ".unpacked"
    if not stamp.is_file():
        with open(ROOT / "build" / "onnx-suite.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not stamp.is_file():
                write_suite(archive, folder)
                stamp.touch()
    return folder


def unpack(archive, folder):
    """Unpacks an archive of tar; Debian 12's Python, 3.11.2, knows no filters yet."""
    with tarfile.open(archive) as t:
        t.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


def write_suite(archive, folder):
    if archive.is_file():
        unpack(archive, folder)
    else:
        shutil.copytree(pathlib.Path(onnx.backend.test.__file__).parent / "data", folder, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("real"))
        write_node_cases(folder / "node")


def write_node_cases(folder):
    """The nodes' cases of the installed onnx package, as the suite has them: NAME/model.onnx, test_data_set_K/."""
    from onnx.backend.test.case.node import collect_testcases

    with np.errstate(all="ignore"):
        cases = collect_testcases(None)
    for case in cases:
        graph = case.model.graph
        for k, (inputs, outputs) in enumerate(case.data_sets):
            data = folder / case.name / f"test_data_set_{k}"
            data.mkdir(parents=True, exist_ok=True)
            for stem, infos, values in (("input", graph.input, inputs), ("output", graph.output, outputs)):
                for j, (info, value) in enumerate(zip(infos, values)):
                    (data / f"{stem}_{j}.pb").write_bytes(as_proto(info, value).SerializeToString())
        onnx.save(case.model, folder / case.name / "model.onnx")


def as_proto(info, value):
    """A value as the kind of message that its type is kept in."""
    if isinstance(value, onnx.TensorProto):
        return value
    makers = {"sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional,
              "map_type": numpy_helper.from_dict}
    return makers.get(info.type.WhichOneof("value"), numpy_helper.from_array)(value, info.name)


def reference(model, inputs, optimize=False):
    """Outputs of the model (ModelProto, bytes or path) under onnxruntime, as a list in graph order; integer
    products are exact."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(exact_products.source(model), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def fed_inputs(model):
    """Names of the graph inputs that have no initializer, in order."""
    constants = {t.name for t in model.graph.initializer}
    return [i.name for i in model.graph.input if i.name not in constants]


def write_case(folder, model, inputs, outputs):
    """A case folder as the ONNX backend suite has them: model.onnx and test_data_set_0/{input,output}_K.pb."""
    folder = pathlib.Path(folder)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    info = {i.name: i for i in model.graph.input}
    for k, name in enumerate(fed_inputs(model)):
        (data / f"input_{k}.pb").write_bytes(value_bytes(info[name], inputs[name]))
    for k, (output, value) in enumerate(zip(model.graph.output, outputs)):
        (data / f"output_{k}.pb").write_bytes(value_bytes(output, value))
    return folder


def value_bytes(info, value):
    """The message for a case's file: a list's of a list, as is nothing's; of an optional tensor that is there, or of an array that
    stands for a sequence of maps, the tensor alone."""
    kind = info.type.WhichOneof("value")
    if kind in ("sequence_type", "optional_type") and (value is None or isinstance(value, (list, tuple))):
        return as_proto(info, value).SerializeToString()
    return numpy_helper.from_array(np.asarray(value), info.name).SerializeToString()


def check_against_reference(folder, model, inputs, *options, ways=(("--opt", "none"), ("--opt", "all"))):
    """Fails unless the program agrees with onnxruntime on this model and these inputs, in every way given."""
    check_against(folder, model, inputs, reference(model, inputs), *options, ways=ways)


def check_against(folder, model, inputs, outputs, *options, ways):
    """The same with outputs that are known otherwise."""
    case = write_case(folder, model, inputs, outputs)
    for way in ways:
        done = linnet("verify", case / "model.onnx", *way, *options)
        assert done.returncode == 0, f"verify {' '.join(way)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
