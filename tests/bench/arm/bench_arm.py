#!/usr/bin/env python3
"""bench_arm.py [NAME ...] [--cores CORE ...] [--engines ENGINE ...] [--against WHAT] [--bytes] [--hot [N]] [--code FUNCTION]
[--json]: what a model costs on ARM, without ARM: instructions counted under emulation, and cycles of models of the cores.

Models are those of arm_models.tsv (--list). Cores: a53, a72, a76 (64-bit), armv7 with NEON and armv6 (instructions of Linnet
only). One thread, loading and binding left out. Outputs are compared with those that the same engine computes here.

--against compares with another program: a checkout (built first), a folder with a program `linnet`, or such a program.
--engines: linnet, ort, ncnn, mnn, and ncnn-fp16, mnn-fp16 on the a76 (make deps-arm-peers). --bytes: memory traffic past the
last cache, which takes its time. --hot lists functions by their cycles, --code the instructions of a function's hottest pieces.

Neither instructions nor modelled cycles are milliseconds: README.md beside this file says what they leave out. What was
measured of this checkout's program is kept in build/bench-arm/results.json, of which --render makes a section of BENCHMARKS.md;
--reuse measures what is missing there."""

import argparse
import functools
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import a53  # noqa: E402
import a64  # noqa: E402
import arm_peers  # noqa: E402
import arm_report  # noqa: E402
import bench  # noqa: E402
import counts  # noqa: E402
import cycles  # noqa: E402
import emulation  # noqa: E402
import linnet_arm  # noqa: E402
from emulation import CORES, ROOT  # noqa: E402

MODELS = HERE / "arm_models.tsv"
FUNCTIONS = 12  # of --hot
ENGINES = ("linnet", *arm_peers.ENGINES)
MEMORY = emulation.OUT / "mca.json"
RESULTS = emulation.OUT / "results.json"


class Measured:
    """A model by one engine on one core."""

    def __init__(self, core, run, count_bytes=False):
        self.core, self.run = core, run
        self.blocks = run.profile(core)
        self.instructions = sum(b.instructions for b in self.blocks)
        self.pieces, self.cycles = cycles.model(core, self.blocks, MEMORY) if core.model else ([], None)
        self.bytes = run.traffic(core) if count_bytes else None
        self.difference, self.tolerance = run.difference(core)

    @property
    def agrees(self):
        return self.difference <= self.tolerance

    def record(self):
        found = {"instructions": self.instructions, "cycles": self.cycles, "bytes": self.bytes}
        return {key: round(n) for key, n in found.items() if n is not None} | {
            "agrees": self.agrees, "max_rel": self.difference if self.agrees else None}

    def functions(self):
        """Rows (name, file, instructions, cycles, multiply-adds), the costliest first."""
        symbols, rows = self.run.symbols(), {}
        if not self.pieces:
            for b in self.blocks:
                row = rows.setdefault(symbols.at(b.address), [0.0, 0.0, 0.0])
                row[0] += b.instructions
                row[1] += b.instructions
        for p in self.pieces:
            row = rows.setdefault(symbols.at(p.blocks[0].address), [0.0, 0.0, 0.0])
            row[0] += p.instructions
            row[1] += p.count * (p.cycles or 0.0)
            row[2] += p.count * cycles.multiply_adds(p)
        return sorted(((*name, *row) for name, row in rows.items()), key=lambda r: -r[3])


def millions(n):
    return "–" if n is None else f"{n / 1e6:.4g}" if n < 1e8 else f"{n / 1e6:.0f}"


def print_functions(measured, other, most):
    """The costliest functions, and what those of the same name cost in the other program."""
    rows = measured.functions()
    whole = sum(r[3] for r in rows) or 1.0
    known = bool(measured.core.model)
    before = {(name, source): n for name, source, _, n, _ in other.functions()} if other else {}
    print(f"    {measured.core.name}: share of {'cycles' if known else 'instructions'}, millions of instructions"
          f"{', of cycles, multiply-adds a cycle' if known else ''}{'; over those of the other program' if other else ''}")
    for name, source, instructions, n, products in rows[:most]:
        line = f"    {100 * n / whole:5.1f} %  {millions(instructions):>8}"
        line += f" {millions(n):>8} {f'{products / n:5.2f}' if products else '     '}" if known else ""
        line += f"  {n / before[name, source]:5.2f}x" if before.get((name, source)) else "    new " if other else ""
        print(f"{line}  {name}{'  ' + source if source else ''}")


def print_code(measured, function):
    """The pieces of a function, the costliest first."""
    symbols = measured.run.symbols()
    for p in measured.pieces:
        if symbols.at(p.blocks[0].address)[0] != function or p.cycles is None:
            continue
        share = 100 * p.count * p.cycles / measured.cycles
        products = cycles.multiply_adds(p)
        print(f"    {measured.core.name}: {share:.1f} % of cycles; {p.length} instructions, {p.cycles:.1f} cycles, "
              f"{products} multiply-adds{f' ({products / p.cycles:.2f} a cycle)' if products else ''}; ran {p.count:.0f} times, "
              f"{100 * p.looped:.0f} % after itself; at {p.blocks[0].address:x}")
        for cycle, text in zip(issue_cycles(measured.core, p), p.texts):
            print(f"    {cycle:>4}  {text.expandtabs(8)}")


def issue_cycles(core, piece):
    """Where each instruction issues, for a core that keeps their order; nothing for others."""
    if core.model != "a53":
        return [""] * len(piece.texts)
    found, last = [], None
    for n in a53.schedule([a64.parse(t) for t in piece.texts]):
        found.append("" if n == last else n)
        last = n
    return found


def told(record, core):
    """A record's figures in words."""
    words = [f"{millions(record['instructions']):>7} M instructions"]
    words += [f"{millions(record['cycles']):>7} M cycles"] if core.model else []
    words += [f"{millions(record['bytes']):>7} MB"] if "bytes" in record else []
    return "  ".join(words)


def ratios(record, other):
    """Of what both know, the first over the second."""
    return " ".join(f"{record[key] / other[key]:.3f}" for key in ("instructions", "cycles", "bytes")
                    if key in record and other.get(key))


def print_record(row, engine, core, record, ours):
    """`ours` is Linnet's record of the same model and core, to compare another engine with, or None."""
    line = f"{row['key']:28} {core.name:6} {engine:10}"
    if "error" in record:
        print(f"{line} – {record['error']}", flush=True)
        return
    line += " " + told(record, core)
    if "against" in record:
        line += f"   against {told(record['against'], core)}: {ratios(record, record['against'])}"
    elif ours and "error" not in ours:
        line += f"   of Linnet's: {ratios(record, ours)}"
    if not record["agrees"]:
        line += "   OUTPUTS DIFFER from those computed here"
    print(line, flush=True)


def rows(names):
    found = bench.rows(MODELS)
    unknown = set(names) - {r["name"] for r in found}
    if unknown:
        raise RuntimeError(f"no model {', '.join(sorted(unknown))}; there are {', '.join(r['name'] for r in found)}")
    return [r for r in found if not names or r["name"] in names]


def made(row):
    """Writes the model where it is one that the zoo makes."""
    if row["where"] == "zoo":
        subprocess.run([sys.executable, ROOT / "tests/zoo/make.py", row["source"]], check=True, stdout=sys.stderr)
    return row


def measure(row, engine, core, given):
    """The record of a model by an engine on a core, what it is of, and that of the program to compare with; where another
    engine fails, a record of the reason."""
    if engine == "linnet":
        run = linnet_arm.Run(row, linnet_arm.ours(core, given.program), linnet_arm.ours_converter(), given.level)
        measured = Measured(core, run, given.bytes)
        other = Measured(core, linnet_arm.other(row, core, given.against, given.level), given.bytes) if given.against else None
        return measured.record() | ({"against": other.record()} if other else {}), measured, other
    try:
        measured = Measured(core, arm_peers.PeerRun(row, engine), given.bytes)
    except emulation.MissingTool:
        raise
    except RuntimeError as error:
        return {"error": str(error)}, None, None
    return measured.record(), measured, None


def runs_on(row, engine, core):
    """Half arithmetic is the A76's; rows of float16 files are Linnet's alone, of others the float file's FP16 engines tell."""
    if arm_report.is_half(row):
        return engine == "linnet" and core.name == "a76"
    return engine == "linnet" or bool(core.model) and (core.name == "a76" or not engine.endswith("fp16"))


def count(row, core):
    """Instructions of this checkout's program."""
    blocks = linnet_arm.Run(row, linnet_arm.ours(core, None), linnet_arm.ours_converter()).profile(core)
    return sum(b.instructions for b in blocks)


def record():
    wanted = [(made(row), CORES[name]) for row in rows(counts.NAMES) for name in counts.RECORDED_CORES]
    counts.write([(row["name"], core.name, count(row, core)) for row, core in wanted])


def work_through(given, results):
    """Measures what is asked for; returns whether all outputs agree."""
    agree = True
    for row in rows(given.names):
        made(row)
        for core in (CORES[name] for name in given.cores):
            for engine in (e for e in given.engines if runs_on(row, e, core)):
                agree &= work_on(row, engine, core, given, results)
    return agree


def work_on(row, engine, core, given, results):
    key = f"{row['key']} {core.name} {engine}"
    given.asked.append(key)
    if given.reuse and key in results and (not given.bytes or "bytes" in results[key]):
        return results[key].get("agrees", True)
    record, measured, other = measure(row, engine, core, given)
    keep(given, results, key, record)
    if not given.json:
        print_record(row, engine, core, record, results.get(f"{row['key']} {core.name} linnet") if engine != "linnet" else None)
        show_code(given, measured, other)
    return record.get("agrees", True)


def keep(given, results, key, record):
    """In the file, too, unless it is of another program than this checkout's; bytes are kept from before."""
    results[key] = {k: v for k, v in results.get(key, {}).items() if k == "bytes"} | record
    if given.program or given.against or given.level:
        return
    everything = stored() | {key: results[key] | {"commit": commit()}}
    scratch = RESULTS.with_suffix(".new")
    scratch.write_text(json.dumps(everything, indent=1))
    scratch.replace(RESULTS)


def stored():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


@functools.lru_cache(None)
def commit():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def show_code(given, measured, other):
    if measured and given.hot:
        print_functions(measured, other, given.hot)
    if measured and given.code:
        print_code(measured, given.code)


def arguments():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--list", action="store_true", help="models and cores")
    options.add_argument("--cores", nargs="+", choices=CORES, default=["a53", "a72", "a76"], metavar="CORE")
    options.add_argument("--engines", nargs="+", choices=ENGINES, default=["linnet"], metavar="ENGINE")
    options.add_argument("--bytes", action="store_true", help="memory traffic past the last cache, too")
    options.add_argument("--program", type=pathlib.Path, metavar="FILE", help="a program for these cores, instead of building it")
    options.add_argument("--level", metavar="L", help="Linnet's kernels of this level (the core's best)")
    options.add_argument("--against", type=pathlib.Path, metavar="WHAT", help="a checkout, a folder with a program, or a program")
    options.add_argument("--hot", type=int, nargs="?", const=FUNCTIONS, metavar="N", help=f"the N costliest functions ({FUNCTIONS})")
    options.add_argument("--code", metavar="FUNCTION", help="the instructions of its hottest pieces")
    options.add_argument("--reuse", action="store_true", help="keep what was measured before")
    options.add_argument("--render", action="store_true", help="measure nothing: write the section of BENCHMARKS.md")
    options.add_argument("--record", action="store_true", help="write counts.tsv, the numbers of instructions that tests expect")
    options.add_argument("--json", action="store_true", help="print a list of records")
    return options.parse_args(namespace=argparse.Namespace(asked=[]))


def main():
    given = arguments()
    if given.list:
        print("models:", *(f"    {r['key']}{'  ' + r['convert'] if r['convert'] else ''}" for r in bench.rows(MODELS)), sep="\n")
        print("cores: " + " ".join(CORES))
        return 0
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    results = stored()
    try:
        if given.record:
            record()
            return 0
        if given.render:
            arm_report.write(bench.rows(MODELS), results)
            return 0
        agree = work_through(given, results)
    except (RuntimeError, OSError) as error:
        print(f"bench_arm.py: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps([dict(zip(("model", "core", "engine"), key.split(" "))) | results[key] for key in given.asked], indent=1))
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
