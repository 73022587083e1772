"""What bench.py and peers.py measured as BENCHMARKS.md and docs/bench.svg."""

import math
import pathlib
import statistics

ROOT = pathlib.Path(__file__).resolve().parents[2]

# class: (heading, geometric mean wanted; None: only that no model is slower)
CLASSES = {
    "large": ("Large products and convolutions, ResNet-like", 1.0),
    "mobile": ("Mobile convolutional networks", 1.5),
    "transformer": ("Small transformers, batch 1", 1.5),
    "streaming": ("Streaming recurrent networks, one frame", 3.0),
    "vocoder": ("Voices and vocoders", 1.7),
    "tiny": ("Tiny models", 5.0),
    "other": ("Others", None),
    "winograd": ("Some again, their convolutions by Winograd's transform (`convert --winograd`)", None),
    "int8_large": ("Quantized by onnxruntime's tools, large", 1.2),
    "int8": ("Quantized by onnxruntime's tools", 1.5),
}
FLOAT = CLASSES.keys() - {"winograd", "int8_large", "int8"}
ALL, NONE_BELOW, START, RESIDENT, LIBRARY = 1.6, 1.0, 15, 2.5, 1_200_000
LONG_US = 1000  # the mean is also taken over models that cost onnxruntime at least that much


def geometric(values):
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def verdict(d):
    return "faster" if d["ratio_low"] > 1 else "slower" if d["ratio_high"] < 1 else "undecided"


def ms(us):
    return f"{us / 1000:.3g}" if us < 1e6 else f"{us / 1000:.0f}"


def mib(kib):
    return f"{kib / 1024:.1f}"


def number(value):
    return "–" if value is None else f"{value:.2f}"


def goal(value):
    return "–" if value is None else f"≥ {value:.2f}"


def table(heads, lines):
    """Markdown; the first column is text, all others numbers."""
    rule = ["---"] + ["---:"] * (len(heads) - 1)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in (heads, rule, *lines))


class Found:
    """The duels of one number of threads, by row."""

    def __init__(self, rows, results, threads):
        self.threads = threads
        self.all = {r["key"]: (r, results["duels"][f"{r['key']}/{threads}"]) for r in rows
                    if f"{r['key']}/{threads}" in results["duels"]}
        self.good = {k: (r, d) for k, (r, d) in self.all.items() if "ratio" in d}

    def ratios(self, wanted, key="ratio"):
        return [d[key] for r, d in self.good.values() if wanted(r, d)]


def means(found, heading, target, wanted):
    values = [f.ratios(wanted) for f in found]
    processor = [f.ratios(wanted, "cpu_ratio") for f in found]
    return [heading, max(map(len, values)), goal(target), *(number(geometric(v)) for v in values + processor)]


def summary(found):
    lines = [means(found, heading, target, lambda r, d, name=name: r["class"] == name)
             for name, (heading, target) in CLASSES.items()]
    lines += [means(found, "**All of floats**", ALL, lambda r, d: r["class"] in FLOAT),
              means(found, "**onnxruntime needs 1 ms or more**", ALL,
                    lambda r, d: r["class"] in FLOAT and d["onnxruntime"]["p50_us"] >= LONG_US)]
    heads = ["geometric means", "rows", "target", *(threads_text(f.threads) for f in found),
             *(f"processor, {threads_text(f.threads)}" for f in found)]
    counts = []
    for f in found:
        verdicts = [verdict(d) for _, d in f.good.values()]
        counts.append(f"{threads_text(f.threads)}: " + ", ".join(f"{verdicts.count(w)} {w}" for w in
                                                                 ("faster", "slower", "undecided")))
    return table(heads, lines) + ("\n\n*Processor*: of the time spent on processors, which other work on the machine "
                                  "hardly disturbs; with several threads it has spinning in it.\n"
                                  "Rows whose whole interval is above 1, below 1, neither. " + "; ".join(counts) + ".")


def threads_text(n):
    return f"{n} thread" + "s" * (n != 1)


def losses(found):
    lines = []
    for f in found:
        for key, (_, d) in f.good.items():
            if verdict(d) == "slower":
                lines.append((d["ratio"], [key.replace("/", " "), f.threads, ms(d["onnxruntime"]["p50_us"]),
                                           ms(d["linnet"]["p50_us"]), ratio_text(d), of_peak(d, f.threads)]))
    if not lines:
        return "None."
    return table(["model", "threads", "onnxruntime, ms", "Linnet, ms", "ratio", "of peak"], [line for _, line in sorted(lines)])


def ratio_text(d):
    strong = "**" if verdict(d) == "slower" else ""
    return f"{strong}{d['ratio']:.2f}{strong} [{d['ratio_low']:.2f}, {d['ratio_high']:.2f}]"


def of_peak(d, threads):
    """The rate of a run's products, in parts of what multiply-adds alone come to on as many cores."""
    rate = 2 * d["multiply_adds"] / (d["linnet"]["p50_us"] * 1e3)
    return f"{100 * rate / (threads * d['peak_gflops']):.0f} %" if d["multiply_adds"] else "–"


def duels_of(name, found):
    keys = [k for k, (r, _) in found[0].all.items() if r["class"] == name]
    lines = []
    for key in keys:
        line, error = [], 0.0
        for f in found:
            d = f.all.get(key, (None, {}))[1]
            if "ratio" not in d:
                line += ["–", "–", d.get("error", "not measured").split("\n")[0][:60], "–"]
                continue
            line += [ms(d["onnxruntime"]["p50_us"]), ms(d["linnet"]["p50_us"]), ratio_text(d), number(d["cpu_ratio"])]
            error = max([error, *((o["plain"]["max_rel"] or 0) for o in d["outputs"])])
        row, d = found[0].all[key]
        peak = of_peak(d, found[0].threads) if "ratio" in d else "–"
        lines.append([row["name"], d.get("shape", row["set"]), *line, peak, f"{error:.0e}"])
    heads = ["model", "input"]
    for f in found:
        heads += [f"ORT {f.threads}T, ms", f"Linnet {f.threads}T, ms", "ratio", "processor"]
    return table([*heads, "of peak", "error"], lines)


def class_section(name, found):
    heading, target = CLASSES[name]
    mean = f"geometric mean ≥ {target:.2f}, " if target else ""
    return (f"## {heading}\n\n`make bench`, medians of a run; target: {mean}none below 1. Processor: the ratio of processor time. "
            f"Of peak: Linnet's multiply-adds on {threads_text(found[0].threads)} against what the cores do with nothing else. "
            f"Error: the largest difference to onnxruntime without optimizations, over the largest magnitude.\n\n"
            f"{duels_of(name, found)}")


def memory(found):
    f = found[0]
    lines = []
    for row, d in f.good.values():
        a, b = d["linnet"], d["onnxruntime"]
        own, other = a["rss_kib"] - a["base_kib"], b["rss_kib"] - b["base_kib"]
        arena = a["arena_bytes"] / 1024
        lines.append([f"{row['name']} {d['shape']}", mib(arena), mib(a["dirty_kib"]), mib(own), mib(other), f"{other / own:.1f}",
                      ms(a["load_us"]), ms(b["load_us"] + b["library_us"])])
    return table(["model", "arena", "private dirty", "Linnet", "ORT", "ratio", "load, ms", "ORT load, ms"], lines)


def starts(s):
    if not s:
        return "Not measured."
    a, b = s["linnet"], s["onnxruntime"]
    lines = [
        ["process start to first output, warm, ms", ms(a["start_us"]), ms(b["start_us"]), f"{b['start_us'] / a['start_us']:.1f}",
         f"≥ {START}"],
        ["the same, model not in the page cache, ms", ms(a["start_cold_us"]), ms(b["start_cold_us"]),
         f"{b['start_cold_us'] / a['start_cold_us']:.1f}", f"≥ {START}"],
        ["peak resident set, MiB", mib(a["rss_kib"]), mib(b["rss_kib"]), f"{b['rss_kib'] / a['rss_kib']:.1f}", f"≥ {RESIDENT}"],
        ["private and dirty after the first runs, MiB", f"{a['dirty_kib'] / 1024:.2f}", mib(b["dirty_kib"]),
         f"{b['dirty_kib'] / max(a['dirty_kib'], 1):.0f}", f"≤ {1 + a['arena_bytes'] / 2**20:.2f} MiB"],
        ["library, stripped, bytes", f"{a['library_file_bytes']:,}", f"{b['library_file_bytes']:,}",
         f"{b['library_file_bytes'] / a['library_file_bytes']:.0f}", f"≤ {LIBRARY:,}"],
        ["one run, ms", ms(a["p50_us"]), ms(b["p50_us"]), ratio_text(s), "≥ 1"],
    ]
    return table(["20 MB of weights, each read once; 1 thread", "Linnet", "ORT", "ratio", "target"], lines)


def effort(found):
    used = sorted({(d["processes"], d["rounds"]) for f in found for _, d in f.good.values()}, reverse=True)
    return ", ".join(f"{p} processes of {r} rounds" for p, r in used)


def busy(m):
    if m["load"] <= m["cores"] + 1:
        return ""
    return """
**Other work shared the machine**: intervals are wide, and with several threads onnxruntime, whose threads spin for one another,
loses more than Linnet when one of them has to wait for a core. Trust the ratios of one thread, and there the processor's most."""


def text(rows, results):
    m = results["machine"]
    threads = sorted({int(key.rsplit("/", 1)[1]) for key in results["duels"]})
    found = [Found(rows, results, n) for n in threads]
    version = next((d["onnxruntime"]["version"] for f in found for _, d in f.good.values()), "?")
    missing = sum(r["key"] not in f.good for f in found for r in rows)
    differ = sorted({k for f in found for k, (_, d) in f.good.items() if not d["agree"]})
    parts = [f"""# Benchmarks

Linnet {m['linnet']} (commit {m['commit']}) against onnxruntime {version}, CPU, as its PyPI package has it.
**Ratio = onnxruntime's time / Linnet's: above 1, Linnet is faster.** In brackets the interval that holds the ratio with
95 %; bold: all of it is below 1, onnxruntime is faster. Measured on {m['date']} on {m['cpu']}, {m['cores']} cores,
{m['memory_gib']} GiB, Linux {m['kernel']}; CPU levels {', '.join(m['levels'])}, used: {m['chosen']}.
{effort(found)}. Load average at the end: {m['load']:.1f}.{busy(m)}

All of it again: `make bench` (`make bench BENCH=--quick`: fewer rounds; `BENCH="--reuse"`: only what is missing;
`BENCH="resnet50"`: one model). One line of it: `linnet bench M.lnt --vs onnxruntime --onnx M.onnx --data CASE --threads N`.
How the two take turns, and what the interval means: [docs/cli.md](docs/cli.md#bench). The models, whose list only grows, are
in `tests/bench/models.tsv`; `make zoo` writes those that are not recorded.

![ratios of all models](docs/bench.svg)

## In short

{summary(found)}""", f"""## Where onnxruntime is faster

{losses(found)}"""]
    if missing or differ:
        parts.append("## What is missing\n\n" + "\n".join(
            [f"* {r['key'].replace('/', ' ')}, {threads_text(f.threads)}: {f.all.get(r['key'], (0, {}))[1].get('error', 'not measured')}"
             for f in found for r in rows if r["key"] not in f.good] +
            [f"* {key.replace('/', ' ')}: outputs differ from onnxruntime's by more than 1e-4 of the largest "
             "(quantized models: a tenth)" for key in differ]))
    parts += [class_section(name, found) for name in CLASSES if any(r["class"] == name for r, _ in found[0].all.values())]
    parts.append(f"## Starting\n\n`make bench`; processes of a program that has nothing but the engine.\n\n{starts(results.get('start'))}")
    parts.append(f"""## Memory and loading

`make bench`, {threads_text(threads[0])}, MiB. Each engine in a process of its own, two runs; the peak resident set beyond what the
process had before it loaded the engine. Linnet's holds the weights that were read, which lie in the page cache and are shared with
other processes; what is its own is *private dirty*, with the arena in it.

{memory(found)}""")
    return "\n\n".join(parts) + "\n"


# ---- other engines: what peers.py measured ----

PEERS = "## Peers\n"
ARM = "## On ARM, by models of its cores\n"  # arm/arm_report.py's


def peer_cell(d, notes):
    """Bold where the peer is faster than Linnet; a note's number where it has no time."""
    if "ratio" in d:
        strong = "**" if d["ratio"] < 1 else ""
        return f"{strong}{ms(d['us'])} ({d['ratio']:.2f}){strong}"
    if d["error"] not in notes:
        notes.append(d["error"])
    return f"– [{notes.index(d['error']) + 1}]"


def peer_table(results, threads, notes):
    lines = []
    for key, found in results["rows"].items():
        if key.endswith(f"/{threads}"):
            lines.append([key.rsplit("/", 1)[0].replace("/", " "), ms(found["linnet"]["us"]) if "us" in found["linnet"] else "–",
                          *(peer_cell(found[e], notes) for e in results["engines"] if e != "linnet")])
    return table([threads_text(threads), *(e["name"] + ", ms" for e in results["engines"].values())], lines)


def not_fastest(results):
    """By peer: on which models, and with how many threads, it is faster than Linnet."""
    faster = {}
    for key, found in results["rows"].items():
        for engine, d in found.items():
            if d.get("ratio", 1) < 1:
                model, threads = key.rsplit("/", 1)
                faster.setdefault(engine, {}).setdefault(model.replace("/", " "), []).append(threads)
    return "\n".join(f"* {results['engines'][e]['name']}: " + ", ".join(f"{m} ({' and '.join(t)})" for m, t in models.items())
                     for e, models in faster.items()) or "Nowhere."


def peers_section(results):
    m, notes = results["machine"], []
    tables = [peer_table(results, n, notes) for n in sorted({int(key.rsplit("/", 1)[1]) for key in results["rows"]})]
    used = ", ".join(f"{e['name']} {e['version']}" for e in results["engines"].values() if e["version"])
    shared = " **Other work shared the machine**: its times are long, ratios tell more." if busy(m) else ""
    parts = [PEERS, f"""`make peers`: engines as PyPI has them ({used}),
Linnet {m['linnet']} (commit {m['commit']}), {m['date']}, {m['cpu']}, {m['cores']} cores, {results['rounds']} rounds; load average at
the end: {m['load']:.1f}.{shared}

Each engine is in a process of its own and is asked through its Python package, in turns; that costs each of them some
10 µs a run, which tells with the tiny models. All compute in float (OpenVINO would take bfloat16 here if it were let). In
brackets the time over Linnet's: **bold where the peer is faster**. Outputs were held against onnxruntime's.
""", *(t + "\n" for t in tables)]
    if notes:
        parts.append("\n".join(f"{i}. {note}" for i, note in enumerate(notes, 1)) + "\n")
    parts.append(f"### Where Linnet is not the fastest\n\n{not_fastest(results)}\n")
    return "\n".join(parts)


def place(document, section, heading):
    """The section in place of the one that has its heading, else at the end."""
    before, found, rest = document.partition(heading)
    after = rest.partition("\n## ") if found else ("", "", "")
    tail = "\n## " + after[2] if after[1] else ""
    return before.rstrip("\n") + "\n\n" + section + tail


def write_section(section, heading, root=ROOT):
    page = root / "BENCHMARKS.md"
    page.write_text(place(page.read_text(), section, heading))


def write_peers(results, root=ROOT):
    write_section(peers_section(results), PEERS, root)


# ---- the picture ----

STYLE = """text{font:11px system-ui,sans-serif;fill:#333}.h{font-weight:600}.g{stroke:#ccc}.one{stroke:#333;stroke-width:1.5}
.a{fill:#2a6fbb}.b{fill:#7fb0e0}.la{fill:#c8501e}.lb{fill:#eaa27f}.i{stroke:#555}
@media(prefers-color-scheme:dark){text{fill:#ddd}.g{stroke:#444}.one{stroke:#ddd}.a{fill:#5b9fe6}.b{fill:#2f5f94}
.la{fill:#e8703a}.lb{fill:#8f4a2b}.i{stroke:#bbb}}"""
LEFT, WIDTH, BAR, GAP = 250, 620, 7, 5


def picture(rows, results):
    """Bars from 1 to the ratio on a logarithmic scale; a thin line is the interval."""
    threads = sorted({int(key.rsplit("/", 1)[1]) for key in results["duels"]})[:2]
    found = [Found(rows, results, n) for n in threads]
    every = [d for f in found for _, d in f.good.values()] or [{"ratio_low": 0.5, "ratio_high": 2}]
    low = min(0.5, *(d["ratio_low"] for d in every)) * 0.95
    high = max(2, *(d["ratio_high"] for d in every)) * 1.05

    def x(ratio):
        return LEFT + WIDTH * math.log(ratio / low) / math.log(high / low)

    marks, y = [], 44
    for name, (heading, _) in CLASSES.items():
        keys = [k for k, (r, _) in found[0].all.items() if r["class"] == name]
        if not keys:
            continue
        marks.append(f'<text class="h" x="8" y="{y + 10}">{heading}</text>')
        y += 18
        for key in keys:
            row, d = found[0].all[key]
            marks.append(f'<text x="{LEFT - 8}" y="{y + BAR + 3}" text-anchor="end">{row["name"]} {d.get("shape", "")}</text>')
            for f, letter in zip(found, "ab"):
                d = f.good.get(key, (None, None))[1]
                if d:
                    ends = sorted((x(1), x(d["ratio"])))
                    marks.append(f'<rect class="{"l" if d["ratio"] < 1 else ""}{letter}" x="{ends[0]:.1f}" y="{y}" '
                                 f'width="{max(ends[1] - ends[0], 0.5):.1f}" height="{BAR}"><title>{row["name"]}, '
                                 f'{threads_text(f.threads)}: {d["ratio"]:.2f}</title></rect>'
                                 f'<path class="i" d="M{x(d["ratio_low"]):.1f} {y + BAR / 2}H{x(d["ratio_high"]):.1f}"/>')
                y += BAR
            y += GAP
        y += 6
    grid = []
    for tick in (0.25, 0.5, 1, 2, 3, 5, 10, 20, 50):
        if low <= tick <= high:
            grid.append(f'<path class="{"one" if tick == 1 else "g"}" d="M{x(tick):.1f} 36V{y}"/>'
                        f'<text x="{x(tick):.1f}" y="30" text-anchor="middle">{tick:g}</text>')
    title = ("onnxruntime's time / Linnet's; right of 1: Linnet is faster. Upper bar "
             + ", lower bar ".join(map(threads_text, threads)) + "; lines: 95 % intervals")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {y + 10}" role="img">\n<title>{title}</title>\n'
            f'<style>{STYLE}</style>\n<text x="8" y="14">{title}</text>\n' + "\n".join(grid + marks) + "\n</svg>\n")


def write(rows, results, root=ROOT):
    """Sections with commands of their own stay as they are."""
    page = root / "BENCHMARKS.md"
    there = page.read_text() if page.exists() else ""
    kept = [heading + there.partition(heading)[2].partition("\n## ")[0].rstrip("\n") + "\n" for heading in (PEERS, ARM) if heading in there]
    page.write_text("\n".join([text(rows, results), *kept]))
    (root / "docs").mkdir(exist_ok=True)
    (root / "docs/bench.svg").write_text(picture(rows, results))
