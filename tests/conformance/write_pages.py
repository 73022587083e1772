"""write_pages.py: docs/operators.md and docs/conformance.md of what was found."""

import collections
import pathlib
import re
import sys

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench" / "ops"))
import grid  # noqa: E402

DOMAINS = {"ONNX": "", "MICROSOFT": "com.microsoft", "ML": "ai.onnx.ml"}
# What the importer rewrites, by the file that does, and its domain.
REWRITTEN = {"expand_standard": "", "expand_control": "", "expand_sequences": "", "expand_microsoft": "com.microsoft",
             "expand_attention": "com.microsoft", "expand_ml": "ai.onnx.ml", "expand_svm": "ai.onnx.ml", "expand_trees": "ai.onnx.ml",
             "expand_flex_attention": "ai.onnx.preview"}
ORDER = "float double float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool string".split()
# What tables of speed call them.
SHORT = {"float32": "float", "float64": "double"}


def ordered(types):
    return sorted(types, key=lambda t: (ORDER.index(t) if t in ORDER else len(ORDER), t))


def rows():
    """{(domain, operator)} of ops/list.h, but for those of Linnet's own."""
    text = (ROOT / "ops" / "list.h").read_text()
    found = re.findall(r'^(?:OP|PRODUCT)\(\d+, \d+, \w+, (\w+), "(\w+)"', text, re.M)
    return {(DOMAINS[domain], name) for domain, name in found if domain in DOMAINS}


def rewritten():
    """{(domain, operator)} that become others when a model is imported."""
    found = set()
    for name, domain in REWRITTEN.items():
        text = (ROOT / "convert" / "import" / f"{name}.c").read_text()
        names = re.findall(r'^\s*(?:static const lnt_expansion \w+\[\] = \{)?\{"([A-Z]\w+)",', text, re.M)
        found |= {(domain, operator) for operator in names}
    return found


def vectors():
    """{operator: (types that have a vector path, those of which some path has none)} of docs/vector-paths.md."""
    text = (ROOT / "docs" / "vector-paths.md").read_text()
    holes = {(row.split()[0], row.split()[-1]) for row in re.findall(r"^\| ([A-Z]\w+ .*?) \| (?:avx2|neon) \|", text, re.M)}
    found, types = collections.defaultdict(set), []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| operator, path"):
            types = cells[1:]
        elif types and re.match(r"\| [A-Z]\w+ ", line) and len(cells) > len(types):
            found[cells[0].split()[0]] |= {t for t, cell in zip(types, cells[1:]) if "/" in cell}
        elif not line.startswith("|"):
            types = []
    short = lambda name, partly: {SHORT.get(t, t) for t in found[name] if ((name, t) in holes) == partly}  # noqa: E731
    return {name: (short(name, False), short(name, True)) for name in found}


def benched():
    """{(domain, operator): types} of the first inputs of bench-ops' rows, whose outputs are onnxruntime's or it has none."""
    found = collections.defaultdict(set)
    for row in grid.rows():
        found[row.domain, row.op].update(SHORT.get(given.dtype, given.dtype) for given in row.inputs[:1])
    return found


def versions(domain, operator):
    """Those in which it changed."""
    return sorted({s.since_version for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == (domain, operator)})


def difference(cases):
    """What onnxruntime does otherwise, of an operator's cases that Linnet passes."""
    count = collections.Counter(case.other for case in cases if case.linnet == "pass")
    texts = {"refused": "refuses", "wrong": "differs in", "crash": "crashes in"}
    words = [f"{text} {count[key]}" for key, text in texts.items() if count[key]]
    return f"{', '.join(words)} of {sum(count.values())}" if words else "" if count else "–"


def table(head, lines):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join(" --- " if isinstance(text, str) else " ---: " for text in (lines[0] if lines else head)) + "|"
    for line in lines:
        yield "| " + " | ".join(str(cell) for cell in line) + " |"


def vector_words(found):
    if not found:
        return ""
    whole, partly = found
    return ", ".join([*ordered(whole), *(f"{t} (partly)" for t in ordered(partly))])


def operators(cases):
    by = collections.defaultdict(list)
    for case in cases:
        if case.kind.startswith("node"):
            by[case.domain, case.operator].append(case)
    kernels, written, paths, timed = rows(), rewritten(), vectors(), benched()
    passed = {key for key, found in by.items() if key[1] and any(c.linnet == "pass" for c in found)}
    lines = []
    for key in sorted(kernels | written | passed, key=lambda k: (k[0], k[1].lower())):
        domain, name = key
        counted = paths.get(name) if not domain else None
        types = set().union(timed[key], *(c.types for c in by[key] if c.linnet == "pass"), *(counted or ()))
        how = "kernel" if key in kernels else "the program's" if name == "ImageDecoder" else "rewritten"
        lines.append((f"`{name}`", domain or "ai.onnx", ", ".join(map(str, versions(domain, name))) or "1", how,
                      ", ".join(ordered(types)), vector_words(counted), difference(by[key])))
    yield from (
        "# Operators", "",
        f"What `linnet convert` takes: {len(lines)} operators. Made by `make conformance`; the cases behind it are counted in",
        "[conformance.md](conformance.md), speed beside onnxruntime in [operators-speed.md](operators-speed.md), instructions per",
        "element in [vector-paths.md](vector-paths.md).", "",
        "* **versions**: opsets in which the operator changed; every one of them is converted, older forms are rewritten to the newest",
        "  ([upgrade.c](../convert/import/upgrade.c)), and what an old form has that the newest cannot say is refused by name.",
        "* **is**: a kernel of its own, or rewritten to others when a model is imported; ImageDecoder is brought by the program.",
        "* **types** with which a case of ONNX's suite passes, `make bench-ops` has a row, or a path is counted in vector-paths.md;",
        "  others may do.",
        "* **vectors**: types whose every path there runs on vectors at avx2 and neon; *partly*: not every one, the reasons are there.",
        "  Products, convolutions, recurrent cells and attention are not in that table: see their rooms in [ops](../ops).",
        "* **onnxruntime** on the cases that Linnet passes, where it does otherwise.", "")
    yield from table(["operator", "domain", "versions", "is", "types", "vectors", "onnxruntime"], lines)


def conformance(cases):
    kinds = list(dict.fromkeys(case.kind for case in cases))
    count = lambda of: (sum(c.linnet == "pass" for c in of), sum(c.other == "pass" for c in of), len(of))  # noqa: E731
    by = collections.defaultdict(list)
    for case in cases:
        if case.kind.startswith("node"):
            by[case.domain, case.operator or "(several)", case.since].append(case)
    import onnxruntime
    yield from (
        "# Conformance", "",
        "ONNX's own tests, its backend suite, case by case: a model, inputs, and the outputs that are expected. Made by `make",
        f"conformance`, in a minute; onnxruntime is {onnxruntime.__version__}, its CPU provider. Both are judged alike: an element passes",
        "within 1e-7 + 1e-3 · |expected|, ONNX's rule, or within 2^-24 of the output's largest magnitude, which float does not tell (two",
        "cases, `dft_inverse`, expect the noise of their reference); integers, text and shapes are equal. An expansion, a case whose",
        "operator is written out in others, counts as one of its operator.", "",
        "Cases of older versions are those that came with ONNX 1.2 to 1.22, at operator sets up to 24, where today's suite has them at",
        "another. What they keep as uint16 for bfloat16 was cut instead of rounded: one more in the last place passes.", "",
        "How whole networks fare, as torch, torchvision, timm and transformers export them, export by export:",
        "[tests/exports.tsv](../tests/exports.tsv) ([how it is made](../tests/zoo)).", "")
    yield from table(["kind", "Linnet", "onnxruntime", "cases"], [(kind, *count([c for c in cases if c.kind == kind])) for kind in kinds])
    yield from ("", "## By operator and version", "", "The version is that in which the operator took the form that the cases have.", "")
    yield from table(["operator", "domain", "version", "Linnet", "onnxruntime", "cases", "types"], [
        (name, domain or "ai.onnx", since, *count(found), ", ".join(ordered(set().union(*(c.types for c in found)))))
        for (domain, name, since), found in sorted(by.items(), key=lambda item: (item[0][0], item[0][1].lower(), item[0][2]))])
    yield from ("", "## What Linnet does not pass", "",
                "Training is not what it is for, and numpy's stream of random numbers is numpy's. Of older cases, two hold addresses",
                "instead of text, one counts what lies behind the padding (ONNX mended it at 22, and onnxruntime does as Linnet at every",
                "operator set), and two make NaN a 6 of 4 bits, which became -0 at 25.", "")
    yield from table(["case", "verdict", "reason"],
                     [(f"`{c.name}`", c.linnet, c.reason.replace("|", "\\|")) for c in cases if c.linnet != "pass"])


def write(cases):
    for name, lines in (("operators", operators(cases)), ("conformance", conformance(cases))):
        (ROOT / "docs" / f"{name}.md").write_text("\n".join(lines) + "\n")
