#!/usr/bin/env python3
"""from_torch.py [--out DIR] [--list] [--keep] [NAME ...]: the zoo's architectures as torch, torchvision, timm and
transformers have them, exported by both of torch's exporters: DIR/NAME.script/ and DIR/NAME.dynamo/, each with model.onnx
and test_data_set_0/ as the ONNX suite has them, outputs by onnxruntime with its optimizations off; and, for the names in
torch_variants.py, what other tools make of the script export: DIR/NAME.VARIANT/.

Weights are random, from a fixed seed: nothing is downloaded. Runs under .deps/peers (`make zoo-torch`). A model that an
exporter refuses is told, with the reason, in DIR/NAME.EXPORTER/refused.txt. NAME is an architecture or one export."""

import argparse
import importlib
import json
import os
import pathlib
import signal
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python"), str(HERE.parent / "python/builders")]

import onnx  # noqa: E402
import torch  # noqa: E402

import torch_variants  # noqa: E402
from make import expected, write_tensors  # noqa: E402
from torch_parts import Only, settled  # noqa: E402

OPSET = 18
SECONDS = 600  # for one export
EXPORTERS = ("script", "dynamo")
# With drawn weights its flows amplify the last bit of a float: torch's own result is then 0.4 (rms) from that in double.
FRESH = ("voice",)
SOURCES = ("torch_own", "torch_vision", "torch_timm", "torch_text", "torch_sight", "torch_sound")


def rows():
    """Of each architecture: what builds it, and the file that says so."""
    return {name: (build, HERE / f"{source}.py") for source in SOURCES
            for name, build in importlib.import_module(source).ZOO.items()}


def exports_of(name):
    return [*EXPORTERS, *torch_variants.VARIANTS.get(name, ())]


def export(built, exporter, path):
    """The inputs of the model written to `path`. Where torch.export finds that an extent may not vary, none does."""
    torch.manual_seed(0)
    net, inputs, axes = built()
    net = (net if path.parent.name.split(".")[0] in FRESH else settled(net)).eval()
    how = {"input_names": list(inputs), "opset_version": OPSET}
    with torch.no_grad():
        if exporter == "script":
            torch.onnx.export(net, tuple(inputs.values()), str(path), dynamo=False, dynamic_axes=axes, **how)
        else:
            how |= {"dynamo": True, "external_data": False, "verbose": False}
            try:
                torch.onnx.export(net, tuple(inputs.values()), str(path), dynamic_shapes=shapes_of(net, inputs, axes), **how)
            except Exception:
                if not axes:
                    raise
                torch.onnx.export(net, tuple(inputs.values()), str(path), **how)
    return {key: value.numpy() for key, value in inputs.items()}


def shapes_of(net, inputs, axes):
    """The axes as torch.export wants them: a module that takes any number of inputs has them in one argument."""
    named = {axis: torch.export.Dim(axis, min=1, max=4096) for of in axes.values() for axis in of.values()}
    shapes = tuple({d: named[axis] for d, axis in axes.get(name, {}).items()} for name in inputs)
    return None if not axes else (shapes,) if isinstance(net, Only) else shapes


def make(built, kind, folder):
    """One export; what refuses it is written beside."""
    case, path = folder / "test_data_set_0", folder / "model.onnx"
    case.mkdir(parents=True, exist_ok=True)
    for old in (path, folder / "refused.txt", *case.iterdir()):
        old.unlink(missing_ok=True)
    try:
        if kind in EXPORTERS:
            feeds = export(built, kind, path)
        else:
            plain = folder.parent / f"{folder.name.split('.')[0]}.script"
            feeds = torch_variants.make(kind, plain, path)
        model = onnx.load(path)
        taken = {i.name: feeds[i.name] for i in model.graph.input}
        outputs = expected(model, taken)
    except Exception as error:
        path.unlink(missing_ok=True)
        said = next((line for line in str(error).partition("Exception summary")[::-1] if line), "").strip().split("\n")[0]
        (folder / "refused.txt").write_text(f"{type(error).__name__}: {said}\n")
        return f"refused: {said}"
    write_tensors(case, "input", taken, taken.values())
    write_tensors(case, "output", [o.name for o in model.graph.output], outputs)
    return "made"


def apart(built, kind, folder):
    """`make` in a process of its own: what an exporter keeps of a model, or how it dies, is of no concern to the next."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        print(f"  TORCH   {folder.name}: {make(built, kind, folder)}", flush=True)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        (folder / "model.onnx").unlink(missing_ok=True)
        (folder / "refused.txt").write_text(f"{signal.Signals(status & 127).name if status & 127 else 'exit'}: the exporter ended\n")


def warm_up(built):
    """Each export is a process of its own: what the exporters load is loaded before, once."""
    torch.set_num_threads(1)  # threads do not survive a fork
    with tempfile.TemporaryDirectory() as folder:
        for exporter in EXPORTERS:
            export(built, exporter, pathlib.Path(folder) / "model.onnx")


def is_made(folder, source):
    """Or refused, and newer than the file of its row and than the torch it is made by; whatever age without a source."""
    sources = [source, HERE / "torch_parts.py", pathlib.Path(torch.__file__)] if source else []
    made = [p for p in (folder / "model.onnx", folder / "refused.txt") if p.exists()]
    return bool(made) and made[0].stat().st_mtime > max((p.stat().st_mtime for p in sources), default=0)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--out", type=pathlib.Path, default=HERE.parents[1] / "build/zoo-torch", metavar="DIR")
    options.add_argument("--list", action="store_true", help="print the names of all exports instead, as JSON")
    options.add_argument("--keep", action="store_true", help="make only what is missing, however old the rest is")
    given = options.parse_args()
    zoo = rows()
    exports = [f"{name}.{kind}" for name in zoo for kind in exports_of(name)]
    unknown = [name for name in given.names if name not in zoo and name not in exports]
    if unknown:
        options.error(f"no model {', '.join(unknown)}; there are {', '.join(zoo)}")
    if given.list:
        print(json.dumps(exports))
        return
    warnings.simplefilter("ignore")
    warm_up(zoo["distilbert"][0])
    for export_name in exports:
        name, kind = export_name.split(".")
        wanted = not given.names or name in given.names or export_name in given.names
        build, source = zoo[name]
        if wanted and not is_made(given.out / export_name, None if given.keep else source):
            apart(build, kind, given.out / export_name)


if __name__ == "__main__":
    main()
