#!/usr/bin/env python3
"""conformance.py: docs/operators.md and docs/conformance.md, from ONNX's own tests (its backend suite), which Linnet and onnxruntime
run case by case, both judged by the suite's rule, and those of older ONNX versions (older_suite.py); from the rows of
ops/list.h; and from docs/vector-paths.md."""

import argparse
import collections
import dataclasses
import os
import pathlib
import re
import sys

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "tests" / "conformance")]
import write_pages  # noqa: E402
from harness import linnet, suite  # noqa: E402
from other_engine import Engine  # noqa: E402

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "light")
OLDER = "node of older versions"
TYPE = onnx.TensorProto.DataType
EXPANDED = re.compile(r"_expanded(_ver\d+)?$")


@dataclasses.dataclass
class Case:
    """A case of the suite. since: the version in which its operator took the form that it has there."""
    kind: str
    name: str
    folder: pathlib.Path
    operator: str
    domain: str
    since: int
    types: frozenset
    linnet: str = ""  # pass, fail, unsupported
    reason: str = ""
    other: str = ""  # pass, wrong, refused


def element_types(value):
    """Of an input or output, whatever it is: tensor, sequence, optional, map."""
    kind = value.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        return {TYPE.Name(value.tensor_type.elem_type).lower()}
    if kind in ("sequence_type", "optional_type"):
        return element_types(getattr(value, kind).elem_type)
    return set()


def operator_of(name, nodes, known):
    """(name, domain) of what a case is about: its one node, or that of the case whose expansion it is."""
    plain = EXPANDED.sub("", name)
    if plain != name and plain in known:
        return known[plain]
    ops = [n for n in nodes if n.op_type != "Constant"]
    return (ops[0].op_type, ops[0].domain) if len(ops) == 1 else (ops[-1].op_type if ops else "", ops[-1].domain if ops else "")


def since_of(operator, domain, version):
    try:
        return onnx.defs.get_schema(operator, version, domain).since_version
    except onnx.defs.SchemaError:
        return version


def read_cases(kind, folder):
    """Of a folder; the node cases before their expansions, which take their operators."""
    found, known = [], {}
    plain = lambda path: re.sub(r"\.o\d+$", "", path.name)  # noqa: E731
    for path in sorted(folder.iterdir(), key=lambda p: (bool(EXPANDED.search(plain(p))), p.name)):
        model = onnx.load(path / "model.onnx", load_external_data=False)
        operator, domain = operator_of(plain(path), model.graph.node, known)
        known[plain(path)] = operator, domain
        versions = {o.domain: o.version for o in model.opset_import}
        types = frozenset().union(*(element_types(v.type) for v in (*model.graph.input, *model.graph.output)))
        since = since_of(operator, domain, versions.get(domain, 1))
        found.append(Case(kind, path.name, path, operator, domain, since, types))
    return found


def older_cases(folder, cases):
    """Without those that the suite has at the same operator set."""
    opset = lambda path: {o.domain: o.version for o in onnx.load(path / "model.onnx").opset_import}.get("", 0)  # noqa: E731
    known = {f"{c.name}.o{opset(c.folder)}" for c in cases if c.kind == "node"}
    return [c for c in read_cases(OLDER, folder / "node") if c.name not in known]


def judge(cases, jobs):
    """Runs both engines on every case."""
    for folder in {case.folder.parent for case in cases}:
        done = linnet("verify", "--suite", folder, "--jobs", jobs, timeout=1800)
        verdicts = {}
        for line in done.stdout.splitlines()[:-1]:
            word, name, *reason = line.split(" ", 2)
            verdicts[name.rpartition("/")[2]] = word, reason[0] if reason else ""
        for case in cases:
            if case.folder.parent == folder:
                case.linnet, case.reason = verdicts[case.name]
    with Engine() as other:
        for case in cases:
            case.other = other.verdict(case.folder)
            if sys.stderr.isatty():
                print(f"\r{case.name:70.70}", end="", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    folder = suite()
    cases = [case for kind in KINDS for case in read_cases(kind, folder / kind)]
    cases += older_cases(ROOT / ".deps" / "older", cases)
    judge(cases, arguments.jobs)
    write_pages.write(cases)
    for kind in (*KINDS, OLDER):
        of = [c for c in cases if c.kind == kind]
        count = collections.Counter(c.linnet for c in of)
        print(f"{kind:<24}{count['pass']:>6} of {len(of):>5}   onnxruntime {sum(c.other == 'pass' for c in of):>5}")


if __name__ == "__main__":
    main()
