"""What bench_ops.py measured as docs/operators-speed.md."""

import collections
import pathlib
import re

import report

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/operators-speed.md"
THREADS = (1, 2)
LEAST_US = 2  # of onnxruntime's time: below it a call costs more than the operator
SHOWN = 12  # of a family, the slowest


class Line:
    """A row and what was found of it, by threads."""

    def __init__(self, row, results):
        self.row = row
        self.found = {n: results["rows"].get(f"{row.name}/{n}", {}) for n in THREADS}

    def good(self, n):
        return "ratio" in self.found[n] and self.found[n]["agree"]

    def counts(self, n):
        return self.good(n) and self.found[n]["ort_us"] >= LEAST_US

    def ratio(self, n):
        return self.found[n]["ratio"] if self.good(n) else None

    def slow(self, n):
        return self.counts(n) and self.found[n]["high"] < 1

    def worst(self):
        ratios = [self.ratio(n) for n in THREADS if self.good(n)]
        return min(ratios) if ratios else float("inf")

    def cells(self):
        one = next(self.found[n] for n in THREADS if self.good(n))
        ratios = [report.number(self.ratio(n)) for n in THREADS]
        alone = report.number(one["ratio"] / (1 - one["relayout"])) if 0.01 < one["relayout"] < 1 else ""
        return [self.row.name, f"{one['ort_us']:.3g}", f"{one['us']:.3g}", *ratios, alone]


    def limit(self):
        """What it comes to, on a thread: of the peak of multiply-adds (four times that for int8), or of bytes moved."""
        found = self.found[1]
        if not self.good(1) or "bytes" not in found:
            return ""
        if found["multiply_adds"] == 0:
            return f"{found['bytes'] / found['us'] / 1e3:.3g} GB/s"
        peak = found["peak_gflops"] * (4 if self.row.family.startswith("int8") else 1)
        return f"{found['multiply_adds'] / found['us'] / 5 / peak:.0f} %"


HEADS = ["operator", "onnxruntime, µs", "Linnet, µs", *(f"ratio, {report.threads_text(n)}" for n in THREADS), "without relayouts"]


SLOW_HEADS = [*HEADS, "rate"]


def slow_cells(lines):
    return [[*line.cells(), line.limit()] for line in lines]


def families(lines):
    found = collections.defaultdict(list)
    for line in lines:
        found[line.row.family].append(line)
    return found


def family_table(lines):
    cells = []
    for name, members in [*families(lines).items(), ("**all**", lines)]:
        means = [report.number(report.geometric([x.ratio(n) for x in members if x.counts(n)])) for n in THREADS]
        slow = [sum(x.slow(n) for x in members) for n in THREADS]
        cells.append([name, len(members), *means, *slow])
    cells[:-1] = sorted(cells[:-1], key=lambda c: float(c[2]) if c[2] != "–" else 0)
    return report.table(["family", "rows", *(f"geometric mean, {report.threads_text(n)}" for n in THREADS),
                         *(f"slower, {report.threads_text(n)}" for n in THREADS)], cells)


def reason(error):
    """Without the folder the model was in."""
    return re.sub(r"\S*/model\.(onnx|lnt)", r"model.\1", error).replace("|", "/")[:140]


def problems(lines):
    """Where there is no time to compare."""
    cells = []
    for line in lines:
        for n in THREADS[:1]:
            found = line.found[n]
            if "error" in found:
                cells.append([line.row.name, reason(found["error"])])
            elif found and not found["agree"]:
                cells.append([line.row.name, "outputs differ"])
    return report.table(["operator", "reason"], cells) if cells else "None."


def tell_slow(rows, results):
    """Families, and what is slower, on the terminal."""
    lines = [Line(row, results) for row in rows]
    measured = sorted((x for x in lines if any(x.good(n) for n in THREADS)), key=Line.worst)
    slow = slow_cells(x for x in measured if any(x.slow(n) for n in THREADS))
    print(family_table(measured), report.table(SLOW_HEADS, slow), problems(lines), sep="\n\n")


def write(rows, results):
    lines = [Line(row, results) for row in rows]
    measured = sorted((x for x in lines if any(x.good(n) for n in THREADS)), key=Line.worst)
    if not measured:
        return
    slow = slow_cells(x for x in measured if any(x.slow(n) for n in THREADS))
    m = results.get("machine", {})
    parts = [
        "# How fast are single operators?",
        f"Models of one operator each ({len(measured)} of {len(rows)} rows: types, shapes, axes, attributes), in turns with "
        "onnxruntime: its time over "
        "Linnet's, above 1 where Linnet is faster. `make bench-ops` measures and writes this page; "
        "[tests/bench/ops](../tests/bench/ops) says how. Means and counts are of rows for which onnxruntime needs "
        f"{LEAST_US} µs or more; *slower* are those whose whole interval is below 1. An operator alone in a model pays for bringing "
        "its images to channels last and back, which networks do once: *without relayouts* leaves that time out.",
        f"Machine: {m.get('cpu', '?')}, {m.get('cores', '?')} cores, level {m.get('chosen', '?')}; commit {m.get('commit', '?')}, "
        f"{m.get('date', '?')}.",
        "## Families", family_table(measured),
        "## Slower than onnxruntime",
        "*Rate* is that of one thread: of the peak of multiply-adds, which a loop of them alone reaches (int8: four times that of "
        "float), or of inputs, weights and outputs as bytes.",
        report.table(SLOW_HEADS, slow) if slow else "None.",
        "## Not compared", problems(lines)]
    for name, members in families(measured).items():
        parts += [f"## {name[0].upper()}{name[1:]}", report.table(HEADS, [x.cells() for x in members[:SHOWN]])]
    PAGE.write_text("\n\n".join(parts) + "\n")
