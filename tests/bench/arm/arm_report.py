"""What bench_arm.py measured as a section of BENCHMARKS.md."""

import math

import arm_peers
import emulation
import report

CORES = {"a53": "A53", "a72": "A72", "a76": "A76"}
FLOAT_ENGINES = ("ort", "ncnn", "mnn")
HALF_ENGINES = ("ncnn-fp16", "mnn-fp16")
SAME = 1.01  # times as many instructions
SMALL_CORES = {"armv7": "ARMv7, NEON", "armv6": "ARMv6"}
# Of the best other engine's cycles over Linnet's, geometric mean.
TARGETS = {"float": 1.25, "half": 1.1, "quantized": 1.3}


def is_half(row):
    return "--precision" in row["convert"]


def is_float(row):
    return not row["form"] and not is_half(row)


class Records:
    def __init__(self, results):
        self.results = results
        self.notes = []

    def get(self, row, core, engine, key="cycles"):
        """A figure, or None where it was not measured, failed, or computed something else."""
        found = self.results.get(f"{row['key']} {core} {engine}", {})
        return found.get(key) if found.get("agrees") else None

    def ratio(self, row, core, engine):
        """Of cycles, over Linnet's."""
        other, ours = self.get(row, core, engine), self.get(row, core, "linnet")
        return other / ours if other and ours else None

    def best(self, row, core, engines):
        return min(filter(None, (self.ratio(row, core, e) for e in engines)), default=None)

    def best_half(self, row, plain):
        """The best FP16 engine over Linnet's float16 file, of which `plain` is the float one."""
        found = filter(None, (self.get(plain, "a76", e) for e in HALF_ENGINES)) if plain else ()
        other, ours = min(found, default=None), self.get(row, "a76", "linnet")
        return other / ours if other and ours else None

    def why_not(self, row, engine):
        """A note's number where an engine could not run a model, or computed something else."""
        for core in CORES:
            found = self.results.get(f"{row['key']} {core} {engine}", {})
            told = found.get("error", "").strip() or ("outputs differ from those on x86" if found.get("agrees") is False else None)
            if told:
                if told not in self.notes:
                    self.notes.append(told)
                return f"– [{self.notes.index(told) + 1}]"
        return ""


def millions(n, digits=3):
    return "" if n is None else f"{n / 1e6:.{digits}g}" if n < 1e6 * 10 ** digits else f"{n / 1e6:.0f}"


def ratio_text(ratio):
    return "–" if ratio is None else f"**{ratio:.2f}**" if ratio < 1 else f"{ratio:.2f}"


def compared(records, row, engine, cores=CORES):
    found = [records.ratio(row, core, engine) for core in cores]
    return " / ".join(map(ratio_text, found)) if any(found) else records.why_not(row, engine)


def model_text(row):
    return f"{row['name']} {row['set'].replace('_', ' ')}"


def linnet_cells(records, row):
    """Instructions, once where the cores run the same code, and cycles; the first is empty where nothing was measured."""
    cycles = [records.get(row, core, "linnet") for core in CORES]
    counted = [records.get(row, core, "linnet", "instructions") for core in CORES]
    known = [n for n in counted if n]
    same = known and max(known) <= SAME * min(known)
    return [millions(known[-1]) if same else " / ".join(millions(n) or "–" for n in counted) if known else "",
            " / ".join(millions(c) or "–" for c in cycles)]


def float_table(records, rows):
    heads = ["model", "Linnet: instructions", "cycles " + " / ".join(CORES.values()), *(arm_peers.ENGINES[e] for e in FLOAT_ENGINES)]
    return report.table(heads, [[model_text(r), *linnet_cells(records, r), *(compared(records, r, e) for e in FLOAT_ENGINES)]
                                for r in rows if is_float(r) and any(linnet_cells(records, r)[:1])])


def quantized_table(records, rows):
    floats = plain_rows(rows)
    lines = []
    for row in (r for r in rows if r["form"] and any(linnet_cells(records, r)[:1])):
        plain = floats.get((row["source"], row["set"]))
        own = [records.get(plain, core, "linnet") if plain else None for core in CORES]
        mine = [records.get(row, core, "linnet") for core in CORES]
        gains = " / ".join(ratio_text(a / b if a and b else None) for a, b in zip(own, mine))
        lines.append([model_text(row), *linnet_cells(records, row), gains, compared(records, row, "ort")])
    return report.table(["model", "Linnet: instructions", "cycles " + " / ".join(CORES.values()), "Linnet's FP32", "onnxruntime"], lines)


def plain_rows(rows):
    """The float rows by what they are of."""
    return {(r["source"], r["set"]): r for r in rows if is_float(r)}


def half_table(records, rows):
    """Of Linnet's float16 files, over its FP32, and the other engines' FP16 over them."""
    floats, lines = plain_rows(rows), []
    for row in (r for r in rows if is_half(r)):
        plain, ours = floats.get((row["source"], row["set"])), records.get(row, "a76", "linnet")
        if not ours or not plain:
            continue
        over = [(records.get(plain, "a76", e) or 0) / ours or None for e in ("linnet", *HALF_ENGINES)]
        lines.append([model_text(row), millions(records.get(row, "a76", "linnet", "instructions")), millions(ours),
                      *map(ratio_text, over)])
    return report.table(["model", "Linnet, float16: instructions", "cycles", "Linnet's FP32",
                         *(arm_peers.ENGINES[e] for e in HALF_ENGINES)], lines) if lines else ""


def small_table(records, rows):
    lines = [[model_text(r), *(millions(records.get(r, core, "linnet", "instructions")) for core in SMALL_CORES)] for r in rows
             if any(records.get(r, core, "linnet", "instructions") for core in SMALL_CORES)]
    return report.table(["model", *SMALL_CORES.values()], lines) if lines else ""


def bytes_table(records, rows):
    """MB that pass the last cache, of models of which more than a rest does."""
    engines = ("linnet", *FLOAT_ENGINES, *HALF_ENGINES)
    lines = []
    for row in rows:
        for core in CORES:
            found = [records.get(row, core, e, "bytes") for e in engines]
            if any(n is not None for n in found):
                lines.append([model_text(row), CORES[core], *("" if n is None else f"{n / 1e6:.2f}" for n in found)])
    names = ["Linnet", *(arm_peers.ENGINES[e] for e in engines[1:])]
    return report.table(["model", "core", *names], lines) if lines else ""


def summary(records, rows):
    """Geometric means of the best other engine's cycles over Linnet's."""
    floats, quantized = [r for r in rows if is_float(r)], [r for r in rows if r["form"]]
    plain = plain_rows(rows)
    half = [records.best_half(r, plain.get((r["source"], r["set"]))) for r in rows if is_half(r)]
    classes = [("FP32", "float", {core: [records.best(r, core, FLOAT_ENGINES) for r in floats] for core in CORES}),
               ("FP16 of both", "half", {"a76": half}),
               ("quantized", "quantized", {core: [records.best(r, core, ("ort",)) for r in quantized] for core in CORES})]
    lines = []
    for name, target, known in classes:
        found = {core: list(filter(None, ratios)) for core, ratios in known.items()}
        if any(found.values()):
            cells = [(f"{math.exp(sum(map(math.log, v)) / len(v)):.2f}, {sum(x < 1 for x in v)} of {len(v)} below 1" if v else "–")
                     for v in (found.get(core, []) for core in CORES)]
            lines.append([name, f"≥ {TARGETS[target]:.2f}", *cells])
    return report.table(["best other engine over Linnet", "target", *CORES.values()], lines) if lines else ""


def versions():
    return ", ".join(f"{name} {arm_peers.version(engine)}" for engine, name in arm_peers.ENGINES.items() if "-" not in engine)


def section(rows, results):
    records = Records(results)
    commits = sorted({r["commit"] for r in results.values() if r.get("commit")})
    qemu = emulation.qemu_version().split()[0]
    parts = [report.ARM, f"""`make bench-arm` ([tests/bench/arm](tests/bench/arm)), commit {', '.join(commits)}; QEMU {qemu}, gcc for
ARM of Debian 12; other engines as PyPI has them for 64-bit ARM: {versions()}.

**Nothing here was timed, and no ARM hardware took part.** Instructions of one run, in millions, are counted under emulation;
cycles, in millions, are those that models of the cores take for the code that ran, with every operand in the first cache and
every branch foreseen: Cortex-A53 in order by published rules (within a quarter, as a guess), A72 and A76 (as Neoverse N1) by
llvm-mca. Ratios are of cycles, the other engine's over Linnet's on {' / '.join(CORES.values())}: above 1 Linnet needs fewer;
**bold where the other engine does**. One thread. Outputs agree with what the same engine computes on x86. What memory costs
is not in them: where weights or images are large it decides, and the table of memory traffic tells more. Empty cells were not
measured.
"""]
    for heading, text in (("In short, on ARM", summary(records, rows)), ("FP32 on 64-bit ARM", float_table(records, rows)),
                          ("Quantized by onnxruntime's tools, on 64-bit ARM", quantized_table(records, rows)),
                          ("float16 on the A76, computed in halves", half_table(records, rows)),
                          ("Instructions on 32-bit ARM, millions", small_table(records, rows)),
                          ("Memory traffic of one run past the last of two modelled caches, MB", bytes_table(records, rows))):
        if text:
            parts.append(f"### {heading}\n\n{text}\n")
    if records.notes:
        parts.append("\n".join(f"{i}. {note}" for i, note in enumerate(records.notes, 1)) + "\n")
    return "\n".join(parts)


def write(rows, results):
    report.write_section(section(rows, results), report.ARM)
