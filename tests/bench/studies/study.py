"""What the studies share: engines, runs in turns, and the measured part of a page with its CSV and its chart."""

import csv
import dataclasses
import functools
import html
import importlib
import math
import os
import pathlib
import statistics
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("python", "tests/bench", "tests/python", "tests/python/builders", "tests/python/speech")]
os.environ.setdefault("LINNET_LIBRARY", str(ROOT / "build/liblinnet_python.so"))

import report  # noqa: E402
from bench import machine  # noqa: E402

PAGES = ROOT / "docs" / "studies"
MODELS = ROOT / "build" / "studies"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
THREADS = 1
# Of a row and an engine: as many runs as the seconds allow, in so many turns.
RUNS, FEWEST, BUDGET, TURNS = 100, 5, 3.0, 5
WARM = 1  # runs before any is timed, besides that whose outputs are compared


@dataclasses.dataclass
class Row:
    """A case that every engine computed: its columns, {"batch": 1}; milliseconds of each run and what else was found, by engine."""
    case: dict
    times: dict
    found: dict


@dataclasses.dataclass
class Study:
    """name: of its files in docs/studies. units(case): what a run gets through, for the throughput; unit: what that is called.
    sizes: bytes of each engine's file."""
    name: str
    engines: list
    rows: list
    unit: str
    units: object
    notes: str
    sizes: dict


# ---- engines ----

def session(name, model):
    """The InferenceSession of an engine, "ORT INT8" or "Linnet": both go by the same names."""
    engine = importlib.import_module("linnet" if name.startswith("Linnet") else "onnxruntime")
    options = engine.SessionOptions()
    options.intra_op_num_threads = THREADS
    return engine.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def of_session(made, feeds):
    """A function that runs the model once on the inputs, {name: array}, and returns its outputs."""
    return functools.partial(made.run, None, feeds)


def of_torch(model, feeds):
    """The same of a module."""
    import torch
    given = [torch.from_numpy(x) for x in feeds.values()]

    def run():
        with torch.inference_mode():
            return [model(*given).numpy()]
    return run


def files(stem):
    """Where the model lies that each engine reads."""
    MODELS.mkdir(parents=True, exist_ok=True)
    return {"ORT": MODELS / f"{stem}.onnx", "ORT INT8": MODELS / f"{stem}.int8.onnx",
            "Linnet": MODELS / f"{stem}.lnt", "Linnet INT8": MODELS / f"{stem}.int8.lnt"}


# ---- measuring ----

def timed(run, n):
    times = []
    for _ in range(n):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def measure(engines):
    """Milliseconds of each run, {engine: [...]}, of functions by engine that take turns."""
    counts, times = {}, {name: [] for name in engines}
    for name, run in engines.items():
        typical = min(timed(run, WARM)) / 1e3
        counts[name] = min(RUNS, max(FEWEST, int(BUDGET / typical)))
    for turn in range(TURNS):
        for name, run in engines.items():
            n = counts[name]
            times[name] += timed(run, n * (turn + 1) // TURNS - n * turn // TURNS)
    return times


def cosine(a, b):
    """The least of all rows, [n, d] each."""
    a, b = (np.asarray(x, np.float64).reshape(len(x), -1) for x in (a, b))
    return float(((a * b).sum(1) / np.maximum(np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1), 1e-30)).min())


def progress(*words):
    if sys.stderr.isatty():
        print(*words, file=sys.stderr)


# ---- the page ----

def mean(times):
    return statistics.fmean(times)


def spread(times):
    return f"{mean(times):.3g} ± {statistics.stdev(times):.2g}"


def label(case):
    return " ".join(map(str, case.values()))


def leads(row):
    """How many times as long the best other engine takes, by precision: {"float": 1.4, "INT8": 1.1}."""
    found = {}
    for precision in ("float", "INT8"):
        own, others = [], []
        for name, times in row.times.items():
            if (precision == "INT8") == name.endswith("INT8"):
                (own if name.startswith("Linnet") else others).append(mean(times))
        if own and others:
            found[precision] = min(others) / min(own)
    return found


def lead_cells(row):
    return [f"{value:.2f}" if value >= 1 else f"**{value:.2f}**" for value in leads(row).values()]


def time_table(study):
    heads = [*study.rows[0].case, *(f"{e}, ms" for e in study.engines), *leads(study.rows[0])]
    lines = [[*row.case.values(), *(spread(row.times[e]) if e in row.times else "–" for e in study.engines), *lead_cells(row)]
             for row in study.rows]
    return report.table(heads, lines)


def throughput_table(study):
    heads = [*study.rows[0].case, *study.engines]
    lines = [[*row.case.values(), *(f"{1e3 * study.units(row.case) / mean(row.times[e]):.4g}" if e in row.times else "–"
                                    for e in study.engines)] for row in study.rows]
    return report.table(heads, lines)


def found_table(study):
    """What was found of each engine beside its time: how close its outputs are."""
    names = [e for e in study.engines if any(e in row.found for row in study.rows)]
    lines = [[*row.case.values(), *(row.found.get(e, "–") for e in names)] for row in study.rows]
    return report.table([*study.rows[0].case, *names], lines)


def not_fastest(study):
    lines = [f"* {label(row.case)}, {precision} ({value:.2f})"
             for row in study.rows for precision, value in leads(row).items() if value < 1]
    return "\n".join(lines) or "Nowhere."


def section(study, found_heading):
    m = machine()
    parts = [f"""Linnet {m['linnet']} (commit {m['commit']}), {m['date']}, {m['cpu']}, {m['cores']} cores, Linux {m['kernel']},
level {m['chosen']}; {report.threads_text(THREADS)}. Mean ± standard deviation of up to {RUNS} runs ({FEWEST} or more, about
{BUDGET:g} s) in {TURNS} turns; how many: [{study.name}.csv]({study.name}.csv). Load average at the end: {m['load']:.1f}. {study.notes}
The last columns: the time of the best other engine over Linnet's, of float and of INT8, bold where Linnet is not the fastest.""",
             f"![milliseconds of a run]({study.name}.svg)", "## Time of a run", time_table(study), f"## {study.unit} a second",
             throughput_table(study), f"## {found_heading}", found_table(study)]
    sizes = report.table(["", "bytes"], [[name, f"{size:,}"] for name, size in study.sizes.items()])
    return "\n\n".join([*parts, "## Size of the model", sizes, "## Where Linnet is not the fastest", not_fastest(study)])


def write_csv(study):
    with (PAGES / f"{study.name}.csv").open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*study.rows[0].case, "engine", "runs", "mean_ms", "std_ms", "min_ms", "per_second", "found"])
        for row in study.rows:
            for engine, times in row.times.items():
                out.writerow([*row.case.values(), engine, len(times), f"{mean(times):.4f}", f"{statistics.stdev(times):.4f}",
                              f"{min(times):.4f}", f"{1e3 * study.units(row.case) / mean(times):.4f}", row.found.get(engine, "")])


def page_of(page, measured):
    """The page with this between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} … {END} in the page")
    return f"{before}{BEGIN}\n\n{measured}\n\n{END}{after}"


def write(study, found_heading):
    PAGES.mkdir(exist_ok=True)
    page = PAGES / f"{study.name}.md"
    page.write_text(page_of(page.read_text(), section(study, found_heading)))
    write_csv(study)
    (PAGES / f"{study.name}.svg").write_text(chart(study))


# ---- the chart ----

STYLE = """text{font:11px system-ui,sans-serif;fill:#333}line{stroke:#ccc}
@media(prefers-color-scheme:dark){text{fill:#ddd}line{stroke:#444}}"""
COLORS = ["#9a9a9a", "#c8501e", "#d9a032", "#7c5cb8", "#2a6fbb", "#7fb0e0"]
LEFT, TOP, BAR, GAP, HEIGHT = 50, 30, 9, 14, 260


def chart(study):
    """Bars of milliseconds on a logarithmic scale, a group of them for each row."""
    values = [mean(t) for row in study.rows for t in row.times.values()]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    group = BAR * len(study.engines) + GAP
    width, bottom = LEFT + group * len(study.rows) + GAP, TOP + HEIGHT

    def y(ms):
        return bottom - HEIGHT * (math.log10(ms) - low) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(width, 640)}" height="{bottom + 44}"><style>{STYLE}</style>']
    for i, engine in enumerate(study.engines):
        x = LEFT + i * 105
        out.append(f'<rect x="{x}" y="8" width="10" height="10" fill="{COLORS[i]}"/><text x="{x + 14}" y="17">{html.escape(engine)}</text>')
    for power in range(low, high + 1):
        at = y(10.0 ** power)
        out.append(f'<line x1="{LEFT}" x2="{width}" y1="{at:.1f}" y2="{at:.1f}"/>'
                   f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0 ** power:g}</text>')
    for k, row in enumerate(study.rows):
        x = LEFT + GAP + k * group
        for i, engine in enumerate(study.engines):
            if engine in row.times:
                at = y(mean(row.times[engine]))
                out.append(f'<rect x="{x + i * BAR}" y="{at:.1f}" width="{BAR - 1}" height="{bottom - at:.1f}" fill="{COLORS[i]}"/>')
        middle = x + (group - GAP) / 2
        for line, word in enumerate(map(str, row.case.values())):
            out.append(f'<text x="{middle:.1f}" y="{bottom + 14 + 13 * line}" text-anchor="middle">{html.escape(word)}</text>')
    out.append(f'<text x="6" y="{TOP + 8}">ms</text></svg>')
    return "\n".join(out) + "\n"
