#!/usr/bin/env python3
"""bench_arm.py [NAME ...] [--cores CORE ...] [--against WHAT] [--hot [N]] [--code FUNCTION] [--json]: what a model costs on
ARM, without ARM: instructions counted under emulation, and cycles of models of the cores.

Models are those of arm_models.tsv (--list). Cores: a53, a72, a76 (64-bit), armv7 with NEON and armv6 (instructions only).
One thread; the difference of two numbers of runs, so that loading and binding are left out.

--against compares with another program: a checkout (built first), a folder with a program `linnet`, or such a program.
--hot lists functions by their cycles, --code the instructions of a function's hottest pieces.

Neither instructions nor modelled cycles are milliseconds: README.md beside this file says what they leave out."""

import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import bench  # noqa: E402
import cycles  # noqa: E402
import emulation  # noqa: E402
import linnet_arm  # noqa: E402
from emulation import CORES, ROOT  # noqa: E402
from symbols import Symbols  # noqa: E402

MODELS = HERE / "arm_models.tsv"
FUNCTIONS = 12  # of --hot
MEMORY = emulation.OUT / "mca.json"


class Measured:
    """A model by one engine on one core."""

    def __init__(self, core, run):
        self.core, self.run = core, run
        self.blocks = emulation.profile(core, run.command, run.depends)
        self.instructions = sum(b.instructions for b in self.blocks)
        self.pieces, self.cycles = cycles.model(core, self.blocks, MEMORY) if core.model else ([], None)
        self.difference, self.tolerance = run.difference(core)

    @property
    def agrees(self):
        return self.difference <= self.tolerance

    def record(self):
        return {"instructions": round(self.instructions), "cycles": self.cycles and round(self.cycles), "agrees": self.agrees,
                "max_rel": self.difference if self.agrees else None}

    def functions(self):
        """Rows (name, file, instructions, cycles, multiply-adds), the costliest first."""
        symbols, rows = Symbols(self.run.program), {}
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


def print_functions(measured, most):
    rows = measured.functions()
    whole = sum(r[3] for r in rows) or 1.0
    unit = "cycles" if measured.core.model else "instructions"
    print(f"    {measured.core.name}: share of {unit}, instructions, multiply-adds a cycle")
    for name, source, instructions, n, products in rows[:most]:
        rate = f"{products / n:6.2f}" if products and measured.core.model else "      "
        print(f"    {100 * n / whole:5.1f} %  {millions(instructions):>8} M {rate}  {name}{'  ' + source if source else ''}")


def print_code(measured, function):
    """The pieces of a function, the costliest first."""
    symbols = Symbols(measured.run.program)
    for p in measured.pieces:
        if symbols.at(p.blocks[0].address)[0] != function or p.cycles is None:
            continue
        share = 100 * p.count * p.cycles / measured.cycles
        products = cycles.multiply_adds(p)
        print(f"    {measured.core.name}: {share:.1f} % of cycles; {p.length} instructions, {p.cycles:.1f} cycles, "
              f"{products} multiply-adds{f' ({products / p.cycles:.2f} a cycle)' if products else ''}; ran {p.count:.0f} times, "
              f"{100 * p.looped:.0f} % after itself; at {p.blocks[0].address:x}")
        for text in p.texts:
            print("        " + text.expandtabs(8))


def print_row(row, measured, other):
    line = f"{row['key']:36} {measured.core.name:6} {millions(measured.instructions):>9} M instructions"
    line += f" {millions(measured.cycles):>9} M cycles" if measured.core.model else ""
    if other:
        line += f"   against {millions(other.instructions)}" + (f" and {millions(other.cycles)}" if measured.core.model else "")
        line += f": {measured.instructions / other.instructions:.3f}"
        line += f" and {measured.cycles / other.cycles:.3f} of them" if measured.core.model else " of them"
    if not measured.agrees:
        line += f"   OUTPUTS DIFFER from x86's by {measured.difference:.1g} of the largest, at most {measured.tolerance:g}"
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


def work_through(given, results):
    for row in rows(given.names):
        made(row)
        for core in (CORES[name] for name in given.cores):
            program = linnet_arm.ours(core, given.program)
            measured = Measured(core, linnet_arm.Run(row, program, linnet_arm.ours_converter()))
            other = Measured(core, linnet_arm.other(row, core, given.against)) if given.against else None
            results.append({"model": row["key"], "core": core.name, "engine": "linnet", **measured.record(),
                            **({"against": other.record()} if other else {})})
            if given.json:
                continue
            print_row(row, measured, other)
            if given.hot:
                print_functions(measured, given.hot)
            if given.code:
                print_code(measured, given.code)


def arguments():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--list", action="store_true", help="models and cores")
    options.add_argument("--cores", nargs="+", choices=CORES, default=["a53", "a72", "a76"], metavar="CORE")
    options.add_argument("--program", type=pathlib.Path, metavar="FILE", help="a program for these cores, instead of building it")
    options.add_argument("--against", type=pathlib.Path, metavar="WHAT", help="a checkout, a folder with a program, or a program")
    options.add_argument("--hot", type=int, nargs="?", const=FUNCTIONS, metavar="N", help=f"the N costliest functions ({FUNCTIONS})")
    options.add_argument("--code", metavar="FUNCTION", help="the instructions of its hottest pieces")
    options.add_argument("--json", action="store_true", help="print a list of records")
    return options.parse_args()


def main():
    given = arguments()
    if given.list:
        print("models:", *(f"    {r['key']}{'  ' + r['convert'] if r['convert'] else ''}" for r in bench.rows(MODELS)), sep="\n")
        print("cores: " + " ".join(CORES))
        return 0
    results = []
    try:
        work_through(given, results)
    except (RuntimeError, OSError) as error:
        print(f"bench_arm.py: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(results, indent=1))
    return 0 if all(r["agrees"] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
